// SPDX-License-Identifier: MIT
/*
 * topology_spec_from.c - an existing machine (this host, a recording) as the start of a
 * description: its counts, the shape of its caches, its nodes and distances.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_priv.h"

static unsigned int weight_at(const struct mc_topology *topo, unsigned int cpu, enum mc_level level,
			      unsigned int missing)
{
	const struct mc_cpumask *mask = mc_topology_siblings(topo, cpu, level);

	return mask ? mc_cpumask_weight(mask) : missing;
}

/* Counts as of a machine all of whose packages are like the first CPU's; one flat package where
 * that doesn't add up. */
static void set_shape(const struct mc_topology *topo, unsigned int cpu, struct topo_spec *spec)
{
	unsigned int present = mc_cpumask_weight(mc_topology_present(topo));
	unsigned int core = weight_at(topo, cpu, MC_LEVEL_CORE, 1),
		     package = weight_at(topo, cpu, MC_LEVEL_PACKAGE, present);
	unsigned int die = weight_at(topo, cpu, MC_LEVEL_DIE, package);

	spec->maxcpus = mc_topology_nr_cpu_ids(topo);
	spec->cpus = present;
	spec->sockets = spec->dies = spec->clusters = spec->threads = 1;
	spec->cores = spec->maxcpus;
	if (!core || !die || !package || die % core || package % die || spec->maxcpus % package)
		return;
	spec->threads = core;
	spec->cores = die / core;
	spec->dies = package / die;
	spec->sockets = spec->maxcpus / package;
	/* Siblings that are not neighbours: numbered as most servers' firmware does. */
	if (core == 2 && mc_cpumask_last(mc_topology_siblings(topo, cpu, MC_LEVEL_CORE)) ==
				 cpu + spec->maxcpus / 2)
		spec->smt_split = spec->maxcpus > 2;
}

static void set_scope(const struct topo_spec *spec, unsigned int shared,
		      struct topo_spec_cache *cache)
{
	unsigned int die = spec->cores * spec->threads, package = die * spec->dies;

	cache->cores = shared / spec->threads;
	if (shared < spec->threads)
		cache->scope = TOPO_THREAD;
	else if (shared == spec->threads)
		cache->scope = TOPO_CORE;
	else if (shared >= package && package > die)
		cache->scope = TOPO_PACKAGE;
	else if (shared >= die)
		cache->scope = TOPO_DIE;
	else
		cache->scope = TOPO_CORES;
}

static int set_caches(const struct mc_topology *topo, unsigned int cpu, bool defaults,
		      struct topo_spec *spec)
{
	unsigned int n = mc_topology_cpu(topo, cpu)->nr_caches;

	if (!n && defaults) {
		spec->cache = topo_default_cache;
		spec->nr_caches = MC_ARRAY_SIZE(topo_default_cache);
	}
	if (!n)
		return 0;
	spec->own_cache = calloc(n, sizeof(*spec->own_cache));
	if (!spec->own_cache)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		const struct mc_cache *from = mc_topology_cache(topo, cpu, i);
		struct topo_spec_cache *to = &spec->own_cache[i];

		to->level = from->level;
		to->type = from->type;
		to->size = from->size;
		to->line = from->line;
		to->ways = from->ways;
		set_scope(spec, mc_cpumask_weight(from->shared), to);
	}
	spec->cache = spec->own_cache;
	spec->nr_caches = n;
	return 0;
}

static int set_distances(const struct mc_topology *topo, struct topo_spec *spec)
{
	const struct topo_base *base = topo->base;
	bool plain = true;

	for (unsigned int i = 0; i < base->nr_nodes; i++)
		plain &= !base->node[i].distance;
	if (plain)
		return 0;
	spec->dist = calloc((size_t)base->nr_nodes * base->nr_nodes, sizeof(*spec->dist));
	if (!spec->dist)
		return -ENOMEM;
	for (unsigned int i = 0; i < base->nr_nodes; i++)
		for (unsigned int j = 0; j < base->nr_nodes; j++)
			spec->dist[spec->nr_dists++] = (struct topo_spec_dist){
				base->node[i].id, base->node[j].id,
				mc_topology_distance(topo, base->node[i].id, base->node[j].id)
			};
	return 0;
}

static int set_nodes(const struct mc_topology *topo, struct topo_spec *spec)
{
	const struct topo_base *base = topo->base;
	unsigned int n = base->nr_nodes ? base->nr_nodes : 1;

	spec->mem = mc_topology_mem_total(topo) / 4096 * 4096;
	spec->node = calloc(n, sizeof(*spec->node));
	if (!spec->node)
		return -ENOMEM;
	spec->nr_nodes = n;
	if (!base->nr_nodes)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		struct topo_spec_node *to = &spec->node[i];

		to->id = base->node[i].id;
		to->has_mem = true;
		to->mem = base->node[i].mem_total / 4096 * 4096;
		to->no_cpus = mc_cpumask_empty(base->mask[base->node[i].cpus]);
		to->cpus = mc_cpumask_dup(base->mask[base->node[i].linked]);
		if (!to->cpus)
			return -ENOMEM;
	}
	return set_distances(topo, spec);
}

int topo_spec_from(const struct mc_topology *topo, bool defaults, struct topo_spec *spec)
{
	unsigned int cpu = mc_cpumask_first(mc_topology_online(topo));
	int rc;

	memset(spec, 0, sizeof(*spec));
	spec->arch = mc_topology_arch(topo);
	spec->kernel_max = mc_topology_kernel_max(topo);
	spec->max_numnodes = mc_topology_max_numnodes(topo);
	spec->capacity = mc_topology_cpu(topo, cpu)->capacity;
	if (spec->arch != MC_ARCH_AARCH64)
		spec->capacity = -1; /* where other kernels show one, it belongs to that host's cores */
	spec->hugepages = topo_hugepages(spec->arch);
	set_shape(topo, cpu, spec);
	rc = set_caches(topo, cpu, defaults, spec);
	return rc < 0 ? rc : set_nodes(topo, spec);
}
