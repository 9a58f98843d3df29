/* SPDX-License-Identifier: MIT */
/*
 * bench_run.h - inside `manycore bench run`: the worker that does the same work inside and outside
 * of the emulated machine.
 *
 * A worker is this program again, started as `manycore bench --run-worker`; it reads lines "WORK
 * COUNT" and answers each with the nanoseconds that the work took. It stays alive over all rounds,
 * so start-up costs are in the start cases only.
 */
#ifndef MC_BENCH_RUN_H
#define MC_BENCH_RUN_H

#include <stdbool.h>
#include <sys/types.h>

struct bench;

/* The bench, as table.c lists it. */
void bench_run_main(struct bench *b);

/* The worker's main: serves standard input until it ends. bench.c calls it. */
int bench_run_worker(void);
/* `manycore bench --run-stamp`: writes the monotonic clock to standard output and ends. */
int bench_run_stamp(void);

struct bench_worker {
	pid_t pid;    /* of `manycore run` or of the worker itself */
	int to, from; /* its standard input and output */
};

/* Starts argv with pipes to it. 0 or -errno. */
int bench_worker_start(struct bench_worker *w, const char *const argv[]);
/* Nanoseconds of one answer; negative when the worker is gone (all later ones too). */
double bench_worker_ask(struct bench_worker *w, const char *work, unsigned int count);
/* Ends it; true when it had ended well. */
bool bench_worker_stop(struct bench_worker *w);

/*
 * bench_run_notify.c: a worker whose sched_getaffinity is answered with a constant by a supervisor
 * in another process, over a filter of three instructions: the bare round trip of a notification.
 * Same protocol. 0 or -errno.
 */
int bench_notify_start(struct bench_worker *w);

#endif
