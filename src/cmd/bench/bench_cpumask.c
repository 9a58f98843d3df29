// SPDX-License-Identifier: MIT
/*
 * bench_cpumask.c - `manycore bench cpumask`: mask operations against glibc's CPU_*_S, hwloc,
 * libnuma and a mask whose size is fixed at 4096 bits, as a kernel built for 4096 CPUs has.
 *
 * Operands make every operation look at the whole mask: equal masks are equal, subsets are subsets,
 * what is intersected is disjoint, and the first bit is the last one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/bench/bench_cpumask.h"

static const char *const op_names[NR_OPS] = {
	[OP_AND] = "and",
	[OP_OR] = "or",
	[OP_XOR] = "xor",
	[OP_ANDNOT] = "andnot",
	[OP_WEIGHT] = "weight",
	[OP_EQUAL] = "equal",
	[OP_SUBSET] = "subset",
	[OP_INTERSECTS] = "intersects",
	[OP_FIRST] = "first",
	[OP_ITER_DENSE] = "iter-dense",
	[OP_ITER_SPARSE] = "iter-sparse",
	[OP_SET] = "set",
	[OP_TEST] = "test",
	[OP_COPY] = "copy",
	[OP_ZERO] = "zero",
	[OP_FILL] = "fill",
	[OP_PARSE_RANGE] = "parse-range",
	[OP_PARSE_ALTERNATE] = "parse-alternate",
	[OP_PRINT_RANGE] = "print-range",
	[OP_PRINT_ALTERNATE] = "print-alternate",
};

/* ---- ours ------------------------------------------------------------------------------------ */

LOOP(our_and, mc_cpumask_and(o->d, o->a, o->b))
LOOP(our_or, mc_cpumask_or(o->d, o->a, o->b))
LOOP(our_xor, mc_cpumask_xor(o->d, o->a, o->b))
LOOP(our_andnot, mc_cpumask_andnot(o->d, o->a, o->b))
LOOP(our_weight, o->result = (uint64_t)(mc_cpumask_weight(o->a)))
LOOP(our_equal, o->result = (uint64_t)(mc_cpumask_equal(o->a, o->b)))
LOOP(our_subset, o->result = (uint64_t)(mc_cpumask_subset(o->a, o->b)))
LOOP(our_intersects, o->result = (uint64_t)(mc_cpumask_intersects(o->a, o->b)))
LOOP(our_first, o->result = (uint64_t)(mc_cpumask_first(o->a)))
LOOP(our_copy, mc_cpumask_copy(o->d, o->a))
LOOP(our_zero, mc_cpumask_zero(o->d))
LOOP(our_fill, mc_cpumask_setall(o->d))
LOOP(our_parse, o->result = (uint64_t)mc_cpulist_parse(o->d, o->text, NULL))
LOOP(our_print, o->result = mc_cpulist_snprint(o->buf, o->bufsize, o->a))

LOOP(our_iter, unsigned int cpu, last = 0; mc_for_each_cpu (cpu, o->a) VISIT(cpu, last);
     o->result = last)

