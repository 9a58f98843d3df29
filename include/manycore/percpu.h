/* SPDX-License-Identifier: MIT */
/*
 * percpu.h - objects with one copy per CPU, and operations on the copy of the CPU that runs,
 * without atomics.
 *
 * mc_alloc_percpu() gives a *handle*: a pointer by its type (so `&handle->field` and handle + 1
 * work), but tagged in its top 16 bits with the pool's stride and kind of index: it must not be
 * dereferenced (doing so faults). mc_per_cpu_ptr(h, i) is the address of copy i, mc_this_cpu_ptr(h)
 * of the running thread's copy, and mc_this_cpu_add(h, v) and the others change that copy in one
 * step, right against preemption, migration, signals and other threads.
 *
 * Which copy is a thread's own? The pool's mode tells (mc_percpu_mode()):
 *   MC_PERCPU_MM_CID   the kernel's concurrency id: as many copies are in use as threads really run
 * at once MC_PERCPU_CPU_ID   the CPU's number: pools that other processes share, or whose copies
 * must lie on the CPU's node MC_PERCPU_ATOMICS  a slot that the thread keeps, operations by atomic
 * instructions: where restartable sequences are missing (musl, valgrind, TSan, old kernels,
 * filters), and wherever it is asked for The first two are restartable sequences (rseq, Linux
 * >= 4.18; mm_cid >= 6.3). Never more than one of the modes acts on a pool. Code never depends on
 * the mode for being right, only for being fast.
 *
 * Live copies: everything that walks the copies (zeroing, mc_for_each_percpu_copy()) walks those
 * that were ever in use, not all that are configured; memory is populated only for copies that were
 * written.
 *
 * Ordering: operations are relaxed and single-copy atomic: another thread reading a copy of 1, 2, 4
 * or 8 aligned bytes sees an old or a new value, never a mixture. Writing another thread's copy
 * while it operates on it loses updates. Signals: every mc_this_cpu_ operation may be used in
 * signal handlers, also on the object that was interrupted; not so on robust pools, whose
 * operations take a lock. Allocation and freeing may not. Threads: any may call anything at any
 * time, but for destroying what others still use. Fork: see mc_percpu_pool_create(). Between
 * vfork() (or clone(CLONE_VM) without CLONE_THREAD) and exec the child must not use any of this: it
 * runs without a restartable sequence of its own.
 */
#ifndef MANYCORE_PERCPU_H
#define MANYCORE_PERCPU_H

#include <stdbool.h>
#include <errno.h>
#include <string.h>
#include "base.h"

MC_BEGIN_DECLS

/* ---- modes ----------------------------------------------------------------------------------- */

enum mc_percpu_mode { MC_PERCPU_AUTO, MC_PERCPU_MM_CID, MC_PERCPU_CPU_ID, MC_PERCPU_ATOMICS };

struct mc_percpu_pool;

/* The mode that acts on a pool (NULL: the default pool), never MC_PERCPU_AUTO. *why (may be NULL)
 * gets a constant sentence: which facts chose it, e.g. "rseq: glibc's registration, mm_cid by
 * AT_RSEQ_FEATURE_SIZE 28". Not signal safe. */
MC_API enum mc_percpu_mode mc_percpu_mode(const struct mc_percpu_pool *pool, const char **why);

/* ---- objects --------------------------------------------------------------------------------- */

/* An object of the default pool: `size` bytes (1 to 65536) on every copy, aligned to `align` (a
 * power of two up to 4096) on every copy, zero on every copy. NULL: EINVAL, ENOMEM. About 5 ns for
 * up to 1 KiB and few live copies; no lock. */
#define mc_alloc_percpu(type) ((type *)mc_alloc_percpu_size(sizeof(type), __alignof__(type)))
#define mc_alloc_percpu_size(size, align) mc_percpu_pool_alloc(NULL, (size), (align))
/* The same from a pool of one's own. Alignments above 64 (one cache line) come from chunks with a
 * page-sized stride, whose walks cost several times as much: the copies share cache sets. */
