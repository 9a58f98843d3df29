// SPDX-License-Identifier: MIT
/*
 * test_percpu_alloc.c - the allocator of per-CPU memory: the area index against a plain model,
 * pools at random with every invariant looked at, page alignment, depopulation, want of memory,
 * robust pools, shared pools, indices out of range.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/counter.h>
#include "lib/percpu_internal.h"
#include "lib/percpu_magazine.h"

/* ---- the area index -------------------------------------------------------------------------- */

enum { BITS = 4096 };

/* First fit on one byte per bit. */
static int64_t model_find(const uint8_t *used, uint32_t bits, uint32_t align)
{
	for (uint32_t at = 0; at + bits <= BITS; at += align) {
		uint32_t k = 0;

		while (k < bits && !used[at + k])
			k++;
		if (k == bits)
			return at;
	}
	return -1;
}

static void test_area(void **state)
{
	static uint8_t used[BITS];
	static uint32_t at[BITS], len[BITS];
	struct mc_area a;
	void *memory = malloc(mc_area_bytes(BITS));
	unsigned int n = 0, seed = 1;

	(void)state;
	mc_area_init(&a, BITS, memory);
	for (int step = 0; step < 4000; step++) {
		bool grow = rand_r(&seed) % 100 < (step / 500 % 2 ? 35 : 65);

		if (grow && n < BITS) {
			uint32_t bits = rand_r(&seed) % 8 ? 1 + rand_r(&seed) % 40
							  : 1 + rand_r(&seed) % 1500;
			uint32_t align = 1u << rand_r(&seed) % 10;
			int64_t want = model_find(used, bits, align),
				got = mc_area_alloc(&a, bits, align);

			if (want < 0) {
				assert_true(got < 0);
				continue;
			}
			/* First fit is the rule; the index may look at the free runs in no other
			 * order. */
			assert_int_equal(got, want);
			memset(used + got, 1, bits);
			at[n] = (uint32_t)got;
			len[n++] = bits;
			assert_int_equal(mc_area_size(&a, (uint32_t)got), bits);
			assert_int_equal(mc_area_start(&a, (uint32_t)got + bits - 1), got);
		} else if (n) {
			unsigned int k = rand_r(&seed) % n;

			assert_int_equal(mc_area_free(&a, at[k]), len[k]);
			memset(used + at[k], 0, len[k]);
			assert_int_equal(mc_area_start(&a, at[k]), -1);
			at[k] = at[--n];
			len[k] = len[n];
		}
		if (step % 7 == 0)
			assert_true(mc_area_check(&a));
	}
	while (n--)
		mc_area_free(&a, at[n]);
	assert_true(mc_area_check(&a));
	assert_int_equal(a.contig, BITS);
	free(memory);
}

/* ---- pools at random ------------------------------------------------------------------------- */

/* Every invariant of a pool that can be told from its bookkeeping. */
static void check_pool(struct mc_percpu_pool *pool)
{
	uint32_t chunks = 0, empty = 0, free_chunks = 0;
	uint64_t objects = 0;

	for (unsigned int side = 0; side < 2; side++)
		for (int slot = 0; slot < MC_NR_SLOTS; slot++) {
			struct mc_list *head = &pool->side[side].slot[slot];

			for (struct mc_list *e = head->next; e != head; e = e->next) {
				struct mc_chunk_hot *hot =
					(struct mc_chunk_hot *)((char *)e -
								offsetof(struct mc_chunk_hot,
									 list));
				uint32_t populated = 0, empties = 0;

				assert_int_equal(hot->slot, slot);
				assert_true(mc_area_check(&hot->area));
				assert_int_equal(hot->chunk->side, side);
				for (uint32_t b = 0; b < hot->area.nr_blocks; b++) {
					populated += hot->populated[b] != 0;
					empties += hot->populated[b] == 2;
					/* What holds an object is populated, what is populated is
					 * empty or not. */
					if (!mc_area_block_free(&hot->area, b))
						assert_int_equal(hot->populated[b], 1);
					else
						assert_int_not_equal(hot->populated[b], 1);
				}
				assert_int_equal(populated, hot->nr_populated);
				assert_int_equal(empties, hot->nr_empty_pop);
				chunks++;
				empty += empties;
				objects += hot->nr_alloc;
				free_chunks += slot == MC_NR_SLOTS - 1;
			}
		}
	assert_int_equal(chunks, pool->nr_chunks);
	assert_int_equal(empty, pool->empty_pop);
	assert_int_equal(free_chunks, pool->nr_free_chunks);
	assert_true(free_chunks <= 2); /* one spare for each stride */
	assert_int_equal(objects, pool->nr_alloc - pool->nr_dealloc);
}

