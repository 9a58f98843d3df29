// SPDX-License-Identifier: MIT
/*
 * bench_percpu.c - operations on per-CPU objects against what a program would use instead.
 *
 * Peers: tls (add to a thread-local), atomic-own (atomic add nobody contends for), atomic-shared
 * (two threads on one word, time per add and thread), mutex (lock, add, unlock, alone), dense (the
 * same sum over an array of cache lines). The adds are single loops over one object, the same shape
 * for all.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <manycore/manycore.h>
#include "cmd/bench/bench_percpu.h"

enum { MANY = 512, OBJECTS = 10000, SHARED_ADDS = 20000 };

static __thread uint64_t tls_word;
static struct {
	uint64_t word __attribute__((aligned(64)));
	pthread_mutex_t mutex __attribute__((aligned(64)));
} peer = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void add(void *arg, uint64_t n)
{
	uint64_t *h = arg;

	for (uint64_t i = 0; i < n; i++)
		mc_this_cpu_add(h, 1);
}

static void counter_add(void *arg, uint64_t n)
{
	struct mc_counter *c = arg;

	for (uint64_t i = 0; i < n; i++)
		mc_counter_add_batch(c, 1, 32);
}

/* Through its address in a register, as the objects are reached: with the address as a constant in
 * the instruction, some processors keep the word in a register and others wait for each store, from
 * one slice to the next. */
static void tls_add(void *arg, uint64_t n)
{
	uint64_t *word = &tls_word;

	(void)arg;
	__asm__ volatile("" : "+r"(word));
	for (uint64_t i = 0; i < n; i++) {
		*word += 1;
		bench_use(0);
	}
}

