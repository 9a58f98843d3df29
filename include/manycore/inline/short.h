/* SPDX-License-Identifier: MIT */
/*
 * inline/short.h - and, or, xor, andnot and equal of masks of 2 to 4 words (65 to 256 CPUs),
 * inline: such a mask is done in less time than a call takes. On x86-64 with AVX2 also of 5 to 8
 * words.
 *
 * Two vectors of two words, which every x86-64 and aarch64 has (elsewhere the compiler splits
 * them): the first two words and the last two. With two or three words they overlap; all is loaded
 * before the first is stored, so that dst may be a or b. Not with -Os: there the call is what is
 * wanted. Wider ones are better off with larger vectors: stores of 16 bytes are what such a loop
 * waits for.
 */
#ifndef MANYCORE_CPUMASK_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_SHORT_H
#define MANYCORE_INLINE_SHORT_H

#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
enum { MC_SHORT_BITS_ = 256 };
#if defined(__x86_64__) && defined(__LP64__) && defined(__SSE2__)
#define MC_MEDIUM_INLINE_ 1
#endif
#else
enum { MC_SHORT_BITS_ = 0 };
#endif

/* The sanitizers that look at each load and store would not see those of assembly. */
#if defined(MC_MEDIUM_INLINE_) && !defined(__AVX2__)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef MC_MEDIUM_INLINE_
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#undef MC_MEDIUM_INLINE_
#endif
#endif
#endif

MC_BEGIN_DECLS

/* Two words, as aligned as one. */
typedef uint64_t mc_pair_ __attribute__((vector_size(16), aligned(8), may_alias));
#define mc_pair_at_(p) (*(const mc_pair_ *)(p))
#define mc_pair_put_(p, v) ((void)(*(mc_pair_ *)(p) = (v)))

/* Defines mc_short_NAME_(dst, a, b), for masks of one size for which mc_is_short_() holds. Gives
 * whether a bit is left. */
#define MC_SHORT_(name, OP)                                                         \
	MC_HELPER_ bool mc_short_##name##_(MC_DST_AB_)                              \
	{                                                                           \
		size_t n = (dst->nbits + 63) / 64;                                  \
		const uint64_t *x = a->word, *y = b->word;                          \
		mc_pair_ first = OP(mc_pair_at_(x), mc_pair_at_(y));                \
		mc_pair_ last = OP(mc_pair_at_(x + n - 2), mc_pair_at_(y + n - 2)); \
		mc_pair_ any = first | last;                                        \
                                                                                    \
		mc_pair_put_(dst->bits, first);                                     \
		mc_pair_put_(dst->bits + n - 2, last);                              \
		return (any[0] | any[1]) != 0;                                      \
	}
#define MC_OP_AND_(x, y) ((x) & (y))
#define MC_OP_OR_(x, y) ((x) | (y))
#define MC_OP_XOR_(x, y) ((x) ^ (y))
#define MC_OP_ANDNOT_(x, y) ((x) & ~(y))
MC_SHORT_(and, MC_OP_AND_)
MC_SHORT_(or, MC_OP_OR_)
MC_SHORT_(xor, MC_OP_XOR_)
MC_SHORT_(andnot, MC_OP_ANDNOT_)

MC_HELPER_ bool mc_is_short_(MC_DST_AB_)
{
	return mc_likely_(dst->nbits <= MC_SHORT_BITS_ &&
			  ((a->nbits ^ dst->nbits) | (b->nbits ^ dst->nbits)) == 0);
}

/* Where in a mask of 257 to 512 CPUs the last vector of four words begins, in bytes, if such
 * vectors may be used: the library has put it into the flags. Else 0. */
MC_HELPER_ size_t mc_medium_last_(const struct mc_cpumask *mask)
{
	return mask->flags >> MC_MASK_LAST_SHIFT_;
}

#ifdef MC_MEDIUM_INLINE_
#include "mask_x86_64.h"
#define MC_TRY_MEDIUM_(name)                                          \
	size_t last = mc_medium_last_(dst);                           \
                                                                      \
	if (last && a->nbits == dst->nbits && b->nbits == dst->nbits) \
		return mc_medium_##name##_(dst, a, b, last);
#else
#define MC_TRY_MEDIUM_(name)
#endif

/* Defines mc_beyond_NAME_(dst, a, b): where dst has more than a word. */
#define MC_BEYOND_(name, wide)                                \
	MC_HELPER_ bool mc_beyond_##name##_(MC_DST_AB_)       \
	{                                                     \
		if (mc_is_short_(dst, a, b))                  \
			return mc_short_##name##_(dst, a, b); \
		MC_TRY_MEDIUM_(name)                          \
		return wide;                                  \
	}
MC_BEYOND_(and, mc_cpumask_and_wide_(dst, a, b))
MC_BEYOND_(or, (mc_cpumask_or_wide_(dst, a, b), false))
MC_BEYOND_(xor, (mc_cpumask_xor_wide_(dst, a, b), false))
MC_BEYOND_(andnot, mc_cpumask_andnot_wide_(dst, a, b))

/* As mc_short_NAME_(). */
MC_HELPER_ bool mc_short_equal_(const uint64_t *x, const uint64_t *y, size_t n)
{
	mc_pair_ any = (mc_pair_at_(x) ^ mc_pair_at_(y)) |
		       (mc_pair_at_(x + n - 2) ^ mc_pair_at_(y + n - 2));

	return (any[0] | any[1]) == 0;
}

/* What wide masks cost is their loads, those of the heads among them (docs/design/cpumask.md): so
 * the heads are handed on. */
MC_HELPER_ bool mc_beyond_equal_(MC_AB_, uint64_t head_a, uint64_t head_b)
{
	uint32_t nbits = (uint32_t)head_a;

	if (nbits <= 2 * MC_SHORT_BITS_ && mc_likely_(nbits == (uint32_t)head_b)) {
		if (nbits <= MC_SHORT_BITS_)
			return mc_short_equal_(a->word, b->word, (nbits + 63) / 64);
#ifdef MC_MEDIUM_INLINE_
		if (head_a >> 32 >> MC_MASK_LAST_SHIFT_)
			return mc_medium_equal_(a, b, head_a >> 32 >> MC_MASK_LAST_SHIFT_);
#endif
	}
	return mc_cpumask_equal_heads_(a, b, head_a, head_b);
}

MC_END_DECLS

#endif /* MANYCORE_INLINE_SHORT_H */
