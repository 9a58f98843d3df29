// SPDX-License-Identifier: MIT
/* bench_percpu_threads.c - two threads that do the same work at once, for the benches of per-CPU
 * memory. */
#include <pthread.h>
#include <manycore/manycore.h>
#include "cmd/bench/bench_percpu.h"

enum { MAX_THREADS = 8 };

struct together {
	bench_fn fn;
	void *arg;
	uint64_t iterations;
	unsigned int threads, ready;
	double ns[MAX_THREADS];
	unsigned int next;
};

static void *body(void *arg)
{
	struct together *t = arg;
	unsigned int me = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
	uint64_t start;

	__atomic_fetch_add(&t->ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&t->ready, __ATOMIC_ACQUIRE) < t->threads)
		;
	start = bench_now_ns();
	t->fn(t->arg, t->iterations);
	t->ns[me] = (double)(bench_now_ns() - start) / (double)t->iterations;
	return NULL;
}

double bench_together(unsigned int threads, bench_fn fn, void *arg, uint64_t iterations)
{
	struct together t = {.fn = fn, .arg = arg, .iterations = iterations, .threads = threads};
	pthread_t id[MAX_THREADS];
	unsigned int made = 0;
	double sum = 0;

	for (unsigned int i = 1; i < threads; i++)
		made += !pthread_create(&id[made], NULL, body, &t);
	t.threads = made + 1;
	body(&t);
	for (unsigned int i = 0; i < made; i++)
		pthread_join(id[i], NULL);
	for (unsigned int i = 0; i <= made; i++)
		sum += t.ns[i];
	return sum / (made + 1);
}

static void touch(void *arg, uint64_t iterations)
{
	for (uint64_t i = 0; i < iterations; i++)
		mc_this_cpu_inc((uint64_t *)arg);
}

int bench_two_live(void)
{
	uint64_t *h = mc_alloc_percpu(uint64_t);
	int live = 0;

	for (int i = 0; h && i < 200 && live < 2; i++) {
		bench_together(2, touch, h, 200000);
		live = (int)mc_percpu_copies(h);
	}
	mc_free_percpu(h);
	return live >= 2;
}
