// SPDX-License-Identifier: MIT
/*
 * sys_cpu.c - /sys/devices/system/cpu: the sets of CPUs, the folder of each CPU, and what the
 * kernel tells of all.
 *
 * Which files there are differs by architecture and kernel: x86 has no cpu0/online, arm64 no driver
 * link; an offline CPU loses topology/ and cache/. What a recording shows decides where it can.
 */
#include <errno.h>
#include <stdlib.h>
#include "impl.h"

enum { SET_ONLINE, SET_POSSIBLE, SET_PRESENT };

static const struct mc_cpumask *set_of(const struct mc_topology *topo, int which)
{
	return which == SET_ONLINE     ? mc_topology_online(topo)
	       : which == SET_POSSIBLE ? mc_topology_possible(topo)
				       : mc_topology_present(topo);
}

static int make_set(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	mc_text_list(out, set_of(at->topo, entry->arg));
	mc_text_add(out, "\n", 1);
	return 0;
}

/* Possible CPUs that are not online, then what the kernel could have had: "N-kernel_max" is printed
 * only for nr_cpu_ids < NR_CPUS when the limit was cut on the command line, which a machine of ours
 * never is. */
static int make_offline(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	struct mc_cpumask *mask = mc_cpumask_dup(mc_topology_possible(at->topo));

	(void)entry;
	if (!mask)
		return -ENOMEM;
	mc_cpumask_andnot(mask, mask, mc_topology_online(at->topo));
	mc_text_list(out, mask);
	mc_text_add(out, "\n", 1);
	mc_cpumask_free(mask);
	return 0;
}

static int make_kernel_max(const struct rn_at *at, const struct rn_entry *entry,
			   struct mc_text *out)
{
	(void)entry;
	return rn_number(out, mc_topology_kernel_max(at->topo));
}

/* Without nohz_full= the kernel prints a NULL mask with the width of a mask: "(null)" right-aligned
 * in nr_cpu_ids columns. */
static int make_nohz_full(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	struct mc_text source = {0};
	bool null = true;

	(void)entry;
	if (!rn_source_read(at, &source) && source.len)
		null = strstr(source.data, "(null)");
	if (null)
		mc_text_printf(out, "%*s\n", (int)mc_topology_nr_cpu_ids(at->topo), "(null)");
	else
		mc_text_add(out, "\n", 1);
	mc_text_free(&source);
	return 0;
}

static bool is_x86(const struct rn_at *at)
{
	return at->view->arch == MC_ARCH_X86_64;
}

static bool has_on_x86(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return is_x86(at);
}

static bool has_features(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return is_x86(at) || at->view->arch == MC_ARCH_AARCH64;
}

static bool has_crash_notes(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return !at->view->small;
}

/* ---- smt ---- */

static unsigned int most_threads(const struct rn_at *at)
{
	const struct mc_cpumask *online = mc_topology_online(at->topo);
	unsigned int cpu, most = 1, threads;

	mc_for_each_cpu (cpu, online) {
		threads = mc_cpumask_weight(mc_topology_siblings(at->topo, cpu, MC_LEVEL_CORE));
		if (threads > most)
			most = threads;
	}
	return most;
}

static int make_smt_active(const struct rn_at *at, const struct rn_entry *entry,
			   struct mc_text *out)
{
	(void)entry;
	return rn_number(out, most_threads(at) > 1);
}

/* What the kernel calls the state: "on" where cores have threads, "notsupported" where they have
 * none; a kernel whose architecture has no control says so, and a recording may hold any of them
 * ("off", "forceoff"). */
static int make_smt_control(const struct rn_at *at, const struct rn_entry *entry,
			    struct mc_text *out)
{
	(void)entry;
	if (at->view->recorded && !rn_source_read(at, out))
		return 0;
	if (at->view->arch == MC_ARCH_X86_64 || at->view->arch == MC_ARCH_PPC64)
		mc_text_printf(out, "%s\n", most_threads(at) > 1 ? "on" : "notsupported");
	else
		mc_text_printf(out, "notimplemented\n");
	return 0;
}

static const struct rn_entry smt[] = {
	{.name = "active", .type = 'f', .make = make_smt_active},
	{.name = "control", .type = 'f', .mode = 0644, .make = make_smt_control},
	{0},
};

