// SPDX-License-Identifier: MIT
/*
 * tasks.c - the tables of processes and tasks, adoption of new ones, and what they inherit.
 *
 * Tasks are found by tid. A process stays in memory as long as somebody holds a reference (the
 * table is one); its tasks are freed with it, or by their own exit under its lock. fork is not
 * notified: see emu.h, "Inheritance".
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/tasks.h"

void emu_tasks_init(struct emu *emu)
{
	pthread_mutex_init(&emu->table_lock, NULL);
	pthread_mutex_init(&emu->crew.lock, NULL);
	pthread_cond_init(&emu->crew.call, NULL);
	pthread_mutex_init(&emu->tree_lock, NULL);
	pthread_mutex_init(&emu->files_lock, NULL);
	pthread_mutex_init(&emu->drain_lock, NULL);
	pthread_mutex_init(&emu->plug_lock, NULL);
}

/* ---- tables: all with table_lock held -------------------------------------------------------- */

static struct emu_task *lookup(struct emu *emu, pid_t tid)
{
	struct emu_task *t = emu->task_hash[(unsigned int)tid % EMU_HASH];

	while (t && t->tid != tid)
		t = t->hash_next;
	return t;
}

static struct emu_process *lookup_process(struct emu *emu, pid_t tgid)
{
	struct emu_process *p = emu->process_hash[(unsigned int)tgid % EMU_HASH];

	while (p && p->tgid != tgid)
		p = p->hash_next;
	return p;
}

static void unhash_task(struct emu *emu, struct emu_task *task)
{
	struct emu_task **at = &emu->task_hash[(unsigned int)task->tid % EMU_HASH];

	while (*at && *at != task)
		at = &(*at)->hash_next;
	if (*at)
		*at = task->hash_next;
}

static void hash_task(struct emu *emu, struct emu_task *task)
{
	struct emu_task **at = &emu->task_hash[(unsigned int)task->tid % EMU_HASH];

	task->hash_next = *at;
	*at = task;
}

/* ---- making and dropping --------------------------------------------------------------------- */

static void free_task(struct emu *emu, struct emu_task *task)
{
	emu_policy_task_gone(emu, task);
	mc_cpumask_free(task->allowed);
	mc_cpumask_free(task->asked);
	free(task);
}

void emu_process_put(struct emu *emu, struct emu_process *process)
{
	bool last;

	pthread_mutex_lock(&emu->table_lock);
	last = --process->refs == 0;
	pthread_mutex_unlock(&emu->table_lock);
	if (!last)
		return;
	while (process->tasks) {
		struct emu_task *task = process->tasks;

		process->tasks = task->next;
		free_task(emu, task);
	}
	if (process->mm)
		emu_mm_gone(emu, process);
	emu_answers_free(emu, process);
	emu_clones_free(process);
	if (process->pidfd >= 0)
		close(process->pidfd); /* leaves the epoll set with it */
	pthread_mutex_destroy(&process->lock);
	free(process);
}

static struct emu_task *new_task(struct emu *emu, struct emu_process *process, pid_t tid,
				 const struct emu_task *creator)
{
	struct emu_task *task = calloc(1, sizeof(*task));
	const struct mc_cpumask *mask = creator          ? creator->allowed
					: emu->opt->cpus ? emu->opt->cpus
							 : mc_topology_possible(emu_topology(emu));

	if (!task)
		return NULL;
	task->tid = tid;
	task->process = process;
	task->cpu = ~0U;
	task->allowed = mc_cpumask_dup(mask);
	if (creator && creator->asked)
		task->asked = mc_cpumask_dup(creator->asked);
	if (creator)
		task->narrowed = creator->narrowed;
	if (creator && creator->told && creator->process != process) {
		task->cpu = creator->cpu;
		task->told = task->borrowed = true;
	}
	if (!task->allowed) {
		free(task);
		return NULL;
	}
	emu_task_place(emu, task);
	emu_policy_task_new(emu, task, creator);
	return task;
}

