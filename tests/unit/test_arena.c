// SPDX-License-Identifier: MIT
/* test_arena.c - arenas as they should be: backings, the page allocator, helping, waiting, cancel,
 * destroy, fork. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/manycore.h>
#include "leave.h"
#include "skip.h"

#define MiB (1ull << 20)

static struct mc_topology *topo;

static int read_topology(void **state)
{
	(void)state;
	return mc_topology_live(&topo, NULL);
}

/* One part, however many nodes the machine has: test_arena_nodes.c is about those. */
static struct mc_arena *make(struct mc_arena_attr at)
{
	struct mc_arena *a = NULL;
	struct mc_error e = {0};
	int rc;

	at.policy = MC_ARENA_DEFAULT;
	at.topology = topo; /* read once: it takes its time on an emulated machine */
	rc = mc_arena_create(&at, &a, &e);
	if (rc)
		fail_msg("create: %d %s", rc, e.text);
	return a;
}

/* What must hold at any quiet moment. */
static void check_sums(struct mc_arena *a)
{
	uint64_t ready = 0;

	for (unsigned int k = 0; k < mc_arena_nr_parts(a); k++) {
		struct mc_arena_stats s;
		uint64_t sum = 0;

		assert_int_equal(mc_arena_part_stats(a, k, &s), 0);
		for (unsigned int o = 0; o < MC_ARENA_ORDERS; o++)
			sum += s.free_runs[o] << o;
		assert_int_equal(sum, s.free_pages);
		assert_int_equal(s.free_pages + s.used_pages, s.ready_pages);
		ready += s.ready_pages;
	}
	assert_int_equal(ready * mc_arena_page_size(a), mc_arena_ready(a));
}

static void all_backings(void **state)
{
	static const enum mc_arena_backing backing[] = {MC_ARENA_ANON, MC_ARENA_THP,
							MC_ARENA_MEMFD};

	(void)state;
	for (unsigned int b = 0; b < 3; b++)
		for (unsigned int threads = 1; threads <= 3; threads++) {
			struct mc_arena *a = make((struct mc_arena_attr){.backing = backing[b],
									 .size = 33 * MiB + 5,
									 .threads = threads,
									 .extra = 9});
			struct mc_page *pg;
			char *p;

			assert_int_equal(mc_arena_wait(a, 0, -1), 0);
			assert_int_equal(mc_arena_ready(a), mc_arena_size(a));
			assert_true(mc_arena_size(a) >= 33 * MiB + 5 &&
				    mc_arena_size(a) < 34 * MiB);
			check_sums(a);
			p = mc_arena_base(a);
			for (size_t i = 0; i < mc_arena_size(a) / mc_arena_page_size(a); i++) {
				pg = mc_arena_page(a, p + i * mc_arena_page_size(a) + 7);
				assert_non_null(pg);
				assert_int_equal(pg->index, i);
				for (unsigned int k = 0; k < 9; k++)
					assert_int_equal(((char *)mc_page_extra(pg))[k], 0);
			}
			for (size_t i = 0; i < mc_arena_size(a); i += 512)
				assert_int_equal(p[i], 0);
			memset(p, 1, mc_arena_size(a));
			assert_null(mc_arena_page(a, p - 1));
			assert_null(mc_arena_page(a, p + mc_arena_size(a)));
			assert_int_equal(mc_arena_fd(a) >= 0, backing[b] == MC_ARENA_MEMFD);
			mc_arena_destroy(a);
		}
}

static void file_backing(void **state)
{
	char name[] = "/tmp/arena-test-XXXXXX", c = 0;
	int fd = mkstemp(name);
	struct mc_arena *a;

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(pwrite(fd, "x", 1, 3 * MiB), 1);
	a = make((struct mc_arena_attr){
		.backing = MC_ARENA_FILE, .fd = fd, .size = 8 * MiB, .flags = MC_ARENA_GROW});
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	assert_int_equal(((char *)mc_arena_base(a))[3 * MiB],
			 'x'); /* populating keeps what is there */
	memset(mc_arena_address(a, 5), 'y', 4096);
	mc_arena_destroy(a);
	assert_int_equal(pread(fd, &c, 1, 5 * 4096), 1);
	assert_int_equal(c, 'y');
	a = make((struct mc_arena_attr){.backing = MC_ARENA_FILE,
					.fd = fd,
					.offset = 1 * MiB,
					.flags = MC_ARENA_READ | MC_ARENA_SKIP_RESIDENT});
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	assert_int_equal(mc_arena_size(a), 7 * MiB);
	mc_arena_destroy(a);
	close(fd);
}

