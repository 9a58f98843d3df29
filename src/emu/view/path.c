// SPDX-License-Identifier: MIT
/*
 * path.c - where a path of the caller leads: to the rendered tree, to another rendered file, to
 * /proc, or elsewhere.
 *
 * Most paths lead elsewhere and are told apart by their first bytes. Paths are read once, cleaned
 * as text ("." "..", doubled slashes) and followed through the links of the rendered machine; links
 * of the host's own tree that lead into /sys or /proc from outside are not followed (limits.md).
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/internal.h"

static bool below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return !strncmp(path, top, n) && (!path[n] || path[n] == '/');
}

/* In place: one slash between names, no "." and "..", none at the end. */
void emu_path_clean(char *path)
{
	char *to = path, *from = path;

	while (*from) {
		size_t n;

		from += strspn(from, "/");
		n = strcspn(from, "/");
		if (n == 2 && from[0] == '.' && from[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (n && !(n == 1 && from[0] == '.')) {
			*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

/* The caller's folder `dirfd`; the private tree's folders get the names they stand for. */
static int base_of(struct emu_call *call, int dirfd, char *out, size_t size)
{
	size_t top = strlen(call->emu->tree_path);
	char link[64];
	ssize_t n;

	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", call->caller);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", call->caller, dirfd);
	n = readlink(link, out, size - 1);
	if (n <= 0 || out[0] != '/')
		return -ENOENT;
	out[n] = '\0';
	if (top && !strncmp(out, call->emu->tree_path, top) && out[top] == '/')
		memmove(out, out + top, strlen(out + top) + 1);
	return 0;
}

/* A relative path can reach /sys or /proc from below them, from "/", or through "..". */
static bool may_reach(const char *base, const char *path)
{
	return below(base, "/sys") || below(base, "/proc") || !strcmp(base, "/") || strstr(path, "..");
}

/* /proc/self and /proc/thread-self become numbers; the caller's process is locked. */
static void name_self(struct emu_call *call, char *path)
{
	char rest[EMU_PATH_MAX];
	pid_t tgid = call->task->process->tgid;

	if (below(path, "/proc/self")) {
		strcpy(rest, path + 10);
		snprintf(path, EMU_PATH_MAX, "/proc/%d%.4000s", tgid, rest);
	} else if (below(path, "/proc/thread-self")) {
		strcpy(rest, path + 17);
		snprintf(path, EMU_PATH_MAX, "/proc/%d/task/%d%.4000s", tgid, call->caller, rest);
	}
}

/* In the namespace view the host's kernel walks the path itself: the folders on the way in which
 * its links lie must have been filled, not only the one where it ends. */
static void fill_links(struct emu *emu, const char *path)
{
	char part[EMU_PATH_MAX];

	for (const char *p = path + 1; (p = strchr(p, '/')); p++) {
		struct mc_text text = { 0 };

		memcpy(part, path, (size_t)(p - path));
		part[p - path] = '\0';
		if (!mc_render_resolve(emu->render, part, &text)) {
			mc_text_add(&text, "", 1);
			if (!text.failed && emu_in_roots(text.data))
				(void)emu_tree_ensure(emu, text.data, false);
		}
		mc_text_free(&text);
	}
}

static int find_sys(struct emu *emu, bool follow, char *path)
{
	struct mc_text text = { 0 };
	struct stat st;
	char *last = strrchr(path, '/'), name[256] = "";
	int rc = mc_render_stat(emu->render, path, &st);

	if (rc == -EXDEV)
		return EMU_PATH_OTHER;
	if (rc < 0)
		return rc;
	if (!follow && S_ISLNK(st.st_mode) && last > path && strlen(last) < sizeof(name)) {
		strcpy(name, last);
		*last = '\0';
	}
	rc = mc_render_resolve(emu->render, path, &text);
	if (!rc && emu->lazy && emu->mounted &&
	    (text.len != strlen(path) || memcmp(path, text.data, text.len)))
		fill_links(emu, path);
	if (!rc && text.len + strlen(name) + 1 < EMU_PATH_MAX) {
		memcpy(path, text.data, text.len);
		strcpy(path + text.len, name);
	}
	mc_text_free(&text);
	if (rc == -EXDEV)
		return EMU_PATH_OTHER;
	if (rc < 0)
		return rc;
	return emu_in_roots(path) ? EMU_PATH_TREE : EMU_PATH_FILE;
}

static int find_proc(struct emu_call *call, char *path)
{
	name_self(call, path);
	if (isdigit((unsigned char)path[6]) && path[6 + strspn(path + 6, "0123456789")] == '/')
		return EMU_PATH_PROC;
	if (!strcmp(path, "/proc/sys/kernel/numa_balancing"))
		return EMU_PATH_PROC;
	return mc_render_owns(call->emu->render, path) ? EMU_PATH_FILE : EMU_PATH_OTHER;
}

/* The whole path as text, or false when it leads neither to /sys nor to /proc. */
static bool read_path(struct emu_call *call, int dirfd, uint64_t where, char *path)
{
	char base[EMU_PATH_MAX], text[EMU_PATH_MAX];

	if (emu_read_string(call, text, where, sizeof(text)) <= 0)
		return false;
	if (text[0] == '/') {
		if (!below(text, "/sys") && !below(text, "/proc") && !strstr(text, "/.") &&
		    !strstr(text, "//"))
			return false;
		strcpy(path, text);
	} else {
		if (base_of(call, dirfd, base, sizeof(base)) < 0 || !may_reach(base, text) ||
		    strlen(base) + strlen(text) + 2 > EMU_PATH_MAX || !emu_call_valid(call))
			return false;
		stpcpy(stpcpy(stpcpy(path, base), "/"), text);
	}
	emu_path_clean(path);
	return below(path, "/sys") || (below(path, "/proc") && path[5]);
}

int emu_path_find(struct emu_call *call, int dirfd, uint64_t where, bool follow, char *path)
{
	int rc;

	if (!read_path(call, dirfd, where, path))
		return EMU_PATH_OTHER;
	rc = below(path, "/sys") ? find_sys(call->emu, follow, path) : find_proc(call, path);
	if (rc != EMU_PATH_OTHER && emu_tracing(call->emu))
		snprintf(call->note, sizeof(call->note), "\"%.150s\"", path);
	return rc;
}
