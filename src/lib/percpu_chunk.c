// SPDX-License-Identifier: MIT
/*
 * percpu_chunk.c - chunks: a unit per copy, allocated from by the kernel's rules (mm/percpu.c).
 *
 * A chunk is one address range: the head (struct mc_chunk, class map), then a unit per copy at a
 * constant stride, all reserved at once and populated by the first write to each page. Chunks lie
 * in lists ("slots") by their longest free run; the fullest that can serve is taken first. One
 * wholly free chunk is kept, others are unmapped. Populated pages without objects are given back to
 * the system when there are more than MC_EMPTY_POP_HIGH and a chunk has a quarter of its pages so.
 * Everything here runs under the pool's mutex, but for what the comments except.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/percpu_internal.h"
#include "lib/percpu_numa.h"
#include "os/os.h"

enum { SLOT_FULL = 0, SLOT_FREE = MC_NR_SLOTS - 1 };

static void list_add(struct mc_list *head, struct mc_list *e)
{
	e->next = head->next;
	e->prev = head;
	head->next->prev = e;
	head->next = e;
}

static void list_del(struct mc_list *e)
{
	e->next->prev = e->prev;
	e->prev->next = e->next;
}

static struct mc_chunk_hot *hot_of(struct mc_list *e)
{
	return (struct mc_chunk_hot *)((char *)e - offsetof(struct mc_chunk_hot, list));
}

static int slot_of(const struct mc_chunk_hot *hot)
{
	if (hot->area.free_bits == hot->area.nr_bits)
		return SLOT_FREE;
	return hot->area.contig ? 32 - __builtin_clz(hot->area.contig) : SLOT_FULL;
}

void mc_chunk_relist(struct mc_percpu_pool *pool, struct mc_chunk *c)
{
	int slot = slot_of(c->hot);

	if (slot == c->hot->slot)
		return;
	pool->nr_free_chunks += (uint32_t)((slot == SLOT_FREE) - (c->hot->slot == SLOT_FREE));
	list_del(&c->hot->list);
	list_add(&pool->side[c->side].slot[slot], &c->hot->list);
	c->hot->slot = slot;
}

/* Address space aligned to a power of two; what lies around goes back. */
static char *reserve(size_t len, size_t align)
{
	char *p = mmap(NULL, len + align, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at;

	if (p == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)p + align - 1) & ~(align - 1));
	if (at != p)
		munmap(p, (size_t)(at - p));
	if (at + len != p + len + align)
		munmap(at + len, (size_t)(p + len + align - (at + len)));
	/* A huge page would populate copies that nobody writes. */
	madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}

static size_t hot_bytes(uint32_t unit_size)
{
	uint32_t bits = unit_size / MC_GRAIN;

	return (sizeof(struct mc_chunk_hot) + mc_area_bytes(bits) + unit_size / MC_PAGE + MC_LINE -
		1) /
	       MC_LINE * MC_LINE;
}

/* The index: hot struct, maps, populated map; one allocation. */
static int index_create(struct mc_chunk *c)
{
	uint32_t bits = c->unit_size / MC_GRAIN;
	char *memory = NULL, *at;

	if (posix_memalign((void **)&memory, MC_LINE, hot_bytes(c->unit_size)))
		return -ENOMEM;
	memset(memory, 0, hot_bytes(c->unit_size));
	c->hot = (struct mc_chunk_hot *)memory;
	at = memory + sizeof(struct mc_chunk_hot);
	mc_area_init(&c->hot->area, bits, at);
	c->hot->populated = (uint8_t *)at + mc_area_bytes(bits);
	c->hot->chunk = c;
	c->hot->old_base_value = c->base;
	c->zero_base = c->pool->flags & MC_PERCPU_OLD_LAYOUT ? &c->hot->old_base_value : &c->base;
	return 0;
}

char *mc_chunk_reserve(const struct mc_percpu_pool *pool, unsigned int side, size_t *len)
{
	size_t stride = pool->side[side].stride;

	*len = (MC_CHUNK_HEAD + (pool->copies + (size_t)1) * stride + MC_PAGE_MAX - 1) &
	       ~(size_t)(MC_PAGE_MAX - 1);
	return reserve(*len, MC_CHUNK_ALIGN);
}