static void allocator(void **state)
{
	struct mc_arena *a = make((struct mc_arena_attr){.size = 16 * MiB});
	size_t n = 16 * MiB / mc_arena_page_size(a), got = 0;
	struct mc_arena_stats s;
	void **run = calloc(n, sizeof(*run)), *p;

	(void)state;
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	for (unsigned int order = 0; order < 10; order++) {
		p = mc_arena_alloc(a, order, MC_ANY_NODE);
		assert_non_null(p);
		assert_int_equal(((char *)p - (char *)mc_arena_base(a)) %
					 (long)(mc_arena_page_size(a) << order),
				 0);
		assert_int_equal(mc_arena_page(a, p)->order, order);
		memset(p, 7, mc_arena_page_size(a) << order);
		if (order)
			assert_int_equal(mc_arena_free(a, (char *)p + mc_arena_page_size(a)),
					 -EINVAL);
		assert_int_equal(mc_arena_free(a, (char *)p + 1), -EINVAL);
		check_sums(a);
		assert_int_equal(mc_arena_free(a, p), 0);
		assert_int_equal(mc_arena_free(a, p), -EINVAL);
	}
	while ((p = mc_arena_alloc(a, 0, MC_ANY_NODE)))
		run[got++] = p;
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(got, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(mc_arena_free(a, run[i * 5 % n]),
				 0); /* 5 and n have no common factor */
	mc_arena_part_stats(a, 0, &s);
	assert_int_equal(s.free_runs[12], 1); /* all merged: 4096 pages */
	assert_int_equal(s.free_pages, n);
	assert_null(mc_arena_alloc(a, 13, MC_ANY_NODE));
	assert_null(mc_arena_alloc(a, 200, MC_ANY_NODE));
	assert_int_equal(errno, EINVAL);
	assert_null(mc_arena_alloc(a, 0, 4711));
	assert_int_equal(errno, EINVAL);
	free(run);
	mc_arena_destroy(a);
}

static int seen_init(void *arg, struct mc_arena *a, size_t first, size_t nr, unsigned int node)
{
	atomic_uchar *seen = arg;

	(void)node;
	for (size_t i = first; i < first + nr; i++) {
		assert_int_equal(atomic_fetch_add(&seen[i], 1), 0);
		*(size_t *)mc_arena_address(a, i) = i;
	}
	return 0;
}

/* Without workers nothing but allocations brings pages up, one chunk at a time. */
static void helping(void **state)
{
	size_t n = 8 * MiB / 4096;
	atomic_uchar *seen = calloc(n, 1);
	struct mc_arena *a = make((struct mc_arena_attr){.size = 8 * MiB,
							 .chunk = 256 << 10,
							 .page_size = 4096,
							 .flags = MC_ARENA_NO_WORKERS,
							 .init = seen_init,
							 .arg = seen});
	struct mc_arena_stats s;
	struct mc_arena_report r;
	uint64_t before;

	(void)state;
	assert_int_equal(mc_arena_ready(a), 256 << 10);
	for (unsigned int i = 0; i < 64; i++)
		assert_non_null(mc_arena_alloc(a, 0, MC_ANY_NODE));
	assert_int_equal(mc_arena_ready(a), 256 << 10);
	assert_non_null(mc_arena_alloc(a, 0, MC_ANY_NODE));
	assert_int_equal(mc_arena_ready(a), 512 << 10);
	assert_non_null(
		mc_arena_alloc(a, 8, MC_ANY_NODE)); /* 1 MiB: four chunks and their merging */
	check_sums(a);
	before = mc_arena_ready(a);
	assert_int_equal(mc_arena_set_chunk(a, 1000000), 4 * (256 << 10));
	assert_int_equal(mc_arena_chunk_size(a), 1 << 20);
	while (mc_arena_ready(a) == before)
		assert_non_null(mc_arena_alloc(a, 0, MC_ANY_NODE));
	assert_int_equal(mc_arena_ready(a), before + (1 << 20));
	assert_int_equal(mc_arena_wait(a, 0, 0), -ETIMEDOUT);
	assert_int_equal(mc_arena_wait(a, 6 * MiB, -1), 0);
	assert_true(mc_arena_ready(a) < 8 * MiB);
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	mc_arena_part_stats(a, 0, &s);
	assert_true(s.helps >= 3);
	mc_arena_part_report(a, 0, &r);
	assert_int_equal(r.helped, 8 * MiB);
	assert_int_equal(r.threads, 0);
	assert_false(r.running);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(seen[i], 1);
	mc_arena_destroy(a);
	free(seen);
}

struct gate {
	atomic_int open, entered;
	pthread_t creator; /* brings up a chunk in create: never held */
};

static int gated_init(void *arg, struct mc_arena *a, size_t first, size_t nr, unsigned int node)
{
	struct gate *g = arg;

	(void)a, (void)nr, (void)node;
	atomic_fetch_add(&g->entered, 1);
	(void)first;
	while (!pthread_equal(pthread_self(), g->creator) && !atomic_load(&g->open))
		usleep(100);
	return 0;
}

static void *opener(void *arg)
{
	struct gate *g = arg;

	usleep(20000);
	atomic_store(&g->open, 1);
	return NULL;
}

static void cancel_while_running(void **state)
{
	struct gate g = {.creator = pthread_self()};
	struct mc_arena *a = make((struct mc_arena_attr){
		.size = 64 * MiB, .chunk = 1 << 20, .threads = 2, .init = gated_init, .arg = &g});
	struct mc_arena_report r;
	pthread_t t;

	(void)state;
	assert_int_equal(mc_arena_wait(a, 0, 10), -ETIMEDOUT);
	mc_arena_cancel(a);
	pthread_create(&t, NULL, opener, &g);
	assert_int_equal(mc_arena_wait(a, 0, -1), -ECANCELED);
	pthread_join(t, NULL);
	assert_true(mc_arena_ready(a) >= 1 * MiB && mc_arena_ready(a) <= 3 * MiB);
	mc_arena_part_report(a, 0, &r);
	assert_int_equal(r.stop, MC_STOP_CANCELLED);
	assert_int_equal(r.err, ECANCELED);
	assert_false(r.running);
	check_sums(a);
	while (mc_arena_alloc(a, 0, MC_ANY_NODE))
		;
	assert_int_equal(errno, ECANCELED);
	mc_arena_destroy(a);
}

struct waiter {
	struct mc_arena *a;
	atomic_int inside;
	int rc;
	bool alloc;
};

static void *wait_for(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->inside, 1);
	if (!w->alloc)
		w->rc = mc_arena_wait(w->a, 0, -1);
	else
		w->rc = mc_arena_alloc(w->a, 14, MC_ANY_NODE) ? 0 : -errno;
	return NULL;
}

