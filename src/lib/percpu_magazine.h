/* SPDX-License-Identifier: MIT */
/*
 * percpu_magazine.h - the fast path of allocation: one pop or push on the caller's magazine.
 * Included by percpu_pool.c and percpu_magazine.c. Everything returns 0, or 1: empty, full, closed
 * or taken.
 */
#ifndef MC_PERCPU_MAGAZINE_H
#define MC_PERCPU_MAGAZINE_H

#include "arch/seq.h"
#include "lib/percpu_internal.h"

struct mc_class {
	uint16_t size, cap;
	uint32_t offset; /* of the magazine in a copy */
};
extern const struct mc_class mc_class[MC_NR_CLASSES];
extern const uint8_t mc_class_by_grains[MC_CLASS_MAX / MC_GRAIN + 1]; /* by (size + 7) / 8 */

struct mc_mag {
	uint32_t n, lock;
	uint64_t obj[];
};

/* The slow halves: another object when the magazine has none (0: no memory); what to do when it is
 * full. */
uint64_t mc_mag_refill(struct mc_percpu_pool *pool, unsigned int class);
void mc_mag_flush(struct mc_percpu_pool *pool, unsigned int class, uint64_t h);

/* Objects of a class are aligned to the lowest set bit of its size, up to a line. MC_NR_CLASSES: no
 * magazine serves. */
static inline unsigned int mc_class_of(size_t size, size_t align)
{
	unsigned int class;

	if (mc_unlikely(size > MC_CLASS_MAX || align > MC_LINE))
		return MC_NR_CLASSES;
	class = mc_class_by_grains[(size + MC_GRAIN - 1) / MC_GRAIN];
	while (mc_unlikely(mc_class[class].size & (align - 1)))
		if (++class == MC_NR_CLASSES)
			break;
	return class;
}

/* Atomics mode: the thread's magazine, locked; NULL when it is taken or closed. */
static inline struct mc_mag *mc_mag_lock(struct mc_percpu_pool *pool, unsigned int class)
{
	char *mags = __atomic_load_n(&pool->mags, __ATOMIC_ACQUIRE);
	struct mc_mag *m;

	if (!mags)
		return NULL;
	m = (struct mc_mag *)(mags + mc_rt_slot() * pool->mag_stride + mc_class[class].offset);
	return __atomic_exchange_n(&m->lock, 1, __ATOMIC_ACQUIRE) ? NULL : m;
}

static inline void mc_mag_unlock(struct mc_mag *m)
{
	__atomic_store_n(&m->lock, 0, __ATOMIC_RELEASE);
}

static inline int mc_mag_locked_pop(struct mc_percpu_pool *pool, unsigned int class, uint64_t *obj)
{
	struct mc_mag *m = mc_mag_lock(pool, class);
	int rc = 1;

	if (!m)
		return 1;
	if (m->n) {
		*obj = m->obj[--m->n];
		rc = 0;
	}
	mc_mag_unlock(m);
	return rc;
}

static inline int mc_mag_locked_push(struct mc_percpu_pool *pool, unsigned int class, uint64_t obj)
{
	struct mc_mag *m = mc_mag_lock(pool, class);
	int rc = 1;

	if (!m)
		return 1;
	if (m->n < mc_class[class].cap) {
		m->obj[m->n++] = obj;
		rc = 0;
	}
	mc_mag_unlock(m);
	return rc;
}

static inline int mc_mag_pop(struct mc_percpu_pool *pool, unsigned int class, uint64_t *obj)
{
#if MC_PERCPU_RSEQ
	int rc;

	if (mc_likely(pool->rseq)) {
		while ((rc = mc_seq_pop(pool->kind, &pool->mags, pool->mag_stride,
					mc_class[class].offset, obj)) == 2)
			if (!mc_rt_raise(pool->kind))
				return 1;
		return rc;
	}
#endif
	return mc_mag_locked_pop(pool, class, obj);
}

static inline int mc_mag_push(struct mc_percpu_pool *pool, unsigned int class, uint64_t obj)
{
#if MC_PERCPU_RSEQ
	int rc;

	if (mc_likely(pool->rseq)) {
		while ((rc = mc_seq_push(pool->kind, &pool->mags, pool->mag_stride,
					 mc_class[class].offset, mc_class[class].cap, obj)) == 2)
			if (!mc_rt_raise(pool->kind))
				return 1;
		return rc;
	}
#endif
	return mc_mag_locked_push(pool, class, obj);
}

#endif
