// SPDX-License-Identifier: MIT
/* topology_read_cpu.c - the CPUs of a machine from /sys/devices/system/cpu: which there are, their
 * ids, siblings, caches. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "topology_read.h"

/* ---- which CPUs and nodes there are ---------------------------------------------------------- */

struct found {
	struct mc_cpumask *mask;
	const char *prefix;
};

static int note_number(void *arg, const char *name)
{
	struct found *found = arg;
	unsigned int n;

	if (topo_numbered(name, found->prefix, &n) && n < found->mask->nbits)
		mc_cpumask_set(found->mask, n);
	return 0;
}

/* The numbered folders, for recordings without the lists. */
static int list_folders(struct topo_reader *r, const char *dir, const char *prefix,
			struct mc_cpumask *mask)
{
	struct found found = { mask, prefix };

	return topo_read_dir(r, dir, note_number, &found);
}

struct counts {
	struct mc_cpumask *possible, *present, *online, *nodes, *nodes_possible;
};

static int count_cpus(struct topo_reader *r, struct counts *c)
{
	bool present, online;
	int rc;

	rc = topo_read_list(r, c->possible, SYS_CPU "/possible");
	if (rc < 0 && rc != -ENOENT)
		return rc;
	rc = topo_read_list(r, c->present, SYS_CPU "/present");
	if (rc < 0 && rc != -ENOENT)
		return rc;
	present = rc == 0;
	rc = topo_read_list(r, c->online, SYS_CPU "/online");
	if (rc < 0 && rc != -ENOENT)
		return rc;
	online = rc == 0;
	if (!present && list_folders(r, SYS_CPU, "cpu", c->present) < 0 && !online)
		return topo_read_problem(r, EINVAL, SYS_CPU, "no such folder; is it a recording of a Linux machine?");
	if (!online)
		mc_cpumask_copy(c->online, c->present);
	mc_cpumask_or(c->present, c->present, c->online);
	mc_cpumask_or(c->possible, c->possible, c->present);
	if (mc_cpumask_empty(c->online))
		return topo_read_problem(r, EINVAL, SYS_CPU "/online", "names no CPU");
	return 0;
}

static int count_nodes(struct topo_reader *r, struct counts *c, bool *has_numa)
{
	int rc = topo_read_list(r, c->nodes, SYS_NODE "/online");

	if (rc == -ENOENT) {
		*has_numa = list_folders(r, SYS_NODE, "node", c->nodes) == 0 &&
			    !mc_cpumask_empty(c->nodes);
		rc = 0;
	} else {
		*has_numa = rc == 0;
	}
	if (rc < 0)
		return rc;
	rc = topo_read_list(r, c->nodes_possible, SYS_NODE "/possible");
	if (rc < 0 && rc != -ENOENT)
		return rc;
	mc_cpumask_or(c->nodes_possible, c->nodes_possible, c->nodes);
	return 0;
}

static int make_base(struct topo_reader *r, const struct counts *c, bool has_numa)
{
	unsigned int cpus = mc_cpumask_last(c->possible) + 1;
	unsigned int nodes = has_numa ? mc_cpumask_last(c->nodes_possible) + 1 : 1;
	struct mc_nodemask *online;
	int rc;

	r->base = topo_base_new(cpus, nodes);
	r->scratch = mc_cpumask_alloc_bits(cpus);
	online = topo_nodemask(nodes);
	if (!r->base || !r->scratch || !online) {
		mc_cpumask_free((struct mc_cpumask *)online);
		return topo_read_problem(r, ENOMEM, "", "out of memory");
	}
	r->base->has_numa = has_numa;
	mc_cpumask_copy(r->base->possible, c->possible);
	mc_cpumask_copy(r->base->present, c->present);
	mc_cpumask_copy(r->base->online, c->online);
	mc_cpumask_copy(&online->m, c->nodes);
	rc = topo_set_nodes(r->base, online);
	if (has_numa)
		mc_cpumask_copy(&r->base->nodes_possible->m, c->nodes_possible);
	mc_cpumask_free((struct mc_cpumask *)online);
	return rc < 0 ? topo_read_problem(r, ENOMEM, "", "out of memory") : 0;
}

