// SPDX-License-Identifier: MIT
/*
 * stat.c - stat, access, readlink and their kin on paths of the machine. Seen only where the tree
 * is made on first need.
 *
 * Where the namespace view covers the path, the file is made and the host's kernel goes on; in the
 * calls view the private tree's file is asked and its answer written to the caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

/* EMU_CONTINUE, -errno, or 0: ask for `path` below the tree. */
static int64_t find(struct emu_call *call, int dirfd, uint64_t where, bool follow, char *path)
{
	int rc = emu_path_find(call, dirfd, where, follow, path);

	if (rc < 0)
		return rc;
	if (rc != EMU_PATH_TREE)
		return EMU_CONTINUE;
	rc = emu_tree_ensure(call->emu, path);
	if (!emu_tree_unmade(rc) && emu_path_mounted(call->emu, path))
		return EMU_CONTINUE;
	return rc;
}

static int64_t do_stat(struct emu_call *call, int dirfd, uint64_t where, uint64_t to, int flags)
{
	char path[EMU_PATH_MAX];
	struct stat st;
	int64_t rc;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE))
		return -EINVAL;
	rc = find(call, dirfd, where, !(flags & AT_SYMLINK_NOFOLLOW), path);
	if (rc)
		return rc;
	if (fstatat(call->emu->tree, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return emu_write(call, to, &st,
			 sizeof(st)); /* glibc's is the kernel's on 64-bit machines */
}

int64_t emu_stat(struct emu_call *call)
{
	return do_stat(call, AT_FDCWD, call->arg[0], call->arg[1], 0);
}

int64_t emu_lstat(struct emu_call *call)
{
	return do_stat(call, AT_FDCWD, call->arg[0], call->arg[1], AT_SYMLINK_NOFOLLOW);
}

int64_t emu_newfstatat(struct emu_call *call)
{
	return do_stat(call, (int)call->arg[0], call->arg[1], call->arg[2], (int)call->arg[3]);
}

int64_t emu_statx(struct emu_call *call)
{
	char path[EMU_PATH_MAX];
	struct statx stx;
	int flags = (int)call->arg[2];
	int64_t rc =
		find(call, (int)call->arg[0], call->arg[1], !(flags & AT_SYMLINK_NOFOLLOW), path);

	if (rc)
		return rc;
	if (syscall(SYS_statx, call->emu->tree, path + 1, flags | AT_SYMLINK_NOFOLLOW,
		    (unsigned int)call->arg[3], &stx) < 0)
		return -errno;
	return emu_write(call, call->arg[4], &stx, sizeof(stx));
}

bool emu_is_root(struct emu_call *call)
{
	return !call->emu->in_userns && emu_proc_field(call->caller, "Uid:") == 0;
}

static int64_t do_access(struct emu_call *call, int dirfd, uint64_t where, int mode, int flags)
{
	char path[EMU_PATH_MAX];
	unsigned int bits;
	struct stat st;
	int64_t rc;

	if ((mode & ~(R_OK | W_OK | X_OK)) ||
	    (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
		return -EINVAL;
	rc = find(call, dirfd, where, !(flags & AT_SYMLINK_NOFOLLOW), path);
	if (rc)
		return rc;
	if (fstatat(call->emu->tree, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* By the mode bits alone: who runs the machine owns it; but for real root, who may read and
	 * write anything. */
	if (!(mode & X_OK) && emu_is_root(call))
		return 0;
	if (S_ISDIR(st.st_mode) && (mode & W_OK))
		return -EACCES;
	bits = st.st_mode >> (emu_is_owner(call) ? 6 : 0) & 7;
	if (S_ISLNK(st.st_mode) || (bits & (unsigned int)mode) == (unsigned int)mode)
		return 0;
	return -EACCES;
}

int64_t emu_access(struct emu_call *call)
{
	return do_access(call, AT_FDCWD, call->arg[0], (int)call->arg[1], 0);
}

int64_t emu_faccessat(struct emu_call *call)
{
	return do_access(call, (int)call->arg[0], call->arg[1], (int)call->arg[2], 0);
}

int64_t emu_faccessat2(struct emu_call *call)
{
	return do_access(call, (int)call->arg[0], call->arg[1], (int)call->arg[2],
			 (int)call->arg[3]);
}

static int64_t do_readlink(struct emu_call *call, int dirfd, uint64_t where, uint64_t to, int size)
{
	char path[EMU_PATH_MAX], target[EMU_PATH_MAX];
	int64_t rc = find(call, dirfd, where, false, path);
	ssize_t n;

	if (rc)
		return rc;
	if (size <= 0)
		return -EINVAL;
	n = readlinkat(call->emu->tree, path + 1, target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n > size)
		n = size;
	rc = emu_write(call, to, target, (size_t)n);
	return rc < 0 ? rc : n;
}

int64_t emu_readlink(struct emu_call *call)
{
	return do_readlink(call, AT_FDCWD, call->arg[0], call->arg[1], (int)call->arg[2]);
}

int64_t emu_readlinkat(struct emu_call *call)
{
	return do_readlink(call, (int)call->arg[0], call->arg[1], call->arg[2], (int)call->arg[3]);
}

/*
 * Extended attributes: sysfs files have none that an ordinary host shows. ls -l asks for each file,
 * and a file that is not made yet must not look missing.
 */
static int64_t do_xattr(struct emu_call *call, bool follow, int64_t answer)
{
	char path[EMU_PATH_MAX], name[257];
	int64_t rc;

	if (answer < 0) { /* a name is given */
		rc = emu_read_string(call, name, call->arg[1], sizeof(name));
		if (rc <= 0)
			return rc == -EFAULT || rc == -ENOENT ? rc : -ERANGE;
	}
	rc = find(call, AT_FDCWD, call->arg[0], follow, path);
	return rc ? rc : answer;
}

int64_t emu_getxattr(struct emu_call *call)
{
	return do_xattr(call, true, -EOPNOTSUPP);
}

int64_t emu_lgetxattr(struct emu_call *call)
{
	return do_xattr(call, false, -EOPNOTSUPP);
}

int64_t emu_listxattr(struct emu_call *call)
{
	return do_xattr(call, true, 0);
}

int64_t emu_llistxattr(struct emu_call *call)
{
	return do_xattr(call, false, 0);
}

/* Whatever holds the machine's files, they are sysfs. */
int64_t emu_statfs(struct emu_call *call)
{
	char path[EMU_PATH_MAX];
	struct statfs fs;
	int64_t rc = find(call, AT_FDCWD, call->arg[0], true, path);

	if (rc)
		return rc;
	if (faccessat(call->emu->tree, path + 1, F_OK, 0) < 0 || statfs("/sys", &fs) < 0)
		return -errno;
	return emu_write(call, call->arg[1], &fs, sizeof(fs));
}
