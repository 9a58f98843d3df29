// SPDX-License-Identifier: MIT
/*
 * arena_buddy.c - the page allocator of an arena: power-of-two runs, one set of free lists a part,
 * merged when freed.
 *
 * The kernel's buddy scheme over page numbers of the arena: the buddy of the run at i of order o is
 * the run at i ^ 2^o. A run merges only with a buddy whose descriptors are up (granule_up), inside
 * the part, free and of its order. Free lists are linked by page number through the descriptors.
 * Everything below is done under the part's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/os.h"

void arena_buddy_init(struct mc_arena_part *p)
{
	for (unsigned int o = 0; o < MC_ARENA_ORDERS; o++)
		p->head[o] = NO_PAGE;
}

static void set_state(struct mc_page *pg, uint32_t state, unsigned int order)
{
	pg->order = order;
	__atomic_store_n(&pg->state, state, __ATOMIC_RELEASE);
}

static void push(struct mc_arena *a, struct mc_arena_part *p, uint64_t i, unsigned int order)
{
	struct mc_page *pg = arena_page(a, i);

	pg->prev = NO_PAGE;
	pg->next = p->head[order];
	if (pg->next != NO_PAGE)
		arena_page(a, pg->next)->prev = i;
	p->head[order] = i;
	p->nonempty |= UINT64_C(1) << order;
	p->nr_free[order]++;
	set_state(pg, MC_PAGE_FREE, order);
}

static void unlink_run(struct mc_arena *a, struct mc_arena_part *p, uint64_t i)
{
	struct mc_page *pg = arena_page(a, i);
	unsigned int order = pg->order;

	if (pg->prev != NO_PAGE)
		arena_page(a, pg->prev)->next = pg->next;
	else
		p->head[order] = pg->next;
	if (pg->next != NO_PAGE)
		arena_page(a, pg->next)->prev = pg->prev;
	if (p->head[order] == NO_PAGE)
		p->nonempty &= ~(UINT64_C(1) << order);
	p->nr_free[order]--;
}

static bool mergeable(const struct mc_arena *a, const struct mc_arena_part *p, uint64_t buddy,
		      unsigned int order)
{
	struct mc_page *pg;

	if (buddy < p->first || buddy + (UINT64_C(1) << order) > p->end)
		return false;
	if (!atomic_load_explicit(&a->granule_up[buddy / a->granule], memory_order_acquire))
		return false;
	pg = arena_page(a, buddy);
	return pg->state == MC_PAGE_FREE && pg->order == order;
}

static void put_run(struct mc_arena *a, struct mc_arena_part *p, uint64_t i, unsigned int order)
{
	while (order + 1 < MC_ARENA_ORDERS) {
		uint64_t buddy = i ^ (UINT64_C(1) << order), upper;

		if (!mergeable(a, p, buddy, order))
			break;
		unlink_run(a, p, buddy);
		upper = i > buddy ? i : buddy;
		i = i < buddy ? i : buddy;
		set_state(arena_page(a, upper), MC_PAGE_TAIL, 0);
		p->stats.merges++;
		order++;
	}
	push(a, p, i, order);
}

void arena_buddy_add(struct mc_arena *a, struct mc_arena_part *p, uint64_t first, uint64_t end)
{
	while (first < end) {
		unsigned int order = 63 - (unsigned int)__builtin_clzll(end - first);

		if (first && (unsigned int)__builtin_ctzll(first) < order)
			order = (unsigned int)__builtin_ctzll(first);
		if (order >= MC_ARENA_ORDERS)
			order = MC_ARENA_ORDERS - 1;
		p->stats.free_pages += UINT64_C(1) << order;
		put_run(a, p, first, order);
		first += UINT64_C(1) << order;
	}
}

/* The smallest run that fits, split down; NO_PAGE: none. */
static uint64_t take(struct mc_arena *a, struct mc_arena_part *p, unsigned int order)
{
	uint64_t fit = p->nonempty >> order << order, i;
	unsigned int have;

	if (!fit)
		return NO_PAGE;
	have = (unsigned int)__builtin_ctzll(fit);
	i = p->head[have];
	unlink_run(a, p, i);
	while (have > order) {
		have--;
		push(a, p, i + (UINT64_C(1) << have), have);
		p->stats.splits++;
	}
	set_state(arena_page(a, i), MC_PAGE_USED, order);
	p->stats.free_pages -= UINT64_C(1) << order;
	p->stats.used_pages += UINT64_C(1) << order;
	p->stats.allocs++;
	return i;
}

/* From one part: what is free, else by bringing up its next chunk, else by waiting for others'
 * chunks. 0 or -errno. */
