// SPDX-License-Identifier: MIT
/*
 * proc_mem.c - /proc/meminfo, /proc/vmstat and sysinfo(2): the machine's figures written into the
 * recording's text where it still fits, else into the host's, which has the lines of the running
 * kernel and the counters that move.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "mem.h"

struct values {
	const struct rn_at *at;
	struct rn_figs figs; /* sums; with `delta` changes */
	struct mc_node_counters now;
	bool delta;
};

/* What only /proc/meminfo has, on a machine of this size. */
static int64_t machine_value(const struct values *values, const char *name, size_t len)
{
	int64_t total = values->figs.v[FIG_TOTAL];
	bool x86 = values->at->view->arch == MC_ARCH_X86_64;
	const struct {
		const char *name;
		int64_t value;
	} table[] = {
		{"Buffers", 0},
		{"SwapCached", 0},
		{"CommitLimit", total / 2},
		{"Committed_AS", values->figs.v[FIG_ANON] + values->figs.v[FIG_SHMEM]},
		{"Percpu",
		 (int64_t)mc_cpumask_weight(mc_topology_possible(values->at->topo)) * 280},
		{"HugePages_Rsvd", 0},
		{"Hugepagesize", (int64_t)rn_default_huge(values->at)},
		{"Hugetlb", values->figs.v[FIG_HUGE_TOTAL] * (int64_t)rn_default_huge(values->at)},
		{"Unevictable", 0},
		{"Mlocked", 0},
		{"Balloon", 0},
		{"DirectMap4k", x86 ? 4096 * 64 : INT64_MIN},
		{"DirectMap2M", x86 ? total & 1048575 & ~2047 : INT64_MIN},
		{"DirectMap1G", x86 ? total & ~(int64_t)1048575 : INT64_MIN},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
			return table[i].value;
	}
	return INT64_MIN;
}

static int64_t meminfo_value(void *arg, const char *name, size_t len, int64_t old)
{
	const struct values *values = arg;
	enum rn_fig fig = rn_fig_of(name, len);

	if (values->delta) {
		if (fig >= FIG_NR || !values->figs.v[fig])
			return INT64_MIN;
		return old + values->figs.v[fig];
	}
	return fig < FIG_NR ? values->figs.v[fig] : machine_value(values, name, len);
}

static int64_t take_total(void *arg, const char *name, size_t len, int64_t old)
{
	if (rn_fig_of(name, len) == FIG_TOTAL)
		*(int64_t *)arg = old;
	return INT64_MIN;
}

/* The recording's /proc/meminfo while the machine's memory is still what it tells. */
static const struct rn_file *recorded_meminfo(const struct rn_at *at)
{
	const struct rn_file *file =
		at->view->recorded ? rn_file(at->view, "/proc/meminfo", 13) : NULL;
	struct mc_text unused = {0};
	int64_t total = 0;

	if (!file || file->type != 'f')
		return NULL;
	rn_rewrite(&unused, file->data, file->len, 0, take_total, &total);
	mc_text_free(&unused);
	return total == (int64_t)(mc_topology_mem_total(at->topo) >> 10) ? file : NULL;
}

static void sum_usage(const struct rn_at *at, struct rn_figs *figs)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	struct rn_figs one;
	unsigned int n, i;

	memset(figs, 0, sizeof(*figs));
	mc_for_each_cpu (n, online) {
		rn_figs_usage(at, n, &one);
		for (i = 0; i < FIG_NR; i++)
			figs->v[i] += one.v[i];
	}
	figs->v[FIG_AVAILABLE] = figs->v[FIG_FREE] + figs->v[FIG_INACTIVE_FILE];
}

/* Lines that a text must have whatever the host's kernel shows. */
static const char fallback[] =
	"MemTotal:       0 kB\nMemFree:        0 kB\nMemAvailable:   0 kB\nBuffers:        0 kB\n"
	"Cached:         0 kB\nSwapTotal:      0 kB\nSwapFree:       0 kB\nShmem:          0 kB\n";

int rn_proc_meminfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct rn_file *file = recorded_meminfo(at);
	struct values values = {.at = at};
	char *text;
	size_t len;

	(void)entry;
	if (file) {
		values.delta = true;
		sum_usage(at, &values.figs);
		rn_rewrite(out, file->data, file->len, 0, meminfo_value, &values);
		return 0;
	}
	rn_figs_all(at, &values.figs);
	if (rn_host_read("/proc/meminfo", &text, &len) < 0) {
		rn_rewrite(out, fallback, sizeof(fallback) - 1, 0, meminfo_value, &values);
		return 0;
	}
	rn_rewrite(out, text, len, 0, meminfo_value, &values);
	free(text);
	return 0;
}

/* ---- /proc/vmstat ---- */

static int64_t vmstat_value(void *arg, const char *name, size_t len, int64_t old)
{
	const struct values *values = arg;
	const struct mc_node_counters *c = &values->now;
	const struct {
		const char *name;
		uint64_t value;
	} table[] = {
		{"numa_hit", c->numa_hit},         {"numa_miss", c->numa_miss},
		{"numa_foreign", c->numa_foreign}, {"numa_interleave", c->interleave_hit},
		{"numa_local", c->local_node},     {"numa_other", c->other_node},
	};
	unsigned int unit;
	enum rn_fig fig = rn_fig_of_vmstat(name, len, &unit);
	size_t i;

	(void)old;
	if (fig < FIG_NR)
		return values->figs.v[fig] * 1024 / unit;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
			return (int64_t)table[i].value;
	}
	return INT64_MIN;
}

int rn_proc_vmstat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	struct values values = {.at = at};
	struct mc_node_counters one;
	unsigned int n;
	char *text;
	size_t len;
	int ret;

	(void)entry;
	ret = rn_host_read("/proc/vmstat", &text, &len);
	if (ret < 0)
		return ret;
	rn_figs_all(at, &values.figs);
	mc_for_each_cpu (n, online) {
		rn_counters(at, n, &one);
		values.now.numa_hit += one.numa_hit;
		values.now.numa_miss += one.numa_miss;
		values.now.numa_foreign += one.numa_foreign;
		values.now.interleave_hit += one.interleave_hit;
		values.now.local_node += one.local_node;
		values.now.other_node += one.other_node;
	}
	rn_rewrite(out, text, len, 0, vmstat_value, &values);
	free(text);
	return 0;
}

/* ---- sysinfo(2) ---- */

static int64_t take_sysinfo(void *arg, const char *name, size_t len, int64_t old)
{
	struct mc_render_memory *memory = arg;
	const struct {
		const char *name;
		uint64_t *to;
	} table[] = {
		{"MemTotal", &memory->total},         {"MemFree", &memory->free},
		{"Shmem", &memory->shared},           {"Buffers", &memory->buffers},
		{"SwapTotal", &memory->swap_total},   {"SwapFree", &memory->swap_free},
		{"MemAvailable", &memory->available},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
			*table[i].to = (uint64_t)old << 10;
	}
	return INT64_MIN;
}

int mc_render_memory(struct mc_render *render, struct mc_render_memory *memory)
{
	struct mc_text text = {0}, unused = {0};
	int ret = mc_render_read(render, "/proc/meminfo", &text);

	if (!ret) {
		memset(memory, 0, sizeof(*memory));
		rn_rewrite(&unused, text.data, text.len, 0, take_sysinfo, memory);
	}
	mc_text_free(&unused);
	mc_text_free(&text);
	return ret;
}
