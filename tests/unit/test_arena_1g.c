// SPDX-License-Identifier: MIT
/*
 * test_arena_1g.c - arenas of 1 GiB pages: brought up on their nodes, and pools that end in the
 * middle. Takes what the pools have free, three pages at most; skips where they have none
 * (tools/test-guest huge1g boots a machine that has).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <manycore/manycore.h>
#include "skip.h"

#define GiB (UINT64_C(1) << 30)
enum { NODES = 64, MOST = 3 };

static unsigned int nr_free, node_free[NODES];

static unsigned int number(const char *path)
{
	unsigned int n = 0;
	FILE *f = fopen(path, "re");

	if (f) {
		if (fscanf(f, "%u", &n) != 1)
			n = 0;
		fclose(f);
	}
	return n;
}

static void look(void)
{
	char path[128];

	nr_free = number("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages");
	for (unsigned int n = 0; n < NODES; n++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%u/hugepages/hugepages-1048576kB/"
			 "free_hugepages",
			 n);
		node_free[n] = number(path);
	}
}

static struct mc_arena *make(struct mc_arena_attr at, int want)
{
	struct mc_arena *a = NULL;
	struct mc_error e = {0};
	int rc;

	at.page_size = GiB;
	rc = mc_arena_create(&at, &a, &e);
	if (rc)
		fail_msg("create: %d %s", rc, e.text);
	assert_int_equal(mc_arena_wait(a, 0, -1), want);
	assert_int_equal(mc_arena_page_size(a), GiB);
	assert_int_equal((uintptr_t)mc_arena_base(a) % GiB, 0);
	return a;
}

/* Every page that is ready can be had, written and, on machines of several nodes, is where it is
 * said to be; then there is none. */
static void use(struct mc_arena *a, unsigned int pages, int err)
{
	void *run[MOST + 1];

	assert_int_equal(mc_arena_ready(a), pages * GiB);
	for (unsigned int i = 0; i < pages; i++) {
		char *p = run[i] = mc_arena_alloc(a, 0, MC_ANY_NODE);
		const struct mc_page *d;
		int node = -1;

		assert_non_null(p);
		assert_int_equal(p[0] | p[GiB / 2] | p[GiB - 1], 0);
		p[0] = p[GiB - 1] = 1;
		d = mc_arena_page(a, p);
		assert_int_equal(d->state, MC_PAGE_USED);
		if (d->node != MC_ANY_NODE && !mc_page_nodes(0, 1, (void **)&run[i], &node))
			assert_int_equal(node, d->node);
	}
	assert_null(mc_arena_alloc(a, 0, MC_ANY_NODE));
	assert_int_equal(errno, err);
	for (unsigned int i = 0; i < pages; i++)
		assert_int_equal(mc_arena_free(a, run[i]), 0);
	mc_arena_destroy(a);
}

static void whole(void **state)
{
	static const enum mc_arena_backing backing[] = {MC_ARENA_HUGETLB, MC_ARENA_MEMFD};
	unsigned int pages = nr_free < MOST ? nr_free : MOST;

	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		use(make((struct mc_arena_attr){.backing = backing[b],
						.policy = MC_ARENA_DEFAULT,
						.size = pages * GiB},
			 0),
		    pages, ENOMEM);
		look();
		assert_true(nr_free >= pages); /* given back */
	}
}

/* One page a node, each where its pool has one. */
static void split(void **state)
{
	struct mc_nodemask *nodes = mc_nodemask_alloc();
	unsigned int pages = 0;
	struct mc_arena *a;

	(void)state;
	assert_non_null(nodes);
	for (unsigned int n = 0; n < NODES && pages < MOST; n++)
		if (node_free[n]) {
			mc_nodemask_set(nodes, n);
			pages++;
		}
	if (!pages) {
		mc_nodemask_free(nodes);
		skip();
	}
	a = make((struct mc_arena_attr){.backing = MC_ARENA_HUGETLB,
					.size = pages * GiB,
					.nodes = nodes,
					.flags = MC_ARENA_STRICT},
		 0);
	assert_int_equal(mc_arena_nr_parts(a), pages);
	use(a, pages, ENOMEM);
	mc_nodemask_free(nodes);
}

static void stopped(struct mc_arena *a, unsigned int pages, const char *words)
{
	struct mc_arena_report r;

	assert_int_equal(mc_arena_part_report(a, 0, &r), 0);
	assert_int_equal(r.stop, MC_STOP_HUGETLB);
	assert_int_equal(r.err, ENOMEM);
	assert_int_equal(r.ready, pages * GiB);
	if (!strstr(r.error.text, words))
		fail_msg("'%s' does not tell '%s'", r.error.text, words);
	use(a, pages, ENOMEM);
}

static void pool_ends(void **state)
{
	(void)state;
	if (nr_free > MOST)
		skip();
	stopped(make((struct mc_arena_attr){.backing = MC_ARENA_HUGETLB,
					    .policy = MC_ARENA_DEFAULT,
					    .size = (nr_free + 2) * GiB},
		     -ENOMEM),
		nr_free, "the pool of 1048576 kB huge pages is empty");
}

/* A node's pool ends while another has pages. */
static void node_ends(void **state)
{
	struct mc_nodemask *nodes = mc_nodemask_alloc();
	unsigned int n = 0;

	(void)state;
	assert_non_null(nodes);
	while (n < NODES && !(node_free[n] && node_free[n] < nr_free && node_free[n] <= MOST))
		n++;
	if (n == NODES) {
		mc_nodemask_free(nodes);
		skip();
	}
	mc_nodemask_set(nodes, n);
	stopped(make((struct mc_arena_attr){.backing = MC_ARENA_HUGETLB,
					    .policy = MC_ARENA_BIND,
					    .nodes = nodes,
					    .size = (node_free[n] + 1) * GiB},
		     -ENOMEM),
		node_free[n], "are free: on other nodes");
	mc_nodemask_free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(split),
		cmocka_unit_test(pool_ends),
		cmocka_unit_test(node_ends),
	};

	look();
	if (!nr_free)
		test_skip("hugepages-1g", "no 1 GiB page is free");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
