// SPDX-License-Identifier: MIT
/* arena_stop.c - what stopped a part, found out and told; reports of parts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/mem.h"
#include "os/os.h"

static long long free_huge_pages(size_t page)
{
	long long n = -1;
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/free_hugepages",
		 page >> 10);
	return mc_os_read_number(MC_ROOT_LIVE, path, &n) < 0 ? -1 : n;
}

static enum mc_arena_stop diagnose_hugetlb(const struct mc_arena *a, int *err, char *why,
					   size_t size)
{
	size_t page = (size_t)1 << a->shift;
	long long n = free_huge_pages(page);

	*err = ENOMEM;
	if (n > 0 && mc_limits_huge(a->limits, page, why, size))
		return MC_STOP_HUGETLB;
	if (n > 0)
		snprintf(why, size,
			 "no %zu kB huge page for it, though %lld are free: on other nodes or "
			 "reserved",
			 page >> 10, n);
	else
		snprintf(why, size,
			 "the pool of %zu kB huge pages is empty; raise "
			 "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages",
			 page >> 10, page >> 10);
	return MC_STOP_HUGETLB;
}

static enum mc_arena_stop diagnose_file(const struct mc_arena *a, uint64_t page, int *err,
					char *why, size_t size)
{
	uint64_t at = (uint64_t)a->attr.offset + (page << a->shift);
	struct mc_os_file f;

	if (mc_os_file(a->fd, &f) < 0) {
		snprintf(why, size, "%s", strerror(*err));
		return MC_STOP_OTHER;
	}
	if (at >= f.size) {
		*err = ENXIO;
		snprintf(why, size, "the file ends at byte %" PRIu64, f.size);
		return MC_STOP_END;
	}
	if (a->hugetlb)
		return diagnose_hugetlb(a, err, why, size);
	if (f.free_bytes < (UINT64_C(1) << a->shift) && !(a->attr.flags & MC_ARENA_READ)) {
		*err = ENOSPC;
		snprintf(why, size, "the file system is full");
		return MC_STOP_SPACE;
	}
	if (*err == ENOMEM) {
		snprintf(why, size, "out of memory");
		return MC_STOP_MEMORY;
	}
	*err = *err == EFAULT ? EIO : *err;
	snprintf(why, size, "reading or allocating byte %" PRIu64 ": %s", at, strerror(*err));
	return MC_STOP_IO;
}

enum mc_arena_stop arena_diagnose(const struct mc_arena *a, const struct mc_arena_part *p,
				  uint64_t page, int *err, char *why, size_t size)
{
	(void)p;
	if (a->fd >= 0 && a->attr.backing == MC_ARENA_FILE)
		return diagnose_file(a, page, err, why, size);
	if (a->hugetlb)
		return diagnose_hugetlb(a, err, why, size);
	if (*err == ENOSPC || (*err == EFAULT && a->fd >= 0)) {
		*err = a->fd >= 0 ? ENOMEM : *err;
		snprintf(why, size, "no more shared memory");
		return MC_STOP_SPACE;
	}
	if (*err == ENOMEM) {
		snprintf(why, size, "out of memory");
		return MC_STOP_MEMORY;
	}
	snprintf(why, size, "%s", strerror(*err));
	return MC_STOP_OTHER;
}

int mc_arena_part_report(struct mc_arena *a, unsigned int part, struct mc_arena_report *r)
{
	struct mc_arena_part *p;
	char node[24] = ""; /* a policy over several has none */

	if (arena_in_child(a))
		return -ECHILD;
	if (part >= a->nr_parts)
		return -EINVAL;
	p = &a->part[part];
	memset(r, 0, sizeof(*r));
	pthread_mutex_lock(&p->lock);
	r->node = p->node;
	if (p->node != MC_ANY_NODE)
		snprintf(node, sizeof(node), "node %u ", p->node);
	r->threads = p->threads;
	r->offset = p->first << a->shift;
	r->size = (p->end - p->first) << a->shift;
	r->ready = p->ready << a->shift;
	r->bad = p->bad << a->shift;
	r->resident = p->resident << a->shift;
	r->helped = p->helped << a->shift;
	r->start_ns = p->start_ns > a->t0 ? p->start_ns - a->t0 : 0;
	r->end_ns = p->end_ns > a->t0 ? p->end_ns - a->t0 : 0;
	r->slow_chunks = p->slow_chunks;
	r->gave_up_thp = p->gave_up_thp;
	r->placement_err = p->placement_err;
	r->running = !arena_part_finished(a, p);
	r->stop = p->stop;
	r->err = p->err;
	if (!p->stop && !r->running && p->cursor < p->end) {
		r->stop = MC_STOP_CANCELLED;
		r->err = ECANCELED;
		mc_fail(&r->error, ECANCELED, "initialising: %scancelled", node);
	} else if (p->stop) {
		mc_fail(&r->error, p->err, "initialising: %safter %" PRIu64 " MiB: %s", node,
			r->ready >> 20, p->why);
	}
	pthread_mutex_unlock(&p->lock);
	return 0;
}

size_t mc_arena_report_snprint(char *buf, size_t size, const struct mc_arena_report *r)
{
	uint64_t ms = r->end_ns > r->start_ns ? (r->end_ns - r->start_ns + 500000) / 1000000 : 0;
	char who[24] = "nodes", more[640] = "", placed[64] = "";
	int n;

	if (r->node != MC_ANY_NODE)
		snprintf(who, sizeof(who), "node %u", r->node);
	if (r->stop)
		snprintf(more, sizeof(more), ", stopped: %s", r->error.text);
	if (r->placement_err)
		snprintf(placed, sizeof(placed), ", not placed: %s", strerror(r->placement_err));
	if (r->running)
		n = snprintf(buf, size,
			     "%s deferred pages: %" PRIu64 " of %" PRIu64 " MiB initialised", who,
			     r->ready >> 20, r->size >> 20);
	else
		n = snprintf(buf, size,
			     "%s deferred pages initialised in %" PRIu64 "ms: %" PRIu64
			     " of %" PRIu64 " MiB, %u thread%s%s%s%s%s",
			     who, ms, r->ready >> 20, r->size >> 20, r->threads,
			     r->threads == 1 ? "" : "s", r->bad ? ", poisoned pages left out" : "",
			     r->gave_up_thp ? ", huge pages given up" : "", placed, more);
	return n < 0 ? 0 : (size_t)n;
}
