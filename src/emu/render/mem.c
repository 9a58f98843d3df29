// SPDX-License-Identifier: MIT
/* mem.c - the figures of mem.h, and the rewriting of texts that hold them. */
#include <stdio.h>
#include <stdlib.h>
#include "mem.h"

static const struct {
	const char *name;
	enum rn_fig fig;
} names[] = {
	{"MemTotal", FIG_TOTAL},
	{"MemFree", FIG_FREE},
	{"MemAvailable", FIG_AVAILABLE},
	{"MemUsed", FIG_USED},
	{"Active", FIG_ACTIVE},
	{"Inactive", FIG_INACTIVE},
	{"Active(anon)", FIG_ACTIVE_ANON},
	{"Inactive(anon)", FIG_INACTIVE_ANON},
	{"Active(file)", FIG_ACTIVE_FILE},
	{"Inactive(file)", FIG_INACTIVE_FILE},
	{"Dirty", FIG_DIRTY},
	{"FilePages", FIG_FILE},
	{"Cached", FIG_FILE},
	{"Mapped", FIG_MAPPED},
	{"AnonPages", FIG_ANON},
	{"Shmem", FIG_SHMEM},
	{"KernelStack", FIG_STACK},
	{"PageTables", FIG_TABLES},
	{"KReclaimable", FIG_RECLAIMABLE},
	{"SReclaimable", FIG_RECLAIMABLE},
	{"SUnreclaim", FIG_UNRECLAIMABLE},
	{"Slab", FIG_SLAB},
	{"HugePages_Total", FIG_HUGE_TOTAL},
	{"HugePages_Free", FIG_HUGE_FREE},
	{"HugePages_Surp", FIG_HUGE_SURPLUS},
};

static const struct {
	const char *name;
	enum rn_fig fig;
	unsigned int unit;
} vmstat_names[] = {
	{"nr_free_pages", FIG_FREE, 4096},
	{"nr_free_pages_blocks", FIG_FREE, 4096},
	{"nr_inactive_anon", FIG_INACTIVE_ANON, 4096},
	{"nr_active_anon", FIG_ACTIVE_ANON, 4096},
	{"nr_inactive_file", FIG_INACTIVE_FILE, 4096},
	{"nr_active_file", FIG_ACTIVE_FILE, 4096},
	{"nr_zone_inactive_anon", FIG_INACTIVE_ANON, 4096},
	{"nr_zone_active_anon", FIG_ACTIVE_ANON, 4096},
	{"nr_zone_inactive_file", FIG_INACTIVE_FILE, 4096},
	{"nr_zone_active_file", FIG_ACTIVE_FILE, 4096},
	{"nr_slab_reclaimable", FIG_RECLAIMABLE, 4096},
	{"nr_slab_unreclaimable", FIG_UNRECLAIMABLE, 4096},
	{"nr_anon_pages", FIG_ANON, 4096},
	{"nr_mapped", FIG_MAPPED, 4096},
	{"nr_file_pages", FIG_FILE, 4096},
	{"nr_dirty", FIG_DIRTY, 4096},
	{"nr_zone_write_pending", FIG_DIRTY, 4096},
	{"nr_shmem", FIG_SHMEM, 4096},
	{"nr_kernel_stack", FIG_STACK, 1024},
	{"nr_page_table_pages", FIG_TABLES, 4096},
};

static bool same(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && !memcmp(name, text, len);
}

enum rn_fig rn_fig_of(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (same(names[i].name, name, len))
			return names[i].fig;
	}
	return FIG_NR;
}

enum rn_fig rn_fig_of_vmstat(const char *name, size_t len, unsigned int *unit)
{
	size_t i;

	for (i = 0; i < sizeof(vmstat_names) / sizeof(vmstat_names[0]); i++) {
		if (!same(vmstat_names[i].name, name, len))
			continue;
		*unit = vmstat_names[i].unit;
		return vmstat_names[i].fig;
	}
	return FIG_NR;
}

/* ---- texts ---- */

