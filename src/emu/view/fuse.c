// SPDX-License-Identifier: MIT
/*
 * fuse.c - the namespace view without files: the kernel asks for names, attributes and contents of
 * the rendered machine as a program comes to them, and one thread of the supervisor answers from
 * the renderer.
 *
 * So a machine of any size costs nothing to start, no call that names a file has to be notified
 * (compilers alone make 1,500 readlinks a file), and what is read is as of now. Taken where
 * /dev/fuse may be opened; else the tree is made of files (tree.c). The thread takes no lock that a
 * receiver holds while it waits for this file system, and receivers never use it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "emu/internal.h"

/* MAX_WRITE is more than a store takes: what is longer comes whole, and is cut as sysfs cuts it. */
enum { HASH = 4096, REQUEST = 64 << 10, VALID_SECONDS = 3600, MAX_WRITE = 2 * EMU_STORE_MAX };

/* A name that the kernel knows of; its address is the kernel's node id. */
struct node {
	struct node *next;
	struct node *parent; /* NULL: the root folder */
	uint64_t lookups;    /* the kernel's references, and one for each child */
	uint64_t ino;
	char path[];
};

/* A write that waits for its answer. */
struct store {
	struct store *next;
	struct fuse_in_header in;
	const char *path;
	size_t len;
	char text[EMU_STORE_MAX + 1];
};

struct emu_fuse {
	int fd;
	pthread_mutex_t store_lock; /* a leaf */
	pthread_cond_t stored;
	struct store *stores;   /* in order */
	bool storing;           /* the thread for them was started */
	pthread_mutex_t lock; /* the table, which hot-plug reads; a leaf */
	struct node *hash[HASH];
	struct node *root;
	uint64_t last_ino;
	time_t start;
	char *request; /* the thread's */
};

static size_t slot(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return (size_t)(hash >> 20) % HASH;
}

static struct node *node_of(struct emu_fuse *fuse, uint64_t id)
{
	return id == FUSE_ROOT_ID ? fuse->root : (struct node *)(uintptr_t)id;
}

/* The node of a path, one reference more; NULL without memory. */
static struct node *get_node(struct emu_fuse *fuse, struct node *parent, const char *path)
{
	struct node **at = &fuse->hash[slot(path)], *n;

	pthread_mutex_lock(&fuse->lock);
	for (n = *at; n && strcmp(n->path, path); n = n->next)
		;
	if (!n) {
		n = calloc(1, sizeof(*n) + strlen(path) + 1);
		if (n) {
			strcpy(n->path, path);
			n->ino = ++fuse->last_ino;
			n->parent = parent;
			if (parent)
				parent->lookups++;
			n->next = *at;
			*at = n;
		}
	}
	if (n)
		n->lookups++;
	pthread_mutex_unlock(&fuse->lock);
	return n;
}

static void forget(struct emu_fuse *fuse, uint64_t id, uint64_t count)
{
	struct node *n = node_of(fuse, id);

	pthread_mutex_lock(&fuse->lock);
	while (n && n != fuse->root) {
		struct node **at = &fuse->hash[slot(n->path)], *parent = n->parent;

		n->lookups -= count < n->lookups ? count : n->lookups;
		if (n->lookups)
			break;
		while (*at != n)
			at = &(*at)->next;
		*at = n->next;
		free(n);
		n = parent;
		count = 1;
	}
	pthread_mutex_unlock(&fuse->lock);
}

/* ---- what the renderer says ------------------------------------------------------------------ */

/* Folders of the host above ours: only the way through them is needed. */
static bool on_the_way(const char *path)
{
	size_t n = strlen(path);

	for (int i = 0; emu_roots[i]; i++)
		if (!strncmp(emu_roots[i], path, n) && emu_roots[i][n] == '/')
			return true;
	return false;
}

