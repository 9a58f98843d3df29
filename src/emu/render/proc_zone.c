// SPDX-License-Identifier: MIT
/*
 * proc_zone.c - /proc/zoneinfo, /proc/buddyinfo and /proc/pagetypeinfo: each node's zones, from the
 * figures of mem.h. Free pages are shown as a machine that is hardly fragmented has them: in the
 * largest blocks.
 */
#include <errno.h>
#include <stdio.h>
#include "mem.h"

#define ORDERS 11

static void put_orders(struct mc_text *out, uint64_t pages, bool none)
{
	unsigned int order;

	for (order = 0; order < ORDERS; order++) {
		uint64_t blocks = order < ORDERS - 1 ? pages >> order & 1 : pages >> order;

		mc_text_printf(out, "%6llu ", none ? 0 : (unsigned long long)blocks);
	}
	mc_text_add(out, "\n", 1);
}

struct one_node {
	struct rn_figs figs;
	struct rn_zone zone[RN_ZONES];
	unsigned int nr, node;
};

static void look(const struct rn_at *at, unsigned int node, struct one_node *one)
{
	one->node = node;
	rn_figs_node(at, node, &one->figs);
	one->nr = rn_zones(at, node, &one->figs, one->zone);
}

int rn_proc_buddyinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	struct one_node one;
	unsigned int n, i;

	(void)entry;
	mc_for_each_cpu (n, online) {
		look(at, n, &one);
		for (i = 0; i < one.nr; i++) {
			if (!one.zone[i].present)
				continue;
			mc_text_printf(out, "Node %u, zone %8s ", n, one.zone[i].name);
			put_orders(out, one.zone[i].free, false);
		}
	}
	return 0;
}

/* ---- pagetypeinfo ---- */

static const char *const migrate[] = {"Unmovable", "Movable", "Reclaimable", "HighAtomic",
				      "Isolate"};
#define TYPES (sizeof(migrate) / sizeof(migrate[0]))

static void put_types(struct mc_text *out, const struct one_node *one)
{
	unsigned int i, t;

	mc_text_printf(out, "Page block order: 9\nPages per block:  512\n\n%-43s ",
		       "Free pages count per migrate type at order");
	for (i = 0; i < ORDERS; i++)
		mc_text_printf(out, "%6u ", i);
	mc_text_add(out, "\n", 1);
	for (i = 0; i < one->nr; i++) {
		for (t = 0; t < TYPES && one->zone[i].present; t++) {
			mc_text_printf(out, "Node %4u, zone %8s, type %12s ", one->node,
				       one->zone[i].name, migrate[t]);
			put_orders(out, one->zone[i].free, t != 1);
		}
	}
	mc_text_printf(out, "\n%-23s", "Number of blocks type ");
	for (t = 0; t < TYPES; t++)
		mc_text_printf(out, "%12s ", migrate[t]);
	mc_text_add(out, "\n", 1);
	for (i = 0; i < one->nr; i++) {
		if (!one->zone[i].present)
			continue;
		mc_text_printf(out, "Node %u, zone %8s ", one->node, one->zone[i].name);
		for (t = 0; t < TYPES; t++)
			mc_text_printf(out, "%12llu ",
				       t == 1 ? (unsigned long long)(one->zone[i].spanned + 511) /
							512
					      : 0);
		mc_text_add(out, "\n", 1);
	}
}

int rn_proc_pagetypeinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *memory = &mc_topology_nodes_has_memory(at->topo)->m;
	struct one_node one;
	unsigned int n;

	(void)entry;
	mc_for_each_cpu (n, memory) {
		look(at, n, &one);
		put_types(out, &one);
	}
	return 0;
}

/* ---- zoneinfo ---- */

static const struct {
	const char *name;
	enum rn_fig fig;
	unsigned int unit;
} node_stats[] = {
	{"nr_inactive_anon", FIG_INACTIVE_ANON, 4},
	{"nr_active_anon", FIG_ACTIVE_ANON, 4},
	{"nr_inactive_file", FIG_INACTIVE_FILE, 4},
	{"nr_active_file", FIG_ACTIVE_FILE, 4},
	{"nr_unevictable", FIG_NR, 4},
	{"nr_slab_reclaimable", FIG_RECLAIMABLE, 4},
	{"nr_slab_unreclaimable", FIG_UNRECLAIMABLE, 4},
	{"nr_isolated_anon", FIG_NR, 4},
	{"nr_isolated_file", FIG_NR, 4},
	{"nr_anon_pages", FIG_ANON, 4},
	{"nr_mapped", FIG_MAPPED, 4},
	{"nr_file_pages", FIG_FILE, 4},
	{"nr_dirty", FIG_DIRTY, 4},
	{"nr_writeback", FIG_NR, 4},
	{"nr_shmem", FIG_SHMEM, 4},
	{"nr_kernel_stack", FIG_STACK, 1},
	{"nr_page_table_pages", FIG_TABLES, 4},
};

