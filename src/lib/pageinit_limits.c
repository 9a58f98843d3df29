// SPDX-License-Identifier: MIT
/*
 * pageinit_limits.c - how much memory may still be taken before something kills the process, and
 * how much CPU time it has.
 *
 * A memory cgroup's limit kills (or, v1 with its OOM killer off, hangs) whoever crosses it, and any
 * ancestor's limit counts. So arenas ask here before they take more. Rules:
 * Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. Page cache that is easily given
 * back is not counted as used. Who may take memory from some nodes only is killed when those are
 * full, whatever others have. Everything is read through a root handle. Used by arena.c.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/internal.h"
#include "lib/pageinit.h"
#include "os/os.h"

struct level {
	char *path; /* of the cgroup's folder */
	bool v2;
};

struct mc_limits {
	int root;
	unsigned int nr_memory, nr_cpu, nr_huge;
	struct level *memory, *cpu, *huge;
};

enum { MAX_FILE = 1 << 20 };

static char *read_text(int root, const char *path)
{
	char *text = NULL;
	size_t len;

	return mc_os_read_file(root, path, MAX_FILE, &text, &len) < 0 ? NULL : text;
}

/* Is `word` one of the comma-separated words of `list`, which ends at a blank, a colon or a line's
 * end? */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; *p && !strchr(" :\n", *p);) {
		size_t len = strcspn(p, ", :\n");

		if (len == n && !memcmp(p, word, n))
			return true;
		p += len;
		if (*p == ',')
			p++;
	}
	return false;
}

/* mountinfo writes blanks and the like as \ooo. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && isdigit((unsigned char)s[1]) && isdigit((unsigned char)s[2]) &&
		    isdigit((unsigned char)s[3])) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Where the hierarchy with this controller is mounted: fills root and mount point (malloc'ed). */
static bool find_mount(const char *mountinfo, const char *controller, bool v2, char **root,
		       char **point)
{
	for (const char *line = mountinfo; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *end = strchr(line, '\n'), *sep = strstr(line, " - ");
		char type[32], super[512], from[PATH_MAX], at[PATH_MAX];

		if (!sep || (end && sep > end) ||
		    sscanf(sep, " - %31s %*s %511s", type, super) != 2)
			continue;
		if (strcmp(type, v2 ? "cgroup2" : "cgroup") ||
		    (!v2 && !has_word(super, controller)))
			continue;
		if (sscanf(line, "%*s %*s %*s %4095s %4095s", from, at) != 2)
			continue;
		unescape(from);
		unescape(at);
		*root = strdup(from);
		*point = strdup(at);
		if (*root && *point)
			return true;
		free(*root);
		free(*point);
		return false;
	}
	return false;
}

/* This process's path in the hierarchy (malloc'ed). */
static char *find_path(const char *cgroup, const char *controller, bool v2)
{
	for (const char *line = cgroup; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		if (v2 ? path == list + 1 : has_word(list + 1, controller))
			return strndup(path + 1, strcspn(path + 1, "\n"));
	}
	return NULL;
}

static bool add_level(struct level **levels, unsigned int *nr, const char *path, bool v2)
{
	struct level *more = realloc(*levels, (*nr + 1) * sizeof(*more));

	if (!more)
		return false;
	*levels = more;
	more[*nr].v2 = v2;
	more[*nr].path = strdup(path);
	if (!more[*nr].path)
		return false;
	++*nr;
	return true;
}

/* Adds the process's cgroup of a controller and each folder above it up to the mount point. */
static bool add_hierarchy(struct level **levels, unsigned int *nr, const char *mountinfo,
			  const char *cgroup, const char *controller, bool v2)
{
	char *root, *point, *path = find_path(cgroup, controller, v2), full[PATH_MAX];
	bool ok = true;
	const char *inside;
	size_t base, n;

	if (!path || !find_mount(mountinfo, controller, v2, &root, &point)) {
		free(path);
		return true;
	}
	/* Seen from inside a cgroup namespace or a bind mount the upper part of the path is cut
	 * off. */
	n = strlen(root);
	inside = !strcmp(root, "/")                                        ? path
		 : !strncmp(path, root, n) && (!path[n] || path[n] == '/') ? path + n
									   : "";
	if (strstr(inside, "/.."))
		inside = "";
	base = strlen(point);
	n = (size_t)snprintf(full, sizeof(full), "%s%s", point, inside);
	if (n < sizeof(full)) {
		while (n > base && full[n - 1] == '/')
			full[--n] = '\0';
		while (ok) {
			ok = add_level(levels, nr, full, v2);
			if (n <= base)
				break;
			n = (size_t)(strrchr(full, '/') - full);
			full[n] = '\0';
		}
	}
	free(root);
	free(point);
	free(path);
	return ok;
}

