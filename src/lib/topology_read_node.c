// SPDX-License-Identifier: MIT
/* topology_read_node.c - memory nodes from /sys/devices/system/node: CPUs, links, distances,
 * states, restrictions. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "os/os.h"
#include "topology_read.h"

struct links {
	struct mc_cpumask *mask; /* the reader's scratch: zeroed by the first link */
	bool any;
};

static int note_link(void *arg, const char *name)
{
	struct links *links = arg;
	unsigned int cpu;

	if (!topo_numbered(name, "cpu", &cpu) || cpu >= links->mask->nbits)
		return 0;
	if (!links->any)
		mc_cpumask_zero(links->mask);
	links->any = true;
	mc_cpumask_set(links->mask, cpu);
	return 0;
}

/* The CPUs whose own node this is, offline ones too: the cpuN links. Where a recording has none:
 * the node's CPUs. Machines of very many nodes have mostly nodes without: those cost nothing of the
 * size of a mask, and keep the empty set that they start with. */
static int read_links(struct topo_reader *r, struct topo_node *node, const char *dir)
{
	struct links links = {.mask = r->scratch};
	unsigned int cpu;

	topo_read_dir(r, dir, note_link, &links);
	if (!links.any || !mc_cpumask_and(links.mask, links.mask, r->base->present))
		return 0;
	mc_for_each_cpu(cpu, links.mask) {
		r->base->cpu[cpu].ids.node = node->id;
		r->base->cpu[cpu].hidden.node = node->id;
	}
	node->linked = topo_intern(r->base, links.mask);
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
static int derive_links(struct topo_reader *r, uint32_t none)
{
	struct topo_base *base = r->base;
	unsigned int cpu;

	for (unsigned int i = 0; i < base->nr_nodes; i++)
		if (base->node[i].linked != none)
			return 0;
	for (unsigned int i = 0; i < base->nr_nodes; i++) {
		if (base->node[i].cpus == none)
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

/* Chains of offline CPUs by their own node, and of nodes by the set of CPUs they list: heads are
 * indexed by the node's rank and by the set, both chains end with TOPO_NO_MASK. */
struct offline {
	uint32_t *cpu, *next_cpu;   /* nr_nodes heads, nr_cpu_ids links */
	uint32_t *same, *next_same; /* nr_masks heads, nr_nodes links; not for the empty set */
};

static void chain(uint32_t *head, uint32_t *next, uint32_t at)
{
	next[at] = *head;
	*head = at;
}

static int chain_offline(struct topo_base *base, uint32_t none, struct offline *o)
{
	size_t nr = (size_t)2 * base->nr_nodes + base->nr_cpu_ids + base->nr_masks;
	unsigned int cpu;

	o->cpu = malloc(nr * sizeof(*o->cpu));
	if (!o->cpu)
		return -ENOMEM;
	memset(o->cpu, 0xff, nr * sizeof(*o->cpu)); /* TOPO_NO_MASK */
	o->next_cpu = o->cpu + base->nr_nodes;
	o->same = o->next_cpu + base->nr_cpu_ids;
	o->next_same = o->same + base->nr_masks;
	mc_for_each_cpu(cpu, base->present) {
		struct topo_node *own = topo_node(base, base->cpu[cpu].ids.node);

		if (own && !mc_cpumask_test(base->online, cpu))
			chain(&o->cpu[own - base->node], o->next_cpu, cpu);
	}
	for (unsigned int i = 0; i < base->nr_nodes; i++)
		if (base->node[i].cpus != none)
			chain(&o->same[base->node[i].cpus], o->next_same, i);
	return 0;
}

/* Gives the nodes that list the same CPUs as node `first` (the first of its chain) what their
 * folders would list with all CPUs online: also the offline CPUs of each of them (several with the
 * same list: numa=fake cut them from one physical node). */
static int add_to_nodes(struct topo_reader *r, const struct offline *o, uint32_t first)
{
	struct topo_base *base = r->base;
	uint32_t cpus = base->node[first].cpus, i, cpu;
	bool any = false;

	for (i = first; i != TOPO_NO_MASK; i = o->next_same[i]) {
		for (cpu = o->cpu[i]; cpu != TOPO_NO_MASK; cpu = o->next_cpu[cpu]) {
			if (!any)
				mc_cpumask_copy(r->scratch, base->mask[cpus]);
			any = true;
			mc_cpumask_set(r->scratch, cpu);
		}
	}
	if (!any)
		return 0;
	cpus = topo_intern(base, r->scratch);
	for (i = first; i != TOPO_NO_MASK; i = o->next_same[i])
		base->node[i].cpus = cpus;
	return cpus == TOPO_NO_MASK ? -ENOMEM : 0;
}

static int add_offline(struct topo_reader *r, uint32_t none)
{
	struct topo_base *base = r->base;
	struct offline o;
	uint32_t sets = base->nr_masks;
	int rc;

	if (mc_cpumask_equal(base->present, base->online))
		return 0;
	rc = chain_offline(base, none, &o);
	if (rc == 0) {
		/* Those without a list first: what they get may be a list that others have. */
		for (unsigned int i = 0; rc == 0 && i < base->nr_nodes; i++)
			if (base->node[i].cpus == none)
				rc = add_to_nodes(r, &o, i);
		for (uint32_t set = 0; rc == 0 && set < sets; set++)
			if (o.same[set] != TOPO_NO_MASK)
				rc = add_to_nodes(r, &o, o.same[set]);
		free(o.cpu);
	}
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
	uint32_t none;

	mc_cpumask_zero(r->scratch);
	none = topo_intern(r->base, r->scratch);
	if (none == TOPO_NO_MASK)
		return topo_read_problem(r, ENOMEM, SYS_NODE, "out of memory");
	for (unsigned int i = 0; rc == 0 && i < r->base->nr_nodes; i++)
		rc = read_node(r, &r->base->node[i]);
	if (rc == 0)
		rc = derive_links(r, none);
	if (rc == 0)
		rc = add_offline(r, none);
	if (rc == 0 && r->base->has_numa)
		rc = read_states(r);
	if (rc == 0 && !r->files)
		rc = read_restriction(r);
	return rc;
}
