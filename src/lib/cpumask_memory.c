// SPDX-License-Identifier: MIT
/*
 * cpumask_memory.c - where masks live: heap, a caller's memory, views, the constant masks of one
 * CPU, arrays of the system.
 *
 * A heap mask above 256 bits is shifted within its allocation so that its words begin on a cache
 * line (the vector code then never touches two lines for one load); the flag says so to
 * mc_cpumask_free().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "arch/mask.h"
#include "internal.h"

enum { ALIGN = 64, ALIGN_ABOVE = 256 };
#define HEAD offsetof(struct mc_cpumask, bits)
#define SHIFT (ALIGN - HEAD)
#define MAX_BITS (UINT32_C(1) << 31)

_Static_assert(sizeof(((union mc_cpumask_cpuset *)0)->as.head_) == HEAD,
	       "the set lies on the words");
_Static_assert(HEAD < ALIGN, "room for the shift");

static unsigned int words(unsigned int nbits)
{
	return (nbits + 63) / 64;
}

size_t mc_cpumask_size_bits(unsigned int nbits)
{
	return HEAD + sizeof(uint64_t) * (nbits ? (size_t)words(nbits) : 1);
}

size_t mc_cpumask_size(void)
{
	return mc_cpumask_size_bits(mc_nr_cpu_ids());
}

static void fill_head(struct mc_cpumask *mask, unsigned int nbits, unsigned int flags,
		      uint64_t *word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	/* One store: mc_head_() reads both by one load, perhaps while they are on their way. */
	uint64_t head = (uint64_t)flags << 32 | nbits;

	memcpy(mask, &head, sizeof(head));
#else
	mask->nbits = nbits;
	mask->flags = flags;
#endif
	mask->tail = nbits ? ~UINT64_C(0) >> (nbits % 64 ? 64 - nbits % 64 : 0) : 0;
	mask->word = word;
}

struct mc_cpumask *mc_cpumask_init(void *memory, unsigned int nbits)
{
	struct mc_cpumask *mask = memory;

	fill_head(mask, nbits, mc_mask_flags(nbits), mask->bits);
	memset(mask->bits, 0, words(nbits) * sizeof(uint64_t));
	mask->bits[0] = 0; /* there also when nbits is 0 */
	return mask;
}

struct mc_cpumask *mc_cpumask_alloc_bits(unsigned int nbits)
{
	size_t size = mc_cpumask_size_bits(nbits);
	struct mc_cpumask *mask;
	char *memory;

	if (nbits > MAX_BITS) {
		errno = EINVAL;
		return NULL;
	}
	if (nbits <= ALIGN_ABOVE) {
		mask = malloc(size);
		if (!mask)
			return NULL;
		mc_cpumask_init(mask, nbits)->flags |= MC_MASK_HEAP_;
		return mask;
	}
	if (posix_memalign((void **)&memory, ALIGN, size + SHIFT)) {
		errno = ENOMEM;
		return NULL;
	}
	mask = mc_cpumask_init(memory + SHIFT, nbits);
	mask->flags |= MC_MASK_HEAP_ | MC_MASK_SHIFTED_;
	return mask;
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
	if (mask)
		free((char *)mask - (mask->flags & MC_MASK_SHIFTED_ ? SHIFT : 0));
}

const struct mc_cpumask *mc_cpumask_wrap(struct mc_cpumask *view, const void *word,
					 unsigned int nbits)
{
	fill_head(view, nbits, MC_MASK_CONST_, (uint64_t *)(uintptr_t)word);
	view->bits[0] = 0;
	if (nbits)
		memcpy(view->bits, word, sizeof(uint64_t));
	return view;
}

/* The system's masks are of longs: on 64-bit and on little-endian machines the same bytes as ours.
 */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && __SIZEOF_LONG__ != 8
#error "copying between masks and the system's arrays is not written for 32-bit big-endian machines"
#endif

int mc_cpumask_from_cpuset(struct mc_cpumask *mask, const void *set, size_t bytes)
{
	size_t n = bytes / sizeof(uint64_t), have = words(mask->nbits);
	const char *from = set;
	uint64_t w;

	if (!bytes || bytes % sizeof(uint64_t))
		return -EINVAL;
	for (size_t i = have ? have - 1 : 0; i < n; i++) {
		memcpy(&w, from + i * sizeof(w), sizeof(w));
		if (i >= have ? w : w & ~mask->tail)
			return -EOVERFLOW;
	}
	if (n > have)
		n = have;
	memcpy(mask->bits, set, n * sizeof(uint64_t));
	memset(mask->bits + n, 0, (have - n) * sizeof(uint64_t));
	return 0;
}

int mc_cpumask_to_cpuset(void *set, size_t bytes, const struct mc_cpumask *mask)
{
	size_t n = bytes / sizeof(uint64_t), have = words(mask->nbits);

	if (!bytes || bytes % sizeof(uint64_t))
		return -EINVAL;
	for (size_t i = n; i < have; i++)
		if (mask->word[i])
			return -EOVERFLOW;
	memcpy(set, mask->word, (n < have ? n : have) * sizeof(uint64_t));
	if (n > have)
		memset((char *)set + have * sizeof(uint64_t), 0, (n - have) * sizeof(uint64_t));
	return 0;
}
