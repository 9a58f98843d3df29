// SPDX-License-Identifier: MIT
/*
 * change.c - what makes, removes, renames or alters files, on paths of the machine: seen in the
 * calls view only (in the namespace view the folders are read-only mounts). Nothing is ever
 * changed; the errors are those of sysfs, for root and for others, in the kernel's order. Root's
 * changes of attributes, which sysfs accepts, succeed and are not kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum kind { UNLINK, RMDIR, MKDIR, MKNOD, SYMLINK, LINK, RENAME, TRUNCATE, ATTRIBUTE, TIMES, XATTR };
enum { NONE = -1, ALWAYS = -2 }; /* of `nofollow`: never; every time; else the argument of flags */

/* Where a call has its paths: arguments of folder descriptors (NONE: the working folder) and
 * names. */
static const struct change {
	int nr;
	enum kind kind;
	int dir, name, dir2, name2;
	int nofollow;
} changes[] = {
#ifdef SYS_unlink
	{SYS_unlink, UNLINK, NONE, 0, NONE, NONE, ALWAYS},
	{SYS_rmdir, RMDIR, NONE, 0, NONE, NONE, ALWAYS},
	{SYS_mkdir, MKDIR, NONE, 0, NONE, NONE, ALWAYS},
	{SYS_mknod, MKNOD, NONE, 0, NONE, NONE, ALWAYS},
	{SYS_symlink, SYMLINK, NONE, 1, NONE, NONE, ALWAYS},
	{SYS_link, LINK, NONE, 0, NONE, 1, ALWAYS},
	{SYS_rename, RENAME, NONE, 0, NONE, 1, ALWAYS},
	{SYS_chmod, ATTRIBUTE, NONE, 0, NONE, NONE, NONE},
	{SYS_chown, ATTRIBUTE, NONE, 0, NONE, NONE, NONE},
	{SYS_lchown, ATTRIBUTE, NONE, 0, NONE, NONE, ALWAYS},
	{SYS_utime, TIMES, NONE, 0, NONE, NONE, NONE},
	{SYS_utimes, TIMES, NONE, 0, NONE, NONE, NONE},
	{SYS_futimesat, TIMES, 0, 1, NONE, NONE, NONE},
#endif
#ifdef SYS_renameat
	{SYS_renameat, RENAME, 0, 1, 2, 3, ALWAYS},
#endif
	{SYS_unlinkat, UNLINK, 0, 1, NONE, NONE, ALWAYS},
	{SYS_mkdirat, MKDIR, 0, 1, NONE, NONE, ALWAYS},
	{SYS_mknodat, MKNOD, 0, 1, NONE, NONE, ALWAYS},
	{SYS_symlinkat, SYMLINK, 1, 2, NONE, NONE, ALWAYS},
	{SYS_linkat, LINK, 0, 1, 2, 3, ALWAYS},
	{SYS_renameat2, RENAME, 0, 1, 2, 3, ALWAYS},
	{SYS_truncate, TRUNCATE, NONE, 0, NONE, NONE, NONE},
	{SYS_fchmodat, ATTRIBUTE, 0, 1, NONE, NONE, NONE},
	{SYS_fchmodat2, ATTRIBUTE, 0, 1, NONE, NONE, 3},
	{SYS_fchownat, ATTRIBUTE, 0, 1, NONE, NONE, 4},
	{SYS_utimensat, TIMES, 0, 1, NONE, NONE, 3},
	{SYS_setxattr, XATTR, NONE, 0, NONE, NONE, NONE},
	{SYS_lsetxattr, XATTR, NONE, 0, NONE, NONE, ALWAYS},
	{SYS_removexattr, XATTR, NONE, 0, NONE, NONE, NONE},
	{SYS_lremovexattr, XATTR, NONE, 0, NONE, NONE, ALWAYS},
};

struct place {
	bool ours;      /* a path of the rendered tree, or where it has no such file */
	int error;      /* 0, or why it leads nowhere */
	mode_t mode;
};

