/* SPDX-License-Identifier: MIT */
/* bench_percpu.h - the benches of per-CPU memory, and what they share: two threads that do the same
 * at once. */
#ifndef MC_BENCH_PERCPU_H
#define MC_BENCH_PERCPU_H

#include "cmd/bench/bench.h"

void bench_percpu_main(struct bench *b);
void bench_alloc_main(struct bench *b);
void bench_execl_main(struct bench *b);

/* fn(arg, iterations) in `threads` threads that start together (1: in the caller's); nanoseconds
 * per iteration and thread, the mean over the threads. The threads are made anew: their start is
 * not in the time. */
double bench_together(unsigned int threads, bench_fn fn, void *arg, uint64_t iterations);
/* Makes sure that two copies of the default index are in use, by running two threads at once; 0
 * when that did not work (a process bound to one CPU). */
int bench_two_live(void);

#endif
