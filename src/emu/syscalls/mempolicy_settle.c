// SPDX-License-Identifier: MIT
/*
 * mempolicy_settle.c - gives each page that has appeared since the last look its node, and forgets
 * what is gone.
 *
 * Residency is the host's (/proc/PID/maps and pagemap), the node is ours: by the policy of the
 * range, the object or the task, and for "local" by the CPU of the task that must have touched it.
 * Called with the process locked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy_settle.h"

/* ---- one page -------------------------------------------------------------------------------- */

static void count_page(struct mp_state *state, const struct pol *pol, unsigned int wanted,
		       unsigned int node, unsigned int local)
{
	struct mc_node_counters *c = state->counters;

	__atomic_add_fetch(&state->used[node], 1, __ATOMIC_RELAXED);
	if (node == wanted) {
		__atomic_add_fetch(&c[node].numa_hit, 1, __ATOMIC_RELAXED);
	} else {
		__atomic_add_fetch(&c[node].numa_miss, 1, __ATOMIC_RELAXED);
		if (wanted != POL_NO_NODE)
			__atomic_add_fetch(&c[wanted].numa_foreign, 1, __ATOMIC_RELAXED);
	}
	if (pol && node == wanted &&
	    (pol->mode == MC_MPOL_INTERLEAVE || pol->mode == MC_MPOL_WEIGHTED_INTERLEAVE))
		__atomic_add_fetch(&c[node].interleave_hit, 1, __ATOMIC_RELAXED);
	if (node == local)
		__atomic_add_fetch(&c[node].local_node, 1, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&c[node].other_node, 1, __ATOMIC_RELAXED);
}

struct mp_who mp_who_of(struct emu *emu, const struct emu_task *task)
{
	if (!task)
		return (struct mp_who){0, NULL};
	return (struct mp_who){mp_task_node(emu, task), task->policy ? task->policy->pol : NULL};
}

unsigned int mp_place(struct emu *emu, const struct pol *range, struct mp_who who, uint64_t index)
{
	struct mp_state *state = mp_state(emu);
	const struct pol *pol = range ? range : who.pol;
	struct pol_where where = {who.node, index};
	unsigned int wanted, node = pol_place(state->machine, pol, &where, state->used, &wanted);

	if (node == POL_NO_NODE) /* full: the host had room all the same */
		node = wanted != POL_NO_NODE
			       ? wanted
			       : pol_next(state->machine->memory, state->machine->words, 0);
	count_page(state, pol, wanted, node, where.local);
	return node;
}

/* The page map's entry of the parent, 512 at a time; 0: none. */
static uint64_t parent_entry(struct settle *s, uint64_t page)
{
	uint64_t base = page & ~(uint64_t)(PARENT_PAGES - 1);

	if (!s->mm->parent)
		return 0;
	if (s->parent == -1) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/pagemap", s->mm->parent);
		s->parent = open(path, O_RDONLY | O_CLOEXEC);
		s->parent_base = UINT64_MAX;
		if (s->parent < 0)
			s->parent = -2;
	}
	if (s->parent < 0)
		return 0;
	if (s->parent_base != base &&
	    mp_read_pagemap(s->parent, s->parent_entries, base, PARENT_PAGES))
		return 0;
	s->parent_base = base;
	return s->parent_entries[page - base];
}

/* A page that was shared at fork: has it been written here (then it is a new page), or has the
 * parent left the old one to us? When ours is ours alone and the parent has one as well, or when it
 * is shared (with children of ours) and the parent's is the parent's alone, they are two: we take
 * it that we were the writer. */
static bool written_here(struct settle *s, uint64_t page, bool exclusive)
{
	uint64_t entry = parent_entry(s, page);

	if (!(entry & PM_PRESENT) || (entry & PM_FILE))
		return false;
	return exclusive || (entry & PM_EXCLUSIVE);
}

