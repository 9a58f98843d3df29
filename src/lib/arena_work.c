// SPDX-License-Identifier: MIT
/*
 * arena_work.c - the workers of an arena, waiting for them, stopping them.
 *
 * All threads are made before the first page is faulted in: their stacks need the address space's
 * write lock, for which they would queue behind those that populate. Never more of them at once on
 * some CPUs than there are, unless the caller gave their number: nodes without CPUs that this
 * process may use share the nearest's. A part that got no worker (those taken, a CPU quota below
 * the number of nodes, threads that could not be made) is an orphan: whoever is done with its own
 * part takes it over when its CPUs have room.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/os.h"

enum { STACK = 512 << 10 };

static void bind_to(const struct mc_arena *a, const struct mc_arena_part *p)
{
	const struct mc_cpumask *m = p->cpus ? p->cpus : a->affinity;

	if (m) /* fails when the CPUs went offline: then it runs where it is */
		mc_os_setaffinity(0, (m->nbits + 63) / 64 * 8, (const unsigned long *)m->word);
}

/* CPUs for the workers of a part. Unknown (no affinity could be read): one, for all parts. */
static unsigned int room(const struct mc_arena *a, const struct mc_arena_part *p)
{
	const struct mc_cpumask *m = p->cpus ? p->cpus : a->affinity;
	unsigned int n = m ? mc_cpumask_weight(m) : 1;

	return n ? n : 1;
}

/* An orphan for a worker that is done with `done`, of the same CPUs if there is one; NULL: none.
 * One whose CPUs are taken is left out: who leaves those asks here last, and gets it. */
static struct mc_arena_part *next_orphan(struct mc_arena *a, const struct mc_arena_part *done)
{
	struct mc_arena_part *found = NULL;

	pthread_mutex_lock(&a->gate_lock);
	a->part[done->set].busy--;
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		struct mc_arena_part *p = &a->part[k];

		if (!p->planned && !p->orphan_taken && a->part[p->set].busy < room(a, p) &&
		    (!found || (p->set == done->set && found->set != done->set)))
			found = p;
	}
	if (found) {
		found->orphan_taken = true;
		a->part[found->set].busy++;
	}
	pthread_mutex_unlock(&a->gate_lock);
	return found;
}

static void work_on(struct mc_arena *a, struct mc_arena_part *p)
{
	uint64_t first, end;
	bool claimed, counted = false;

	for (;;) {
		pthread_mutex_lock(&p->lock);
		/* Who helps does it for want of memory now: a worker steps aside rather than share
		 * a CPU with it. */
		while (p->helpers && p->inflight >= p->planned && !atomic_load(&a->cancel))
			pthread_cond_wait(&p->changed, &p->lock);
		claimed = arena_claim(a, p, &first, &end, false);
		if (claimed && !counted)
			p->threads++;
		counted |= claimed;
		pthread_mutex_unlock(&p->lock);
		if (!claimed)
			return;
		arena_run_chunk(a, p, first, end, false);
	}
}

static void *worker_main(void *arg)
{
	struct mc_arena_worker *w = arg;
	struct mc_arena *a = w->arena;

	pthread_mutex_lock(&a->gate_lock);
	while (!a->gate_open)
		pthread_cond_wait(&a->gate_cond, &a->gate_lock);
	pthread_mutex_unlock(&a->gate_lock);
	for (struct mc_arena_part *p = w->part; p; p = next_orphan(a, p)) {
		bind_to(a, p);
		work_on(a, p);
	}
	/* Parts cut short by cancel have no last chunk that would notice. */
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		struct mc_arena_part *p = &a->part[k];

		pthread_mutex_lock(&p->lock);
		if (p->start_ns && !p->end_ns && arena_part_finished(a, p))
			p->end_ns = arena_now();
		pthread_cond_broadcast(&p->changed);
		pthread_mutex_unlock(&p->lock);
	}
	atomic_fetch_sub(&a->live, 1);
	arena_notify(a);
	return NULL;
}

/* How many workers each part gets; CPUs and the quota of CPU time are dealt out one by one. Returns
 * the sum. */
static unsigned int plan(struct mc_arena *a)
{
	const unsigned int given = a->attr.threads;
	unsigned int quota = a->limits && !given ? mc_limits_cpus(a->limits) : UINT_MAX, total = 0;
	bool more = true;

	if (a->attr.flags & MC_ARENA_NO_WORKERS)
		return 0;
	if (a->affinity && !given && quota > mc_cpumask_weight(a->affinity))
		quota = mc_cpumask_weight(a->affinity);
	for (unsigned int round = 0; more && total < quota; round++) {
		more = false;
		for (unsigned int k = 0; k < a->nr_parts && total < quota; k++) {
			struct mc_arena_part *p = &a->part[k];
			unsigned int *busy = &a->part[p->set].busy;
			uint64_t chunks = (p->end - p->first + a->chunk - 1) / a->chunk;

			if (given ? round >= given : *busy >= room(a, p))
				continue;
			if (round >= chunks)
				continue;
			p->planned++;
			++*busy;
			total++;
			more = true;
		}
	}
	return total;
}

