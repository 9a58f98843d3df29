// SPDX-License-Identifier: MIT
/*
 * mempolicy_pagemap.c - which pages are there: /proc/PID/pagemap, by PAGEMAP_SCAN where the host's
 * kernel has it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy_settle.h"
#include "os/os.h"

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

int mp_read_pagemap(int fd, uint64_t *entry, uint64_t page, size_t count)
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

			mp_read_pagemap(s->pagemap, s->entry + at, page + at, len);
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

/* The first page of [page, last) that is there or swapped out, `last` when none is: reservations of
 * terabytes are passed in one step. `page` itself where the host's kernel can't tell. */
uint64_t mp_next_there(struct settle *s, uint64_t page, uint64_t last)
{
	struct scan_region region;
	const uint64_t size = s->state->page;
	struct scan_arg arg = {
		.size = sizeof(arg),
		.start = page * size,
		.end = last * size,
		.vec = (uintptr_t)&region,
		.vec_len = 1,
		.max_pages = 1,
		.category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
		.return_mask = SCAN_PRESENT | SCAN_SWAPPED,
	};
	int n = s->no_scan ? -1 : ioctl(s->pagemap, SCAN_IOCTL, &arg);

	if (n < 0)
		return page;
	return n ? region.start / size : last;
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

int mp_look(struct settle *s, uint64_t page, size_t count)
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
		rc = mp_read_pagemap(s->pagemap, s->entry, page, count);
		find_zeroes(s, page, count);
	}
	return rc;
}
