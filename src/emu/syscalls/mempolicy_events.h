/* SPDX-License-Identifier: MIT */
/*
 * mempolicy_events.h - who touched a page first, told by the host's page-fault events
 * (perf_event_open), where it allows them. Between the memory policy files only.
 *
 * A process is watched from when its threads first differ in where they are (one pins itself), so
 * that programs which never do so pay nothing. The events of a run go into one ring for each of its
 * host CPUs; mp_touched is what has been taken out of them for one process.
 *
 * Locks: the process's, then `events.lock` (a leaf).
 */
#ifndef MC_SYSCALLS_MEMPOLICY_EVENTS_H
#define MC_SYSCALLS_MEMPOLICY_EVENTS_H

#include "emu/syscalls/mempolicy.h"

struct mp_events;  /* a run's: its rings */
struct mp_touched; /* a process's */

/* Can this host tell? 0, or -errno as of perf_event_open(). For --verbose. */
int mp_events_possible(struct emu *emu);
/* Begins to watch the process, once; false: it can't be. */
bool mp_events_watch(struct emu *emu, struct emu_process *process);
bool mp_events_watching(const struct emu_process *process);
/* Has a task of it changed its node or policy since all was settled? */
bool mp_events_changes(const struct emu_process *process);
/* Have so many changes added up that pages should be settled by them? */
bool mp_events_many(const struct emu_process *process);
/* The end of the process or of its image. */
void mp_events_end(struct emu_mm *mm);
/* Until now the task was on this node with this policy: its mask or policy is about to change, or
 * it ends. */
void mp_events_until(struct emu *emu, struct emu_task *task);
/* Who touched the page first; `huge`: it is part of a huge page. False: no event tells. */
bool mp_events_who(struct emu *emu, struct emu_process *process, uint64_t page, bool huge,
		   struct mp_who *who);
/* Every page that was there at the time `since` has its node: what was told before is not needed
 * any more. */
void mp_events_settled(struct emu *emu, struct emu_process *process, uint64_t since);

#endif
