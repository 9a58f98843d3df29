// SPDX-License-Identifier: MIT
/*
 * topology.c - views of a machine and every question about one.
 *
 * A view (struct mc_topology) is made once, by topo_base_finish() or mc_topology_set_online(), and
 * never changes: the functions here only read, from any thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_priv.h"

/* ---- making views ---------------------------------------------------------------------------- */

static void view_free(struct mc_topology *topo)
{
	struct topo_base *base = topo->base;

	for (uint32_t i = 0; topo->shown && i < base->nr_masks; i++)
		if (topo->shown[i] != base->mask[i])
			mc_cpumask_free(topo->shown[i]);
	free(topo->shown);
	free(topo->cache);
	free(topo->node);
	mc_cpumask_free(topo->online);
	mc_cpumask_free(topo->allowed);
	mc_nodemask_free((struct mc_nodemask *)topo->nodes_has_cpu);
	topo_base_put(base);
	free(topo);
}

static int view_masks(struct mc_topology *topo)
{
	struct topo_base *base = topo->base;

	topo->shown = calloc(base->nr_masks ? base->nr_masks : 1, sizeof(*topo->shown));
	if (!topo->shown)
		return -ENOMEM;
	for (uint32_t i = 0; i < base->nr_masks; i++) {
		if (mc_cpumask_subset(base->mask[i], topo->online)) {
			topo->shown[i] = base->mask[i];
			continue;
		}
		topo->shown[i] = mc_cpumask_alloc_bits(base->nr_cpu_ids);
		if (!topo->shown[i])
			return -ENOMEM;
		mc_cpumask_and(topo->shown[i], base->mask[i], topo->online);
	}
	return 0;
}

static int view_nodes(struct mc_topology *topo)
{
	struct topo_base *base = topo->base;
	unsigned int cpu;

	topo->node = calloc(base->nr_nodes ? base->nr_nodes : 1, sizeof(*topo->node));
	topo->nodes_has_cpu = (struct mc_nodemask *)mc_cpumask_dup(&base->nodes_has_cpu->m);
	if (!topo->node || !topo->nodes_has_cpu)
		return -ENOMEM;
	for (unsigned int i = 0; i < base->nr_nodes; i++) {
		const struct topo_node *from = &base->node[i];

		topo->node[i] = (struct mc_node){
			.mem_total = from->mem_total,
			.mem_free = from->mem_free,
			.cpus = topo->shown[from->cpus],
			.linked = base->mask[from->linked],
			.physical = from->physical,
			.nr_ranges = from->nr_ranges,
			.nr_hugepools = from->nr_hugepools,
			.ranges = from->ranges,
			.hugepools = from->hugepools,
		};
		/* The kernel clears a node's state with the last CPU that called the node its own.
		 */
		if (!mc_cpumask_empty(topo->node[i].linked) && mc_cpumask_empty(topo->node[i].cpus))
			mc_cpumask_clear(&topo->nodes_has_cpu->m, from->id);
	}
	mc_for_each_cpu(cpu, topo->online) {
		unsigned int node = base->cpu[cpu].ids.node;

		if (topo_node(base, node))
			mc_cpumask_set(&topo->nodes_has_cpu->m, node);
	}
	return 0;
}

static int view_new(struct topo_base *base, const struct mc_cpumask *online,
		    struct mc_topology **out)
{
	struct mc_topology *topo = calloc(1, sizeof(*topo));

	if (!topo) {
		topo_base_put(base);
		return -ENOMEM;
	}
	atomic_init(&topo->refs, 1);
	topo->base = base;
	topo->online = mc_cpumask_dup(online);
	topo->allowed = mc_cpumask_dup(base->allowed ? base->allowed : online);
	topo->cache = calloc(base->nr_caches ? base->nr_caches : 1, sizeof(*topo->cache));
	if (!topo->online || !topo->allowed || !topo->cache || view_masks(topo) < 0 ||
	    view_nodes(topo) < 0) {
		view_free(topo);
		return -ENOMEM;
	}
	if (base->allowed)
		mc_cpumask_and(topo->allowed, topo->allowed, online);
	for (unsigned int i = 0; i < base->nr_caches; i++) {
		topo->cache[i] = base->cache[i].cache;
		topo->cache[i].shared = topo->shown[base->cache[i].mask];
	}
	*out = topo;
	return 0;
}

int topo_base_finish(struct topo_base *base, struct mc_topology **topo)
{
	/* Sources may name memory of nodes that are not online: nobody may rely on such bits. */
	mc_cpumask_and(&base->nodes_has_memory->m, &base->nodes_has_memory->m,
		       &base->nodes_online->m);
	mc_cpumask_and(&base->nodes_has_cpu->m, &base->nodes_has_cpu->m, &base->nodes_online->m);
	free(base->mask_slot);
	free(base->mask_hash);
	base->mask_slot = NULL;
	base->mask_hash = NULL;
	base->nr_slots = 0;
	return view_new(base, base->online, topo);
}

