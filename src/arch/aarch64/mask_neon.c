// SPDX-License-Identifier: MIT
/* aarch64/mask_neon.c - arch/mask.h with NEON: two words a vector, four vectors a turn, the rest
 * one by one. */
#include "arch/mask.h"
#if defined(__aarch64__)
#include <arm_neon.h>

#define AND(x, y) vandq_u64(x, y)
#define OR(x, y) vorrq_u64(x, y)
#define XOR(x, y) veorq_u64(x, y)
#define ANDNOT(x, y) vbicq_u64(x, y)
#define WORD_AND(x, y) ((x) & (y))
#define WORD_OR(x, y) ((x) | (y))
#define WORD_XOR(x, y) ((x) ^ (y))
#define WORD_ANDNOT(x, y) ((x) & ~(y))

static inline bool nonzero(uint64x2_t v)
{
	return vmaxvq_u32(vreinterpretq_u32_u64(v)) != 0;
}

#define BINARY(type, name, OP, WORD_OP, RESULT)                                       \
	static type name(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n) \
	{                                                                             \
		uint64x2_t any = vdupq_n_u64(0), v0, v1, v2, v3;                      \
		uint64_t rest = 0;                                                    \
		size_t i = 0;                                                         \
                                                                                      \
		for (; i + 8 <= n; i += 8) {                                          \
			v0 = OP(vld1q_u64(a + i), vld1q_u64(b + i));                  \
			v1 = OP(vld1q_u64(a + i + 2), vld1q_u64(b + i + 2));          \
			v2 = OP(vld1q_u64(a + i + 4), vld1q_u64(b + i + 4));          \
			v3 = OP(vld1q_u64(a + i + 6), vld1q_u64(b + i + 6));          \
			vst1q_u64(d + i, v0);                                         \
			vst1q_u64(d + i + 2, v1);                                     \
			vst1q_u64(d + i + 4, v2);                                     \
			vst1q_u64(d + i + 6, v3);                                     \
			any = OR(any, OR(OR(v0, v1), OR(v2, v3)));                    \
		}                                                                     \
		for (; i < n; i++)                                                    \
			rest |= d[i] = WORD_OP(a[i], b[i]);                           \
		RESULT;                                                               \
	}

BINARY(bool, k_and, AND, WORD_AND, return rest || nonzero(any))
BINARY(void, k_or, OR, WORD_OR, (void)any)
BINARY(void, k_xor, XOR, WORD_XOR, (void)any)
BINARY(bool, k_andnot, ANDNOT, WORD_ANDNOT, return rest || nonzero(any))

/* Is there a bit in a OP b? */
#define TEST(name, OP, WORD_OP, found)                                                       \
	static bool name(const uint64_t *a, const uint64_t *b, size_t n)                     \
	{                                                                                    \
		size_t i = 0;                                                                \
                                                                                             \
		for (; i + 8 <= n; i += 8)                                                   \
			if (nonzero(OR(OR(OP(vld1q_u64(a + i), vld1q_u64(b + i)),            \
					  OP(vld1q_u64(a + i + 2), vld1q_u64(b + i + 2))),   \
				       OR(OP(vld1q_u64(a + i + 4), vld1q_u64(b + i + 4)),    \
					  OP(vld1q_u64(a + i + 6), vld1q_u64(b + i + 6)))))) \
				return found;                                                \
		for (; i < n; i++)                                                           \
			if (WORD_OP(a[i], b[i]))                                             \
				return found;                                                \
		return !found;                                                               \
	}

TEST(k_equal, XOR, WORD_XOR, false)
TEST(k_subset, ANDNOT, WORD_ANDNOT, false)
TEST(k_intersects, AND, WORD_AND, true)

/* Bits set, as four sums. */
static inline uint32x4_t counts(uint64x2_t v)
{
	return vpaddlq_u16(vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u64(v))));
}

#define WEIGHT(name, ARGS, WORDS, WORD)                                      \
	static unsigned int name ARGS                                        \
	{                                                                    \
		uint32x4_t sum = vdupq_n_u32(0), sum2 = sum;                 \
		unsigned int rest = 0;                                       \
		size_t i = 0;                                                \
                                                                             \
		for (; i + 4 <= n; i += 4) {                                 \
			sum = vaddq_u32(sum, counts(WORDS(i)));              \
			sum2 = vaddq_u32(sum2, counts(WORDS(i + 2)));        \
		}                                                            \
		for (; i < n; i++)                                           \
			rest += (unsigned int)__builtin_popcountll(WORD(i)); \
		return rest + vaddvq_u32(vaddq_u32(sum, sum2));              \
	}

#define ONE(i) vld1q_u64(a + (i))
#define ONE_WORD(i) a[i]
#define BOTH(i) AND(vld1q_u64(a + (i)), vld1q_u64(b + (i)))
#define BOTH_WORD(i) (a[i] & b[i])
#define BUT(i) ANDNOT(vld1q_u64(a + (i)), vld1q_u64(b + (i)))
#define BUT_WORD(i) (a[i] & ~b[i])
WEIGHT(k_weight, (const uint64_t *a, size_t n), ONE, ONE_WORD)
WEIGHT(k_weight_and, (const uint64_t *a, const uint64_t *b, size_t n), BOTH, BOTH_WORD)
WEIGHT(k_weight_andnot, (const uint64_t *a, const uint64_t *b, size_t n), BUT, BUT_WORD)

static size_t k_scan(const uint64_t *a, size_t n)
{
	size_t i = 0;

	while (i + 8 <= n && !nonzero(OR(OR(vld1q_u64(a + i), vld1q_u64(a + i + 2)),
					 OR(vld1q_u64(a + i + 4), vld1q_u64(a + i + 6)))))
		i += 8;
	while (i < n && !a[i])
		i++;
	return i;
}

static size_t k_scan_full(const uint64_t *a, size_t n)
{
	const uint64x2_t ones = vdupq_n_u64(~UINT64_C(0));
	size_t i = 0;

	while (i + 8 <= n &&
	       !nonzero(XOR(ones, AND(AND(vld1q_u64(a + i), vld1q_u64(a + i + 2)),
				      AND(vld1q_u64(a + i + 4), vld1q_u64(a + i + 6))))))
		i += 8;
	while (i < n && a[i] == ~UINT64_C(0))
		i++;
	return i;
}

const struct mc_mask_kernels mc_mask_neon = MC_MASK_TABLE("neon");
#endif
