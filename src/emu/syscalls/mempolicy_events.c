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
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/mempolicy_events.h"

/* More CPUs than this make thread creation too dear: an inherited event each. */
enum { CPUS = 64, RING_PAGES = 512, RECORDS = 1 << 22, BIRTHS = 1 << 20, CHAINS = 256 };

struct ring {
	int fd;
	struct perf_event_mmap_page *head;
	char *data;
	uint64_t size;
};

struct touch {
	uint64_t key, time; /* key 0: free */
	pid_t tid;
};

/* A thread and who made it. */
struct birth {
	pid_t tid, creator;
	uint64_t time;
	size_t next; /* of its chain, from 1; 0: none */
};

/* `tid` was on the node, with the policy, until `time`. */
struct until {
	pid_t tid;
	unsigned int node;
	struct pol *pol;
	uint64_t time;
};

struct mp_touched {
	struct mp_touched *next;
	struct mp_events *events;
	pid_t tgid;
	struct touch *touch;
	size_t count, room;
	struct birth *birth;
	size_t nr_birth, room_birth, chain[CHAINS];
	struct until *until; /* under the process's lock */
	size_t nr_until, room_until;
	int *fd;
	size_t nr_fd, room_fd;
};

struct mp_events {
	pthread_mutex_t lock;
	struct ring ring[CPUS];
	unsigned int nr_rings;
	struct mp_touched *touched;
	int error;
};

static const uint64_t HUGE_KEY = 1ULL << 63;

/* ---- what was touched: with events->lock held ------------------------------------------------ */

static struct touch *slot_of(struct touch *touch, size_t room, uint64_t key)
{
	size_t at = (size_t)((key * 0x9e3779b97f4a7c15) >> 20) & (room - 1);

	while (touch[at].key && touch[at].key != key)
		at = (at + 1) & (room - 1);
	return &touch[at];
}

static bool grow(struct mp_touched *t)
{
	size_t room = t->room ? 2 * t->room : 4096;
	struct touch *bigger = room <= 2 * RECORDS ? calloc(room, sizeof(*bigger)) : NULL;

	if (!bigger)
		return false;
	for (size_t i = 0; i < t->room; i++)
		if (t->touch[i].key)
			*slot_of(bigger, room, t->touch[i].key) = t->touch[i];
	free(t->touch);
	t->touch = bigger;
	t->room = room;
	return true;
}

/* The last one counts: a page that was given back and filled again is who filled it again's. */
static void note(struct mp_touched *t, uint64_t key, pid_t tid, uint64_t time)
{
	struct touch *slot;

	if (4 * t->count >= 3 * t->room && !grow(t))
		return;
	slot = slot_of(t->touch, t->room, key);
	if (slot->key && slot->time > time)
		return;
	t->count += !slot->key;
	*slot = (struct touch){key, time, tid};
}

struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time, addr;
};

static void take(struct mp_events *events, const struct sample *s, unsigned int shift)
{
	struct mp_touched *t = events->touched;

	while (t && t->tgid != (pid_t)s->pid)
		t = t->next;
	if (!t)
		return;
	note(t, s->addr >> shift, (pid_t)s->tid, s->time);
	note(t, HUGE_KEY | s->addr >> 21, (pid_t)s->tid, s->time);
}

/* PERF_RECORD_FORK */
struct fork_record {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, creator;
	uint64_t time;
};

static void link_birth(struct mp_touched *t, size_t i)
{
	size_t *head = &t->chain[(unsigned int)t->birth[i].tid % CHAINS];

	t->birth[i].next = *head;
	*head = i + 1;
}

static void take_birth(struct mp_events *events, const struct fork_record *f)
{
	struct mp_touched *t = events->touched;

	while (t && t->tgid != (pid_t)f->pid)
		t = t->next;
	if (!t || f->pid != f->parent_pid || t->nr_birth >= BIRTHS)
		return;
	if (t->nr_birth == t->room_birth) {
		size_t room = 2 * t->room_birth + 64;
		struct birth *bigger = realloc(t->birth, room * sizeof(*bigger));

		if (!bigger)
			return;
		t->birth = bigger;
		t->room_birth = room;
	}
	t->birth[t->nr_birth++] = (struct birth){(pid_t)f->tid, (pid_t)f->creator, f->time, 0};
	link_birth(t, t->nr_birth - 1);
}

static void copy_out(const struct ring *ring, void *to, uint64_t at, size_t len)
{
	size_t from = (size_t)(at & (ring->size - 1)), first = (size_t)ring->size - from;

	if (first > len)
		first = len;
	memcpy(to, ring->data + from, first);
	memcpy((char *)to + first, ring->data, len - first);
}

