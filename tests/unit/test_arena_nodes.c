// SPDX-License-Identifier: MIT
/*
 * test_arena_nodes.c - arenas on machines of any number of nodes: parts, workers, allocation by
 * node, placement as the kernel tells it. Runs on the real machine, and by tests/emu/test_arena.py
 * on emulated ones.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/manycore.h>
#include "skip.h"

#define MiB (1ull << 20)
static const uint64_t PART = 4 * MiB;
enum { CPU_BYTES = 8192 / 8 };

static struct mc_topology *topo;
static unsigned int nr_nodes; /* that this process may use and that have memory */
static unsigned int *node_of; /* their numbers */
static unsigned char allowed[CPU_BYTES]; /* CPUs that this process may use */

static bool may_use(unsigned int cpu)
{
	return cpu < CPU_BYTES * 8 && allowed[cpu / 8] >> cpu % 8 & 1;
}

static bool usable(unsigned int n)
{
	const struct mc_nodemask *mem = mc_topology_nodes_has_memory(topo),
				 *may = mc_topology_nodes_allowed(topo);

	return n < mem->m.nbits && mc_cpumask_test(&mem->m, n) && n < may->m.nbits &&
	       mc_cpumask_test(&may->m, n);
}

static int find_nodes(void **state)
{
	struct mc_error e;

	(void)state;
	if (mc_topology_live(&topo, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	if (syscall(SYS_sched_getaffinity, 0, sizeof(allowed), allowed) <= 0)
		return -1;
	node_of = calloc(mc_topology_nr_node_ids(topo) + 1, sizeof(*node_of));
	for (unsigned int n = 0; n < mc_topology_nr_node_ids(topo); n++)
		if (usable(n))
			node_of[nr_nodes++] = n;
	if (!nr_nodes)
		nr_nodes = 1;
	fprintf(stderr, "%u nodes, %u cpus\n", nr_nodes, mc_nr_cpu_ids());
	return 0;
}

static struct mc_arena *make(struct mc_arena_attr at)
{
	struct mc_arena *a = NULL;
	struct mc_error e = {0};
	int rc;

	if (!at.topology)
		at.topology = topo;
	rc = mc_arena_create(&at, &a, &e);
	if (rc)
		fail_msg("create: %d %s", rc, e.text);
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	return a;
}

static bool placement_known(void)
{
	return nr_nodes > 1 && mc_mempolicy_available(NULL) == 0;
}

/* The nodes of every page of [from, from + bytes). */
static int *nodes_of(char *from, uint64_t bytes, size_t *n)
{
	void **page;
	int *status;

	*n = bytes / 4096;
	page = calloc(*n, sizeof(*page));
	status = calloc(*n, sizeof(*status));
	for (size_t i = 0; i < *n; i++)
		page[i] = from + i * 4096;
	assert_int_equal(mc_page_nodes(0, *n, page, status), 0);
	free(page);
	return status;
}

/* What numa_maps says of the mapping at an address: pages of a node, and the policy's name. */
static unsigned long numa_maps(const void *at, unsigned int node, char *policy)
{
	char line[8192], key[32], *p;
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/numa_maps", "re");

	*policy = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (strtoull(line, NULL, 16) != (uintptr_t)at)
			continue;
		sscanf(line, "%*s %63s", policy);
		snprintf(key, sizeof(key), " N%u=", node);
		p = strstr(line, key);
		if (p)
			pages = strtoul(p + strlen(key), NULL, 10);
	}
	if (f)
		fclose(f);
	return pages;
}

static void split(void **state)
{
	static const enum mc_arena_backing backing[] = {MC_ARENA_ANON, MC_ARENA_MEMFD};

	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct mc_arena *a = make(
			(struct mc_arena_attr){.backing = backing[b], .size = nr_nodes * PART});
		char policy[64], want[32];

		assert_int_equal(mc_arena_nr_parts(a), nr_nodes);
		for (unsigned int k = 0; k < nr_nodes; k++) {
			struct mc_arena_report r;
			char *base;
			size_t n;
			int *got;

			assert_int_equal(mc_arena_part_report(a, k, &r), 0);
			assert_int_equal(r.node, node_of[k]);
			assert_int_equal(r.offset, k * PART);
			assert_int_equal(r.ready, PART);
			assert_int_equal(r.placement_err, 0);
			if (!placement_known())
				continue;
			base = (char *)mc_arena_base(a) + r.offset;
			got = nodes_of(base, PART, &n);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(got[i], r.node);
			free(got);
			assert_int_equal(numa_maps(base, r.node, policy), PART / 4096);
			snprintf(want, sizeof(want), "prefer:%u", r.node);
			assert_string_equal(policy, want);
		}
		mc_arena_destroy(a);
	}
}

