// SPDX-License-Identifier: MIT
/*
 * folder.c - the private folder of the calls view, /dev/shm/manycore.PID.SALT.run: made, removed,
 * and swept when a run was killed as a whole and could remove nothing.
 *
 * The supervisor holds a lock (flock) on the folder for its life; the descriptor is close-on-exec,
 * so that nobody else keeps it. Process ids say nothing (namespaces share /dev/shm), the lock does:
 * who gets it may remove the folder. Called by supervisor, guard and waiter.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "emu/internal.h"

/* What a start looks at in a crowded /dev/shm or /tmp, and how much it removes. */
enum { SWEEP_NAMES = 4096, SWEEP_OPENS = 64, SWEEP_REMOVES = 4 };
enum { MAKE_TRIES = 100, SALT_DIGITS = 16, DEEPEST = 32 };

/* Takes the descriptor. Stays on its file system and follows no link. */
static void empty(int dir, dev_t dev, int depth)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;
	struct stat st;

	if (!d) {
		close(dir);
		return;
	}
	while ((e = readdir(d))) {
		int sub;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!unlinkat(dirfd(d), e->d_name, 0) || depth == DEEPEST)
			continue;
		sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			continue;
		if (fstat(sub, &st) < 0 || st.st_dev != dev)
			close(sub);
		else
			empty(sub, dev, depth + 1);
		(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

void emu_folder_empty(int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		close(dir);
	else
		empty(dir, st.st_dev, 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void emu_remove_tree(const char *path)
{
	if (path[0])
		nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Is `name` in the folder `at` the folder of ours that is open as fd? */
static bool is_still(int at, const char *name, int fd)
{
	struct stat here, there;

	return fstat(fd, &here) == 0 && fstatat(at, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino &&
	       here.st_uid == geteuid();
}

/* The folder, locked. -EAGAIN: a run that sweeps took it in the moment before the lock; `again` it
 * may be there still. */
static int make_locked(const char *path, bool again)
{
	int fd, rc;

	/* Until it is locked nobody else may open it, so that only our own user's sweep can come
	 * between. */
	if (mkdir(path, 0700) < 0 && (errno != EEXIST || !again))
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	rc = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (!rc && !is_still(AT_FDCWD, path, fd))
		rc = -EAGAIN;
	/* A file system without such locks: then nobody can sweep there either. */
	if (rc == -EAGAIN) {
		close(fd);
		return rc;
	}
	(void)fchmod(fd, 0755);
	return fd;
}

int emu_tree_make_private(struct emu *emu, struct mc_error *error)
{
	struct timespec wait = {0, 1000 * 1000};
	int fd = -EAGAIN;

	for (int i = 0; i < MAKE_TRIES && fd == -EAGAIN; i++) {
		if (i)
			nanosleep(&wait, NULL); /* taken by a sweep: it is gone in a moment */
		fd = make_locked(emu->tree_path, i > 0);
	}
	if (fd >= 0) {
		emu->tree = fd;
		emu->tree_apart = (int)syscall(SYS_open_tree, fd, "",
					       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
		return 0;
	}
	snprintf(error->text, sizeof(error->text),
		 "making a private folder: %s: %s; /dev/shm, /tmp or /var/tmp must be writable",
		 emu->tree_path, strerror(-fd));
	return fd;
}

/* ---- sweeping -------------------------------------------------------------------------------- */

/* manycore.PID.SALT.run */
static bool is_folder_name(const char *name)
{
	static const char head[] = "manycore.", hex[] = "0123456789abcdef", digits[] = "0123456789";
	size_t n;

	if (strncmp(name, head, sizeof(head) - 1))
		return false;
	name += sizeof(head) - 1;
	n = strspn(name, digits);
	if (!n || name[n] != '.')
		return false;
	name += n + 1;
	return strspn(name, hex) == SALT_DIGITS && !strcmp(name + SALT_DIGITS, ".run");
}

/* True when it was a dead run's of this user, and is gone. One that others may write to was not
 * made by us: somebody may have moved it here. */
static bool sweep_one(int place, const char *name)
{
	int dir = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), dup;
	bool dead;
	struct stat st;

	if (dir < 0)
		return false;
	dead = fstat(dir, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 022) &&
	       flock(dir, LOCK_EX | LOCK_NB) == 0 && is_still(place, name, dir);
	dup = dead ? fcntl(dir, F_DUPFD_CLOEXEC, 3) : -1;
	if (dup >= 0) {
		emu_folder_empty(dup);
		dead = unlinkat(place, name, AT_REMOVEDIR) == 0;
	}
	close(dir); /* only now may others have the lock */
	return dead;
}

void emu_folder_sweep(const char *tree_path)
{
	char place[sizeof(((struct emu *)0)->tree_path)];
	unsigned int names = 0, opens = 0, removed = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(place, sizeof(place), "%s", tree_path);
	*strrchr(place, '/') = '\0';
	dir = opendir(place);
	while (dir && names < SWEEP_NAMES && opens < SWEEP_OPENS && removed < SWEEP_REMOVES &&
	       (e = readdir(dir))) {
		names++;
		if (!is_folder_name(e->d_name))
			continue;
		opens++;
		removed += sweep_one(dirfd(dir), e->d_name);
	}
	if (dir)
		closedir(dir);
}
