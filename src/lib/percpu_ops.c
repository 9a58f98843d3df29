// SPDX-License-Identifier: MIT
/*
 * percpu_ops.c - operations that the inlines leave to the library, and the inlines as symbols.
 *
 * mc_percpu_op_slow() is reached when the thread's index is not live yet (a new mm_cid, a new
 * thread), when it is past what this process thought possible (then the overflow copy is used, by
 * atomics), and for every operation on out-of-line pools (MC_KIND_CALL). Takes no lock but for
 * robust pools; safe in signal handlers there.
 */
#include "lib/percpu_internal.h"

#define ATOMIC_OP(bits)                                                                         \
	static uint64_t atomic_op_##bits(void *at, unsigned int op, uint64_t old, uint64_t val) \
	{                                                                                       \
		uint##bits##_t *p = at, v = (uint##bits##_t)val, o = (uint##bits##_t)old;       \
                                                                                                \
		switch (op) {                                                                   \
		case MC_OP_READ:                                                                \
			return __atomic_load_n(p, __ATOMIC_RELAXED);                            \
		case MC_OP_WRITE:                                                               \
			__atomic_store_n(p, v, __ATOMIC_RELAXED);                               \
			return 0;                                                               \
		case MC_OP_ADD:                                                                 \
		case MC_OP_ADD_RETURN:                                                          \
			return __atomic_add_fetch(p, v, __ATOMIC_RELAXED);                      \
		case MC_OP_AND:                                                                 \
			return __atomic_fetch_and(p, v, __ATOMIC_RELAXED);                      \
		case MC_OP_OR:                                                                  \
			return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);                       \
		case MC_OP_XCHG:                                                                \
			return __atomic_exchange_n(p, v, __ATOMIC_RELAXED);                     \
		default:                                                                        \
			__atomic_compare_exchange_n(p, &o, v, false, __ATOMIC_RELAXED,          \
						    __ATOMIC_RELAXED);                          \
			return o;                                                               \
		}                                                                               \
	}
ATOMIC_OP(8)
ATOMIC_OP(16)
ATOMIC_OP(32)
ATOMIC_OP(64)

static uint64_t atomic_op(uint64_t at, unsigned int op, unsigned int bits, uint64_t old,
			  uint64_t val)
{
	void *p = (void *)at;

	return bits == 64   ? atomic_op_64(p, op, old, val)
	       : bits == 32 ? atomic_op_32(p, op, old, val)
	       : bits == 16 ? atomic_op_16(p, op, old, val)
			    : atomic_op_8(p, op, old, val);
}

#if MC_PERCPU_RSEQ
#define RSEQ_OP(bits)                                                                       \
	static bool rseq_op_##bits(uint64_t h, unsigned int op, uint64_t old, uint64_t val, \
				   uint64_t *out)                                           \
	{                                                                                   \
		struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);                              \
		uint64_t base = MC_HANDLE_ADDRESS_(h), stride = MC_HANDLE_STRIDE_(h);       \
		uint##bits##_t v = (uint##bits##_t)val, o = (uint##bits##_t)old, r = 0;     \
		bool done;                                                                  \
                                                                                            \
		switch (op) {                                                               \
		case MC_OP_READ:                                                            \
			done = mc_rseq_add_return_##bits(k, base, stride, 0, 0, &r);        \
			break;                                                              \
		case MC_OP_WRITE:                                                           \
			done = mc_rseq_write_##bits(k, base, stride, v);                    \
			break;                                                              \
		case MC_OP_ADD:                                                             \
			done = mc_rseq_add_##bits(k, base, stride, v);                      \
			break;                                                              \
		case MC_OP_ADD_RETURN:                                                      \
			done = mc_rseq_add_return_##bits(k, base, stride, 0, v, &r);        \
			break;                                                              \
		case MC_OP_AND:                                                             \
			done = mc_rseq_and_##bits(k, base, stride, v);                      \
			break;                                                              \
		case MC_OP_OR:                                                              \
			done = mc_rseq_or_##bits(k, base, stride, v);                       \
			break;                                                              \
		case MC_OP_XCHG:                                                            \
			done = mc_rseq_xchg_##bits(k, base, stride, 0, v, &r);              \
			break;                                                              \
		default:                                                                    \
			done = mc_rseq_cmpxchg_##bits(k, base, stride, o, v, &r);           \
			break;                                                              \
		}                                                                           \
		*out = r;                                                                   \
		return done;                                                                \
	}
RSEQ_OP(8)
RSEQ_OP(16)
RSEQ_OP(32)
RSEQ_OP(64)

static bool rseq_op(uint64_t h, unsigned int op, unsigned int bits, uint64_t old, uint64_t val,
		    uint64_t *out)
{
	return bits == 64   ? rseq_op_64(h, op, old, val, out)
	       : bits == 32 ? rseq_op_32(h, op, old, val, out)
	       : bits == 16 ? rseq_op_16(h, op, old, val, out)
			    : rseq_op_8(h, op, old, val, out);
}
#else
static bool rseq_op(uint64_t h, unsigned int op, unsigned int bits, uint64_t old, uint64_t val,
		    uint64_t *out)
{
	(void)h, (void)op, (void)bits, (void)old, (void)val, (void)out;
	return false;
}
#endif

