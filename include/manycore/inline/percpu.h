/* SPDX-License-Identifier: MIT */
/*
 * inline/percpu.h - the operations of percpu.h.
 *
 * Every operation tries three ways in turn: the restartable sequence (when its index is live), the
 * same by atomics (when the kind is in atomics mode), and a call into the library, which raises the
 * live mark, registers the thread or gives it a slot, and serves what the inlines do not. Code
 * compiled with -fsanitize=thread leaves the first out; the library then chooses atomics for the
 * whole process.
 */
#ifndef MC_PERCPU_INLINE
#error "included by manycore/percpu.h only"
#endif
#ifndef MC_INLINE_PERCPU_H
#define MC_INLINE_PERCPU_H

#if defined(__SANITIZE_THREAD__)
#define MC_PERCPU_NO_RSEQ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MC_PERCPU_NO_RSEQ 1
#endif
#endif

#if defined(__x86_64__) && defined(__LP64__) && !defined(MC_PERCPU_NO_RSEQ)
#define MC_PERCPU_RSEQ 1
#include "rseq_x86_64.h"
#elif defined(__aarch64__) && defined(__LP64__) && !defined(MC_PERCPU_NO_RSEQ)
#define MC_PERCPU_RSEQ 1
#include "rseq_aarch64.h"
#else
#define MC_PERCPU_RSEQ 0
#include "rseq_generic.h"
#endif

#if !defined(__LP64__)
#error "handles need 64-bit pointers"
#endif

#define MC_HANDLE_ADDRESS_(h) ((h) << 16 >> 16)
#define MC_HANDLE_STRIDE_(h) (((h) >> 48 & 0x3fff) << 6)
#define MC_HANDLE_KIND_(h) ((struct mc_percpu_kind *)((char *)mc_percpu_kinds + ((h) >> 62 << 6)))

MC_BEGIN_DECLS

/* What the library does when the inlines cannot; `op` is enum mc_percpu_op_ and `bits` 8 to 64.
 * Signal safe. */
enum mc_percpu_op_ {
	MC_OP_READ,
	MC_OP_WRITE,
	MC_OP_ADD,
	MC_OP_AND,
	MC_OP_OR,
	MC_OP_ADD_RETURN,
	MC_OP_XCHG,
	MC_OP_CMPXCHG
};
MC_API uint64_t mc_percpu_op_slow(uint64_t h, unsigned int op, unsigned int bits, uint64_t old,
				  uint64_t val);
MC_API void *mc_percpu_ptr_slow(uint64_t h);

/* The index word of the calling thread, whatever its meaning. */
static inline uint32_t mc_kind_index_(const struct mc_percpu_kind *k)
{
	return *(volatile uint32_t *)(mc_thread_pointer() + mc_kind_id(k));
}

/* In atomics mode: the address of the thread's copy, or 0. */
static inline uint64_t mc_atomic_copy_(const struct mc_percpu_kind *k, uint64_t h)
{
	uint32_t i = mc_kind_index_(k);

	if (__builtin_expect(i < __atomic_load_n(&k->atomic_live, __ATOMIC_RELAXED), 1))
		return MC_HANDLE_ADDRESS_(h) + i * MC_HANDLE_STRIDE_(h);
	return 0;
}

#if MC_PERCPU_RSEQ
#define MC_TRY_RSEQ_(call)             \
	if (__builtin_expect(call, 1)) \
		return res;
#define MC_TRY_RSEQ_VOID_(call)        \
	if (__builtin_expect(call, 1)) \
		return;
/* Past here the kind is unknown to the compiler, which would otherwise compute the addresses of
 * this seldom path ahead of a loop and have no registers left for those of the sequence. */
#define MC_FALLBACK_(k) __asm__ volatile("" : "+r"(k));
#else
#define MC_TRY_RSEQ_(call)
#define MC_TRY_RSEQ_VOID_(call)
#define MC_FALLBACK_(k)
#endif

