// SPDX-License-Identifier: MIT
/*
 * populate_file.c - one file of `manycore populate`: opened, brought in by an arena over it, told
 * about.
 *
 * A file in memory (tmpfs, hugetlbfs) is one arena, split over the nodes. A file on disk is read in
 * one piece by one thread, or in as many stretches, each with a descriptor of its own, as threads
 * were asked for: read-ahead is by descriptor, and chunks of one read by turns defeat it (measured
 * up to 2x slower).
 *
 * What a former run brought in is found by looking, not by notes: the page cache itself is the
 * record.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/populate.h"

/* TEXT: what stands beside the path and the bar, " [] 100% 999.9 GB/s". */
enum { MAX_STRETCHES = 64, TICK_MS = 100, BAR = 30, TEXT = 20 };
#ifndef HUGETLBFS_MAGIC
#define HUGETLBFS_MAGIC 0x958458f6
#endif

/* The handler only reads these; they are set while no arena is being made or destroyed. */
static struct mc_arena *volatile running[MAX_STRETCHES];
static volatile sig_atomic_t interrupted;

struct file {
	const char *path;
	int fd;
	uint64_t size, already; /* bytes; already: hugetlbfs pages that were there */
	size_t pool_page;       /* hugetlbfs: its page size */
	bool memory, read, made; /* made: by this run */
	unsigned int stretches;
	struct mc_arena *arena[MAX_STRETCHES];
	double seconds;
};

void populate_interrupt(void)
{
	interrupted = 1;
	for (unsigned int i = 0; i < MAX_STRETCHES; i++)
		if (running[i])
			mc_arena_cancel(running[i]);
}

