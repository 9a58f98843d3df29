// SPDX-License-Identifier: MIT
/* sys_cache.c - cpuN/topology and cpuN/cache: who shares what with a CPU. */
#include <errno.h>
#include "impl.h"

static unsigned int this_cpu(const struct rn_at *at)
{
	return (unsigned int)at->n[0];
}

static int print_map(struct mc_text *out, const struct mc_cpumask *mask, bool list)
{
	if (list)
		mc_text_list(out, mask);
	else
		mc_text_mask(out, mask);
	mc_text_add(out, "\n", 1);
	return 0;
}

/* ---- topology ---- */

static int make_siblings(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	return print_map(out,
			 mc_topology_siblings(at->topo, this_cpu(at), (enum mc_level)entry->arg),
			 false);
}

static int make_siblings_list(const struct rn_at *at, const struct rn_entry *entry,
			      struct mc_text *out)
{
	return print_map(
		out, mc_topology_siblings(at->topo, this_cpu(at), (enum mc_level)entry->arg), true);
}

static int id_of(const struct rn_at *at, int level)
{
	const struct mc_cpu *cpu = mc_topology_cpu(at->topo, this_cpu(at));

	switch (level) {
	case MC_LEVEL_CORE:
		return cpu->core_id;
	case MC_LEVEL_CLUSTER:
		return cpu->cluster_id;
	case MC_LEVEL_DIE:
		return cpu->die_id;
	default:
		return cpu->package_id;
	}
}

static int make_id(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	return rn_number(out, id_of(at, entry->arg));
}

/* Die and cluster files: a recording tells; else they are there when the level has an id. */
static bool has_level(const struct rn_at *at, const struct rn_entry *entry)
{
	if (!mc_topology_siblings(at->topo, this_cpu(at), (enum mc_level)entry->arg))
		return false;
	return at->view->recorded ? rn_source_type(at) : id_of(at, entry->arg) >= 0;
}

/* No mask: the kernel shows no such file. */
static bool has_mask(const struct rn_at *at, const struct rn_entry *entry)
{
	return mc_topology_siblings(at->topo, this_cpu(at), (enum mc_level)entry->arg);
}

#define LEVEL(file, level)                                                                 \
	{.name = file, .type = 'f', .arg = level, .make = make_siblings, .has = has_mask}, \
	{                                                                                  \
		.name = file "_list", .type = 'f', .flags = RN_WIDE, .arg = level,         \
		.make = make_siblings_list, .has = has_mask                                \
	}
#define LEVEL_IF(file, level)                                                               \
	{.name = file, .type = 'f', .arg = level, .make = make_siblings, .has = has_level}, \
	{                                                                                   \
		.name = file "_list", .type = 'f', .flags = RN_WIDE, .arg = level,          \
		.make = make_siblings_list, .has = has_level                                \
	}

const struct rn_entry rn_topology[] = {
	{.name = "physical_package_id", .type = 'f', .arg = MC_LEVEL_PACKAGE, .make = make_id},
	{.name = "die_id", .type = 'f', .arg = MC_LEVEL_DIE, .make = make_id, .has = has_level},
	{.name = "cluster_id",
	 .type = 'f',
	 .arg = MC_LEVEL_CLUSTER,
	 .make = make_id,
	 .has = has_level},
	{.name = "core_id", .type = 'f', .arg = MC_LEVEL_CORE, .make = make_id},
	LEVEL("thread_siblings", MC_LEVEL_CORE),
	LEVEL("core_cpus", MC_LEVEL_CORE),
	LEVEL("core_siblings", MC_LEVEL_PACKAGE),
	LEVEL("package_cpus", MC_LEVEL_PACKAGE),
	LEVEL_IF("die_cpus", MC_LEVEL_DIE),
	LEVEL_IF("cluster_cpus", MC_LEVEL_CLUSTER),
	{0},
};

/* ---- cache ---- */

static const struct mc_cache *this_cache(const struct rn_at *at)
{
	return mc_topology_cache(at->topo, this_cpu(at), (unsigned int)at->n[1]);
}

enum { CACHE_LEVEL, CACHE_ID, CACHE_LINE, CACHE_SETS, CACHE_PARTITION, CACHE_WAYS, CACHE_SIZE };

/* -1: the kernel shows no such file. */
static long long cache_number(const struct mc_cache *cache, int which)
{
	switch (which) {
	case CACHE_LEVEL:
		return cache->level;
	case CACHE_ID:
		return cache->id;
	case CACHE_LINE:
		return cache->line ? (long long)cache->line : -1;
	case CACHE_SETS:
		return cache->sets ? (long long)cache->sets : -1;
	case CACHE_PARTITION:
		return cache->partition ? (long long)cache->partition : -1;
	case CACHE_WAYS:
		return cache->ways ? (long long)cache->ways : -1;
	default:
		return cache->size ? (long long)(cache->size >> 10) : -1;
	}
}

static bool has_cache_number(const struct rn_at *at, const struct rn_entry *entry)
{
	return cache_number(this_cache(at), entry->arg) >= 0;
}

static int make_cache_number(const struct rn_at *at, const struct rn_entry *entry,
			     struct mc_text *out)
{
	mc_text_printf(out, entry->arg == CACHE_SIZE ? "%lldK\n" : "%lld\n",
		       cache_number(this_cache(at), entry->arg));
	return 0;
}

static int make_cache_type(const struct rn_at *at, const struct rn_entry *entry,
			   struct mc_text *out)
{
	enum mc_cache_type type = this_cache(at)->type;

	(void)entry;
	mc_text_printf(out, "%s\n",
		       type == MC_CACHE_DATA          ? "Data"
		       : type == MC_CACHE_INSTRUCTION ? "Instruction"
						      : "Unified");
	return 0;
}

/* 6.12 on AMD leaves CPUs that went offline in an L3's map: as recorded until the machine's CPUs
 * change. */
static int make_shared(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct rn_file *file =
		at->view->as_recorded ? rn_file(at->view, at->path, at->len) : NULL;

	if (file && file->type == 'f') {
		mc_text_add(out, file->data, file->len);
		return 0;
	}
	return print_map(out, this_cache(at)->shared, entry->arg);
}

static uint64_t next_cache(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	(void)entry;
	return from < mc_topology_cpu(at->topo, this_cpu(at))->nr_caches ? from : RN_NONE;
}

#define NUMBER(file, which)                                                       \
	{                                                                         \
		.name = file, .type = 'f', .arg = which, .has = has_cache_number, \
		.make = make_cache_number                                         \
	}

static const struct rn_entry cache_index[] = {
	NUMBER("level", CACHE_LEVEL),
	NUMBER("id", CACHE_ID),
	NUMBER("coherency_line_size", CACHE_LINE),
	NUMBER("number_of_sets", CACHE_SETS),
	NUMBER("physical_line_partition", CACHE_PARTITION),
	NUMBER("ways_of_associativity", CACHE_WAYS),
	NUMBER("size", CACHE_SIZE),
	{.name = "type", .type = 'f', .make = make_cache_type},
	{.name = "shared_cpu_map", .type = 'f', .arg = false, .make = make_shared},
	{.name = "shared_cpu_list", .type = 'f', .arg = true, .make = make_shared},
	{.name = "uevent", .type = 'f', .mode = 0644, .text = ""},
	{0},
};

const struct rn_entry rn_cache[] = {
	{.name = "index#", .type = 'd', .flags = RN_EXTRA, .next = next_cache, .kids = cache_index},
	{.name = "uevent", .type = 'f', .mode = 0644, .text = ""},
	{0},
};
