// SPDX-License-Identifier: MIT
/*
 * appear.c - a new mm_cid at every point of allocation, freeing, sum and trim.
 *
 * A child runs one operation at a time; this process traces it. First the operation is
 * single-stepped to learn every address it runs through; then it runs again for each of these, is
 * stopped there, and one of three things happens to its memory, as if other threads had done it:
 *   appear: a thread with an index that was not live raises the mark and adds to an object and a
 *           counter on its copy;
 *   lower:  another thread's trim retires all copies and lowers the mark to nothing (the stop
 *           aborts the sequence that the child may be in, which is what the fence does);
 *   sink:   the same, and one instruction later that trim has come to its end: the mark is up again
 *           and nothing is retired.
 * Usage: appear [N]: only the first N operations (emulated, the steps of trim take long).
 * Whatever the moment, nothing added may be lost and fresh memory is zero on every copy.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <manycore/counter.h>
#include "lib/percpu_internal.h"
#include "skip.h"
#include "tracer.h"

#if !MC_PERCPU_RSEQ
int main(void)
{
	printf("SKIP: this build has no restartable sequences\n");
	return TEST_EXIT_SKIP;
}
#else

enum { STEP = 5, MAX_ADDRESSES = 6000 };

/* Told by the child, or counted by the tracer. */
static struct {
	unsigned int op, started, done;
	int64_t extra; /* added on the other copy so far */
	uint64_t cs, live, retired, sinks, word, total;
	uint32_t own, other;
} * shared;

/* ---- the child ------------------------------------------------------------------------------- */

static int64_t *object, mine, count;
static struct mc_counter counter;

static int64_t sum_object(void)
{
	int64_t sum = 0;
	unsigned int i;

	mc_for_each_percpu_copy(i, object) sum += *mc_per_cpu_ptr(object, i);
	return sum;
}

/* All that was added before must be seen, and nothing that was not. */
static void check_sums(void)
{
	int64_t before = __atomic_load_n(&shared->extra, __ATOMIC_SEQ_CST), after;
	int64_t o = sum_object(), c = mc_counter_sum(&counter);

	after = __atomic_load_n(&shared->extra, __ATOMIC_SEQ_CST);
	CHECK(o >= mine + before && o <= mine + after, "object: %lld, not %lld to %lld",
	      (long long)o, (long long)(mine + before), (long long)(mine + after));
	CHECK(c >= count + before && c <= count + after, "counter: %lld, not %lld to %lld",
	      (long long)c, (long long)(count + before), (long long)(count + after));
}

static void add(void)
{
	mc_this_cpu_inc(object);
	mine++;
	mc_counter_add_batch(&counter, 1, 1);
	count++;
	check_sums();
}

/* An object handed to another thread, written there, freed here, and allocated anew. */
static void allocate(void)
{
	struct mc_percpu_kind *k = MC_HANDLE_KIND_(MC_H_(object));
	int64_t *p = mc_alloc_percpu_size(64, 8), *q;

	CHECK(p, "no memory");
	mc_this_cpu_write(p, 3);
	if (__atomic_load_n(&k->live, __ATOMIC_SEQ_CST) <= shared->other)
		__atomic_store_n(&k->live, shared->other + 1, __ATOMIC_SEQ_CST);
	*mc_per_cpu_ptr(p, shared->other) = 7;
	mc_free_percpu(p);
	q = mc_alloc_percpu_size(64, 8);
	CHECK(q, "no memory");
	CHECK(!*mc_per_cpu_ptr(q, shared->own) && !*mc_per_cpu_ptr(q, shared->other),
	      "fresh memory holds %lld, %lld", (long long)*mc_per_cpu_ptr(q, shared->own),
	      (long long)*mc_per_cpu_ptr(q, shared->other));
	mc_free_percpu(q);
	/* The next run starts from nothing on the other copy. */
	*mc_per_cpu_ptr(p, shared->other) = 0;
}

/* With empty magazines: the refill under the pool's mutex. */
static void refill(void)
{
	CHECK(mc_percpu_trim(NULL) >= 0, "trim");
	allocate();
}

/* The same by the chunks: larger than any magazine serves. */
static void allocate_large(void)
{
	int64_t *p = mc_alloc_percpu_size(2048, 8);

	CHECK(p && !*mc_per_cpu_ptr(p, shared->own) && !*mc_per_cpu_ptr(p, shared->other),
	      "fresh memory");
	mc_this_cpu_write(p, 3);
	mc_free_percpu(p);
}

static void trim(void)
{
	CHECK(mc_percpu_trim(NULL) >= 0, "trim");
	check_sums();
}

static const struct {
	const char *name;
	void (*run)(void);
	bool lower; /* trims exclude each other */
} ops[] = {
	{"add, sum", add, true},
	{"alloc, free", allocate, true},
	{"alloc, free of 2048 bytes", allocate_large, true},
	{"trim, alloc, free", refill, false},
	{"trim", trim, false},
};
enum { NR_OPS = sizeof(ops) / sizeof(*ops) };

