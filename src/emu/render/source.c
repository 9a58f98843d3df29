// SPDX-License-Identifier: MIT
/*
 * source.c - where content comes from that does not follow from the topology: the recording, else
 * the host.
 *
 * A recording's entries are kept sorted by path; folders that it implies but does not list are
 * added. What the source lacks for one CPU or node is taken from another one of the same kind: an
 * emulated machine may have more of them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "impl.h"
#include "os/os.h"

#define RN_HOST_MAX                                                                                \
	(64u << 20) /* the largest file of the host that is read: /proc/interrupts of a very large \
		       one */

struct rn_loader {
	struct rn_file *file;
	size_t nr, room;
	bool failed;
};

static void add_file(struct rn_loader *loader, const struct rn_file *file)
{
	struct rn_file *grown;

	if (loader->nr == loader->room) {
		loader->room = loader->room ? loader->room * 2 : 1024;
		grown = reallocarray(loader->file, loader->room, sizeof(*grown));
		if (!grown) {
			loader->failed = true;
			return;
		}
		loader->file = grown;
	}
	loader->file[loader->nr++] = *file;
}

static int load_one(void *arg, const char *path, char type, const char *data, size_t len)
{
	struct rn_loader *loader = arg;

	add_file(loader, &(struct rn_file){.path = path, .type = type, .data = data, .len = len});
	return loader->failed ? -ENOMEM : 0;
}

/* By path with '/' below every other byte, so that a folder is followed by all that is in it. */
static int path_order(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t i, len = alen < blen ? alen : blen;
	int ca, cb;

	for (i = 0; i < len; i++) {
		if (a[i] == b[i])
			continue;
		ca = a[i] == '/' ? 0 : (unsigned char)a[i];
		cb = b[i] == '/' ? 0 : (unsigned char)b[i];
		return ca - cb;
	}
	return alen < blen ? -1 : alen > blen;
}

static int file_order(const void *a, const void *b)
{
	const struct rn_file *fa = a, *fb = b;

	return path_order(fa->path, strlen(fa->path), fb->path, strlen(fb->path));
}

