// SPDX-License-Identifier: MIT
/*
 * percpu_magazine.c - the front end: per copy and size class a small stack of free objects, used
 * without lock or atomics.
 *
 * In rseq modes pop and push are restartable sequences (src/arch). In atomics mode a byte-sized
 * try-lock guards each magazine: who finds it taken goes to the depot. A magazine that runs empty
 * is refilled, one that runs full is flushed by half a magazine, both through the depot: an array
 * per class under the pool's mutex, which spares the bitmaps the traffic of threads that free what
 * others allocate. Bytes are capped per class and copy (mc_class_cap()), and the depot holds two
 * magazines.
 *
 * Invariant: an object in a magazine or depot is allocated in its chunk's maps and has its class in
 * the class map. mc_mags_drain(): pool->mags is NULL behind a fence, so nobody is inside a sequence
 * that uses it; then all are emptied.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "arch/seq.h"
#include "lib/percpu_internal.h"

enum { CAP_BYTES = 4096, CAP_MAX = 64, CAP_MIN = 4 };

struct magazine {
	uint32_t n, lock;
	uint64_t obj[];
};

static const uint16_t class_size[MC_NR_CLASSES] = {8,   16,  24,  32,  48,  64,  80,  96,  128,
						   160, 192, 256, 320, 384, 512, 640, 768, 1024};

/* By (size + 7) / 8. */
static const uint8_t class_by_grains[MC_CLASS_MAX / MC_GRAIN + 1] = {
	[0] = 0,          [1] = 0,          [2] = 1,          [3] = 2,           [4] = 3,
	[5 ... 6] = 4,    [7 ... 8] = 5,    [9 ... 10] = 6,   [11 ... 12] = 7,   [13 ... 16] = 8,
	[17 ... 20] = 9,  [21 ... 24] = 10, [25 ... 32] = 11, [33 ... 40] = 12,  [41 ... 48] = 13,
	[49 ... 64] = 14, [65 ... 80] = 15, [81 ... 96] = 16, [97 ... 128] = 17,
};

unsigned int mc_class_size(unsigned int class)
{
	return class_size[class];
}

unsigned int mc_class_cap(unsigned int class)
{
	unsigned int cap = CAP_BYTES / class_size[class];

	return cap > CAP_MAX ? CAP_MAX : cap < CAP_MIN ? CAP_MIN : cap;
}

/* Objects of a class are aligned to the lowest set bit of its size, up to a line. */
unsigned int mc_class_of(size_t size, size_t align)
{
	unsigned int class;

	if (size > MC_CLASS_MAX || align > MC_LINE)
		return MC_NR_CLASSES;
	class = class_by_grains[(size + MC_GRAIN - 1) / MC_GRAIN];
	while (class < MC_NR_CLASSES && class_size[class] & (align - 1))
		class ++;
	return class;
}

static size_t class_align(unsigned int class)
{
	size_t low = class_size[class] & -(size_t)class_size[class];

	return low < MC_LINE ? low : MC_LINE;
}

/* Where a class lies in a copy's magazines. */
static size_t class_offset(unsigned int class)
{
	static const uint16_t offset[MC_NR_CLASSES] = {
		/* sums of 8 + 8 * cap, in words */
		0,   65,  130, 195, 260, 325, 390, 442, 485,
		518, 544, 566, 583, 596, 607, 616, 623, 629,
	};

	return (size_t)offset[class] * 8;
}

static size_t copy_bytes(void)
{
	return class_offset(MC_NR_CLASSES - 1) + 8 + 8 * (size_t)mc_class_cap(MC_NR_CLASSES - 1);
}

int mc_mags_create(struct mc_percpu_pool *pool)
{
	size_t stride = (copy_bytes() + 2 * MC_LINE - 1) / MC_LINE * MC_LINE;
	char *map;

	if (!(stride / MC_LINE % 2))
		stride +=
			MC_LINE; /* an odd number of lines, for the same reason as the units' gap */
	pool->depot = calloc(MC_NR_CLASSES, sizeof(*pool->depot));
	if (!pool->depot)
		return -ENOMEM;
	pool->mags_len = stride * pool->copies;
	map = mmap(NULL, pool->mags_len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) {
		free(pool->depot);
		pool->depot = NULL;
		return -ENOMEM;
	}
	madvise(map, pool->mags_len, MADV_NOHUGEPAGE);
	pool->mags = pool->mags_map = map;
	pool->mag_stride = stride;
	pool->use_mags = true;
	return 0;
}

