// SPDX-License-Identifier: MIT
/*
 * render.c - the renderer's questions (render.h), answered by a walk over the tables of entries.
 *
 * Invariants: a view (topology + index of its recording) never changes once made; every question
 * takes a reference to the current one, so that hot-plug can swap it at any time. Links at a
 * path's end are followed only by the questions that say so.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "impl.h"

struct mc_render {
	pthread_mutex_t lock; /* view's pointer and every view's refs */
	struct rn_view *view;
	struct mc_render_live live;
	struct timespec born;
};

/* ---- views ---- */

static void view_free(struct rn_view *view)
{
	if (!view)
		return;
	mc_topology_put(view->topo);
	free(view->file);
	free(view);
}

static struct rn_view *view_new(struct mc_render *render, struct mc_topology *topo)
{
	struct rn_view *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	view->refs = 1;
	view->render = render;
	view->topo = mc_topology_get(topo);
	if (rn_view_load(view) < 0) {
		view_free(view);
		errno = ENOMEM;
		return NULL;
	}
	return view;
}

struct rn_view *rn_view_get(struct mc_render *render)
{
	struct rn_view *view;

	pthread_mutex_lock(&render->lock);
	view = render->view;
	view->refs++;
	pthread_mutex_unlock(&render->lock);
	return view;
}

void rn_view_put(struct rn_view *view)
{
	struct mc_render *render = view->render;
	bool last;

	pthread_mutex_lock(&render->lock);
	last = !--view->refs;
	pthread_mutex_unlock(&render->lock);
	if (last)
		view_free(view);
}

struct mc_render *mc_render_new(struct mc_topology *topo, const struct mc_render_live *live)
{
	struct mc_render *render = calloc(1, sizeof(*render));

	if (!render)
		return NULL;
	pthread_mutex_init(&render->lock, NULL);
	if (live)
		render->live = *live;
	clock_gettime(CLOCK_REALTIME, &render->born);
	render->view = view_new(render, topo);
	if (!render->view) {
		pthread_mutex_destroy(&render->lock);
		free(render);
		errno = ENOMEM;
		return NULL;
	}
	return render;
}

void mc_render_free(struct mc_render *render)
{
	if (!render)
		return;
	view_free(render->view);
	pthread_mutex_destroy(&render->lock);
	free(render);
}

struct mc_topology *mc_render_topology(struct mc_render *render)
{
	struct rn_view *view = rn_view_get(render);
	struct mc_topology *topo = mc_topology_get(view->topo);

	rn_view_put(view);
	return topo;
}

int mc_render_set_topology(struct mc_render *render, struct mc_topology *topo)
{
	struct rn_view *view = view_new(render, topo), *old;

	if (!view)
		return -ENOMEM;
	pthread_mutex_lock(&render->lock);
	old = render->view;
	render->view = view;
	pthread_mutex_unlock(&render->lock);
	rn_view_put(old);
	return 0;
}

const struct mc_render_live *rn_live(const struct mc_render *render)
{
	return &render->live;
}

/* ---- the questions ---- */

static int ask(struct mc_render *render, const char *path, bool follow_last, struct rn_at *at,
	       struct rn_found *found)
{
	struct rn_view *view = rn_view_get(render);
	int ret;

	at->render = render;
	at->view = view;
	at->topo = view->topo;
	ret = rn_walk(at, path, follow_last, found);
	if (ret)
		rn_view_put(view);
	return ret;
}

static void asked(struct rn_at *at)
{
	rn_view_put((struct rn_view *)at->view);
}

bool mc_render_owns(struct mc_render *render, const char *path)
{
	struct rn_at at;
	struct rn_found found;
	int ret = ask(render, path, false, &at, &found);

	if (!ret)
		asked(&at);
	return ret != -EXDEV;
}

static uint64_t hash_path(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return hash;
}

static void fill_stat(const struct rn_at *at, const struct rn_found *found, struct stat *st)
{
	const struct rn_entry *entry = found->entry;
	uint64_t wide = ((uint64_t)mc_topology_kernel_max(at->topo) + 1) * 7 / 2;

	memset(st, 0, sizeof(*st));
	st->st_ino = hash_path(at->path);
	st->st_nlink = found->type == 'd' ? 2 : 1;
	st->st_blksize = 4096;
	st->st_mtim = st->st_ctim = st->st_atim = at->render->born;
	if (found->type == 'd') {
		st->st_mode = S_IFDIR | 0755;
	} else if (found->type == 'l') {
		st->st_mode = S_IFLNK | 0777;
	} else {
		st->st_mode = S_IFREG | (entry && entry->mode ? entry->mode : 0444);
		if (!strncmp(at->path, "/sys/", 5))
			st->st_size = entry && (entry->flags & RN_WIDE) && wide > 4096 ? (off_t)wide
										       : 4096;
	}
}

int mc_render_stat(struct mc_render *render, const char *path, struct stat *st)
{
	struct rn_at at;
	struct rn_found found;
	int ret = ask(render, path, false, &at, &found);

	if (ret)
		return ret;
	fill_stat(&at, &found, st);
	asked(&at);
	return 0;
}

int mc_render_read(struct mc_render *render, const char *path, struct mc_text *out)
{
	struct rn_at at;
	struct rn_found found;
	int ret = ask(render, path, true, &at, &found);

	if (ret)
		return ret;
	if (found.type == 'd')
		ret = -EISDIR;
	else if (found.entry && found.entry->mode && !(found.entry->mode & 0444))
		ret = -EACCES;
	else
		ret = rn_make(&at, found.entry, out);
	if (!ret && out->failed)
		ret = -ENOMEM;
	asked(&at);
	return ret;
}

int mc_render_readlink(struct mc_render *render, const char *path, struct mc_text *out)
{
	struct rn_at at;
	struct rn_found found;
	int ret = ask(render, path, false, &at, &found);

	if (ret)
		return ret;
	ret = found.type == 'l' ? rn_make(&at, found.entry, out) : -EINVAL;
	if (!ret && out->failed)
		ret = -ENOMEM;
	asked(&at);
	return ret;
}

int mc_render_resolve(struct mc_render *render, const char *path, struct mc_text *out)
{
	struct rn_at at;
	struct rn_found found;
	int ret = ask(render, path, true, &at, &found);

	if (ret)
		return ret;
	mc_text_add(out, at.path, at.len);
	asked(&at);
	return out->failed ? -ENOMEM : 0;
}

struct list {
	int (*fn)(void *arg, const char *name, char type);
	void *arg;
};

static int list_one(void *arg, struct rn_at *at, const struct rn_entry *entry, char type)
{
	struct list *list = arg;

	(void)entry;
	return list->fn(list->arg, strrchr(at->path, '/') + 1, type);
}

int mc_render_list(struct mc_render *render, const char *path,
		   int (*fn)(void *arg, const char *name, char type), void *arg)
{
	struct list list = {fn, arg};
	struct rn_at at;
	struct rn_found found;
	int ret = ask(render, path, true, &at, &found);

	if (ret)
		return ret;
	ret = found.type == 'd' ? rn_each(&at, found.entry, list_one, &list) : -ENOTDIR;
	asked(&at);
	return ret;
}

int rn_ask_folder(struct mc_render *render, const char *path, struct rn_at *at,
		  const struct rn_entry **entry)
{
	struct rn_found found;
	int ret = ask(render, path, true, at, &found);

	if (ret)
		return ret;
	if (found.type != 'd') {
		asked(at);
		return -ENOTDIR;
	}
	*entry = found.entry;
	return 0;
}
