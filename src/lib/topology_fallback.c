// SPDX-License-Identifier: MIT
/*
 * topology_fallback.c - the order in which the kernel looks for memory on other nodes.
 *
 * The rule is that of mm/page_alloc.c (build_zonelists(), find_next_best_node()) at boot: nearest first; among equally
 * near ones lower numbers than the asking node's come last, nodes with CPUs after those without, and nodes that earlier
 * lists already named first in their distance group after the others. That last part makes the list of one node depend
 * on the lists of all nodes before it: they are all made, O(n^2 log n) for n nodes with memory.
 */
#include <errno.h>
#include <stdlib.h>
#include "topology_priv.h"

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

/* The list of `local`: the node itself when it has memory, then the others sorted by penalised distance. Returns the
 * length; `load` is by node id. A node's load changes only after it was taken, so sorting once is the kernel's loop. */
static unsigned int build_list(const struct mc_topology *topo, unsigned int local, struct candidate *list,
			       unsigned int *load)
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
		/* Boot builds the lists before any CPU but the first is known to its node: see docs/design/topology.md. */
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

unsigned int mc_topology_fallback(const struct mc_topology *topo, unsigned int node, unsigned int *order, unsigned int max)
{
	const struct topo_base *base = topo->base;
	struct candidate *list;
	unsigned int *load, n = 0;

	if (!topo_node(base, node))
		return 0;
	list = malloc((base->nr_nodes + 1) * sizeof(*list));
	load = calloc(base->nr_node_ids, sizeof(*load));
	for (unsigned int i = 0; list && load && i < base->nr_nodes; i++) {
		n = build_list(topo, base->node[i].id, list, load);
		if (base->node[i].id == node)
			break;
	}
	for (unsigned int i = 0; i < n && i < max; i++)
		order[i] = list[i].node;
	free(list);
	free(load);
	return n;
}
