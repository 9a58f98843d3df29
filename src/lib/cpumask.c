// SPDX-License-Identifier: MIT
/*
 * cpumask.c - masks wider than a word: what the inline functions of cpumask.h call.
 *
 * Invariants: a mask's unused tail bits are 0; word is `bits` unless the mask is read-only. Same
 * sizes, the usual case, go to the vector code; where sizes differ each word is fetched with its
 * bounds checked. Called by programs through the inline functions, by cpulist.c and by the
 * topology.
 */
#include <string.h>
#include "arch/mask.h"
#include "internal.h"

static unsigned int words(const struct mc_cpumask *mask)
{
	return (mask->nbits + 63) / 64;
}

/* Word i of a mask, 0 past its end. */
static uint64_t get(const struct mc_cpumask *mask, unsigned int i)
{
	return i < words(mask) ? mask->word[i] : 0;
}

static bool same2(const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	return mc_likely(a->nbits == b->nbits);
}

static bool same3(const struct mc_cpumask *a, const struct mc_cpumask *b,
		  const struct mc_cpumask *c)
{
	return mc_likely(a->nbits == b->nbits && a->nbits == c->nbits);
}

static void trim(struct mc_cpumask *mask)
{
	mask->bits[words(mask) - 1] &= mask->tail;
}

/* Masks of several sizes: rare, and out of the way so that the usual case needs no stack frame. */
#define MIXED(name, expression)                                      \
	__attribute__((noinline, cold)) static bool name(MC_DST_AB_) \
	{                                                            \
		for (unsigned int i = 0; i < words(dst); i++) {      \
			uint64_t x = get(a, i), y = get(b, i);       \
			dst->bits[i] = (expression);                 \
		}                                                    \
		trim(dst);                                           \
		return !mc_cpumask_empty(dst);                       \
	}
MIXED(mixed_and, x &y)
MIXED(mixed_or, x | y)
MIXED(mixed_xor, x ^ y)
MIXED(mixed_andnot, x & ~y)

bool mc_cpumask_and_wide_(MC_DST_AB_)
{
	if (same3(dst, a, b))
		return mc_mask_kernels()->and (dst->bits, a->word, b->word, words(dst));
	return mixed_and(dst, a, b);
}

void mc_cpumask_or_wide_(MC_DST_AB_)
{
	if (same3(dst, a, b))
		mc_mask_kernels()->or (dst->bits, a->word, b->word, words(dst));
	else
		mixed_or(dst, a, b);
}

void mc_cpumask_xor_wide_(MC_DST_AB_)
{
	if (same3(dst, a, b))
		mc_mask_kernels()->xor (dst->bits, a->word, b->word, words(dst));
	else
		mixed_xor(dst, a, b);
}

bool mc_cpumask_andnot_wide_(MC_DST_AB_)
{
	if (same3(dst, a, b))
		return mc_mask_kernels()->andnot(dst->bits, a->word, b->word, words(dst));
	return mixed_andnot(dst, a, b);
}

void mc_cpumask_not_wide_(struct mc_cpumask *dst, const struct mc_cpumask *src)
{
	for (unsigned int i = 0; i < words(dst); i++)
		dst->bits[i] = ~get(src, i);
	trim(dst);
}

void mc_cpumask_copy_wide_(struct mc_cpumask *dst, const struct mc_cpumask *src)
{
	unsigned int n = words(dst), from = words(src);

	if (same2(dst, src)) {
		memmove(dst->bits, src->word, n * sizeof(uint64_t));
		return;
	}
	if (n > from) {
		memset(dst->bits + from, 0, (n - from) * sizeof(uint64_t));
		n = from;
	}
	memmove(dst->bits, src->word, n * sizeof(uint64_t));
	trim(dst);
}

void mc_cpumask_setall_wide_(struct mc_cpumask *mask)
{
	unsigned int last = words(mask) - 1;

	/* Not all of it and then the tail: reading what a wide store just wrote may stall. */
	memset(mask->bits, 0xff, last * sizeof(uint64_t));
	mask->bits[last] = mask->tail;
}

/* Sets (or clears) bits first .. last, both in the mask. */
static void range(struct mc_cpumask *mask, unsigned int first, unsigned int last, bool value)
{
	unsigned int i = first / 64, end = last / 64;
	uint64_t low = ~UINT64_C(0) << first % 64, high = ~UINT64_C(0) >> (63 - last % 64);

	if (i == end)
		low &= high;
	if (value)
		mask->bits[i] |= low;
	else
		mask->bits[i] &= ~low;
	if (i == end)
		return;
	if (end - i > 1)
		memset(mask->bits + i + 1, value ? 0xff : 0, (end - i - 1) * sizeof(uint64_t));
	if (value)
		mask->bits[end] |= high;
	else
		mask->bits[end] &= ~high;
}

static void clipped_range(struct mc_cpumask *mask, unsigned int first, unsigned int count,
			  bool value)
{
	if (!count || first >= mask->nbits)
		return;
	if (count > mask->nbits - first)
		count = mask->nbits - first;
	range(mask, first, first + count - 1, value);
}

void mc_cpumask_set_range(struct mc_cpumask *mask, unsigned int first, unsigned int count)
{
	clipped_range(mask, first, count, true);
}

void mc_cpumask_clear_range(struct mc_cpumask *mask, unsigned int first, unsigned int count)
{
	clipped_range(mask, first, count, false);
}

/* Does `expression` hold a bit in any of the first n words? */
#define MIXED_TEST(name, count, expression)                      \
	__attribute__((noinline, cold)) static bool name(MC_AB_) \
	{                                                        \
		for (unsigned int i = 0; i < (count); i++) {     \
			uint64_t x = get(a, i), y = get(b, i);   \
                                                                 \
			if (expression)                          \
				return true;                     \
		}                                                \
		return false;                                    \
	}
