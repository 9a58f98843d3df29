// SPDX-License-Identifier: MIT
/*
 * topo_boxes.c - what contains what: a tree of everything on the machine that has CPUs, by
 * inclusion of their sets.
 *
 * Boxes are made largest first and hung below the smallest box that contains them; a set that cuts
 * across one already there (a node over halves of two packages) has no place in a tree and is left
 * out. Several nodes with the same CPUs (numa=fake) make one box.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/topo/topo.h"

struct list {
	struct topo_box **box;
	size_t nr, room;
};

static struct topo_box *add(struct list *list, enum topo_kind kind, unsigned int number,
			    const struct mc_cpumask *cpus)
{
	struct topo_box *box;

	if (list->nr == list->room) {
		size_t room = list->room ? list->room * 2 : 256;
		struct topo_box **bigger = realloc(list->box, room * sizeof(*bigger));

		if (!bigger)
			return NULL;
		list->box = bigger;
		list->room = room;
	}
	box = calloc(1, sizeof(*box));
	if (!box)
		return NULL;
	box->kind = kind;
	box->number = number;
	box->cpus = cpus;
	list->box[list->nr++] = box;
	return box;
}

/* Each set once: by its first CPU. */
static bool is_first(const struct mc_cpumask *mask, unsigned int cpu)
{
	return mask && mc_cpumask_first(mask) == cpu;
}

static int add_level(struct list *list, const struct mc_topology *topo, unsigned int cpu,
		     enum mc_level level, enum topo_kind kind, int id, const char *name)
{
	const struct mc_cpumask *mask = mc_topology_siblings(topo, cpu, level);
	struct topo_box *box;

	if (!is_first(mask, cpu))
		return 0;
	box = add(list, kind, id < 0 ? 0 : (unsigned int)id, mask);
	if (!box)
		return -ENOMEM;
	snprintf(box->label, sizeof(box->label), "%s %d", name, id);
	return 0;
}

static int add_caches(struct list *list, const struct mc_topology *topo, unsigned int cpu)
{
	static const char *const types[] = { "", "d", "i" };
	const struct mc_cache *cache;
	char size[32];

	for (unsigned int i = 0; (cache = mc_topology_cache(topo, cpu, i)) != NULL; i++) {
		struct topo_box *box;

		if (!is_first(cache->shared, cpu))
			continue;
		box = add(list, TOPO_CACHE, cache->level, cache->shared);
		if (!box)
			return -ENOMEM;
		box->size = cache->size;
		snprintf(box->label, sizeof(box->label), "L%u%s%s%s", cache->level,
			 types[cache->type], cache->size ? " " : "",
			 cache->size ? topo_size(cache->size, size, sizeof(size)) : "");
	}
	return 0;
}

static int add_cpus(struct list *list, const struct mc_topology *topo)
{
	unsigned int cpu;

	mc_for_each_cpu(cpu, mc_topology_online(topo)) {
		const struct mc_cpu *c = mc_topology_cpu(topo, cpu);
		struct topo_box *box;

		if (add_level(list, topo, cpu, MC_LEVEL_PACKAGE, TOPO_PACKAGE, c->package_id, "Package") < 0 ||
		    add_level(list, topo, cpu, MC_LEVEL_DIE, TOPO_DIE, c->die_id, "Die") < 0 ||
		    add_level(list, topo, cpu, MC_LEVEL_CLUSTER, TOPO_CLUSTER, c->cluster_id, "Cluster") < 0 ||
		    add_level(list, topo, cpu, MC_LEVEL_CORE, TOPO_CORE, c->core_id, "Core") < 0 ||
		    add_caches(list, topo, cpu) < 0)
			return -ENOMEM;
		box = add(list, TOPO_CPU, cpu, NULL);
		if (!box)
			return -ENOMEM;
		snprintf(box->label, sizeof(box->label), "%u", cpu);
	}
	return 0;
}

/* "Node 3  128 GiB", or "Nodes 0,2,4,6  4 GiB" for nodes with the same CPUs. */
static int add_nodes(struct list *list, const struct mc_topology *topo)
{
	const struct mc_nodemask *online = mc_topology_nodes_online(topo);
	unsigned int id, other;
	char size[32];

	mc_for_each_cpu(id, &online->m) {
		const struct mc_node *node = mc_topology_node(topo, id);
		uint64_t sum = node->mem_total;
		struct mc_cpumask *same;
		struct topo_box *box;
		char *text;

		same = mc_cpumask_alloc_bits(online->m.nbits);
		if (!same)
			return -ENOMEM;
		mc_cpumask_set(same, id);
		mc_for_each_cpu(other, &online->m) {
			const struct mc_node *o = mc_topology_node(topo, other);

			if (other == id || mc_cpumask_empty(node->cpus) || o->cpus != node->cpus)
				continue;
			mc_cpumask_set(same, other);
			sum += o->mem_total;
		}
		if (mc_cpumask_first(same) != id) {
			mc_cpumask_free(same);
			continue;
		}
		box = add(list, TOPO_NODE, id, node->cpus);
		text = topo_list(same);
		if (box && text) {
			box->size = sum;
			snprintf(box->label, sizeof(box->label), "%s %.40s  %s%s",
				 mc_cpumask_weight(same) > 1 ? "Nodes" : "Node", text,
				 sum ? topo_size(sum, size, sizeof(size)) : "no memory",
				 mc_cpumask_empty(node->cpus) ? ", no CPUs" : "");
		}
		mc_cpumask_free(same);
		free(text);
		if (!box || !text)
			return -ENOMEM;
	}
	return 0;
}

