/* SPDX-License-Identifier: MIT */
/*
 * arena.h - very large memory, initialised in parallel, node by node, in the background.
 *
 * An arena is one region of memory with a page descriptor for each of its pages, cut into parts:
 * one part a memory node, or a single part under an interleaving policy. mc_arena_create() returns
 * when the first part of it is usable. Workers bound to each node's CPUs bring up the rest chunk by
 * chunk: fault the memory in, write the descriptors, call the caller back, hand the pages to the
 * node's page allocator. An allocation that finds nothing ready *helps*: it brings up the next
 * chunk itself, while the workers go on.
 *
 * It never dies of what it meets. No huge pages left, a full tmpfs, a file that ends too early, a
 * memory cgroup's limit, a poisoned page, an old kernel: the part stops there, the reports say how
 * far each node came and why, and what is ready stays usable. No signal is used or raised. (The
 * kernel may still kill a process whose cgroup's limit others fill.)
 *
 * Threads: every call may be made by any thread at any time, mc_arena_destroy() too while others
 * wait or allocate: those return -ECANCELED; calls that begin after it are the caller's fault. Only
 * what says so is async-signal safe.
 *
 * fork: workers exist in the parent only. In the child every call answers -ECHILD (NULL and errno),
 * except mc_arena_destroy(), which releases the child's copy; memory that was handed out stays
 * readable and writable there: a copy of the parent's for private backings, the same memory for
 * MEMFD and FILE.
 */
#ifndef MANYCORE_ARENA_H
#define MANYCORE_ARENA_H

#include <stdbool.h>
#include <sys/types.h>
#include "base.h"
#include "cpumask.h"
#include "topology.h"

MC_BEGIN_DECLS

struct mc_arena;

enum mc_arena_backing {
	MC_ARENA_ANON,    /* private anonymous memory in base pages */
	MC_ARENA_THP,     /* the same in transparent huge pages where the kernel gives them */
	MC_ARENA_HUGETLB, /* private memory of the hugetlb pool, page_size 2 MiB, 1 GiB ... */
	MC_ARENA_MEMFD,   /* a memfd, mapped shared; page_size above the base page: hugetlb */
	MC_ARENA_FILE,    /* the caller's descriptor mapped shared: tmpfs, hugetlbfs, a regular file */
};

/* Where the pages lie. SPLIT cuts the arena into one part a node (equal, in whole chunks) and
 * prefers that node; the others make one part, and are the kernel's policies (set_mempolicy(2))
 * over `nodes`. */
enum mc_arena_policy {
	MC_ARENA_SPLIT,
	MC_ARENA_DEFAULT, /* whatever the process's own policy says */
	MC_ARENA_LOCAL,
	MC_ARENA_BIND,
	MC_ARENA_PREFERRED,
	MC_ARENA_PREFERRED_MANY,
	MC_ARENA_INTERLEAVE,
	MC_ARENA_WEIGHTED_INTERLEAVE,
};

enum {
	MC_ARENA_READ = 1,           /* FILE: map read-only and read in, writing and allocating nothing */
	MC_ARENA_NO_PAGES = 2,       /* descriptors and callback only; memory comes when it is touched */
	MC_ARENA_NO_DESCRIPTORS = 4, /* memory and callback only; no descriptors, no allocation */
	MC_ARENA_STRICT = 8,         /* a placement that the kernel refuses is an error; SPLIT binds, not prefers */
	MC_ARENA_NO_WORKERS = 16,    /* start no threads: mc_arena_wait() and allocations do the work */
	MC_ARENA_SKIP_RESIDENT = 32, /* count pages that the page cache holds already, and pass them over */
	MC_ARENA_GROW = 64,          /* FILE: make a shorter file long enough first */
};

/* Called for each range of pages as it comes up, before any of it can be allocated, by workers and
 * by helping threads, for different ranges at once. It may use the pages and the bytes behind their
 * descriptors; it must not call the arena, except for the addresses below. A negative return stops
 * the part with that error; the range is then not handed out. */
typedef int (*mc_arena_init_fn)(void *arg, struct mc_arena *arena, size_t first_page,
				size_t nr_pages, unsigned int node);
/* Called now and then by a worker (never by two at once) with bytes ready and in all. */
typedef void (*mc_arena_progress_fn)(void *arg, uint64_t ready, uint64_t total);

