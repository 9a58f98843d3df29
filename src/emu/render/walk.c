// SPDX-License-Identifier: MIT
/*
 * walk.c - from a path to an entry of the tables, and over all entries of a folder.
 *
 * A path is walked component by component; links met on the way are followed as the kernel would.
 * Numbers in names are the kernel's decimal ones only. Called by render.c and tree.c.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "impl.h"

#define RN_MAX_LINKS 16

/* ---- entries ---- */

/* A number as the kernel prints one: no sign, no leading zeros, at most 10 digits. */
static size_t parse_number(const char *text, size_t len, uint64_t *n)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < len && i < 10 && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	if (!i || (i > 1 && text[0] == '0'))
		return 0;
	*n = value;
	return i;
}

const struct rn_entry *rn_match(const struct rn_entry *table, const char *name, size_t len,
				uint64_t *n)
{
	const struct rn_entry *entry;
	size_t head, digits;
	const char *mark;

	for (entry = table; entry && entry->type; entry++) {
		mark = strchr(entry->name, '#');
		if (!mark) {
			if (strlen(entry->name) == len && !memcmp(entry->name, name, len))
				return entry;
			continue;
		}
		head = (size_t)(mark - entry->name);
		if (len <= head || memcmp(entry->name, name, head))
			continue;
		digits = parse_number(name + head, len - head, n);
		if (digits && strlen(mark + 1) == len - head - digits &&
		    !memcmp(mark + 1, name + head + digits, len - head - digits))
			return entry;
	}
	return NULL;
}

static int append(struct rn_at *at, const char *name, size_t len)
{
	if (at->len + 1 + len >= sizeof(at->path))
		return -ENAMETOOLONG;
	at->path[at->len++] = '/';
	memcpy(at->path + at->len, name, len);
	at->len += len;
	at->path[at->len] = '\0';
	return 0;
}

int rn_enter(struct rn_at *at, const struct rn_entry *entry, uint64_t n, size_t *mark)
{
	const char *hash = strchr(entry->name, '#');
	char name[128];
	int len;

	*mark = at->len;
	if (!hash)
		return append(at, entry->name, strlen(entry->name));
	if (at->nr >= RN_DEPTH)
		return -ENAMETOOLONG;
	len = snprintf(name, sizeof(name), "%.*s%llu%s", (int)(hash - entry->name), entry->name,
		       (unsigned long long)n, hash + 1);
	if (len < 0 || (size_t)len >= sizeof(name) || append(at, name, (size_t)len) < 0)
		return -ENAMETOOLONG;
	at->n[at->nr++] = n;
	return 0;
}

void rn_leave(struct rn_at *at, const struct rn_entry *entry, size_t mark)
{
	if (entry && strchr(entry->name, '#'))
		at->nr--;
	at->len = mark;
	at->path[mark] = '\0';
}

bool rn_has(const struct rn_at *at, const struct rn_entry *entry)
{
	if (entry->has && !entry->has(at, entry))
		return false;
	if (entry->flags & RN_HOST)
		return access(at->path, F_OK) == 0;
	if ((entry->flags & RN_RECORD) && at->view->recorded)
		return rn_source_type(at) != 0;
	if ((entry->flags & RN_LIVE) && at->view->host_source)
		return rn_source_type(at) != 0;
	return true;
}

int rn_make(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	int ret;

	if (entry && entry->make)
		return entry->make(at, entry, out);
	if (entry ? entry->type == 'l' : rn_source_type(at) == 'l')
		ret = rn_source_readlink(at, out);
	else
		ret = rn_source_read(at, out);
	if (ret == -ENOENT && entry && entry->text) {
		mc_text_add(out, entry->text, strlen(entry->text));
		return 0;
	}
	return ret;
}

static const struct rn_entry *match(const struct rn_at *at, const struct rn_entry *table,
				    const char *name, size_t len, uint64_t *n)
{
	const struct rn_entry *entry = rn_match(table, name, len, n);

	return entry && (entry->flags & RN_HOSTED) && at->view->recorded ? NULL : entry;
}

struct each {
	struct rn_at *at;
	const struct rn_entry *table;
	rn_each_fn fn;
	void *arg;
};

static int each_extra(void *arg, const char *name, char type)
{
	struct each *each = arg;
	size_t mark = each->at->len;
	uint64_t n;
	int ret;

	if (match(each->at, each->table, name, strlen(name), &n))
		return 0; /* the table's own say */
	ret = append(each->at, name, strlen(name));
	if (!ret)
		ret = each->fn(each->arg, each->at, NULL, type);
	rn_leave(each->at, NULL, mark);
	return ret;
}

static int each_number(struct each *each, const struct rn_entry *entry, uint64_t n)
{
	size_t mark;
	int ret = rn_enter(each->at, entry, n, &mark);

	if (ret)
		return ret;
	if (rn_has(each->at, entry))
		ret = each->fn(each->arg, each->at, entry, entry->type);
	rn_leave(each->at, entry, mark);
	return ret;
}

