// SPDX-License-Identifier: MIT
/*
 * test_cpumask.c - every operation against a naive model (one byte a bit), for many sizes, with
 * each set of vector code that this CPU has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arch/mask.h"
#include <manycore/cpumask.h>
#include "random.h"

struct pair {
	struct mc_cpumask *mask;
	bool *bit;
	unsigned int n;
};

static struct pair make(unsigned int n)
{
	struct pair p = {mc_cpumask_alloc_bits(n), calloc(n, 1), n};

	assert_non_null(p.mask);
	assert_non_null(p.bit);
	return p;
}

static void drop(struct pair *p)
{
	mc_cpumask_free(p->mask);
	free(p->bit);
}

/* Density 0: empty, 1: sparse, 2: half, 3: dense, 4: full, 5: one bit, 6: all but one. */
static void scramble(struct pair *p, unsigned int density)
{
	unsigned int one = (unsigned int)(rnd() % p->n);

	for (unsigned int i = 0; i < p->n; i++) {
		uint64_t r = rnd() % 64;

		p->bit[i] = density == 1   ? r == 0
			    : density == 2 ? r < 32
			    : density == 3 ? r > 0
					   : density == 4;
		if (density >= 5)
			p->bit[i] = (i == one) == (density == 5);
		mc_cpumask_assign(p->mask, i, p->bit[i]);
	}
}

static void check(const struct pair *p)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (mc_cpumask_test(p->mask, i) != p->bit[i])
			fail_msg("size %u: bit %u is %d", p->n, i, !p->bit[i]);
	assert_int_equal(p->mask->word[(p->n - 1) / 64] & ~p->mask->tail, 0);
}

static bool bit(const struct pair *p, unsigned int i)
{
	return i < p->n && p->bit[i];
}

enum kind { PLAIN, ZERO, AND, ANDNOT, OR, XOR };

static bool value(enum kind kind, const struct pair *a, const struct pair *b, unsigned int i)
{
	bool x = bit(a, i), y = bit(b, i);

	switch (kind) {
	case ZERO:
		return i < a->n && !x;
	case AND:
		return x && y;
	case ANDNOT:
		return x && !y;
	case OR:
		return x || y;
	case XOR:
		return x != y;
	default:
		return x;
	}
}

/* The first i >= from with the value, within the first mask; its size when none. */
static unsigned int model_next(enum kind kind, const struct pair *a, const struct pair *b,
			       unsigned int from)
{
	while (from < a->n && !value(kind, a, b, from))
		from++;
	return from < a->n ? from : a->n;
}

static unsigned int model_weight(enum kind kind, const struct pair *a, const struct pair *b)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < a->n; i++)
		n += value(kind, a, b, i);
	return n;
}

static void check_binary(struct pair *d, const struct pair *a, const struct pair *b)
{
	static const enum kind kinds[] = {AND, OR, XOR, ANDNOT};
	bool *expected = calloc(d->n, 1);

	for (unsigned int k = 0; k < 4; k++) {
		bool any = false, got = false;

		for (unsigned int i = 0; i < d->n; i++)
			any |= expected[i] = value(kinds[k], a, b, i);
		if (kinds[k] == AND)
			got = mc_cpumask_and(d->mask, a->mask, b->mask);
		else if (kinds[k] == ANDNOT)
			got = mc_cpumask_andnot(d->mask, a->mask, b->mask);
		else if (kinds[k] == OR)
			mc_cpumask_or(d->mask, a->mask, b->mask);
		else
			mc_cpumask_xor(d->mask, a->mask, b->mask);
		if (kinds[k] == AND || kinds[k] == ANDNOT)
			assert_int_equal(got, any);
		memcpy(d->bit, expected, d->n);
		check(d);
		if (d == a || d == b) /* the operands are gone */
			break;
	}
	free(expected);
}

