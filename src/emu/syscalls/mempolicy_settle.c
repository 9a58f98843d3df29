// SPDX-License-Identifier: MIT
/*
 * mempolicy_settle.c - gives each page that has appeared since the last look its node, and forgets
 * what is gone.
 *
 * Residency is the host's (/proc/PID/maps and pagemap), the node is ours: by the policy of the
 * range, the object or the task, and for "local" by the CPU of the task that must have touched it.
 * With one task, or tasks that would all place a page alike, that is certain. Else the pages of a
 * mapping are dealt out in address order, to the tasks in order of creation, by the minor faults
 * each has had: exact for threads that fill their parts of an array in their order. Called with the
 * process locked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy.h"
#include "os/os.h"

/* pagemap's bits. */
#define PM_PRESENT (1ULL << 63)
#define PM_SWAP (1ULL << 62)
#define PM_FILE (1ULL << 61)
#define PM_EXCLUSIVE (1ULL << 56)
/* Ours, in bits that hold the frame number, which is not looked at. */
#define PM_ZERO (1ULL << 0)
#define PM_HUGE (1ULL << 1)
#define PM_KEEP (PM_PRESENT | PM_SWAP | PM_FILE | PM_EXCLUSIVE)

/* PAGEMAP_SCAN (Linux 6.7), as in linux/fs.h of that time. */
struct scan_region {
	uint64_t start, end, categories;
};
struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan_arg)
enum { SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4, SCAN_ZERO = 1 << 5, SCAN_HUGE = 1 << 6 };
enum { REGIONS = 128 };

/* Threads whose small change (stack, thread data) is not worth a look. */
enum { FEW_FAULTS = 16, FEW_PAGES = 16 };

struct blame {
	struct emu_task *task;
	uint64_t faults, left; /* since the last time; not yet used up */
	uint64_t upto;         /* deal() */
};

struct settle {
	struct emu *emu;
	struct mp_state *state;
	struct emu_process *process;
	struct emu_mm *mm;
	int pagemap, parent; /* -1: not open; parent -2: can't be had */
	bool no_scan;
	struct blame *blame; /* those that may have touched, in order of creation */
	unsigned int nr_blame;
	bool blamed, uniform;
	bool small_first; /* pass over mappings with many new pages: they come last, when the small
			     ones have been told */
	bool passed;
	uint64_t *entry; /* pagemap of the piece at hand */
	size_t room;
};

/* ---- faults
 * ------------------------------------------------------------------------------------------------------------------
 */

static uint64_t faults_of(const char *path)
{
	char text[1024], *p;
	uint64_t faults = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* Behind the name, which may hold anything: state ppid pgrp session tty tpgid flags minflt.
	 */
	p = strrchr(text, ')');
	if (p)
		sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %lu", &faults);
	return faults;
}

uint64_t mp_task_faults(const struct emu_task *task)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", task->process->tgid, task->tid);
	return faults_of(path);
}

static int by_tid(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;

	return x->task->tid < y->task->tid ? -1 : x->task->tid > y->task->tid;
}

/* Who has had faults since the last time; nobody at all leaves the first task. */
static void find_blame(struct settle *s)
{
	unsigned int n = 0, kept = 0;

	s->blamed = true;
	for (struct emu_task *t = s->process->tasks; t; t = t->next)
		n++;
	s->blame = calloc(n ? n : 1, sizeof(*s->blame));
	if (!s->blame || !n)
		return;
	for (struct emu_task *t = s->process->tasks; t; t = t->next)
		s->blame[kept++].task = t;
	qsort(s->blame, n, sizeof(*s->blame), by_tid);
	for (unsigned int i = 0; n > 1 && i < n; i++) {
		uint64_t now = mp_task_faults(s->blame[i].task);
		struct emu_policy *policy = s->blame[i].task->policy;

		s->blame[i].faults = now > (policy ? policy->faults : 0)
					     ? now - (policy ? policy->faults : 0)
					     : 0;
	}
	if (n > 1) {
		kept = 0;
		for (unsigned int i = 0; i < n; i++)
			if (s->blame[i].faults)
				s->blame[kept++] = s->blame[i];
		if (!kept)
			kept = 1;
	}
	for (unsigned int i = 0; i < kept; i++)
		s->blame[i].left = s->blame[i].faults;
	s->nr_blame = kept;
	s->uniform = true;
	for (unsigned int i = 1; i < kept; i++) {
		const struct emu_task *a = s->blame[0].task, *b = s->blame[i].task;

		if (mp_task_node(s->emu, a) != mp_task_node(s->emu, b) ||
		    !pol_equal(a->policy ? a->policy->pol : NULL,
			       b->policy ? b->policy->pol : NULL))
			s->uniform = false;
	}
}

