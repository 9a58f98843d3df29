// SPDX-License-Identifier: MIT
/*
 * percpu_trim.c - giving memory back: magazines, free chunks, empty pages, and copies that are no
 * longer live.
 *
 * Lowering the live mark. First every pool of the kind remembers the old mark as `retired` (walks
 * take the larger of the two), then the mark goes to 0 and a membarrier fence ends every sequence
 * that compared with the old one; running threads raise it again as they come. A pool's `retired`
 * goes down to the last copy in which anything but zero is left: free parts are zeroed here, parts
 * in use are only looked at. A thread that becomes live again while this looks is covered by the
 * live mark, which it raises before its first write.
 */
#include <errno.h>
#include "lib/percpu_internal.h"

static struct mc_chunk *chunk_at(struct mc_list *e)
{
	return ((struct mc_chunk_hot *)((char *)e - offsetof(struct mc_chunk_hot, list)))->chunk;
}

/* Calls fn for each chunk; the chunk may be destroyed by it. */
static size_t each_chunk(struct mc_percpu_pool *pool,
			 size_t (*fn)(struct mc_percpu_pool *, struct mc_chunk *))
{
	size_t sum = 0;

	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < MC_NR_SLOTS; i++) {
			struct mc_list *head = &pool->side[side].slot[i], *next;

			for (struct mc_list *e = head->next; e != head; e = next) {
				next = e->next;
				sum += fn(pool, chunk_at(e));
			}
		}
	return sum;
}

static size_t shrink(struct mc_percpu_pool *pool, struct mc_chunk *c)
{
	size_t bytes = c->map_len;

	if (c->hot->nr_alloc || pool->shared)
		return mc_chunk_depopulate(pool, c);
	mc_chunk_destroy(c);
	return bytes;
}

static bool zero(const uint64_t *p, size_t words)
{
	uint64_t any = 0;

	for (size_t i = 0; i < words; i++)
		any |= p[i];
	return !any;
}

/* Zeroes the free parts of a copy's populated pages; does anything stay? */
static bool copy_holds(const struct mc_chunk *c, unsigned int copy)
{
	const struct mc_area *a = &c->hot->area;
	uint64_t *unit = (uint64_t *)(c->base + (uint64_t)copy * c->stride);
	bool holds = false;

	_Static_assert(MC_GRAIN == 8, "a bit is a word");
	for (uint32_t b = 0; b < a->nr_blocks; b++) {
		if (!c->hot->populated[b])
			continue;
		for (uint32_t i = b * MC_BLOCK_BITS; i < (b + 1) * MC_BLOCK_BITS; i += 64) {
			uint64_t used = a->alloc_map[i / 64];

			if (zero(unit + i, 64))
				continue;
			for (uint32_t k = 0; k < 64; k++) {
				if (!(used >> k & 1)) {
					if (unit[i + k])
						unit[i + k] = 0;
				} else if (__atomic_load_n(&unit[i + k], __ATOMIC_RELAXED)) {
					holds = true;
				}
			}
		}
	}
	return holds;
}

/* The pool's `retired` mark, for the scan below: each_chunk() gives no argument. */
static size_t lower_retired(struct mc_percpu_pool *pool, unsigned int from)
{
	unsigned int keep = 0;

	for (unsigned int copy = pool->retired; copy > from; copy--) {
		bool holds = false;

		for (unsigned int side = 0; side < 2; side++)
			for (unsigned int i = 0; i < MC_NR_SLOTS; i++)
				for (struct mc_list *e = pool->side[side].slot[i].next;
				     e != &pool->side[side].slot[i]; e = e->next)
					holds |= copy_holds(chunk_at(e), copy - 1);
		if (holds && !keep)
			keep = copy;
	}
	/* Whoever read the live mark while it was low must not take this for what went with it. */
	__atomic_store_n(&pool->sinks, pool->sinks + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&pool->retired, keep, __ATOMIC_RELEASE);
	return 0;
}

static void retire_all(struct mc_percpu_kind *k, uint32_t live)
{
	for (struct mc_percpu_pool *p = mc_registry; p; p = p->next)
		if (p->kind == k && p->retired < live)
			__atomic_store_n(&p->retired, live, __ATOMIC_SEQ_CST);
}

/* With registry locked, so that only one lowers at a time. */
static void lower_live(struct mc_percpu_pool *pool)
{
	struct mc_percpu_kind *k = pool->kind;
	int rc;

	/* The mark may rise at any moment, and what is then written above it must be walked: it is
	 * lowered only from a value that the pools have noted. */
	do {
		uint32_t live = __atomic_load_n(&k->live, __ATOMIC_SEQ_CST);

		retire_all(k, live);
		rc = mc_rt_lower(k, live);
	} while (rc == -EAGAIN);
	if (rc)
		return;
	mc_rt_raise(k);
	pthread_mutex_lock(&pool->lock);
	lower_retired(pool, __atomic_load_n(&k->live, __ATOMIC_SEQ_CST));
	pthread_mutex_unlock(&pool->lock);
}

int64_t mc_percpu_trim(struct mc_percpu_pool *pool)
{
	size_t bytes;
	int rc;

	if (!pool)
		pool = mc_percpu_default();
	if (!pool)
		return -ENOMEM;
	if (pool->attached)
		return 0;
	mc_registry_lock();
	pthread_mutex_lock(&pool->lock);
	rc = mc_mags_drain(pool, false);
	bytes = pool->robust ? 0 : each_chunk(pool, shrink);
	pthread_mutex_unlock(&pool->lock);
	if (!rc && mc_rt_rseq(pool->index_kind) && !pool->shared)
		lower_live(pool);
	mc_registry_unlock();
	return rc ? rc : (int64_t)bytes;
}
