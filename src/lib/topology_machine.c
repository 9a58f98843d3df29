// SPDX-License-Identifier: MIT
/*
 * topology_machine.c - from what was said about a machine (struct mc_machine) to the machine.
 *
 * The base is this host, a preset or a recording. Options that change its shape (--smp, --nodes,
 * --numa node) make a new machine of which the base gives what was not said: memory, number of
 * nodes, caches, architecture. numa=fake and
 * --offline then work on the result.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_fake.h"

struct mc_machine *mc_machine_new(void)
{
	return calloc(1, sizeof(struct mc_machine));
}

void mc_machine_free(struct mc_machine *machine)
{
	if (!machine)
		return;
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		mc_cpumask_free(machine->node[i].cpus);
	free(machine->node);
	free(machine->dist);
	free(machine->base);
	free(machine->fake);
	free(machine->offline);
	free(machine);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int even_nodes(struct topo_spec *spec, unsigned int n)
{
	topo_spec_drop_nodes(spec);
	spec->node = calloc(n, sizeof(*spec->node));
	if (!spec->node)
		return -ENOMEM;
	spec->nr_nodes = n;
	for (unsigned int i = 0; i < n; i++)
		spec->node[i].id = i;
	return 0;
}

static int compare_nodes(const void *pa, const void *pb)
{
	const struct topo_spec_node *a = pa, *b = pb;

	return a->id < b->id ? -1 : a->id > b->id;
}

/* CPUs that no node claims go to the first node, as in QEMU; a CPU may belong to one node only. */
static int check_cpus(struct topo_spec *spec, struct mc_error *error)
{
	struct mc_cpumask *seen = mc_cpumask_alloc_bits(spec->maxcpus), *rest;
	unsigned int given = 0;
	int rc = 0;

	if (!seen)
		return mc_fail(error, ENOMEM, "--numa node: out of memory");
	for (unsigned int i = 0; rc == 0 && i < spec->nr_nodes; i++) {
		struct topo_spec_node *node = &spec->node[i];
		struct mc_cpumask *cpus;

		if (!node->cpus)
			continue;
		given++;
		if (!mc_cpumask_empty(node->cpus) && mc_cpumask_last(node->cpus) >= spec->maxcpus) {
			rc = mc_fail(error, ERANGE, "--numa node: node %u: CPU %u: the machine has CPUs 0-%u", node->id,
				     mc_cpumask_last(node->cpus), spec->maxcpus - 1);
			break;
		}
		cpus = mc_cpumask_alloc_bits(spec->maxcpus);
		if (!cpus) {
			rc = mc_fail(error, ENOMEM, "--numa node: out of memory");
			break;
		}
		mc_cpumask_copy(cpus, node->cpus);
		mc_cpumask_free(node->cpus);
		node->cpus = cpus;
		if (mc_cpumask_intersects(cpus, seen))
			rc = mc_fail(error, EINVAL, "--numa node: node %u: a CPU of it belongs to another node already",
				     node->id);
		mc_cpumask_or(seen, seen, cpus);
	}
	if (rc == 0 && given) {
		rest = mc_cpumask_alloc_bits(spec->maxcpus);
		if (rest) {
			mc_cpumask_setall(rest);
			mc_cpumask_andnot(rest, rest, seen);
			if (spec->node[0].cpus) {
				mc_cpumask_or(spec->node[0].cpus, spec->node[0].cpus, rest);
				mc_cpumask_free(rest);
			} else if (mc_cpumask_empty(rest)) {
				mc_cpumask_free(rest);
			} else {
				spec->node[0].cpus = rest;
			}
		} else {
			rc = mc_fail(error, ENOMEM, "--numa node: out of memory");
		}
	}
	mc_cpumask_free(seen);
	return rc;
}

static int check_memory(const struct mc_machine *m, struct topo_spec *spec, struct mc_error *error)
{
	uint64_t sum = 0;
	bool given = false;

	for (unsigned int i = 0; i < spec->nr_nodes; i++) {
		given |= spec->node[i].has_mem;
		if (__builtin_add_overflow(sum, spec->node[i].mem, &sum) || sum > 1ull << 60)
			return mc_fail(
				error, ERANGE,
				"--numa node: more than 1E of memory; that is the most a machine may have");
	}
	if (!given)
		return 0;
	if (!sum)
		return mc_fail(error, EINVAL, "--numa node: no node has memory; give one mem=");
	if (m->mem && m->mem != sum)
		return mc_fail(
			error, EINVAL,
			"--mem: %llu bytes, but the nodes' mem= add up to %llu; leave --mem out or make them equal",
			(unsigned long long)m->mem, (unsigned long long)sum);
	spec->mem = sum;
	return 0;
}

