// SPDX-License-Identifier: MIT
/*
 * abort.c - aborts each restartable sequence at each of its instructions and checks that nothing is
 * lost or done twice.
 *
 * A child runs one operation at a time; this process traces it. First the operation is
 * single-stepped, the thread's rseq_cs word being cleared before each step so that no step aborts:
 * that tells the addresses executed inside sequences (between the start and end of some descriptor
 * in the program's own section). Then, for each of these addresses, the operation runs again with a
 * breakpoint there: having been stopped inside, the kernel must send the thread to the abort
 * handler, which is seen by its next instruction lying outside. The child compares each result with
 * plain arithmetic. arm64 runs it by tools/test-arm64: qemu-user has no ptrace.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <manycore/counter.h>
#include <manycore/percpu.h>
#include "skip.h"
#include "tracer.h"

#if !MC_PERCPU_RSEQ
int main(void)
{
	printf("SKIP: this build has no restartable sequences\n");
	return TEST_EXIT_SKIP;
}
#else

struct descriptor {
	uint32_t version, flags;
	uint64_t start, len, abort;
};
extern const struct descriptor __start___mc_rseq_cs[], __stop___mc_rseq_cs[];

static struct {
	unsigned int op, done; /* tracer: which to run; child: it has */
	uint64_t cs;           /* where the thread's rseq_cs lies */
} * shared;

/* ---- the child: operations, each compared with what it should do
 * ---------------------------------------------------------- */

static struct {
	uint64_t q;
	uint32_t l;
	uint16_t w;
	uint8_t b;
} * h, ref;
static struct mc_counter counter;
static int64_t count;

#define OPS(field, type)                                                                    \
	static void __attribute__((noinline)) add_##field(void)                             \
	{                                                                                   \
		mc_this_cpu_add(&h->field, 77);                                             \
		ref.field = (type)(ref.field + 77);                                         \
		CHECK(mc_this_cpu_read(&h->field) == ref.field, "add");                     \
	}                                                                                   \
	static void __attribute__((noinline)) and_##field(void)                             \
	{                                                                                   \
		mc_this_cpu_and(&h->field, (type)~5ull);                                    \
		ref.field = (type)(ref.field & ~5ull);                                      \
		CHECK(mc_this_cpu_read(&h->field) == ref.field, "and");                     \
	}                                                                                   \
	static void __attribute__((noinline)) or_##field(void)                              \
	{                                                                                   \
		mc_this_cpu_or(&h->field, 3);                                               \
		ref.field = (type)(ref.field | 3);                                          \
		CHECK(mc_this_cpu_read(&h->field) == ref.field, "or");                      \
	}                                                                                   \
	static void __attribute__((noinline)) write_##field(void)                           \
	{                                                                                   \
		ref.field = (type)(ref.field * 3 + 1);                                      \
		mc_this_cpu_write(&h->field, ref.field);                                    \
		CHECK(mc_this_cpu_read(&h->field) == ref.field, "write");                   \
	}                                                                                   \
	static void __attribute__((noinline)) ret_##field(void)                             \
	{                                                                                   \
		ref.field = (type)(ref.field + 9);                                          \
		CHECK(mc_this_cpu_add_return(&h->field, 9) == ref.field, "add_return");     \
		CHECK(mc_this_cpu_read(&h->field) == ref.field, "add_return");              \
	}                                                                                   \
	static void __attribute__((noinline)) xchg_##field(void)                            \
	{                                                                                   \
		type old = ref.field;                                                       \
                                                                                            \
		ref.field = (type)(ref.field + 11);                                         \
		CHECK(mc_this_cpu_xchg(&h->field, ref.field) == old, "xchg");               \
		CHECK(mc_this_cpu_read(&h->field) == ref.field, "xchg");                    \
	}                                                                                   \
	static void __attribute__((noinline)) cas_##field(void)                             \
	{                                                                                   \
		type old = ref.field, new = (type)(ref.field + 13);                         \
                                                                                            \
		CHECK(mc_this_cpu_cmpxchg(&h->field, new, 0) == old, "cmpxchg that fails"); \
		ref.field = new;                                                            \
		CHECK(mc_this_cpu_cmpxchg(&h->field, old, new) == old, "cmpxchg");          \
		CHECK(mc_this_cpu_read(&h->field) == ref.field, "cmpxchg");                 \
	}
OPS(q, uint64_t)
OPS(l, uint32_t)
OPS(w, uint16_t)
OPS(b, uint8_t)

static void __attribute__((noinline)) count_far(void)
{
	mc_counter_add_batch(&counter, 3, 1 << 20);
	count += 3;
	CHECK(mc_counter_sum(&counter) == count, "counter");
}

/* Tells the shared count at once: add and fold. */
static void __attribute__((noinline)) count_near(void)
{
	mc_counter_add_batch(&counter, 5, 1);
	count += 5;
	CHECK(mc_counter_sum(&counter) == count, "counter");
	CHECK(mc_counter_read(&counter) == count, "counter: read %lld of %lld",
	      (long long)mc_counter_read(&counter), (long long)count);
}

