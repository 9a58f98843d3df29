// SPDX-License-Identifier: MIT
/*
 * probe.c - what the tests in this folder run on the emulated machine: each subcommand checks one
 * thing by raw calls and exits 0, or says what was wrong and exits 1. Also built static, for the
 * paths without a dynamic linker.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define CHECK(cond, ...)                              \
	do {                                          \
		if (!(cond)) {                        \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr);          \
			failures++;                   \
		}                                     \
	} while (0)

static unsigned long mask[2048];

static long get(pid_t tid, size_t len)
{
	long rc = syscall(SYS_sched_getaffinity, tid, len, mask);

	return rc < 0 ? -errno : rc;
}

static long set(pid_t tid, size_t len)
{
	long rc = syscall(SYS_sched_setaffinity, tid, len, mask);

	return rc < 0 ? -errno : rc;
}

static void only(unsigned int cpu)
{
	memset(mask, 0, sizeof(mask));
	mask[cpu / 64] = 1UL << (cpu % 64);
}

static unsigned int count(size_t bytes)
{
	unsigned int n = 0;

	for (size_t i = 0; i < bytes / 8; i++)
		n += (unsigned int)__builtin_popcountl(mask[i]);
	return n;
}

static unsigned int cpu_now(void)
{
	unsigned int cpu = ~0U;

	syscall(SYS_getcpu, &cpu, NULL, NULL);
	return cpu;
}

/* The machine of the tests: 160 CPUs, all online. */
static void affinity(void)
{
	memset(mask, 0, sizeof(mask));
	CHECK(get(0, 16) == -EINVAL, "16 bytes can't hold 160 CPUs");
	CHECK(get(0, 23) == -EINVAL, "not a multiple of 8");
	CHECK(get(0, 24) == 24, "returns the mask's size");
	CHECK(get(0, 8192) == 24, "whatever the buffer's");
	CHECK(count(24) == 160, "160 CPUs, not %u", count(24));
	CHECK(get(-1, 24) == -ESRCH, "a negative tid");
	CHECK(get(0x3ffffffe, 24) == -ESRCH, "a tid that is nobody's");
	CHECK(get(getpid(), 24) == 24, "its own pid");
	CHECK(syscall(SYS_sched_getaffinity, 0, 24, NULL) < 0 && errno == EFAULT, "NULL is EFAULT");
	only(159);
	CHECK(set(0, 24) == 0, "the last CPU");
	CHECK(cpu_now() == 159, "is where it runs now");
	memset(mask, 0, sizeof(mask));
	get(0, 24);
	CHECK(mask[2] == 1UL << 31 && count(24) == 1, "and what is read back");
	only(160);
	CHECK(set(0, 24) == -EINVAL, "a CPU that is not there");
	only(160);
	mask[0] = 4;
	CHECK(set(0, 24) == 0 && cpu_now() == 2, "one that is and one that is not");
	memset(mask, 0xff, sizeof(mask));
	CHECK(set(0, sizeof(mask)) == 0, "a long mask is cut");
	CHECK(get(0, 24) == 24 && count(24) == 160, "to all CPUs");
	only(7);
	CHECK(set(0, 1) == 0 && cpu_now() == 7, "one byte is a mask too");
	CHECK(set(0, 0) == -EINVAL, "no byte is none");
	CHECK(set(-1, 8) == -ESRCH, "set: negative tid");
	CHECK(syscall(SYS_sched_setaffinity, 0, 8, NULL) < 0 && errno == EFAULT, "set: NULL");
	CHECK(set(1, 8) != 0, "init is not ours");
}

/* All ways of asking agree, and nothing moves a thread but a new mask. */
static void getcpu_ways(void)
{
	unsigned int first = cpu_now();

	for (int i = 0; i < 200; i++) {
		unsigned int cpu = 0, node = 0;
		int libc_cpu = sched_getcpu();

		CHECK(!syscall(SYS_getcpu, &cpu, &node, NULL) && cpu == first &&
			      libc_cpu == (int)first,
		      "%u %u %d", first, cpu, libc_cpu);
		CHECK(node == first / 80, "node %u of CPU %u", node, cpu);
		if (failures)
			return;
	}
	for (unsigned int i = 0; i < 160; i += 13) {
		only(i);
		CHECK(!set(0, 24) && (unsigned int)sched_getcpu() == i && cpu_now() == i, "pinned to %u: %d",
		      i, sched_getcpu());
	}
}

static void *report(void *to)
{
	memset(mask, 0, sizeof(mask));
	*(unsigned int *)to = get(0, 24) == 24 && count(24) == 1 ? cpu_now() : 9999;
	return NULL;
}

static void *second(void *to)
{
	pthread_t t;

	only(101);
	set(0, 24);
	if (!pthread_create(&t, NULL, report, to))
		pthread_join(t, NULL);
	return NULL;
}

static unsigned int of_child(void)
{
	int ends[2], cpu = -1;
	pid_t pid;

	if (pipe(ends) || (pid = fork()) < 0)
		return 9999;
	if (!pid) {
		unsigned int at = 0;

		/* Late on purpose: the parent has another mask by then. */
		usleep(30000);
		report(&at);
		_exit(write(ends[1], &at, sizeof(at)) != sizeof(at));
	}
	only(33);
	set(0, 24);
	if (read(ends[0], &cpu, sizeof(cpu)) != sizeof(cpu))
		cpu = 9998;
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	return (unsigned int)cpu;
}

