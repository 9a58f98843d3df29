// SPDX-License-Identifier: MIT
/*
 * arena_chunk.c - one step of initialisation: claim a range of pages, ask the limits, fault it in,
 * write its descriptors, call the caller back, publish it. Workers, helping allocations and waits
 * without workers all come through here.
 *
 * A range that fails half-way is published up to the page that failed, and the part stops. A
 * poisoned page is left out and the range goes on behind it, as the kernel does with its own pages.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/mem.h"
#include "os/os.h"

enum { BLOCK_NEW, BLOCK_BUSY, BLOCK_IN, BLOCK_FAILED };
enum { LIMIT_EVERY_NS = 100000000, PROGRESS_EVERY_NS = 50000000, SLOW_IN_ROW = 3 };
/* What a worker does between looks at who needs its CPU more, and what a helping thread takes. */
enum { STEP = 2 << 20, HELP = 2 << 20 };

uint64_t arena_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Who helps waits for what it claims: little. */
static uint64_t helping_chunk(const struct mc_arena *a)
{
	uint64_t pages = HELP >> a->shift;

	return pages > a->granule ? pages / a->granule * a->granule : a->granule;
}

bool arena_claim(struct mc_arena *a, struct mc_arena_part *p, uint64_t *first, uint64_t *end,
		 bool helping)
{
	uint64_t chunk = __atomic_load_n(&a->chunk, __ATOMIC_RELAXED);

	if (p->stop || p->cursor >= p->end || atomic_load(&a->cancel))
		return false;
	if (helping && chunk > helping_chunk(a))
		chunk = helping_chunk(a);
	*first = p->cursor;
	/* To the next multiple: after a helper took less, a worker's chunks would else share each
	 * block of descriptors with their neighbours, and workers wait for each other. */
	chunk -= *first % chunk;
	*end = p->end - *first < chunk ? p->end : *first + chunk;
	p->cursor = *end;
	p->inflight++;
	p->helpers += helping;
	if (!p->start_ns)
		p->start_ns = arena_now();
	return true;
}

bool arena_part_finished(const struct mc_arena *a, const struct mc_arena_part *p)
{
	return !p->inflight && (p->stop || p->cursor >= p->end || atomic_load(&a->cancel));
}

void arena_notify(struct mc_arena *a)
{
	if (!atomic_load(&a->waiters))
		return;
	pthread_mutex_lock(&a->wait_lock);
	atomic_store(&a->wake_at, UINT64_MAX); /* who waits on says again for what */
	pthread_cond_broadcast(&a->wait_cond);
	pthread_mutex_unlock(&a->wait_lock);
}

static void stop_part(struct mc_arena_part *p, enum mc_arena_stop stop, int err, const char *why)
{
	pthread_mutex_lock(&p->lock);
	if (!p->stop) {
		p->stop = stop;
		p->err = err;
		snprintf(p->why, sizeof(p->why), "%s", why);
	}
	pthread_mutex_unlock(&p->lock);
}

static bool within_budget(struct mc_arena_budget *b, int64_t want)
{
	return arena_now() - atomic_load(&b->ns) < LIMIT_EVERY_NS &&
	       atomic_fetch_sub(&b->left, want) >= want;
}

/*
 * May `want` more bytes be taken? Reading the limits costs more than a small chunk, so each reading
 * grants a quarter of what it found, and is repeated when that is used up or old. The margin covers
 * what other workers took but have not yet touched. nodes: those that the part is bound to; NULL:
 * the machine and cgroups.
 */
static bool allow(struct mc_arena *a, struct mc_arena_part *p, struct mc_arena_budget *b,
		  const struct mc_cpumask *nodes, int64_t want)
{
	char why[160] = "", text[200];
	bool cgroup = false, ok = true;
	int64_t left;

	if (within_budget(b, want))
		return true;
	pthread_mutex_lock(&a->limit_lock);
	if (within_budget(b, want)) { /* somebody else has read them meanwhile */
		pthread_mutex_unlock(&a->limit_lock);
		return true;
	}
	left = nodes ? mc_limits_nodes(a->limits, nodes, why, sizeof(why))
		     : mc_limits_headroom(a->limits, &cgroup, why, sizeof(why));
	if (left < INT64_MAX / 2)
		left -= a->margin;
	ok = left >= want;
	if (ok) {
		atomic_store(&b->left, left / 4 > want ? left / 4 - want : 0);
		atomic_store(&b->ns, arena_now());
	}
	pthread_mutex_unlock(&a->limit_lock);
	if (!ok) {
		snprintf(text, sizeof(text), "%s, and %lld MiB are kept free for what is under way",
			 why, (long long)(a->margin >> 20));
		stop_part(p, cgroup ? MC_STOP_LIMIT : MC_STOP_MEMORY, ENOMEM, text);
	}
	return ok;
}

static bool limits_allow(struct mc_arena *a, struct mc_arena_part *p, uint64_t bytes)
{
	int64_t want = (int64_t)bytes;

	return allow(a, p, &a->budget, NULL, want) &&
	       (!p->bound || !a->charge || allow(a, p, &p->budget, p->bound, want));
}

