// SPDX-License-Identifier: MIT
/*
 * inherit.c - run inside by test_inherit.py: what threads and processes take from who creates them,
 * whether or not anybody sees their beginnings and ends. inherit WHAT; the machine has 64 CPUs and
 * 4 nodes, 16 CPUs each.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "inherit.h"
#include "support/check.h"

extern char **environ;
const char *self;

int pin(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof(set), &set) ? errno : 0;
}

/* The one CPU of a task, -1: it has others. */
int only(pid_t tid)
{
	cpu_set_t set;

	if (sched_getaffinity(tid, sizeof(set), &set))
		return -errno;
	for (int i = 0; i < 64; i++)
		if (CPU_ISSET(i, &set))
			return CPU_COUNT(&set) == 1 ? i : -CPU_COUNT(&set);
	return 0;
}

void set_policy(int mode, unsigned long nodes)
{
	CHECK(!syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL, nodes ? 65UL : 0UL),
	      "errno %d", errno);
}

void has_policy(int mode, unsigned long nodes)
{
	unsigned long got = 0;
	int is = -1;

	CHECK(!syscall(SYS_get_mempolicy, &is, &got, 65UL, NULL, 0), "errno %d", errno);
	CHECK(is == mode && got == nodes, "mode %d of nodes %#lx, not %d of %#lx", is, got, mode,
	      nodes);
}

int node_of(const void *at)
{
	int node = -1;

	CHECK(!syscall(SYS_get_mempolicy, &node, NULL, 0UL, at, F_NODE | F_ADDR), "errno %d",
	      errno);
	return node;
}

void ended_well(pid_t pid)
{
	int status = -1;

	CHECK(pid && waitpid(pid, &status, 0) > 0, "errno %d", errno);
	CHECK(status == 0, "a child ended with %#x", (unsigned int)status);
}

void *in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	void *end;

	CHECK(!pthread_create(&t, NULL, fn, arg), "no thread");
	pthread_join(t, &end);
	return end;
}

/* ---- masks and policies ---------------------------------------------------------------------- */

void *is_as_its_creator(void *arg)
{
	int cpu = (int)(long)arg;

	CHECK(only(0) == cpu, "%d instead of CPU %d", only(0), cpu);
	has_policy(BIND, 1UL << cpu / 16);
	return arg;
}

static void *has_children(void *arg)
{
	static char name[] = "is";
	char text[16];
	char *argv[] = {(char *)self, name, text, NULL};
	struct clone_args args = {.exit_signal = SIGCHLD};
	pid_t pid;

	snprintf(text, sizeof(text), "%ld", (long)arg);
	in_thread(is_as_its_creator, arg);
	pid = fork();
	if (!pid) {
		in_thread(is_as_its_creator, arg);
		is_as_its_creator(arg);
		_exit(0);
	}
	ended_well(pid);
	CHECK(!posix_spawn(&pid, self, NULL, NULL, argv, environ), "no process");
	ended_well(pid);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		is_as_its_creator(arg);
		_exit(0);
	}
	ended_well(pid);
	pid = vfork();
	if (!pid) {
		execv(self, argv);
		_exit(9);
	}
	ended_well(pid);
	return arg;
}

static void *differs(void *arg)
{
	int cpu = (int)(long)arg;

	CHECK(!pin(0, cpu), "CPU %d", cpu);
	set_policy(BIND, 1UL << cpu / 16);
	has_children(arg);
	in_thread(has_children, arg); /* of one that never changed anything itself */
	return arg;
}

static void creators(void)
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, differs, (void *)(16 * i + 3)), "no thread");
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(only(0) == -64, "the first thread has %d", only(0));
	has_policy(DEFAULT, 0);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void *tell_tid(void *arg)
{
	pin(0, 9);
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	return arg;
}

static void ends(void)
{
	for (int i = 0; i < 50; i++) {
		pid_t tid;
		int rc;

		in_thread(tell_tid, &tid);
		/* The kernel wakes who joins before it takes the thread out of its tables. */
		for (int k = 0; k < 1000 && !syscall(SYS_tgkill, getpid(), tid, 0); k++)
			usleep(100);
		rc = only(tid);
		CHECK(rc == -ESRCH, "a thread that has ended has %d", rc);
		rc = pin(tid, 3);
		CHECK(rc == ESRCH, "a thread that has ended can be pinned: %d", rc);
	}
	CHECK(only(0) == -64, "the first thread has %d", only(0));
}

