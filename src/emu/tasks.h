/* SPDX-License-Identifier: MIT */
/*
 * tasks.h - between tasks.c, creators.c, threads.c and marks.c only: who created a task, and who is
 * there.
 */
#ifndef MC_EMU_TASKS_H
#define MC_EMU_TASKS_H

#include "emu/internal.h"

/* The children of one thread as /proc tells them; *pids malloc'ed. */
size_t emu_children(pid_t tgid, pid_t tid, pid_t **pids);
bool emu_has_child(pid_t tgid, pid_t tid, pid_t child);
/* Which of the parent's tasks forked `pid`: /proc tells for each thread its own children. */
const struct emu_task *emu_forker(struct emu_process *parent, pid_t pid);

/* The task that created thread `tid` of the locked process by a noted clone, or NULL; the note is
 * used up. */
const struct emu_task *emu_clone_match(struct emu_process *process, pid_t tid);
/* Adopts each noted thread that exists by now. */
void emu_clones_settle(struct emu *emu, struct emu_process *process,
		       struct emu_task *(*adopt)(struct emu *, struct emu_process *, pid_t));
void emu_clones_free(struct emu_process *process);

/* tasks.c. The process of `tgid`, locked and referenced; NULL when it is not known. Gives both
 * back. One of its tasks. The process that a thread belongs to, or -1; *ppid: its parent, 0 when
 * that was not seen in passing. When a process began, in ticks; 0: there is none, or it has ended.
 */
struct emu_process *emu_process_get(struct emu *emu, pid_t tgid);
void emu_process_drop(struct emu *emu, struct emu_process *process);
struct emu_task *emu_thread_find(struct emu_process *process, pid_t tid);
long emu_tgid_of(struct emu *emu, pid_t tid, long *ppid);
uint64_t emu_process_started(pid_t tgid);
/* processes.c: its end will be told; false: it has ended. With the table's lock held. */
bool emu_watch_end(struct emu *emu, struct emu_process *process);

/* marks.c. The state that the task's mark stands for, NULL: unknown. It is locked until looked().
 */
const struct emu_task *emu_mark_look(struct emu *emu, pid_t tid);
void emu_mark_looked(struct emu *emu, const struct emu_task *like);
/* Does a task hand on what stands there? */
bool emu_alike(const struct emu_task *like, const struct emu_task *task);
/* The process whose ranges the task inherits by its mark, a reference, and of which image of it;
 * NULL: none, or not known. */
struct emu_process *emu_mark_owner(struct emu *emu, pid_t tid, unsigned int *image);

/* threads.c. The threads of a process, *all malloc'ed: 0, or -errno with what could be had. /proc's
 * list ends early when a thread ends that was just listed: it is read again until it has as many as
 * the folder has links, -EAGAIN when it never has. */
struct emu_thread_id {
	pid_t tid;
	uint64_t inode;
};
int emu_threads_list(pid_t tgid, struct emu_thread_id **all, size_t *nr);
/* From now on the thread can be told from others. When a task began, of the text of its
 * `stat`, in ticks; 0: it has ended. */
void emu_thread_know(const struct emu *emu, struct emu_task *task);
uint64_t emu_proc_begun(const char *text);

#endif
