// SPDX-License-Identifier: MIT
/* bench_cpumask_peers.c - the peers without a library of their own: glibc's CPU_*_S, and masks of
 * 4096 bits always. */
#include <string.h>
#include "cmd/bench/bench_cpumask.h"

/* ---- glibc ----------------------------------------------------------------------------------- */

LOOP(g_and, CPU_AND_S(o->setsize, o->gd, o->ga, o->gb))
LOOP(g_or, CPU_OR_S(o->setsize, o->gd, o->ga, o->gb))
LOOP(g_xor, CPU_XOR_S(o->setsize, o->gd, o->ga, o->gb))
/* a & (a ^ b) */
LOOP(g_andnot, CPU_XOR_S(o->setsize, o->gtmp, o->ga, o->gb);
     CPU_AND_S(o->setsize, o->gd, o->ga, o->gtmp))
LOOP(g_weight, o->result = (uint64_t)(CPU_COUNT_S(o->setsize, o->ga)))
LOOP(g_equal, o->result = (uint64_t)(CPU_EQUAL_S(o->setsize, o->ga, o->gb)))
LOOP(g_subset, CPU_AND_S(o->setsize, o->gtmp, o->ga, o->gb);
     o->result = (uint64_t)(CPU_EQUAL_S(o->setsize, o->gtmp, o->ga)))
LOOP(g_intersects, CPU_AND_S(o->setsize, o->gtmp, o->ga, o->gb);
     o->result = (uint64_t)(CPU_COUNT_S(o->setsize, o->gtmp) != 0))
LOOP(g_copy, memcpy(o->gd, o->ga, o->setsize))
LOOP(g_zero, CPU_ZERO_S(o->setsize, o->gd))
LOOP(g_fill, for (unsigned int cpu = 0; cpu < o->nbits; cpu++) CPU_SET_S(cpu, o->setsize, o->gd))
LOOP(g_first, unsigned int cpu = 0;
     while (cpu < o->nbits && !CPU_ISSET_S(cpu, o->setsize, o->ga)) cpu++;
     o->result = (uint64_t)(cpu))
LOOP(g_iter, unsigned int last = 0;
     for (unsigned int cpu = 0; cpu < o->nbits; cpu++) if (CPU_ISSET_S(cpu, o->setsize, o->ga))
	     VISIT(cpu, last);
     o->result = last)

static void g_set(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		CPU_SET_S(cpu, o->setsize, o->gd);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

static void g_test(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		o->result = (uint64_t) !!CPU_ISSET_S(cpu, o->setsize, o->ga);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

const struct peer peer_glibc = {
	"glibc",
	{
		[OP_AND] = g_and,
		[OP_OR] = g_or,
		[OP_XOR] = g_xor,
		[OP_ANDNOT] = g_andnot,
		[OP_WEIGHT] = g_weight,
		[OP_EQUAL] = g_equal,
		[OP_SUBSET] = g_subset,
		[OP_INTERSECTS] = g_intersects,
		[OP_FIRST] = g_first,
		[OP_ITER_DENSE] = g_iter,
		[OP_ITER_SPARSE] = g_iter,
		[OP_SET] = g_set,
		[OP_TEST] = g_test,
		[OP_COPY] = g_copy,
		[OP_ZERO] = g_zero,
		[OP_FILL] = g_fill,
	},
};

/* ---- fixed at 4096 bits: plain loops of constant length, out of line as in the kernel
 * ------------------------------- */

#define FIXED_BINARY(name, expression)                                             \
	__attribute__((noinline)) static void name(uint64_t *d, const uint64_t *a, \
						   const uint64_t *b)              \
	{                                                                          \
		for (unsigned int i = 0; i < FIXED_WORDS; i++)                     \
			d[i] = expression;                                         \
	}
FIXED_BINARY(fixed_and, a[i] & b[i])
FIXED_BINARY(fixed_or, a[i] | b[i])
FIXED_BINARY(fixed_xor, a[i] ^ b[i])
FIXED_BINARY(fixed_andnot, a[i] & ~b[i])

#define FIXED_TEST(name, expression, found)                                              \
	__attribute__((noinline)) static bool name(const uint64_t *a, const uint64_t *b) \
	{                                                                                \
		for (unsigned int i = 0; i < FIXED_WORDS; i++)                           \
			if (expression)                                                  \
				return found;                                            \
		return !found;                                                           \
	}
FIXED_TEST(fixed_equal, a[i] != b[i], false)
FIXED_TEST(fixed_subset, a[i] & ~b[i], false)
FIXED_TEST(fixed_intersects, a[i] & b[i], true)

__attribute__((noinline)) static unsigned int fixed_weight(const uint64_t *a)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < FIXED_WORDS; i++)
		sum += mc_popcount_(a[i]);
	return sum;
}

