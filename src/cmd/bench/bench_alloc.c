// SPDX-License-Identifier: MIT
/*
 * bench_alloc.c - allocation and freeing of per-CPU objects of 64 bytes, zeroed on every live copy,
 * in pairs.
 *
 * Peers: mutex-pool (a free list under a mutex whose objects are zeroed on the same live copies,
 * the shape of librseq's mempool), calloc-per-cpu (an array of as many callocs as copies),
 * new-layout (the same pool with the new layout), 1t (the same in one thread), 2-possible (the same
 * pool with as many copies as possible CPUs). "2t": time per pair and thread of two threads at
 * once, each bound to a CPU. "written": all bytes of one copy are written before the object is
 * freed, so that there is something to zero; the peers write one of their copies. machine-2t is the
 * measure of the machine: two threads that share nothing, against one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <manycore/manycore.h>
#include "cmd/bench/bench_percpu.h"

enum { SIZE = 64, PAIRS = 100000, CHUNK_PAIRS = 4000, WIDE = 512, STRIDE = 65536 + 320, LIST = 64 };

static void pair(void *arg, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		void *p = mc_percpu_pool_alloc(arg, SIZE, 8);

		bench_use(p);
		mc_free_percpu(p);
	}
}

static void pair_written(void *arg, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		char *p = mc_percpu_pool_alloc(arg, SIZE, 8);

		memset(mc_this_cpu_ptr(p), 1, SIZE);
		bench_use(p);
		mc_free_percpu(p);
	}
}

static double pair_2t(void *arg)
{
	return bench_together(2, pair, arg, PAIRS);
}

static double written_2t(void *arg)
{
	return bench_together(2, pair_written, arg, PAIRS);
}

static double written_1t(void *arg)
{
	return bench_together(1, pair_written, arg, PAIRS);
}

static double pair_1t(void *arg)
{
	return bench_together(1, pair, arg, PAIRS);
}

static double chunk_2t(void *arg)
{
	return bench_together(2, pair, arg, CHUNK_PAIRS);
}

static double chunk_1t(void *arg)
{
	return bench_together(1, pair, arg, CHUNK_PAIRS);
}

/* ---- peers ----------------------------------------------------------------------------------- */

