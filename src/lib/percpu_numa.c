// SPDX-License-Identifier: MIT
/*
 * percpu_numa.c - in CPU-id mode each unit prefers the memory node of its CPU.
 *
 * The CPU to node map is read once per process, when the first such chunk is made. Units of
 * neighbouring CPUs on one node get one policy call. A page that two units of different nodes share
 * (strides are no multiple of pages) follows the second, whose first objects are in it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include "lib/percpu_internal.h"
#include "lib/percpu_numa.h"
#include "os/os.h"

static struct {
	pthread_once_t once;
	unsigned int nr_cpus, nr_nodes, width;
	int *node; /* by CPU; -1: not known. NULL: nothing to place */
} map = {.once = PTHREAD_ONCE_INIT};

enum { MAX_NODES = 1024, PREFERRED = 1 /* MPOL_PREFERRED */ };

static void read_node(unsigned int node)
{
	struct mc_cpumask *cpus = mc_cpumask_alloc_bits(map.nr_cpus);
	char path[80], *text;
	unsigned int cpu;
	size_t len;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
	if (!cpus || mc_os_read_file(MC_ROOT_LIVE, path, 1 << 20, &text, &len) < 0) {
		mc_cpumask_free(cpus);
		return;
	}
	if (!mc_cpulist_parse(cpus, text, NULL))
		mc_for_each_cpu (cpu, cpus)
			map.node[cpu] = (int)node;
	free(text);
	mc_cpumask_free(cpus);
}

static void read_map(void)
{
	struct mc_cpumask *nodes = mc_cpumask_alloc_bits(MAX_NODES);
	unsigned int node;
	char *text = NULL;
	size_t len;

	map.nr_cpus = mc_nr_cpu_ids();
	if (!nodes ||
	    mc_os_read_file(MC_ROOT_LIVE, "/sys/devices/system/node/online", 65536, &text, &len) <
		    0 ||
	    mc_cpulist_parse(nodes, text, NULL) || mc_cpumask_weight(nodes) < 2)
		goto out;
	map.node = malloc(map.nr_cpus * sizeof(*map.node));
	if (!map.node)
		goto out;
	for (unsigned int i = 0; i < map.nr_cpus; i++)
		map.node[i] = -1;
	mc_for_each_cpu (node, nodes)
		read_node(node);
out:
	free(text);
	mc_cpumask_free(nodes);
}

static int node_of(unsigned int cpu)
{
	return cpu < map.nr_cpus ? map.node[cpu] : -1;
}

void mc_chunk_place(struct mc_chunk *c)
{
	uint64_t page = mc_os_page_size();

	pthread_once(&map.once, read_map);
	if (!map.node)
		return;
	for (unsigned int i = 0, first; i < c->units; i++) {
		int node = node_of(i);
		uint64_t begin, end, bits[MAX_NODES / 64] = {0};

		for (first = i; i + 1 < c->units && node_of(i + 1) == node; i++)
			;
		if (node < 0)
			continue;
		begin = (c->base + (uint64_t)first * c->stride) & ~(page - 1);
		end = (c->base + (uint64_t)(i + 1) * c->stride) & ~(page - 1);
		if (begin == end)
			continue;
		bits[node / 64] = UINT64_C(1) << (node % 64);
		/* Placement is a wish: without the call, or on a node that is gone, memory comes
		 * from where it is. */
		mc_os_mbind((void *)begin, end - begin, PREFERRED, bits, MAX_NODES, 0);
	}
}