__attribute__((noinline)) static unsigned int fixed_next(const uint64_t *a, unsigned int from)
{
	unsigned int i = from / 64;

	if (from >= FIXED_BITS)
		return FIXED_BITS;
	for (uint64_t w = a[i] & ~UINT64_C(0) << from % 64;; w = a[i]) {
		if (w)
			return i * 64 + (unsigned int)__builtin_ctzll(w);
		if (++i == FIXED_WORDS)
			return FIXED_BITS;
	}
}

LOOP(f_and, fixed_and(o->fd, o->fa, o->fb))
LOOP(f_or, fixed_or(o->fd, o->fa, o->fb))
LOOP(f_xor, fixed_xor(o->fd, o->fa, o->fb))
LOOP(f_andnot, fixed_andnot(o->fd, o->fa, o->fb))
LOOP(f_weight, o->result = (uint64_t)(fixed_weight(o->fa)))
LOOP(f_equal, o->result = (uint64_t)(fixed_equal(o->fa, o->fb)))
LOOP(f_subset, o->result = (uint64_t)(fixed_subset(o->fa, o->fb)))
LOOP(f_intersects, o->result = (uint64_t)(fixed_intersects(o->fa, o->fb)))
LOOP(f_first, o->result = (uint64_t)(fixed_next(o->fa, 0)))
LOOP(f_iter, unsigned int last = 0; for (unsigned int cpu = fixed_next(o->fa, 0); cpu < FIXED_BITS;
					 cpu = fixed_next(o->fa, cpu + 1)) VISIT(cpu, last);
     o->result = last)
LOOP(f_copy, memcpy(o->fd, o->fa, FIXED_BITS / 8))
LOOP(f_zero, memset(o->fd, 0, FIXED_BITS / 8))
LOOP(f_fill, memset(o->fd, 0xff, FIXED_BITS / 8))
LOOP(f_parse, o->result = (uint64_t)mc_cpulist_parse(o->fixed, o->text, NULL))
LOOP(f_print, o->result = mc_cpulist_snprint(o->buf, o->bufsize, o->fixed))

const struct peer peer_fixed4096 = {
	"fixed4096",
	{
		[OP_AND] = f_and,
		[OP_OR] = f_or,
		[OP_XOR] = f_xor,
		[OP_ANDNOT] = f_andnot,
		[OP_WEIGHT] = f_weight,
		[OP_EQUAL] = f_equal,
		[OP_SUBSET] = f_subset,
		[OP_INTERSECTS] = f_intersects,
		[OP_FIRST] = f_first,
		[OP_ITER_DENSE] = f_iter,
		[OP_ITER_SPARSE] = f_iter,
		[OP_COPY] = f_copy,
		[OP_ZERO] = f_zero,
		[OP_FILL] = f_fill,
		[OP_PARSE_RANGE] = f_parse,
		[OP_PARSE_ALTERNATE] = f_parse,
		[OP_PRINT_RANGE] = f_print,
		[OP_PRINT_ALTERNATE] = f_print,
	},
};
