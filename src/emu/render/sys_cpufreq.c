// SPDX-License-Identifier: MIT
/* sys_cpufreq.c - frequency policies of machines described on this host; a recording's are shown as
 * they are. */
#include <stdio.h>
#include <unistd.h>
#include "impl.h"

/* A policy of its own for each CPU that the host gives one: cpuN/cpufreq leads to cpufreq/policyN.
 */
static bool has_policy(const struct rn_at *at, unsigned int n)
{
	char path[96];

	if (!at->view->host_source || !at->view->host_cpufreq)
		return false;
	snprintf(path, sizeof(path), RN_SYS_CPU "/cpu%u/cpufreq", n % at->view->host_cpus);
	return access(path, F_OK) == 0;
}

static uint64_t next_policy(const struct rn_at *at, const struct rn_entry *entry, uint64_t from)
{
	uint64_t n;

	(void)entry;
	for (n = rn_next_bit(mc_topology_online(at->topo), from); n != RN_NONE;
	     n = rn_next_bit(mc_topology_online(at->topo), n + 1)) {
		if (has_policy(at, (unsigned int)n))
			return n;
	}
	return RN_NONE;
}

bool rn_has_cpufreq(const struct rn_at *at, const struct rn_entry *entry)
{
	(void)entry;
	return mc_cpumask_test(mc_topology_online(at->topo), (unsigned int)at->n[0]) &&
	       has_policy(at, (unsigned int)at->n[0]);
}

int rn_make_cpufreq(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	mc_text_printf(out, "../cpufreq/policy%llu", (unsigned long long)at->n[0]);
	return 0;
}

static int make_policy_cpus(const struct rn_at *at, const struct rn_entry *entry,
			    struct mc_text *out)
{
	(void)entry;
	return rn_number(out, (long long)at->n[0]);
}

static const struct rn_entry policy[] = {
	{.name = "affected_cpus", .type = 'f', .make = make_policy_cpus},
	{.name = "related_cpus", .type = 'f', .make = make_policy_cpus},
	{0},
};

const struct rn_entry rn_cpufreq[] = {
	{.name = "policy#",
	 .type = 'd',
	 .flags = RN_MIRROR | RN_HOSTED,
	 .next = next_policy,
	 .kids = policy},
	{0},
};
