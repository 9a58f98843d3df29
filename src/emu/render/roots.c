// SPDX-License-Identifier: MIT
/* roots.c - which parts of /sys and /proc are the renderer's. Folders on the way to them are the host's (RN_PASS). */
#include "impl.h"

static bool has_numa(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return mc_topology_has_numa(at->topo);
}

static bool has_blocks(const struct rn_at *at, const struct rn_entry *entry)
{
	return rn_next_block(at, entry, 0) != RN_NONE;
}

static const struct rn_entry devices_system[] = {
	{.name = "cpu", .type = 'd', .flags = RN_EXTRA, .kids = rn_cpu},
	{.name = "node", .type = 'd', .flags = RN_EXTRA, .has = has_numa, .kids = rn_node},
	{.name = "memory", .type = 'd', .has = has_blocks, .kids = rn_memory},
	{0},
};

static const struct rn_entry devices[] = {
	{.name = "system", .type = 'd', .flags = RN_PASS, .kids = devices_system},
	{0},
};

static const struct rn_entry bus[] = {
	{.name = "cpu", .type = 'd', .kids = rn_bus_cpu},
	{.name = "node", .type = 'd', .has = has_numa, .kids = rn_bus_node},
	{.name = "memory", .type = 'd', .has = has_blocks, .kids = rn_bus_memory},
	{0},
};

static const struct rn_entry sys[] = {
	{.name = "devices", .type = 'd', .flags = RN_PASS, .kids = devices},
	{.name = "bus", .type = 'd', .flags = RN_PASS, .kids = bus},
	{0},
};

const struct rn_entry rn_root[] = {
	{.name = "sys", .type = 'd', .flags = RN_PASS, .kids = sys},
	{0},
};
