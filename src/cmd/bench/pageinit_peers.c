// SPDX-License-Identifier: MIT
/* pageinit_peers.c - the work that bench pageinit measures: ours, and the same by others. Times
 * leave out unmapping. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/bench/bench_pageinit.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* What failed is told as next to nothing: a ratio of it is still a number. */
static const double NOTHING = 1e-6;

enum { MAX_THREADS = 64, HELPS = 10000, HELP_ORDER = 6, LATENCIES = 1 << 20 };
extern char **environ;

static double seconds_since(uint64_t t)
{
	return (double)(bench_now_ns() - t) / 1e9;
}

static struct mc_arena *create(const struct pageinit_job *j)
{
	struct mc_arena_attr at = {.backing = j->backing,
				   .page_size = j->page_size,
				   .size = j->size,
				   .threads = j->threads,
				   .flags = j->flags,
				   .topology = j->topo};
	struct mc_arena *a;

	return mc_arena_create(&at, &a, NULL) < 0 ? NULL : a;
}

double pageinit_arena(void *job)
{
	struct pageinit_job *j = job;
	uint64_t t = bench_now_ns();
	struct mc_arena *a = create(j);
	double s, rate = NOTHING;

	if (a && !mc_arena_wait(a, 0, -1)) {
		s = seconds_since(t);
		rate = j->flags & MC_ARENA_NO_PAGES
			       ? (double)(j->size / mc_arena_page_size(a)) / s / 1e6
			       : (double)j->size / s / 1e9;
	}
	mc_arena_destroy(a);
	return rate;
}

struct slice {
	char *at;
	size_t n;
};

static void *set_slice(void *arg)
{
	struct slice *s = arg;

	memset(s->at, 1, s->n);
	return NULL;
}

/* Seconds that `n` threads take for it, their making and ending included; 0 when that failed. */
static double set_by_threads(char *at, uint64_t size, unsigned int n)
{
	struct slice s[MAX_THREADS];
	pthread_t t[MAX_THREADS];
	uint64_t from = bench_now_ns();
	unsigned int made = 1;

	if (n > MAX_THREADS)
		n = MAX_THREADS;
	for (unsigned int i = 0; i < n; i++)
		s[i] = (struct slice){at + size / n * i, size / n};
	while (made < n && !pthread_create(&t[made], NULL, set_slice, &s[made]))
		made++;
	set_slice(&s[0]);
	for (unsigned int i = 1; i < made; i++)
		pthread_join(t[i], NULL);
	return made == n ? seconds_since(from) : 0;
}

double pageinit_memset(void *job)
{
	struct pageinit_job *j = job;
	double s = set_by_threads(j->present, j->size, j->threads);

	return s > 0 ? (double)j->size / s / 1e9 : NOTHING;
}

double pageinit_touch(void *job)
{
	struct pageinit_job *j = job;
	size_t huge = 2 << 20, pages = j->size / (size_t)sysconf(_SC_PAGESIZE),
	       bytes = pages * sizeof(struct mc_page);
	char *p = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
	     *at = p + (huge - (size_t)p % huge) % huge;
	double s;

	if (p == MAP_FAILED)
		return NOTHING;
	madvise(at, bytes, MADV_HUGEPAGE);
	s = set_by_threads(at, bytes, j->threads);
	munmap(p, bytes + huge);
	return s > 0 ? (double)pages / s / 1e6 : NOTHING;
}