/* A page that mremap() moved while it was the family's: was it copied since? */
static bool copied_since(struct settle *s, uint64_t page, bool exclusive)
{
	uint64_t delta = pol_shifts_at(&s->mm->borrowed, page, NULL);

	bool copied = delta && written_here(s, page + delta, exclusive);

	if (delta && (copied || exclusive))
		pol_shifts_set(&s->mm->borrowed, page, page + 1, 0);
	if (!copied)
		return false;
	mp_forget_pages(s->state, s->mm, page, page + 1);
	return true;
}

/* The node of an anonymous page that is known, POL_NO_NODE when it is new. */
static unsigned int known_anon(struct settle *s, uint64_t page, bool exclusive)
{
	struct emu_mm *mm = s->mm;
	unsigned int node = pol_pages_get(&mm->pages, page);
	bool inherited;

	if (node != POL_NO_NODE)
		return node == MP_GONE || copied_since(s, page, exclusive) ? POL_NO_NODE : node;
	node = mp_family_node(s->state, mm, page, &inherited);
	if (node == POL_NO_NODE || (inherited && written_here(s, page, exclusive)))
		return POL_NO_NODE;
	if (!exclusive)
		return node;
	if (!pol_pages_set(&mm->pages, page, node))
		__atomic_add_fetch(&s->state->used[node], 1, __ATOMIC_RELAXED);
	return node;
}

static unsigned int known_file(struct settle *s, const struct mp_vma *vma, uint64_t index)
{
	unsigned int node = POL_NO_NODE;
	struct mp_object *object;

	pthread_mutex_lock(&s->state->lock);
	object = mp_object_get(s->state, vma->dev, vma->ino, false);
	if (object)
		node = pol_pages_get(&object->pages, index);
	pthread_mutex_unlock(&s->state->lock);
	return node;
}

static unsigned int known(struct settle *s, const struct mp_vma *vma, uint64_t page, uint64_t entry)
{
	if (entry & PM_FILE)
		return known_file(s, vma, vma->index + page - vma->start / s->state->page);
	return known_anon(s, page, entry & PM_EXCLUSIVE);
}

/* The policy of a page's range or object (a new reference; NULL: none) and its interleave index. */
static struct pol *policy_of(struct settle *s, const struct mp_vma *vma, uint64_t page,
			     uint64_t entry, uint64_t *index)
{
	const uint64_t size = s->state->page, in_object = vma->index + page - vma->start / size;
	unsigned int order = entry & PM_HUGE ? (unsigned int)__builtin_ctzll((2UL << 20) / size)
					     : 0;

	if (vma->kind == MP_SHMEM) { /* a private copy of a shared page too: the object's policy */
		*index = vma->ino + (entry & PM_FILE ? in_object >> order : in_object);
		return mp_vma_policy(s->state, s->mm, vma, page * size);
	}
	if (entry & PM_FILE) {
		*index = vma->ino + (in_object >> order);
		return NULL;
	}
	*index = (page + pol_shifts_at(&s->mm->shifts, page, NULL)) >> order;
	return pol_get(pol_ranges_at(&s->mm->ranges, page * size, NULL));
}

/* The i-th of n new pages of a mapping gets its node. */
static unsigned int place_new(struct settle *s, const struct mp_vma *vma, uint64_t page,
			      uint64_t entry, size_t i, size_t n)
{
	uint64_t index;
	struct pol *pol = policy_of(s, vma, page, entry, &index);
	bool sure;
	struct mp_who who = mp_toucher(s, page, entry, i, n, &sure);
	unsigned int node = mp_place(s->emu, pol, who, index);

	if (s->strict && !sure && mp_matters(s, pol, index))
		pol_pages_set(&s->mm->unsure, page, 0);
	pol_put(pol);
	if (entry & PM_FILE) {
		struct mp_object *object;

		pthread_mutex_lock(&s->state->lock);
		object = mp_object_get(s->state, vma->dev, vma->ino, true);
		if (object)
			pol_pages_set(&object->pages,
				      vma->index + page - vma->start / s->state->page, node);
		pthread_mutex_unlock(&s->state->lock);
		return node;
	}
	pol_pages_set(&s->mm->pages, page, node);
	return node;
}