/* Few new pages in a mapping (a stack, thread data): whoever has most faults left. */
static const struct emu_task *small_change(struct settle *s)
{
	struct blame *most = &s->blame[0];

	for (unsigned int k = 1; k < s->nr_blame; k++)
		if (s->blame[k].left > most->left)
			most = &s->blame[k];
	most->left -= most->left != 0;
	return most->task;
}

/* Deals n new pages of a mapping out: blame[k] gets those before blame[k].upto, by the faults that
 * are left. */
static void deal(struct settle *s, size_t n)
{
	uint64_t total = 0, sum = 0;

	for (unsigned int k = 0; k < s->nr_blame; k++)
		total += s->blame[k].left;
	for (unsigned int k = 0; k < s->nr_blame; k++) {
		struct blame *b = &s->blame[k];
		uint64_t from = k ? b[-1].upto : 0, share;

		sum += total ? b->left : 1;
		b->upto = (2 * sum * n + (total ? total : s->nr_blame)) /
			  (2 * (total ? total : s->nr_blame));
		share = b->upto - from;
		b->left -= share < b->left ? share : b->left;
	}
}

/* The task that touched the i-th of n new pages of a mapping; asked in order. */
static const struct emu_task *toucher(struct settle *s, size_t i, size_t n)
{
	if (!s->blamed)
		find_blame(s);
	if (!s->nr_blame)
		return s->process->tasks;
	if (s->uniform)
		return s->blame[0].task;
	if (n < FEW_PAGES)
		return small_change(s);
	if (!i)
		deal(s, n);
	for (unsigned int k = 0; k < s->nr_blame; k++)
		if (i < s->blame[k].upto)
			return s->blame[k].task;
	return s->blame[s->nr_blame - 1].task;
}

/* ---- what is gone
 * ------------------------------------------------------------------------------------------------------------
 */

struct forget {
	struct mp_state *state;
	struct emu_mm *mm;
};

static void uncount(void *arg, uint64_t page, unsigned int node)
{
	struct forget *f = arg;

	(void)page;
	if (node < f->state->machine->nr_node_ids)
		__atomic_sub_fetch(&f->state->used[node], 1, __ATOMIC_RELAXED);
}

/* Anonymous pages [first, last) are not there any more; those of the family must not come back
 * either. */
static void forget_pages(struct mp_state *state, struct emu_mm *mm, uint64_t first, uint64_t last)
{
	struct forget f = {state, mm};

	if (!mm->nr_family) {
		pol_pages_forget(&mm->pages, first, last, uncount, &f);
		return;
	}
	for (uint64_t page = first; page < last; page++) {
		unsigned int own = pol_pages_get(&mm->pages, page);
		bool inherited = false;

		for (unsigned int i = 0; i < mm->nr_family && !inherited; i++)
			inherited = pol_pages_get(&mm->family[i]->pages, page) != POL_NO_NODE;
		if (own != POL_NO_NODE)
			uncount(&f, page, own);
		if (inherited || own != POL_NO_NODE)
			pol_pages_set(&mm->pages, page, inherited ? MP_GONE : POL_NO_NODE);
	}
}

