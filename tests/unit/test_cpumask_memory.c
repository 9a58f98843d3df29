// SPDX-License-Identifier: MIT
/*
 * test_cpumask_memory.c - where masks live, and what the system gives: scope masks on a small
 * thread stack, views, the constant masks, cpu_set_t, affinity, atomics from several threads, the
 * searches by distance.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/topology.h>

/* ---- scope masks ----------------------------------------------------------------------------- */

enum { PAINT = 0xa5, STACK = 64 * 1024 };

static int scope(unsigned int nbits)
{
	MC_CPUMASK_VAR_BITS(a, nbits);
	MC_CPUMASK_VAR_BITS(b, nbits);
	MC_NODEMASK_VAR_BITS(n, nbits);

	if (!a || !b || !n)
		return -ENOMEM;
	if (mc_cpumask_weight(a) || !mc_nodemask_empty(n))
		return -EIO;
	mc_cpumask_setall(a);
	mc_cpumask_andnot(b, a, mc_cpumask_of(0));
	return (int)mc_cpumask_weight(b);
}

static void *on_small_stack(void *arg)
{
	unsigned int nbits = *(unsigned int *)arg;

	return (void *)(intptr_t)scope(nbits);
}

/* Masks of any size on a thread of the least stack; what they used of it is seen by its paint. */
static void test_small_stack(void **unused)
{
	static const unsigned int sizes[] = {1, 64, 65, 1024, 1025, 8192, 65536, 1u << 20};
	size_t used[sizeof(sizes) / sizeof(sizes[0])];

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned int nbits = sizes[i];
		pthread_attr_t attr;
		pthread_t thread;
		void *result;

		assert_true(stack != MAP_FAILED);
		memset(stack, PAINT, STACK);
		pthread_attr_init(&attr);
		assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
		assert_int_equal(pthread_create(&thread, &attr, on_small_stack, &nbits), 0);
		pthread_join(thread, &result);
		pthread_attr_destroy(&attr);
		assert_int_equal((intptr_t)result, nbits - 1);
		for (used[i] = STACK; used[i] && stack[STACK - used[i]] == PAINT;)
			used[i]--;
		assert_true(used[i] < STACK);
		munmap(stack, STACK);
	}
	/* A mask of a million bits takes no more of the stack than one of 1024. */
	assert_true(used[7] < used[3] + 4096);
}

static void test_sizes_refused(void **unused)
{
	(void)unused;
	errno = 0;
	assert_null(mc_cpumask_alloc_bits(UINT_MAX));
	assert_int_equal(errno, EINVAL);
	mc_cpumask_free(NULL);
	mc_nodemask_free(NULL);
}

/* ---- memory of others ------------------------------------------------------------------------ */

static void test_embedded(void **unused)
{
	for (unsigned int nbits = 1; nbits < 300; nbits += 7) {
		size_t size = mc_cpumask_size_bits(nbits);
		unsigned char *memory = malloc(size + 16);
		struct mc_cpumask *m;

		memset(memory, PAINT, size + 16);
		m = mc_cpumask_init(memory, nbits);
		assert_true(mc_cpumask_empty(m));
		mc_cpumask_setall(m);
		assert_int_equal(mc_cpumask_weight(m), nbits);
		for (size_t i = size; i < size + 16; i++)
			assert_int_equal(memory[i], PAINT);
		free(memory);
	}
	(void)unused;
}

