// SPDX-License-Identifier: MIT
/*
 * mempolicy_events.c - page-fault events: which thread touched which page.
 *
 * The software event is raised before the fault is handled, so that a page that is there has its
 * record in a ring already. One ring for each host CPU of the run, owned by a dummy event; the
 * events of watched threads are opened for each of those CPUs (the kernel lets inherited events
 * write into rings of one CPU only), and new threads inherit them. A thread of ours takes what is
 * in rings that are half full, whoever asks takes the rest. Records carry the time, and so does
 * each change of a thread's node or policy: nothing is settled when a thread pins itself.
 * Beginnings of threads are records, too: of one that has ended and was never known, its creator
 * tells what it was.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy_touched.h"

/* ---- a process ------------------------------------------------------------------------------- */

bool mp_events_watching(const struct emu_process *process)
{
	return process->mm && process->mm->touched;
}

bool mp_events_changes(const struct emu_process *process)
{
	return mp_events_watching(process) && process->mm->touched->nr_until;
}

/* Once more at each further so many, if nothing could be settled. */
bool mp_events_many(const struct emu_process *process)
{
	enum { MANY = 1 << 14 };
	const struct mp_touched *t = process->mm ? process->mm->touched : NULL;

	return t && t->nr_until && t->nr_until % MANY == 0;
}

static void close_fds(struct mp_touched *t)
{
	for (size_t i = 0; i < t->nr_fd; i++)
		close(t->fd[i]);
	free(t->fd);
	t->fd = NULL;
	t->nr_fd = t->room_fd = 0;
}

/* Events on one thread for every CPU. */
static bool watch_thread(struct emu *emu, struct mp_touched *t, pid_t tid)
{
	struct mp_events *events = t->events;

	if (t->nr_fd + events->nr_rings > t->room_fd) {
		size_t room = 2 * t->room_fd + events->nr_rings;
		int *bigger = realloc(t->fd, room * sizeof(*bigger));

		if (!bigger)
			return false;
		t->fd = bigger;
		t->room_fd = room;
	}
	for (unsigned int i = 0; i < events->nr_rings; i++) {
		int fd = mp_open_event(PERF_COUNT_SW_PAGE_FAULTS, tid, emu->real[i],
				       events->ring[i].fd);

		if (fd < 0)
			return errno == ESRCH; /* it has ended */
		if ((unsigned int)fd >= emu->max_held) {
			close(fd);
			return false;
		}
		t->fd[t->nr_fd++] = fd;
	}
	return true;
}

/* All threads that exist; those made meanwhile by one that is watched already inherit, those of
 * others are found by looking again. */
static bool watch_threads(struct emu *emu, struct mp_touched *t)
{
	pid_t *seen = NULL;
	size_t nr = 0, room = 0, before;
	bool good = true;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/task", t->tgid);
	do {
		DIR *dir = opendir(path);
		struct dirent *e;

		before = nr;
		while (dir && good && (e = readdir(dir))) {
			pid_t tid = (pid_t)atoi(e->d_name);
			size_t i = 0;

			while (i < nr && seen[i] != tid)
				i++;
			if (tid <= 0 || i < nr)
				continue;
			if (nr == room) {
				pid_t *more = realloc(seen, (room = 2 * room + 64) * sizeof(*seen));

				good = more != NULL;
				if (!good)
					break;
				seen = more;
			}
			seen[nr++] = tid;
			good = watch_thread(emu, t, tid);
		}
		if (dir)
			closedir(dir);
	} while (good && nr > before);
	free(seen);
	return good && nr;
}

