// SPDX-License-Identifier: MIT
/*
 * processes.c - all processes of the tree at once: what is done to each, and how their ends are
 * seen, by a descriptor or, when none could be held, by looking. The table itself is tasks.c's.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/tasks.h"

/* When the process began, in ticks; 0: there is none, or it has ended. */
uint64_t emu_process_started(pid_t tgid)
{
	char text[1024];

	return emu_proc_read(text, sizeof(text), "/proc/%d/stat", tgid) < 0 ? 0
									    : emu_proc_begun(text);
}

/* With the table's lock held. False: there is no such process (any more). */
bool emu_watch_end(struct emu *emu, struct emu_process *process)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)process->tgid};

	if (emu->nr_watched < emu->max_watched)
		process->pidfd = (int)syscall(SYS_pidfd_open, process->tgid, 0);
	if (process->pidfd >= (int)emu->max_held ||
	    (process->pidfd >= 0 &&
	     epoll_ctl(emu->epoll, EPOLL_CTL_ADD, process->pidfd, &ev) < 0)) {
		close(process->pidfd);
		process->pidfd = -1;
	}
	if (process->pidfd >= 0) {
		emu->nr_watched++;
		return true;
	}
	/* It was told by a list of children, and may have ended since. Its entry would be a later
	 * one's of that tgid. */
	if (emu_proc_field(process->tgid, "Tgid:") != process->tgid)
		return false;
	process->started = emu_process_started(process->tgid);
	emu->nr_unwatched++;
	return true;
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
		over = !all[i]->dead && all[i]->pidfd < 0 &&
		       emu_process_started(tgid) != all[i]->started;
		emu_process_drop(emu, all[i]);
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
		emu_process_drop(emu, all[i]);
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