static void test_cpu_set(void **unused)
{
	union mc_cpumask_cpuset u;
	struct mc_cpumask view, *wide = mc_cpumask_alloc_bits(2000),
				*small = mc_cpumask_alloc_bits(10);
	cpu_set_t set;

	(void)unused;
	CPU_ZERO(&set);
	CPU_SET(3, &set);
	CPU_SET(1000, &set);
	mc_cpumask_wrap(&view, &set, CPU_SETSIZE);
	assert_int_equal(mc_cpumask_weight(&view), 2);
	assert_int_equal(mc_cpumask_next(3, &view), 1000);
	mc_cpumask_setall(small);
	mc_cpumask_and(small, small, &view); /* a small mask and a view */
	assert_int_equal(mc_cpumask_weight(small), 1);
	assert_true(mc_cpumask_test(small, 3));
	mc_cpumask_setall(small);
	assert_int_equal(mc_cpumask_from_cpuset(small, &set, sizeof(set)), -EOVERFLOW);
	assert_true(mc_cpumask_full(small));
	assert_int_equal(mc_cpumask_from_cpuset(wide, &set, sizeof(set)), 0);
	assert_true(mc_cpumask_equal(wide, &view));
	assert_int_equal(mc_cpumask_from_cpuset(wide, &set, 7), -EINVAL);
	mc_cpumask_set(wide, 1999);
	assert_int_equal(mc_cpumask_to_cpuset(&set, sizeof(set), wide), -EOVERFLOW);
	assert_true(CPU_ISSET(3, &set));
	mc_cpumask_clear(wide, 1999);
	mc_cpumask_clear(wide, 3);
	assert_int_equal(mc_cpumask_to_cpuset(&set, sizeof(set), wide), 0);
	assert_true(CPU_COUNT(&set) == 1 && CPU_ISSET(1000, &set));

	mc_cpumask_init(&u, CPU_SETSIZE);
	mc_cpumask_set(&u.mask, 700);
	assert_true(CPU_COUNT(&u.as.set) == 1 && CPU_ISSET(700, &u.as.set));
	CPU_SET(70, &u.as.set);
	assert_int_equal(mc_cpumask_first(&u.mask), 70);
	mc_cpumask_free(wide);
	mc_cpumask_free(small);
}

static void test_constant_masks(void **unused)
{
	unsigned int nr = mc_nr_cpu_ids();

	(void)unused;
	assert_true(nr >= 1);
	for (unsigned int cpu = 0; cpu < nr; cpu++) {
		const struct mc_cpumask *m = mc_cpumask_of(cpu);

		assert_int_equal(m->nbits, nr);
		assert_int_equal(mc_cpumask_weight(m), 1);
		assert_int_equal(mc_cpumask_first(m), cpu);
		assert_ptr_equal(m, mc_cpumask_of(cpu));
	}
	for (unsigned int cpu = nr; cpu < nr + 200; cpu++)
		assert_true(mc_cpumask_empty(mc_cpumask_of(cpu)));
	assert_true(mc_cpumask_empty(mc_cpumask_of(UINT_MAX)));
}

/* ---- affinity -------------------------------------------------------------------------------- */

static void test_affinity(void **unused)
{
	struct mc_cpumask *was = mc_cpumask_alloc_bits(70000), *got = mc_cpumask_alloc(),
			  *none = mc_cpumask_alloc_bits(0);
	struct mc_cpumask *far = mc_cpumask_alloc_bits(70000);
	cpu_set_t set;

	(void)unused;
	assert_int_equal(mc_cpumask_getaffinity(was, 0), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(mc_cpumask_weight(was), CPU_COUNT(&set));
	assert_int_equal(mc_cpumask_getaffinity(got, getpid()), 0);
	assert_true(mc_cpumask_equal(got, was));
	assert_int_equal(mc_cpumask_getaffinity(none, 0), -EOVERFLOW);
	assert_int_equal(mc_cpumask_getaffinity(got, INT_MAX), -ESRCH);
	assert_true(mc_cpumask_equal(got, was));

	/* One of ours and one that is not there: accepted, as the kernel does. */
	mc_cpumask_set(far, mc_cpumask_last(was));
	mc_cpumask_set(far, 69999);
	assert_int_equal(mc_cpumask_setaffinity(0, far), 0);
	assert_int_equal(mc_cpumask_getaffinity(got, 0), 0);
	assert_int_equal(mc_cpumask_weight(got), 1);
	assert_int_equal(mc_cpumask_first(got), mc_cpumask_last(was));
	mc_cpumask_clear(far, mc_cpumask_last(was));
	assert_int_equal(mc_cpumask_setaffinity(0, far), -EINVAL);
	assert_int_equal(mc_cpumask_setaffinity(0, was), 0);
	mc_cpumask_free(was);
	mc_cpumask_free(got);
	mc_cpumask_free(none);
	mc_cpumask_free(far);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, SHARED_BITS = 1000 };
static struct mc_cpumask *shared;
static unsigned int won[THREADS];

/* All threads try to take each bit; each must go to just one. */
static void *take(void *arg)
{
	unsigned int *mine = arg;

	for (unsigned int cpu = 0; cpu < SHARED_BITS; cpu++)
		*mine += !mc_cpumask_test_and_set_atomic(shared, cpu);
	for (unsigned int cpu = 0; cpu < 64;
	     cpu++) /* and the constant masks are made by all at once */
		if (mc_cpumask_weight(mc_cpumask_of(cpu)) > 1)
			*mine += 1000;
	return NULL;
}

static void test_threads(void **unused)
{
	pthread_t thread[THREADS];
	unsigned int sum = 0;

	(void)unused;
	shared = mc_cpumask_alloc_bits(SHARED_BITS);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take, &won[i]), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		sum += won[i];
	}
	assert_int_equal(sum, SHARED_BITS);
	assert_true(mc_cpumask_full(shared));
	mc_cpumask_free(shared);
}

