/* SPDX-License-Identifier: MIT */
/*
 * inline/var.h - MC_CPUMASK_VAR of cpumask.h: a mask on the stack up to MC_STACK_BITS_, else on the
 * heap, freed at the end of its scope.
 */
#ifndef MANYCORE_CPUMASK_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_VAR_H
#define MANYCORE_INLINE_VAR_H

MC_BEGIN_DECLS

enum { MC_STACK_BITS_ = 1024 };
union mc_cpumask_stack_ {
	struct mc_cpumask mask;
	uint64_t room[3 + MC_STACK_BITS_ / 64];
};

MC_HELPER_ struct mc_cpumask *mc_cpumask_var_init_(union mc_cpumask_stack_ *stack,
						   unsigned int nbits)
{
	if (mc_likely_(nbits - 1 < 64)) {
		stack->mask.nbits = nbits;
		stack->mask.flags = 0;
		stack->mask.tail = ~UINT64_C(0) >> (64 - nbits);
		stack->mask.word = stack->mask.bits;
		stack->mask.bits[0] = 0;
		return &stack->mask;
	}
	return nbits <= MC_STACK_BITS_ ? mc_cpumask_init(stack, nbits)
				       : mc_cpumask_alloc_bits(nbits);
}

MC_HELPER_ void mc_cpumask_var_free_(struct mc_cpumask *const *mask)
{
	if (*mask && ((*mask)->flags & MC_MASK_HEAP_))
		mc_cpumask_free(*mask);
}

MC_END_DECLS

#endif /* MANYCORE_INLINE_VAR_H */
