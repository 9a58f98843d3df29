// SPDX-License-Identifier: MIT
/*
 * mempolicy_gone.c - what is not there any more: mappings that went or moved since the last
 * settling, and their pages.
 */
#include <stdlib.h>
#include <string.h>
#include "emu/syscalls/mempolicy_settle.h"

struct forget {
	struct mp_state *state;
	struct emu_mm *mm;
	uint64_t first, last;
};

static void uncount(void *arg, uint64_t page, unsigned int node)
{
	struct forget *f = arg;

	(void)page;
	if (node < f->state->machine->nr_node_ids)
		__atomic_sub_fetch(&f->state->used[node], 1, __ATOMIC_RELAXED);
}

/* With a family: a page that it has must not come back. */
static void forget_page(struct forget *f, uint64_t page)
{
	struct emu_mm *mm = f->mm;
	unsigned int own = pol_pages_get(&mm->pages, page);
	bool inherited = false;

	for (unsigned int i = 0; i < mm->nr_family && !inherited; i++)
		inherited = pol_pages_get(&mm->family[i]->pages, page) != POL_NO_NODE;
	if (own != POL_NO_NODE)
		uncount(f, page, own);
	if (inherited || own != POL_NO_NODE)
		pol_pages_set(&mm->pages, page, inherited ? MP_GONE : POL_NO_NODE);
}

static void forget_known(void *arg, uint64_t page, unsigned int node)
{
	struct forget *f = arg;

	(void)node;
	if (page >= f->first && page < f->last)
		forget_page(f, page);
}

/* Own pages in the range that are no tombstones: noted first, since a table must not change while
 * it is gone through. */
struct own {
	struct forget *f;
	uint64_t *page;
	size_t count, room;
};

static void note_own(void *arg, uint64_t page, unsigned int node)
{
	struct own *o = arg;

	if (page < o->f->first || page >= o->f->last || node == MP_GONE)
		return;
	if (o->count == o->room) {
		size_t room = o->room ? o->room * 2 : 1024;
		uint64_t *bigger = realloc(o->page, room * sizeof(*bigger));

		if (!bigger)
			return;
		o->page = bigger;
		o->room = room;
	}
	o->page[o->count++] = page;
}

static void drop_own(struct forget *f)
{
	struct own o = {.f = f};

	pol_pages_each(&f->mm->pages, note_own, &o);
	for (size_t i = 0; i < o.count; i++)
		forget_page(f, o.page[i]);
	free(o.page);
}

enum { MANY_PAGES = 4096 };

/* Anonymous pages [first, last) are not there any more; those of the family must not come back
 * either. */
void mp_forget_pages(struct mp_state *state, struct emu_mm *mm, uint64_t first, uint64_t last)
{
	struct forget f = {.state = state, .mm = mm};

	pol_pages_forget(&mm->unsure, first, last, NULL, NULL);
	pol_shifts_set(&mm->borrowed, first, last, 0);
	if (!mm->nr_family) {
		pol_pages_forget(&mm->pages, first, last, uncount, &f);
		return;
	}
	if (last - first <= MANY_PAGES) {
		for (uint64_t page = first; page < last; page++)
			forget_page(&f, page);
		return;
	}
	/* A wide range: by what is known. Tombstones are set while the family's pages are gone
	 * through, which stay. */
	f.first = first;
	f.last = last;
	for (unsigned int i = 0; i < mm->nr_family; i++)
		pol_pages_each(&mm->family[i]->pages, forget_known, &f);
	drop_own(&f);
}

void mp_forget(struct mp_state *state, struct emu_mm *mm, uint64_t start, uint64_t end)
{
	pol_ranges_set(&mm->ranges, start, end, NULL);
	pol_shifts_set(&mm->shifts, start / state->page, (end + state->page - 1) / state->page, 0);
	pol_shifts_set(&mm->filled, start / state->page, (end + state->page - 1) / state->page, 0);
	mp_forget_there(state, mm, start, end);
}

