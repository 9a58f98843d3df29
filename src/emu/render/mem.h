/* SPDX-License-Identifier: MIT */
/*
 * mem.h - the machine's memory in figures, from which meminfo, vmstat, zoneinfo, buddyinfo and
 * sysinfo are printed.
 *
 * A node's figures are a base (a recording's text, or made from mem_total and mem_free) plus what
 * the emulator knows to be in use (struct mc_node_usage). Every file is printed from the same
 * figures, so sums agree.
 */
#ifndef MC_RENDER_MEM_H
#define MC_RENDER_MEM_H

#include "impl.h"

/* All in KiB, but HUGE_* in default huge pages. */
enum rn_fig {
	FIG_TOTAL,
	FIG_FREE,
	FIG_AVAILABLE,
	FIG_USED,
	FIG_ACTIVE,
	FIG_INACTIVE,
	FIG_ACTIVE_ANON,
	FIG_INACTIVE_ANON,
	FIG_ACTIVE_FILE,
	FIG_INACTIVE_FILE,
	FIG_DIRTY,
	FIG_FILE, /* FilePages; Cached + Buffers + SwapCached */
	FIG_MAPPED,
	FIG_ANON,
	FIG_SHMEM,
	FIG_STACK,
	FIG_TABLES,
	FIG_RECLAIMABLE,
	FIG_UNRECLAIMABLE,
	FIG_SLAB,
	FIG_HUGE_TOTAL,
	FIG_HUGE_FREE,
	FIG_HUGE_SURPLUS,
	FIG_NR
};

struct rn_figs {
	int64_t v[FIG_NR];
};

void rn_figs_node(const struct rn_at *at, unsigned int node, struct rn_figs *figs);
/* Only what the emulator knows to be in use, as changes of each figure. */
void rn_figs_usage(const struct rn_at *at, unsigned int node, struct rn_figs *figs);
/* Sums over the nodes; the whole machine where it has none. */
void rn_figs_all(const struct rn_at *at, struct rn_figs *figs);
/* The figure that a name in meminfo stands for, FIG_NR: none of ours. */
enum rn_fig rn_fig_of(const char *name, size_t len);
/* The same for nr_* names of vmstat and zoneinfo, with the unit in bytes that one of them counts.
 */
enum rn_fig rn_fig_of_vmstat(const char *name, size_t len, unsigned int *unit);
void rn_counters(const struct rn_at *at, unsigned int node, struct mc_node_counters *counters);
/* Default huge page size in KiB. */
uint64_t rn_default_huge(const struct rn_at *at);

/* Zones, as the kernel cuts a node: pages of 4 KiB. */
#define RN_ZONES 3
struct rn_zone {
	const char *name;
	uint64_t start, spanned, present, managed, free;
};
/* Fills zone[], all of the architecture's (empty ones too), and returns how many. */
unsigned int rn_zones(const struct rn_at *at, unsigned int node, const struct rn_figs *figs,
		      struct rn_zone zone[RN_ZONES]);

/*
 * Rewrites a text of "name value" lines: `value` returns the number to print for a name, or
 * INT64_MIN to leave the line. Numbers keep the column that they end in. `skip` bytes at each
 * line's start are not part of the name.
 */
void rn_rewrite(struct mc_text *out, const char *text, size_t len, size_t skip,
		int64_t (*value)(void *arg, const char *name, size_t len, int64_t old), void *arg);

#endif
