// SPDX-License-Identifier: MIT
/*
 * nodes.c - sets of nodes as arrays of words, and the machine that policies are read against.
 *
 * The fold, onto and remap of the kernel's lib/bitmap.c are restated here from their documented
 * meaning. Called by the other files of this folder and by syscalls/mempolicy*.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/policy/policy.h"

bool pol_empty(const uint64_t *set, unsigned int words)
{
	for (unsigned int i = 0; i < words; i++)
		if (set[i])
			return false;
	return true;
}

unsigned int pol_weight(const uint64_t *set, unsigned int words)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < words; i++)
		n += (unsigned int)__builtin_popcountll(set[i]);
	return n;
}

unsigned int pol_next(const uint64_t *set, unsigned int words, unsigned int from)
{
	unsigned int i = from / 64;
	uint64_t word;

	if (i >= words)
		return POL_NO_NODE;
	word = set[i] & (~0ULL << (from % 64));
	while (!word) {
		if (++i >= words)
			return POL_NO_NODE;
		word = set[i];
	}
	return i * 64 + (unsigned int)__builtin_ctzll(word);
}

unsigned int pol_nth(const uint64_t *set, unsigned int words, unsigned int n)
{
	unsigned int node = pol_next(set, words, 0);

	while (n-- && node != POL_NO_NODE)
		node = pol_next(set, words, node + 1);
	return node;
}

void pol_relative(uint64_t *ret, const uint64_t *orig, const uint64_t *rel, unsigned int words)
{
	unsigned int weight = pol_weight(rel, words);

	memset(ret, 0, words * sizeof(*ret));
	if (!weight)
		return;
	for (unsigned int n = pol_next(orig, words, 0); n != POL_NO_NODE;
	     n = pol_next(orig, words, n + 1))
		pol_setbit(ret, pol_nth(rel, words, n % weight));
}

unsigned int pol_remap(unsigned int node, const uint64_t *from, const uint64_t *to,
		       unsigned int words)
{
	unsigned int weight = pol_weight(to, words), rank = 0;

	if (!pol_isset(from, node) || !weight)
		return node;
	for (unsigned int n = pol_next(from, words, 0); n != node; n = pol_next(from, words, n + 1))
		rank++;
	return pol_nth(to, words, rank % weight);
}

static void take(uint64_t *set, const struct mc_nodemask *mask, unsigned int words)
{
	unsigned int n = (mask->m.nbits + 63) / 64;

	memcpy(set, mask->m.word, (n < words ? n : words) * sizeof(*set));
}

static int fill_nodes(struct pol_machine *machine, const struct mc_topology *topo, size_t page_size)
{
	for (unsigned int node = 0; node < machine->nr_node_ids; node++) {
		const struct mc_node *info = mc_topology_node(topo, node);
		unsigned int *order = machine->order + (size_t)node * machine->nr_memory;
		unsigned int n = mc_topology_fallback(topo, node, order, machine->nr_memory);

		machine->weight[node] = 1;
		machine->capacity[node] = info ? info->mem_free / page_size : 0;
		/* A node that is not online has no zonelist: any order serves. */
		for (unsigned int i = n; i < machine->nr_memory; i++)
			order[i] = pol_nth(machine->memory, machine->words, i);
	}
	return 0;
}

struct pol_machine *pol_machine_new(const struct mc_topology *topo, size_t page_size)
{
	struct pol_machine *machine = calloc(1, sizeof(*machine));
	unsigned int w;

	if (!machine)
		return NULL;
	machine->nr_node_ids = mc_topology_nr_node_ids(topo);
	machine->max_numnodes = mc_topology_max_numnodes(topo);
	if (!machine->nr_node_ids)
		machine->nr_node_ids = 1;
	if (machine->max_numnodes < machine->nr_node_ids)
		machine->max_numnodes = machine->nr_node_ids;
	w = machine->words = (machine->max_numnodes + 63) / 64;
	machine->online = calloc(w * 3, sizeof(uint64_t));
	machine->weight = calloc(machine->nr_node_ids, 1);
	machine->capacity = calloc(machine->nr_node_ids, sizeof(uint64_t));
	if (!machine->online || !machine->weight || !machine->capacity)
		goto fail;
	machine->memory = machine->online + w;
	machine->allowed = machine->memory + w;
	take(machine->online, mc_topology_nodes_online(topo), w);
	take(machine->memory, mc_topology_nodes_has_memory(topo), w);
	if (pol_empty(machine->memory,
		      w)) { /* a machine whose kernel shows no nodes has one all the same */
		pol_setbit(machine->memory, 0);
		pol_setbit(machine->online, 0);
	}
	take(machine->allowed, mc_topology_nodes_allowed(topo), w);
	for (unsigned int i = 0; i < w; i++)
		machine->allowed[i] &= machine->memory[i];
	if (pol_empty(machine->allowed, w))
		memcpy(machine->allowed, machine->memory, w * sizeof(uint64_t));
	machine->nr_memory = pol_weight(machine->memory, w);
	machine->order =
		calloc((size_t)machine->nr_node_ids * machine->nr_memory, sizeof(*machine->order));
	if (!machine->order || fill_nodes(machine, topo, page_size))
		goto fail;
	return machine;
fail:
	pol_machine_free(machine);
	errno = ENOMEM;
	return NULL;
}

void pol_machine_free(struct pol_machine *machine)
{
	if (!machine)
		return;
	free(machine->online);
	free(machine->weight);
	free(machine->capacity);
	free(machine->order);
	free(machine);
}