/* What a task inherits is its creator's as of its creation. */
static void inherit(void)
{
	unsigned int at = 0;
	pthread_t t;
	int ends[2];

	only(55);
	set(0, 24);
	CHECK(!pthread_create(&t, NULL, report, &at) && !pthread_join(t, NULL), "no thread");
	CHECK(at == 55, "a thread of the main thread: %u", at);
	CHECK(!pthread_create(&t, NULL, second, &at) && !pthread_join(t, NULL), "no thread");
	CHECK(at == 101, "a thread of a thread: %u", at);
	at = of_child();
	CHECK(at == 55, "a child whose parent moved: %u", at);
	/* A daemon: its parent is gone before it asks. */
	only(77);
	set(0, 24);
	if (pipe(ends))
		return;
	if (!fork()) {
		if (!fork()) {
			setsid();
			usleep(50000);
			report(&at);
			_exit(write(ends[1], &at, sizeof(at)) != sizeof(at));
		}
		_exit(0);
	}
	wait(NULL);
	CHECK(read(ends[0], &at, sizeof(at)) == sizeof(at) && at == 77, "an orphan: %u", at);
}

static int ends_of_silent[2];

/* A thread that does nothing the emulator sees, but for its end; its child asks much later. */
static void *silent(void *arg)
{
	unsigned int bits;

	if (fork())
		return arg;
	usleep(50000);
	memset(mask, 0, sizeof(mask));
	bits = get(0, 24) == 24 ? count(24) : 0;
	_exit(write(ends_of_silent[1], &bits, sizeof(bits)) != sizeof(bits));
}

static void *silent_end(void *arg)
{
	return arg;
}

static int released;

static void *late(void *to)
{
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
		usleep(1000);
	return report(to);
}

/* Threads that the emulator did not see before somebody's mask changed. The first part is of a
 * process whose tasks have never set one. */
static void unseen(void)
{
	unsigned int at = 0;
	pthread_t t;

	if (pipe(ends_of_silent))
		return;
	for (int i = 0; i < 200; i++)
		CHECK(!pthread_create(&t, NULL, i ? silent_end : silent, NULL) &&
			      !pthread_join(t, NULL),
		      "no thread");
	only(44);
	set(0, 24);
	CHECK(read(ends_of_silent[0], &at, sizeof(at)) == sizeof(at) && at == 160,
	      "the child of a thread that is gone: %u CPUs", at);
	wait(NULL);
	CHECK(!pthread_create(&t, NULL, silent, NULL) && !pthread_join(t, NULL), "no thread");
	only(45);
	set(0, 24);
	CHECK(read(ends_of_silent[0], &at, sizeof(at)) == sizeof(at) && at == 1,
	      "the child of a pinned thread that is gone: %u CPUs", at);
	wait(NULL);
	CHECK(!pthread_create(&t, NULL, late, &at), "no thread");
	only(46);
	set(0, 24);
	__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	CHECK(at == 45, "a thread whose creator moved before it asked: %u", at);
}

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

/* Signals at a high rate must not keep an answered call from coming to an end. */
static void storm(void)
{
	struct itimerval every = { { 0, 500 }, { 0, 500 } };
	struct sigaction act = { .sa_handler = tick, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 2000; i++) {
		long rc = get(0, 24);

		CHECK(rc == 24 || rc == -EINTR, "call %d: %ld", i, rc);
		if (failures)
			return;
	}
}

static void *churn(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)(cpu_now() + 1);
}

/* A thousand threads, dealt over all CPUs. */
static void threads(void)
{
	static unsigned char seen[160];
	unsigned int different = 0;

	for (int round = 0; round < 10; round++) {
		pthread_t t[100];
		pthread_attr_t attr;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 65536);
		for (int i = 0; i < 100; i++)
			CHECK(!pthread_create(&t[i], &attr, churn, NULL), "no thread");
		for (int i = 0; i < 100 && !failures; i++) {
			void *cpu;

			pthread_join(t[i], &cpu);
			CHECK((uintptr_t)cpu >= 1 && (uintptr_t)cpu <= 160, "CPU %d", (int)(uintptr_t)cpu - 1);
			if (!failures)
				seen[(uintptr_t)cpu - 1] = 1;
		}
	}
	for (int i = 0; i < 160; i++)
		different += seen[i];
	CHECK(different > 150, "1000 threads were on only %u of 160 CPUs", different);
}

static void memory(void)
{
	struct sysinfo info;

	CHECK(!sysinfo(&info), "sysinfo");
	CHECK(info.totalram * info.mem_unit >> 30 == 64, "64 GiB, not %lu MiB",
	      info.totalram * info.mem_unit >> 20);
	CHECK(info.freeram <= info.totalram, "free <= total");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} all[] = {
		{ "affinity", affinity }, { "getcpu", getcpu_ways }, { "inherit", inherit },
		{ "storm", storm },       { "threads", threads },    { "memory", memory },
		{ "unseen", unseen },
	};

	for (int a = 1; a < argc; a++)
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			if (!strcmp(argv[a], all[i].name)) {
				int before = failures;

				all[i].fn();
				printf("%s: %s\n", all[i].name, failures == before ? "ok" : "FAILED");
			}
	return failures != 0;
}
