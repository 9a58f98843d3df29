// SPDX-License-Identifier: MIT
/* roots.c - which parts of /sys and /proc are the renderer's. Folders on the way to them are the
 * host's (RN_PASS). */
#include <unistd.h>
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

static const struct rn_entry kernel[] = {
	{.name = "mm", .type = 'd', .flags = RN_PASS, .kids = rn_kernel_mm},
	{0},
};

static const struct rn_entry sys[] = {
	{.name = "devices", .type = 'd', .flags = RN_PASS, .kids = devices},
	{.name = "bus", .type = 'd', .flags = RN_PASS, .kids = bus},
	{.name = "kernel", .type = 'd', .flags = RN_PASS, .kids = kernel},
	{0},
};

static const struct rn_entry sysctl_kernel[] = {
	{.name = "numa_balancing", .type = 'f', .mode = 0644, .make = rn_numa_balancing},
	{0},
};

static const struct rn_entry sysctl[] = {
	{.name = "kernel", .type = 'd', .flags = RN_PASS, .kids = sysctl_kernel},
	{0},
};

static bool has_schedstat(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return access(at->path, F_OK) == 0 || (at->view->recorded && rn_source_type(at));
}

static const struct rn_entry proc[] = {
	{.name = "cpuinfo", .type = 'f', .make = rn_proc_cpuinfo},
	{.name = "stat", .type = 'f', .flags = RN_HOST, .make = rn_proc_stat},
	{.name = "uptime", .type = 'f', .flags = RN_HOST, .make = rn_proc_uptime},
	{.name = "softirqs", .type = 'f', .flags = RN_HOST, .arg = true, .make = rn_proc_columns},
	{.name = "interrupts",
	 .type = 'f',
	 .flags = RN_HOST,
	 .arg = false,
	 .make = rn_proc_columns},
	{.name = "schedstat", .type = 'f', .has = has_schedstat, .make = rn_proc_schedstat},
	{.name = "meminfo", .type = 'f', .make = rn_proc_meminfo},
	{.name = "vmstat", .type = 'f', .flags = RN_HOST, .make = rn_proc_vmstat},
	{.name = "zoneinfo", .type = 'f', .make = rn_proc_zoneinfo},
	{.name = "buddyinfo", .type = 'f', .make = rn_proc_buddyinfo},
	{.name = "pagetypeinfo",
	 .type = 'f',
	 .mode = 0400,
	 .flags = RN_HOST,
	 .make = rn_proc_pagetypeinfo},
	{.name = "irq", .type = 'd', .flags = RN_PASS, .kids = rn_irq},
	{.name = "sys", .type = 'd', .flags = RN_PASS, .kids = sysctl},
	{0},
};

const struct rn_entry rn_root[] = {
	{.name = "sys", .type = 'd', .flags = RN_PASS, .kids = sys},
	{.name = "proc", .type = 'd', .flags = RN_PASS, .kids = proc},
	{0},
};