struct mc_chunk *mc_chunk_setup(struct mc_percpu_pool *pool, unsigned int side, char *map,
				size_t len)
{
	struct mc_chunk *c = (struct mc_chunk *)map;

	c->map = map;
	c->map_len = len;
	c->base = (uint64_t)(uintptr_t)map + MC_CHUNK_HEAD;
	c->tag = mc_pool_tag(pool, pool->side[side].stride);
	c->pool = pool;
	c->unit_size = pool->unit_size;
	c->stride = pool->side[side].stride;
	c->units = pool->copies + 1;
	c->side = side;
	if (index_create(c) || mc_robust_chunk_init(c)) {
		free(c->hot);
		munmap(map, len);
		return NULL;
	}
	c->hot->slot = SLOT_FREE;
	list_add(&pool->side[side].slot[SLOT_FREE], &c->hot->list);
	pool->nr_free_chunks++;
	pool->bookkeeping += hot_bytes(c->unit_size) + c->unit_size / MC_GRAIN + MC_PAGE;
	if (++pool->nr_chunks > pool->nr_max_chunks)
		pool->nr_max_chunks = pool->nr_chunks;
	return c;
}

struct mc_chunk *mc_chunk_create(struct mc_percpu_pool *pool, unsigned int side)
{
	struct mc_chunk *c = NULL;
	size_t len;
	char *map = mc_chunk_reserve(pool, side, &len);

	if (map)
		c = mc_chunk_setup(pool, side, map, len);
	if (c && pool->mode == MC_PERCPU_CPU_ID)
		mc_chunk_place(c);
	return c;
}

void mc_chunk_destroy(struct mc_chunk *c)
{
	struct mc_percpu_pool *pool = c->pool;

	list_del(&c->hot->list);
	pool->nr_free_chunks -= c->hot->slot == SLOT_FREE;
	pool->nr_chunks--;
	pool->empty_pop -= c->hot->nr_empty_pop;
	pool->bookkeeping -= hot_bytes(c->unit_size) + c->unit_size / MC_GRAIN + MC_PAGE;
	mc_robust_chunk_gone(c);
	free(c->hot);
	munmap(c->map, c->map_len);
}

/* Counts of populated pages after the pages of [bit, bit + bits) changed; `used`: they are
 * populated now. */
static void recount(struct mc_percpu_pool *pool, struct mc_chunk *c, uint32_t bit, uint32_t bits,
		    bool used)
{
	struct mc_chunk_hot *hot = c->hot;
	uint32_t first = bit / MC_BLOCK_BITS, last = (bit + bits - 1) / MC_BLOCK_BITS;

	for (uint32_t b = first; b <= last; b++) {
		/* populated: 0 no, 1 with objects, 2 empty */
		uint8_t was = hot->populated[b];
		uint8_t now =
			(was || used) ? (uint8_t)(mc_area_block_free(&hot->area, b) ? 2 : 1) : 0;
		int delta = (now == 2) - (was == 2);

		hot->populated[b] = now;
		hot->nr_populated += (uint32_t)(!was && now);
		hot->nr_empty_pop += (uint32_t)delta;
		pool->empty_pop += (uint32_t)delta;
	}
}

static uint64_t chunk_take(struct mc_percpu_pool *pool, struct mc_chunk *c, uint32_t bits,
			   uint32_t align, uint8_t mark)
{
	int64_t at = mc_area_alloc(&c->hot->area, bits, align);

	if (at < 0)
		return 0;
	recount(pool, c, (uint32_t)at, bits, true);
	*mc_class_mark(c->base + (uint64_t)at * MC_GRAIN) = mark;
	c->hot->nr_alloc++;
	if (bits * MC_GRAIN > c->hot->max_alloc)
		c->hot->max_alloc = bits * MC_GRAIN;
	mc_chunk_relist(pool, c);
	return c->base + (uint64_t)at * MC_GRAIN;
}

