// SPDX-License-Identifier: MIT
/*
 * marks.c - what a task hands on, kept by the kernel: its timer slack names its mask and policy.
 *
 * Every task inherits the timer slack of the thread that creates it, over clone, fork, vfork and
 * exec, whatever becomes of that thread, and it can be read and set from outside. So a task whose
 * state is changed gets a slack of its own, some ns more than it had; all tasks with that slack
 * have the state that stands for it here, and creations of threads and their ends need no
 * notification. A task with the slack that the command began with has the state that the command
 * began with.
 *
 * - The program is told its own slack (prctl); /proc/PID/timerslack_ns shows ours (limits.md).
 * - Needs CAP_SYS_NICE over the tasks: real root's, or that of the user namespace's maker. Where it
 *   can't be had, creators.c notes who creates whom.
 * - The kernel takes slack from realtime tasks (0), and gives those that become ordinary again what
 *   they were born with. Such tasks are `unmarked` until their next call; what realtime tasks
 *   create takes what is at hand, as with any value that is not known here.
 * - States are shared by all tasks that are alike and are never changed, but by hot-plug.
 * - A task whose CPU may be told by copies of its memory (answers.c) hands that on, too.
 * - The ranges and pages of an address space are inherited, too: where there are any, the mark
 *   names the process, for children whose parent ends before they are seen. It is kept until no
 *   task has its marks any more.
 *
 * Locks: marks.lock; taken with a process locked, and table_lock within it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/mempolicy.h"
#include "emu/tasks.h"

/* More states than this are not held at a time: 33 us of slack beside the 50 that are usual. */
enum { MOST = 16384, VALUES = 2 * MOST, CHAINS = 4096 };

struct mark {
	struct mark *by_value, *by_state;
	uint64_t value;
	struct emu_task like; /* its state; `process`: whose ranges, a reference, or NULL */
	bool seen;
};

struct emu_marks {
	pthread_mutex_t lock;
	struct mark *by_value[CHAINS], *by_state[CHAINS];
	uint64_t first; /* the slack that the command began with */
	uint64_t next;
	unsigned int nr;
	bool found; /* some task may have another one */
	bool ended; /* a process that marks name */
	bool looking; /* somebody collects: what is used meanwhile is seen */
	uint64_t looked;
};

/* ---- the kernel's side ----------------------------------------------------------------------- */

static int read_slack(pid_t tid, uint64_t *value)
{
	char text[32];
	ssize_t n = emu_proc_read(text, sizeof(text), "/proc/%d/timerslack_ns", tid);

	if (n < 0)
		return (int)n;
	*value = strtoull(text, NULL, 10);
	return 0;
}

/* Of `task`, which must still be there once the file is open; NULL: of `tid`, whoever it is. */
static int write_file(struct emu *emu, struct emu_task *task, pid_t tid, uint64_t value)
{
	char path[40], text[24];
	int fd, n, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", tid);
	n = snprintf(text, sizeof(text), "%" PRIu64, value);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (task && !emu_thread_there(emu, task))
		err = -ESRCH;
	else if (write(fd, text, (size_t)n) != n)
		err = -errno;
	close(fd);
	return err;
}

static int write_slack(struct emu *emu, struct emu_task *task, uint64_t value)
{
	return write_file(emu, task, task->tid, value);
}

bool emu_marks_possible(pid_t tid)
{
	uint64_t value = 0;

	return !read_slack(tid, &value) && value && value < UINT64_MAX / 2 &&
	       !write_file(NULL, NULL, tid, value);
}

/* ---- states: with the lock held -------------------------------------------------------------- */

static const struct pol *policy_of(const struct emu_task *task)
{
	return task->policy ? task->policy->pol : NULL;
}

static bool same_mask(const struct mc_cpumask *a, const struct mc_cpumask *b)
{
	return a && b ? mc_cpumask_equal(a, b) : a == b;
}

static struct emu_process *owner_of(const struct emu_task *task)
{
	return task->process && task->process->owns ? task->process : NULL;
}

bool emu_alike(const struct emu_task *like, const struct emu_task *task)
{
	return like->process == owner_of(task) &&
	       (!like->process || like->image == task->process->image) &&
	       like->narrowed == task->narrowed && like->slack == task->slack &&
	       like->told == task->told && (!task->told || like->cpu == task->cpu) &&
	       same_mask(like->allowed, task->allowed) && same_mask(like->asked, task->asked) &&
	       pol_equal(policy_of(like), policy_of(task));
}