/* Maps as the arena does; NULL when that fails. */
static char *map(const struct pageinit_job *j, int populate, int *fd)
{
	size_t align = 2 << 20;
	char *p;

	*fd = -1;
	if (j->backing == MC_ARENA_MEMFD) {
		*fd = memfd_create("bench", MFD_CLOEXEC);
		if (*fd < 0 || ftruncate(*fd, (off_t)j->size))
			return NULL;
		p = mmap(NULL, j->size, PROT_READ | PROT_WRITE, MAP_SHARED | populate, *fd, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	if (j->backing == MC_ARENA_THP) { /* aligned, or its ends are not huge */
		p = mmap(NULL, j->size + align, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		munmap(p + (align - (size_t)p % align) + j->size, (size_t)p % align);
		munmap(p, align - (size_t)p % align);
		p += align - (size_t)p % align;
		p = mmap(p, j->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | populate, -1, 0);
		if (p != MAP_FAILED)
			madvise(p, j->size, MADV_HUGEPAGE);
		return p == MAP_FAILED ? NULL : p;
	}
	p = mmap(NULL, j->size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | populate |
			 (j->backing == MC_ARENA_HUGETLB ? MAP_HUGETLB : 0),
		 -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static double populate(struct pageinit_job *j, int flag)
{
	uint64_t t = bench_now_ns();
	double rate = NOTHING;
	int fd;
	char *p = map(j, flag, &fd);

	if (p && (flag || !madvise(p, j->size, MADV_POPULATE_WRITE)))
		rate = (double)j->size / seconds_since(t) / 1e9;
	if (p)
		munmap(p, j->size);
	if (fd >= 0)
		close(fd);
	return rate;
}

double pageinit_map_populate(void *job)
{
	return populate(job, MAP_POPULATE);
}

double pageinit_madvise(void *job)
{
	return populate(job, 0);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Runs it without output; seconds, or 0 when it failed. */
static double run_program(char *const *argv)
{
	posix_spawn_file_actions_t fa;
	uint64_t t = bench_now_ns();
	int status = 1;
	pid_t pid;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ) ||
	    waitpid(pid, &status, 0) != pid)
		status = 1;
	posix_spawn_file_actions_destroy(&fa);
	return status ? 0 : seconds_since(t);
}

/* A machine that is stopped at once: its monitor reads "quit" from a file descriptor that gives
 * just that. */
static double qemu_start(const struct pageinit_job *j, bool prealloc)
{
	char object[160], command[512];
	char *argv[] = {(char *)"sh", (char *)"-c", command, NULL};

	snprintf(object, sizeof(object),
		 "memory-backend-ram,id=m,size=%lluM,prealloc=%s,prealloc-threads=%u",
		 (unsigned long long)(j->size >> 20), prealloc ? "on" : "off", j->threads);
	snprintf(command, sizeof(command),
		 "echo quit | exec qemu-system-x86_64 -accel tcg -nodefaults -display none -S "
		 "-monitor stdio -m %lluM "
		 "-object %s -machine q35,memory-backend=m",
		 (unsigned long long)(j->size >> 20), object);
	return run_program(argv);
}

double pageinit_qemu(void *job)
{
	struct pageinit_job *j = job;
	double without = qemu_start(j, false), with = qemu_start(j, true);

	if (without <= 0 || with <= without)
		return NOTHING;
	return (double)j->size / (with - without) / 1e9;
}

static void make_cold(const struct pageinit_job *j)
{
	int fd = open(j->path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

double pageinit_cache_arena(void *job)
{
	struct pageinit_job *j = job;
	struct mc_arena_attr at = {.backing = MC_ARENA_FILE,
				   .policy = MC_ARENA_DEFAULT,
				   .threads = 1,
				   .topology = j->topo,
				   .flags = MC_ARENA_READ | MC_ARENA_NO_DESCRIPTORS |
					    MC_ARENA_SKIP_RESIDENT};
	struct mc_arena *a = NULL;
	double rate = NOTHING;
	uint64_t t;

	make_cold(j);
	t = bench_now_ns();
	at.fd = open(j->path, O_RDONLY | O_CLOEXEC);
	if (at.fd >= 0 && !mc_arena_create(&at, &a, NULL) && !mc_arena_wait(a, 0, -1))
		rate = (double)j->size / seconds_since(t) / 1e9;
	mc_arena_destroy(a);
	if (at.fd >= 0)
		close(at.fd);
	return rate;
}

double pageinit_cache_vmtouch(void *job)
{
	struct pageinit_job *j = job;
	char *argv[] = {(char *)"vmtouch", (char *)"-q", (char *)"-t", (char *)j->path, NULL};
	double s;

	make_cold(j);
	s = run_program(argv);
	return s > 0 ? (double)j->size / s / 1e9 : NOTHING;
}

/* ---- latencies ------------------------------------------------------------------------------- */

struct mapper {
	pthread_t thread;
	atomic_bool stop, started;
	uint32_t *us;
	size_t n;
};

static void *map_loop(void *arg)
{
	struct mapper *m = arg;

	atomic_store(&m->started, true);
	while (!atomic_load(&m->stop)) {
		uint64_t t = bench_now_ns();
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p != MAP_FAILED)
			munmap(p, 4096);
		if (m->n < LATENCIES)
			m->us[m->n++] = (uint32_t)((bench_now_ns() - t) / 1000);
		usleep(50); /* a program that maps now and then, not a storm */
	}
	return NULL;
}

static bool mapper_start(struct mapper *m)
{
	memset(m, 0, sizeof(*m));
	m->us = malloc(LATENCIES * sizeof(*m->us));
	if (!m->us || pthread_create(&m->thread, NULL, map_loop, m)) {
		free(m->us);
		return false;
	}
	while (!atomic_load(&m->started))
		usleep(100);
	return true;
}

static int by_value(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

/* The longest but one in a thousand, or the very longest. */
static double mapper_end_ms(struct mapper *m, bool longest)
{
	double ms = 0;

	atomic_store(&m->stop, true);
	pthread_join(m->thread, NULL);
	qsort(m->us, m->n, sizeof(*m->us), by_value);
	if (m->n)
		ms = (double)m->us[m->n - 1 - (longest ? 0 : m->n / 1000)] / 1e3;
	free(m->us);
	return ms > 0 ? ms : 1e-3;
}

static double latency(void *job, double (*work)(void *job))
{
	const struct pageinit_job *j = job;
	struct mapper m;

	if (!mapper_start(&m))
		return NOTHING;
	work(job);
	return mapper_end_ms(&m, j->longest);
}

double pageinit_latency_arena(void *job)
{
	return latency(job, pageinit_arena);
}

double pageinit_latency_whole(void *job)
{
	return latency(job, pageinit_madvise);
}

double pageinit_first_alloc(void *job)
{
	struct pageinit_job *j = job;
	uint64_t t = bench_now_ns();
	struct mc_arena *a = create(j);
	double first = NOTHING;

	j->other = NOTHING;
	if (a && mc_arena_alloc(a, 0, MC_ANY_NODE)) {
		first = seconds_since(t) * 1e3;
		mc_arena_wait(a, 0, -1);
		j->other = seconds_since(t) * 1e3;
	}
	mc_arena_destroy(a);
	return first;
}

/* This thread's: how often it lost its CPU to others, and its CPU time. */
static double cpu_ms(long *preempted)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	*preempted = u.ru_nivcsw;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

double pageinit_help_longest(void *job)
{
	struct pageinit_job *j = job, one = *j;
	struct mc_arena *a = create(j);
	long before, after, lost = 0;
	double own = 0, from, cpu;
	uint64_t longest = 0, most;

	j->other = NOTHING;
	if (!a)
		return NOTHING;
	/* Early ones: who asks for the last of it waits for whatever worker holds that. */
	most = (j->size / mc_arena_page_size(a) >> HELP_ORDER) * 5 / 8;
	for (uint64_t i = 0; i < HELPS && i < most; i++) {
		uint64_t t;

		from = cpu_ms(&before);
		t = bench_now_ns();
		if (!mc_arena_alloc(a, HELP_ORDER, MC_ANY_NODE))
			break;
		t = bench_now_ns() - t;
		if (t <= longest)
			continue;
		longest = t;
		cpu = cpu_ms(&after);
		own = cpu - from;
		lost = after - before;
	}
	j->samples++;
	j->preempted += lost > 0;
	j->cpu_sum += own;
	j->cpu_most = own > j->cpu_most ? own : j->cpu_most;
	/* A chunk's time by itself: one thread, nothing beside it. */
	one.threads = 1;
	j->other = (double)mc_arena_chunk_size(a) / 1e6 / pageinit_arena(&one);
	mc_arena_destroy(a);
	return (double)longest / 1e6;
}

double pageinit_other(void *job)
{
	struct pageinit_job *j = job;

	return j->other;
}