static const struct rn_entry hotplug[] = {
	{.name = "states", .type = 'f', .flags = RN_SOURCE, .text = "  0: offline\n236: online\n"},
	{0},
};

/* Those that the source has; all of these where there is none, as for another architecture. */
static bool has_vulnerability(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return at->view->recorded || at->view->host_source ? rn_source_type(at) : true;
}

#define UNAFFECTED(file)                                                                      \
	{                                                                                     \
		.name = file, .type = 'f', .has = has_vulnerability, .text = "Not affected\n" \
	}

static const struct rn_entry vulnerabilities[] = {
	UNAFFECTED("gather_data_sampling"),
	UNAFFECTED("itlb_multihit"),
	UNAFFECTED("l1tf"),
	UNAFFECTED("mds"),
	UNAFFECTED("meltdown"),
	UNAFFECTED("mmio_stale_data"),
	UNAFFECTED("reg_file_data_sampling"),
	UNAFFECTED("retbleed"),
	UNAFFECTED("spec_rstack_overflow"),
	UNAFFECTED("spec_store_bypass"),
	UNAFFECTED("spectre_v1"),
	UNAFFECTED("spectre_v2"),
	UNAFFECTED("srbds"),
	UNAFFECTED("tsx_async_abort"),
	{0},
};

static const struct rn_entry cpuidle[] = {
	{.name = "available_governors", .type = 'f', .text = "ladder menu teo \n"},
	{.name = "current_driver", .type = 'f', .text = "none\n"},
	{.name = "current_governor", .type = 'f', .mode = 0644, .text = "menu\n"},
	{.name = "current_governor_ro", .type = 'f', .text = "menu\n"},
	{0},
};

/* ---- one CPU ---- */

static uint64_t next_present(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return rn_next_bit(mc_topology_present(at->topo), from);
}

static bool is_online(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return mc_cpumask_test(mc_topology_online(at->topo), (unsigned int)at->n[0]);
}

static bool has_caches(const struct rn_at *at, const struct rn_entry *entry)
{
	return is_online(at, entry) && mc_topology_cpu(at->topo, (unsigned int)at->n[0])->nr_caches;
}

/* Since 6.5 x86 can never put CPU 0 offline; before that only with a build option that
 * distributions leave off. */
static bool has_online(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	if (at->view->recorded && rn_file(at->view, at->path, at->len))
		return true;
	return !is_x86(at) || at->n[0];
}

static int make_online(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	return rn_number(out, is_online(at, entry));
}

/* State of the hot-plug machine: the source's number for "online" while the CPU is, 0 when it is
 * not. */
static int make_state(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	int ret;

	if (!is_online(at, entry))
		return rn_number(out, 0);
	ret = rn_source_read(at, out);
	return ret == -ENOENT ? rn_number(out, 236) : ret;
}

static bool has_capacity(const struct rn_at *at, const struct rn_entry *entry)
{
	const struct mc_cpu *cpu = mc_topology_cpu(at->topo, (unsigned int)at->n[0]);

	(void)entry;
	return cpu->capacity >= 0 || at->view->arch == MC_ARCH_AARCH64;
}

static int make_capacity(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpu *cpu = mc_topology_cpu(at->topo, (unsigned int)at->n[0]);

	(void)entry;
	return rn_number(out, cpu->capacity >= 0 ? cpu->capacity : 1024);
}

static uint64_t next_own_node(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	unsigned int node = mc_topology_cpu(at->topo, (unsigned int)at->n[0])->node;

	(void)entry;
	if (!mc_topology_has_numa(at->topo) || node >= mc_topology_nr_node_ids(at->topo) ||
	    !mc_topology_node(at->topo, node))
		return RN_NONE;
	return from <= node ? node : RN_NONE;
}

static int make_node_link(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	mc_text_printf(out, "../../node/node%llu", (unsigned long long)rn_last(at));
	return 0;
}

/* "DRIVER=processor" and the CPU's MODALIAS, which is cpu/modalias. */
static int make_uevent(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	static const char path[] = RN_SYS_CPU "/modalias";
	const struct rn_file *file;
	char *text;
	size_t len;

	(void)entry;
	if (is_x86(at))
		mc_text_printf(out, "DRIVER=processor\n");
	if (at->view->recorded) {
		file = rn_file(at->view, path, sizeof(path) - 1);
		if (file && file->type == 'f')
			mc_text_printf(out, "MODALIAS=%.*s", (int)file->len, file->data);
	} else if (at->view->host_source && rn_host_read(path, &text, &len) >= 0) {
		mc_text_printf(out, "MODALIAS=%.*s", (int)len, text);
		free(text);
	}
	return 0;
}

