// SPDX-License-Identifier: MIT
/*
 * getcpu.c - run on the emulated machine by test_getcpu.py: getcpu by libc, which is answered
 * within the process from the third time on (src/emu/answers.c), must tell at all times what an
 * answered call would. Each subcommand makes what could leave a thread with another's answer, or
 * with an old one. The machine has 160 CPUs.
 */
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "getcpu.h"

_Atomic int failures;
static char *self_path;

static void repeat(void)
{
	int first = sched_getcpu();

	for (int i = 0; i < 1000; i++)
		CHECK(sched_getcpu() == first, "CPU %d, then %d", first, sched_getcpu());
	CHECK(raw() == first, "by the call itself %d, not %d", raw(), first);
}

/* Each change of mask is seen at once, and what is told then stays. */
static void masks(void)
{
	for (int i = 0; i < 160; i += 3) {
		pin(0, i);
		told(i);
	}
	for (int i = 0; i < 100; i++) {
		int here;

		pin2(0, i, i + 50);
		here = sched_getcpu();
		CHECK(here == i || here == i + 50, "%d, pinned to %d and %d", here, i, i + 50);
		told(here);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { MANY = 1000 };
static pthread_barrier_t all;

static void *one_of_many(void *arg)
{
	int cpu = (int)(intptr_t)arg % 160, here;

	if ((intptr_t)arg % 2)
		pin(0, cpu);
	pthread_barrier_wait(&all);
	here = sched_getcpu();
	CHECK(here == cpu || (intptr_t)arg % 2 == 0, "thread %d on %d", cpu, here);
	for (int i = 0; i < 20; i++)
		told(here);
	CHECK(raw() == here, "%d by the call, %d told", raw(), here);
	pthread_barrier_wait(&all);
	return NULL;
}

static void many(void)
{
	static pthread_t t[MANY];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&all, NULL, MANY);
	for (intptr_t i = 0; i < MANY; i++)
		if (pthread_create(&t[i], &small, one_of_many, (void *)i))
			exit(2);
	for (int i = 0; i < MANY; i++)
		pthread_join(t[i], NULL);
}

static void *pinned_thread(void *cpu)
{
	pin(0, (int)(intptr_t)cpu);
	told((int)(intptr_t)cpu);
	return (void *)pthread_self();
}

static void *plain_thread(void *cpu)
{
	told((int)(intptr_t)cpu);
	return (void *)pthread_self();
}

static void *run(void *(*fn)(void *), int arg)
{
	void *result = NULL;
	pthread_t t;

	if (pthread_create(&t, NULL, fn, (void *)(intptr_t)arg))
		exit(2);
	pthread_join(t, &result);
	return result;
}

/* A thread with the thread pointer of one that has ended. */
static void reuse(void)
{
	int same = 0;

	pin(0, 5);
	for (int i = 0; i < 50; i++) {
		void *old = run(pinned_thread, 20 + i);

		same += run(plain_thread, 5) == old;
		told(5);
	}
	CHECK(same > 0, "no thread pointer was used twice");
}

/* One that ended without a call. */
static void *killed(void *arg)
{
	pinned_thread(arg);
	syscall(SYS_getpgid, 0);
	return NULL;
}

static void reuse_killed(void)
{
	struct sock_filter kill_it[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, kill_it};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp: %d", errno);
	pin(0, 5);
	for (int i = 0; i < 5; i++) {
		run(killed, 20 + i);
		run(plain_thread, 5);
	}
}

/* ---- a neighbour's mask changes -------------------------------------------------------------- */

enum { CHANGES = 60 };
struct shared {
	_Atomic unsigned int epoch; /* odd: a change is under way */
	_Atomic int low;            /* the mask is this CPU and the 40th after it */
	_Atomic bool over;
	_Atomic int tid, seen, wrong;
};

static void *looper(void *arg)
{
	struct shared *s = arg;

	s->tid = (int)syscall(SYS_gettid);
	while (!s->over) {
		unsigned int before = s->epoch;
		int low = s->low, here = sched_getcpu();

		if (before % 2 || s->epoch != before)
			continue;
		s->seen++;
		if (here != low && here != low + 40) {
			s->wrong = here;
			CHECK(0, "on %d after a change to %d and %d had returned", here, low, low + 40);
			break;
		}
	}
	return NULL;
}

static void change_often(struct shared *s, int times)
{
	for (int i = 0; i < times && !s->wrong; i++) {
		int low = i * 7 % 100;

		s->epoch++;
		pin2(s->tid, low, low + 40);
		s->low = low;
		s->epoch++;
		/* It has looked at least once in every state. */
		for (int seen = s->seen; s->seen == seen && !s->wrong;)
			sched_yield();
	}
	s->over = true;
}

static struct shared *new_shared(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	s->epoch = 1;
	return s;
}

static void neighbour(void)
{
	struct shared *s = new_shared();
	pthread_t t;

	if (pthread_create(&t, NULL, looper, s))
		exit(2);
	while (!s->tid)
		sched_yield();
	pin2(s->tid, 0, 40);
	s->epoch++;
	change_often(s, CHANGES);
	pthread_join(t, NULL);
	/* The same by another process. */
	s = new_shared();
	s->tid = (int)syscall(SYS_gettid);
	if (!fork()) {
		pin2(s->tid, 0, 40);
		s->epoch++;
		change_often(s, CHANGES);
		_exit(failures != 0);
	}
	looper(s);
	reap();
}

/* ---- fork, vfork, clone ---------------------------------------------------------------------- */

static _Atomic bool go_on, ready;

static void *waiting_thread(void *cpu)
{
	pinned_thread(cpu);
	ready = true;
	while (!go_on)
		usleep(1000);
	return NULL;
}

static void tell(const int *ends)
{
	if (write(ends[1], "", 1) != 1)
		exit(2);
}

static void hear(const int *ends)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		exit(2);
}

