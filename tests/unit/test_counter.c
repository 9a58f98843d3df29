// SPDX-License-Identifier: MIT
/*
 * test_counter.c - struct mc_counter: every call of counter.h, the documented errors of read() and
 * compare(), the limit of limited_add() under threads, amounts beyond what a copy can hold back.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <manycore/counter.h>
#include "lib/percpu_internal.h"

enum { THREADS = 4, ROUNDS = 20000 };

/* A pool of each kind of index this process can have; NULL: the default. */
static struct mc_percpu_pool *pools[4];
static unsigned int nr_pools;

static int make_pools(void **state)
{
	struct mc_percpu_attr attr[] = {
		{.mode = MC_PERCPU_CPU_ID}, {.mode = MC_PERCPU_ATOMICS}, {.copies = 1}};

	(void)state;
	nr_pools = 1;
	for (unsigned int i = 0; i < 3; i++) {
		struct mc_percpu_pool *p = mc_percpu_pool_create(&attr[i]);

		if (p)
			pools[nr_pools++] = p;
		else if (errno != EOPNOTSUPP)
			return -1;
	}
	return 0;
}

static int free_pools(void **state)
{
	(void)state;
	for (unsigned int i = 1; i < nr_pools; i++)
		mc_percpu_pool_destroy(pools[i]);
	return 0;
}

/* On one CPU, so that all adds are on one copy in every mode. */
static void pin(cpu_set_t *before)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	sched_getaffinity(0, sizeof(*before), before);
	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Adds and reads of one thread. `tells`: the pool's counters tell every add at once. */
static void check_single(struct mc_percpu_pool *pool, bool tells)
{
	struct mc_counter c;

	assert_int_equal(mc_counter_init_pool(&c, 1, 100, 32, pool), 0);
	assert_true(mc_counter_initialized(&c));
	assert_int_equal(mc_counter_read(&c), 100);
	for (int i = 0; i < 31; i++)
		mc_counter_inc(&c);
	assert_int_equal(mc_counter_read(&c), tells ? 131 : 100);
	assert_int_equal(mc_counter_sum(&c), 131);
	/* |untold + amount| >= batch tells, as the kernel's add_batch. */
	mc_counter_inc(&c);
	assert_int_equal(mc_counter_read(&c), 132);
	mc_counter_sub(&c, 31);
	assert_int_equal(mc_counter_read(&c), tells ? 101 : 132);
	mc_counter_dec(&c);
	assert_int_equal(mc_counter_read(&c), 100);
	mc_counter_add_batch(&c, 5, 5);
	assert_int_equal(mc_counter_read(&c), 105);
	mc_counter_add_batch(&c, 5, 0);
	assert_int_equal(mc_counter_read(&c), 110);
	mc_counter_add_local(&c, 1000);
	mc_counter_sub_local(&c, 400);
	assert_int_equal(mc_counter_read(&c), tells ? 710 : 110);
	assert_int_equal(mc_counter_sum(&c), 710);
	mc_counter_sync(&c);
	assert_int_equal(mc_counter_read(&c), 710);
	mc_counter_set(&c, -5);
	assert_int_equal(mc_counter_read(&c), -5);
	assert_int_equal(mc_counter_sum(&c), -5);
	assert_int_equal(mc_counter_read_positive(&c), 0);
	assert_int_equal(mc_counter_sum_positive(&c), 0);
	mc_counter_inc(&c);
	assert_int_equal(mc_counter_sum(&c), -4);
	mc_counter_set_batch(&c, 1);
	mc_counter_inc(&c);
	assert_int_equal(mc_counter_read(&c), -3);
	mc_counter_destroy(&c);
	assert_false(mc_counter_initialized(&c));
	mc_counter_destroy(&c);
}

static void test_single(void **state)
{
	cpu_set_t before;

	(void)state;
	pin(&before);
	for (unsigned int i = 0; i < nr_pools; i++)
		check_single(pools[i], pools[i] && pools[i]->index_kind == MC_KIND_CALL);
	sched_setaffinity(0, sizeof(before), &before);
}