#define mc_percpu_pool_alloc(pool, size, align) \
	mc_percpu_alloc_abi((pool), (size), (align), MC_PERCPU_ABI)
MC_API void *mc_percpu_alloc_abi(struct mc_percpu_pool *pool, size_t size, size_t align,
				 unsigned int abi);

/* Gives an object back, whatever pool it is of; NULL is allowed. The caller makes sure that nobody
 * uses it any more. */
MC_API void mc_free_percpu(void *handle);

/* `n` objects at once, all or none: 0 or -errno. Freeing skips NULLs. */
MC_API int mc_alloc_percpu_many(struct mc_percpu_pool *pool, size_t size, size_t align,
				unsigned int n, void **handles);
MC_API void mc_free_percpu_many(unsigned int n, void **handles);

/* How many copies of an object a walk must visit: copies 0 to that less one hold all values ever
 * stored. Grows while threads run; a copy that comes into use later is seen by the next walk. */
MC_API unsigned int mc_percpu_copies(const void *handle);
#define mc_for_each_percpu_copy(i, handle) MC_EACH_COPY_(i, handle, __COUNTER__)
#define MC_EACH_COPY_(i, handle, nr) MC_EACH_COPY__(i, handle, nr)
#define MC_EACH_COPY__(i, handle, nr)                                                              \
	for (unsigned int mc_copies_##nr = ((i) = 0, mc_percpu_copies(handle));                    \
	     (i) < mc_copies_##nr; (i)++)

/* ---- static objects -------------------------------------------------------------------------- */

/*
 *	MC_DECLARE_PER_CPU(unsigned long, hits);	in a header
 *	MC_DEFINE_PER_CPU(unsigned long, hits);		at file scope; `static` may precede it
 *	mc_this_cpu_inc(mc_static_percpu(&hits));
 * The copies are made at the first use, in the default pool, and live as long as the process.
 * mc_static_percpu() gives NULL and ENOMEM when that fails; mc_static_percpu_init() makes it happen
 * at a time of one's choice (0 or -ENOMEM) - needed when the first use may be in a signal handler.
 *
 * Such an object is a struct mc_percpu_static, written as three pointers so that its type tells the
 * copies' type and may be declared and defined in one file.
 */
struct mc_percpu_static {
	void *handle;
	size_t size, align;
};
#define MC_DECLARE_PER_CPU(type, name) extern type *name[3]
#define MC_DEFINE_PER_CPU(type, name)                            \
	type *name[3] = {NULL, MC_PER_CPU_WORD_(type, sizeof(type)), \
			 MC_PER_CPU_WORD_(type, __alignof__(type))}
#ifdef __cplusplus
#define MC_PER_CPU_WORD_(type, value) ((type *)(value))
#else /* `type` may be a struct without a name */
#define MC_PER_CPU_WORD_(type, value) ((void *)(value))
#endif
#define mc_static_percpu(name)                  \
	((__typeof__(&*(*(name))[0]))mc_static_percpu_get_( \
		(struct mc_percpu_static *)(void *)(name)))
#define mc_static_percpu_init(name) (mc_static_percpu(name) ? 0 : -ENOMEM)
MC_API void *mc_percpu_static_init(struct mc_percpu_static *obj);

/* ---- pools ----------------------------------------------------------------------------------- */

enum {
	MC_PERCPU_ROBUST =
		1, /* find misuse: see struct mc_percpu_fault; every operation becomes a call */
	MC_PERCPU_NO_MAGAZINE = 2, /* allocation by the chunk allocator alone, under the pool's
				      mutex (benchmarks) */
	MC_PERCPU_OLD_LAYOUT =
		4, /* chunk bookkeeping laid out as Linux before 3a6358c0dbe6 (benchmarks) */
	MC_PERCPU_READ_ONLY = 8 /* mc_percpu_pool_attach(): only look */
};

enum mc_percpu_fault_kind {
	MC_PERCPU_DOUBLE_FREE = 1,
	MC_PERCPU_FOREIGN,
	MC_PERCPU_OVERRUN,
	MC_PERCPU_USE_AFTER_FREE,
	MC_PERCPU_LEAK
};

/* What a robust pool found. The offending call does nothing more; the callback runs in the caller's
 * thread, with no lock held, must not use the pool, and `fault` is gone when it returns. Callers
 * are return addresses, NULL when not known. */
struct mc_percpu_fault {
	enum mc_percpu_fault_kind kind;
	void *handle;        /* as given to the offending call, or of the object concerned */
	size_t size, offset; /* the object's size; the faulty byte within it */
	unsigned int copy;   /* the copy concerned, where it is one */
	void *allocated_by, *freed_by, *caller;
	char text[200]; /* "double free: ...", one line */
};

/* All zero is the default of each field. */
struct mc_percpu_attr {
	enum mc_percpu_mode mode; /* AUTO: MM_CID for private pools, CPU_ID for shared ones, ATOMICS
				     where rseq is missing */
	unsigned int copies; /* configured copies; 0: mc_nr_cpu_ids(). With fewer than that, every
				operation is an out-of-line atomic one on copy (slot modulo copies):
				right, but slow */
	unsigned int flags;
	size_t unit_size; /* bytes per copy in a chunk = largest object; 0: 65536; up to 1 MiB - 64
			     KiB */
	void (*fault)(void *arg, const struct mc_percpu_fault *fault); /* robust pools */
	void *fault_arg;
	int fd; /* mc_percpu_pool_create_shared() */
};

/*
 * A private pool. NULL: EINVAL, ENOMEM, EOPNOTSUPP (a mode was asked for by name that this process
 * cannot have). Fork: the child gets copies of its own with the parent's values as of the fork;
 * objects that other threads of the parent were just allocating or freeing may be lost to the
 * child. mc_percpu_pool_destroy() frees all objects of the pool; robust pools report those as leaks
 * first. Nobody may be using it.
 */
MC_API struct mc_percpu_pool *mc_percpu_pool_create(const struct mc_percpu_attr *attr);
MC_API void mc_percpu_pool_destroy(struct mc_percpu_pool *pool);

/*
 * A pool in shared memory: attr->fd is a memfd, shm_open() or file descriptor, readable and
 * writable, which is sized and mapped (not kept: the caller closes it). One chunk: it holds
 * unit_size bytes of objects. Copies are indexed by CPU number in every process, so that writers in
 * several processes never lose an update; the creator alone allocates and frees. Attaching
 * processes need the same modes at hand: -EOPNOTSUPP otherwise, unless flags has
 * MC_PERCPU_READ_ONLY (then operations that write fault). -EPROTO: not such a pool, or of another
 * ABI. An object travels as its offset: mc_percpu_offset() in one process, mc_percpu_at() in the
 * other. NULL + EINVAL for offsets outside the pool. The memory holds only values and a header; no
 * attacher can break the creator's bookkeeping.
 */
MC_API struct mc_percpu_pool *mc_percpu_pool_create_shared(const struct mc_percpu_attr *attr);
MC_API int mc_percpu_pool_attach(int fd, unsigned int flags, struct mc_percpu_pool **pool);
MC_API uint64_t mc_percpu_offset(const void *handle);
MC_API void *mc_percpu_at(struct mc_percpu_pool *pool, uint64_t offset);

/*
 * Gives memory back: empties the magazines of every copy, frees empty chunks, releases populated
 * pages that hold no object, and lowers the live mark to what runs now, after a membarrier(2) rseq
 * fence so that no sequence in flight uses the old one. Values in copies that are no longer live
 * still count in walks until those copies are seen to be zero. pool NULL: the default pool (the
 * live mark is the process's). Returns bytes of address space given back or -EOPNOTSUPP when the
 * kernel has no such fence (then only free chunks and pages went). Milliseconds; safe while others
 * allocate.
 */
MC_API int64_t mc_percpu_trim(struct mc_percpu_pool *pool);

/* Robust pools: looks for overruns and writes after free now; returns the number of faults
 * reported. 0 for other pools. */
MC_API int mc_percpu_pool_check(struct mc_percpu_pool *pool);

/* As the kernel's percpu_stats. Sizes in bytes of one copy unless said otherwise. Objects waiting
 * in magazines count as allocated in the chunks' numbers and are told in magazine_*. */
struct mc_percpu_stats {
	uint64_t nr_alloc, nr_dealloc, nr_cur_alloc, nr_max_alloc; /* by the chunk allocator */
	uint64_t magazine_objects, magazine_bytes;
	uint32_t nr_chunks, nr_max_chunks;
	size_t min_alloc_size, max_alloc_size;
	size_t unit_size, stride;
	uint32_t copies, live;                     /* configured; walked now */
	uint64_t populated_pages, empty_pop_pages; /* of one copy */
	uint64_t free_bytes, contig_bytes,
		max_frag; /* over all chunks: free, largest free run, largest hole that is not it */
	uint64_t bookkeeping_bytes; /* the allocator's own memory */
};
MC_API int mc_percpu_pool_stats(const struct mc_percpu_pool *pool, struct mc_percpu_stats *stats);

/* ---- the inlines as symbols, for other languages
 * ---------------------------------------------------------------------- */

#define MC_PERCPU_SYMBOLS_(bits)                                                               \
	MC_API uint##bits##_t mc_percpu_read_##bits(const void *handle);                       \
	MC_API void mc_percpu_write_##bits(void *handle, uint##bits##_t value);                \
	MC_API void mc_percpu_add_##bits(void *handle, uint##bits##_t value);                  \
	MC_API void mc_percpu_and_##bits(void *handle, uint##bits##_t value);                  \
	MC_API void mc_percpu_or_##bits(void *handle, uint##bits##_t value);                   \
	MC_API uint##bits##_t mc_percpu_add_return_##bits(void *handle, uint##bits##_t value); \
	MC_API uint##bits##_t mc_percpu_xchg_##bits(void *handle, uint##bits##_t value);       \
	MC_API uint##bits##_t mc_percpu_cmpxchg_##bits(void *handle, uint##bits##_t old,       \
						       uint##bits##_t value);
MC_PERCPU_SYMBOLS_(8)
MC_PERCPU_SYMBOLS_(16)
MC_PERCPU_SYMBOLS_(32)
MC_PERCPU_SYMBOLS_(64)
MC_API void *mc_percpu_copy(const void *handle, unsigned int i); /* mc_per_cpu_ptr() */
MC_API void *mc_percpu_own(const void *handle);                  /* mc_this_cpu_ptr() */

/* ---- what inlines rely on: ABI, fixed under a soname
 * --------------------------------------------------------------------- */

#define MC_PERCPU_ABI 1u

/* Index kinds, in the two top bits of a handle; the 14 bits below are the stride in units of 64
 * bytes. */
enum { MC_KIND_CALL = 0, MC_KIND_CID = 1, MC_KIND_CPU = 2, MC_KIND_ATOMIC = 3 };
struct mc_percpu_kind {
	uint32_t live; /* restartable sequences act on copies below this; 0 in atomics mode */
	uint32_t atomic_live;   /* atomics act on copies below this; 0 in rseq modes */
	int64_t cs_off, id_off; /* of the rseq_cs word and the index word from the thread pointer */
	uint32_t limit;         /* live never grows past this */
	uint32_t overflow;      /* set once an index >= limit was seen: one more copy is walked */
	uint64_t reserved[4];
} __attribute__((aligned(64)));
extern MC_API struct mc_percpu_kind mc_percpu_kinds[4];

MC_END_DECLS

#define MC_PERCPU_INLINE
#include "inline/percpu.h"
#undef MC_PERCPU_INLINE

#endif /* MANYCORE_PERCPU_H */
