// SPDX-License-Identifier: MIT
/*
 * test_cpumask_inline.c - and, or, xor, andnot and equal of each size from 1 to 520, inline and by
 * calls, bit by bit: masks next to guards and aligned to a word only, results on operands,
 * read-only masks, sizes that differ, and each bit alone as the one that is left.
 *
 * It needs the public headers only and no framework: it is built a second time for AVX2, where the
 * inline code is another, and static with musl (tests/percpu/musl).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <manycore/cpumask.h>
#include "check.h"
#include "random.h"
#include "skip.h"

enum { MOST = 520, WORDS = (MOST + 63) / 64, GUARDS = 5 };

/* A mask with guards around it, other ones for each, and what it should hold, a byte a bit. */
struct guarded {
	uint64_t guard;
	uint64_t room[GUARDS + 3 + WORDS + GUARDS];
	struct mc_cpumask *mask; /* within room */
	struct mc_cpumask head;  /* as it was */
	bool bit[MOST + 64];
};

/* Without the flags for vector code each operation takes the call. */
static bool by_call;

static void make(struct guarded *g, unsigned int n)
{
	g->guard = rnd();
	for (size_t i = 0; i < sizeof(g->room) / sizeof(g->room[0]); i++)
		g->room[i] = g->guard;
	g->mask = mc_cpumask_init(g->room + 1 + rnd() % 4, n);
	if (by_call)
		g->mask->flags &= MC_MASK_WIDE_ - 1;
	memcpy(&g->head, g->mask, offsetof(struct mc_cpumask, bits));
	memset(g->bit, 0, sizeof(g->bit));
}

static void put(struct guarded *g, unsigned int cpu, bool value)
{
	mc_cpumask_assign(g->mask, cpu, value);
	g->bit[cpu] = value && cpu < g->mask->nbits;
}

static void scramble(struct guarded *g)
{
	for (unsigned int i = 0; i < g->mask->nbits; i++)
		put(g, i, rnd() & 1);
}

static void check(const struct guarded *g, const char *what)
{
	const uint64_t *end = g->mask->bits + (g->mask->nbits + 63) / 64;
	unsigned int n = g->mask->nbits;

	CHECK(!memcmp(&g->head, g->mask, offsetof(struct mc_cpumask, bits)), "%s, %u", what, n);
	for (unsigned int i = 0; i < n; i++)
		CHECK((g->mask->bits[i / 64] >> i % 64 & 1) == g->bit[i], "%s, %u: bit %u", what, n,
		      i);
	CHECK(!(end[-1] & ~g->mask->tail), "%s, %u: bits past the end", what, n);
	for (const uint64_t *p = g->room; p < g->room + sizeof(g->room) / sizeof(*p); p++)
		CHECK((p >= (uint64_t *)g->mask && p < end) || *p == g->guard, "%s, %u: guard %d",
		      what, n, (int)(p - end));
}

enum op { AND, OR, XOR, ANDNOT, OPS };
static const char *const name[OPS] = {"and", "or", "xor", "andnot"};

static bool value(enum op op, bool x, bool y)
{
	return op == AND ? x && y : op == OR ? x || y : op == XOR ? x != y : x && !y;
}

/* d = a OP b: a and b may be views of what x and y hold. */
static void operate(enum op op, struct guarded *d, const struct mc_cpumask *a, const bool *x,
		    const struct mc_cpumask *b, const bool *y)
{
	bool expected[MOST + 64] = {false}, any = false, got = false;

	for (unsigned int i = 0; i < d->mask->nbits; i++)
		any |= expected[i] = value(op, x[i], y[i]);
	if (op == AND)
		got = mc_cpumask_and(d->mask, a, b);
	else if (op == OR)
		mc_cpumask_or(d->mask, a, b);
	else if (op == XOR)
		mc_cpumask_xor(d->mask, a, b);
	else
		got = mc_cpumask_andnot(d->mask, a, b);
	memcpy(d->bit, expected, sizeof(expected));
	check(d, name[op]);
	if (op == AND || op == ANDNOT)
		CHECK(got == any, "%s, %u", name[op], d->mask->nbits);
}

static void sizes(unsigned int nd, unsigned int na, unsigned int nb)
{
	struct guarded a, b, d;
	struct mc_cpumask view_a, view_b;

	for (enum op op = 0; op < OPS; op++) {
		make(&a, na);
		make(&b, nb);
		make(&d, nd);
		scramble(&a);
		scramble(&b);
		scramble(&d);
		operate(op, &d, a.mask, a.bit, b.mask, b.bit);
		check(&a, "operand");
		check(&b, "operand");
		/* Words elsewhere, aligned in other ways. */
		mc_cpumask_wrap(&view_a, a.mask->bits, na);
		mc_cpumask_wrap(&view_b, b.mask->bits, nb);
		scramble(&d);
		operate(op, &d, &view_a, a.bit, b.mask, b.bit);
		scramble(&d);
		operate(op, &d, a.mask, a.bit, &view_b, b.bit);
		/* Results on operands. */
		operate(op, &a, a.mask, a.bit, b.mask, b.bit);
		scramble(&a);
		operate(op, &b, a.mask, a.bit, b.mask, b.bit);
		scramble(&b);
		operate(op, &b, mc_cpumask_wrap(&view_a, a.mask->bits, na), a.bit, b.mask, b.bit);
		operate(op, &a, a.mask, a.bit, a.mask, a.bit);
	}
}