bool populate_interrupted(void)
{
	return interrupted;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int complain(const struct file *f, const char *what)
{
	cmd_error("populate", "%s: %s", f->path, what);
	return 2;
}

/* Nothing came of a file that this run made. A link to it was there before and stays. */
static void unmake(const struct file *f)
{
	char *name = realpath(f->path, NULL);
	struct stat st, now;

	if (name && !fstat(f->fd, &now) && !lstat(name, &st) && st.st_dev == now.st_dev &&
	    st.st_ino == now.st_ino)
		unlink(name);
	free(name);
}

/* Opens it, which must neither wait (a FIFO) nor set a device off. */
static int open_path(const struct populate *p, struct file *f, struct stat *st)
{
	int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
		    (p->how == POPULATE_READ ? O_RDONLY : O_RDWR) | (p->size ? O_CREAT : 0);
	bool there = !stat(f->path, st);

	if (!*f->path)
		return complain(f, "an empty name");
	if (there && !S_ISREG(st->st_mode))
		return complain(f, S_ISDIR(st->st_mode) ? "is a directory; name files"
							: "not a regular file");
	f->fd = open(f->path, flags, 0644);
	if (f->fd < 0 && (errno == EACCES || errno == EROFS || errno == ETXTBSY) &&
	    p->how == POPULATE_AUTO && !p->size)
		f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (f->fd < 0 && errno == ENOENT && !p->size)
		return complain(f, "No such file; --size makes it");
	if (f->fd < 0 || fstat(f->fd, st))
		return complain(f, strerror(errno));
	f->made = !there;
	return S_ISREG(st->st_mode) ? 0 : complain(f, "not a regular file");
}

static int open_file(struct populate *p, struct file *f)
{
	struct statfs fs;
	struct stat st;
	char text[200];
	int rc = open_path(p, f, &st);

	if (rc)
		return rc;
	if (fstatfs(f->fd, &fs))
		return complain(f, strerror(errno));
	f->pool_page = (uint32_t)fs.f_type == HUGETLBFS_MAGIC ? (size_t)fs.f_bsize : 0;
	f->memory = f->pool_page || (uint32_t)fs.f_type == TMPFS_MAGIC;
	f->read = p->how == POPULATE_READ || (p->how == POPULATE_AUTO && !f->memory && !p->size) ||
		  (fcntl(f->fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	if (p->hugetlb && f->pool_page != p->hugetlb) {
		snprintf(text, sizeof(text), "/sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB",
			 p->hugetlb >> 10);
		if (access(text, F_OK)) {
			snprintf(text, sizeof(text),
				 "this machine has no huge pages of %" PRIu64
				 " MiB; see /sys/kernel/mm/hugepages",
				 p->hugetlb >> 20);
			return complain(f, text);
		}
		snprintf(text, sizeof(text),
			 "not on a hugetlbfs of %" PRIu64 " MiB pages; mount one: "
			 "mount -t hugetlbfs -o pagesize=%" PRIu64 "M none DIRECTORY",
			 p->hugetlb >> 20, p->hugetlb >> 20);
		return complain(f, text);
	}
	f->size = p->size ? p->size : (uint64_t)st.st_size;
	if (f->pool_page)
		f->already = (uint64_t)st.st_blocks * 512;
	return f->size ? 0 : complain(f, "empty; --size says how long to make it");
}

static void choose_stretches(const struct populate *p, struct file *f)
{
	f->stretches = 1;
	if (f->memory || p->threads <= 1)
		return;
	f->stretches = p->threads < MAX_STRETCHES ? p->threads : MAX_STRETCHES;
	while (f->stretches > 1 && f->size / f->stretches < (8u << 20))
		f->stretches--;
}

static int start(struct populate *p, struct file *f, unsigned int i)
{
	uint64_t align = f->pool_page ? f->pool_page : 2u << 20,
		 part = (f->size / f->stretches + align - 1) / align * align;
	struct mc_arena_attr at = {.backing = MC_ARENA_FILE,
				   .topology = p->topo,
				   .nodes = p->nodes,
				   .chunk = p->chunk};
	struct mc_error error = {0};
	int rc, fd = i ? open(f->path, (f->read ? O_RDONLY : O_RDWR) | O_CLOEXEC) : f->fd;

	if (fd < 0)
		return complain(f, strerror(errno));
	at.fd = fd;
	at.offset = (off_t)(part * i);
	at.size = i + 1 == f->stretches ? f->size - part * i : part;
	/* Of a file on disk a hole can be in the page cache too: read, but not allocated. */
	at.flags = MC_ARENA_NO_DESCRIPTORS |
		   (f->read || f->memory ? MC_ARENA_SKIP_RESIDENT : 0) |
		   (f->read ? MC_ARENA_READ : 0) | (p->size && !f->read ? MC_ARENA_GROW : 0) |
		   (p->strict ? MC_ARENA_STRICT : 0);
	at.policy = p->policy_given ? p->policy : f->memory ? MC_ARENA_SPLIT : MC_ARENA_DEFAULT;
	at.threads = f->memory || p->threads_per_node ? p->threads : 1;
	rc = mc_arena_create(&at, &f->arena[i], &error);
	if (i)
		close(fd);
	if (rc < 0)
		return complain(f, error.text);
	running[i] = f->arena[i];
	if (interrupted)
		mc_arena_cancel(f->arena[i]);
	return 0;
}

static uint64_t ready_bytes(const struct file *f)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < f->stretches; i++)
		if (f->arena[i])
			sum += mc_arena_ready(f->arena[i]);
	return sum < f->size ? sum : f->size;
}

static int columns(void)
{
	struct winsize w;

	return !ioctl(2, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

static void draw(const struct file *f, double since)
{
	double share = (double)ready_bytes(f) / (double)f->size,
	       rate = share * (double)f->size / (now() - since + 1e-9) / 1e9;
	int full = (int)(share * BAR), room = columns() - BAR - TEXT;
	size_t n = strlen(f->path), skip = room > 0 && n > (size_t)room ? n - (size_t)room : 0;

	/* Of a long path the end: one line, or "\r" does not come back to its start. */
	fprintf(stderr, "\r%s%s[%.*s%*s] %3d%% %5.1f GB/s", room > 0 ? f->path + skip : "",
		room > 0 ? " " : "", full, "##############################", BAR - full, "",
		(int)(share * 100), rate);
}

/* Waits for every stretch; 0 or the first error. */
static int wait_for(struct populate *p, struct file *f)
{
	double since = now();
	int first = 0, rc;

	for (unsigned int i = 0; i < f->stretches; i++) {
		do {
			rc = mc_arena_wait(f->arena[i], 0, TICK_MS);
			if (p->bar)
				draw(f, since);
		} while (rc == -ETIMEDOUT);
		if (!first)
			first = rc;
	}
	if (p->bar)
		fprintf(stderr, "\r\033[K");
	f->seconds = now() - since;
	return first;
}

static const char *stop_name(enum mc_arena_stop stop)
{
	static const char *const name[] = {"none",  "cancelled", "hugetlb",  "space", "end",
					   "limit", "memory",    "callback", "io",    "other"};

	return stop < sizeof(name) / sizeof(*name) ? name[stop] : "other";
}

static void tell_part(const struct populate *p, const struct file *f,
		      const struct mc_arena_report *r)
{
	char line[900], nodes[200];

	mc_arena_report_snprint(line, sizeof(line), r);
	if (r->node == MC_ANY_NODE && !strncmp(line, "nodes ", 6)) {
		mc_cpulist_snprint(nodes, sizeof(nodes),
				   p->nodes ? &p->nodes->m
					    : &mc_topology_nodes_allowed(p->topo)->m);
		printf("nodes %s %s", nodes, line + 6);
	} else {
		fputs(line, stdout);
	}
	if (r->resident)
		printf(", %" PRIu64 " MiB were there", r->resident >> 20);
	printf(", %s\n", f->path);
}

static struct json_object *part_json(const struct mc_arena_report *r)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "node",
			       r->node == MC_ANY_NODE ? NULL : json_object_new_int((int)r->node));
	json_object_object_add(o, "offset", json_object_new_int64((int64_t)r->offset));
	json_object_object_add(o, "size", json_object_new_int64((int64_t)r->size));
	json_object_object_add(o, "ready", json_object_new_int64((int64_t)r->ready));
	json_object_object_add(o, "resident", json_object_new_int64((int64_t)r->resident));
	json_object_object_add(o, "bad", json_object_new_int64((int64_t)r->bad));
	json_object_object_add(o, "threads", json_object_new_int((int)r->threads));
	json_object_object_add(
		o, "ms",
		json_object_new_double(
			r->end_ns > r->start_ns ? (double)(r->end_ns - r->start_ns) / 1e6 : 0));
	json_object_object_add(o, "stop", json_object_new_string(stop_name(r->stop)));
	if (r->stop)
		json_object_object_add(o, "error", json_object_new_string(r->error.text));
	if (r->placement_err)
		json_object_object_add(o, "placement_error",
				       json_object_new_string(strerror(r->placement_err)));
	return o;
}

static void tell(struct populate *p, struct file *f, bool complete)
{
	struct json_object *o = json_object_new_object(), *nodes = json_object_new_array();
	uint64_t done = ready_bytes(f), resident = f->already < f->size ? f->already : f->size;

	for (unsigned int i = 0; i < f->stretches; i++)
		for (unsigned int k = 0; k < mc_arena_nr_parts(f->arena[i]); k++) {
			struct mc_arena_report r;

			mc_arena_part_report(f->arena[i], k, &r);
			resident += r.resident;
			if (p->json)
				json_object_array_add(nodes, part_json(&r));
			else
				tell_part(p, f, &r);
		}
	if (!p->json && f->already)
		printf("%s: %" PRIu64 " MiB of huge pages were there\n", f->path, f->already >> 20);
	if (!complete)
		fprintf(stderr,
			"manycore populate: %s: %s after %" PRIu64 " of %" PRIu64
			" MiB; the same command goes on from there\n",
			f->path, interrupted ? "interrupted" : "stopped", done >> 20,
			f->size >> 20);
	json_object_object_add(o, "path", json_object_new_string(f->path));
	json_object_object_add(o, "how", json_object_new_string(f->read ? "read" : "write"));
	json_object_object_add(o, "size", json_object_new_int64((int64_t)f->size));
	json_object_object_add(o, "page_size",
			       json_object_new_int64((int64_t)mc_arena_page_size(f->arena[0])));
	json_object_object_add(o, "ready", json_object_new_int64((int64_t)done));
	json_object_object_add(
		o, "resident",
		json_object_new_int64((int64_t)(resident < f->size ? resident : f->size)));
	json_object_object_add(o, "seconds", json_object_new_double(f->seconds));
	json_object_object_add(o, "complete", json_object_new_boolean(complete));
	json_object_object_add(o, "parts", nodes);
	if (p->json)
		json_object_array_add(p->files, o);
	else
		json_object_put(o);
}

int populate_file(struct populate *p, const char *path)
{
	struct file f = {.path = path, .fd = -1};
	int status = open_file(p, &f), rc;

	choose_stretches(p, &f);
	for (unsigned int i = 0; !status && i < f.stretches; i++)
		status = start(p, &f, i);
	if (status && f.made)
		unmake(&f);
	if (!status) {
		rc = wait_for(p, &f);
		tell(p, &f, rc == 0);
		status = rc ? 1 : 0;
	}
	for (unsigned int i = 0; i < f.stretches; i++) {
		running[i] = NULL;
		mc_arena_destroy(f.arena[i]);
	}
	if (f.fd >= 0)
		close(f.fd);
	return status;
}
