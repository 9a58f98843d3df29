// SPDX-License-Identifier: MIT
/* node_mem.c - nodeN/meminfo, numastat and vmstat. */
#include <errno.h>
#include "impl.h"

int rn_node_meminfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	unsigned int n = (unsigned int)at->n[0];
	const struct mc_node *node = mc_topology_node(at->topo, n);
	unsigned long long total = node->mem_total >> 10, free = node->mem_free >> 10;

	(void)entry;
	mc_text_printf(out, "Node %u MemTotal:       %8llu kB\n", n, total);
	mc_text_printf(out, "Node %u MemFree:        %8llu kB\n", n, free);
	mc_text_printf(out, "Node %u MemUsed:        %8llu kB\n", n, total - free);
	return 0;
}

int rn_node_numastat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_render_live *live = rn_live(at->render);
	struct mc_node_counters c = {0};

	(void)entry;
	if (live->node_counters)
		live->node_counters(live->arg, (unsigned int)at->n[0], &c);
	mc_text_printf(out, "numa_hit %llu\nnuma_miss %llu\nnuma_foreign %llu\n", (unsigned long long)c.numa_hit,
		       (unsigned long long)c.numa_miss, (unsigned long long)c.numa_foreign);
	mc_text_printf(out, "interleave_hit %llu\nlocal_node %llu\nother_node %llu\n",
		       (unsigned long long)c.interleave_hit, (unsigned long long)c.local_node,
		       (unsigned long long)c.other_node);
	return 0;
}

int rn_node_vmstat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_node *node = mc_topology_node(at->topo, (unsigned int)at->n[0]);

	(void)entry;
	mc_text_printf(out, "nr_free_pages %llu\n", (unsigned long long)node->mem_free >> 12);
	return 0;
}
