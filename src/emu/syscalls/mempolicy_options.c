// SPDX-License-Identifier: MIT
/*
 * mempolicy_options.c - the policy options of `manycore run`: numactl's words, as libnuma 2.0.16
 * reads them, onto the first task of the emulated machine or, without a machine option, onto this
 * process itself.
 *
 * The grammar of nodes: [!][+]N[-M][,...] | all | empty; '!' takes the others, '+' counts within
 * the allowed nodes. "same" is replaced by the previous option's nodes before it comes here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "emu/syscalls/mempolicy.h"

static int fail(struct mc_error *error, int err, const char *what, const char *problem)
{
	if (error) {
		error->err = err;
		error->where = 0;
		snprintf(error->text, sizeof(error->text), "%s: %s", what, problem);
	}
	return -err;
}

/* The option as it may be given, and its nodes. */
static int fail_option(struct mc_error *error, const struct emu_policy_option *option,
		       const char *problem)
{
	static const struct {
		char letter;
		const char *name;
	} names[] = {{'i', "--interleave"}, {'w', "--weighted-interleave"}, {'m', "--membind"},
		     {'p', "--preferred"},  {'P', "--preferred-many"},      {'l', "--localalloc"}};
	const char *name = "memory policy";
	char what[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].letter == option->letter)
			name = names[i].name;
	snprintf(what, sizeof(what), option->value ? "%s '%.200s'" : "%s", name, option->value);
	return fail(error, EINVAL, what, problem);
}

static const char no_node[] = "a node that is no number, that the machine lacks, or that is not "
			      "allowed; 'numactl -H' shows them";

/* One number, a place among the allowed nodes when relative. POL_NO_NODE: none, or out of range. */
static unsigned int number(const char **text, const uint64_t *allowed, unsigned int words,
			   bool relative)
{
	char *end;
	unsigned long n;

	if (**text < '0' || **text > '9')
		return POL_NO_NODE;
	n = strtoul(*text, &end, 0);
	*text = end;
	if (n >= words * 64)
		return POL_NO_NODE;
	if (relative)
		return pol_nth(allowed, words, (unsigned int)n);
	return pol_isset(allowed, (unsigned int)n) ? (unsigned int)n : POL_NO_NODE;
}

static int parse_items(const char *text, const uint64_t *allowed, unsigned int words, uint64_t *set,
		       const struct emu_policy_option *option, struct mc_error *error)
{
	bool relative = *text == '+';

	text += relative;
	if (!strcmp(text, "all")) {
		memcpy(set, allowed, words * sizeof(*set));
		return 0;
	}
	for (;; text++) {
		unsigned int first = number(&text, allowed, words, relative), last = first;

		if (first == POL_NO_NODE)
			return fail_option(error, option, no_node);
		if (*text == '-') {
			text++;
			last = number(&text, allowed, words, relative);
			if (last == POL_NO_NODE)
				return fail_option(error, option, no_node);
		}
		for (; first <= last; first++)
			if (pol_isset(allowed, first))
				pol_setbit(set, first);
		if (*text != ',')
			break;
	}
	return *text ? fail_option(error, option,
				   "nodes are numbers and ranges with commas between, or all")
		     : 0;
}

static int parse_nodes(const struct emu_policy_option *option, const uint64_t *allowed,
		       unsigned int words, uint64_t *set, struct mc_error *error)
{
	const char *value = option->value;
	bool invert = *value == '!';
	int rc;

	memset(set, 0, words * sizeof(*set));
	if (!*value)
		return 0;
	rc = parse_items(value + invert, allowed, words, set, option, error);
	for (unsigned int i = 0; i < words && invert; i++)
		set[i] = allowed[i] & ~set[i];
	return rc;
}

/* What the options ask for: a mode with flags and nodes. MC_MPOL_DEFAULT when there is nothing to
 * set. */
static int read_options(const struct emu_policy_option *policy, unsigned int nr,
			const uint64_t *allowed, unsigned int words, uint64_t *set, int *mode,
			struct mc_error *error)
{
	const struct emu_policy_option *chosen = NULL;
	bool balancing = false;
	int rc = 0;