static void check_unary(struct pair *d, const struct pair *a)
{
	mc_cpumask_copy(d->mask, a->mask);
	for (unsigned int i = 0; i < d->n; i++)
		d->bit[i] = bit(a, i);
	check(d);
	mc_cpumask_not(d->mask, a->mask);
	for (unsigned int i = 0; i < d->n; i++)
		d->bit[i] = !bit(a, i);
	check(d);
	mc_cpumask_not(d->mask, d->mask);
	for (unsigned int i = 0; i < d->n; i++)
		d->bit[i] = !d->bit[i];
	check(d);
}

static void check_queries(const struct pair *a, const struct pair *b)
{
	unsigned int longest = a->n > b->n ? a->n : b->n;
	bool equal = true, subset = true, meets = false;

	for (unsigned int i = 0; i < longest; i++) {
		equal &= bit(a, i) == bit(b, i);
		subset &= !bit(a, i) || bit(b, i);
		meets |= bit(a, i) && bit(b, i);
	}
	assert_int_equal(mc_cpumask_equal(a->mask, b->mask), equal);
	assert_int_equal(mc_cpumask_subset(a->mask, b->mask), subset);
	assert_int_equal(mc_cpumask_intersects(a->mask, b->mask), meets);
	assert_int_equal(mc_cpumask_empty(a->mask), model_weight(PLAIN, a, b) == 0);
	assert_int_equal(mc_cpumask_full(a->mask), model_weight(PLAIN, a, b) == a->n);
	assert_int_equal(mc_cpumask_weight(a->mask), model_weight(PLAIN, a, b));
	assert_int_equal(mc_cpumask_weight_and(a->mask, b->mask), model_weight(AND, a, b));
	assert_int_equal(mc_cpumask_weight_andnot(a->mask, b->mask), model_weight(ANDNOT, a, b));
	assert_int_equal(mc_cpumask_first(a->mask), model_next(PLAIN, a, b, 0));
	assert_int_equal(mc_cpumask_first_zero(a->mask), model_next(ZERO, a, b, 0));
	assert_int_equal(mc_cpumask_first_and(a->mask, b->mask), model_next(AND, a, b, 0));
	assert_int_equal(mc_cpumask_first_andnot(a->mask, b->mask), model_next(ANDNOT, a, b, 0));
}

static void check_searches(const struct pair *a, const struct pair *b, int cpu)
{
	unsigned int from = (unsigned int)(cpu + 1), last = a->n, n = 0,
		     nth = (unsigned int)(rnd() % a->n), i;

	assert_int_equal(mc_cpumask_next(cpu, a->mask), model_next(PLAIN, a, b, from));
	assert_int_equal(mc_cpumask_next_zero(cpu, a->mask), model_next(ZERO, a, b, from));
	assert_int_equal(mc_cpumask_next_and(cpu, a->mask, b->mask), model_next(AND, a, b, from));
	assert_int_equal(mc_cpumask_next_andnot(cpu, a->mask, b->mask),
			 model_next(ANDNOT, a, b, from));
	i = model_next(PLAIN, a, b, from);
	assert_int_equal(mc_cpumask_next_wrap(cpu, a->mask),
			 i < a->n ? i : model_next(PLAIN, a, b, 0));
	i = model_next(PLAIN, a, b, 0);
	if (cpu >= 0) {
		if (i == (unsigned int)cpu)
			i = model_next(PLAIN, a, b, i + 1);
		assert_int_equal(mc_cpumask_any_but(a->mask, (unsigned int)cpu), i);
	}
	for (i = 0; i < a->n; i++)
		if (a->bit[i])
			last = i;
	assert_int_equal(mc_cpumask_last(a->mask), last);
	for (i = 0; i < a->n; i++)
		if (a->bit[i] && n++ == nth)
			break;
	assert_int_equal(mc_cpumask_nth(nth, a->mask), i);
}

static void check_ranges(struct pair *p)
{
	unsigned int first = (unsigned int)(rnd() % (p->n + 2)),
		     count = (unsigned int)(rnd() % (p->n + 2));
	bool set = rnd() & 1;

	if (set)
		mc_cpumask_set_range(p->mask, first, count);
	else
		mc_cpumask_clear_range(p->mask, first, count);
	for (unsigned int i = first; i < p->n && i - first < count; i++)
		p->bit[i] = set;
	check(p);
}