/* When the process began, in ticks; 0: there is none, or it has ended. */
static uint64_t started(pid_t tgid)
{
	char text[1024], state;
	unsigned long long at;

	if (emu_proc_read(text, sizeof(text), "/proc/%d/stat", tgid) < 0 ||
	    sscanf(emu_proc_stat(text),
		   " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &state, &at) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : at;
}

/* With the table's lock held. */
static void watch_end(struct emu *emu, struct emu_process *process)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)process->tgid};

	if (emu->nr_watched < emu->max_watched)
		process->pidfd = (int)syscall(SYS_pidfd_open, process->tgid, 0);
	if (process->pidfd >= 0 && epoll_ctl(emu->epoll, EPOLL_CTL_ADD, process->pidfd, &ev) < 0) {
		close(process->pidfd);
		process->pidfd = -1;
	}
	if (process->pidfd >= 0) {
		emu->nr_watched++;
		return;
	}
	process->started = started(process->tgid);
	emu->nr_unwatched++;
}

static _Thread_local unsigned int adopted_here; /* processes that this thread has adopted */

/* A process that was not known, with its first task; the creator's process is locked. Somebody else
 * may have been faster: theirs stays. */
static void adopt_process(struct emu *emu, pid_t tgid, const struct emu_task *creator)
{
	struct emu_process *process = calloc(1, sizeof(*process));
	struct emu_process **at;
	bool taken;

	if (!process)
		return;
	process->tgid = tgid;
	process->refs = 1;
	process->pidfd = -1;
	process->vdso = creator ? creator->process->vdso : 0;
	pthread_mutex_init(&process->lock, NULL);
	process->tasks = new_task(emu, process, tgid, creator);
	emu_answers_child(emu, process, creator ? creator->process : NULL);
	emu_mm_new(emu, process, creator ? creator->process : NULL);
	pthread_mutex_lock(&emu->table_lock);
	taken = lookup_process(emu, tgid) != NULL;
	if (!taken && process->tasks) {
		at = &emu->process_hash[(unsigned int)tgid % EMU_HASH];
		process->hash_next = *at;
		*at = process;
		hash_task(emu, process->tasks);
		watch_end(emu, process);
		adopted_here++;
	}
	taken = taken || !process->tasks;
	pthread_mutex_unlock(&emu->table_lock);
	if (taken)
		emu_process_put(emu, process);
}

/* A thread that was not known, of a locked process. */
static struct emu_task *adopt_thread(struct emu *emu, struct emu_process *process, pid_t tid)
{
	const struct emu_task *creator = emu_clone_match(emu, process, tid);
	struct emu_task *task = new_task(emu, process, tid, creator ? creator : process->tasks);

	if (!task)
		return NULL;
	task->next = process->tasks;
	process->tasks = task;
	pthread_mutex_lock(&emu->table_lock);
	hash_task(emu, task);
	pthread_mutex_unlock(&emu->table_lock);
	return task;
}

/* Whoever has it may be at it for long. */
static void lock_process(struct emu *emu, struct emu_process *process)
{
	if (!pthread_mutex_trylock(&process->lock))
		return;
	emu_crew_more(emu);
	pthread_mutex_lock(&process->lock);
}

/* The process of `tgid`, locked and referenced; NULL when it is not known. */
static struct emu_process *get_process(struct emu *emu, pid_t tgid)
{
	struct emu_process *process;

	pthread_mutex_lock(&emu->table_lock);
	process = lookup_process(emu, tgid);
	if (process)
		process->refs++;
	pthread_mutex_unlock(&emu->table_lock);
	if (process)
		lock_process(emu, process);
	return process;
}

static void drop(struct emu *emu, struct emu_process *process)
{
	pthread_mutex_unlock(&process->lock);
	emu_process_put(emu, process);
}

/* Which of the parent's tasks forked `pid`: /proc tells for each thread its own children. */
static const struct emu_task *forker(struct emu_process *parent, pid_t pid)
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