static const struct rn_entry cpu_hotplug[] = {
	{.name = "state", .type = 'f', .make = make_state},
	{.name = "target", .type = 'f', .mode = 0644, .make = make_state},
	{.name = "fail", .type = 'f', .mode = 0644, .text = "-1\n"},
	{0},
};

static const struct rn_entry cpu[] = {
	{.name = "topology", .type = 'd', .flags = RN_EXTRA, .has = is_online, .kids = rn_topology},
	{.name = "cache", .type = 'd', .flags = RN_EXTRA, .has = has_caches, .kids = rn_cache},
	{.name = "node#", .type = 'l', .next = next_own_node, .make = make_node_link},
	{.name = "subsystem", .type = 'l', .make = rn_make_text, .text = "../../../../bus/cpu"},
	{.name = "driver",
	 .type = 'l',
	 .has = has_on_x86,
	 .make = rn_make_text,
	 .text = "../../../../bus/cpu/drivers/processor"},
	{.name = "online", .type = 'f', .mode = 0644, .has = has_online, .make = make_online},
	{.name = "cpu_capacity", .type = 'f', .has = has_capacity, .make = make_capacity},
	{.name = "crash_notes",
	 .type = 'f',
	 .mode = 0400,
	 .flags = RN_LIVE,
	 .has = has_crash_notes,
	 .text = "0\n"},
	{.name = "crash_notes_size",
	 .type = 'f',
	 .mode = 0400,
	 .flags = RN_LIVE,
	 .has = has_crash_notes,
	 .text = "368\n"},
	{.name = "cpufreq",
	 .type = 'l',
	 .flags = RN_HOSTED,
	 .has = rn_has_cpufreq,
	 .make = rn_make_cpufreq},
	{.name = "hotplug", .type = 'd', .kids = cpu_hotplug},
	{.name = "power", .type = 'd', .has = rn_has_power, .kids = rn_power},
	{.name = "uevent", .type = 'f', .mode = 0644, .make = make_uevent},
	{0},
};

/* ---- the folder ---- */

const struct rn_entry rn_cpu[] = {
	{.name = "online", .type = 'f', .make = make_set, .arg = SET_ONLINE},
	{.name = "possible", .type = 'f', .make = make_set, .arg = SET_POSSIBLE},
	{.name = "present", .type = 'f', .make = make_set, .arg = SET_PRESENT},
	{.name = "offline", .type = 'f', .make = make_offline},
	{.name = "enabled", .type = 'f', .flags = RN_RECORD, .make = make_set, .arg = SET_PRESENT},
	{.name = "kernel_max", .type = 'f', .make = make_kernel_max},
	{.name = "isolated", .type = 'f', .make = rn_make_recorded, .text = "\n"},
	{.name = "nohz_full", .type = 'f', .flags = RN_SOURCE, .make = make_nohz_full},
	{.name = "crash_hotplug",
	 .type = 'f',
	 .flags = RN_SOURCE,
	 .has = has_on_x86,
	 .text = "0\n"},
	{.name = "modalias",
	 .type = 'f',
	 .flags = RN_SOURCE,
	 .has = has_features,
	 .text = "cpu:type:x86,ven0000fam0006mod0000:feature:\n"},
	{.name = "uevent", .type = 'f', .mode = 0644, .text = ""},
	{.name = "power", .type = 'd', .has = rn_has_power, .kids = rn_power},
	{.name = "smt", .type = 'd', .kids = smt},
	{.name = "hotplug", .type = 'd', .kids = hotplug},
	{.name = "vulnerabilities", .type = 'd', .flags = RN_MIRROR, .kids = vulnerabilities},
	{.name = "cpuidle",
	 .type = 'd',
	 .flags = RN_EXTRA | RN_LIVE,
	 .has = rn_has_power,
	 .kids = cpuidle},
	{.name = "cpufreq", .type = 'd', .flags = RN_EXTRA | RN_SOURCE, .kids = rn_cpufreq},
	{.name = "cpu#", .type = 'd', .flags = RN_EXTRA, .next = next_present, .kids = cpu},
	{0},
};
