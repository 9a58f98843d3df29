// SPDX-License-Identifier: MIT
/*
 * hotplug.c - writing cpuN/online, or a node's interleave weight, inside. The caller gets the
 * writing end of a pipe; every answered call first applies what has been written, so whoever asks
 * afterwards sees it done. The error of a write that the kernel would refuse (EBUSY for the last
 * CPU) can't be told through a pipe (limits.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/internal.h"

struct emu_plug {
	struct emu_plug *next;
	unsigned int number;
	void (*apply)(struct emu *emu, unsigned int number, const char *text, ssize_t len);
	int fd;
};

static int open_plug(struct emu *emu, unsigned int number,
		     void (*apply)(struct emu *emu, unsigned int number, const char *text,
				   ssize_t len))
{
	struct emu_plug *plug = malloc(sizeof(*plug));
	int ends[2];

	if (!plug || pipe2(ends, O_CLOEXEC) < 0) {
		free(plug);
		return -ENOMEM;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	plug->number = number;
	plug->apply = apply;
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

int emu_plug_open(struct emu *emu, unsigned int cpu)
{
	return open_plug(emu, cpu, apply);
}

/* The file in the tree: a new one in its place, since equal files share an inode. */
static void show_weight(struct emu *emu, unsigned int node)
{
	char path[128], tmp[160];
	struct mc_text text = {0};
	int fd;

	if (emu->fuse)
		return; /* read anew each time */
	snprintf(path, sizeof(path), "/sys/kernel/mm/mempolicy/weighted_interleave/node%u", node);
	snprintf(tmp, sizeof(tmp), "%s.new", path + 1);
	if (!mc_render_read(emu->render, path, &text)) {
		fd = openat(emu->tree, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd >= 0) {
			(void)!write(fd, text.data, text.len);
			close(fd);
			renameat(emu->tree, tmp, emu->tree, path + 1);
		}
	}
	mc_text_free(&text);
}

static void apply_weight(struct emu *emu, unsigned int node, const char *text, ssize_t len)
{
	int rc = emu_policy_set_weight(emu, node, text, (size_t)len);

	if (!rc)
		show_weight(emu, node);
	if (emu_tracing(emu))
		emu_trace(emu, "weighted_interleave/node%u <- %.*s = %d", node,
			  (int)strcspn(text, "\n"), text, rc);
}

int emu_plug_open_weight(struct emu *emu, unsigned int node)
{
	return open_plug(emu, node, apply_weight);
}

/*
 * Applying takes the locks of processes, and a plug is opened by a call that holds its process: the
 * list is taken off first, so that plug_lock is innermost. drain_lock makes others wait for what is
 * being applied; it is taken before any process.
 */
void emu_plug_drain(struct emu *emu)
{
	struct emu_plug *list, **at;

	pthread_mutex_lock(&emu->drain_lock);
	pthread_mutex_lock(&emu->plug_lock);
	list = emu->plugs;
	emu->plugs = NULL;
	pthread_mutex_unlock(&emu->plug_lock);
	for (at = &list; *at;) {
		struct emu_plug *plug = *at;
		char text[64];
		ssize_t n;

		while ((n = read(plug->fd, text, sizeof(text) - 1)) > 0) {
			text[n] = '\0';
			plug->apply(emu, plug->number, text, n);
		}
		if (n == 0 || errno != EAGAIN) {
			*at = plug->next;
			close(plug->fd);
			free(plug);
			atomic_fetch_sub(&emu->nr_plugs, 1);
			continue;
		}
		at = &plug->next;
	}
	/* Before those that were opened meanwhile. */
	pthread_mutex_lock(&emu->plug_lock);
	*at = emu->plugs;
	emu->plugs = list;
	pthread_mutex_unlock(&emu->plug_lock);
	pthread_mutex_unlock(&emu->drain_lock);
}
