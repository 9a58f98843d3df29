// SPDX-License-Identifier: MIT
/*
 * counter.c - counter.h: what is not inline.
 *
 * Per copy: int64_t total[n], then uint32_t told[n], for the n counters of one init_many. total is
 * only ever added to; told is the low 32 bits of the total when the shared count last heard of it.
 * The untold part is less than 2^29 + 2^29 in absolute value except while adds pile up behind one
 * that is telling, so 32 bits hold the difference. Adds of more than 2^29 go to base and count
 * directly. Out-of-line pools (MC_KIND_CALL) tell every add at once.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include "arch/seq.h"
#include "lib/percpu_internal.h"
#include "os/os.h"
#include <manycore/counter.h>

_Static_assert(offsetof(struct mc_counter, count) == 64 && sizeof(struct mc_counter) == 128,
	       "what adds read and what they write are two cache lines");

static void add(int64_t *p, int64_t amount)
{
	__atomic_fetch_add(p, amount, __ATOMIC_RELAXED);
}

/* The kernel's percpu_counter_batch at this moment. */
static uint32_t default_batch(void)
{
	static uint32_t known; /* the CPUs online, read once; racing readers agree */
	uint32_t n = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!n) {
		struct mc_cpumask *online = mc_cpumask_alloc();
		char *text;
		size_t len;

		n = mc_nr_cpu_ids();
		if (online && !mc_os_read_file(MC_ROOT_LIVE, "/sys/devices/system/cpu/online",
					       65536, &text, &len)) {
			if (!mc_cpulist_parse(online, text, NULL) && mc_cpumask_weight(online))
				n = mc_cpumask_weight(online);
			free(text);
		}
		mc_cpumask_free(online);
		__atomic_store_n(&known, n, __ATOMIC_RELAXED);
	}
	return 2 * n > 32 ? 2 * n : 32;
}

int mc_counter_init_pool(struct mc_counter *c, unsigned int n, int64_t amount, uint32_t batch,
			 struct mc_percpu_pool *pool)
{
	uint64_t h;

	if (!n || n > MC_UNIT_MAX / 12 || batch > MC_COUNTER_LOCAL_BATCH)
		return -EINVAL;
	h = MC_H_(mc_percpu_pool_alloc(pool, n * (sizeof(int64_t) + sizeof(uint32_t)),
				       sizeof(int64_t)));
	if (!h)
		return errno == EINVAL ? -EINVAL : -ENOMEM;
	if (!batch)
		batch = default_batch();
	for (unsigned int i = 0; i < n; i++) {
		uint64_t at = MC_HANDLE_ADDRESS_(h);

		c[i] = (struct mc_counter){
			.handle = h + i * sizeof(int64_t),
			.kind = MC_HANDLE_KIND_(h),
			.base_at = at + i * sizeof(int64_t),
			.told_at = at + n * sizeof(int64_t) + i * sizeof(uint32_t),
			.stride = MC_HANDLE_STRIDE_(h),
			.batch = batch,
			.count = amount,
			.base = amount,
		};
	}
	c->group = n;
	return 0;
}

int mc_counter_init(struct mc_counter *c, int64_t amount)
{
	return mc_counter_init_pool(c, 1, amount, 0, NULL);
}

int mc_counter_init_many(struct mc_counter *c, unsigned int n, int64_t amount)
{
	return mc_counter_init_pool(c, n, amount, 0, NULL);
}

void mc_counter_destroy_many(struct mc_counter *c, unsigned int n)
{
	uint64_t h = c->handle;

	for (unsigned int i = 0; i < n; i++)
		c[i].handle = 0;
	mc_free_percpu((void *)h);
}

void mc_counter_destroy(struct mc_counter *c)
{
	mc_counter_destroy_many(c, 1);
}

void mc_counter_set_batch(struct mc_counter *c, uint32_t batch)
{
	if (!batch)
		batch = default_batch();
	else if (batch > MC_COUNTER_LOCAL_BATCH)
		batch = MC_COUNTER_LOCAL_BATCH;
	__atomic_store_n(&c->batch, batch, __ATOMIC_RELAXED);
}

