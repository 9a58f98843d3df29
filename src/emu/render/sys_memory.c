// SPDX-License-Identifier: MIT
/*
 * sys_memory.c - /sys/devices/system/memory: the blocks that physical memory is cut into, from the
 * nodes' ranges.
 *
 * A block belongs to each node that has a part of it: memoryN/nodeM and nodeM/memoryN are there for
 * all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include "impl.h"

#define BLOCK_MIN (UINT64_C(128) << 20)
#define BLOCK_MAX (UINT64_C(2) << 30)
#define BLOCK_POWER (UINT64_C(256) << 20)
#define LARGE_MACHINE (UINT64_C(64) << 30)

static uint64_t end_of_memory(const struct mc_topology *topo)
{
	const struct mc_cpumask *nodes = &mc_topology_nodes_online(topo)->m;
	const struct mc_node *node;
	uint64_t end = 0;
	unsigned int n;

	mc_for_each_cpu (n, nodes) {
		node = mc_topology_node(topo, n);
		if (node && node->nr_ranges && node->ranges[node->nr_ranges - 1].end > end)
			end = node->ranges[node->nr_ranges - 1].end;
	}
	return end;
}

/* A recording's, else as x86 chooses it: 128 MiB below 64 GiB of memory, above the largest size up
 * to 2 GiB that the end of memory is a multiple of (arch/x86/mm/init_64.c); POWER's logical blocks
 * are 256 MiB, others use one section. */
static uint64_t find_block_size(const struct rn_view *view)
{
	static const char path[] = RN_SYS_MEMORY "/block_size_bytes";
	const struct rn_file *file = rn_file(view, path, sizeof(path) - 1);
	uint64_t size = 0, end;
	char text[32];

	if (file && file->type == 'f' && file->len && file->len < sizeof(text)) {
		memcpy(text, file->data, file->len);
		text[file->len] = '\0';
		size = strtoull(text, NULL, 16);
	}
	if (size >= 1 << 20)
		return size;
	end = end_of_memory(view->topo);
	if (view->arch == MC_ARCH_PPC64)
		return BLOCK_POWER;
	if (view->arch != MC_ARCH_X86_64 || end < LARGE_MACHINE)
		return BLOCK_MIN;
	for (size = BLOCK_MAX; size > BLOCK_MIN && (end & (size - 1)); size >>= 1)
		;
	return size;
}

uint64_t rn_block_size(const struct rn_at *at)
{
	uint64_t size = __atomic_load_n(&at->view->block_size, __ATOMIC_RELAXED);

	if (!size) {
		size = find_block_size(at->view);
		__atomic_store_n(&((struct rn_view *)at->view)->block_size, size, __ATOMIC_RELAXED);
	}
	return size;
}

uint64_t rn_node_block(const struct rn_at *at, unsigned int n, uint64_t from)
{
	const struct mc_node *node = mc_topology_node(at->topo, n);
	uint64_t size = rn_block_size(at), first;
	unsigned int i;

	for (i = 0; node && i < node->nr_ranges; i++) {
		if (node->ranges[i].end <= node->ranges[i].start ||
		    (node->ranges[i].end - 1) / size < from)
			continue;
		first = node->ranges[i].start / size;
		return first > from ? first : from;
	}
	return RN_NONE;
}

uint64_t rn_next_block(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	const struct mc_cpumask *nodes = &mc_topology_nodes_online(at->topo)->m;
	uint64_t best = RN_NONE, block;
	unsigned int n;

	(void)entry;
	mc_for_each_cpu (n, nodes) {
		block = rn_node_block(at, n, from);
		if (block < best)
			best = block;
		if (best == from)
			break;
	}
	return best;
}

static uint64_t next_node(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	const struct mc_cpumask *nodes = &mc_topology_nodes_online(at->topo)->m;
	uint64_t n;

	(void)entry;
	for (n = rn_next_bit(nodes, from); n != RN_NONE; n = rn_next_bit(nodes, n + 1)) {
		if (rn_node_block(at, (unsigned int)n, at->n[0]) == at->n[0])
			return n;
	}
	return RN_NONE;
}

static int make_node_link(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	mc_text_printf(out, "../../node/node%llu", (unsigned long long)rn_last(at));
	return 0;
}

static int make_index(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	mc_text_printf(out, "%08llx\n", (unsigned long long)at->n[0]);
	return 0;
}

static int make_size(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	mc_text_printf(out, "%llx\n", (unsigned long long)rn_block_size(at));
	return 0;
}

/* The zone of the block's memory; "none" for a block with holes, as the kernel says of the first
 * one of x86. */
static int make_zones(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	uint64_t size = rn_block_size(at), start = at->n[0] * size;
	uint64_t n = next_node(at, entry, 0);
	const struct mc_node *node =
		n == RN_NONE ? NULL : mc_topology_node(at->topo, (unsigned int)n);
	bool whole = false;
	unsigned int i;

	for (i = 0; node && i < node->nr_ranges; i++)
		whole |= node->ranges[i].start <= start && node->ranges[i].end >= start + size;
	if (!whole || (!start && at->view->arch == MC_ARCH_X86_64))
		mc_text_printf(out, "none\n");
	else if (at->view->arch == MC_ARCH_X86_64)
		mc_text_printf(out, "%s\n", start < UINT64_C(4) << 30 ? "DMA32" : "Normal");
	else if (at->view->arch == MC_ARCH_AARCH64)
		mc_text_printf(out, "%s\n", start < UINT64_C(4) << 30 ? "DMA" : "Normal");
	else
		mc_text_printf(out, "Normal\n");
	return 0;
}

static const struct rn_entry block[] = {
	{.name = "node#", .type = 'l', .next = next_node, .make = make_node_link},
	{.name = "online", .type = 'f', .mode = 0644, .make = rn_make_text, .text = "1\n"},
	{.name = "phys_device", .type = 'f', .make = rn_make_text, .text = "0\n"},
	{.name = "phys_index", .type = 'f', .make = make_index},
	{.name = "removable", .type = 'f', .make = rn_make_text, .text = "1\n"},
	{.name = "state", .type = 'f', .mode = 0644, .make = rn_make_text, .text = "online\n"},
	{.name = "valid_zones", .type = 'f', .make = make_zones},
	{.name = "subsystem", .type = 'l', .make = rn_make_text, .text = "../../../../bus/memory"},
	{.name = "power", .type = 'd', .has = rn_has_power, .kids = rn_power},
	{.name = "uevent", .type = 'f', .mode = 0644, .make = rn_make_text, .text = ""},
	{0},
};

const struct rn_entry rn_memory[] = {
	{.name = "block_size_bytes", .type = 'f', .make = make_size},
	{.name = "auto_online_blocks",
	 .type = 'f',
	 .mode = 0644,
	 .flags = RN_RECORD,
	 .text = "offline\n"},
	{.name = "power", .type = 'd', .has = rn_has_power, .kids = rn_power},
	{.name = "uevent", .type = 'f', .mode = 0644, .make = rn_make_text, .text = ""},
	{.name = "memory#", .type = 'd', .next = rn_next_block, .kids = block},
	{0},
};