static int look(const struct emu *emu, const struct node *n, struct fuse_attr *attr)
{
	struct stat st = {0};
	int rc = 0;

	if (!n->parent || on_the_way(n->path))
		st.st_mode = S_IFDIR | 0755;
	else
		rc = emu_in_roots(n->path) ? mc_render_stat(emu->render, n->path, &st) : -ENOENT;
	if (rc < 0)
		return rc == -EXDEV ? -ENOENT : rc;
	*attr = (struct fuse_attr){
		.ino = n->ino,
		.size = (uint64_t)st.st_size,
		.mode = st.st_mode,
		.nlink = S_ISDIR(st.st_mode) ? 2 : 1,
		.atime = (uint64_t)emu->fuse->start,
		.mtime = (uint64_t)emu->fuse->start,
		.ctime = (uint64_t)emu->fuse->start,
		.uid = geteuid(),
		.gid = getegid(),
		.blksize = 4096,
	};
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void reply(struct emu_fuse *fuse, const struct fuse_in_header *in, int error,
		  const void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + (error ? 0 : len)),
		.error = error,
		.unique = in->unique,
	};
	struct iovec v[2] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, error ? 0 : len}};

	(void)!writev(fuse->fd, v, 2); /* ENOENT: the caller was interrupted */
}

static void do_init(struct emu_fuse *fuse, const struct fuse_in_header *in,
		    const struct fuse_init_in *arg)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_readahead = arg->max_readahead,
		.flags = arg->flags & FUSE_PARALLEL_DIROPS,
		.max_background = 16,
		.congestion_threshold = 12,
		.max_write = MAX_WRITE,
		.time_gran = 1,
	};

	reply(fuse, in, 0, &out, sizeof(out));
}

static void do_lookup(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in,
		      const char *name)
{
	struct node *parent = node_of(fuse, in->nodeid), *n;
	struct fuse_entry_out out = {.entry_valid = VALID_SECONDS, .attr_valid = VALID_SECONDS};
	char path[EMU_PATH_MAX];
	int rc;

	if (snprintf(path, sizeof(path), "%s/%s", parent->path, name) >= (int)sizeof(path)) {
		reply(fuse, in, -ENAMETOOLONG, NULL, 0);
		return;
	}
	n = get_node(fuse, parent, path);
	if (!n) {
		reply(fuse, in, -ENOMEM, NULL, 0);
		return;
	}
	rc = look(emu, n, &out.attr);
	if (rc < 0)
		forget(fuse, (uint64_t)(uintptr_t)n, 1);
	out.nodeid = (uint64_t)(uintptr_t)n;
	reply(fuse, in, rc, &out, sizeof(out));
}

static void do_getattr(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in)
{
	struct fuse_attr_out out = {.attr_valid = VALID_SECONDS};
	int rc = look(emu, node_of(fuse, in->nodeid), &out.attr);

	reply(fuse, in, rc, &out, sizeof(out));
}

/* sysfs lets root change times, owner and permissions of its files, which is not kept here, and
 * lengths of none: cutting is ignored. An ordinary user is no owner there. */
static void do_setattr(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in,
		       const struct fuse_setattr_in *arg)
{
	if (emu->in_userns && (arg->valid & (FATTR_MODE | FATTR_UID | FATTR_GID)))
		reply(fuse, in, -EPERM, NULL, 0);
	else
		do_getattr(emu, fuse, in);
}

static void do_readlink(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in)
{
	struct mc_text text = {0};
	int rc = mc_render_readlink(emu->render, node_of(fuse, in->nodeid)->path, &text);

	reply(fuse, in, rc < 0 || text.failed ? -EIO : 0, text.data, text.len);
	mc_text_free(&text);
}

/* The content as of now: what is open does not change under its reader, as with sysfs until it is
 * read from its beginning again. */
static void do_open(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in,
		    const struct fuse_open_in *arg)
{
	struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
	struct mc_text *text;
	int rc;

	if ((arg->flags & O_ACCMODE) != O_RDONLY && !emu_plug_is(node_of(fuse, in->nodeid)->path)) {
		reply(fuse, in, -EACCES, NULL, 0);
		return;
	}
	text = calloc(1, sizeof(*text));
	rc = text ? mc_render_read(emu->render, node_of(fuse, in->nodeid)->path, text) : -ENOMEM;
	if (rc < 0) {
		free(text);
		text = NULL;
		/* sysfs tells such errors when it is read. */
		rc = rc == -ENOENT || rc == -ENOMEM ? rc : 0;
	}
	out.fh = (uint64_t)(uintptr_t)text;
	reply(fuse, in, rc, &out, sizeof(out));
}

