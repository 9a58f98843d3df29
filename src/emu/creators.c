// SPDX-License-Identifier: MIT
/*
 * creators.c - who created a task, where it has no mark that tells what it inherits (marks.c).
 *
 * /proc tells the children of each thread, but not which thread of a process created another one:
 * for those, clone and clone3 with CLONE_THREAD are notified and noted here, and a new thread is
 * matched to its note through the word into which the kernel wrote its tid. All with the process
 * locked.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "emu/tasks.h"

struct emu_clone {
	struct emu_clone *next;
	pid_t creator;
	uint64_t word;  /* where the child's tid is stored; 0: not asked for */
	pid_t tid;      /* once read */
};

size_t emu_children(pid_t tgid, pid_t tid, pid_t **pids)
{
	char path[80], *text = NULL, *p, *end;
	size_t len = 0, room = 0, nr = 0;
	ssize_t n = 0;
	int fd;

	*pids = NULL;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", tgid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	do {
		if (room - len < 4096) {
			char *more = realloc(text, (room += 16384) + 1);

			if (!more)
				break;
			text = more;
		}
		n = read(fd, text + len, room - len);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	close(fd);
	if (!text)
		return 0;
	text[len] = '\0';
	*pids = calloc(len / 2 + 1, sizeof(pid_t));
	for (p = text; *pids; p = end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		(*pids)[nr++] = (pid_t)pid;
	}
	free(text);
	return nr;
}

bool emu_has_child(pid_t tgid, pid_t tid, pid_t child)
{
	pid_t *pids;
	size_t nr = emu_children(tgid, tid, &pids);
	bool has = false;

	for (size_t i = 0; i < nr; i++)
		has |= pids[i] == child;
	free(pids);
	return has;
}

const struct emu_task *emu_forker(struct emu_process *parent, pid_t pid)
{
	if (parent->tasks && parent->tasks->next)
		for (struct emu_task *t = parent->tasks; t; t = t->next)
			if (emu_has_child(parent->tgid, t->tid, pid))
				return t;
	for (struct emu_task *t = parent->tasks; t; t = t->next)
		if (t->tid == parent->tgid)
			return t;
	return parent->tasks;
}

int emu_clone_note(struct emu_call *call, uint64_t flags, uint64_t parent_tid)
{
	struct emu_process *process = call->task->process;
	struct emu_clone *c;

	if (!(flags & CLONE_THREAD))
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -1;
	c->creator = call->caller;
	c->word = flags & CLONE_PARENT_SETTID ? parent_tid : 0;
	c->next = process->clones;
	process->clones = c;
	atomic_store_explicit(&call->emu->cloners[(unsigned int)process->tgid % EMU_CLONERS],
			      process->tgid, memory_order_relaxed);
	return 0;
}

/* Reads the words of the notes that have no tid yet, a few hundred at once. */
static void read_words(struct emu_process *process)
{
	struct emu_clone *c = process->clones;

	while (c) {
		struct iovec here[256], there[256];
		struct emu_clone *who[256];
		pid_t word[256] = { 0 };
		unsigned int nr = 0;

		for (; c && nr < 256; c = c->next) {
			if (c->tid || !c->word)
				continue;
			here[nr] = (struct iovec){ &word[nr], sizeof(pid_t) };
			there[nr] = (struct iovec){ (void *)(uintptr_t)c->word, sizeof(pid_t) };
			who[nr++] = c;
		}
		/* One bad address ends the whole call early; what was read until there counts. */
		if (nr)
			(void)!process_vm_readv(process->tgid, here, nr, there, nr, 0);
		for (unsigned int i = 0; i < nr; i++)
			if (word[i] > 0 && word[i] != process->tgid)
				who[i]->tid = word[i];
	}
}

static const struct emu_task *task_of(struct emu_process *process, pid_t tid)
{
	for (struct emu_task *t = process->tasks; t; t = t->next)
		if (t->tid == tid)
			return t;
	return NULL;
}

static const struct emu_task *use_up(struct emu_process *process, struct emu_clone **at)
{
	struct emu_clone *c = *at;
	const struct emu_task *creator = task_of(process, c->creator);

	*at = c->next;
	free(c);
	return creator;
}

const struct emu_task *emu_clone_match(struct emu_process *process, pid_t tid)
{
	struct emu_clone **wordless = NULL;

	if (!process->clones)
		return NULL;
	for (int round = 0; round < 2; round++) {
		for (struct emu_clone **at = &process->clones; *at; at = &(*at)->next) {
			if ((*at)->tid == tid)
				return use_up(process, at);
			if (!(*at)->word)
				wordless = at; /* the oldest one, in the end */
		}
		if (!round)
			read_words(process);
	}
	return wordless ? use_up(process, wordless) : NULL;
}

void emu_clones_settle(struct emu *emu, struct emu_process *process,
		       struct emu_task *(*adopt)(struct emu *, struct emu_process *, pid_t))
{
	bool again = process->clones != NULL;

	if (again)
		read_words(process);
	while (again) {
		again = false;
		for (struct emu_clone *c = process->clones; c; c = c->next) {
			if (!c->tid || task_of(process, c->tid))
				continue;
			/* adopt() frees the note: start over. */
			adopt(emu, process, c->tid);
			again = true;
			break;
		}
	}
}

void emu_clones_free(struct emu_process *process)
{
	while (process->clones) {
		struct emu_clone *c = process->clones;

		process->clones = c->next;
		free(c);
	}
}

bool emu_tasks_alike(const struct emu_process *process)
{
	const struct emu_task *first = process->tasks;

	for (const struct emu_task *t = first; t; t = t->next)
		if (t->asked || t->policy || t->narrowed != first->narrowed ||
		    !mc_cpumask_equal(t->allowed, first->allowed))
			return false;
	return true;
}

bool emu_thread_unseen_exit(struct emu *emu, pid_t tid)
{
	struct emu_process *process;
	bool done = false;
	long tgid, ppid;

	if (emu_task_known(emu, tid))
		return false;
	tgid = emu_tgid_of(emu, tid, &ppid);
	process = tgid > 0 && tgid != tid ? emu_process_get(emu, (pid_t)tgid) : NULL;
	if (!process)
		return false;
	if (!emu_thread_find(process, tid) && emu_tasks_alike(process) &&
	    !emu_policy_watches(emu, process)) {
		(void)emu_clone_match(process, tid);
		done = true;
	}
	emu_process_drop(emu, process);
	return done;
}