/* The same tid again, by a thread that nobody pinned. */
#ifdef __x86_64__
static volatile int at_end;

static int bare_thread(void *arg)
{
	*(int *)arg = only(0);
	at_end = 1;
	return 0;
}

/* The child has a stack of its own: it must not return from a function of ours. */
static long bare_clone(const struct clone_args *args, int *got)
{
	register void *fn __asm__("r8") = (void *)bare_thread;
	register void *to __asm__("r9") = got;
	long rc;

	__asm__ volatile("syscall\n\ttest %%rax,%%rax\n\tjnz 1f\n\txor %%ebp,%%ebp\n\t"
			 "mov %%r9,%%rdi\n\tcall *%%r8\n\tmov $60,%%eax\n\txor %%edi,%%edi\n\t"
			 "syscall\n1:"
			 : "=a"(rc)
			 : "a"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(fn), "r"(to)
			 : "rcx", "r11", "rdx", "r10", "memory");
	return rc;
}

static void reuse(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t tid;
	int got = 0;
	struct clone_args args = {.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
					   CLONE_THREAD | CLONE_SYSVSEM,
				  .stack = (uintptr_t)stack,
				  .stack_size = sizeof(stack),
				  .set_tid = (uintptr_t)&tid,
				  .set_tid_size = 1};
	long rc;

	in_thread(tell_tid, &tid);
	usleep(50000);
	rc = bare_clone(&args, &got);
	if (rc == -EPERM)
		exit(77); /* CAP_CHECKPOINT_RESTORE */
	CHECK(rc == tid, "clone3: %ld", rc);
	while (!at_end)
		usleep(1000);
	CHECK(got == -64, "another one's mask: %d", got);
}
#else
static void reuse(void)
{
	exit(77);
}
#endif

/* More threads than anybody wants to remember. */
static void *ask(void *arg)
{
	CHECK(only(0) == -64, "%d", only(0));
	return arg;
}

static void many(void)
{
	for (int i = 0; i < 4000; i++)
		in_thread(ask, NULL);
	CHECK(only(0) == -64, "the first thread has %d", only(0));
}

/* ---- images ---------------------------------------------------------------------------------- */

static void *begins_image(void *arg)
{
	execl(self, self, "is", (const char *)arg, NULL);
	_exit(9);
}

static void *pinned_begins_image(void *arg)
{
	pin(0, atoi(arg));
	set_policy(BIND, 1UL << atoi(arg) / 16);
	in_thread(begins_image, arg);
	return arg;
}

/* Of a process with several threads, by another one than the first. */
static void image(void)
{
	static char cpu[] = "35";

	pin(0, 2);
	set_policy(INTERLEAVE, 3);
	in_thread(pinned_begins_image, cpu);
}

/* ---- parents that are gone ------------------------------------------------------------------- */

static int sibling(void *arg)
{
	is_as_its_creator(arg);
	return 0;
}

/* Its parent, never seen, ends while the child's first call is looked at. */
static void orphaned(void)
{
	pin(0, 13);
	for (unsigned int i = 0; i < scaled(1000); i++) {
		int ends[2], got = -1;
		pid_t pid;

		CHECK(!pipe(ends), "errno %d", errno);
		pid = fork();
		if (!pid) {
			if (!fork()) {
				for (volatile unsigned int k = 0; k < i % 50 * 200; k++)
					;
				got = only(0);
				(void)!write(ends[1], &got, sizeof(got));
			}
			_exit(0);
		}
		ended_well(pid);
		close(ends[1]);
		CHECK(read(ends[0], &got, sizeof(got)) == sizeof(got), "no answer");
		close(ends[0]);
		CHECK(got == 13, "an orphan has %d", got);
	}
}

/* Children that end while their creator's change adopts them; then others of their pids. */
static volatile pid_t brief[256];
static volatile pid_t forks;
static volatile int stop;

