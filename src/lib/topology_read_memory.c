// SPDX-License-Identifier: MIT
/*
 * topology_read_memory.c - the nodes' memory: sizes, physical ranges, huge pages.
 *
 * A range is what a zone spans (/proc/zoneinfo), without the memory blocks that the node's folder
 * doesn't list: so a hole such as the one below 4 GiB is a gap between two ranges wherever the
 * kernel shows it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "topology_read.h"

/* "Node 0 MemTotal:   123 kB" in bytes; 0 when the line is missing. */
static uint64_t meminfo_bytes(const struct topo_text *text, const char *key)
{
	const char *p = strstr(text->data, key);
	unsigned long long v;

	if (!p)
		return 0;
	v = strtoull(p + strlen(key), NULL, 10);
	return v > UINT64_MAX >> 10 ? 0 : v << 10;
}

/* ---- huge pages ------------------------------------------------------------------------------ */

struct pools {
	struct topo_reader *r;
	struct topo_node *node;
	const char *dir;
};

static uint64_t pool_number(struct topo_reader *r, const char *dir, const char *pool,
			    const char *name)
{
	long long v;

	if (topo_read_number(r, &v, "%s/%s/%s", dir, pool, name) < 0 || v < 0)
		return 0;
	return (uint64_t)v;
}