static void do_read(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in,
		    const struct fuse_read_in *arg)
{
	struct mc_text *text = (struct mc_text *)(uintptr_t)arg->fh, fresh = {0};
	const char *path = node_of(fuse, in->nodeid)->path;
	size_t len = 0;
	int rc = 0;

	if (!arg->offset) {
		rc = mc_render_read(emu->render, path, &fresh);
		if (rc == -ENOENT && text)
			rc = 0; /* unplugged meanwhile: what it was */
		else if (text && !rc && !fresh.failed) {
			mc_text_free(text);
			*text = fresh;
			fresh = (struct mc_text){0};
		}
	}
	if (!rc && text && arg->offset < text->len)
		len = text->len - arg->offset < arg->size ? text->len - arg->offset : arg->size;
	reply(fuse, in, rc, len ? text->data + arg->offset : NULL, len);
	mc_text_free(&fresh);
}

/* ---- writes ---------------------------------------------------------------------------------- */

/*
 * Applying a write takes the locks of processes, and telling the kernel which names are stale waits
 * for lookups under way: not for the thread that answers those. The writer's file stays open until
 * it has the answer, and with it the node.
 */
static void *store_server(void *arg)
{
	struct emu *emu = arg;
	struct emu_fuse *fuse = emu->fuse;

	for (;;) {
		struct fuse_write_out out = {0};
		struct store *s;
		int rc;

		pthread_mutex_lock(&fuse->store_lock);
		while (!fuse->stores)
			pthread_cond_wait(&fuse->stored, &fuse->store_lock);
		s = fuse->stores;
		fuse->stores = s->next;
		pthread_mutex_unlock(&fuse->store_lock);
		rc = emu_plug_write(emu, s->path, s->text, s->len);
		out.size = (uint32_t)s->len;
		reply(fuse, &s->in, rc, &out, sizeof(out));
		free(s);
	}
	return NULL;
}

static bool start_storing(struct emu *emu, struct emu_fuse *fuse)
{
	pthread_t thread;

	if (fuse->storing)
		return true;
	if (pthread_create(&thread, NULL, store_server, emu))
		return false;
	pthread_detach(thread);
	return fuse->storing = true;
}

/* Where in the file it is does not matter, as in sysfs. */
static void do_write(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in,
		     const struct fuse_write_in *arg)
{
	struct store *s = calloc(1, sizeof(*s)), **at = &fuse->stores;

	if (!s || !start_storing(emu, fuse)) {
		free(s);
		reply(fuse, in, -ENOMEM, NULL, 0);
		return;
	}
	s->in = *in;
	s->path = node_of(fuse, in->nodeid)->path;
	s->len = arg->size < EMU_STORE_MAX ? arg->size : EMU_STORE_MAX;
	memcpy(s->text, arg + 1, s->len);
	pthread_mutex_lock(&fuse->store_lock);
	while (*at)
		at = &(*at)->next;
	*at = s;
	pthread_cond_signal(&fuse->stored);
	pthread_mutex_unlock(&fuse->store_lock);
}

static void release(uint64_t fh)
{
	struct mc_text *text = (struct mc_text *)(uintptr_t)fh;

	if (text)
		mc_text_free(text);
	free(text);
}

/* ---- folders --------------------------------------------------------------------------------- */

struct list {
	struct mc_text text;
	uint64_t ino;
};

static int add_name(void *arg, const char *name, char type)
{
	static const char zeroes[8];
	struct list *list = arg;
	size_t len = strlen(name), size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + len);
	struct fuse_dirent d = {
		.ino = ++list->ino,
		.off = list->text.len + size,
		.namelen = (uint32_t)len,
		.type = type == 'd' ? S_IFDIR >> 12 : type == 'l' ? S_IFLNK >> 12 : S_IFREG >> 12,
	};

	mc_text_add(&list->text, &d, FUSE_NAME_OFFSET);
	mc_text_add(&list->text, name, len);
	mc_text_add(&list->text, zeroes, size - FUSE_NAME_OFFSET - len);
	return list->text.failed ? -ENOMEM : 0;
}

