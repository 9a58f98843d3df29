// SPDX-License-Identifier: MIT
/*
 * x86_64/mask_avx512.c - arch/mask.h with AVX-512 (F, VL, VPOPCNTDQ): eight words at a time, the
 * rest under a mask. Four vectors a turn: 8192 bits are four turns, and each turn's test costs as
 * much as its loads.
 */
#include "arch/mask.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET \
	__attribute__((target("avx512f,avx512vl,avx512vpopcntdq,popcnt,bmi,bmi2"), aligned(64)))
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define LOAD_REST(p) _mm512_maskz_loadu_epi64(rest, (const void *)(p))
#define REST_MASK(n) ((__mmask8)((1u << (n)) - 1))
/* Ternary logic: bit (a << 2 | b << 1 | c) of the table. */
#define ANY_OR_AND 0xf8    /* a | (b & c) */
#define ANY_OR_ANDNOT 0xf4 /* a | (b & ~c) */
#define ANY_OR_XOR 0xf6    /* a | (b ^ c) */
#define TERN(any, x, y, table) _mm512_ternarylogic_epi64(any, x, y, table)

TARGET static inline bool nonzero(__m512i v)
{
	return _mm512_test_epi64_mask(v, v) != 0;
}

/* The last n % 8 words: halves, not a masked store, which some CPUs take many cycles for. The
 * operations on whole vectors do for the halves too. */
#define LOW256(p) _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)(p)))
#define LOW128(p) _mm512_zextsi128_si512(_mm_loadu_si128((const __m128i_u *)(p)))
#define REST_OF(OP)                                                                     \
	do {                                                                            \
		if (n & 4) {                                                            \
			v = _mm512_zextsi256_si512(                                     \
				_mm512_castsi512_si256(OP(LOW256(a), LOW256(b))));      \
			_mm256_storeu_si256((__m256i_u *)d, _mm512_castsi512_si256(v)); \
			any = _mm512_or_si512(any, v);                                  \
			a += 4, b += 4, d += 4;                                         \
		}                                                                       \
		if (n & 2) {                                                            \
			v = _mm512_zextsi128_si512(                                     \
				_mm512_castsi512_si128(OP(LOW128(a), LOW128(b))));      \
			_mm_storeu_si128((__m128i_u *)d, _mm512_castsi512_si128(v));    \
			any = _mm512_or_si512(any, v);                                  \
			a += 2, b += 2, d += 2;                                         \
		}                                                                       \
	} while (0)

/* d = a OP b; RESULT sees all results OR-ed in `any` and `last`. */
#define BINARY(type, name, OP, WORD_OP, RESULT)                                              \
	TARGET static type name(uint64_t *d, const uint64_t *a, const uint64_t *b, size_t n) \
	{                                                                                    \
		__m512i any = _mm512_setzero_si512(), v, w;                                  \
		uint64_t last = 0;                                                           \
                                                                                             \
		if (__builtin_expect(n == 8, 1)) { /* 512 CPUs: straight through */          \
			any = OP(LOAD(a), LOAD(b));                                          \
			_mm512_storeu_si512(d, any);                                         \
			return RESULT;                                                       \
		}                                                                            \
		for (size_t i = n / 16; i; i--, a += 16, b += 16, d += 16) {                 \
			v = OP(LOAD(a), LOAD(b));                                            \
			w = OP(LOAD(a + 8), LOAD(b + 8));                                    \
			_mm512_storeu_si512(d, v);                                           \
			_mm512_storeu_si512(d + 8, w);                                       \
			any = TERN(any, v, w, 0xfe);                                         \
		}                                                                            \
		if (n & 8) {                                                                 \
			v = OP(LOAD(a), LOAD(b));                                            \
			_mm512_storeu_si512(d, v);                                           \
			any = _mm512_or_si512(any, v);                                       \
			a += 8, b += 8, d += 8;                                              \
		}                                                                            \
		if (n & 7) {                                                                 \
			REST_OF(OP);                                                         \
			if (n & 1)                                                           \
				last = *d = WORD_OP(*a, *b);                                 \
		}                                                                            \
		return RESULT;                                                               \
	}

