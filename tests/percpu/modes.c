// SPDX-License-Identifier: MIT
/*
 * modes.c - every operation in the mode that this process has; meson.build runs the same program in
 * each.
 *
 * Usage: modes cid|own|atomics. The first argument is what mc_percpu_mode() must tell: the
 * registration of the C library with mm_cid, or without, our own, or none.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <manycore/counter.h>
#include <manycore/percpu.h>
#include <sys/syscall.h>
#include "skip.h"
#include "check.h"

enum { THREADS = 6, SLOTS = 64 };

/* Pools of every kind of index that this process can have; [0] is the default pool. */
static struct mc_percpu_pool *pools[5];
static unsigned int nr_pools;

static void make_pools(const char *want)
{
	struct mc_percpu_attr attr[4] = {
		{.mode = MC_PERCPU_CPU_ID},
		{.mode = MC_PERCPU_ATOMICS},
		{.copies = 1},
		{.copies = 300, .unit_size = 4096, .flags = MC_PERCPU_NO_MAGAZINE}};
	const char *why;
	enum mc_percpu_mode mode = mc_percpu_mode(NULL, &why);

	printf("mode %d: %s\n", mode, why);
	if (!strcmp(want, "atomics")) {
		CHECK(mode == MC_PERCPU_ATOMICS, "%s", why);
		CHECK(!mc_percpu_pool_create(&attr[0]) && errno == EOPNOTSUPP,
		      "CPU ids without rseq");
	} else {
		CHECK(mode == MC_PERCPU_MM_CID || (mode == MC_PERCPU_CPU_ID && strstr(why, "6.3")),
		      "%s", why);
		CHECK(!strstr(why, "own") == !!strcmp(want, "own"), "%s", why);
	}
	nr_pools = 1;
	for (unsigned int i = 0; i < 4; i++) {
		struct mc_percpu_pool *p = mc_percpu_pool_create(&attr[i]);

		if (!p && !i && !strcmp(want, "atomics"))
			continue;
		CHECK(p, "pool %u: %s", i, strerror(errno));
		pools[nr_pools++] = p;
	}
}

static uint64_t total64(const uint64_t *h)
{
	uint64_t sum = 0;
	unsigned int i;

	mc_for_each_percpu_copy(i, h) sum +=
		__atomic_load_n(mc_per_cpu_ptr(h, i), __ATOMIC_RELAXED);
	return sum;
}

/* ---- one thread on one CPU: what each operation does to a word, and that it leaves its neighbours
 * alone ---------------- */

#define SINGLE(type)                                                                              \
	static void single_##type(struct mc_percpu_pool *pool)                                    \
	{                                                                                         \
		type *h = mc_percpu_pool_alloc(pool, 3 * sizeof(type), sizeof(type)), *w, v, old; \
                                                                                                  \
		CHECK(h, "no memory");                                                            \
		w = h + 1;                                                                        \
		mc_this_cpu_write(h, (type)-1);                                                   \
		mc_this_cpu_write(h + 2, (type)-1);                                               \
		CHECK(mc_this_cpu_read(w) == 0, "fresh memory");                                  \
		mc_this_cpu_write(w, (type)0x8182838485868788ull);                                \
		v = (type)0x8182838485868788ull;                                                  \
		CHECK(mc_this_cpu_read(w) == v, "write");                                         \
		CHECK(*mc_this_cpu_ptr(w) == v, "ptr");                                           \
		mc_this_cpu_add(w, (type)0x7f7f7f7f7f7f7f7full);                                  \
		v = (type)(v + (type)0x7f7f7f7f7f7f7f7full);                                      \
		CHECK(mc_this_cpu_read(w) == v, "add wraps");                                     \
		mc_this_cpu_sub(w, 3);                                                            \
		mc_this_cpu_inc(w);                                                               \
		mc_this_cpu_dec(w);                                                               \
		mc_this_cpu_inc(w);                                                               \
		v = (type)(v - 2);                                                                \
		CHECK(mc_this_cpu_read(w) == v, "sub, inc, dec");                                 \
		mc_this_cpu_and(w, (type)~0x33ull);                                               \
		v = (type)(v & ~0x33ull);                                                         \
		CHECK(mc_this_cpu_read(w) == v, "and");                                           \
		mc_this_cpu_or(w, (type)0x55ull);                                                 \
		v = (type)(v | 0x55ull);                                                          \
		CHECK(mc_this_cpu_read(w) == v, "or");                                            \
		v = (type)(v + 200);                                                              \
		CHECK(mc_this_cpu_add_return(w, 200) == v, "add_return");                         \
		v = (type)(v - 1);                                                                \
		CHECK(mc_this_cpu_dec_return(w) == v, "dec_return");                              \
		v = (type)(v - 7);                                                                \
		CHECK(mc_this_cpu_sub_return(w, 7) == v, "sub_return");                           \
		CHECK(mc_this_cpu_xchg(w, 9) == v, "xchg");                                       \
		CHECK(mc_this_cpu_cmpxchg(w, 8, 10) == 9, "cmpxchg that fails");                  \
		CHECK(mc_this_cpu_read(w) == 9, "stored nothing");                                \
		CHECK(mc_this_cpu_cmpxchg(w, 9, 10) == 9, "cmpxchg");                             \
		old = 3;                                                                          \
		CHECK(!mc_this_cpu_try_cmpxchg(w, &old, 4) && old == 10,                          \
		      "try_cmpxchg that fails");                                                  \
		CHECK(mc_this_cpu_try_cmpxchg(w, &old, 4) && mc_this_cpu_read(w) == 4,            \
		      "try_cmpxchg");                                                             \
		CHECK(mc_this_cpu_read(h) == (type)-1 && mc_this_cpu_read(h + 2) == (type)-1,     \
		      "neighbours");                                                              \
		mc_free_percpu(h);                                                                \
	}