static int alloc_part(struct mc_arena *a, struct mc_arena_part *p, unsigned int order,
		      uint64_t *page)
{
	bool helped = false;
	int rc;

	if (UINT64_C(1) << order > p->end - p->first)
		return -ENOMEM;
	pthread_mutex_lock(&p->lock);
	atomic_store_explicit(&p->asks, p->asks + 1, memory_order_relaxed);
	for (;;) {
		uint64_t first, end;

		*page = take(a, p, order);
		rc = 0;
		if (*page != NO_PAGE)
			break;
		rc = -ECANCELED;
		if (atomic_load(&a->destroying))
			break;
		if (arena_claim(a, p, &first, &end, true)) {
			pthread_mutex_unlock(&p->lock);
			arena_run_chunk(a, p, first, end, true);
			helped = true;
			pthread_mutex_lock(&p->lock);
		} else if (p->inflight) {
			pthread_cond_wait(&p->changed, &p->lock);
		} else {
			rc = p->err && p->cursor < p->end && p->stop != MC_STOP_CANCELLED ? -p->err
											  : -ENOMEM;
			if (atomic_load(&a->cancel) && p->cursor < p->end)
				rc = -ECANCELED;
			break;
		}
	}
	p->stats.helps += helped;
	p->stats.failures += rc < 0;
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* While users is not 0 the arena is there: mc_arena_destroy() waits. Nothing is read after that. */
static int alloc_counted(struct mc_arena *a, struct mc_arena_part *p, unsigned int order,
			 void **run)
{
	uint64_t page;
	int rc;

	atomic_fetch_add(&p->users, 1);
	rc = alloc_part(a, p, order, &page);
	if (!rc)
		*run = arena_addr(a, page);
	atomic_fetch_sub(&p->users, 1);
	return rc;
}

/* The part whose node comes next in distance from `from` after rank `after`; ties by part number.
 */
static struct mc_arena_part *nearest(struct mc_arena *a, unsigned int from, uint64_t after,
				     uint64_t *rank)
{
	struct mc_arena_part *best = NULL;

	for (unsigned int k = 0; k < a->nr_parts; k++) {
		struct mc_arena_part *p = &a->part[k];
		unsigned int d =
			p->node == from ? 0 : mc_topology_distance(a->topology, from, p->node);
		uint64_t r = ((uint64_t)(p->node != from && !d ? UINT32_MAX : d) << 32 | k) + 1;

		if (r > after && (!best || r < *rank)) {
			best = p;
			*rank = r;
		}
	}
	return best;
}

static int alloc_any(struct mc_arena *a, unsigned int order, void **run)
{
	unsigned int from = a->part[0].node;
	struct mc_arena_part *p, *home = NULL;
	uint64_t rank = 0;
	int rc = -ENOMEM, first = 0;

	if (a->nr_parts == 1)
		return alloc_counted(a, a->part, order, run);
	mc_os_getcpu(NULL, &from);
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		uint64_t next = 0;

		p = nearest(a, from, rank, &next);
		rank = next;
		if (!home) { /* holds the arena over the whole search */
			home = p;
			atomic_fetch_add(&home->users, 1);
		}
		rc = alloc_counted(a, p, order, run);
		if (!rc || (rc == -ECANCELED && atomic_load(&a->destroying))) {
			first = rc;
			break;
		}
		if (!first)
			first = rc;
	}
	if (home)
		atomic_fetch_sub(&home->users, 1);
	return first;
}

void *mc_arena_alloc(struct mc_arena *a, unsigned int order, unsigned int node)
{
	int rc = -EINVAL;
	void *run;

	if (arena_in_child(a)) {
		rc = -ECHILD;
	} else if (a->desc && order < MC_ARENA_ORDERS) {
		if (node == MC_ANY_NODE)
			rc = alloc_any(a, order, &run);
		else
			for (unsigned int k = 0; k < a->nr_parts; k++)
				if (a->part[k].node == node) {
					rc = alloc_counted(a, &a->part[k], order, &run);
					break;
				}
	}
	if (!rc)
		return run;
	errno = -rc;
	return NULL;
}

int mc_arena_free(struct mc_arena *a, void *run)
{
	struct mc_page *pg;
	struct mc_arena_part *p;
	unsigned int order;
	int rc = -EINVAL;

	if (arena_in_child(a))
		return -ECHILD;
	pg = mc_arena_page(a, run);
	if (!pg || (char *)run != arena_addr(a, (uint64_t)((char *)pg - a->desc) / a->stride))
		return -EINVAL;
	p = &a->part[pg->part];
	atomic_fetch_add(&p->users, 1);
	pthread_mutex_lock(&p->lock);
	order = pg->order;
	if (pg->state == MC_PAGE_USED) {
		p->stats.used_pages -= UINT64_C(1) << order;
		p->stats.free_pages += UINT64_C(1) << order;
		p->stats.frees++;
		put_run(a, p, pg->index, order);
		rc = 0;
	}
	pthread_mutex_unlock(&p->lock);
	atomic_fetch_sub(&p->users, 1);
	return rc;
}

int mc_arena_part_stats(struct mc_arena *a, unsigned int part, struct mc_arena_stats *stats)
{
	struct mc_arena_part *p;

	if (arena_in_child(a))
		return -ECHILD;
	if (part >= a->nr_parts)
		return -EINVAL;
	p = &a->part[part];
	pthread_mutex_lock(&p->lock);
	*stats = p->stats;
	stats->ready_pages = p->ready;
	stats->bad_pages = p->bad;
	for (unsigned int o = 0; o < MC_ARENA_ORDERS; o++)
		stats->free_runs[o] = p->nr_free[o];
	pthread_mutex_unlock(&p->lock);
	return 0;
}
