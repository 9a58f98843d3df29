// SPDX-License-Identifier: MIT
/*
 * mempolicy_files.c - shared memory that was filled by write(2): no page of it is in any page
 * table, and yet it has nodes.
 *
 * Before a thread's policy changes, what it has open of shared memory is looked through for pages
 * that are there and not known: they were made under the policy that ends. Mapped ones are settled
 * before, by mempolicy_settle.c.
 *
 * The descriptors are the program's, and may be other files than a moment ago. Whatever is not
 * surely a file in memory is not opened and its file system is asked nothing: opening a FIFO or a
 * device has effects, and a FUSE server of the tree may never answer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy.h"

enum { MEMFD_DEVICES = 16 };

/* The devices of memfds: of the kernel's own mount in memory, and of one for each size of huge
 * pages. False: they are not known, for want of a descriptor. */
static bool is_memfd(dev_t dev)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static dev_t known[MEMFD_DEVICES];
	static unsigned int nr;
	bool found = false;

	pthread_mutex_lock(&lock);
	for (unsigned int shift = 0; (shift ? nr : !nr) && shift < 64; shift++) {
		unsigned int flags = MFD_CLOEXEC | (shift ? MFD_HUGETLB | shift << 26 : 0);
		int fd = nr < MEMFD_DEVICES ? memfd_create("device", flags) : -1;
		struct stat st;

		if (fd >= 0 && !fstat(fd, &st))
			known[nr++] = st.st_dev;
		if (fd >= 0)
			close(fd);
	}
	for (unsigned int i = 0; i < nr; i++)
		found |= known[i] == dev;
	pthread_mutex_unlock(&lock);
	return found;
}

/* A tmpfs that the process sees, in whatever mount namespace. */
static bool is_tmpfs(const struct emu_task *task, dev_t dev)
{
	char path[64], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", task->process->tgid);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &size, f) > 0) {
		const char *type = strstr(line, " - ");
		unsigned int major_nr, minor_nr;

		found = type && !strncmp(type + 3, "tmpfs ", 6) &&
			sscanf(line, "%*d %*d %u:%u", &major_nr, &minor_nr) == 2 &&
			makedev(major_nr, minor_nr) == dev;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Pages [first, last) of the object: those not known were written by the task. */
static void place_pages(struct emu *emu, const struct emu_task *task, dev_t dev, uint64_t ino,
			uint64_t first, uint64_t last)
{
	struct mp_state *state = mp_state(emu);
	struct mp_object *object;

	pthread_mutex_lock(&state->lock);
	object = mp_object_get(state, dev, ino, true);
	for (; object && first < last; first++) {
		struct pol *pol = pol_ranges_at(&object->ranges, first, NULL);
		unsigned int node;

		if (pol_pages_get(&object->pages, first) != POL_NO_NODE)
			continue;
		node = mp_place(emu, pol, mp_who_of(emu, task), ino + first);
		pol_pages_set(&object->pages, first, node);
	}
	pthread_mutex_unlock(&state->lock);
}

static void look_through(struct emu *emu, const struct emu_task *task, const char *path)
{
	const unsigned int mask = STATX_TYPE | STATX_INO | STATX_BLOCKS;
	uint64_t page = mp_state(emu)->page;
	int name = open(path, O_PATH | O_CLOEXEC), fd = -1;
	struct statx st;
	off_t at = 0, end;
	char link[32];
	dev_t dev;

	if (name < 0)
		return;
	if (emu_proc_leads(name, "", mask, &st) && S_ISREG(st.stx_mode) && st.stx_blocks) {
		dev = makedev(st.stx_dev_major, st.stx_dev_minor);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", name);
		if (is_memfd(dev) || is_tmpfs(task, dev))
			fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	close(name);
	if (fd < 0)
		return;
	while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && (end = lseek(fd, at, SEEK_HOLE)) > at) {
		place_pages(emu, task, dev, st.stx_ino, (uint64_t)at / page,
			    ((uint64_t)end + page - 1) / page);
		at = end;
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
