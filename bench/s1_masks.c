// SPDX-License-Identifier: MIT
/*
 * s1_masks.c - the comparison of the arm64 work on cpumasks off the stack (256 -> 512 CPUs), for a
 * program: one small scheduler built four times. All do the same mask operations, manycore's; what
 * differs is where a mask lives and how large it is:
 *   KIND 256, 512: of that many bits, on the stack and in the data, as a kernel without OFFSTACK
 *   KIND 0:        of this machine's size, each temporary one allocated and freed, as with OFFSTACK
 *   KIND 1:        of this machine's size, MC_CPUMASK_VAR for the temporary ones
 * bench/run-s1 runs them interleaved and prints the table. The work: runnable tasks, each with an
 * affinity; pick a CPU for each by the steps a scheduler takes: allowed = affinity AND online; an
 * idle one of those, the last one's neighbour first; else the least loaded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <manycore/cpumask.h>

typedef struct mc_cpumask mask_t;

#if KIND > 1
/* A mask of KIND bits: its head, then its words. */
typedef union {
	mask_t mask;
	uint64_t room[sizeof(mask_t) / sizeof(uint64_t) + KIND / 64];
} mask_var_t[1];
#define AT(var) (&(var)->mask)

/* Inline and of constant size, so that it costs what a declaration of such a mask costs. */
static inline mask_t *fixed(mask_t *mask)
{
	mask->nbits = KIND;
	mask->flags = 0;
	mask->tail = ~UINT64_C(0);
	mask->word = mask->bits;
	memset(mask->bits, 0, KIND / 8);
	return mask;
}
static bool make(mask_t *mask)
{
	return fixed(mask) != NULL;
}
#define MAKE(var) make(AT(var))
#define SCOPE_MASK(name)      \
	mask_var_t name##_at; \
	mask_t *const name = fixed(AT(name##_at))
#else
typedef mask_t *mask_var_t;
#define AT(var) (var)
#define MAKE(var) (((var) = mc_cpumask_alloc()) != NULL)
#if KIND == 0
static void drop(mask_t **mask)
{
	mc_cpumask_free(*mask);
}
#define SCOPE_MASK(name) __attribute__((cleanup(drop))) mask_t *name = mc_cpumask_alloc()
#else
#define SCOPE_MASK(name) MC_CPUMASK_VAR(name)
#endif
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
	unsigned int best = UINT32_MAX, which = 0, cpu;

	touch_stack();
	mc_for_each_cpu (cpu, allowed)
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
	if (!allowed || !candidates)
		return 0;
	if (!mc_cpumask_and(allowed, AT(t->affinity), AT(online)))
		return 0;
	if (mc_cpumask_and(candidates, allowed, AT(idle))) {
		cpu = mc_cpumask_next((int)t->last - 1, candidates);
		return cpu < nr_cpus ? cpu : mc_cpumask_first(candidates);
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
			mc_cpumask_set(AT(idle), tasks[i].last);
		mc_cpumask_clear(AT(idle), cpu);
		tasks[i].last = cpu;
	}
}

static bool set_up(unsigned int cpus)
{
	if (!MAKE(online) || !MAKE(idle))
		return false;
	for (unsigned int i = 0; i < TASKS; i++)
		if (!MAKE(tasks[i].affinity))
			return false;
	load = calloc(cpus + 1, sizeof(*load));
	if (!load)
		return false;
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		mc_cpumask_set(AT(online), cpu);
		mc_cpumask_set(AT(idle), cpu);
	}
	for (unsigned int i = 0; i < TASKS; i++) {
		for (unsigned int cpu = 0; cpu < cpus; cpu++)
			if (i % 4 == 0 || (cpu + i) % 3)
				mc_cpumask_set(AT(tasks[i].affinity), cpu);
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
	size_t masks = (TASKS + 2) * (KIND > 1 ? sizeof(mask_var_t) : mc_cpumask_size());
	double ns;

	if (KIND > 1 && cpus > KIND) {
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
	       masks + sizeof(tasks) - (KIND > 1 ? sizeof(mask_var_t) * TASKS : 0));
	return 0;
}
