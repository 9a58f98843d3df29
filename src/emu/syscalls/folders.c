// SPDX-License-Identifier: MIT
/*
 * folders.c - chdir and inotify on paths of the machine, seen in the calls view only: the machine
 * says whether the path is there. A folder that this host has too becomes the working folder, and
 * relative paths then lead to the machine's (view/path.c); no other process can be moved into a
 * folder that this host lacks. Watches are set on the private tree's files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

/* Opens the file of the private tree that the path names: a descriptor, -errno or EMU_CONTINUE. */
static int64_t open_in_tree(struct emu_call *call, uint64_t where, bool follow, char *path)
{
	int rc = emu_path_find(call, AT_FDCWD, where, follow, path), fd;

	if (rc < 0)
		return rc;
	if (rc != EMU_PATH_TREE)
		return EMU_CONTINUE;
	rc = emu_tree_ensure(call->emu, path);
	if (rc < 0)
		return rc;
	do
		fd = openat(call->emu->tree, path + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	while (emu_proc_again(fd >= 0));
	return fd < 0 ? -errno : fd;
}

int64_t emu_chdir(struct emu_call *call)
{
	char path[EMU_PATH_MAX];
	int64_t fd = open_in_tree(call, call->arg[0], true, path);
	struct stat st;
	int rc;

	if (fd < 0)
		return fd;
	rc = fstat((int)fd, &st);
	close((int)fd);
	if (!rc && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return emu_refuse(call, EMU_REFUSED_CHDIR, ENOENT);
	return EMU_CONTINUE;
}

/* The caller's descriptor, as one of ours. */
static int take_descriptor(struct emu_call *call, int theirs)
{
	int pidfd, fd, err;

	do {
		pidfd = (int)syscall(SYS_pidfd_open, call->task->process->tgid, 0);
		fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
		err = errno;
		if (pidfd >= 0)
			close(pidfd);
		errno = err;
	} while (emu_proc_again(fd >= 0));
	return fd < 0 ? -errno : fd;
}

int64_t emu_inotify_add_watch(struct emu_call *call)
{
	uint32_t mask = (uint32_t)call->arg[2];
	static const char inotify[] = "anon_inode:inotify";
	char path[EMU_PATH_MAX], link[64], what[32];
	int64_t at = open_in_tree(call, call->arg[1], !(mask & IN_DONT_FOLLOW), path);
	int own, rc;
	ssize_t n;

	if (at < 0)
		return at;
	/* Else the host has the error. What is not inotify's must not be ours for a moment: closing
	 * it may wait for whoever serves it. */
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", call->task->process->tgid,
		 (int)call->arg[0]);
	n = readlink(link, what, sizeof(what));
	if (n != sizeof(inotify) - 1 || memcmp(what, inotify, sizeof(inotify) - 1)) {
		close((int)at);
		return EMU_CONTINUE;
	}
	own = take_descriptor(call, (int)call->arg[0]);
	rc = own < 0 ? own : 0;
	if (!rc && !emu_call_valid(call))
		rc = -ENOENT;
	if (!rc) {
		/* The link leads to the file itself: nothing is left to follow. */
		snprintf(link, sizeof(link), "/proc/self/fd/%d", (int)at);
		rc = inotify_add_watch(own, link, mask & ~(uint32_t)IN_DONT_FOLLOW);
		rc = rc < 0 ? -errno : rc;
	}
	if (own >= 0)
		close(own);
	close((int)at);
	return rc;
}
