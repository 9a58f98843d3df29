// SPDX-License-Identifier: MIT
/*
 * place.c - which node a page comes from: the policy's choice, then the zonelist while there is
 * room.
 *
 * Interleaving is by index, never by history (fact 1 of the oracle): node = nodes[index % n],
 * weighted: the nodes in order, each as often as its weight. Called by the settling of address
 * spaces and by the unit tests.
 */
#include "emu/policy/policy.h"

static unsigned int interleave(const struct pol_machine *machine, const struct pol *pol,
			       uint64_t index)
{
	unsigned int n = pol_weight(pol_nodes(pol), pol->words);

	(void)machine;
	return pol_nth(pol_nodes(pol), pol->words, (unsigned int)(index % n));
}

/* A program may write them meanwhile. */
static unsigned int weight_of(const struct pol_machine *machine, unsigned int node)
{
	return __atomic_load_n(&machine->weight[node], __ATOMIC_RELAXED);
}

static unsigned int weighted(const struct pol_machine *machine, const struct pol *pol,
			     uint64_t index)
{
	const uint64_t *set = pol_nodes(pol);
	unsigned int node, first = pol_next(set, pol->words, 0), weight;
	uint64_t total = 0, left;

	for (node = first; node != POL_NO_NODE; node = pol_next(set, pol->words, node + 1))
		total += weight_of(machine, node);
	left = index % total;
	for (node = first; node != POL_NO_NODE; node = pol_next(set, pol->words, node + 1)) {
		weight = weight_of(machine, node);
		if (left < weight)
			return node;
		left -= weight;
	}
	return first; /* a weight has sunk since the sum */
}

/* The nearest node of the set in the zonelist of `from`. */
static unsigned int nearest(const struct pol_machine *machine, const uint64_t *set,
			    unsigned int from)
{
	const unsigned int *order = machine->order + (size_t)from * machine->nr_memory;

	for (unsigned int i = 0; i < machine->nr_memory; i++)
		if (pol_isset(set, order[i]))
			return order[i];
	return POL_NO_NODE;
}

unsigned int pol_target(const struct pol_machine *machine, const struct pol *pol,
			const struct pol_where *where)
{
	unsigned int local = where->local < machine->nr_node_ids
				     ? where->local
				     : pol_next(machine->memory, machine->words, 0);

	if (!pol)
		return nearest(machine, machine->allowed, local);
	switch (pol->mode) {
	case MC_MPOL_PREFERRED:
		return pol_next(pol_nodes(pol), pol->words, 0);
	case MC_MPOL_INTERLEAVE:
		return interleave(machine, pol, where->index);
	case MC_MPOL_WEIGHTED_INTERLEAVE:
		return weighted(machine, pol, where->index);
	case MC_MPOL_BIND:
	case MC_MPOL_PREFERRED_MANY:
		return nearest(machine, pol_nodes(pol),
			       pol->home != POL_NO_NODE ? pol->home : local);
	default:
		return nearest(machine, machine->allowed, local);
	}
}

static bool room(const struct pol_machine *machine, const uint64_t *used, unsigned int node)
{
	/* Other processes' pages are counted meanwhile. */
	return !used || __atomic_load_n(&used[node], __ATOMIC_RELAXED) < machine->capacity[node];
}

/* First node with room in the zonelist of `from`, of those in `set` (NULL: all). */
static unsigned int fall_back(const struct pol_machine *machine, const uint64_t *set,
			      unsigned int from, const uint64_t *used)
{
	const unsigned int *order = machine->order + (size_t)from * machine->nr_memory;

	for (unsigned int i = 0; i < machine->nr_memory; i++)
		if ((!set || pol_isset(set, order[i])) && pol_isset(machine->allowed, order[i]) &&
		    room(machine, used, order[i]))
			return order[i];
	return POL_NO_NODE;
}

unsigned int pol_place(const struct pol_machine *machine, const struct pol *pol,
		       const struct pol_where *where, const uint64_t *used, unsigned int *wanted)
{
	unsigned int target = pol_target(machine, pol, where), node, from;

	if (wanted)
		*wanted = target;
	if (target == POL_NO_NODE || room(machine, used, target))
		return target;
	from = target;
	if (pol && (pol->mode == MC_MPOL_BIND || pol->mode == MC_MPOL_PREFERRED_MANY)) {
		from = pol->home != POL_NO_NODE ? pol->home : where->local;
		if (from >= machine->nr_node_ids)
			from = target;
		node = fall_back(machine, pol_nodes(pol), from, used);
		if (node != POL_NO_NODE || pol->mode == MC_MPOL_BIND)
			return node;
	}
	return fall_back(machine, NULL, from, used);
}
