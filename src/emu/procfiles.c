// SPDX-License-Identifier: MIT
/*
 * procfiles.c - answered opens of single files: a process's own (/proc/PID/status ...), which are
 * snapshots, and those of the machine (/proc/stat, meminfo, a node's numastat ...), which programs
 * keep open and read again (top, vmstat, free): these are written anew once a second as long as
 * somebody but us has them open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/internal.h"

/* A machine file that is open somewhere in the tree. */
struct emu_file {
	struct emu_file *next;
	int fd;         /* ours, for writing */
	char path[];
};

/* A descriptor of its own for the caller: another file position, and no more rights than it asked
 * for. */
static int reopen(int fd, int flags)
{
	char link[32];
	int own;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	do
		own = open(link, (flags & O_ACCMODE) | O_CLOEXEC);
	while (emu_proc_again(own >= 0));
	return own;
}

static int put_text(int fd, const struct mc_text *text)
{
	size_t done = 0;

	while (done < text->len) {
		ssize_t n = pwrite(fd, text->data + done, text->len - done, (off_t)done);

		if (n <= 0)
			return -EIO;
		done += (size_t)n;
	}
	return ftruncate(fd, (off_t)text->len) < 0 ? -errno : 0;
}

/* A memfd with the text; the caller's descriptor of it in *fd, ours returned. */
static int make_file(const char *name, const struct mc_text *text, int *fd)
{
	int own, rc;

	do
		own = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	while (emu_proc_again(own >= 0));
	if (own < 0)
		return -errno;
	rc = put_text(own, text);
	if (!rc)
		rc = fchmod(own, 0444) < 0 ? -errno : 0;
	if (!rc) {
		*fd = reopen(own, O_RDONLY);
		rc = *fd < 0 ? -errno : 0;
	}
	if (rc < 0) {
		close(own);
		return rc;
	}
	return own;
}

int emu_file_open(struct emu *emu, const char *path, int *fd)
{
	struct emu_file *file;
	struct mc_text text = { 0 };
	int own, rc = mc_render_read(emu->render, path, &text);

	if (rc < 0 || text.failed) {
		mc_text_free(&text);
		return rc < 0 ? rc : -ENOMEM;
	}
	own = make_file(path + 1, &text, fd);
	mc_text_free(&text);
	if (own < 0)
		return own;
	file = malloc(sizeof(*file) + strlen(path) + 1);
	if (!file || (strncmp(path, "/proc/", 6) && !emu_tree_moves(path))) {
		free(file);
		close(own);
		return 0;
	}
	file->fd = own;
	strcpy(file->path, path);
	pthread_mutex_lock(&emu->files_lock);
	if (emu->nr_files >= emu->max_files) {
		close(own); /* so many open at once: this one stays as it is */
		free(file);
	} else {
		file->next = emu->files;
		emu->files = file;
		emu->nr_files++;
	}
	pthread_mutex_unlock(&emu->files_lock);
	return 0;
}

/* A write lease is given only when nobody else has the file open. */
static bool only_ours(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return errno != EAGAIN;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

void emu_files_refresh(struct emu *emu)
{
	pthread_mutex_lock(&emu->files_lock);
	for (struct emu_file **at = &emu->files; *at;) {
		struct emu_file *file = *at;
		struct mc_text text = { 0 };

		if (only_ours(file->fd)) {
			*at = file->next;
			close(file->fd);
			free(file);
			emu->nr_files--;
			continue;
		}
		if (!mc_render_read(emu->render, file->path, &text) && !text.failed)
			(void)put_text(file->fd, &text);
		mc_text_free(&text);
		at = &file->next;
	}
	pthread_mutex_unlock(&emu->files_lock);
}

static int read_host(const char *path, struct mc_text *text)
{
	char part[8192];
	ssize_t n;
	int fd;

	do
		fd = open(path, O_RDONLY | O_CLOEXEC);
	while (emu_proc_again(fd >= 0));
	if (fd < 0)
		return -errno;
	while ((n = read(fd, part, sizeof(part))) > 0)
		mc_text_add(text, part, (size_t)n);
	close(fd);
	return n < 0 ? -errno : text->failed ? -ENOMEM : 0;
}

static int balancing(struct emu *emu, int flags, int *fd)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int own = -1;

	pthread_mutex_lock(&lock);
	if (own < 0) {
		bool numa = mc_topology_nr_node_ids(emu_topology(emu)) > 1;

		do
			own = memfd_create("numa_balancing", MFD_CLOEXEC);
		while (emu_proc_again(own >= 0));
		if (own >= 0)
			(void)!write(own, numa ? "1\n" : "0\n", 2);
	}
	*fd = own < 0 ? -ENOMEM : reopen(own, flags);
	if (*fd >= 0 && (flags & O_TRUNC))
		(void)!ftruncate(own, 0);
	pthread_mutex_unlock(&lock);
	return *fd < 0 ? -EACCES : 0;
}

/* "/proc/T[/task/T]/NAME": the thread and the name; NULL when it is something else. */
static const char *split(const char *path, pid_t *tid)
{
	char *end;

	*tid = (pid_t)strtol(path + 6, &end, 10);
	if (!strncmp(end, "/task/", 6))
		*tid = (pid_t)strtol(end + 6, &end, 10);
	return *end == '/' && !strchr(end + 1, '/') ? end + 1 : NULL;
}