static void check_bits(struct pair *p)
{
	unsigned int i = (unsigned int)(rnd() % p->n);
	bool was = p->bit[i];

	assert_int_equal(mc_cpumask_test_and_set(p->mask, i), was);
	assert_int_equal(mc_cpumask_test_and_clear(p->mask, i), true);
	assert_int_equal(mc_cpumask_test_and_clear_atomic(p->mask, i), false);
	assert_int_equal(mc_cpumask_test_and_set_atomic(p->mask, i), false);
	assert_int_equal(mc_cpumask_test_atomic(p->mask, i), true);
	mc_cpumask_clear_atomic(p->mask, i);
	assert_int_equal(mc_cpumask_test_and_set(p->mask, i), false);
	mc_cpumask_clear(p->mask, i);
	mc_cpumask_set_atomic(p->mask, i);
	mc_cpumask_assign(p->mask, i, was);
	/* Out of range: nothing happens. */
	for (unsigned int k = p->n; k < p->n + 3; k++) {
		mc_cpumask_set(p->mask, k);
		mc_cpumask_clear(p->mask, k);
		mc_cpumask_set_atomic(p->mask, k);
		mc_cpumask_assign(p->mask, k, true);
		assert_false(mc_cpumask_test(p->mask, k) || mc_cpumask_test_and_set(p->mask, k));
		assert_false(mc_cpumask_test_and_set_atomic(p->mask, k) ||
			     mc_cpumask_test_atomic(p->mask, k));
	}
	mc_cpumask_set(p->mask, UINT32_MAX);
	check(p);
}

static void check_loops(const struct pair *a, const struct pair *b)
{
	unsigned int at, cpu, longest = a->n > b->n ? a->n : b->n;
	unsigned int start = (unsigned int)(rnd() % (a->n + 1));
	struct pair whole = {NULL, calloc(longest, 1), longest};

#define LOOP(loop, kind, first)                      \
	at = model_next(kind, a, b, first);          \
	loop                                         \
	{                                            \
		assert_int_equal(cpu, at);           \
		at = model_next(kind, a, b, at + 1); \
	}                                            \
	assert_int_equal(at, a->n);                  \
	assert_int_equal(cpu, a->n)
	LOOP(mc_for_each_cpu (cpu, a->mask), PLAIN, 0);
	LOOP(mc_for_each_cpu_and (cpu, a->mask, b->mask), AND, 0);
	LOOP(mc_for_each_cpu_andnot (cpu, a->mask, b->mask), ANDNOT, 0);
	cpu = start;
	LOOP(mc_for_each_cpu_from (cpu, a->mask), PLAIN, start);
	for (unsigned int i = 0; i < longest; i++)
		whole.bit[i] = bit(a, i) || bit(b, i);
	at = model_next(PLAIN, &whole, b, 0);
	mc_for_each_cpu_or (cpu, a->mask, b->mask) {
		assert_int_equal(cpu, at);
		at = model_next(PLAIN, &whole, b, at + 1);
	}
	assert_int_equal(cpu, longest);
	assert_int_equal(at, longest);

	memset(whole.bit, 0, longest);
	at = 0;
	mc_for_each_cpu_wrap (cpu, a->mask, start) {
		assert_true(a->bit[cpu] && !whole.bit[cpu]);
		/* Ascending, with one turn. */
		if (at && cpu < start)
			assert_true(at - 1 >= start || at - 1 < cpu);
		else if (at)
			assert_true(at - 1 < cpu && at - 1 >= start);
		at = cpu + 1;
		whole.bit[cpu] = true;
	}
	assert_int_equal(cpu, a->n);
	assert_memory_equal(whole.bit, a->bit, a->n);
	free(whole.bit);
}