void mp_forget(struct mp_state *state, struct emu_mm *mm, uint64_t start, uint64_t end)
{
	uint64_t first = start / state->page, last = (end + state->page - 1) / state->page;
	uint64_t lo = UINT64_MAX, hi = 0;

	pol_ranges_set(&mm->ranges, start, end, NULL);
	if (mm->nr_family) { /* page by page: only where mappings were */
		for (size_t i = 0; i < mm->seen.count; i++) {
			lo = mm->seen.vma[i].start > start ? mm->seen.vma[i].start : start;
			hi = mm->seen.vma[i].end < end ? mm->seen.vma[i].end : end;
			if (lo < hi)
				forget_pages(state, mm, lo / state->page, hi / state->page);
		}
		return;
	}
	forget_pages(state, mm, first, last);
}

static bool same_place(const struct mp_vma *a, const struct mp_vma *b, size_t page)
{
	if (a->kind != b->kind || a->dev != b->dev || a->ino != b->ino || a->shared != b->shared)
		return false;
	return a->kind == MP_ANON || a->index - a->start / page == b->index - b->start / page;
}

/* Is all of [start, end) mapped? */
static bool mapped(const struct mp_maps *maps, uint64_t start, uint64_t end)
{
	size_t i;

	mp_vma_at(maps, start, &i);
	for (; i < maps->count && maps->vma[i].start <= start; i++) {
		start = maps->vma[i].end;
		if (start >= end)
			return true;
	}
	return false;
}

/* Where did the mapping go? To the only place of its size (or more, merged) that was not mapped
 * before. */
static uint64_t new_place(const struct mp_maps *seen, const struct mp_maps *now, uint64_t len)
{
	for (size_t i = 0; i < now->count; i++) {
		uint64_t at = now->vma[i].start;

		while (at < now->vma[i].end) {
			size_t next;
			const struct mp_vma *old = mp_vma_at(seen, at, &next);
			uint64_t end = now->vma[i].end;

			if (old) {
				at = old->end;
				continue;
			}
			if (next < seen->count && seen->vma[next].start < end)
				end = seen->vma[next].start;
			if (end - at == len)
				return at;
			at = end;
		}
	}
	return 0;
}

/* Ends a mremap() that the host has made since: policies and pages follow, a grown part has its
 * mapping's policy. */
static void moved(struct settle *s, const struct mp_maps *now)
{
	struct mp_move m = s->mm->move;
	const uint64_t size = s->state->page;
	uint64_t len = m.old_len < m.new_len ? m.old_len : m.new_len, at = m.from;
	struct pol *tail;

	s->mm->move = (struct mp_move){0};
	if (!m.new_len)
		return;
	tail = pol_get(pol_ranges_at(&s->mm->ranges, m.from + len - size, NULL));
	if (!mapped(now, m.from, m.from + len) || m.to) {
		at = m.to ? m.to : new_place(&s->mm->seen, now, m.new_len);
		if (at && mapped(now, at, at + m.new_len) && !mapped(now, m.from, m.from + size)) {
			pol_ranges_move(&s->mm->ranges, m.from, at, len);
			pol_pages_move(&s->mm->pages, m.from / size, at / size, len / size);
		} else {
			at = 0; /* it failed, or more has happened since */
		}
	}
	if (at && tail && m.new_len > len && mapped(now, at, at + m.new_len))
		pol_ranges_set(&s->mm->ranges, at + len, at + m.new_len, tail);
	pol_put(tail);
}

/* What was mapped when last seen and is not, or is another mapping, loses its policies and pages.
 */