/* Mems_allowed is as wide as the kernel's node limit. */
static struct mc_cpumask *wide_mems(const struct mc_topology *topo)
{
	const struct mc_cpumask *nodes = &mc_topology_nodes_allowed(topo)->m;
	struct mc_cpumask *wide = mc_cpumask_alloc_bits(mc_topology_max_numnodes(topo));
	unsigned int node;

	if (wide)
		mc_for_each_cpu(node, nodes)
			mc_cpumask_set(wide, node);
	return wide;
}

/* `task` NULL: a process outside of the tree, which on this machine may run anywhere. */
static int render_task(struct emu *emu, struct emu_task *task, pid_t tid, const char *path,
		       const char *name, struct mc_text *out)
{
	const struct mc_topology *topo = emu_topology(emu);
	const struct mc_cpumask *online = mc_topology_online(topo);
	struct mc_render_task of = { .cpu = -1 };
	struct mc_nodemask mems;
	struct mc_cpumask *wide;
	struct mc_text host = { 0 };
	int rc;

	if (!strcmp(name, "numa_maps"))
		return task ? emu_policy_numa_maps(emu, task, out) : -ENOSYS;
	of.allowed = task ? task->allowed : mc_topology_possible(topo);
	of.cpu =
		(int)(task ? task->cpu
			   : mc_cpumask_nth((unsigned int)tid % mc_cpumask_weight(online), online));
	wide = wide_mems(topo);
	if (!wide)
		return -ENOMEM;
	mems.m = *wide;
	of.mems = &mems;
	rc = read_host(path, &host);
	if (!rc && !strcmp(name, "status"))
		rc = mc_render_status(emu->render, host.data, host.len, &of, out);
	else if (!rc)
		rc = mc_render_stat_line(emu->render, host.data, host.len, &of, out);
	mc_text_free(&host);
	mc_cpumask_free(wide);
	return rc < 0 ? rc : out->failed ? -ENOMEM : 0;
}

/* Is the caller's /proc mounted so that it shows only who may be looked into? */
static bool is_hiding(pid_t caller)
{
	char path[64], *line = NULL;
	bool hides = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/mounts", caller);
	do
		f = fopen(path, "re");
	while (emu_proc_again(f));
	while (f && !hides && getline(&line, &size, f) > 0)
		hides = strstr(line, " /proc proc ") && strstr(line, "hidepid=");
	free(line);
	if (f)
		fclose(f);
	return hides || !f;
}

/* Real root's supervisor is shown more than the caller may see: addresses in a `stat`. */
enum sight { WHOLE, NO_ADDRESSES, NOTHING };

static enum sight sight_of(struct emu_call *call, pid_t tid, const char *name)
{
	if (call->emu->in_userns || emu_may_look(call, tid, false))
		return WHOLE;
	return !strcmp(name, "numa_maps") || is_hiding(call->caller) ? NOTHING : NO_ADDRESSES;
}

/* As the kernel: where the code lies is told as 1, all other addresses and the exit code as 0. */
static void hide_addresses(struct mc_text *text)
{
	const char *p = text->len ? memrchr(text->data, ')', text->len) : NULL;
	const char *end = text->data + text->len;
	struct mc_text out = {0};
	unsigned int field = 2;

	mc_text_add(&out, text->data, p ? (size_t)(p - text->data) : 0);
	while (p && p < end) {
		const char *next = memchr(p + 1, ' ', (size_t)(end - p - 1));
		bool code = field == 26 || field == 27;

		next = next ? next : end;
		if (code || (field >= 28 && field <= 30) || field == 35 || field >= 45)
			mc_text_printf(&out, code ? " 1" : next == end ? " 0\n" : " 0");
		else
			mc_text_add(&out, p, (size_t)(next - p));
		p = next;
		field++;
	}
	mc_text_free(text);
	*text = out;
}

/* 0 with *fd, -errno to answer, or 1: the host's file it is. */
int emu_proc_open(struct emu_call *call, const char *path, int flags, int *fd)
{
	struct mc_text text = { 0 };
	const struct emu_process *home;
	struct emu_task *task;
	enum sight sight;
	const char *name;
	pid_t tid;
	int own, rc;

	if (!strcmp(path, "/proc/sys/kernel/numa_balancing") && (flags & O_ACCMODE) != O_RDONLY &&
	    !emu_is_owner(call))
		return -EACCES;
	if (!strcmp(path, "/proc/sys/kernel/numa_balancing"))
		return balancing(call->emu, flags, fd);
	name = split(path, &tid);
	if (!name || (flags & O_ACCMODE) != O_RDONLY ||
	    (strcmp(name, "status") && strcmp(name, "stat") && strcmp(name, "numa_maps")))
		return 1;
	home = call->task->process;
	task = emu_task_find(call, tid);
	sight = task && task->process == home ? WHOLE : sight_of(call, tid, name);
	if (sight == NOTHING)
		return 1; /* as the host has it: refused, or not there */
	rc = render_task(call->emu, task, tid, path, name, &text);
	if (rc < 0) {
		mc_text_free(&text);
		/* What the host would show instead is of another machine. */
		return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM ? rc : 1;
	}
	if (sight == NO_ADDRESSES && !strcmp(name, "stat"))
		hide_addresses(&text);
	if (text.failed) {
		mc_text_free(&text);
		return -ENOMEM;
	}
	own = make_file(name, &text, fd);
	mc_text_free(&text);
	if (own < 0)
		return own;
	close(own);
	return 0;
}
