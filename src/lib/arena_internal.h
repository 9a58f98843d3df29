/* SPDX-License-Identifier: MIT */
/*
 * arena_internal.h - the inside of struct mc_arena, shared by arena*.c.
 *
 * Invariants
 * - A page belongs to one part. A part's pages are claimed in order by moving `cursor` under the
 * part's lock; whoever claimed a range (a worker, a helper) is the only one to touch it until it is
 * published, under the lock again.
 * - `inflight` counts claimed, unpublished ranges. A part is finished when nothing can be claimed
 * and inflight is 0.
 * - granule[g] is 1 once the descriptors of the g-th granule may be read; set before any of its
 * pages is published.
 * - Lock order: the wait lock, then a part's. Nothing else is taken inside another lock.
 */
#ifndef MC_ARENA_INTERNAL_H
#define MC_ARENA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <manycore/arena.h>
#include "lib/pageinit.h"

#define NO_PAGE UINT64_MAX

/* Bytes that may be taken before limits are read again, and when they were read. */
struct mc_arena_budget {
	_Atomic(int64_t) left;
	_Atomic(uint64_t) ns;
};

struct mc_arena_part {
	_Alignas(64) pthread_mutex_t lock;
	pthread_cond_t changed;  /* a range was published or the part stopped; with lock */
	atomic_uint asks;        /* allocations asked for, so that workers notice; lock to change */
	atomic_uint users;       /* calls in progress: destroy waits for 0 */
	unsigned int node;       /* as the caller's topology counts; MC_ANY_NODE */
	uint64_t first, end;     /* pages */
	uint64_t cursor;         /* next page to claim; lock */
	unsigned int inflight;   /* lock */
	atomic_uint helpers;   /* of inflight: not workers'. A worker steps aside for each; lock */
	unsigned int aside;    /* of inflight: workers that stepped aside in the middle; lock */
	enum mc_arena_stop stop; /* lock */
	int err;
	int placement_err;
	char why[200];        /* of the stop */
	unsigned int threads; /* workers that served it; lock */
	unsigned int planned; /* workers it was given at first */
	unsigned int set;  /* the first part whose workers run on the same CPUs */
	unsigned int busy; /* of a set, in its first part: workers it has; gate_lock */
	unsigned int slow_in_row;
	bool gave_up_thp, orphan_taken;
	uint64_t ready, bad, resident, helped, slow_chunks; /* pages; lock */
	uint64_t start_ns, end_ns;
	struct mc_cpumask *cpus; /* where its workers run; NULL: anywhere */
	struct mc_cpumask *bound; /* the machine's nodes that its memory may not leave; NULL: any */
	struct mc_arena_budget budget; /* of those */
	uint64_t nonempty;       /* bit per order */
	uint64_t head[MC_ARENA_ORDERS], nr_free[MC_ARENA_ORDERS];
	struct mc_arena_stats stats;
};

struct mc_arena_worker {
	struct mc_arena *arena;
	struct mc_arena_part *part;
	pthread_t thread;
};

struct mc_arena_phys; /* arena_phys.c */

struct mc_arena {
	struct mc_arena_attr attr;
	pid_t pid;
	volatile uint32_t
		*alive;   /* 1; wiped to 0 in a child. NULL: the kernel can't, compare pids */
	char *base, *map; /* map: what to unmap, base is aligned inside */
	size_t map_bytes;
	uint64_t pages, size;    /* size = pages << shift */
	unsigned int shift;      /* of a page */
	uint64_t chunk, granule; /* pages; chunk is atomic */
	char *desc;              /* descriptors, stride apart */
	size_t desc_bytes, stride;
	_Atomic(unsigned char) *desc_block; /* a state for each DESC_BLOCK bytes of descriptors */
	_Atomic(unsigned char) *granule_up;
	uint64_t nr_granules;
	int fd;      /* memfd, or a duplicate of the caller's */
	bool advice; /* MADV_POPULATE_* works */
	bool charge; /* memory taken counts against the limits */
	bool hugetlb, memory_file;
	unsigned int nr_parts;
	struct mc_arena_part *part;
	unsigned int nr_workers;
	struct mc_arena_worker *worker;
	const struct mc_topology *topology;
	struct mc_topology *own_topology;
	struct mc_nodemask *nodes;
	struct mc_cpumask *affinity; /* of the creator */
	struct mc_limits *limits;
	pthread_mutex_t limit_lock;
	int64_t margin;
	struct mc_arena_budget budget;
	struct mc_arena_phys *phys;
	uint64_t t0;
	atomic_bool cancel, destroying;
	atomic_uint users, waiters, live;
	_Atomic(uint64_t) ready, bad; /* pages, all parts */
	_Atomic(uint64_t) wake_at;    /* of ready: the least that a sleeping wait wants; wait_lock
					 to change. Parts and workers that end wake them too */
	pthread_mutex_t wait_lock, progress_lock;
	pthread_cond_t wait_cond; /* something was published or a worker ended, CLOCK_MONOTONIC;
				     with wait_lock */
	pthread_mutex_t gate_lock; /* and who works on which CPUs */
	pthread_cond_t gate_cond;
	bool gate_open;
	_Atomic(uint64_t) progress_ns;
};

enum { DESC_BLOCK = 2 << 20 };

static inline struct mc_page *arena_page(const struct mc_arena *a, uint64_t index)
{
	return (struct mc_page *)(a->desc + index * a->stride);
}
static inline char *arena_addr(const struct mc_arena *a, uint64_t index)
{
	return a->base + (index << a->shift);
}

uint64_t arena_now(void);
bool arena_in_child(const struct mc_arena *a);

/* arena_chunk.c. claim: takes the next range of the part, lock held; false: none. run: brings it up
 * and publishes it. */
bool arena_claim(struct mc_arena *a, struct mc_arena_part *p, uint64_t *first, uint64_t *end,
		 bool helping);
void arena_run_chunk(struct mc_arena *a, struct mc_arena_part *p, uint64_t first, uint64_t end,
		     bool helping);
bool arena_part_finished(const struct mc_arena *a, const struct mc_arena_part *p); /* lock held */
void arena_notify(struct mc_arena *a);

/* arena_live.c: a reference to the live machine, kept over calls while nothing in it changed; NULL:
 * it can't be read. */
struct mc_topology *arena_live_topology(void);

/* arena_work.c */
int arena_start_workers(struct mc_arena *a);
void arena_join_workers(struct mc_arena *a);

/* arena_buddy.c; lock held. */
void arena_buddy_init(struct mc_arena_part *p);
void arena_buddy_add(struct mc_arena *a, struct mc_arena_part *p, uint64_t first, uint64_t end);

/* arena_stop.c: turns a failed populate at `page` into a stop with words. lock not held. */
enum mc_arena_stop arena_diagnose(const struct mc_arena *a, const struct mc_arena_part *p,
				  uint64_t page, int *err, char *why, size_t size);

/* arena_map.c */
int arena_map(struct mc_arena *a, struct mc_error *error);
int arena_place(struct mc_arena *a, struct mc_error *error);
void arena_thread_policy(struct mc_arena *a, const struct mc_arena_part *p);

/* arena_phys.c */
int arena_phys_open(struct mc_arena *a, struct mc_error *error);
void arena_phys_close(struct mc_arena *a);
int arena_phys_fill(struct mc_arena *a, uint64_t first, uint64_t end, uint64_t *done);
uint64_t arena_phys_frame(const struct mc_arena *a, uint64_t page);

#endif
