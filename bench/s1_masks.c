// SPDX-License-Identifier: MIT
/*
 * s1_masks.c - the comparison of the arm64 work on cpumasks off the stack (256 -> 512 CPUs), for a
 * program: one small scheduler built three times, with masks fixed at 256 bits, fixed at 512 bits
 * (both on the stack and in the data), and with manycore's masks of this machine's size.
 *
 * Built once for each kind (KIND = 256, 512 or 0 for ours); bench/run-s1 runs the three interleaved
 * and prints the table. The work: runnable tasks, each with an affinity; pick a CPU for each by the
 * steps a scheduler takes: allowed = affinity AND online; an idle one of those, the last one's
 * neighbour first; else the least loaded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <manycore/cpumask.h>

#if KIND
enum { WORDS = KIND / 64 };
typedef struct {
	uint64_t w[WORDS];
} mask_t;
typedef mask_t mask_var_t[1];
#define SCOPE_MASK(name) mask_var_t name = {0}
#define GOOD(name) true
#define EACH(cpu, mask) \
	for (unsigned int cpu = next(mask, 0); cpu < (unsigned int)KIND; cpu = next(mask, cpu + 1))

static void set(mask_t *m, unsigned int cpu)
{
	m->w[cpu / 64] |= UINT64_C(1) << cpu % 64;
}
static void clear(mask_t *m, unsigned int cpu)
{
	m->w[cpu / 64] &= ~(UINT64_C(1) << cpu % 64);
}
static bool and (mask_t * d, const mask_t *a, const mask_t *b)
{
	uint64_t any = 0;

	for (int i = 0; i < WORDS; i++)
		any |= d->w[i] = a->w[i] & b->w[i];
	return any;
}
static unsigned int next(const mask_t *m, unsigned int from)
{
	for (unsigned int i = from / 64; i < WORDS; i++) {
		uint64_t w = m->w[i] & (i == from / 64 ? ~UINT64_C(0) << from % 64 : ~UINT64_C(0));

		if (w)
			return i * 64 + (unsigned int)__builtin_ctzll(w);
	}
	return KIND;
}
#else
typedef struct mc_cpumask mask_t;
typedef struct mc_cpumask *mask_var_t;
#define SCOPE_MASK(name) MC_CPUMASK_VAR(name)
#define GOOD(name) ((name) != NULL)
#define EACH(cpu, mask)   \
	unsigned int cpu; \
	mc_for_each_cpu (cpu, mask)
#define set mc_cpumask_set
#define clear mc_cpumask_clear
#define and mc_cpumask_and
static unsigned int next(const mask_t *m, unsigned int from)
{
	return mc_cpumask_next((int)from - 1, m);
}
#endif

enum { TASKS = 256, ROUNDS = 400 };

static mask_var_t online, idle;
static struct task {
	mask_var_t affinity;
	unsigned int last;
} tasks[TASKS];
static unsigned int *load, nr_cpus;
static size_t stack_low = SIZE_MAX, stack_high;

static void touch_stack(void)
{
	size_t here = (size_t)__builtin_frame_address(0);

	stack_low = here < stack_low ? here : stack_low;
	stack_high = here > stack_high ? here : stack_high;
}

/* Deepest in the chain, so that the frames above it count. */
__attribute__((noinline)) static unsigned int least_loaded(const mask_t *allowed)
{
	unsigned int best = UINT32_MAX, which = 0;

	touch_stack();
	EACH(cpu, allowed)
	if (load[cpu] < best) {
		best = load[cpu];
		which = cpu;
	}
	return which;
}

__attribute__((noinline)) static unsigned int pick(struct task *t)
{
	SCOPE_MASK(allowed);
	SCOPE_MASK(candidates);
	unsigned int cpu;

	touch_stack();
	if (!GOOD(allowed) || !GOOD(candidates))
		return 0;
	if (!and(allowed, t->affinity, online))
		return 0;
	if (and(candidates, allowed, idle)) {
		cpu = next(candidates, t->last);
		return cpu < nr_cpus ? cpu : next(candidates, 0);
	}
	return least_loaded(allowed);
}

__attribute__((noinline)) static void schedule(void)
{
	touch_stack();
	for (unsigned int i = 0; i < TASKS; i++) {
		unsigned int cpu = pick(&tasks[i]);

		load[tasks[i].last]--;
		load[cpu]++;
		if (load[tasks[i].last] == 0)
			set(idle, tasks[i].last);
		clear(idle, cpu);
		tasks[i].last = cpu;
	}
}

static bool set_up(unsigned int cpus)
{
#if !KIND
	online = mc_cpumask_alloc();
	idle = mc_cpumask_alloc();
	if (!online || !idle)
		return false;
	for (unsigned int i = 0; i < TASKS; i++)
		if (!(tasks[i].affinity = mc_cpumask_alloc()))
			return false;
#endif
	load = calloc(cpus + 1, sizeof(*load));
	if (!load)
		return false;
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		set(online, cpu);
		set(idle, cpu);
	}
	for (unsigned int i = 0; i < TASKS; i++) {
		for (unsigned int cpu = 0; cpu < cpus; cpu++)
			if (i % 4 == 0 || (cpu + i) % 3)
				set(tasks[i].affinity, cpu);
		tasks[i].last = i % cpus;
		load[tasks[i].last]++;
	}
	return true;
}

/* One line: nanoseconds a task placed, bytes of stack from the scheduler down, bytes of masks and
 * of all data. */
int main(void)
{
	unsigned int cpus = nr_cpus = mc_nr_cpu_ids();
	struct timespec a, b;
	size_t masks = (TASKS + 2) * (KIND ? sizeof(mask_var_t) : mc_cpumask_size());
	double ns;

	if (KIND && cpus > KIND) {
		printf("refused: %u CPUs do not fit %d bits\n", cpus, KIND);
		return 0;
	}
	if (!set_up(cpus)) {
		fputs("s1_masks: setting up: not enough memory\n", stderr);
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (unsigned int i = 0; i < ROUNDS; i++)
		schedule();
	clock_gettime(CLOCK_MONOTONIC, &b);
	ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
	printf("%.1f %zu %zu %zu\n", ns / ROUNDS / TASKS, stack_high - stack_low, masks,
	       masks + sizeof(tasks) - (KIND ? sizeof(mask_var_t) * TASKS : 0));
	return 0;
}