int rn_each(struct rn_at *at, const struct rn_entry *folder, rn_each_fn fn, void *arg)
{
	struct each each = {at, folder ? folder->kids : NULL, fn, arg};
	const struct rn_entry *entry;
	uint64_t n;
	int ret;

	for (entry = each.table; entry && entry->type; entry++) {
		if ((entry->flags & RN_HOSTED) && at->view->recorded)
			continue;
		if (!entry->next) {
			ret = each_number(&each, entry, 0);
			if (ret)
				return ret;
			continue;
		}
		for (n = entry->next(at, entry, 0); n != RN_NONE;
		     n = entry->next(at, entry, n + 1)) {
			ret = each_number(&each, entry, n);
			if (ret)
				return ret;
		}
	}
	if (folder && !(folder->flags & RN_MIRROR) &&
	    !((folder->flags & RN_EXTRA) && at->view->recorded))
		return 0;
	ret = rn_source_list(at, each_extra, &each);
	return ret == -ENOENT ? 0 : ret;
}

/* ---- the walk ---- */

/* One step from `folder` to the component `name`; at gets longer by it. */
static int step(struct rn_at *at, const struct rn_entry *folder, bool ours, const char *name,
		size_t len, struct rn_found *found)
{
	uint64_t n = 0;
	const struct rn_entry *entry = folder ? match(at, folder->kids, name, len, &n) : NULL;
	size_t mark;
	int ret;

	if (entry) {
		if (entry->next && entry->next(at, entry, n) != n)
			return -ENOENT;
		ret = rn_enter(at, entry, n, &mark);
		if (ret)
			return ret;
		if (!rn_has(at, entry))
			return (entry->flags & (RN_HOST | RN_PASS)) ? -EXDEV : -ENOENT;
		found->entry = entry;
		found->type = entry->type;
		return 0;
	}
	ret = append(at, name, len);
	if (ret)
		return ret;
	if (!ours)
		return -EXDEV;
	if (folder && !(folder->flags & RN_MIRROR) &&
	    !((folder->flags & RN_EXTRA) && at->view->recorded))
		return -ENOENT;
	found->entry = NULL;
	found->type = rn_source_type(at);
	return found->type ? 0 : -ENOENT;
}

/* Replaces the link at->path by its target and `rest` in `path`, ".." resolved. */
static int follow(const struct rn_at *at, const struct rn_found *found, const char *rest,
		  char *path, size_t size)
{
	struct mc_text target = {0};
	char joined[2 * PATH_MAX], *to, *slash, *save = NULL, *name;
	int ret = rn_make(at, found->entry, &target), len;

	if (!ret && (target.failed || !target.len))
		ret = -ENOMEM;
	if (!ret) {
		len = target.data[0] == '/' ? 0 : (int)(strrchr(at->path, '/') - at->path);
		len = snprintf(joined, sizeof(joined), "%.*s/%s/%s", len, at->path, target.data,
			       rest);
		ret = len < 0 || (size_t)len >= sizeof(joined) || (size_t)len >= size
			      ? -ENAMETOOLONG
			      : 0;
	}
	mc_text_free(&target);
	if (ret)
		return ret;
	to = path;
	*to = '\0';
	for (name = strtok_r(joined, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		if (!strcmp(name, "."))
			continue;
		if (!strcmp(name, "..")) {
			slash = strrchr(path, '/');
			to = slash ? slash : path;
			*to = '\0';
			continue;
		}
		to += sprintf(to, "/%s", name);
	}
	return 0;
}

static const struct rn_entry root = {.name = "", .type = 'd', .flags = RN_PASS, .kids = rn_root};

static void start(struct rn_at *at)
{
	at->nr = 0;
	at->len = 0;
	at->path[0] = '\0';
}

int rn_walk(struct rn_at *at, const char *asked, bool follow_last, struct rn_found *found)
{
	char path[PATH_MAX], next[PATH_MAX];
	unsigned int links = 0;
	const char *name;
	bool ours = false;
	size_t len;
	int ret;

	if (asked[0] != '/' || strlen(asked) >= sizeof(path))
		return -EXDEV;
	strcpy(path, asked);
again:
	start(at);
	ours = false;
	*found = (struct rn_found){&root, 'd'};
	for (name = path + strspn(path, "/"); *name; name += strspn(name, "/")) {
		len = strcspn(name, "/");
		if (len == 1 && name[0] == '.') {
			name += len;
			continue;
		}
		if (len == 2 && !memcmp(name, "..", 2))
			return -EXDEV; /* not clean: not for us to resolve */
		if (found->type != 'd')
			return -ENOTDIR;
		ret = step(at, found->entry, ours, name, len, found);
		if (ret == -EXDEV && !rn_loose(at, name + len, &found->entry)) {
			found->type = found->entry->type;
			return 0;
		}
		if (ret)
			return ret;
		if (found->entry)
			found->type = found->entry->type;
		ours |= !found->entry || !(found->entry->flags & RN_PASS);
		name += len;
		if (found->type == 'l' && (*name || follow_last)) {
			if (++links > RN_MAX_LINKS)
				return -ELOOP;
			ret = follow(at, found, name, next, sizeof(next));
			if (ret)
				return ret;
			strcpy(path, next);
			goto again;
		}
	}
	return ours ? 0 : -EXDEV;
}
