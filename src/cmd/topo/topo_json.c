// SPDX-License-Identifier: MIT
/*
 * topo_json.c - the whole machine as JSON. The layout is stable (manycore-topo(1)): fields are only
 * ever added.
 *
 * Caches are listed once and named by index from their CPUs; sets are lists in the kernel's form
 * ("0-3,8").
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/topo/topo.h"

/* json-c's adders want objects that exist: one failed allocation makes the whole text unusable,
 * noted here. */
struct build {
	const struct mc_topology *topo;
	bool failed;
};

static void put(struct build *b, struct json_object *to, const char *key, struct json_object *value)
{
	if (!to || json_object_object_add(to, key, value) < 0)
		b->failed = true;
}

static void put_number(struct build *b, struct json_object *to, const char *key, uint64_t v)
{
	put(b, to, key, json_object_new_int64((int64_t)v));
}

static void put_list(struct build *b, struct json_object *to, const char *key,
		     const struct mc_cpumask *mask)
{
	char *text = mask ? topo_list(mask) : NULL;

	if (mask && !text)
		b->failed = true;
	put(b, to, key, text ? json_object_new_string(text) : NULL);
	free(text);
}

/* -1 is "the kernel shows none": null. */
static void put_id(struct build *b, struct json_object *to, const char *key, int id)
{
	put(b, to, key, id < 0 ? NULL : json_object_new_int(id));
}

static void append(struct build *b, struct json_object *list, struct json_object *value)
{
	if (!list || !value || json_object_array_add(list, value) < 0)
		b->failed = true;
}

static struct json_object *cpus_object(struct build *b)
{
	struct json_object *o = json_object_new_object();
	struct mc_cpumask *offline = mc_cpumask_dup(mc_topology_present(b->topo));

	put_number(b, o, "nr_cpu_ids", mc_topology_nr_cpu_ids(b->topo));
	put_number(b, o, "kernel_max", mc_topology_kernel_max(b->topo));
	put_list(b, o, "possible", mc_topology_possible(b->topo));
	put_list(b, o, "present", mc_topology_present(b->topo));
	put_list(b, o, "online", mc_topology_online(b->topo));
	if (offline)
		mc_cpumask_andnot(offline, offline, mc_topology_online(b->topo));
	else
		b->failed = true;
	put_list(b, o, "offline", offline);
	put_list(b, o, "allowed", mc_topology_allowed(b->topo));
	mc_cpumask_free(offline);
	return o;
}

/* ---- caches: each is listed by the first CPU that shares it; `index` remembers where --------- */

struct caches {
	struct json_object *list;
	unsigned int **index; /* by CPU: positions in the list, by cache index */
};

static struct json_object *cache_object(struct build *b, const struct mc_cache *cache)
{
	static const char *const types[] = { "unified", "data", "instruction" };
	struct json_object *o = json_object_new_object();

	put_number(b, o, "level", cache->level);
	put(b, o, "type", json_object_new_string(types[cache->type]));
	put_number(b, o, "size", cache->size);
	put_number(b, o, "line", cache->line);
	put_number(b, o, "ways", cache->ways);
	put_number(b, o, "sets", cache->sets);
	put_id(b, o, "id", cache->id);
	put_list(b, o, "cpus", cache->shared);
	return o;
}

static struct json_object *cache_indices(struct build *b, struct caches *c, unsigned int cpu)
{
	unsigned int n = mc_topology_cpu(b->topo, cpu)->nr_caches;
	struct json_object *list = json_object_new_array();

	c->index[cpu] = calloc(n ? n : 1, sizeof(**c->index));
	for (unsigned int i = 0; i < n && c->index[cpu]; i++) {
		const struct mc_cache *cache = mc_topology_cache(b->topo, cpu, i), *other;
		unsigned int first = mc_cpumask_first(cache->shared);

		other = first < cpu ? mc_topology_cache(b->topo, first, i) : NULL;
		if (other && other->shared == cache->shared && c->index[first]) {
			c->index[cpu][i] = c->index[first][i];
		} else {
			c->index[cpu][i] = (unsigned int)json_object_array_length(c->list);
			append(b, c->list, cache_object(b, cache));
		}
		append(b, list, json_object_new_int64(c->index[cpu][i]));
	}
	b->failed |= !c->index[cpu];
	return list;
}

static struct json_object *cpu_object(struct build *b, struct caches *c, unsigned int cpu)
{
	const struct mc_cpu *from = mc_topology_cpu(b->topo, cpu);
	struct json_object *o = json_object_new_object(), *siblings = json_object_new_object();
	bool online = mc_cpumask_test(mc_topology_online(b->topo), cpu);