bool mp_events_watch(struct emu *emu, struct emu_process *process)
{
	struct mp_state *state = mp_state(emu);
	struct emu_mm *mm = mp_mm(process);
	struct mp_events *events;
	struct mp_touched *t;

	if (!state || !mm || emu->opt->first_touch_faults)
		return false;
	if (mm->touched)
		return true;
	pthread_mutex_lock(&state->lock);
	events = mp_events_of(emu, state);
	pthread_mutex_unlock(&state->lock);
	if (!events || events->error || mm->unwatched)
		return false;
	t = calloc(1, sizeof(*t));
	if (!t)
		return false;
	t->events = events;
	t->tgid = process->tgid;
	pthread_mutex_lock(&events->lock);
	t->next = events->touched;
	events->touched = t;
	pthread_mutex_unlock(&events->lock);
	mm->touched = t;
	if (watch_threads(emu, t))
		return true;
	mp_events_end(mm);
	mm->unwatched = true;
	return false;
}

void mp_events_end(struct emu_mm *mm)
{
	struct mp_touched *t = mm->touched, **at;

	if (!t)
		return;
	pthread_mutex_lock(&t->events->lock);
	for (at = &t->events->touched; *at != t;)
		at = &(*at)->next;
	*at = t->next;
	pthread_mutex_unlock(&t->events->lock);
	mm->touched = NULL;
	close_fds(t);
	for (size_t i = 0; i < t->nr_until; i++)
		pol_put(t->until[i].pol);
	free(t->until);
	free(t->birth);
	pol_put(t->last_pol);
	free(t->touch);
	free(t);
}

/* The last beginning of a thread of this tid up to the time, and when the next one began (none:
 * UINT64_MAX); creator 0: none is known. */
static struct birth born(struct mp_touched *t, const struct touch *at, bool again, uint64_t *next)
{
	struct birth last = {0};

	*next = UINT64_MAX;
	pthread_mutex_lock(&t->events->lock);
	if (again) /* the rings were emptied one after the other */
		mp_drain(t->events);
	for (size_t i = t->chain[(unsigned int)at->tid % CHAINS]; i; i = t->birth[i - 1].next) {
		const struct birth *b = &t->birth[i - 1];

		if (b->tid != at->tid)
			continue;
		if (b->time <= at->time && (!last.creator || b->time > last.time))
			last = *b;
		if (b->time > at->time && b->time < *next)
			*next = b->time;
	}
	pthread_mutex_unlock(&t->events->lock);
	return last;
}

/* Now; of a thread that has ended unseen: before another one had its tid. */
static uint64_t last_moment(const struct emu *emu, struct mp_touched *t,
			    const struct emu_task *task)
{
	const struct touch seen = {.tid = task->tid, .time = task->seen};
	uint64_t next;

	if (!emu->marks || task->tid == task->process->tgid)
		return emu_now();
	born(t, &seen, false, &next);
	return next == UINT64_MAX ? emu_now() : next - 1;
}

void mp_events_until(struct emu *emu, struct emu_task *task)
{
	struct mp_touched *t = task->process->mm ? task->process->mm->touched : NULL;

	if (!t)
		return;
	if (t->nr_until == t->room_until) {
		size_t room = 2 * t->room_until + 64;
		struct until *bigger = realloc(t->until, room * sizeof(*bigger));

		if (!bigger)
			return;
		t->until = bigger;
		t->room_until = room;
	}
	t->until[t->nr_until++] = (struct until){
		.tid = task->tid,
		.node = mp_task_node(emu, task),
		.pol = pol_get(task->policy ? task->policy->pol : NULL),
		.time = last_moment(emu, t, task),
	};
}

/* What the thread was at that time: the first change after it tells, else what it is now; `next`:
 * from when on another one has its tid. */
static bool state_of(struct emu *emu, struct emu_process *process, const struct touch *touch,
		     uint64_t next, struct mp_who *who)
{
	struct mp_touched *t = process->mm->touched;

	for (size_t i = 0; i < t->nr_until; i++) {
		if (t->until[i].tid != touch->tid || t->until[i].time < touch->time)
			continue;
		if (t->until[i].time >= next)
			return false;
		*who = (struct mp_who){t->until[i].node, t->until[i].pol};
		return true;
	}
	for (struct emu_task *task = process->tasks; task && next == UINT64_MAX;
	     task = task->next) {
		if (task->tid != touch->tid)
			continue;
		*who = (struct mp_who){mp_task_node(emu, task),
				       task->policy ? task->policy->pol : NULL};
		return true;
	}
	return false;
}

