// SPDX-License-Identifier: MIT
/*
 * proc_irq.c - /proc/irq: affinities of the host's interrupts on the emulated CPUs, and projections
 * for others.
 *
 * An emulated CPU e stands for host CPU e mod n: it is in a set when that one is.
 */
#include <errno.h>
#include <stdlib.h>
#include "impl.h"

int rn_project(const struct rn_at *at, const char *path, bool is_list, struct mc_cpumask **out)
{
	const struct mc_cpumask *possible = mc_topology_possible(at->topo);
	struct mc_cpumask *host, *mask;
	unsigned int cpu;
	char *text;
	size_t len;
	int ret = rn_host_read(path, &text, &len);

	if (ret < 0)
		return ret;
	text[strcspn(text, "\n")] = '\0';
	host = mc_cpumask_alloc_bits((unsigned int)(len < 16384 ? len * 4 + 65536 : 131072));
	mask = mc_cpumask_alloc_bits(mc_topology_nr_cpu_ids(at->topo));
	if (!host || !mask)
		ret = -ENOMEM;
	else
		ret = is_list ? mc_cpulist_parse(host, text, NULL)
			      : mc_cpumask_parse(host, text, NULL);
	if (ret >= 0) {
		ret = 0;
		mc_for_each_cpu (cpu, possible) {
			if (mc_cpumask_test(host, cpu % at->view->host_cpus))
				mc_cpumask_set(mask, cpu);
		}
	}
	mc_cpumask_free(host);
	free(text);
	if (ret) {
		mc_cpumask_free(mask);
		return ret;
	}
	*out = mask;
	return 0;
}

/* entry->arg: the file holds a list and not a mask. */
int rn_projected(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	struct mc_cpumask *mask;
	int ret = rn_project(at, at->path, entry->arg, &mask);

	if (ret)
		return ret;
	if (entry->arg)
		mc_text_list(out, mask);
	else
		mc_text_mask(out, mask);
	mc_text_add(out, "\n", 1);
	mc_cpumask_free(mask);
	return 0;
}

/* The node of a device or interrupt: the host's node k is the machine's k-th; -1 stays. */
int rn_projected_node(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(at->topo)->m;
	unsigned int nodes = mc_cpumask_weight(online);
	char *text;
	size_t len;
	long host;
	int ret = rn_host_read(at->path, &text, &len);

	(void)entry;
	if (ret < 0)
		return ret;
	host = strtol(text, NULL, 10);
	free(text);
	if (host < 0 || !mc_topology_has_numa(at->topo) || !nodes)
		return rn_number(out, host < 0 ? host : 0);
	return rn_number(out, mc_cpumask_nth((unsigned int)host % nodes, online));
}

static const struct rn_entry one[] = {
	{.name = "smp_affinity",
	 .type = 'f',
	 .mode = 0644,
	 .flags = RN_HOST,
	 .arg = false,
	 .make = rn_projected},
	{.name = "smp_affinity_list",
	 .type = 'f',
	 .mode = 0644,
	 .flags = RN_HOST,
	 .arg = true,
	 .make = rn_projected},
	{.name = "effective_affinity",
	 .type = 'f',
	 .flags = RN_HOST,
	 .arg = false,
	 .make = rn_projected},
	{.name = "effective_affinity_list",
	 .type = 'f',
	 .flags = RN_HOST,
	 .arg = true,
	 .make = rn_projected},
	{.name = "affinity_hint",
	 .type = 'f',
	 .flags = RN_HOST,
	 .arg = false,
	 .make = rn_projected},
	{.name = "node", .type = 'f', .flags = RN_HOST, .make = rn_projected_node},
	{0},
};

const struct rn_entry rn_irq[] = {
	{.name = "default_smp_affinity",
	 .type = 'f',
	 .mode = 0644,
	 .flags = RN_HOST,
	 .arg = false,
	 .make = rn_projected},
	{.name = "#", .type = 'd', .flags = RN_PASS, .kids = one},
	{0},
};
