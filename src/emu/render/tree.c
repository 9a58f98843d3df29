// SPDX-License-Identifier: MIT
/*
 * tree.c - writing a folder of the rendered machine below a directory descriptor.
 *
 * Equal contents with equal permissions share one inode: on tmpfs a link costs half of what a file
 * does, and a machine of 512 CPUs has a few thousand files but a few hundred contents. Nothing
 * outside the given folder is touched: every name comes from the tables or is checked to be a
 * single component.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "impl.h"
#include "lib/internal.h"

/* The first file written with a content. */
struct twin {
	uint64_t hash;
	uint32_t path; /* offset in tree.paths, relative to tree.top */
	uint32_t len;  /* of the content */
	uint32_t text; /* offset in tree.texts */
	uint16_t mode;
};

struct tree {
	int top, dir; /* the folder asked for, the one being filled */
	size_t skip;  /* bytes of at->path above the top folder */
	unsigned int flags;
	bool masked; /* the process's umask takes permissions away: they are set once more */
	struct twin *twin;
	size_t nr, size; /* a power of two */
	struct mc_text paths, texts, text;
	struct mc_error *error;
};

static uint64_t hash_of(const struct mc_text *text, uint16_t mode)
{
	uint64_t hash = 0xcbf29ce484222325u ^ mode, word;
	size_t i;

	for (i = 0; i + 8 <= text->len; i += 8) {
		memcpy(&word, text->data + i, 8);
		hash = (hash ^ word) * 0x9fb21c651e98df25u;
		hash ^= hash >> 32;
	}
	for (; i < text->len; i++)
		hash = (hash ^ (unsigned char)text->data[i]) * 0x100000001b3u;
	hash ^= hash >> 29;
	return hash ? hash : 1;
}

static int grow(struct tree *tree)
{
	size_t size = tree->size ? tree->size * 2 : 1024, i, at;
	struct twin *twin = calloc(size, sizeof(*twin));

	if (!twin)
		return -ENOMEM;
	for (i = 0; i < tree->size; i++) {
		if (!tree->twin[i].hash)
			continue;
		for (at = tree->twin[i].hash & (size - 1); twin[at].hash;
		     at = (at + 1) & (size - 1))
			;
		twin[at] = tree->twin[i];
	}
	free(tree->twin);
	tree->twin = twin;
	tree->size = size;
	return 0;
}

/* The slot of this content: filled when there is a twin, else empty (hash 0). */
static struct twin *find(struct tree *tree, uint64_t hash, uint16_t mode)
{
	size_t at;
	struct twin *twin;

	for (at = hash & (tree->size - 1);; at = (at + 1) & (tree->size - 1)) {
		twin = &tree->twin[at];
		if (!twin->hash)
			return twin;
		if (twin->hash == hash && twin->mode == mode && twin->len == tree->text.len &&
		    !memcmp(tree->texts.data + twin->text, tree->text.data ? tree->text.data : "",
			    twin->len))
			return twin;
	}
}

static int fail(struct tree *tree, const struct rn_at *at, int err, const char *what)
{
	return mc_fail(tree->error, err, "writing the machine's files: %s: %s: %s", at->path, what,
		       strerror(err));
}

static int write_new(struct tree *tree, const struct rn_at *at, const char *name, uint16_t mode)
{
	int fd =
		openat(tree->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	size_t done = 0;
	ssize_t ret;
	int err = 0;

	if (fd < 0 && errno == EEXIST && !unlinkat(tree->dir, name, 0))
		fd = openat(tree->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			    mode);
	if (fd < 0)
		return fail(tree, at, errno, "open");
	if (fchmod(fd, mode) < 0)
		err = errno;
	while (!err && done < tree->text.len) {
		ret = write(fd, tree->text.data + done, tree->text.len - done);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret <= 0) {
			err = ret ? errno : EIO;
			break;
		}
		done += (size_t)ret;
	}
	if (close(fd) < 0 && !err)
		err = errno;
	return err ? fail(tree, at, err, "write") : 0;
}

