// SPDX-License-Identifier: MIT
/* cpumask_topology.c - CPUs by their distance from a node: local_spread and the hops. Uses the
 * topology's accessors only. */
#include <errno.h>
#include <limits.h>
#include "internal.h"

/* For nodes that are not online. */
static uint64_t no_word;
static const struct mc_cpumask nothing = {
	.nbits = 1, .flags = MC_MASK_CONST_, .tail = 1, .word = &no_word};

const struct mc_cpumask *mc_cpumask_of_node(const struct mc_topology *topo, unsigned int node)
{
	const struct mc_node *n = mc_topology_node(topo, node);

	return n ? n->linked : &nothing;
}

/* The least distance from node that is more than `than`; UINT_MAX: none. */
static unsigned int further(const struct mc_topology *topo, unsigned int node, unsigned int than)
{
	unsigned int best = UINT_MAX, other;

	mc_for_each_node (other, mc_topology_nodes_online(topo)) {
		unsigned int d = mc_topology_distance(topo, node, other);

		if (d > than && d < best)
			best = d;
	}
	return best;
}

int mc_numa_hop_next(const struct mc_topology *topo, unsigned int node, unsigned int *distance,
		     struct mc_cpumask *hop)
{
	unsigned int d = mc_topology_node(topo, node) ? further(topo, node, *distance) : UINT_MAX,
		     other;

	if (d == UINT_MAX)
		return -ENOENT;
	mc_cpumask_zero(hop);
	mc_for_each_node (other, mc_topology_nodes_online(topo))
		if (mc_topology_distance(topo, node, other) <= d)
			mc_cpumask_or(hop, hop, mc_cpumask_of_node(topo, other));
	mc_cpumask_and(hop, hop, mc_topology_online(topo));
	*distance = d;
	return 0;
}

/* The nodes at distance d hold these words of online CPUs between them: word i of their union. */
static uint64_t ring_word(const struct mc_topology *topo, unsigned int node, unsigned int d,
			  unsigned int i)
{
	const struct mc_cpumask *online = mc_topology_online(topo);
	unsigned int other;
	uint64_t w = 0;

	mc_for_each_node (other, mc_topology_nodes_online(topo)) {
		const struct mc_cpumask *cpus = mc_cpumask_of_node(topo, other);

		if (mc_topology_distance(topo, node, other) == d && i * 64 < cpus->nbits)
			w |= cpus->word[i];
	}
	return w & online->word[i];
}

unsigned int mc_cpumask_local_spread(const struct mc_topology *topo, unsigned int i, int node)
{
	const struct mc_cpumask *online = mc_topology_online(topo);
	unsigned int from = (unsigned int)node, d = 0;

	i %= mc_cpumask_weight(online);
	if (node == -1)
		return mc_cpumask_nth(i, online);
	if (!mc_topology_node(topo, from))
		return online->nbits;
	while ((d = further(topo, from, d)) != UINT_MAX)
		for (unsigned int k = 0; k < (online->nbits + 63) / 64; k++) {
			uint64_t w = ring_word(topo, from, d, k);
			unsigned int n = mc_popcount_(w);

			if (i >= n) {
				i -= n;
				continue;
			}
			while (i--)
				w &= w - 1;
			return k * 64 + (unsigned int)__builtin_ctzll(w);
		}
	return online->nbits;
}
