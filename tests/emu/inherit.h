/* SPDX-License-Identifier: MIT */
/* inherit.h - between inherit.c and inherit_memory.c. */
#ifndef MC_TEST_INHERIT_H
#define MC_TEST_INHERIT_H

#include <sys/types.h>

enum { PAGE = 4096, DEFAULT = 0, BIND = 2, INTERLEAVE = 3, F_NODE = 1, F_ADDR = 2 };

extern const char *self;

int pin(pid_t tid, int cpu); /* 0 or an errno value; tid 0: the caller */
int only(pid_t tid);         /* the one CPU of a task; minus their number; -errno */
void set_policy(int mode, unsigned long nodes);
void has_policy(int mode, unsigned long nodes);
int node_of(const void *at);
void ended_well(pid_t pid);
void *in_thread(void *(*fn)(void *), void *arg); /* and waits for its end */
void *is_as_its_creator(void *cpu); /* its one CPU, and memory bound to that one's node */

/* inherit_memory.c */
void orphans(void);
void killed(void);
void heirs(void);
void unseen(void);
void images(void);
void next_image(const char *text);
void pages(void);

#endif
