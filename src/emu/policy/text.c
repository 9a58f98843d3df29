// SPDX-License-Identifier: MIT
/* text.c - a policy in numa_maps' words, as mpol_to_str() writes it. Called by
 * syscalls/mempolicy_maps.c. */
#include "emu/policy/policy.h"

static void list(struct mc_text *text, const uint64_t *set, unsigned int words)
{
	const char *between = "";
	unsigned int node = pol_next(set, words, 0);

	while (node != POL_NO_NODE) {
		unsigned int last = node;

		while (last + 1 < words * 64 && pol_isset(set, last + 1))
			last++;
		mc_text_printf(text, last > node ? "%s%u-%u" : "%s%u", between, node, last);
		between = ",";
		node = pol_next(set, words, last + 1);
	}
}

void pol_text(struct mc_text *text, const struct pol *pol)
{
	mc_text_printf(text, "%s", mc_mempolicy_mode_name(pol ? pol->mode : MC_MPOL_DEFAULT));
	if (!pol)
		return;
	if (pol->flags) {
		/* Static and relative exclude each other; balancing may come with either. */
		mc_text_printf(text, "=");
		if (pol->flags & MC_MPOL_F_STATIC_NODES)
			mc_text_printf(text, "static");
		else if (pol->flags & MC_MPOL_F_RELATIVE_NODES)
			mc_text_printf(text, "relative");
		if (pol->flags & MC_MPOL_F_NUMA_BALANCING)
			mc_text_printf(text, pol->flags == MC_MPOL_F_NUMA_BALANCING ? "balancing"
										    : "|balancing");
	}
	if (!pol_empty(pol_nodes(pol), pol->words)) {
		mc_text_printf(text, ":");
		list(text, pol_nodes(pol), pol->words);
	}
}
