/* SPDX-License-Identifier: MIT */
/*
 * inline/cpumask.h - the bodies of cpumask.h's hot paths: one test of the size, one word of work;
 * wider masks go out of line to the mc_*_wide_ functions. Each of these functions is in the library
 * as well, for callers that take its address.
 *
 * Why one test suffices: word 0 of every mask, also of read-only ones, is bits[0], and its unused
 * bits are 0. So a narrow result needs nothing but the operands' word 0, whatever their sizes are,
 * and its own tail.
 */
#ifndef MANYCORE_CPUMASK_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_CPUMASK_H
#define MANYCORE_INLINE_CPUMASK_H

/* cpumask_inline.c sets this to build the exported symbols from the same text. */
#ifndef MC_INLINE_
#define MC_INLINE_ extern __inline__ __attribute__((gnu_inline, always_inline, artificial))
#endif
/* Not static: inline functions with external linkage may not call static ones. Always inlined, so
 * there is no symbol. */
#define MC_HELPER_ extern __inline__ __attribute__((gnu_inline, always_inline, artificial))
#define mc_likely_(x) __builtin_expect(!!(x), 1)
/* Out of the way altogether, not merely behind. */
#define mc_never_(x) __builtin_expect_with_probability(!!(x), 0, 1.0)

MC_BEGIN_DECLS

/* WIDE: words behind the head, more than 512 CPUs, and the machine has AVX-512. The bits from
 * LAST_SHIFT on: see mc_medium_last_(). */
enum { MC_MASK_HEAP_ = 1, MC_MASK_SHIFTED_ = 2, MC_MASK_CONST_ = 4, MC_MASK_WIDE_ = 8 };
enum { MC_MASK_LAST_SHIFT_ = 8 };

