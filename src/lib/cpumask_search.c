// SPDX-License-Identifier: MIT
/* cpumask_search.c - the searches of cpumask.h that have no inline half: wrap, nth, any. */
#include "internal.h"

unsigned int mc_cpumask_next_wrap(int cpu, const struct mc_cpumask *mask)
{
	unsigned int next = mc_cpumask_next(cpu, mask);

	return next < mask->nbits ? next : mc_cpumask_first(mask);
}

/* The n-th set bit of a word that has it: halves the word until one bit is left. */
static unsigned int nth_bit(uint64_t w, unsigned int n)
{
	unsigned int at = 0;

	for (unsigned int half = 32; half; half /= 2) {
		unsigned int below = mc_popcount_(w & ((UINT64_C(1) << half) - 1));

		if (n >= below) {
			n -= below;
			w >>= half;
			at += half;
		}
	}
	return at;
}

unsigned int mc_cpumask_nth(unsigned int n, const struct mc_cpumask *mask)
{
	for (unsigned int i = 0; i < (mask->nbits + 63) / 64; i++) {
		unsigned int here = mc_popcount_(mask->word[i]);

		if (n < here)
			return i * 64 + nth_bit(mask->word[i], n);
		n -= here;
	}
	return mask->nbits;
}

unsigned int mc_cpumask_any_but(const struct mc_cpumask *mask, unsigned int cpu)
{
	unsigned int found = mc_cpumask_first(mask);

	return found == cpu ? mc_cpumask_next((int)cpu, mask) : found;
}

/* Where this thread's last deal ended. The kernel has it per CPU; a program's threads may move at
 * any time. */
static __thread unsigned int dealt;

unsigned int mc_cpumask_any_distribute(const struct mc_cpumask *mask)
{
	unsigned int cpu = mc_cpumask_next_wrap((int)dealt, mask);

	if (cpu < mask->nbits)
		dealt = cpu;
	return cpu;
}

unsigned int mc_cpumask_any_and_distribute(const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	unsigned int cpu = mc_cpumask_next_and((int)dealt, a, b);

	if (cpu >= a->nbits)
		cpu = mc_cpumask_first_and(a, b);
	if (cpu < a->nbits)
		dealt = cpu;
	return cpu;
}
