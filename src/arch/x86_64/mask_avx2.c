// SPDX-License-Identifier: MIT
/*
 * x86_64/mask_avx2.c - arch/mask.h with AVX2: four words at a time, the rest one by one. Bits are
 * counted by looking up half bytes in a vector (faster than popcnt on each word from 512 bits on).
 */
#include "arch/mask.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,popcnt,bmi")))
#define LOAD(p) _mm256_loadu_si256((const __m256i_u *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i_u *)(p), v)
#define AND(x, y) _mm256_and_si256(x, y)
#define OR(x, y) _mm256_or_si256(x, y)
#define XOR(x, y) _mm256_xor_si256(x, y)
#define ANDNOT(x, y) _mm256_andnot_si256(y, x)
#define WORD_AND(x, y) ((x) & (y))
#define WORD_OR(x, y) ((x) | (y))
#define WORD_XOR(x, y) ((x) ^ (y))
#define WORD_ANDNOT(x, y) ((x) & ~(y))

#define BINARY(type, name, OP, WORD_OP, RESULT)                                              \
	TARGET static type name(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n) \
	{                                                                                    \
		__m256i any = _mm256_setzero_si256(), v, w;                                  \
		uint64_t rest = 0;                                                           \
		size_t i = 0;                                                                \
                                                                                             \
		for (; i + 8 <= n; i += 8) {                                                 \
			v = OP(LOAD(a + i), LOAD(b + i));                                    \
			w = OP(LOAD(a + i + 4), LOAD(b + i + 4));                            \
			STORE(d + i, v);                                                     \
			STORE(d + i + 4, w);                                                 \
			any = OR(any, OR(v, w));                                             \
		}                                                                            \
		for (; i < n; i++)                                                           \
			rest |= d[i] = WORD_OP(a[i], b[i]);                                  \
		RESULT;                                                                      \
	}

BINARY(bool, k_and, AND, WORD_AND, return rest || !_mm256_testz_si256(any, any))
BINARY(void, k_or, OR, WORD_OR, (void)any; (void)rest)
BINARY(void, k_xor, XOR, WORD_XOR, (void)any; (void)rest)
BINARY(bool, k_andnot, ANDNOT, WORD_ANDNOT, return rest || !_mm256_testz_si256(any, any))

/* Is there a bit in a OP b? */
#define TEST(name, OP, WORD_OP, found)                                          \
	TARGET static bool name(const uint64_t *a, const uint64_t *b, size_t n) \
	{                                                                       \
		size_t i = 0;                                                   \
		__m256i any;                                                    \
                                                                                \
		for (; i + 16 <= n; i += 16) {                                  \
			any = OR(OR(OP(LOAD(a + i), LOAD(b + i)),               \
				    OP(LOAD(a + i + 4), LOAD(b + i + 4))),      \
				 OR(OP(LOAD(a + i + 8), LOAD(b + i + 8)),       \
				    OP(LOAD(a + i + 12), LOAD(b + i + 12))));   \
			if (!_mm256_testz_si256(any, any))                      \
				return found;                                   \
		}                                                               \
		for (; i + 4 <= n; i += 4) {                                    \
			any = OP(LOAD(a + i), LOAD(b + i));                     \
			if (!_mm256_testz_si256(any, any))                      \
				return found;                                   \
		}                                                               \
		for (; i < n; i++)                                              \
			if (WORD_OP(a[i], b[i]))                                \
				return found;                                   \
		return !found;                                                  \
	}

TEST(k_equal, XOR, WORD_XOR, false)
TEST(k_subset, ANDNOT, WORD_ANDNOT, false)
TEST(k_intersects, AND, WORD_AND, true)

/* Bits set, summed for each quarter of the vector. */
TARGET static inline __m256i counts(__m256i v)
{
	const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1,
					       1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
	const __m256i low = _mm256_set1_epi8(15);
	__m256i x = _mm256_shuffle_epi8(table, AND(v, low));
	__m256i y = _mm256_shuffle_epi8(table, AND(_mm256_srli_epi16(v, 4), low));

	return _mm256_sad_epu8(_mm256_add_epi8(x, y), _mm256_setzero_si256());
}

TARGET static inline unsigned int sum4(__m256i v)
{
	__m128i two = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	return (unsigned int)(_mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1));
}

#define WEIGHT(name, ARGS, WORDS, WORD)                                      \
	TARGET static unsigned int name ARGS                                 \
	{                                                                    \
		__m256i sum = _mm256_setzero_si256(), sum2 = sum;            \
		unsigned int rest = 0;                                       \
		size_t i = 0;                                                \
                                                                             \
		for (; i + 8 <= n; i += 8) {                                 \
			sum = _mm256_add_epi64(sum, counts(WORDS(i)));       \
			sum2 = _mm256_add_epi64(sum2, counts(WORDS(i + 4))); \
		}                                                            \
		for (; i < n; i++)                                           \
			rest += (unsigned int)__builtin_popcountll(WORD(i)); \
		return rest + sum4(_mm256_add_epi64(sum, sum2));             \
	}

#define ONE(i) LOAD(a + (i))
#define ONE_WORD(i) a[i]
#define BOTH(i) AND(LOAD(a + (i)), LOAD(b + (i)))
#define BOTH_WORD(i) (a[i] & b[i])
#define BUT(i) ANDNOT(LOAD(a + (i)), LOAD(b + (i)))
#define BUT_WORD(i) (a[i] & ~b[i])
WEIGHT(k_weight, (const uint64_t *a, size_t n), ONE, ONE_WORD)
WEIGHT(k_weight_and, (const uint64_t *a, const uint64_t *b, size_t n), BOTH, BOTH_WORD)
WEIGHT(k_weight_andnot, (const uint64_t *a, const uint64_t *b, size_t n), BUT, BUT_WORD)

TARGET static size_t k_scan(const uint64_t *a, size_t n)
{
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		__m256i any = OR(LOAD(a + i), LOAD(a + i + 4));

		if (!_mm256_testz_si256(any, any))
			break;
	}
	while (i < n && !a[i])
		i++;
	return i;
}

TARGET static size_t k_scan_full(const uint64_t *a, size_t n)
{
	const __m256i ones = _mm256_set1_epi64x(-1);
	size_t i = 0;

	while (i + 8 <= n && _mm256_testc_si256(AND(LOAD(a + i), LOAD(a + i + 4)), ones))
		i += 8;
	while (i < n && a[i] == ~UINT64_C(0))
		i++;
	return i;
}

const struct mc_mask_kernels mc_mask_avx2 = MC_MASK_TABLE("avx2");
#endif