static void by_policy(void **state)
{
	struct mc_nodemask *last =
		(struct mc_nodemask *)mc_cpumask_alloc_bits(mc_topology_nr_node_ids(topo) + 1);
	size_t *count = calloc(mc_topology_nr_node_ids(topo) + 1, sizeof(*count)), n;
	struct mc_arena *a;
	int *got;

	(void)state;
	if (!placement_known()) {
		mc_cpumask_free(&last->m);
		free(count);
		return; /* one node: nothing to tell apart */
	}
	a = make((struct mc_arena_attr){.size = nr_nodes * PART, .policy = MC_ARENA_INTERLEAVE});
	assert_int_equal(mc_arena_nr_parts(a), 1);
	got = nodes_of(mc_arena_base(a), nr_nodes * PART, &n);
	for (size_t i = 0; i < n; i++) {
		assert_true(got[i] >= 0 && got[i] < (int)mc_topology_nr_node_ids(topo));
		count[got[i]]++;
	}
	for (unsigned int k = 0; k < nr_nodes; k++)
		assert_int_equal(count[node_of[k]], PART / 4096);
	free(got);
	mc_arena_destroy(a);
	mc_cpumask_set(&last->m, node_of[nr_nodes - 1]);
	a = make((struct mc_arena_attr){
		.size = PART, .policy = MC_ARENA_BIND, .nodes = last, .flags = MC_ARENA_STRICT});
	got = nodes_of(mc_arena_base(a), PART, &n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(got[i], node_of[nr_nodes - 1]);
	free(got);
	mc_arena_destroy(a);
	mc_cpumask_free(&last->m);
	free(count);
}

static void alloc_by_node(void **state)
{
	struct mc_arena *a = make((struct mc_arena_attr){.size = nr_nodes * PART});

	(void)state;
	for (unsigned int k = 0; k < nr_nodes; k++) {
		const struct mc_node *nd = mc_topology_node(topo, node_of[k]);
		unsigned long saved[CPU_BYTES / sizeof(long)], one[CPU_BYTES / sizeof(long)] = {0};
		char *p = mc_arena_alloc(a, 3, node_of[k]);
		unsigned int cpu = nd && nd->cpus ? mc_cpumask_first(nd->cpus) : UINT32_MAX;
		long len = syscall(SYS_sched_getaffinity, 0, sizeof(saved), saved);

		assert_non_null(p);
		assert_int_equal(mc_arena_page(a, p)->node, node_of[k]);
		assert_int_equal((uint64_t)(p - (char *)mc_arena_base(a)) / PART, k);
		if (len <= 0 || cpu >= CPU_BYTES * 8 || cpu >= nd->cpus->nbits)
			continue;
		one[cpu / 64] |= 1ul << cpu % 64;
		if (syscall(SYS_sched_setaffinity, 0, sizeof(one), one))
			continue;
		p = mc_arena_alloc(a, 0, MC_ANY_NODE); /* nothing else said: the caller's node */
		assert_int_equal(mc_arena_page(a, p)->node, node_of[k]);
		while (mc_arena_alloc(a, 0, node_of[k]))
			;
		assert_int_equal(errno, ENOMEM);
		p = mc_arena_alloc(
			a, 0,
			MC_ANY_NODE); /* exhausted: a nearest one that has some, if there is any */
		if (k + 1 < nr_nodes) {
			unsigned int d = UINT32_MAX;

			assert_non_null(p);
			for (unsigned int m = k + 1; m < nr_nodes; m++)
				if (mc_topology_distance(topo, node_of[k], node_of[m]) < d)
					d = mc_topology_distance(topo, node_of[k], node_of[m]);
			assert_int_equal(
				mc_topology_distance(topo, node_of[k], mc_arena_page(a, p)->node),
				d);
		} else {
			assert_null(p);
		}
		syscall(SYS_sched_setaffinity, 0, len, saved);
	}
	mc_arena_destroy(a);
}

struct watch {
	pid_t creator;
	atomic_int outside, seen;
};

/* Each worker may run on its node's CPUs, and nowhere else, when there are any for this process. */
static int watch_affinity(void *arg, struct mc_arena *a, size_t first, size_t nr, unsigned int node)
{
	struct watch *w = arg;
	const struct mc_node *nd = mc_topology_node(topo, node);
	unsigned char mask[CPU_BYTES] = {0};
	bool some = false;

	(void)a, (void)first, (void)nr;
	if ((pid_t)syscall(SYS_gettid) == w->creator ||
	    syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) <= 0 || !nd)
		return 0;
	for (unsigned int c = 0; nd->cpus && c < nd->cpus->nbits; c++)
		some |= may_use(c) && mc_cpumask_test(nd->cpus, c);
	for (unsigned int c = 0; some && c < CPU_BYTES * 8; c++)
		if (mask[c / 8] >> c % 8 & 1)
			w->outside += c >= nd->cpus->nbits || !mc_cpumask_test(nd->cpus, c);
	w->seen++;
	return 0;
}