static void drop_gone(struct settle *s, const struct mp_maps *now)
{
	struct emu_mm *mm = s->mm;

	moved(s, now);
	if (mm->ranges.count || mm->pages.leaves || mm->nr_family) {
		for (size_t i = 0; i < mm->seen.count; i++) {
			const struct mp_vma *old = &mm->seen.vma[i];
			uint64_t at = old->start;
			size_t k;

			mp_vma_at(now, at, &k);
			for (; at < old->end && k < now->count && now->vma[k].start < old->end;
			     k++) {
				if (now->vma[k].start > at)
					mp_forget(s->state, mm, at, now->vma[k].start);
				if (!same_place(old, &now->vma[k], s->state->page))
					mp_forget(s->state, mm,
						  at > now->vma[k].start ? at : now->vma[k].start,
						  old->end < now->vma[k].end ? old->end
									     : now->vma[k].end);
				at = now->vma[k].end;
			}
			if (at < old->end)
				mp_forget(s->state, mm, at, old->end);
		}
	}
	/* The text is not needed, and may be large. */
	if (mm->seen.room < now->count) {
		struct mp_vma *bigger = realloc(mm->seen.vma, now->room * sizeof(*bigger));

		if (!bigger)
			return;
		mm->seen.vma = bigger;
		mm->seen.room = now->room;
	}
	if (now->count)
		memcpy(mm->seen.vma, now->vma, now->count * sizeof(*now->vma));
	mm->seen.count = now->count;
}

/* ---- what is there
 * -------------------------------------------------------------------------------------------------------------
 */

static int read_pagemap(int fd, uint64_t *entry, uint64_t page, size_t count)
{
	size_t have = 0;

	while (have < count) {
		ssize_t n = pread(fd, entry + have, (count - have) * 8, (off_t)((page + have) * 8));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 8) { /* the address space is gone, or ends here */
			memset(entry + have, 0, (count - have) * 8);
			return n < 0 ? -errno : 0;
		}
		have += (size_t)n / 8;
	}
	return 0;
}

/* Fills s->entry for pages [page, page + count) by regions that are there: holes cost nothing.
 * -ENOTTY on old kernels. */
static int scan(struct settle *s, uint64_t page, size_t count)
{
	struct scan_region region[REGIONS];
	const uint64_t size = s->state->page;
	struct scan_arg arg = {
		.size = sizeof(arg),
		.start = page * size,
		.end = (page + count) * size,
		.vec = (uintptr_t)region,
		.vec_len = REGIONS,
		.category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
		.return_mask = SCAN_PRESENT | SCAN_SWAPPED | SCAN_ZERO | SCAN_HUGE,
	};

	memset(s->entry, 0, count * 8);
	while (arg.start < arg.end) {
		int n = ioctl(s->pagemap, SCAN_IOCTL, &arg);

		if (n < 0)
			return -errno;
		for (int i = 0; i < n; i++) {
			size_t at = region[i].start / size - page,
			       len = (region[i].end - region[i].start) / size;

			read_pagemap(s->pagemap, s->entry + at, page + at, len);
			for (size_t k = at; k < at + len; k++) {
				s->entry[k] &= PM_KEEP;
				if (region[i].categories & SCAN_ZERO)
					s->entry[k] |= PM_ZERO;
				if (region[i].categories & SCAN_HUGE)
					s->entry[k] |= PM_HUGE;
			}
		}
		if (arg.walk_end <= arg.start)
			break;
		arg.start = arg.walk_end;
	}
	return 0;
}

/* Without PAGEMAP_SCAN: which of the pages that look shared and anonymous are the zero page? The
 * host's move_pages() tells
 * (-EFAULT); where it may not be used they are taken for shared pages. */
static void find_zeroes(struct settle *s, uint64_t page, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		void *addr = (void *)(uintptr_t)((page + i) * s->state->page);
		int status = 0;

		s->entry[i] &= PM_KEEP;
		if ((s->entry[i] & (PM_PRESENT | PM_FILE | PM_EXCLUSIVE)) == PM_PRESENT &&
		    !mc_os_move_pages(s->process->tgid, 1, &addr, NULL, &status, 0) &&
		    status == -EFAULT)
			s->entry[i] |= PM_ZERO;
	}
}