/* Amounts that 32 bits of untold part can't hold, on both sides of each edge. */
static void test_large(void **state)
{
	static const int64_t amounts[] = {1 << 29,        (1 << 29) + 1,    -(1 << 29),
					  -(1 << 29) - 1, INT64_C(1) << 40, INT32_MAX,
					  INT32_MIN,      INT64_MAX};

	(void)state;
	for (unsigned int p = 0; p < nr_pools; p++) {
		struct mc_counter c;
		uint64_t want = 3;

		assert_int_equal(mc_counter_init_pool(&c, 1, 3, MC_COUNTER_LOCAL_BATCH, pools[p]),
				 0);
		for (unsigned int k = 0; k < 3; k++)
			for (unsigned int i = 0; i < sizeof(amounts) / sizeof(*amounts); i++) {
				mc_counter_add(&c, amounts[i]);
				want += (uint64_t)amounts[i];
				assert_int_equal(mc_counter_sum(&c), (int64_t)want);
				mc_counter_add_local(&c, (1 << 29) - 1);
				want += (1 << 29) - 1;
				assert_int_equal(mc_counter_sum(&c), (int64_t)want);
			}
		/* The error of the largest batch, over every copy in use. */
		assert_true((uint64_t)llabs(mc_counter_read(&c) - (int64_t)want) <
			    (UINT64_C(1) << 29) * mc_percpu_copies((void *)c.handle));
		mc_counter_destroy(&c);
	}
}

static void test_many(void **state)
{
	struct mc_counter c[5];

	(void)state;
	assert_int_equal(mc_counter_init_many(c, 5, 7), 0);
	for (int i = 0; i < 5; i++)
		mc_counter_add(&c[i], i);
	for (int i = 0; i < 5; i++)
		assert_int_equal(mc_counter_sum(&c[i]), 7 + i);
	mc_counter_destroy_many(c, 5);
	for (int i = 0; i < 5; i++)
		assert_false(mc_counter_initialized(&c[i]));
	assert_int_equal(mc_counter_init_many(c, 0, 0), -EINVAL);
	assert_int_equal(mc_counter_init_pool(c, 1, 0, MC_COUNTER_LOCAL_BATCH + 1u, NULL), -EINVAL);
	assert_int_equal(mc_counter_init_many(c, 1u << 31, 0), -EINVAL);
}

/* compare() against the exact value, all around the edge of where it must sum. */
static void test_compare(void **state)
{
	(void)state;
	for (unsigned int p = 0; p < nr_pools; p++) {
		struct mc_counter c;
		int64_t exact;

		assert_int_equal(mc_counter_init_pool(&c, 1, 0, 16, pools[p]), 0);
		for (int i = 0; i < 1000; i++)
			mc_counter_add(&c, 7);
		mc_counter_add_local(&c, 9);
		exact = 7009;
		for (int64_t d = -400; d <= 400; d++) {
			int want = d > 0 ? -1 : d < 0;

			assert_int_equal(mc_counter_compare(&c, exact + d), want);
			assert_int_equal(mc_counter_compare_batch(&c, exact + d, 16), want);
		}
		assert_int_equal(mc_counter_compare(&c, INT64_MAX), -1);
		assert_int_equal(mc_counter_compare(&c, INT64_MIN), 1);
		mc_counter_destroy(&c);
	}
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* One thread: each answer against plain arithmetic, in both directions and at the edges. */
static void test_limit_exact(void **state)
{
	static const int64_t steps[] = {1, 5, 31, 32, 33, 64, 1000};

	(void)state;
	for (unsigned int p = 0; p < nr_pools; p++)
		for (unsigned int s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
			struct mc_counter c;
			int64_t value = 0;

			assert_int_equal(mc_counter_init_pool(&c, 1, 0, 32, pools[p]), 0);
			for (int i = 0; i < 1200; i++) {
				bool up = i / 300 % 2 == 0;
				int64_t limit = up ? 700 : -300, by = up ? steps[s] : -steps[s];
				bool want = up ? value + by <= limit : value + by >= limit;

				assert_int_equal(mc_counter_limited_add(&c, limit, by), want);
				value += want ? by : 0;
				assert_int_equal(mc_counter_sum(&c), value);
			}
			/* Beyond already: nothing more that way, anything back. */
			mc_counter_set(&c, 100);
			assert_false(mc_counter_limited_add(&c, 50, 1));
			assert_true(mc_counter_limited_add(&c, 50, -50));
			assert_true(mc_counter_limited_add(&c, 0, 0));
			mc_counter_set(&c, INT64_MAX - 1);
			assert_false(mc_counter_limited_add(&c, INT64_MAX, 2));
			assert_true(mc_counter_limited_add(&c, INT64_MAX, 1));
			assert_false(mc_counter_limited_add(&c, INT64_MAX, 1));
			mc_counter_set(&c, INT64_MIN + 1);
			assert_false(mc_counter_limited_add(&c, INT64_MIN, -2));
			assert_true(mc_counter_limited_add(&c, INT64_MIN, -1));
			mc_counter_destroy(&c);
		}
}

static struct {
	struct mc_counter c;
	int64_t limit, added;
	unsigned int passed;
	bool subs;
	int stop;
} limited;

static void *limited_thread(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	int64_t mine = 0;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t by = 1 + rand_r(&seed) % 40;

		if (limited.subs && mine && rand_r(&seed) % 4 == 0) {
			mc_counter_sub(&limited.c, mine);
			mine = 0;
		} else if (mc_counter_limited_add(&limited.c, limited.limit, by)) {
			mine += by;
		}
	}
	__atomic_fetch_add(&limited.added, mine, __ATOMIC_RELAXED);
	return NULL;
}