static void workers_on_their_node(void **state)
{
	struct watch w = {.creator = (pid_t)syscall(SYS_gettid)};
	struct mc_arena *a = make((struct mc_arena_attr){
		.size = nr_nodes * PART, .chunk = 1 << 20, .init = watch_affinity, .arg = &w});

	(void)state;
	assert_int_equal(w.outside, 0);
	assert_true(w.seen > 0);
	mc_arena_destroy(a);
	for (unsigned int k = 0; k < nr_nodes; k++) {
		const struct mc_node *nd = mc_topology_node(topo, node_of[k]);
		unsigned int most = nd && nd->cpus ? mc_cpumask_weight(nd->cpus) : 1;

		assert_true(mc_pageinit_max_threads(nd ? nd->cpus : NULL) >= 1);
		assert_true(!nd || mc_pageinit_max_threads(nd->cpus) <= (most ? most : 1));
	}
}

enum { MAX_WORKERS = 256 };

struct crowd {
	pid_t creator;
	atomic_int worker[MAX_WORKERS]; /* thread ids, the creator's left out */
	atomic_int outside;             /* chunks by one that may run where the creator may not */
	unsigned char mask[CPU_BYTES];
};

static int count_workers(void *arg, struct mc_arena *a, size_t first, size_t nr, unsigned int node)
{
	struct crowd *c = arg;
	unsigned char mask[CPU_BYTES] = {0};
	int tid = (int)syscall(SYS_gettid);

	(void)a, (void)first, (void)nr, (void)node;
	if (tid == c->creator)
		return 0;
	for (unsigned int k = 0; k < MAX_WORKERS; k++) {
		int none = 0;

		if (atomic_compare_exchange_strong(&c->worker[k], &none, tid) || none == tid)
			break;
	}
	if (syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) > 0)
		for (unsigned int i = 0; i < CPU_BYTES; i++)
			c->outside += (mask[i] & ~c->mask[i]) != 0;
	return 0;
}

/* On the CPUs in `mask` and no others: every part comes up, by no more workers than those. */
static void few_cpus(const struct mc_topology *t, const unsigned char *mask, unsigned int cpus)
{
	struct crowd c = {.creator = (pid_t)syscall(SYS_gettid)};
	unsigned int parts = mc_cpumask_weight(&mc_topology_nodes_has_memory(t)->m), n = 0;
	struct mc_arena *a;

	memcpy(c.mask, mask, CPU_BYTES);
	a = make((struct mc_arena_attr){.size = parts * PART,
					.chunk = 1 << 20,
					.topology = t,
					.init = count_workers,
					.arg = &c});
	for (unsigned int k = 0; k < mc_arena_nr_parts(a); k++) {
		struct mc_arena_report r;

		assert_int_equal(mc_arena_part_report(a, k, &r), 0);
		assert_int_equal(r.ready, r.size);
	}
	while (n < MAX_WORKERS && c.worker[n])
		n++;
	assert_in_range(n, 1, cpus);
	assert_int_equal(c.outside, 0);
	mc_arena_destroy(a);
}