static void *makes_brief_ones(void *arg)
{
	forks = (pid_t)syscall(SYS_gettid);
	for (unsigned int i = 0; !stop; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		ended_well(pid);
		brief[i % 256] = pid;
	}
	return arg;
}

static void again(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid_size = 1};
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, makes_brief_ones, NULL), "no thread");
	while (!forks)
		usleep(100);
	for (unsigned int i = 0; i < scaled(2000); i++)
		pin(forks, (int)i % 64); /* adopts what it has made */
	stop = 1;
	pthread_join(t, NULL);
	pin(0, 5);
	for (int i = 0; i < 256; i++) {
		pid_t pid, wanted = brief[i];

		args.set_tid = (uintptr_t)&wanted;
		pid = wanted ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : -1;
		if (!pid)
			_exit(only(0) == 5 ? 0 : 1);
		if (pid < 0 && errno == EPERM)
			exit(77); /* CAP_CHECKPOINT_RESTORE */
		if (pid > 0)
			ended_well(pid);
	}
}

/* By CLONE_PARENT: a child of its creator's parent, which is not the creator. */
static void brother(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid = fork();

	if (!pid) {
		pin(0, 50);
		set_policy(BIND, 8);
		_exit(clone(sibling, stack + sizeof(stack), CLONE_PARENT | SIGCHLD, (void *)50) <
		      0);
	}
	ended_well(pid);
	ended_well(-1);
}

/* Of a parent that was told its CPU: children are dealt their own once they begin an image. */
static void deals(void)
{
	int seen[64] = {0}, kinds = 0, status;

	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(sched_getcpu());
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "%#x",
		      (unsigned)status);
		kinds += !seen[WEXITSTATUS(status)]++;
	}
	CHECK(kinds > 4, "%d CPUs for 8 children", kinds);
}

static void told(void)
{
	for (int i = 0; i < 5; i++)
		sched_getcpu();
	if (!fork())
		execl(self, self, "deals", NULL);
	ended_well(-1);
}

/* The kernel takes the slack from who becomes realtime, and gives an old one back. */
static void realtime(void)
{
	struct sched_param param = {.sched_priority = 1};
	static char cpu[] = "5";
	pid_t pid;

	pin(0, 5);
	set_policy(BIND, 1);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		exit(77);
	in_thread(is_as_its_creator, (void *)5);
	param.sched_priority = 0;
	CHECK(!sched_setscheduler(0, SCHED_OTHER, &param), "errno %d", errno);
	pid = fork();
	if (!pid) {
		in_thread(is_as_its_creator, (void *)5);
		_exit(0);
	}
	ended_well(pid);
	in_thread(begins_image, cpu);
}

/* ---- few descriptors for the emulator -------------------------------------------------------- */

static volatile int waits;

static void *waits_for_end(void *arg)
{
	while (!waits)
		usleep(5000);
	return arg;
}

static void is_crowd(int threads)
{
	pthread_t t[64];
	pid_t pid[40];

	for (int i = 0; i < threads; i++)
		CHECK(!pthread_create(&t[i], NULL, waits_for_end, NULL), "no thread");
	pin(0, 33); /* from now on it may matter who touched a page */
	set_policy(BIND, 4);
	for (int i = 0; i < 40; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			is_as_its_creator((void *)33);
			usleep(20000);
			is_as_its_creator((void *)33);
			_exit(0);
		}
	}
	for (int i = 0; i < 40; i++)
		ended_well(pid[i]);
	waits = 1;
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

static void crowd(void)
{
	for (int threads = 4; threads <= 60; threads += 7) {
		pid_t pid = fork();

		if (!pid) {
			is_crowd(threads);
			_exit(0);
		}
		ended_well(pid);
	}
}

/* ---- the slack itself ------------------------------------------------------------------------ */

