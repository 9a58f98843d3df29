// SPDX-License-Identifier: MIT
/* linux/os.c - os.h by Linux's system calls. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/os.h"

int mc_os_read_file(int root, const char *path, size_t max, char **text, size_t *len)
{
	size_t have = 0, room = 4096;
	char *buf;
	int fd;

	if (root == MC_ROOT_LIVE)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	else
		fd = openat(root, *path == '/' ? path + 1 : path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	buf = malloc(room + 1);
	if (!buf) {
		close(fd);
		return -ENOMEM;
	}
	for (;;) {
		ssize_t n = read(fd, buf + have, room - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = errno;

			free(buf);
			close(fd);
			return -err;
		}
		if (n == 0)
			break;
		have += (size_t)n;
		if (have > max) {
			free(buf);
			close(fd);
			return -EFBIG;
		}
		if (have == room) {
			char *bigger = realloc(buf, room * 2 + 1);

			if (!bigger) {
				free(buf);
				close(fd);
				return -ENOMEM;
			}
			buf = bigger;
			room *= 2;
		}
	}
	close(fd);
	buf[have] = '\0';
	*text = buf;
	*len = have;
	return 0;
}

int mc_os_read_number(int root, const char *path, long long *value)
{
	char *text, *end;
	size_t len;
	long long v;
	int rc = mc_os_read_file(root, path, 4096, &text, &len);

	if (rc < 0)
		return rc;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || end == text || (*end && *end != '\n'))
		rc = -EINVAL;
	else
		*value = v;
	free(text);
	return rc;
}

int mc_os_getaffinity(pid_t tid, size_t bytes, unsigned long *mask)
{
	long n = syscall(SYS_sched_getaffinity, tid, bytes, mask);

	return n < 0 ? -errno : (int)n;
}

int mc_os_setaffinity(pid_t tid, size_t bytes, const unsigned long *mask)
{
	return syscall(SYS_sched_setaffinity, tid, bytes, mask) < 0 ? -errno : 0;
}

int mc_os_getcpu(unsigned int *cpu, unsigned int *node)
{
	return syscall(SYS_getcpu, cpu, node, NULL) < 0 ? -errno : 0;
}