static struct place find(struct emu_call *call, const struct change *c, int dir, int name)
{
	int dirfd = dir >= 0 ? (int)call->arg[dir] : AT_FDCWD;
	bool follow = c->nofollow == NONE ||
		      (c->nofollow >= 0 && !(call->arg[c->nofollow] & AT_SYMLINK_NOFOLLOW));
	char path[EMU_PATH_MAX];
	struct place at = {0};
	struct stat st;
	int rc = emu_path_find(call, dirfd, call->arg[name], follow, path);

	if (rc < 0) {
		at.ours = true;
		at.error = rc;
	} else if (rc == EMU_PATH_TREE) {
		at.ours = true;
		at.error = emu_tree_ensure(call->emu, path);
		if (!at.error && fstatat(call->emu->tree, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
			at.error = -errno;
		else
			at.mode = st.st_mode;
	}
	return at;
}

/* Something that is there is to go. */
static int64_t remove_it(bool root, bool folder, const struct place *at)
{
	if (at->error || !root)
		return at->error ? at->error : -EACCES;
	if (folder != !!S_ISDIR(at->mode))
		return folder ? -ENOTDIR : -EISDIR;
	return -EPERM;
}

/* A name is to be made; `error`: what root is told. */
static int64_t make_it(bool root, int error, const struct place *at)
{
	if (!at->error)
		return -EEXIST;
	if (at->error != -ENOENT)
		return at->error;
	return root ? error : -EACCES;
}

static int64_t move_it(bool root, bool linking, const struct place *from, const struct place *to)
{
	if (linking && from->error)
		return from->error;
	if (linking && to->ours && !to->error)
		return -EEXIST;
	if (!from->ours || !to->ours)
		return -EXDEV;
	if (from->error || (to->error && to->error != -ENOENT))
		return from->error ? from->error : to->error;
	if (root && !linking && !to->error && S_ISDIR(from->mode) != S_ISDIR(to->mode))
		return S_ISDIR(from->mode) ? -ENOTDIR : -EISDIR;
	return root || (linking && to->error) ? -EPERM : -EACCES;
}

static int64_t alter(bool root, enum kind kind, const struct place *at)
{
	if (at->error)
		return at->error;
	if (kind == TRUNCATE && S_ISDIR(at->mode))
		return -EISDIR;
	if (kind == XATTR)
		return root ? -EOPNOTSUPP : -EACCES;
	if (root)
		return 0;
	return kind == ATTRIBUTE ? -EPERM : -EACCES;
}

static const struct change *change_of(const struct emu_call *call)
{
	const struct change *c = changes;

	while (c->nr != call->nr)
		c++;
	return c;
}

int64_t emu_change(struct emu_call *call)
{
	const struct change *c = change_of(call);
	struct place at, to = {0};
	enum kind kind = c->kind;
	bool root, regular;

	if (!call->arg[c->name])
		return EMU_CONTINUE; /* utimensat of a descriptor, or EFAULT */
	at = find(call, c, c->dir, c->name);
	if (c->name2 >= 0)
		to = find(call, c, c->dir2, c->name2);
	if (!at.ours && !to.ours)
		return EMU_CONTINUE;
	root = emu_is_root(call);
	if (call->nr == SYS_unlinkat && (call->arg[2] & AT_REMOVEDIR))
		kind = RMDIR;
	switch (kind) {
	case UNLINK:
	case RMDIR:
		return remove_it(root, kind == RMDIR, &at);
	case MKNOD:
		regular = S_ISREG(call->arg[c->name + 1]) || !(call->arg[c->name + 1] & S_IFMT);
		return make_it(root, regular ? -EACCES : -EPERM, &at);
	case MKDIR:
	case SYMLINK:
		return make_it(root, -EPERM, &at);
	case LINK:
	case RENAME:
		return move_it(root, kind == LINK, &at, &to);
	default:
		return alter(root, kind, &at);
	}
}