#define MC_DST_AB_ struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b
#define MC_AB_ const struct mc_cpumask *a, const struct mc_cpumask *b
MC_API bool mc_cpumask_and_wide_(MC_DST_AB_);
MC_API void mc_cpumask_or_wide_(MC_DST_AB_);
MC_API void mc_cpumask_xor_wide_(MC_DST_AB_);
MC_API bool mc_cpumask_andnot_wide_(MC_DST_AB_);
MC_API void mc_cpumask_not_wide_(struct mc_cpumask *dst, const struct mc_cpumask *src);
MC_API void mc_cpumask_copy_wide_(struct mc_cpumask *dst, const struct mc_cpumask *src);
MC_API void mc_cpumask_setall_wide_(struct mc_cpumask *mask);
MC_API bool mc_cpumask_equal_wide_(MC_AB_);
/* The same for a caller that has read both masks' heads: mc_head_(). */
MC_API bool mc_cpumask_equal_heads_(MC_AB_, uint64_t head_a, uint64_t head_b);
MC_API bool mc_cpumask_subset_wide_(MC_AB_);
MC_API bool mc_cpumask_intersects_wide_(MC_AB_);
MC_API bool mc_cpumask_full_wide_(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_weight_wide_(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_weight_and_wide_(MC_AB_);
MC_API unsigned int mc_cpumask_weight_andnot_wide_(MC_AB_);
MC_API unsigned int mc_cpumask_next_wide_(unsigned int from, const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_next_zero_wide_(unsigned int from, const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_next_and_wide_(unsigned int from, MC_AB_);
MC_API unsigned int mc_cpumask_next_andnot_wide_(unsigned int from, MC_AB_);
MC_API unsigned int mc_cpumask_last_wide_(const struct mc_cpumask *mask);

MC_HELPER_ bool mc_narrow_(const struct mc_cpumask *mask)
{
	return mc_likely_(mask->nbits <= 64);
}

/* The size, in the lower half, and the flags: one load. */
MC_HELPER_ uint64_t mc_head_(const struct mc_cpumask *mask)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint64_t head;

	__builtin_memcpy(&head, mask, sizeof(head));
	return head;
#else
	return (uint64_t)mask->flags << 32 | mask->nbits;
#endif
}

MC_HELPER_ uint64_t mc_bit_(unsigned int cpu)
{
	return UINT64_C(1) << (cpu & 63);
}

/* Without a popcount instruction the compiler would call libgcc's table: slower than this. */
MC_HELPER_ unsigned int mc_popcount_(uint64_t w)
{
#if defined(__POPCNT__) || !(defined(__x86_64__) || defined(__i386__))
	return (unsigned int)__builtin_popcountll(w);
#else
	w -= w >> 1 & UINT64_C(0x5555555555555555);
	w = (w & UINT64_C(0x3333333333333333)) + (w >> 2 & UINT64_C(0x3333333333333333));
	w = (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned int)(w * UINT64_C(0x0101010101010101) >> 56);
#endif
}

/* The lowest bit of w, or none. */
MC_HELPER_ unsigned int mc_lowest_(uint64_t w, unsigned int none)
{
	return w ? (unsigned int)__builtin_ctzll(w) : none;
}

MC_END_DECLS
#include "short.h"
MC_BEGIN_DECLS

/* ---- one CPU: masks that may be changed have all their words behind the head
 * --------------------------------------- */

MC_INLINE_ void mc_cpumask_set(struct mc_cpumask *mask, unsigned int cpu)
{
	if (mc_likely_(cpu < mask->nbits))
		mask->bits[cpu / 64] |= mc_bit_(cpu);
}

MC_INLINE_ void mc_cpumask_clear(struct mc_cpumask *mask, unsigned int cpu)
{
	if (mc_likely_(cpu < mask->nbits))
		mask->bits[cpu / 64] &= ~mc_bit_(cpu);
}

MC_INLINE_ void mc_cpumask_assign(struct mc_cpumask *mask, unsigned int cpu, bool value)
{
	if (mc_likely_(cpu < mask->nbits))
		mask->bits[cpu / 64] =
			(mask->bits[cpu / 64] & ~mc_bit_(cpu)) | (uint64_t)value << (cpu & 63);
}

MC_INLINE_ bool mc_cpumask_test(const struct mc_cpumask *mask, unsigned int cpu)
{
	return mc_likely_(cpu < mask->nbits) && (mask->word[cpu / 64] >> (cpu & 63) & 1);
}

MC_INLINE_ bool mc_cpumask_test_and_set(struct mc_cpumask *mask, unsigned int cpu)
{
	bool was = mc_cpumask_test(mask, cpu);

	mc_cpumask_set(mask, cpu);
	return was;
}

MC_INLINE_ bool mc_cpumask_test_and_clear(struct mc_cpumask *mask, unsigned int cpu)
{
	bool was = mc_cpumask_test(mask, cpu);

	mc_cpumask_clear(mask, cpu);
	return was;
}

MC_INLINE_ void mc_cpumask_set_atomic(struct mc_cpumask *mask, unsigned int cpu)
{
	if (mc_likely_(cpu < mask->nbits))
		__atomic_fetch_or(&mask->bits[cpu / 64], mc_bit_(cpu), __ATOMIC_RELAXED);
}

MC_INLINE_ void mc_cpumask_clear_atomic(struct mc_cpumask *mask, unsigned int cpu)
{
	if (mc_likely_(cpu < mask->nbits))
		__atomic_fetch_and(&mask->bits[cpu / 64], ~mc_bit_(cpu), __ATOMIC_RELAXED);
}

MC_INLINE_ bool mc_cpumask_test_atomic(const struct mc_cpumask *mask, unsigned int cpu)
{
	return mc_likely_(cpu < mask->nbits) &&
	       (__atomic_load_n(&mask->word[cpu / 64], __ATOMIC_RELAXED) >> (cpu & 63) & 1);
}

MC_INLINE_ bool mc_cpumask_test_and_set_atomic(struct mc_cpumask *mask, unsigned int cpu)
{
	return mc_likely_(cpu < mask->nbits) &&
	       (__atomic_fetch_or(&mask->bits[cpu / 64], mc_bit_(cpu), __ATOMIC_SEQ_CST) >>
			(cpu & 63) &
		1);
}

MC_INLINE_ bool mc_cpumask_test_and_clear_atomic(struct mc_cpumask *mask, unsigned int cpu)
{
	return mc_likely_(cpu < mask->nbits) &&
	       (__atomic_fetch_and(&mask->bits[cpu / 64], ~mc_bit_(cpu), __ATOMIC_SEQ_CST) >>
			(cpu & 63) &
		1);
}

/* ---- whole masks ----------------------------------------------------------------------------- */

MC_INLINE_ void mc_cpumask_zero(struct mc_cpumask *mask)
{
	if (mc_narrow_(mask))
		mask->bits[0] = 0;
	else
		__builtin_memset(mask->bits, 0, (mask->nbits + 63) / 64 * sizeof(uint64_t));
}

MC_INLINE_ void mc_cpumask_setall(struct mc_cpumask *mask)
{
	if (mc_narrow_(mask))
		mask->bits[0] = mask->tail;
	else
		mc_cpumask_setall_wide_(mask);
}

MC_INLINE_ void mc_cpumask_copy(struct mc_cpumask *dst, const struct mc_cpumask *src)
{
	if (mc_narrow_(dst))
		dst->bits[0] = src->bits[0] & dst->tail;
	else if (mc_likely_(dst->nbits == src->nbits))
		__builtin_memmove(dst->bits, src->word, (dst->nbits + 63) / 64 * sizeof(uint64_t));
	else
		mc_cpumask_copy_wide_(dst, src);
}

MC_INLINE_ bool mc_cpumask_and(MC_DST_AB_)
{
	if (mc_narrow_(dst))
		return (dst->bits[0] = a->bits[0] & b->bits[0] & dst->tail) != 0;
	return mc_beyond_and_(dst, a, b);
}

MC_INLINE_ void mc_cpumask_or(MC_DST_AB_)
{
	if (mc_narrow_(dst))
		dst->bits[0] = (a->bits[0] | b->bits[0]) & dst->tail;
	else
		(void)mc_beyond_or_(dst, a, b);
}

MC_INLINE_ void mc_cpumask_xor(MC_DST_AB_)
{
	if (mc_narrow_(dst))
		dst->bits[0] = (a->bits[0] ^ b->bits[0]) & dst->tail;
	else
		(void)mc_beyond_xor_(dst, a, b);
}

MC_INLINE_ bool mc_cpumask_andnot(MC_DST_AB_)
{
	if (mc_narrow_(dst))
		return (dst->bits[0] = a->bits[0] & ~b->bits[0] & dst->tail) != 0;
	return mc_beyond_andnot_(dst, a, b);
}

MC_INLINE_ void mc_cpumask_not(struct mc_cpumask *dst, const struct mc_cpumask *src)
{
	if (mc_narrow_(dst))
		dst->bits[0] = ~src->bits[0] & dst->tail;
	else
		mc_cpumask_not_wide_(dst, src);
}

/* Sizes that are both at most 64 but whose OR is not go the long way: right, and rare. */
MC_INLINE_ bool mc_cpumask_equal(MC_AB_)
{
	uint64_t head_a = mc_head_(a), head_b = mc_head_(b);

	if (mc_likely_((uint32_t)(head_a | head_b) <= 64))
		return a->bits[0] == b->bits[0];
	return mc_beyond_equal_(a, b, head_a, head_b);
}

MC_INLINE_ bool mc_cpumask_subset(MC_AB_)
{
	if (mc_narrow_(a))
		return !(a->bits[0] & ~b->bits[0]);
	return mc_cpumask_subset_wide_(a, b);
}

MC_INLINE_ bool mc_cpumask_intersects(MC_AB_)
{
	if (mc_narrow_(a))
		return (a->bits[0] & b->bits[0]) != 0;
	return mc_cpumask_intersects_wide_(a, b);
}

MC_INLINE_ bool mc_cpumask_full(const struct mc_cpumask *mask)
{
	if (mc_narrow_(mask))
		return mask->bits[0] == mask->tail;
	return mc_cpumask_full_wide_(mask);
}

MC_INLINE_ unsigned int mc_cpumask_weight(const struct mc_cpumask *mask)
{
	if (mc_narrow_(mask))
		return mc_popcount_(mask->bits[0]);
	return mc_cpumask_weight_wide_(mask);
}

MC_INLINE_ unsigned int mc_cpumask_weight_and(MC_AB_)
{
	if (mc_narrow_(a))
		return mc_popcount_(a->bits[0] & b->bits[0]);
	return mc_cpumask_weight_and_wide_(a, b);
}

MC_INLINE_ unsigned int mc_cpumask_weight_andnot(MC_AB_)
{
	if (mc_narrow_(a))
		return mc_popcount_(a->bits[0] & ~b->bits[0]);
	return mc_cpumask_weight_andnot_wide_(a, b);
}

MC_END_DECLS

#include "search.h"
#include "iterate.h"
#include "var.h"

#endif /* MANYCORE_INLINE_CPUMASK_H */
