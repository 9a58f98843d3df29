// SPDX-License-Identifier: MIT
/*
 * torture_arena.c - random threads allocate, free, wait, look and cancel on arenas that are still
 * coming up, and arenas are destroyed under waiters, again and again. Invariants: no page is handed
 * out twice, what is written stays, the sums of the statistics hold, everything comes back when
 * freed, no call hangs.
 *
 * Usage: torture_arena [SECONDS [SEED]]. A failure prints the seed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <manycore/manycore.h>

enum { THREADS = 4, HELD = 64, MAX_ORDER = 7 };
static unsigned long long seed;

#define CHECK(x)                                                                               \
	do {                                                                                   \
		if (!(x)) {                                                                    \
			fprintf(stderr,                                                        \
				"line %d: %s (errno %d); again with: torture_arena 10 %llu\n", \
				__LINE__, #x, errno, seed);                                    \
			abort();                                                               \
		}                                                                              \
	} while (0)

struct round {
	struct mc_arena *arena;
	atomic_bool stop;
	atomic_uchar *owner; /* a byte a page: 1 while handed out */
	size_t pages, page_size;
	unsigned int nr_nodes;
	atomic_ulong allocs, waits_cut;
};

struct held {
	char *p;
	unsigned int order;
	uint64_t mark;
};

static uint64_t next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void own(struct round *r, struct held *h, unsigned char was, unsigned char now)
{
	size_t first = (size_t)(h->p - (char *)mc_arena_base(r->arena)) / r->page_size;

	for (size_t i = first; i < first + (1u << h->order); i++)
		CHECK(atomic_exchange(&r->owner[i], now) == was);
}

static void take(struct round *r, struct held *h, uint64_t *s)
{
	unsigned int part = (unsigned int)(next(s) % r->nr_nodes);
	struct mc_arena_report rep;

	h->order = (unsigned int)(next(s) % (MAX_ORDER + 1));
	CHECK(!mc_arena_part_report(r->arena, part, &rep));
	h->p = mc_arena_alloc(r->arena, h->order, next(s) % 3 ? MC_ANY_NODE : rep.node);
	if (!h->p) {
		CHECK(errno == ENOMEM || errno == ECANCELED);
		return;
	}
	atomic_fetch_add(&r->allocs, 1);
	CHECK((size_t)(h->p - (char *)mc_arena_base(r->arena)) % (r->page_size << h->order) == 0);
	own(r, h, 0, 1);
	h->mark = next(s);
	memcpy(h->p, &h->mark, 8);
	memcpy(h->p + (r->page_size << h->order) - 8, &h->mark, 8);
}

static void give(struct round *r, struct held *h)
{
	CHECK(!memcmp(h->p, &h->mark, 8));
	CHECK(!memcmp(h->p + (r->page_size << h->order) - 8, &h->mark, 8));
	CHECK(mc_arena_page(r->arena, h->p)->order == h->order);
	own(r, h, 1, 0);
	CHECK(!mc_arena_free(r->arena, h->p));
	h->p = NULL;
}

static void *churn(void *arg)
{
	struct round *r = arg;
	struct held held[HELD] = {0};
	uint64_t s = seed ^ (uintptr_t)&held;

	while (!atomic_load(&r->stop)) {
		struct held *h = &held[next(&s) % HELD];

		if (h->p)
			give(r, h);
		else
			take(r, h, &s);
		if (next(&s) % 64 == 0)
			mc_arena_wait(r->arena, next(&s) % (r->pages * r->page_size),
				      (int)(next(&s) % 3));
		if (next(&s) % 256 == 0)
			mc_arena_set_chunk(r->arena, (size_t)(next(&s) % (8 << 20)));
	}
	for (unsigned int i = 0; i < HELD; i++)
		if (held[i].p)
			give(r, &held[i]);
	return NULL;
}

/* Calls nothing after its wait: it may be cut by destroy. */
static void *wait_once(void *arg)
{
	struct round *r = arg;
	int rc;

	atomic_fetch_add(&r->waits_cut, 1);
	rc = mc_arena_wait(r->arena, 0, -1);
	CHECK(rc == 0 || rc == -ECANCELED);
	return NULL;
}

