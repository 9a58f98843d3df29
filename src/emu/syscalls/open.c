// SPDX-License-Identifier: MIT
/*
 * open.c - open, openat, openat2: files and folders of the machine.
 *
 * Where the namespace view covers a path the host's kernel opens it, once its file is made.
 * Everywhere else the answer is a descriptor: of the private tree for folders and files of the
 * machine, of a memfd for those of /proc. Most opens with O_NOCTTY are not seen at all (table.c):
 * compilers look for headers with them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

static bool is_cpuset(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strncmp(name, "/cpuset.", 8);
}

/* Of a file of the tree that is opened to write, to be cut or to be made: why not, or 0. */
static int refuse(struct emu_call *call, const char *path, int flags)
{
	struct stat st;
	int rc = emu_tree_lstat(call->emu, path, &st);

	if (rc < 0)
		return rc;
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return S_ISDIR(st.st_mode) ? -EOPNOTSUPP : -ENOTDIR;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* Cutting what is open to be read only is nothing to sysfs; who may write may do it. */
	return writes(flags) || ((flags & O_TRUNC) && !emu_is_root(call)) ? -EACCES : 0;
}

/* Who does not own the machine's files reads those that anybody may. */
static bool is_closed(struct emu_call *call, const char *path)
{
	struct stat st;

	return !mc_render_stat(call->emu->render, path, &st) && !(st.st_mode & 0004) &&
	       !emu_is_owner(call);
}

/*
 * Is the caller held to a folder (chroot), or in a mount namespace of its own? From a folder's
 * descriptor ".." leads on: one of the private tree would lead to our root, and out of there.
 */
static bool has_other_root(struct emu_call *call)
{
	struct statx ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", call->caller);
	return !emu_proc_leads(AT_FDCWD, "/", STATX_INO | STATX_MNT_ID, &ours) ||
	       !emu_proc_leads(AT_FDCWD, path, STATX_INO | STATX_MNT_ID, &theirs) ||
	       ours.stx_ino != theirs.stx_ino || ours.stx_dev_major != theirs.stx_dev_major ||
	       ours.stx_dev_minor != theirs.stx_dev_minor ||
	       ours.stx_mnt_id != theirs.stx_mnt_id;
}

static int64_t open_tree(struct emu_call *call, const char *path, int flags)
{
	struct emu *emu = call->emu;
	int rc = emu_tree_ensure(emu, path);
	int top = emu->tree;
	struct stat st;
	int fd;

	if (writes(flags) && emu_plug_is(path) && emu_tree_lstat(emu, path, &st) == 0) {
		/* There the kernel checks the rights, and the write is answered. */
		if (emu->fuse && emu_path_mounted(emu, path))
			return EMU_CONTINUE;
		if (((flags & O_CREAT) && (flags & O_EXCL)) || (flags & O_DIRECTORY))
			return flags & O_DIRECTORY ? -ENOTDIR : -EEXIST;
		fd = emu_is_owner(call) ? emu_plug_open(call, path) : -EACCES;
		return fd < 0 ? fd : emu_answer_fd(call, fd, flags);
	}
	/* sysfs: what has no store can't be opened for writing, not even by root; nor may root
	 * change the tree itself. */
	if (rc >= 0 && (writes(flags) || (flags & (O_CREAT | O_TRUNC))) && !(flags & O_PATH)) {
		rc = refuse(call, path, flags);
		if (rc < 0)
			return rc;
	}
	if (rc >= 0 && emu_tree_moves(path) && !(flags & (O_PATH | O_DIRECTORY))) {
		rc = emu_file_open(emu, path, &fd);
		return rc < 0 ? rc : emu_answer_fd(call, fd, flags);
	}
	if (!emu_tree_unmade(rc) && emu_path_mounted(emu, path) && !(flags & O_TRUNC))
		return EMU_CONTINUE;
	if (rc < 0)
		return rc;
	if (emu->fuse) {
		rc = emu_file_open(emu, path, &fd);
		return rc < 0 ? rc : emu_answer_fd(call, fd, flags);
	}
	if (is_closed(call, path))
		return -EACCES;
	if (emu->view == EMU_VIEW_CALLS && has_other_root(call))
		top = emu->tree_apart;
	if (top < 0)
		return EMU_CONTINUE;
	/* An O_PATH descriptor can't be handed over: one that may be read serves as well. */
	do
		fd = openat(top, path + 1,
			    (flags & (O_DIRECTORY | O_NOFOLLOW)) | O_RDONLY | O_CLOEXEC);
	while (emu_proc_again(fd >= 0));
	if (fd < 0)
		return -errno;
	return emu_answer_fd(call, fd, flags);
}

/* Is the path's parent a folder of the machine? (Nothing can be made in those.) */
static bool in_folder(struct emu *emu, char *path)
{
	char *last = strrchr(path, '/');
	struct stat st;

	if (!last || last == path)
		return false;
	*last = '\0';
	return !mc_render_stat(emu->render, path, &st) && S_ISDIR(st.st_mode);
}