static void our_set(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		mc_cpumask_set(o->d, cpu);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

static void our_test(void *arg, uint64_t n)
{
	struct operands *o = (struct operands *)arg;
	unsigned int cpu = 0;

	for (uint64_t i = 0; i < n; i++) {
		o->result = (uint64_t) !!mc_cpumask_test(o->a, cpu);
		cpu = TURN(cpu);
		bench_use(o);
	}
}

const struct peer peer_ours = {
	NULL,
	{
		[OP_AND] = our_and,           [OP_OR] = our_or,
		[OP_XOR] = our_xor,           [OP_ANDNOT] = our_andnot,
		[OP_WEIGHT] = our_weight,     [OP_EQUAL] = our_equal,
		[OP_SUBSET] = our_subset,     [OP_INTERSECTS] = our_intersects,
		[OP_FIRST] = our_first,       [OP_ITER_DENSE] = our_iter,
		[OP_ITER_SPARSE] = our_iter,  [OP_SET] = our_set,
		[OP_TEST] = our_test,         [OP_COPY] = our_copy,
		[OP_ZERO] = our_zero,         [OP_FILL] = our_fill,
		[OP_PARSE_RANGE] = our_parse, [OP_PARSE_ALTERNATE] = our_parse,
		[OP_PRINT_RANGE] = our_print, [OP_PRINT_ALTERNATE] = our_print,
	},
};

/* ---- operands -------------------------------------------------------------------------------- */

static void fill_masks(struct operands *o, unsigned int op)
{
	unsigned int n = o->nbits;

	for (unsigned int cpu = 0; cpu < n; cpu++) {
		bool a = cpu % 2 == 0, b = cpu % 3 == 0;

		if (op == OP_EQUAL)
			b = a;
		else if (op == OP_SUBSET)
			b = a || b;
		else if (op == OP_INTERSECTS)
			b = !a && b;
		else if (op == OP_FIRST)
			a = cpu == n - 1;
		else if (op == OP_ITER_DENSE || op == OP_PRINT_RANGE)
			a = true;
		else if (op == OP_ITER_SPARSE)
			a = cpu % 64 == 0;
		mc_cpumask_assign(o->a, cpu, a);
		mc_cpumask_assign(o->b, cpu, b);
	}
}

static char *list_text(unsigned int op, unsigned int nbits)
{
	struct mc_cpumask *m = mc_cpumask_alloc_bits(nbits);
	char *text = NULL;
	size_t len;

	if (!m)
		return NULL;
	for (unsigned int cpu = 0; cpu < nbits; cpu++)
		mc_cpumask_assign(m, cpu, op == OP_PARSE_RANGE || cpu % 2 == 0);
	len = mc_cpulist_snprint(NULL, 0, m);
	text = malloc(len + 1);
	if (text)
		mc_cpulist_snprint(text, len + 1, m);
	mc_cpumask_free(m);
	return text;
}

static uint64_t *fixed(const struct mc_cpumask *mask)
{
	uint64_t *w = aligned_alloc(64, FIXED_WORDS * sizeof(*w));

	if (w) {
		memset(w, 0, FIXED_WORDS * sizeof(*w));
		if (mask->nbits <= FIXED_BITS)
			memcpy(w, mask->word, (mask->nbits + 63) / 64 * sizeof(*w));
	}
	return w;
}

static cpu_set_t *glibc_set(const struct mc_cpumask *mask, size_t size)
{
	cpu_set_t *set = CPU_ALLOC(mask->nbits);

	if (set)
		mc_cpumask_to_cpuset(set, size, mask);
	return set;
}

static bool make_operands(struct operands *o, unsigned int op, unsigned int nbits)
{
	memset(o, 0, sizeof(*o));
	o->nbits = nbits;
	o->d = mc_cpumask_alloc_bits(nbits);
	o->a = mc_cpumask_alloc_bits(nbits);
	o->b = mc_cpumask_alloc_bits(nbits);
	o->fixed = mc_cpumask_alloc_bits(FIXED_BITS);
	if (!o->d || !o->a || !o->b || !o->fixed)
		return false;
	fill_masks(o, op);
	o->setsize = CPU_ALLOC_SIZE(nbits);
	o->gd = glibc_set(o->d, o->setsize);
	o->ga = glibc_set(o->a, o->setsize);
	o->gb = glibc_set(o->b, o->setsize);
	o->gtmp = glibc_set(o->d, o->setsize);
	o->hd = bench_hwloc_bitmap(o->d);
	o->ha = bench_hwloc_bitmap(o->a);
	o->hb = bench_hwloc_bitmap(o->b);
	o->nd = bench_libnuma_bitmask(o->d);
	o->na = bench_libnuma_bitmask(o->a);
	o->nb = bench_libnuma_bitmask(o->b);
	o->fd = fixed(o->d);
	o->fa = fixed(o->a);
	o->fb = fixed(o->b);
	if (nbits <= FIXED_BITS)
		mc_cpumask_copy(o->fixed, o->a);
	o->text = list_text(op, nbits);
	o->bufsize = 6 * (size_t)nbits + 16;
	o->buf = malloc(o->bufsize);
	return o->gd && o->ga && o->gb && o->gtmp && o->fd && o->fa && o->fb && o->text && o->buf;
}

static void free_operands(struct operands *o)
{
	mc_cpumask_free(o->d);
	mc_cpumask_free(o->a);
	mc_cpumask_free(o->b);
	mc_cpumask_free(o->fixed);
	CPU_FREE(o->gd);
	CPU_FREE(o->ga);
	CPU_FREE(o->gb);
	CPU_FREE(o->gtmp);
	bench_hwloc_free(o->hd);
	bench_hwloc_free(o->ha);
	bench_hwloc_free(o->hb);
	bench_libnuma_free(o->nd);
	bench_libnuma_free(o->na);
	bench_libnuma_free(o->nb);
	free(o->fd);
	free(o->fa);
	free(o->fb);
	free((char *)(uintptr_t)o->text);
	free(o->buf);
}

/* Did this peer do the same work? Runs both once. */
static bool agrees(struct operands *o, const struct peer *p, unsigned int op)
{
	const uint64_t *words = NULL;
	uint64_t result;

	mc_cpumask_zero(o->d);
	peer_ours.fn[op](o, 1);
	result = o->result;
	if (op != OP_SET)
		p->fn[op](o, 1);
	switch (op) {
	case OP_PARSE_RANGE:
	case OP_PARSE_ALTERNATE:
	case OP_AND ... OP_ANDNOT:
	case OP_COPY ... OP_FILL:
		if (p == &peer_hwloc)
			return bench_hwloc_equals(o->hd, o->d);
		if (p == &peer_libnuma)
			return bench_libnuma_equals(o->nd, o->d);
		words = p == &peer_glibc       ? (const uint64_t *)o->gd
			: op >= OP_PARSE_RANGE ? o->fixed->word
					       : o->fd;
		for (unsigned int cpu = 0; cpu < o->nbits; cpu++)
			if ((words[cpu / 64] >> cpu % 64 & 1) != mc_cpumask_test(o->d, cpu))
				return false;
		return true;
	case OP_SET:
		return true;
	default:
		return o->result == result;
	}
}

static void one_case(struct bench *b, unsigned int op, unsigned int nbits,
		     const struct peer *const *peers)
{
	struct bench_case c = {0};
	struct operands o;
	char name[64];

	snprintf(name, sizeof(name), "%s/%u", op_names[op], nbits);
	if (!bench_wanted(b, name))
		return;
	if (make_operands(&o, op, nbits)) {
		c.name = name;
		c.unit = "ns";
		c.self.fn = peer_ours.fn[op];
		c.self.arg = &o;
		for (; *peers; peers++) {
			if (!(*peers)->fn[op] || (*peers == &peer_fixed4096 && nbits > FIXED_BITS))
				continue;
			if (!agrees(&o, *peers, op))
				bench_note(b,
					   "%s: %s gives another answer: its figure means nothing",
					   name, (*peers)->name);
			c.peer[c.nr_peers].name = (*peers)->name;
			c.peer[c.nr_peers].fn = (*peers)->fn[op];
			c.peer[c.nr_peers++].arg = &o;
		}
		bench_run(b, &c);
	} else {
		bench_note(b, "%s: no memory for the operands", name);
	}
	free_operands(&o);
}

void bench_cpumask(struct bench *b)
{
	static const unsigned int sizes[] = {2, 64, 160, 512, 4096, 8192};
	const struct peer *peers[5] = {&peer_glibc};
	unsigned int n = 1;

	if (bench_load_hwloc())
		peers[n++] = &peer_hwloc;
	else
		bench_note(b, "hwloc: libhwloc.so.15 is not installed: no figures for it");
	if (bench_load_libnuma())
		peers[n++] = &peer_libnuma;
	else
		bench_note(b, "libnuma: libnuma.so.1 is not installed: no figures for it");
	peers[n++] = &peer_fixed4096;
	peers[n] = NULL;
	bench_note(b, "composed of public calls: glibc andnot (xor, and), subset (and, equal), "
		      "intersects (and, count), "
		      "first and iteration (test each), fill (set each); libnuma and, or, xor, "
		      "andnot, subset, "
		      "intersects, first and iteration (test each)");
	for (unsigned int op = 0; op < NR_OPS; op++)
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			one_case(b, op, sizes[i], peers);
}
