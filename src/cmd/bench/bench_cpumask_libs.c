// SPDX-License-Identifier: MIT
/*
 * bench_cpumask_libs.c - hwloc and libnuma as peers, loaded at run time: neither is needed to build
 * or to run manycore. Their functions are called through pointers, which costs what a call through
 * the PLT does. libnuma has no set algebra: it is composed of its per-bit calls. Its parser takes
 * only CPUs of this machine, and it prints nothing: no such cases.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include "cmd/bench/bench_cpumask.h"

typedef void *set; /* hwloc_bitmap_t, struct bitmask * */

static struct {
	set (*alloc)(void);
	void (*free)(set);
	int (*set)(set, unsigned int);
	int (*isset)(set, unsigned int);
	int (*and)(set, set, set);
	int (* or)(set, set, set);
	int (*xor)(set, set, set);
	int (*andnot)(set, set, set);
	int (*weight)(set);
	int (*isequal)(set, set);
	int (*isincluded)(set, set);
	int (*intersects)(set, set);
	int (*first)(set);
	int (*next)(set, int);
	int (*copy)(set, set);
	void (*zero)(set);
	int (*set_range)(set, unsigned int, int);
	int (*list_sscanf)(set, const char *);
	int (*list_snprintf)(char *, size_t, set);
} hw;

static struct {
	set (*alloc)(unsigned int);
	void (*free)(set);
	set (*setbit)(set, unsigned int);
	set (*clearbit)(set, unsigned int);
	int (*isbitset)(set, unsigned int);
	set (*setall)(set);
	set (*clearall)(set);
	int (*equal)(set, set);
	unsigned int (*weight)(set);
	void (*copy)(set, set);
} nu;

static bool symbols(const char *library, const char *const *names, void *table, size_t n)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void **slot = table;

	for (size_t i = 0; handle && i < n; i++) {
		slot[i] = dlsym(handle, names[i]);
		if (!slot[i])
			return false;
	}
	return handle != NULL;
}

bool bench_load_hwloc(void)
{
	static const char *const names[] = {
		"hwloc_bitmap_alloc",         "hwloc_bitmap_free",       "hwloc_bitmap_set",
		"hwloc_bitmap_isset",         "hwloc_bitmap_and",        "hwloc_bitmap_or",
		"hwloc_bitmap_xor",           "hwloc_bitmap_andnot",     "hwloc_bitmap_weight",
		"hwloc_bitmap_isequal",       "hwloc_bitmap_isincluded", "hwloc_bitmap_intersects",
		"hwloc_bitmap_first",         "hwloc_bitmap_next",       "hwloc_bitmap_copy",
		"hwloc_bitmap_zero",          "hwloc_bitmap_set_range",  "hwloc_bitmap_list_sscanf",
		"hwloc_bitmap_list_snprintf",
	};

	_Static_assert(sizeof(names) == sizeof(hw), "a name for each slot");
	return hw.alloc || symbols("libhwloc.so.15", names, &hw, sizeof(names) / sizeof(names[0]));
}

bool bench_load_libnuma(void)
{
	static const char *const names[] = {
		"numa_bitmask_alloc",      "numa_bitmask_free",     "numa_bitmask_setbit",
		"numa_bitmask_clearbit",   "numa_bitmask_isbitset", "numa_bitmask_setall",
		"numa_bitmask_clearall",   "numa_bitmask_equal",    "numa_bitmask_weight",
		"copy_bitmask_to_bitmask",
	};

	_Static_assert(sizeof(names) == sizeof(nu), "a name for each slot");
	return nu.alloc || symbols("libnuma.so.1", names, &nu, sizeof(names) / sizeof(names[0]));
}

set bench_hwloc_bitmap(const struct mc_cpumask *mask)
{
	set s = hw.alloc ? hw.alloc() : NULL;
	unsigned int cpu;

	if (s) {
		/* As large as it will ever get: growth is not what is measured. */
		hw.set_range(s, 0, (int)mask->nbits - 1);
		hw.zero(s);
		mc_for_each_cpu (cpu, mask)
			hw.set(s, cpu);
	}
	return s;
}

bool bench_hwloc_equals(set bitmap, const struct mc_cpumask *mask)
{
	bool same = hw.weight(bitmap) == (int)mc_cpumask_weight(mask);
	unsigned int cpu;

	mc_for_each_cpu (cpu, mask)
		same &= hw.isset(bitmap, cpu) != 0;
	return same;
}

bool bench_libnuma_equals(set bitmask, const struct mc_cpumask *mask)
{
	bool same = nu.weight(bitmask) == mc_cpumask_weight(mask);
	unsigned int cpu;

	mc_for_each_cpu (cpu, mask)
		same &= nu.isbitset(bitmask, cpu) != 0;
	return same;
}

void bench_hwloc_free(set bitmap)
{
	if (bitmap)
		hw.free(bitmap);
}

set bench_libnuma_bitmask(const struct mc_cpumask *mask)
{
	set s = nu.alloc ? nu.alloc(mask->nbits) : NULL;
	unsigned int cpu;

	if (s)
		mc_for_each_cpu (cpu, mask)
			nu.setbit(s, cpu);
	return s;
}

void bench_libnuma_free(set bitmask)
{
	if (bitmask)
		nu.free(bitmask);
}

/* ---- hwloc ----------------------------------------------------------------------------------- */

