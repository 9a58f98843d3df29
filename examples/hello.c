// SPDX-License-Identifier: MIT
/*
 * hello.c - which machine is this? Run it plainly, then under
 * `manycore run --smp 512 --nodes 8 --mem 1T --`.
 *
 * cc hello.c $(pkg-config --cflags --libs manycore)
 */
#include <manycore/manycore.h>
#include <stdio.h>

int main(void)
{
	struct mc_topology *topo;
	struct mc_error error;
	char list[4096];

	if (mc_topology_live(&topo, &error) < 0) {
		fprintf(stderr, "hello: %s\n", error.text);
		return 1;
	}
	mc_cpulist_snprint(list, sizeof(list), mc_topology_online(topo));
	printf("libmanycore %s, online CPUs %s\n", mc_version(), list);
	for (unsigned int node = 0; node < mc_topology_nr_node_ids(topo); node++) {
		const struct mc_node *n = mc_topology_node(topo, node);

		if (!n)
			continue;
		mc_cpulist_snprint(list, sizeof(list), n->cpus);
		printf("node %u: %llu MiB, CPUs %s\n", node, (unsigned long long)n->mem_total >> 20,
		       *list ? list : "none");
	}
	mc_topology_put(topo);
	return 0;
}
