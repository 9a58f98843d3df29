// SPDX-License-Identifier: MIT
/* run_cpus.c - CPU and node lists as numactl reads them (libnuma's numa_parse_cpustring), over a
 * topology's own masks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/run_cpus.h"

static int fail(struct mc_error *error, int err, const char *what, const char *text,
		const char *problem)
{
	error->err = err;
	snprintf(error->text, sizeof(error->text), "%s '%.200s': %s", what, text, problem);
	return -err;
}

/* The list over the set `allowed`: relative numbers are places in it, absolute ones must be in it.
 */
static struct mc_cpumask *parse(const struct mc_cpumask *allowed, const char *what,
				const char *text, struct mc_error *error)
{
	struct mc_cpumask *list = mc_cpumask_alloc_bits(allowed->nbits);
	struct mc_cpumask *out = mc_cpumask_alloc_bits(allowed->nbits);
	const char *p = text;
	bool invert = false, relative = false;
	unsigned int i;

	if (!list || !out) {
		fail(error, ENOMEM, what, text, "out of memory");
		goto bad;
	}
	for (; *p == '!' || *p == '+'; p++) {
		invert |= *p == '!';
		relative |= *p == '+';
	}
	if (!strcmp(p, "all") || !strcmp(p, "same")) {
		mc_cpumask_copy(list, allowed);
		relative = false;
	} else if (!*p || mc_cpulist_parse(list, p, NULL) < 0) {
		fail(error, EINVAL, what, text, "no list, or past the end of this machine's; as in 0-3,8");
		goto bad;
	}
	if (relative) {
		mc_for_each_cpu(i, list) {
			unsigned int nth = mc_cpumask_nth(i, allowed);

			if (nth < allowed->nbits)
				mc_cpumask_set(out, nth);
		}
		mc_cpumask_copy(list, out);
	}
	if (invert)
		mc_cpumask_andnot(out, allowed, list);
	else
		mc_cpumask_copy(out, list);
	if (mc_cpumask_empty(out) || !mc_cpumask_subset(out, allowed)) {
		fail(error, EINVAL, what, text,
		     "names some that are not online or not allowed");
		goto bad;
	}
	mc_cpumask_free(list);
	return out;
bad:
	mc_cpumask_free(list);
	mc_cpumask_free(out);
	return NULL;
}

int run_cpus_parse(const struct mc_topology *topo, const char *text, struct mc_cpumask **mask,
		   struct mc_error *error)
{
	struct mc_cpumask *found = parse(mc_topology_allowed(topo), "--physcpubind", text, error);

	if (!found)
		return -error->err;
	mc_cpumask_free(*mask);
	*mask = found;
	return 0;
}

int run_cpus_of_nodes(const struct mc_topology *topo, const char *text, struct mc_cpumask **mask,
		      struct mc_error *error)
{
	struct mc_cpumask *nodes = parse(&mc_topology_nodes_online(topo)->m, "--cpunodebind", text, error);
	struct mc_cpumask *cpus;
	unsigned int node;

	if (!nodes)
		return -error->err;
	cpus = mc_cpumask_alloc_bits(mc_topology_nr_cpu_ids(topo));
	if (!cpus) {
		mc_cpumask_free(nodes);
		return fail(error, ENOMEM, "--cpunodebind", text, "out of memory");
	}
	mc_for_each_cpu(node, nodes) {
		const struct mc_node *n = mc_topology_node(topo, node);

		if (n && n->cpus)
			mc_cpumask_or(cpus, cpus, n->cpus);
	}
	mc_cpumask_free(nodes);
	if (mc_cpumask_empty(cpus)) {
		mc_cpumask_free(cpus);
		return fail(error, EINVAL, "--cpunodebind", text, "no CPU is on them");
	}
	mc_cpumask_free(*mask);
	*mask = cpus;
	return 0;
}