int arena_start_workers(struct mc_arena *a)
{
	unsigned int total = plan(a), made = 0;
	sigset_t all, old;
	pthread_attr_t attr;

	if (!total)
		return 0;
	a->worker = calloc(total, sizeof(*a->worker));
	if (!a->worker || pthread_attr_init(&attr)) {
		for (unsigned int k = 0; k < a->nr_parts; k++)
			a->part[k].planned = 0;
		return 0; /* without workers, waits and allocations do the work */
	}
	pthread_attr_setstacksize(&attr, STACK < PTHREAD_STACK_MIN ? PTHREAD_STACK_MIN : STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* The first worker of each part before the second of any: when threads run out every node
	 * has some. */
	for (unsigned int round = 0, left = total; left; round++)
		for (unsigned int k = 0; k < a->nr_parts; k++) {
			struct mc_arena_part *p = &a->part[k];
			struct mc_arena_worker *w = &a->worker[made];

			if (round >= p->planned)
				continue;
			left--;
			w->arena = a;
			w->part = p;
			atomic_fetch_add(&a->live, 1);
			if (!pthread_create(&w->thread, &attr, worker_main, w)) {
				made++;
				continue;
			}
			atomic_fetch_sub(&a->live, 1);
			left -= p->planned - round - 1;
			a->part[p->set].busy -= p->planned - round;
			p->planned = round;
		}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	a->nr_workers = made;
	pthread_mutex_lock(&a->gate_lock);
	a->gate_open = true;
	pthread_cond_broadcast(&a->gate_cond);
	pthread_mutex_unlock(&a->gate_lock);
	return 0;
}

void arena_join_workers(struct mc_arena *a)
{
	for (unsigned int i = 0; i < a->nr_workers; i++)
		pthread_join(a->worker[i].thread, NULL);
	a->nr_workers = 0;
}

void mc_arena_cancel(struct mc_arena *a)
{
	atomic_store(&a->cancel, true);
}

/* Everything has ended that could bring up more: the error of it all. */
static int verdict(struct mc_arena *a)
{
	int rc = 0;

	if (atomic_load(&a->ready) + atomic_load(&a->bad) >= a->pages)
		return 0;
	for (unsigned int k = 0; k < a->nr_parts && !rc; k++) {
		pthread_mutex_lock(&a->part[k].lock);
		rc = -a->part[k].err;
		pthread_mutex_unlock(&a->part[k].lock);
	}
	return rc ? rc : -ECANCELED;
}

static bool all_finished(struct mc_arena *a)
{
	bool done = true;

	for (unsigned int k = 0; k < a->nr_parts && done; k++) {
		pthread_mutex_lock(&a->part[k].lock);
		done = arena_part_finished(a, &a->part[k]);
		pthread_mutex_unlock(&a->part[k].lock);
	}
	return done;
}

/* One chunk of any part, by the waiting thread itself. */
static bool do_some(struct mc_arena *a)
{
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		struct mc_arena_part *p = &a->part[k];
		uint64_t first, end;
		bool claimed;

		pthread_mutex_lock(&p->lock);
		claimed = arena_claim(a, p, &first, &end, true);
		pthread_mutex_unlock(&p->lock);
		if (claimed) {
			arena_run_chunk(a, p, first, end, true);
			return true;
		}
	}
	return false;
}

/* Waiting for everything ends when the last chunk has ended, so that a report made next is final.
 */
static bool over(struct mc_arena *a, uint64_t want)
{
	return (want < a->pages && atomic_load(&a->ready) >= want) || atomic_load(&a->destroying) ||
	       all_finished(a);
}

static int wait_pages(struct mc_arena *a, uint64_t want, int timeout_ms)
{
	uint64_t until =
		timeout_ms < 0 ? UINT64_MAX : arena_now() + (uint64_t)timeout_ms * 1000000u;
	struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
			      .tv_nsec = (long)(until % 1000000000u)};
	int rc = 0;

	for (;;) {
		if (over(a, want))
			return atomic_load(&a->ready) >= want ? 0 : verdict(a);
		if (arena_now() >= until)
			return -ETIMEDOUT;
		if (!atomic_load(&a->live) && do_some(a))
			continue;
		/* Announce first, look again, then sleep: who publishes looks at `waiters` and
		 * `wake_at` after publishing. */
		pthread_mutex_lock(&a->wait_lock);
		atomic_fetch_add(&a->waiters, 1);
		if (want < atomic_load(&a->wake_at))
			atomic_store(&a->wake_at, want);
		if (!over(a, want)) {
			if (timeout_ms < 0)
				pthread_cond_wait(&a->wait_cond, &a->wait_lock);
			else
				rc = pthread_cond_timedwait(&a->wait_cond, &a->wait_lock, &ts);
		}
		atomic_fetch_sub(&a->waiters, 1);
		pthread_mutex_unlock(&a->wait_lock);
		(void)rc; /* the clock is asked above */
	}
}

int mc_arena_wait(struct mc_arena *a, uint64_t bytes, int timeout_ms)
{
	uint64_t want = bytes && bytes < a->size
				? (bytes + (UINT64_C(1) << a->shift) - 1) >> a->shift
				: a->pages;
	int rc;

	if (arena_in_child(a))
		return -ECHILD;
	atomic_fetch_add(&a->users, 1);
	rc = wait_pages(a, want, timeout_ms);
	atomic_fetch_sub(&a->users, 1);
	return rc;
}
