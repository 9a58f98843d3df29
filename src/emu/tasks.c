// SPDX-License-Identifier: MIT
/*
 * tasks.c - the tables of processes and tasks, adoption of new ones, and what they inherit.
 *
 * Tasks are found by tid. A process stays in memory as long as somebody holds a reference (the
 * table is one, marks are others); its tasks are freed with it, or under its lock when they are
 * seen to have ended. fork is not notified: see emu.h, "Inheritance".
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

void emu_process_hold(struct emu *emu, struct emu_process *process)
{
	pthread_mutex_lock(&emu->table_lock);
	process->refs++;
	pthread_mutex_unlock(&emu->table_lock);
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

/* What is inherited: of `from`, NULL: what the command begins with. */
static void take_state(struct emu *emu, struct emu_task *task, const struct emu_task *from)
{
	const struct mc_cpumask *mask = from             ? from->allowed
					: emu->opt->cpus ? emu->opt->cpus
							 : mc_topology_possible(emu_topology(emu));

	mc_cpumask_free(task->allowed);
	mc_cpumask_free(task->asked);
	task->allowed = mc_cpumask_dup(mask);
	task->asked = from && from->asked ? mc_cpumask_dup(from->asked) : NULL;
	task->narrowed = from && from->narrowed;
	task->slack = from ? from->slack : 0;
	emu_policy_task_new(emu, task, from);
}

/* A child's memory may tell what its creator was told. */
static void borrow_cpu(struct emu_task *task, const struct emu_task *from)
{
	if (!from || !from->told || task->tid != task->process->tgid)
		return;
	task->cpu = from->cpu;
	task->told = task->borrowed = true;
}

static struct emu_task *new_task(struct emu *emu, struct emu_process *process, pid_t tid,
				 const struct emu_task *creator)
{
	struct emu_task *task = calloc(1, sizeof(*task));
	const struct emu_task *like = NULL;
	bool told;

	if (!task)
		return NULL;
	task->tid = tid;
	task->process = process;
	task->cpu = ~0U;
	if (!creator || !creator->unmarked)
		like = emu_mark_look(emu, tid);
	take_state(emu, task, like ? like : creator);
	borrow_cpu(task, like ? like : creator);
	/* Its mark says nothing, and so do those of what it may have made. */
	task->unmarked = !like && creator && creator->unmarked;
	told = like && like->told && !task->told;
	emu_mark_looked(emu, like);
	if (!task->allowed) {
		free_task(emu, task);
		return NULL;
	}
	emu_thread_know(emu, task);
	emu_task_place(emu, task);
	if (told) /* its mark names a CPU that it was not told */
		emu_mark(emu, task);
	return task;
}

static _Thread_local unsigned int adopted_here; /* processes that this thread has adopted */

/* A process that was not known, with its first task; its parent is locked (NULL: it has none here,
 * or that ended), and the creator one of its tasks (NULL: not known which). Somebody else may have
 * been faster: theirs stays. */
static void adopt_process(struct emu *emu, pid_t tgid, const struct emu_task *creator,
			  struct emu_process *parent)
{
	struct emu_process *process = calloc(1, sizeof(*process));
	struct emu_process **at;
	bool taken, known = false;

	if (!process)
		return;
	process->tgid = tgid;
	process->refs = 1;
	process->pidfd = -1;
	process->vdso = parent ? parent->vdso : 0;
	pthread_mutex_init(&process->lock, NULL);
	process->tasks = new_task(emu, process, tgid, creator);
	process->nr_tasks = 1;
	emu_answers_child(emu, process, parent);
	emu_mm_new(emu, process, parent, creator != NULL);
	pthread_mutex_lock(&process->lock);
	pthread_mutex_lock(&emu->table_lock);
	taken = lookup_process(emu, tgid) != NULL;
	if (!taken && process->tasks && emu_watch_end(emu, process)) {
		at = &emu->process_hash[(unsigned int)tgid % EMU_HASH];
		process->hash_next = *at;
		*at = process;
		hash_task(emu, process->tasks);
		adopted_here++;
		known = true;
	}
	pthread_mutex_unlock(&emu->table_lock);
	if (known)
		emu_marks_own(emu, process);
	pthread_mutex_unlock(&process->lock);
	if (!known)
		emu_process_put(emu, process);
}