/* One line without its newline. */
static void rewrite_line(struct mc_text *out, const char *line, size_t len, size_t skip,
			 int64_t (*value)(void *arg, const char *name, size_t len, int64_t old),
			 void *arg)
{
	size_t name = skip < len ? skip : len, end, number, after;
	char digits[24];
	int64_t new;
	int width;

	while (name < len && line[name] == ' ')
		name++;
	for (end = name; end < len && line[end] != ' ' && line[end] != ':' && line[end] != '\t';
	     end++)
		;
	for (number = end;
	     number < len && (line[number] == ' ' || line[number] == ':' || line[number] == '\t');
	     number++)
		;
	for (after = number; after < len && line[after] >= '0' && line[after] <= '9'; after++)
		;
	new = after > number ? value(arg, line + name, end - name, strtoll(line + number, NULL, 10))
			     : INT64_MIN;
	if (new == INT64_MIN) {
		mc_text_add(out, line, len);
		return;
	}
	width = snprintf(digits, sizeof(digits), "%lld", (long long)(new < 0 ? 0 : new));
	/* Blanks before the number take up what it grows or shrinks by; one stays. */
	while (number > end + 1 && line[number - 1] == ' ' && (size_t)width > after - number)
		number--;
	mc_text_add(out, line, number);
	if ((size_t)width < after - number && line[number > 0 ? number - 1 : 0] == ' ' &&
	    number > end + 1)
		mc_text_printf(out, "%*s", (int)(after - number - (size_t)width), "");
	mc_text_add(out, digits, (size_t)width);
	mc_text_add(out, line + after, len - after);
}

void rn_rewrite(struct mc_text *out, const char *text, size_t len, size_t skip,
		int64_t (*value)(void *arg, const char *name, size_t len, int64_t old), void *arg)
{
	const char *end = text + len, *eol;

	while (text < end) {
		eol = memchr(text, '\n', (size_t)(end - text));
		rewrite_line(out, text, (size_t)((eol ? eol : end) - text), skip, value, arg);
		if (!eol)
			return;
		mc_text_add(out, "\n", 1);
		text = eol + 1;
	}
}

/* ---- figures ---- */

static int64_t take_fig(void *arg, const char *name, size_t len, int64_t old)
{
	struct rn_figs *figs = arg;
	enum rn_fig fig = rn_fig_of(name, len);

	if (fig < FIG_NR)
		figs->v[fig] = old;
	return INT64_MIN;
}

static void parse(const char *text, size_t len, size_t skip, struct rn_figs *figs)
{
	struct mc_text unused = {0};

	rn_rewrite(&unused, text, len, skip, take_fig, figs);
	mc_text_free(&unused);
}

/* A machine some time after boot: of what is not free, half is page cache, the rest the kernel's
 * own. */
static void make_base(uint64_t total, uint64_t free, struct rn_figs *figs)
{
	int64_t used = (int64_t)(total - free) >> 10;

	figs->v[FIG_TOTAL] = (int64_t)(total >> 10);
	figs->v[FIG_FREE] = (int64_t)(free >> 10);
	figs->v[FIG_ACTIVE_FILE] = used / 16 * 5 & ~3;
	figs->v[FIG_INACTIVE_FILE] = used / 16 * 3 & ~3;
	figs->v[FIG_FILE] = figs->v[FIG_ACTIVE_FILE] + figs->v[FIG_INACTIVE_FILE];
	figs->v[FIG_RECLAIMABLE] = used / 16 & ~3;
	figs->v[FIG_UNRECLAIMABLE] = used / 16 & ~3;
	figs->v[FIG_STACK] = used / 256 & ~3;
	figs->v[FIG_TABLES] = used / 256 & ~3;
}

uint64_t rn_default_huge(const struct rn_at *at)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	const struct mc_node *node = mc_topology_node(at->topo, mc_cpumask_first(online));
	unsigned int i;

	/* 2 MiB is the default size on x86 and on arm64 with 4 KiB pages, 16 MiB on POWER with hash
	 * tables. */
	for (i = 0; node && i < node->nr_hugepools; i++) {
		if (node->hugepools[i].size == 2 << 20)
			return 2048;
	}
	return node && node->nr_hugepools ? node->hugepools[0].size >> 10 : 2048;
}