static int64_t do_open(struct emu_call *call, int dirfd, uint64_t where, int flags)
{
	char path[EMU_PATH_MAX];
	int fd = -1, rc = emu_path_find(call, dirfd, where, !(flags & O_NOFOLLOW), path);

	if (rc == EMU_PATH_OTHER)
		return EMU_CONTINUE;
	if ((flags & O_CREAT) && !(flags & O_PATH) && !call->dots) {
		bool near = rc >= 0 || rc == -ENOTDIR || in_folder(call->emu, path);

		if (call->slash && near)
			return -EISDIR; /* a folder can't be made so, whether it is there or not */
		if (rc == -ENOENT && near)
			return -EACCES;
	}
	if (rc < 0) /* the machine has no such file, whatever the host has */
		return rc;
	if (rc == EMU_PATH_TREE)
		return open_tree(call, path, flags);
	if ((flags & O_TRUNC) && !writes(flags) && !emu_is_root(call))
		return EMU_CONTINUE; /* /proc: it may not, and the host says so */
	if ((flags & (O_PATH | O_DIRECTORY)) || ((flags & O_CREAT) && (flags & O_EXCL)))
		return EMU_CONTINUE;
	if (rc == EMU_PATH_PROC) {
		rc = emu_proc_open(call, path, flags, &fd);
	} else {
		/* A cpuset made inside could only be one of the host's CPUs, and would have no
		 * effect on the machine's: refused, so that nobody believes in it. */
		if (writes(flags))
			return is_cpuset(path) ? emu_refuse(call, EMU_REFUSED_CPUSET, EPERM)
					       : EMU_CONTINUE;
		if (is_closed(call, path))
			return -EACCES;
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

int64_t emu_creat(struct emu_call *call)
{
	return do_open(call, AT_FDCWD, call->arg[0], O_WRONLY | O_CREAT | O_TRUNC);
}

int64_t emu_openat(struct emu_call *call)
{
	return do_open(call, (int)call->arg[0], call->arg[1], (int)call->arg[2]);
}

/* What open_how may hold; for all else the host has the error. */
#define OPEN_FLAGS                                                                              \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC |   \
	 O_ASYNC | O_DIRECT | 0100000 /* the kernel's O_LARGEFILE */ | O_NOFOLLOW | O_NOATIME | \
	 O_CLOEXEC | O_PATH | O_TMPFILE)
#define RESOLVE_ROOTED (RESOLVE_BENEATH | RESOLVE_IN_ROOT)
#define RESOLVE_ALL                                                                       \
	(RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_ROOTED | \
	 RESOLVE_CACHED)

/* Reads it as the kernel does: what is longer than we know must be zeroes. */
static bool read_how(struct emu_call *call, struct open_how *how)
{
	uint64_t at = call->arg[2] + sizeof(*how), left = call->arg[3] - sizeof(*how);
	char part[256];

	if (call->arg[3] < sizeof(*how) || call->arg[3] > 4096 ||
	    emu_read(call, how, call->arg[2], sizeof(*how)))
		return false;
	while (left) {
		size_t n = left < sizeof(part) ? left : sizeof(part);

		if (emu_read(call, part, at, n))
			return false;
		for (size_t i = 0; i < n; i++)
			if (part[i])
				return false;
		at += n;
		left -= n;
	}
	return !(how->flags & ~(uint64_t)OPEN_FLAGS) && !(how->resolve & ~(uint64_t)RESOLVE_ALL) &&
	       (how->resolve & RESOLVE_ROOTED) != RESOLVE_ROOTED &&
	       (!how->mode || (how->flags & (O_CREAT | O_TMPFILE)));
}

int64_t emu_openat2(struct emu_call *call)
{
	char path[EMU_PATH_MAX];
	struct open_how how;
	int rc;

	if (!read_how(call, &how))
		return EMU_CONTINUE;
	if (how.resolve) {
		rc = emu_path_find(call, (int)call->arg[0], call->arg[1], !(how.flags & O_NOFOLLOW),
				   path);
		if (rc == EMU_PATH_OTHER)
			return EMU_CONTINUE;
		/* What may leave the folder it is held to is for the host, which has the error or
		 * another root. */
		if ((how.resolve & RESOLVE_ROOTED) &&
		    (call->crossed || call->up || (call->linked && rc != EMU_PATH_PROC)))
			return EMU_CONTINUE;
		if ((how.resolve & RESOLVE_NO_XDEV) && call->crossed)
			return -EXDEV;
		if ((how.resolve & RESOLVE_NO_SYMLINKS) && call->linked)
			return -ELOOP;
		/* "Not without waiting": the caller then asks again without this flag. */
		if (how.resolve & RESOLVE_CACHED)
			return -EAGAIN;
	}
	return do_open(call, (int)call->arg[0], call->arg[1], (int)how.flags);
}
