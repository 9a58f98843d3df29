// SPDX-License-Identifier: MIT
/*
 * proctext.c - the short files of /proc/PID, read whole into a buffer of the caller. For files that
 * have no bound (maps, children) see their readers. Called by all of the supervisor, and by the
 * waiter when it cleans up; nothing is allocated.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "emu/internal.h"

static _Atomic(bool) waiting;

void emu_proc_wait(void)
{
	atomic_store(&waiting, true);
}

bool emu_proc_again(bool got)
{
	static _Atomic(long) since; /* when somebody first got none, in ms; 0: there are some */
	const struct timespec nap = {.tv_nsec = 1000000};
	struct timespec now;
	long ms, first;

	if (got || (errno != EMFILE && errno != ENFILE) || !atomic_load(&waiting)) {
		if (got && atomic_load_explicit(&since, memory_order_relaxed))
			atomic_store(&since, 0);
		return false;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
	first = atomic_load(&since);
	if (!first)
		atomic_store(&since, ms);
	else if (ms - first > 10000)
		return false;
	nanosleep(&nap, NULL);
	return true;
}

ssize_t emu_proc_read(char *text, size_t size, const char *format, ...)
{
	char path[80];
	va_list ap;
	ssize_t n;
	int fd, err;

	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	do
		fd = open(path, O_RDONLY | O_CLOEXEC);
	while (emu_proc_again(fd >= 0));
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	err = errno;
	close(fd);
	if (n <= 0)
		return n < 0 ? -err : -ESRCH; /* empty: it has just ended */
	text[n] = '\0';
	return n;
}

bool emu_proc_leads(int at, const char *path, unsigned int mask, struct statx *to)
{
	int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | (*path ? 0 : AT_EMPTY_PATH);

	return statx(at, path, flags, mask, to) == 0;
}

const char *emu_proc_stat(const char *text)
{
	const char *p = strrchr(text, ')');

	return p ? p + 1 : "";
}

/* The name comes first and may hold anything but a newline (it is escaped). */
static long status_field(const char *text, const char *field)
{
	const char *p = strchr(text, '\n');

	while (p && strncmp(p + 1, field, strlen(field)))
		p = strchr(p + 1, '\n');
	return p ? strtol(p + 1 + strlen(field), NULL, 10) : -1;
}

long emu_proc_field(pid_t tid, const char *field)
{
	char text[2048];

	return emu_proc_read(text, sizeof(text), "/proc/%d/status", tid) < 0
		       ? -1
		       : status_field(text, field);
}

long emu_proc_family(pid_t tid, long *ppid)
{
	char text[2048];

	if (emu_proc_read(text, sizeof(text), "/proc/%d/status", tid) < 0)
		return -1;
	*ppid = status_field(text, "PPid:");
	return status_field(text, "Tgid:");
}