static void __attribute__((noinline)) allocate(void)
{
	struct mc_percpu_stats before, after;
	uint64_t *p, *q;

	mc_percpu_pool_stats(NULL, &before);
	p = mc_alloc_percpu_size(64, 8);
	q = mc_alloc_percpu_size(64, 8);
	CHECK(p && q && p != q, "the same object twice");
	CHECK(!mc_this_cpu_read(p) && !mc_this_cpu_read(q), "not zero");
	mc_this_cpu_write(p, 1);
	mc_this_cpu_write(q, 1);
	mc_free_percpu(p);
	mc_free_percpu(q);
	mc_percpu_pool_stats(NULL, &after);
	CHECK(after.nr_cur_alloc - after.magazine_objects ==
		      before.nr_cur_alloc - before.magazine_objects,
	      "an object was lost");
}

#define NAMES(field)                                                                            \
	{"add " #field, add_##field}, {"and " #field, and_##field}, {"or " #field, or_##field}, \
		{"write " #field, write_##field}, {"add_return " #field, ret_##field},          \
		{"xchg " #field, xchg_##field},                                                 \
	{                                                                                       \
		"cmpxchg " #field, cas_##field                                                  \
	}
static const struct {
	const char *name;
	void (*run)(void);
} ops[] = {
	NAMES(q),
	NAMES(l),
	NAMES(w),
	NAMES(b),
	{"counter", count_far},
	{"counter that tells", count_near},
	{"alloc, free", allocate},
};
enum { NR_OPS = sizeof(ops) / sizeof(*ops) };

static void child(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	h = mc_alloc_percpu_size(sizeof(*h), 8);
	CHECK(h && !mc_counter_init(&counter, 0), "no memory");
	for (unsigned int i = 0; i < NR_OPS; i++)
		ops[i].run();
	shared->cs = (uint64_t)(mc_thread_pointer() + mc_percpu_kinds[MC_KIND_CID].cs_off);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	for (;;) {
		raise(SIGSTOP);
		if (shared->op >= NR_OPS)
			_exit(0);
		ops[shared->op].run();
		__atomic_store_n(&shared->done, 1, __ATOMIC_SEQ_CST);
	}
}

/* ---- the tracer ------------------------------------------------------------------------------ */

static bool inside(uint64_t at)
{
	for (const struct descriptor *d = __start___mc_rseq_cs; d < __stop___mc_rseq_cs; d++)
		if (at >= d->start && at < d->start + d->len)
			return true;
	return false;
}

/* The addresses inside sequences that the operation runs through. */
static unsigned int trace(unsigned int op, uint64_t *at, unsigned int max)
{
	unsigned int n = 0, i;

	shared->op = op;
	shared->done = 0;
	for (;;) {
		uint64_t here = ip();

		if (shared->done)
			break;
		if (inside(here)) {
			CHECK(!ptrace(PTRACE_POKEDATA, pid, shared->cs, 0), "rseq_cs");
			for (i = 0; i < n && at[i] != here; i++)
				;
			CHECK(i < max, "too many");
			if (i == n)
				at[n++] = here;
		}
		CHECK(!ptrace(PTRACE_SINGLESTEP, pid, 0, 0), "step");
		CHECK(wait_stop() == SIGTRAP, "another signal");
	}
	ptrace(PTRACE_CONT, pid, 0, 0);
	CHECK(wait_stop() == SIGSTOP, "the operation's end");
	return n;
}

/* Runs the operation with a stop at one address; was the sequence aborted? */
static bool inject(unsigned int op, uint64_t at)
{
	bool aborted;

	shared->op = op;
	shared->done = 0;
	CHECK(run_to(at), "%s: the breakpoint at %#llx was not met", ops[op].name,
	      (unsigned long long)at);
	ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
	CHECK(wait_stop() == SIGTRAP, "step");
	aborted = !inside(ip());
	ptrace(PTRACE_CONT, pid, 0, 0);
	CHECK(wait_stop() == SIGSTOP && shared->done, "the operation's end");
	return aborted;
}

int main(void)
{
	unsigned int total = 0, missed = 0;
	uint64_t at[200];
	int status;

	if (syscall(SYS_rseq, NULL, 1, 0, 0) < 0 && errno == ENOSYS)
		test_skip("rseq", "rseq(2) is not there");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED, "mmap");
	pid = fork();
	if (!pid)
		child();
	CHECK(wait_stop() == SIGSTOP, "the child's first stop");
	for (unsigned int op = 0; op < NR_OPS; op++) {
		unsigned int n;

		ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
		CHECK(wait_stop() == SIGTRAP, "step");
		n = trace(op, at, 200);
		CHECK(n >= 3, "%s: only %u instructions inside a sequence", ops[op].name, n);
		for (unsigned int i = 0; i < n; i++)
			missed += !inject(op, at[i]);
		total += n;
	}
	shared->op = NR_OPS;
	ptrace(PTRACE_CONT, pid, 0, 0);
	CHECK(waitpid(pid, &status, 0) == pid && !status, "child: %#x", status);
	printf("%u operations, %u instructions aborted at\n", NR_OPS, total);
	/* The last instruction may be a jump out of the sequence, seen outside for that reason:
	 * never the other way. */
	CHECK(!missed, "%u of %u stops did not abort", missed, total);
	return 0;
}
#endif
