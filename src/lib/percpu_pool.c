// SPDX-License-Identifier: MIT
/*
 * percpu_pool.c - pools: creation, allocation and freeing by the public names, the default pool,
 * statistics, fork.
 *
 * The registry lists all pools, for fork (all mutexes are held over it, so the child finds every
 * index whole) and for lowering the live marks. Lock order: registry, then a pool's mutex.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/percpu_internal.h"
#include "lib/percpu_magazine.h"

struct mc_percpu_pool *mc_registry;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mc_percpu_pool *default_pool;

void mc_registry_lock(void)
{
	pthread_mutex_lock(&registry_lock);
}

void mc_registry_unlock(void)
{
	pthread_mutex_unlock(&registry_lock);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
	pthread_mutex_lock(&registry_lock);
	for (struct mc_percpu_pool *p = mc_registry; p; p = p->next)
		pthread_mutex_lock(&p->lock);
	mc_robust_fork(0);
}

static void after_fork_parent(void)
{
	mc_robust_fork(1);
	for (struct mc_percpu_pool *p = mc_registry; p; p = p->next)
		pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&registry_lock);
}

/* What lay in other threads' magazines is nobody's now: back to the chunks with it. */
static void after_fork_child(void)
{
	mc_rt_fork_child();
	mc_robust_fork(2);
	for (struct mc_percpu_pool *p = mc_registry; p; p = p->next) {
		pthread_mutex_init(&p->lock, NULL);
		/* Of a shared pool the parent goes on allocating; the child's bookkeeping is a
		 * stale copy. */
		if (p->shared)
			p->attached = true;
		else
			mc_mags_drain(p, true);
	}
	pthread_mutex_init(&registry_lock, NULL);
}

static int register_fork(void)
{
	static int done; /* under registry_lock */
	int rc = done ? 0 : pthread_atfork(before_fork, after_fork_parent, after_fork_child);

	done |= !rc;
	return -rc;
}

/* ---- creation -------------------------------------------------------------------------------- */

struct mc_percpu_pool *mc_pool_new(const struct mc_percpu_attr *attr, int index_kind,
				   enum mc_percpu_mode mode)
{
	struct mc_percpu_pool *pool;
	int rc;

	if (posix_memalign((void **)&pool, MC_LINE, sizeof(*pool))) {
		errno = ENOMEM;
		return NULL;
	}
	memset(pool, 0, sizeof(*pool));
	pthread_mutex_init(&pool->lock, NULL);
	pool->index_kind = (uint8_t)index_kind;
	pool->kind = &mc_percpu_kinds[index_kind];
	pool->mode = mode;
	pool->rseq = mc_rt_rseq(index_kind);
	pool->flags = attr->flags;
	pool->copies = attr->copies ? attr->copies : mc_nr_cpu_ids();
	pool->unit_size =
		(uint32_t)((attr->unit_size ? attr->unit_size : MC_UNIT_DEFAULT) + MC_PAGE - 1) &
		~(uint32_t)(MC_PAGE - 1);
	/* An even number of pages would put every fourth unit's line into the same set of a large
	 * cache. */
	pool->side[0].stride = pool->unit_size + MC_GAP;
	pool->side[1].stride = pool->unit_size + MC_PAGE;
	for (unsigned int s = 0; s < 2; s++)
		for (unsigned int i = 0; i < MC_NR_SLOTS; i++)
			pool->side[s].slot[i].next = pool->side[s].slot[i].prev =
				&pool->side[s].slot[i];
	pool->bookkeeping = sizeof(*pool);
	rc = 0;
	if (attr->flags & MC_PERCPU_ROBUST)
		rc = mc_robust_create(pool, attr);
	else if (index_kind != MC_KIND_CALL && !(attr->flags & MC_PERCPU_NO_MAGAZINE))
		rc = mc_mags_create(pool);
	mc_registry_lock();
	if (!rc)
		rc = register_fork();
	if (!rc) {
		pool->next = mc_registry;
		mc_registry = pool;
	}
	mc_registry_unlock();
	if (rc) {
		mc_mags_destroy(pool);
		mc_robust_destroy(pool);
		free(pool);
		errno = -rc;
		return NULL;
	}
	pool->quick = pool->rseq && pool->use_mags;
	return pool;
}

