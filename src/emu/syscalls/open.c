// SPDX-License-Identifier: MIT
/*
 * open.c - open, openat, openat2: files and folders of the machine.
 *
 * Where the namespace view covers a path the host's kernel opens it, once its file is made.
 * Everywhere else the answer is a descriptor: of the private tree for folders and files of the
 * machine, of a memfd for those of /proc. Opens with O_NOCTTY are not seen at all (table.c):
 * compilers look for headers with them, and nothing reads /proc so.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

/* N of a path of the form TOP N TAIL, or -1. */
static long number_in(const char *path, const char *top, const char *tail)
{
	size_t len = strlen(top);
	char *end;
	long n;

	if (strncmp(path, top, len) || path[len] < '0' || path[len] > '9')
		return -1;
	n = strtol(path + len, &end, 10);
	return !strcmp(end, tail) ? n : -1;
}

/* Files that can be written: a descriptor whose text is applied, or -1. */
static int open_plug(struct emu *emu, const char *path)
{
	long n = number_in(path, "/sys/devices/system/cpu/cpu", "/online");

	if (n >= 0)
		return emu_plug_open(emu, (unsigned int)n);
	n = number_in(path, "/sys/kernel/mm/mempolicy/weighted_interleave/node", "");
	return n >= 0 ? emu_plug_open_weight(emu, (unsigned int)n) : -1;
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

static bool is_cpuset(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strncmp(name, "/cpuset.", 8);
}

static int64_t open_tree(struct emu_call *call, const char *path, int flags)
{
	struct emu *emu = call->emu;
	int rc = emu_tree_ensure(emu, path, true);
	int fd;

	if (writes(flags) && faccessat(emu->tree, path + 1, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		fd = open_plug(emu, path);
		if (fd != -1)
			return fd < 0 ? fd : emu_answer_fd(call, fd, flags);
	}
	if (emu_path_mounted(emu, path))
		return EMU_CONTINUE;
	if (rc < 0)
		return rc;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	fd = openat(emu->tree, path + 1,
		    (flags & (O_DIRECTORY | O_PATH | O_NOFOLLOW)) | O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* sysfs: what has no store can't be opened for writing, not even by root. */
	if (writes(flags)) {
		close(fd);
		return -EACCES;
	}
	return emu_answer_fd(call, fd, flags);
}

static int64_t do_open(struct emu_call *call, int dirfd, uint64_t where, int flags)
{
	char path[EMU_PATH_MAX];
	int fd = -1, rc = emu_path_find(call, dirfd, where, !(flags & O_NOFOLLOW), path);

	if (rc < 0) /* the machine has no such file, whatever the host has */
		return (flags & O_CREAT) && rc == -ENOENT ? -EACCES : rc;
	if (rc == EMU_PATH_OTHER)
		return EMU_CONTINUE;
	if (rc == EMU_PATH_TREE)
		return open_tree(call, path, flags);
	if (flags & (O_PATH | O_DIRECTORY))
		return EMU_CONTINUE;
	if (rc == EMU_PATH_PROC) {
		rc = emu_proc_open(call, path, flags, &fd);
	} else {
		/* A cpuset made inside could only be one of the host's CPUs, and would have no
		 * effect on the machine's: refused, so that nobody believes in it. */
		if (writes(flags))
			return is_cpuset(path) ? -EPERM : EMU_CONTINUE;
		rc = emu_file_open(call->emu, path, &fd);
		if (rc == -EXDEV || rc == -EISDIR)
			rc = 1;
	}
	if (rc == 1)
		return EMU_CONTINUE;
	return rc < 0 ? rc : emu_answer_fd(call, fd, flags);
}

int64_t emu_open(struct emu_call *call)
{
	return do_open(call, AT_FDCWD, call->arg[0], (int)call->arg[1]);
}

int64_t emu_openat(struct emu_call *call)
{
	return do_open(call, (int)call->arg[0], call->arg[1], (int)call->arg[2]);
}

int64_t emu_openat2(struct emu_call *call)
{
	struct open_how how = { 0 };

	if (call->arg[3] < sizeof(how) || emu_read(call, &how, call->arg[2], sizeof(how)))
		return EMU_CONTINUE;
	/* Paths that are meant relative to another root are none of the machine's. */
	if (how.resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH | RESOLVE_CACHED))
		return EMU_CONTINUE;
	return do_open(call, (int)call->arg[0], call->arg[1], (int)how.flags);
}
