/* SPDX-License-Identifier: MIT */
/* pageinit.h - what arenas need beyond the public part: limits of memory and CPU time, and
 * populating with a known method. */
#ifndef MC_PAGEINIT_H
#define MC_PAGEINIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <manycore/cpumask.h>

/*
 * struct mc_limits - every cgroup with limits above this process (v1 and v2), up to where the mount
 * shows them, and the machine's own memory. Immutable after open, so that threads may share it.
 */
struct mc_limits;

/* Reads cgroup and mountinfo of this process below `root` (see os.h). NULL + ENOMEM. No cgroup at
 * all is no error. */
struct mc_limits *mc_limits_open(int root);
void mc_limits_close(struct mc_limits *limits);
/* Bytes until the nearest limit, never negative; INT64_MAX when there is none. `why` gets which one
 * it is, in words, and *cgroup whether it is a cgroup's rather than the machine's. Cost: some 10 us
 * a cgroup. */
int64_t mc_limits_headroom(const struct mc_limits *limits, bool *cgroup, char *why, size_t size);
/* The same of some nodes (a mask of their numbers), for who may take memory from no others. */
int64_t mc_limits_nodes(const struct mc_limits *limits, const struct mc_cpumask *nodes, char *why,
			size_t size);
/* Does a hugetlb cgroup leave no page of this size? Then `why` says which. */
bool mc_limits_huge(const struct mc_limits *limits, size_t page, char *why, size_t size);
/* CPUs' worth of time that cpu.max / cpu.cfs_quota_us leave, rounded up, at least 1; UINT_MAX: no
 * limit. */
unsigned int mc_limits_cpus(const struct mc_limits *limits);

/* mc_pageinit_range() with the method already probed: advice = mc_os_populate_works(). */
int mc_pageinit_populate(bool advice, void *start, size_t bytes, size_t page_size, bool write,
			 size_t *done);

#endif
