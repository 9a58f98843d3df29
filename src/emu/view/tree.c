// SPDX-License-Identifier: MIT
/*
 * tree.c - the rendered tree as files: in the namespace view the tmpfs under the command's mounts,
 * in the calls view a private folder whose descriptors are handed out.
 *
 * A small machine's tree is made whole before the command runs. A large one's folder is filled when
 * a call first names something in it (emu->lazy), so that a start costs the same for 2 and for 8192
 * CPUs. After hot-plug all is made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/internal.h"

/* A folder that has been filled. */
struct emu_dir {
	struct emu_dir *next;
	char path[];
};

#define DIRS (sizeof(((struct emu *)0)->dirs) / sizeof(struct emu_dir *))

static size_t slot(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return (size_t)(hash >> 20) % DIRS;
}

static bool is_filled(struct emu *emu, const char *path)
{
	for (struct emu_dir *d = emu->dirs[slot(path)]; d; d = d->next)
		if (!strcmp(d->path, path))
			return true;
	return false;
}

static void set_filled(struct emu *emu, const char *path)
{
	struct emu_dir *d = malloc(sizeof(*d) + strlen(path) + 1);

	if (!d)
		return; /* filled again next time: EEXIST is no error there */
	strcpy(d->path, path);
	d->next = emu->dirs[slot(path)];
	emu->dirs[slot(path)] = d;
}

static size_t root_of(const char *path, int *which)
{
	for (int i = 0; emu_roots[i]; i++) {
		size_t n = strlen(emu_roots[i]);

		*which = i;
		if (!strncmp(path, emu_roots[i], n) && (!path[n] || path[n] == '/'))
			return n;
	}
	return 0;
}

/* Memory blocks are many and seldom asked for: also where the rest is made at the start, theirs are
 * made at the first open of anything there. */
static bool is_memory(int which)
{
	return strstr(emu_roots[which], "memory") != NULL;
}

bool emu_in_roots(const char *path)
{
	int which;

	return root_of(path, &which) > 0;
}

bool emu_path_mounted(struct emu *emu, const char *path)
{
	int which;

	return root_of(path, &which) && (emu->mounted & (1u << which));
}

static int fill(struct emu *emu, const char *path, unsigned int flags)
{
	struct mc_error error = { .text = "" };
	int dir, rc;

	if (is_filled(emu, path))
		return 0;
	do
		dir = openat(emu->tree, path + 1,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	while (emu_proc_again(dir >= 0));
	if (dir < 0)
		return -errno;
	do {
		rc = mc_render_tree(emu->render, path, dir, flags, &error);
		errno = -rc;
	} while (emu_proc_again(rc != -EMFILE && rc != -ENFILE));
	close(dir);
	if (rc < 0 && rc != -EEXIST)
		return rc;
	set_filled(emu, path);
	return 0;
}

bool emu_tree_unmade(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOSPC || rc == -EDQUOT;
}

bool emu_tree_moves(const char *path)
{
	static const char *const names[] = { "/meminfo", "/numastat", "/vmstat", "_hugepages", NULL };
	static const char weights[] = "/sys/kernel/mm/mempolicy/weighted_interleave/node";
	size_t len = strlen(path);

	if (!strncmp(path, weights, sizeof(weights) - 1))
		return true;
	if (strncmp(path, "/sys/devices/system/node/node", 29))
		return false;
	for (int i = 0; names[i]; i++)
		if (len > strlen(names[i]) && !strcmp(path + len - strlen(names[i]), names[i]))
			return true;
	return false;
}

/* Fills each folder on the way from the root folder to `path`, which itself may be one. */
static int fill_way(struct emu *emu, const char *path, size_t root)
{
	char part[EMU_PATH_MAX];
	size_t len = strlen(path), end = root;
	struct stat st;
	int rc = 0;

	while (!rc) {
		memcpy(part, path, end);
		part[end] = '\0';
		if (end == len && end > root &&
		    (fstatat(emu->tree, part + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		     !S_ISDIR(st.st_mode)))
			break;
		rc = fill(emu, part, MC_RENDER_SHALLOW);
		if (end >= len)
			break;
		end += 1 + strcspn(path + end + 1, "/");
	}
	return rc;
}

int emu_tree_ensure(struct emu *emu, const char *path)
{
	int which, rc = 0;
	size_t root = root_of(path, &which);

	if (!root || strlen(path) >= EMU_PATH_MAX)
		return -ENOENT;
	if (emu->fuse)
		return 0;
	pthread_mutex_lock(&emu->tree_lock);
	if (emu->lazy)
		rc = fill_way(emu, path, root);
	else if (is_memory(which))
		rc = fill(emu, emu_roots[which], 0);
	pthread_mutex_unlock(&emu->tree_lock);
	return rc;
}

/* Folders down to the roots; all of them when the tree is not lazy. */
int emu_tree_prepare(struct emu *emu, struct mc_error *error)
{
	struct stat st;
	char path[128];

	for (int i = 0; emu_roots[i]; i++) {
		snprintf(path, sizeof(path), "%s", emu_roots[i] + 1);
		if (mc_render_stat(emu->render, emu_roots[i], &st) < 0)
			continue;
		for (char *p = path; (p = strchr(p, '/')); p++) {
			*p = '\0';
			(void)mkdirat(emu->tree, path, 0755);
			*p = '/';
		}
		(void)mkdirat(emu->tree, path, 0755);
		if (!emu->lazy && !is_memory(i)) {
			int rc = fill(emu, emu_roots[i], 0);

			if (rc < 0) {
				snprintf(error->text, sizeof(error->text),
					 "writing the rendered machine: %s: %s", emu_roots[i],
					 strerror(-rc));
				return rc;
			}
		}
	}
	return 0;
}

int emu_tree_lstat(struct emu *emu, const char *path, struct stat *st)
{
	/* Never through the file system that we serve ourselves. */
	if (emu->fuse)
		return mc_render_stat(emu->render, path, st);
	return fstatat(emu->tree, path + 1, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

void emu_tree_stale(struct emu *emu)
{
	struct mc_error error;

	if (emu->fuse) {
		emu_fuse_stale(emu);
		return;
	}
	pthread_mutex_lock(&emu->tree_lock);
	for (size_t i = 0; i < DIRS; i++)
		while (emu->dirs[i]) {
			struct emu_dir *d = emu->dirs[i];

			emu->dirs[i] = d->next;
			free(d);
		}
	for (int i = 0; emu_roots[i]; i++) {
		int dir;

		do
			dir = openat(emu->tree, emu_roots[i] + 1,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		while (emu_proc_again(dir >= 0));
		if (dir >= 0)
			emu_folder_empty(dir);
	}
	(void)emu_tree_prepare(emu, &error);
	pthread_mutex_unlock(&emu->tree_lock);
}