int mc_topology_set_online(const struct mc_topology *topo, const struct mc_cpumask *online,
			   struct mc_topology **out)
{
	struct mc_cpumask *mask;
	int rc = -EINVAL;

	mask = mc_cpumask_alloc_bits(topo->base->nr_cpu_ids);
	if (!mask)
		return -ENOMEM;
	/* Masks of other widths are welcome as long as they name CPUs of this machine. */
	if (!mc_cpumask_empty(online) && mc_cpumask_last(online) < topo->base->nr_cpu_ids) {
		mc_cpumask_copy(mask, online);
		if (mc_cpumask_subset(mask, topo->base->present))
			rc = view_new(topo_base_get(topo->base), mask, out);
	}
	mc_cpumask_free(mask);
	return rc;
}

struct mc_topology *mc_topology_get(struct mc_topology *topo)
{
	atomic_fetch_add_explicit(&topo->refs, 1, memory_order_relaxed);
	return topo;
}

void mc_topology_put(struct mc_topology *topo)
{
	if (topo && atomic_fetch_sub_explicit(&topo->refs, 1, memory_order_acq_rel) == 1)
		view_free(topo);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

enum mc_arch mc_topology_arch(const struct mc_topology *topo)
{
	return topo->base->arch;
}

unsigned int mc_topology_nr_cpu_ids(const struct mc_topology *topo)
{
	return topo->base->nr_cpu_ids;
}

unsigned int mc_topology_kernel_max(const struct mc_topology *topo)
{
	return topo->base->kernel_max;
}

const struct mc_cpumask *mc_topology_possible(const struct mc_topology *topo)
{
	return topo->base->possible;
}

const struct mc_cpumask *mc_topology_present(const struct mc_topology *topo)
{
	return topo->base->present;
}

const struct mc_cpumask *mc_topology_online(const struct mc_topology *topo)
{
	return topo->online;
}

const struct mc_cpumask *mc_topology_allowed(const struct mc_topology *topo)
{
	return topo->allowed;
}

const struct mc_cpumask *mc_topology_siblings(const struct mc_topology *topo, unsigned int cpu,
					      enum mc_level level)
{
	uint32_t mask;

	if (cpu >= topo->base->nr_cpu_ids || (unsigned int)level >= TOPO_LEVELS ||
	    !mc_cpumask_test(topo->online, cpu))
		return NULL;
	mask = topo->base->cpu[cpu].sibling[level];
	return mask == TOPO_NO_MASK ? NULL : topo->shown[mask];
}

const struct mc_cpu *mc_topology_cpu(const struct mc_topology *topo, unsigned int cpu)
{
	if (cpu >= topo->base->nr_cpu_ids)
		return NULL;
	if (mc_cpumask_test(topo->online, cpu))
		return &topo->base->cpu[cpu].ids;
	return &topo->base->cpu[cpu].hidden;
}

const struct mc_cache *mc_topology_cache(const struct mc_topology *topo, unsigned int cpu,
					 unsigned int index)
{
	const struct mc_cpu *c = mc_topology_cpu(topo, cpu);

	if (!c || index >= c->nr_caches)
		return NULL;
	return &topo->cache[topo->base->cpu[cpu].first_cache + index];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

unsigned int mc_topology_nr_node_ids(const struct mc_topology *topo)
{
	return topo->base->nr_node_ids;
}

unsigned int mc_topology_max_numnodes(const struct mc_topology *topo)
{
	return topo->base->max_numnodes;
}

bool mc_topology_has_numa(const struct mc_topology *topo)
{
	return topo->base->has_numa;
}

const struct mc_nodemask *mc_topology_nodes_possible(const struct mc_topology *topo)
{
	return topo->base->nodes_possible;
}

const struct mc_nodemask *mc_topology_nodes_online(const struct mc_topology *topo)
{
	return topo->base->nodes_online;
}

const struct mc_nodemask *mc_topology_nodes_has_cpu(const struct mc_topology *topo)
{
	return topo->nodes_has_cpu;
}

const struct mc_nodemask *mc_topology_nodes_has_memory(const struct mc_topology *topo)
{
	return topo->base->nodes_has_memory;
}

const struct mc_nodemask *mc_topology_nodes_allowed(const struct mc_topology *topo)
{
	return topo->base->nodes_allowed ? topo->base->nodes_allowed : topo->base->nodes_has_memory;
}

const struct mc_node *mc_topology_node(const struct mc_topology *topo, unsigned int node)
{
	if (!topo_node(topo->base, node))
		return NULL;
	return &topo->node[topo->base->rank[node]];
}

unsigned int mc_topology_distance(const struct mc_topology *topo, unsigned int from,
				  unsigned int to)
{
	const struct topo_node *node = topo_node(topo->base, from);

	if (!node || !topo_node(topo->base, to))
		return 0;
	if (!node->distance)
		return from == to ? 10 : 20;
	return node->distance[topo->base->rank[to]];
}

uint64_t mc_topology_mem_total(const struct mc_topology *topo)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < topo->base->nr_nodes; i++)
		sum += topo->base->node[i].mem_total;
	return topo->base->nr_nodes ? sum : topo->base->mem_total;
}
