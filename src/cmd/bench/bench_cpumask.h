/* SPDX-License-Identifier: MIT */
/*
 * bench_cpumask.h - one operation's operands in every peer's own type, and each peer's table of
 * loops over them.
 *
 * Every loop reads its operands from memory each time round, as a program with masks in its
 * structures does, and gives the same answer (checked before measuring).
 */
#ifndef MC_BENCH_CPUMASK_H
#define MC_BENCH_CPUMASK_H

#include <sched.h>
#include <manycore/cpumask.h>
#include "cmd/bench/bench.h"

enum {
	OP_AND,
	OP_OR,
	OP_XOR,
	OP_ANDNOT,
	OP_WEIGHT,
	OP_EQUAL,
	OP_SUBSET,
	OP_INTERSECTS,
	OP_FIRST,
	OP_ITER_DENSE,
	OP_ITER_SPARSE,
	OP_SET,
	OP_TEST,
	OP_COPY,
	OP_ZERO,
	OP_FILL,
	OP_PARSE_RANGE,
	OP_PARSE_ALTERNATE,
	OP_PRINT_RANGE,
	OP_PRINT_ALTERNATE,
	NR_OPS
};

enum { FIXED_BITS = 4096, FIXED_WORDS = FIXED_BITS / 64 };

void bench_cpumask(struct bench *b);

struct operands {
	unsigned int nbits;
	struct mc_cpumask *d, *a, *b;
	size_t setsize;
	cpu_set_t *gd, *ga, *gb, *gtmp;
	void *hd, *ha, *hb;       /* hwloc_bitmap_t */
	void *nd, *na, *nb;       /* struct bitmask * */
	uint64_t *fd, *fa, *fb;   /* FIXED_WORDS each */
	struct mc_cpumask *fixed; /* over fd: for text */
	const char *text;         /* to parse */
	char *buf;                /* to print into */
	size_t bufsize;
	uint64_t result; /* what the last time round gave */
};

/* One loop for each operation; NULL: this peer can't do it. */
struct peer {
	const char *name;
	bench_fn fn[NR_OPS];
};

extern const struct peer peer_ours, peer_glibc, peer_fixed4096, peer_hwloc, peer_libnuma;

/* The loop of one operation. bench_use() makes the compiler forget what it knows of memory: nothing
 * is hoisted. */
#define LOOP(name, ...)                                      \
	static void name(void *arg, uint64_t n)              \
	{                                                    \
		struct operands *o = (struct operands *)arg; \
                                                             \
		for (uint64_t i = 0; i < n; i++) {           \
			__VA_ARGS__;                         \
			bench_use(o);                        \
		}                                            \
	}
/* The body of an iteration: cpu is used and remembered, neither in memory. */
#define VISIT(cpu, last) __asm__ volatile("" : "=r"(last) : "0"(cpu))
/* A CPU number that changes every time round. */
#define TURN(cpu) ((cpu) + 1 < o->nbits ? (cpu) + 1 : 0)

/* hwloc and libnuma are loaded at run time; false when the library is not there. */
bool bench_load_hwloc(void);
bool bench_load_libnuma(void);
/* Bitmaps of those, with the bits of a mask; NULL when there is no library. */
/* Is the peer's result of an operation (o->hd, o->nd) this mask? */
bool bench_hwloc_equals(void *bitmap, const struct mc_cpumask *mask);
bool bench_libnuma_equals(void *bitmask, const struct mc_cpumask *mask);
void *bench_hwloc_bitmap(const struct mc_cpumask *mask);
void bench_hwloc_free(void *bitmap);
void *bench_libnuma_bitmask(const struct mc_cpumask *mask);
void bench_libnuma_free(void *bitmask);

#endif
