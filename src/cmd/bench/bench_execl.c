// SPDX-License-Identifier: MIT
/*
 * bench_execl.c - what an execve does to the kernel's counters (UnixBench execl, kernel work S5):
 * threads that again and again initialise an address space's five counters (four of resident pages,
 * one more), add to them as a short program's page faults would, read them, and destroy them.
 *
 * init5: five single mc_counter_init(); init-many: one mc_counter_init_many(). Peers: singles (five
 * single ones from a pool without magazines: every allocation and free behind the pool's one mutex,
 * as pcpu_alloc()), atomics (init-many with the counters kept by atomics), old-layout (singles with
 * the bookkeeping laid out as before 3a6358c0dbe6). fork-exec: a parent that starts /bin/true and
 * keeps such counters for each child; microseconds. "2t": per thread, two at once.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <manycore/manycore.h>
#include "cmd/bench/bench_percpu.h"

enum { COUNTERS = 5, FAULTS = 16, SPACES = 2000, SPAWNS = 4 };

extern char **environ;

static void use(struct mc_counter *c)
{
	int64_t sum = 0;

	for (unsigned int i = 0; i < FAULTS; i++)
		mc_counter_inc(&c[i % (COUNTERS - 1)]);
	for (unsigned int i = 0; i < COUNTERS; i++)
		sum += mc_counter_read(&c[i]);
	bench_use(sum);
}

static void init5(void *arg, uint64_t n)
{
	struct mc_counter c[COUNTERS];

	while (n--) {
		for (unsigned int i = 0; i < COUNTERS; i++)
			if (mc_counter_init_pool(&c[i], 1, 0, 32, arg))
				return;
		use(c);
		for (unsigned int i = 0; i < COUNTERS; i++)
			mc_counter_destroy(&c[i]);
	}
}

static void init_many(void *arg, uint64_t n)
{
	struct mc_counter c[COUNTERS];

	while (n--) {
		if (mc_counter_init_pool(c, COUNTERS, 0, 32, arg))
			return;
		use(c);
		mc_counter_destroy_many(c, COUNTERS);
	}
}

static double init5_1t(void *arg)
{
	return bench_together(1, init5, arg, SPACES);
}

static double init5_2t(void *arg)
{
	return bench_together(2, init5, arg, SPACES);
}

static double many_1t(void *arg)
{
	return bench_together(1, init_many, arg, SPACES);
}

static double many_2t(void *arg)
{
	return bench_together(2, init_many, arg, SPACES);
}

/* ---- with real processes --------------------------------------------------------------------- */

static void spawn(void)
{
	char *argv[] = {(char *)"true", NULL};
	pid_t pid;
	int status;

	if (!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ))
		while (waitpid(pid, &status, 0) < 0)
			;
}

static double spawn_many(void *arg)
{
	struct mc_counter c[COUNTERS];
	uint64_t start = bench_now_ns();

	for (unsigned int i = 0; i < SPAWNS; i++) {
		if (mc_counter_init_pool(c, COUNTERS, 0, 32, arg))
			return 0;
		spawn();
		use(c);
		mc_counter_destroy_many(c, COUNTERS);
	}
	return (double)(bench_now_ns() - start) / SPAWNS / 1e3;
}

static double spawn_singles(void *arg)
{
	struct mc_counter c[COUNTERS];
	uint64_t start = bench_now_ns();

	for (unsigned int i = 0; i < SPAWNS; i++) {
		for (unsigned int k = 0; k < COUNTERS; k++)
			if (mc_counter_init_pool(&c[k], 1, 0, 32, arg))
				return 0;
		spawn();
		use(c);
		for (unsigned int k = 0; k < COUNTERS; k++)
			mc_counter_destroy(&c[k]);
	}
	return (double)(bench_now_ns() - start) / SPAWNS / 1e3;
}

static struct mc_percpu_pool *pool(enum mc_percpu_mode mode, unsigned int flags)
{
	struct mc_percpu_attr attr = {.mode = mode, .flags = flags};

	return mc_percpu_pool_create(&attr);
}

void bench_execl_main(struct bench *b)
{
	struct mc_percpu_pool *ours = pool(MC_PERCPU_AUTO, 0),
			      *one_mutex = pool(MC_PERCPU_AUTO, MC_PERCPU_NO_MAGAZINE);
	struct mc_percpu_pool *old =
		pool(MC_PERCPU_AUTO, MC_PERCPU_NO_MAGAZINE | MC_PERCPU_OLD_LAYOUT);
	struct mc_percpu_pool *atomics = pool(MC_PERCPU_ATOMICS, 0);
	const struct {
		const char *name, *unit;
		bench_sample_fn self, singles, atomics;
	} cases[] = {
		{"init5-1t", "ns", init5_1t, init5_1t, init5_1t},
		{"init5-2t", "ns", init5_2t, init5_2t, init5_2t},
		{"init-many-1t", "ns", many_1t, init5_1t, many_1t},
		{"init-many-2t", "ns", many_2t, init5_2t, many_2t},
		{"fork-exec", "us", spawn_many, spawn_singles, spawn_many},
	};

	if (!ours || !one_mutex || !old || !atomics) {
		bench_note(b, "execl: no memory");
		goto out;
	}
	if (!bench_two_live())
		bench_note(b,
			   "only one copy could be brought into use: this process runs on one CPU");
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct bench_case k = {
			.name = cases[i].name,
			.unit = cases[i].unit,
			.self = {.sample = cases[i].self, .arg = ours},
			.nr_peers = 3,
			.peer = {{.name = "singles", .sample = cases[i].singles, .arg = one_mutex},
				 {.name = "atomics", .sample = cases[i].atomics, .arg = atomics},
				 {.name = "old-layout", .sample = cases[i].singles, .arg = old}}};

		if (bench_wanted(b, k.name))
			bench_run(b, &k);
	}
out:
	mc_percpu_pool_destroy(ours);
	mc_percpu_pool_destroy(one_mutex);
	mc_percpu_pool_destroy(old);
	mc_percpu_pool_destroy(atomics);
}
