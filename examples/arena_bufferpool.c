// SPDX-License-Identifier: MIT
/*
 * arena_bufferpool.c - a buffer pool that serves requests while most of it is still coming up.
 *
 * Each buffer has a header of the pool's own, kept in the caller's bytes behind the page descriptor
 * and set up by the callback as the pages come up: no second pass over the pool, no start-up that
 * waits for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <manycore/manycore.h>

enum { BUFFER_ORDER = 1, REQUESTS = 5000 }; /* buffers of two pages */

struct buffer { /* what the pool keeps for each page */
	uint64_t block;
	unsigned int pins, dirty;
};

static int set_up(void *arg, struct mc_arena *arena, size_t first, size_t nr, unsigned int node)
{
	(void)arg, (void)node;
	for (size_t i = first; i < first + nr; i++) {
		struct buffer *b = mc_page_extra(mc_arena_page(arena, mc_arena_address(arena, i)));

		b->block = UINT64_MAX; /* holds none */
	}
	return 0;
}

static char *get_buffer(struct mc_arena *pool, uint64_t block)
{
	char *data = mc_arena_alloc(pool, BUFFER_ORDER, MC_ANY_NODE);
	struct buffer *b;

	if (!data)
		return NULL;
	b = mc_page_extra(mc_arena_page(pool, data));
	b->block = block + 1;
	b->pins = 1;
	snprintf(data, 64, "block %llu", (unsigned long long)block);
	return data;
}

int main(int argc, char **argv)
{
	uint64_t size = (argc > 1 ? strtoull(argv[1], NULL, 0) : 256) << 20;
	struct mc_arena_attr attr = {.backing = MC_ARENA_THP,
				     .size = size,
				     .extra = sizeof(struct buffer),
				     .init = set_up};
	struct mc_arena_report r;
	struct mc_error error;
	struct mc_arena *pool;
	char line[512];

	if (mc_arena_create(&attr, &pool, &error) < 0) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	for (uint64_t i = 0; i < REQUESTS; i++) {
		char *data = get_buffer(pool, i);

		if (!data || strncmp(data, "block ", 6))
			return 1;
		if (i % 3 && mc_arena_free(pool, data)) /* most buffers are given back soon */
			return 1;
	}
	printf("%d requests served; %llu of %llu MiB were up by then\n", REQUESTS,
	       (unsigned long long)(mc_arena_ready(pool) >> 20), (unsigned long long)(size >> 20));
	mc_arena_wait(pool, 0, -1);
	for (unsigned int k = 0; mc_arena_part_report(pool, k, &r) == 0; k++) {
		mc_arena_report_snprint(line, sizeof(line), &r);
		puts(line);
	}
	mc_arena_destroy(pool);
	return 0;
}
