// SPDX-License-Identifier: MIT
/*
 * arena_phys.c - physical interleave: consecutive pages of an arena come round-robin from N equal
 * chunks of the machine's RAM, as under numa=fake=N with an interleaving policy, but for one
 * process and without a reboot.
 *
 * Pages are taken into a pool, sorted by frame number (pagemap), and moved to their places without
 * copying: UFFDIO_MOVE where the kernel has it (6.8), else mremap(), which costs a mapping a page
 * and so is bounded. The N chunks are cut as the kernel's fake nodes are: equal shares of RAM,
 * holes not counted. Everything is done under one lock: this is about where pages lie, not about
 * how fast they come. Called by arena_chunk.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/mem.h"
#include "os/os.h"

enum { BATCH = 16 << 20, MAX_MAPPINGS = 30000, FRAMES_AT_ONCE = 512 };

struct stack {
	uint64_t *off; /* pool offsets of pages that lie in this chunk */
	uint64_t *frame;
	size_t n, room;
};

struct mc_arena_phys {
	pthread_mutex_t lock;
	int pagemap, mover; /* mover < 0: mremap */
	unsigned int n;
	size_t unit;         /* bytes of a page */
	uint64_t *bound;     /* n: first frame behind each chunk */
	struct stack *stack; /* n */
	char *pool;
	size_t pool_bytes, taken; /* taken: from its start, already faulted in once */
	uint64_t *frame;          /* of each arena page, 0: not there yet */
	uint64_t moved;
};

/* Frame numbers at which each of n equal shares of RAM ends. Only root is shown numbers here. */
static int cut_ram(struct mc_arena_phys *ph, size_t *ram, struct mc_error *error)
{
	uint64_t total = 0, seen = 0, page = mc_os_page_size();
	unsigned int k = 0;
	size_t len;
	char *text;
	int rc = mc_os_read_file(MC_ROOT_LIVE, "/proc/iomem", 1 << 20, &text, &len);

	if (rc < 0)
		return mc_fail(error, -rc, "physical interleave: /proc/iomem: %s", strerror(-rc));
	for (int pass = 0; pass < 2; pass++)
		for (const char *line = text; line && *line;
		     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
			uint64_t from, to;
			char what[32];

			if (*line == ' ' ||
			    sscanf(line, "%" SCNx64 "-%" SCNx64 " : %31[^\n]", &from, &to, what) !=
				    3 ||
			    strcmp(what, "System RAM") || to <= from)
				continue;
			to++;
			if (!pass) {
				total += to - from;
				continue;
			}
			while (k < ph->n && seen + (to - from) >= total / ph->n * (k + 1)) {
				uint64_t end = from + (total / ph->n * (k + 1) - seen);

				ph->bound[k] = (end + ph->unit - 1) / ph->unit * (ph->unit / page);
				k++;
			}
			seen += to - from;
		}
	free(text);
	if (!total)
		return mc_fail(
			error, EPERM,
			"physical interleave: /proc/iomem: hides addresses; needs CAP_SYS_ADMIN");
	ph->bound[ph->n - 1] = UINT64_MAX;
	*ram = total;
	return 0;
}

static int open_tools(struct mc_arena *a, struct mc_arena_phys *ph, struct mc_error *error)
{
	size_t ram = 0;
	int rc;

	ph->pagemap = mc_os_pagemap_open();
	if (ph->pagemap < 0)
		return mc_fail(error, ph->pagemap == -EACCES ? EPERM : -ph->pagemap,
			       "physical interleave: /proc/self/pagemap: %s; frame numbers need "
			       "CAP_SYS_ADMIN",
			       ph->pagemap == -EPERM ? "hides frame numbers"
						     : strerror(-ph->pagemap));
	rc = cut_ram(ph, &ram, error);
	if (rc < 0)
		return rc;
	ph->mover = mc_os_mover_open(a->base, a->size);
	if (ph->mover < 0 && a->pages > MAX_MAPPINGS)
		return mc_fail(error, EOPNOTSUPP,
			       "physical interleave: %" PRIu64
			       " pages: this kernel can't move that many "
			       "(UFFDIO_MOVE, Linux 6.8: %s)",
			       a->pages, strerror(-ph->mover));
	ph->pool_bytes = ram / BATCH * BATCH;
	ph->pool = mmap(NULL, ph->pool_bytes + ph->unit, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ph->pool == MAP_FAILED) {
		ph->pool = NULL;
		return mc_fail(error, errno, "physical interleave: reserving addresses: %s",
			       strerror(errno));
	}
	mc_os_hugepages(ph->pool, ph->pool_bytes + ph->unit, a->attr.backing == MC_ARENA_THP);
	return 0;
}

