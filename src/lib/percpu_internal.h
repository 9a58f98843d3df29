/* SPDX-License-Identifier: MIT */
/*
 * percpu_internal.h - what the percpu_*.c files share: pools, chunks, the area index of a chunk,
 * magazines, the run-time.
 *
 * Who writes what (the S5 lesson; asserted below): struct mc_chunk is read by every free, walk and
 * zeroing and never written after creation; struct mc_chunk_hot is written by every allocation,
 * free and (de)population under the pool's mutex. They share no cache line, except in pools that
 * ask for the old layout so that its price can be measured.
 */
#ifndef MC_PERCPU_INTERNAL_H
#define MC_PERCPU_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <manycore/percpu.h>
#include "lib/internal.h"

enum {
	MC_LINE = 64,
	MC_PAGE = 4096,      /* a page of the bookkeeping, whatever the system's is */
	MC_PAGE_MAX = 65536, /* the largest page of a system: what is mapped or
				protected by itself starts at a multiple of this */
	MC_GRAIN = 8,        /* bytes per bit of the maps: the smallest allocation */
	MC_BLOCK_BITS = MC_PAGE / MC_GRAIN, /* one block of hints per page of a unit */
	MC_CHUNK_ALIGN = 1 << 21, /* of every chunk, whatever its stride: free finds it by a mask */
	MC_CLASS_MAP_AT = MC_PAGE_MAX,   /* in a chunk; up to MC_UNIT_MAX / MC_GRAIN bytes */
	MC_CHUNK_HEAD = 4 * MC_PAGE_MAX, /* struct mc_chunk, class map, header of shared memory */
	MC_GAP = 320, /* colours the units: 5 lines, so 64 units use 64 different cache sets */
	MC_UNIT_DEFAULT = 65536,
	MC_UNIT_MAX = (1 << 20) - 65536,
	MC_NR_CLASSES = 18,
	MC_CLASS_MAX = 1024, /* larger objects do not go through magazines */
	MC_CLASS_OTHER = 255,
	MC_NR_SLOTS = 24,
	MC_EMPTY_POP_HIGH = 4, /* populated pages without objects that a pool keeps */
};

/* ---- area: which parts of a unit are allocated (percpu_area.c)
 * ------------------------------------------------------ */

/* Free runs of one page, in bits. All exact at all times. */
struct mc_block {
	uint16_t contig, contig_start; /* longest run */
	uint16_t left, right;          /* runs at the two ends; both 512 when the page is free */
};

struct mc_area {
	uint32_t nr_bits, nr_blocks;
	uint32_t free_bits;
	uint32_t contig;     /* longest free run over the whole unit */
	uint64_t *alloc_map; /* nr_bits */
	uint64_t *bound_map; /* nr_bits + 1: where allocations start, and where they end */
	struct mc_block *block;
};
size_t mc_area_bytes(uint32_t nr_bits);
void mc_area_init(struct mc_area *a, uint32_t nr_bits, void *memory);
/* First fit; `align` in bits, a power of two. The first bit, or -1. */
int64_t mc_area_alloc(struct mc_area *a, uint32_t bits, uint32_t align);
/* Returns the length in bits of the allocation that starts at `bit`. */
uint32_t mc_area_size(const struct mc_area *a, uint32_t bit);
uint32_t mc_area_free(struct mc_area *a, uint32_t bit);
/* The first bit of the allocation that contains `bit`, or -1. */
int64_t mc_area_start(const struct mc_area *a, uint32_t bit);
bool mc_area_block_free(const struct mc_area *a, uint32_t block);
/* Recomputes everything from the maps and compares; for tests. */
bool mc_area_check(const struct mc_area *a);

/* ---- chunks (percpu_chunk.c)
 * -------------------------------------------------------------------------------------------- */

struct mc_list {
	struct mc_list *next, *prev;
};

/* Written under the pool's mutex by every allocation and free that reaches the chunk. */
struct mc_chunk_hot {
	struct mc_area area; /* 40 bytes, the hottest first */
	uint64_t *old_base; /* old layout: base_addr as Linux had it, in the line of what is written
			     */
	uint64_t old_base_value;
	struct mc_list list;
	struct mc_chunk *chunk;
	uint32_t nr_alloc, max_alloc;
	uint32_t nr_populated, nr_empty_pop;
	int slot;
	uint8_t *populated; /* one byte per page of the unit */
} __attribute__((aligned(MC_LINE)));

/* At the start of a chunk's address range; read-only after creation. */
struct mc_chunk {
	uint64_t base; /* copy 0 of the unit's first byte */
	uint64_t tag;  /* kind and stride as in handles */
	struct mc_percpu_pool *pool;
	struct mc_chunk_hot *hot;
	const volatile uint64_t
		*zero_base; /* where zeroing reads `base`: its own line, or the old place */
	uint32_t unit_size, stride;
	uint32_t units; /* copies + the overflow copy */
	uint32_t side;
	char *map __attribute__((aligned(MC_LINE)));
	size_t map_len;
	struct mc_robust_record *record;
	struct mc_chunk *next_call; /* list of the chunks of out-of-line pools */
};
_Static_assert(offsetof(struct mc_chunk, map) == MC_LINE,
	       "what free and zeroing read is one cache line");
