/* SPDX-License-Identifier: MIT */
/*
 * bench.h - the frame of `manycore bench`: cases and their peers measured in one run, in
 * interleaved slices.
 *
 * A case is our operation plus any number of peers doing the same work. bench_run() calibrates each
 * so that a slice takes about slice_ns, then goes round: one slice of ours, one of each peer, and
 * again, `rounds` times; the median, p10 and p90 over the slices are reported and `ratio` is the
 * median over the rounds of ours/peer within the round. Units: ns an operation unless the case says
 * otherwise (rates: ratio is still ours / peer).
 */
#ifndef MC_BENCH_H
#define MC_BENCH_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_MAX_PEERS = 8 };

/* Does `iterations` operations. The frame times the call. `arg` as given in the case. */
typedef void (*bench_fn)(void *arg, uint64_t iterations);
/* Measures by itself: returns one sample in the case's unit (for work that the frame cannot repeat
 * in a loop). */
typedef double (*bench_sample_fn)(void *arg);

struct bench_side {
	const char *name;       /* peer's name; NULL for ours */
	bench_fn fn;            /* exactly one of fn and sample */
	bench_sample_fn sample;
	void *arg;
};

struct bench_case {
	const char *name;       /* "and/512" */
	const char *unit;       /* "ns" */
	struct bench_side self;
	unsigned int nr_peers;
	struct bench_side peer[BENCH_MAX_PEERS];
	unsigned int rounds;    /* 0: the run's default */
	double slice_ns;        /* 0: the default */
	double budget_s;        /* 0: none; else no further round begins after so many seconds */
	double quantile;        /* 0: the median; else what stands for each side: 0.25 for times that are disturbed
				 * upwards only, 0.75 for rates. The ratio is then of these, not within rounds. */
};

struct bench;   /* one run: options, results */

/* Measures one case and adds it to the results. */
void bench_run(struct bench *b, const struct bench_case *c);
/* Says that a peer, a case or a part is missing and why (shown as text; in JSON under "notes"). */
void bench_note(struct bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* --quick: tiny counts for smoke tests. */
bool bench_quick(const struct bench *b);
/* --size: bytes of one sample, 0: the bench's own choice. */
uint64_t bench_size(const struct bench *b);
/* --filter SUBSTRING given? Is this case wanted? Benches whose set-up is dear ask before. */
bool bench_wanted(struct bench *b, const char *case_name);

struct bench_def {
	const char *name;
	void (*run)(struct bench *b);
	const char *summary;
};
extern const struct bench_def bench_table[];    /* table.c */

/* Keeps the compiler from deleting work. */
#define bench_use(value) __asm__ volatile("" : : "g"(value) : "memory")

uint64_t bench_now_ns(void);

#endif
