// SPDX-License-Identifier: MIT
/*
 * topology_fallback.c - the order in which the kernel looks for memory on other nodes.
 *
 * The rule is that of mm/page_alloc.c (build_zonelists(), find_next_best_node()) at boot: nearest
 * first; among equally near ones lower numbers than the asking node's come last, and nodes that
 * earlier lists already named first in their distance group after the others. That last part makes
 * the list of one node depend on the lists of all nodes before it: they are all made at once, O(n^2
 * log n) for n nodes with memory, and kept.
 */
#include <errno.h>
#include <stdlib.h>
#include "topology_priv.h"

/* Entries of all lists that are kept: those of 4096 nodes. */
#define MAX_KEPT (4096u * 4096u)

struct candidate {
	unsigned int node, distance, load;
};

static int compare(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	if (a->load != b->load)
		return a->load < b->load ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

/* The list of `local`: the node itself when it has memory, then the others sorted by penalised
 * distance. Returns the length; `load` is by node id. A node's load changes only after it was
 * taken, so sorting once is the kernel's loop. */
static unsigned int build_list(const struct mc_topology *topo, unsigned int local,
			       struct candidate *list, unsigned int *load)
{
	const struct mc_cpumask *memory = &topo->base->nodes_has_memory->m;
	unsigned int id, n = 0, first = 0, previous = local;

	if (mc_cpumask_test(memory, local)) {
		list[n++] = (struct candidate){ local, 0, 0 };
		first = 1;
	}
	mc_for_each_cpu(id, memory) {
		if (id == local)
			continue;
		/* Boot builds the lists before any CPU but the first is known to its node: see
		 * docs/design/topology.md. */
		list[n++] = (struct candidate){
			.node = id,
			.distance = mc_topology_distance(topo, local, id) + (id < local),
			.load = load[id],
		};
	}
	qsort(list + first, n - first, sizeof(*list), compare);
	for (unsigned int i = 0; i < n; i++) {
		if (mc_topology_distance(topo, local, list[i].node) !=
		    mc_topology_distance(topo, local, previous))
			load[list[i].node]++;
		previous = list[i].node;
	}
	return n;
}

/* Lists of nodes `first` to `last` (by rank) one after the other; NULL when memory is short. */
static unsigned int *build_lists(const struct mc_topology *topo, unsigned int first,
				 unsigned int last)
{
	const struct topo_base *base = topo->base;
	unsigned int with_memory = mc_cpumask_weight(&base->nodes_has_memory->m);
	struct candidate *list = malloc((base->nr_nodes + 1) * sizeof(*list));
	unsigned int *load = calloc(base->nr_node_ids, sizeof(*load));
	unsigned int *lists =
		malloc(((size_t)(last - first + 1) * with_memory + 1) * sizeof(*lists));

	for (unsigned int i = 0; list && load && lists && i <= last; i++) {
		build_list(topo, base->node[i].id, list, load);
		for (unsigned int k = 0; i >= first && k < with_memory; k++)
			lists[(size_t)(i - first) * with_memory + k] = list[k].node;
	}
	if (!list || !load) {
		free(lists);
		lists = NULL;
	}
	free(list);
	free(load);
	return lists;
}

/* The kept lists of all nodes; threads that ask at once all make the same ones, and one set is
 * kept. */
static const unsigned int *all_lists(const struct mc_topology *topo)
{
	unsigned int *all = atomic_load(&topo->base->fallback), *none = NULL;

	if (all)
		return all;
	all = build_lists(topo, 0, topo->base->nr_nodes - 1);
	if (all && !atomic_compare_exchange_strong(&topo->base->fallback, &none, all)) {
		free(all);
		all = none;
	}
	return all;
}

unsigned int mc_topology_fallback(const struct mc_topology *topo, unsigned int node,
				  unsigned int *order, unsigned int max)
{
	const struct topo_base *base = topo->base;
	unsigned int n = mc_cpumask_weight(&base->nodes_has_memory->m), rank;
	const unsigned int *from;
	unsigned int *single = NULL;

	if (!topo_node(base, node))
		return 0;
	rank = base->rank[node];
	if ((uint64_t)n * base->nr_nodes <= MAX_KEPT) {
		from = all_lists(topo);
		from = from ? from + (size_t)rank * n : NULL;
	} else {
		from = single = build_lists(topo, rank, rank);
	}
	for (unsigned int i = 0; from && i < n && i < max; i++)
		order[i] = from[i];
	free(single);
	return from ? n : 0;
}
