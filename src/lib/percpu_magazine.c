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
#include "lib/percpu_internal.h"
#include "lib/percpu_magazine.h"

enum { CAP_MAX = 64 };

/* Sizes, how many a magazine holds (4096 bytes, 4 to 64), where it lies in a copy. */
#define CLASS(size, cap, words)      \
	{                            \
		size, cap, (words)*8 \
	}
const struct mc_class mc_class[MC_NR_CLASSES] = {
	CLASS(8, 64, 0),     CLASS(16, 64, 65),   CLASS(24, 64, 130),  CLASS(32, 64, 195),
	CLASS(48, 64, 260),  CLASS(64, 64, 325),  CLASS(80, 51, 390),  CLASS(96, 42, 442),
	CLASS(128, 32, 485), CLASS(160, 25, 518), CLASS(192, 21, 544), CLASS(256, 16, 566),
	CLASS(320, 12, 583), CLASS(384, 10, 596), CLASS(512, 8, 607),  CLASS(640, 6, 616),
	CLASS(768, 5, 623),  CLASS(1024, 4, 629),
};

const uint8_t mc_class_by_grains[MC_CLASS_MAX / MC_GRAIN + 1] = {
	[0] = 0,          [1] = 0,          [2] = 1,          [3] = 2,           [4] = 3,
	[5 ... 6] = 4,    [7 ... 8] = 5,    [9 ... 10] = 6,   [11 ... 12] = 7,   [13 ... 16] = 8,
	[17 ... 20] = 9,  [21 ... 24] = 10, [25 ... 32] = 11, [33 ... 40] = 12,  [41 ... 48] = 13,
	[49 ... 64] = 14, [65 ... 80] = 15, [81 ... 96] = 16, [97 ... 128] = 17,
};

static size_t class_align(unsigned int class)
{
	size_t low = mc_class[class].size & -(size_t)mc_class[class].size;

	return low < MC_LINE ? low : MC_LINE;
}

static size_t copy_bytes(void)
{
	const struct mc_class *last = &mc_class[MC_NR_CLASSES - 1];

	return last->offset + 8 + 8 * (size_t)last->cap;
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

/* ---- refill and flush ------------------------------------------------------------------------ */

static void give_back(struct mc_percpu_pool *pool, uint64_t h)
{
	mc_pool_give(pool, mc_chunk_of(h), MC_HANDLE_ADDRESS_(h));
}

/* Into the depot while it has room, else to the chunk. Under the mutex. */
static void put(struct mc_percpu_pool *pool, unsigned int class, uint64_t h)
{
	struct mc_mag_depot *d = &pool->depot[class];

	if (d->n < 2 * mc_class[class].cap)
		d->obj[d->n++] = h;
	else
		give_back(pool, h);
}

static uint64_t get(struct mc_percpu_pool *pool, unsigned int class)
{
	struct mc_mag_depot *d = &pool->depot[class];
	unsigned int size = mc_class[class].size;
	uint64_t at;

	if (d->n)
		return d->obj[--d->n];
	at = mc_pool_take(pool, size, class_align(class), (uint8_t)(class + 1));
	return at ? at | mc_pool_tag(pool, pool->side[0].stride) : 0;
}

uint64_t mc_mag_refill(struct mc_percpu_pool *pool, unsigned int class)
{
	unsigned int want = mc_class[class].cap / 2, n = 0;
	uint64_t batch[CAP_MAX / 2 + 1], h;

	pthread_mutex_lock(&pool->lock);
	mc_pool_count(pool, mc_class[class].size);
	h = get(pool, class);
	while (h && n < want && (batch[n] = get(pool, class)))
		n++;
	pthread_mutex_unlock(&pool->lock);
	while (n && !mc_mag_push(pool, class, batch[n - 1]))
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

void mc_mag_flush(struct mc_percpu_pool *pool, unsigned int class, uint64_t h)
{
	uint64_t batch[CAP_MAX / 2];
	unsigned int n = 0;

	while (n < mc_class[class].cap / 2u && !mc_mag_pop(pool, class, &batch[n]))
		n++;
	pthread_mutex_lock(&pool->lock);
	put(pool, class, h);
	while (n)
		put(pool, class, batch[--n]);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- emptying, counting ---------------------------------------------------------------------- */

static struct mc_mag *magazine(const struct mc_percpu_pool *pool, unsigned int copy,
			       unsigned int class)
{
	return (struct mc_mag *)(pool->mags_map + copy * pool->mag_stride + mc_class[class].offset);
}

/* Copies whose magazines may hold something: what was never live was never written. */
static unsigned int used_copies(const struct mc_percpu_pool *pool)
{
	unsigned int n = mc_pool_walk(pool);

	return n < pool->copies ? n : pool->copies;
}

static void empty(struct mc_percpu_pool *pool, struct mc_mag *m)
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
			struct mc_mag *m = magazine(pool, i, class);

			if (!rseq && !alone)
				while (__atomic_exchange_n(&m->lock, 1, __ATOMIC_ACQUIRE))
					sched_yield();
			empty(pool, m);
			if (!rseq)
				mc_mag_unlock(m);
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
		*bytes += n * mc_class[class].size;
	}
}