struct object {
	uint8_t *h;
	size_t size, align;
	uint8_t byte;
};

/* Does an object hold its byte in all of copy i? Another one that overlaps has another byte. */
static void check_object(const struct object *o, unsigned int copies)
{
	for (unsigned int i = 0; i < copies; i++) {
		const uint8_t *p = mc_per_cpu_ptr(o->h, i);

		assert_int_equal((uintptr_t)p % o->align, 0);
		for (size_t k = 0; k < o->size; k++)
			assert_int_equal(p[k], o->byte);
	}
}

static void random_pool(unsigned int flags, unsigned int seed, size_t unit)
{
	struct mc_percpu_attr attr = {.flags = flags, .unit_size = unit};
	struct mc_percpu_pool *pool = mc_percpu_pool_create(&attr);
	static struct object o[600];
	unsigned int n = 0, copies;
	struct mc_percpu_stats s;

	assert_non_null(pool);
	mc_this_cpu_inc((uint8_t *)(o[0].h = mc_percpu_pool_alloc(pool, 1, 1)));
	copies = mc_percpu_copies(o[0].h);
	mc_free_percpu(o[0].h);
	for (int step = 0; step < 6000; step++) {
		if (n < 600 && rand_r(&seed) % 100 < (step / 1000 % 2 ? 30 : 70)) {
			struct object *new = &o[n];

			new->size = rand_r(&seed) % 10 ? 1 + (size_t)rand_r(&seed) % 300
						       : 1 + (size_t)rand_r(&seed) % unit;
			new->align =
				1u << (rand_r(&seed) % 20 ? rand_r(&seed) % 7 : rand_r(&seed) % 13);
			new->byte = (uint8_t)(1 + rand_r(&seed) % 255);
			new->h = mc_percpu_pool_alloc(pool, new->size, new->align);
			assert_non_null(new->h);
			for (unsigned int i = 0; i < copies; i++) {
				uint8_t *p = mc_per_cpu_ptr(new->h, i);

				assert_int_equal((uintptr_t)p % new->align, 0);
				for (size_t k = 0; k < new->size; k++)
					assert_int_equal(p[k], 0);
				memset(p, new->byte, new->size);
			}
			n++;
		} else if (n) {
			unsigned int k = rand_r(&seed) % n;

			check_object(&o[k], copies);
			mc_free_percpu(o[k].h);
			o[k] = o[--n];
		}
		if (step % 500 == 0)
			check_pool(pool);
		if (step % 1999 == 0) {
			assert_true(mc_percpu_trim(pool) >= 0 || !mc_rt_rseq(MC_KIND_CID));
			check_pool(pool);
		}
	}
	while (n) {
		check_object(&o[--n], copies);
		mc_free_percpu(o[n].h);
	}
	assert_true(mc_percpu_trim(pool) != -ENOMEM);
	check_pool(pool);
	assert_int_equal(mc_percpu_pool_stats(pool, &s), 0);
	assert_int_equal(s.nr_cur_alloc, s.magazine_objects);
	if (mc_rt_fence() == 0) {
		assert_int_equal(s.nr_chunks, 0);
		assert_int_equal(s.populated_pages, 0);
	}
	mc_percpu_pool_destroy(pool);
}

/* On one CPU: the checks write copies by their numbers, and where those are CPU numbers a thread
 * that moved would leave copies behind that trim retires and that are not zeroed from then on. */
static void test_random(void **state)
{
	cpu_set_t all, one;

	(void)state;
	CPU_ZERO(&one);
	CPU_SET((unsigned int)sched_getcpu() % CPU_SETSIZE, &one);
	if (sched_getaffinity(0, sizeof(all), &all) || sched_setaffinity(0, sizeof(one), &one))
		CPU_ZERO(&all);
	random_pool(0, 1, 65536);
	random_pool(MC_PERCPU_NO_MAGAZINE, 2, 65536);
	random_pool(MC_PERCPU_NO_MAGAZINE | MC_PERCPU_OLD_LAYOUT, 3, 32768);
	random_pool(0, 4, 4096);
	random_pool(0, 5, MC_UNIT_MAX);
	if (CPU_COUNT(&all))
		sched_setaffinity(0, sizeof(all), &all);
}

