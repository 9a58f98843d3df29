// SPDX-License-Identifier: MIT
/*
 * test_topology_fallback.c - mc_topology_fallback() against what Linux 6.12.117 (Debian, x86-64)
 * printed when it booted on machines of these shapes in QEMU: "Fallback order for Node 0: ...".
 *
 * Shapes with nodes of memory only are what tells whether nodes with CPUs come later
 * (PENALTY_FOR_NODE_WITH_CPUS): at boot they don't.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <manycore/topology.h>

enum { MAX_NODES = 8 };

struct shape {
	const char *name, *smp;
	const char *node[MAX_NODES]; /* --numa node,... */
	unsigned int distance[MAX_NODES][MAX_NODES]; /* 0: not said, so 20 */
	const char *order[MAX_NODES]; /* as printed */
};

static const struct shape shapes[] = {
	{ "two with CPUs, two of memory only, all alike", "2",
	  { "cpus=0,mem=128M", "cpus=1,mem=128M", "mem=128M", "mem=128M" },
	  { { 0 } },
	  { "0 1 2 3", "1 2 3 0", "2 3 0 1", "3 0 1 2" } },
	{ "the first of memory only", "2",
	  { "mem=128M", "cpus=0,mem=128M", "cpus=1,mem=128M", "mem=128M" },
	  { { 0 } },
	  { "0 1 2 3", "1 2 3 0", "2 3 0 1", "3 0 1 2" } },
	{ "four with CPUs, four of memory only", "4",
	  { "cpus=0,mem=128M", "cpus=1,mem=128M", "cpus=2,mem=128M", "cpus=3,mem=128M", "mem=128M", "mem=128M",
	    "mem=128M", "mem=128M" },
	  { { 0 } },
	  { "0 1 2 3 4 5 6 7", "1 2 3 4 5 6 7 0", "2 3 4 5 6 7 0 1", "3 4 5 6 7 0 1 2", "4 5 6 7 0 1 2 3",
	    "5 6 7 0 1 2 3 4", "6 7 0 1 2 3 4 5", "7 0 1 2 3 4 5 6" } },
	{ "CPUs and memory only by turns", "3",
	  { "cpus=0,mem=128M", "mem=128M", "cpus=1,mem=128M", "mem=128M", "cpus=2,mem=128M", "mem=128M" },
	  { { 0 } },
	  { "0 1 2 3 4 5", "1 2 3 4 5 0", "2 3 4 5 0 1", "3 4 5 0 1 2", "4 5 0 1 2 3", "5 0 1 2 3 4" } },
	{ "each with its own near memory", "2",
	  { "cpus=0,mem=128M", "cpus=1,mem=128M", "mem=128M", "mem=128M" },
	  { { 10, 21, 17, 28 }, { 21, 10, 28, 17 }, { 17, 28, 10, 28 }, { 28, 17, 28, 10 } },
	  { "0 2 1 3", "1 3 0 2", "2 0 3 1", "3 1 0 2" } },
	{ "a node without memory", "3",
	  { "cpus=0,mem=128M", "cpus=1", "mem=128M", "cpus=2,mem=128M" },
	  { { 0 } },
	  { "0 2 3", "3 2 0", "2 3 0", "3 0 2" } },
	{ "a ring of six", "6",
	  { "cpus=0,mem=128M", "cpus=1,mem=128M", "cpus=2,mem=128M", "cpus=3,mem=128M", "cpus=4,mem=128M",
	    "cpus=5,mem=128M" },
	  { { 10, 21, 22, 23, 22, 21 }, { 21, 10, 21, 22, 23, 22 }, { 22, 21, 10, 21, 22, 23 },
	    { 23, 22, 21, 10, 21, 22 }, { 22, 23, 22, 21, 10, 21 }, { 21, 22, 23, 22, 21, 10 } },
	  { "0 1 5 2 4 3", "1 2 0 5 3 4", "2 3 1 4 0 5", "3 4 2 5 1 0", "4 5 3 0 2 1", "5 0 4 1 3 2" } },
};

static void option(struct mc_machine *m, const char *name, const char *value)
{
	struct mc_error error = { 0 };

	if (mc_machine_option(m, name, value, &error) < 0)
		fail_msg("%s", error.text);
}

static struct mc_topology *machine(const struct shape *s)
{
	struct mc_machine *m = mc_machine_new();
	struct mc_topology *topo = NULL;
	struct mc_error error = { 0 };
	char text[64];

	assert_non_null(m);
	option(m, "smp", s->smp);
	for (unsigned int i = 0; i < MAX_NODES && s->node[i]; i++) {
		snprintf(text, sizeof(text), "node,nodeid=%u,%s", i, s->node[i]);
		option(m, "numa", text);
	}
	for (unsigned int i = 0; i < MAX_NODES; i++)
		for (unsigned int k = 0; k < MAX_NODES; k++)
			if (i != k && s->distance[i][k]) {
				snprintf(text, sizeof(text), "dist,src=%u,dst=%u,val=%u", i, k, s->distance[i][k]);
				option(m, "numa", text);
			}
	if (mc_machine_build(m, &topo, &error) < 0)
		fail_msg("%s: %s", s->name, error.text);
	mc_machine_free(m);
	return topo;
}

static void test_shapes(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct shape *s = &shapes[i];
		struct mc_topology *topo = machine(s);

		for (unsigned int node = 0; node < MAX_NODES && s->node[node]; node++) {
			unsigned int order[MAX_NODES] = { 0 };
			unsigned int n = mc_topology_fallback(topo, node, order, MAX_NODES);
			char text[64] = "";

			for (unsigned int k = 0; k < n && k < MAX_NODES; k++)
				snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", k ? " " : "",
					 order[k]);
			if (strcmp(text, s->order[node]) != 0)
				fail_msg("%s: node %u: %s, the kernel has %s", s->name, node, text, s->order[node]);
		}
		mc_topology_put(topo);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_shapes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