struct mc_limits *mc_limits_open(int root)
{
	struct mc_limits *l = calloc(1, sizeof(*l));
	char *mounts, *cgroup;
	bool ok = true;

	if (!l)
		return NULL;
	l->root = root;
	mounts = read_text(root, "/proc/self/mountinfo");
	cgroup = read_text(root, "/proc/self/cgroup");
	if (mounts && cgroup)
		for (int v2 = 0; v2 < 2 && ok; v2++)
			ok = add_hierarchy(&l->memory, &l->nr_memory, mounts, cgroup, "memory",
					   v2) &&
			     add_hierarchy(&l->cpu, &l->nr_cpu, mounts, cgroup, "cpu", v2) &&
			     add_hierarchy(&l->huge, &l->nr_huge, mounts, cgroup, "hugetlb", v2);
	free(mounts);
	free(cgroup);
	if (!ok) {
		mc_limits_close(l);
		errno = ENOMEM;
		return NULL;
	}
	return l;
}

static void free_levels(struct level *level, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		free(level[i].path);
	free(level);
}

void mc_limits_close(struct mc_limits *limits)
{
	if (!limits)
		return;
	free_levels(limits->memory, limits->nr_memory);
	free_levels(limits->cpu, limits->nr_cpu);
	free_levels(limits->huge, limits->nr_huge);
	free(limits);
}

/* A number from a file of the cgroup; INT64_MAX for "max", for none, and for v1's "unlimited". */
static int64_t number(const struct mc_limits *l, const struct level *level, const char *file)
{
	int64_t v = INT64_MAX;
	char path[PATH_MAX], *text;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", level->path, file) >= sizeof(path))
		return v;
	text = read_text(l->root, path);
	if (text && isdigit((unsigned char)*text)) {
		v = strtoll(text, NULL, 10);
		if (v >= INT64_MAX / 2)
			v = INT64_MAX;
	}
	free(text);
	return v;
}

/* "key value" or "key: value kB" lines; 0 when absent. */
static int64_t field(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, key, n) && (line[n] == ' ' || line[n] == ':'))
			return strtoll(line + n + 1, NULL, 10);
	return 0;
}

/* File pages that the kernel would drop before it killed anybody. */
static int64_t reclaimable(const struct mc_limits *l, const struct level *level)
{
	char path[PATH_MAX], *text;
	int64_t v = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/memory.stat", level->path) >= sizeof(path))
		return 0;
	text = read_text(l->root, path);
	if (text && level->v2)
		v = field(text, "inactive_file") + field(text, "active_file") -
		    field(text, "file_dirty") - field(text, "file_writeback");
	else if (text)
		v = field(text, "total_inactive_file") + field(text, "total_active_file") -
		    field(text, "total_dirty") - field(text, "total_writeback");
	free(text);
	return v < 0 ? 0 : v;
}

int64_t mc_limits_headroom(const struct mc_limits *l, bool *cgroup, char *why, size_t size)
{
	int64_t least = INT64_MAX;
	char *text = read_text(l->root, "/proc/meminfo");

	*cgroup = false;
	if (text && strstr(text, "MemAvailable:")) {
		least = field(text, "MemAvailable") * 1024;
		snprintf(why, size, "the machine has %" PRId64 " MiB left", least >> 20);
	}
	free(text);
	for (unsigned int i = 0; i < l->nr_memory; i++) {
		const struct level *v = &l->memory[i];
		int64_t max = number(l, v, v->v2 ? "memory.max" : "memory.limit_in_bytes"), used,
			left;
		int64_t high = v->v2 ? number(l, v, "memory.high")
				     : INT64_MAX; /* above it the kernel throttles */

		if (high < max)
			max = high;
		if (max == INT64_MAX)
			continue;
		used = number(l, v, v->v2 ? "memory.current" : "memory.usage_in_bytes");
		if (used == INT64_MAX)
			continue;
		left = max - used;
		if (left < least) /* only near a limit is the dearer file read */
			left += reclaimable(l, v);
		if (left > max)
			left = max;
		if (left >= least)
			continue;
		least = left;
		*cgroup = true;
		snprintf(why, size, "memory cgroup %s: %" PRId64 " of %" PRId64 " MiB used",
			 v->path, used >> 20, max >> 20);
	}
	return least < 0 ? 0 : least;
}