static int look(struct settle *s, uint64_t page, size_t count)
{
	int rc = -ENOTTY;

	if (s->room < count) {
		uint64_t *bigger = realloc(s->entry, count * 8);

		if (!bigger)
			return -ENOMEM;
		s->entry = bigger;
		s->room = count;
	}
	if (!s->no_scan)
		rc = scan(s, page, count);
	if (rc < 0) {
		s->no_scan = true;
		rc = read_pagemap(s->pagemap, s->entry, page, count);
		find_zeroes(s, page, count);
	}
	return rc;
}

/* ---- one page
 * -------------------------------------------------------------------------------------------------------------------
 */

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

unsigned int mp_place(struct emu *emu, const struct pol *range, const struct emu_task *task,
		      uint64_t index)
{
	struct mp_state *state = mp_state(emu);
	const struct pol *pol = range ? range : task && task->policy ? task->policy->pol : NULL;
	struct pol_where where = {task ? mp_task_node(emu, task) : 0, index};
	unsigned int wanted, node = pol_place(state->machine, pol, &where, state->used, &wanted);

	if (node == POL_NO_NODE) /* full: the host had room all the same */
		node = wanted != POL_NO_NODE
			       ? wanted
			       : pol_next(state->machine->memory, state->machine->words, 0);
	count_page(state, pol, wanted, node, where.local);
	return node;
}

/* A page that was shared at fork is this process's alone now: has it been written here (then it is
 * a new page), or has the parent left the old one to us? When the parent has one of its own as
 * well, we take it that we were the writer. */
static bool written_here(struct settle *s, uint64_t page)
{
	uint64_t entry = 0;

	if (!s->mm->parent)
		return false;
	if (s->parent == -1) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/pagemap", s->mm->parent);
		s->parent = open(path, O_RDONLY | O_CLOEXEC);
		if (s->parent < 0)
			s->parent = -2;
	}
	if (s->parent < 0 || read_pagemap(s->parent, &entry, page, 1))
		return false;
	return (entry & PM_PRESENT) && (entry & PM_EXCLUSIVE) && !(entry & PM_FILE);
}

/* The node of an anonymous page that is known, POL_NO_NODE when it is new. */
static unsigned int known_anon(struct settle *s, uint64_t page, bool exclusive)
{
	struct emu_mm *mm = s->mm;
	unsigned int node = pol_pages_get(&mm->pages, page);

	if (node != POL_NO_NODE)
		return node == MP_GONE ? POL_NO_NODE : node;
	pthread_mutex_lock(&s->state->lock);
	for (unsigned int i = 0; i < mm->nr_family && node == POL_NO_NODE; i++)
		node = pol_pages_get(&mm->family[i]->pages, page);
	pthread_mutex_unlock(&s->state->lock);
	if (node == MP_GONE)
		node = POL_NO_NODE;
	if (node == POL_NO_NODE || !exclusive)
		return node;
	if (written_here(s, page))
		return POL_NO_NODE;
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

static unsigned int place_new(struct settle *s, const struct mp_vma *vma, uint64_t page,
			      uint64_t entry, const struct emu_task *task)
{
	const uint64_t size = s->state->page;
	unsigned int order = entry & PM_HUGE ? (unsigned int)__builtin_ctzll((2UL << 20) / size)
					     : 0,
		     node;

	if (entry & PM_FILE) {
		uint64_t index = vma->index + page - vma->start / size;
		struct pol *pol = vma->kind == MP_SHMEM
					  ? mp_vma_policy(s->state, s->mm, vma, page * size)
					  : NULL;
		struct mp_object *object;

		node = mp_place(s->emu, pol, task, vma->ino + (index >> order));
		pol_put(pol);
		pthread_mutex_lock(&s->state->lock);
		object = mp_object_get(s->state, vma->dev, vma->ino, true);
		if (object)
			pol_pages_set(&object->pages, index, node);
		pthread_mutex_unlock(&s->state->lock);
		return node;
	}
	if (vma->kind ==
	    MP_SHMEM) { /* a private copy of a shared page: the object's policy all the same */
		struct pol *pol = mp_vma_policy(s->state, s->mm, vma, page * size);

		node = mp_place(s->emu, pol, task,
				vma->ino + vma->index + page - vma->start / size);
		pol_put(pol);
	} else {
		node = mp_place(s->emu, pol_ranges_at(&s->mm->ranges, page * size, NULL), task,
				page >> order);
	}
	pol_pages_set(&s->mm->pages, page, node);
	return node;
}

/* ---- a mapping
 * ---------------------------------------------------------------------------------------------------------------------
 */

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
			forget_pages(s->state, s->mm, page + from, page + i);
		while (i < count && (is_there(s->entry[i]) || (s->entry[i] & PM_SWAP)))
			i++;
	}
}

