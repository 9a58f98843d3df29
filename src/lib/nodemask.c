// SPDX-License-Identifier: MIT
/* nodemask.c - node masks: the parts of nodemask.h that are more than a renamed mc_cpumask call. */
#include "internal.h"

struct mc_nodemask *mc_nodemask_alloc(void)
{
	return mc_nodemask_alloc_bits(mc_nr_node_ids());
}

struct mc_nodemask *mc_nodemask_alloc_bits(unsigned int nbits)
{
	return (struct mc_nodemask *)mc_cpumask_alloc_bits(nbits);
}

struct mc_nodemask *mc_nodemask_dup(const struct mc_nodemask *mask)
{
	return (struct mc_nodemask *)mc_cpumask_dup(&mask->m);
}

void mc_nodemask_free(struct mc_nodemask *mask)
{
	mc_cpumask_free(mask ? &mask->m : NULL);
}

size_t mc_nodemask_size(void)
{
	return mc_cpumask_size_bits(mc_nr_node_ids());
}

size_t mc_nodemask_size_bits(unsigned int nbits)
{
	return mc_cpumask_size_bits(nbits);
}

struct mc_nodemask *mc_nodemask_init(void *memory, unsigned int nbits)
{
	return (struct mc_nodemask *)mc_cpumask_init(memory, nbits);
}

const struct mc_nodemask *mc_nodemask_wrap(struct mc_nodemask *view, const void *words,
					   unsigned int nbits)
{
	mc_cpumask_wrap(&view->m, words, nbits);
	return view;
}

int mc_nodelist_parse(struct mc_nodemask *mask, const char *text, size_t *where)
{
	return mc_cpulist_parse(&mask->m, text, where);
}

size_t mc_nodelist_snprint(char *buf, size_t size, const struct mc_nodemask *mask)
{
	return mc_cpulist_snprint(buf, size, &mask->m);
}
