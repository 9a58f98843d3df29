// SPDX-License-Identifier: MIT
/*
 * mempolicy_rings.c - the rings that page-fault events are written to, and what is taken out of
 * them: who touched which page last, and which threads began (mempolicy_events.c). One ring for
 * each host CPU of the run; a thread of ours empties those that are half full.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy_touched.h"

/* ---- what was touched: with events->lock held ------------------------------------------------ */

struct touch *mp_touch_slot(struct touch *touch, size_t room, uint64_t key)
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
			*mp_touch_slot(bigger, room, t->touch[i].key) = t->touch[i];
	free(t->touch);
	t->touch = bigger;
	t->room = room;
	return true;
}

/* The last one counts: a page that was given back and filled again is who filled it again's. */
void mp_touch_note(struct mp_touched *t, uint64_t key, pid_t tid, uint64_t time)
{
	struct touch *slot;

	if (4 * t->count >= 3 * t->room && !grow(t))
		return;
	slot = mp_touch_slot(t->touch, t->room, key);
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
	mp_touch_note(t, s->addr >> shift, (pid_t)s->tid, s->time);
	mp_touch_note(t, HUGE_KEY | s->addr >> 21, (pid_t)s->tid, s->time);
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

void mp_keep_births(struct mp_touched *t, uint64_t since, size_t from)
{
	size_t kept = 0;

	for (size_t i = from; i < t->nr_birth; i++)
		if (t->birth[i].time >= since)
			t->birth[kept++] = t->birth[i];
	t->nr_birth = kept;
	memset(t->chain, 0, sizeof(t->chain));
	for (size_t i = 0; i < kept; i++)
		link_birth(t, i);
}

static void take_birth(struct mp_events *events, const struct fork_record *f)
{
	struct mp_touched *t = events->touched;

	while (t && t->tgid != (pid_t)f->pid)
		t = t->next;
	if (!t || f->pid != f->parent_pid)
		return;
	if (t->nr_birth == BIRTHS) /* nobody asks: the oldest go */
		mp_keep_births(t, 0, BIRTHS / 2);
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

void mp_drain(struct mp_events *events)
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
		mp_drain(events);
		pthread_mutex_unlock(&events->lock);
	}
	return NULL;
}

/* ---- rings ----------------------------------------------------------------------------------- */

int mp_open_event(uint64_t config, pid_t tid, unsigned int cpu, int ring)
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

	ring->fd = mp_open_event(PERF_COUNT_SW_DUMMY, 0, cpu, -1);
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
struct mp_events *mp_events_of(struct emu *emu, struct mp_state *state)
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
	fd = mp_open_event(PERF_COUNT_SW_PAGE_FAULTS, 0, emu->real[0], -1);
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
