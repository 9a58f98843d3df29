/* SPDX-License-Identifier: MIT */
/*
 * inline/short.h - and, or, xor and andnot of masks of 2 to 4 words (65 to 256 CPUs), inline: such
 * a mask is done in less time than a call takes.
 *
 * Two vectors of two words, which every x86-64 and aarch64 has (elsewhere the compiler splits
 * them): the first two words and the last two. With two or three words they overlap; all is loaded
 * before the first is stored, so that dst may be a or b. Not with -Os: there the call is what is
 * wanted. Wider ones are better off with the library's vectors: stores of 16 bytes are what such a
 * loop waits for.
 */
#ifndef MANYCORE_CPUMASK_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_SHORT_H
#define MANYCORE_INLINE_SHORT_H

#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
enum { MC_SHORT_BITS_ = 256 };
#else
enum { MC_SHORT_BITS_ = 0 };
#endif

MC_BEGIN_DECLS

/* Two words, as aligned as one. */
typedef uint64_t mc_pair_ __attribute__((vector_size(16), aligned(8), may_alias));
#define mc_pair_at_(p) (*(const mc_pair_ *)(p))
#define mc_pair_put_(p, v) ((void)(*(mc_pair_ *)(p) = (v)))

/* Defines mc_short_NAME_(dst, a, b), for masks of one size for which mc_is_short_() holds. Gives
 * whether a bit is left. */
#define MC_SHORT_(name, OP)                                                                   \
	MC_HELPER_ bool mc_short_##name##_(MC_DST_AB_)                                        \
	{                                                                                     \
		size_t n = (dst->nbits + 63) / 64;                                            \
		const uint64_t *x = a->word, *y = b->word;                                    \
		mc_pair_ first = OP(mc_pair_at_(x), mc_pair_at_(y));                          \
		mc_pair_ last = OP(mc_pair_at_(x + n - 2), mc_pair_at_(y + n - 2));           \
		mc_pair_ any = first | last;                                                  \
                                                                                              \
		mc_pair_put_(dst->bits, first);                                               \
		mc_pair_put_(dst->bits + n - 2, last);                                        \
		return (any[0] | any[1]) != 0;                                                \
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

MC_END_DECLS

#endif /* MANYCORE_INLINE_SHORT_H */