	*mode = MC_MPOL_DEFAULT;
	memset(set, 0, words * sizeof(*set));
	for (unsigned int i = 0; i < nr; i++) {
		if (policy[i].letter == 'b') {
			balancing = true;
			continue;
		}
		if (chosen)
			return fail_option(error, &policy[i],
					   "conflicts with the policy before it: one of -i -w -m -p -P -l");
		chosen = &policy[i];
	}
	if (balancing && (!chosen || chosen->letter != 'm'))
		return fail(error, EINVAL, "--balancing", "goes with --membind only");
	if (!chosen)
		return 0;
	if (chosen->letter == 'l') {
		*mode = MC_MPOL_LOCAL;
		return 0;
	}
	rc = parse_nodes(chosen, allowed, words, set, error);
	if (rc)
		return rc;
	switch (chosen->letter) {
	case 'i':
	case 'w':
		/* libnuma: no nodes, no policy. */
		if (!pol_empty(set, words))
			*mode = chosen->letter == 'i' ? MC_MPOL_INTERLEAVE
						      : MC_MPOL_WEIGHTED_INTERLEAVE;
		break;
	case 'm':
		*mode = MC_MPOL_BIND | (balancing ? MC_MPOL_F_NUMA_BALANCING : 0);
		break;
	case 'p':
		*mode = MC_MPOL_PREFERRED;
		if (pol_weight(set, words) != 1)
			return fail_option(error, chosen, "takes one node; --preferred-many takes several");
		break;
	default:
		*mode = MC_MPOL_PREFERRED_MANY;
		break;
	}
	if (*mode != MC_MPOL_DEFAULT && pol_empty(set, words))
		return fail_option(error, chosen, "no node is left of this");
	return 0;
}

int emu_policy_check(const struct emu_options *options, struct mc_error *error)
{
	struct pol_machine *machine = pol_machine_new(options->topo, 4096);
	uint64_t *set = machine ? calloc(machine->words, sizeof(*set)) : NULL;
	int mode, rc = -ENOMEM;

	if (set && !mc_topology_has_numa(options->topo))
		rc = fail(error, ENOSYS, "memory policy", "the machine's kernel has no memory nodes");
	else if (set)
		rc = read_options(options->policy, options->nr_policy, machine->allowed,
				  machine->words, set, &mode, error);
	free(set);
	pol_machine_free(machine);
	return rc == -ENOMEM ? fail(error, ENOMEM, "memory policy", "out of memory") : rc;
}

int emu_policy_start(struct emu *emu, struct emu_task *first, struct mc_error *error)
{
	const struct emu_options *options = emu_options(emu);
	struct mp_state *state = mp_state(emu);
	uint64_t *set = state ? calloc(state->machine->words, sizeof(*set)) : NULL;
	struct emu_policy *task = set ? mp_task(first) : NULL;
	struct pol *pol = NULL;
	int mode, rc = -ENOMEM;

	if (task)
		rc = read_options(options->policy, options->nr_policy, state->machine->allowed,
				  state->machine->words, set, &mode, error);
	if (!rc)
		rc = pol_make(state->machine, mode & ~POL_MODE_FLAGS, mode & POL_MODE_FLAGS, set,
			      &pol);
	if (!rc) {
		pol_put(task->pol);
		task->pol = pol;
	}
	free(set);
	return rc == -ENOMEM ? fail(error, ENOMEM, "memory policy", "out of memory") : rc;
}

int emu_policy_real(const struct emu_policy_option *policy, unsigned int nr, struct mc_error *error)
{
	enum { NODES = 32768 };
	struct mc_nodemask *allowed = (struct mc_nodemask *)mc_cpumask_alloc_bits(NODES);
	struct mc_nodemask *set = (struct mc_nodemask *)mc_cpumask_alloc_bits(NODES);
	int mode, rc = -ENOMEM;

	if (allowed && set)
		rc = mc_mempolicy_available(error);
	if (!rc)
		rc = mc_mempolicy_allowed(allowed);
	if (!rc)
		rc = read_options(policy, nr, allowed->m.word, NODES / 64, set->m.word, &mode,
				  error);
	if (!rc) {
		rc = mc_mempolicy_set(mode, set);
		if (rc)
			fail(error, -rc, "set_mempolicy", strerror(-rc));
	}
	mc_cpumask_free(&allowed->m);
	mc_cpumask_free(&set->m);
	return rc == -ENOMEM ? fail(error, ENOMEM, "memory policy", "out of memory") : rc;
}
