// SPDX-License-Identifier: MIT
/*
 * percpu_robust.c - pools that find misuse, and the register of the chunks that out-of-line
 * operations may touch.
 *
 * A robust pool's handles are of MC_KIND_CALL, so every operation comes here and is checked against
 * a record per object: who allocated it, who freed it, how long it is. Behind each object lies a
 * red zone with a pattern; a freed object is filled with another and waits in a queue before its
 * memory is used again. Copies that came into use after a pattern was written hold zeroes there, so
 * zero is accepted too. Faults are collected under the pool's mutex and told without it. Lock
 * order: pool, then calls.lock.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/percpu_internal.h"

enum { RED = 16, RED_BYTE = 0xbb, POISON_BYTE = 0x6b, QUARANTINE = 64, MAX_TOLD = 16 };
enum { NEVER, ALLOCATED, FREED };

struct mc_robust {
	void (*fault)(void *arg, const struct mc_percpu_fault *fault);
	void *arg;
	uint64_t queue[QUARANTINE];
	unsigned int head, count;
};

/* Faults found under the lock, told after it. */
struct told {
	unsigned int n, total;
	struct mc_percpu_fault fault[MAX_TOLD];
};

static struct {
	pthread_mutex_t lock;
	struct mc_chunk *chunks; /* of all out-of-line pools */
	unsigned int nr_robust;
	struct mc_percpu_pool *last; /* hears of pointers that belong to nobody */
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool mc_robust_any(void)
{
	return __atomic_load_n(&calls.nr_robust, __ATOMIC_ACQUIRE);
}

void mc_robust_fork(int phase)
{
	if (phase == 0)
		pthread_mutex_lock(&calls.lock);
	else if (phase == 1)
		pthread_mutex_unlock(&calls.lock);
	else
		pthread_mutex_init(&calls.lock, NULL);
}

int mc_robust_create(struct mc_percpu_pool *pool, const struct mc_percpu_attr *attr)
{
	pool->robust = calloc(1, sizeof(*pool->robust));
	if (!pool->robust)
		return -ENOMEM;
	pool->robust->fault = attr->fault;
	pool->robust->arg = attr->fault_arg;
	pthread_mutex_lock(&calls.lock);
	calls.last = pool;
	__atomic_fetch_add(&calls.nr_robust, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&calls.lock);
	return 0;
}

void mc_robust_destroy(struct mc_percpu_pool *pool)
{
	if (!pool->robust)
		return;
	pthread_mutex_lock(&calls.lock);
	if (calls.last == pool)
		calls.last = NULL;
	__atomic_fetch_sub(&calls.nr_robust, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&calls.lock);
	free(pool->robust);
}

int mc_robust_chunk_init(struct mc_chunk *c)
{
	size_t len = c->unit_size / MC_GRAIN * sizeof(*c->record);

	if (c->pool->index_kind != MC_KIND_CALL)
		return 0;
	if (c->pool->robust) {
		c->record =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (c->record == MAP_FAILED)
			return -ENOMEM;
	}
	pthread_mutex_lock(&calls.lock);
	c->next_call = calls.chunks;
	calls.chunks = c;
	pthread_mutex_unlock(&calls.lock);
	return 0;
}

void mc_robust_chunk_gone(struct mc_chunk *c)
{
	if (c->pool->index_kind != MC_KIND_CALL)
		return;
	pthread_mutex_lock(&calls.lock);
	for (struct mc_chunk **p = &calls.chunks; *p; p = &(*p)->next_call)
		if (*p == c) {
			*p = c->next_call;
			break;
		}
	pthread_mutex_unlock(&calls.lock);
	if (c->record)
		munmap(c->record, c->unit_size / MC_GRAIN * sizeof(*c->record));
}

/* The out-of-line chunk whose copy 0 holds h, or NULL; never looks at h itself. */
static struct mc_chunk *find_chunk(uint64_t h)
{
	uint64_t at = MC_HANDLE_ADDRESS_(h);
	struct mc_chunk *c;

