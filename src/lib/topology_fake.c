// SPDX-License-Identifier: MIT
/*
 * topology_fake.c - numa=fake: how the kernel cuts memory into emulated nodes.
 *
 * The rules are those of mm/numa_emulation.c in Linux 6.1 to 6.12, oddities included
 * (docs/design/topology.md lists them): multiples of 32 MiB, emulated nodes dealt out over the
 * physical ones, letters searched in the whole text, distances that count only with a comma behind
 * them. tests/unit/test_topology_fake.c holds this against real boots.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "topology_fake.h"

#define GRANULE (32ull << 20)
#define PAGE 4096ull
/* Nothing the kernel knows; keeps loops short when a recording lies about its memory. */
#define MAX_ADDRESS (1ull << 52)

struct split {
	const struct topo_fake_in *in;
	struct topo_fake *out;
	struct mc_error *error;
	const char *text;
	struct topo_block *left;        /* what is not given away yet */
	unsigned int nr_left;
	uint64_t top;                   /* end of memory */
};

static int refuse(const struct split *s, const char *reason)
{
	return mc_fail(s->error, EINVAL, "--numa fake=%.200s: %s", s->text, reason);
}

static uint64_t align_up(uint64_t v)
{
	return (v + GRANULE - 1) / GRANULE * GRANULE;
}

/* Bytes in [start, end) that are no memory, counted in whole pages. */
static uint64_t hole(const struct split *s, uint64_t start, uint64_t end)
{
	uint64_t from = (start + PAGE - 1) / PAGE * PAGE, to = end / PAGE * PAGE, absent;

	if (from >= to)
		return 0;
	absent = to - from;
	for (unsigned int i = 0; i < s->in->nr_ram; i++) {
		uint64_t a = (s->in->ram[i].start + PAGE - 1) / PAGE * PAGE,
			 b = s->in->ram[i].end / PAGE * PAGE;

		a = a < from ? from : a > to ? to : a;
		b = b < from ? from : b > to ? to : b;
		absent -= b > a ? b - a : 0;
	}
	return absent;
}

static uint64_t memory(const struct split *s, uint64_t start, uint64_t end)
{
	return end - start - hole(s, start, end);
}

static struct topo_block *block_of(const struct split *s, unsigned int node)
{
	for (unsigned int i = 0; i < s->nr_left; i++)
		if (s->left[i].node == node)
			return &s->left[i];
	return NULL;
}

/* Gives the first `size` bytes of a physical block to emulated node `id`. */
static int give(struct split *s, unsigned int id, struct topo_block *phys, uint64_t size)
{
	struct topo_fake *out = s->out;

	if (out->nr_blocks >= 2 * s->in->max_nodes)
		return refuse(s, "too many emulated memblks, failing emulation (the kernel stays with the real nodes)");
	if (out->nr_blocks == out->room) {
		unsigned int room = out->room ? out->room * 2 : 16;
		struct topo_block *list = realloc(out->block, room * sizeof(*list));

		if (!list)
			return mc_fail(s->error, ENOMEM, "--numa fake=%.200s: out of memory", s->text);
		out->block = list;
		out->room = room;
	}
	out->block[out->nr_blocks++] = (struct topo_block){ phys->start, phys->start + size, id };
	if (out->phys[id] == TOPO_NO_NODE)
		out->phys[id] = phys->node;
	if (id >= out->nr_nodes)
		out->nr_nodes = id + 1;
	phys->start += size;
	if (phys->start >= phys->end) {
		s->nr_left--;
		memmove(phys, phys + 1, (size_t)(s->left + s->nr_left - phys) * sizeof(*phys));
	}
	return 0;
}

/* Ends that would leave less than a granule below the DMA boundary go up to it. */
static uint64_t past_dma(const struct split *s, uint64_t end)
{
	if (end < s->in->dma_end && memory(s, end, s->in->dma_end) < GRANULE)
		return s->in->dma_end;
	return end;
}

/* Grows `end` until [start, end) holds `size` bytes of memory, or `limit` is reached. */
static uint64_t grow(const struct split *s, uint64_t start, uint64_t end, uint64_t limit,
		     uint64_t size)
{
	while (memory(s, start, end) < size) {
		end += GRANULE;
		if (end > limit)
			return limit;
	}
	return end;
}

/* The bytes left behind `end`, without holes; huge when end lies past limit, as the kernel's
 * unsigned arithmetic has it. */
static uint64_t rest(const struct split *s, uint64_t end, uint64_t limit)
{
	return limit - end - hole(s, end, limit);
}

/* One round of dealing: how an emulated node's end is found differs between the modes. */
struct mode {
	uint64_t size;
	unsigned int big;               /* emulated nodes below this get a granule more */
	bool uniform;                   /* strictly by address, holes ignored */
	bool by_size;
	unsigned int wrap;              /* ids are taken modulo this */
};