void mp_forget_there(struct mp_state *state, struct emu_mm *mm, uint64_t start, uint64_t end)
{
	uint64_t first = start / state->page, last = (end + state->page - 1) / state->page;
	uint64_t lo = UINT64_MAX, hi = 0;

	if (mm->nr_family) { /* page by page: only where mappings were */
		for (size_t i = 0; i < mm->seen.count; i++) {
			lo = mm->seen.vma[i].start > start ? mm->seen.vma[i].start : start;
			hi = mm->seen.vma[i].end < end ? mm->seen.vma[i].end : end;
			if (lo < hi)
				mp_forget_pages(state, mm, lo / state->page, hi / state->page);
		}
		return;
	}
	mp_forget_pages(state, mm, first, last);
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

/* The node that the family has for a page, and whether it is from the parent (may be NULL). */
unsigned int mp_family_node(struct mp_state *state, struct emu_mm *mm, uint64_t page,
			    bool *inherited)
{
	unsigned int node = POL_NO_NODE, i;

	pthread_mutex_lock(&state->lock);
	for (i = 0; i < mm->nr_family && node == POL_NO_NODE; i++)
		node = pol_pages_get(&mm->family[i]->pages, page);
	pthread_mutex_unlock(&state->lock);
	if (inherited)
		*inherited = i + mm->nr_inherited > mm->nr_family;
	return node == MP_GONE ? POL_NO_NODE : node;
}

/* Pages move along. Those of the family stay shared: they become this process's at their new place,
 * and are remembered as borrowed. */
static void move_pages(struct mp_state *state, struct emu_mm *mm, uint64_t from, uint64_t to,
		       uint64_t count)
{
	pol_pages_move(&mm->unsure, from, to, count);
	if (!mm->nr_family) {
		pol_pages_move(&mm->pages, from, to, count);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		unsigned int own = pol_pages_get(&mm->pages, from + i),
			     theirs = mp_family_node(state, mm, from + i, NULL);
		uint64_t delta = pol_shifts_at(&mm->borrowed, from + i, NULL);

		if (own == POL_NO_NODE && theirs != POL_NO_NODE) {
			pol_pages_set(&mm->pages, to + i, theirs);
			pol_shifts_set(&mm->borrowed, to + i, to + i + 1, from - to);
			__atomic_add_fetch(&state->used[theirs], 1, __ATOMIC_RELAXED);
		} else if (own != POL_NO_NODE && own != MP_GONE) {
			pol_pages_set(&mm->pages, to + i, own);
			pol_shifts_set(&mm->borrowed, to + i, to + i + 1,
				       delta ? delta + from - to : 0);
		}
		pol_pages_set(&mm->pages, from + i,
			      theirs != POL_NO_NODE ? MP_GONE : POL_NO_NODE);
	}
	pol_shifts_set(&mm->borrowed, from, from + count, 0);
}

/* Ends a mremap() that the host has made since: policies and pages follow, a grown part has its
 * mapping's policy. Where it went is told, empty if nowhere: what was there before is known to be
 * gone. */
static struct mp_move moved(struct settle *s, const struct mp_maps *now)
{
	struct mp_move m = s->mm->move;
	const uint64_t size = s->state->page;
	uint64_t len = m.old_len < m.new_len ? m.old_len : m.new_len, at = m.from;
	struct pol *tail;

	s->mm->move = (struct mp_move){0};
	if (!m.new_len)
		return m;
	tail = pol_get(pol_ranges_at(&s->mm->ranges, m.from + len - size, NULL));
	if (!mapped(now, m.from, m.from + len) || m.to) {
		at = m.to ? m.to : new_place(&s->mm->seen, now, m.new_len);
		if (at && mapped(now, at, at + m.new_len) && !mapped(now, m.from, m.from + size)) {
			pol_ranges_move(&s->mm->ranges, m.from, at, len);
			pol_shifts_move(&s->mm->shifts, m.from / size, at / size, len / size,
					m.touched);
			pol_shifts_set(&s->mm->filled, m.from / size, (m.from + len) / size, 0);
			pol_shifts_set(&s->mm->filled, at / size, (at + len) / size, m.touched);
			move_pages(s->state, s->mm, m.from / size, at / size, len / size);
		} else {
			at = 0; /* it failed, or more has happened since */
		}
	}
	if (at && m.new_len > len && mapped(now, at, at + m.new_len)) {
		pol_shifts_set(&s->mm->shifts, (at + len) / size, (at + m.new_len) / size,
			       pol_shifts_at(&s->mm->shifts, (at + len) / size - 1, NULL));
		if (tail)
			pol_ranges_set(&s->mm->ranges, at + len, at + m.new_len, tail);
	}
	pol_put(tail);
	return (struct mp_move){.to = at, .new_len = at && at != m.from ? m.new_len : 0};
}

/* Drops what is known of [start, end) but for where a mapping has just moved to. */
static void forget_but(struct settle *s, const struct mp_move *kept, uint64_t start, uint64_t end)
{
	uint64_t last = kept->to + kept->new_len;

	if (!kept->new_len || end <= kept->to || start >= last) {
		mp_forget(s->state, s->mm, start, end);
		return;
	}
	if (start < kept->to)
		mp_forget(s->state, s->mm, start, kept->to);
	if (end > last)
		mp_forget(s->state, s->mm, last, end);
}

/* What was mapped when last seen and is not, or is another mapping, loses its policies and pages.
 */
void mp_drop_gone(struct settle *s, const struct mp_maps *now)
{
	struct emu_mm *mm = s->mm;
	struct mp_move kept = moved(s, now);

	if (mm->ranges.count || mm->pages.leaves || mm->nr_family) {
		for (size_t i = 0; i < mm->seen.count; i++) {
			const struct mp_vma *old = &mm->seen.vma[i];
			uint64_t at = old->start;
			size_t k;

			mp_vma_at(now, at, &k);
			for (; at < old->end && k < now->count && now->vma[k].start < old->end;
			     k++) {
				if (now->vma[k].start > at)
					forget_but(s, &kept, at, now->vma[k].start);
				if (!same_place(old, &now->vma[k], s->state->page))
					forget_but(s, &kept,
						   at > now->vma[k].start ? at : now->vma[k].start,
						   old->end < now->vma[k].end ? old->end
									      : now->vma[k].end);
				at = now->vma[k].end;
			}
			if (at < old->end)
				forget_but(s, &kept, at, old->end);
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