static int explicit_nodes(const struct mc_machine *m, struct topo_spec *spec,
			  struct mc_error *error)
{
	int rc;

	if (even_nodes(spec, m->nr_nodes) < 0)
		return mc_fail(error, ENOMEM, "--numa node: out of memory");
	memcpy(spec->node, m->node, m->nr_nodes * sizeof(*spec->node));
	for (unsigned int i = 0; i < m->nr_nodes; i++)
		spec->node[i].cpus = NULL;
	for (unsigned int i = 0; i < m->nr_nodes; i++) {
		if (!m->node[i].cpus)
			continue;
		spec->node[i].cpus = mc_cpumask_dup(m->node[i].cpus);
		if (!spec->node[i].cpus)
			return mc_fail(error, ENOMEM, "--numa node: out of memory");
	}
	qsort(spec->node, spec->nr_nodes, sizeof(*spec->node), compare_nodes);
	rc = check_cpus(spec, error);
	return rc < 0 ? rc : check_memory(m, spec, error);
}

/* Scales what each node has to a new total; the last node with memory takes what rounding leaves.
 */
static void scale_memory(struct topo_spec *spec, uint64_t total)
{
	uint64_t left = total, old = spec->mem;
	unsigned int last = 0;

	spec->mem = total;
	for (unsigned int i = 0; i < spec->nr_nodes; i++)
		if (spec->node[i].has_mem && spec->node[i].mem)
			last = i;
	for (unsigned int i = 0; i < spec->nr_nodes; i++) {
		struct topo_spec_node *node = &spec->node[i];

		if (!node->has_mem || !node->mem)
			continue;
		node->mem = (uint64_t)((unsigned __int128)total * node->mem / old) >> 20 << 20;
		if (i == last)
			node->mem = left;
		left -= node->mem;
	}
}

static bool spec_has_node(const struct topo_spec *spec, unsigned int id)
{
	for (unsigned int i = 0; i < spec->nr_nodes; i++)
		if (spec->node[i].id == id)
			return true;
	return false;
}

/* A distance given in one direction only holds in both, as in QEMU. */
static int add_distances(const struct mc_machine *m, struct topo_spec *spec, struct mc_error *error)
{
	struct topo_spec_dist *list;

	if (!m->nr_dists)
		return 0;
	list = realloc(spec->dist, (spec->nr_dists + 2 * (size_t)m->nr_dists) * sizeof(*list));
	if (!list)
		return mc_fail(error, ENOMEM, "--numa dist: out of memory");
	spec->dist = list;
	for (unsigned int i = 0; i < m->nr_dists; i++) {
		unsigned int missing =
			!spec_has_node(spec, m->dist[i].src) ? m->dist[i].src : m->dist[i].dst;

		if (!spec_has_node(spec, missing))
			return mc_fail(error, EINVAL, "--numa dist: src=%u,dst=%u: the machine has no node %u",
				       m->dist[i].src, m->dist[i].dst, missing);
		list[spec->nr_dists++] =
			(struct topo_spec_dist){m->dist[i].dst, m->dist[i].src, m->dist[i].val};
	}
	for (unsigned int i = 0; i < m->nr_dists; i++)
		list[spec->nr_dists++] = m->dist[i];
	return 0;
}

/* ---- putting it together --------------------------------------------------------------------- */

static bool changes_shape(const struct mc_machine *m)
{
	return m->smp.given || m->nodes || m->nr_nodes || m->mem || m->nr_dists;
}

static int apply_options(const struct mc_machine *m, struct topo_spec *spec, struct mc_error *error)
{
	int rc = 0;

	if (m->smp.given) {
		rc = topo_smp_complete(&m->smp, spec, error);
		spec->smt_split = false;
		for (unsigned int i = 0; i < spec->nr_nodes; i++) {
			mc_cpumask_free(spec->node[i].cpus);
			spec->node[i].cpus = NULL;
		}
	}
	if (rc == 0 && m->nr_nodes && m->nodes && m->nodes != m->nr_nodes)
		rc = mc_fail(error, EINVAL, "--nodes: %u, but --numa node describes %u; leave --nodes out", m->nodes,
			     m->nr_nodes);
	if (rc == 0 && m->mem && !m->nr_nodes)
		scale_memory(spec, m->mem);
	else if (m->mem)
		spec->mem = m->mem;
	if (rc == 0 && m->nr_nodes)
		rc = explicit_nodes(m, spec, error);
	else if (rc == 0 && m->nodes && even_nodes(spec, m->nodes) < 0)
		rc = mc_fail(error, ENOMEM, "--nodes: %u: out of memory", m->nodes);
	if (rc == 0 && spec->mem / spec->nr_nodes < 1 << 20 && !spec->node[0].has_mem)
		rc = mc_fail(
			error, EINVAL,
			"--nodes: %u nodes of %llu bytes together: less than 1 MiB each; give more --mem",
			spec->nr_nodes, (unsigned long long)spec->mem);
	if (spec->kernel_max < spec->maxcpus - 1)
		spec->kernel_max = spec->maxcpus <= 8192 ? 8191 : TOPO_MAX_CPUS - 1;
	return rc < 0 ? rc : add_distances(m, spec, error);
}