static void add_usage(struct rn_figs *figs, const struct mc_node_usage *use, uint64_t huge)
{
	int64_t anon = (int64_t)(use->anon >> 10), file = (int64_t)(use->file >> 10),
		shmem = (int64_t)(use->shmem >> 10);

	figs->v[FIG_FREE] -= anon + file + shmem;
	figs->v[FIG_ANON] += anon;
	figs->v[FIG_ACTIVE_ANON] += anon;
	figs->v[FIG_INACTIVE_ANON] += shmem;
	figs->v[FIG_INACTIVE_FILE] += file;
	figs->v[FIG_FILE] += file + shmem;
	figs->v[FIG_SHMEM] += shmem;
	figs->v[FIG_MAPPED] += (int64_t)(use->mapped >> 10);
	figs->v[FIG_DIRTY] += (int64_t)(use->dirty >> 10);
	figs->v[FIG_HUGE_FREE] -= (int64_t)((use->hugetlb >> 10) / huge);
	figs->v[FIG_ACTIVE] += anon;
	figs->v[FIG_INACTIVE] += shmem + file;
}

void rn_figs_usage(const struct rn_at *at, unsigned int node, struct rn_figs *figs)
{
	const struct mc_render_live *live = rn_live(at->render);
	struct mc_node_usage usage = {0};

	memset(figs, 0, sizeof(*figs));
	if (!live->node_usage)
		return;
	live->node_usage(live->arg, node, &usage);
	add_usage(figs, &usage, rn_default_huge(at));
}

void rn_figs_node(const struct rn_at *at, unsigned int n, struct rn_figs *figs)
{
	const struct mc_node *node = mc_topology_node(at->topo, n);
	uint64_t huge = rn_default_huge(at);
	struct rn_figs usage;
	const struct rn_file *file;
	char path[64], skip[32];
	unsigned int i;

	memset(figs, 0, sizeof(*figs));
	snprintf(path, sizeof(path), RN_SYS_NODE "/node%u/meminfo", n);
	file = at->view->recorded ? rn_file(at->view, path, strlen(path)) : NULL;
	if (file && file->type == 'f')
		parse(file->data, file->len, (size_t)snprintf(skip, sizeof(skip), "Node %u ", n),
		      figs);
	if (figs->v[FIG_TOTAL] != (int64_t)(node->mem_total >> 10)) {
		memset(figs, 0, sizeof(*figs));
		make_base(node->mem_total, node->mem_free, figs);
	}
	for (i = 0; i < node->nr_hugepools; i++) {
		if (node->hugepools[i].size >> 10 != huge)
			continue;
		figs->v[FIG_HUGE_TOTAL] = (int64_t)node->hugepools[i].total;
		figs->v[FIG_HUGE_FREE] = (int64_t)node->hugepools[i].free;
		figs->v[FIG_HUGE_SURPLUS] = (int64_t)node->hugepools[i].surplus;
	}
	if (!figs->v[FIG_SLAB])
		figs->v[FIG_SLAB] = figs->v[FIG_RECLAIMABLE] + figs->v[FIG_UNRECLAIMABLE];
	if (!figs->v[FIG_ACTIVE])
		figs->v[FIG_ACTIVE] = figs->v[FIG_ACTIVE_ANON] + figs->v[FIG_ACTIVE_FILE];
	if (!figs->v[FIG_INACTIVE])
		figs->v[FIG_INACTIVE] = figs->v[FIG_INACTIVE_ANON] + figs->v[FIG_INACTIVE_FILE];
	rn_figs_usage(at, n, &usage);
	for (i = 0; i < FIG_NR; i++)
		figs->v[i] = figs->v[i] + usage.v[i] > 0 ? figs->v[i] + usage.v[i] : 0;
	figs->v[FIG_USED] = figs->v[FIG_TOTAL] - figs->v[FIG_FREE];
	figs->v[FIG_AVAILABLE] = figs->v[FIG_FREE] +
				 (figs->v[FIG_ACTIVE_FILE] + figs->v[FIG_INACTIVE_FILE]) +
				 figs->v[FIG_RECLAIMABLE] / 2;
}

void rn_figs_all(const struct rn_at *at, struct rn_figs *figs)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	struct rn_figs one;
	unsigned int n, i;

	memset(figs, 0, sizeof(*figs));
	mc_for_each_cpu (n, online) {
		rn_figs_node(at, n, &one);
		for (i = 0; i < FIG_NR; i++)
			figs->v[i] += one.v[i];
	}
	if (!figs->v[FIG_TOTAL]) {
		make_base(mc_topology_mem_total(at->topo),
			  mc_topology_mem_total(at->topo) / 64 * 63, figs);
		figs->v[FIG_SLAB] = figs->v[FIG_RECLAIMABLE] + figs->v[FIG_UNRECLAIMABLE];
		figs->v[FIG_ACTIVE] = figs->v[FIG_ACTIVE_FILE];
		figs->v[FIG_INACTIVE] = figs->v[FIG_INACTIVE_FILE];
		figs->v[FIG_AVAILABLE] =
			figs->v[FIG_FREE] + figs->v[FIG_FILE] + figs->v[FIG_RECLAIMABLE] / 2;
	}
}

