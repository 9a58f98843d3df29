/* SPDX-License-Identifier: MIT */
/* run_cpus.h - CPU and node lists as numactl reads them, for `run`'s --physcpubind and
 * --cpunodebind. */
#ifndef MC_CMD_RUN_CPUS_H
#define MC_CMD_RUN_CPUS_H

#include <manycore/manycore.h>

/* "all", "same", a list; '!' before it inverts, '+' counts from the first CPU that is allowed. A
 * new mask in *mask (what was there is freed). 0 or -errno with *error. */
int run_cpus_parse(const struct mc_topology *topo, const char *text, struct mc_cpumask **mask,
		   struct mc_error *error);
/* The same with nodes: their CPUs. */
int run_cpus_of_nodes(const struct mc_topology *topo, const char *text, struct mc_cpumask **mask,
		      struct mc_error *error);

#endif
