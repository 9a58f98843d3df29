// SPDX-License-Identifier: MIT
/* sys_bus.c - /sys/bus/{cpu,node,memory}, the power/ folder that every device has, and small shared
 * makers. */
#include <errno.h>
#include "impl.h"

int rn_number(struct mc_text *out, long long value)
{
	mc_text_printf(out, "%lld\n", value);
	return 0;
}

uint64_t rn_next_bit(const struct mc_cpumask *mask, uint64_t from)
{
	unsigned int bit;

	if (from >= mask->nbits)
		return RN_NONE;
	bit = mc_cpumask_next((int)from - 1, mask);
	return bit < mask->nbits ? bit : RN_NONE;
}

int rn_make_text(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)at;
	mc_text_add(out, entry->text, strlen(entry->text));
	return 0;
}

int rn_make_recorded(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	if (at->view->recorded && !rn_source_read(at, out))
		return 0;
	return rn_make_text(at, entry, out);
}

/* A device without run-time power management: the delay can't be read. */
static int make_delay(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)at;
	(void)entry;
	(void)out;
	return -EIO;
}

/* Kernels without CONFIG_PM_ADVANCED_DEBUG show five of the nine. */
static bool has_advanced(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return !at->view->no_advanced;
}

bool rn_has_power(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return !at->view->small;
}

const struct rn_entry rn_power[] = {
	{.name = "async",
	 .type = 'f',
	 .mode = 0644,
	 .has = has_advanced,
	 .make = rn_make_text,
	 .text = "disabled\n"},
	{.name = "autosuspend_delay_ms", .type = 'f', .mode = 0644, .make = make_delay},
	{.name = "control", .type = 'f', .mode = 0644, .make = rn_make_text, .text = "auto\n"},
	{.name = "runtime_active_kids",
	 .type = 'f',
	 .has = has_advanced,
	 .make = rn_make_text,
	 .text = "0\n"},
	{.name = "runtime_active_time", .type = 'f', .make = rn_make_text, .text = "0\n"},
	{.name = "runtime_enabled",
	 .type = 'f',
	 .has = has_advanced,
	 .make = rn_make_text,
	 .text = "disabled\n"},
	{.name = "runtime_status", .type = 'f', .make = rn_make_text, .text = "unsupported\n"},
	{.name = "runtime_suspended_time", .type = 'f', .make = rn_make_text, .text = "0\n"},
	{.name = "runtime_usage",
	 .type = 'f',
	 .has = has_advanced,
	 .make = rn_make_text,
	 .text = "0\n"},
	{0},
};

static uint64_t next_cpu(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return rn_next_bit(mc_topology_present(at->topo), from);
}

static uint64_t next_node(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return rn_next_bit(&mc_topology_nodes_online(at->topo)->m, from);
}

/* /sys/bus/X/devices/XN -> ../../../devices/system/X/XN */
static int make_link(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	mc_text_printf(out, "../../../devices/system/%s/%s%llu", entry->text, entry->text,
		       (unsigned long long)rn_last(at));
	return 0;
}

/* As the kernel's driver folder: one level deeper than devices/. */
static int make_driver_link(const struct rn_at *at, const struct rn_entry *entry,
			    struct mc_text *out)
{
	mc_text_add(out, "../", 3);
	return make_link(at, entry, out);
}

static const struct rn_entry cpu_devices[] = {
	{.name = "cpu#", .type = 'l', .next = next_cpu, .make = make_link, .text = "cpu"},
	{0},
};

static const struct rn_entry node_devices[] = {
	{.name = "node#", .type = 'l', .next = next_node, .make = make_link, .text = "node"},
	{0},
};

static const struct rn_entry memory_devices[] = {
	{.name = "memory#",
	 .type = 'l',
	 .next = rn_next_block,
	 .make = make_link,
	 .text = "memory"},
	{0},
};

static const struct rn_entry processor[] = {
	{.name = "cpu#", .type = 'l', .next = next_cpu, .make = make_driver_link, .text = "cpu"},
	{.name = "bind", .type = 'f', .mode = 0200},
	{.name = "unbind", .type = 'f', .mode = 0200},
	{.name = "uevent", .type = 'f', .mode = 0200},
	{0},
};

static bool has_processor(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return at->view->arch == MC_ARCH_X86_64;
}

static const struct rn_entry cpu_drivers[] = {
	{.name = "processor", .type = 'd', .has = has_processor, .kids = processor},
	{0},
};

static const struct rn_entry nothing[] = {{0}};

#define BUS(devs, drvs)                                                                  \
	{.name = "devices", .type = 'd', .kids = devs},                                  \
		{.name = "drivers", .type = 'd', .kids = drvs},                          \
		{.name = "drivers_autoprobe", .type = 'f', .mode = 0644, .text = "1\n"}, \
		{.name = "drivers_probe", .type = 'f', .mode = 0200},                    \
	{                                                                                \
		.name = "uevent", .type = 'f', .mode = 0200                              \
	}

const struct rn_entry rn_bus_cpu[] = {BUS(cpu_devices, cpu_drivers), {0}};
const struct rn_entry rn_bus_node[] = {BUS(node_devices, nothing), {0}};
const struct rn_entry rn_bus_memory[] = {BUS(memory_devices, nothing), {0}};
