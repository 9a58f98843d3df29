/* SPDX-License-Identifier: MIT */
/*
 * policy.h - memory policy as Linux 6.12 has it, on data alone: no process, no system call, no
 * supervisor.
 *
 * args.c turns a call's arguments into a policy or the kernel's error, place.c says where a page
 * goes, ranges.c holds the policies of an address space or of a shared object, pages.c the node of
 * every page that is known, text.c the words of numa_maps. The families in
 * src/emu/syscalls/mempolicy*.c feed them with what a process asks and has.
 *
 * A `struct pol_machine` is immutable but for weights and the cpuset's nodes; policies are
 * immutable once made and counted by reference (atomically: processes share them). NULL is the
 * default policy everywhere.
 */
#ifndef MC_POLICY_H
#define MC_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <manycore/manycore.h>
#include "emu/render/render.h"

enum { POL_MODE_MAX = MC_MPOL_WEIGHTED_INTERLEAVE + 1 };
#define POL_MODE_FLAGS \
	(MC_MPOL_F_STATIC_NODES | MC_MPOL_F_RELATIVE_NODES | MC_MPOL_F_NUMA_BALANCING)
enum { POL_F_NODE = 1, POL_F_ADDR = 2, POL_F_MEMS_ALLOWED = 4 };
#define POL_MF_VALID (MC_MPOL_MF_STRICT | MC_MPOL_MF_MOVE | MC_MPOL_MF_MOVE_ALL)
#define POL_NO_NODE UINT32_MAX

/* ---- node sets: words 64-bit words, as wide as the machine's MAX_NUMNODES
 * ------------------------------------------ */

static inline bool pol_isset(const uint64_t *set, unsigned int node)
{
	return set[node / 64] >> (node % 64) & 1;
}
static inline void pol_setbit(uint64_t *set, unsigned int node)
{
	set[node / 64] |= 1ULL << (node % 64);
}
bool pol_empty(const uint64_t *set, unsigned int words);
unsigned int pol_weight(const uint64_t *set, unsigned int words);
/* The first node >= from, POL_NO_NODE when none. */
unsigned int pol_next(const uint64_t *set, unsigned int words, unsigned int from);
/* The n-th node (0-based), POL_NO_NODE when there are fewer. */
unsigned int pol_nth(const uint64_t *set, unsigned int words, unsigned int n);
/* nodes_fold() then nodes_onto(): the meaning of RELATIVE masks. */
void pol_relative(uint64_t *ret, const uint64_t *orig, const uint64_t *rel, unsigned int words);
/* node_remap(): the node of `to` at the rank that `node` has in `from`; `node` itself when it is in
 * neither. */
unsigned int pol_remap(unsigned int node, const uint64_t *from, const uint64_t *to,
		       unsigned int words);

/* ---- the machine ----------------------------------------------------------------------------- */

struct pol_machine {
	unsigned int nr_node_ids, max_numnodes, words;
	uint64_t *online, *memory; /* N_ONLINE, N_MEMORY */
	uint64_t *allowed;         /* the cpuset's nodes, within N_MEMORY */
	uint8_t *weight;           /* weighted_interleave, 1 to 255, nr_node_ids of them */
	unsigned int *order;       /* zonelist order: nr_node_ids rows of nr_memory nodes */
	unsigned int nr_memory;
	uint64_t *capacity; /* pages a node can hold for programs */
};
/* Page size in bytes scales the capacities. NULL + ENOMEM. */
struct pol_machine *pol_machine_new(const struct mc_topology *topo, size_t page_size);
void pol_machine_free(struct pol_machine *machine);

/* ---- policies -------------------------------------------------------------------------------- */

struct pol {
	unsigned int refs;
	int mode, flags;   /* flags: POL_MODE_FLAGS */
	unsigned int home; /* POL_NO_NODE: none */
	unsigned int words;
	uint64_t set[]; /* effective nodes, then the user's */
};
static inline const uint64_t *pol_nodes(const struct pol *pol)
{
	return pol->set;
}
static inline const uint64_t *pol_user(const struct pol *pol)
{
	return pol->set + pol->words;
}
struct pol *pol_get(struct pol *pol); /* NULL allowed, as in pol_put() */
void pol_put(struct pol *pol);
bool pol_equal(const struct pol *a, const struct pol *b);
/* A copy with another home node; NULL + ENOMEM. */
struct pol *pol_with_home(const struct pol *pol, unsigned int home);

/* ---- args.c: what the calls make of their arguments
 * ------------------------------------------------------------------ */

/* Reads the caller's memory: 0, -EFAULT, or another error that is passed on. */
typedef int (*pol_copy)(void *arg, void *to, uint64_t from, size_t len);

/* sanitize_mpol_flags(): splits mode and flags. */
int pol_mode_check(int mode, int *lmode, int *flags);
/* get_nodes(): the caller's mask into `set` (machine->words words). */
int pol_get_nodes(const struct pol_machine *machine, uint64_t *set, uint64_t nmask,
		  uint64_t maxnode, size_t page_size, pol_copy copy, void *arg);
/* mpol_new() and mpol_set_nodemask(): *pol gets a policy, NULL for the default. mpol_new()'s checks
 * alone when `create` is false: mbind() looks at holes between the two. */
