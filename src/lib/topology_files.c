// SPDX-License-Identifier: MIT
/*
 * topology_files.c - a recording in memory: a sorted list of the files, folders and links below its
 * sys/ and proc/.
 *
 * Filled by topology_files_dir.c or topology_files_tar.c through topo_files_add(), sealed once,
 * then read only. Everything that comes in is hostile: paths, sizes, links. Nothing is ever written
 * anywhere, and links are only followed here, in memory, never by the file system.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_files.h"

void topo_files_put(struct topo_files *files)
{
	if (!files || atomic_fetch_sub_explicit(&files->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < files->nr; i++) {
		free(files->file[i].path);
		if (!files->file[i].shares)
			free(files->file[i].data);
	}
	free(files->file);
	free(files);
}

void topo_base_share_files(struct topo_base *base, const struct topo_base *from)
{
	base->cpuinfo = from->cpuinfo;
	if (!from->files)
		return;
	atomic_fetch_add_explicit(&from->files->refs, 1, memory_order_relaxed);
	base->files = from->files;
	base->files_without_nodes = true;
}

struct topo_files *topo_files_new(const char *name)
{
	struct topo_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	atomic_init(&files->refs, 1);
	files->name = name;
	return files;
}

/* ---- taking in ------------------------------------------------------------------------------- */

int topo_files_charge(struct topo_files *files, uint64_t bytes, const char *path,
		      struct mc_error *error)
{
	if (bytes > TOPO_MAX_FILE_BYTES || files->bytes + bytes > TOPO_MAX_FILE_BYTES)
		return mc_fail(
			error, EFBIG,
			"reading machine: %.150s: %.200s: more than 256 MiB; keep only sys/ and proc/ of one machine",
			files->name, path);
	files->bytes += bytes;
	return 0;
}

/* True for "sys", "proc" and what is below them. */
static bool is_root(const char *path)
{
	return (!strncmp(path, "sys", 3) && (!path[3] || path[3] == '/')) ||
	       (!strncmp(path, "proc", 4) && (!path[4] || path[4] == '/'));
}

bool topo_files_wanted(const char *path)
{
	const char *slash = strchr(path, '/');

	return is_root(path) || (slash && is_root(slash + 1));
}

int topo_files_clean(struct topo_files *files, const char *path, char *clean, size_t size,
		     struct mc_error *error)
{
	size_t n = 0;

	if (*path == '/')
		return mc_fail(
			error, EINVAL,
			"reading machine: %.150s: %.200s: an absolute path; paths of a recording are relative",
			files->name, path);
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && !memcmp(path, "..", 2))
			return mc_fail(
				error, EINVAL,
				"reading machine: %.150s: a path with '..' leads out of the recording",
				files->name);
		if (len && !(len == 1 && *path == '.')) {
			if (n + len + 2 > size)
				return mc_fail(error, ENAMETOOLONG, "reading machine: %.150s: %.80s...: path too long",
					       files->name, path);
			if (n)
				clean[n++] = '/';
			memcpy(clean + n, path, len);
			n += len;
		}
		path += len;
		path += *path == '/';
	}
	clean[n] = '\0';
	return 0;
}

int topo_files_add(struct topo_files *files, const char *path, char type, char *data, size_t len,
		   struct mc_error *error)
{
	struct topo_file *list;
	int rc = topo_files_charge(files, strlen(path) + sizeof(*list), path, error);

	if (rc < 0)
		goto drop;
	if (files->nr >= TOPO_MAX_FILES) {
		rc = mc_fail(
			error, EFBIG,
			"reading machine: %.150s: more than %u files; keep only sys/ and proc/ of one machine",
			files->name, TOPO_MAX_FILES);
		goto drop;
	}
	if (files->nr == files->room) {
		size_t room = files->room ? files->room * 2 : 1024;

		list = realloc(files->file, room * sizeof(*list));
		if (!list)
			goto nomem;
		files->file = list;
		files->room = room;
	}
	list = &files->file[files->nr];
	/* One byte more: sealing puts a '/' in front. */
	list->path = malloc(strlen(path) + 2);
	if (!list->path)
		goto nomem;
	strcpy(list->path, path);
	list->type = type;
	list->data = data;
	list->len = len;
	list->order = (unsigned int)files->nr++;
	list->shares = false;
	return 0;
nomem:
	rc = mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", files->name);
drop:
	free(data);
	return rc;
}

/* ---- sealing --------------------------------------------------------------------------------- */

/* Orders paths so that a folder is followed by everything below it: '/' before all other
 * characters. */