/* "Node 0 MemFree:   1234 kB" of a node's meminfo; bytes. */
static int64_t node_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoll(at + strlen(key), NULL, 10) * 1024 : 0;
}

int64_t mc_limits_nodes(const struct mc_limits *l, const struct mc_cpumask *nodes, char *why,
			size_t size)
{
	char *machine = read_text(l->root, "/proc/meminfo"), *text, list[64], path[96];
	int64_t total = machine ? field(machine, "MemTotal") * 1024 : 0, left = 0;
	long long reserve = 0;
	unsigned int n;

	free(machine);
	/* What the kernel keeps for itself, of all nodes: "high" is 1.5 of "min". */
	if (mc_os_read_number(l->root, "/proc/sys/vm/min_free_kbytes", &reserve) < 0)
		reserve = 0;
	reserve = reserve * 1024 * 3 / 2;
	mc_for_each_cpu (n, nodes) {
		int64_t cache, share;

		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", n);
		text = read_text(l->root, path);
		if (!text)
			return INT64_MAX; /* not shown: the machine's own must do */
		cache = node_field(text, "Active(file):") + node_field(text, "Inactive(file):") -
			node_field(text, "Dirty:") - node_field(text, "Writeback:");
		share = total > 0 ? (int64_t)((double)reserve *
					      (double)node_field(text, "MemTotal:") / (double)total)
				  : 0;
		left += node_field(text, "MemFree:") - share + (cache > 0 ? cache : 0);
		free(text);
	}
	if (left < 0)
		left = 0;
	mc_cpulist_snprint(list, sizeof(list), nodes);
	snprintf(why, size, "node%s %s, which it may not leave, %s %" PRId64 " MiB left",
		 mc_cpumask_weight(nodes) > 1 ? "s" : "", list,
		 mc_cpumask_weight(nodes) > 1 ? "have" : "has", left >> 20);
	return left;
}

bool mc_limits_huge(const struct mc_limits *l, size_t page, char *why, size_t size)
{
	static const char *const max[] = {"max", "rsvd.max", "limit_in_bytes",
					  "rsvd.limit_in_bytes"},
				 *const now[] = {"current", "rsvd.current", "usage_in_bytes",
						 "rsvd.usage_in_bytes"};
	unsigned int shift = page >> 30 ? 30 : page >> 20 ? 20 : 10;
	char name[64];

	for (unsigned int i = 0; i < l->nr_huge; i++)
		for (unsigned int k = 0; k < 4; k++) {
			int64_t limit, used;

			snprintf(name, sizeof(name), "hugetlb.%zu%cB.%s", page >> shift,
				 shift == 30   ? 'G'
				 : shift == 20 ? 'M'
					       : 'K',
				 max[k]);
			limit = number(l, &l->huge[i], name);
			if (limit == INT64_MAX)
				continue;
			strcpy(strrchr(name, 'B') + 2, now[k]);
			used = number(l, &l->huge[i], name);
			if (used == INT64_MAX || used <= limit - (int64_t)page)
				continue;
			snprintf(why, size, "hugetlb cgroup %s: %" PRId64 " of %" PRId64 " MiB used",
				 l->huge[i].path, used >> 20, limit >> 20);
			return true;
		}
	return false;
}

unsigned int mc_limits_cpus(const struct mc_limits *l)
{
	unsigned int least = UINT_MAX;

	for (unsigned int i = 0; i < l->nr_cpu; i++) {
		const struct level *v = &l->cpu[i];
		int64_t quota = -1, period = 0;

		if (v->v2) {
			char path[PATH_MAX], *text;

			if ((size_t)snprintf(path, sizeof(path), "%s/cpu.max", v->path) >=
			    sizeof(path))
				continue;
			text = read_text(l->root, path);
			if (!text || sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) != 2)
				quota = -1;
			free(text);
		} else {
			quota = number(l, v,
				       "cpu.cfs_quota_us"); /* -1, read as none, is no limit */
			period = number(l, v, "cpu.cfs_period_us");
		}
		if (quota <= 0 || quota == INT64_MAX || period <= 0 || period == INT64_MAX)
			continue;
		quota = (quota + period - 1) / period;
		if (quota < least)
			least = (unsigned int)quota;
	}
	return least;
}