static struct mark **state_chain(struct emu_marks *marks, const struct emu_task *task)
{
	unsigned int key = mc_cpumask_first(task->allowed) * 31 +
			   mc_cpumask_last(task->allowed) * 7 + mc_cpumask_weight(task->allowed) +
			   (unsigned int)task->slack * 13 + (task->told ? task->cpu * 101 : 0);

	return &marks->by_state[key % CHAINS];
}

static struct mark *of_value(struct emu_marks *marks, uint64_t value)
{
	struct mark *mark = marks->by_value[value % CHAINS];

	while (mark && mark->value != value)
		mark = mark->by_value;
	return mark;
}

/* Its process is the caller's to put. */
static struct emu_process *free_mark(struct emu *emu, struct mark *mark)
{
	struct emu_process *owner = mark->like.process;

	emu_policy_task_gone(emu, &mark->like);
	mc_cpumask_free(mark->like.allowed);
	mc_cpumask_free(mark->like.asked);
	free(mark);
	return owner;
}

static void link_mark(struct emu_marks *marks, struct mark *mark)
{
	struct mark **at = &marks->by_value[mark->value % CHAINS];

	mark->by_value = *at;
	*at = mark;
	at = state_chain(marks, &mark->like);
	mark->by_state = *at;
	*at = mark;
	marks->nr++;
}

static void drop_mark(struct emu *emu, struct mark *mark)
{
	struct emu_process *owner = free_mark(emu, mark);

	if (owner)
		emu_process_put(emu, owner); /* it is locked, and not ours alone */
}

static struct mark *copy_state(struct emu *emu, const struct emu_task *task)
{
	struct mark *mark = calloc(1, sizeof(*mark));

	if (!mark)
		return NULL;
	mark->seen = true;
	mark->like.process = owner_of(task);
	if (mark->like.process) {
		mark->like.image = task->process->image;
		emu_process_hold(emu, mark->like.process);
	}
	mark->like.told = task->told;
	mark->like.cpu = task->cpu;
	mark->like.narrowed = task->narrowed;
	mark->like.slack = task->slack;
	mark->like.allowed = mc_cpumask_dup(task->allowed);
	mark->like.asked = task->asked ? mc_cpumask_dup(task->asked) : NULL;
	emu_policy_task_new(emu, &mark->like, task);
	if (mark->like.allowed && (mark->like.asked || !task->asked) &&
	    pol_equal(policy_of(&mark->like), policy_of(task)))
		return mark;
	drop_mark(emu, mark);
	return NULL;
}

/* ---- too many -------------------------------------------------------------------------------- */

struct values {
	uint64_t *value;
	size_t nr, room;
	bool failed;
};

static void add_value(struct values *v, uint64_t value)
{
	if (v->nr == v->room) {
		size_t room = 2 * v->room + 1024;
		uint64_t *more = realloc(v->value, room * sizeof(*more));

		if (!more) {
			v->failed = true;
			return;
		}
		v->value = more;
		v->room = room;
	}
	v->value[v->nr++] = value;
}

/* What we may not look into is none of the tree's. */
static bool is_none(int rc)
{
	return rc == -ENOENT || rc == -ESRCH || rc == -EPERM || rc == -EACCES;
}

static void add_threads(struct values *v, pid_t pid)
{
	struct emu_thread_id *all;
	size_t nr;
	int rc = emu_threads_list(pid, &all, &nr);

	v->failed |= rc && !is_none(rc);
	for (size_t i = 0; i < nr; i++) {
		uint64_t value = 0;

		rc = read_slack(all[i].tid, &value);
		if (!rc)
			add_value(v, value);
		v->failed |= rc && !is_none(rc);
	}
	free(all);
}

/* What the threads of this host have. Twice, since one may begin behind the place that is looked
 * at, and its creator change in front of it. */
static struct values find_values(void)
{
	struct values v = {0};

	for (int round = 0; round < 2 && !v.failed; round++) {
		DIR *proc = opendir("/proc");
		struct dirent *e;

		v.failed |= !proc;
		while (proc && (errno = 0, e = readdir(proc)))
			if (atoi(e->d_name) > 0)
				add_threads(&v, (pid_t)atoi(e->d_name));
		v.failed |= errno != 0;
		if (proc)
			closedir(proc);
	}
	return v;
}

/* Takes those out that were not seen; chained by their values. */
static struct mark *take_unseen(struct emu_marks *marks)
{
	struct mark *unseen = NULL;