SINGLE(uint8_t)
SINGLE(uint16_t)
SINGLE(uint32_t)
SINGLE(uint64_t)

static void single(void)
{
	cpu_set_t one, before;
	void **pointers;
	int cpu = sched_getcpu();

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (unsigned int i = 0; i < nr_pools; i++) {
		single_uint8_t(pools[i]);
		single_uint16_t(pools[i]);
		single_uint32_t(pools[i]);
		single_uint64_t(pools[i]);
	}
	pointers = mc_alloc_percpu(void *);
	CHECK(mc_this_cpu_xchg(pointers, &one) == NULL && mc_this_cpu_xchg(pointers, NULL) == &one,
	      "pointers");
	/* The exported twins. */
	mc_percpu_add_64(pointers, 5);
	CHECK(mc_percpu_read_64(pointers) == 5 && mc_percpu_xchg_64(pointers, 0) == 5, "symbols");
	CHECK(mc_percpu_copy(pointers, 1) == (void *)mc_per_cpu_ptr(pointers, 1), "symbols: copy");
	CHECK(mc_percpu_own(pointers) == (void *)mc_this_cpu_ptr(pointers), "symbols: own");
	mc_free_percpu(pointers);
	sched_setaffinity(0, sizeof(before), &before);
}

/* ---- many threads and signals: nothing may be lost or counted twice
 * ---------------------------------------------------------- */

struct words {
	uint64_t add, by_cas, by_return, by_signal;
	uint32_t narrow;
	uint16_t half;
	uint8_t byte, lock;
	uint64_t token, other;
};

static struct storm {
	struct words *h[5];
	struct mc_counter counter[5];
	unsigned long rounds;
	pthread_t id[THREADS];
	uint64_t signals, signal_adds, tokens_out;
	int stop;
} storm;

static void handler(int sig)
{
	(void)sig;
	for (unsigned int i = 0; i < nr_pools; i++) {
		mc_this_cpu_add(&storm.h[i]->by_signal, 3);
		mc_this_cpu_inc(&storm.h[i]->add);
		mc_counter_add(&storm.counter[i], 2);
	}
	__atomic_fetch_add(&storm.signal_adds, 1, __ATOMIC_RELAXED);
}

