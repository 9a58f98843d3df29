// SPDX-License-Identifier: MIT
/* consumer.c - a user's program, compiled as C and as C++ against the installed library by
 * tests/install/run. */
#include <manycore/manycore.h>
#include <stdio.h>
#include <string.h>

/* What macros and inline functions expand to must be C11 and C++11. */
static int masks(void)
{
	MC_CPUMASK_VAR_BITS(a, 300);
	MC_CPUMASK_VAR_BITS(b, 300);
	MC_NODEMASK_VAR_BITS(n, 9);
	unsigned int cpu, other, seen = 0;

	if (!a || !b || !n)
		return 1;
	if (mc_cpulist_parse(a, "0-9,200", NULL) < 0 || mc_cpulist_parse(b, "5-299", NULL) < 0)
		return 1;
	mc_for_each_cpu_and (cpu, a, b) {
		mc_for_each_cpu (other, a)
			seen += other == cpu;
	}
	mc_for_each_cpu_wrap (cpu, a, 5)
		seen += cpu == 200;
	mc_nodemask_set(n, 8);
	mc_for_each_node (cpu, n)
		seen += cpu == 8;
	return seen == 8 && cpu >= 9 && mc_cpumask_first(mc_cpumask_of(0)) == 0 ? 0 : 1;
}

int main(void)
{
	struct mc_cpumask *mask;

	if (strcmp(mc_version(), MC_VERSION_STRING) != 0) {
		fprintf(stderr, "library %s, headers %s\n", mc_version(), MC_VERSION_STRING);
		return 1;
	}
	mask = mc_cpumask_alloc();
	if (!mask)
		return 1;
	mc_cpumask_set(mask, 0);
	if (mc_cpumask_weight(mask) != 1 || mc_cpumask_first(mask) != 0)
		return 1;
	mc_cpumask_free(mask);
	return masks();
}
