/* SPDX-License-Identifier: MIT */
/* populate.h - the parts of `manycore populate`: what was asked, and what became of each file. */
#ifndef MC_CMD_POPULATE_H
#define MC_CMD_POPULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>
#include <manycore/manycore.h>

enum populate_how { POPULATE_AUTO, POPULATE_READ, POPULATE_WRITE };

struct populate {
	enum populate_how how;
	uint64_t size;         /* 0: the file's */
	uint64_t hugetlb;      /* page size asked for, 0: none */
	unsigned int threads;  /* a node (memory files) or in all (disk files); 0: chosen */
	bool threads_per_node; /* --threads node: also for disk files */
	uint64_t chunk;
	enum mc_arena_policy policy;
	bool policy_given, strict;
	struct mc_nodemask *nodes; /* of the policy; NULL: all */
	struct mc_topology *topo;
	bool json, bar;
	struct json_object *files; /* --json */
};

/* Works one file; prints or adds to `files`. 0 when all of it is in, 1 when not, 2 when it could
 * not begin. */
int populate_file(struct populate *p, const char *path);
/* Async-signal safe: stops what is under way within a chunk, and everything after it. */
void populate_interrupt(void);
bool populate_interrupted(void);

/* "64M", "1G": false when malformed. */
bool populate_parse_size(const char *text, uint64_t *value);
/* numactl's node and CPU lists over `allowed`: "all", "same" (the former mask), '!' and '+' before
 * a list. Writes *mask (allocated anew, freed before). 0 or -errno with *error. */
int populate_parse_set(const char *text, const struct mc_cpumask *allowed, struct mc_cpumask **mask,
		       struct mc_error *error);

#endif
