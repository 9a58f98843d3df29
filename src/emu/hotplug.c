// SPDX-License-Identifier: MIT
/*
 * hotplug.c - writing cpuN/online, or a node's interleave weight, inside. Where the view is a file
 * system that asks (view/fuse.c) the write itself is answered, with the kernel's errors. Elsewhere
 * the caller gets the writing end of a pipe; every answered call first applies what has been
 * written, so whoever asks afterwards sees it done, but an error can't be told (limits.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/internal.h"

typedef int store_fn(struct emu *emu, unsigned int number, const char *text, size_t len);

struct emu_plug {
	struct emu_plug *next;
	unsigned int number;
	store_fn *apply;
	int fd;
};

static int open_plug(struct emu *emu, unsigned int number, store_fn *apply)
{
	struct emu_plug *plug = malloc(sizeof(*plug));
	int ends[2];

	/* In packets: each write is one store, as in sysfs. */
	if (!plug || pipe2(ends, O_CLOEXEC | O_DIRECT) < 0) {
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

/* The kernel's kstrtobool(): the first letter decides, for "on" and "off" the second. */
static int parse_bool(const char *text, bool *value)
{
	static const char yes[] = "1yYtTeE", no[] = "0nNfFdD";
	char c = text[0];

	if (c == 'o' || c == 'O') {
		*value = text[1] == 'n' || text[1] == 'N';
		return *value || text[1] == 'f' || text[1] == 'F' ? 0 : -EINVAL;
	}
	*value = c && strchr(yes, c);
	return *value || (c && strchr(no, c)) ? 0 : -EINVAL;
}

static int apply(struct emu *emu, unsigned int cpu, const char *text, size_t len)
{
	bool online;
	int rc = parse_bool(text, &online);

	if (!rc)
		rc = emu_set_online(emu, cpu, online);
	if (emu_tracing(emu))
		emu_trace(emu, "cpu%u/online <- %.*s = %d", cpu, len ? 1 : 0, text, rc);
	return rc;
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
		do
			fd = openat(emu->tree, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		while (emu_proc_again(fd >= 0));
		if (fd >= 0) {
			(void)!write(fd, text.data, text.len);
			close(fd);
			renameat(emu->tree, tmp, emu->tree, path + 1);
		}
	}
	mc_text_free(&text);
}

static int apply_weight(struct emu *emu, unsigned int node, const char *text, size_t len)
{
	int rc = emu_policy_set_weight(emu, node, text, len);

	if (!rc)
		show_weight(emu, node);
	if (emu_tracing(emu))
		emu_trace(emu, "weighted_interleave/node%u <- %.*s = %d", node,
			  (int)strcspn(text, "\n"), text, rc);
	return rc;
}

/* N of a path of the form TOP N TAIL, or -1. */
static long number_in(const char *path, const char *top, const char *tail)
{
	size_t len = strlen(top);
	char *end;
	long n;

	if (strncmp(path, top, len) || path[len] < '0' || path[len] > '9')
		return -1;
	n = strtol(path + len, &end, 10);
	return !strcmp(end, tail) ? n : -1;
}

/* What writing the file does; NULL: it has no store. */
static store_fn *store_of(const char *path, unsigned int *number)
{
	long n = number_in(path, "/sys/devices/system/cpu/cpu", "/online");
	bool cpu = n >= 0;

	if (!cpu)
		n = number_in(path, "/sys/kernel/mm/mempolicy/weighted_interleave/node", "");
	*number = (unsigned int)n;
	return n < 0 ? NULL : cpu ? apply : apply_weight;
}

bool emu_plug_is(const char *path)
{
	unsigned int number;

	return store_of(path, &number) != NULL;
}

/* By a pipe to a CPU's file tasks may be moved by any write from now on, until the last end is
 * closed. */
int emu_plug_open(struct emu_call *call, const char *path)
{
	unsigned int number;
	store_fn *store = store_of(path, &number);
	int fd = store ? open_plug(call->emu, number, store) : -EACCES;

	if (fd >= 0 && store == apply)
		emu_answers_hold(call);
	return fd;
}

int emu_plug_write(struct emu *emu, const char *path, const char *text, size_t len)
{
	unsigned int number;
	store_fn *store = store_of(path, &number);
	int rc = -EACCES;

	if (!store)
		return rc;
	pthread_mutex_lock(&emu->drain_lock);
	rc = store(emu, number, text, len);
	pthread_mutex_unlock(&emu->drain_lock);
	return rc;
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
		char text[EMU_STORE_MAX + 1];
		ssize_t n;

		while ((n = read(plug->fd, text, sizeof(text) - 1)) > 0) {
			text[n] = '\0';
			(void)plug->apply(emu, plug->number, text, (size_t)n);
		}
		if (n == 0 || errno != EAGAIN) {
			*at = plug->next;
			if (plug->apply == apply)
				atomic_fetch_sub(&emu->holds, 1);
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