#define AND(x, y) _mm512_and_si512(x, y)
#define OR(x, y) _mm512_or_si512(x, y)
#define XOR(x, y) _mm512_xor_si512(x, y)
#define ANDNOT(x, y) _mm512_andnot_si512(y, x)
#define WORD_AND(x, y) ((x) & (y))
#define WORD_OR(x, y) ((x) | (y))
#define WORD_XOR(x, y) ((x) ^ (y))
#define WORD_ANDNOT(x, y) ((x) & ~(y))
#define IGNORE (void)any, (void)last
BINARY(bool, k_and, AND, WORD_AND, last || nonzero(any))
BINARY(void, k_or, OR, WORD_OR, IGNORE)
BINARY(void, k_xor, XOR, WORD_XOR, IGNORE)
BINARY(bool, k_andnot, ANDNOT, WORD_ANDNOT, last || nonzero(any))

/* Is there a bit in a OP b? */
#define TEST(name, table, found)                                                        \
	TARGET static bool name(const uint64_t *a, const uint64_t *b, size_t n)         \
	{                                                                               \
		__m512i any = _mm512_setzero_si512(), other = any;                      \
		size_t i = 0;                                                           \
                                                                                        \
		for (; i + 32 <= n; i += 32) {                                          \
			any = TERN(any, LOAD(a + i), LOAD(b + i), table);               \
			other = TERN(other, LOAD(a + i + 8), LOAD(b + i + 8), table);   \
			any = TERN(any, LOAD(a + i + 16), LOAD(b + i + 16), table);     \
			other = TERN(other, LOAD(a + i + 24), LOAD(b + i + 24), table); \
			if (nonzero(_mm512_or_si512(any, other)))                       \
				return found;                                           \
		}                                                                       \
		for (; i + 8 <= n; i += 8)                                              \
			any = TERN(any, LOAD(a + i), LOAD(b + i), table);               \
		if (i < n) {                                                            \
			__mmask8 rest = REST_MASK(n - i);                               \
                                                                                        \
			any = TERN(any, LOAD_REST(a + i), LOAD_REST(b + i), table);     \
		}                                                                       \
		return nonzero(any) == found;                                           \
	}

/*
 * Equal does so little that what it costs is how its loads share the ports with those of the
 * caller's next operation (docs/design/cpumask.md; Zen 5). Three cycles between the addresses'
 * arrival and the first load, and no loop within the last 1 KiB, let the two overlap.
 */
#define LATER(p) __asm__("imul $1, %0, %0" : "+r"(p))
#define STEP(any, i) any = TERN(any, LOAD(a + (i)), LOAD(b + (i)), ANY_OR_XOR)
#define STEP2(i)      \
	STEP(any, i); \
	STEP(other, (i) + 8)
#define STEP4(i)  \
	STEP2(i); \
	STEP2((i) + 16)
#define STEP8(i)  \
	STEP4(i); \
	STEP4((i) + 32)
#define PAST(words) a += (words), b += (words), n -= (words)

TARGET bool mc_mask_equal_avx512(const uint64_t *a, const uint64_t *b, size_t n)
{
	__m512i any = _mm512_setzero_si512(), other = any;

	LATER(a);
	LATER(b);
	while (n >= 128) {
		STEP8(0);
		STEP8(64);
		PAST(128);
		if (nonzero(_mm512_or_si512(any, other)))
			return false;
		if (!n)
			return true;
	}
	if (n >= 64) {
		STEP8(0);
		PAST(64);
	}
	if (n >= 32) {
		STEP4(0);
		PAST(32);
	}
	if (n >= 16) {
		STEP2(0);
		PAST(16);
	}
	if (n >= 8) {
		STEP(other, 0);
		PAST(8);
	}
	if (n) {
		__mmask8 rest = REST_MASK(n);

		any = TERN(any, LOAD_REST(a), LOAD_REST(b), ANY_OR_XOR);
	}
	return !nonzero(_mm512_or_si512(any, other));
}
#define k_equal mc_mask_equal_avx512

