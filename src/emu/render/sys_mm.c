// SPDX-License-Identifier: MIT
/*
 * sys_mm.c - /sys/kernel/mm: huge page pools of the whole machine, weights of interleaving; and
 * numa_balancing. Values that a program may write are kept by the emulator (mc_render_live.value),
 * shown here.
 */
#include <errno.h>
#include "impl.h"

int rn_value(const struct rn_at *at, struct mc_text *out)
{
	const struct mc_render_live *live = rn_live(at->render);

	return live->value ? live->value(live->arg, at->path, out) : -ENOENT;
}

/* ---- hugepages: sums over the nodes ---- */

struct sums {
	uint64_t total, free, surplus, smaller;
};

static uint64_t walk_pools(const struct rn_at *at, uint64_t kib, uint64_t from, struct sums *sums)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	uint64_t best = RN_NONE, size;
	unsigned int n, i;

	mc_for_each_cpu (n, online) {
		const struct mc_node *node = mc_topology_node(at->topo, n);

		for (i = 0; i < node->nr_hugepools; i++) {
			size = node->hugepools[i].size >> 10;
			if (size >= from && size < best)
				best = size;
			if (sums && size == kib) {
				sums->total += node->hugepools[i].total;
				sums->free += node->hugepools[i].free;
				sums->surplus += node->hugepools[i].surplus;
			} else if (sums && size < kib && size > sums->smaller) {
				sums->smaller = size;
			}
		}
	}
	return best;
}

static uint64_t next_pool(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return walk_pools(at, 0, from, NULL);
}

enum { POOL_TOTAL, POOL_FREE, POOL_SURPLUS, POOL_RESERVED, POOL_OVERCOMMIT, POOL_DEMOTE };

static int make_pool(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	struct sums sums = {0};
	uint64_t value = 0;

	if ((entry->arg == POOL_TOTAL || entry->arg == POOL_OVERCOMMIT) && !rn_value(at, out))
		return 0;
	walk_pools(at, at->n[0], 0, &sums);
	switch (entry->arg) {
	case POOL_TOTAL:
		value = sums.total;
		break;
	case POOL_FREE:
		value = sums.free;
		break;
	case POOL_SURPLUS:
		value = sums.surplus;
		break;
	case POOL_DEMOTE:
		mc_text_printf(out, "%llukB\n", (unsigned long long)sums.smaller);
		return 0;
	default:
		break;
	}
	return rn_number(out, (long long)value);
}

static bool has_demote(const struct rn_at *at, const struct rn_entry *entry)
{
	struct sums sums = {0};

	(void)entry;
	walk_pools(at, at->n[0], 0, &sums);
	return sums.smaller;
}

static const struct rn_entry pool[] = {
	{.name = "nr_hugepages", .type = 'f', .mode = 0644, .arg = POOL_TOTAL, .make = make_pool},
	{.name = "nr_hugepages_mempolicy",
	 .type = 'f',
	 .mode = 0644,
	 .arg = POOL_TOTAL,
	 .make = make_pool},
	{.name = "nr_overcommit_hugepages",
	 .type = 'f',
	 .mode = 0644,
	 .arg = POOL_OVERCOMMIT,
	 .make = make_pool},
	{.name = "free_hugepages", .type = 'f', .arg = POOL_FREE, .make = make_pool},
	{.name = "resv_hugepages", .type = 'f', .arg = POOL_RESERVED, .make = make_pool},
	{.name = "surplus_hugepages", .type = 'f', .arg = POOL_SURPLUS, .make = make_pool},
	{.name = "demote", .type = 'f', .mode = 0200, .has = has_demote},
	{.name = "demote_size",
	 .type = 'f',
	 .mode = 0644,
	 .arg = POOL_DEMOTE,
	 .has = has_demote,
	 .make = make_pool},
	{0},
};

static const struct rn_entry hugepages[] = {
	{.name = "hugepages-#kB", .type = 'd', .next = next_pool, .kids = pool},
	{0},
};

static bool has_pools(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return walk_pools(at, 0, 0, NULL) != RN_NONE;
}

/* ---- weighted interleave: a weight of 1 for each possible node until one is written ---- */

static uint64_t next_node(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return rn_next_bit(&mc_topology_nodes_possible(at->topo)->m, from);
}

static int make_weight(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	return rn_value(at, out) ? rn_number(out, 1) : 0;
}

static const struct rn_entry weights[] = {
	{.name = "node#", .type = 'f', .mode = 0644, .next = next_node, .make = make_weight},
	{0},
};

static const struct rn_entry mempolicy[] = {
	{.name = "weighted_interleave", .type = 'd', .kids = weights},
	{0},
};

static bool has_numa(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return mc_topology_has_numa(at->topo);
}

const struct rn_entry rn_kernel_mm[] = {
	{.name = "hugepages", .type = 'd', .has = has_pools, .kids = hugepages},
	{.name = "mempolicy", .type = 'd', .has = has_numa, .kids = mempolicy},
	{0},
};

/* On as soon as there is more than one node, as at boot. */
int rn_numa_balancing(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	if (!rn_value(at, out))
		return 0;
	if (at->view->recorded && !rn_source_read(at, out))
		return 0;
	return rn_number(out, mc_cpumask_weight(&mc_topology_nodes_online(at->topo)->m) > 1);
}