static void forks(void)
{
	int ends[2], back[2], here;
	pthread_t t;
	char byte = 1;

	here = sched_getcpu();
	told(here);
	/* Not seen until it asks for its mask: its CPU stays. */
	if (!fork()) {
		told(here);
		CHECK(width() == 160, "of %d CPUs", width());
		told(here);
		_exit(failures != 0);
	}
	reap();
	/* The same for a grandchild whose parent has ended before it was seen. */
	if (pipe(ends) || pipe(back))
		exit(2);
	if (!fork()) {
		if (fork())
			_exit(0);
		hear(ends);
		told(here);
		CHECK(width() == 160, "of %d CPUs", width());
		told(here);
		pin(0, 33);
		told(33);
		byte = (char)failures;
		_exit(write(back[1], &byte, 1) != 1);
	}
	reap();
	tell(ends);
	CHECK(read(back[0], &byte, 1) == 1 && !byte, "the grandchild");
	/* A mask of its own, the parent's thereafter. */
	pin(0, 5);
	told(5);
	if (!fork()) {
		told(5);
		pin(0, 7);
		told(7);
		_exit(failures != 0);
	}
	reap();
	told(5);
	/* The parent's mask changes while the child has never been seen. */
	if (!fork()) {
		hear(ends);
		told(5);
		CHECK(width() == 1, "of %d CPUs", width());
		told(5);
		_exit(failures != 0);
	}
	pin(0, 9);
	told(9);
	tell(ends);
	reap();
	told(9);
	/* Threads of the child take the places of the parent's. */
	if (pthread_create(&t, NULL, waiting_thread, (void *)20))
		exit(2);
	while (!ready)
		sched_yield();
	if (!fork()) {
		for (int i = 0; i < 5; i++)
			run(plain_thread, 9);
		told(9);
		_exit(failures != 0);
	}
	reap();
	go_on = true;
	pthread_join(t, NULL);
}

static _Atomic int step;

static void *changes_leader(void *arg)
{
	(void)arg;
	while (step != 1)
		sched_yield();
	pin(getpid(), 11);
	step = 2;
	return NULL;
}

static void spawn(void)
{
	if (!vfork()) {
		execl(self_path, self_path, "repeat", (char *)NULL);
		_exit(9);
	}
	told(11);
	reap();
}

static void vforks(void)
{
	pthread_t t;

	pin(0, 5);
	told(5);
	if (!vfork()) {
		told(5);
		_exit(0);
	}
	reap();
	told(5);
	if (!vfork()) {
		told(5);
		pin(0, 8);
		told(8);
		_exit(0);
	}
	reap();
	told(5);
	/* The parent's mask changes meanwhile. */
	if (pthread_create(&t, NULL, changes_leader, NULL))
		exit(2);
	if (!vfork()) {
		told(5);
		step = 1;
		while (step != 2)
			sched_yield();
		told(5);
		_exit(0);
	}
	reap();
	pthread_join(t, NULL);
	told(11);
	for (int i = 0; i < 3; i++)
		spawn();
}

static int in_turn(void *arg)
{
	(void)arg;
	pin(0, 8);
	for (int i = 0; i < 50; i++) {
		while (step != 2 * i + 1)
			sched_yield();
		told(8);
		step = 2 * i + 2;
	}
	return 0;
}

static int alone(void *arg)
{
	pin(0, 8);
	told(8);
	step = 77;
	if (arg)
		_exit(0);
	syscall(SYS_exit, 0);
	return 0;
}

/* Processes in the same memory that run at once, a brother by vfork, and a thread, all with the
 * thread pointer of the creator. */