static void destroy_under_waiters(void **state)
{
	struct gate g = {.creator = pthread_self()};
	struct mc_arena *a = make((struct mc_arena_attr){
		.size = 64 * MiB, .chunk = 32 << 20, .threads = 1, .init = gated_init, .arg = &g});
	struct waiter w[2] = {{.a = a}, {.a = a, .alloc = true}};
	pthread_t t[3];

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, wait_for, &w[i]);
	while (!atomic_load(&w[0].inside) || !atomic_load(&w[1].inside))
		usleep(1000);
	usleep(20000); /* they are inside the calls, or the test tests less */
	pthread_create(&t[2], NULL, opener, &g);
	mc_arena_destroy(a);
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	/* The gate may have opened in time for the last chunk. */
	assert_true(w[0].rc == -ECANCELED || w[0].rc == 0);
	assert_true(w[1].rc == -ECANCELED || w[1].rc == 0);
}

static int refuse(void *arg, struct mc_arena *a, size_t first, size_t nr, unsigned int node)
{
	(void)arg, (void)a, (void)nr, (void)node;
	return first >= 512 ? -EDOM : 0;
}

static void callback_refuses(void **state)
{
	struct mc_arena *a =
		make((struct mc_arena_attr){.size = 16 * MiB, .chunk = 1 << 20, .init = refuse});
	struct mc_arena_report r;
	char text[300];

	(void)state;
	assert_int_equal(mc_arena_wait(a, 0, -1), -EDOM);
	mc_arena_part_report(a, 0, &r);
	assert_int_equal(r.stop, MC_STOP_CALLBACK);
	assert_int_equal(r.ready, 2 * MiB);
	assert_true(mc_arena_report_snprint(text, sizeof(text), &r) > 0);
	assert_non_null(strstr(text, " deferred pages initialised in "));
	assert_non_null(mc_arena_alloc(a, 9, MC_ANY_NODE));
	mc_arena_destroy(a);
}