const struct rn_file *rn_file(const struct rn_view *view, const char *path, size_t len)
{
	size_t low = 0, high = view->nr_files;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *at = view->file[mid].path;
		int order = path_order(at, strlen(at), path, len);

		if (!order)
			return &view->file[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Is the recording's text under `path` the list of `mask`? */
static bool tells(const struct rn_view *view, const char *path, const struct mc_cpumask *mask)
{
	const struct rn_file *file = rn_file(view, path, strlen(path));
	struct mc_text text = {0};
	bool same;

	mc_text_list(&text, mask);
	mc_text_add(&text, "\n", 1);
	same = !text.failed && file && file->len == text.len &&
	       !memcmp(file->data, text.data, text.len);
	mc_text_free(&text);
	return same;
}

int rn_view_load(struct rn_view *view)
{
	struct rn_loader loader = {0};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	view->host_cpus = cpus > 0 ? (unsigned int)cpus : 1;
	view->arch = mc_topology_arch(view->topo);
	if (rn_live(view->render)->derived_only)
		return 0;
	if (mc_topology_files(view->topo, load_one, &loader) < 0 || loader.failed) {
		free(loader.file);
		return -ENOMEM;
	}
	if (loader.nr)
		qsort(loader.file, loader.nr, sizeof(*loader.file), file_order);
	view->file = loader.file;
	view->nr_files = loader.nr;
	view->recorded = rn_file(view, RN_SYS_CPU "/online", strlen(RN_SYS_CPU "/online"));
	view->small = view->recorded &&
		      !rn_file(view, RN_SYS_CPU "/cpufreq", strlen(RN_SYS_CPU "/cpufreq")) &&
		      !rn_file(view, RN_SYS_CPU "/power", strlen(RN_SYS_CPU "/power"));
	view->as_recorded =
		view->recorded && tells(view, RN_SYS_CPU "/online", mc_topology_online(view->topo));
#if defined(__x86_64__)
	view->host_source = !view->recorded && view->arch == MC_ARCH_X86_64;
#elif defined(__aarch64__)
	view->host_source = !view->recorded && view->arch == MC_ARCH_AARCH64;
#elif defined(__powerpc64__)
	view->host_source = !view->recorded && view->arch == MC_ARCH_PPC64;
#endif
	if (view->host_source && access(RN_SYS_CPU "/online", F_OK) < 0)
		view->host_source = false;
	view->host_cpufreq = view->host_source && access(RN_SYS_CPU "/cpu0/cpufreq", F_OK) == 0;
	view->no_advanced = view->host_source && access(RN_SYS_CPU "/power/async", F_OK) < 0;
	return 0;
}

/* Length of "/sys/devices/system/cpu/cpu" when the path goes on with a number, else 0; likewise for
 * nodes. */
static size_t numbered(const char *path, bool *cpu)
{
	static const char cpus[] = RN_SYS_CPU "/cpu", nodes[] = RN_SYS_NODE "/node";
	size_t len = 0;

	if (!strncmp(path, cpus, sizeof(cpus) - 1))
		len = sizeof(cpus) - 1;
	else if (!strncmp(path, nodes, sizeof(nodes) - 1))
		len = sizeof(nodes) - 1;
	*cpu = len == sizeof(cpus) - 1;
	return path[len] >= '0' && path[len] <= '9' ? len : 0;
}

static bool other_path(const struct rn_at *at, unsigned int other, size_t head, char *buf,
		       size_t size)
{
	const char *rest = at->path + head;
	int len;

	rest += strspn(rest, "0123456789");
	len = snprintf(buf, size, "%.*s%u%s", (int)head, at->path, other, rest);
	return len > 0 && (size_t)len < size;
}

/* cpufreq/policyN is what the host shows under cpuM/cpufreq, whichever of its policies that CPU
 * belongs to. */
static bool policy_path(const struct rn_at *at, char *buf, size_t size)
{
	static const char policy[] = RN_SYS_CPU "/cpufreq/policy";
	const char *rest = at->path + sizeof(policy) - 1;
	int len;

	if (strncmp(at->path, policy, sizeof(policy) - 1) || *rest < '0' || *rest > '9')
		return false;
	rest += strspn(rest, "0123456789");
	len = snprintf(buf, size, RN_SYS_CPU "/cpu%u/cpufreq%s",
		       (unsigned int)(at->n[0] % at->view->host_cpus), rest);
	return len > 0 && (size_t)len < size;
}

bool rn_source_path(const struct rn_at *at, char *buf, size_t size)
{
	const struct rn_view *view = at->view;
	bool cpu;
	size_t head = numbered(at->path, &cpu);
	unsigned int i;

	if (at->len >= size)
		return false;
	if (view->recorded) {
		memcpy(buf, at->path, at->len + 1);
		if (rn_file(view, buf, at->len))
			return true;
		for (i = 0; head && i < 2; i++) {
			if (other_path(at, i, head, buf, size) && rn_file(view, buf, strlen(buf)))
				return true;
		}
		return false;
	}
	if (!view->host_source)
		return false;
	if (policy_path(at, buf, size))
		return true;
	if (head)
		return other_path(at, cpu ? (unsigned int)(at->n[0] % view->host_cpus) : 0, head,
				  buf, size);
	memcpy(buf, at->path, at->len + 1);
	return true;
}

char rn_source_type(const struct rn_at *at)
{
	char path[PATH_MAX];
	struct stat st;

	if (!rn_source_path(at, path, sizeof(path)))
		return 0;
	if (at->view->recorded)
		return rn_file(at->view, path, strlen(path))->type;
	if (lstat(path, &st) < 0)
		return 0;
	return S_ISDIR(st.st_mode) ? 'd' : S_ISLNK(st.st_mode) ? 'l' : 'f';
}

int rn_host_read(const char *path, char **text, size_t *len)
{
	return mc_os_read_file(MC_ROOT_LIVE, path, RN_HOST_MAX, text, len);
}

int rn_source_read(const struct rn_at *at, struct mc_text *out)
{
	char path[PATH_MAX], *text;
	size_t len;
	int ret;

	if (!rn_source_path(at, path, sizeof(path)))
		return -ENOENT;
	if (at->view->recorded) {
		const struct rn_file *file = rn_file(at->view, path, strlen(path));

		if (file->type == 'd')
			return -EISDIR;
		mc_text_add(out, file->data, file->len);
		return 0;
	}
	ret = rn_host_read(path, &text, &len);
	if (ret < 0)
		return ret;
	mc_text_add(out, text, len);
	free(text);
	return 0;
}

int rn_source_readlink(const struct rn_at *at, struct mc_text *out)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t len;

	if (!rn_source_path(at, path, sizeof(path)))
		return -ENOENT;
	if (at->view->recorded) {
		const struct rn_file *file = rn_file(at->view, path, strlen(path));

		if (file->type != 'l')
			return -EINVAL;
		mc_text_add(out, file->data, strlen(file->data));
		return 0;
	}
	len = readlink(path, target, sizeof(target));
	if (len < 0)
		return -errno;
	mc_text_add(out, target, (size_t)len);
	return 0;
}

static int recorded_list(const struct rn_view *view, const char *path,
			 int (*fn)(void *arg, const char *name, char type), void *arg)
{
	size_t len = strlen(path);
	const struct rn_file *file = rn_file(view, path, len), *end = view->file + view->nr_files;
	int ret;

	if (!file || file->type != 'd')
		return -ENOENT;
	for (file++; file < end; file++) {
		if (strncmp(file->path, path, len) || file->path[len] != '/')
			break;
		if (strchr(file->path + len + 1, '/'))
			continue;
		ret = fn(arg, file->path + len + 1, file->type);
		if (ret)
			return ret;
	}
	return 0;
}

int rn_source_list(const struct rn_at *at, int (*fn)(void *arg, const char *name, char type),
		   void *arg)
{
	char path[PATH_MAX];
	struct dirent *entry;
	int ret = 0;
	DIR *dir;

	if (!rn_source_path(at, path, sizeof(path)))
		return -ENOENT;
	if (at->view->recorded)
		return recorded_list(at->view, path, fn, arg);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		ret = fn(arg, entry->d_name,
			 entry->d_type == DT_DIR   ? 'd'
			 : entry->d_type == DT_LNK ? 'l'
						   : 'f');
	}
	closedir(dir);
	return ret;
}