#define MC_OP_VOID_(name, OP, bits, atomic)                                           \
	static inline __attribute__((always_inline)) void mc_op_##name##_##bits(      \
		uint64_t h, uint##bits##_t val)                                       \
	{                                                                             \
		struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);                        \
		uint##bits##_t *p;                                                    \
                                                                                      \
		MC_TRY_RSEQ_VOID_(mc_rseq_##name##_##bits(k, MC_HANDLE_ADDRESS_(h),   \
							  MC_HANDLE_STRIDE_(h), val)) \
		p = (uint##bits##_t *)mc_atomic_copy_(k, h);                          \
		if (__builtin_expect(!!p, 1))                                         \
			atomic;                                                       \
		else                                                                  \
			mc_percpu_op_slow(h, MC_OP_##OP, bits, 0, val);               \
	}

#define MC_OP_VALUE_(name, OP, bits, atomic)                                                     \
	static inline __attribute__((always_inline))                                             \
	uint##bits##_t mc_op_##name##_##bits(uint64_t h, uint##bits##_t old, uint##bits##_t val) \
	{                                                                                        \
		struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);                                   \
		uint##bits##_t *p, res;                                                          \
                                                                                                 \
		MC_TRY_RSEQ_(mc_rseq_##name##_##bits(k, MC_HANDLE_ADDRESS_(h),                   \
						     MC_HANDLE_STRIDE_(h), old, val, &res))      \
		p = (uint##bits##_t *)mc_atomic_copy_(k, h);                                     \
		if (__builtin_expect(!!p, 1)) {                                                  \
			res = old;                                                               \
			atomic;                                                                  \
			return res;                                                              \
		}                                                                                \
		return (uint##bits##_t)mc_percpu_op_slow(h, MC_OP_##OP, bits, old, val);         \
	}

#define MC_OP_SIZE_(bits)                                                                         \
	MC_OP_VOID_(add, ADD, bits, __atomic_fetch_add(p, val, __ATOMIC_RELAXED))                 \
	MC_OP_VOID_(and, AND, bits, __atomic_fetch_and(p, val, __ATOMIC_RELAXED))                 \
	MC_OP_VOID_(or, OR, bits, __atomic_fetch_or(p, val, __ATOMIC_RELAXED))                    \
	MC_OP_VOID_(write, WRITE, bits, __atomic_store_n(p, val, __ATOMIC_RELAXED))               \
	MC_OP_VALUE_(add_return, ADD_RETURN, bits,                                                \
		     res = __atomic_add_fetch(p, val, __ATOMIC_RELAXED))                          \
	MC_OP_VALUE_(xchg, XCHG, bits, res = __atomic_exchange_n(p, val, __ATOMIC_RELAXED))       \
	MC_OP_VALUE_(                                                                             \
		cmpxchg, CMPXCHG, bits,                                                           \
		__atomic_compare_exchange_n(p, &res, val, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) \
	static inline __attribute__((always_inline))                                              \
	uint##bits##_t mc_op_read_##bits(uint64_t h, uint##bits##_t old, uint##bits##_t val)      \
	{                                                                                         \
		struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);                                    \
		uint32_t i = mc_kind_index_(k);                                                   \
                                                                                                  \
		(void)old, (void)val;                                                             \
		if (__builtin_expect(i < (__atomic_load_n(&k->live, __ATOMIC_RELAXED) |           \
					  __atomic_load_n(&k->atomic_live, __ATOMIC_RELAXED)),    \
				     1))                                                          \
			return __atomic_load_n((uint##bits##_t *)(MC_HANDLE_ADDRESS_(h) +         \
								  i * MC_HANDLE_STRIDE_(h)),      \
					       __ATOMIC_RELAXED);                                 \
		return (uint##bits##_t)mc_percpu_op_slow(h, MC_OP_READ, bits, 0, 0);              \
	}

MC_OP_SIZE_(8)
MC_OP_SIZE_(16)
MC_OP_SIZE_(32)
MC_OP_SIZE_(64)

/* By the object's size, which is a constant where these are used. */
#define MC_OP_ANY_VOID_(name)                                               \
	static inline __attribute__((always_inline)) void mc_any_##name##_( \
		uint64_t h, size_t size, uint64_t val)                      \
	{                                                                   \
		if (size == 8)                                              \
			mc_op_##name##_64(h, val);                          \
		else if (size == 4)                                         \
			mc_op_##name##_32(h, (uint32_t)val);                \
		else if (size == 2)                                         \
			mc_op_##name##_16(h, (uint16_t)val);                \
		else                                                        \
			mc_op_##name##_8(h, (uint8_t)val);                  \
	}
#define MC_OP_ANY_VALUE_(name)                                                         \
	static inline __attribute__((always_inline))                                   \
	uint64_t mc_any_##name##_(uint64_t h, size_t size, uint64_t old, uint64_t val) \
	{                                                                              \
		if (size == 8)                                                         \
			return mc_op_##name##_64(h, old, val);                         \
		if (size == 4)                                                         \
			return mc_op_##name##_32(h, (uint32_t)old, (uint32_t)val);     \
		if (size == 2)                                                         \
			return mc_op_##name##_16(h, (uint16_t)old, (uint16_t)val);     \
		return mc_op_##name##_8(h, (uint8_t)old, (uint8_t)val);                \
	}
MC_OP_ANY_VOID_(add)
MC_OP_ANY_VOID_(and)
MC_OP_ANY_VOID_(or)
MC_OP_ANY_VOID_(write)
MC_OP_ANY_VALUE_(read)
MC_OP_ANY_VALUE_(add_return)
MC_OP_ANY_VALUE_(xchg)
MC_OP_ANY_VALUE_(cmpxchg)

typedef uint64_t __attribute__((may_alias)) mc_alias64_;
typedef uint32_t __attribute__((may_alias)) mc_alias32_;
typedef uint16_t __attribute__((may_alias)) mc_alias16_;

/* *old is what was expected and becomes what was found. */
static inline __attribute__((always_inline)) bool mc_any_try_cmpxchg_(uint64_t h, size_t size,
								      void *old, uint64_t val)
{
	uint64_t want = size == 8   ? *(mc_alias64_ *)old
			: size == 4 ? *(mc_alias32_ *)old
			: size == 2 ? *(mc_alias16_ *)old
				    : *(uint8_t *)old;
	uint64_t was = mc_any_cmpxchg_(h, size, want, val);

	if (was == want)
		return true;
	if (size == 8)
		*(mc_alias64_ *)old = was;
	else if (size == 4)
		*(mc_alias32_ *)old = (uint32_t)was;
	else if (size == 2)
		*(mc_alias16_ *)old = (uint16_t)was;
	else
		*(uint8_t *)old = (uint8_t)was;
	return false;
}

static inline void *mc_static_percpu_get_(struct mc_percpu_static *obj)
{
	void *h = __atomic_load_n(&obj->handle, __ATOMIC_ACQUIRE);

	return __builtin_expect(!!h, 1) ? h : mc_percpu_static_init(obj);
}

static inline void *mc_this_cpu_ptr_(uint64_t h)
{
	struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);
	uint32_t i = mc_kind_index_(k);

	if (__builtin_expect(i < (__atomic_load_n(&k->live, __ATOMIC_RELAXED) |
				  __atomic_load_n(&k->atomic_live, __ATOMIC_RELAXED)),
			     1))
		return (void *)(MC_HANDLE_ADDRESS_(h) + i * MC_HANDLE_STRIDE_(h));
	return mc_percpu_ptr_slow(h);
}