/* Makes the process of `tgid` known if it belongs to the tree; its unknown ancestors first. `ppid`:
 * its parent if that was looked up, else 0. */
static bool adopt(struct emu *emu, pid_t tgid, long ppid, unsigned int depth)
{
	struct emu_process *parent;

	if (!ppid)
		ppid = emu_proc_field(tgid, "PPid:");
	if (ppid <= 0 || depth > 4096)
		return false;
	if (ppid == emu->supervisor) {
		/* Its parent died before it was seen; the parent's exit settled it, unless it was
		 * killed. */
		adopt_process(emu, tgid, NULL);
		return true;
	}
	parent = get_process(emu, (pid_t)ppid);
	if (!parent) {
		if (!adopt(emu, (pid_t)ppid, 0, depth + 1))
			return false;
		parent = get_process(emu, (pid_t)ppid);
		if (!parent)
			return false;
	}
	adopt_process(emu, tgid, forker(parent, tgid));
	drop(emu, parent);
	return true;
}

static struct emu_task *find_in(struct emu_process *process, pid_t tid)
{
	struct emu_task *t = process->tasks;

	while (t && t->tid != tid)
		t = t->next;
	return t;
}

/* The process that `tid` belongs to, or -1. Those that made threads are asked first: a signal that
 * is not sent tells that the thread is theirs, and costs a fiftieth of reading /proc. *ppid: its
 * parent, 0 when that was not seen in passing. */
static long tgid_of(struct emu *emu, pid_t tid, long *ppid)
{
	*ppid = 0;
	for (unsigned int i = 0; i < EMU_CLONERS; i++) {
		pid_t tgid = atomic_load_explicit(&emu->cloners[i], memory_order_relaxed);

		if (tgid > 0 && (!syscall(SYS_tgkill, tgid, tid, 0) || errno == EPERM))
			return tgid;
	}
	return emu_proc_family(tid, ppid);
}

struct emu_task *emu_task_get(struct emu *emu, pid_t tid)
{
	struct emu_process *process = NULL;
	struct emu_task *task;
	long tgid, ppid;

	pthread_mutex_lock(&emu->table_lock);
	task = lookup(emu, tid);
	if (task) {
		process = task->process;
		process->refs++;
	}
	pthread_mutex_unlock(&emu->table_lock);
	if (process) {
		lock_process(emu, process);
		task = find_in(process, tid);
		if (task)
			return task;
		drop(emu, process);
	}
	emu_crew_more(emu);
	tgid = tgid_of(emu, tid, &ppid);
	if (tgid <= 0)
		return NULL;
	process = get_process(emu, (pid_t)tgid);
	if (!process) {
		if (!adopt(emu, (pid_t)tgid, ppid, 0))
			return NULL;
		process = get_process(emu, (pid_t)tgid);
		if (!process)
			return NULL;
	}
	task = find_in(process, tid);
	if (!task)
		task = adopt_thread(emu, process, tid);
	if (!task)
		drop(emu, process);
	return task;
}

struct emu_task *emu_task_find(struct emu_call *call, pid_t tid)
{
	struct emu_process *home = call->task->process;
	struct emu_task *task;

	if (call->locked == home) {
		task = tid == 0 ? call->task : find_in(home, tid);
		if (task)
			return task;
	}
	if (tid == 0)
		tid = call->caller;
	pthread_mutex_unlock(&call->locked->lock);
	task = emu_task_get(call->emu, tid);
	if (!task) {
		pthread_mutex_lock(&call->locked->lock);
		return NULL;
	}
	if (call->locked != home)
		emu_process_put(call->emu, call->locked);
	call->locked = task->process;
	if (call->locked == home)
		emu_process_put(call->emu, home); /* the receiver's own reference is enough */
	return task;
}

bool emu_task_known(struct emu *emu, pid_t tid)
{
	bool known;

	pthread_mutex_lock(&emu->table_lock);
	known = lookup(emu, tid) != NULL;
	pthread_mutex_unlock(&emu->table_lock);
	return known;
}