static void same(const struct mc_cpumask *a, const struct mc_cpumask *b, bool expected)
{
	CHECK(mc_cpumask_equal(a, b) == expected, "equal, %u and %u", a->nbits, b->nbits);
	CHECK(mc_cpumask_equal(b, a) == expected, "equal, %u and %u", b->nbits, a->nbits);
}

/* The same bits, and but one. */
static void equal(unsigned int na, unsigned int nb)
{
	struct guarded a, b;
	struct mc_cpumask view;
	unsigned int both = na < nb ? na : nb, cpu = (unsigned int)(rnd() % nb);

	make(&a, na);
	make(&b, nb);
	for (unsigned int i = 0; i < both; i++) {
		put(&a, i, rnd() & 1);
		put(&b, i, a.bit[i]);
	}
	same(a.mask, b.mask, true);
	same(mc_cpumask_wrap(&view, a.mask->bits, na), b.mask, true);
	put(&b, cpu, !b.bit[cpu]);
	same(a.mask, b.mask, false);
	same(mc_cpumask_wrap(&view, a.mask->bits, na), b.mask, false);
}

/* and, andnot, equal: each bit as the only one that is left, and none. */
static void one_left(unsigned int n)
{
	struct guarded a, b, d;

	make(&a, n);
	make(&b, n);
	make(&d, n);
	for (unsigned int i = 0; i <= n; i++) {
		put(&a, i, true);
		put(&b, i, true);
		CHECK(mc_cpumask_and(d.mask, a.mask, b.mask) == (i < n), "%u: %u", n, i);
		CHECK(!mc_cpumask_andnot(d.mask, a.mask, b.mask), "%u: %u", n, i);
		same(a.mask, b.mask, true);
		put(&b, i, false);
		same(a.mask, b.mask, i == n);
		CHECK(!mc_cpumask_and(d.mask, a.mask, b.mask), "%u: %u", n, i);
		CHECK(mc_cpumask_andnot(d.mask, a.mask, b.mask) == (i < n), "%u: %u", n, i);
		CHECK(!mc_cpumask_andnot(d.mask, b.mask, a.mask), "%u: %u", n, i);
		put(&a, i, false);
	}
}

static void constant_masks(unsigned int n)
{
	unsigned int nr = mc_nr_cpu_ids(), cpu = (unsigned int)(rnd() % nr);
	struct guarded a, d;
	bool one[MOST + 64] = {false};

	if (cpu >= MOST)
		return;
	one[cpu] = true;
	make(&a, n);
	make(&d, n);
	scramble(&a);
	for (enum op op = 0; op < OPS; op++)
		operate(op, &d, a.mask, a.bit, mc_cpumask_of(cpu), one);
}

static void all_sizes(void)
{
	for (unsigned int n = 1; n <= MOST; n++) {
		for (unsigned int k = 0; k < 4; k++) {
			sizes(n, n, n);
			equal(n, n);
		}
		/* One of the three has another size: near by, and any. */
		for (int by = -65; by <= 65; by += by == -1 ? 2 : by == -65 || by == 1 ? 64 : 1) {
			unsigned int m = n + (unsigned int)by;

			if (m - 1 < MOST) {
				sizes(m, n, n);
				sizes(n, m, n);
				sizes(n, n, m);
				equal(n, m);
			}
		}
		sizes(n, 1 + (unsigned int)(rnd() % MOST), 1 + (unsigned int)(rnd() % MOST));
		one_left(n);
		constant_masks(n);
	}
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
/* A caller that has whole vectors of its own in use, whatever the inline code is compiled for. */
typedef uint64_t quad __attribute__((vector_size(32)));

__attribute__((target("avx2"), noinline)) static void live_vectors(volatile quad *v,
								   struct mc_cpumask *d,
								   const struct mc_cpumask *a,
								   const struct mc_cpumask *b)
{
	quad k0 = v[0], k1 = v[1], k2 = v[2], k3 = v[3], k4 = v[4], k5 = v[5], k6 = v[6], k7 = v[7];
	bool left = mc_cpumask_and(d, a, b) && mc_cpumask_equal(d, a);

	v[0] = k7 + k0, v[1] = k6 + k1, v[2] = k5 + k2, v[3] = k4 + k3;
	v[4] = k4 - (quad){left, left, left, left};
	v[5] = k5, v[6] = k6, v[7] = k7;
}

static void caller_with_vectors(void)
{
	struct guarded a, b, d;
	quad v[8], was[8];

	if (!__builtin_cpu_supports("avx2"))
		return;
	for (unsigned int n = 1; n <= MOST; n++) {
		make(&a, n);
		make(&b, n);
		make(&d, n);
		mc_cpumask_setall(a.mask);
		mc_cpumask_setall(b.mask);
		for (unsigned int i = 0; i < 32; i++)
			v[i / 4][i % 4] = rnd();
		memcpy(was, v, sizeof(v));
		live_vectors(v, d.mask, a.mask, b.mask);
		for (unsigned int i = 0; i < 32; i++)
			CHECK(v[i / 4][i % 4] == (i < 16 ? was[i / 4][i % 4] + was[7 - i / 4][i % 4]
						  : i < 20 ? was[4][i % 4] - 1
							   : was[i / 4][i % 4]),
			      "%u: part %u of the caller's vectors", n, i);
		CHECK(mc_cpumask_full(d.mask), "%u", n);
	}
}
#else
static void caller_with_vectors(void)
{
}
#endif

int main(void)
{
#ifdef __AVX2__
	if (!__builtin_cpu_supports("avx2"))
		test_skip("avx2", "the CPU has none");
#endif
	all_sizes();
	caller_with_vectors();
	by_call = true;
	all_sizes();
	return 0;
}