MC_END_DECLS

/* ---- the public names ------------------------------------------------------------------------ */

#define MC_H_(handle) ((uint64_t)(uintptr_t)(const volatile void *)(handle))

/* The address of copy i; no check of i. Any copy may be read (relaxed); see percpu.h for writing.
 */
#define mc_per_cpu_ptr(handle, i)                                     \
	((__typeof__(&*(handle)))(MC_HANDLE_ADDRESS_(MC_H_(handle)) + \
				  (uint64_t)(i)*MC_HANDLE_STRIDE_(MC_H_(handle))))

/* The address of the copy that was the caller's own at some moment of the call: by the time it is
 * used another thread may be using it. For reading, or where the caller knows better (a thread
 * pinned alone, a lock inside the copy). */
#define mc_this_cpu_ptr(handle) ((__typeof__(&*(handle)))mc_this_cpu_ptr_(MC_H_(handle)))

/*
 * Operations on the calling thread's copy, for integers and pointers of 1, 2, 4 or 8 bytes (others
 * do not compile). `handle` may also be the address of a field, &h->field, or of an element, h + n,
 * aligned to its size. Costs about a nanosecond, as much as two plain adds; in atomics mode as much
 * as an uncontended atomic operation. Signal safe.
 *
 * mc_this_cpu_read(h)              the value at some moment of the call
 * mc_this_cpu_write(h, v)
 * mc_this_cpu_add(h, v), _sub, _inc(h), _dec(h), _and(h, v), _or(h, v)
 * mc_this_cpu_add_return(h, v)     the new value; _sub_return, _inc_return, _dec_return
 * mc_this_cpu_xchg(h, v)           the old value
 * mc_this_cpu_cmpxchg(h, old, v)   the old value; v was stored if it equals `old`
 * mc_this_cpu_try_cmpxchg(h, &old, v)  true: stored; else `old` becomes the value found
 */