static long slack(void)
{
	return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

static void *has_slack(void *arg)
{
	CHECK(slack() == (long)arg, "%ld", slack());
	return arg;
}

static void slacks(void)
{
	CHECK(slack() == 50000, "%ld", slack());
	pin(0, 5);
	CHECK(slack() == 50000, "%ld", slack());
	CHECK(!prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0), "errno %d", errno);
	CHECK(slack() == 1000 && only(0) == 5, "%ld, CPU %d", slack(), only(0));
	in_thread(has_slack, (void *)1000);
	pin(0, 6);
	in_thread(has_slack, (void *)1000);
	CHECK(slack() == 1000 && only(0) == 6, "%ld, CPU %d", slack(), only(0));
	CHECK(!prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0), "errno %d", errno);
	CHECK(slack() == 50000 && only(0) == 6, "%ld, CPU %d", slack(), only(0));
	/* It still is one: some hundredths of a second at most. */
	CHECK(!usleep(1000), "errno %d", errno);
}

/* More states than are held at a time. */
static void states(void)
{
	cpu_set_t set;

	for (unsigned int i = 1; i <= scaled(20000); i++) {
		CPU_ZERO(&set);
		for (int k = 0; k < 16; k++)
			if (i >> k & 1)
				CPU_SET(3 * k, &set);
		CHECK(!sched_setaffinity(0, sizeof(set), &set), "errno %d", errno);
	}
	pin(0, 5);
	set_policy(BIND, 1);
	in_thread(is_as_its_creator, (void *)5);
}

/* ---- hot-plug -------------------------------------------------------------------------------- */

static void plug(int on)
{
	int fd = open("/sys/devices/system/cpu/cpu9/online", O_WRONLY);

	CHECK(fd >= 0 && write(fd, on ? "1" : "0", 1) == 1 && !close(fd), "errno %d", errno);
}

static volatile int step;

static void *waits_unseen(void *arg)
{
	while (step < 1) /* sleeps: not a call that is notified */
		usleep(1000);
	*(int *)arg = only(0);
	return arg;
}

static void *pinned_plugs(void *arg)
{
	pthread_t t;
	int before = 0;

	pin(0, 9);
	CHECK(!pthread_create(&t, NULL, waits_unseen, &before), "no thread");
	plug(0);
	step = 1;
	pthread_join(t, NULL);
	CHECK(before == -63, "a mask without an online CPU: %d", before);
	plug(1);
	CHECK(only(0) == 9, "%d", only(0));
	in_thread(is_as_its_creator, (void *)9);
	return arg;
}

static void plugs(void)
{
	set_policy(BIND, 1);
	in_thread(pinned_plugs, NULL);
	CHECK(only(0) == -64, "%d", only(0));
}

/* ---- ends that are interrupted --------------------------------------------------------------- */

static void on_alarm(int sig)
{
	(void)sig;
}

static void interrupted(void)
{
	const struct itimerval often = {{0, 150}, {0, 150}};

	for (unsigned int i = 0; i < scaled(300); i++) {
		pid_t pid = fork();

		if (!pid) {
			sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
			setitimer(ITIMER_REAL, &often, NULL);
			pin(0, 7);
			for (volatile int k = 0; k < 20000; k++)
				;
			_exit(0);
		}
		ended_well(pid);
	}
}

static const struct {
	const char *name;
	void (*fn)(void);
} all[] = {
	{"creators", creators},
	{"ends", ends},
	{"reuse", reuse},
	{"many", many},
	{"image", image},
	{"orphans", orphans},
	{"heirs", heirs},
	{"brother", brother},
	{"slacks", slacks},
	{"states", states},
	{"plugs", plugs},
	{"pages", pages},
	{"interrupted", interrupted},
	{"killed", killed},
	{"unseen", unseen},
	{"images", images},
	{"told", told},
	{"deals", deals},
	{"realtime", realtime},
	{"orphaned", orphaned},
	{"again", again},
	{"crowd", crowd},
};

int main(int argc, char **argv)
{
	self = argv[0];
	/* Small pages are counted: of a huge one (where they are "always") one thread has all. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (argc == 3 && !strcmp(argv[1], "is")) {
		is_as_its_creator((void *)atol(argv[2]));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "next")) {
		next_image(argv[2]);
		return 0;
	}
	for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(argv[1], all[i].name)) {
			all[i].fn();
			return 0;
		}
	fputs("inherit: unknown\n", stderr);
	return 2;
}