	pthread_mutex_lock(&calls.lock);
	for (c = calls.chunks; c; c = c->next_call)
		if (at >= c->base && at < c->base + c->unit_size && h - at == c->tag)
			break;
	pthread_mutex_unlock(&calls.lock);
	return c;
}

/* ---- reports --------------------------------------------------------------------------------- */

static const char *const kind_name[] = {"",        "double free",    "foreign pointer",
					"overrun", "use after free", "leak"};

static void tell(struct told *t, enum mc_percpu_fault_kind kind, uint64_t h,
		 const struct mc_robust_record *r, unsigned int copy, size_t offset, void *caller)
{
	struct mc_percpu_fault *f;

	t->total++;
	if (t->n == MAX_TOLD)
		return;
	f = &t->fault[t->n++];
	memset(f, 0, sizeof(*f));
	f->kind = kind;
	f->handle = (void *)h;
	f->copy = copy;
	f->offset = offset;
	f->caller = caller;
	if (r) {
		f->size = r->size;
		f->allocated_by = r->allocated_by;
		f->freed_by = r->state == ALLOCATED ? NULL : r->freed_by;
	}
	snprintf(f->text, sizeof(f->text),
		 "%s: object %#llx of %zu bytes, offset %zu, copy %u; allocated by %p, freed by "
		 "%p, found from %p",
		 kind_name[kind], (unsigned long long)h, f->size, offset, copy, f->allocated_by,
		 f->freed_by, caller);
}

static void deliver(const struct mc_robust *r, struct told *t)
{
	for (unsigned int i = 0; i < t->n && r && r->fault; i++)
		r->fault(r->arg, &t->fault[i]);
	t->n = 0;
}

/* For pointers of no pool: the robust pool made last hears of them. */
static void foreign(uint64_t h, void *caller)
{
	struct told t = {0};
	struct mc_robust copy = {0};

	pthread_mutex_lock(&calls.lock);
	if (calls.last)
		copy = *calls.last->robust;
	pthread_mutex_unlock(&calls.lock);
	tell(&t, MC_PERCPU_FOREIGN, h, NULL, 0, 0, caller);
	deliver(&copy, &t);
}

/* ---- patterns -------------------------------------------------------------------------------- */

static uint8_t *copy_at(const struct mc_chunk *c, uint32_t bit, unsigned int copy)
{
	return (uint8_t *)(c->base + (uint64_t)copy * c->stride + (uint64_t)bit * MC_GRAIN);
}

/* The bytes reserved for an object: itself and its red zone. */
static size_t room(const struct mc_chunk *c, uint32_t bit)
{
	return (size_t)mc_area_size(&c->hot->area, bit) * MC_GRAIN;
}

/* Is [from, to) of every walked copy the pattern or zero? Reports the first byte that is not. */
static bool intact(const struct mc_chunk *c, uint32_t bit, size_t from, size_t to, uint8_t pattern,
		   enum mc_percpu_fault_kind kind, struct told *t, void *caller)
{
	unsigned int n = mc_pool_walk(c->pool);

	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *p = copy_at(c, bit, i);

		for (size_t k = from; k < to; k++)
			if (p[k] != pattern && p[k]) {
				tell(t, kind, (c->base + (uint64_t)bit * MC_GRAIN) | c->tag,
				     &c->record[bit], i, k, caller);
				return false;
			}
	}
	return true;
}

static void paint(const struct mc_chunk *c, uint32_t bit, size_t from, size_t to, uint8_t pattern)
{
	unsigned int n = mc_pool_walk(c->pool);

	for (unsigned int i = 0; i < n; i++)
		memset(copy_at(c, bit, i) + from, pattern, to - from);
}

/* ---- the calls ------------------------------------------------------------------------------- */