/* ---- adding and telling ---------------------------------------------------------------------- */

static bool reached(int32_t rest, uint32_t batch)
{
	return (uint32_t)rest + (batch - 1) > 2 * (batch - 1);
}

static uint32_t *told_of(const struct mc_counter *c, int64_t *total)
{
	return (uint32_t *)((char *)total + (c->told_at - c->base_at));
}

/* Atomics: takes the untold part of one copy, if it reaches the batch. */
static int32_t take_atomic(int64_t *total, uint32_t *told, uint32_t batch)
{
	uint32_t old = __atomic_load_n(told, __ATOMIC_RELAXED), now;
	int32_t rest;

	do {
		now = (uint32_t)__atomic_load_n(total, __ATOMIC_RELAXED);
		rest = (int32_t)(now - old);
		if (!reached(rest, batch))
			return 0;
	} while (!__atomic_compare_exchange_n(told, &old, now, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return rest;
}

/* The copy that atomics act on: the thread's own in atomics mode, else the overflow copy. NULL: try
 * again. */
static int64_t *atomic_copy(uint64_t h, bool overflow)
{
	if (overflow)
		return (int64_t *)(MC_HANDLE_ADDRESS_(h) +
				   (uint64_t)(mc_chunk_of(h)->units - 1) * MC_HANDLE_STRIDE_(h));
	return (int64_t *)mc_atomic_copy_(MC_HANDLE_KIND_(h), h);
}

/* Tells the own copy's untold part if it reaches the batch. */
static void tell(struct mc_counter *c, uint32_t batch)
{
	uint64_t h = c->handle;
	struct mc_percpu_kind *k = MC_HANDLE_KIND_(h);
	int32_t rest = 0;

	if (h >> 62 == MC_KIND_CALL)
		return;
	for (;;) {
		bool overflow = false;
		int64_t *total;

#if MC_PERCPU_RSEQ
		if (mc_rt_rseq((int)(h >> 62)) &&
		    !mc_seq_counter_fold(k, c->base_at, c->told_at, c->stride, batch, &rest))
			break;
#endif
		total = mc_rt_rseq((int)(h >> 62)) ? NULL : atomic_copy(h, false);
		if (!total) {
			overflow = !mc_rt_raise(k);
			if (overflow)
				total = atomic_copy(h, true);
		}
		if (total) {
			rest = take_atomic(total, told_of(c, total), batch);
			break;
		}
	}
	if (rest)
		add(&c->count, rest);
}

/* The own copy's total by whatever way serves. */
static void add_total(struct mc_counter *c, int64_t amount)
{
	uint64_t h = c->handle;

	if (h >> 62 != MC_KIND_CALL && !mc_rt_rseq((int)(h >> 62))) {
		int64_t *total = atomic_copy(h, false);

		if (mc_likely(!!total)) {
			add(total, amount);
			return;
		}
	}
	mc_percpu_op_slow(h, MC_OP_ADD, 64, 0, (uint64_t)amount);
}

static __attribute__((noinline)) void add_slower(struct mc_counter *c, int64_t amount,
						 uint32_t batch, int rc)
{
	if (rc < 0 && (amount > MC_COUNTER_LOCAL_BATCH || amount < -MC_COUNTER_LOCAL_BATCH)) {
		add(&c->base, amount);
		add(&c->count, amount);
		return;
	}
	if (rc < 0) {
		add_total(c, amount);
		if (c->handle >> 62 == MC_KIND_CALL) {
			add(&c->count, amount);
			return;
		}
	}
	tell(c, batch);
}

/* Where the inline leaves it to us (arm64), the frequent reason is a batch to tell in rseq mode: no
 * other call, nothing saved. */
void mc_counter_add_slow(struct mc_counter *c, int64_t amount, uint32_t batch, int rc)
{
#if MC_PERCPU_RSEQ
	int32_t rest;

	if (mc_likely(rc > 0) && mc_likely(!mc_seq_counter_fold(c->kind, c->base_at, c->told_at,
								c->stride, batch, &rest))) {
		if (rest)
			add(&c->count, rest);
		return;
	}
#endif
	add_slower(c, amount, batch, rc);
}

void mc_counter_sync(struct mc_counter *c)
{
	tell(c, 1);
}

/* ---- reading --------------------------------------------------------------------------------- */

int64_t mc_counter_sum(const struct mc_counter *c)
{
	uint64_t stride = c->stride, at = c->base_at;
	uint64_t sum = (uint64_t)__atomic_load_n(&c->base, __ATOMIC_RELAXED);

	for (unsigned int n = mc_pool_walk(mc_chunk_of(c->handle)->pool); n; n--, at += stride)
		sum += (uint64_t)__atomic_load_n((int64_t *)at, __ATOMIC_RELAXED);
	return (int64_t)sum;
}

int mc_counter_compare_batch(const struct mc_counter *c, int64_t rhs, int32_t batch)
{
	int64_t count = mc_counter_read(c), error;

	error = 2 * (int64_t)(batch < 1 ? 1 : batch) * mc_pool_walk(mc_chunk_of(c->handle)->pool);
	if (count > rhs ? (uint64_t)count - (uint64_t)rhs <= (uint64_t)error
			: (uint64_t)rhs - (uint64_t)count <= (uint64_t)error)
		count = mc_counter_sum(c);
	return count > rhs ? 1 : count < rhs ? -1 : 0;
}

int mc_counter_compare(const struct mc_counter *c, int64_t rhs)
{
	return mc_counter_compare_batch(c, rhs, (int32_t)c->batch);
}

static void lock(struct mc_counter *c)
{
	while (__atomic_exchange_n(&c->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(struct mc_counter *c)
{
	__atomic_store_n(&c->lock, 0, __ATOMIC_RELEASE);
}

/* Without overflow: room is limit - now, on the amount's side. */
static bool fits(int64_t now, int64_t limit, int64_t amount)
{
	if (amount > 0)
		return now <= limit && (uint64_t)amount <= (uint64_t)limit - (uint64_t)now;
	return now >= limit && -(uint64_t)amount <= (uint64_t)now - (uint64_t)limit;
}

/* As the kernel: sums only when the shared count, off by its error one way or the other, does not
 * tell. Twice the error, for adds that are telling just now. */
static bool limit_allows(const struct mc_counter *c, int64_t limit, int64_t amount)
{
	int64_t count = mc_counter_read(c), low, high, error;

	error = 2 * (int64_t)c->batch * mc_pool_walk(mc_chunk_of(c->handle)->pool);
	if (!__builtin_sub_overflow(count, error, &low) &&
	    !__builtin_add_overflow(count, error, &high)) {
		if (fits(amount > 0 ? high : low, limit, amount))
			return true;
		if (!fits(amount > 0 ? low : high, limit, amount))
			return false;
	}
	return fits(mc_counter_sum(c), limit, amount);
}

/* The kernel's other short cut, not even to take the lock, needs interrupts off between the look at
 * the count and the add: a thread stopped in between would add to a counter that others have
 * meanwhile taken to the limit. */
bool mc_counter_limited_add(struct mc_counter *c, int64_t limit, int64_t amount)
{
	bool good;

	if (!amount)
		return true;
	lock(c);
	good = limit_allows(c, limit, amount);
	if (good) {
		/* The inline tells the compiler of no memory: nothing of it past the lock. */
		__asm__ volatile("" : : : "memory");
		mc_counter_add(c, amount);
		__asm__ volatile("" : : : "memory");
	}
	unlock(c);
	return good;
}

void mc_counter_set(struct mc_counter *c, int64_t amount)
{
	uint64_t stride = c->stride, at = c->base_at, sum = 0;

	lock(c);
	for (unsigned int n = mc_pool_walk(mc_chunk_of(c->handle)->pool); n; n--, at += stride) {
		uint64_t total = (uint64_t)__atomic_load_n((int64_t *)at, __ATOMIC_RELAXED);

		sum += total;
		__atomic_store_n(told_of(c, (int64_t *)at), (uint32_t)total, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&c->base, (int64_t)((uint64_t)amount - sum), __ATOMIC_RELAXED);
	__atomic_store_n(&c->count, amount, __ATOMIC_RELAXED);
	unlock(c);
}
