/* SPDX-License-Identifier: MIT */
/*
 * inline/search.h - the searches of cpumask.h: masks of one word inline, and of wider ones what
 * word 0 answers.
 */
#ifndef MANYCORE_INLINE_CPUMASK_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_SEARCH_H
#define MANYCORE_INLINE_SEARCH_H

MC_BEGIN_DECLS

MC_INLINE_ unsigned int mc_cpumask_first(const struct mc_cpumask *mask)
{
	if (mc_likely_(mask->bits[0] != 0))
		return (unsigned int)__builtin_ctzll(mask->bits[0]);
	return mc_narrow_(mask) ? mask->nbits : mc_cpumask_next_wide_(64, mask);
}

MC_INLINE_ bool mc_cpumask_empty(const struct mc_cpumask *mask)
{
	return mc_cpumask_first(mask) >= mask->nbits;
}

MC_INLINE_ unsigned int mc_cpumask_first_zero(const struct mc_cpumask *mask)
{
	if (mc_narrow_(mask))
		return mc_lowest_(~mask->bits[0] & mask->tail, mask->nbits);
	return mc_cpumask_next_zero_wide_(0, mask);
}

MC_INLINE_ unsigned int mc_cpumask_first_and(MC_AB_)
{
	if (mc_narrow_(a))
		return mc_lowest_(a->bits[0] & b->bits[0], a->nbits);
	return mc_cpumask_next_and_wide_(0, a, b);
}

MC_INLINE_ unsigned int mc_cpumask_first_andnot(MC_AB_)
{
	if (mc_narrow_(a))
		return mc_lowest_(a->bits[0] & ~b->bits[0], a->nbits);
	return mc_cpumask_next_andnot_wide_(0, a, b);
}

MC_INLINE_ unsigned int mc_cpumask_last(const struct mc_cpumask *mask)
{
	if (mc_narrow_(mask))
		return mask->bits[0] ? 63u - (unsigned int)__builtin_clzll(mask->bits[0])
				     : mask->nbits;
	return mc_cpumask_last_wide_(mask);
}

MC_INLINE_ unsigned int mc_cpumask_next(int cpu, const struct mc_cpumask *mask)
{
	unsigned int from = (unsigned int)cpu + 1;

	if (from >= mask->nbits)
		return mask->nbits;
	if (mc_narrow_(mask))
		return mc_lowest_(mask->bits[0] & ~UINT64_C(0) << from, mask->nbits);
	return mc_cpumask_next_wide_(from, mask);
}

MC_INLINE_ unsigned int mc_cpumask_next_zero(int cpu, const struct mc_cpumask *mask)
{
	unsigned int from = (unsigned int)cpu + 1;

	if (from >= mask->nbits)
		return mask->nbits;
	if (mc_narrow_(mask))
		return mc_lowest_(~mask->bits[0] & mask->tail & ~UINT64_C(0) << from, mask->nbits);
	return mc_cpumask_next_zero_wide_(from, mask);
}

MC_INLINE_ unsigned int mc_cpumask_next_and(int cpu, MC_AB_)
{
	unsigned int from = (unsigned int)cpu + 1;

	if (from >= a->nbits)
		return a->nbits;
	if (mc_narrow_(a))
		return mc_lowest_(a->bits[0] & b->bits[0] & ~UINT64_C(0) << from, a->nbits);
	return mc_cpumask_next_and_wide_(from, a, b);
}

MC_INLINE_ unsigned int mc_cpumask_next_andnot(int cpu, MC_AB_)
{
	unsigned int from = (unsigned int)cpu + 1;

	if (from >= a->nbits)
		return a->nbits;
	if (mc_narrow_(a))
		return mc_lowest_(a->bits[0] & ~b->bits[0] & ~UINT64_C(0) << from, a->nbits);
	return mc_cpumask_next_andnot_wide_(from, a, b);
}

MC_END_DECLS

#endif /* MANYCORE_INLINE_SEARCH_H */