/* A thread that was not known, of a locked process. */
static struct emu_task *adopt_thread(struct emu *emu, struct emu_process *process, pid_t tid)
{
	const struct emu_task *creator = emu_clone_match(process, tid);
	struct emu_task *task;

	/* Else the first one: it is who makes most, and realtime threads have no marks. */
	if (!creator)
		creator = emu_thread_find(process, process->tgid);
	task = new_task(emu, process, tid, creator ? creator : process->tasks);

	if (!task)
		return NULL;
	task->next = process->tasks;
	process->tasks = task;
	process->nr_tasks++;
	pthread_mutex_lock(&emu->table_lock);
	hash_task(emu, task);
	pthread_mutex_unlock(&emu->table_lock);
	atomic_store_explicit(&emu->cloners[(unsigned int)process->tgid % EMU_CLONERS],
			      process->tgid, memory_order_relaxed);
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
struct emu_process *emu_process_get(struct emu *emu, pid_t tgid)
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

void emu_process_drop(struct emu *emu, struct emu_process *process)
{
	pthread_mutex_unlock(&process->lock);
	emu_process_put(emu, process);
}

/* Its parent ended before it was seen. The parent's exit settled it, unless it was killed; or its
 * mark tells whose ranges it has: `mine` is locked, and with it only its own are adopted. */
static void adopt_orphan(struct emu *emu, pid_t tgid, struct emu_process *mine)
{
	unsigned int image;
	struct emu_process *owner = emu_mark_owner(emu, tgid, &image);

	if (!owner) {
		if (!mine)
			adopt_process(emu, tgid, NULL, NULL);
		return;
	}
	if (!mine)
		lock_process(emu, owner);
	/* Of another image's ranges nothing is known any more. */
	if (!mine || owner == mine)
		adopt_process(emu, tgid, NULL, owner->image == image ? owner : NULL);
	if (!mine)
		pthread_mutex_unlock(&owner->lock);
	emu_process_put(emu, owner);
}

static void adopt_orphans(struct emu *emu, struct emu_process *mine)
{
	pid_t *orphans;
	size_t nr = emu_children(emu->supervisor, emu->supervisor, &orphans);

	for (size_t i = 0; i < nr; i++)
		if (!emu_task_known(emu, orphans[i]))
			adopt_orphan(emu, orphans[i], mine);
	free(orphans);
}

/* The process of `ppid`, locked and referenced, known by then if it belongs to the tree. */
static bool adopt(struct emu *emu, pid_t tgid, long ppid, unsigned int depth);
static struct emu_process *get_parent(struct emu *emu, pid_t ppid, unsigned int depth)
{
	struct emu_process *parent = emu_process_get(emu, ppid);

	if (!parent && adopt(emu, ppid, 0, depth))
		parent = emu_process_get(emu, ppid);
	return parent;
}

/* Makes the process of `tgid` known if it belongs to the tree; its unknown ancestors first. `ppid`:
 * its parent if that was looked up, else 0. A parent may end meanwhile: then it has another one. */
static bool adopt(struct emu *emu, pid_t tgid, long ppid, unsigned int depth)
{
	struct emu_process *parent = NULL;
	long before;

	if (!ppid)
		ppid = emu_proc_field(tgid, "PPid:");
	while (!parent) {
		if (ppid <= 0 || depth > 4096)
			return false;
		if (ppid == emu->supervisor) {
			adopt_orphan(emu, tgid, NULL);
			return true;
		}
		parent = get_parent(emu, (pid_t)ppid, depth + 1);
		before = ppid;
		if (!parent)
			ppid = emu_proc_field(tgid, "PPid:");
		if (!parent && ppid == before)
			return false;
	}
	adopt_process(emu, tgid, emu_forker(parent, tgid), parent);
	emu_process_drop(emu, parent);
	return true;
}

struct emu_task *emu_thread_find(struct emu_process *process, pid_t tid)
{
	struct emu_task *t = process->tasks;