_Static_assert(sizeof(struct mc_chunk_hot) % MC_LINE == 0 &&
		       _Alignof(struct mc_chunk_hot) == MC_LINE,
	       "what allocation writes shares no line with anything else");
_Static_assert(sizeof(struct mc_chunk) <= MC_PAGE,
	       "the head lies in its own page, away from all written data");

struct mc_chunk *mc_chunk_create(struct mc_percpu_pool *pool, unsigned int side);
/* The two halves of it: address space for a chunk (NULL), and a chunk made there (NULL: the range
 * is unmapped). */
char *mc_chunk_reserve(const struct mc_percpu_pool *pool, unsigned int side, size_t *len);
struct mc_chunk *mc_chunk_setup(struct mc_percpu_pool *pool, unsigned int side, char *map,
				size_t len);
void mc_chunk_destroy(struct mc_chunk *c);
/* Under the pool's mutex: `size` bytes, a multiple of the grain. 0 or an address in copy 0. */
uint64_t mc_pool_take(struct mc_percpu_pool *pool, size_t size, size_t align, uint8_t class_mark);
void mc_pool_give(struct mc_percpu_pool *pool, struct mc_chunk *c, uint64_t address);
/* Releases populated pages without objects of a chunk, of all copies. Returns bytes. */
size_t mc_chunk_depopulate(struct mc_percpu_pool *pool, struct mc_chunk *c);
void mc_chunk_relist(struct mc_percpu_pool *pool, struct mc_chunk *c);

/* The whole pages of a system inside [*begin, *end); false: there is none. Asking for less than a
 * page is no small matter: the kernel rounds lengths up, and would discard what lies behind. */
static inline bool mc_whole_pages(uint64_t *begin, uint64_t *end, uint64_t page)
{
	*begin = (*begin + page - 1) & ~(page - 1);
	*end &= ~(page - 1);
	return *begin < *end;
}

/* The chunk of a handle: a head and the first copy lie within one alignment. */
static inline struct mc_chunk *mc_chunk_of(uint64_t h)
{
	return (struct mc_chunk *)(h & ((UINT64_C(1) << 48) - MC_CHUNK_ALIGN));
}

/* Per grain of a unit: class + 1 of the object that starts there, 0, or MC_CLASS_OTHER. At a
 * constant place, since what free waits for, from the handle to its magazine, should be short. */
static inline uint8_t *mc_class_mark(uint64_t h)
{
	return (uint8_t *)mc_chunk_of(h) + MC_CLASS_MAP_AT - MC_CHUNK_HEAD / MC_GRAIN +
	       (h & (MC_CHUNK_ALIGN - 1)) / MC_GRAIN;
}
_Static_assert(MC_UNIT_MAX / MC_GRAIN <= 2 * MC_PAGE_MAX &&
		       MC_CHUNK_HEAD + MC_UNIT_MAX <= MC_CHUNK_ALIGN,
	       "the class map fits the head, the head and a copy the alignment");

/* ---- pools (percpu_pool.c) ------------------------------------------------------------------- */

/* Chunks with one stride. Side 0 is coloured (alignment up to a line), side 1 has a page-sized
 * stride. */
struct mc_side {
	uint32_t stride;
	struct mc_list slot[MC_NR_SLOTS]; /* by longest free run; [0] full, [MC_NR_SLOTS - 1] wholly
					     free */
};

struct mc_mag_depot {
	uint32_t n;
	uint64_t obj[128];
};

struct mc_shared_header;
struct mc_robust;

struct mc_percpu_pool {
	/* Read by everybody, hardly ever written. */
	char *mags; /* magazines of copy 0; NULL while they are being emptied. Read inside
		       sequences. */
	uint64_t mag_stride;
	struct mc_percpu_kind *kind;
	uint32_t flags, copies, unit_size;
	uint32_t retired; /* copies below this may hold values though they are no longer live */
	uint32_t sinks;   /* how often `retired` went down: counted up before it does */
	bool use_mags, rseq;
	bool quick; /* magazines by sequences, private: allocation and free try these first */
	uint8_t index_kind;
	enum mc_percpu_mode mode;
	struct mc_shared_header *shared;
	struct mc_chunk *shared_chunk;
	bool attached; /* another process allocates */
	struct mc_robust *robust;
	char *mags_map;
	size_t mags_len;
	/* Written under the mutex. */
	pthread_mutex_t lock __attribute__((aligned(MC_LINE)));
	struct mc_side side[2];
	uint64_t nr_alloc, nr_dealloc, nr_max_alloc;
	uint32_t nr_chunks, nr_max_chunks, nr_free_chunks;
	uint32_t empty_pop;
	size_t min_alloc, max_alloc, bookkeeping;
	struct mc_mag_depot *depot;  /* per class; NULL without magazines */
	struct mc_percpu_pool *next; /* registry */
};

