/* SPDX-License-Identifier: MIT */
/*
 * mempolicy.h - between the files of the memory policy family (mempolicy*.c) only.
 *
 * State. A run has one `struct mp_state`: the machine as policies see it, the counters of its
 * nodes, and shared objects (files and shared memory: their pages and policies belong to the inode,
 * not to a process). A process has one `struct emu_mm`: policies by address and the node of each of
 * its own pages. A task has one `struct emu_policy`. The state of a process and its tasks is under
 * the process's lock, the run's under mp_state.lock (a leaf).
 *
 * Placement is lazy. No fault is seen and no mmap or munmap of an ordinary program is answered:
 * when something is asked or about to change, mp_settle() compares /proc/PID/maps and pagemap with
 * what is known, drops what is gone and gives each page that is new its node, by the policies that
 * have held since the last time. See docs/limits.md for what this misses.
 */
#ifndef MC_SYSCALLS_MEMPOLICY_H
#define MC_SYSCALLS_MEMPOLICY_H

#include "emu/emu.h"
#include "emu/policy/policy.h"

enum { MP_OBJECTS = 1024 };

/* An inode: its pages by index, and the shared policy of shared memory. */
struct mp_object {
	struct mp_object *next;
	uint64_t dev, ino;
	struct pol_ranges ranges;
	struct pol_pages pages;
};

/* Pages that a process had when it forked: parent and child find them here until one of them
 * writes. */
struct mp_family {
	unsigned int refs; /* under mp_state.lock */
	struct pol_pages pages;
};

struct mp_state {
	pthread_mutex_t lock;
	struct pol_machine *machine;
	size_t page;
	uint64_t *used;                    /* pages on each node */
	struct mc_node_counters *counters; /* of each node */
	struct mp_object *objects[MP_OBJECTS];
	unsigned int nr_objects;
	uint64_t looked;                   /* when all processes were looked at last, ns */
	struct mp_events *events;          /* mempolicy_events.c, NULL: not needed yet */
};

struct emu_policy {
	struct pol *pol;
	uint64_t faults;   /* its minor faults when the process was settled last */
	unsigned int node; /* the node its CPU is on, as of then */
};

enum mp_kind { MP_ANON, MP_FILE, MP_SHMEM, MP_SPECIAL };
struct mp_vma {
	uint64_t start, end; /* bytes */
	uint64_t index;      /* page index of start in its object */
	uint64_t dev, ino;
	enum mp_kind kind;
	bool shared, readable, huge, heap, stack;
	uint32_t name; /* offset of the path in mp_maps.text */
};
struct mp_maps {
	struct mp_vma *vma;
	size_t count, room;
	char *text;
};

/* A mremap() that the host was left to make. */
struct mp_move {
	uint64_t from, old_len, new_len, to; /* to 0: wherever; new_len 0: none */
	bool touched;                        /* the mapping ever was */
};

struct emu_mm {
	struct pol_ranges ranges;
	struct pol_shifts shifts;
	struct pol_shifts
		filled; /* (each 1) where mappings were touched whose pages may all be gone */
	struct pol_pages pages;    /* anonymous pages; MP_GONE: not the family's any more */
	struct mp_family **family; /* newest first */
	struct pol_shifts borrowed; /* pages of the family that mremap() moved: where it has them */
	unsigned int nr_family, nr_inherited; /* the oldest nr_inherited were its parent's */
	struct mp_maps seen; /* the mappings at the last settling */
	struct mp_move move;
	uint64_t faults; /* of the process when all of it was settled last */
	uint64_t resident; /* its pages when the nodes' figures were asked for last */
	pid_t parent;    /* whom it was forked from, 0: nobody */
	bool asked;      /* something NUMA was ever asked of it: keep its state right */
	struct mp_touched *touched; /* its page-fault events; NULL: not watched */
	bool unwatched;  /* it can't be */
	struct pol_pages unsure; /* --strict: pages whose node is a guess */
};
#define MP_GONE 65533U

/* mempolicy_mm.c */
struct mp_state *mp_state(struct emu *emu);
int mp_maps_read(pid_t pid, struct mp_maps *maps);
void mp_maps_free(struct mp_maps *maps);
/* The mapping that holds addr, NULL: none. *next (may be NULL): index of the first mapping at or
 * behind addr. */
const struct mp_vma *mp_vma_at(const struct mp_maps *maps, uint64_t addr, size_t *next);
struct mp_object *mp_object_get(struct mp_state *state, uint64_t dev, uint64_t ino, bool create);
/* The policy that numa_maps and get_mempolicy() show for an address of this mapping; NULL: none. A
 * new reference. */
struct pol *mp_vma_policy(struct mp_state *state, const struct emu_mm *mm, const struct mp_vma *vma,
			  uint64_t addr);

/* What is at one page now. */
enum mp_presence { MP_HOLE, MP_ABSENT, MP_ZERO, MP_PRESENT };
struct mp_page {
	enum mp_presence what;
	bool exclusive; /* only this process maps it */
	bool file;      /* of the page cache or shared memory */
	unsigned int node;
};
/* mempolicy_settle.c. Brings [start, end) (bytes) up to date and calls fn (may be NULL) for each
 * page of a mapping in it that is present (MP_ZERO or MP_PRESENT), in order. maps gets the mappings
 * (the caller frees); 0 or -errno. */
typedef int (*mp_page_fn)(void *arg, const struct mp_vma *vma, uint64_t addr,
			  const struct mp_page *page);
int mp_settle(struct emu *emu, struct emu_process *process, uint64_t start, uint64_t end,
	      struct mp_maps *maps, mp_page_fn fn, void *arg);
/* The whole address space, before a task's policy or node changes; nothing when nothing depends on
 * it. */
void mp_settle_all(struct emu *emu, struct emu_process *process);
/* The page's node becomes `node`. */
int mp_page_move(struct mp_state *state, struct emu_mm *mm, const struct mp_vma *vma, uint64_t addr,
		 bool file, unsigned int node);
/* Who touched a page: where it was then, and by which policy of its own (not counted: as long as
 * the process is locked). */
struct mp_who {
	unsigned int node;
	const struct pol *pol;
};
struct mp_who mp_who_of(struct emu *emu, const struct emu_task *task); /* now; NULL allowed */
/* Where a new page goes, counted; range: what its range or object has, NULL: the toucher's. */
unsigned int mp_place(struct emu *emu, const struct pol *range, struct mp_who who, uint64_t index);
/* mempolicy_files.c: shared memory that the task's process has open and filled by write(2). */
void mp_settle_files(struct emu *emu, const struct emu_task *task);
/* Drops what is known of [start, end): it is being unmapped. */
void mp_forget(struct mp_state *state, struct emu_mm *mm, uint64_t start, uint64_t end);
/* Its pages alone: they are given back. */
void mp_forget_there(struct mp_state *state, struct emu_mm *mm, uint64_t start, uint64_t end);
unsigned int mp_task_node(struct emu *emu, const struct emu_task *task);
uint64_t mp_task_faults(const struct emu_task *task);
struct emu_mm *mp_mm(struct emu_process *process);
/* The task's own state, made when it is first needed; NULL: out of memory. */
struct emu_policy *mp_task(struct emu_task *task);

int mp_copy(void *call, void *to, uint64_t from, size_t len); /* pol_copy over emu_read() */

#endif