	put_number(b, o, "cpu", cpu);
	put(b, o, "online", json_object_new_boolean(online));
	put_id(b, o, "package", from->package_id);
	put_id(b, o, "die", from->die_id);
	put_id(b, o, "cluster", from->cluster_id);
	put_id(b, o, "core", from->core_id);
	put_id(b, o, "thread", from->thread);
	put(b, o, "node", from->node < mc_topology_nr_node_ids(b->topo) ? json_object_new_int64(from->node) : NULL);
	put_list(b, siblings, "core", mc_topology_siblings(b->topo, cpu, MC_LEVEL_CORE));
	put_list(b, siblings, "cluster", mc_topology_siblings(b->topo, cpu, MC_LEVEL_CLUSTER));
	put_list(b, siblings, "die", mc_topology_siblings(b->topo, cpu, MC_LEVEL_DIE));
	put_list(b, siblings, "package", mc_topology_siblings(b->topo, cpu, MC_LEVEL_PACKAGE));
	put(b, o, "siblings", siblings);
	put(b, o, "caches", cache_indices(b, c, cpu));
	if (from->capacity >= 0)
		put_number(b, o, "capacity", (uint64_t)from->capacity);
	return o;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void put_fallback(struct build *b, struct json_object *o, unsigned int id)
{
	unsigned int max = mc_cpumask_weight(&mc_topology_nodes_online(b->topo)->m), n;
	unsigned int *order = malloc((max + 1) * sizeof(*order));
	struct json_object *list = json_object_new_array();

	n = order ? mc_topology_fallback(b->topo, id, order, max) : 0;
	for (unsigned int i = 0; i < n && i < max; i++)
		append(b, list, json_object_new_int64(order[i]));
	put(b, o, "fallback", list);
	b->failed |= !order;
	free(order);
}

static struct json_object *node_object(struct build *b, unsigned int id)
{
	const struct mc_node *node = mc_topology_node(b->topo, id);
	struct json_object *o = json_object_new_object(), *list;
	unsigned int other;

	put_number(b, o, "node", id);
	put_number(b, o, "mem_total", node->mem_total);
	put_number(b, o, "mem_free", node->mem_free);
	put_list(b, o, "cpus", node->cpus);
	put_list(b, o, "linked", node->linked);
	put_id(b, o, "physical", node->physical);
	list = json_object_new_array();
	mc_for_each_cpu(other, &mc_topology_nodes_online(b->topo)->m)
		append(b, list, json_object_new_int64(mc_topology_distance(b->topo, id, other)));
	put(b, o, "distances", list);
	put_fallback(b, o, id);
	list = json_object_new_array();
	for (unsigned int i = 0; i < node->nr_ranges; i++) {
		struct json_object *range = json_object_new_object();

		put_number(b, range, "start", node->ranges[i].start);
		put_number(b, range, "end", node->ranges[i].end);
		append(b, list, range);
	}
	put(b, o, "ranges", list);
	list = json_object_new_array();
	for (unsigned int i = 0; i < node->nr_hugepools; i++) {
		struct json_object *pool = json_object_new_object();

		put_number(b, pool, "size", node->hugepools[i].size);
		put_number(b, pool, "total", node->hugepools[i].total);
		put_number(b, pool, "free", node->hugepools[i].free);
		put_number(b, pool, "surplus", node->hugepools[i].surplus);
		append(b, list, pool);
	}
	put(b, o, "hugepages", list);
	return o;
}

static struct json_object *numa_object(struct build *b)
{
	struct json_object *o = json_object_new_object();

	put(b, o, "supported", json_object_new_boolean(mc_topology_has_numa(b->topo)));
	put_number(b, o, "max_numnodes", mc_topology_max_numnodes(b->topo));
	put_list(b, o, "possible", &mc_topology_nodes_possible(b->topo)->m);
	put_list(b, o, "online", &mc_topology_nodes_online(b->topo)->m);
	put_list(b, o, "has_cpu", &mc_topology_nodes_has_cpu(b->topo)->m);
	put_list(b, o, "has_memory", &mc_topology_nodes_has_memory(b->topo)->m);
	put_list(b, o, "allowed", &mc_topology_nodes_allowed(b->topo)->m);
	return o;
}

int topo_write_json(const struct mc_topology *topo, FILE *out)
{
	struct build b = { .topo = topo };
	struct json_object *root = json_object_new_object(), *cpus = json_object_new_array(),
			   *nodes = json_object_new_array();
	unsigned int n = mc_topology_nr_cpu_ids(topo), i;
	struct caches caches = { json_object_new_array(), calloc(n, sizeof(*caches.index)) };
	const char *text;
	int rc = 0;

	if (!root || !caches.index) {
		rc = -ENOMEM;
	} else {
		put(&b, root, "manycore", json_object_new_string("topology"));
		put_number(&b, root, "format", 1);
		put(&b, root, "arch", json_object_new_string(topo_arch_name(mc_topology_arch(topo))));
		put_number(&b, root, "mem_total", mc_topology_mem_total(topo));
		put(&b, root, "cpus", cpus_object(&b));
		put(&b, root, "numa", numa_object(&b));
		mc_for_each_cpu(i, mc_topology_present(topo))
			append(&b, cpus, cpu_object(&b, &caches, i));
		mc_for_each_cpu(i, &mc_topology_nodes_online(topo)->m)
			append(&b, nodes, node_object(&b, i));
		put(&b, root, "cpu", cpus);
		put(&b, root, "cache", caches.list);
		put(&b, root, "node", nodes);
		text = b.failed ? NULL
				: json_object_to_json_string_ext(
					  root,
					  JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
		if (text)
			fprintf(out, "%s\n", text);
		else
			rc = -ENOMEM;
	}
	for (i = 0; caches.index && i < n; i++)
		free(caches.index[i]);
	free(caches.index);
	json_object_put(root);
	return rc;
}