struct emu_task *emu_task_first(struct emu *emu, pid_t pid)
{
	struct emu_process *process;
	struct emu_task *task;

	adopt_process(emu, pid, NULL);
	process = get_process(emu, pid);
	if (!process)
		return NULL;
	task = process->tasks;
	emu_task_bind(emu, task);
	drop(emu, process);
	return task;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void remove_task(struct emu *emu, struct emu_task *task)
{
	struct emu_task **at = &task->process->tasks;

	pthread_mutex_lock(&emu->table_lock);
	unhash_task(emu, task);
	pthread_mutex_unlock(&emu->table_lock);
	while (*at && *at != task)
		at = &(*at)->next;
	if (*at)
		*at = task->next;
	free_task(emu, task);
}

/* The task's own exit: its process is locked, and the caller does not touch it again. */
void emu_task_exit(struct emu *emu, struct emu_task *task)
{
	emu_answers_forget(emu, task);
	task->pointer = 0;
	/* The leader's tid stays until the process ends. */
	if (task->tid != task->process->tgid)
		remove_task(emu, task);
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
	tgid = tgid_of(emu, tid, &ppid);
	process = tgid > 0 && tgid != tid ? get_process(emu, (pid_t)tgid) : NULL;
	if (!process)
		return false;
	if (!find_in(process, tid) && emu_tasks_alike(process) &&
	    !emu_policy_watches(emu, process)) {
		(void)emu_clone_match(emu, process, tid);
		done = true;
	}
	drop(emu, process);
	return done;
}

/* A new image: the other threads are gone, ranges too. */
void emu_process_exec(struct emu *emu, struct emu_task *task)
{
	struct emu_process *process = task->process;

	for (struct emu_task *t = process->tasks, *next; t; t = next) {
		next = t->next;
		if (t != task && t->tid != process->tgid)
			remove_task(emu, t);
	}
	emu_clones_free(process);
	emu_answers_free(emu, process);
	process->vdso = 0;
	process->own_memory = process->no_answers = false;
	emu_mm_exec(emu, process);
	for (struct emu_task *t = process->tasks; t; t = t->next) {
		t->pointer = 0;
		t->told = false;
		if (!t->borrowed)
			continue;
		emu_policy_moving(emu, t);
		t->borrowed = false;
		t->cpu = ~0U;
		emu_task_place(emu, t);
	}
}

void emu_process_gone(struct emu *emu, pid_t tgid)
{
	struct emu_process **at, *process;

	pthread_mutex_lock(&emu->table_lock);
	at = &emu->process_hash[(unsigned int)tgid % EMU_HASH];
	while (*at && (*at)->tgid != tgid)
		at = &(*at)->hash_next;
	process = *at;
	if (process) {
		*at = process->hash_next;
		process->dead = true;
		if (process->pidfd >= 0)
			emu->nr_watched--;
		else
			emu->nr_unwatched--;
	}
	pthread_mutex_unlock(&emu->table_lock);
	if (!process)
		return;
	pthread_mutex_lock(&process->lock);
	pthread_mutex_lock(&emu->table_lock);
	for (struct emu_task *t = process->tasks; t; t = t->next)
		unhash_task(emu, t);
	pthread_mutex_unlock(&emu->table_lock);
	if (process->pidfd >= 0) {
		close(process->pidfd);
		process->pidfd = -1;
	}
	drop(emu, process);
}

/* All processes, each referenced; *all is malloc'ed. */
static size_t every_process(struct emu *emu, struct emu_process ***all)
{
	size_t nr = 0, room = 0;

	pthread_mutex_lock(&emu->table_lock);
	for (unsigned int i = 0; i < EMU_HASH; i++)
		for (struct emu_process *p = emu->process_hash[i]; p; p = p->hash_next)
			room++;
	*all = calloc(room ? room : 1, sizeof(struct emu_process *));
	for (unsigned int i = 0; *all && i < EMU_HASH; i++)
		for (struct emu_process *p = emu->process_hash[i]; p; p = p->hash_next) {
			p->refs++;
			(*all)[nr++] = p;
		}
	pthread_mutex_unlock(&emu->table_lock);
	return nr;
}

void emu_processes_look(struct emu *emu)
{
	struct emu_process **all;
	bool any;
	size_t nr;

	pthread_mutex_lock(&emu->table_lock);
	any = emu->nr_unwatched > 0;
	pthread_mutex_unlock(&emu->table_lock);
	if (!any)
		return;
	nr = every_process(emu, &all);
	for (size_t i = 0; i < nr; i++) {
		pid_t tgid = all[i]->tgid;
		bool over;

		/* One whose call waits for another process is looked for next time. */
		if (pthread_mutex_trylock(&all[i]->lock)) {
			emu_process_put(emu, all[i]);
			continue;
		}
		over = !all[i]->dead && all[i]->pidfd < 0 && started(tgid) != all[i]->started;
		drop(emu, all[i]);
		if (over)
			emu_process_gone(emu, tgid);
	}
	free(all);
}

void emu_each_process(struct emu *emu, void (*fn)(struct emu *emu, struct emu_process *process))
{
	struct emu_process **all;
	size_t nr = every_process(emu, &all);

	for (size_t i = 0; i < nr; i++) {
		pthread_mutex_lock(&all[i]->lock);
		fn(emu, all[i]);
		drop(emu, all[i]);
	}
	free(all);
}

_Thread_local struct emu_call *emu_call_here;

void emu_each_process_now(struct emu *emu, void (*fn)(struct emu *emu, struct emu_process *process))
{
	struct emu_process **all, *mine = emu_call_here ? emu_call_here->locked : NULL;
	size_t nr = every_process(emu, &all);

	for (size_t i = 0; i < nr; i++) {
		if (all[i] == mine) {
			fn(emu, all[i]);
		} else if (!pthread_mutex_trylock(&all[i]->lock)) {
			fn(emu, all[i]);
			pthread_mutex_unlock(&all[i]->lock);
		}
		emu_process_put(emu, all[i]);
	}
	free(all);
}

void emu_settle(struct emu_call *call, struct emu_task *task)
{
	struct emu_process *process = call->locked;
	struct emu *emu = call->emu;

	emu_clones_settle(emu, process, adopt_thread);
	for (struct emu_task *t = task ? task : process->tasks; t; t = task ? NULL : t->next) {
		pid_t *pids;
		size_t nr = emu_children(process->tgid, t->tid, &pids);

		for (size_t i = 0; i < nr; i++)
			if (!emu_task_known(emu, pids[i]))
				adopt_process(emu, pids[i], t);
		free(pids);
	}
}

/* Of the locked process. */
static void settle_told(struct emu *emu, struct emu_process *process)
{
	for (struct emu_task *t = process->tasks; t; t = t->next) {
		pid_t *pids;
		size_t nr = t->told ? emu_children(process->tgid, t->tid, &pids) : 0;

		for (size_t i = 0; i < nr; i++)
			if (!emu_task_known(emu, pids[i]))
				adopt_process(emu, pids[i], t);
		if (t->told)
			free(pids);
	}
}

void emu_settle_told(struct emu *emu)
{
	enum { GENERATIONS = 16 }; /* a storm of forks shall not hold us for ever */
	pid_t *orphans;
	size_t nr = emu_children(emu->supervisor, emu->supervisor, &orphans);
	unsigned int before;

	for (size_t i = 0; i < nr; i++)
		if (!emu_task_known(emu, orphans[i]))
			adopt_process(emu, orphans[i], NULL);
	free(orphans);
	for (int i = 0; i < GENERATIONS; i++) {
		before = adopted_here;
		emu_each_process(emu, settle_told);
		if (adopted_here == before)
			break;
	}
}
