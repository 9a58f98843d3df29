// SPDX-License-Identifier: MIT
/*
 * topology_fake_apply.c - numa=fake on a machine: from the cut of its memory (topology_fake.c) to a
 * new machine.
 *
 * CPUs as the kernel shows them: each belongs to the first emulated node of its physical one (the
 * cpuN links), and every emulated node of that physical one lists it. With ",split", our addition,
 * they are dealt out core by core instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_fake.h"

/* No kernel has more than 1024 nodes; tables of distances grow with the square. */
#define MAX_FAKE 4096u

struct apply {
	const struct mc_topology *topo;
	const struct topo_base *old;
	const struct topo_fake *fake;
	struct topo_base *base;
	bool split;
};

/* ---- what is split --------------------------------------------------------------------------- */

static int compare_blocks(const void *pa, const void *pb)
{
	const struct topo_block *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

static unsigned int distance_of(const void *arg, unsigned int from, unsigned int to)
{
	unsigned int d = mc_topology_distance(arg, from, to);

	return d ? d : from == to ? 10 : 20;
}

/* All ranges of all nodes by address, as blocks; ranges of one node with no other's between them
 * make one block. */
static int collect(const struct topo_base *base, struct topo_block **blocks, struct mc_range **ram,
		   unsigned int *nr_blocks, unsigned int *nr_ram)
{
	unsigned int n = 0, kept = 0;

	for (unsigned int i = 0; i < base->nr_nodes; i++)
		n += base->node[i].nr_ranges;
	*blocks = malloc((n + 1) * sizeof(**blocks));
	*ram = malloc((n + 1) * sizeof(**ram));
	if (!*blocks || !*ram)
		return -ENOMEM;
	n = 0;
	for (unsigned int i = 0; i < base->nr_nodes; i++)
		for (unsigned int k = 0; k < base->node[i].nr_ranges; k++)
			(*blocks)[n++] =
				(struct topo_block){base->node[i].ranges[k].start,
						    base->node[i].ranges[k].end, base->node[i].id};
	qsort(*blocks, n, sizeof(**blocks), compare_blocks);
	for (unsigned int i = 0; i < n; i++)
		(*ram)[i] = (struct mc_range){ (*blocks)[i].start, (*blocks)[i].end };
	*nr_ram = n;
	for (unsigned int i = 0; i < n; i++) {
		struct topo_block *last = kept ? &(*blocks)[kept - 1] : NULL, *next = &(*blocks)[i];

		/* Zones of emulated or interleaved nodes may overlap: memory belongs to one node.
		 */
		if (last && next->start < last->end)
			next->start = last->end;
		if (next->start >= next->end)
			continue;
		if (last && last->node == next->node)
			last->end = next->end;
		else
			(*blocks)[kept++] = *next;
	}
	*nr_blocks = kept;
	return 0;
}

static int cut(const struct mc_topology *topo, const char *text, struct topo_fake *fake,
	       struct mc_error *error)
{
	const struct topo_base *base = topo->base;
	struct topo_fake_in in = {
		.nodes = base->nodes_online,
		.max_nodes = base->max_numnodes < MAX_FAKE ? base->max_numnodes : MAX_FAKE,
		.distance = distance_of,
		.arg = topo,
		.dma_end = 4ull << 30,
	};
	struct topo_block *blocks = NULL;
	struct mc_range *ram = NULL;
	int rc = collect(base, &blocks, &ram, &in.nr_phys, &in.nr_ram);

	if (rc < 0) {
		rc = mc_fail(error, ENOMEM, "--numa fake=%.200s: out of memory", text);
	} else {
		in.phys = blocks;
		in.ram = ram;
		if (base->arch != MC_ARCH_X86_64 && in.nr_ram)
			in.dma_end += ram[0].start;
		rc = topo_fake_split(&in, text, fake, error);
	}
	free(blocks);
	free(ram);
	return rc;
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

static unsigned int first_fake(const struct topo_fake *fake, unsigned int phys)
{
	for (unsigned int i = 0; i < fake->nr_nodes; i++)
		if (fake->phys[i] == phys)
			return i;
	return 0; /* CPUs of a node without memory end up on the first one */
}

/* New base with the CPUs, caches and sets of the old one, and nodes 0 .. nr_nodes - 1. */
static int copy_cpus(struct apply *a)
{
	const struct topo_base *old = a->old;
	unsigned int n = a->fake->nr_nodes;
	struct mc_nodemask *online = topo_nodemask(n);
	struct topo_base *base = topo_base_new(old->nr_cpu_ids, n);
	int rc = online && base ? 0 : -ENOMEM;

	a->base = base;
	for (uint32_t i = 0; rc == 0 && i < old->nr_masks; i++)
		if (topo_intern(base, old->mask[i]) != i)
			rc = -ENOMEM;
	if (rc == 0 && old->nr_caches && topo_add_caches(base, old->nr_caches) == UINT32_MAX)
		rc = -ENOMEM;
	if (rc == 0) {
		base->arch = old->arch;
		base->kernel_max = old->kernel_max;
		base->max_numnodes = old->max_numnodes;
		mc_cpumask_copy(base->possible, old->possible);
		mc_cpumask_copy(base->present, old->present);
		mc_cpumask_copy(base->online, a->topo->online);
		memcpy(base->cpu, old->cpu, old->nr_cpu_ids * sizeof(*base->cpu));
		if (old->nr_caches)
			memcpy(base->cache, old->cache, old->nr_caches * sizeof(*base->cache));
		for (unsigned int i = 0; i < n; i++)
			if (a->fake->phys[i] != TOPO_NO_NODE)
				mc_cpumask_set(&online->m, i);
		rc = topo_set_nodes(base, online);
	}
	if (rc == 0 && old->allowed) {
		base->allowed = mc_cpumask_dup(old->allowed);
		rc = base->allowed ? 0 : -ENOMEM;
	}
	mc_cpumask_free((struct mc_cpumask *)online);
	return rc;
}

/* Deals out the CPUs of each physical node: emulated node k of n gets the k-th share of its cores.
 */
static int deal_cpus(struct apply *a, unsigned int *node_of)
{
	struct mc_cpumask *done = mc_cpumask_alloc_bits(a->old->nr_cpu_ids);
	unsigned int *fakes = malloc(a->fake->nr_nodes * sizeof(*fakes)), cpu, other;
	int rc = done && fakes ? 0 : -ENOMEM;

	for (unsigned int i = 0; rc == 0 && i < a->old->nr_nodes; i++) {
		const struct topo_node *phys = &a->old->node[i];
		unsigned int n = 0, cores = 0, at = 0;

		for (unsigned int f = 0; f < a->fake->nr_nodes; f++)
			if (a->fake->phys[f] == phys->id)
				fakes[n++] = f;
		if (!n)
			continue;
		for (int pass = 0; pass < 2; pass++) {
			mc_cpumask_zero(done);
			mc_for_each_cpu(cpu, a->old->possible) {
				uint32_t core = a->old->cpu[cpu].sibling[MC_LEVEL_CORE];

				if (a->old->cpu[cpu].ids.node != phys->id ||
				    mc_cpumask_test(done, cpu))
					continue;
				mc_cpumask_set(done, cpu);
				if (core != TOPO_NO_MASK)
					mc_cpumask_or(done, done, a->old->mask[core]);
				if (pass == 0) {
					cores++;
					continue;
				}
				node_of[cpu] = fakes[(uint64_t)at * n / cores];
				if (core != TOPO_NO_MASK)
					mc_for_each_cpu(other, a->old->mask[core])
						if (a->old->cpu[other].ids.node == phys->id)
							node_of[other] = node_of[cpu];
				at++;
			}
		}
	}
	mc_cpumask_free(done);
	free(fakes);
	return rc;
}

/* The set of CPUs for which `test` holds: those of emulated node `id`, or (whole) of its physical
 * node. */
static uint32_t cpus_of(const struct apply *a, const unsigned int *node_of, unsigned int id,
			bool whole, struct mc_cpumask *scratch)
{
	unsigned int cpu;

	mc_cpumask_zero(scratch);
	mc_for_each_cpu(cpu, a->old->possible) {
		unsigned int node = node_of[cpu];

		if (node == TOPO_NO_NODE)
			continue;
		if (node == id || (whole && a->fake->phys[node] == a->fake->phys[id]))
			mc_cpumask_set(scratch, cpu);
	}
	return topo_intern(a->base, scratch);
}

static int set_cpus(struct apply *a)
{
	struct topo_base *base = a->base;
	unsigned int *node_of = malloc(base->nr_cpu_ids * sizeof(*node_of)), cpu;
	struct mc_cpumask *scratch = mc_cpumask_alloc_bits(base->nr_cpu_ids);
	int rc = node_of && scratch ? 0 : -ENOMEM;

	for (cpu = 0; rc == 0 && cpu < base->nr_cpu_ids; cpu++) {
		unsigned int phys = a->old->cpu[cpu].ids.node;

		node_of[cpu] = phys == TOPO_NO_NODE ? TOPO_NO_NODE : first_fake(a->fake, phys);
	}
	if (rc == 0 && a->split)
		rc = deal_cpus(a, node_of);
	for (unsigned int i = 0; rc == 0 && i < base->nr_nodes; i++) {
		struct topo_node *node = &base->node[i];

		node->physical = (int)a->fake->phys[node->id];
		/* All emulated nodes of one physical node list the same CPUs. */
		for (unsigned int k = 0; k < i && !a->split; k++)
			if (base->node[k].physical == node->physical) {
				node->cpus = base->node[k].cpus;
				goto linked;
			}
		node->cpus = cpus_of(a, node_of, node->id, !a->split, scratch);
linked:
		if (node->id == first_fake(a->fake, (unsigned int)node->physical) || a->split) {
			cpus_of(a, node_of, node->id, false, scratch);
			mc_cpumask_and(scratch, scratch, base->present);
			node->linked = topo_intern(base, scratch);
		}
		if (node->cpus == TOPO_NO_MASK || node->linked == TOPO_NO_MASK)
			rc = -ENOMEM;
	}
	for (cpu = 0; rc == 0 && cpu < base->nr_cpu_ids; cpu++) {
		base->cpu[cpu].ids.node = node_of[cpu];
		base->cpu[cpu].hidden.node = node_of[cpu];
	}
	free(node_of);
	mc_cpumask_free(scratch);
	return rc;
}

/* The state is set for the nodes that list the boot CPU while it is the only one up, and then for
 * the own node of each CPU that comes up: so it misses nodes that only list later ones. */
static void set_has_cpu(struct apply *a)
{
	struct topo_base *base = a->base;
	unsigned int boot = mc_cpumask_first(base->online), cpu;

	for (unsigned int i = 0; i < base->nr_nodes; i++)
		if (mc_cpumask_test(base->mask[base->node[i].cpus], boot))
			mc_cpumask_set(&base->nodes_has_cpu->m, base->node[i].id);
	mc_for_each_cpu(cpu, base->online)
		if (base->cpu[cpu].ids.node < base->nr_node_ids)
			mc_cpumask_set(&base->nodes_has_cpu->m, base->cpu[cpu].ids.node);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t range_bytes(const struct topo_node *node)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < node->nr_ranges; i++)
		sum += node->ranges[i].end - node->ranges[i].start;
	return sum;
}

/* Adds what is memory of the physical node within a block. */
static int add_memory(struct topo_node *node, const struct topo_node *phys,
		      const struct topo_block *block)
{
	for (unsigned int i = 0; i < phys->nr_ranges; i++) {
		uint64_t start =
			phys->ranges[i].start > block->start ? phys->ranges[i].start : block->start;
		uint64_t end = phys->ranges[i].end < block->end ? phys->ranges[i].end : block->end;

		if (start < end && topo_node_add_range(node, start, end) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The share of the physical node's usable memory that goes with its ranges: all of it, for
 * described machines. */
static uint64_t share(uint64_t of, uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((unsigned __int128)of * part / whole) / 4096 * 4096 : 0;
}

static int set_memory(struct apply *a)
{
	struct topo_base *base = a->base;

	for (unsigned int i = 0; i < a->fake->nr_blocks; i++) {
		const struct topo_block *block = &a->fake->block[i];

		/* A block may span physical neighbours' holes but only ever belongs to one node. */
		for (unsigned int k = 0; k < a->old->nr_nodes; k++)
			if (a->old->node[k].id == a->fake->phys[block->node] &&
			    add_memory(topo_node(base, block->node), &a->old->node[k], block) < 0)
				return -ENOMEM;
	}
	for (unsigned int i = 0; i < base->nr_nodes; i++) {
		struct topo_node *node = &base->node[i];
		const struct topo_node *phys = topo_node(a->old, (unsigned int)node->physical);
		uint64_t part = range_bytes(node), whole = range_bytes(phys);

		node->mem_total = share(phys->mem_total, part, whole);
		node->mem_free = share(phys->mem_free, part, whole);
		mc_cpumask_set(&base->nodes_has_memory->m, node->id);
		node->hugepools = calloc(phys->nr_hugepools ? phys->nr_hugepools : 1,
					 sizeof(*node->hugepools));
		if (!node->hugepools)
			return -ENOMEM;
		node->nr_hugepools = phys->nr_hugepools;
		for (unsigned int k = 0; k < phys->nr_hugepools; k++)
			node->hugepools[k].size = phys->hugepools[k].size;
	}
	return 0;
}

static int set_distances(struct apply *a)
{
	struct topo_base *base = a->base;

	for (unsigned int i = 0; i < base->nr_nodes; i++)
		for (unsigned int j = 0; j < base->nr_nodes; j++) {
			unsigned int from = base->node[i].id, to = base->node[j].id;

			if (topo_set_distance(
				    base, from, to,
				    a->fake->distance[(size_t)from * a->fake->nr_nodes + to]) < 0)
				return -ENOMEM;
		}
	return 0;
}

int topo_fake_apply(const struct mc_topology *topo, const char *text, struct mc_topology **out,
		    struct mc_error *error)
{
	static const char suffix[] = ",split";
	struct apply a = { .topo = topo, .old = topo->base };
	size_t len = strlen(text), cut_off = sizeof(suffix) - 1;
	struct topo_fake fake;
	char *spec;
	int rc;

	a.split = len >= cut_off && !strcmp(text + len - cut_off, suffix);
	spec = strndup(text, a.split ? len - cut_off : len);
	if (!spec)
		return mc_fail(error, ENOMEM, "--numa fake=%.200s: out of memory", text);
	rc = cut(topo, spec, &fake, error);
	free(spec);
	if (rc < 0)
		return rc;
	a.fake = &fake;
	rc = copy_cpus(&a);
	if (rc == 0)
		rc = set_cpus(&a);
	if (rc == 0)
		rc = set_memory(&a);
	if (rc == 0)
		rc = set_distances(&a);
	topo_fake_release(&fake);
	if (rc < 0) {
		topo_base_put(a.base);
		return mc_fail(error, ENOMEM, "--numa fake=%.200s: out of memory", text);
	}
	set_has_cpu(&a);
	topo_base_share_files(a.base, topo->base);
	rc = topo_base_finish(a.base, out);
	return rc < 0 ? mc_fail(error, -rc, "--numa fake=%.200s: out of memory", text) : 0;
}