static void drain(struct mp_events *events)
{
	unsigned int shift = (unsigned int)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));

	for (unsigned int i = 0; i < events->nr_rings; i++) {
		struct ring *ring = &events->ring[i];
		uint64_t tail = ring->head->data_tail,
			 head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);

		while (tail < head) {
			struct sample s;

			copy_out(ring, &s.header, tail, sizeof(s.header));
			if (s.header.size < sizeof(s.header))
				break; /* never from a kernel */
			if (s.header.type == PERF_RECORD_SAMPLE && s.header.size == sizeof(s)) {
				copy_out(ring, &s, tail, sizeof(s));
				take(events, &s, shift);
			} else if (s.header.type == PERF_RECORD_FORK &&
				   s.header.size == sizeof(struct fork_record)) {
				struct fork_record f;

				copy_out(ring, &f, tail, sizeof(f));
				take_birth(events, &f);
			}
			tail += s.header.size;
		}
		__atomic_store_n(&ring->head->data_tail, head, __ATOMIC_RELEASE);
	}
}

static void *drainer(void *arg)
{
	struct mp_events *events = arg;
	struct pollfd fd[CPUS];

	for (unsigned int i = 0; i < events->nr_rings; i++)
		fd[i] = (struct pollfd){.fd = events->ring[i].fd, .events = POLLIN};
	while (poll(fd, events->nr_rings, -1) >= 0 || errno == EINTR) {
		pthread_mutex_lock(&events->lock);
		drain(events);
		pthread_mutex_unlock(&events->lock);
	}
	return NULL;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static int open_event(uint64_t config, pid_t tid, unsigned int cpu, int ring)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
	};
	int fd;

	if (config == PERF_COUNT_SW_PAGE_FAULTS) {
		attr.sample_period = 1;
		attr.inherit = 1;
		attr.inherit_thread = 1;
		attr.task = 1;
		attr.remove_on_exec = 1;
	} else {
		attr.wakeup_watermark = (uint32_t)(RING_PAGES / 2 * sysconf(_SC_PAGESIZE));
	}
	/* The kernel's own faults (read(2) into new memory) only the privileged are told. */
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		attr.exclude_kernel = 1;
		attr.exclude_hv = 1;
		fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd >= 0 && ring >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring) < 0) {
		int err = errno;

		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

/* As large as the limit of locked memory allows. */
static int open_ring(struct ring *ring, unsigned int cpu)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = RING_PAGES;
	void *at = MAP_FAILED;

	ring->fd = open_event(PERF_COUNT_SW_DUMMY, 0, cpu, -1);
	if (ring->fd < 0)
		return -errno;
	for (; at == MAP_FAILED && pages >= 8; pages /= 2)
		at = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			  0);
	if (at == MAP_FAILED) {
		int err = errno;

		close(ring->fd);
		return -err;
	}
	ring->head = at;
	ring->data = (char *)at + page;
	ring->size = 2 * pages * page;
	return 0;
}

static void close_rings(struct mp_events *events)
{
	while (events->nr_rings) {
		struct ring *ring = &events->ring[--events->nr_rings];

		munmap(ring->head, (size_t)ring->size + (size_t)sysconf(_SC_PAGESIZE));
		close(ring->fd);
	}
}

/* The run's rings, made when first needed; under mp_state.lock. */
static struct mp_events *events_of(struct emu *emu, struct mp_state *state)
{
	struct mp_events *events = state->events;
	pthread_t thread;

	if (events)
		return events;
	events = state->events = calloc(1, sizeof(*events));
	if (!events)
		return NULL;
	pthread_mutex_init(&events->lock, NULL);
	events->error = emu->nr_real > CPUS ? -E2BIG : 0;
	for (unsigned int i = 0; i < emu->nr_real && !events->error; i++) {
		events->error = open_ring(&events->ring[i], emu->real[i]);
		events->nr_rings += !events->error;
	}
	if (!events->error)
		events->error = -pthread_create(&thread, NULL, drainer, events);
	if (events->error)
		close_rings(events);
	else
		pthread_detach(thread);
	return events;
}

