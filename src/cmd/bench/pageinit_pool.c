// SPDX-License-Identifier: MIT
/*
 * pageinit_pool.c - huge pages reserved for a bench, given back however it ends.
 *
 * A process of its own, in a session of its own, waits for the end of a pipe that the bench holds
 * open, and then writes the former number back: after a plain end, an error, Ctrl-C or SIGKILL
 * alike. It holds a lock on the pool's file meanwhile, as the tests that change it do.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/bench/bench_pageinit.h"

static void number_path(char *path, size_t size, uint64_t page, const char *name)
{
	snprintf(path, size, "/sys/kernel/mm/hugepages/hugepages-%llukB/%s",
		 (unsigned long long)(page >> 10), name);
}

static long long read_pool(uint64_t page, const char *name)
{
	long long v = -1;
	char path[128];
	FILE *f;

	number_path(path, sizeof(path), page, name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%lld", &v) != 1)
		v = -1;
	if (f)
		fclose(f);
	return v;
}

static bool write_pool(int fd, long long v)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld\n", v);

	return pwrite(fd, text, (size_t)n, 0) == n;
}

/* The watcher: holds the pipe's other end and the pool, nothing else. */
static void watch(int pipe_fd, int pool_fd, long long old)
{
	long max = sysconf(_SC_OPEN_MAX);
	sigset_t all;
	char c;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	for (int fd = 0; fd < (max > 0 && max < 65536 ? (int)max : 65536); fd++)
		if (fd != pipe_fd && fd != pool_fd)
			close(fd);
	while (read(pipe_fd, &c, 1) > 0)
		;
	_exit(write_pool(pool_fd, old) ? 0 : 1);
}

long long pageinit_pool_free(uint64_t page)
{
	return read_pool(page, "free_hugepages");
}

bool pageinit_pool_raise(struct pageinit_pool *pool, uint64_t page, long long more)
{
	char path[128];
	int ends[2], fd;

	number_path(path, sizeof(path), page, "nr_hugepages");
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (flock(fd, LOCK_EX) || pipe2(ends, O_CLOEXEC)) {
		close(fd);
		return false;
	}
	pool->old = read_pool(page, "nr_hugepages");
	pool->watcher = pool->old < 0 ? -1 : fork();
	if (!pool->watcher)
		watch(ends[0], fd, pool->old);
	close(ends[0]);
	pool->pipe = ends[1];
	if (pool->watcher > 0)
		write_pool(fd, pool->old + more);
	else
		close(ends[1]);
	close(fd); /* the watcher's copy keeps the lock */
	return pool->watcher > 0;
}

bool pageinit_pool_restore(struct pageinit_pool *pool)
{
	int status = -1;

	close(pool->pipe);
	return waitpid(pool->watcher, &status, 0) == pool->watcher && status == 0;
}
