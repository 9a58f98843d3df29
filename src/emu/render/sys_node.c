// SPDX-License-Identifier: MIT
/*
 * sys_node.c - /sys/devices/system/node: the sets of nodes and each node's CPUs, distances, huge
 * pages and links. Its memory figures are in node_mem.c.
 */
#include <errno.h>
#include <stdlib.h>
#include "impl.h"

enum { SET_POSSIBLE, SET_ONLINE, SET_CPU, SET_MEMORY };

static int make_set(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_nodemask *mask = NULL;

	switch (entry->arg) {
	case SET_POSSIBLE:
		mask = mc_topology_nodes_possible(at->topo);
		break;
	case SET_ONLINE:
		mask = mc_topology_nodes_online(at->topo);
		break;
	case SET_CPU:
		mask = mc_topology_nodes_has_cpu(at->topo);
		break;
	default:
		mask = mc_topology_nodes_has_memory(at->topo);
	}
	mc_text_list(out, &mask->m);
	mc_text_add(out, "\n", 1);
	return 0;
}

/* ---- one node ---- */

static const struct mc_node *this_node(const struct rn_at *at)
{
	return mc_topology_node(at->topo, (unsigned int)at->n[0]);
}

static uint64_t next_node(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return rn_next_bit(&mc_topology_nodes_online(at->topo)->m, from);
}

static int make_cpus(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	if (entry->arg)
		mc_text_list(out, this_node(at)->cpus);
	else
		mc_text_mask(out, this_node(at)->cpus);
	mc_text_add(out, "\n", 1);
	return 0;
}

static int make_distance(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	unsigned int to, first = mc_cpumask_first(online);

	(void)entry;
	mc_for_each_cpu (to, online)
		mc_text_printf(out, "%s%u", to == first ? "" : " ",
			       mc_topology_distance(at->topo, (unsigned int)at->n[0], to));
	mc_text_add(out, "\n", 1);
	return 0;
}

static uint64_t next_cpu(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return rn_next_bit(this_node(at)->linked, from);
}

static uint64_t next_block(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return rn_node_block(at, (unsigned int)at->n[0], from);
}

/* ../../cpu/cpuN, ../../memory/memoryN */
static int make_link(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	mc_text_printf(out, "../../%s/%s%llu", entry->text, entry->text,
		       (unsigned long long)rn_last(at));
	return 0;
}

static bool is_x86(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return at->view->arch == MC_ARCH_X86_64;
}

/* ---- huge pages ---- */

static const struct mc_hugepool *pool_of(const struct mc_node *node, uint64_t kib)
{
	unsigned int i;

	for (i = 0; i < node->nr_hugepools; i++) {
		if (node->hugepools[i].size >> 10 == kib)
			return &node->hugepools[i];
	}
	return NULL;
}

static uint64_t next_pool(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	const struct mc_node *node = this_node(at);
	uint64_t best = RN_NONE, kib;
	unsigned int i;

	(void)entry;
	for (i = 0; i < node->nr_hugepools; i++) {
		kib = node->hugepools[i].size >> 10;
		if (kib >= from && kib < best)
			best = kib;
	}
	return best;
}

enum { POOL_TOTAL, POOL_FREE, POOL_SURPLUS };

static int make_pool(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_hugepool *pool = pool_of(this_node(at), at->n[1]);

	if (entry->arg == POOL_TOTAL && !rn_value(at, out))
		return 0;
	return rn_number(out, (long long)(entry->arg == POOL_TOTAL  ? pool->total
					  : entry->arg == POOL_FREE ? pool->free
								    : pool->surplus));
}

/* The next smaller size: what a page of this one is cut into. */
static uint64_t smaller_pool(const struct mc_node *node, uint64_t kib)
{
	uint64_t best = 0, other;
	unsigned int i;

	for (i = 0; i < node->nr_hugepools; i++) {
		other = node->hugepools[i].size >> 10;
		if (other < kib && other > best)
			best = other;
	}
	return best;
}

static bool has_demote(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return smaller_pool(this_node(at), at->n[1]) != 0;
}

