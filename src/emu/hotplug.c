// SPDX-License-Identifier: MIT
/*
 * hotplug.c - writing cpuN/online inside. The caller gets the writing end of a pipe; every answered call first applies
 * what has been written, so whoever asks afterwards sees it done. The error of a write that the kernel would refuse
 * (EBUSY for the last CPU) can't be told through a pipe (limits.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "emu/internal.h"

struct emu_plug {
	struct emu_plug *next;
	unsigned int cpu;
	int fd;
};

int emu_plug_open(struct emu *emu, unsigned int cpu)
{
	struct emu_plug *plug = malloc(sizeof(*plug));
	int ends[2];

	if (!plug || pipe2(ends, O_CLOEXEC) < 0) {
		free(plug);
		return -ENOMEM;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	plug->cpu = cpu;
	plug->fd = ends[0];
	pthread_mutex_lock(&emu->plug_lock);
	plug->next = emu->plugs;
	emu->plugs = plug;
	atomic_fetch_add(&emu->nr_plugs, 1);
	pthread_mutex_unlock(&emu->plug_lock);
	return ends[1];
}

static void apply(struct emu *emu, unsigned int cpu, const char *text, ssize_t len)
{
	int rc = -EINVAL;

	if (len > 0 && (len == 1 || text[1] == '\n') && (text[0] == '0' || text[0] == '1'))
		rc = emu_set_online(emu, cpu, text[0] == '1');
	if (emu_tracing(emu))
		emu_trace(emu, "cpu%u/online <- %.*s = %d", cpu, len > 0 ? 1 : 0, text, rc);
}

void emu_plug_drain(struct emu *emu)
{
	pthread_mutex_lock(&emu->plug_lock);
	for (struct emu_plug **at = &emu->plugs; *at;) {
		struct emu_plug *plug = *at;
		char text[64];
		ssize_t n;

		while ((n = read(plug->fd, text, sizeof(text))) > 0)
			apply(emu, plug->cpu, text, n);
		if (n == 0 || errno != EAGAIN) {
			*at = plug->next;
			close(plug->fd);
			free(plug);
			atomic_fetch_sub(&emu->nr_plugs, 1);
			continue;
		}
		at = &plug->next;
	}
	pthread_mutex_unlock(&emu->plug_lock);
}