static uint64_t find_end(const struct split *s, const struct mode *m,
			 const struct topo_block *block, unsigned int id)
{
	uint64_t end = block->start + m->size;

	if (!m->by_size && id < m->big)
		end += GRANULE;
	if (!m->uniform)
		end = grow(s, block->start, end, block->end, m->size);
	end = past_dma(s, end);
	if (!m->uniform && rest(s, end, block->end) < m->size)
		end = block->end;
	return end < block->end ? end : block->end;
}

/* Goes round the physical nodes until nothing is left on any of them. *id is the next emulated
 * node's number. */
static int deal(struct split *s, const struct mode *m, const struct mc_nodemask *over,
		unsigned int *id)
{
	struct mc_cpumask *nodes = mc_cpumask_dup(&over->m);
	unsigned int node;
	int rc = 0;

	if (!nodes)
		return mc_fail(s->error, ENOMEM, "--numa fake=%.200s: out of memory", s->text);
	while (rc == 0 && !mc_cpumask_empty(nodes)) {
		mc_for_each_cpu(node, nodes) {
			struct topo_block *block = block_of(s, node);

			if (!block) {
				mc_cpumask_clear(nodes, node);
				continue;
			}
			rc = give(s, *id % m->wrap, block,
				  find_end(s, m, block, *id) - block->start);
			++*id;
			if (rc < 0)
				break;
		}
	}
	mc_cpumask_free(nodes);
	return rc;
}

/* ---- the three modes ------------------------------------------------------------------------- */

static int split_count(struct split *s, unsigned long count)
{
	struct mode m = { 0 };
	unsigned int id = 0;
	uint64_t size;
	int n = (int)count; /* the kernel's parameter is an int */

	if (n <= 0)
		return refuse(s, "no number of nodes (the kernel stays with the real nodes); give 1 or more");
	if ((unsigned int)n > s->in->max_nodes) {
		snprintf(s->out->note, sizeof(s->out->note),
			 "numa=fake=%d too large, reducing to %u", n, s->in->max_nodes);
		n = (int)s->in->max_nodes;
	}
	size = memory(s, 0, s->top) / PAGE / (unsigned int)n * PAGE;
	m.big = (unsigned int)(size % GRANULE * (unsigned int)n / GRANULE);
	m.size = size / GRANULE * GRANULE;
	m.wrap = (unsigned int)n;
	if (!m.size)
		return refuse(
			s,
			"Not enough memory for each node.  NUMA emulation disabled. (A node has at least 32 MiB.)");
	return deal(s, &m, s->in->nodes, &id);
}

static int split_size(struct split *s, uint64_t size)
{
	struct mode m = { .by_size = true, .wrap = s->in->max_nodes };
	uint64_t least = memory(s, 0, s->top) / PAGE / s->in->max_nodes * PAGE;
	unsigned int id = 0;

	if (!size)
		return refuse(s, "no size (the kernel stays with the real nodes); give 32M or more");
	least = align_up(least > GRANULE ? least : GRANULE);
	if (size < least) {
		snprintf(s->out->note, sizeof(s->out->note), "Fake node size %lluMB too small, increasing to %lluMB",
			 (unsigned long long)(size >> 20), (unsigned long long)(least >> 20));
		size = least;
	}
	m.size = size / GRANULE * GRANULE;
	return deal(s, &m, s->in->nodes, &id);
}

/* NU: each physical node into N by address. The check of the result counts all nodes made so far,
 * as Linux 6.1 to 6.12. */
