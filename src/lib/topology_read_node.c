// SPDX-License-Identifier: MIT
/* topology_read_node.c - memory nodes from /sys/devices/system/node: CPUs, links, distances,
 * states, restrictions. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "os/os.h"
#include "topology_read.h"

static int note_link(void *arg, const char *name)
{
	struct mc_cpumask *mask = arg;
	unsigned int cpu;

	if (topo_numbered(name, "cpu", &cpu) && cpu < mask->nbits)
		mc_cpumask_set(mask, cpu);
	return 0;
}

/* The CPUs whose own node this is, offline ones too: the cpuN links. Where a recording has none:
 * the node's CPUs. */
static int read_links(struct topo_reader *r, struct topo_node *node, const char *dir)
{
	struct mc_cpumask *links = mc_cpumask_alloc_bits(r->base->nr_cpu_ids);
	unsigned int cpu;

	if (!links)
		return topo_read_problem(r, ENOMEM, dir, "out of memory");
	topo_read_dir(r, dir, note_link, links);
	mc_cpumask_and(links, links, r->base->present);
	mc_for_each_cpu(cpu, links) {
		r->base->cpu[cpu].ids.node = node->id;
		r->base->cpu[cpu].hidden.node = node->id;
	}
	/* Nodes start with the empty set: machines of very many nodes have mostly those. */
	if (!mc_cpumask_empty(links))
		node->linked = topo_intern(r->base, links);
	mc_cpumask_free(links);
	return node->linked == TOPO_NO_MASK ? topo_read_problem(r, ENOMEM, dir, "out of memory") : 0;
}

static int read_distances(struct topo_reader *r, struct topo_node *node, const char *dir)
{
	struct topo_text text;
	const char *p;
	char *end;

	if (topo_read(r, &text, "%s/distance", dir) < 0)
		return 0;
	node->distance = malloc(r->base->nr_nodes);
	if (!node->distance) {
		topo_text_done(&text);
		return topo_read_problem(r, ENOMEM, dir, "out of memory");
	}
	memset(node->distance, 20, r->base->nr_nodes);
	node->distance[node - r->base->node] = 10;
	p = text.data;
	for (unsigned int i = 0; i < r->base->nr_nodes; i++, p = end) {
		unsigned long v = strtoul(p, &end, 10);

		if (end == p)
			break;
		if (v > 255) {
			topo_text_done(&text);
			return topo_read_problem(r, ERANGE, dir, "a distance of more than 255");
		}
		node->distance[i] = (uint8_t)v;
	}
	topo_text_done(&text);
	return 0;
}

static int read_node(struct topo_reader *r, struct topo_node *node)
{
	uint32_t cpus;
	char dir[64];
	int rc;

	snprintf(dir, sizeof(dir), SYS_NODE "/node%u", node->id);
	rc = topo_read_set(r, &cpus, dir, "cpulist", "cpumap");
	if (rc < 0)
		return rc;
	if (cpus != TOPO_NO_MASK)
		node->cpus = cpus;
	rc = read_links(r, node, dir);
	return rc < 0 ? rc : read_distances(r, node, dir);
}

/* Recordings made by tools that leave the links out: each CPU belongs to the first node that lists
 * it. */
static int derive_links(struct topo_reader *r)
{
	struct topo_base *base = r->base;
	unsigned int cpu;

	for (unsigned int i = 0; i < base->nr_nodes; i++)
		if (!mc_cpumask_empty(base->mask[base->node[i].linked]))
			return 0;
	for (unsigned int i = 0; i < base->nr_nodes; i++) {
		if (mc_cpumask_empty(base->mask[base->node[i].cpus]))
			continue;
		mc_cpumask_zero(r->scratch);
		mc_for_each_cpu(cpu, base->mask[base->node[i].cpus]) {
			if (base->cpu[cpu].ids.node != UINT32_MAX)
				continue;
			base->cpu[cpu].ids.node = base->node[i].id;
			base->cpu[cpu].hidden.node = base->node[i].id;
			mc_cpumask_set(r->scratch, cpu);
		}
		base->node[i].linked = topo_intern(base, r->scratch);
		if (base->node[i].linked == TOPO_NO_MASK)
			return topo_read_problem(r, ENOMEM, SYS_NODE, "out of memory");
	}
	return 0;
}

/* What the folder of `node` would list with all CPUs online: also its offline links and, under
 * numa=fake, those of the other nodes cut from the same physical one (which list the same CPUs). */
static uint32_t with_offline(struct topo_reader *r, const struct topo_node *node,
			     const struct mc_cpumask *offline)
{
	const struct topo_base *base = r->base;
	const struct mc_cpumask *list = base->mask[node->cpus];
	unsigned int cpu;

	mc_cpumask_copy(r->scratch, list);
	mc_for_each_cpu(cpu, offline) {
		const struct topo_node *own = topo_node(base, base->cpu[cpu].ids.node);

		if (own == node || (own && own->cpus == node->cpus && !mc_cpumask_empty(list)))
			mc_cpumask_set(r->scratch, cpu);
	}
	return topo_intern(r->base, r->scratch);
}

