// SPDX-License-Identifier: MIT
/* arch/mask.c - which table of arch/mask.h this CPU gets: no constructor, no lock; racing first
 * calls agree. */
#include <manycore/cpumask.h>
#include "arch/mask.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* XCR0: has the system switched the state on that AVX (bits 1, 2) and AVX-512 (5 to 7) need? */
static uint64_t enabled_state(void)
{
	uint32_t low, high;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* 2: AVX-512 with VPOPCNTDQ, 1: AVX2, 0: neither. AVX-512 without VPOPCNTDQ is left alone: those
 * CPUs lower their clock for it, which a few mask operations don't earn back. */
static int level(void)
{
	unsigned int a, b, c, d;
	uint64_t state;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
		return 0;
	state = enabled_state();
	if ((state & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
		return 0;
	if ((state & 0xe0) == 0xe0 && (b & bit_AVX512F) && (b & bit_AVX512VL) &&
	    (c & bit_AVX512VPOPCNTDQ))
		return 2;
	return 1;
}

const struct mc_mask_kernels *mc_mask_kernels_usable(unsigned int i)
{
	static const struct mc_mask_kernels *const table[] = {&mc_mask_avx512, &mc_mask_avx2,
							      &mc_mask_generic};

	i += 2 - (unsigned int)level();
	return i < 3 ? table[i] : NULL;
}

#elif defined(__aarch64__)

/* NEON is part of the architecture. */
const struct mc_mask_kernels *mc_mask_kernels_usable(unsigned int i)
{
	return i == 0 ? &mc_mask_neon : i == 1 ? &mc_mask_generic : NULL;
}

#else

const struct mc_mask_kernels *mc_mask_kernels_usable(unsigned int i)
{
	return i == 0 ? &mc_mask_generic : NULL;
}

#endif

/* ---- the table before the first call: each function chooses and hands on
 * ------------------------------------------- */

static const struct mc_mask_kernels *choose(void)
{
	const struct mc_mask_kernels *k = mc_mask_kernels_usable(0);

	__atomic_store_n(&mc_mask_chosen, k, __ATOMIC_RELAXED);
	return k;
}

#define FIRST3(type, name)                                                                    \
	static type first_##name(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n) \
	{                                                                                     \
		return choose()->name(d, a, b, n);                                            \
	}
#define FIRST2(type, name)                                                       \
	static type first_##name(const uint64_t *a, const uint64_t *b, size_t n) \
	{                                                                        \
		return choose()->name(a, b, n);                                  \
	}
#define FIRST1(type, name)                                    \
	static type first_##name(const uint64_t *a, size_t n) \
	{                                                     \
		return choose()->name(a, n);                  \
	}
FIRST3(bool, and)
FIRST3(void, or)
FIRST3(void, xor)
FIRST3(bool, andnot)
FIRST2(bool, equal)
FIRST2(bool, subset)
FIRST2(bool, intersects)
FIRST1(unsigned int, weight)
FIRST2(unsigned int, weight_and)
FIRST2(unsigned int, weight_andnot)
FIRST1(size_t, scan)
FIRST1(size_t, scan_full)

static const struct mc_mask_kernels first = {
	.name = "not chosen yet",
	.and = first_and,
	.or = first_or,
	.xor = first_xor,
	.andnot = first_andnot,
	.equal = first_equal,
	.subset = first_subset,
	.intersects = first_intersects,
	.weight = first_weight,
	.weight_and = first_weight_and,
	.weight_andnot = first_weight_andnot,
	.scan = first_scan,
	.scan_full = first_scan_full,
};

const struct mc_mask_kernels *mc_mask_chosen = &first;

unsigned int mc_mask_flags(unsigned int nbits)
{
#if defined(__x86_64__)
	if (nbits > 256) {
		const struct mc_mask_kernels *k = mc_mask_kernels();

		if (k == &first)
			k = choose();
		if (nbits > 512)
			return k == &mc_mask_avx512 ? MC_MASK_WIDE_ : 0;
		if (k != &mc_mask_generic)
			return ((nbits + 63) / 64 * 8 - 32) << MC_MASK_LAST_SHIFT_;
	}
#endif
	(void)nbits;
	return 0;
}