/* ---- by distance ----------------------------------------------------------------------------- */

static struct mc_topology *machine(void)
{
	static const char *const numa[] = {"node,nodeid=0,cpus=0-3",  "node,nodeid=1,cpus=4-7",
					   "node,nodeid=2,cpus=8-11", "dist,src=0,dst=1,val=20",
					   "dist,src=0,dst=2,val=15", "dist,src=1,dst=2,val=30"};
	struct mc_machine *m = mc_machine_new();
	struct mc_topology *topo = NULL;
	struct mc_error error = {0};
	int rc = mc_machine_option(m, "smp", "12", &error);

	if (!rc)
		rc = mc_machine_option(m, "mem", "3G", &error);
	for (unsigned int i = 0; !rc && i < sizeof(numa) / sizeof(numa[0]); i++)
		rc = mc_machine_option(m, "numa", numa[i], &error);
	if (!rc)
		rc = mc_machine_build(m, &topo, &error);
	if (rc)
		fail_msg("%s", error.text);
	mc_machine_free(m);
	return topo;
}

static void test_distances(void **unused)
{
	struct mc_topology *topo = machine();
	struct mc_cpumask *hop = mc_cpumask_alloc_bits(12);
	static const char *const hops[] = {"0-3", "0-3,8-11", "0-11"};
	static const unsigned int order[] = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7};
	unsigned int n = 0, cpu, d = 10;
	char text[64];

	(void)unused;
	mc_for_each_numa_hop_mask(hop, topo, 0)
	{
		mc_cpulist_snprint(text, sizeof(text), hop);
		assert_true(n < 3);
		assert_string_equal(text, hops[n++]);
	}
	assert_int_equal(n, 3);
	assert_int_equal(mc_numa_hop_next(topo, 77, &d, hop), -ENOENT);
	for (unsigned int i = 0; i < 30; i++) {
		assert_int_equal(mc_cpumask_local_spread(topo, i, 0), order[i % 12]);
		assert_int_equal(mc_cpumask_local_spread(topo, i, -1), i % 12);
	}
	assert_true(mc_cpumask_local_spread(topo, 0, 9) >= 12);
	n = 4;
	mc_for_each_cpu_of_node(cpu, topo, 1) assert_int_equal(cpu, n++);
	assert_int_equal(n, 8);
	mc_for_each_cpu_of_node(cpu, topo, 5) fail();
	n = 0;
	mc_for_each_online_cpu(cpu, topo) n++;
	mc_for_each_possible_cpu(cpu, topo) n++;
	mc_for_each_present_cpu(cpu, topo) n++;
	mc_for_each_allowed_cpu(cpu, topo) n++;
	assert_int_equal(n, 48);
	mc_cpumask_free(hop);
	mc_topology_put(topo);
}

/* ---- node masks: the same engine, once through
 * ----------------------------------------------------------------------- */

static void test_nodes(void **unused)
{
	struct mc_nodemask *a = mc_nodemask_alloc_bits(1024), *b = mc_nodemask_dup(a);
	unsigned int node, n = 0;
	char text[64];

	(void)unused;
	assert_true(mc_nr_node_ids() >= 1);
	assert_int_equal(mc_nodelist_parse(a, "0,8,16-24:1/8", NULL), 0);
	mc_nodemask_set(b, 8);
	mc_nodemask_set(b, 9);
	mc_for_each_node_and(node, a, b) n += node;
	assert_int_equal(n, 8);
	mc_nodemask_or(a, a, b);
	mc_nodelist_snprint(text, sizeof(text), a);
	assert_string_equal(text, "0,8-9,16,24");
	assert_int_equal(mc_nodemask_weight_andnot(a, b), 3);
	assert_int_equal(mc_nodemask_nth(3, a), 16);
	mc_nodemask_free(a);
	mc_nodemask_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads), /* first: the constant masks are not made yet */
		cmocka_unit_test(test_small_stack),    cmocka_unit_test(test_sizes_refused),
		cmocka_unit_test(test_embedded),       cmocka_unit_test(test_cpu_set),
		cmocka_unit_test(test_constant_masks), cmocka_unit_test(test_affinity),
		cmocka_unit_test(test_distances),      cmocka_unit_test(test_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
