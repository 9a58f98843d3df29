// SPDX-License-Identifier: MIT
/*
 * bench_run_worker.c - the work that `manycore bench run` times, inside and outside: see
 * bench_run.h. The worker takes the times itself, by the monotonic clock (vDSO, never answered), so
 * that neither pipes nor the emulator's start are in them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/bench/bench.h"
#include "cmd/bench/bench_run.h"
#include "cmd/cmd.h"

extern char **environ;

/* Runs a program with its output thrown away; false unless it exits with 0. */
static bool spawn(const char *const argv[])
{
	posix_spawn_file_actions_t actions;
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	status = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (status)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool work_affinity(unsigned int count)
{
	/* Wide enough for every machine that is emulated here; raw, so that each is a system call.
	 */
	unsigned long mask[8192 / 64 / sizeof(long) * sizeof(uint64_t)];

	for (unsigned int i = 0; i < count; i++)
		if (syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) < 0)
			return false;
	return true;
}

static bool work_getcpu(unsigned int count)
{
	unsigned int moved = 0;
	int first = sched_getcpu();

	for (unsigned int i = 0; i < count * 1000; i++)
		moved += sched_getcpu() != first;
	bench_use(moved);
	return first >= 0;
}

static bool work_true(unsigned int count)
{
	const char *const argv[] = {"/bin/true", NULL};

	for (unsigned int i = 0; i < count; i++)
		if (!spawn(argv))
			return false;
	return true;
}

/* In the current folder, which bench_run.c filled with c0.c, c1.c ... */
static bool work_compile(unsigned int count)
{
	char name[32];
	/* The system's: what comes first in PATH may be a cache, which compiles nothing. */
	const char *cc = access("/usr/bin/cc", X_OK) == 0 ? "/usr/bin/cc" : "cc";
	const char *const argv[] = {cc, "-O1", "-c", name, "-o", "out.o", NULL};

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "c%u.c", i);
		if (!spawn(argv))
			return false;
	}
	return true;
}

static bool work_python(unsigned int count)
{
	/* The system's, not a version manager's script. */
	const char *python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
	const char *const argv[] = {python, "-c",
				    "import argparse, json, os, re, subprocess, tempfile\n"
				    "d = {str(i): [i] * 8 for i in range(20000)}\n"
				    "assert len(json.loads(json.dumps(d))) == 20000\n"
				    "assert os.cpu_count() > 0",
				    NULL};

	for (unsigned int i = 0; i < count; i++)
		if (!spawn(argv))
			return false;
	return true;
}

static bool work_cpu(unsigned int count)
{
	uint64_t h = 14695981039346656037u;

	for (unsigned int i = 0; i < count; i++)
		for (unsigned int k = 0; k < 1000000; k++) {
			h = (h ^ k) * 1099511628211u;
			bench_use(h);
		}
	return h != 0;
}

/* Sizes from 16 bytes to 1 MiB: the large ones are mapped and unmapped, which the emulator has to
 * follow or let pass. */
static bool work_malloc(unsigned int count)
{
	static char *slot[512];
	uint64_t random = 88172645463325252u;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int at;
		size_t size;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		at = (unsigned int)(random % 512);
		size = (size_t)16 << (random >> 32) % 17;
		free(slot[at]);
		slot[at] = malloc(size);
		if (!slot[at])
			return false;
		slot[at][0] = slot[at][size - 1] = 1;
	}
	for (unsigned int i = 0; i < 512; i++) {
		free(slot[i]);
		slot[i] = NULL;
	}
	return true;
}

static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long thread_sum;

static void *thread_body(void *arg)
{
	for (unsigned int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&thread_lock);
		thread_sum++;
		pthread_mutex_unlock(&thread_lock);
	}
	return arg;
}

/* Threads made and joined, 16 at a time, each taking one lock a thousand times. */
static bool work_threads(unsigned int count)
{
	pthread_t t[16];

	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int k = 0; k < 16; k++)
			if (pthread_create(&t[k], NULL, thread_body, NULL) != 0)
				return false;
		for (unsigned int k = 0; k < 16; k++)
			pthread_join(t[k], NULL);
	}
	return true;
}

static void *empty_body(void *arg)
{
	return arg;
}

/* One thread after the other: made, joined, nothing in between. */
static bool work_join(unsigned int count)
{
	pthread_t t;

	for (unsigned int i = 0; i < count; i++)
		if (pthread_create(&t, NULL, empty_body, NULL) != 0 || pthread_join(t, NULL) != 0)
			return false;
	return true;
}

static void *storm_body(void *arg)
{
	const unsigned int *count = arg;
	const size_t size = 256 << 10;

	for (unsigned int i = 0; i < *count; i++) {
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return NULL;
		p[0] = 1;
		munmap(p, size);
	}
	return arg;
}

/* Four threads that map, touch and unmap. */
static bool work_storm(unsigned int count)
{
	pthread_t t[4];
	bool good = true;

	for (unsigned int k = 0; k < 4; k++)
		if (pthread_create(&t[k], NULL, storm_body, &count) != 0)
			return false;
	for (unsigned int k = 0; k < 4; k++) {
		void *end = NULL;

		pthread_join(t[k], &end);
		good &= end != NULL;
	}
	return good;
}

static const struct {
	const char *name;
	bool (*fn)(unsigned int count);
} works[] = {
	{"affinity", work_affinity}, {"true", work_true}, {"compile", work_compile},
	{"python", work_python},     {"cpu", work_cpu},   {"malloc", work_malloc},
	{"threads", work_threads},   {"join", work_join}, {"storm", work_storm},
	{"getcpu", work_getcpu},
};

int bench_run_worker(void)
{
	char line[64], name[32];
	unsigned int count;

	signal(SIGPIPE, SIG_IGN);
	while (fgets(line, sizeof(line), stdin)) {
		double ns = -1;

		if (sscanf(line, "%31s %u", name, &count) != 2)
			return CMD_USAGE;
		for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
			if (!strcmp(name, works[i].name)) {
				uint64_t t = bench_now_ns();

				if (works[i].fn(count))
					ns = (double)(bench_now_ns() - t);
			}
		printf("%.0f\n", ns);
		if (fflush(stdout) != 0)
			return CMD_FAILED;
	}
	return CMD_OK;
}

int bench_run_stamp(void)
{
	printf("%llu\n", (unsigned long long)bench_now_ns());
	return cmd_finish("bench", CMD_OK);
}