/* What is wanted. Zero everything, then set `size` and what differs from the defaults. */
struct mc_arena_attr {
	enum mc_arena_backing backing;
	enum mc_arena_policy policy;
	unsigned int flags;           /* MC_ARENA_* */
	unsigned int threads;         /* workers a node; 0: mc_pageinit_max_threads() of its CPUs, or of
					 the nearest node's: with those, no more in all than CPUs */
	uint64_t size;                /* bytes; rounded up to whole pages. FILE: 0 means up to its end */
	size_t page_size;             /* 0: the backing's own (HUGETLB: the system's default huge page) */
	size_t extra;                 /* the caller's bytes behind each descriptor, zeroed */
	size_t chunk;                 /* bytes brought up in one step; 0: chosen */
	uint64_t first;               /* bytes ready when create returns; 0: one chunk */
	unsigned int phys_chunks;     /* N > 1: consecutive pages come round-robin from N equal physical chunks */
	int fd;                       /* FILE: stays the caller's and may be closed after create */
	off_t offset;                 /* FILE: where in it, a multiple of the page size */
	uint64_t thp_min_rate;        /* THP: bytes per CPU second below which huge pages are given up; 0: 64 MiB */
	const struct mc_nodemask *nodes;    /* NULL: every allowed node that has memory */
	/* NULL: the live machine, kept by the library and read again when online CPUs, nodes or
	 * what is allowed have changed. Another one (numa=fake): its nodes split the arena, and
	 * memory is placed where they are cut from a real node. Referenced until destroy. */
	const struct mc_topology *topology;
	mc_arena_init_fn init;
	mc_arena_progress_fn progress;
	void *arg;                    /* of both */
};

/* The descriptor of a page; `extra` bytes of the caller's follow it. 64 bytes. Read-only but for
 * `priv`. */
enum { MC_PAGE_ABSENT, MC_PAGE_TAIL, MC_PAGE_FREE, MC_PAGE_USED, MC_PAGE_BAD };
struct mc_page {
	uint32_t state;           /* MC_PAGE_*: TAIL is inside a run that begins at an earlier page */
	uint32_t order;           /* FREE, USED: the run is 2^order pages */
	uint32_t node, part;
	uint64_t index;           /* page number in the arena */
	uint64_t next, prev;      /* FREE: neighbours in the free list */
	uint64_t frame;           /* physical frame number under phys_chunks, else 0 */
	uint64_t priv;            /* the caller's */
	uint64_t reserved;
};

/* Creates an arena and starts its workers. On success 0 and *arena, which mc_arena_destroy()
 * releases: even if not one page came up (see mc_arena_part_report). Errors, with *error saying
 * step, object and remedy: -EINVAL (attributes), -ENOMEM (address space, RLIMIT_AS), -EAGAIN
 * (RLIMIT_MEMLOCK under mlockall), -ENODEV (no such huge page size), -EFBIG (RLIMIT_FSIZE, file too
 * short for nothing at all), -EPERM (phys_chunks without the right to read frame numbers),
 * -EOPNOTSUPP, or the kernel's under MC_ARENA_STRICT. Cost: thread creation and `first` bytes. */
MC_API int mc_arena_create(const struct mc_arena_attr *attr, struct mc_arena **arena,
			   struct mc_error *error);
/* Stops the workers within a chunk, waits for them and for calls in progress, and unmaps
 * everything. NULL is allowed. */
MC_API void mc_arena_destroy(struct mc_arena *arena);

/* Waits until `bytes` (0: all) are ready, at most timeout_ms (negative: for ever). 0; -ETIMEDOUT;
 * -ECANCELED; or, when everything has stopped short, the error of the first part that did. Without
 * workers the caller does the work. */
MC_API int mc_arena_wait(struct mc_arena *arena, uint64_t bytes, int timeout_ms);
/* Asks the workers to stop: within one chunk. Async-signal safe. What is ready stays; nothing more
 * comes up. */
MC_API void mc_arena_cancel(struct mc_arena *arena);
/* Bytes ready now. Lock-free, async-signal safe. */
MC_API uint64_t mc_arena_ready(const struct mc_arena *arena);

/* Where things are. Valid until destroy; cost: a few instructions. */
MC_API void *mc_arena_base(const struct mc_arena *arena);
MC_API uint64_t mc_arena_size(const struct mc_arena *arena);
MC_API size_t mc_arena_page_size(const struct mc_arena *arena);
MC_API size_t mc_arena_chunk_size(const struct mc_arena *arena);
MC_API int mc_arena_fd(const struct mc_arena *arena);        /* MEMFD: owned by the arena; else -1 */
MC_API void *mc_arena_address(const struct mc_arena *arena, size_t page);
/* The descriptor of the page that holds an address; NULL outside, without descriptors, or where
 * none is up yet. */
MC_API struct mc_page *mc_arena_page(const struct mc_arena *arena, const void *address);
static inline void *mc_page_extra(struct mc_page *page)
{
	return page + 1;
}