static void put_node_stats(struct mc_text *out, const struct one_node *one)
{
	size_t i;

	mc_text_printf(out, "  per-node stats\n");
	for (i = 0; i < sizeof(node_stats) / sizeof(node_stats[0]); i++) {
		long long value = node_stats[i].fig < FIG_NR
					  ? one->figs.v[node_stats[i].fig] / node_stats[i].unit
					  : 0;

		mc_text_printf(out, "      %-12s %lld\n", node_stats[i].name, value);
	}
}

static void put_zone(const struct rn_at *at, struct mc_text *out, const struct one_node *one,
		     unsigned int i)
{
	const struct mc_cpumask *online = mc_topology_online(at->topo);
	const struct rn_zone *zone = &one->zone[i];
	uint64_t min = zone->managed / 1024, above, z;
	struct mc_node_counters c = {0};
	unsigned int cpu, j;

	mc_text_printf(out, "  pages free     %llu\n        boost    0\n",
		       (unsigned long long)zone->free);
	mc_text_printf(out,
		       "        min      %llu\n        low      %llu\n        high     %llu\n      "
		       "  promo    %llu\n",
		       (unsigned long long)min, (unsigned long long)(min + min / 4),
		       (unsigned long long)(min + min / 2),
		       (unsigned long long)(min + min / 4 * 3));
	mc_text_printf(out,
		       "        spanned  %llu\n        present  %llu\n        managed  %llu\n      "
		       "  cma      0\n",
		       (unsigned long long)zone->spanned, (unsigned long long)zone->present,
		       (unsigned long long)zone->managed);
	mc_text_printf(out, "        protection: (");
	for (j = 0; j < one->nr + 2; j++) {
		for (above = 0, z = i + 1; z <= j && z < one->nr; z++)
			above += one->zone[z].managed;
		mc_text_printf(out, "%s%llu", j ? ", " : "", (unsigned long long)(above / 256));
	}
	mc_text_printf(out, ")\n");
	if (!zone->present)
		return;
	if (i + 1 == one->nr || !one->zone[i + 1].present)
		rn_counters(at, one->node, &c);
	mc_text_printf(
		out,
		"      nr_free_pages %llu\n      nr_zone_write_pending 0\n      nr_mlock     0\n",
		(unsigned long long)zone->free);
	mc_text_printf(
		out, "      numa_hit     %llu\n      numa_miss    %llu\n      numa_foreign %llu\n",
		(unsigned long long)c.numa_hit, (unsigned long long)c.numa_miss,
		(unsigned long long)c.numa_foreign);
	mc_text_printf(
		out,
		"      numa_interleave %llu\n      numa_local   %llu\n      numa_other   %llu\n",
		(unsigned long long)c.interleave_hit, (unsigned long long)c.local_node,
		(unsigned long long)c.other_node);
	mc_text_printf(out, "  pagesets\n");
	mc_for_each_cpu (cpu, online)
		mc_text_printf(out,
			       "    cpu: %u\n              count: 0\n              high:  0\n      "
			       "        batch: 1\n  vm stats threshold: 10\n",
			       cpu);
	mc_text_printf(out, "  node_unreclaimable:  0\n  start_pfn:           %llu\n",
		       (unsigned long long)zone->start);
}

int rn_proc_zoneinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	static const struct rn_zone later[] = {{.name = "Movable"}, {.name = "Device"}};
	struct one_node one;
	unsigned int n, i;
	bool first;

	(void)entry;
	mc_for_each_cpu (n, online) {
		look(at, n, &one);
		first = true;
		for (i = 0; i < one.nr; i++) {
			mc_text_printf(out, "Node %u, zone %8s\n", n, one.zone[i].name);
			if (first && one.zone[i].present) {
				put_node_stats(out, &one);
				first = false;
			}
			put_zone(at, out, &one, i);
		}
		for (i = 0; i < 2; i++)
			mc_text_printf(
				out,
				"Node %u, zone %8s\n  pages free     0\n        boost    0\n       "
				" min      0\n"
				"        low      0\n        high     0\n        promo    0\n      "
				"  spanned  0\n"
				"        present  0\n        managed  0\n        cma      0\n"
				"        protection: (0, 0, 0, 0, 0)\n",
				n, later[i].name);
	}
	return 0;
}