/* ---- hanging them up ------------------------------------------------------------------------- */

struct order {
	struct topo_box *box;
	unsigned int weight, first;
};

/* Larger sets first; of equal sets the kinds in their order, of caches the higher level. */
static int compare(const void *pa, const void *pb)
{
	const struct order *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->box->kind != b->box->kind)
		return a->box->kind < b->box->kind ? -1 : 1;
	if (a->box->kind == TOPO_CACHE && a->box->number != b->box->number)
		return a->box->number > b->box->number ? -1 : 1;
	return a->box->number < b->box->number ? -1 : a->box->number > b->box->number;
}

/* `below` is the smallest box so far around each CPU. */
static bool hang(const struct order *o, struct topo_box **below)
{
	struct topo_box *parent = below[o->first];
	unsigned int cpu;

	if (o->box->kind != TOPO_CPU) {
		mc_for_each_cpu(cpu, o->box->cpus)
			if (below[cpu] != parent)
				return false;
		mc_for_each_cpu(cpu, o->box->cpus)
			below[cpu] = o->box;
	}
	o->box->next = parent->first;
	parent->first = o->box;
	return true;
}

static void reverse_children(struct topo_box *box)
{
	struct topo_box *child = box->first, *list = NULL, *next;

	for (; child; child = next) {
		next = child->next;
		child->next = list;
		list = child;
		reverse_children(child);
	}
	box->first = list;
}

/* A set as large as the one around it says nothing new: a die that is the package, a cluster that
 * is the core. Nodes and caches stay. */
static bool says_nothing(const struct topo_box *box, struct topo_box *const *below,
			 unsigned int first)
{
	const struct topo_box *parent = below[first];

	if (box->kind != TOPO_DIE && box->kind != TOPO_CLUSTER)
		return false;
	return (parent->cpus && mc_cpumask_equal(parent->cpus, box->cpus)) ||
	       mc_cpumask_weight(box->cpus) == 1;
}

static int build(struct topo_box *root, struct list *list, const struct mc_topology *topo)
{
	unsigned int n = mc_topology_nr_cpu_ids(topo);
	struct topo_box **below = malloc(n * sizeof(*below)), *memory_only = NULL,
			**tail = &memory_only;
	struct order *order = malloc((list->nr + 1) * sizeof(*order));
	int rc = below && order ? 0 : -ENOMEM;

	for (unsigned int i = 0; rc == 0 && i < n; i++)
		below[i] = root;
	for (size_t i = 0; rc == 0 && i < list->nr; i++) {
		struct topo_box *box = list->box[i];
		bool cpu = box->kind == TOPO_CPU;

		order[i] = (struct order){ box, cpu ? 0 : mc_cpumask_weight(box->cpus),
					   cpu ? box->number : mc_cpumask_first(box->cpus) };
	}
	if (rc == 0)
		qsort(order, list->nr, sizeof(*order), compare);
	for (size_t i = 0; rc == 0 && i < list->nr; i++) {
		struct topo_box *box = order[i].box;

		if (box->kind == TOPO_NODE && !order[i].weight) {
			*tail = box;
			tail = &box->next;
		} else if ((box->kind != TOPO_CPU &&
			    (says_nothing(box, below, order[i].first) || !order[i].weight)) ||
			   !hang(&order[i], below)) {
			free(box);
		}
	}
	if (rc == 0) {
		/* Children were put in front one by one; nodes without CPUs come last. */
		reverse_children(root);
		for (struct topo_box **at = &root->first;; at = &(*at)->next) {
			if (!*at) {
				*at = memory_only;
				break;
			}
		}
		list->nr = 0;
	}
	free(below);
	free(order);
	return rc;
}

struct topo_box *topo_boxes(const struct mc_topology *topo)
{
	struct topo_box *root = calloc(1, sizeof(*root));
	struct list list = { 0 };
	char size[32];
	int rc = root ? 0 : -ENOMEM;

	if (rc == 0) {
		root->kind = TOPO_MACHINE;
		root->cpus = mc_topology_online(topo);
		root->size = mc_topology_mem_total(topo);
		snprintf(root->label, sizeof(root->label), "Machine  %s, %u CPUs",
			 topo_size(root->size, size, sizeof(size)), mc_cpumask_weight(root->cpus));
		rc = add_cpus(&list, topo);
	}
	if (rc == 0)
		rc = add_nodes(&list, topo);
	if (rc == 0)
		rc = build(root, &list, topo);
	for (size_t i = 0; i < list.nr; i++)
		free(list.box[i]);
	free(list.box);
	if (rc < 0) {
		free(root);
		errno = ENOMEM;
		return NULL;
	}
	return root;
}

void topo_boxes_free(struct topo_box *box)
{
	struct topo_box *next;

	if (!box)
		return;
	for (struct topo_box *child = box->first; child; child = next) {
		next = child->next;
		topo_boxes_free(child);
	}
	free(box);
}