static void one_round(unsigned int size_a, unsigned int size_b, unsigned int size_d)
{
	struct pair a = make(size_a), b = make(size_b), d = make(size_d);

	scramble(&a, (unsigned int)(rnd() % 7));
	scramble(&b, (unsigned int)(rnd() % 7));
	if (rnd() % 4 == 0) { /* equal and subset must be seen to hold as well */
		mc_cpumask_copy(b.mask, a.mask);
		for (unsigned int i = 0; i < b.n; i++)
			b.bit[i] = bit(&a, i);
		if (rnd() & 1)
			check_bits(&b);
	}
	check(&a);
	check_binary(&d, &a, &b);
	check_unary(&d, &a);
	check_queries(&a, &b);
	check_queries(&b, &a);
	check_searches(&a, &b, -1);
	check_searches(&a, &b, (int)(rnd() % a.n));
	check_searches(&a, &b, (int)(rnd() % a.n));
	check_loops(&a, &b);
	check_ranges(&a);
	check_bits(&a);
	if (size_a == size_d) { /* results on top of operands */
		check_binary(&a, &a, &b);
		check_binary(&b, &a, &b);
		check_binary(&a, &a, &a);
	}
	mc_cpumask_zero(d.mask);
	memset(d.bit, 0, d.n);
	check(&d);
	mc_cpumask_setall(d.mask);
	memset(d.bit, 1, d.n);
	check(&d);
	drop(&a);
	drop(&b);
	drop(&d);
}

static const unsigned int edges[] = {1,    2,    63,   64,   65,   127,  128, 129,  191,
				     192,  255,  256,  257,  511,  512,  513, 1023, 1024,
				     1025, 2047, 2048, 4096, 8191, 8192, 8193};

/* Runs fn once with each set of kernels. */
static void each_level(void (*fn)(void))
{
	const struct mc_mask_kernels *k;

	for (unsigned int i = 0; (k = mc_mask_kernels_usable(i)); i++) {
		mc_mask_chosen = k;
		print_message("  %s\n", k->name);
		fn();
	}
	mc_mask_chosen = mc_mask_kernels_usable(0);
}