/* Two live copies at the same distance as ours; the list runs through copy 0. */
static struct {
	pthread_mutex_t lock;
	void *head;
	char *memory;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int list_create(void)
{
	list.memory = aligned_alloc(64, 2 * STRIDE);
	if (!list.memory)
		return -1;
	memset(list.memory, 0, 2 * STRIDE);
	for (unsigned int i = 0; i < LIST; i++) {
		*(void **)(list.memory + i * SIZE) = list.head;
		list.head = list.memory + i * SIZE;
	}
	return 0;
}

static inline void mutex_pairs(bool write, uint64_t n)
{
	while (n--) {
		char *p;

		pthread_mutex_lock(&list.lock);
		p = list.head;
		list.head = *(void **)p;
		pthread_mutex_unlock(&list.lock);
		memset(p, 0, SIZE);
		memset(p + STRIDE, 0, SIZE);
		bench_use(p);
		if (write) {
			memset(p, 1, SIZE);
			bench_use(p);
		}
		pthread_mutex_lock(&list.lock);
		*(void **)p = list.head;
		list.head = p;
		pthread_mutex_unlock(&list.lock);
	}
}

static void mutex_pair(void *arg, uint64_t n)
{
	(void)arg;
	mutex_pairs(false, n);
}

static void mutex_written(void *arg, uint64_t n)
{
	(void)arg;
	mutex_pairs(true, n);
}

static double mutex_written_2t(void *arg)
{
	return bench_together(2, mutex_written, arg, PAIRS);
}

static double mutex_2t(void *arg)
{
	return bench_together(2, mutex_pair, arg, PAIRS);
}

static inline void calloc_pairs(unsigned int copies, bool write, uint64_t n)
{
	while (n--) {
		void **p = calloc(copies, sizeof(*p));

		for (unsigned int i = 0; p && i < copies; i++)
			p[i] = calloc(1, SIZE);
		bench_use(p);
		if (write && p && p[0]) {
			memset(p[0], 1, SIZE);
			bench_use(p);
		}
		for (unsigned int i = 0; p && i < copies; i++)
			free(p[i]);
		free(p);
	}
}

static void calloc_pair(void *arg, uint64_t n)
{
	calloc_pairs(*(unsigned int *)arg, false, n);
}

static void calloc_written(void *arg, uint64_t n)
{
	calloc_pairs(*(unsigned int *)arg, true, n);
}

/* Nothing shared: a word on the thread's own stack, so that only the machine can slow two down. */
static void alone(void *arg, uint64_t n)
{
	struct {
		uint64_t word[8] __attribute__((aligned(64)));
	} own = {{0}};

	(void)arg;
	while (n--)
		for (unsigned int i = 0; i < 8; i++) {
			own.word[i] += n;
			bench_use(&own);
		}
}

static double alone_2t(void *arg)
{
	return bench_together(2, alone, arg, PAIRS);
}

static double alone_1t(void *arg)
{
	return bench_together(1, alone, arg, PAIRS);
}

static double calloc_2t(void *arg)
{
	return bench_together(2, calloc_pair, arg, PAIRS / 4);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void run(struct bench *b, struct bench_case k)
{
	while (k.nr_peers < BENCH_MAX_PEERS && k.peer[k.nr_peers].name)
		k.nr_peers++;
	k.unit = "ns";
	if (bench_wanted(b, k.name))
		bench_run(b, &k);
}

static struct mc_percpu_pool *pool(unsigned int copies, unsigned int flags)
{
	struct mc_percpu_attr attr = {.copies = copies, .flags = flags};

	return mc_percpu_pool_create(&attr);
}

void bench_alloc_main(struct bench *b)
{
	unsigned int two = 2, wide = mc_nr_cpu_ids() > WIDE ? mc_nr_cpu_ids() : WIDE;
	struct mc_percpu_pool *p = pool(0, 0), *p512 = pool(wide, 0),
			      *chunk = pool(0, MC_PERCPU_NO_MAGAZINE);
	struct mc_percpu_pool *old = pool(0, MC_PERCPU_NO_MAGAZINE | MC_PERCPU_OLD_LAYOUT);

	if (!p || !p512 || !chunk || !old || list_create()) {
		bench_note(b, "alloc: no memory");
		goto out;
	}
	if (!bench_two_live())
		bench_note(b,
			   "only one copy could be brought into use: this process runs on one CPU");
	run(b, (struct bench_case){
		       .name = "pair-64-1t",
		       .self = {.fn = pair, .arg = p},
		       .peer = {{.name = "mutex-pool", .fn = mutex_pair},
				{.name = "calloc-per-cpu", .fn = calloc_pair, .arg = &two}}});
	run(b, (struct bench_case){
		       .name = "pair-64-2t",
		       .self = {.sample = pair_2t, .arg = p},
		       .peer = {{.name = "1t", .sample = pair_1t, .arg = p},
				{.name = "mutex-pool", .sample = mutex_2t},
				{.name = "calloc-per-cpu", .sample = calloc_2t, .arg = &two}}});
	run(b, (struct bench_case){.name = "machine-2t",
				   .self = {.sample = alone_2t},
				   .peer = {{.name = "1t", .sample = alone_1t}}});
	run(b, (struct bench_case){
		       .name = "written-64-1t",
		       .self = {.fn = pair_written, .arg = p},
		       .peer = {{.name = "mutex-pool", .fn = mutex_written},
				{.name = "calloc-per-cpu", .fn = calloc_written, .arg = &two}}});
	run(b, (struct bench_case){.name = "written-64-2t",
				   .self = {.sample = written_2t, .arg = p},
				   .peer = {{.name = "1t", .sample = written_1t, .arg = p},
					    {.name = "mutex-pool", .sample = mutex_written_2t}}});
	run(b, (struct bench_case){
		       .name = "zalloc-2-possible",
		       .self = {.fn = pair, .arg = p},
		       .peer = {{.name = "calloc-per-cpu", .fn = calloc_pair, .arg = &two}}});
	run(b, (struct bench_case){
		       .name = "zalloc-512-possible",
		       .self = {.fn = pair, .arg = p512},
		       .peer = {{.name = "2-possible", .fn = pair, .arg = p},
				{.name = "calloc-per-cpu", .fn = calloc_pair, .arg = &wide}}});
	run(b, (struct bench_case){.name = "chunk-only-2t",
				   .self = {.sample = chunk_2t, .arg = chunk},
				   .peer = {{.name = "1t", .sample = chunk_1t, .arg = chunk},
					    {.name = "mutex-pool", .sample = mutex_2t}}});
	run(b, (struct bench_case){
		       .name = "old-layout-2t",
		       .self = {.sample = chunk_2t, .arg = old},
		       .peer = {{.name = "new-layout", .sample = chunk_2t, .arg = chunk}}});
out:
	mc_percpu_pool_destroy(p);
	mc_percpu_pool_destroy(p512);
	mc_percpu_pool_destroy(chunk);
	mc_percpu_pool_destroy(old);
	free(list.memory);
	list.memory = list.head = NULL;
}