	while (t && t->tid != tid)
		t = t->next;
	return t;
}

/* The process that `tid` belongs to, or -1. Those that made threads are asked first: a signal that
 * is not sent tells that the thread is theirs, and costs a fiftieth of reading /proc. *ppid: its
 * parent, 0 when that was not seen in passing. */
long emu_tgid_of(struct emu *emu, pid_t tid, long *ppid)
{
	*ppid = 0;
	for (unsigned int i = 0; i < EMU_CLONERS; i++) {
		pid_t tgid = atomic_load_explicit(&emu->cloners[i], memory_order_relaxed);

		if (tgid > 0 && (!syscall(SYS_tgkill, tgid, tid, 0) || errno == EPERM))
			return tgid;
	}
	return emu_proc_family(tid, ppid);
}

struct emu_task *emu_thread_adopt(struct emu *emu, struct emu_process *process, pid_t tid)
{
	struct emu_task *task = emu_thread_find(process, tid);
	char path[48];

	if (task)
		return task;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", process->tgid, tid);
	return access(path, F_OK) ? NULL : adopt_thread(emu, process, tid);
}

/* A known one, of its locked process, that may have ended unseen: was it there less than `age` ns
 * ago? No tid is dealt anew so soon. */
static bool is_there(struct emu *emu, struct emu_task *task, uint64_t age)
{
	uint64_t now;

	if (!emu->marks || task->tid == task->process->tgid)
		return true;
	now = emu_now();
	if (now - task->seen < age)
		return true;
	if (!emu_thread_there(emu, task)) {
		emu_thread_forget(emu, task);
		return false;
	}
	task->seen = now;
	return true;
}

/* The task of that tid, which was one of this process's before that was locked. */
static struct emu_task *still(struct emu *emu, const struct emu_process *process, pid_t tid)
{
	struct emu_task *task;

	pthread_mutex_lock(&emu->table_lock);
	task = lookup(emu, tid);
	if (task && task->process != process) /* another one's now, and not ours to hold */
		task = NULL;
	pthread_mutex_unlock(&emu->table_lock);
	return task;
}

static struct emu_task *get(struct emu *emu, pid_t tid, uint64_t age)
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
		task = still(emu, process, tid);
		if (task && is_there(emu, task, age))
			return task;
		emu_process_drop(emu, process);
	}
	emu_crew_more(emu);
	tgid = emu_tgid_of(emu, tid, &ppid);
	if (tgid <= 0)
		return NULL;
	process = emu_process_get(emu, (pid_t)tgid);
	if (!process) {
		if (!adopt(emu, (pid_t)tgid, ppid, 0))
			return NULL;
		process = emu_process_get(emu, (pid_t)tgid);
		if (!process)
			return NULL;
	}
	task = emu_thread_find(process, tid);
	if (!task) {
		if (process->nr_tasks > 2 * process->looked_at + 64)
			emu_threads_forget(emu, process);
		task = adopt_thread(emu, process, tid);
	}
	if (!task)
		emu_process_drop(emu, process);
	return task;
}

/* What it made while its mark said nothing takes its state from it; what it makes from here on,
 * from its mark. */
static void mark_again(struct emu *emu, struct emu_task *task)
{
	struct emu_process *process = task->process;
	pid_t *pids;
	size_t nr;

	if (!emu->marks)
		return;
	if (emu_threads_many(emu, process))
		emu_threads_adopt(emu, process);
	nr = emu_children(process->tgid, task->tid, &pids);
	for (size_t i = 0; i < nr; i++)
		if (!emu_task_known(emu, pids[i]))
			adopt_process(emu, pids[i], task, process);
	free(pids);
	emu_mark(emu, task);
}

struct emu_task *emu_task_get(struct emu *emu, pid_t caller)
{
	struct emu_task *task = get(emu, caller, emu->soon);

	if (task && task->unmarked)
		mark_again(emu, task);
	return task;
}

struct emu_task *emu_task_find(struct emu_call *call, pid_t tid)
{
	struct emu_process *home = call->home;
	struct emu_task *task;

