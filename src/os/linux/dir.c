// SPDX-License-Identifier: MIT
/* linux/dir.c - folders for os.h: listing them and reading what is in them without following links.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/os.h"

int mc_os_open_dir(int root, const char *path)
{
	int fd;

	if (root == MC_ROOT_LIVE)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else
		fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void mc_os_close(int fd)
{
	close(fd);
}

static char type_of(int dir, const struct dirent *entry)
{
	struct stat st;

	switch (entry->d_type) {
	case DT_REG:
		return 'f';
	case DT_DIR:
		return 'd';
	case DT_LNK:
		return 'l';
	case DT_UNKNOWN:
		if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 'o';
		return S_ISREG(st.st_mode)   ? 'f'
		       : S_ISDIR(st.st_mode) ? 'd'
		       : S_ISLNK(st.st_mode) ? 'l'
					     : 'o';
	default:
		return 'o';
	}
}

int mc_os_list_dir(int dir, int (*fn)(void *arg, const char *name, char type), void *arg)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0), rc = 0;
	struct dirent *entry;
	DIR *stream;

	if (copy < 0)
		return -errno;
	stream = fdopendir(copy);
	if (!stream) {
		rc = -errno;
		close(copy);
		return rc;
	}
	while (rc == 0) {
		errno = 0;
		entry = readdir(stream);
		if (!entry) {
			rc = -errno;
			break;
		}
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			rc = fn(arg, entry->d_name, type_of(dir, entry));
	}
	closedir(stream);
	return rc;
}

int mc_os_read_link(int dir, const char *name, char *target, size_t size)
{
	ssize_t n = readlinkat(dir, name, target, size);

	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	target[n] = '\0';
	return 0;
}

int mc_os_read_plain(int dir, const char *name, size_t max, char **text, size_t *len)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
	    rc = 0;
	size_t have = 0, room;
	struct stat st;
	char *buf;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -EINVAL;
	else if ((uint64_t)st.st_size > max)
		rc = -EFBIG;
	room = rc == 0 && st.st_size > 0 ? (size_t)st.st_size : 4096;
	buf = rc == 0 ? malloc(room + 1) : NULL;
	if (rc == 0 && !buf)
		rc = -ENOMEM;
	while (rc == 0) {
		ssize_t n = read(fd, buf + have, room + 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		have += (size_t)n;
		if (have > max)
			rc = -EFBIG;
		if (rc == 0 && have == room + 1) {
			char *bigger = realloc(buf, room * 2 + 1);

			if (!bigger)
				rc = -ENOMEM;
			else
				buf = bigger, room *= 2;
		}
	}
	close(fd);
	if (rc < 0) {
		free(buf);
		return rc;
	}
	buf[have] = '\0';
	*text = buf;
	*len = have;
	return 0;
}