/* Makes the descriptors of [first, end) present. Blocks at a chunk's edge are shared with the
 * neighbours: each is faulted in by one thread only, for two would both clear it. */
static bool descriptors_in(struct mc_arena *a, uint64_t first, uint64_t end)
{
	uint64_t from = first * a->stride / DESC_BLOCK, to = (end * a->stride - 1) / DESC_BLOCK;

	for (uint64_t b = from; b <= to; b++) {
		_Atomic(unsigned char) *state = &a->desc_block[b];
		unsigned char was = BLOCK_NEW;
		size_t at = b * DESC_BLOCK, n = a->desc_bytes - at, done;

		if (atomic_compare_exchange_strong(state, &was, BLOCK_BUSY)) {
			int rc = mc_pageinit_populate(a->advice, a->desc + at,
						      n < DESC_BLOCK ? n : DESC_BLOCK,
						      mc_os_page_size(), true, &done);

			atomic_store(state, rc < 0 ? BLOCK_FAILED : BLOCK_IN);
			if (rc < 0)
				return false;
			continue;
		}
		while ((was = atomic_load(state)) == BLOCK_BUSY)
			sched_yield(); /* a fraction of a millisecond: one huge page being cleared
					*/
		if (was == BLOCK_FAILED)
			return false;
	}
	return true;
}

static void write_descriptors(struct mc_arena *a, struct mc_arena_part *p, uint64_t first,
			      uint64_t end)
{
	struct mc_page pg = {.state = MC_PAGE_TAIL,
			     .node = p->node,
			     .part = (uint32_t)(p - a->part),
			     .next = NO_PAGE,
			     .prev = NO_PAGE};
	char *at = a->desc + first * a->stride;

	for (uint64_t i = first; i < end; i++, at += a->stride) {
		pg.index = i;
		*(struct mc_page *)at = pg;
	}
	if (a->phys)
		for (uint64_t i = first; i < end; i++)
			arena_page(a, i)->frame = arena_phys_frame(a, i);
}

static void mark_bad(struct mc_arena *a, struct mc_arena_part *p, uint64_t page)
{
	pthread_mutex_lock(&p->lock);
	p->bad++;
	if (a->desc) {
		write_descriptors(a, p, page, page + 1);
		arena_page(a, page)->state = MC_PAGE_BAD;
	}
	pthread_mutex_unlock(&p->lock);
	atomic_fetch_add(&a->bad, 1);
}

static void progress(struct mc_arena *a, bool last)
{
	uint64_t now = arena_now();

	if (!a->attr.progress || (!last && now - atomic_load(&a->progress_ns) < PROGRESS_EVERY_NS))
		return;
	if (last)
		pthread_mutex_lock(&a->progress_lock);
	else if (pthread_mutex_trylock(&a->progress_lock))
		return;
	atomic_store(&a->progress_ns, now);
	a->attr.progress(a->attr.arg, atomic_load(&a->ready) << a->shift, a->size);
	pthread_mutex_unlock(&a->progress_lock);
}

/* Hands out a good range. */
static int publish(struct mc_arena *a, struct mc_arena_part *p, uint64_t first, uint64_t end,
		   bool helping, bool resident)
{
	int rc;

	if (first == end)
		return 0;
	if (a->desc) {
		/* Behind a poisoned page the granule is readable already: then under the lock. */
		bool shared = atomic_load_explicit(&a->granule_up[first / a->granule],
						   memory_order_relaxed);

		if (shared)
			pthread_mutex_lock(&p->lock);
		write_descriptors(a, p, first, end);
		if (shared)
			pthread_mutex_unlock(&p->lock);
		for (uint64_t g = first / a->granule; g <= (end - 1) / a->granule; g++)
			atomic_store_explicit(&a->granule_up[g], 1, memory_order_release);
	}
	if (a->attr.init) {
		rc = a->attr.init(a->attr.arg, a, first, end - first, p->node);
		if (rc < 0)
			return rc;
	}
	pthread_mutex_lock(&p->lock);
	if (a->desc)
		arena_buddy_add(a, p, first, end);
	p->ready += end - first;
	if (helping)
		p->helped += end - first;
	if (resident)
		p->resident += end - first;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	atomic_fetch_add(&a->ready, end - first);
	return 0;
}

/* Of this thread: on a busy machine a chunk takes long for reasons that are not the huge pages'. */
static uint64_t cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Huge pages that must be compacted together first can be slower than none: give them up after a
 * few bad chunks. */
