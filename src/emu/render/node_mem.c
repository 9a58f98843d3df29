// SPDX-License-Identifier: MIT
/*
 * node_mem.c - nodeN/meminfo, numastat and vmstat: a recording's text with the figures that move
 * written into it, or the text of a 6.12 kernel.
 */
#include <stdio.h>
#include "mem.h"

/* In the kernel's order (drivers/base/node.c). */
static const char *const meminfo[] = {
	"MemTotal",       "MemFree",       "MemUsed",        "SwapCached",    "Active",
	"Inactive",       "Active(anon)",  "Inactive(anon)", "Active(file)",  "Inactive(file)",
	"Unevictable",    "Mlocked",       "Dirty",          "Writeback",     "FilePages",
	"Mapped",         "AnonPages",     "Shmem",          "KernelStack",   "PageTables",
	"SecPageTables",  "NFS_Unstable",  "Bounce",         "WritebackTmp",  "KReclaimable",
	"Slab",           "SReclaimable",  "SUnreclaim",     "AnonHugePages", "ShmemHugePages",
	"ShmemPmdMapped", "FileHugePages", "FilePmdMapped",
};

static const char *const vmstat[] = {
	"nr_free_pages",
	"nr_zone_inactive_anon",
	"nr_zone_active_anon",
	"nr_zone_inactive_file",
	"nr_zone_active_file",
	"nr_zone_unevictable",
	"nr_zone_write_pending",
	"nr_mlock",
	"nr_bounce",
	"nr_zspages",
	"nr_free_cma",
	"numa_hit",
	"numa_miss",
	"numa_foreign",
	"numa_interleave",
	"numa_local",
	"numa_other",
	"nr_inactive_anon",
	"nr_active_anon",
	"nr_inactive_file",
	"nr_active_file",
	"nr_unevictable",
	"nr_slab_reclaimable",
	"nr_slab_unreclaimable",
	"nr_isolated_anon",
	"nr_isolated_file",
	"workingset_nodes",
	"workingset_refault_anon",
	"workingset_refault_file",
	"workingset_activate_anon",
	"workingset_activate_file",
	"workingset_restore_anon",
	"workingset_restore_file",
	"workingset_nodereclaim",
	"nr_anon_pages",
	"nr_mapped",
	"nr_file_pages",
	"nr_dirty",
	"nr_writeback",
	"nr_writeback_temp",
	"nr_shmem",
	"nr_shmem_hugepages",
	"nr_shmem_pmdmapped",
	"nr_file_hugepages",
	"nr_file_pmdmapped",
	"nr_anon_transparent_hugepages",
	"nr_vmscan_write",
	"nr_vmscan_immediate_reclaim",
	"nr_dirtied",
	"nr_written",
	"nr_throttled_written",
	"nr_kernel_misc_reclaimable",
	"nr_foll_pin_acquired",
	"nr_foll_pin_released",
	"nr_kernel_stack",
	"nr_page_table_pages",
	"nr_sec_page_table_pages",
	"nr_swapcached",
};

struct values {
	struct rn_figs figs;
	struct mc_node_counters now;
	bool add; /* counters are added to the old value, a recording's */
};

static int64_t meminfo_value(void *arg, const char *name, size_t len, int64_t old)
{
	struct values *values = arg;
	enum rn_fig fig = rn_fig_of(name, len);

	(void)old;
	return fig < FIG_NR ? values->figs.v[fig] : INT64_MIN;
}

/* A counter by its name in numastat or vmstat. */
static bool counter(const struct mc_node_counters *c, const char *name, size_t len, uint64_t *value)
{
	const struct {
		const char *name;
		uint64_t value;
	} table[] = {
		{"numa_hit", c->numa_hit},
		{"numa_miss", c->numa_miss},
		{"numa_foreign", c->numa_foreign},
		{"interleave_hit", c->interleave_hit},
		{"numa_interleave", c->interleave_hit},
		{"local_node", c->local_node},
		{"numa_local", c->local_node},
		{"other_node", c->other_node},
		{"numa_other", c->other_node},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len)) {
			*value = table[i].value;
			return true;
		}
	}
	return false;
}

static int64_t vmstat_value(void *arg, const char *name, size_t len, int64_t old)
{
	struct values *values = arg;
	unsigned int unit;
	enum rn_fig fig = rn_fig_of_vmstat(name, len, &unit);
	uint64_t value;

	if (counter(&values->now, name, len, &value))
		return (int64_t)value + (values->add ? old : 0);
	return fig < FIG_NR ? values->figs.v[fig] * 1024 / unit : INT64_MIN;
}