static int make_demote_size(const struct rn_at *at, const struct rn_entry *entry,
			    struct mc_text *out)
{
	(void)entry;
	mc_text_printf(out, "%llukB\n", (unsigned long long)smaller_pool(this_node(at), at->n[1]));
	return 0;
}

static const struct rn_entry pool[] = {
	{.name = "nr_hugepages", .type = 'f', .mode = 0644, .arg = POOL_TOTAL, .make = make_pool},
	{.name = "free_hugepages", .type = 'f', .arg = POOL_FREE, .make = make_pool},
	{.name = "surplus_hugepages", .type = 'f', .arg = POOL_SURPLUS, .make = make_pool},
	{.name = "demote", .type = 'f', .mode = 0200, .has = has_demote},
	{.name = "demote_size",
	 .type = 'f',
	 .mode = 0644,
	 .has = has_demote,
	 .make = make_demote_size},
	{0},
};

static const struct rn_entry hugepages[] = {
	{.name = "hugepages-#kB", .type = 'd', .next = next_pool, .kids = pool},
	{0},
};

static bool has_pools(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return this_node(at)->nr_hugepools;
}

static const struct rn_entry memory_failure[] = {
	{.name = "total", .type = 'f', .text = "0\n"},
	{.name = "ignored", .type = 'f', .text = "0\n"},
	{.name = "failed", .type = 'f', .text = "0\n"},
	{.name = "delayed", .type = 'f', .text = "0\n"},
	{.name = "recovered", .type = 'f', .text = "0\n"},
	{0},
};

static const struct rn_entry nothing[] = {{0}};

static const struct rn_entry node[] = {
	{.name = "cpumap", .type = 'f', .arg = false, .make = make_cpus},
	{.name = "cpulist", .type = 'f', .flags = RN_WIDE, .arg = true, .make = make_cpus},
	{.name = "distance", .type = 'f', .make = make_distance},
	{.name = "meminfo", .type = 'f', .make = rn_node_meminfo},
	{.name = "numastat", .type = 'f', .make = rn_node_numastat},
	{.name = "vmstat", .type = 'f', .make = rn_node_vmstat},
	{.name = "compact", .type = 'f', .mode = 0200},
	{.name = "hugepages", .type = 'd', .has = has_pools, .kids = hugepages},
	{.name = "memory_failure", .type = 'd', .flags = RN_SOURCE, .kids = memory_failure},
	{.name = "cpu#", .type = 'l', .next = next_cpu, .make = make_link, .text = "cpu"},
	{.name = "memory#", .type = 'l', .next = next_block, .make = make_link, .text = "memory"},
	{.name = "subsystem", .type = 'l', .make = rn_make_text, .text = "../../../../bus/node"},
	{.name = "power", .type = 'd', .has = rn_has_power, .kids = rn_power},
	{.name = "uevent", .type = 'f', .mode = 0644, .make = rn_make_text, .text = ""},
	{.name = "x86", .type = 'd', .flags = RN_LIVE, .has = is_x86, .kids = nothing},
	{0},
};

/* ---- the folder ---- */

const struct rn_entry rn_node[] = {
	{.name = "possible", .type = 'f', .arg = SET_POSSIBLE, .make = make_set},
	{.name = "online", .type = 'f', .arg = SET_ONLINE, .make = make_set},
	{.name = "has_cpu", .type = 'f', .arg = SET_CPU, .make = make_set},
	{.name = "has_memory", .type = 'f', .arg = SET_MEMORY, .make = make_set},
	{.name = "has_normal_memory", .type = 'f', .arg = SET_MEMORY, .make = make_set},
	{.name = "has_generic_initiator",
	 .type = 'f',
	 .flags = RN_RECORD,
	 .make = rn_make_recorded,
	 .text = "\n"},
	{.name = "power", .type = 'd', .has = rn_has_power, .kids = rn_power},
	{.name = "uevent", .type = 'f', .mode = 0644, .make = rn_make_text, .text = ""},
	{.name = "node#", .type = 'd', .flags = RN_EXTRA, .next = next_node, .kids = node},
	{0},
};