void *mc_robust_alloc(struct mc_percpu_pool *pool, size_t size, size_t align, void *caller)
{
	size_t want = (size + MC_GRAIN - 1) / MC_GRAIN * MC_GRAIN + RED;
	struct mc_chunk *c;
	uint64_t h;
	uint32_t bit;

	if (want > pool->unit_size)
		want = pool->unit_size;
	pthread_mutex_lock(&pool->lock);
	mc_pool_count(pool, size);
	h = mc_pool_take(pool, want, align, MC_CLASS_OTHER);
	if (h) {
		h |= mc_pool_tag(pool, pool->side[align > MC_LINE].stride);
		c = mc_chunk_of(h);
		bit = (uint32_t)((MC_HANDLE_ADDRESS_(h) - c->base) / MC_GRAIN);
		c->record[bit] = (struct mc_robust_record){caller, NULL, (uint32_t)size, ALLOCATED};
		mc_zero_copies(MC_HANDLE_ADDRESS_(h), c->stride, want, mc_pool_walk(pool));
		paint(c, bit, size, room(c, bit), RED_BYTE);
	}
	pthread_mutex_unlock(&pool->lock);
	if (!h)
		errno = ENOMEM;
	return (void *)h;
}

/* The oldest of the queue goes back for good. */
static void release_oldest(struct mc_percpu_pool *pool, struct told *t, void *caller)
{
	struct mc_robust *r = pool->robust;
	uint64_t h = r->queue[r->head];
	struct mc_chunk *c = mc_chunk_of(h);
	uint32_t bit = (uint32_t)((MC_HANDLE_ADDRESS_(h) - c->base) / MC_GRAIN);

	r->head = (r->head + 1) % QUARANTINE;
	r->count--;
	intact(c, bit, 0, room(c, bit), POISON_BYTE, MC_PERCPU_USE_AFTER_FREE, t, caller);
	c->record[bit].state = NEVER;
	mc_pool_give(pool, c, MC_HANDLE_ADDRESS_(h));
}

/* Under the mutex. */
static void robust_free(struct mc_chunk *c, uint64_t h, struct told *t, void *caller)
{
	struct mc_percpu_pool *pool = c->pool;
	struct mc_robust *q = pool->robust;
	uint64_t offset = MC_HANDLE_ADDRESS_(h) - c->base;
	uint32_t bit = (uint32_t)(offset / MC_GRAIN);
	struct mc_robust_record *r = &c->record[bit];

	if (offset % MC_GRAIN || (r->state == NEVER && !r->freed_by)) {
		tell(t, MC_PERCPU_FOREIGN, h, NULL, 0, 0, caller);
		return;
	}
	if (r->state != ALLOCATED) {
		tell(t, MC_PERCPU_DOUBLE_FREE, h, r, 0, 0, caller);
		return;
	}
	intact(c, bit, r->size, room(c, bit), RED_BYTE, MC_PERCPU_OVERRUN, t, caller);
	paint(c, bit, 0, room(c, bit), POISON_BYTE);
	r->freed_by = caller;
	r->state = FREED;
	if (q->count == QUARANTINE)
		release_oldest(pool, t, caller);
	q->queue[(q->head + q->count++) % QUARANTINE] = h;
}

void mc_robust_free(uint64_t h, void *caller)
{
	struct mc_chunk *c = find_chunk(h);
	struct told t = {0};

	if (!c) {
		foreign(h, caller);
		return;
	}
	if (!c->pool->robust) {
		mc_pool_free_object(c->pool, h);
		return;
	}
	pthread_mutex_lock(&c->pool->lock);
	robust_free(c, h, &t, caller);
	pthread_mutex_unlock(&c->pool->lock);
	deliver(c->pool->robust, &t);
}