static int put_file(struct tree *tree, const struct rn_at *at, const struct rn_entry *entry,
		    const char *name)
{
	uint16_t mode = entry && entry->mode ? entry->mode : 0444;
	struct twin *twin;
	uint64_t hash;
	int ret;

	tree->text.len = 0;
	ret = mode & 0444 ? rn_make(at, entry, &tree->text) : 0;
	if (tree->text.failed)
		return fail(tree, at, ENOMEM, "make");
	if (ret == -EMFILE || ret == -ENFILE)
		return fail(tree, at, -ret, "read");
	if (ret < 0)
		tree->text.len = 0; /* a file that can't be read: there, and empty */
	if (tree->nr * 2 >= tree->size && grow(tree) < 0)
		return fail(tree, at, ENOMEM, "make");
	hash = hash_of(&tree->text, mode);
	twin = find(tree, hash, mode);
	if (twin->hash) {
		const char *first = tree->paths.data + twin->path;

		if (!linkat(tree->top, first, tree->dir, name, 0))
			return 0;
		if (errno == EEXIST && !unlinkat(tree->dir, name, 0) &&
		    !linkat(tree->top, first, tree->dir, name, 0))
			return 0;
		if (errno != EMLINK && errno != ENOENT)
			return fail(tree, at, errno, "link");
	}
	ret = write_new(tree, at, name, mode);
	if (ret)
		return ret;
	*twin = (struct twin){hash, (uint32_t)tree->paths.len, (uint32_t)tree->text.len,
			      (uint32_t)tree->texts.len, mode};
	tree->nr++;
	mc_text_add(&tree->paths, at->path + tree->skip, at->len - tree->skip + 1);
	mc_text_add(&tree->texts, tree->text.data, tree->text.len);
	return tree->paths.failed || tree->texts.failed ? fail(tree, at, ENOMEM, "make") : 0;
}

static int put_link(struct tree *tree, const struct rn_at *at, const struct rn_entry *entry,
		    const char *name)
{
	int ret;

	tree->text.len = 0;
	ret = rn_make(at, entry, &tree->text);
	if (ret < 0 || tree->text.failed || !tree->text.len)
		return fail(tree, at, ret < 0 ? -ret : ENOMEM, "read link");
	if (!symlinkat(tree->text.data, tree->dir, name))
		return 0;
	if (errno == EEXIST && !unlinkat(tree->dir, name, 0) &&
	    !symlinkat(tree->text.data, tree->dir, name))
		return 0;
	return fail(tree, at, errno, "symlink");
}

/* Has the folder anything to write into it? Of folders and links alone most have not. */
static bool worth_opening(const struct tree *tree, const struct rn_at *at,
			  const struct rn_entry *entry)
{
	const struct rn_entry *kid;

	if (tree->flags & MC_RENDER_SHALLOW)
		return tree->masked;
	if (!(tree->flags & MC_RENDER_DIRS) || tree->masked || !entry ||
	    (entry->flags & RN_MIRROR) || ((entry->flags & RN_EXTRA) && at->view->recorded))
		return true;
	for (kid = entry->kids; kid && kid->type; kid++) {
		if (kid->type != 'f')
			return true;
	}
	return false;
}

static int put(void *arg, struct rn_at *at, const struct rn_entry *entry, char type)
{
	struct tree *tree = arg;
	const char *name = strrchr(at->path, '/') + 1;
	int dir = tree->dir, ret;

	if (type == 'l')
		return put_link(tree, at, entry, name);
	if (type == 'f')
		return tree->flags & MC_RENDER_DIRS ? 0 : put_file(tree, at, entry, name);
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return fail(tree, at, errno, "mkdir");
	if (!worth_opening(tree, at, entry))
		return 0;
	tree->dir = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree->dir < 0 || (tree->masked && fchmod(tree->dir, 0755) < 0))
		ret = fail(tree, at, errno, "open");
	else
		ret = tree->flags & MC_RENDER_SHALLOW ? 0 : rn_each(at, entry, put, tree);
	if (tree->dir >= 0)
		close(tree->dir);
	tree->dir = dir;
	return ret;
}

/* Does the umask of this process take something of 0755 away? It can't be read without changing it
 * for all threads, so it is seen from a folder. */
static bool is_masked(int dir)
{
	static const char name[] = ".manycore-umask";
	struct stat st;
	bool masked = true;

	if (mkdirat(dir, name, 0755) < 0)
		return true;
	if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		masked = (st.st_mode & 0777) != 0755;
	(void)unlinkat(dir, name, AT_REMOVEDIR);
	return masked;
}

int mc_render_tree(struct mc_render *render, const char *path, int dir, unsigned int flags,
		   struct mc_error *error)
{
	struct tree tree = {.top = dir, .dir = dir, .flags = flags, .error = error};
	const struct rn_entry *entry;
	struct rn_at at;
	int ret = rn_ask_folder(render, path, &at, &entry);

	if (ret)
		return mc_fail(error, -ret, "writing the machine's files: %s: %s", path,
			       strerror(-ret));
	tree.skip = at.len + 1;
	tree.masked = is_masked(dir);
	ret = rn_each(&at, entry, put, &tree);
	rn_view_put((struct rn_view *)at.view);
	free(tree.twin);
	mc_text_free(&tree.paths);
	mc_text_free(&tree.texts);
	mc_text_free(&tree.text);
	return ret;
}
