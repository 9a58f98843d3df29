// SPDX-License-Identifier: MIT
/*
 * topology_spec.c - a machine made from numbers: the counts of QEMU's -smp, nodes, distances and a
 * list of caches.
 *
 * Cores are numbered through the whole machine (package by package, die by die); every set of CPUs
 * that share something is a run of whole cores, or one thread. Callers have checked the counts;
 * only memory can run out here, and node lists can contradict each other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_priv.h"

#define MAX_GROUPINGS 16
#define PAGE 4096ull

/* Masks of all runs of `cores` adjacent cores (0: of single threads), made once for each size in
 * use. */
struct grouping {
	unsigned int cores;
	uint32_t *mask;         /* by group */
};

struct build {
	const struct topo_spec *spec;
	struct topo_base *base;
	unsigned int nr_cores, die_cores, package_cores, cluster_cores;
	unsigned int thread_bits, core_bits, cluster_bits, die_bits; /* of an x86 APIC id */
	struct grouping grouping[MAX_GROUPINGS];
	unsigned int nr_groupings;
	bool too_large;         /* the sets of CPUs would take more than TOPO_MAX_MASK_BYTES */
};

static unsigned int bits_for(unsigned int n)
{
	unsigned int bits = 0;

	while (bits < 31 && (1u << bits) < n)
		bits++;
	return bits;
}

static unsigned int cpu_number(const struct build *b, unsigned int core, unsigned int thread)
{
	return b->spec->smt_split ? thread * b->nr_cores + core : core * b->spec->threads + thread;
}

static int make_grouping(struct build *b, struct grouping *g, unsigned int cores)
{
	unsigned int threads = b->spec->threads,
		     n = cores ? (b->nr_cores + cores - 1) / cores : b->base->nr_cpu_ids;
	struct mc_cpumask *mask = mc_cpumask_alloc_bits(b->base->nr_cpu_ids);

	g->cores = cores;
	g->mask = malloc(n * sizeof(*g->mask));
	for (unsigned int i = 0; mask && g->mask && i < n; i++) {
		mc_cpumask_zero(mask);
		if (!cores)
			mc_cpumask_set(mask, i);
		for (unsigned int core = i * cores; core < (i + 1) * cores && core < b->nr_cores;
		     core++)
			for (unsigned int t = 0; t < threads; t++)
				mc_cpumask_set(mask, cpu_number(b, core, t));
		/* Absent CPUs share nothing with anyone. */
		mc_cpumask_and(mask, mask, b->base->present);
		g->mask[i] = topo_intern(b->base, mask);
		if (g->mask[i] == TOPO_NO_MASK) {
			mc_cpumask_free(mask);
			return -errno;
		}
	}
	n = mask && g->mask ? 0 : ENOMEM;
	mc_cpumask_free(mask);
	return -(int)n;
}