static void child(void)
{
	struct mc_percpu_kind *k;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	object = mc_alloc_percpu(int64_t);
	CHECK(object && !mc_counter_init(&counter, 0), "no memory");
	k = MC_HANDLE_KIND_(MC_H_(object));
	mc_this_cpu_inc(object);
	mine = 1;
	shared->own = mc_kind_index_(k);
	shared->other = shared->own ? 0 : 1;
	for (unsigned int i = 0; i < NR_OPS; i++)
		ops[i].run();
	shared->cs = (uint64_t)(mc_thread_pointer() + k->cs_off);
	shared->live = (uint64_t)&k->live;
	shared->retired = (uint64_t)&mc_percpu_default()->retired;
	shared->sinks = (uint64_t)&mc_percpu_default()->sinks;
	shared->word = (uint64_t)mc_per_cpu_ptr(object, shared->other);
	shared->total = (uint64_t)mc_per_cpu_ptr((int64_t *)counter.handle, shared->other);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	for (;;) {
		raise(SIGSTOP);
		if (shared->op >= NR_OPS)
			_exit(0);
		__atomic_store_n(&shared->started, 1, __ATOMIC_SEQ_CST);
		ops[shared->op].run();
		check_sums();
		__atomic_store_n(&shared->done, 1, __ATOMIC_SEQ_CST);
	}
}

/* ---- the tracer ------------------------------------------------------------------------------ */

static void transfer(bool write, uint64_t at, void *p, size_t len)
{
	struct iovec local = {p, len}, remote = {(void *)at, len};
	ssize_t n = write ? process_vm_writev(pid, &local, 1, &remote, 1, 0)
			  : process_vm_readv(pid, &local, 1, &remote, 1, 0);

	CHECK(n == (ssize_t)len, "the child's memory at %#llx", (unsigned long long)at);
}

static uint32_t get32(uint64_t at)
{
	uint32_t v;

	transfer(false, at, &v, sizeof(v));
	return v;
}

static void put32(uint64_t at, uint32_t v)
{
	transfer(true, at, &v, sizeof(v));
}

static void put64(uint64_t at, int64_t v)
{
	transfer(true, at, &v, sizeof(v));
}

/* The other copy was never in use. */
static void reset(unsigned int op)
{
	put64(shared->word, 0);
	put64(shared->total, 0);
	put32(shared->retired, 0);
	put32(shared->live, shared->own + 1);
	shared->extra = 0;
	shared->op = op;
	shared->started = shared->done = 0;
}

static void appear(void)
{
	if (get32(shared->live) <= shared->other)
		put32(shared->live, shared->other + 1);
	put64(shared->word, STEP);
	put64(shared->total, STEP);
	shared->extra = STEP;
}

static void lower(void)
{
	uint32_t live = get32(shared->live);

	if (get32(shared->retired) < live)
		put32(shared->retired, live);
	put32(shared->live, 0);
}

/* The mark has come back to where it was, so that nothing need stay retired. */
static void sink(void)
{
	uint32_t live = get32(shared->live);

	lower();
	CHECK(!ptrace(PTRACE_SINGLESTEP, pid, 0, 0), "step");
	CHECK(wait_stop() == SIGTRAP, "another signal");
	if (get32(shared->live) < live)
		put32(shared->live, live);
	put32(shared->sinks, get32(shared->sinks) + 1);
	put32(shared->retired, 0);
}

static void finish(void)
{
	ptrace(PTRACE_CONT, pid, 0, 0);
	CHECK(wait_stop() == SIGSTOP && shared->done, "%s: the operation's end",
	      ops[shared->op].name);
}

static unsigned int trace(unsigned int op, uint64_t *at)
{
	unsigned int n = 0, i;

	reset(op);
	while (!shared->done) {
		uint64_t here = ip();

		/* So that the stops abort no sequence, which would never end. */
		if (shared->started)
			CHECK(!ptrace(PTRACE_POKEDATA, pid, shared->cs, 0), "rseq_cs");
		for (i = 0; shared->started && i < n && at[i] != here; i++)
			;
		CHECK(i < MAX_ADDRESSES, "too many");
		if (shared->started && i == n)
			at[n++] = here;
		CHECK(!ptrace(PTRACE_SINGLESTEP, pid, 0, 0), "step");
		CHECK(wait_stop() == SIGTRAP, "another signal");
	}
	finish();
	return n;
}

/* How many of the points were met; paths may differ from one run to the next. */
static unsigned int at_each(unsigned int op, const uint64_t *at, unsigned int n,
			    void (*happen)(void))
{
	unsigned int met = 0;

	for (unsigned int i = 0; i < n; i++) {
		reset(op);
		if (run_to(at[i])) {
			happen();
			met++;
			finish();
		}
		/* Else it has run to its end without coming there. */
	}
	return met;
}

int main(int argc, char **argv)
{
	unsigned int nr = argc > 1 ? (unsigned int)atoi(argv[1]) : NR_OPS;
	static uint64_t at[MAX_ADDRESSES];
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
	for (unsigned int op = 0; op < nr && op < NR_OPS; op++) {
		unsigned int n, met;

		/* Once unseen, so that the traced run finds what the later ones will. */
		reset(op);
		finish();
		reset(op);
		ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
		CHECK(wait_stop() == SIGTRAP, "step");
		n = trace(op, at);
		met = at_each(op, at, n, appear);
		printf("%s: a new index at %u of %u instructions", ops[op].name, met, n);
		CHECK(n > 50 && met > n / 2, "\n%s: only %u of %u", ops[op].name, met, n);
		if (ops[op].lower) {
			met = at_each(op, at, n, lower);
			printf(", the mark lowered at %u", met);
			CHECK(met > n / 2, "\n%s: only %u of %u", ops[op].name, met, n);
			met = at_each(op, at, n, sink);
			printf(", and sunk at %u", met);
			CHECK(met > n / 2, "\n%s: only %u of %u", ops[op].name, met, n);
		}
		printf("\n");
	}
	shared->op = NR_OPS;
	ptrace(PTRACE_CONT, pid, 0, 0);
	CHECK(waitpid(pid, &status, 0) == pid && !status, "child: %#x", status);
	return 0;
}
#endif
