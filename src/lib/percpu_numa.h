/* SPDX-License-Identifier: MIT */
/* percpu_numa.h - placement of units on the nodes of their CPUs (CPU-id mode). */
#ifndef MC_PERCPU_NUMA_H
#define MC_PERCPU_NUMA_H

struct mc_chunk;
/* Prefers, for each unit, the node of its CPU. Does nothing on machines with one node or without
 * NUMA calls. */
void mc_chunk_place(struct mc_chunk *c);
#endif