bool mc_robust_access(uint64_t h, unsigned int bytes, void *caller)
{
	struct told t = {0};
	struct mc_chunk *c;
	int64_t start;
	bool ok = true;

	if (!mc_robust_any())
		return true;
	c = find_chunk(h);
	if (!c) {
		foreign(h, caller);
		return false;
	}
	if (!c->pool->robust)
		return true;
	pthread_mutex_lock(&c->pool->lock);
	start = mc_area_start(&c->hot->area,
			      (uint32_t)((MC_HANDLE_ADDRESS_(h) - c->base) / MC_GRAIN));
	if (start < 0) {
		struct mc_robust_record *r =
			&c->record[(MC_HANDLE_ADDRESS_(h) - c->base) / MC_GRAIN];

		/* Not allocated now; whether it ever was is known for starts of objects only. */
		tell(&t, r->freed_by ? MC_PERCPU_USE_AFTER_FREE : MC_PERCPU_FOREIGN, h,
		     r->freed_by ? r : NULL, 0, 0, caller);
		ok = false;
	} else {
		struct mc_robust_record *r = &c->record[start];
		uint64_t offset = MC_HANDLE_ADDRESS_(h) - c->base - (uint64_t)start * MC_GRAIN;

		if (r->state == FREED)
			tell(&t, MC_PERCPU_USE_AFTER_FREE, h, r, 0, offset, caller);
		else if (offset + bytes > r->size)
			tell(&t, MC_PERCPU_OVERRUN, h, r, 0, offset, caller);
		ok = !t.n;
	}
	pthread_mutex_unlock(&c->pool->lock);
	deliver(c->pool->robust, &t);
	return ok;
}

/* ---- checks of the whole pool ---------------------------------------------------------------- */

/* From *bit on, until the end or until no more can be told at once; false: go on from *bit. */
static bool check_chunk(struct mc_chunk *c, uint32_t *from, struct told *t, bool leaks,
			void *caller)
{
	uint32_t bit = *from;

	for (; bit < c->hot->area.nr_bits && t->n + 2 <= MAX_TOLD; bit++) {
		struct mc_robust_record *r = &c->record[bit];

		if (r->state == ALLOCATED) {
			intact(c, bit, r->size, room(c, bit), RED_BYTE, MC_PERCPU_OVERRUN, t,
			       caller);
			if (leaks)
				tell(t, MC_PERCPU_LEAK,
				     (c->base + (uint64_t)bit * MC_GRAIN) | c->tag, r, 0, 0,
				     caller);
		} else if (r->state == FREED && !intact(c, bit, 0, room(c, bit), POISON_BYTE,
							MC_PERCPU_USE_AFTER_FREE, t, caller)) {
			paint(c, bit, 0, room(c, bit), POISON_BYTE); /* told once */
		}
	}
	*from = bit;
	return bit == c->hot->area.nr_bits;
}

/* A robust pool's chunks stay while it lives, so the list may be left and entered again. */
static int check(struct mc_percpu_pool *pool, bool leaks, void *caller)
{
	struct told t = {0};

	for (unsigned int i = 0; i < 2 * MC_NR_SLOTS; i++) {
		struct mc_list *head = &pool->side[i / MC_NR_SLOTS].slot[i % MC_NR_SLOTS],
			       *e = head;
		uint32_t bit = 0;

		pthread_mutex_lock(&pool->lock);
		for (e = head->next; e != head;) {
			struct mc_chunk_hot *hot =
				(struct mc_chunk_hot *)((char *)e -
							offsetof(struct mc_chunk_hot, list));

			if (check_chunk(hot->chunk, &bit, &t, leaks, caller)) {
				e = e->next;
				bit = 0;
			}
			pthread_mutex_unlock(&pool->lock);
			deliver(pool->robust, &t);
			pthread_mutex_lock(&pool->lock);
		}
		pthread_mutex_unlock(&pool->lock);
	}
	return (int)t.total;
}

int mc_percpu_pool_check(struct mc_percpu_pool *pool)
{
	return pool && pool->robust ? check(pool, false, __builtin_return_address(0)) : 0;
}

void mc_percpu_pool_destroy(struct mc_percpu_pool *pool)
{
	if (!pool)
		return;
	if (pool->robust)
		check(pool, true, __builtin_return_address(0));
	if (pool->shared && !(pool->flags & MC_PERCPU_READ_ONLY))
		mc_rt_unpublish(pool->shared);
	mc_pool_delete(pool);
}