static void watch_rate(struct mc_arena *a, struct mc_arena_part *p, uint64_t pages, uint64_t ns)
{
	uint64_t bytes = pages << a->shift, rest = 0;

	if (a->attr.backing != MC_ARENA_THP || ns == 0 ||
	    pages < __atomic_load_n(&a->chunk, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&p->lock);
	if ((double)bytes * 1e9 / (double)ns >= (double)a->attr.thp_min_rate) {
		p->slow_in_row = 0;
	} else {
		p->slow_chunks++;
		if (++p->slow_in_row >= SLOW_IN_ROW && !p->gave_up_thp && p->cursor < p->end) {
			p->gave_up_thp = true;
			rest = p->cursor;
		}
	}
	pthread_mutex_unlock(&p->lock);
	if (rest)
		mc_os_hugepages(arena_addr(a, rest), (p->end - rest) << a->shift, false);
}

/* Between two steps of a worker: lets a thread that allocates have this CPU, and steps aside while
 * it helps. `asks` is how often it had been asked for memory by the last step. */
static void give_way(struct mc_arena *a, struct mc_arena_part *p, unsigned int *asks)
{
	unsigned int now = atomic_load_explicit(&p->asks, memory_order_relaxed);

	if (now != *asks)
		sched_yield();
	*asks = now;
	if (!atomic_load_explicit(&p->helpers, memory_order_relaxed))
		return;
	pthread_mutex_lock(&p->lock);
	p->aside++;
	while (p->helpers && p->inflight - p->aside >= p->planned && !atomic_load(&a->cancel))
		pthread_cond_wait(&p->changed, &p->lock);
	p->aside--;
	pthread_mutex_unlock(&p->lock);
}

/* A worker goes in steps. (One call for the whole is hardly faster; below a huge page it is.) */
static int populate_steps(struct mc_arena *a, struct mc_arena_part *p, char *at, size_t bytes,
			  bool helping, size_t *done)
{
	size_t page = a->hugetlb ? (size_t)1 << a->shift : mc_os_page_size(), got = 0,
	       step = page > STEP ? page : STEP;
	unsigned int asks = atomic_load_explicit(&p->asks, memory_order_relaxed);
	bool write = !(a->attr.flags & MC_ARENA_READ);
	int rc = 0;

	for (*done = 0; *done < bytes && !rc; *done += got) {
		if (*done && !helping)
			give_way(a, p, &asks);
		rc = mc_pageinit_populate(a->advice, at + *done,
					  bytes - *done < step ? bytes - *done : step, page, write,
					  &got);
	}
	return rc;
}

static int fault_in(struct mc_arena *a, struct mc_arena_part *p, uint64_t first, uint64_t end,
		    bool helping, uint64_t *done)
{
	size_t got = 0;
	int rc;

	if (a->attr.flags & MC_ARENA_NO_PAGES) {
		*done = end;
		return 0;
	}
	if (a->phys)
		return arena_phys_fill(a, first, end, done);
	arena_thread_policy(a, p);
	rc = populate_steps(a, p, arena_addr(a, first), (end - first) << a->shift, helping, &got);
	*done = first + (got >> a->shift);
	return rc;
}

/* Brings up [first, end), leaving out poisoned pages. Returns where it stopped: end, or the page
 * that failed. */
static void bring_up(struct mc_arena *a, struct mc_arena_part *p, uint64_t first, uint64_t end,
		     bool helping)
{
	char why[sizeof(p->why)] = "";
	enum mc_arena_stop stop;
	int err = 0;

	while (first < end) {
		bool resident =
			(a->attr.flags & MC_ARENA_SKIP_RESIDENT) && !a->hugetlb &&
			mc_os_all_resident(arena_addr(a, first), (end - first) << a->shift) == 1;
		uint64_t done = end;
		int rc = 0, cb;

		if (!resident)
			rc = fault_in(a, p, first, end, helping, &done);
		cb = publish(a, p, first, done, helping, resident);
		if (cb < 0) {
			stop_part(p, MC_STOP_CALLBACK, -cb,
				  "the caller's function refused the range");
			return;
		}
		if (!rc)
			return;
		if (rc == -EHWPOISON) {
			mark_bad(a, p, done);
			first = done + 1;
			continue;
		}
		err = -rc;
		stop = arena_diagnose(a, p, done, &err, why, sizeof(why));
		stop_part(p, stop, err, why);
		return;
	}
}

void arena_run_chunk(struct mc_arena *a, struct mc_arena_part *p, uint64_t first, uint64_t end,
		     bool helping)
{
	uint64_t bytes = a->charge ? (end - first) << a->shift : 0, t = cpu_time();
	bool finished;

	if (a->desc)
		bytes += (end - first) * a->stride;
	if (limits_allow(a, p, bytes)) {
		if (a->desc && !descriptors_in(a, first, end))
			stop_part(p, MC_STOP_MEMORY, ENOMEM, "no memory for page descriptors");
		else
			bring_up(a, p, first, end, helping);
		watch_rate(a, p, end - first, cpu_time() - t);
	}
	pthread_mutex_lock(&p->lock);
	p->inflight--;
	p->helpers -= helping;
	finished = arena_part_finished(a, p);
	if (finished && !p->end_ns)
		p->end_ns = arena_now();
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	progress(a, finished);
	/* Not each time: a thread that is woken takes a worker's CPU only to sleep again. */
	if (finished || atomic_load(&a->ready) >= atomic_load(&a->wake_at))
		arena_notify(a);
}
