// SPDX-License-Identifier: MIT
/*
 * topology_base.c - building a machine: interned masks, caches, nodes and distances of a struct
 * topo_base.
 *
 * Called by every source of machines (live, recording, description, numa=fake) before
 * topo_base_finish() seals the base.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_priv.h"

enum mc_arch topo_host_arch(void)
{
#if defined(__x86_64__)
	return MC_ARCH_X86_64;
#elif defined(__aarch64__)
	return MC_ARCH_AARCH64;
#elif defined(__powerpc64__)
	return MC_ARCH_PPC64;
#else
	return MC_ARCH_OTHER;
#endif
}

struct mc_nodemask *topo_nodemask(unsigned int nbits)
{
	/* A struct mc_nodemask is nothing but a struct mc_cpumask: one allocation serves both. */
	return (struct mc_nodemask *)mc_cpumask_alloc_bits(nbits);
}

struct mc_cpumask *topo_range_mask(unsigned int nbits, unsigned int first, unsigned int count)
{
	struct mc_cpumask *mask = mc_cpumask_alloc_bits(nbits);

	if (mask)
		mc_cpumask_set_range(mask, first, count);
	return mask;
}

static const struct mc_cpu no_cpu = {
	.package_id = -1,
	.die_id = -1,
	.cluster_id = -1,
	.core_id = -1,
	.node = UINT32_MAX,
	.capacity = -1,
};

static int alloc_masks(struct topo_base *base)
{
	base->possible = mc_cpumask_alloc_bits(base->nr_cpu_ids);
	base->present = mc_cpumask_alloc_bits(base->nr_cpu_ids);
	base->online = mc_cpumask_alloc_bits(base->nr_cpu_ids);
	base->nodes_possible = topo_nodemask(base->nr_node_ids);
	base->nodes_online = topo_nodemask(base->nr_node_ids);
	base->nodes_has_cpu = topo_nodemask(base->nr_node_ids);
	base->nodes_has_memory = topo_nodemask(base->nr_node_ids);
	if (!base->possible || !base->present || !base->online || !base->nodes_possible ||
	    !base->nodes_online || !base->nodes_has_cpu || !base->nodes_has_memory)
		return -ENOMEM;
	return 0;
}

struct topo_base *topo_base_new(unsigned int nr_cpu_ids, unsigned int nr_node_ids)
{
	struct topo_base *base = calloc(1, sizeof(*base));

	if (!base)
		return NULL;
	atomic_init(&base->refs, 1);
	base->arch = topo_host_arch();
	base->nr_cpu_ids = nr_cpu_ids;
	base->nr_node_ids = nr_node_ids;
	base->has_numa = true;
	base->cpu = calloc(nr_cpu_ids, sizeof(*base->cpu));
	base->rank = malloc(nr_node_ids * sizeof(*base->rank));
	if (!base->cpu || !base->rank || alloc_masks(base) < 0) {
		topo_base_put(base);
		errno = ENOMEM;
		return NULL;
	}
	memset(base->rank, 0xff, nr_node_ids * sizeof(*base->rank));
	for (unsigned int cpu = 0; cpu < nr_cpu_ids; cpu++) {
		base->cpu[cpu].ids = no_cpu;
		base->cpu[cpu].hidden = no_cpu;
		for (int level = 0; level < TOPO_LEVELS; level++)
			base->cpu[cpu].sibling[level] = TOPO_NO_MASK;
	}
	return base;
}

struct topo_base *topo_base_get(struct topo_base *base)
{
	atomic_fetch_add_explicit(&base->refs, 1, memory_order_relaxed);
	return base;
}

