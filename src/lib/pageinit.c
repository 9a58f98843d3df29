// SPDX-License-Identifier: MIT
/*
 * pageinit.c - faulting memory in: how far it came, to the page, whatever the kernel.
 *
 * The kernel populates a whole range in one call but does not say where it stopped; halving the
 * range finds that in log2(pages) more calls, since what is in already costs next to nothing.
 * Called by arena_chunk.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <manycore/arena.h>
#include "lib/internal.h"
#include "lib/pageinit.h"
#include "os/mem.h"
#include "os/os.h"

static int touch_range(char *start, size_t bytes, size_t page_size, bool write, size_t *done)
{
	for (*done = 0; *done < bytes; *done += page_size) {
		int rc = mc_os_touch(start + *done, write);

		if (rc < 0)
			return rc;
	}
	return 0;
}

int mc_pageinit_populate(bool advice, void *start, size_t bytes, size_t page_size, bool write,
			 size_t *done)
{
	char *at = start;
	size_t lo = 0,
	       hi = bytes; /* [0, lo) is in; [lo, hi) holds a page that can't be, when rc < 0 */
	int rc;

	if (!advice)
		return touch_range(at, bytes, page_size, write, done);
	rc = mc_os_populate(at, bytes, write);
	while (rc < 0) {
		size_t mid = lo + (hi - lo) / page_size / 2 * page_size;

		if (mid > lo) {
			if (mc_os_populate(at + lo, mid - lo, write) < 0)
				hi = mid;
			else
				lo = mid;
			continue;
		}
		/* One page left. Asked by itself it tells the true reason, or comes in if that has
		 * passed. */
		rc = mc_os_populate(at + lo, hi - lo, write);
		if (rc < 0)
			break;
		lo = hi;
		hi = bytes;
		if (lo < hi)
			rc = mc_os_populate(at + lo, hi - lo, write);
	}
	*done = rc < 0 ? lo : bytes;
	return rc;
}

int mc_pageinit_range(void *start, size_t bytes, size_t page_size, bool write, size_t *done)
{
	size_t got = 0, base = mc_os_page_size();
	int rc;

	if (!page_size)
		page_size = base;
	if (page_size % base || (uintptr_t)start % page_size || bytes % page_size)
		return -EINVAL;
	rc = mc_pageinit_populate(mc_os_populate_works(), start, bytes, page_size, write, &got);
	if (done)
		*done = got;
	return rc;
}

unsigned int mc_pageinit_max_threads(const struct mc_cpumask *cpus)
{
	struct mc_cpumask *allowed = mc_cpumask_alloc();
	struct mc_limits *limits = mc_limits_open(MC_ROOT_LIVE);
	unsigned int n = 1, quota = limits ? mc_limits_cpus(limits) : UINT_MAX;

	if (allowed && mc_os_getaffinity(0, (allowed->nbits + 63) / 64 * 8,
					 (unsigned long *)allowed->word) > 0) {
		n = 0;
		for (unsigned int cpu = mc_cpumask_first(allowed); cpu < allowed->nbits;
		     cpu = mc_cpumask_next((int)cpu, allowed))
			n += !cpus || (cpu < cpus->nbits && mc_cpumask_test(cpus, cpu));
	}
	mc_limits_close(limits);
	mc_cpumask_free(allowed);
	if (n > quota)
		n = quota;
	return n ? n : 1;
}