static void fork_rule(void **state)
{
	struct gate g = {.creator = pthread_self()};
	struct mc_arena *a = make((struct mc_arena_attr){
		.size = 64 * MiB, .chunk = 1 << 20, .init = gated_init, .arg = &g});
	char *p = mc_arena_alloc(a, 0, MC_ANY_NODE);
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(p);
	*p = 42;
	pid = fork(); /* while the workers are at it */
	if (!pid) {
		struct mc_arena_report r;
		struct mc_arena_stats s;
		int bad = 0;

		alarm(test_seconds(20));
		bad |= *p != 42;
		*p = 43;
		bad |= mc_arena_alloc(a, 0, MC_ANY_NODE) || errno != ECHILD;
		bad |= mc_arena_free(a, p) != -ECHILD;
		bad |= mc_arena_wait(a, 0, -1) != -ECHILD;
		bad |= mc_arena_part_report(a, 0, &r) != -ECHILD;
		bad |= mc_arena_part_stats(a, 0, &s) != -ECHILD;
		mc_arena_destroy(a);
		leave(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(*p, 42);
	atomic_store(&g.open, 1);
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	assert_int_equal(mc_arena_free(a, p), 0);
	mc_arena_destroy(a);
}

static void count_progress(void *arg, uint64_t ready, uint64_t total)
{
	uint64_t *last = arg;

	assert_true(ready <= total);
	*last = ready;
}

static void progress_ends_at_all(void **state)
{
	uint64_t last = 0;
	struct mc_arena *a = make(
		(struct mc_arena_attr){.size = 16 * MiB, .progress = count_progress, .arg = &last});

	(void)state;
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	mc_arena_destroy(a); /* joins: the last report is out */
	assert_int_equal(last, 16 * MiB);
}

static void descriptors_or_pages_only(void **state)
{
	struct mc_arena *a =
		make((struct mc_arena_attr){.size = 1024 * MiB, .flags = MC_ARENA_NO_PAGES});
	unsigned char in[256] = {0};

	(void)state;
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	assert_int_equal(mincore(mc_arena_base(a), MiB, in), 0);
	for (unsigned int i = 0; i < 256; i++)
		assert_int_equal(in[i] & 1, 0);
	assert_non_null(mc_arena_alloc(a, 18, MC_ANY_NODE));
	mc_arena_destroy(a);
	a = make((struct mc_arena_attr){.size = 8 * MiB, .flags = MC_ARENA_NO_DESCRIPTORS});
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	assert_null(mc_arena_page(a, mc_arena_base(a)));
	assert_null(mc_arena_alloc(a, 0, MC_ANY_NODE));
	assert_int_equal(errno, EINVAL);
	mc_arena_destroy(a);
}

static void bad_attributes(void **state)
{
	struct mc_error e;
	struct mc_arena *a = (void *)1;
	struct mc_arena_attr bad[] = {
		{.size = 0},
		{.size = MiB, .page_size = 5000},
		{.size = MiB, .page_size = 16},
		{.size = MiB, .backing = 99},
		{.size = MiB, .policy = 99},
		{.size = MiB, .flags = MC_ARENA_READ},
		{.size = UINT64_MAX},
		{.size = MiB, .backing = MC_ARENA_FILE, .fd = -1},
		{.size = MiB, .backing = MC_ARENA_MEMFD, .phys_chunks = 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		e.text[0] = 0;
		assert_true(mc_arena_create(&bad[i], &a, &e) < 0);
		assert_ptr_equal(a, (void *)1);
		assert_true(strlen(e.text) > 10);
	}
	mc_arena_destroy(NULL);
}

/* ---- without a topology ---------------------------------------------------------------------- */

static void *create_and_destroy(void *arg)
{
	struct mc_arena_attr at = {
		.size = 4 * MiB, .threads = 1, .flags = arg ? MC_ARENA_NO_WORKERS : 0};
	struct mc_arena *a;
	intptr_t bad = 0;

	for (int i = 0; i < 8; i++) {
		if (mc_arena_create(&at, &a, NULL))
			return (void *)(intptr_t)1;
		bad |= mc_arena_wait(a, 0, -1) || !mc_arena_alloc(a, 0, MC_ANY_NODE);
		mc_arena_destroy(a);
	}
	return (void *)bad;
}

/* clang 14's ASan does not take its allocator's locks for a fork: a child of a process whose other
 * threads allocate may wait for ever. There the threads end first. */
#if defined(__SANITIZE_ADDRESS__)
#define FORK_BESIDE_THREADS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORK_BESIDE_THREADS 0
#endif
#endif
#ifndef FORK_BESIDE_THREADS
#define FORK_BESIDE_THREADS 1
#endif

static void join_all(pthread_t t[4])
{
	for (unsigned int i = 0; i < 4; i++) {
		void *bad;

		pthread_join(t[i], &bad);
		assert_null(bad);
	}
}

/* How often a thread slept is nothing that others' load can raise here: only who is woken sleeps
 * again. */
static void waits_sleep_once(void **state)
{
	struct mc_arena *a = make((struct mc_arena_attr){
		.size = 64 * MiB, .chunk = 64 << 10, .threads = 2, .flags = MC_ARENA_NO_PAGES});
	struct rusage before, after;

	(void)state;
	assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
	assert_true(after.ru_nvcsw - before.ru_nvcsw < 64); /* of 1024 chunks */
	mc_arena_destroy(a);
	/* And who waits for less is woken for it. */
	a = make((struct mc_arena_attr){.size = 32 * MiB, .chunk = 64 << 10, .threads = 1});
	for (uint64_t want = 1 * MiB; want <= 32 * MiB; want += 1 * MiB) {
		assert_int_equal(mc_arena_wait(a, want, -1), 0);
		assert_true(mc_arena_ready(a) >= want);
	}
	mc_arena_destroy(a);
}

/* The library keeps the machine as it read it; threads and children share that or do without. */
static void no_topology(void **state)
{
	pthread_t t[4];
	int status;
	pid_t pid;

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, create_and_destroy, NULL), 0);
	if (!FORK_BESIDE_THREADS)
		join_all(t);
	for (unsigned int k = 0; k < 4; k++) {
		pid = fork();
		if (!pid)
			leave(create_and_destroy(state) != NULL); /* no threads: TSan */
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	if (FORK_BESIDE_THREADS)
		join_all(t);
}

/* The caller's topology may go before the arena does. */
static void topology_put_early(void **state)
{
	struct mc_topology *own = NULL;
	struct mc_arena_attr at = {.size = 16 * MiB, .threads = 1};
	struct mc_arena *a;

	(void)state;
	assert_int_equal(mc_topology_live(&own, NULL), 0);
	at.topology = own;
	assert_int_equal(mc_arena_create(&at, &a, NULL), 0);
	mc_topology_put(own);
	assert_non_null(mc_arena_alloc(a, 0, MC_ANY_NODE));
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	mc_arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_backings),
		cmocka_unit_test(file_backing),
		cmocka_unit_test(allocator),
		cmocka_unit_test(helping),
		cmocka_unit_test(cancel_while_running),
		cmocka_unit_test(waits_sleep_once),
		cmocka_unit_test(destroy_under_waiters),
		cmocka_unit_test(callback_refuses),
		cmocka_unit_test(fork_rule),
		cmocka_unit_test(progress_ends_at_all),
		cmocka_unit_test(descriptors_or_pages_only),
		cmocka_unit_test(bad_attributes),
		cmocka_unit_test(no_topology),
		cmocka_unit_test(topology_put_early),
	};

	return cmocka_run_group_tests(tests, read_topology, NULL);
}