struct mc_percpu_pool *mc_percpu_default(void);
struct mc_percpu_pool *mc_pool_new(const struct mc_percpu_attr *attr, int index_kind,
				   enum mc_percpu_mode mode);
void mc_pool_delete(struct mc_percpu_pool *pool);
unsigned int mc_pool_walk(const struct mc_percpu_pool *pool);
/* Two words, as vector registers hold them. */
typedef uint64_t mc_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Zeroes copies 0 to n - 1 of an object; only stores where something else than zero is, so that
 * copies nobody wrote are neither populated nor taken from another CPU's cache. */
static inline void mc_zero_copies(uint64_t base, uint64_t stride, size_t size, unsigned int n)
{
	for (; n; n--, base += stride) {
		uint64_t *p = (uint64_t *)base;
		size_t i = 0;

		for (; i + 8 <= size / 8; i += 8) {
			const mc_pair *q = (const mc_pair *)(p + i);
			mc_pair any = q[0] | q[1] | q[2] | q[3];

			if (mc_unlikely(any[0] | any[1]))
				memset(p + i, 0, 64);
		}
		for (; i < size / 8; i++)
			if (p[i])
				p[i] = 0;
	}
}
void mc_pool_count(struct mc_percpu_pool *pool, size_t size);
/* Everything a free by the back end does, lock taken inside. */
void mc_pool_free_object(struct mc_percpu_pool *pool, uint64_t h);

static inline uint64_t mc_pool_tag(const struct mc_percpu_pool *pool, uint32_t stride)
{
	return (uint64_t)pool->index_kind << 62 | (uint64_t)(stride / 64) << 48;
}

/* Registry of pools, for fork and for lowering the live mark. */
void mc_registry_lock(void);
void mc_registry_unlock(void);
extern struct mc_percpu_pool *mc_registry;

/* ---- magazines (percpu_magazine.c)
 * -------------------------------------------------------------------------------------------- */

int mc_mags_create(struct mc_percpu_pool *pool);
void mc_mags_destroy(struct mc_percpu_pool *pool);
/* Empties all copies' magazines and the depot into the chunks. -EOPNOTSUPP: only the depot.
 * `alone`: no other thread runs. */
int mc_mags_drain(struct mc_percpu_pool *pool, bool alone);
void mc_mags_stats(const struct mc_percpu_pool *pool, uint64_t *objects, uint64_t *bytes);

/* ---- run-time (percpu_rt.c) ------------------------------------------------------------------ */

int mc_rt_init(void);
const char *mc_rt_why(int index_kind);
bool mc_rt_rseq(int index_kind); /* restartable sequences, not atomics */
bool mc_rt_has_cid(void);
/* Makes the calling thread's index live; false: its index is past the limit, use the overflow copy.
 * Signal safe. */
bool mc_rt_raise(struct mc_percpu_kind *k);
uint32_t mc_rt_slot(void); /* the slot this thread keeps */
int mc_rt_fence(void);     /* every sequence in flight is over; -EOPNOTSUPP */
/* Lowers the live mark from `live` to nothing: running threads raise it anew. The caller has marked
 * the copies as retired. -EAGAIN: the mark is not `live`. */
int mc_rt_lower(struct mc_percpu_kind *k, uint32_t live);
void mc_rt_fork_child(void);
void mc_rt_publish(struct mc_shared_header *header);
void mc_rt_unpublish(struct mc_shared_header *header);

/* ---- shared pools (percpu_shared.c)
 * --------------------------------------------------------------------------------------------- */

struct mc_shared_header {
	char magic[8];
	uint32_t abi, mode, copies, unit_size, stride, units_at; /* in the file */
	uint32_t live __attribute__((aligned(MC_LINE))); /* atomically raised by every process */
	uint32_t overflow;
};

/* ---- robust and out-of-line pools (percpu_robust.c)
 * ------------------------------------------------------------------------------- */

struct mc_robust_record {
	void *allocated_by, *freed_by;
	uint32_t size;
	uint32_t state; /* 0 never, 1 allocated, 2 in quarantine */
};
int mc_robust_create(struct mc_percpu_pool *pool, const struct mc_percpu_attr *attr);
void mc_robust_destroy(struct mc_percpu_pool *pool);
void *mc_robust_alloc(struct mc_percpu_pool *pool, size_t size, size_t align, void *caller);
void mc_robust_free(uint64_t h, void *caller);
/* Is there an object at h for an operation of `bytes`? Reports and says no otherwise. */
bool mc_robust_access(uint64_t h, unsigned int bytes, void *caller);
bool mc_robust_any(void);
/* Around fork: the lock of this file is the innermost. */
void mc_robust_fork(int phase); /* 0 before, 1 in the parent, 2 in the child */
int mc_robust_chunk_init(struct mc_chunk *c);
void mc_robust_chunk_gone(struct mc_chunk *c);

#endif
