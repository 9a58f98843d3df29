/* SPDX-License-Identifier: MIT */
/*
 * counter.h - counters that many threads add to and few read: the kernel's percpu_counter, without
 * its lock.
 *
 * Each copy has a 64-bit total of what was added on it, and remembers how much of it the shared
 * `count` was told. An add that takes the untold part to `batch` or beyond tells it, by one atomic
 * addition. So mc_counter_read()  costs a load; it is off by less than batch per copy in use, plus
 * what adds that have not yet returned are just telling (each less than batch + its own amount);
 *   mc_counter_sum()   walks the copies in use and is exact for every add that returned before it
 * began; of adds that run meanwhile it has all or nothing. (The kernel's sum takes a lock for that;
 * here totals are never reset, so there is nothing to lock.) Adding is safe in signal handlers and
 * takes no lock, whichever path it takes. Arithmetic wraps modulo 2^64.
 *
 * A counter lies in memory of the caller, who must not copy it while it is in use. Two cache lines:
 * one that adds read, one that they seldom write.
 */
#ifndef MANYCORE_COUNTER_H
#define MANYCORE_COUNTER_H

#include "percpu.h"

MC_BEGIN_DECLS

struct mc_counter {
	/* Private. Read by every add: what the handle means, so that no add need take it apart. */
	uint64_t handle; /* int64_t total, one per copy; 0: not initialised */
	const struct mc_percpu_kind *kind;
	uint64_t base_at; /* the first copy's total */
	uint64_t told_at; /* the first copy's uint32_t told */
	uint64_t stride;  /* from copy to copy */
	uint32_t batch;
	uint32_t group; /* in the first of init_many: how many */
	/* Written when a batch is told, by set and by large adds. */
	int64_t count __attribute__((aligned(64))); /* what read() gives */
	int64_t base;                               /* sum() = base + all totals */
	uint32_t lock;                              /* of limited_add and set */
} __attribute__((aligned(64)));

#define MC_COUNTER_LOCAL_BATCH (1 << 29) /* the largest batch: a copy tells only when it must */

/* ---- life ------------------------------------------------------------------------------------ */

/* A counter with the value `amount`, from a pool (NULL: the default). batch 0: max(32, 2 * CPUs
 * online). 0, -EINVAL (batch above MC_COUNTER_LOCAL_BATCH) or -ENOMEM. About as dear as an
 * allocation of 16 bytes. */
MC_API int mc_counter_init(struct mc_counter *c, int64_t amount);
/* `n` counters with one allocation, 12 bytes a counter and copy (at most 5461): much cheaper than n
 * times the above. They are destroyed together, by mc_counter_destroy_many() on the first. */
MC_API int mc_counter_init_many(struct mc_counter *c, unsigned int n, int64_t amount);
MC_API int mc_counter_init_pool(struct mc_counter *c, unsigned int n, int64_t amount,
				uint32_t batch, struct mc_percpu_pool *pool);