/* ---- a mapping ------------------------------------------------------------------------------- */

static bool is_there(uint64_t entry)
{
	return (entry & PM_PRESENT) && !(entry & PM_ZERO);
}

/* Pages that are known but not there: unmapped and mapped again, or given back by madvise(). */
static void forget_absent(struct settle *s, uint64_t page, size_t count)
{
	if (!s->mm->pages.leaves && !s->mm->nr_family)
		return;
	for (size_t i = 0; i < count;) {
		size_t from = i;

		while (i < count && !is_there(s->entry[i]) && !(s->entry[i] & PM_SWAP))
			i++;
		if (i > from)
			mp_forget_pages(s->state, s->mm, page + from, page + i);
		while (i < count && (is_there(s->entry[i]) || (s->entry[i] & PM_SWAP)))
			i++;
	}
}

/* --strict: nobody is told a guess. */
static int refuse(struct settle *s, const struct mp_vma *vma, uint64_t page)
{
	uint64_t size = s->state->page, last = page;

	while ((last + 1) * size < vma->end &&
	       pol_pages_get(&s->mm->unsure, last + 1) != POL_NO_NODE)
		last++;
	emu_complain(s->emu,
		     "--strict: process %d, %#llx-%#llx: which thread touched these pages first is "
		     "not known (%s), and its threads are on different nodes; the call fails with "
		     "EOPNOTSUPP. Allow page-fault events (kernel.perf_event_paranoid=2, or root), "
		     "bind the range, or run without --strict",
		     s->process->tgid, (unsigned long long)(page * size),
		     (unsigned long long)((last + 1) * size),
		     mp_events_watching(s->process) ? "no event told"
						    : "no page-fault events on this host");
	return -EOPNOTSUPP;
}