#define mc_this_cpu_read(handle) \
	MC_VALUE_(handle, mc_any_read_(MC_H_(handle), MC_SIZE_(handle), 0, 0))
#define mc_this_cpu_write(handle, v) mc_any_write_(MC_H_(handle), MC_SIZE_(handle), (uint64_t)(v))
#define mc_this_cpu_add(handle, v) mc_any_add_(MC_H_(handle), MC_SIZE_(handle), (uint64_t)(v))
#define mc_this_cpu_sub(handle, v) mc_any_add_(MC_H_(handle), MC_SIZE_(handle), -(uint64_t)(v))
#define mc_this_cpu_inc(handle) mc_any_add_(MC_H_(handle), MC_SIZE_(handle), 1)
#define mc_this_cpu_dec(handle) mc_any_add_(MC_H_(handle), MC_SIZE_(handle), -(uint64_t)1)
#define mc_this_cpu_and(handle, v) mc_any_and_(MC_H_(handle), MC_SIZE_(handle), (uint64_t)(v))
#define mc_this_cpu_or(handle, v) mc_any_or_(MC_H_(handle), MC_SIZE_(handle), (uint64_t)(v))
#define mc_this_cpu_add_return(handle, v) \
	MC_VALUE_(handle, mc_any_add_return_(MC_H_(handle), MC_SIZE_(handle), 0, (uint64_t)(v)))
#define mc_this_cpu_sub_return(handle, v) \
	MC_VALUE_(handle, mc_any_add_return_(MC_H_(handle), MC_SIZE_(handle), 0, -(uint64_t)(v)))
#define mc_this_cpu_inc_return(handle) mc_this_cpu_add_return(handle, 1)
#define mc_this_cpu_dec_return(handle) mc_this_cpu_sub_return(handle, 1)
#define mc_this_cpu_xchg(handle, v) \
	MC_VALUE_(handle, mc_any_xchg_(MC_H_(handle), MC_SIZE_(handle), 0, (uint64_t)(v)))
#define mc_this_cpu_cmpxchg(handle, old, v)                                                 \
	MC_VALUE_(handle, mc_any_cmpxchg_(MC_H_(handle), MC_SIZE_(handle), (uint64_t)(old), \
					  (uint64_t)(v)))
#define mc_this_cpu_try_cmpxchg(handle, oldp, v)                                         \
	mc_any_try_cmpxchg_(                                                             \
		MC_H_(handle),                                                           \
		MC_SIZE_(handle) +                                                       \
			0 * sizeof(char[sizeof(*(oldp)) == sizeof(*(handle)) ? 1 : -1]), \
		(oldp), (uint64_t)(v))

#define MC_SIZE_(handle)                                                                          \
	(sizeof(*(handle)) +                                                                      \
	 0 * sizeof(char[sizeof(*(handle)) <= 8 && !(sizeof(*(handle)) & (sizeof(*(handle)) - 1)) \
				 ? 1                                                              \
				 : -1]))
#define MC_VALUE_(handle, call) __extension__({ (__typeof__(*(handle)))(call); })

#endif