static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return !*a ? -1 : 1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int compare_files(const void *pa, const void *pb)
{
	const struct topo_file *a = pa, *b = pb;
	int diff = compare_paths(a->path, b->path);

	if (diff)
		return diff;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Where sys/ and proc/ lie: at the top, or in one folder. Length of the prefix to cut off, or
 * -errno. */
static int find_prefix(const struct topo_files *files, const char **prefix, struct mc_error *error)
{
	size_t len = 0;

	*prefix = NULL;
	for (size_t i = 0; i < files->nr; i++)
		if (is_root(files->file[i].path))
			return 0;
	for (size_t i = 0; i < files->nr; i++) {
		const char *path = files->file[i].path, *slash = strchr(path, '/');

		if (!slash || !is_root(slash + 1))
			continue;
		if (*prefix && ((size_t)(slash + 1 - path) != len || memcmp(*prefix, path, len)))
			return mc_fail(
				error, EINVAL,
				"reading machine: %.150s: holds more than one machine (%.*s and %.*s); name one folder",
				files->name, (int)len - 1, *prefix, (int)(slash - path), path);
		*prefix = path;
		len = (size_t)(slash + 1 - path);
	}
	if (!*prefix)
		return mc_fail(error, EINVAL,
			       "reading machine: %.150s: no sys/ or proc/ in it or one folder down; is it a recording?",
			       files->name);
	return (int)len;
}

/* Makes paths absolute ("/sys/..."), drops what lies elsewhere, and lets X.gz stand for X. */
static int rebase(struct topo_files *files, struct mc_error *error)
{
	const char *prefix;
	char *keep = NULL;
	size_t kept = 0;
	int len = find_prefix(files, &prefix, error);

	if (len < 0)
		return len;
	if (len) {
		keep = strndup(prefix, (size_t)len);
		if (!keep)
			return mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", files->name);
	}
	for (size_t i = 0; i < files->nr; i++) {
		struct topo_file *f = &files->file[i];

		if ((len && strncmp(f->path, keep, (size_t)len)) || !is_root(f->path + len)) {
			free(f->path);
			if (!f->shares)
				free(f->data);
			continue;
		}
		memmove(f->path + 1, f->path + len, strlen(f->path + len) + 1);
		f->path[0] = '/';
		files->file[kept++] = *f;
	}
	files->nr = kept;
	free(keep);
	return 0;
}

static struct topo_file *find(const struct topo_files *files, const char *path)
{
	size_t low = 0, high = files->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int diff = compare_paths(files->file[mid].path, path);

		if (!diff)
			return &files->file[mid];
		if (diff < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Of several entries of one path the last in the archive holds, as when unpacking. */
static void drop_doubles(struct topo_files *files)
{
	size_t kept = 0;

	for (size_t i = 0; i < files->nr; i++) {
		if (kept && !strcmp(files->file[kept - 1].path, files->file[i].path)) {
			struct topo_file *old = &files->file[kept - 1];

			free(old->path);
			if (!old->shares)
				free(old->data);
			*old = files->file[i];
		} else {
			files->file[kept++] = files->file[i];
		}
	}
	files->nr = kept;
}

/* Folders that the archive doesn't name. */
static int add_parents(struct topo_files *files, struct mc_error *error)
{
	size_t nr = files->nr;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < nr; i++) {
		const char *path = files->file[i].path, *before = i ? files->file[i - 1].path : "";
		size_t common = 0;

		for (size_t k = 0; path[k]; k++) {
			if (path[k] == '/' && (!before[k] || before[k] == '/'))
				common = k;
			if (path[k] != before[k])
				break;
		}
		/* The entry before shares the folders up to `common`; in path order the others
		 * can't be elsewhere. */
		for (const char *s = path + common + 1; rc == 0 && (s = strchr(s, '/')) != NULL;
		     s++) {
			char *parent = strndup(path, (size_t)(s - path));

			if (parent && !strcmp(parent, before)) {
				free(parent);
				continue;
			}
			rc = parent ? topo_files_add(files, parent, 'd', NULL, 0, error) :
				      mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", files->name);
			free(parent);
			path = files->file[i].path;
		}
	}
	return rc;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Follows `target` from the folder of `path` (cut at its last '/') into `out`: lexically, as sysfs
 * links have no links in their own way. False when it leads out of the recording. */
static bool link_target(const char *path, const char *target, char *out, size_t size)
{
	size_t n = *target == '/' ? 0 : (size_t)(strrchr(path, '/') - path);

	if (n + 1 > size)
		return false;
	memcpy(out, path, n);
	while (*target) {
		size_t len = strcspn(target, "/");

		if (len == 2 && !memcmp(target, "..", 2)) {
			if (!n)
				return false;
			while (n && out[--n] != '/')
				;
		} else if (len && !(len == 1 && *target == '.')) {
			if (n + len + 2 > size)
				return false;
			out[n++] = '/';
			memcpy(out + n, target, len);
			n += len;
		}
		target += len;
		target += *target == '/';
	}
	out[n] = '\0';
	return true;
}

static int check_links(const struct topo_files *files, struct mc_error *error)
{
	char here[TOPO_MAX_PATH], there[TOPO_MAX_PATH];

	for (size_t i = 0; i < files->nr; i++) {
		const struct topo_file *f = &files->file[i];

		for (unsigned int hops = 0; f && f->type == 'l'; hops++) {
			if (hops == 16)
				return mc_fail(error, ELOOP,
					       "reading machine: %.150s: %.200s: a loop of links",
					       files->name, files->file[i].path);
			snprintf(here, sizeof(here), "%s", f->path);
			if (!link_target(here, f->data, there, sizeof(there)))
				return mc_fail(
					error, EINVAL,
					"reading machine: %.150s: %.200s: a link that leads out of the recording",
					files->name, files->file[i].path);
			f = find(files, there);
		}
	}
	return 0;
}

int topo_files_seal(struct topo_files *files, struct mc_error *error)
{
	int rc = rebase(files, error);

	if (rc < 0)
		return rc;
	qsort(files->file, files->nr, sizeof(*files->file), compare_files);
	drop_doubles(files);
	rc = add_parents(files, error);
	if (rc == 0) {
		qsort(files->file, files->nr, sizeof(*files->file), compare_files);
		drop_doubles(files);
		rc = topo_files_gunzip(files, error);
	}
	if (rc == 0) {
		qsort(files->file, files->nr, sizeof(*files->file), compare_files);
		rc = check_links(files, error);
	}
	files->name = NULL; /* the caller's string: for messages while loading only */
	return rc;
}

/* ---- asking ---------------------------------------------------------------------------------- */

const struct topo_file *topo_files_find(const struct topo_files *files, const char *path)
{
	char there[TOPO_MAX_PATH];
	const struct topo_file *f = find(files, path);

	for (unsigned int hops = 0; f && f->type == 'l' && hops < 16; hops++)
		f = link_target(f->path, f->data, there, sizeof(there)) ? find(files, there) : NULL;
	return f;
}

int topo_files_list(const struct topo_files *files, const char *dir,
		    int (*fn)(void *arg, const char *name), void *arg)
{
	const struct topo_file *f = topo_files_find(files, dir);
	size_t len;

	if (!f || f->type != 'd')
		return -ENOENT;
	len = strlen(f->path);
	for (size_t i = (size_t)(f - files->file) + 1; i < files->nr; i++) {
		const char *path = files->file[i].path;
		int rc;

		if (strncmp(path, f->path, len) || path[len] != '/')
			break;
		if (strchr(path + len + 1, '/'))
			continue;
		rc = fn(arg, path + len + 1);
		if (rc)
			return rc;
	}
	return 0;
}

/* After a change of the nodes what was recorded about them no longer holds. */
static bool hidden(const struct mc_topology *topo, const char *path)
{
	static const char *const about_nodes[] = {
		"/sys/devices/system/node", "/sys/bus/node",	 "/sys/devices/system/memory", "/proc/zoneinfo",
		"/proc/buddyinfo",	    "/proc/pagetypeinfo", "/proc/iomem",	       "/proc/meminfo",
		"/proc/vmstat",
	};

	if (!topo->base->files_without_nodes)
		return false;
	for (size_t i = 0; i < MC_ARRAY_SIZE(about_nodes); i++) {
		size_t len = strlen(about_nodes[i]);

		if (!strncmp(path, about_nodes[i], len) && (!path[len] || path[len] == '/'))
			return true;
	}
	return false;
}

const char *mc_topology_file(const struct mc_topology *topo, const char *path, size_t *len)
{
	const struct topo_file *f;

	if (topo->base->cpuinfo && !strcmp(path, "/proc/cpuinfo")) {
		if (len)
			*len = strlen(topo->base->cpuinfo);
		return topo->base->cpuinfo;
	}
	if (!topo->base->files || hidden(topo, path))
		return NULL;
	f = topo_files_find(topo->base->files, path);
	if (!f || f->type != 'f' || hidden(topo, f->path))
		return NULL;
	if (len)
		*len = f->len;
	return f->data;
}

int mc_topology_files(const struct mc_topology *topo,
		      int (*fn)(void *arg, const char *path, char type, const char *data,
				size_t len),
		      void *arg)
{
	const struct topo_files *files = topo->base->files;

	for (size_t i = 0; files && i < files->nr; i++) {
		const struct topo_file *f = &files->file[i];
		int rc = hidden(topo, f->path) ? 0 : fn(arg, f->path, f->type, f->data, f->len);

		if (rc)
			return rc;
	}
	return 0;
}