static const uint32_t *grouping(struct build *b, unsigned int cores)
{
	struct grouping *g;
	int rc;

	for (unsigned int i = 0; i < b->nr_groupings; i++)
		if (b->grouping[i].cores == cores)
			return b->grouping[i].mask;
	if (b->nr_groupings == MAX_GROUPINGS)
		return NULL;
	g = &b->grouping[b->nr_groupings++];
	rc = make_grouping(b, g, cores);
	b->too_large |= rc == -EFBIG;
	return rc < 0 ? NULL : g->mask;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static unsigned int apic_id(const struct build *b, unsigned int core, unsigned int thread)
{
	const struct topo_spec *s = b->spec;
	unsigned int in_cluster = core % s->cores, cluster = core / s->cores % s->clusters;
	unsigned int die = core / b->die_cores % s->dies, package = core / b->package_cores;
	unsigned int id = package;

	id = (id << b->die_bits) | die;
	id = (id << b->cluster_bits) | cluster;
	id = (id << b->core_bits) | in_cluster;
	return (id << b->thread_bits) | thread;
}

/* What each architecture's kernel derives from its firmware's tables for a machine of this shape.
 */
static void set_ids(const struct build *b, unsigned int core, unsigned int thread,
		    struct mc_cpu *ids)
{
	const struct topo_spec *s = b->spec;
	unsigned int package = core / b->package_cores;

	ids->package_id = (int)package;
	ids->thread = (int)thread;
	ids->capacity = s->capacity;
	switch (s->arch) {
	case MC_ARCH_X86_64: {
		unsigned int apic = apic_id(b, core, thread);
		unsigned int package_bits =
			b->thread_bits + b->core_bits + b->cluster_bits + b->die_bits;

		ids->die_id = (int)(apic >> (package_bits - b->die_bits));
		ids->core_id = (int)((apic & ((1u << package_bits) - 1)) >> b->thread_bits);
		ids->cluster_id = 65535; /* without a shared L2 the kernel has none */
		if (s->clusters > 1)
			ids->cluster_id = (int)(apic >> (b->thread_bits + b->core_bits));
		break;
	}
	case MC_ARCH_AARCH64:
		ids->die_id = -1; /* no such file */
		ids->core_id = (int)(core % b->cluster_cores);
		ids->cluster_id = (int)(core % b->package_cores / b->cluster_cores);
		break;
	case MC_ARCH_PPC64:
		ids->die_id = -1;
		ids->cluster_id = -1;
		ids->core_id = (int)(core * s->threads); /* the device tree's number: the first thread's */
		break;
	default:
		ids->die_id = -1;
		ids->cluster_id = -1;
		ids->core_id = (int)core;
	}
}

static int set_cpus(struct build *b)
{
	const struct topo_spec *s = b->spec;
	unsigned int cluster = s->clusters > 1 || s->arch == MC_ARCH_AARCH64 ? b->cluster_cores : 1;
	const uint32_t *core_mask = grouping(b, 1), *cluster_mask = grouping(b, cluster);
	const uint32_t *die_mask = grouping(b, b->die_cores),
		       *package_mask = grouping(b, b->package_cores);

	if (!core_mask || !cluster_mask || !die_mask || !package_mask)
		return -ENOMEM;
	for (unsigned int core = 0; core < b->nr_cores; core++) {
		for (unsigned int t = 0; t < s->threads; t++) {
			struct topo_cpu *cpu = &b->base->cpu[cpu_number(b, core, t)];

			set_ids(b, core, t, &cpu->ids);
			cpu->hidden.thread = (int)t;
			cpu->hidden.capacity = s->capacity;
			cpu->sibling[MC_LEVEL_CORE] = core_mask[core];
			cpu->sibling[MC_LEVEL_PACKAGE] = package_mask[core / b->package_cores];
			if (cpu->ids.cluster_id != -1)
				cpu->sibling[MC_LEVEL_CLUSTER] = cluster_mask[core / cluster];
			if (cpu->ids.die_id != -1)
				cpu->sibling[MC_LEVEL_DIE] = die_mask[core / b->die_cores];
		}
	}
	return 0;
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* Cores that share the cache; 0 for one thread. */
static unsigned int cache_cores(const struct build *b, const struct topo_spec_cache *c)
{
	switch (c->scope) {
	case TOPO_THREAD:
		return b->spec->threads > 1 ? 0 : 1;
	case TOPO_CORE:
		return 1;
	case TOPO_CLUSTER:
		return b->cluster_cores;
	case TOPO_DIE:
		return b->die_cores;
	case TOPO_PACKAGE:
		return b->package_cores;
	case TOPO_CORES:
		/* Runs of cores may not cross a die: take the largest divisor of the die that fits.
		 */
		for (unsigned int n = c->cores < b->die_cores ? c->cores : b->die_cores; n > 1; n--)
			if (b->die_cores % n == 0)
				return n;
		return 1;
	}
	return 1;
}

static void fill_cache(const struct build *b, const struct topo_spec_cache *from,
		       unsigned int cores, unsigned int first_core, unsigned int thread,
		       struct mc_cache *to)
{
	to->level = from->level;
	to->type = from->type;
	to->size = from->size;
	to->line = from->line;
	to->ways = from->ways;
	if (from->line && from->ways)
		to->sets = (unsigned int)(from->size / from->line / from->ways);
	to->id = -1;
	if (b->spec->arch == MC_ARCH_X86_64) {
		to->partition = 1;
		to->id = (int)(apic_id(b, first_core, cores ? 0 : thread) >>
			       bits_for(cores ? cores * b->spec->threads : 1));
	}
}

static int set_caches(struct build *b)
{
	const struct topo_spec *s = b->spec;
	unsigned int n = s->nr_caches, cpu;
	uint32_t first;

	if (!n)
		return 0;
	first = topo_add_caches(b->base, n * mc_cpumask_weight(b->base->present));
	if (first == UINT32_MAX)
		return -ENOMEM;
	mc_for_each_cpu(cpu, b->base->present) {
		b->base->cpu[cpu].ids.nr_caches = n;
		b->base->cpu[cpu].first_cache = first;
		first += n;
	}
	for (unsigned int i = 0; i < n; i++) {
		unsigned int cores = cache_cores(b, &s->cache[i]);
		const uint32_t *mask = grouping(b, cores);

		if (!mask)
			return -ENOMEM;
		for (unsigned int core = 0; core < b->nr_cores; core++) {
			for (unsigned int t = 0; t < s->threads; t++) {
				struct topo_cpu *c = &b->base->cpu[cpu_number(b, core, t)];
				struct topo_cache *cache = &b->base->cache[c->first_cache + i];

				if (!c->ids.nr_caches)
					continue;
				fill_cache(b, &s->cache[i], cores,
					   cores ? core / cores * cores : core, t, &cache->cache);
				cache->mask =
					cores ? mask[core / cores] : mask[cpu_number(b, core, t)];
			}
		}
	}
	return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Gives node `i` of `n` the i-th contiguous share of the machine: whole cores as long as there are
 * enough of them, rounded so that the first node is never the one without CPUs. */
static void share_cpus(const struct build *b, struct mc_cpumask *mask, unsigned int i,
		       unsigned int n)
{
	unsigned int threads = b->spec->threads;

	if (b->nr_cores >= n) {
		unsigned int from = (unsigned int)(((uint64_t)b->nr_cores * i + n - 1) / n);
		unsigned int to = (unsigned int)(((uint64_t)b->nr_cores * (i + 1) + n - 1) / n);

		for (unsigned int core = from; core < to; core++)
			for (unsigned int t = 0; t < threads; t++)
				mc_cpumask_set(mask, cpu_number(b, core, t));
	} else {
		uint64_t cpus = (uint64_t)b->nr_cores * threads;

		for (uint64_t p = (cpus * i + n - 1) / n; p < (cpus * (i + 1) + n - 1) / n; p++)
			mc_cpumask_set(mask, cpu_number(b, (unsigned int)(p / threads),
							(unsigned int)(p % threads)));
	}
}

static int node_cpus(struct build *b, struct topo_node *node, const struct mc_cpumask *given,
		     unsigned int i, unsigned int n)
{
	struct mc_cpumask *mask = mc_cpumask_alloc_bits(b->base->nr_cpu_ids);
	unsigned int cpu;

	if (!mask)
		return -ENOMEM;
	if (given)
		mc_cpumask_copy(mask, given);
	else if (n)
		share_cpus(b, mask, i, n);
	mc_for_each_cpu(cpu, mask) {
		b->base->cpu[cpu].ids.node = node->id;
		b->base->cpu[cpu].hidden.node = node->id;
	}
	node->cpus = topo_intern(b->base, mask);
	if (mc_cpumask_intersects(mask, b->base->online))
		mc_cpumask_set(&b->base->nodes_has_cpu->m, node->id);
	mc_cpumask_and(mask, mask, b->base->present);
	node->linked = topo_intern(b->base, mask);
	mc_cpumask_free(mask);
	return node->cpus == TOPO_NO_MASK || node->linked == TOPO_NO_MASK ? -ENOMEM : 0;
}

/* Where memory lies in the physical address space, as QEMU's machines of that architecture (and
 * most real ones) have it. */
struct layout {
	uint64_t at, hole, hole_end;
};

static struct layout layout_start(enum mc_arch arch, uint64_t total)
{
	switch (arch) {
	case MC_ARCH_X86_64:
		/* A machine with little memory has it in one piece below the devices' hole, else 2
		 * GiB lie below it. */
		return (struct layout){0, total >= 0xb0000000ull ? 0x80000000ull : 0xb0000000ull,
				       1ull << 32};
	case MC_ARCH_AARCH64:
		return (struct layout){ 1ull << 30, UINT64_MAX, UINT64_MAX };
	default:
		return (struct layout){ 0, UINT64_MAX, UINT64_MAX };
	}
}

static int node_memory(struct topo_node *node, struct layout *l, uint64_t size,
		       const uint64_t *hugepages)
{
	unsigned int n = 0;

	node->mem_total = size;
	/* What a kernel has taken by the time anyone looks. */
	node->mem_free = size - size / 64 / PAGE * PAGE;
	while (hugepages && hugepages[n])
		n++;
	node->hugepools = calloc(n ? n : 1, sizeof(*node->hugepools));
	if (!node->hugepools)
		return -ENOMEM;
	node->nr_hugepools = n;
	for (unsigned int i = 0; i < n; i++)
		node->hugepools[i].size = hugepages[i];
	while (size) {
		uint64_t part = size;

		if (l->at == l->hole)
			l->at = l->hole_end;
		if (l->at < l->hole && part > l->hole - l->at)
			part = l->hole - l->at;
		if (topo_node_add_range(node, l->at, l->at + part) < 0)
			return -ENOMEM;
		l->at += part;
		size -= part;
	}
	return 0;
}

static int set_nodes(struct build *b, struct mc_error *error)
{
	const struct topo_spec *s = b->spec;
	struct layout layout = layout_start(s->arch, s->mem);
	bool cpus_given = false, mem_given = false;
	unsigned int sharers = 0, sharer = 0;
	uint64_t share = s->mem / s->nr_nodes / (1 << 20) << 20, left = s->mem;

	if (!share)
		share = s->mem / s->nr_nodes / PAGE * PAGE;
	for (unsigned int i = 0; i < s->nr_nodes; i++) {
		cpus_given |= s->node[i].cpus != NULL;
		mem_given |= s->node[i].has_mem;
		sharers += !s->node[i].no_cpus;
	}
	for (unsigned int i = 0; i < s->nr_nodes; i++) {
		const struct topo_spec_node *from = &s->node[i];
		struct topo_node *node = topo_node(b->base, from->id);
		uint64_t mem = mem_given ? from->mem : i + 1 < s->nr_nodes ? share : left;

		left -= mem_given ? 0 : mem;
		if (node_cpus(b, node, from->cpus, sharer,
			      cpus_given || from->no_cpus ? 0 : sharers) < 0 ||
		    node_memory(node, &layout, mem, s->hugepages) < 0)
			return mc_fail(error, ENOMEM, "building the machine: node %u: out of memory", from->id);
		sharer += !from->no_cpus;
		if (!mem && mc_cpumask_empty(b->base->mask[node->cpus]))
			return mc_fail(
				error, EINVAL,
				"building the machine: node %u: has neither CPUs nor memory; give it cpus= or mem=",
				from->id);
		if (mem)
			mc_cpumask_set(&b->base->nodes_has_memory->m, from->id);
	}
	for (unsigned int i = 0; i < s->nr_dists; i++)
		if (topo_set_distance(b->base, s->dist[i].src, s->dist[i].dst, s->dist[i].val) ==
		    -ENOMEM)
			return mc_fail(error, ENOMEM, "building the machine: distances: out of memory");
	return 0;
}

static int start(struct build *b, struct mc_error *error)
{
	const struct topo_spec *s = b->spec;
	unsigned int nr_node_ids = 1;
	struct mc_nodemask *online;
	int rc;

	for (unsigned int i = 0; i < s->nr_nodes; i++)
		if (s->node[i].id >= nr_node_ids)
			nr_node_ids = s->node[i].id + 1;
	b->base = topo_base_new(s->maxcpus, nr_node_ids);
	online = topo_nodemask(nr_node_ids);
	if (!b->base || !online) {
		mc_cpumask_free((struct mc_cpumask *)online);
		return mc_fail(error, ENOMEM, "building the machine: out of memory");
	}
	b->base->arch = s->arch;
	b->base->kernel_max = s->kernel_max;
	b->base->cpuinfo = s->cpuinfo;
	b->base->max_numnodes = s->max_numnodes;
	if (nr_node_ids > s->max_numnodes)
		b->base->max_numnodes = nr_node_ids <= 1024 ? 1024 : TOPO_MAX_NODES;
	mc_cpumask_setall(b->base->possible);
	mc_cpumask_set_range(b->base->present, 0, s->cpus);
	mc_cpumask_set_range(b->base->online, 0, s->cpus);
	for (unsigned int i = 0; i < s->nr_nodes; i++)
		mc_cpumask_set(&online->m, s->node[i].id);
	rc = topo_set_nodes(b->base, online);
	mc_cpumask_free((struct mc_cpumask *)online);
	return rc < 0 ? mc_fail(error, ENOMEM, "building the machine: out of memory") : 0;
}

int topo_spec_build(const struct topo_spec *s, struct topo_base **base, struct mc_error *error)
{
	struct build b = {
		.spec = s,
		.cluster_cores = s->cores,
		.die_cores = s->cores * s->clusters,
		.package_cores = s->cores * s->clusters * s->dies,
		.nr_cores = s->cores * s->clusters * s->dies * s->sockets,
		.thread_bits = bits_for(s->threads),
		.core_bits = bits_for(s->cores),
		.cluster_bits = bits_for(s->clusters),
		.die_bits = bits_for(s->dies),
	};
	int rc = start(&b, error);

	if (rc == 0 && (set_cpus(&b) < 0 || set_caches(&b) < 0))
		rc = b.too_large
			     ? mc_fail(error, ERANGE,
				       "building the machine: %u CPUs with %u threads a core: their sets take "
				       "more than 512 MiB; describe fewer, or more threads",
				       s->maxcpus, s->threads)
			     : mc_fail(error, ENOMEM,
				       "building the machine: %u CPUs: out of memory", s->maxcpus);
	if (rc == 0)
		rc = set_nodes(&b, error);
	for (unsigned int i = 0; i < b.nr_groupings; i++)
		free(b.grouping[i].mask);
	if (rc < 0)
		topo_base_put(b.base);
	else
		*base = b.base;
	return rc;
}
