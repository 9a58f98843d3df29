// SPDX-License-Identifier: MIT
/*
 * namespace.c - the namespace view: a mount namespace of the command's own in which folders of a
 * private file system (fuse.c, or a tmpfs) lie over those of sysfs. Run by the child before its
 * filter is loaded. Real root takes just a mount namespace; anybody else first a user namespace
 * that maps his own ids only. Nothing is mounted outside of that namespace, and all of it ends with
 * the last process in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/internal.h"

const char *const emu_roots[] = { "/sys/devices/system/cpu",    "/sys/devices/system/node",
				  "/sys/devices/system/memory", "/sys/bus/cpu",
				  "/sys/bus/node",              "/sys/bus/memory",
				  "/sys/kernel/mm/mempolicy",
				  NULL };

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int user_namespace(const char **step)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char text[64];
	int rc;

	*step = "making a user and mount namespace";
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	*step = "mapping the user's ids";
	rc = write_text("/proc/self/setgroups", "deny");
	if (rc < 0 && rc != -ENOENT)
		return rc;
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	rc = write_text("/proc/self/uid_map", text);
	if (rc < 0)
		return rc;
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	return write_text("/proc/self/gid_map", text);
}

static int make_folders(char *path, size_t top)
{
	for (char *p = path + top + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int bind_roots(struct emu *emu, const char *stage, bool files)
{
	char path[256];
	int rc;

	for (int i = 0; emu_roots[i]; i++) {
		if (!(emu->mounted & (1u << i)))
			continue;
		snprintf(path, sizeof(path), "%s%s", stage, emu_roots[i]);
		rc = make_folders(path, strlen(stage));
		if (rc < 0)
			return rc;
		if (mount(path, emu_roots[i], NULL, MS_BIND, NULL) < 0)
			return -errno;
		/* A file system that asks answers as sysfs does. A tmpfs would let its owner change
		 * what is shown: it is as where sysfs is mounted read-only, and the supervisor
		 * alone, which has the tmpfs by its root, changes it. The flags are those it was
		 * mounted with: a user namespace may not drop them. */
		if (files && mount(NULL, emu_roots[i], NULL,
			  MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  NULL) < 0)
			return -errno;
	}
	return 0;
}

/* A file system that asks is mounted and served from now on; else a tmpfs. */
static int mount_stage(struct emu *emu, int sock, const char *stage, int *root)
{
	struct emu_msg msg = { .kind = EMU_MSG_FUSE };
	int fd = emu_fuse_mount(stage), rc;

	*root = -1;
	if (fd >= 0) {
		rc = emu_msg_send(sock, &msg, fd);
		close(fd);
		if (rc < 0)
			return rc;
		emu->lazy = false;
		return emu_msg_recv(sock, &msg, &fd) > 0 && msg.kind == EMU_MSG_GO ? 0 : -EIO;
	}
	if (mount("manycore", stage, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") < 0)
		return -errno;
	*root = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *root < 0 ? -errno : 0;
}

int emu_view_namespace(struct emu *emu, int sock, int *root, const char **step)
{
	static const char stage[] = "/sys/module"; /* any folder that is always there and not one of ours */
	int rc;

	*step = "making a mount namespace";
	/* Root of a container may lack the right, and then be allowed a user namespace like
	 * anybody. */
	if (emu->in_userns || unshare(CLONE_NEWNS) < 0) {
		rc = emu->in_userns || errno == EPERM ? user_namespace(step) : -errno;
		if (rc < 0)
			return rc;
	}
	*step = "keeping mounts private";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	*step = "mounting the machine's files";
	rc = mount_stage(emu, sock, stage, root);
	if (rc < 0)
		return rc;
	*step = "binding the machine's folders";
	rc = bind_roots(emu, stage, *root >= 0);
	if (rc < 0)
		return rc;
	/* The binds keep the tmpfs; the supervisor keeps its root by descriptor. */
	*step = "uncovering the stage";
	return umount2(stage, MNT_DETACH) < 0 ? -errno : 0;
}
