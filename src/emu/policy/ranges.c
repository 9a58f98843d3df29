// SPDX-License-Identifier: MIT
/*
 * ranges.c - policies by range: a sorted array that splits and merges as the kernel's mappings do.
 *
 * Invariant: ranges are sorted, not empty, do not overlap, and touching ones differ in policy.
 * Called by the memory of a process (by address) and by shared objects (by page index).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/policy/policy.h"

/* The first range that ends after `at`. */
static size_t find(const struct pol_ranges *ranges, uint64_t at)
{
	size_t lo = 0, hi = ranges->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ranges->range[mid].end <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int reserve(struct pol_ranges *ranges, size_t count)
{
	struct pol_range *bigger;
	size_t room = ranges->room ? ranges->room : 8;

	if (count <= ranges->room)
		return 0;
	while (room < count)
		room *= 2;
	bigger = realloc(ranges->range, room * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	ranges->range = bigger;
	ranges->room = room;
	return 0;
}

static void insert(struct pol_ranges *ranges, size_t i, uint64_t start, uint64_t end,
		   struct pol *pol)
{
	memmove(ranges->range + i + 1, ranges->range + i,
		(ranges->count - i) * sizeof(*ranges->range));
	ranges->range[i] = (struct pol_range){start, end, pol_get(pol)};
	ranges->count++;
}

static void drop(struct pol_ranges *ranges, size_t i, size_t n)
{
	/* An empty table may have no array. */
	if (!n)
		return;
	for (size_t k = i; k < i + n; k++)
		pol_put(ranges->range[k].pol);
	memmove(ranges->range + i, ranges->range + i + n,
		(ranges->count - i - n) * sizeof(*ranges->range));
	ranges->count -= n;
}

static void merge_around(struct pol_ranges *ranges, size_t i)
{
	struct pol_range *r = ranges->range;

	if (i + 1 < ranges->count && r[i].end == r[i + 1].start &&
	    pol_equal(r[i].pol, r[i + 1].pol)) {
		r[i].end = r[i + 1].end;
		drop(ranges, i + 1, 1);
	}
	if (i > 0 && r[i - 1].end == r[i].start && pol_equal(r[i - 1].pol, r[i].pol)) {
		r[i - 1].end = r[i].end;
		drop(ranges, i, 1);
	}
}

int pol_ranges_set(struct pol_ranges *ranges, uint64_t start, uint64_t end, struct pol *pol)
{
	size_t i, n = 0;

	if (start >= end)
		return 0;
	if (!pol && !ranges->count)
		return 0;
	if (reserve(ranges, ranges->count + 2))
		return -ENOMEM;
	i = find(ranges, start);
	if (i < ranges->count && ranges->range[i].start < start) {
		if (ranges->range[i].end > end) /* in the middle of one: its tail stays */
			insert(ranges, i + 1, end, ranges->range[i].end, ranges->range[i].pol);
		ranges->range[i].end = start;
		i++;
	}
	while (i + n < ranges->count && ranges->range[i + n].end <= end)
		n++;
	drop(ranges, i, n);
	if (i < ranges->count && ranges->range[i].start < end)
		ranges->range[i].start = end;
	if (pol) {
		insert(ranges, i, start, end, pol);
		merge_around(ranges, i);
	}
	return 0;
}

struct pol *pol_ranges_at(const struct pol_ranges *ranges, uint64_t at, uint64_t *end)
{
	size_t i = find(ranges, at);
	bool inside = i < ranges->count && ranges->range[i].start <= at;

	if (end)
		*end = i >= ranges->count ? UINT64_MAX
		       : inside           ? ranges->range[i].end
					  : ranges->range[i].start;
	return inside ? ranges->range[i].pol : NULL;
}

int pol_ranges_move(struct pol_ranges *ranges, uint64_t from, uint64_t to, uint64_t len)
{
	struct pol_ranges moved = {0};
	int rc = 0;

	for (size_t i = find(ranges, from);
	     i < ranges->count && ranges->range[i].start < from + len && !rc; i++) {
		const struct pol_range *r = ranges->range + i;
		uint64_t start = r->start > from ? r->start : from,
			 end = r->end < from + len ? r->end : from + len;

		rc = pol_ranges_set(&moved, start - from + to, end - from + to, r->pol);
	}
	if (!rc)
		rc = pol_ranges_set(ranges, from, from + len, NULL);
	if (!rc)
		rc = pol_ranges_set(ranges, to, to + len, NULL);
	for (size_t i = 0; i < moved.count && !rc; i++)
		rc = pol_ranges_set(ranges, moved.range[i].start, moved.range[i].end,
				    moved.range[i].pol);
	pol_ranges_free(&moved);
	return rc;
}

int pol_ranges_copy(struct pol_ranges *to, const struct pol_ranges *from)
{
	if (reserve(to, from->count))
		return -ENOMEM;
	drop(to, 0, to->count);
	for (size_t i = 0; i < from->count; i++)
		insert(to, i, from->range[i].start, from->range[i].end, from->range[i].pol);
	return 0;
}

void pol_ranges_free(struct pol_ranges *ranges)
{
	drop(ranges, 0, ranges->count);
	free(ranges->range);
	*ranges = (struct pol_ranges){0};
}