LOOP(h_and, hw.and (o->hd, o->ha, o->hb))
LOOP(h_or, hw.or (o->hd, o->ha, o->hb))
LOOP(h_xor, hw.xor (o->hd, o->ha, o->hb))
LOOP(h_andnot, hw.andnot(o->hd, o->ha, o->hb))
LOOP(h_weight, o->result = (uint64_t)(hw.weight(o->ha)))
LOOP(h_equal, o->result = (uint64_t)(hw.isequal(o->ha, o->hb)))
LOOP(h_subset, o->result = (uint64_t)(hw.isincluded(o->ha, o->hb)))
LOOP(h_intersects, o->result = (uint64_t)(hw.intersects(o->ha, o->hb)))
LOOP(h_first, o->result = (uint64_t)(hw.first(o->ha)))
LOOP(h_iter, int last = 0;
     for (int cpu = hw.first(o->ha); cpu != -1; cpu = hw.next(o->ha, cpu)) VISIT(cpu, last);
     o->result = (uint64_t)last)
LOOP(h_copy, hw.copy(o->hd, o->ha))
LOOP(h_zero, hw.zero(o->hd))
LOOP(h_fill, hw.set_range(o->hd, 0, (int)o->nbits - 1))
LOOP(h_parse, o->result = (uint64_t)hw.list_sscanf(o->hd, o->text))
LOOP(h_print, o->result = (uint64_t)hw.list_snprintf(o->buf, o->bufsize, o->ha))

static void h_set(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		hw.set(o->hd, cpu);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

static void h_test(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		o->result = (uint64_t) !!hw.isset(o->ha, cpu);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

const struct peer peer_hwloc = {
	"hwloc",
	{
		[OP_AND] = h_and,           [OP_OR] = h_or,
		[OP_XOR] = h_xor,           [OP_ANDNOT] = h_andnot,
		[OP_WEIGHT] = h_weight,     [OP_EQUAL] = h_equal,
		[OP_SUBSET] = h_subset,     [OP_INTERSECTS] = h_intersects,
		[OP_FIRST] = h_first,       [OP_ITER_DENSE] = h_iter,
		[OP_ITER_SPARSE] = h_iter,  [OP_SET] = h_set,
		[OP_TEST] = h_test,         [OP_COPY] = h_copy,
		[OP_ZERO] = h_zero,         [OP_FILL] = h_fill,
		[OP_PARSE_RANGE] = h_parse, [OP_PARSE_ALTERNATE] = h_parse,
		[OP_PRINT_RANGE] = h_print, [OP_PRINT_ALTERNATE] = h_print,
	},
};

/* ---- libnuma --------------------------------------------------------------------------------- */

/* d = a OP b, bit by bit. */
#define N_BINARY(name, x_op_y)                                                     \
	LOOP(                                                                      \
		name, for (unsigned int c = 0; c < o->nbits; c++) {                \
			bool x = nu.isbitset(o->na, c), y = nu.isbitset(o->nb, c); \
			if (x_op_y)                                                \
				nu.setbit(o->nd, c);                               \
			else                                                       \
				nu.clearbit(o->nd, c);                             \
		})
N_BINARY(n_and, x &&y)
N_BINARY(n_or, x || y)
N_BINARY(n_xor, x != y)
N_BINARY(n_andnot, x && !y)
LOOP(n_weight, o->result = (uint64_t)(nu.weight(o->na)))
LOOP(n_equal, o->result = (uint64_t)(nu.equal(o->na, o->nb)))
/* Until the first bit that decides. */
#define N_TEST(name, decides, answer) \
	LOOP(name, unsigned int c = 0; while (c < o->nbits && !(decides)) c++; o->result = (answer))
N_TEST(n_subset, nu.isbitset(o->na, c) && !nu.isbitset(o->nb, c), c == o->nbits)
N_TEST(n_intersects, nu.isbitset(o->na, c) && nu.isbitset(o->nb, c), c < o->nbits)
N_TEST(n_first, nu.isbitset(o->na, c), c)
LOOP(n_iter, unsigned int last = 0;
     for (unsigned int c = 0; c < o->nbits; c++) if (nu.isbitset(o->na, c)) VISIT(c, last);
     o->result = last)
LOOP(n_copy, nu.copy(o->na, o->nd))
LOOP(n_zero, nu.clearall(o->nd))
LOOP(n_fill, nu.setall(o->nd))

static void n_set(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		nu.setbit(o->nd, cpu);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

static void n_test(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		o->result = (uint64_t) !!nu.isbitset(o->na, cpu);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

const struct peer peer_libnuma = {
	"libnuma",
	{
		[OP_AND] = n_and,
		[OP_OR] = n_or,
		[OP_XOR] = n_xor,
		[OP_ANDNOT] = n_andnot,
		[OP_WEIGHT] = n_weight,
		[OP_EQUAL] = n_equal,
		[OP_SUBSET] = n_subset,
		[OP_INTERSECTS] = n_intersects,
		[OP_FIRST] = n_first,
		[OP_ITER_DENSE] = n_iter,
		[OP_ITER_SPARSE] = n_iter,
		[OP_SET] = n_set,
		[OP_TEST] = n_test,
		[OP_COPY] = n_copy,
		[OP_ZERO] = n_zero,
		[OP_FILL] = n_fill,
	},
};
