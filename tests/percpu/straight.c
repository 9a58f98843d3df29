// SPDX-License-Identifier: MIT
/*
 * straight.c - what each sequence does when nothing disturbs it, by a kind whose area nobody
 * registered: so also under qemu-user, where there is no rseq, for the architecture's own
 * instructions. Values, wrap-around, the neighbours, the copy chosen by the index, and each way
 * out.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "arch/seq.h"
#include "check.h"

#if !MC_PERCPU_RSEQ
int main(void)
{
	printf("SKIP: this build has no sequences\n");
	return 77;
}
#else

/* The functions below are not inlined: where a kind is filled in, the inlines must not be in sight,
 * since they take its offsets for constant (in a program a handle that exists stands between). */
enum { STRIDE = 320 };
static __thread struct {
	uint64_t cs;
	uint32_t id;
} area __attribute__((aligned(32)));
static struct mc_percpu_kind kind;
static union {
	uint8_t bytes[4 * STRIDE];
	uint64_t words[4 * STRIDE / 8];
} memory, before;

/* Runs nothing, but says whether only `size` bytes at offset 64 of copy `id` changed. */
static void only(unsigned int size)
{
	memcpy(before.bytes + area.id * STRIDE + 64, memory.bytes + area.id * STRIDE + 64, size);
	CHECK(!memcmp(&before, &memory, sizeof(memory)), "something else changed");
}

