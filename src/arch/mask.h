/* SPDX-License-Identifier: MIT */
/*
 * arch/mask.h - the word loops of wide masks, one table of functions for each instruction set.
 *
 * Contract of every function: n >= 1 words, 8-byte aligned; d may be a or b, but not overlap them
 * otherwise; nothing but the n words is read or written. Tails are the caller's care: inputs
 * without unused bits give outputs without.
 */
#ifndef MC_ARCH_MASK_H
#define MC_ARCH_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct mc_mask_kernels {
	const char *name;
	/* d[i] = a[i] OP b[i]; and, andnot: is any bit left? */
	bool (*and)(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n);
	void (* or)(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n);
	void (*xor)(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n);
	bool (*andnot)(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n);
	/* a == b; no bit in a & ~b; a bit in a & b. */
	bool (*equal)(const uint64_t *a, const uint64_t *b, size_t n);
	bool (*subset)(const uint64_t *a, const uint64_t *b, size_t n);
	bool (*intersects)(const uint64_t *a, const uint64_t *b, size_t n);
	/* Bits set in a, a & b, a & ~b. */
	unsigned int (*weight)(const uint64_t *a, size_t n);
	unsigned int (*weight_and)(const uint64_t *a, const uint64_t *b, size_t n);
	unsigned int (*weight_andnot)(const uint64_t *a, const uint64_t *b, size_t n);
	/* Index of the first word that is not 0, and that is not all ones; n: none. */
	size_t (*scan)(const uint64_t *a, size_t n);
	size_t (*scan_full)(const uint64_t *a, size_t n);
};

/* The table of a file whose functions are named k_and, k_or ... */
#define MC_MASK_TABLE(text)                       \
	{                                         \
		.name = (text),                   \
		.and = k_and,                     \
		.or = k_or,                       \
		.xor = k_xor,                     \
		.andnot = k_andnot,               \
		.equal = k_equal,                 \
		.subset = k_subset,               \
		.intersects = k_intersects,       \
		.weight = k_weight,               \
		.weight_and = k_weight_and,       \
		.weight_andnot = k_weight_andnot, \
		.scan = k_scan,                   \
		.scan_full = k_scan_full,         \
	}

extern const struct mc_mask_kernels mc_mask_generic;
#if defined(__x86_64__)
extern const struct mc_mask_kernels mc_mask_avx2, mc_mask_avx512;
#elif defined(__aarch64__)
extern const struct mc_mask_kernels mc_mask_neon;
#endif

/* The i-th table that this CPU can run, best first; NULL past the last. The last is the generic
 * one. */
const struct mc_mask_kernels *mc_mask_kernels_usable(unsigned int i);

/* The table in use; at first one whose functions choose, so that no caller has to test. Only tests
 * store to it otherwise: to run each table in turn. */
extern const struct mc_mask_kernels *mc_mask_chosen;

static inline const struct mc_mask_kernels *mc_mask_kernels(void)
{
	/* Relaxed: what it points to is constant. */
	return __atomic_load_n(&mc_mask_chosen, __ATOMIC_RELAXED);
}

#if defined(__x86_64__)
/* The AVX-512 table's equal(), for callers that know from a mask's flags that it may be used. */
bool mc_mask_equal_avx512(const uint64_t *a, const uint64_t *b, size_t n);
#endif

/* What the flags of a mask with its words behind its head tell of this CPU: for 257 to 512 bits
 * with AVX2 the place in bytes of the last vector of four words (MC_MASK_LAST_SHIFT_), above that
 * with AVX-512 MC_MASK_WIDE_, else 0. */
unsigned int mc_mask_flags(unsigned int nbits);

#pragma GCC visibility pop

#endif