/* Frees what a pool is made of; its chunks are gone or about to be unmapped here. */
void mc_pool_delete(struct mc_percpu_pool *pool)
{
	mc_registry_lock();
	for (struct mc_percpu_pool **p = &mc_registry; *p; p = &(*p)->next)
		if (*p == pool) {
			*p = pool->next;
			break;
		}
	mc_registry_unlock();
	for (unsigned int s = 0; s < 2; s++)
		for (unsigned int i = 0; i < MC_NR_SLOTS; i++) {
			struct mc_list *head = &pool->side[s].slot[i];

			while (head->next != head)
				mc_chunk_destroy(
					((struct mc_chunk_hot *)((char *)head->next -
								 offsetof(struct mc_chunk_hot,
									  list)))
						->chunk);
		}
	mc_mags_destroy(pool);
	mc_robust_destroy(pool);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* The kind of index for what was asked, or -errno. */
static int choose_kind(const struct mc_percpu_attr *attr, enum mc_percpu_mode *mode)
{
	unsigned int copies = attr->copies ? attr->copies : mc_nr_cpu_ids();
	bool rseq = mc_rt_rseq(MC_KIND_CID);

	*mode = MC_PERCPU_ATOMICS;
	if ((attr->mode == MC_PERCPU_MM_CID && !mc_rt_has_cid()) ||
	    (attr->mode == MC_PERCPU_CPU_ID && !rseq))
		return -EOPNOTSUPP;
	if (attr->flags & MC_PERCPU_ROBUST || copies < mc_nr_cpu_ids())
		return MC_KIND_CALL;
	if (attr->mode == MC_PERCPU_ATOMICS)
		return MC_KIND_ATOMIC;
	if (attr->mode == MC_PERCPU_CPU_ID) {
		*mode = MC_PERCPU_CPU_ID;
		return MC_KIND_CPU;
	}
	if (rseq)
		*mode = mc_rt_has_cid() ? MC_PERCPU_MM_CID : MC_PERCPU_CPU_ID;
	return MC_KIND_CID;
}

struct mc_percpu_pool *mc_percpu_pool_create(const struct mc_percpu_attr *attr)
{
	static const struct mc_percpu_attr none;
	enum mc_percpu_mode mode = MC_PERCPU_ATOMICS;
	int kind;

	if (!attr)
		attr = &none;
	if (attr->unit_size > MC_UNIT_MAX || (unsigned int)attr->mode > MC_PERCPU_ATOMICS ||
	    attr->copies > 1u << 20 ||
	    attr->flags & ~(unsigned int)(MC_PERCPU_ROBUST | MC_PERCPU_NO_MAGAZINE |
					  MC_PERCPU_OLD_LAYOUT)) {
		errno = EINVAL;
		return NULL;
	}
	kind = mc_rt_init();
	if (!kind)
		kind = choose_kind(attr, &mode);
	if (kind < 0) {
		errno = -kind;
		return NULL;
	}
	return mc_pool_new(attr, kind, mode);
}

/* Made at the first use; of two that race one wins. */
struct mc_percpu_pool *mc_percpu_default(void)
{
	struct mc_percpu_pool *pool = __atomic_load_n(&default_pool, __ATOMIC_ACQUIRE), *old = NULL;

	if (mc_likely(pool))
		return pool;
	pool = mc_percpu_pool_create(NULL);
	if (pool && !__atomic_compare_exchange_n(&default_pool, &old, pool, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
		mc_pool_delete(pool);
		pool = old;
	}
	return pool;
}

void *mc_percpu_static_init(struct mc_percpu_static *obj)
{
	void *h = mc_alloc_percpu_size(obj->size, obj->align), *old = NULL;

	if (h && !__atomic_compare_exchange_n(&obj->handle, &old, h, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE)) {
		mc_free_percpu(h);
		h = old;
	}
	return h;
}

/* ---- objects --------------------------------------------------------------------------------- */

/*
 * How many copies of a private pool may hold values. The live mark before the retired one: trim
 * raises the second before it lowers the first. But once the live mark is up again the retired one
 * sinks, and the two read low, at two moments, would leave out copies that were within one of them
 * all the time: then they are read again.
 */
static inline __attribute__((always_inline)) unsigned int
walk_private(const struct mc_percpu_pool *pool)
{
	const struct mc_percpu_kind *k = pool->kind;
	uint32_t live, retired, sinks;

	do {
		sinks = __atomic_load_n(&pool->sinks, __ATOMIC_ACQUIRE);
		live = __atomic_load_n(&k->live, __ATOMIC_ACQUIRE) |
		       __atomic_load_n(&k->atomic_live, __ATOMIC_ACQUIRE);
		retired = __atomic_load_n(&pool->retired, __ATOMIC_ACQUIRE);
	} while (mc_unlikely(__atomic_load_n(&pool->sinks, __ATOMIC_RELAXED) != sinks));
	if (mc_unlikely(__atomic_load_n(&k->overflow, __ATOMIC_ACQUIRE)))
		return pool->copies + 1;
	return live > retired ? live : retired;
}

unsigned int mc_pool_walk(const struct mc_percpu_pool *pool)
{
	unsigned int live;

	if (!pool->shared)
		return walk_private(pool);
	live = __atomic_load_n(&pool->shared->live, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&pool->shared->overflow, __ATOMIC_ACQUIRE) || live > pool->copies)
		return pool->copies + 1;
	return live;
}

unsigned int mc_percpu_copies(const void *handle)
{
	return mc_pool_walk(mc_chunk_of(MC_H_(handle))->pool);
}

/* Statistics of requests; under the mutex. */
void mc_pool_count(struct mc_percpu_pool *pool, size_t size)
{
	if (size > pool->max_alloc)
		pool->max_alloc = size;
	if (size < pool->min_alloc || !pool->min_alloc)
		pool->min_alloc = size;
}

/* Straight from the chunks. The zeroing reads the base from the chunk, as the kernel's pcpu_alloc()
 * does, outside the lock. */
static uint64_t chunk_alloc(struct mc_percpu_pool *pool, size_t size, size_t align)
{
	uint64_t at, offset;
	struct mc_chunk *c;
	unsigned int n;

	size = (size + MC_GRAIN - 1) & ~(size_t)(MC_GRAIN - 1);
	pthread_mutex_lock(&pool->lock);
	mc_pool_count(pool, size);
	at = mc_pool_take(pool, size, align, MC_CLASS_OTHER);
	pthread_mutex_unlock(&pool->lock);
	if (!at)
		return 0;
	at |= mc_pool_tag(pool, pool->side[align > MC_LINE].stride);
	c = mc_chunk_of(at);
	offset = MC_HANDLE_ADDRESS_(at) - c->base;
	/* Only now: a copy that came into use before the object's last owner freed it must be among
	 * them. */
	n = mc_pool_walk(pool);
	for (unsigned int i = 0; i < n; i++)
		mc_zero_copies(*c->zero_base + (uint64_t)i * c->stride + offset, c->stride, size,
			       1);
	return at;
}

static __attribute__((noinline)) void *alloc_slower(struct mc_percpu_pool *pool, size_t size,
						    size_t align, unsigned int abi, void *caller)
{
	unsigned int class;
	uint64_t h;

	if (!pool)
		pool = mc_percpu_default();
	if (mc_unlikely(!pool))
		return NULL;
	if (mc_unlikely(!size || size > pool->unit_size || align & (align - 1) || align > MC_PAGE ||
			abi != MC_PERCPU_ABI || pool->attached)) {
		errno = EINVAL;
		return NULL;
	}
	if (mc_unlikely(pool->robust))
		return mc_robust_alloc(pool, size, align, caller);
	class = mc_class_of(size, align);
	if (mc_likely(pool->use_mags && class < MC_NR_CLASSES)) {
		if (mc_unlikely(mc_mag_pop(pool, class, &h)))
			h = mc_mag_refill(pool, class);
		if (mc_likely(h))
			mc_zero_copies(MC_HANDLE_ADDRESS_(h), MC_HANDLE_STRIDE_(h),
				       mc_class[class].size, mc_pool_walk(pool));
	} else {
		h = chunk_alloc(pool, size, align);
	}
	if (mc_unlikely(!h))
		errno = ENOMEM;
	return (void *)h;
}

#if MC_PERCPU_RSEQ
static inline bool is_zero(uint64_t at, size_t size)
{
	const uint64_t *p = (const uint64_t *)at;

	for (; size >= 64; size -= 64, p += 8)
		if (mc_unlikely(p[0] | p[1] | p[2] | p[3] | p[4] | p[5] | p[6] | p[7]))
			return false;
	for (; size; size -= 8, p++)
		if (mc_unlikely(*p))
			return false;
	return true;
}

/* Where not all of an object is zero. */
static __attribute__((noinline)) void *zeroed(uint64_t h, unsigned int class, unsigned int n)
{
	mc_zero_copies(MC_HANDLE_ADDRESS_(h), MC_HANDLE_STRIDE_(h), mc_class[class].size, n);
	return (void *)h;
}

/* What a pair of allocation and free costs is instructions: alloc and free try a magazine with as
 * few as can be and hardly a frame, and leave all that is seldom to a call at their end. */
void *mc_percpu_alloc_abi(struct mc_percpu_pool *pool, size_t size, size_t align, unsigned int abi)
{
	if (!pool)
		pool = __atomic_load_n(&default_pool, __ATOMIC_ACQUIRE);
	if (mc_likely(pool && size - 1 < MC_CLASS_MAX && abi == MC_PERCPU_ABI && pool->quick)) {
		unsigned int class = mc_class_by_grains[(size + MC_GRAIN - 1) / MC_GRAIN];
		size_t bytes = mc_class[class].size;
		uint64_t h;

		if (mc_likely(align <= MC_LINE && !(align & (align - 1)) &&
			      !(bytes & (align - 1)) &&
			      !mc_seq_pop(pool->kind, &pool->mags, pool->mag_stride,
					  mc_class[class].offset, &h))) {
			uint64_t at = MC_HANDLE_ADDRESS_(h), stride = MC_HANDLE_STRIDE_(h);
			unsigned int n = walk_private(pool);

			for (unsigned int i = 0; i < n; i++, at += stride)
				if (mc_unlikely(!is_zero(at, bytes)))
					return zeroed(h, class, n);
			return (void *)h;
		}
	}
	return alloc_slower(pool, size, align, abi, __builtin_return_address(0));
}
#else
void *mc_percpu_alloc_abi(struct mc_percpu_pool *pool, size_t size, size_t align, unsigned int abi)
{
	return alloc_slower(pool, size, align, abi, __builtin_return_address(0));
}
#endif

static __attribute__((noinline)) void free_slower(uint64_t h, void *caller)
{
	struct mc_chunk *c;
	uint8_t mark;

	if (!h)
		return;
	if (h >> 62 == MC_KIND_CALL && mc_robust_any()) {
		mc_robust_free(h, caller);
		return;
	}
	c = mc_chunk_of(h);
	if (mc_unlikely(c->pool->attached))
		return;
	mark = *mc_class_mark(h);
	if (mc_likely(mark - 1u < MC_NR_CLASSES)) {
		if (mc_unlikely(mc_mag_push(c->pool, mark - 1u, h)))
			mc_mag_flush(c->pool, mark - 1u, h);
		return;
	}
	mc_pool_free_object(c->pool, h);
}

void mc_free_percpu(void *handle)
{
	uint64_t h = MC_H_(handle);

#if MC_PERCPU_RSEQ
	if (mc_likely(h >> 62 != MC_KIND_CALL)) {
		struct mc_percpu_pool *pool = mc_chunk_of(h)->pool;
		unsigned int class = *mc_class_mark(h) - 1u;

		if (mc_likely(pool->quick && class < MC_NR_CLASSES &&
			      !mc_seq_push(pool->kind, &pool->mags, pool->mag_stride,
					   mc_class[class].offset, mc_class[class].cap, h)))
			return;
	}
#endif
	free_slower(h, __builtin_return_address(0));
}

void mc_pool_free_object(struct mc_percpu_pool *pool, uint64_t h)
{
	pthread_mutex_lock(&pool->lock);
	mc_pool_give(pool, mc_chunk_of(h), MC_HANDLE_ADDRESS_(h));
	pthread_mutex_unlock(&pool->lock);
}

int mc_alloc_percpu_many(struct mc_percpu_pool *pool, size_t size, size_t align, unsigned int n,
			 void **handles)
{
	for (unsigned int i = 0; i < n; i++) {
		handles[i] = mc_percpu_pool_alloc(pool, size, align);
		if (!handles[i]) {
			int err = errno;

			mc_free_percpu_many(i, handles);
			memset(handles, 0, i * sizeof(*handles));
			return -err;
		}
	}
	return 0;
}

void mc_free_percpu_many(unsigned int n, void **handles)
{
	for (unsigned int i = 0; i < n; i++)
		mc_free_percpu(handles[i]);
}

/* ---- queries --------------------------------------------------------------------------------- */

enum mc_percpu_mode mc_percpu_mode(const struct mc_percpu_pool *pool, const char **why)
{
	if (!pool)
		pool = mc_percpu_default();
	if (why)
		*why = pool ? mc_rt_why(pool->index_kind)
			    : "atomics: no memory for the default pool";
	return pool ? pool->mode : MC_PERCPU_ATOMICS;
}

static void chunk_stats(const struct mc_chunk_hot *hot, struct mc_percpu_stats *s)
{
	uint64_t free_bytes = (uint64_t)hot->area.free_bits * MC_GRAIN,
		 contig = (uint64_t)hot->area.contig * MC_GRAIN;

	s->free_bytes += free_bytes;
	if (contig > s->contig_bytes)
		s->contig_bytes = contig;
	if (free_bytes - contig > s->max_frag)
		s->max_frag = free_bytes - contig;
	s->populated_pages += hot->nr_populated;
	s->empty_pop_pages += hot->nr_empty_pop;
}

int mc_percpu_pool_stats(const struct mc_percpu_pool *pool, struct mc_percpu_stats *stats)
{
	struct mc_percpu_stats s = {0};
	struct mc_percpu_pool *p = (struct mc_percpu_pool *)pool;

	if (!p)
		p = mc_percpu_default();
	if (!p)
		return -ENOMEM;
	pthread_mutex_lock(&p->lock);
	s.nr_alloc = p->nr_alloc;
	s.nr_dealloc = p->nr_dealloc;
	s.nr_cur_alloc = p->nr_alloc - p->nr_dealloc;
	s.nr_max_alloc = p->nr_max_alloc;
	s.nr_chunks = p->nr_chunks;
	s.nr_max_chunks = p->nr_max_chunks;
	s.min_alloc_size = p->min_alloc;
	s.max_alloc_size = p->max_alloc;
	s.unit_size = p->unit_size;
	s.stride = p->side[0].stride;
	s.copies = p->copies;
	s.live = mc_pool_walk(p);
	s.bookkeeping_bytes = p->bookkeeping + (p->depot ? MC_NR_CLASSES * sizeof(*p->depot) : 0) +
			      (p->use_mags ? (uint64_t)s.live * p->mag_stride : 0);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < MC_NR_SLOTS; i++)
			for (struct mc_list *e = p->side[side].slot[i].next;
			     e != &p->side[side].slot[i]; e = e->next)
				chunk_stats((struct mc_chunk_hot *)((char *)e -
								    offsetof(struct mc_chunk_hot,
									     list)),
					    &s);
	mc_mags_stats(p, &s.magazine_objects, &s.magazine_bytes);
	pthread_mutex_unlock(&p->lock);
	*stats = s;
	return 0;
}