static int add_offline(struct topo_reader *r)
{
	struct topo_base *base = r->base;
	struct mc_cpumask *offline;
	uint32_t *cpus;
	int rc;

	if (mc_cpumask_equal(base->present, base->online))
		return 0;
	offline = mc_cpumask_alloc_bits(base->nr_cpu_ids);
	cpus = calloc(base->nr_nodes ? base->nr_nodes : 1, sizeof(*cpus));
	rc = offline && cpus ? 0 : -ENOMEM;
	if (rc == 0)
		mc_cpumask_andnot(offline, base->present, base->online);
	for (unsigned int i = 0; rc == 0 && i < base->nr_nodes; i++) {
		cpus[i] = with_offline(r, &base->node[i], offline);
		if (cpus[i] == TOPO_NO_MASK)
			rc = -ENOMEM;
	}
	for (unsigned int i = 0; rc == 0 && i < base->nr_nodes; i++)
		base->node[i].cpus = cpus[i];
	mc_cpumask_free(offline);
	free(cpus);
	return rc < 0 ? topo_read_problem(r, ENOMEM, SYS_NODE, "out of memory") : 0;
}

static int read_state(struct topo_reader *r, struct mc_nodemask *mask, const char *name,
		      bool *there)
{
	struct mc_cpumask *wide = mc_cpumask_alloc_bits(r->base->nr_node_ids);
	int rc;

	if (!wide)
		return topo_read_problem(r, ENOMEM, SYS_NODE, "out of memory");
	rc = topo_read_list(r, wide, SYS_NODE "/%s", name);
	*there = rc == 0;
	if (rc == 0)
		mc_cpumask_copy(&mask->m, wide);
	mc_cpumask_free(wide);
	return rc == 0 || rc == -ENOENT ? 0 : rc;
}

static int read_states(struct topo_reader *r)
{
	struct topo_base *base = r->base;
	bool there;
	int rc = read_state(r, base->nodes_has_cpu, "has_cpu", &there);

	for (unsigned int i = 0; rc == 0 && !there && i < base->nr_nodes; i++)
		if (!mc_cpumask_empty(base->mask[base->node[i].cpus]))
			mc_cpumask_set(&base->nodes_has_cpu->m, base->node[i].id);
	if (rc == 0)
		rc = read_state(r, base->nodes_has_memory, "has_memory", &there);
	if (rc == 0 && !there)
		rc = read_state(r, base->nodes_has_memory, "has_normal_memory", &there);
	if (rc == 0 && !there)
		mc_cpumask_copy(&base->nodes_has_memory->m, &base->nodes_online->m);
	return rc;
}

/* What this process may use: its affinity, and the nodes its cpuset leaves it. */
static int read_restriction(struct topo_reader *r)
{
	struct topo_base *base = r->base;
	size_t bytes = (base->kernel_max / 64 + 1) * sizeof(uint64_t);
	struct topo_text text;
	unsigned long *words;
	const char *p;

	base->allowed = mc_cpumask_alloc_bits(base->nr_cpu_ids);
	words = calloc(1, bytes);
	if (!base->allowed || !words) {
		free(words);
		return topo_read_problem(r, ENOMEM, "", "out of memory");
	}
	mc_cpumask_copy(base->allowed, base->online);
	if (mc_os_getaffinity(0, bytes, words) > 0) {
		mc_cpumask_zero(base->allowed);
		for (unsigned int cpu = 0; cpu < base->nr_cpu_ids; cpu++)
			if (words[cpu / (8 * sizeof(*words))] >> cpu % (8 * sizeof(*words)) & 1)
				mc_cpumask_set(base->allowed, cpu);
	}
	free(words);
	if (!base->has_numa || topo_read(r, &text, "/proc/self/status") < 0)
		return 0;
	p = strstr(text.data, "\nMems_allowed_list:");
	if (p) {
		char *list = strndup(p + strlen("\nMems_allowed_list:"),
				     strcspn(p + 1, "\n") - strlen("Mems_allowed_list:"));
		struct mc_nodemask *nodes = topo_nodemask(base->nr_node_ids);

		if (list && nodes && mc_cpulist_parse(&nodes->m, list + strspn(list, " \t"), NULL) == 0) {
			mc_cpumask_and(&nodes->m, &nodes->m, &base->nodes_online->m);
			base->nodes_allowed = nodes;
			nodes = NULL;
		}
		free(list);
		mc_nodemask_free((struct mc_nodemask *)nodes);
	}
	topo_text_done(&text);
	return 0;
}

int topo_read_nodes(struct topo_reader *r)
{
	int rc = 0;

	for (unsigned int i = 0; rc == 0 && i < r->base->nr_nodes; i++)
		rc = read_node(r, &r->base->node[i]);
	if (rc == 0)
		rc = derive_links(r);
	if (rc == 0)
		rc = add_offline(r);
	if (rc == 0 && r->base->has_numa)
		rc = read_states(r);
	if (rc == 0 && !r->files)
		rc = read_restriction(r);
	return rc;
}