/* Destroying one that was never initialised (all zero) or twice is allowed. */
MC_API void mc_counter_destroy(struct mc_counter *c);
MC_API void mc_counter_destroy_many(struct mc_counter *c, unsigned int n);
static inline bool mc_counter_initialized(const struct mc_counter *c)
{
	return c->handle != 0;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Adds with a batch of the call's own: 1 to MC_COUNTER_LOCAL_BATCH; others are taken as the nearest
 * of these. */
static inline void mc_counter_add_batch(struct mc_counter *c, int64_t amount, int32_t batch);
/* With the counter's batch. */
static inline void mc_counter_add(struct mc_counter *c, int64_t amount);
/* Touches only the own copy unless 2^29 are untold: for counters that are only ever summed. */
static inline void mc_counter_add_local(struct mc_counter *c, int64_t amount);
static inline void mc_counter_sub(struct mc_counter *c, int64_t amount);
static inline void mc_counter_sub_local(struct mc_counter *c, int64_t amount);
static inline void mc_counter_inc(struct mc_counter *c);
static inline void mc_counter_dec(struct mc_counter *c);

/* Adds unless the exact value would pass `limit` (above it for amount > 0, below it for amount <
 * 0): true when it did or amount is 0. Callers of this exclude each other by a lock (so: not in
 * signal handlers) and together never pass the limit; other adds are not held back. Costs a locked
 * add while read() is farther from the limit than twice its error, a sum within; so other adds must
 * not use a larger batch than the counter's (add_batch, add_local). */
MC_API bool mc_counter_limited_add(struct mc_counter *c, int64_t limit, int64_t amount);

/* ---- reading --------------------------------------------------------------------------------- */

static inline int64_t mc_counter_read(const struct mc_counter *c);
/* Never below 0, for counters that cannot be but for the error. */
static inline int64_t mc_counter_read_positive(const struct mc_counter *c);
MC_API int64_t mc_counter_sum(const struct mc_counter *c);
static inline int64_t mc_counter_sum_positive(const struct mc_counter *c);

/* Compares with rhs: -1, 0 or 1. Sums only when read() is within twice its error of rhs (the second
 * half is for adds that are telling just now). The second takes the batch that adds used. */
MC_API int mc_counter_compare(const struct mc_counter *c, int64_t rhs);
MC_API int mc_counter_compare_batch(const struct mc_counter *c, int64_t rhs, int32_t batch);

/* Makes the value `amount`. Adds that run meanwhile may count before or after, or (in read() only)
 * be lost: as in the kernel, not for counters in use. */
MC_API void mc_counter_set(struct mc_counter *c, int64_t amount);
/* Tells the calling thread's own copy's untold part, so that read() knows it. */
MC_API void mc_counter_sync(struct mc_counter *c);
MC_API void mc_counter_set_batch(struct mc_counter *c, uint32_t batch);

/* ---- bodies ---------------------------------------------------------------------------------- */

/* What an add read, "read" once more where its fast and its slow path meet. No instruction comes of
 * it on the fast path; but gcc then sees that a loop of adds has them all in registers unless the
 * slow path was taken, and loads them again only there. clang would only spill them. */
#ifdef __clang__
#define MC_COUNTER_KEEP_(c) ((void)0)
#else
#define MC_COUNTER_KEEP_(c)                                                                   \
	__asm__ volatile(""                                                                   \
			 :                                                                    \
			 : "rm"((c)->kind), "rm"((c)->kind->cs_off), "rm"((c)->kind->id_off), \
			   "rm"((c)->base_at), "rm"((c)->told_at), "rm"((c)->stride))
#endif

/* rc: 1 the add is done but for telling; -1 nothing is done yet. */
MC_API void mc_counter_add_slow(struct mc_counter *c, int64_t amount, uint32_t batch, int rc);

/* Always: gcc takes each line of the sequence for a costly instruction. */
#define MC_COUNTER_ADD_ static inline __attribute__((always_inline))

MC_COUNTER_ADD_ void mc_counter_add__(struct mc_counter *c, int64_t amount, uint32_t batch)
{
	int rc = -1;

#if MC_PERCPU_RSEQ
	/* Larger ones could wrap the 32-bit difference between total and told. */
	if (__builtin_expect((uint64_t)amount + (UINT64_C(1) << 29) <= UINT64_C(1) << 30, 1))
		rc = mc_rseq_counter_add(c->kind, c->base_at, c->told_at, c->stride, &c->count,
					 amount, batch - 1);
#endif
	if (__builtin_expect(rc, 0))
		mc_counter_add_slow(c, amount, batch, rc);
#if MC_PERCPU_RSEQ
	MC_COUNTER_KEEP_(c);
#endif
}

MC_COUNTER_ADD_ void mc_counter_add_batch(struct mc_counter *c, int64_t amount, int32_t batch)
{
	mc_counter_add__(c, amount,
			 batch < 1                        ? 1
			 : batch > MC_COUNTER_LOCAL_BATCH ? MC_COUNTER_LOCAL_BATCH
							  : (uint32_t)batch);
}

MC_COUNTER_ADD_ void mc_counter_add(struct mc_counter *c, int64_t amount)
{
	/* Volatile: a loop must see what another thread sets. (gcc would load all else anew behind
	 * an atomic load.) */
	mc_counter_add__(c, amount, *(const volatile uint32_t *)&c->batch);
}

MC_COUNTER_ADD_ void mc_counter_add_local(struct mc_counter *c, int64_t amount)
{
	mc_counter_add__(c, amount, MC_COUNTER_LOCAL_BATCH);
}

MC_COUNTER_ADD_ void mc_counter_sub(struct mc_counter *c, int64_t amount)
{
	mc_counter_add(c, (int64_t) - (uint64_t)amount);
}

MC_COUNTER_ADD_ void mc_counter_sub_local(struct mc_counter *c, int64_t amount)
{
	mc_counter_add_local(c, (int64_t) - (uint64_t)amount);
}

MC_COUNTER_ADD_ void mc_counter_inc(struct mc_counter *c)
{
	mc_counter_add(c, 1);
}

MC_COUNTER_ADD_ void mc_counter_dec(struct mc_counter *c)
{
	mc_counter_add(c, -1);
}

static inline int64_t mc_counter_read(const struct mc_counter *c)
{
	/* Volatile: an add may tell without the compiler knowing that it writes to memory. */
	return __atomic_load_n((const volatile int64_t *)&c->count, __ATOMIC_RELAXED);
}

static inline int64_t mc_counter_read_positive(const struct mc_counter *c)
{
	int64_t v = mc_counter_read(c);

	return v > 0 ? v : 0;
}

static inline int64_t mc_counter_sum_positive(const struct mc_counter *c)
{
	int64_t v = mc_counter_sum(c);

	return v > 0 ? v : 0;
}

MC_END_DECLS

#endif /* MANYCORE_COUNTER_H */