/* A vmstat is a little older or younger than the meminfo recorded with it: as recorded until the
 * node is used. */
static int64_t recorded_vmstat_value(void *arg, const char *name, size_t len, int64_t old)
{
	struct values *values = arg;
	unsigned int unit;
	enum rn_fig fig = rn_fig_of_vmstat(name, len, &unit);
	uint64_t value;

	if (counter(&values->now, name, len, &value))
		return old + (int64_t)value;
	return fig < FIG_NR && values->figs.v[fig] ? old + values->figs.v[fig] * 1024 / unit
						   : INT64_MIN;
}

/* What a recording tells of this very node, provided that it is still the same node. */
static const struct rn_file *recorded(const struct rn_at *at)
{
	return at->view->recorded ? rn_file(at->view, at->path, at->len) : NULL;
}

static void live_counters(const struct rn_at *at, struct mc_node_counters *c)
{
	const struct mc_render_live *live = rn_live(at->render);

	memset(c, 0, sizeof(*c));
	if (live->node_counters)
		live->node_counters(live->arg, (unsigned int)at->n[0], c);
}

int rn_node_meminfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct rn_file *file = recorded(at);
	unsigned int n = (unsigned int)at->n[0];
	struct values values = {0};
	char skip[32], name[32];
	enum rn_fig fig;
	size_t i;

	(void)entry;
	rn_figs_node(at, n, &values.figs);
	if (file) {
		rn_rewrite(out, file->data, file->len,
			   (size_t)snprintf(skip, sizeof(skip), "Node %u ", n), meminfo_value,
			   &values);
		return 0;
	}
	for (i = 0; i < sizeof(meminfo) / sizeof(meminfo[0]); i++) {
		fig = rn_fig_of(meminfo[i], strlen(meminfo[i]));
		snprintf(name, sizeof(name), "%s:", meminfo[i]);
		mc_text_printf(out, "Node %u %-15s %8lld kB\n", n, name,
			       fig < FIG_NR ? (long long)values.figs.v[fig] : 0);
	}
	mc_text_printf(out, "Node %u HugePages_Total: %5lld\n", n,
		       (long long)values.figs.v[FIG_HUGE_TOTAL]);
	mc_text_printf(out, "Node %u HugePages_Free:  %5lld\n", n,
		       (long long)values.figs.v[FIG_HUGE_FREE]);
	mc_text_printf(out, "Node %u HugePages_Surp:  %5lld\n", n,
		       (long long)values.figs.v[FIG_HUGE_SURPLUS]);
	return 0;
}

int rn_node_numastat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	static const char *const line[] = {"numa_hit",       "numa_miss",  "numa_foreign",
					   "interleave_hit", "local_node", "other_node"};
	const struct rn_file *file = recorded(at);
	struct values values = {.add = true};
	uint64_t value = 0;
	size_t i;

	(void)entry;
	if (file) {
		live_counters(at, &values.now);
		rn_rewrite(out, file->data, file->len, 0, vmstat_value, &values);
		return 0;
	}
	rn_counters(at, (unsigned int)at->n[0], &values.now);
	for (i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		counter(&values.now, line[i], strlen(line[i]), &value);
		mc_text_printf(out, "%s %llu\n", line[i], (unsigned long long)value);
	}
	return 0;
}

int rn_node_vmstat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct rn_file *file = recorded(at);
	unsigned int n = (unsigned int)at->n[0];
	struct values values = {0};
	int64_t value;
	size_t i;

	(void)entry;
	if (file) {
		live_counters(at, &values.now);
		rn_figs_usage(at, n, &values.figs);
		rn_rewrite(out, file->data, file->len, 0, recorded_vmstat_value, &values);
		return 0;
	}
	rn_figs_node(at, n, &values.figs);
	rn_counters(at, n, &values.now);
	for (i = 0; i < sizeof(vmstat) / sizeof(vmstat[0]); i++) {
		value = vmstat_value(&values, vmstat[i], strlen(vmstat[i]), 0);
		mc_text_printf(out, "%s %lld\n", vmstat[i],
			       value == INT64_MIN ? 0 : (long long)value);
	}
	return 0;
}