static int note_pool(void *arg, const char *name)
{
	struct pools *p = arg;
	struct mc_hugepool *list;
	unsigned long long kib;
	char *end;

	if (strncmp(name, "hugepages-", 10))
		return 0;
	kib = strtoull(name + 10, &end, 10);
	if (strcmp(end, "kB") || !kib || kib > UINT64_MAX >> 10 || p->node->nr_hugepools == 64)
		return 0;
	list = realloc(p->node->hugepools, (p->node->nr_hugepools + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	p->node->hugepools = list;
	list[p->node->nr_hugepools++] = (struct mc_hugepool){
		.size = kib << 10,
		.total = pool_number(p->r, p->dir, name, "nr_hugepages"),
		.free = pool_number(p->r, p->dir, name, "free_hugepages"),
		.surplus = pool_number(p->r, p->dir, name, "surplus_hugepages"),
	};
	return 0;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct ranges {
	struct mc_range *range;
	unsigned int nr, room;
};

static int add_range(struct ranges *list, uint64_t start, uint64_t end)
{
	if (list->nr == list->room) {
		unsigned int room = list->room ? list->room * 2 : 8;
		struct mc_range *r = realloc(list->range, room * sizeof(*r));

		if (!r)
			return -ENOMEM;
		list->range = r;
		list->room = room;
	}
	list->range[list->nr++] = (struct mc_range){ start, end };
	return 0;
}

static int compare_ranges(const void *pa, const void *pb)
{
	const struct mc_range *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Sorts, and joins what touches or overlaps. */
static void join_ranges(struct ranges *list)
{
	unsigned int kept = 0;

	if (!list->nr)
		return;
	qsort(list->range, list->nr, sizeof(*list->range), compare_ranges);
	for (unsigned int i = 1; i < list->nr; i++) {
		if (list->range[i].start <= list->range[kept].end) {
			if (list->range[i].end > list->range[kept].end)
				list->range[kept].end = list->range[i].end;
		} else {
			list->range[++kept] = list->range[i];
		}
	}
	list->nr = kept + 1;
}

struct blocks {
	struct ranges list;
	uint64_t size;
	int status;
};

static int note_block(void *arg, const char *name)
{
	struct blocks *b = arg;
	unsigned int n;

	if (topo_numbered(name, "memory", &n) && n < UINT64_MAX / b->size - 1)
		return add_range(&b->list, n * b->size, (n + 1) * b->size);
	return 0;
}

/* The kernel writes it in hexadecimal, without 0x. */
static uint64_t block_size(struct topo_reader *r)
{
	unsigned long long v = 0;
	struct topo_text text;

	if (topo_read(r, &text, "/sys/devices/system/memory/block_size_bytes") == 0) {
		v = strtoull(text.data, NULL, 16);
		topo_text_done(&text);
	}
	return v >= 1 << 20 && v <= 1ull << 40 ? v : 0;
}

/* Spans without what is no block; either list alone where the other is missing. */
static int cut_ranges(struct topo_node *node, const struct ranges *spans,
		      const struct ranges *blocks)
{
	unsigned int s = 0, b = 0;

	if (!spans->nr || !blocks->nr) {
		const struct ranges *only = spans->nr ? spans : blocks;

		for (unsigned int i = 0; i < only->nr; i++)
			if (topo_node_add_range(node, only->range[i].start, only->range[i].end) < 0)
				return -ENOMEM;
		return 0;
	}
	while (s < spans->nr && b < blocks->nr) {
		const struct mc_range *span = &spans->range[s], *block = &blocks->range[b];
		uint64_t start = span->start > block->start ? span->start : block->start;
		uint64_t end = span->end < block->end ? span->end : block->end;

		if (start < end && topo_node_add_range(node, start, end) < 0)
			return -ENOMEM;
		if (span->end < block->end)
			s++;
		else
			b++;
	}
	return 0;
}

/* Zones of one node: page frames in pages whose size the text doesn't tell. */
struct zones {
	struct ranges spans; /* page frames */
	uint64_t managed;
};

static uint64_t zone_number(const char *zone, const char *end, const char *key)
{
	const char *p = memmem(zone, (size_t)(end - zone), key, strlen(key));

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* Goes through zoneinfo once, filling zones[] by rank of the node. */
static int read_zones(struct topo_reader *r, struct zones *zones)
{
	struct topo_text text;
	const char *p, *next;

	if (topo_read(r, &text, "/proc/zoneinfo") < 0)
		return 0;
	for (p = text.data; p && !strncmp(p, "Node ", 5); p = next ? next + 1 : NULL) {
		unsigned long id = strtoul(p + 5, NULL, 10);
		uint64_t start, spanned;
		struct topo_node *node;
		const char *end;

		next = strstr(p, "\nNode ");
		end = next ? next : text.data + text.len;
		node = id < UINT_MAX ? topo_node(r->base, (unsigned int)id) : NULL;
		start = zone_number(p, end, "start_pfn:");
		spanned = zone_number(p, end, "\n        spanned ");
		if (!node || !spanned || spanned > 1ull << 50 || start > 1ull << 50)
			continue;
		zones[node - r->base->node].managed += zone_number(p, end, "\n        managed ");
		if (add_range(&zones[node - r->base->node].spans, start, start + spanned) < 0) {
			topo_text_done(&text);
			return -ENOMEM;
		}
	}
	topo_text_done(&text);
	return 0;
}

/* MemTotal is the sum of the managed pages: their ratio is the page size. */
static uint64_t page_size(const struct topo_node *node, const struct zones *zones)
{
	uint64_t size = 4096;

	if (!zones->managed)
		return size;
	while (size < 65536 && node->mem_total / zones->managed >= size * 2)
		size *= 2;
	return size;
}

static int read_node(struct topo_reader *r, struct topo_node *node, struct zones *zones,
		     uint64_t block)
{
	struct blocks blocks = { .size = block };
	struct pools pools = { r, node, NULL };
	struct topo_text text;
	char dir[96];
	uint64_t page;
	int rc;

	snprintf(dir, sizeof(dir), SYS_NODE "/node%u", node->id);
	if (topo_read(r, &text, "%s/meminfo", dir) == 0) {
		node->mem_total = meminfo_bytes(&text, " MemTotal:");
		node->mem_free = meminfo_bytes(&text, " MemFree:");
		topo_text_done(&text);
	}
	page = page_size(node, zones);
	for (unsigned int i = 0; i < zones->spans.nr; i++) {
		zones->spans.range[i].start *= page;
		zones->spans.range[i].end *= page;
	}
	join_ranges(&zones->spans);
	rc = block ? topo_read_dir(r, dir, note_block, &blocks) : 0;
	if (rc != -ENOMEM) {
		join_ranges(&blocks.list);
		rc = cut_ranges(node, &zones->spans, &blocks.list);
	}
	free(blocks.list.range);
	if (rc == 0) {
		snprintf(dir, sizeof(dir), SYS_NODE "/node%u/hugepages", node->id);
		pools.dir = dir;
		rc = topo_read_dir(r, dir, note_pool, &pools);
	}
	return rc == -ENOMEM ? topo_read_problem(r, ENOMEM, dir, "out of memory") : 0;
}

int topo_read_memory(struct topo_reader *r)
{
	unsigned int n = r->base->nr_nodes;
	struct zones *zones = calloc(n ? n : 1, sizeof(*zones));
	uint64_t block = block_size(r);
	struct topo_text text;
	int rc = 0;

	if (!zones || read_zones(r, zones) < 0)
		rc = topo_read_problem(r, ENOMEM, "/proc/zoneinfo", "out of memory");
	for (unsigned int i = 0; rc == 0 && i < n; i++)
		rc = read_node(r, &r->base->node[i], &zones[i], block);
	for (unsigned int i = 0; zones && i < n; i++)
		free(zones[i].spans.range);
	free(zones);
	if (rc == 0 && topo_read(r, &text, "/proc/meminfo") == 0) {
		r->base->mem_total = meminfo_bytes(&text, "MemTotal:");
		topo_text_done(&text);
	}
	return rc;
}