/* ---- zones ---- */

static uint64_t overlap(const struct mc_range *range, uint64_t start, uint64_t end)
{
	uint64_t from = range->start > start ? range->start : start,
		 to = range->end < end ? range->end : end;

	return from < to ? to - from : 0;
}

unsigned int rn_zones(const struct rn_at *at, unsigned int n, const struct rn_figs *figs,
		      struct rn_zone zone[RN_ZONES])
{
	static const char *const x86_names[] = {"DMA", "DMA32", "Normal"}, *const arm_names[] = {
										   "DMA", "DMA32",
										   "Normal"};
	static const uint64_t x86_ends[] = {UINT64_C(16) << 20, UINT64_C(4) << 30, UINT64_MAX};
	static const uint64_t arm_ends[] = {UINT64_C(4) << 30, UINT64_C(4) << 30, UINT64_MAX};
	static const char *const one_name[] = {"Normal"};
	static const uint64_t one_end[] = {UINT64_MAX};
	bool x86 = at->view->arch == MC_ARCH_X86_64, arm = at->view->arch == MC_ARCH_AARCH64;
	const char *const *name = x86 ? x86_names : arm ? arm_names : one_name;
	const uint64_t *end = x86 ? x86_ends : arm ? arm_ends : one_end;
	const struct mc_node *node = mc_topology_node(at->topo, n);
	unsigned int nr = x86 || arm ? 3 : 1, i, r, last = 0;
	uint64_t start = 0, all = 0, part, managed, free;

	for (i = 0; i < nr; start = end[i++]) {
		zone[i] = (struct rn_zone){.name = name[i], .start = UINT64_MAX};
		for (r = 0; r < node->nr_ranges; r++) {
			part = overlap(&node->ranges[r], start, end[i]) >> 12;
			if (!part)
				continue;
			if (zone[i].start == UINT64_MAX)
				zone[i].start =
					(node->ranges[r].start > start ? node->ranges[r].start
								       : start) >>
					12;
			zone[i].present += part;
			zone[i].spanned =
				((node->ranges[r].end < end[i] ? node->ranges[r].end : end[i]) >>
				 12) -
				zone[i].start;
		}
		all += zone[i].present;
		if (zone[i].present)
			last = i;
		else
			zone[i].start = 0;
	}
	if (!all) { /* ranges not known: all of it in the last zone */
		last = nr - 1;
		all = zone[last].present = zone[last].spanned = node->mem_total >> 12;
	}
	managed = (uint64_t)figs->v[FIG_TOTAL] >> 2;
	free = (uint64_t)figs->v[FIG_FREE] >> 2;
	for (i = 0; i <= last && all; i++) {
		bool rest = i == last;

		zone[i].managed =
			rest ? managed
			     : (uint64_t)((double)zone[i].present / (double)all * (double)managed);
		zone[i].free =
			rest ? free
			     : (uint64_t)((double)zone[i].present / (double)all * (double)free);
		managed -= zone[i].managed;
		free -= zone[i].free;
		all -= rest ? all : zone[i].present;
		if (zone[i].managed > zone[i].present)
			zone[i].present = zone[i].spanned = zone[i].managed;
	}
	return nr;
}

void rn_counters(const struct rn_at *at, unsigned int n, struct mc_node_counters *c)
{
	const struct mc_render_live *live = rn_live(at->render);
	const struct mc_node *node = mc_topology_node(at->topo, n);
	struct mc_node_counters now = {0};

	/* What booting left behind: every page in use was got once, by a CPU of the node. */
	memset(c, 0, sizeof(*c));
	c->numa_hit = c->local_node = (node->mem_total - node->mem_free) >> 12;
	if (!live->node_counters)
		return;
	live->node_counters(live->arg, n, &now);
	c->numa_hit += now.numa_hit;
	c->numa_miss += now.numa_miss;
	c->numa_foreign += now.numa_foreign;
	c->interleave_hit += now.interleave_hit;
	c->local_node += now.local_node;
	c->other_node += now.other_node;
}