uint64_t mc_pool_take(struct mc_percpu_pool *pool, size_t size, size_t align, uint8_t class_mark)
{
	uint32_t bits = (uint32_t)(size / MC_GRAIN),
		 abits = align > MC_GRAIN ? (uint32_t)(align / MC_GRAIN) : 1;
	unsigned int side = align > MC_LINE;
	struct mc_chunk *c;
	uint64_t at;

	for (int slot = 32 - __builtin_clz(bits); slot < MC_NR_SLOTS; slot++) {
		struct mc_list *head = &pool->side[side].slot[slot];

		for (struct mc_list *e = head->next; e != head; e = e->next) {
			at = chunk_take(pool, hot_of(e)->chunk, bits, abits, class_mark);
			if (at)
				goto got;
		}
	}
	c = pool->shared ? NULL : mc_chunk_create(pool, side);
	at = c ? chunk_take(pool, c, bits, abits, class_mark) : 0;
	if (!at)
		return 0;
got:
	pool->nr_alloc++;
	if (pool->nr_alloc - pool->nr_dealloc > pool->nr_max_alloc)
		pool->nr_max_alloc = pool->nr_alloc - pool->nr_dealloc;
	return at;
}

/* Gives back the whole system pages inside [from, to) of every walked copy, of which `used` bytes
 * were populated. */
static size_t release(struct mc_percpu_pool *pool, struct mc_chunk *c, uint64_t from, uint64_t to,
		      size_t used)
{
	unsigned int n = mc_pool_walk(pool);
	size_t bytes = 0, page = mc_os_page_size();

	for (unsigned int i = 0; i < n; i++) {
		uint64_t begin = c->base + (uint64_t)i * c->stride + from;
		uint64_t end = c->base + (uint64_t)i * c->stride + to;

		if (mc_whole_pages(&begin, &end, page) &&
		    !madvise((void *)begin, end - begin,
			     pool->shared ? MADV_REMOVE : MADV_DONTNEED))
			bytes += end - begin < used ? end - begin : used;
	}
	return bytes;
}

/* Runs of pages without objects are taken with what was given back around them: on a system with
 * larger pages several of ours make one of its. */
size_t mc_chunk_depopulate(struct mc_percpu_pool *pool, struct mc_chunk *c)
{
	uint32_t pages = c->unit_size / MC_PAGE;
	uint8_t *populated = c->hot->populated;
	size_t bytes = 0;

	for (uint32_t b = 0; b < pages; b++) {
		uint32_t first = b, empty = 0;

		for (; b < pages && populated[b] != 1; b++) {
			empty += populated[b] == 2;
			populated[b] = 0;
		}
		if (!empty)
			continue;
		/* The gap after the last page is free as well. */
		bytes += release(pool, c, (uint64_t)first * MC_PAGE,
				 b == pages ? c->stride : (uint64_t)b * MC_PAGE,
				 (size_t)empty * MC_PAGE);
		c->hot->nr_populated -= empty;
		c->hot->nr_empty_pop -= empty;
		pool->empty_pop -= empty;
	}
	return bytes;
}

void mc_pool_give(struct mc_percpu_pool *pool, struct mc_chunk *c, uint64_t address)
{
	uint32_t bit = (uint32_t)((address - c->base) / MC_GRAIN),
		 bits = mc_area_free(&c->hot->area, bit);

	*mc_class_mark(address) = 0;
	c->hot->nr_alloc--;
	pool->nr_dealloc++;
	recount(pool, c, bit, bits, false);
	mc_chunk_relist(pool, c);
	if (c->hot->slot == SLOT_FREE && pool->nr_free_chunks > 1 && !pool->shared && !pool->robust)
		mc_chunk_destroy(c);
	else if (pool->empty_pop > MC_EMPTY_POP_HIGH + c->hot->nr_empty_pop / 4 &&
		 c->hot->nr_empty_pop >= c->unit_size / MC_PAGE / 4)
		mc_chunk_depopulate(pool, c);
}
