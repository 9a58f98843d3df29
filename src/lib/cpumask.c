// SPDX-License-Identifier: MIT
/*
 * cpumask.c - masks of run-time size: memory, single bits, set algebra, searches.
 *
 * Invariant: bits past nbits in the last word are 0 after every operation. Operands of other sizes
 * than the result's are read as if cut or extended with zeros.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

enum { WORD_BITS = 64 };

static unsigned int words(unsigned int nbits)
{
	return nbits / WORD_BITS + !!(nbits % WORD_BITS);
}

static uint64_t tail(unsigned int nbits)
{
	return nbits % WORD_BITS ? (UINT64_C(1) << nbits % WORD_BITS) - 1 : ~UINT64_C(0);
}

/* Word i of a mask, 0 past its end. */
static uint64_t get(const struct mc_cpumask *mask, unsigned int i)
{
	return i < words(mask->nbits) ? mask->word[i] : 0;
}

static void trim(struct mc_cpumask *mask)
{
	if (mask->nbits)
		mask->word[words(mask->nbits) - 1] &= tail(mask->nbits);
}

size_t mc_cpumask_size_bits(unsigned int nbits)
{
	return sizeof(struct mc_cpumask) + (size_t)words(nbits) * sizeof(uint64_t);
}

size_t mc_cpumask_size(void)
{
	return mc_cpumask_size_bits(mc_nr_cpu_ids());
}

struct mc_cpumask *mc_cpumask_init(void *memory, unsigned int nbits)
{
	struct mc_cpumask *mask = memory;

	memset(memory, 0, mc_cpumask_size_bits(nbits));
	mask->nbits = nbits;
	mask->word = (uint64_t *)(mask + 1);
	return mask;
}

struct mc_cpumask *mc_cpumask_alloc_bits(unsigned int nbits)
{
	void *memory = malloc(mc_cpumask_size_bits(nbits));

	return memory ? mc_cpumask_init(memory, nbits) : NULL;
}

struct mc_cpumask *mc_cpumask_alloc(void)
{
	return mc_cpumask_alloc_bits(mc_nr_cpu_ids());
}

struct mc_cpumask *mc_cpumask_dup(const struct mc_cpumask *mask)
{
	struct mc_cpumask *copy = mc_cpumask_alloc_bits(mask->nbits);

	if (copy)
		mc_cpumask_copy(copy, mask);
	return copy;
}

void mc_cpumask_free(struct mc_cpumask *mask)
{
	free(mask);
}

void mc_cpumask_set(struct mc_cpumask *mask, unsigned int cpu)
{
	if (cpu < mask->nbits)
		mask->word[cpu / WORD_BITS] |= UINT64_C(1) << cpu % WORD_BITS;
}

void mc_cpumask_clear(struct mc_cpumask *mask, unsigned int cpu)
{
	if (cpu < mask->nbits)
		mask->word[cpu / WORD_BITS] &= ~(UINT64_C(1) << cpu % WORD_BITS);
}

bool mc_cpumask_test(const struct mc_cpumask *mask, unsigned int cpu)
{
	return cpu < mask->nbits && mask->word[cpu / WORD_BITS] >> cpu % WORD_BITS & 1;
}

void mc_cpumask_zero(struct mc_cpumask *mask)
{
	memset(mask->word, 0, words(mask->nbits) * sizeof(uint64_t));
}

void mc_cpumask_setall(struct mc_cpumask *mask)
{
	memset(mask->word, 0xff, words(mask->nbits) * sizeof(uint64_t));
	trim(mask);
}

void mc_cpumask_set_range(struct mc_cpumask *mask, unsigned int first, unsigned int count)
{
	for (unsigned int i = 0; i < count && i < mask->nbits - first && first < mask->nbits; i++)
		mc_cpumask_set(mask, first + i);
}

void mc_cpumask_copy(struct mc_cpumask *dst, const struct mc_cpumask *src)
{
	for (unsigned int i = 0; i < words(dst->nbits); i++)
		dst->word[i] = get(src, i);
	trim(dst);
}

bool mc_cpumask_and(struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	for (unsigned int i = 0; i < words(dst->nbits); i++)
		dst->word[i] = get(a, i) & get(b, i);
	trim(dst);
	return !mc_cpumask_empty(dst);
}

void mc_cpumask_or(struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	for (unsigned int i = 0; i < words(dst->nbits); i++)
		dst->word[i] = get(a, i) | get(b, i);
	trim(dst);
}

void mc_cpumask_xor(struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	for (unsigned int i = 0; i < words(dst->nbits); i++)
		dst->word[i] = get(a, i) ^ get(b, i);
	trim(dst);
}

bool mc_cpumask_andnot(struct mc_cpumask *dst, const struct mc_cpumask *a,
		       const struct mc_cpumask *b)
{
	for (unsigned int i = 0; i < words(dst->nbits); i++)
		dst->word[i] = get(a, i) & ~get(b, i);
	trim(dst);
	return !mc_cpumask_empty(dst);
}

static unsigned int longest(const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	return words(a->nbits > b->nbits ? a->nbits : b->nbits);
}

bool mc_cpumask_equal(const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	for (unsigned int i = 0; i < longest(a, b); i++)
		if (get(a, i) != get(b, i))
			return false;
	return true;
}

bool mc_cpumask_subset(const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	for (unsigned int i = 0; i < words(a->nbits); i++)
		if (a->word[i] & ~get(b, i))
			return false;
	return true;
}

bool mc_cpumask_intersects(const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	for (unsigned int i = 0; i < words(a->nbits); i++)
		if (a->word[i] & get(b, i))
			return true;
	return false;
}

bool mc_cpumask_empty(const struct mc_cpumask *mask)
{
	for (unsigned int i = 0; i < words(mask->nbits); i++)
		if (mask->word[i])
			return false;
	return true;
}

unsigned int mc_cpumask_weight(const struct mc_cpumask *mask)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < words(mask->nbits); i++)
		for (uint64_t w = mask->word[i]; w; w &= w - 1)
			n++;
	return n;
}

unsigned int mc_cpumask_first(const struct mc_cpumask *mask)
{
	return mc_cpumask_next(-1, mask);
}

unsigned int mc_cpumask_last(const struct mc_cpumask *mask)
{
	for (unsigned int i = words(mask->nbits); i-- > 0;)
		if (mask->word[i])
			return i * WORD_BITS + 63 - (unsigned int)__builtin_clzll(mask->word[i]);
	return mask->nbits;
}

unsigned int mc_cpumask_next(int cpu, const struct mc_cpumask *mask)
{
	unsigned int from = (unsigned int)cpu + 1, i = from / WORD_BITS;
	uint64_t w;

	if (from >= mask->nbits)
		return mask->nbits;
	for (w = mask->word[i] & ~UINT64_C(0) << from % WORD_BITS; !w; w = mask->word[i])
		if (++i >= words(mask->nbits))
			return mask->nbits;
	return i * WORD_BITS + (unsigned int)__builtin_ctzll(w);
}

unsigned int mc_cpumask_nth(unsigned int n, const struct mc_cpumask *mask)
{
	unsigned int cpu = mc_cpumask_first(mask);

	while (n-- && cpu < mask->nbits)
		cpu = mc_cpumask_next((int)cpu, mask);
	return cpu;
}