MIXED_TEST(mixed_differ, words(a) > words(b) ? words(a) : words(b), x != y)
MIXED_TEST(mixed_extra, words(a), x & ~y)
MIXED_TEST(mixed_common, words(a), x &y)

/* On a line of its own: what counts is how early the loads of the caller's next operation come. */
__attribute__((aligned(64))) bool mc_cpumask_equal_heads_(MC_AB_, uint64_t head_a, uint64_t head_b)
{
#if defined(__x86_64__)
	/* No load but the words': where they are and what code may be used the heads tell. */
	if (mc_likely_((uint32_t)head_a == (uint32_t)head_b &&
		       (head_a & head_b & (uint64_t)MC_MASK_WIDE_ << 32)))
		return mc_mask_equal_avx512(a->bits, b->bits, ((uint32_t)head_a + 63) / 64);
#else
	(void)head_a;
	(void)head_b;
#endif
	return mc_cpumask_equal_wide_(a, b);
}

bool mc_cpumask_equal_wide_(MC_AB_)
{
	if (same2(a, b))
		return mc_mask_kernels()->equal(a->word, b->word, words(a));
	return !mixed_differ(a, b);
}

bool mc_cpumask_subset_wide_(MC_AB_)
{
	if (same2(a, b))
		return mc_mask_kernels()->subset(a->word, b->word, words(a));
	return !mixed_extra(a, b);
}

bool mc_cpumask_intersects_wide_(MC_AB_)
{
	if (same2(a, b))
		return mc_mask_kernels()->intersects(a->word, b->word, words(a));
	return mixed_common(a, b);
}

bool mc_cpumask_full_wide_(const struct mc_cpumask *mask)
{
	return mc_cpumask_next_zero_wide_(0, mask) >= mask->nbits;
}

unsigned int mc_cpumask_weight_wide_(const struct mc_cpumask *mask)
{
	return mc_mask_kernels()->weight(mask->word, words(mask));
}

unsigned int mc_cpumask_weight_and_wide_(MC_AB_)
{
	unsigned int n = 0;

	if (same2(a, b))
		return mc_mask_kernels()->weight_and(a->word, b->word, words(a));
	for (unsigned int i = 0; i < words(a); i++)
		n += mc_popcount_(a->word[i] & get(b, i));
	return n;
}

unsigned int mc_cpumask_weight_andnot_wide_(MC_AB_)
{
	unsigned int n = 0;

	if (same2(a, b))
		return mc_mask_kernels()->weight_andnot(a->word, b->word, words(a));
	for (unsigned int i = 0; i < words(a); i++)
		n += mc_popcount_(a->word[i] & ~get(b, i));
	return n;
}

/* How many words a search looks at by itself before it calls the vector code: the next bit is most
 * often near. */
enum { NEAR = 4 };

unsigned int mc_cpumask_next_wide_(unsigned int from, const struct mc_cpumask *mask)
{
	unsigned int n = words(mask), i = from / 64, near;
	uint64_t w;

	if (i >= n)
		return mask->nbits;
	w = mask->word[i] & ~UINT64_C(0) << from % 64;
	near = n - i > NEAR ? i + NEAR : n;
	while (!w) {
		if (++i == near) {
			if (i == n)
				return mask->nbits;
			i += (unsigned int)mc_mask_kernels()->scan(mask->word + i, n - i);
			if (i == n)
				return mask->nbits;
			near = n;
		}
		w = mask->word[i];
	}
	return i * 64 + (unsigned int)__builtin_ctzll(w);
}

/* The other searches: word i of what is searched for is `expression`. */
#define SEARCH(n, none, expression)                                               \
	do {                                                                      \
		unsigned int i = from / 64;                                       \
		uint64_t keep = ~UINT64_C(0) << from % 64;                        \
                                                                                  \
		for (; i < (n); i++, keep = ~UINT64_C(0)) {                       \
			uint64_t w = (expression)&keep;                           \
                                                                                  \
			if (w)                                                    \
				return i * 64 + (unsigned int)__builtin_ctzll(w); \
		}                                                                 \
		return none;                                                      \
	} while (0)

unsigned int mc_cpumask_next_zero_wide_(unsigned int from, const struct mc_cpumask *mask)
{
	unsigned int n = words(mask), i = from / 64, cpu;
	uint64_t w;

	if (i >= n)
		return mask->nbits;
	w = ~mask->word[i] & ~UINT64_C(0) << from % 64;
	if (!w && ++i < n) {
		i += (unsigned int)mc_mask_kernels()->scan_full(mask->word + i, n - i);
		w = i < n ? ~mask->word[i] : 0;
	}
	if (!w)
		return mask->nbits;
	/* The unused bits of the last word look like zeros. */
	cpu = i * 64 + (unsigned int)__builtin_ctzll(w);
	return cpu < mask->nbits ? cpu : mask->nbits;
}

unsigned int mc_cpumask_next_and_wide_(unsigned int from, MC_AB_)
{
	unsigned int n = words(a->nbits < b->nbits ? a : b);

	SEARCH(n, a->nbits, a->word[i] & b->word[i]);
}

unsigned int mc_cpumask_next_andnot_wide_(unsigned int from, MC_AB_)
{
	unsigned int n = words(a), m = words(b);

	SEARCH(n, a->nbits, a->word[i] & ~(i < m ? b->word[i] : 0));
}

unsigned int mc_cpumask_last_wide_(const struct mc_cpumask *mask)
{
	for (unsigned int i = words(mask); i-- > 0;)
		if (mask->word[i])
			return i * 64 + 63 - (unsigned int)__builtin_clzll(mask->word[i]);
	return mask->nbits;
}