void mc_mags_destroy(struct mc_percpu_pool *pool)
{
	if (pool->mags_map)
		munmap(pool->mags_map, pool->mags_len);
	free(pool->depot);
}

/* ---- one operation on the caller's magazine: 0, or 1: empty, full, closed or taken
 * -------------------------------------- */

/* Atomics mode: the thread's magazine, locked; NULL when it is taken or closed. */
static struct magazine *lock_magazine(struct mc_percpu_pool *pool, unsigned int class)
{
	char *mags = __atomic_load_n(&pool->mags, __ATOMIC_ACQUIRE);
	struct magazine *m;

	if (!mags)
		return NULL;
	m = (struct magazine *)(mags + mc_rt_slot() * pool->mag_stride + class_offset(class));
	return __atomic_exchange_n(&m->lock, 1, __ATOMIC_ACQUIRE) ? NULL : m;
}

static void unlock_magazine(struct magazine *m)
{
	__atomic_store_n(&m->lock, 0, __ATOMIC_RELEASE);
}

static int locked_pop(struct mc_percpu_pool *pool, unsigned int class, uint64_t *obj)
{
	struct magazine *m = lock_magazine(pool, class);
	int rc = 1;

	if (!m)
		return 1;
	if (m->n) {
		*obj = m->obj[--m->n];
		rc = 0;
	}
	unlock_magazine(m);
	return rc;
}

static int locked_push(struct mc_percpu_pool *pool, unsigned int class, uint64_t obj)
{
	struct magazine *m = lock_magazine(pool, class);
	int rc = 1;

	if (!m)
		return 1;
	if (m->n < mc_class_cap(class)) {
		m->obj[m->n++] = obj;
		rc = 0;
	}
	unlock_magazine(m);
	return rc;
}

static int pop(struct mc_percpu_pool *pool, unsigned int class, uint64_t *obj)
{
#if MC_PERCPU_RSEQ
	int rc;

	if (mc_likely(mc_rt_rseq(pool->index_kind))) {
		while ((rc = mc_seq_pop(pool->kind, &pool->mags, pool->mag_stride,
					class_offset(class), obj)) == 2)
			if (!mc_rt_raise(pool->kind))
				return 1;
		return rc;
	}
#endif
	return locked_pop(pool, class, obj);
}

static int push(struct mc_percpu_pool *pool, unsigned int class, uint64_t obj)
{
#if MC_PERCPU_RSEQ
	int rc;

	if (mc_likely(mc_rt_rseq(pool->index_kind))) {
		while ((rc = mc_seq_push(pool->kind, &pool->mags, pool->mag_stride,
					 class_offset(class), mc_class_cap(class), obj)) == 2)
			if (!mc_rt_raise(pool->kind))
				return 1;
		return rc;
	}
#endif
	return locked_push(pool, class, obj);
}

/* ---- refill and flush
 * ---------------------------------------------------------------------------------------------------
 */

static void give_back(struct mc_percpu_pool *pool, uint64_t h)
{
	mc_pool_give(pool, mc_chunk_of(h), MC_HANDLE_ADDRESS_(h));
}

/* Into the depot while it has room, else to the chunk. Under the mutex. */
static void put(struct mc_percpu_pool *pool, unsigned int class, uint64_t h)
{
	struct mc_mag_depot *d = &pool->depot[class];

	if (d->n < 2 * mc_class_cap(class))
		d->obj[d->n++] = h;
	else
		give_back(pool, h);
}

static uint64_t get(struct mc_percpu_pool *pool, unsigned int class)
{
	struct mc_mag_depot *d = &pool->depot[class];
	unsigned int size = class_size[class];
	uint64_t at;

	if (d->n)
		return d->obj[--d->n];
	at = mc_pool_take(pool, size, class_align(class), (uint8_t)(class + 1));
	return at ? at | mc_pool_tag(pool, pool->side[0].stride) : 0;
}