void topo_base_put(struct topo_base *base)
{
	if (!base || atomic_fetch_sub_explicit(&base->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < base->nr_masks; i++)
		mc_cpumask_free(base->mask[i]);
	for (unsigned int i = 0; i < base->nr_nodes; i++) {
		free(base->node[i].ranges);
		free(base->node[i].hugepools);
		free(base->node[i].distance);
	}
	free(base->mask);
	free(base->mask_hash);
	free(base->mask_slot);
	free(base->node);
	free(base->rank);
	free(atomic_load(&base->fallback));
	free(base->cpu);
	free(base->cache);
	mc_cpumask_free(base->possible);
	mc_cpumask_free(base->present);
	mc_cpumask_free(base->online);
	mc_cpumask_free(base->allowed);
	mc_nodemask_free((struct mc_nodemask *)base->nodes_possible);
	mc_nodemask_free((struct mc_nodemask *)base->nodes_online);
	mc_nodemask_free((struct mc_nodemask *)base->nodes_has_cpu);
	mc_nodemask_free((struct mc_nodemask *)base->nodes_has_memory);
	mc_nodemask_free((struct mc_nodemask *)base->nodes_allowed);
	topo_files_put(base->files);
	free(base);
}

/* ---- interned masks -------------------------------------------------------------------------- */

static uint64_t hash_mask(const struct mc_cpumask *mask)
{
	uint64_t h = 0x9e3779b97f4a7c15ull;

	for (unsigned int i = 0; i < (mask->nbits + 63) / 64; i++)
		if (mask->word[i])
			h = (h ^ mask->word[i] ^ ((uint64_t)i << 40)) * 0xff51afd7ed558ccdull +
			    (h >> 29);
	return h ^ (h >> 32);
}

static int grow_slots(struct topo_base *base)
{
	uint32_t n = base->nr_slots ? base->nr_slots * 2 : 256;
	uint32_t *slot = malloc(n * sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	memset(slot, 0xff, n * sizeof(*slot));
	for (uint32_t i = 0; i < base->nr_masks; i++) {
		uint32_t at = (uint32_t)base->mask_hash[i] & (n - 1);

		while (slot[at] != TOPO_NO_MASK)
			at = (at + 1) & (n - 1);
		slot[at] = i;
	}
	free(base->mask_slot);
	base->mask_slot = slot;
	base->nr_slots = n;
	return 0;
}

static int grow_masks(struct topo_base *base)
{
	uint32_t room = base->room_masks ? base->room_masks * 2 : 64;
	struct mc_cpumask **mask = realloc(base->mask, room * sizeof(*mask));
	uint64_t *hash;

	if (!mask)
		return -ENOMEM;
	base->mask = mask;
	hash = realloc(base->mask_hash, room * sizeof(*hash));
	if (!hash)
		return -ENOMEM;
	base->mask_hash = hash;
	base->room_masks = room;
	return 0;
}

uint32_t topo_intern(struct topo_base *base, const struct mc_cpumask *mask)
{
	uint64_t hash = hash_mask(mask);
	struct mc_cpumask *copy;
	uint32_t at;

	if ((base->nr_masks + 1) * 2 > base->nr_slots && grow_slots(base) < 0)
		goto nomem;
	for (at = (uint32_t)hash & (base->nr_slots - 1); base->mask_slot[at] != TOPO_NO_MASK;
	     at = (at + 1) & (base->nr_slots - 1)) {
		uint32_t i = base->mask_slot[at];

		if (base->mask_hash[i] == hash && mc_cpumask_equal(base->mask[i], mask))
			return i;
	}
	if ((uint64_t)(base->nr_masks + 1) * (base->nr_cpu_ids / 8 + sizeof(*mask)) >
	    TOPO_MAX_MASK_BYTES) {
		errno = EFBIG;
		return TOPO_NO_MASK;
	}
	if (base->nr_masks == base->room_masks && grow_masks(base) < 0)
		goto nomem;
	copy = mc_cpumask_dup(mask);
	if (!copy)
		goto nomem;
	base->mask[base->nr_masks] = copy;
	base->mask_hash[base->nr_masks] = hash;
	base->mask_slot[at] = base->nr_masks;
	return base->nr_masks++;
nomem:
	errno = ENOMEM;
	return TOPO_NO_MASK;
}

uint32_t topo_add_caches(struct topo_base *base, unsigned int n)
{
	uint32_t first = base->nr_caches;

	if (n > base->room_caches - base->nr_caches) {
		uint64_t room = ((uint64_t)base->nr_caches + n) * 3 / 2 + 64;
		struct topo_cache *cache;

		if (room > UINT32_MAX / 2)
			return UINT32_MAX;
		cache = realloc(base->cache, room * sizeof(*cache));
		if (!cache)
			return UINT32_MAX;
		base->cache = cache;
		base->room_caches = (unsigned int)room;
	}
	memset(base->cache + first, 0, n * sizeof(*base->cache));
	base->nr_caches += n;
	return first;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

int topo_set_nodes(struct topo_base *base, const struct mc_nodemask *online)
{
	unsigned int id, n = mc_cpumask_weight(&online->m);
	struct mc_cpumask *empty;
	uint32_t none;

	empty = mc_cpumask_alloc_bits(base->nr_cpu_ids);
	if (!empty)
		return -ENOMEM;
	none = topo_intern(base, empty);
	mc_cpumask_free(empty);
	base->node = calloc(n ? n : 1, sizeof(*base->node));
	if (!base->node || none == TOPO_NO_MASK)
		return -ENOMEM;
	mc_for_each_cpu(id, &online->m) {
		struct topo_node *node = &base->node[base->nr_nodes];

		node->id = id;
		node->cpus = none;
		node->linked = none;
		node->physical = -1;
		base->rank[id] = base->nr_nodes++;
		mc_cpumask_set(&base->nodes_online->m, id);
		mc_cpumask_set(&base->nodes_possible->m, id);
	}
	return 0;
}

struct topo_node *topo_node(const struct topo_base *base, unsigned int id)
{
	if (id >= base->nr_node_ids || base->rank[id] == UINT32_MAX)
		return NULL;
	return &base->node[base->rank[id]];
}

int topo_set_distance(struct topo_base *base, unsigned int from, unsigned int to,
		      unsigned int value)
{
	struct topo_node *node = topo_node(base, from);

	if (!node || !topo_node(base, to))
		return -EINVAL;
	if (!node->distance) {
		node->distance = malloc(base->nr_nodes);
		if (!node->distance)
			return -ENOMEM;
		memset(node->distance, 20, base->nr_nodes);
		node->distance[base->rank[from]] = 10;
	}
	node->distance[base->rank[to]] = (uint8_t)value;
	return 0;
}

int topo_node_add_range(struct topo_node *node, uint64_t start, uint64_t end)
{
	struct mc_range *r;

	if (node->nr_ranges && node->ranges[node->nr_ranges - 1].end == start) {
		node->ranges[node->nr_ranges - 1].end = end;
		return 0;
	}
	r = realloc(node->ranges, (node->nr_ranges + 1) * sizeof(*r));
	if (!r)
		return -ENOMEM;
	node->ranges = r;
	r[node->nr_ranges++] = (struct mc_range){ start, end };
	return 0;
}