static void shares(const char *how)
{
	static char stack[65536] __attribute__((aligned(16)));
	char *top = stack + sizeof(stack);
	const int thread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES |
			   CLONE_SYSVSEM;

	pin(0, 5);
	told(5);
	if (!strcmp(how, "beside")) {
		if (clone(in_turn, top, CLONE_VM | SIGCHLD, NULL) < 0)
			exit(2);
		for (int i = 0; i < 50; i++) {
			told(5);
			step = 2 * i + 1;
			while (step != 2 * i + 2)
				sched_yield();
		}
		reap();
	} else if (!strcmp(how, "brother")) {
		if (clone(alone, top, CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, top) < 0)
			exit(2);
	} else {
		if (clone(alone, top, thread, NULL) < 0)
			exit(2);
		while (step != 77)
			told(5);
	}
	told(5);
}

/* ---- hot-plug -------------------------------------------------------------------------------- */

static void plug(int cpu, const char *how)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	f = fopen(path, "w");
	CHECK(f && fputs(how, f) >= 0 && !fclose(f), "%s: %s", path, strerror(errno));
}

static void plugs(void)
{
	int ends[2], back[2];

	pin2(0, 50, 90);
	for (int i = 0; i < 4; i++) {
		int here = sched_getcpu();

		told(here);
		if (pipe(ends) || pipe(back))
			exit(2);
		/* A child that has never been seen but for its copy. */
		if (!fork()) {
			told(here);
			tell(back);
			hear(ends);
			told(140 - here);
			_exit(failures != 0);
		}
		hear(back);
		plug(here, "0");
		told(140 - here);
		tell(ends);
		reap();
		plug(here, "1");
		told(140 - here);
		if (i == 2)
			told(140 - here);
		pin(0, here);
		told(here);
		pin2(0, 50, 90);
		told(here);
	}
	repeat();
}

/* ---- what a process does to itself ----------------------------------------------------------- */

static void dumpable(void)
{
	pin(0, 5);
	told(5);
	if (!fork()) {
		prctl(PR_SET_DUMPABLE, 0);
		told(5);
		pin(0, 6);
		told(6);
		_exit(failures != 0);
	}
	reap();
	prctl(PR_SET_DUMPABLE, 0);
	pin(0, 7);
	told(7);
	if (!fork()) {
		told(7);
		pin(0, 8);
		told(8);
		run(plain_thread, 8);
		_exit(failures != 0);
	}
	reap();
	run(pinned_thread, 9);
	run(plain_thread, 7);
}

static int before_signals;
static _Atomic int signals;

static void on_alarm(int sig)
{
	int here = sched_getcpu();

	(void)sig;
	CHECK(here == before_signals, "%d in a handler, not %d", here, before_signals);
	signals++;
}

static void handlers(void)
{
	struct itimerval every = {{0, 300}, {0, 300}};
	struct sigaction act;

	before_signals = sched_getcpu();
	memset(&act, 0, sizeof(act));
	act.sa_handler = on_alarm;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (signals < 200)
		CHECK(sched_getcpu() == before_signals, "moved");
	/* exit_group could be interrupted: docs/limits.md. */
	memset(&every, 0, sizeof(every));
	setitimer(ITIMER_REAL, &every, NULL);
}

static void again(void)
{
	char **argv = (char *[]){self_path, (char *)"again2", NULL};

	pin(0, 44);
	told(44);
	execv(self_path, argv);
	exit(2);
}

static void again2(void)
{
	told(44);
	CHECK(width() == 1, "of %d CPUs", width());
}

static void share_beside(void) { shares("beside"); }
/* The brother is this process's child then. */
static void share_brother(void)
{
	pin(0, 4);
	told(4);
	if (!fork()) {
		shares("brother");
		_exit(failures != 0);
	}
	reap();
	reap();
	told(4);
}

static void share_thread(void) { shares("thread"); }

/* Children that were seen in this memory and are gone: answers stay with the process. */
static void spawned(void)
{
	pin(0, 5);
	for (int i = 0; i < 3; i++) {
		if (!vfork()) {
			cpu_set_t set;

			syscall(SYS_sched_getaffinity, 0, sizeof(set), &set);
			_exit(0);
		}
		reap();
	}
	for (int i = 0; i < 1000; i++)
		if (sched_getcpu() != 5)
			failures++;
}

static const struct {
	const char *name;
	void (*fn)(void);
} subcommands[] = {
	{"repeat", repeat},
	{"masks", masks},
	{"many", many},
	{"reuse", reuse},
	{"reuse-killed", reuse_killed},
	{"neighbour", neighbour},
	{"forks", forks},
	{"vforks", vforks},
	{"share-beside", share_beside},
	{"share-brother", share_brother},
	{"share-thread", share_thread},
	{"plugs", plugs},
	{"dumpable", dumpable},
	{"handlers", handlers},
	{"spawned", spawned},
	{"again", again},
	{"again2", again2},
	{"pointers", getcpu_pointers},
	{"moved", getcpu_moved},
	{"covered", getcpu_covered},
};

int main(int argc, char **argv)
{
	self_path = argv[0];
	for (size_t i = 0; argc == 2 && i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (!strcmp(argv[1], subcommands[i].name)) {
			subcommands[i].fn();
			return failures != 0;
		}
	fputs("getcpu: unknown subcommand\n", stderr);
	return 2;
}