static void atomic_add(void *arg, uint64_t n)
{
	uint64_t *word = arg;

	for (uint64_t i = 0; i < n; i++)
		__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

static double atomic_shared(void *arg)
{
	return bench_together(2, atomic_add, arg, SHARED_ADDS);
}

static void mutex_add(void *arg, uint64_t n)
{
	uint64_t *word = arg;

	for (uint64_t i = 0; i < n; i++) {
		pthread_mutex_lock(&peer.mutex);
		*word += 1;
		pthread_mutex_unlock(&peer.mutex);
	}
}

static void adds(struct bench *b, uint64_t *h, uint64_t *by_cpu, uint64_t *by_atomics,
		 struct mc_counter *c)
{
	struct bench_side all[] = {
		{.name = "tls", .fn = tls_add},
		{.name = "atomic-own", .fn = atomic_add, .arg = &peer.word},
		{.name = "mutex", .fn = mutex_add, .arg = &peer.word},
		{.name = "atomic-shared", .sample = atomic_shared, .arg = &peer.word}};
	struct bench_case k = {
		.name = "add", .unit = "ns", .self = {.fn = add, .arg = h}, .nr_peers = 4};

	memcpy(k.peer, all, sizeof(all));
	if (bench_wanted(b, k.name))
		bench_run(b, &k);
	k.name = "add-cpuid";
	k.self.arg = by_cpu;
	k.nr_peers = 2;
	if (by_cpu && bench_wanted(b, k.name))
		bench_run(b, &k);
	k.name = "counter-add-32";
	k.self = (struct bench_side){.fn = counter_add, .arg = c};
	if (bench_wanted(b, k.name))
		bench_run(b, &k);
	k.name = "atomics-add";
	k.self = (struct bench_side){.fn = add, .arg = by_atomics};
	if (bench_wanted(b, k.name))
		bench_run(b, &k);
}

/* ---- walks ----------------------------------------------------------------------------------- */

struct walk {
	unsigned int n;
	uint64_t *h, *dense;
};

static void walk(void *arg, uint64_t n)
{
	const struct walk *w = arg;

	while (n--) {
		uint64_t sum = 0;

		for (unsigned int i = 0; i < w->n; i++)
			sum += __atomic_load_n(mc_per_cpu_ptr(w->h, i), __ATOMIC_RELAXED);
		bench_use(sum);
	}
}

static void walk_dense(void *arg, uint64_t n)
{
	const struct walk *w = arg;

	while (n--) {
		uint64_t sum = 0;

		for (unsigned int i = 0; i < w->n; i++)
			sum += __atomic_load_n(w->dense + i * 8, __ATOMIC_RELAXED);
		bench_use(sum);
	}
}

static void counter_sum(void *arg, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		bench_use(mc_counter_sum(arg));
}

static void walks(struct bench *b, struct mc_percpu_pool *pool)
{
	struct walk w = {.h = mc_percpu_pool_alloc(pool, 64, 64),
			 .dense = aligned_alloc(64, MANY * 64)};
	static const struct {
		const char *name;
		unsigned int n;
	} sizes[] = {{"walk-224", 224}, {"walk-512", 512}};
	struct mc_counter c;

	if (!w.h || !w.dense) {
		bench_note(b, "walks: no memory");
		goto out;
	}
	/* As if that many had been in use. */
	for (unsigned int i = 0; i < MANY; i++)
		*mc_per_cpu_ptr(w.h, i) = w.dense[i * 8] = i;
	w.n = 2;
	if (bench_wanted(b, "sum-2-of-512") && !mc_counter_init_pool(&c, 1, 0, 32, pool)) {
		struct bench_case k = {.name = "sum-2-of-512",
				       .unit = "ns",
				       .self = {.fn = counter_sum, .arg = &c},
				       .nr_peers = 1,
				       .peer = {{.name = "dense", .fn = walk_dense, .arg = &w}}};

		if (mc_percpu_copies((void *)c.handle) != 2)
			bench_note(b, "sum-2-of-512: %u copies are live",
				   mc_percpu_copies((void *)c.handle));
		bench_run(b, &k);
		mc_counter_destroy(&c);
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct bench_case k = {.name = sizes[i].name,
				       .unit = "ns",
				       .self = {.fn = walk, .arg = &w},
				       .nr_peers = 1,
				       .peer = {{.name = "dense", .fn = walk_dense, .arg = &w}}};

		w.n = sizes[i].n;
		if (bench_wanted(b, k.name))
			bench_run(b, &k);
	}
out:
	/* Copies past the live ones were written behind the pool's back: back to zero. */
	for (unsigned int i = 0; w.h && i < MANY; i++)
		*mc_per_cpu_ptr(w.h, i) = 0;
	mc_free_percpu(w.h);
	free(w.dense);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static long resident(void)
{
	long pages = 0, all = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f) {
		if (fscanf(f, "%ld %ld", &all, &pages) != 2)
			pages = 0;
		fclose(f);
	}
	return pages * sysconf(_SC_PAGESIZE);
}

struct objects {
	uint64_t *h[OBJECTS];
};

static void touch_all(void *arg, uint64_t n)
{
	struct objects *o = arg;

	while (n--)
		for (unsigned int i = 0; i < OBJECTS; i++)
			mc_this_cpu_inc(o->h[i]);
}

/* 10,000 objects of 8 bytes, incremented by two threads, with 512 configured copies. */
static void memory(struct bench *b)
{
	struct mc_percpu_attr attr = {.copies = MANY};
	struct mc_percpu_pool *pool = mc_percpu_pool_create(&attr);
	struct objects *o = calloc(1, sizeof(*o));
	struct mc_percpu_stats s;
	long before, grown;

	if (!pool || !o || !bench_wanted(b, "memory"))
		goto out;
	memset(o, 1, sizeof(*o));
	before = resident();
	for (unsigned int i = 0; i < OBJECTS; i++)
		o->h[i] = mc_percpu_pool_alloc(pool, 8, 8);
	bench_together(2, touch_all, o, 3);
	grown = resident() - before;
	mc_percpu_pool_stats(pool, &s);
	bench_note(b,
		   "memory: %d objects of 8 bytes, %u configured copies, %u live: %ld KiB "
		   "resident, of it bookkeeping %llu KiB; "
		   "%.1f bytes an object and live copy",
		   OBJECTS, s.copies, s.live, grown / 1024,
		   (unsigned long long)s.bookkeeping_bytes / 1024,
		   (double)(grown - (long)s.bookkeeping_bytes) / OBJECTS / (s.live ? s.live : 1));
	for (unsigned int i = 0; i < OBJECTS; i++)
		mc_free_percpu(o->h[i]);
out:
	mc_percpu_pool_destroy(pool);
	free(o);
}

void bench_percpu_main(struct bench *b)
{
	struct mc_percpu_attr cpu = {.mode = MC_PERCPU_CPU_ID},
			      atomics = {.mode = MC_PERCPU_ATOMICS}, many = {.copies = MANY};
	struct mc_percpu_pool *by_cpu = mc_percpu_pool_create(&cpu),
			      *by_atomics = mc_percpu_pool_create(&atomics);
	struct mc_percpu_pool *wide = mc_percpu_pool_create(&many);
	uint64_t *h = mc_alloc_percpu(uint64_t);
	struct mc_counter c = {0};
	const char *why;

	mc_percpu_mode(NULL, &why);
	bench_note(b, "mode: %s", why);
	if (!h || !by_atomics || !wide || mc_counter_init_pool(&c, 1, 0, 32, NULL)) {
		bench_note(b, "percpu: no memory");
		goto out;
	}
	if (!by_cpu)
		bench_note(b, "add-cpuid: no restartable sequences in this process");
	if (!bench_two_live())
		bench_note(b,
			   "only one copy could be brought into use: this process runs on one CPU");
	adds(b, h, by_cpu ? mc_percpu_pool_alloc(by_cpu, 8, 8) : NULL,
	     mc_percpu_pool_alloc(by_atomics, 8, 8), &c);
	walks(b, wide);
	memory(b);
out:
	if (mc_counter_initialized(&c))
		mc_counter_destroy(&c);
	mc_free_percpu(h);
	mc_percpu_pool_destroy(by_cpu);
	mc_percpu_pool_destroy(by_atomics);
	mc_percpu_pool_destroy(wide);
}