static void test_limits(void **state)
{
	struct mc_percpu_attr attr = {.unit_size = MC_UNIT_MAX + 1};
	void *h[3] = {NULL, NULL, NULL};

	(void)state;
	errno = 0;
	assert_null(mc_alloc_percpu_size(0, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(mc_alloc_percpu_size(65537, 1));
	assert_null(mc_alloc_percpu_size(8, 3));
	assert_null(mc_alloc_percpu_size(8, 8192));
	assert_null(mc_percpu_alloc_abi(NULL, 8, 8, MC_PERCPU_ABI + 1));
	assert_null(mc_percpu_pool_create(&attr));
	mc_free_percpu(NULL);
	assert_int_equal(mc_alloc_percpu_many(NULL, 65536, 64, 3, h), 0);
	mc_free_percpu_many(3, h);
	assert_int_equal(mc_alloc_percpu_many(NULL, 0, 64, 3, h), -EINVAL);
	for (size_t align = 1; align <= 4096; align *= 2) {
		char *p = mc_alloc_percpu_size(10, align);

		for (unsigned int i = 0; i < mc_nr_cpu_ids(); i++)
			assert_int_equal((uintptr_t)mc_per_cpu_ptr(p, i) % align, 0);
		mc_free_percpu(p);
	}
}

/* Populated pages without objects stay within bounds without any trim. */
static void test_depopulate(void **state)
{
	struct mc_percpu_attr attr = {.flags = MC_PERCPU_NO_MAGAZINE};
	struct mc_percpu_pool *pool = mc_percpu_pool_create(&attr);
	void *h[64];
	struct mc_percpu_stats s;

	(void)state;
	for (int i = 0; i < 16; i++) {
		h[i] = mc_percpu_pool_alloc(pool, 4096, 64);
		memset(mc_per_cpu_ptr((char *)h[i], 0), 1, 4096);
	}
	for (int i = 1; i < 16; i++)
		mc_free_percpu(h[i]);
	mc_percpu_pool_stats(pool, &s);
	assert_true(s.empty_pop_pages <= MC_EMPTY_POP_HIGH + 4);
	assert_int_equal(s.nr_chunks, 1);
	/* The memory behind them really went: a page in the middle is not in core, or is the zero
	 * page again. */
	assert_int_equal(*mc_per_cpu_ptr((char *)h[0] + 4096 * 4, 0), 0);
	mc_free_percpu(h[0]);
	mc_percpu_pool_destroy(pool);
}

/* ---- want of memory -------------------------------------------------------------------------- */

/* In a child whose address space may not grow: every call fails cleanly or works, and what was
 * there stays usable. */
static void exhaust(unsigned int flags)
{
	struct mc_percpu_attr attr = {.flags = flags, .copies = 300};
	struct mc_percpu_pool *pool = mc_percpu_pool_create(&attr);
	struct rlimit lim;
	void *h[4000];
	unsigned int n = 0;
	char text[64];
	FILE *f = fopen("/proc/self/statm", "r");

	if (!pool || !f || !fgets(text, sizeof(text), f))
		_exit(10);
	fclose(f);
	lim.rlim_cur = lim.rlim_max = strtoul(text, NULL, 10) * 4096 + (100 << 20);
	if (setrlimit(RLIMIT_AS, &lim))
		_exit(11);
	while (n < 4000 && (h[n] = mc_percpu_pool_alloc(pool, 2000, 8)))
		n++;
	if (n == 4000 || !n || errno != ENOMEM)
		_exit(12);
	check_pool(pool);
	mc_free_percpu(h[--n]);
	h[n] = mc_percpu_pool_alloc(pool, 2000, 8);
	if (!h[n++])
		_exit(13);
	mc_free_percpu_many(n, h);
	check_pool(pool);
	if (!mc_percpu_pool_alloc(pool, 2000, 8))
		_exit(14);
	_exit(0);
}

static void test_exhaustion(void **state)
{
	(void)state;
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	skip(); /* their shadow does not fit any limit */
#endif
#endif
	for (unsigned int flags = 0; flags <= MC_PERCPU_NO_MAGAZINE;
	     flags += MC_PERCPU_NO_MAGAZINE) {
		pid_t pid = fork();
		int status;

		if (!pid)
			exhaust(flags);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* ---- robust pools ---------------------------------------------------------------------------- */

static struct mc_percpu_fault heard[8];
static unsigned int nr_heard;

static void hear(void *arg, const struct mc_percpu_fault *fault)
{
	assert_ptr_equal(arg, &nr_heard);
	if (nr_heard < 8)
		heard[nr_heard++] = *fault;
}

static void count_leaks(void *arg, const struct mc_percpu_fault *fault)
{
	assert_int_equal(fault->kind, MC_PERCPU_LEAK);
	*(unsigned int *)arg += 1;
}

static void expect(enum mc_percpu_fault_kind kind, const void *h, size_t offset)
{
	assert_int_equal(nr_heard, 1);
	assert_int_equal(heard[0].kind, kind);
	assert_ptr_equal(heard[0].handle, h);
	assert_int_equal(heard[0].offset, offset);
	nr_heard = 0;
}

static void test_robust(void **state)
{
	struct mc_percpu_attr attr = {
		.flags = MC_PERCPU_ROBUST, .fault = hear, .fault_arg = &nr_heard};
	struct mc_percpu_pool *pool = mc_percpu_pool_create(&attr);
	uint32_t *h = mc_percpu_pool_alloc(pool, 20, 4), *kept = mc_percpu_pool_alloc(pool, 8, 8);
	uint64_t word = 0;

	(void)state;
	/* Right use is silent. */
	mc_this_cpu_inc(h);
	mc_this_cpu_add(h + 4, 2);
	assert_int_equal(mc_this_cpu_read(h), 1);
	assert_int_equal(mc_percpu_pool_check(pool), 0);
	assert_int_equal(nr_heard, 0);
	/* An operation past the end, at once. */
	mc_this_cpu_inc(h + 5);
	expect(MC_PERCPU_OVERRUN, h + 5, 20);
	assert_non_null(heard[0].allocated_by);
	assert_non_null(strstr(heard[0].text, "overrun"));
	/* A plain store past the end, when looked for and when freed. */
	mc_per_cpu_ptr(h, 0)[5] = 7;
	assert_int_equal(mc_percpu_pool_check(pool), 1);
	expect(MC_PERCPU_OVERRUN, h, 20);
	mc_free_percpu(h);
	expect(MC_PERCPU_OVERRUN, h, 20);
	/* After the free. */
	mc_free_percpu(h);
	expect(MC_PERCPU_DOUBLE_FREE, h, 0);
	assert_non_null(heard[0].freed_by);
	mc_this_cpu_inc(h + 1);
	expect(MC_PERCPU_USE_AFTER_FREE, h + 1, 4);
	mc_per_cpu_ptr((char *)h, 0)[3] = 9;
	assert_int_equal(mc_percpu_pool_check(pool), 1);
	expect(MC_PERCPU_USE_AFTER_FREE, h, 3);
	/* What is no object. */
	mc_free_percpu((char *)kept + 4);
	expect(MC_PERCPU_FOREIGN, (char *)kept + 4, 0);
	mc_free_percpu(&word);
	expect(MC_PERCPU_FOREIGN, &word, 0);
	mc_this_cpu_inc(&word);
	expect(MC_PERCPU_FOREIGN, &word, 0);
	/* Written after the free, found when the memory is used again. */
	h = mc_percpu_pool_alloc(pool, 40, 8);
	mc_free_percpu(h);
	mc_per_cpu_ptr((char *)h, 0)[11] = 1;
	for (int i = 0; i < 64; i++)
		mc_free_percpu(mc_percpu_pool_alloc(pool, 8, 8));
	expect(MC_PERCPU_USE_AFTER_FREE, h, 11);
	/* What was not freed. */
	mc_percpu_pool_destroy(pool);
	expect(MC_PERCPU_LEAK, kept, 0);
	assert_int_equal(heard[0].size, 8);
	assert_false(mc_robust_any());
	/* More leaks than are told at once: each is told. */
	attr.fault = count_leaks;
	pool = mc_percpu_pool_create(&attr);
	for (int i = 0; i < 3000; i++)
		assert_non_null(mc_percpu_pool_alloc(pool, 100, 8));
	mc_percpu_pool_destroy(pool);
	assert_int_equal(nr_heard, 3000);
	nr_heard = 0;
}

/* ---- shared pools ---------------------------------------------------------------------------- */

enum { ADDS = 300000 };

static int shared_child(int fd, uint64_t offset)
{
	struct mc_percpu_pool *pool;
	uint64_t *h;

	if (mc_percpu_pool_attach(fd, 0, &pool))
		return 10;
	h = mc_percpu_at(pool, offset);
	if (!h || mc_percpu_pool_alloc(pool, 8, 8))
		return 11;
	for (int i = 0; i < ADDS; i++)
		mc_this_cpu_inc(h);
	mc_percpu_pool_destroy(pool);
	return 0;
}

static void test_shared(void **state)
{
	struct mc_percpu_attr attr = {.unit_size = 8192};
	struct mc_percpu_pool *pool, *other, *reader;
	uint64_t *h, *seen, sum = 0;
	unsigned int i;
	pid_t pid[3];
	int status;

	(void)state;
	attr.fd = memfd_create("test", MFD_CLOEXEC);
	assert_true(attr.fd >= 0);
	assert_int_equal(mc_percpu_pool_attach(attr.fd, 0, &other), -EPROTO);
	pool = mc_percpu_pool_create_shared(&attr);
	assert_non_null(pool);
	assert_int_not_equal(mc_percpu_mode(pool, NULL), MC_PERCPU_MM_CID);
	mc_percpu_pool_alloc(pool, 100, 8);
	h = mc_percpu_pool_alloc(pool, 8, 8);
	for (i = 0; i < 3; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(shared_child(attr.fd, mc_percpu_offset(h)));
	}
	for (int k = 0; k < ADDS; k++)
		mc_this_cpu_inc(h);
	for (i = 0; i < 3; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	mc_for_each_percpu_copy(i, h) sum += *mc_per_cpu_ptr(h, i);
	assert_int_equal(sum, 4 * ADDS);
	/* A reader sees the same, and copies that others brought into use. */
	assert_int_equal(mc_percpu_pool_attach(attr.fd, MC_PERCPU_READ_ONLY, &reader), 0);
	seen = mc_percpu_at(reader, mc_percpu_offset(h));
	sum = 0;
	mc_for_each_percpu_copy(i, seen) sum += *mc_per_cpu_ptr(seen, i);
	assert_int_equal(sum, 4 * ADDS);
	assert_null(mc_percpu_at(reader, 8192));
	mc_percpu_pool_destroy(reader);
	/* Full: an error, not a second chunk. */
	assert_null(mc_percpu_pool_alloc(pool, 8192, 8));
	assert_int_equal(errno, ENOMEM);
	mc_free_percpu(h);
	mc_percpu_pool_destroy(pool);
	/* Headers that lie. */
	assert_int_equal(pwrite(attr.fd, "\377\377\377\377", 4, 16), 4);
	assert_int_equal(mc_percpu_pool_attach(attr.fd, 0, &other), -EPROTO);
	close(attr.fd);
}

/* ---- systems with larger pages --------------------------------------------------------------- */

/* What a chunk maps, protects or gives back by itself is made of whole pages, whatever their size;
 * tools/test-arm64 runs all of this file on a kernel with pages of 16 KiB. */
static void test_page_sizes(void **state)
{
	static const uint64_t sizes[] = {4096, 16384, 65536};
	static const size_t units[] = {1, 4096, 20000, 65536, MC_UNIT_MAX};
	unsigned int seed = 1;

	(void)state;
	for (unsigned int p = 0; p < 3; p++) {
		for (int i = 0; i < 100000; i++) {
			uint64_t from = (uint64_t)rand_r(&seed) << 3,
				 to = from + ((uint64_t)rand_r(&seed) % (1 << 18) & ~7ull);
			uint64_t begin = from, end = to;
			bool some = mc_whole_pages(&begin, &end, sizes[p]);

			/* Exactly the pages that lie wholly inside. */
			assert_int_equal(some, (from + sizes[p] - 1) / sizes[p] < to / sizes[p]);
			if (!some)
				continue;
			assert_true(begin >= from && begin - from < sizes[p]);
			assert_true(end <= to && to - end < sizes[p]);
			assert_int_equal(begin % sizes[p] | end % sizes[p], 0);
		}
		for (unsigned int u = 0; u < sizeof(units) / sizeof(*units); u++) {
			struct mc_percpu_attr attr = {.unit_size = units[u]};
			struct mc_percpu_pool *pool = mc_percpu_pool_create(&attr);
			uint64_t h = MC_H_(mc_percpu_pool_alloc(pool, 1, 1));
			uint64_t far = MC_H_(mc_percpu_pool_alloc(pool, 4096, 4096));
			const struct mc_chunk *c = mc_chunk_of(h);

			/* The head, its class map, the header of shared memory and the units. */
			assert_int_equal((uintptr_t)c->map % sizes[p], 0);
			assert_int_equal(c->map_len % sizes[p], 0);
			assert_int_equal((uintptr_t)(c->map + MC_CLASS_MAP_AT) % sizes[p], 0);
			assert_int_equal(c->base % sizes[p] | MC_PAGE_MAX % sizes[p], 0);
			assert_ptr_equal(c->pool, pool);
			assert_true(c->base + (uint64_t)c->units * c->stride <=
				    (uintptr_t)c->map + c->map_len);
			assert_ptr_equal(mc_chunk_of(far)->pool, pool);
			assert_int_equal(MC_HANDLE_ADDRESS_(far) % 4096, 0);
			mc_percpu_pool_destroy(pool);
		}
	}
}

/* ---- indices that were not foreseen ---------------------------------------------------------- */

/* As if the machine had told too few possible CPUs: every index is past the limit. In a child, for
 * limit is for life. */
static void past_limit(void)
{
	uint64_t *h = mc_alloc_percpu(uint64_t), sum = 0;
	struct mc_counter c;
	unsigned int i;

	mc_this_cpu_add(h, 5);
	if (mc_counter_init(&c, 7))
		_exit(1);
	for (i = 0; i < 4; i++) {
		mc_percpu_kinds[i].live = mc_percpu_kinds[i].atomic_live = 0;
		mc_percpu_kinds[i].limit = 0;
	}
	for (i = 0; i < 1000; i++) {
		mc_this_cpu_inc(h);
		mc_counter_inc(&c);
		mc_free_percpu(mc_alloc_percpu_size(64, 8));
	}
	mc_for_each_percpu_copy(i, h) sum += *mc_per_cpu_ptr(h, i);
	if (sum != 1005 || mc_counter_sum(&c) != 1007 || *mc_this_cpu_ptr(h) != 1000)
		_exit(2);
	_exit(0);
}

static void test_past_limit(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	mc_free_percpu(mc_alloc_percpu_size(8, 8));
	pid = fork();
	if (!pid)
		past_limit();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Values in copies that trim retired still count; those that are zero are forgotten. */
static void test_retired(void **state)
{
	struct mc_percpu_pool *pool = mc_percpu_pool_create(NULL);
	uint64_t *h = mc_percpu_pool_alloc(pool, 8, 8);
	struct mc_percpu_kind *k = pool->kind;

	(void)state;
	if (!pool->rseq || mc_rt_fence() || mc_nr_cpu_ids() < 2) {
		mc_percpu_pool_destroy(pool);
		skip();
	}
	/* As if a second thread had run: copy 1 live and written. */
	__atomic_store_n(&k->live, 2, __ATOMIC_SEQ_CST);
	*mc_per_cpu_ptr(h, 1) = 40;
	mc_this_cpu_add(h, 2);
	assert_true(mc_percpu_trim(pool) >= 0);
	if (k->live == 1) {
		assert_int_equal(mc_percpu_copies(h), 2);
		*mc_per_cpu_ptr(h, 1) = 0;
		assert_true(mc_percpu_trim(pool) >= 0);
		if (k->live == 1)
			assert_int_equal(mc_percpu_copies(h), 1);
	}
	mc_percpu_pool_destroy(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_area),       cmocka_unit_test(test_random),
		cmocka_unit_test(test_limits),     cmocka_unit_test(test_depopulate),
		cmocka_unit_test(test_exhaustion), cmocka_unit_test(test_robust),
		cmocka_unit_test(test_shared),     cmocka_unit_test(test_past_limit),
		cmocka_unit_test(test_retired),    cmocka_unit_test(test_page_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
