// SPDX-License-Identifier: MIT
/* consumer.c - a user's program, compiled as C and as C++ against the installed library by tests/install/run. */
#include <manycore/manycore.h>
#include <stdio.h>
#include <string.h>

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
	return 0;
}
