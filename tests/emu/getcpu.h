/* SPDX-License-Identifier: MIT */
/* getcpu.h - shared by getcpu.c and getcpu_vdso.c: what they check with. */
#ifndef GETCPU_H
#define GETCPU_H

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern _Atomic int failures;

#define CHECK(cond, ...)                                             \
	do {                                                         \
		if (!(cond) && failures++ < 20) {                    \
			fprintf(stderr, "line %d: ", __LINE__);      \
			fprintf(stderr, __VA_ARGS__);                \
			fputc('\n', stderr);                         \
		}                                                    \
	} while (0)

/* By libc, several times: by calls, and from the table. */
#define told(cpu)                                                                  \
	do {                                                                       \
		for (int told_ = 0; told_ < 5; told_++) {                          \
			int here_ = sched_getcpu();                                \
			CHECK(here_ == (cpu), "on %d, not %d", here_, (cpu));      \
		}                                                                  \
	} while (0)

static inline int raw(void)
{
	unsigned int cpu = 9999;

	syscall(SYS_getcpu, &cpu, NULL, NULL);
	return (int)cpu;
}

static inline void pin2(int tid, int a, int b)
{
	unsigned long mask[3] = {0, 0, 0};

	mask[a / 64] |= 1UL << a % 64;
	mask[b / 64] |= 1UL << b % 64;
	CHECK(!syscall(SYS_sched_setaffinity, tid, sizeof(mask), mask), "pinning to %d, %d", a, b);
}

static inline void pin(int tid, int cpu)
{
	pin2(tid, cpu, cpu);
}

static inline int width(void)
{
	unsigned long mask[3];
	int n = 0;

	if (syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) != sizeof(mask))
		return -1;
	for (int i = 0; i < 3; i++)
		n += __builtin_popcountl(mask[i]);
	return n;
}

/* A child, which must end well. */
static inline void reap(void)
{
	int status = -1;

	CHECK(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status), "a child: %#x", status);
}

/* getcpu_vdso.c: by the vDSO's function itself. */
void getcpu_pointers(void);
void getcpu_moved(void);
void getcpu_covered(void);

#endif
