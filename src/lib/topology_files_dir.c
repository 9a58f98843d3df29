// SPDX-License-Identifier: MIT
/*
 * topology_files_dir.c - recordings in folders.
 *
 * Nothing is followed: links are read as links, files opened with O_NOFOLLOW below the folder that
 * was listed, and only regular files are opened at all (a pipe or device in a recording must
 * neither block nor act).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "os/os.h"
#include "topology_files.h"

#define MAX_DEPTH 32

struct walk {
	struct topo_files *files;
	struct mc_error *error;
	unsigned int depth;
	int dir;
	const char *path; /* of dir, relative to the recording, "" for the top */
};

static int walk(struct walk *w);

static int problem(const struct walk *w, const char *path, int err)
{
	return mc_fail(w->error, err, "reading machine: %.150s: %.200s: %s", w->files->name, path, strerror(err));
}

static int enter(struct walk *w, const char *name, const char *path)
{
	struct walk below = {
		.files = w->files, .error = w->error, .depth = w->depth + 1, .path = path};
	int rc;

	if (below.depth > MAX_DEPTH)
		return mc_fail(w->error, ELOOP, "reading machine: %.150s: %.200s: folders too deep",
			       w->files->name, path);
	below.dir = mc_os_open_dir(w->dir, name);
	if (below.dir < 0)
		return below.dir == -EACCES ? 0 : problem(w, path, -below.dir);
	rc = walk(&below);
	mc_os_close(below.dir);
	return rc;
}

static int take_file(struct walk *w, const char *name, const char *path)
{
	char *data;
	size_t len;
	int rc;

	rc = mc_os_read_plain(w->dir, name, TOPO_MAX_FILE_BYTES - w->files->bytes, &data, &len);
	if (rc == -EFBIG)
		return topo_files_charge(w->files, UINT64_MAX, path, w->error);
	/* Files that can't be read here could not be read there either. */
	if (rc == -EACCES || rc == -EIO || rc == -ENOENT)
		return 0;
	if (rc < 0)
		return problem(w, path, -rc);
	rc = topo_files_charge(w->files, len, path, w->error);
	if (rc < 0) {
		free(data);
		return rc;
	}
	return topo_files_add(w->files, path, 'f', data, len, w->error);
}

static int visit(void *arg, const char *name, char type)
{
	struct walk *w = arg;
	char path[TOPO_MAX_PATH], target[TOPO_MAX_PATH];
	int rc = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", w->path, *w->path ? "/" : "", name) >= sizeof(path))
		return mc_fail(w->error, ENAMETOOLONG,
			       "reading machine: %.150s: %.80s...: path too long", w->files->name,
			       w->path);
	/* The machine is at the top or one folder down: look into every folder there, deeper only
	 * below sys and proc. */
	if (!topo_files_wanted(path))
		return type == 'd' && w->depth == 0 ? enter(w, name, path) : 0;
	switch (type) {
	case 'd':
		rc = topo_files_add(w->files, path, 'd', NULL, 0, w->error);
		return rc < 0 ? rc : enter(w, name, path);
	case 'l':
		rc = mc_os_read_link(w->dir, name, target, sizeof(target));
		if (rc < 0)
			return problem(w, path, -rc);
		return topo_files_add(w->files, path, 'l', strdup(target), strlen(target),
				      w->error);
	case 'f':
		return take_file(w, name, path);
	default:
		return 0;
	}
}

static int walk(struct walk *w)
{
	return mc_os_list_dir(w->dir, visit, w);
}

int topo_files_from_dir(const char *path, struct topo_files **out, struct mc_error *error)
{
	struct walk w = { .files = topo_files_new(path), .error = error, .path = "" };
	int rc;

	if (!w.files)
		return mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", path);
	w.dir = mc_os_open_dir(MC_ROOT_LIVE, path);
	if (w.dir < 0)
		rc = problem(&w, "", -w.dir);
	else
		rc = walk(&w);
	if (w.dir >= 0)
		mc_os_close(w.dir);
	if (rc == 0)
		rc = topo_files_seal(w.files, error);
	if (rc == 0)
		*out = w.files;
	else
		topo_files_put(w.files);
	return rc;
}