/* What has been taken is at most the limit at every moment. Only where nothing is taken back: a sum
 * that has seen an add on one copy and not yet a subtraction on another is above any true value. */
static void *limited_watch(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&limited.stop, __ATOMIC_ACQUIRE))
		limited.passed += !limited.subs && mc_counter_sum(&limited.c) > limited.limit;
	return NULL;
}

static void test_limit_threads(void **state)
{
	static const struct {
		int64_t limit;
		bool subs;
	} runs[] = {{100, true}, {1000, false}, {20000, false}, {1000, true}, {1000000, true}};
	pthread_t id[THREADS], watch;

	(void)state;
	for (unsigned int p = 0; p < nr_pools; p++)
		for (unsigned int l = 0; l < sizeof(runs) / sizeof(*runs); l++) {
			limited.limit = runs[l].limit;
			limited.subs = runs[l].subs;
			limited.added = limited.passed = limited.stop = 0;
			assert_int_equal(mc_counter_init_pool(&limited.c, 1, 0, 8, pools[p]), 0);
			assert_int_equal(pthread_create(&watch, NULL, limited_watch, NULL), 0);
			for (uintptr_t i = 0; i < THREADS; i++)
				assert_int_equal(pthread_create(&id[i], NULL, limited_thread,
								(void *)(i + 1)),
						 0);
			for (unsigned int i = 0; i < THREADS; i++)
				pthread_join(id[i], NULL);
			__atomic_store_n(&limited.stop, 1, __ATOMIC_RELEASE);
			pthread_join(watch, NULL);
			assert_int_equal(limited.passed, 0);
			assert_int_equal(mc_counter_sum(&limited.c), limited.added);
			assert_true(limited.added <= limited.limit);
			/* Close to the limit, every unit of it can be had. */
			if (limited.limit < 1000000)
				while (mc_counter_limited_add(&limited.c, limited.limit, 1))
					limited.added++;
			assert_true(limited.limit == 1000000 || limited.added == limited.limit);
			mc_counter_destroy(&limited.c);
		}
}

/* ---- the error of read() under threads ------------------------------------------------------- */

static void *adder(void *arg)
{
	struct mc_counter *c = arg;

	for (int i = 0; i < ROUNDS; i++)
		mc_counter_add(c, 1 + i % 3);
	return NULL;
}

static void test_error(void **state)
{
	(void)state;
	for (unsigned int p = 0; p < nr_pools; p++) {
		struct mc_counter c;
		pthread_t id[THREADS];
		int64_t sum = 0, before = 0;

		assert_int_equal(mc_counter_init_pool(&c, 1, 0, 50, pools[p]), 0);
		for (unsigned int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&id[i], NULL, adder, &c), 0);
		/* A counter that only grows never seems to shrink to a sum. */
		for (int i = 0; i < 1000; i++) {
			sum = mc_counter_sum(&c);
			assert_true(sum >= before);
			before = sum;
		}
		for (unsigned int i = 0; i < THREADS; i++)
			pthread_join(id[i], NULL);
		sum = mc_counter_sum(&c);
		assert_int_equal(sum, THREADS * (ROUNDS / 3 * 6 + 1 + 2));
		assert_true(llabs(sum - mc_counter_read(&c)) <
			    50 * (int64_t)mc_percpu_copies((void *)c.handle));
		mc_counter_destroy(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single),      cmocka_unit_test(test_large),
		cmocka_unit_test(test_many),        cmocka_unit_test(test_compare),
		cmocka_unit_test(test_limit_exact), cmocka_unit_test(test_limit_threads),
		cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, make_pools, free_pools);
}