int arena_phys_open(struct mc_arena *a, struct mc_error *error)
{
	size_t want = a->attr.backing == MC_ARENA_THP ? (size_t)2 << 20 : mc_os_page_size();
	struct mc_arena_phys *ph;

	if ((size_t)1 << a->shift != want)
		return mc_fail(error, EINVAL,
			       "physical interleave: page size %zu: give %zu with this backing",
			       (size_t)1 << a->shift, want);
	ph = calloc(1, sizeof(*ph));
	if (!ph)
		return mc_fail(error, ENOMEM, "physical interleave: out of memory");
	a->phys = ph;
	ph->pagemap = ph->mover = -1;
	ph->n = a->attr.phys_chunks;
	ph->unit = want;
	pthread_mutex_init(&ph->lock, NULL);
	ph->bound = calloc(ph->n, sizeof(*ph->bound));
	ph->stack = calloc(ph->n, sizeof(*ph->stack));
	ph->frame = calloc(a->pages, sizeof(*ph->frame));
	if (!ph->bound || !ph->stack || !ph->frame)
		return mc_fail(error, ENOMEM, "physical interleave: out of memory");
	return open_tools(a, ph, error);
}

static void drop_pool(struct mc_arena_phys *ph)
{
	if (ph->pool)
		munmap(ph->pool, ph->pool_bytes + ph->unit);
	ph->pool = NULL;
	if (ph->mover >= 0)
		close(ph->mover); /* missing pages fault as usual again */
	ph->mover = -1;
}

void arena_phys_close(struct mc_arena *a)
{
	struct mc_arena_phys *ph = a->phys;

	if (!ph)
		return;
	drop_pool(ph);
	if (ph->pagemap >= 0)
		close(ph->pagemap);
	for (unsigned int k = 0; ph->stack && k < ph->n; k++) {
		free(ph->stack[k].off);
		free(ph->stack[k].frame);
	}
	pthread_mutex_destroy(&ph->lock);
	free(ph->stack);
	free(ph->bound);
	free(ph->frame);
	free(ph);
	a->phys = NULL;
}

static int push(struct stack *s, uint64_t off, uint64_t frame)
{
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 1024;
		uint64_t *o = realloc(s->off, room * sizeof(*o)), *f;

		if (!o)
			return -ENOMEM;
		s->off = o;
		f = realloc(s->frame, room * sizeof(*f));
		if (!f)
			return -ENOMEM;
		s->frame = f;
		s->room = room;
	}
	s->off[s->n] = off;
	s->frame[s->n++] = frame;
	return 0;
}

static unsigned int chunk_of(const struct mc_arena_phys *ph, uint64_t frame)
{
	unsigned int k = 0;

	while (k + 1 < ph->n && frame >= ph->bound[k])
		k++;
	return k;
}

/* Sorts the freshly faulted [off, off + bytes) of the pool into the stacks. */
static int sort_in(struct mc_arena_phys *ph, char *pool, size_t off, size_t bytes)
{
	size_t page = mc_os_page_size(), per = ph->unit / page;
	uint64_t frames[FRAMES_AT_ONCE];
	int rc = 0;

	for (size_t at = 0; !rc && at < bytes; at += FRAMES_AT_ONCE * page) {
		size_t n =
			bytes - at < FRAMES_AT_ONCE * page ? (bytes - at) / page : FRAMES_AT_ONCE;

		rc = mc_os_pagemap_frames(ph->pagemap, pool + off + at, n, frames);
		for (size_t i = 0; !rc && i + per <= n; i += per)
			/* A huge page is one only when its frames follow each other from an aligned
			 * one. */
			if (frames[i] && frames[i] % per == 0 &&
			    frames[i + per - 1] == frames[i] + per - 1)
				rc = push(&ph->stack[chunk_of(ph, frames[i])], off + at + i * page,
					  frames[i]);
	}
	return rc;
}