static void at_edges(void)
{
	for (unsigned int i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		for (unsigned int k = 0; k < (edges[i] > 1000 ? 2 : 12); k++)
			one_round(edges[i], edges[i], edges[i]);
	one_round(65536, 65536, 65536);
}

static void small_sizes(void)
{
	for (unsigned int n = 1; n <= 700; n++)
		one_round(n, n, n);
}

static void random_sizes(void)
{
	for (unsigned int k = 0; k < 100; k++) {
		unsigned int n = 1 + (unsigned int)(rnd() % 8200);

		one_round(n, n, n);
	}
}

static void mixed_sizes(void)
{
	for (unsigned int k = 0; k < 600; k++) {
		unsigned int most = k % 10 ? 200 : 1500;

		one_round(1 + (unsigned int)(rnd() % most), 1 + (unsigned int)(rnd() % most),
			  1 + (unsigned int)(rnd() % most));
	}
}

/* What is wide, a mask or an operation, chooses the first time: so this test comes first. */
static void test_choice(void **unused)
{
	struct mc_cpumask *m;

	(void)unused;
	assert_ptr_not_equal(mc_mask_chosen, mc_mask_kernels_usable(0));
	m = mc_cpumask_alloc_bits(1000);
	mc_cpumask_setall(m);
	assert_int_equal(mc_cpumask_weight(m), 1000);
	assert_ptr_equal(mc_mask_chosen, mc_mask_kernels_usable(0));
	mc_cpumask_free(m);
}

static void test_edges(void **unused)
{
	(void)unused;
	each_level(at_edges);
}

static void test_small(void **unused)
{
	(void)unused;
	each_level(small_sizes);
}

static void test_random(void **unused)
{
	(void)unused;
	each_level(random_sizes);
}

static void test_mixed(void **unused)
{
	(void)unused;
	each_level(mixed_sizes);
}

/* The vector code by itself, at every length and misalignment by words, with guards around what it
 * writes. */
static void kernels_agree(void)
{
	const struct mc_mask_kernels *k = mc_mask_chosen, *g = &mc_mask_generic;
	uint64_t a[80], b[80], d[80], e[80];

	for (unsigned int n = 1; n <= 70; n++)
		for (unsigned int shift = 0; shift < 8; shift++) {
			for (unsigned int i = 0; i < 80; i++) {
				a[i] = rnd() & rnd();
				b[i] = rnd() % 3 ? a[i] : rnd();
				d[i] = e[i] = rnd();
			}
			assert_int_equal(k->and (d + shift, a + shift, b + 1, n),
					 g->and (e + shift, a + shift, b + 1, n));
			assert_memory_equal(d, e, sizeof(d));
			k->or (d + 1, a + shift, b + shift, n);
			g->or (e + 1, a + shift, b + shift, n);
			assert_memory_equal(d, e, sizeof(d));
			k->xor (d + shift, a + shift, b + shift, n);
			g->xor (e + shift, a + shift, b + shift, n);
			assert_memory_equal(d, e, sizeof(d));
			assert_int_equal(k->andnot(d, a + shift, b + shift, n),
					 g->andnot(e, a + shift, b + shift, n));
			assert_memory_equal(d, e, sizeof(d));
			assert_int_equal(k->weight(a + shift, n), g->weight(a + shift, n));
			assert_int_equal(k->weight_and(a + shift, b, n),
					 g->weight_and(a + shift, b, n));
			assert_int_equal(k->weight_andnot(a + shift, b, n),
					 g->weight_andnot(a + shift, b, n));
			/* One word that differs, at each place in turn. */
			memset(d, 0, sizeof(d));
			for (unsigned int i = 0; i < n; i++) {
				assert_true(k->equal(a + shift, a + shift, n));
				assert_true(k->subset(d + shift, a + shift, n));
				assert_false(k->intersects(d + shift, a + shift, n));
				assert_int_equal(k->scan(d + shift, n), n);
				d[shift + i] = UINT64_C(1) << rnd() % 64;
				memcpy(e, a, sizeof(e));
				e[shift + i] ^= d[shift + i];
				assert_false(k->equal(a + shift, e + shift, n));
				assert_int_equal(k->subset(d + shift, a + shift, n),
						 !(d[shift + i] & ~a[shift + i]));
				assert_int_equal(k->intersects(d + shift, a + shift, n),
						 !!(d[shift + i] & a[shift + i]));
				assert_int_equal(k->scan(d + shift, n), i);
				memset(d, 0xff, sizeof(d));
				assert_int_equal(k->scan_full(d + shift, n), n);
				d[shift + i] ^= UINT64_C(1) << rnd() % 64;
				assert_int_equal(k->scan_full(d + shift, n), i);
				memset(d, 0, sizeof(d));
			}
		}
	memset(a, 0xff, sizeof(a));
	for (unsigned int n = 1; n <= 80; n++)
		assert_int_equal(k->weight(a, n), n * 64);
}

/* Wide masks with other words behind theirs and one word that differs, at each place in turn, with
 * heads of either kind. */
static void equal_each_word(void)
{
	enum { MOST = 300 };
	static uint64_t room_a[3 + MOST + 9], room_b[3 + MOST + 9];
	struct mc_cpumask *a, *b, view;

	for (unsigned int n = 9; n <= MOST; n += n < 150 ? 1 : 7) {
		for (unsigned int i = 0; i < sizeof(room_a) / sizeof(room_a[0]); i++) {
			room_a[i] = rnd();
			room_b[i] = rnd();
		}
		a = mc_cpumask_init(room_a, n * 64 - n % 3);
		b = mc_cpumask_init(room_b, n * 64 - n % 3);
		for (unsigned int i = 0; i < n; i++)
			a->bits[i] = b->bits[i] = i < n - 1 ? rnd() : 1;
		mc_cpumask_wrap(&view, b->bits, b->nbits);
		assert_true(mc_cpumask_equal(a, b));
		assert_true(mc_cpumask_equal(&view, a));
		for (unsigned int i = 0; i < n; i++) {
			uint64_t bit = UINT64_C(1) << rnd() % 62;

			b->bits[i] ^= bit;
			assert_false(mc_cpumask_equal(a, b));
			mc_cpumask_wrap(&view, b->bits, b->nbits);
			assert_false(mc_cpumask_equal(a, &view));
			b->bits[i] ^= bit;
		}
	}
}

static void test_equal_each_word(void **unused)
{
	(void)unused;
	each_level(equal_each_word);
}

static void test_kernels(void **unused)
{
	(void)unused;
	each_level(kernels_agree);
}

/* What the loops promise about changes in the body. */
static void test_changes_in_loop(void **unused)
{
	struct mc_cpumask *m = mc_cpumask_alloc_bits(300);
	unsigned int cpu, other, seen = 0;

	(void)unused;
	mc_cpumask_setall(m);
	mc_for_each_cpu (cpu, m) {
		mc_cpumask_clear(m, cpu ^ 1); /* the sibling */
		seen++;
	}
	assert_int_equal(seen, 150);
	mc_cpumask_zero(m);
	mc_cpumask_set(m, 0);
	seen = 0;
	mc_for_each_cpu (cpu, m) { /* each one brings the next, up to a word's end and past it */
		assert_int_equal(cpu, seen);
		if (cpu < 130)
			mc_cpumask_set(m, cpu + 1);
		seen++;
	}
	assert_int_equal(seen, 131);
	mc_cpumask_zero(m);
	mc_cpumask_set(m, 3);
	seen = 0;
	mc_for_each_cpu (cpu, m) {
		mc_cpumask_set(m, 100);
		seen++;
	}
	assert_int_equal(seen, 2);
	mc_cpumask_setall(m);
	seen = 0;
	mc_for_each_cpu (cpu, m) { /* nested, break and continue */
		if (cpu % 2)
			continue;
		mc_for_each_cpu (other, m) {
			if (other == 10)
				break;
			seen++;
		}
		assert_int_equal(other, 10);
		if (cpu == 20)
			break;
	}
	assert_int_equal(cpu, 20);
	assert_int_equal(seen, 110);
	mc_cpumask_free(m);
}

/* A mask that nothing fits in. */
static void test_no_bits(void **unused)
{
	struct mc_cpumask *none = mc_cpumask_alloc_bits(0), *some = mc_cpumask_alloc_bits(200);
	unsigned int cpu;

	(void)unused;
	mc_cpumask_setall(some);
	mc_cpumask_setall(none);
	mc_cpumask_set(none, 0);
	mc_cpumask_or(none, none, some);
	mc_cpumask_not(none, none);
	assert_true(mc_cpumask_empty(none) && mc_cpumask_full(none));
	assert_int_equal(mc_cpumask_weight(none), 0);
	mc_for_each_cpu (cpu, none)
		fail();
	mc_for_each_cpu_and (cpu, none, some)
		fail();
	assert_true(mc_cpumask_subset(none, some) && !mc_cpumask_intersects(some, none));
	mc_cpumask_and(some, some, none);
	assert_true(mc_cpumask_equal(some, none) && mc_cpumask_last(none) == 0);
	mc_cpumask_free(none);
	mc_cpumask_free(some);
}

static void test_distribute(void **unused)
{
	struct mc_cpumask *m = mc_cpumask_alloc_bits(100), *n = mc_cpumask_alloc_bits(100);
	unsigned int count[100] = {0};

	(void)unused;
	assert_true(mc_cpumask_any_distribute(m) >= 100);
	assert_true(mc_cpumask_any_and_distribute(m, n) >= 100);
	mc_cpumask_set_range(m, 10, 80);
	mc_cpumask_set_range(n, 60, 40);
	for (int i = 0; i < 160; i++)
		count[mc_cpumask_any_distribute(m)]++;
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(count[i], i >= 10 && i < 90 ? 2 : 0);
	for (int i = 0; i < 60; i++)
		count[mc_cpumask_any_and_distribute(m, n)]++;
	for (unsigned int i = 60; i < 90; i++)
		assert_int_equal(count[i], 4);
	mc_cpumask_free(m);
	mc_cpumask_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),          cmocka_unit_test(test_edges),
		cmocka_unit_test(test_small),           cmocka_unit_test(test_random),
		cmocka_unit_test(test_mixed),           cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_changes_in_loop), cmocka_unit_test(test_no_bits),
		cmocka_unit_test(test_distribute),      cmocka_unit_test(test_equal_each_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
