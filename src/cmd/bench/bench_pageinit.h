/* SPDX-License-Identifier: MIT */
/* bench_pageinit.h - the benches of memory initialisation and what they are compared with. */
#ifndef MC_BENCH_PAGEINIT_H
#define MC_BENCH_PAGEINIT_H

#include <sys/types.h>
#include <manycore/manycore.h>
#include "cmd/bench/bench.h"

void bench_pageinit_main(struct bench *b);
void bench_interleave_main(struct bench *b);

/* One way of bringing `size` bytes up by `threads` threads: the argument of every sample function.
 */
struct pageinit_job {
	enum mc_arena_backing backing;
	size_t page_size;
	uint64_t size;
	unsigned int threads, flags;
	const struct mc_topology *topo;
	char *present;    /* for memset: memory that is there already */
	double other;     /* a second result of the same run, for the peer that reports it */
	const char *path; /* page cache: the file */
	bool longest;     /* latencies: the very longest rather than p999 */
	/* pageinit_help_longest(): how many longest ones, how many of those lost their CPU to
	 * others meanwhile, and what CPU time they took themselves, ms. */
	unsigned int samples, preempted;
	double cpu_most, cpu_sum;
};

/* GB/s (Mpages/s under MC_ARENA_NO_PAGES) by an arena. 0 when it failed. */
double pageinit_arena(void *job);
double pageinit_memset(void *job);
double pageinit_touch(void *job); /* descriptors' memory, new, set by plain threads: Mpages/s */
double pageinit_map_populate(void *job);
double pageinit_madvise(void *job);     /* MADV_POPULATE_WRITE of the whole, one thread */
double pageinit_qemu(void *job);        /* what prealloc=on adds to a start of qemu-system-x86_64 */
double pageinit_cache_arena(void *job); /* a cold file into the page cache */
double pageinit_cache_vmtouch(void *job);
/* How long mmap()+munmap() in another thread waits meanwhile, ms: p999, or the longest. */
double pageinit_latency_arena(void *job);
double pageinit_latency_whole(void *job);
/* ms until the first allocation is served; `other` gets ms of the whole. */
double pageinit_first_alloc(void *job);
/* ms of the longest of 10,000 allocations from the first moment on; `other` gets ms of one chunk.
 */
double pageinit_help_longest(void *job);
double pageinit_other(void *job);

/* pageinit_pool.c: `more` huge pages of `page` bytes until restore(), or until this process ends
 * however it may. Both are false when that failed. */
struct pageinit_pool {
	long long old;
	int pipe;
	pid_t watcher;
};
long long pageinit_pool_free(uint64_t page); /* -1: no such pool */
bool pageinit_pool_raise(struct pageinit_pool *pool, uint64_t page, long long more);
bool pageinit_pool_restore(struct pageinit_pool *pool);

#endif