#define SIZE(bits)                                                                                 \
	static __attribute__((noinline)) void size_##bits(void)                                    \
	{                                                                                          \
		typedef uint##bits##_t type;                                                       \
		uint64_t base = (uint64_t)(uintptr_t)memory.bytes + 64;                            \
		type *p = (type *)(memory.bytes + area.id * STRIDE + 64), out = 0, v;              \
                                                                                                   \
		v = (type)0xf1f2f3f4f5f6f7f8ull;                                                   \
		CHECK(mc_rseq_write_##bits(&kind, base, STRIDE, v) && *p == v, "write");           \
		v = (type)(v + (type)0x1122334455667788ull);                                       \
		CHECK(mc_rseq_add_##bits(&kind, base, STRIDE, (type)0x1122334455667788ull) &&      \
			      *p == v,                                                             \
		      "add");                                                                      \
		v = (type)(v & 0x0ff00ff00ff00ff0ull);                                             \
		CHECK(mc_rseq_and_##bits(&kind, base, STRIDE, (type)0x0ff00ff00ff00ff0ull) &&      \
			      *p == v,                                                             \
		      "and");                                                                      \
		v = (type)(v | 0x5a5a5a5a5a5a5a5aull);                                             \
		CHECK(mc_rseq_or_##bits(&kind, base, STRIDE, (type)0x5a5a5a5a5a5a5a5aull) &&       \
			      *p == v,                                                             \
		      "or");                                                                       \
		v = (type)(v + (type)-3);                                                          \
		CHECK(mc_rseq_add_return_##bits(&kind, base, STRIDE, 0, (type)-3, &out) &&         \
			      out == v && *p == v,                                                 \
		      "add_return");                                                               \
		CHECK(mc_rseq_xchg_##bits(&kind, base, STRIDE, 0, (type)0x8081, &out) && out == v, \
		      "xchg");                                                                     \
		v = (type)0x8081;                                                                  \
		CHECK(*p == v, "xchg");                                                            \
		CHECK(mc_rseq_cmpxchg_##bits(&kind, base, STRIDE, (type)(v + 1), 1, &out) &&       \
			      out == v && *p == v,                                                 \
		      "cmpxchg that fails");                                                       \
		CHECK(mc_rseq_cmpxchg_##bits(&kind, base, STRIDE, v, (type)-1, &out) &&            \
			      out == v && *p == (type)-1,                                          \
		      "cmpxchg");                                                                  \
		only(bits / 8);                                                                    \
		/* Not live: nothing happens. */                                                   \
		kind.live = area.id;                                                               \
		CHECK(!mc_rseq_add_##bits(&kind, base, STRIDE, 1), "add");                         \
		CHECK(!mc_rseq_write_##bits(&kind, base, STRIDE, 1), "write");                     \
		CHECK(!mc_rseq_and_##bits(&kind, base, STRIDE, 1), "and");                         \
		CHECK(!mc_rseq_or_##bits(&kind, base, STRIDE, 1), "or");                           \
		CHECK(!mc_rseq_add_return_##bits(&kind, base, STRIDE, 0, 1, &out), "add_return");  \
		CHECK(!mc_rseq_xchg_##bits(&kind, base, STRIDE, 0, 1, &out), "xchg");              \
		CHECK(!mc_rseq_cmpxchg_##bits(&kind, base, STRIDE, (type)-1, 1, &out), "cmpxchg"); \
		kind.live = 4;                                                                     \
		CHECK(*p == (type)-1, "an operation on a copy that is not live");                  \
	}
SIZE(8)
SIZE(16)
SIZE(32)
SIZE(64)

static volatile int64_t shared; /* the sequence does not say that it writes to it */

/* An add, and what the library does where the sequence leaves the telling to it
 * (mc_counter_add_slow). */
static inline __attribute__((always_inline)) int count(int64_t amount, uint32_t batch_1)
{
	uint64_t base = (uint64_t)(uintptr_t)memory.bytes + 64, told = base + 16;
	int32_t rest = 0;
	int rc =
		mc_rseq_counter_add(&kind, base, told, STRIDE, (int64_t *)&shared, amount, batch_1);

	if (rc == 1) {
		CHECK(mc_seq_counter_fold(&kind, base, told, STRIDE, batch_1 + 1, &rest) == 0,
		      "fold");
		shared += rest;
		rc = 0;
	}
	return rc;
}

static __attribute__((noinline)) void counters(void)
{
	uint64_t base = (uint64_t)(uintptr_t)memory.bytes + 64, told = base + 16;
	int64_t *total = (int64_t *)(memory.bytes + area.id * STRIDE + 64);
	uint32_t *known = (uint32_t *)(memory.bytes + area.id * STRIDE + 80);
	volatile int64_t any = 5;
	volatile uint32_t any_1 = 6;
	int32_t rest = 99;

	*total = 0x1fffffff0ll; /* the low word wraps on the way */
	*known = 0xfffffff0u;
	shared = 1000;
	CHECK(count(31, 31) == 0 && shared == 1000 && *known == 0xfffffff0u, "31 of 32");
	CHECK(mc_seq_counter_fold(&kind, base, told, STRIDE, 32, &rest) == 0 && rest == 0,
	      "too early");
	CHECK(count(1, 31) == 0, "32 of 32");
	CHECK(*total == 0x200000010ll && *known == 0x10, "told");
	CHECK(shared == 1032, "32 of 32: %lld", (long long)shared);
	CHECK(count(-31, 31) == 0 && shared == 1032, "-31");
	CHECK(count(-1, 31) == 0 && shared == 1000, "-32: %lld", (long long)shared);
	CHECK(*known == 0xfffffff0u, "told");
	CHECK(count(1, 0) == 0 && shared == 1001, "batch 1");
	/* Amount and batch that are not known when compiling. */
	CHECK(count(any, any_1) == 0 && shared == 1001, "5 of 7");
	CHECK(count(any, any_1) == 0 && shared == 1011, "10 of 7: %lld", (long long)shared);
	CHECK(count(-any, 1 << 28) == 0 && shared == 1011, "-5 of 2^28");
	CHECK(count(-(INT64_C(1) << 29), any_1) == 0 && shared == 1006 - (1ll << 29), "-2^29");
	CHECK(count(INT64_C(1) << 29, (1 << 29) - 1) == 0 && shared == 1006, "2^29");
	kind.live = area.id;
	CHECK(count(1, 31) == -1, "not live");
	CHECK(mc_seq_counter_fold(&kind, base, told, STRIDE, 1, &rest) == -1, "not live");
	kind.live = 4;
	CHECK(*total == 0x1fffffff6ll && *known == 0xfffffff6u && shared == 1006, "total");
}

static __attribute__((noinline)) void magazines(void)
{
	char *mags = (char *)memory.bytes, *closed = NULL;
	uint32_t *n = (uint32_t *)(memory.bytes + area.id * STRIDE + 128);
	uint64_t out = 0;

	memset(&memory, 0, sizeof(memory));
	CHECK(mc_seq_pop(&kind, &mags, STRIDE, 128, &out) == 1, "empty");
	for (uint64_t i = 1; i <= 3; i++)
		CHECK(mc_seq_push(&kind, &mags, STRIDE, 128, 3, i << 60 | i) == 0 && *n == i,
		      "push");
	CHECK(mc_seq_push(&kind, &mags, STRIDE, 128, 3, 4) == 1 && *n == 3, "full");
	CHECK(mc_seq_push(&kind, &closed, STRIDE, 128, 9, 4) == 1, "closed");
	CHECK(mc_seq_pop(&kind, &closed, STRIDE, 128, &out) == 1, "closed");
	kind.live = area.id;
	CHECK(mc_seq_push(&kind, &mags, STRIDE, 128, 9, 4) == 2, "not live");
	CHECK(mc_seq_pop(&kind, &mags, STRIDE, 128, &out) == 2, "not live");
	kind.live = 4;
	for (uint64_t i = 3; i; i--)
		CHECK(mc_seq_pop(&kind, &mags, STRIDE, 128, &out) == 0 && out == (i << 60 | i) &&
			      *n == i - 1,
		      "pop");
}

int main(void)
{
	kind.live = 4;
	kind.cs_off = (char *)&area.cs - mc_thread_pointer();
	kind.id_off = (char *)&area.id - mc_thread_pointer();
	for (area.id = 0; area.id < 4; area.id++) {
		memset(&memory, 0xa5, sizeof(memory));
		before = memory;
		size_8();
		size_16();
		size_32();
		size_64();
		counters();
		magazines();
	}
	printf("all sequences, straight\n");
	return 0;
}
#endif