static char *pool_at(const struct mc_arena_phys *ph, uint64_t off)
{
	return ph->pool + (ph->unit - (uintptr_t)ph->pool % ph->unit) % ph->unit + off;
}

/* Takes more pages from the system: until every stack could serve, or the limits say no. */
static int grow_pool(struct mc_arena *a, struct mc_arena_phys *ph)
{
	char *pool = pool_at(ph, 0), why[160];
	bool cgroup;
	size_t got = 0;
	int rc;

	if (ph->taken + BATCH > ph->pool_bytes ||
	    mc_limits_headroom(a->limits, &cgroup, why, sizeof(why)) < a->margin + 2 * BATCH)
		return -ENOMEM;
	rc = mc_pageinit_populate(a->advice, pool + ph->taken, BATCH, ph->unit, true, &got);
	if (rc < 0 && !got)
		return rc;
	rc = sort_in(ph, pool, ph->taken, got);
	ph->taken += BATCH;
	return rc;
}

static bool present(const struct mc_arena_phys *ph, const void *at)
{
	uint64_t frame = 0;

	return !mc_os_pagemap_frames(ph->pagemap, at, 1, &frame) && frame;
}

static int move_page(struct mc_arena *a, struct mc_arena_phys *ph, uint64_t page, uint64_t off)
{
	char *from = pool_at(ph, off), *to = arena_addr(a, page);
	int rc;

	if (ph->mover >= 0) {
		rc = mc_os_move(ph->mover, to, from, ph->unit);
		/* Beside compaction the kernel (seen on 6.18) may move a page, try again, and find
		 * it there. */
		return rc == -EEXIST && present(ph, to) && !present(ph, from) ? 0 : rc;
	}
	return mremap(from, ph->unit, ph->unit, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED
		       ? -errno
		       : 0;
}

/* A page of chunk k. Compaction may have moved one elsewhere since it was sorted in: looked at
 * again. */
static int take(struct mc_arena *a, struct mc_arena_phys *ph, unsigned int k, uint64_t *off,
		uint64_t *frame)
{
	struct stack *s = &ph->stack[k];
	int rc = 0;

	while (!rc) {
		uint64_t now = 0;

		while (!rc && !s->n && !atomic_load(&a->cancel))
			rc = ph->pool ? grow_pool(a, ph) : -ENOMEM;
		if (rc || !s->n)
			return rc ? rc : -ECANCELED;
		s->n--;
		*off = s->off[s->n];
		*frame = s->frame[s->n];
		rc = mc_os_pagemap_frames(ph->pagemap, pool_at(ph, *off), 1, &now);
		if (now) /* 0: on its way just now */
			*frame = now;
		if (!rc && chunk_of(ph, *frame) == k)
			return 0;
		if (!rc)
			rc = push(&ph->stack[chunk_of(ph, *frame)], *off, *frame);
	}
	return rc;
}

int arena_phys_fill(struct mc_arena *a, uint64_t first, uint64_t end, uint64_t *done)
{
	struct mc_arena_phys *ph = a->phys;
	uint64_t i, off = 0, frame = 0;
	int rc = 0;

	pthread_mutex_lock(&ph->lock);
	for (i = first; i < end; i++) {
		rc = take(a, ph, (unsigned int)(i % ph->n), &off, &frame);
		if (!rc)
			rc = move_page(a, ph, i, off);
		if (rc < 0)
			break;
		ph->frame[i] = frame;
	}
	ph->moved += i - first;
	/* The target is registered with the mover: a touch of a page that never came would wait for
	 * ever. */
	if (rc < 0 || ph->moved == a->pages)
		drop_pool(ph);
	pthread_mutex_unlock(&ph->lock);
	*done = i;
	return rc;
}

uint64_t arena_phys_frame(const struct mc_arena *a, uint64_t page)
{
	return a->phys->frame[page];
}