static void do_opendir(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in)
{
	const struct node *n = node_of(fuse, in->nodeid);
	struct fuse_open_out out = {0};
	struct list list = {.ino = n->ino << 20};
	struct mc_text *text = malloc(sizeof(*text));
	int rc = text ? 0 : -ENOMEM;

	add_name(&list, ".", 'd');
	add_name(&list, "..", 'd');
	if (!rc && emu_in_roots(n->path))
		rc = mc_render_list(emu->render, n->path, add_name, &list);
	if (!rc && list.text.failed)
		rc = -ENOMEM;
	if (rc < 0) {
		mc_text_free(&list.text);
		free(text);
		reply(fuse, in, rc, NULL, 0);
		return;
	}
	*text = list.text;
	out.fh = (uint64_t)(uintptr_t)text;
	reply(fuse, in, 0, &out, sizeof(out));
}

/* As many whole entries as fit. */
static void do_readdir(struct emu_fuse *fuse, const struct fuse_in_header *in,
		       const struct fuse_read_in *arg)
{
	const struct mc_text *text = (const struct mc_text *)(uintptr_t)arg->fh;
	size_t at = arg->offset < text->len ? arg->offset : text->len, end = at;

	while (end < text->len) {
		struct fuse_dirent d;

		memcpy(&d, text->data + end, FUSE_NAME_OFFSET);
		if (d.off - at > arg->size || d.off > text->len || d.off <= end)
			break;
		end = d.off;
	}
	reply(fuse, in, 0, text->data + at, end - at);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void do_forgets(struct emu_fuse *fuse, const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_batch_forget_in *batch = arg;
	const struct fuse_forget_one *one = (const struct fuse_forget_one *)(batch + 1);

	if (in->opcode == FUSE_FORGET) {
		forget(fuse, in->nodeid, ((const struct fuse_forget_in *)arg)->nlookup);
		return;
	}
	for (uint32_t i = 0; i < batch->count; i++)
		forget(fuse, one[i].nodeid, one[i].nlookup);
}

static void serve_other(struct emu_fuse *fuse, const struct fuse_in_header *in, const void *arg)
{
	union {
		struct fuse_statfs_out fs;
		struct fuse_getxattr_out xattr;
	} out;

	memset(&out, 0, sizeof(out));
	switch (in->opcode) {
	case FUSE_STATFS:
		out.fs.st.bsize = out.fs.st.frsize = 4096;
		out.fs.st.namelen = 255;
		reply(fuse, in, 0, &out.fs, sizeof(out.fs));
		break;
	case FUSE_GETXATTR:
		reply(fuse, in, -ENODATA, NULL, 0);
		break;
	case FUSE_LISTXATTR:
		reply(fuse, in, 0, &out.xattr,
		      ((const struct fuse_getxattr_in *)arg)->size ? 0 : sizeof(out.xattr));
		break;
	case FUSE_SETXATTR:
	case FUSE_REMOVEXATTR:
		reply(fuse, in, -EOPNOTSUPP, NULL, 0);
		break;
	case FUSE_MKNOD: /* sysfs has neither create nor mknod, of which the first is told so */
		reply(fuse, in,
		      S_ISREG(((const struct fuse_mknod_in *)arg)->mode) ? -EACCES : -EPERM, NULL,
		      0);
		break;
	case FUSE_MKDIR:
	case FUSE_SYMLINK:
	case FUSE_LINK:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_RENAME:
	case FUSE_RENAME2:
		reply(fuse, in, -EPERM, NULL, 0); /* not even root may, as in sysfs */
		break;
	case FUSE_CREATE:
		reply(fuse, in, -EACCES, NULL, 0);
		break;
	case FUSE_INTERRUPT: /* all answers come soon */
		break;
	default:
		reply(fuse, in, -ENOSYS, NULL, 0); /* the kernel then goes on without asking */
		break;
	}
}

static void serve(struct emu *emu, struct emu_fuse *fuse, const struct fuse_in_header *in,
		  const void *arg)
{
	switch (in->opcode) {
	case FUSE_INIT:
		do_init(fuse, in, arg);
		break;
	case FUSE_LOOKUP:
		do_lookup(emu, fuse, in, arg);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		do_forgets(fuse, in, arg);
		break;
	case FUSE_GETATTR:
		do_getattr(emu, fuse, in);
		break;
	case FUSE_SETATTR:
		do_setattr(emu, fuse, in, arg);
		break;
	case FUSE_READLINK:
		do_readlink(emu, fuse, in);
		break;
	case FUSE_OPEN:
		do_open(emu, fuse, in, arg);
		break;
	case FUSE_READ:
		do_read(emu, fuse, in, arg);
		break;
	case FUSE_WRITE:
		do_write(emu, fuse, in, arg);
		break;
	case FUSE_OPENDIR:
		do_opendir(emu, fuse, in);
		break;
	case FUSE_READDIR:
		do_readdir(fuse, in, arg);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		release(((const struct fuse_release_in *)arg)->fh);
		reply(fuse, in, 0, NULL, 0);
		break;
	default:
		serve_other(fuse, in, arg);
		break;
	}
}

static void *server(void *arg)
{
	struct emu *emu = arg;
	struct emu_fuse *fuse = emu->fuse;
	char *room = fuse->request;

	for (;;) {
		ssize_t n = read(fuse->fd, room, REQUEST);

		if (n < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
			continue;
		if (n < (ssize_t)sizeof(struct fuse_in_header))
			break; /* ENODEV: the last of its mounts is gone */
		room[n] = '\0'; /* ends the names of requests that have one */
		serve(emu, fuse, (const void *)room, room + sizeof(struct fuse_in_header));
	}
	return NULL;
}

int emu_fuse_start(struct emu *emu, int fd)
{
	struct emu_fuse *fuse = calloc(1, sizeof(*fuse));
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	if (!fuse)
		return -ENOMEM;
	fuse->fd = fd;
	fuse->start = time(NULL);
	pthread_mutex_init(&fuse->lock, NULL);
	pthread_mutex_init(&fuse->store_lock, NULL);
	pthread_cond_init(&fuse->stored, NULL);
	fuse->root = get_node(fuse, NULL, "");
	fuse->request = malloc(REQUEST + 1);
	if (!fuse->root || !fuse->request)
		return -ENOMEM; /* the run ends, and with it all this */
	emu->fuse = fuse;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	rc = pthread_create(&thread, &attr, server, emu);
	pthread_attr_destroy(&attr);
	if (!rc)
		pthread_detach(thread);
	return -rc;
}

/* Run by the child, in its namespaces: the mount must be of the user namespace that opened the
 * device. */
int emu_fuse_mount(const char *where)
{
	char options[160];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other,default_permissions", fd,
		 geteuid(), getegid());
	if (mount("manycore", where, "fuse", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

struct stale {
	struct node *parent; /* with a reference */
	char *name;
};

static void forget_name(const struct emu_fuse *fuse, uint64_t parent, char *name)
{
	size_t len = strlen(name);
	struct fuse_notify_inval_entry_out arg = {.parent = parent, .namelen = (uint32_t)len};
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + sizeof(arg) + len + 1),
		.error = FUSE_NOTIFY_INVAL_ENTRY,
	};
	struct iovec v[3] = {{&out, sizeof(out)}, {&arg, sizeof(arg)}, {name, len + 1}};

	(void)!writev(fuse->fd, v, 3); /* ENOENT: it was forgotten meanwhile */
}

/* After hot-plug: the kernel forgets every name below the machine's folders. Without the lock: the
 * kernel waits for lookups that are being answered. With references: the address of a folder that
 * is forgotten meanwhile could become a file's, whose writer waits for us while the kernel waits
 * for that writer. */
void emu_fuse_stale(struct emu *emu)
{
	struct emu_fuse *fuse = emu->fuse;
	struct stale *all = NULL;
	size_t nr = 0, room = 0;

	pthread_mutex_lock(&fuse->lock);
	for (size_t i = 0; i < HASH; i++)
		for (struct node *n = fuse->hash[i]; n; n = n->next)
			room++;
	all = calloc(room + 1, sizeof(*all));
	for (size_t i = 0; all && i < HASH; i++)
		for (struct node *n = fuse->hash[i]; n; n = n->next)
			if (n->parent && emu_in_roots(n->parent->path)) {
				n->parent->lookups++;
				all[nr++] = (struct stale){n->parent,
							   strdup(strrchr(n->path, '/') + 1)};
			}
	pthread_mutex_unlock(&fuse->lock);
	for (size_t i = 0; i < nr; i++) {
		uint64_t parent = (uint64_t)(uintptr_t)all[i].parent;

		if (all[i].name)
			forget_name(fuse, parent, all[i].name);
		free(all[i].name);
		forget(fuse, parent, 1);
	}
	free(all);
}
