// SPDX-License-Identifier: MIT
/*
 * mempolicy_files.c - shared memory that was filled by write(2): no page of it is in any page
 * table, and yet it has nodes.
 *
 * Before a thread's policy changes, what it has open of shared memory is looked through for pages
 * that are there and not known: they were made under the policy that ends. Mapped ones are settled
 * before, by mempolicy_settle.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy.h"

/* Pages [first, last) of the object: those not known were written by the task. */
static void place_pages(struct emu *emu, const struct emu_task *task, const struct stat *st,
			uint64_t first, uint64_t last)
{
	struct mp_state *state = mp_state(emu);
	struct mp_object *object;

	pthread_mutex_lock(&state->lock);
	object = mp_object_get(state, st->st_dev, st->st_ino, true);
	for (; object && first < last; first++) {
		struct pol *pol = pol_ranges_at(&object->ranges, first, NULL);
		unsigned int node;

		if (pol_pages_get(&object->pages, first) != POL_NO_NODE)
			continue;
		node = mp_place(emu, pol, mp_who_of(emu, task), st->st_ino + first);
		pol_pages_set(&object->pages, first, node);
	}
	pthread_mutex_unlock(&state->lock);
}

static void look_through(struct emu *emu, const struct emu_task *task, const char *path)
{
	uint64_t page = mp_state(emu)->page;
	struct stat st;
	off_t at = 0, end;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_blocks) {
		while ((at = lseek(fd, at, SEEK_DATA)) >= 0 &&
		       (end = lseek(fd, at, SEEK_HOLE)) > at) {
			place_pages(emu, task, &st, (uint64_t)at / page,
				    ((uint64_t)end + page - 1) / page);
			at = end;
		}
	}
	close(fd);
}

void mp_settle_files(struct emu *emu, const struct emu_task *task)
{
	char path[64], name[96], target[32];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", task->process->tgid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		ssize_t n;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%.20s", path, entry->d_name);
		n = readlink(name, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (!strncmp(target, "/memfd:", 7) || !strncmp(target, "/dev/shm/", 9))
			look_through(emu, task, name);
	}
	if (dir)
		closedir(dir);
}