static void check_sums(struct round *r, bool all_back)
{
	uint64_t ready = 0;

	for (unsigned int k = 0; k < mc_arena_nr_parts(r->arena); k++) {
		struct mc_arena_stats st;
		uint64_t sum = 0;

		CHECK(!mc_arena_part_stats(r->arena, k, &st));
		for (unsigned int o = 0; o < MC_ARENA_ORDERS; o++)
			sum += st.free_runs[o] << o;
		CHECK(sum == st.free_pages);
		CHECK(st.free_pages + st.used_pages == st.ready_pages);
		CHECK(!all_back || st.used_pages == 0);
		ready += st.ready_pages;
	}
	CHECK(!all_back || ready * r->page_size == mc_arena_ready(r->arena));
}

static int slow_init(void *arg, struct mc_arena *a, size_t first, size_t nr, unsigned int node)
{
	(void)a, (void)nr, (void)node;
	if ((first * 2654435761u ^ *(uint64_t *)arg) % 4 == 0)
		usleep(300);
	return 0;
}

static void one_round(uint64_t *s, const struct mc_topology *const *topo)
{
	uint64_t salt = next(s);
	struct mc_arena_attr at = {
		.backing = (enum mc_arena_backing[]){MC_ARENA_ANON, MC_ARENA_THP,
						     MC_ARENA_MEMFD}[next(s) % 3],
		.size = ((next(s) % 48) + 1) << 20,
		.threads = (unsigned int)(next(s) % 4), /* 0: chosen */
		.chunk = (size_t)((next(s) % 32 + 1) << 16),
		.flags = next(s) % 5 == 0 ? MC_ARENA_NO_WORKERS : 0,
		.topology = topo[next(s) % 2],
		.init = slow_init,
		.arg = &salt,
	};
	struct round r = {0};
	struct mc_error e;
	pthread_t t[THREADS], w[2];
	unsigned int waiters = (unsigned int)(next(s) % 3);

	CHECK(!mc_arena_create(&at, &r.arena, &e));
	r.page_size = mc_arena_page_size(r.arena);
	r.pages = (size_t)(mc_arena_size(r.arena) / r.page_size);
	r.nr_nodes = mc_arena_nr_parts(r.arena);
	r.owner = calloc(r.pages, 1);
	CHECK(r.owner);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, churn, &r));
	usleep((useconds_t)(next(s) % 20000));
	if (next(s) % 3 == 0)
		mc_arena_cancel(r.arena);
	check_sums(&r, false);
	usleep((useconds_t)(next(s) % 20000));
	atomic_store(&r.stop, true);
	for (unsigned int i = 0; i < waiters; i++)
		CHECK(!pthread_create(&w[i], NULL, wait_once, &r));
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	if (next(s) % 2) {
		int rc = mc_arena_wait(r.arena, 0, -1);

		CHECK(rc == 0 || rc == -ECANCELED);
		check_sums(&r, true);
	}
	while (atomic_load(&r.waits_cut) < waiters)
		usleep(100);
	usleep(2000); /* the waiters are in their call by now, or destroy would be the later one */
	mc_arena_destroy(r.arena);
	for (unsigned int i = 0; i < waiters; i++)
		pthread_join(w[i], NULL);
	free(r.owner);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	struct mc_machine *m = mc_machine_new();
	struct mc_topology *topo[2] = {NULL, NULL};
	struct mc_error e = {0};
	time_t end;
	unsigned long rounds = 0;
	uint64_t s;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0)
			: (unsigned long long)time(NULL) * 2654435761u + (unsigned int)getpid();
	s = seed | 1;
	CHECK(m && !mc_topology_live(&topo[0], &e));
	CHECK(!mc_machine_option(m, "numa", "fake=4", &e) && !mc_machine_build(m, &topo[1], &e));
	mc_machine_free(m);
	for (end = time(NULL) + (time_t)seconds; time(NULL) <= end; rounds++)
		one_round(&s, (const struct mc_topology *const *)topo);
	printf("%lu rounds, seed %llu\n", rounds, seed);
	mc_topology_put(topo[0]);
	mc_topology_put(topo[1]);
	return 0;
}