static int settle_piece(struct settle *s, const struct mp_vma *vma, uint64_t page, size_t count,
			mp_page_fn fn, void *arg)
{
	size_t new = 0, nth = 0;
	int rc = mp_look(s, page, count);

	if (rc < 0)
		return rc;
	forget_absent(s, page, count);
	for (size_t i = 0; i < count; i++)
		if (is_there(s->entry[i]) && known(s, vma, page + i, s->entry[i]) == POL_NO_NODE)
			new ++;
	for (size_t i = 0; i < count && (new || fn); i++) {
		uint64_t entry = s->entry[i];
		struct mp_page info = {.what = MP_PRESENT,
				       .exclusive = entry & PM_EXCLUSIVE,
				       .file = entry & PM_FILE};

		if (!(entry & PM_PRESENT))
			continue;
		if (entry & PM_ZERO) {
			info.what = MP_ZERO;
		} else {
			info.node = known(s, vma, page + i, entry);
			if (info.node == POL_NO_NODE)
				info.node = place_new(s, vma, page + i, entry, nth++, new);
			if (fn && s->strict &&
			    pol_pages_get(&s->mm->unsure, page + i) != POL_NO_NODE)
				return refuse(s, vma, page + i);
		}
		rc = fn ? fn(arg, vma, (page + i) * s->state->page, &info) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* Enough for any array whose parts threads fill at once, little enough to hold. */
enum { PIECE = 1 << 20, SPARSE = 1 << 14 };

static int settle_vma(struct settle *s, const struct mp_vma *vma, uint64_t start, uint64_t end,
		      mp_page_fn fn, void *arg)
{
	uint64_t page = (start > vma->start ? start : vma->start) / s->state->page;
	uint64_t last = (end < vma->end ? end : vma->end) / s->state->page;
	int rc = 0;

	if (vma->kind == MP_SPECIAL)
		return 0;
	while (page < last && !rc) {
		uint64_t count, there = last - page > SPARSE ? mp_next_there(s, page, last) : page;

		if (there > page)
			mp_forget_pages(s->state, s->mm, page, there);
		page = there;
		count = last - page < PIECE ? last - page : PIECE;
		if (count)
			rc = settle_piece(s, vma, page, count, fn, arg);
		page += count;
	}
	return rc;
}

static int open_settle(struct settle *s, struct emu *emu, struct emu_process *process)
{
	char path[64];

	*s = (struct settle){.emu = emu,
			     .state = mp_state(emu),
			     .process = process,
			     .mm = mp_mm(process),
			     .parent = -1,
			     .strict = emu_options(emu)->strict};
	if (!s->state || !s->mm)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", process->tgid);
	s->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	return s->pagemap < 0 ? -ESRCH : 0;
}

static void close_settle(struct settle *s)
{
	if (s->pagemap >= 0)
		close(s->pagemap);
	if (s->parent >= 0)
		close(s->parent);
	free(s->blame);
	free(s->entry);
}

/* Only what one of several tasks has had matters; and what emu_policy_moving() compares with. */
static void note_faults(struct emu_task *task)
{
	if (mp_task(task))
		task->policy->faults = mp_task_faults(task);
}

static int settle_range(struct settle *s, const struct mp_maps *maps, uint64_t start, uint64_t end,
			mp_page_fn fn, void *arg)
{
	size_t i;
	int rc = 0;

	mp_vma_at(maps, start, &i);
	for (; i < maps->count && maps->vma[i].start < end && !rc; i++)
		rc = settle_vma(s, &maps->vma[i], start, end, fn, arg);
	return rc;
}

/* The whole of it, without a callback: from here faults count anew. */
static int settle_whole(struct settle *s, const struct mp_maps *maps)
{
	uint64_t since = emu_now();
	int rc;

	s->small_first = s->process->tasks && s->process->tasks->next;
	s->passed = false;
	rc = settle_range(s, maps, 0, UINT64_MAX, NULL, NULL);
	if (!rc && s->passed) {
		s->small_first = false;
		rc = settle_range(s, maps, 0, UINT64_MAX, NULL, NULL);
	}
	s->small_first = false;
	for (struct emu_task *t = s->process->tasks; t && !rc; t = t->next)
		if (s->process->tasks->next || t->policy)
			note_faults(t);
	if (!rc)
		mp_events_settled(s->emu, s->process, since);
	return rc;
}

int mp_settle(struct emu *emu, struct emu_process *process, uint64_t start, uint64_t end,
	      struct mp_maps *maps, mp_page_fn fn, void *arg)
{
	struct settle s;
	uint64_t faults;
	int rc = open_settle(&s, emu, process);

	*maps = (struct mp_maps){0};
	if (rc < 0)
		return rc;
	s.mm->asked = true;
	start &= ~(uint64_t)(s.state->page - 1);
	if (end < UINT64_MAX - s.state->page)
		end = (end + s.state->page - 1) & ~(uint64_t)(s.state->page - 1);
	rc = mp_maps_read(process->tgid, maps);
	if (!rc && !maps->count)
		rc = -ESRCH; /* it is ending: nothing is mapped, but its children have it all */
	if (!rc)
		mp_drop_gone(&s, maps);
	/* Who touched a page of several threads' is seen from all they have touched. */
	if (!rc && start < end &&
	    ((process->tasks && process->tasks->next) || (!start && end == UINT64_MAX))) {
		faults = mp_process_faults(process);
		if (faults != s.mm->faults) {
			rc = settle_whole(&s, maps);
			s.mm->faults = faults;
		}
	}
	if (!rc && fn)
		rc = settle_range(&s, maps, start, end, fn, arg);
	else if (!rc && (start || end != UINT64_MAX))
		rc = settle_range(&s, maps, start, end, NULL, NULL);
	close_settle(&s);
	return rc;
}

void mp_settle_all(struct emu *emu, struct emu_process *process)
{
	uint64_t faults = mp_process_faults(process);
	struct mp_maps maps;

	/* No fault since the last time, no new page: what is gone is found out when it is asked
	 * for. */
	if (!faults || (process->mm && process->mm->faults == faults))
		return;
	mp_settle(emu, process, 0, UINT64_MAX, &maps, NULL, NULL);
	mp_maps_free(&maps);
}

int mp_page_move(struct mp_state *state, struct emu_mm *mm, const struct mp_vma *vma, uint64_t addr,
		 bool file, unsigned int node)
{
	uint64_t page = addr / state->page;
	struct pol_pages *pages = &mm->pages;
	unsigned int old = POL_NO_NODE;
	struct mp_object *object;
	int rc = 0;

	pthread_mutex_lock(&state->lock);
	if (file) {
		object = mp_object_get(state, vma->dev, vma->ino, true);
		pages = object ? &object->pages : NULL;
		page = vma->index + (addr - vma->start) / state->page;
	} else if (pol_pages_get(pages, page) == POL_NO_NODE) {
		/* Still shared with parent or children: it moves for all of them. */
		for (unsigned int i = 0; i < mm->nr_family; i++) {
			if (pol_pages_get(&mm->family[i]->pages, page) == POL_NO_NODE)
				continue;
			pages = &mm->family[i]->pages;
			break;
		}
	}
	if (pages) {
		old = pol_pages_get(pages, page);
		rc = pol_pages_set(pages, page, node);
	} else {
		rc = -ENOMEM;
	}
	pthread_mutex_unlock(&state->lock);
	if (!rc) {
		pol_pages_set(&mm->unsure, addr / state->page, POL_NO_NODE);
		__atomic_add_fetch(&state->used[node], 1, __ATOMIC_RELAXED);
		if (old < state->machine->nr_node_ids)
			__atomic_sub_fetch(&state->used[old], 1, __ATOMIC_RELAXED);
	}
	return rc;
}

/* Of a process that nobody asks they would add up for ever. */
static void note_change(struct emu *emu, struct emu_task *task)
{
	mp_events_until(emu, task);
	if (mp_events_many(task->process))
		mp_settle_all(emu, task->process);
}

/* A task is about to change its mask or CPU: pages it has touched are of the node it was on. */
void emu_policy_moving(struct emu *emu, struct emu_task *task)
{
	struct emu_process *process = task->process;
	struct mp_state *state = mp_state(emu);
	uint64_t faults;

	if (!state || state->machine->nr_memory < 2 || !mp_task(task))
		return;
	if (mp_events_watching(process)) {
		note_change(emu, task);
		return;
	}
	/* From now on its threads may differ. What they have touched by now is told by counts. */
	if (emu_threads_many(emu, process) && mp_events_watch(emu, process)) {
		emu_threads_adopt(emu, process);
		mp_settle_all(emu, process);
		mp_events_until(emu, task);
		return;
	}
	faults = mp_task_faults(task);
	if (faults == task->policy->faults)
		return;
	/* A thread that has just started and pins itself has touched its stack only; but what the
	 * others have had so far is not to be mixed up with what comes. */
	if (!task->policy->faults && faults <= FEW_FAULTS && task->tid != process->tgid &&
	    process->mm && process->mm->asked && !emu_options(emu)->strict) {
		task->policy->faults = faults;
		return;
	}
	mp_settle_all(emu, process);
}

/* A thread ends: what it touched is told by what it was, as long as its faults or events are known.
 */
void emu_policy_ending(struct emu *emu, struct emu_task *task)
{
	if (mp_events_watching(task->process))
		note_change(emu, task);
	else if (task->asked || task->policy || emu_options(emu)->strict)
		emu_policy_moving(emu, task);
}

bool emu_policy_watches(struct emu *emu, const struct emu_process *process)
{
	return mp_events_watching(process) || emu_options(emu)->strict;
}

/* Threads begin to be made: with --strict none may touch a page unwatched. */
void emu_policy_threads(struct emu *emu, struct emu_process *process)
{
	struct mp_state *state = mp_state(emu);

	if (state && state->machine->nr_memory > 1 && emu_options(emu)->strict &&
	    !mp_events_watching(process) && mp_events_watch(emu, process))
		mp_settle_all(emu, process);
}