int pol_make(const struct pol_machine *machine, int mode, int flags, const uint64_t *set,
	     struct pol **pol);
/* What mpol_new() alone finds wrong, before any node is looked at. */
int pol_new_check(int mode, int flags, const uint64_t *set, unsigned int words);
/* What get_mempolicy() tells: mode with flags and nodes (machine->words words). */
int pol_tell_mode(const struct pol *pol);
void pol_tell_nodes(const struct pol *pol, uint64_t *set, unsigned int words);
/* copy_nodes_to_user(): how many bytes are copied and how many zeroes follow; -EINVAL. */
int pol_copy_sizes(const struct pol_machine *machine, uint64_t maxnode, size_t page_size,
		   size_t *copy, size_t *clear);

/* ---- place.c: where a page goes
 * ---------------------------------------------------------------------------------------- */

struct pol_where {
	unsigned int local; /* the node of the CPU that touches */
	uint64_t
		index; /* interleave index: address or inode + page, already shifted by the order */
};
/* What the policy wants, before room is looked at. */
unsigned int pol_target(const struct pol_machine *machine, const struct pol *pol,
			const struct pol_where *where);
/* The node that takes it: used[node] pages are taken already. POL_NO_NODE: out of memory (BIND
 * only, or all full). */
unsigned int pol_place(const struct pol_machine *machine, const struct pol *pol,
		       const struct pol_where *where, const uint64_t *used, unsigned int *wanted);
/* Does the node of a page please mbind(STRICT/MOVE) with these user nodes? queue_folio_required()
 * inverted. */
static inline bool pol_misplaced(const uint64_t *user, unsigned int node)
{
	return !pol_isset(user, node);
}

/* ---- ranges.c: policies by address (or page index)
 * -------------------------------------------------------------------- */

struct pol_range {
	uint64_t start, end;
	struct pol *pol; /* never NULL */
};
struct pol_ranges {
	struct pol_range *range; /* sorted, apart or touching with different policies */
	size_t count, room;
};
/* Sets [start, end); pol NULL clears. 0 or -ENOMEM (nothing changed then). */
int pol_ranges_set(struct pol_ranges *ranges, uint64_t start, uint64_t end, struct pol *pol);
/* The policy at `at`; *end (may be NULL) gets where it, or its absence, ends. */
struct pol *pol_ranges_at(const struct pol_ranges *ranges, uint64_t at, uint64_t *end);
/* mremap: what [from, from + len) has moves to `to`. */
int pol_ranges_move(struct pol_ranges *ranges, uint64_t from, uint64_t to, uint64_t len);
int pol_ranges_copy(struct pol_ranges *to, const struct pol_ranges *from);
void pol_ranges_free(struct pol_ranges *ranges);

/* ---- shifts.c: interleave indexes that mremap() has parted from addresses
 * -------------------------------- */

struct pol_shift {
	uint64_t first, last, delta; /* pages [first, last): index = page + delta */
};
struct pol_shifts {
	struct pol_shift *shift;
	size_t count, room;
};
/* *last (may be NULL) gets where it ends. */
uint64_t pol_shifts_at(const struct pol_shifts *shifts, uint64_t page, uint64_t *last);
/* 0 or -ENOMEM. */
int pol_shifts_set(struct pol_shifts *shifts, uint64_t first, uint64_t last, uint64_t delta);
/* mremap: indexes stay with the pages if the mapping was ever touched. The two do not overlap. */
int pol_shifts_move(struct pol_shifts *shifts, uint64_t from, uint64_t to, uint64_t count,
		    bool touched);
int pol_shifts_copy(struct pol_shifts *to, const struct pol_shifts *from);
void pol_shifts_free(struct pol_shifts *shifts);

/* ---- pages.c: the node of each page
 * -------------------------------------------------------------------------------------- */

/* Sparse: 512 pages a leaf, leaves by hash. 0 is "not known"; else node + 1. */
struct pol_pages {
	struct pol_leaf **bucket;
	size_t buckets, leaves;
};
unsigned int pol_pages_get(const struct pol_pages *pages,
			   uint64_t page); /* POL_NO_NODE: not known */
int pol_pages_set(struct pol_pages *pages, uint64_t page,
		  unsigned int node); /* POL_NO_NODE: forget */
/* Forgets [first, last); calls fn (may be NULL) for each page that was known. */
void pol_pages_forget(struct pol_pages *pages, uint64_t first, uint64_t last,
		      void (*fn)(void *arg, uint64_t page, unsigned int node), void *arg);
int pol_pages_move(struct pol_pages *pages, uint64_t from, uint64_t to, uint64_t count);
int pol_pages_copy(struct pol_pages *to, const struct pol_pages *from);
void pol_pages_free(struct pol_pages *pages,
		    void (*fn)(void *arg, uint64_t page, unsigned int node), void *arg);
/* Calls fn for each known page, in no particular order of leaves. */
void pol_pages_each(const struct pol_pages *pages,
		    void (*fn)(void *arg, uint64_t page, unsigned int node), void *arg);

/* ---- text.c ---------------------------------------------------------------------------------- */

/* mpol_to_str(): "interleave=static:0-3". */
void pol_text(struct mc_text *text, const struct pol *pol);

#endif
