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
	return below(base, "/sys") || below(base, "/proc") || !strcmp(base, "/") ||
	       strstr(path, "..");
}

/* /proc/self and /proc/thread-self become numbers; the caller's process is locked. */
static void name_self(struct emu_call *call, char *path)
{
	char rest[EMU_PATH_MAX];
	pid_t tgid = call->task->process->tgid;

	call->linked |= below(path, "/proc/self") || below(path, "/proc/thread-self");
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
static int fill_links(struct emu *emu, const char *path)
{
	char part[EMU_PATH_MAX];
	int rc = 0;

	for (const char *p = path + 1; !rc && (p = strchr(p, '/')); p++) {
		struct mc_text text = {0};

		memcpy(part, path, (size_t)(p - path));
		part[p - path] = '\0';
		if (!mc_render_resolve(emu->render, part, &text)) {
			mc_text_add(&text, "", 1);
			if (!text.failed && emu_in_roots(text.data))
				rc = emu_tree_ensure(emu, text.data);
			if (!emu_tree_unmade(rc))
				rc = 0;
		}
		mc_text_free(&text);
	}
	return rc;
}

static int find_sys(struct emu_call *call, bool follow, bool folder, char *path)
{
	struct emu *emu = call->emu;
	struct mc_text text = {0};
	struct stat st;
	char *last = strrchr(path, '/'), name[256] = "";
	int rc = mc_render_stat(emu->render, path, &st);

	if (rc == -EXDEV)
		return EMU_PATH_OTHER;
	if (rc < 0)
		return rc;
	call->linked |= S_ISLNK(st.st_mode);
	if (!follow && S_ISLNK(st.st_mode) && last > path && strlen(last) < sizeof(name)) {
		strcpy(name, last);
		*last = '\0';
	}
	rc = mc_render_resolve(emu->render, path, &text);
	if (!rc)
		call->linked |= text.len != strlen(path) || memcmp(path, text.data, text.len);
	if (!rc && emu->lazy && emu->mounted &&
	    (text.len != strlen(path) || memcmp(path, text.data, text.len)))
		rc = fill_links(emu, path);
	if (!rc && text.len + strlen(name) + 1 < EMU_PATH_MAX) {
		memcpy(path, text.data, text.len);
		strcpy(path + text.len, name);
	}
	mc_text_free(&text);
	if (rc == -EXDEV)
		return EMU_PATH_OTHER;
	if (rc < 0)
		return rc;
	if (folder && !mc_render_stat(emu->render, path, &st) && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
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

/* A folder of /proc that anybody may go through. */
static bool is_public(const char *path)
{
	return below(path, "/proc") && !path[5 + strspn(path + 5, "/task0123456789")];
}

/*
 * Before ".." and ".": where the folder really lies, links followed, as the kernel goes. 0, -errno
 * of the machine, or 1 when it is the host that has to say what is wrong with the path: real root's
 * supervisor can go through folders that the caller may not.
 */
static int real_folder(struct emu_call *call, char *path)
{
	struct mc_render *render = call->emu->render;
	struct mc_text text = {0};
	char real[EMU_PATH_MAX];
	struct stat st;
	int rc = -EXDEV;

	if (!*path)
		return 0;
	if (below(path, "/sys")) {
		rc = mc_render_resolve(render, path, &text);
		if (!rc && text.len < EMU_PATH_MAX) {
			memcpy(path, text.data, text.len);
			path[text.len] = '\0';
			rc = mc_render_stat(render, path, &st);
		}
		mc_text_free(&text);
	}
	if (rc != -EXDEV)
		return rc < 0 ? rc : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	name_self(call, path);
	if (!call->emu->in_userns && !is_public(path) && !emu_is_owner(call))
		return 1;
	if (!realpath(path, real) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
		return 1;
	strcpy(path, strcmp(real, "/") ? real : "");
	return 0;
}

/* The path that `from` leads to: as emu_path_clean() where there is no "..", else step by step. */
static int walk(struct emu_call *call, const char *from, char *to)
{
	char *end = to;
	size_t n;

	*to = '\0';
	for (; *(from += strspn(from, "/")); from += n) {
		bool up = !strncmp(from, "../", 3) || !strcmp(from, "..");

		n = strcspn(from, "/");
		if (up || (n == 1 && from[0] == '.')) {
			int rc = real_folder(call, to);

			if (rc)
				return rc;
			end = to + strlen(to);
			while (up && end > to && *--end != '/')
				;
		} else if (end - to + n + 2 < EMU_PATH_MAX) {
			*end++ = '/';
			memcpy(end, from, n);
			end += n;
		} else {
			return 1;
		}
		*end = '\0';
	}
	if (end == to)
		strcpy(to, "/");
	return 0;
}

static bool ends_in_folder(const char *text)
{
	const char *last = strrchr(text, '/');

	last = last ? last + 1 : text;
	return !*last || !strcmp(last, ".") || !strcmp(last, "..");
}

static bool to_machine(const char *path)
{
	return below(path, "/sys") || (below(path, "/proc") && path[5]);
}

/* The whole path as text: 1; 0 when it leads neither to /sys nor to /proc; -errno. *folder: it must
 * be one. */
static int read_path(struct emu_call *call, int dirfd, uint64_t where, char *path, bool *folder)
{
	char base[EMU_PATH_MAX], text[EMU_PATH_MAX];
	int rc;

	if (emu_read_string(call, text, where, sizeof(text)) <= 0)
		return 0;
	*folder = ends_in_folder(text);
	call->slash = text[strlen(text) - 1] == '/';
	call->dots = *folder && !call->slash;
	call->up = strstr(text, "..") != NULL;
	call->crossed = true;
	if (text[0] == '/') {
		if (!below(text, "/sys") && !below(text, "/proc") && !strstr(text, "/.") &&
		    !strstr(text, "//"))
			return 0;
		strcpy(path, text);
	} else {
		if (base_of(call, dirfd, base, sizeof(base)) < 0 || !may_reach(base, text) ||
		    strlen(base) + strlen(text) + 2 > EMU_PATH_MAX || !emu_call_valid(call))
			return 0;
		call->crossed = !below(base, "/sys") && !below(base, "/proc");
		stpcpy(stpcpy(stpcpy(path, base), "/"), text);
	}
	if (!call->up) {
		emu_path_clean(path);
		return to_machine(path);
	}
	/* Most paths with ".." go nowhere near: only what might is walked. */
	strcpy(text, path);
	emu_path_clean(path);
	if (!to_machine(path))
		return 0;
	rc = walk(call, text, path);
	if (rc < 0)
		*path = '\0';
	return rc < 0 ? rc : !rc && to_machine(path);
}

int emu_path_find(struct emu_call *call, int dirfd, uint64_t where, bool follow, char *path)
{
	bool folder = false;
	int rc = read_path(call, dirfd, where, path, &folder);

	if (rc <= 0)
		return rc < 0 ? rc : EMU_PATH_OTHER;
	if (below(path, "/sys"))
		rc = find_sys(call, follow || folder, folder, path);
	else
		rc = folder ? EMU_PATH_OTHER : find_proc(call, path); /* none of ours is a folder */
	if (rc != EMU_PATH_OTHER && emu_tracing(call->emu))
		snprintf(call->note, sizeof(call->note), "\"%.150s\"", path);
	return rc;
}
