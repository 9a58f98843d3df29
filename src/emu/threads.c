// SPDX-License-Identifier: MIT
/*
 * threads.c - which threads of a process are still there, where their ends are not notified.
 *
 * A known thread may have ended, and its tid be another's: it is looked at before it is acted upon.
 * The inode of /proc/PID/task/TID tells a thread from others for as long as it is cached, which
 * costs a stat; when it differs, the start time decides. A process's list is gone through when it
 * has grown to twice what it was, so that those that ended do not add up.
 *
 * All with the process locked. Called by tasks.c, marks.c, cpus.c, answers.c and the memory policy
 * family.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "emu/internal.h"
#include "emu/tasks.h"

uint64_t emu_proc_begun(const char *text)
{
	unsigned long long at;
	char state;

	if (sscanf(emu_proc_stat(text),
		   " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &state, &at) != 2 ||
	    state == 'Z' || state == 'X')
		return 0;
	return at;
}

static uint64_t begun(const struct emu_task *task)
{
	char text[1024];

	return emu_proc_read(text, sizeof(text), "/proc/%d/task/%d/stat", task->process->tgid,
			     task->tid) < 0
		       ? 0
		       : emu_proc_begun(text);
}

static uint64_t inode_of(const struct emu_task *task)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", task->process->tgid, task->tid);
	return stat(path, &st) ? 0 : st.st_ino;
}

static bool is_leader(const struct emu_task *task)
{
	return task->tid == task->process->tgid; /* its process's descriptor tells its end */
}

void emu_thread_know(const struct emu *emu, struct emu_task *task)
{
	if (!emu->marks || is_leader(task))
		return;
	task->inode = inode_of(task);
	task->begun = begun(task);
	task->seen = emu_now();
}

static bool is_same(struct emu_task *task, uint64_t inode)
{
	if (inode == task->inode)
		return true;
	if (!task->begun || begun(task) != task->begun)
		return false;
	task->inode = inode;
	return true;
}

bool emu_thread_there(const struct emu *emu, struct emu_task *task)
{
	uint64_t inode;

	if (!emu->marks)
		return true;
	if (is_leader(task))
		return !task->process->dead;
	inode = inode_of(task);
	return inode && is_same(task, inode);
}

bool emu_threads_many(const struct emu *emu, const struct emu_process *process)
{
	char path[32];
	struct stat st;

	if (!emu->marks || process->tasks->next)
		return process->tasks->next != NULL;
	snprintf(path, sizeof(path), "/proc/%d/task", process->tgid);
	return !stat(path, &st) && st.st_nlink > 3; /* ".", the parent's entry, and each thread */
}

static bool add(struct emu_thread_id **all, size_t *nr, size_t *room, const struct dirent *e)
{
	if (*nr == *room) {
		struct emu_thread_id *more;

		*room = 2 * *room + 64;
		more = realloc(*all, *room * sizeof(**all));
		if (!more)
			return false;
		*all = more;
	}
	(*all)[(*nr)++] = (struct emu_thread_id){(pid_t)atoi(e->d_name), e->d_ino};
	return true;
}

int emu_threads_list(pid_t tgid, struct emu_thread_id **all, size_t *nr)
{
	enum { TIMES = 16 };
	int rc = -EAGAIN;
	size_t room = 0;
	struct stat st;
	struct dirent *e;
	char path[32];
	DIR *dir;

	*all = NULL;
	*nr = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", tgid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	for (int i = 0; i < TIMES && rc == -EAGAIN; i++) {
		rewinddir(dir);
		*nr = 0;
		while (errno = 0, e = readdir(dir))
			if (atoi(e->d_name) > 0 && !add(all, nr, &room, e))
				break;
		rc = -errno;
		if (!rc && !fstat(dirfd(dir), &st) && *nr + 2 < st.st_nlink)
			rc = -EAGAIN;
	}
	closedir(dir);
	return rc;
}

static int by_tid(const void *a, const void *b)
{
	const struct emu_thread_id *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

void emu_threads_forget(struct emu *emu, struct emu_process *process)
{
	struct emu_thread_id *all;
	size_t nr;

	if (!emu->marks)
		return;
	(void)emu_threads_list(process->tgid, &all, &nr); /* who is not in it is looked at */
	if (nr)
		qsort(all, nr, sizeof(*all), by_tid);
	for (struct emu_task *t = process->tasks, *next; t; t = next) {
		struct emu_thread_id key = {.tid = t->tid}, *found;

		next = t->next;
		if (is_leader(t) || (emu_call_here && emu_call_here->task == t))
			continue;
		found = nr ? bsearch(&key, all, nr, sizeof(*all), by_tid) : NULL;
		if (found ? !is_same(t, found->inode) : !emu_thread_there(emu, t))
			emu_thread_forget(emu, t);
	}
	free(all);
	process->looked_at = process->nr_tasks;
}

void emu_threads_adopt(struct emu *emu, struct emu_process *process)
{
	struct emu_thread_id *all;
	size_t nr;

	if (!emu->marks)
		return;
	(void)emu_threads_list(process->tgid, &all, &nr); /* as many as can be had */
	for (size_t i = 0; i < nr; i++)
		emu_thread_adopt(emu, process, all[i].tid);
	free(all);
}
