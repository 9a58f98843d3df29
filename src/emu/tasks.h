/* SPDX-License-Identifier: MIT */
/* tasks.h - between tasks.c and creators.c only: who created a thread or a process. */
#ifndef MC_EMU_TASKS_H
#define MC_EMU_TASKS_H

#include "emu/internal.h"

/* The children of one thread as /proc tells them; *pids malloc'ed. */
size_t emu_children(pid_t tgid, pid_t tid, pid_t **pids);
bool emu_has_child(pid_t tgid, pid_t tid, pid_t child);

/* The task that created thread `tid` of the locked process by a noted clone, or NULL; the note is
 * used up. */
const struct emu_task *emu_clone_match(struct emu *emu, struct emu_process *process, pid_t tid);
/* Adopts each noted thread that exists by now. */
void emu_clones_settle(struct emu *emu, struct emu_process *process,
		       struct emu_task *(*adopt)(struct emu *, struct emu_process *, pid_t));
void emu_clones_free(struct emu_process *process);

#endif
