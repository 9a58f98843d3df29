// SPDX-License-Identifier: MIT
/* generic/mask.c - arch/mask.h in plain C, for every machine; what the vector versions are tested
 * against. */
#include "arch/mask.h"

static bool k_and(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n)
{
	uint64_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= d[i] = a[i] & b[i];
	return any != 0;
}

static void k_or(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		d[i] = a[i] | b[i];
}

static void k_xor(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		d[i] = a[i] ^ b[i];
}

static bool k_andnot(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n)
{
	uint64_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= d[i] = a[i] & ~b[i];
	return any != 0;
}

static bool k_equal(const uint64_t *a, const uint64_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static bool k_subset(const uint64_t *a, const uint64_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] & ~b[i])
			return false;
	return true;
}

static bool k_intersects(const uint64_t *a, const uint64_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] & b[i])
			return true;
	return false;
}

/* Bits set in each byte of w. */
static uint64_t byte_counts(uint64_t w)
{
	w -= w >> 1 & UINT64_C(0x5555555555555555);
	w = (w & UINT64_C(0x3333333333333333)) + (w >> 2 & UINT64_C(0x3333333333333333));
	return (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}

static unsigned int sum_bytes(uint64_t w)
{
	return (unsigned int)(w * UINT64_C(0x0101010101010101) >> 56);
}

/* Counts stay in bytes for up to 31 words (31 * 8 < 256) before they are summed, and the sum of
 * eight such bytes must fit one too: so by 16-bit halves. */
#define WEIGHT(expression)                                                           \
	unsigned int total = 0;                                                      \
                                                                                     \
	for (size_t i = 0; i < n;) {                                                 \
		size_t end = n - i > 31 ? i + 31 : n;                                \
		uint64_t bytes = 0;                                                  \
                                                                                     \
		for (; i < end; i++)                                                 \
			bytes += byte_counts(expression);                            \
		bytes = (bytes & UINT64_C(0x00ff00ff00ff00ff)) +                     \
			(bytes >> 8 & UINT64_C(0x00ff00ff00ff00ff));                 \
		total += (unsigned int)(bytes * UINT64_C(0x0001000100010001) >> 48); \
	}                                                                            \
	return total

static unsigned int k_weight(const uint64_t *a, size_t n)
{
	if (n == 1)
		return sum_bytes(byte_counts(*a));
	WEIGHT(a[i]);
}

static unsigned int k_weight_and(const uint64_t *a, const uint64_t *b, size_t n)
{
	WEIGHT(a[i] & b[i]);
}

static unsigned int k_weight_andnot(const uint64_t *a, const uint64_t *b, size_t n)
{
	WEIGHT(a[i] & ~b[i]);
}

static size_t k_scan(const uint64_t *a, size_t n)
{
	size_t i = 0;

	while (i < n && !a[i])
		i++;
	return i;
}

static size_t k_scan_full(const uint64_t *a, size_t n)
{
	size_t i = 0;

	while (i < n && a[i] == ~UINT64_C(0))
		i++;
	return i;
}

const struct mc_mask_kernels mc_mask_generic = MC_MASK_TABLE("generic");