static void *storm_thread(void *arg)
{
	(void)arg;
	for (unsigned long n = 0; n < storm.rounds; n++) {
		for (unsigned int i = 0; i < nr_pools; i++) {
			struct words *h = storm.h[i];
			uint64_t old = mc_this_cpu_read(&h->by_cas);

			mc_this_cpu_inc(&h->add);
			mc_this_cpu_add(&h->narrow, 7);
			mc_this_cpu_sub(&h->half, 1);
			mc_this_cpu_inc(&h->byte);
			mc_this_cpu_add_return(&h->by_return, 5);
			while (!mc_this_cpu_try_cmpxchg(&h->by_cas, &old, old + 1))
				;
			mc_counter_inc(&storm.counter[i]);
			/* Carried from one word to another: in the end each unit put in is
			 * somewhere. */
			mc_this_cpu_inc(&h->token);
			mc_this_cpu_add(&h->other, mc_this_cpu_xchg(&h->token, 0));
		}
		if (n % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void *storm_signals(void *arg)
{
	struct timespec pause = {0, 20000};

	(void)arg;
	while (!__atomic_load_n(&storm.stop, __ATOMIC_ACQUIRE)) {
		for (unsigned int i = 0; i < THREADS; i++)
			storm.signals += !pthread_kill(storm.id[i], SIGUSR1);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Lowers the live marks again and again, so that indices appear anew at every point of the others.
 */
static void *storm_trims(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&storm.stop, __ATOMIC_ACQUIRE)) {
		for (unsigned int i = 0; i < nr_pools; i++)
			mc_percpu_trim(pools[i]);
		sched_yield();
	}
	return NULL;
}

#define SUM(h, field)                                                              \
	__extension__({                                                            \
		__typeof__((h)->field) sum_ = 0;                                   \
		unsigned int i_;                                                   \
		mc_for_each_percpu_copy(i_, (h)) sum_ =                            \
			(__typeof__(sum_))(sum_ + mc_per_cpu_ptr((h), i_)->field); \
		sum_;                                                              \
	})

static void storms(void)
{
	struct sigaction sa = {.sa_handler = handler};
	pthread_t signals, trims;
	uint64_t n, s;

	storm.rounds = scaled(200000);
	for (unsigned int i = 0; i < nr_pools; i++) {
		storm.h[i] = mc_percpu_pool_alloc(pools[i], sizeof(struct words), 8);
		CHECK(storm.h[i], "no memory");
		CHECK(!mc_counter_init_pool(&storm.counter[i], 1, 1000, 32, pools[i]), "counter");
	}
	sigaction(SIGUSR1, &sa, NULL);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&storm.id[i], NULL, storm_thread, NULL), "thread");
	pthread_create(&signals, NULL, storm_signals, NULL);
	pthread_create(&trims, NULL, storm_trims, NULL);
	/* Ids stay valid until the threads are joined: signals to one that ended already are
	 * dropped. */
	usleep((useconds_t)scaled(300000));
	__atomic_store_n(&storm.stop, 1, __ATOMIC_RELEASE);
	pthread_join(signals, NULL);
	pthread_join(trims, NULL);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(storm.id[i], NULL);
	n = THREADS * storm.rounds;
	s = storm.signal_adds;
	printf("storm: %llu operations of each kind and pool, %llu signals handled\n",
	       (unsigned long long)n, (unsigned long long)s);
	for (unsigned int i = 0; i < nr_pools; i++) {
		struct words *h = storm.h[i];
		int64_t read = mc_counter_read(&storm.counter[i]),
			sum = mc_counter_sum(&storm.counter[i]);

		CHECK(SUM(h, add) == n + s, "pool %u: %llu of %llu", i,
		      (unsigned long long)SUM(h, add), (unsigned long long)(n + s));
		CHECK(SUM(h, by_signal) == 3 * s, "pool %u", i);
		CHECK(SUM(h, narrow) == (uint32_t)(7 * n), "pool %u", i);
		CHECK(SUM(h, half) == (uint16_t)-n, "pool %u", i);
		CHECK(SUM(h, byte) == (uint8_t)n, "pool %u", i);
		CHECK(SUM(h, by_return) == 5 * n, "pool %u", i);
		CHECK(SUM(h, by_cas) == n, "pool %u", i);
		CHECK(SUM(h, token) + SUM(h, other) == n, "pool %u", i);
		CHECK(sum == (int64_t)(1000 + n + 2 * s), "counter %u: %lld", i, (long long)sum);
		/* Nothing runs now: the error is less than batch per copy in use. */
		CHECK(llabs(sum - read) < 32 * (long long)mc_percpu_copies(h),
		      "counter %u: read %lld of %lld", i, (long long)read, (long long)sum);
		mc_free_percpu(h);
		mc_counter_destroy(&storm.counter[i]);
	}
}

/* ---- allocation by many threads, freed by others
 * --------------------------------------------------------------------------- */

static struct {
	void *slot[SLOTS];
	unsigned long rounds;
	struct mc_percpu_pool *pool;
	unsigned int seed;
} market;

static void *market_thread(void *arg)
{
	unsigned int seed = __atomic_add_fetch(&market.seed, 12345, __ATOMIC_RELAXED);

	(void)arg;
	for (unsigned long n = 0; n < market.rounds; n++) {
		size_t size = (size_t)1 << (rand_r(&seed) % 9), words;
		uint64_t *h, *old;
		unsigned int i;

		size += (size_t)rand_r(&seed) % size;
		h = mc_percpu_pool_alloc(market.pool, size, 1);
		CHECK(h, "no memory");
		words = size / 8;
		mc_for_each_percpu_copy(i, h) for (size_t w = 0; w < words; w++)
			CHECK(!mc_per_cpu_ptr(h, i)[w], "copy %u, word %zu of %zu is not zero", i,
			      w, words);
		for (size_t w = 0; w < words; w++)
			mc_this_cpu_inc(h + w);
		old = __atomic_exchange_n(&market.slot[rand_r(&seed) % SLOTS], h, __ATOMIC_ACQ_REL);
		mc_free_percpu(old);
	}
	return NULL;
}

static void markets(void)
{
	for (unsigned int p = 0; p < nr_pools; p++) {
		struct mc_percpu_stats before, after;
		pthread_t id[THREADS], trims;

		mc_percpu_pool_stats(pools[p], &before);
		market.pool = pools[p];
		market.rounds = scaled(20000);
		__atomic_store_n(&storm.stop, 0, __ATOMIC_RELEASE);
		pthread_create(&trims, NULL, storm_trims, NULL);
		for (unsigned int i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&id[i], NULL, market_thread, NULL), "thread");
		for (unsigned int i = 0; i < THREADS; i++)
			pthread_join(id[i], NULL);
		__atomic_store_n(&storm.stop, 1, __ATOMIC_RELEASE);
		pthread_join(trims, NULL);
		for (unsigned int i = 0; i < SLOTS; i++) {
			mc_free_percpu(market.slot[i]);
			market.slot[i] = NULL;
		}
		mc_percpu_trim(pools[p]);
		mc_percpu_pool_stats(pools[p], &after);
		CHECK(after.nr_cur_alloc - after.magazine_objects ==
			      before.nr_cur_alloc - before.magazine_objects,
		      "pool %u: %llu objects and %llu in magazines left", p,
		      (unsigned long long)after.nr_cur_alloc,
		      (unsigned long long)after.magazine_objects);
	}
}

