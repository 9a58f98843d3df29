/* SPDX-License-Identifier: MIT */
/*
 * mempolicy_touched.h - what page-fault events have told, between mempolicy_rings.c, which takes
 * them out of the rings, and mempolicy_events.c, which says what they mean.
 */
#ifndef MC_SYSCALLS_MEMPOLICY_TOUCHED_H
#define MC_SYSCALLS_MEMPOLICY_TOUCHED_H

#include <linux/perf_event.h>
#include <pthread.h>
#include "emu/internal.h"
#include "emu/syscalls/mempolicy_events.h"

/* More CPUs than this make thread creation too dear: an inherited event each. */
enum { CPUS = 64, RING_PAGES = 512, RECORDS = 1 << 22, BIRTHS = 1 << 18, CHAINS = 4096 };

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

struct mp_touched { /* of one process */
	struct mp_touched *next;
	struct mp_events *events;
	pid_t tgid;
	struct touch *touch;
	size_t count, room;
	struct birth *birth;
	size_t nr_birth, room_birth, chain[CHAINS];
	struct birth last; /* of a thread that had ended, and what it was (a reference) */
	unsigned int last_node;
	struct pol *last_pol;
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

#define HUGE_KEY (1ULL << 63) /* of 2 MiB */

/* With events->lock held: takes what is in the rings. Where a key is, or may be put. One more
 * touch. Forgets the first `from` births and those before `since`. */
void mp_drain(struct mp_events *events);
struct touch *mp_touch_slot(struct touch *touch, size_t room, uint64_t key);
void mp_touch_note(struct mp_touched *t, uint64_t key, pid_t tid, uint64_t time);
void mp_keep_births(struct mp_touched *t, uint64_t since, size_t from);

/* The run's rings, made when first needed; under mp_state.lock. */
struct mp_events *mp_events_of(struct emu *emu, struct mp_state *state);
/* An event of `tid` on one CPU into that CPU's ring (-1: none). -1 with errno. */
int mp_open_event(uint64_t config, pid_t tid, unsigned int cpu, int ring);

#endif
