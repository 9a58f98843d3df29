/* SPDX-License-Identifier: MIT */
/*
 * mempolicy_settle.h - one settling of an address space, between the files that do its parts: who
 * touched (mempolicy_blame.c), what is gone (mempolicy_gone.c), what is there
 * (mempolicy_pagemap.c), and mempolicy_settle.c.
 */
#ifndef MC_SYSCALLS_MEMPOLICY_SETTLE_H
#define MC_SYSCALLS_MEMPOLICY_SETTLE_H

#include "emu/syscalls/mempolicy.h"
#include "emu/syscalls/mempolicy_events.h"

/* pagemap's bits. */
#define PM_PRESENT (1ULL << 63)
#define PM_SWAP (1ULL << 62)
#define PM_FILE (1ULL << 61)
#define PM_EXCLUSIVE (1ULL << 56)
/* Ours, in bits that hold the frame number, which is not looked at. */
#define PM_ZERO (1ULL << 0)
#define PM_HUGE (1ULL << 1)
#define PM_KEEP (PM_PRESENT | PM_SWAP | PM_FILE | PM_EXCLUSIVE)

/* Threads whose small change (stack, thread data) is not worth a look. */
enum { FEW_FAULTS = 16, FEW_PAGES = 16 };

struct blame {
	struct emu_task *task;
	uint64_t faults, left; /* since the last time; not yet used up */
	uint64_t upto;         /* deal() */
};

enum { PARENT_PAGES = 512 };

struct settle {
	struct emu *emu;
	struct mp_state *state;
	struct emu_process *process;
	struct emu_mm *mm;
	int pagemap, parent; /* -1: not open; parent -2: can't be had */
	bool no_scan;
	struct blame *blame; /* those that may have touched, in order of creation */
	unsigned int nr_blame;
	bool blamed, uniform;
	bool small_first; /* pass over mappings with many new pages: they come last, when the small
			     ones have been told */
	bool passed;
	bool strict;
	uint64_t *entry; /* pagemap of the piece at hand */
	uint64_t parent_base, parent_entries[PARENT_PAGES]; /* the parent's, as read last */
	size_t room;
};

/* mempolicy_blame.c: all faults of a process so far, of threads that are gone too. */
uint64_t mp_process_faults(const struct emu_process *process);
/* Who touched a new page, the i-th of n of a mapping; asked in order. Not sure: a guess by counts.
 */
struct mp_who mp_toucher(struct settle *s, uint64_t page, uint64_t entry, size_t i, size_t n,
			 bool *sure);
/* Does it matter which of the tasks touched a page with this policy of its range? */
bool mp_matters(struct settle *s, const struct pol *range, uint64_t index);

/* mempolicy_gone.c: anonymous pages [first, last) are not there any more; those of the family must
 * not come back either. */
void mp_forget_pages(struct mp_state *state, struct emu_mm *mm, uint64_t first, uint64_t last);
unsigned int mp_family_node(struct mp_state *state, struct emu_mm *mm, uint64_t page,
			    bool *inherited);
/* What was mapped when last seen and is not, or is another mapping, loses its policies and pages.
 */
void mp_drop_gone(struct settle *s, const struct mp_maps *now);

/* mempolicy_pagemap.c: fills s->entry for pages [page, page + count). */
int mp_look(struct settle *s, uint64_t page, size_t count);
uint64_t mp_next_there(struct settle *s, uint64_t page, uint64_t last);
int mp_read_pagemap(int fd, uint64_t *entry, uint64_t page, size_t count);

#endif