/* The thread has ended, and was never known: it is nothing else any more. */
static void remember(struct mp_touched *t, const struct birth *of, struct mp_who who)
{
	struct pol *old = t->last_pol;

	t->last = *of;
	t->last_node = who.node;
	t->last_pol = pol_get((struct pol *)who.pol); /* const for who looks only */
	pol_put(old);
}

/* Of a thread that is not known: it is there, or its creator was what it was. */
static bool who_was(struct emu *emu, struct emu_process *process, const struct touch *touch,
		    struct mp_who *who)
{
	enum { GENERATIONS = 16 };
	struct mp_touched *t = process->mm->touched;
	struct birth first = {0}, b;
	struct touch at = *touch;
	uint64_t next;

	for (int i = 0; i < GENERATIONS; i++) {
		b = born(t, &at, false, &next);
		if (b.creator && b.tid == t->last.tid && b.time == t->last.time) {
			*who = (struct mp_who){t->last_node, t->last_pol};
			return true;
		}
		if (!i)
			first = b;
		if (state_of(emu, process, &at, next, who)) {
			if (i)
				remember(t, &first, *who);
			return true;
		}
		if (next == UINT64_MAX && emu_thread_adopt(emu, process, at.tid))
			return state_of(emu, process, &at, next, who);
		if (!b.creator)
			b = born(t, &at, true, &next);
		if (!b.creator)
			break;
		if (!i)
			first = b;
		at.tid = b.creator;
		at.time = b.time;
	}
	return false;
}

static bool find(const struct mp_touched *t, uint64_t key, struct touch *touch)
{
	if (!t->room)
		return false;
	*touch = *mp_touch_slot(t->touch, t->room, key);
	return touch->key != 0;
}

bool mp_events_who(struct emu *emu, struct emu_process *process, uint64_t page, bool huge,
		   struct mp_who *who)
{
	struct mp_touched *t = process->mm ? process->mm->touched : NULL;
	unsigned int shift = (unsigned int)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	struct touch touch;
	bool found;

	if (!t)
		return false;
	pthread_mutex_lock(&t->events->lock);
	found = find(t, page, &touch);
	if (!found) { /* there since the rings were last emptied */
		mp_drain(t->events);
		found = find(t, page, &touch) ||
			(huge && find(t, HUGE_KEY | page >> (21 - shift), &touch));
	}
	pthread_mutex_unlock(&t->events->lock);
	return found && who_was(emu, process, &touch, who);
}

void mp_events_settled(struct emu *emu, struct emu_process *process, uint64_t since)
{
	struct mp_touched *t = process->mm ? process->mm->touched : NULL;
	struct touch *old;
	size_t room, any, kept = 0;

	if (!t)
		return;
	pthread_mutex_lock(&t->events->lock);
	old = t->touch;
	room = t->room;
	t->touch = NULL;
	t->count = t->room = 0;
	for (size_t i = 0; i < room; i++)
		if (old[i].key && old[i].time >= since)
			mp_touch_note(t, old[i].key, old[i].tid, old[i].time);
	any = t->nr_birth;
	mp_keep_births(t, since, 0);
	pthread_mutex_unlock(&t->events->lock);
	free(old);
	for (size_t i = 0; i < t->nr_until; i++) {
		if (t->until[i].time >= since)
			t->until[kept++] = t->until[i];
		else
			pol_put(t->until[i].pol);
	}
	t->nr_until = kept;
	remember(t, &(struct birth){0}, (struct mp_who){0, NULL});
	/* From here on they tell for themselves. */
	if (any)
		emu_threads_adopt(emu, process);
}