static uint64_t refill(struct mc_percpu_pool *pool, unsigned int class)
{
	unsigned int want = mc_class_cap(class) / 2, n = 0;
	uint64_t batch[CAP_MAX / 2 + 1], h;

	pthread_mutex_lock(&pool->lock);
	mc_pool_count(pool, class_size[class]);
	h = get(pool, class);
	while (h && n < want && (batch[n] = get(pool, class)))
		n++;
	pthread_mutex_unlock(&pool->lock);
	while (n && !push(pool, class, batch[n - 1]))
		n--;
	if (n) {
		/* Migrated to a copy that has its own, or closed. */
		pthread_mutex_lock(&pool->lock);
		while (n)
			put(pool, class, batch[--n]);
		pthread_mutex_unlock(&pool->lock);
	}
	return h;
}

uint64_t mc_mag_alloc(struct mc_percpu_pool *pool, unsigned int class)
{
	uint64_t h;

	if (mc_likely(!pop(pool, class, &h)))
		return h;
	return refill(pool, class);
}

void mc_mag_free(struct mc_percpu_pool *pool, unsigned int class, uint64_t h)
{
	uint64_t batch[CAP_MAX / 2];
	unsigned int n = 0;

	if (mc_likely(!push(pool, class, h)))
		return;
	while (n < mc_class_cap(class) / 2 && !pop(pool, class, &batch[n]))
		n++;
	pthread_mutex_lock(&pool->lock);
	put(pool, class, h);
	while (n)
		put(pool, class, batch[--n]);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- emptying, counting
 * --------------------------------------------------------------------------------------------------
 */

static struct magazine *magazine(const struct mc_percpu_pool *pool, unsigned int copy,
				 unsigned int class)
{
	return (struct magazine *)(pool->mags_map + copy * pool->mag_stride + class_offset(class));
}

/* Copies whose magazines may hold something: what was never live was never written. */
static unsigned int used_copies(const struct mc_percpu_pool *pool)
{
	unsigned int n = mc_pool_walk(pool);

	return n < pool->copies ? n : pool->copies;
}

static void empty(struct mc_percpu_pool *pool, struct magazine *m)
{
	uint32_t n = m->n;

	m->n = 0;
	while (n)
		give_back(pool, m->obj[--n]);
}

static void empty_depot(struct mc_percpu_pool *pool)
{
	for (unsigned int class = 0; class < MC_NR_CLASSES; class ++)
		while (pool->depot[class].n)
			give_back(pool, pool->depot[class].obj[--pool->depot[class].n]);
}

/* Called with pool->lock held. */
int mc_mags_drain(struct mc_percpu_pool *pool, bool alone)
{
	bool rseq = mc_rt_rseq(pool->index_kind);
	int rc = 0;

	if (!pool->use_mags)
		return 0;
	empty_depot(pool);
	if (rseq && !alone) {
		__atomic_store_n(&pool->mags, NULL, __ATOMIC_SEQ_CST);
		rc = mc_rt_fence();
	}
	for (unsigned int i = 0; !rc && i < used_copies(pool); i++)
		for (unsigned int class = 0; class < MC_NR_CLASSES; class ++) {
			struct magazine *m = magazine(pool, i, class);

			if (!rseq && !alone)
				while (__atomic_exchange_n(&m->lock, 1, __ATOMIC_ACQUIRE))
					sched_yield();
			empty(pool, m);
			if (!rseq)
				unlock_magazine(m);
		}
	/* The stores to the magazines before the pointer. */
	__atomic_store_n(&pool->mags, pool->mags_map, __ATOMIC_RELEASE);
	return rc;
}

/* A look at numbers that others may be changing. */
void mc_mags_stats(const struct mc_percpu_pool *pool, uint64_t *objects, uint64_t *bytes)
{
	*objects = *bytes = 0;
	if (!pool->use_mags)
		return;
	for (unsigned int class = 0; class < MC_NR_CLASSES; class ++) {
		uint64_t n = pool->depot[class].n;

		for (unsigned int i = 0; i < used_copies(pool); i++)
			n += __atomic_load_n(&magazine(pool, i, class)->n, __ATOMIC_RELAXED);
		*objects += n;
		*bytes += n * class_size[class];
	}
}