/* Chunk size for what is not begun yet; rounded up to a multiple of the smallest step (2 MiB or
 * what attr.chunk said when less, at least a page). Returns the value in effect. */
MC_API size_t mc_arena_set_chunk(struct mc_arena *arena, size_t bytes);

/* A run of 2^order pages, aligned to its size as far as the arena itself is (at least 2 MiB), or
 * NULL: ENOMEM (nothing free and nothing left to bring up), ECANCELED, EINVAL, or what stopped the
 * part. MC_ANY_NODE: the caller's node first, then by distance; a node: just that one. New memory
 * is zero, memory freed before is not. Cost: a lock per part; when nothing is ready, the bringing
 * up of a chunk. */
#define MC_ANY_NODE (~0u)
MC_API void *mc_arena_alloc(struct mc_arena *arena, unsigned int order, unsigned int node);
/* Gives a run back; merges it with its neighbours. -EINVAL: no run begins there, or it is free
 * already. */
MC_API int mc_arena_free(struct mc_arena *arena, void *run);

/* ---- what happened --------------------------------------------------------------------------- */

enum mc_arena_stop {
	MC_STOP_NONE,      /* ready, or still running */
	MC_STOP_CANCELLED,
	MC_STOP_HUGETLB,   /* no huge page left in the pool (of these nodes, for this cgroup) */
	MC_STOP_SPACE,     /* the file system is full */
	MC_STOP_END,       /* the file ends here */
	MC_STOP_LIMIT,     /* a memory cgroup's limit is near */
	MC_STOP_MEMORY,    /* out of memory, or the machine, or the nodes it is bound to, nearly are */
	MC_STOP_CALLBACK,
	MC_STOP_IO,
	MC_STOP_OTHER,
};

/* One part. Times in ns since create began. */
struct mc_arena_report {
	unsigned int node;          /* MC_ANY_NODE: a policy over several */
	unsigned int threads;       /* that worked on it, helpers not counted */
	uint64_t offset, size;      /* bytes of the arena that are this part */
	uint64_t ready;             /* bytes that are usable */
	uint64_t bad;               /* bytes of poisoned pages, left out */
	uint64_t resident;          /* of ready: found in the page cache (SKIP_RESIDENT) */
	uint64_t helped;            /* of ready: brought up by allocations and waits */
	uint64_t start_ns, end_ns;  /* end_ns 0: running */
	uint64_t slow_chunks;       /* chunks below thp_min_rate */
	enum mc_arena_stop stop;
	int err;                    /* positive errno of the stop, else 0 */
	int placement_err; /* positive errno why the pages could not be placed; 0: they were, or
			      needed not be */
	bool running, gave_up_thp;
	struct mc_error error;      /* the stop in words */
};
MC_API unsigned int mc_arena_nr_parts(const struct mc_arena *arena);
/* -EINVAL past the last part. */
MC_API int mc_arena_part_report(struct mc_arena *arena, unsigned int part,
			   struct mc_arena_report *report);
/* "node 0 deferred pages initialised in 12ms" and what else is to be said, as snprintf. */
MC_API size_t mc_arena_report_snprint(char *buf, size_t size, const struct mc_arena_report *report);

enum { MC_ARENA_ORDERS = 48 };
struct mc_arena_stats {
	uint64_t ready_pages, free_pages, used_pages, bad_pages;
	uint64_t allocs, frees, splits, merges, helps, failures;
	uint64_t free_runs[MC_ARENA_ORDERS]; /* by order */
};
MC_API int mc_arena_part_stats(struct mc_arena *arena, unsigned int part,
			       struct mc_arena_stats *stats);

/* ---- page initialisation by itself ----------------------------------------------------------- */

/* Threads for a node with these CPUs, the kernel's deferred_page_init_max_threads(): the CPUs of it
 * that this process may use (affinity, cpuset, no more than the quota of cpu.max in whole CPUs), at
 * least 1. NULL: all CPUs. */
MC_API unsigned int mc_pageinit_max_threads(const struct mc_cpumask *cpus);

/* Faults a range in (page-aligned, mapped by the caller), keeping what it holds; `write` makes the
 * pages writable. Works with and without MADV_POPULATE_*, no signal is raised. Returns 0 or -errno;
 * *done (may be NULL) gets the bytes from the start that are in, exact to the page. -EHWPOISON: the
 * page at *done is poisoned. */
MC_API int mc_pageinit_range(void *start, size_t bytes, size_t page_size, bool write, size_t *done);

MC_END_DECLS
#endif /* MANYCORE_ARENA_H */