	for (unsigned int i = 0; i < CHAINS; i++)
		for (struct mark **at = &marks->by_state[i]; *at;)
			if ((*at)->seen)
				at = &(*at)->by_state;
			else
				*at = (*at)->by_state;
	for (unsigned int i = 0; i < CHAINS; i++)
		for (struct mark **at = &marks->by_value[i]; *at;) {
			struct mark *mark = *at;

			if (mark->seen) {
				marks->ended |= mark->like.process && mark->like.process->dead;
				at = &mark->by_value;
				continue;
			}
			*at = mark->by_value;
			mark->by_value = unseen;
			unseen = mark;
			marks->nr--;
		}
	return unseen;
}

/* Forgets the states that no thread has any more, once a second at most; with the lock held, which
 * is given back while threads are looked at. */
static void collect(struct emu *emu, struct emu_marks *marks)
{
	const uint64_t now = emu_now(), second = 1000000000;
	struct mark *unseen;
	struct values v;

	if (marks->looking || now - marks->looked < second)
		return;
	marks->looking = true;
	for (unsigned int i = 0; i < CHAINS; i++)
		for (struct mark *mark = marks->by_value[i]; mark; mark = mark->by_value)
			mark->seen = false;
	pthread_mutex_unlock(&marks->lock);
	v = find_values();
	pthread_mutex_lock(&marks->lock);
	/* The command's own stays, whoever has it. */
	of_value(marks, marks->first)->seen = true;
	for (size_t i = 0; i < v.nr; i++) {
		struct mark *mark = of_value(marks, v.value[i]);

		if (mark)
			mark->seen = true;
	}
	free(v.value);
	if (!v.failed)
		marks->ended = false; /* but for those that are still in use */
	unseen = v.failed ? NULL : take_unseen(marks);
	pthread_mutex_unlock(&marks->lock);
	while (unseen) {
		struct mark *mark = unseen;
		struct emu_process *owner;

		unseen = mark->by_value;
		owner = free_mark(emu, mark);
		if (owner)
			emu_process_put(emu, owner);
	}
	pthread_mutex_lock(&marks->lock);
	marks->looking = false;
	marks->looked = emu_now();
}

/* ---- for tasks.c and the calls --------------------------------------------------------------- */

int emu_marks_begin(struct emu *emu, const struct emu_task *first)
{
	struct emu_marks *marks = calloc(1, sizeof(*marks));
	struct mark *mark = marks ? copy_state(emu, first) : NULL;
	int rc = mark ? read_slack(first->tid, &marks->first) : -ENOMEM;

	if (rc < 0) {
		if (mark)
			drop_mark(emu, mark);
		free(marks);
		return rc;
	}
	pthread_mutex_init(&marks->lock, NULL);
	marks->next = 1;
	mark->value = marks->first;
	link_mark(marks, mark);
	emu->marks = marks;
	return 0;
}

/* A value that nobody has: near to what the program wants. */
static uint64_t new_value(struct emu_marks *marks, const struct emu_task *task)
{
	uint64_t value, base = task->slack ? task->slack : marks->first;

	if (base > INT64_MAX)
		base = INT64_MAX; /* that is for ever, too */
	do {
		value = base + marks->next;
		marks->next = marks->next % VALUES + 1;
	} while (of_value(marks, value));
	return value;
}

static struct mark *find_state(struct emu_marks *marks, const struct emu_task *task)
{
	struct mark *mark = *state_chain(marks, task);

	while (mark && !emu_alike(&mark->like, task))
		mark = mark->by_state;
	return mark;
}

static struct mark *find_or_make(struct emu *emu, struct emu_marks *marks,
				 const struct emu_task *task)
{
	struct mark *mark = find_state(marks, task);

	if (!mark && marks->nr >= MOST) {
		collect(emu, marks);
		mark = find_state(marks, task);
	}
	if (mark || marks->nr >= MOST)
		return mark;
	mark = copy_state(emu, task);
	if (mark) {
		mark->value = new_value(marks, &mark->like);
		link_mark(marks, mark);
	}
	return mark;
}

