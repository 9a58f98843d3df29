// SPDX-License-Identifier: MIT
/*
 * bench_percpu_threads.c - two threads that do the same work at once, for the benches of per-CPU
 * memory. Each is bound to a CPU of its own while it works, one thread alone to the first of these:
 * left to the scheduler, two threads that start together spend much of a short slice on one CPU.
 */
#include <pthread.h>
#include <sched.h>
#include <manycore/manycore.h>
#include "cmd/bench/bench_percpu.h"

enum { MAX_THREADS = 8 };

struct together {
	bench_fn fn;
	void *arg;
	uint64_t iterations;
	cpu_set_t allowed;
	unsigned int threads, ready;
	double ns[MAX_THREADS];
	unsigned int next;
};

/* To the n-th CPU of those allowed, if there are so many. */
static void bind_to(const cpu_set_t *allowed, unsigned int n)
{
	cpu_set_t one;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, allowed) && !n--) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
			return;
		}
}

static void *body(void *arg)
{
	struct together *t = arg;
	unsigned int me = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
	uint64_t start;

	bind_to(&t->allowed, me);
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

	CPU_ZERO(&t.allowed);
	sched_getaffinity(0, sizeof(t.allowed), &t.allowed);
	for (unsigned int i = 1; i < threads; i++)
		made += !pthread_create(&id[made], NULL, body, &t);
	t.threads = made + 1;
	body(&t);
	if (CPU_COUNT(&t.allowed))
		sched_setaffinity(0, sizeof(t.allowed), &t.allowed);
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