static int count(struct topo_reader *r)
{
	struct counts c = {
		mc_cpumask_alloc_bits(TOPO_MAX_CPUS),  mc_cpumask_alloc_bits(TOPO_MAX_CPUS),
		mc_cpumask_alloc_bits(TOPO_MAX_CPUS),  mc_cpumask_alloc_bits(TOPO_MAX_NODES),
		mc_cpumask_alloc_bits(TOPO_MAX_NODES),
	};
	bool has_numa = false;
	int rc = -ENOMEM;

	if (!c.possible || !c.present || !c.online || !c.nodes || !c.nodes_possible)
		rc = topo_read_problem(r, ENOMEM, "", "out of memory");
	else
		rc = count_cpus(r, &c);
	if (rc == 0)
		rc = count_nodes(r, &c, &has_numa);
	if (rc == 0)
		rc = make_base(r, &c, has_numa);
	mc_cpumask_free(c.possible);
	mc_cpumask_free(c.present);
	mc_cpumask_free(c.online);
	mc_cpumask_free(c.nodes);
	mc_cpumask_free(c.nodes_possible);
	return rc;
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* "512K", "32768K", "105M": bytes. */
static uint64_t cache_size(const struct topo_reader *r, const char *dir)
{
	unsigned long long v = 0;
	struct topo_text text;
	char *end;

	if (topo_read(r, &text, "%s/size", dir) < 0)
		return 0;
	errno = 0;
	v = strtoull(text.data, &end, 10);
	if (errno || end == text.data || v > 1ull << 40)
		v = 0;
	else if (*end == 'K')
		v <<= 10;
	else if (*end == 'M')
		v <<= 20;
	else if (*end == 'G')
		v <<= 30;
	topo_text_done(&text);
	return v;
}

static int cache_type(struct topo_reader *r, const char *dir, enum mc_cache_type *type)
{
	struct topo_text text;

	*type = MC_CACHE_UNIFIED;
	if (topo_read(r, &text, "%s/type", dir) < 0)
		return 0;
	if (!strncmp(text.data, "Data", 4))
		*type = MC_CACHE_DATA;
	else if (!strncmp(text.data, "Instruction", 11))
		*type = MC_CACHE_INSTRUCTION;
	topo_text_done(&text);
	return 0;
}

static int read_unsigned(struct topo_reader *r, unsigned int *value, const char *dir,
			 const char *name)
{
	int v, rc = topo_read_int(r, &v, 0, "%s/%s", dir, name);

	*value = rc == 0 && v > 0 ? (unsigned int)v : 0;
	return rc;
}

static int read_cache(struct topo_reader *r, unsigned int cpu, const char *dir,
		      struct topo_cache *to)
{
	struct mc_cache *cache = &to->cache;
	int rc;

	cache->size = cache_size(r, dir);
	rc = cache_type(r, dir, &cache->type);
	if (rc == 0)
		rc = read_unsigned(r, &cache->line, dir, "coherency_line_size");
	if (rc == 0)
		rc = read_unsigned(r, &cache->ways, dir, "ways_of_associativity");
	if (rc == 0)
		rc = read_unsigned(r, &cache->sets, dir, "number_of_sets");
	if (rc == 0)
		rc = read_unsigned(r, &cache->partition, dir, "physical_line_partition");
	if (rc == 0)
		rc = topo_read_int(r, &cache->id, -1, "%s/id", dir);
	if (rc == 0)
		rc = topo_read_set(r, &to->mask, dir, "shared_cpu_list", "shared_cpu_map");
	if (rc == 0 && to->mask == TOPO_NO_MASK) {
		mc_cpumask_zero(r->scratch);
		mc_cpumask_set(r->scratch, cpu);
		to->mask = topo_intern(r->base, r->scratch);
		if (to->mask == TOPO_NO_MASK)
			rc = topo_read_problem(r, errno, dir, "out of memory");
	}
	return rc;
}

static int read_caches(struct topo_reader *r, unsigned int cpu)
{
	struct topo_cpu *c = &r->base->cpu[cpu];
	char dir[96];

	for (unsigned int index = 0; index < TOPO_MAX_CACHES; index++) {
		long long level;
		uint32_t at;
		int rc;

		snprintf(dir, sizeof(dir), SYS_CPU "/cpu%u/cache/index%u", cpu, index);
		rc = topo_read_number(r, &level, "%s/level", dir);
		if (rc == -EINVAL || rc == -ERANGE)
			return rc;
		if (rc < 0)
			break;
		if (level < 0 || level > 100)
			return topo_read_problem(r, ERANGE, dir, "level of a cache out of range");
		at = topo_add_caches(r->base, 1);
		if (at == UINT32_MAX)
			return topo_read_problem(r, ENOMEM, dir, "out of memory");
		if (!index)
			c->first_cache = at;
		c->ids.nr_caches = index + 1;
		r->base->cache[at].cache.level = (unsigned int)level;
		rc = read_cache(r, cpu, dir, &r->base->cache[at]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- one CPU --------------------------------------------------------------------------------- */

static int read_siblings(struct topo_reader *r, unsigned int cpu, const char *dir)
{
	static const struct {
		enum mc_level level;
		const char *list, *map;
	} names[] = {
		{ MC_LEVEL_CORE, "core_cpus_list", "core_cpus" },
		{ MC_LEVEL_CORE, "thread_siblings_list", "thread_siblings" }, /* before 5.3 */
		{ MC_LEVEL_CLUSTER, "cluster_cpus_list", "cluster_cpus" },
		{ MC_LEVEL_DIE, "die_cpus_list", "die_cpus" },
		{ MC_LEVEL_PACKAGE, "package_cpus_list", "package_cpus" },
		{ MC_LEVEL_PACKAGE, "core_siblings_list", "core_siblings" },
	};
	uint32_t *sibling = r->base->cpu[cpu].sibling;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < MC_ARRAY_SIZE(names); i++)
		if (sibling[names[i].level] == TOPO_NO_MASK)
			rc = topo_read_set(r, &sibling[names[i].level], dir, names[i].list,
					   names[i].map);
	return rc;
}

static int read_cpu(struct topo_reader *r, unsigned int cpu)
{
	struct topo_cpu *c = &r->base->cpu[cpu];
	char dir[96];
	int rc;

	snprintf(dir, sizeof(dir), SYS_CPU "/cpu%u/topology", cpu);
	rc = topo_read_int(r, &c->ids.package_id, -1, "%s/physical_package_id", dir);
	if (rc == 0)
		rc = topo_read_int(r, &c->ids.die_id, -1, "%s/die_id", dir);
	if (rc == 0)
		rc = topo_read_int(r, &c->ids.cluster_id, -1, "%s/cluster_id", dir);
	if (rc == 0)
		rc = topo_read_int(r, &c->ids.core_id, -1, "%s/core_id", dir);
	if (rc == 0)
		rc = topo_read_int(r, &c->ids.capacity, -1, SYS_CPU "/cpu%u/cpu_capacity", cpu);
	if (rc == 0)
		rc = read_siblings(r, cpu, dir);
	if (rc == 0)
		rc = read_caches(r, cpu);
	return rc;
}

/* Position among the core's CPUs. */
static void number_threads(struct topo_base *base)
{
	unsigned int cpu, other;

	mc_for_each_cpu(cpu, base->online) {
		uint32_t core = base->cpu[cpu].sibling[MC_LEVEL_CORE];

		if (core == TOPO_NO_MASK)
			continue;
		mc_for_each_cpu(other, base->mask[core]) {
			if (other >= cpu || base->cpu[cpu].ids.thread == 1024)
				break;
			base->cpu[cpu].ids.thread++;
		}
	}
}

int topo_read_cpus(struct topo_reader *r)
{
	long long kernel_max = 0;
	unsigned int cpu;
	int rc = count(r);

	if (rc < 0)
		return rc;
	rc = topo_read_number(r, &kernel_max, SYS_CPU "/kernel_max");
	if (rc == -EINVAL || rc == -ERANGE)
		return rc;
	if (kernel_max < 0 || kernel_max > UINT_MAX)
		return topo_read_problem(r, ERANGE, SYS_CPU "/kernel_max", "number too large");
	r->base->kernel_max = (unsigned int)kernel_max;
	if (r->base->kernel_max < r->base->nr_cpu_ids - 1)
		r->base->kernel_max = r->base->nr_cpu_ids - 1;
	mc_for_each_cpu(cpu, r->base->online) {
		rc = read_cpu(r, cpu);
		if (rc < 0)
			return rc;
	}
	number_threads(r->base);
	return 0;
}