static int build_spec(const struct mc_machine *m, struct topo_spec *spec, struct mc_topology **topo,
		      struct mc_error *error)
{
	struct topo_base *base;
	int rc = apply_options(m, spec, error);

	if (rc == 0)
		rc = topo_spec_build(spec, &base, error);
	if (rc == 0 && topo_base_finish(base, topo) < 0)
		rc = mc_fail(error, ENOMEM, "building the machine: out of memory");
	return rc;
}

static int build_shape(const struct mc_machine *m, struct mc_topology **topo,
		       struct mc_error *error)
{
	const struct topo_preset *preset = m->base ? topo_preset_find(m->base) : NULL;
	struct mc_topology *from = NULL;
	struct topo_spec spec;
	int rc;

	if (preset) {
		if (topo_preset_spec(preset, &spec) < 0)
			return mc_fail(error, ENOMEM, "--machine: %s: out of memory", m->base);
		rc = build_spec(m, &spec, topo, error);
		topo_spec_release(&spec);
		return rc;
	}
	rc = m->base ? mc_topology_load(m->base, &from, error) : mc_topology_live(&from, error);
	if (rc < 0)
		return rc;
	if (!changes_shape(m)) {
		*topo = from;
		return 0;
	}
	rc = topo_spec_from(from, !m->base, &spec);
	rc = rc < 0 ? mc_fail(error, ENOMEM, "building the machine: out of memory") : build_spec(m, &spec, topo, error);
	topo_spec_release(&spec);
	mc_topology_put(from);
	return rc;
}

static int take_offline(const char *list, struct mc_topology **topo, struct mc_error *error)
{
	struct mc_topology *old = *topo, *new;
	unsigned int n = mc_topology_nr_cpu_ids(old);
	struct mc_cpumask *wide = mc_cpumask_alloc_bits(TOPO_MAX_CPUS),
			  *online = mc_cpumask_alloc_bits(n);
	int rc = wide && online ? 0 : mc_fail(error, ENOMEM, "--offline: out of memory");

	if (rc == 0 && mc_cpulist_parse(wide, list, NULL) < 0)
		rc = mc_fail(error, EINVAL, "--offline: %.200s: not a list of CPUs", list);
	if (rc == 0 && !mc_cpumask_empty(wide) &&
	    (mc_cpumask_last(wide) >= n ||
	     !mc_cpumask_test(mc_topology_present(old), mc_cpumask_last(wide))))
		rc = mc_fail(error, ERANGE, "--offline: %.200s: CPU %u: the machine has CPUs 0-%u", list,
			     mc_cpumask_last(wide), mc_cpumask_last(mc_topology_present(old)));
	if (rc == 0) {
		mc_cpumask_copy(online, mc_topology_online(old));
		for (unsigned int cpu = mc_cpumask_first(wide); cpu < wide->nbits;
		     cpu = mc_cpumask_next((int)cpu, wide))
			mc_cpumask_clear(online, cpu);
		rc = mc_topology_set_online(old, online, &new);
		if (rc == -EINVAL)
			rc = mc_fail(error, EINVAL, "--offline: %.200s: no CPU would be left online", list);
		else if (rc < 0)
			rc = mc_fail(error, -rc, "--offline: out of memory");
	}
	if (rc == 0) {
		mc_topology_put(old);
		*topo = new;
	}
	mc_cpumask_free(wide);
	mc_cpumask_free(online);
	return rc;
}

int mc_machine_build(const struct mc_machine *machine, struct mc_topology **topo,
		     struct mc_error *error)
{
	struct mc_topology *made;
	int rc = build_shape(machine, &made, error);

	if (rc == 0 && machine->fake) {
		struct mc_topology *whole = made;

		rc = topo_fake_apply(whole, machine->fake, &made, error);
		mc_topology_put(whole);
	}
	if (rc < 0)
		return rc;
	if (machine->offline)
		rc = take_offline(machine->offline, &made, error);
	if (rc < 0)
		mc_topology_put(made);
	else
		*topo = made;
	return rc;
}