int mp_events_possible(struct emu *emu)
{
	int fd;

	if (emu->opt->first_touch_faults)
		return -ECANCELED;
	if (emu->nr_real > CPUS)
		return -E2BIG;
	fd = open_event(PERF_COUNT_SW_PAGE_FAULTS, 0, emu->real[0], -1);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

bool emu_policy_sees(struct emu *emu)
{
	return !mp_events_possible(emu);
}

void emu_policy_tier(struct emu *emu, char *text, size_t size)
{
	int rc = mp_events_possible(emu);

	if (!rc)
		snprintf(text, size, "by page-fault events once threads part");
	else
		snprintf(text, size, "by counting faults (%s)",
			 rc == -ECANCELED ? "--first-touch=faults"
			 : rc == -E2BIG   ? "events on so many CPUs are too dear"
					  : strerror(-rc));
}

/* ---- a process ------------------------------------------------------------------------------- */

uint64_t mp_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool mp_events_watching(const struct emu_process *process)
{
	return process->mm && process->mm->touched;
}

bool mp_events_changes(const struct emu_process *process)
{
	return mp_events_watching(process) && process->mm->touched->nr_until;
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
		int fd = open_event(PERF_COUNT_SW_PAGE_FAULTS, tid, emu->real[i],
				    events->ring[i].fd);

		if (fd < 0)
			return errno == ESRCH; /* it has ended */
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
	events = events_of(emu, state);
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
	free(t->touch);
	free(t);
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
		.time = mp_now(),
	};
}

/* What the thread was at that time: the first change after it tells, else what it is now. */
static bool state_of(struct emu *emu, struct emu_process *process, const struct touch *touch,
		     struct mp_who *who)
{
	struct mp_touched *t = process->mm->touched;

	for (size_t i = 0; i < t->nr_until; i++) {
		if (t->until[i].tid != touch->tid || t->until[i].time < touch->time)
			continue;
		*who = (struct mp_who){t->until[i].node, t->until[i].pol};
		return true;
	}
	for (struct emu_task *task = process->tasks; task; task = task->next) {
		if (task->tid != touch->tid)
			continue;
		*who = (struct mp_who){mp_task_node(emu, task),
				       task->policy ? task->policy->pol : NULL};
		return true;
	}
	return false;
}

/* Who made the thread that had this tid then, and when; false: not known. */
static bool creator_of(struct mp_touched *t, struct touch *touch)
{
	const struct birth *last = NULL;

	pthread_mutex_lock(&t->events->lock);
	for (size_t i = t->chain[(unsigned int)touch->tid % CHAINS]; i; i = t->birth[i - 1].next) {
		const struct birth *b = &t->birth[i - 1];

		if (b->tid == touch->tid && b->time <= touch->time &&
		    (!last || b->time > last->time))
			last = b;
	}
	if (last) {
		touch->tid = last->creator;
		touch->time = last->time;
	}
	pthread_mutex_unlock(&t->events->lock);
	return last;
}

/* Of a thread that is not known: it is there, or its creator was what it was. */
static bool who_was(struct emu *emu, struct emu_process *process, const struct touch *touch,
		    struct mp_who *who)
{
	enum { GENERATIONS = 16 };
	struct touch at = *touch;

	for (int i = 0; i < GENERATIONS; i++) {
		if (state_of(emu, process, &at, who))
			return true;
		if (emu_thread_adopt(emu, process, at.tid))
			return state_of(emu, process, &at, who);
		if (!creator_of(process->mm->touched, &at))
			break;
	}
	return false;
}

static bool find(const struct mp_touched *t, uint64_t key, struct touch *touch)
{
	if (!t->room)
		return false;
	*touch = *slot_of(t->touch, t->room, key);
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
		drain(t->events);
		found = find(t, page, &touch) ||
			(huge && find(t, HUGE_KEY | page >> (21 - shift), &touch));
	}
	pthread_mutex_unlock(&t->events->lock);
	return found && who_was(emu, process, &touch, who);
}

/* Those that have ended since touch nothing any more. */
static void drop_births(struct mp_touched *t, uint64_t since)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr_birth; i++)
		if (t->birth[i].time >= since || !syscall(SYS_tgkill, t->tgid, t->birth[i].tid, 0))
			t->birth[kept++] = t->birth[i];
	t->nr_birth = kept;
	memset(t->chain, 0, sizeof(t->chain));
	for (size_t i = 0; i < kept; i++)
		link_birth(t, i);
}

void mp_events_settled(struct emu_process *process, uint64_t since)
{
	struct mp_touched *t = process->mm ? process->mm->touched : NULL;
	struct touch *old;
	size_t room, kept = 0;

	if (!t)
		return;
	pthread_mutex_lock(&t->events->lock);
	old = t->touch;
	room = t->room;
	t->touch = NULL;
	t->count = t->room = 0;
	for (size_t i = 0; i < room; i++)
		if (old[i].key && old[i].time >= since)
			note(t, old[i].key, old[i].tid, old[i].time);
	drop_births(t, since);
	pthread_mutex_unlock(&t->events->lock);
	free(old);
	for (size_t i = 0; i < t->nr_until; i++) {
		if (t->until[i].time >= since)
			t->until[kept++] = t->until[i];
		else
			pol_put(t->until[i].pol);
	}
	t->nr_until = kept;
}