static int settle_piece(struct settle *s, const struct mp_vma *vma, uint64_t page, size_t count,
			mp_page_fn fn, void *arg)
{
	size_t new = 0, nth = 0;
	int rc = look(s, page, count);

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
				info.node =
					place_new(s, vma, page + i, entry, toucher(s, nth++, new));
		}
		rc = fn ? fn(arg, vma, (page + i) * s->state->page, &info) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* Enough for any array whose parts threads fill at once, little enough to hold. */
enum { PIECE = 1 << 20 };

static int settle_vma(struct settle *s, const struct mp_vma *vma, uint64_t start, uint64_t end,
		      mp_page_fn fn, void *arg)
{
	uint64_t page = (start > vma->start ? start : vma->start) / s->state->page;
	uint64_t last = (end < vma->end ? end : vma->end) / s->state->page;
	int rc = 0;

	if (vma->kind == MP_SPECIAL)
		return 0;
	for (; page < last && !rc; page += PIECE)
		rc = settle_piece(s, vma, page, last - page < PIECE ? last - page : PIECE, fn, arg);
	return rc;
}

static int open_settle(struct settle *s, struct emu *emu, struct emu_process *process)
{
	char path[64];

	*s = (struct settle){.emu = emu,
			     .state = mp_state(emu),
			     .process = process,
			     .mm = mp_mm(process),
			     .parent = -1};
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

/* All faults of a process so far, of threads that are gone too. */
static uint64_t process_faults(const struct emu_process *process)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", process->tgid);
	return faults_of(path);
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
	if (!rc)
		drop_gone(&s, maps);
	/* Who touched a page of several threads' is seen from all they have touched. */
	if (!rc && start < end &&
	    ((process->tasks && process->tasks->next) || (!start && end == UINT64_MAX))) {
		faults = process_faults(process);
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
	uint64_t faults = process_faults(process);
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
		__atomic_add_fetch(&state->used[node], 1, __ATOMIC_RELAXED);
		if (old < state->machine->nr_node_ids)
			__atomic_sub_fetch(&state->used[old], 1, __ATOMIC_RELAXED);
	}
	return rc;
}

/* A task is about to change its mask or CPU: pages it has touched are of the node it was on. */
void emu_policy_moving(struct emu *emu, struct emu_task *task)
{
	struct mp_state *state = mp_state(emu);
	uint64_t faults;

	if (!state || state->machine->nr_memory < 2 || !mp_task(task))
		return;
	faults = mp_task_faults(task);
	if (faults == task->policy->faults)
		return;
	/* A thread that has just started and pins itself has touched its stack only; but what the
	 * others have had so far is not to be mixed up with what comes. */
	if (!task->policy->faults && faults <= FEW_FAULTS && task->tid != task->process->tgid &&
	    task->process->mm && task->process->mm->asked) {
		task->policy->faults = faults;
		return;
	}
	mp_settle_all(emu, task->process);
}