/* Nodes without a CPU that this process may use share those of others. */
static void fewer_cpus_than_nodes(void **state)
{
	struct mc_machine *m = mc_machine_new();
	struct mc_topology *fake = NULL;
	struct mc_error e;
	unsigned int all = 0;

	(void)state;
	assert_int_equal(mc_machine_option(m, "numa", "fake=8", &e), 0);
	if (mc_machine_build(m, &fake, &e) < 0)
		fail_msg("%s", e.text);
	mc_machine_free(m);
	for (unsigned int c = 0; c < CPU_BYTES * 8; c++)
		all += may_use(c);
	/* The first 1, 2, 3 of them, and as many far from each other. */
	for (unsigned int n = 1; n <= 3 && n <= all; n++)
		for (unsigned int apart = 0; apart < 2; apart++) {
			unsigned char mask[CPU_BYTES] = {0};
			unsigned int seen = 0, taken = 0;

			for (unsigned int c = 0; c < CPU_BYTES * 8 && taken < n; c++) {
				if (!may_use(c))
					continue;
				if (seen++ < (apart ? taken * (all / n) : taken))
					continue;
				mask[c / 8] |= (unsigned char)(1u << c % 8);
				taken++;
			}
			assert_int_equal(syscall(SYS_sched_setaffinity, 0, sizeof(mask), mask), 0);
			few_cpus(topo, mask, n);
			few_cpus(fake, mask, n);
		}
	assert_int_equal(syscall(SYS_sched_setaffinity, 0, CPU_BYTES, allowed), 0);
	mc_topology_put(fake);
}

/* The library's own emulation: nodes that only the topology knows. */
static void emulated_nodes(void **state)
{
	static const char *const fake[] = {"fake=2", "fake=8"};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct mc_machine *m = mc_machine_new();
		struct mc_topology *t = NULL;
		struct mc_error e;
		struct mc_arena *a;
		unsigned int n;

		assert_int_equal(mc_machine_option(m, "numa", fake[i], &e), 0);
		if (mc_machine_build(m, &t, &e) < 0)
			fail_msg("%s", e.text);
		mc_machine_free(m);
		n = mc_cpumask_weight(&mc_topology_nodes_has_memory(t)->m);
		assert_true(n >= 2);
		a = make((struct mc_arena_attr){.size = n * PART, .topology = t});
		assert_int_equal(mc_arena_nr_parts(a), n);
		for (unsigned int k = 0; k < n; k++) {
			struct mc_arena_report r;
			char *p;

			assert_int_equal(mc_arena_part_report(a, k, &r), 0);
			p = mc_arena_alloc(a, 2, r.node);
			assert_non_null(p);
			assert_int_equal(mc_arena_page(a, p)->node, r.node);
		}
		mc_arena_destroy(a);
		mc_topology_put(t);
	}
}

static void bad_nodes(void **state)
{
	struct mc_nodemask *none = (struct mc_nodemask *)mc_cpumask_alloc_bits(5000);
	struct mc_arena_attr at = {.size = PART, .nodes = none};
	struct mc_arena *a;
	struct mc_error e;

	(void)state;
	assert_int_equal(mc_arena_create(&at, &a, &e), -EINVAL);
	mc_cpumask_set(&none->m, 4999);
	assert_int_equal(mc_arena_create(&at, &a, &e), -EINVAL);
	assert_non_null(strstr(e.text, "4999"));
	mc_cpumask_free(&none->m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split),          cmocka_unit_test(by_policy),
		cmocka_unit_test(alloc_by_node),  cmocka_unit_test(workers_on_their_node),
		cmocka_unit_test(emulated_nodes), cmocka_unit_test(bad_nodes),
		cmocka_unit_test(fewer_cpus_than_nodes),
	};

	return cmocka_run_group_tests(tests, find_nodes, NULL);
}