/* The copy of an out-of-line pool that this thread works on. */
static uint64_t call_copy(uint64_t h)
{
	struct mc_percpu_pool *pool = mc_chunk_of(h)->pool;
	uint32_t i = mc_rt_slot() % pool->copies;
	uint32_t seen = __atomic_load_n(&pool->retired, __ATOMIC_RELAXED);

	while (seen <= i && !__atomic_compare_exchange_n(&pool->retired, &seen, i + 1, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return MC_HANDLE_ADDRESS_(h) + i * MC_HANDLE_STRIDE_(h);
}

uint64_t mc_percpu_op_slow(uint64_t h, unsigned int op, unsigned int bits, uint64_t old,
			   uint64_t val)
{
	struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);
	bool rseq = mc_rt_rseq((int)(h >> 62));
	uint64_t out;

	if (h >> 62 == MC_KIND_CALL) {
		if (!mc_robust_access(h, bits / 8, __builtin_return_address(0)))
			return 0;
		return atomic_op(call_copy(h), op, bits, old, val);
	}
	for (;;) {
		uint64_t p;

		if (!mc_rt_raise(k)) {
			/* Atomics, since any number of threads may come here. */
			p = MC_HANDLE_ADDRESS_(h) +
			    (uint64_t)(mc_chunk_of(h)->units - 1) * MC_HANDLE_STRIDE_(h);
			return atomic_op(p, op, bits, old, val);
		}
		if (rseq) {
			if (rseq_op(h, op, bits, old, val, &out))
				return out;
			continue; /* migrated to another new index, or a trim lowered the mark */
		}
		p = mc_atomic_copy_(k, h);
		if (p)
			return atomic_op(p, op, bits, old, val);
	}
}

void *mc_percpu_ptr_slow(uint64_t h)
{
	struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);
	uint32_t i;

	if (h >> 62 == MC_KIND_CALL) {
		if (!mc_robust_access(h, 1, __builtin_return_address(0)))
			return NULL;
		return (void *)call_copy(h);
	}
	if (mc_rt_raise(k)) {
		i = mc_kind_index_(k);
		if (i < k->limit)
			return (void *)(MC_HANDLE_ADDRESS_(h) + i * MC_HANDLE_STRIDE_(h));
	}
	return (void *)(MC_HANDLE_ADDRESS_(h) +
			(uint64_t)(mc_chunk_of(h)->units - 1) * MC_HANDLE_STRIDE_(h));
}

#define SYMBOLS(bits)                                                                  \
	uint##bits##_t mc_percpu_read_##bits(const void *handle)                       \
	{                                                                              \
		return mc_op_read_##bits(MC_H_(handle), 0, 0);                         \
	}                                                                              \
	void mc_percpu_write_##bits(void *handle, uint##bits##_t value)                \
	{                                                                              \
		mc_op_write_##bits(MC_H_(handle), value);                              \
	}                                                                              \
	void mc_percpu_add_##bits(void *handle, uint##bits##_t value)                  \
	{                                                                              \
		mc_op_add_##bits(MC_H_(handle), value);                                \
	}                                                                              \
	void mc_percpu_and_##bits(void *handle, uint##bits##_t value)                  \
	{                                                                              \
		mc_op_and_##bits(MC_H_(handle), value);                                \
	}                                                                              \
	void mc_percpu_or_##bits(void *handle, uint##bits##_t value)                   \
	{                                                                              \
		mc_op_or_##bits(MC_H_(handle), value);                                 \
	}                                                                              \
	uint##bits##_t mc_percpu_add_return_##bits(void *handle, uint##bits##_t value) \
	{                                                                              \
		return mc_op_add_return_##bits(MC_H_(handle), 0, value);               \
	}                                                                              \
	uint##bits##_t mc_percpu_xchg_##bits(void *handle, uint##bits##_t value)       \
	{                                                                              \
		return mc_op_xchg_##bits(MC_H_(handle), 0, value);                     \
	}                                                                              \
	uint##bits##_t mc_percpu_cmpxchg_##bits(void *handle, uint##bits##_t old,      \
						uint##bits##_t value)                  \
	{                                                                              \
		return mc_op_cmpxchg_##bits(MC_H_(handle), old, value);                \
	}
SYMBOLS(8)
SYMBOLS(16)
SYMBOLS(32)
SYMBOLS(64)

void *mc_percpu_copy(const void *handle, unsigned int i)
{
	return (void *)(MC_HANDLE_ADDRESS_(MC_H_(handle)) +
			(uint64_t)i * MC_HANDLE_STRIDE_(MC_H_(handle)));
}

void *mc_percpu_own(const void *handle)
{
	return mc_this_cpu_ptr_(MC_H_(handle));
}
