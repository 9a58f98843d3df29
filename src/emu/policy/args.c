// SPDX-License-Identifier: MIT
/*
 * args.c - from the arguments of a memory policy call to a policy, or to the error that Linux 6.12
 * gives.
 *
 * The order of the checks is the kernel's (mm/mempolicy.c): programs probe with several faults at
 * once and look at the error. Called by syscalls/mempolicy*.c; the masks in the caller's memory are
 * reached through a callback.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/policy/policy.h"

struct pol *pol_get(struct pol *pol)
{
	if (pol)
		__atomic_add_fetch(&pol->refs, 1, __ATOMIC_RELAXED);
	return pol;
}

void pol_put(struct pol *pol)
{
	if (pol && !__atomic_sub_fetch(&pol->refs, 1, __ATOMIC_ACQ_REL))
		free(pol);
}

bool pol_equal(const struct pol *a, const struct pol *b)
{
	size_t words;

	if (!a || !b)
		return a == b;
	if (a == b)
		return true;
	/* The user's mask counts only where it is kept; it is zero elsewhere. */
	words = a->words;
	return a->mode == b->mode && a->flags == b->flags && a->home == b->home &&
	       words == b->words && !memcmp(a->set, b->set, 2 * words * sizeof(*a->set));
}

static struct pol *new_pol(unsigned int words, int mode, int flags)
{
	struct pol *pol = calloc(1, sizeof(*pol) + 2 * words * sizeof(uint64_t));

	if (!pol)
		return NULL;
	pol->refs = 1;
	pol->mode = mode;
	pol->flags = flags;
	pol->home = POL_NO_NODE;
	pol->words = words;
	return pol;
}

struct pol *pol_with_home(const struct pol *pol, unsigned int home)
{
	struct pol *copy = new_pol(pol->words, pol->mode, pol->flags);

	if (!copy)
		return NULL;
	memcpy(copy->set, pol->set, 2 * pol->words * sizeof(uint64_t));
	copy->home = home;
	return copy;
}

int pol_mode_check(int mode, int *lmode, int *flags)
{
	*flags = mode & POL_MODE_FLAGS;
	*lmode = mode & ~POL_MODE_FLAGS;
	if ((unsigned int)*lmode >= POL_MODE_MAX)
		return -EINVAL;
	if ((*flags & MC_MPOL_F_STATIC_NODES) && (*flags & MC_MPOL_F_RELATIVE_NODES))
		return -EINVAL;
	if ((*flags & MC_MPOL_F_NUMA_BALANCING) && *lmode != MC_MPOL_BIND &&
	    *lmode != MC_MPOL_PREFERRED_MANY)
		return -EINVAL;
	return 0;
}

/* get_bitmap(): whole words are read, the bits past maxnode are then dropped. */
static int get_bitmap(uint64_t *set, uint64_t from, uint64_t maxnode, pol_copy copy, void *arg)
{
	uint64_t words = (maxnode + 63) / 64;
	int rc = copy(arg, set, from, words * sizeof(*set));

	if (rc)
		return rc;
	if (maxnode % 64)
		set[words - 1] &= (1ULL << (maxnode % 64)) - 1;
	return 0;
}

int pol_get_nodes(const struct pol_machine *machine, uint64_t *set, uint64_t nmask,
		  uint64_t maxnode, size_t page_size, pol_copy copy, void *arg)
{
	const uint64_t limit = machine->max_numnodes;

	memset(set, 0, machine->words * sizeof(*set));
	maxnode--;
	if (!maxnode || !nmask)
		return 0;
	if (maxnode > page_size * 8)
		return -EINVAL;
	/* What the machine does not support must be zero: a word at a time, from the end. */
	while (maxnode > limit) {
		uint64_t bits = maxnode < 64 ? maxnode : 64, t = 0;
		int rc = get_bitmap(&t, nmask + (maxnode - 1) / 64 * 8, bits, copy, arg);

		if (rc)
			return rc;
		if (maxnode - bits >= limit) {
			maxnode -= bits;
		} else {
			maxnode = limit;
			t &= ~((1ULL << (limit % 64)) - 1);
		}
		if (t)
			return -EINVAL;
	}
	return get_bitmap(set, nmask, maxnode, copy, arg);
}

int pol_new_check(int mode, int flags, const uint64_t *set, unsigned int words)
{
	bool empty = pol_empty(set, words),
	     fixed = flags & (MC_MPOL_F_STATIC_NODES | MC_MPOL_F_RELATIVE_NODES);

	switch (mode) {
	case MC_MPOL_DEFAULT:
		return empty ? 0 : -EINVAL;
	case MC_MPOL_PREFERRED:
		return empty && fixed ? -EINVAL : 0;
	case MC_MPOL_LOCAL:
		return empty && !fixed ? 0 : -EINVAL;
	default:
		return empty ? -EINVAL : 0;
	}
}

int pol_make(const struct pol_machine *machine, int mode, int flags, const uint64_t *set,
	     struct pol **out)
{
	const unsigned int words = machine->words;
	struct pol *pol;
	int rc = pol_new_check(mode, flags, set, words);

	if (rc)
		return rc;
	if (mode == MC_MPOL_DEFAULT) {
		*out = NULL;
		return 0;
	}
	if (mode == MC_MPOL_PREFERRED && pol_empty(set, words))
		mode = MC_MPOL_LOCAL;
	pol = new_pol(words, mode, flags);
	if (!pol)
		return -ENOMEM;
	if (mode != MC_MPOL_LOCAL) {
		if (flags & MC_MPOL_F_RELATIVE_NODES) {
			pol_relative(pol->set, set, machine->allowed, words);
		} else {
			for (unsigned int i = 0; i < words; i++)
				pol->set[i] = set[i] & machine->allowed[i];
		}
		if (flags & POL_MODE_FLAGS)
			memcpy(pol->set + words, set, words * sizeof(*set));
		if (pol_empty(pol->set, words)) {
			pol_put(pol);
			return -EINVAL;
		}
		if (mode == MC_MPOL_PREFERRED) {
			unsigned int first = pol_next(pol->set, words, 0);

			memset(pol->set, 0, words * sizeof(*set));
			pol_setbit(pol->set, first);
		}
	}
	*out = pol;
	return 0;
}

int pol_tell_mode(const struct pol *pol)
{
	return pol ? pol->mode | pol->flags : MC_MPOL_DEFAULT;
}

void pol_tell_nodes(const struct pol *pol, uint64_t *set, unsigned int words)
{
	memset(set, 0, words * sizeof(*set));
	if (pol)
		memcpy(set, pol->flags & POL_MODE_FLAGS ? pol_user(pol) : pol_nodes(pol),
		       words * sizeof(*set));
}

int pol_copy_sizes(const struct pol_machine *machine, uint64_t maxnode, size_t page_size,
		   size_t *copy, size_t *clear)
{
	uint64_t bytes = ((maxnode - 1 + 63) & ~63ULL) / 8;
	uint64_t have = (machine->nr_node_ids + 63) / 64 * 8;

	*clear = 0;
	if (bytes > have) {
		if (bytes > page_size)
			return -EINVAL;
		*clear = bytes - have;
		bytes = have;
	}
	*copy = bytes;
	return 0;
}