static int split_uniform(struct split *s, unsigned long count)
{
	struct mc_nodemask *one = topo_nodemask(s->in->nodes->m.nbits);
	unsigned int node, id = 0;
	int rc = 0, n = (int)count;

	if (!one)
		return mc_fail(s->error, ENOMEM, "--numa fake=%.200s: out of memory", s->text);
	if (n <= 0)
		rc = refuse(s, "no number of nodes (the kernel stays with the real nodes); give 1U or more");
	mc_for_each_cpu(node, &s->in->nodes->m) {
		/* The first block that is left, whatever node it belongs to. */
		struct topo_block *block = &s->left[0];
		struct mode m = { .uniform = true, .by_size = true, .wrap = s->in->max_nodes };

		if (rc < 0)
			break;
		if (s->nr_left) {
			m.size = (block->end / PAGE - block->start / PAGE) / (unsigned int)n * PAGE;
			m.size = align_up(m.size > GRANULE ? m.size : GRANULE);
			mc_cpumask_zero(&one->m);
			mc_cpumask_set(&one->m, block->node);
			rc = deal(s, &m, one, &id);
		}
		if (rc == 0 && id < count) {
			char reason[120];

			snprintf(
				reason, sizeof(reason),
				"phys: %u only got %u of %lu nodes, failing (the kernel stays with the real nodes)",
				node, id, count);
			rc = refuse(s, reason);
		}
	}
	mc_cpumask_free((struct mc_cpumask *)one);
	return rc;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* The kernel's simple_strtoul(): base from the text, no sign, no blanks, wraps around. */
static unsigned long long kernel_number(const char *p, const char **end)
{
	unsigned int base = 10;
	unsigned long long v = 0;

	if (*p == '0') {
		base = 8;
		if ((p[1] == 'x' || p[1] == 'X') && isxdigit((unsigned char)p[2])) {
			base = 16;
			p += 2;
		}
	}
	for (; *p; p++) {
		unsigned int digit;

		if (isdigit((unsigned char)*p))
			digit = (unsigned int)(*p - '0');
		else if (isxdigit((unsigned char)*p))
			digit = (unsigned int)(tolower((unsigned char)*p) - 'a' + 10);
		else
			break;
		if (digit >= base)
			break;
		v = v * base + digit;
	}
	*end = p;
	return v;
}

/* The kernel's memparse(): a number and one of K M G T P E. */
static uint64_t kernel_size(const char *p, const char **end)
{
	static const char units[] = "KMGTPE";
	uint64_t v = kernel_number(p, end);
	const char *unit = **end ? strchr(units, toupper((unsigned char)**end)) : NULL;

	if (unit) {
		v <<= 10 * (unit - units + 1);
		++*end;
	}
	return v;
}

/* The kernel's get_option(): true when a number with a comma behind it was there. A number without
 * one is passed over. */
static bool kernel_option(const char **p, int *value)
{
	const char *start = *p;

	if (!*start)
		return false;
	if (*start == '-')
		*value = -(int)kernel_number(++start, p);
	else
		*value = (int)kernel_number(start, p);
	if (*p == start || **p != ',')
		return false;
	++*p;
	return true;
}

static int set_distances(struct split *s, const char *list)
{
	struct topo_fake *out = s->out;
	unsigned int n = out->nr_nodes, other = out->phys[0];

	out->distance = malloc((size_t)n * n);
	if (!out->distance)
		return mc_fail(s->error, ENOMEM, "--numa fake=%.200s: out of memory", s->text);
	/* Numbers that no block got belong where the lowest one does. */
	for (unsigned int i = 0; i < n && other == TOPO_NO_NODE; i++)
		other = out->phys[i];
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int j = 0; j < n; j++) {
			unsigned int a = out->phys[i] == TOPO_NO_NODE ? other : out->phys[i];
			unsigned int b = out->phys[j] == TOPO_NO_NODE ? other : out->phys[j];
			uint8_t *to = &out->distance[(size_t)i * n + j];
			int value;

			*to = i == j ? 10 : 20;
			if (!kernel_option(&list, &value))
				value = s->in->distance ? (int)s->in->distance(s->in->arg, a, b)
					: a == b        ? 10
							: 20;
			/* What doesn't fit a byte, and another distance to itself than 10, is
			 * dropped. */
			if (value >= 0 && value <= 255 && (i != j || value == 10))
				*to = (uint8_t)value;
		}
	}
	return 0;
}

static int split(struct split *s)
{
	const char *end = s->text;
	int rc;

	for (unsigned int i = 0; i < s->in->nr_phys; i++)
		if (s->in->phys[i].end > s->top)
			s->top = s->in->phys[i].end;
	if (!s->in->nr_phys)
		return refuse(s, "the machine shows no memory to split");
	if (s->top > MAX_ADDRESS)
		return refuse(s, "memory above 4 PiB");
	if (strchr(s->text, 'U'))
		rc = split_uniform(s, kernel_number(s->text, &end));
	else if (strchr(s->text, 'M') || strchr(s->text, 'G'))
		rc = split_size(s, kernel_size(s->text, &end));
	else
		rc = split_count(s, kernel_number(s->text, &end));
	if (rc < 0)
		return rc;
	return set_distances(s, end + (*end == ':'));
}

int topo_fake_split(const struct topo_fake_in *in, const char *text, struct topo_fake *out,
		    struct mc_error *error)
{
	struct split s = {
		.in = in, .out = out, .error = error, .text = text, .nr_left = in->nr_phys};
	int rc;

	memset(out, 0, sizeof(*out));
	s.left = malloc((in->nr_phys + 1) * sizeof(*s.left));
	out->phys = malloc(in->max_nodes * sizeof(*out->phys));
	if (!s.left || !out->phys) {
		rc = mc_fail(error, ENOMEM, "--numa fake=%.200s: out of memory", text);
	} else {
		memcpy(s.left, in->phys, in->nr_phys * sizeof(*s.left));
		memset(out->phys, 0xff, in->max_nodes * sizeof(*out->phys));
		rc = split(&s);
	}
	free(s.left);
	if (rc < 0)
		topo_fake_release(out);
	return rc;
}

void topo_fake_release(struct topo_fake *fake)
{
	free(fake->block);
	free(fake->phys);
	free(fake->distance);
	fake->block = NULL;
	fake->phys = NULL;
	fake->distance = NULL;
}
