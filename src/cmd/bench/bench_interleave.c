// SPDX-License-Identifier: MIT
/*
 * bench_interleave.c - `bench interleave`: reading memory whose pages come round-robin from N nodes
 * against the same from one. On a machine of several nodes by policy; on one node, as root, from N
 * equal physical chunks (kernel work S4).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd/bench/bench_pageinit.h"

enum { ROUNDS = 15, SIZE = 256 << 20, QUICK_SIZE = 4 << 20 };

struct region {
	const uint64_t *at;
	uint64_t words;
};

/* Reads it all; GB/s. */
static double read_all(void *arg)
{
	struct region *r = arg;
	uint64_t t = bench_now_ns(), sum = 0;

	for (uint64_t i = 0; i < r->words; i += 8) /* one word a cache line */
		sum += r->at[i];
	bench_use(sum);
	return (double)(r->words * 8) / (double)(bench_now_ns() - t);
}

static struct mc_arena *make(struct mc_arena_attr at, struct bench *b)
{
	struct mc_error error = {0};
	struct mc_arena *a;
	int rc = mc_arena_create(&at, &a, &error);

	if (!rc) {
		rc = mc_arena_wait(a, 0, -1);
		if (!rc)
			return a;
		snprintf(error.text, sizeof(error.text), "%s", strerror(-rc));
		mc_arena_destroy(a);
	}
	bench_note(b, "%s", error.text);
	return NULL;
}

static void compare(struct bench *b, unsigned int n, struct mc_arena_attr at, struct mc_arena *one)
{
	struct region ours = {.words = at.size / 8}, theirs = {mc_arena_base(one), at.size / 8};
	char name[32];
	struct bench_case c = {.name = name,
			       .unit = "GB/s",
			       .self = {.sample = read_all, .arg = &ours},
			       .nr_peers = 1,
			       .peer = {{"one-node", NULL, read_all, &theirs}},
			       .rounds = ROUNDS};
	struct mc_arena *a;

	snprintf(name, sizeof(name), "read-%unodes", n);
	if (!bench_wanted(b, name))
		return;
	a = make(at, b);
	if (!a)
		return;
	ours.at = mc_arena_base(a);
	bench_run(b, &c);
	mc_arena_destroy(a);
}

void bench_interleave_main(struct bench *b)
{
	struct mc_arena_attr at = {.backing = MC_ARENA_ANON,
				   .size = bench_size(b)    ? bench_size(b)
					   : bench_quick(b) ? QUICK_SIZE
							    : SIZE,
				   .policy = MC_ARENA_DEFAULT,
				   .flags = MC_ARENA_NO_DESCRIPTORS};
	struct mc_topology *topo = NULL;
	unsigned int nodes = 1;
	struct mc_arena *one;

	if (!mc_topology_live(&topo, NULL))
		nodes = mc_cpumask_weight(&mc_topology_nodes_has_memory(topo)->m);
	at.topology = topo;
	one = make(at, b);
	if (one && nodes > 1) {
		at.policy = MC_ARENA_INTERLEAVE;
		compare(b, nodes, at, one);
	}
	if (one && nodes <= 1) {
		bench_note(b, "one node here: N equal physical chunks, as under numa=fake=N");
		for (unsigned int n = 2; n <= 8; n *= 2) {
			at.phys_chunks = n;
			compare(b, n, at, one);
		}
	}
	mc_arena_destroy(one);
	mc_topology_put(topo);
}