	if (tid == 0)
		tid = call->caller;
	if (call->locked == home) {
		task = tid == call->caller ? call->task : emu_thread_find(home, tid);
		if (task && (task == call->task || is_there(call->emu, task, 0)))
			return task;
	}
	pthread_mutex_unlock(&call->locked->lock);
	task = get(call->emu, tid, 0);
	if (task) {
		if (call->locked != home)
			emu_process_put(call->emu, call->locked);
		call->locked = task->process;
		if (call->locked == home)
			emu_process_put(call->emu, home); /* the receiver's reference is enough */
	} else {
		pthread_mutex_lock(&call->locked->lock);
	}
	/* A caller that was killed meanwhile may be forgotten. */
	call->task = call->locked == home ? emu_thread_find(home, call->caller) : NULL;
	return task;
}

bool emu_task_known(struct emu *emu, pid_t tid)
{
	const struct emu_task *task;
	bool known;

	pthread_mutex_lock(&emu->table_lock);
	task = lookup(emu, tid);
	known = task && (!emu->marks || task->tid == task->process->tgid);
	pthread_mutex_unlock(&emu->table_lock);
	return known;
}

struct emu_task *emu_task_first(struct emu *emu, pid_t pid)
{
	struct emu_process *process;
	struct emu_task *task;

	adopt_process(emu, pid, NULL, NULL);
	process = emu_process_get(emu, pid);
	if (!process)
		return NULL;
	task = process->tasks;
	emu_task_bind(emu, task);
	emu_process_drop(emu, process);
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
	task->process->nr_tasks--;
	free_task(emu, task);
}

void emu_thread_forget(struct emu *emu, struct emu_task *task)
{
	if (emu_policy_watches(emu, task->process))
		emu_policy_ending(emu, task);
	emu_answers_forget(emu, task);
	remove_task(emu, task);
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

/* It may be another thread that has begun the image, and taken its process's id. */
static void retake_state(struct emu *emu, struct emu_task *task)
{
	const struct emu_task *like = task->unmarked ? NULL : emu_mark_look(emu, task->tid);
	bool other = like && !emu_alike(like, task);

	if (other) {
		take_state(emu, task, like);
		emu_task_place(emu, task);
	}
	emu_mark_looked(emu, like);
	if (other)
		emu_mark(emu, task);
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
	process->owns = false;
	process->image++;
	process->sharer = 0;
	process->looked_at = process->nr_tasks;
	emu_mm_exec(emu, process);
	for (struct emu_task *t = process->tasks; t; t = t->next) {
		t->pointer = 0;
		t->told = false;
		if (!t->borrowed)
			continue;
		t->borrowed = false;
		t->cpu = ~0U;
		emu_task_place(emu, t);
	}
	if (emu->marks)
		retake_state(emu, task);
}

void emu_process_gone(struct emu *emu, pid_t tgid)
{
	struct emu_process **at, *process;
	bool owned;

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
	owned = process->owns;
	emu_process_drop(emu, process);
	/* Orphans of its children are not adopted here: another process's lock may be held for
	 * long, and their marks tell the same later. */
	if (owned)
		emu_marks_ended(emu);
}

void emu_settle(struct emu_call *call, struct emu_task *task)
{
	struct emu_process *process = call->locked;
	struct emu *emu = call->emu;

	if (task && emu->marks)
		return; /* its mark tells what they have */
	emu_clones_settle(emu, process, adopt_thread);
	if (process->owns)
		adopt_orphans(emu, process);
	if (!task && emu_threads_many(emu, process))
		emu_threads_adopt(emu, process);
	for (struct emu_task *t = task ? task : process->tasks; t; t = task ? NULL : t->next) {
		pid_t *pids;
		size_t nr = emu_children(process->tgid, t->tid, &pids);

		for (size_t i = 0; i < nr; i++)
			if (!emu_task_known(emu, pids[i]))
				adopt_process(emu, pids[i], t, process);
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
				adopt_process(emu, pids[i], t, process);
		if (t->told)
			free(pids);
	}
}

void emu_settle_told(struct emu *emu)
{
	enum { GENERATIONS = 16 }; /* a storm of forks shall not hold us for ever */
	unsigned int before;

	adopt_orphans(emu, NULL);
	for (int i = 0; i < GENERATIONS; i++) {
		before = adopted_here;
		emu_each_process(emu, settle_told);
		if (adopted_here == before)
			break;
	}
}
