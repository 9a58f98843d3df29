// SPDX-License-Identifier: MIT
/*
 * shifts.c - how far a page's interleave index is from its address: mappings that mremap() moved
 * after they were touched keep the index of their old place (vm_pgoff), all others have none.
 *
 * Invariant: sorted by page, not empty, apart or touching, delta never 0. In pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/policy/policy.h"

/* The first one that ends after `page`. */
static size_t find(const struct pol_shifts *shifts, uint64_t page)
{
	size_t lo = 0, hi = shifts->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (shifts->shift[mid].last <= page)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint64_t pol_shifts_at(const struct pol_shifts *shifts, uint64_t page, uint64_t *last)
{
	size_t i = find(shifts, page);
	bool in = i < shifts->count && shifts->shift[i].first <= page;

	if (last)
		*last = i == shifts->count ? UINT64_MAX
			: in               ? shifts->shift[i].last
					   : shifts->shift[i].first;
	return in ? shifts->shift[i].delta : 0;
}

static void insert(struct pol_shifts *shifts, size_t i, uint64_t first, uint64_t last,
		   uint64_t delta)
{
	memmove(shifts->shift + i + 1, shifts->shift + i,
		(shifts->count - i) * sizeof(*shifts->shift));
	shifts->shift[i] = (struct pol_shift){first, last, delta};
	shifts->count++;
}

int pol_shifts_set(struct pol_shifts *shifts, uint64_t first, uint64_t last, uint64_t delta)
{
	size_t i, to;

	if (first >= last || (!shifts->count && !delta))
		return 0;
	if (shifts->count + 2 > shifts->room) {
		size_t room = 2 * shifts->room + 8;
		struct pol_shift *bigger = realloc(shifts->shift, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		shifts->shift = bigger;
		shifts->room = room;
	}
	i = find(shifts, first);
	if (i < shifts->count && shifts->shift[i].first < first) { /* split what it begins in */
		struct pol_shift old = shifts->shift[i];

		shifts->shift[i].last = first;
		i++;
		if (old.last > last)
			insert(shifts, i, last, old.last, old.delta);
	}
	for (to = i; to < shifts->count && shifts->shift[to].last <= last;)
		to++;
	if (to < shifts->count && shifts->shift[to].first < last)
		shifts->shift[to].first = last;
	if (shifts->count) /* an empty table may have no array */
		memmove(shifts->shift + i, shifts->shift + to,
			(shifts->count - to) * sizeof(*shifts->shift));
	shifts->count -= to - i;
	if (delta)
		insert(shifts, i, first, last, delta);
	return 0;
}

int pol_shifts_move(struct pol_shifts *shifts, uint64_t from, uint64_t to, uint64_t count,
		    bool touched)
{
	uint64_t at = from, last;
	int rc = 0;

	for (; at < from + count && !rc; at = last) {
		uint64_t delta = pol_shifts_at(shifts, at, &last);

		if (last > from + count)
			last = from + count;
		rc = pol_shifts_set(shifts, at - from + to, last - from + to,
				    touched ? delta + from - to : 0);
	}
	return rc ? rc : pol_shifts_set(shifts, from, from + count, 0);
}

int pol_shifts_copy(struct pol_shifts *to, const struct pol_shifts *from)
{
	*to = (struct pol_shifts){0};
	if (!from->count)
		return 0;
	to->shift = malloc(from->count * sizeof(*to->shift));
	if (!to->shift)
		return -ENOMEM;
	memcpy(to->shift, from->shift, from->count * sizeof(*to->shift));
	to->count = to->room = from->count;
	return 0;
}

void pol_shifts_free(struct pol_shifts *shifts)
{
	free(shifts->shift);
	*shifts = (struct pol_shifts){0};
}