void emu_mark(struct emu *emu, struct emu_task *task)
{
	struct emu_marks *marks = emu->marks;
	struct mark *mark;
	int rc;

	if (!marks)
		return;
	pthread_mutex_lock(&marks->lock);
	mark = find_or_make(emu, marks, task);
	if (mark)
		mark->seen = true;
	/* Without one (memory, or so many states at once) a value that nobody has: what the task
	 * creates takes what is at hand. */
	rc = write_slack(emu, task, mark ? mark->value : marks->first + VALUES + 1);
	marks->found = true;
	task->unmarked = !mark || rc;
	pthread_mutex_unlock(&marks->lock);
}

const struct emu_task *emu_mark_look(struct emu *emu, pid_t tid)
{
	struct emu_marks *marks = emu->marks;
	struct mark *mark = NULL;
	uint64_t value;
	bool found;

	if (!marks)
		return NULL;
	pthread_mutex_lock(&marks->lock);
	found = marks->found;
	value = marks->first;
	pthread_mutex_unlock(&marks->lock);
	/* Nobody changes the mark of a task that is not known yet. */
	if (found && read_slack(tid, &value))
		return NULL;
	pthread_mutex_lock(&marks->lock);
	mark = of_value(marks, value);
	if (mark) {
		mark->seen = true;
		return &mark->like;
	}
	pthread_mutex_unlock(&marks->lock);
	return NULL;
}

void emu_mark_looked(struct emu *emu, const struct emu_task *like)
{
	if (like)
		pthread_mutex_unlock(&emu->marks->lock);
}

static uid_t owner_uid(pid_t tgid)
{
	char path[24];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", tgid);
	return stat(path, &st) ? (uid_t)-1 : st.st_uid;
}

/* With the process locked. */
void emu_marks_own(struct emu *emu, struct emu_process *process)
{
	unsigned int before;

	if (!emu->marks || process->owns || !emu_mm_asked(process))
		return;
	process->owns = true;
	process->uid = owner_uid(process->tgid);
	do { /* one that is not marked yet may make another one */
		before = process->nr_tasks;
		if (emu_threads_many(emu, process))
			emu_threads_adopt(emu, process);
		for (struct emu_task *t = process->tasks; t; t = t->next)
			if (emu_thread_there(emu, t))
				emu_mark(emu, t);
	} while (process->nr_tasks != before);
}

struct emu_process *emu_mark_owner(struct emu *emu, pid_t tid, unsigned int *image)
{
	const struct emu_task *like = emu_mark_look(emu, tid);
	struct emu_process *owner = like ? like->process : NULL;

	/* A slack can be made up: nobody gets another user's ranges by it. */
	if (owner && owner->uid != owner_uid(tid))
		owner = NULL;
	if (owner) {
		*image = like->image;
		emu_process_hold(emu, owner);
	}
	emu_mark_looked(emu, like);
	return owner;
}

void emu_marks_ended(struct emu *emu)
{
	pthread_mutex_lock(&emu->marks->lock);
	emu->marks->ended = true;
	pthread_mutex_unlock(&emu->marks->lock);
}

void emu_marks_clean(struct emu *emu)
{
	struct emu_marks *marks = emu->marks;

	if (!marks)
		return;
	pthread_mutex_lock(&marks->lock);
	if (marks->ended)
		collect(emu, marks);
	pthread_mutex_unlock(&marks->lock);
}

void emu_marks_replug(struct emu *emu, void (*fn)(struct emu *emu, struct emu_task *like))
{
	struct emu_marks *marks = emu->marks;
	struct mark *all = NULL, *mark;

	if (!marks)
		return;
	pthread_mutex_lock(&marks->lock);
	/* States may have become another one's: they keep their values, and are found by them. */
	for (unsigned int i = 0; i < CHAINS; i++)
		while ((mark = marks->by_state[i])) {
			marks->by_state[i] = mark->by_state;
			mark->by_state = all;
			all = mark;
		}
	while ((mark = all)) {
		struct mark **at;

		all = mark->by_state;
		fn(emu, &mark->like);
		at = state_chain(marks, &mark->like);
		mark->by_state = *at;
		*at = mark;
	}
	pthread_mutex_unlock(&marks->lock);
}

/* PR_SET_TIMERSLACK: 0 gives back what its creator had, which we take to be the command's. */
int64_t emu_mark_set_slack(struct emu_call *call, uint64_t slack)
{
	struct emu_task *task = call->task;

	task->slack = slack == call->emu->marks->first ? 0 : slack;
	emu_mark(call->emu, task);
	return 0;
}

int64_t emu_mark_tell_slack(struct emu_call *call)
{
	return (int64_t)(call->task->slack ? call->task->slack : call->emu->marks->first);
}