/* ---- threads by the thousand, fork, static objects
 * ---------------------------------------------------------------------------- */

static uint64_t *thousand;

static void *short_lived(void *arg)
{
	void *p = mc_alloc_percpu_size(40, 8);

	(void)arg;
	mc_this_cpu_inc(thousand);
	mc_free_percpu(p);
	return NULL;
}

static void thousands(void)
{
	unsigned long batches = scaled(30);
	pthread_t id[100];

	thousand = mc_alloc_percpu(uint64_t);
	for (unsigned long b = 0; b < batches; b++) {
		for (unsigned int i = 0; i < 100; i++)
			CHECK(!pthread_create(&id[i], NULL, short_lived, NULL), "thread");
		for (unsigned int i = 0; i < 100; i++)
			pthread_join(id[i], NULL);
	}
	CHECK(total64(thousand) == batches * 100, "%llu", (unsigned long long)total64(thousand));
	mc_free_percpu(thousand);
}

static MC_DEFINE_PER_CPU(uint64_t, hits);

static void *fork_noise(void *arg)
{
	while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE)) {
		void *p = mc_alloc_percpu_size(24, 8);

		mc_this_cpu_inc((uint64_t *)p);
		mc_free_percpu(p);
	}
	return NULL;
}

static void forks(void)
{
	int stop = 0, status;
	pthread_t noise[2];

	CHECK(!mc_static_percpu_init(&hits), "static");
	for (int i = 0; i < 2; i++)
		pthread_create(&noise[i], NULL, fork_noise, &stop);
	for (unsigned long n = 0; n < scaled(40); n++) {
		uint64_t before = total64(mc_static_percpu(&hits));
		pid_t pid;

		mc_this_cpu_inc(mc_static_percpu(&hits));
		pid = fork();
		if (!pid) {
			void *p[200];

			for (unsigned int i = 0; i < 200; i++) {
				p[i] = mc_alloc_percpu_size(1 + i, 1);
				if (!p[i])
					_exit(2);
			}
			mc_this_cpu_add(mc_static_percpu(&hits), 10);
			if (total64(mc_static_percpu(&hits)) != before + 11)
				_exit(3);
			mc_free_percpu_many(200, p);
			mc_percpu_trim(NULL);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && !status, "child: status %#x", status);
		CHECK(total64(mc_static_percpu(&hits)) == before + 1, "the child's are its own");
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(noise[i], NULL);
}

/* ---- processes on one shared pool ------------------------------------------------------------ */

static int attached(int fd, uint64_t offset, unsigned long rounds)
{
	struct mc_percpu_pool *pool;
	uint64_t *h;

	if (mc_percpu_pool_attach(fd, 0, &pool))
		return 10;
	h = mc_percpu_at(pool, offset);
	for (unsigned long n = 0; n < rounds; n++) {
		uint64_t old = mc_this_cpu_read(h + 1);

		mc_this_cpu_inc(h);
		while (!mc_this_cpu_try_cmpxchg(h + 1, &old, old + 1))
			;
		if (n % 100 == 0)
			sched_yield();
	}
	mc_percpu_pool_destroy(pool);
	return 0;
}

/* More writers than CPUs, none of which may lose an update to another, whichever CPU each is on. */
static void shareds(void)
{
	struct mc_percpu_attr attr = {.unit_size = 4096};
	unsigned long rounds = scaled(400000);
	struct mc_percpu_pool *pool, *reader;
	uint64_t *h, offset;
	pid_t pid[4];
	int status;

	attr.fd = memfd_create("modes", 0);
	pool = mc_percpu_pool_create_shared(&attr);
	CHECK(pool, "shared pool: %s", strerror(errno));
	h = mc_percpu_pool_alloc(pool, 16, 8);
	CHECK(h, "no memory");
	offset = mc_percpu_offset(h);
	for (unsigned int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(attached(attr.fd, offset, rounds));
	}
	for (unsigned long n = 0; n < rounds; n++)
		mc_this_cpu_inc(h);
	for (unsigned int i = 0; i < 4; i++)
		CHECK(waitpid(pid[i], &status, 0) == pid[i] && !status, "writer: %#x", status);
	CHECK(!mc_percpu_pool_attach(attr.fd, MC_PERCPU_READ_ONLY, &reader), "reader");
	CHECK(total64(mc_percpu_at(reader, offset)) == 5 * rounds, "%llu of %lu",
	      (unsigned long long)total64(mc_percpu_at(reader, offset)), 5 * rounds);
	CHECK(total64((uint64_t *)mc_percpu_at(reader, offset) + 1) == 4 * rounds, "cmpxchg");
	mc_percpu_pool_destroy(reader);
	mc_percpu_pool_destroy(pool);
	close(attr.fd);
}

#if defined(__SANITIZE_THREAD__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WATCHED 1
#endif
#endif

int main(int argc, char **argv)
{
	const char *want = argc > 1 ? argv[1] : "cid";

#ifdef WATCHED
	want = "atomics";
#endif
#ifdef SYS_rseq
	/* Rubbish arguments: EINVAL where the call exists. */
	if (strcmp(want, "atomics") && syscall(SYS_rseq, NULL, 1, 0, 0) < 0 && errno == ENOSYS)
		test_skip("rseq", "rseq(2) is not there");
#endif
	make_pools(want);
	single();
	storms();
	markets();
	thousands();
	forks();
	shareds();
	for (unsigned int i = 1; i < nr_pools; i++)
		mc_percpu_pool_destroy(pools[i]);
	return 0;
}