TEST(k_subset, ANY_OR_ANDNOT, false)
TEST(k_intersects, ANY_OR_AND, true)

#define WEIGHT(name, ARGS, WORDS, REST_WORDS)                                              \
	TARGET static unsigned int name ARGS                                               \
	{                                                                                  \
		__m512i sum = _mm512_setzero_si512(), sum2 = sum;                          \
		size_t i = 0;                                                              \
                                                                                           \
		if (__builtin_expect(n == 8, 1))                                           \
			return (unsigned int)_mm512_reduce_add_epi64(                      \
				_mm512_popcnt_epi64(WORDS(0)));                            \
		for (; i + 16 <= n; i += 16) {                                             \
			sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(WORDS(i)));        \
			sum2 = _mm512_add_epi64(sum2, _mm512_popcnt_epi64(WORDS(i + 8)));  \
		}                                                                          \
		if (i + 8 <= n) {                                                          \
			sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(WORDS(i)));        \
			i += 8;                                                            \
		}                                                                          \
		if (i < n) {                                                               \
			__mmask8 rest = REST_MASK(n - i);                                  \
                                                                                           \
			sum2 = _mm512_add_epi64(sum2, _mm512_popcnt_epi64(REST_WORDS(i))); \
		}                                                                          \
		return (unsigned int)_mm512_reduce_add_epi64(_mm512_add_epi64(sum, sum2)); \
	}

#define ONE(i) LOAD(a + (i))
#define ONE_REST(i) LOAD_REST(a + (i))
#define BOTH(i) AND(LOAD(a + (i)), LOAD(b + (i)))
#define BOTH_REST(i) AND(LOAD_REST(a + (i)), LOAD_REST(b + (i)))
#define BUT(i) ANDNOT(LOAD(a + (i)), LOAD(b + (i)))
#define BUT_REST(i) ANDNOT(LOAD_REST(a + (i)), LOAD_REST(b + (i)))
WEIGHT(k_weight, (const uint64_t *a, size_t n), ONE, ONE_REST)
WEIGHT(k_weight_and, (const uint64_t *a, const uint64_t *b, size_t n), BOTH, BOTH_REST)
WEIGHT(k_weight_andnot, (const uint64_t *a, const uint64_t *b, size_t n), BUT, BUT_REST)

TARGET static size_t k_scan(const uint64_t *a, size_t n)
{
	size_t i = 0;
	__mmask8 hit;

	/* Two lines a turn; which of the two is sorted out below. */
	while (i + 16 <= n && !nonzero(_mm512_or_si512(LOAD(a + i), LOAD(a + i + 8))))
		i += 16;
	for (; i + 8 <= n; i += 8) {
		hit = _mm512_test_epi64_mask(LOAD(a + i), LOAD(a + i));
		if (hit)
			return i + (size_t)__builtin_ctz(hit);
	}
	if (i < n) {
		__mmask8 rest = REST_MASK(n - i);

		hit = _mm512_test_epi64_mask(LOAD_REST(a + i), LOAD_REST(a + i));
		if (hit)
			return i + (size_t)__builtin_ctz(hit);
	}
	return n;
}

TARGET static size_t k_scan_full(const uint64_t *a, size_t n)
{
	const __m512i ones = _mm512_set1_epi64(-1);
	size_t i = 0;

	while (i + 16 <= n && !_mm512_cmpneq_epi64_mask(AND(LOAD(a + i), LOAD(a + i + 8)), ones))
		i += 16;
	while (i < n && a[i] == ~UINT64_C(0))
		i++;
	return i;
}

const struct mc_mask_kernels mc_mask_avx512 = MC_MASK_TABLE("avx512");
#endif
