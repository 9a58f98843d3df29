// SPDX-License-Identifier: MIT
/*
 * topology_read.c - a machine from the files that its kernel shows, recorded or live: the order of
 * things, and the few forms in which the kernel writes numbers and sets.
 *
 * Recordings are hostile input: every number is bounded before memory is taken for it.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "os/os.h"
#include "topology_read.h"

#define MAX_TEXT (64u << 20)

/* ---- forms ----------------------------------------------------------------------------------- */

int topo_read_problem(struct topo_reader *r, int err, const char *path, const char *problem)
{
	return mc_fail(r->error, err, "reading machine: %.150s: %.200s: %s", r->name, path, problem);
}

static int vread(const struct topo_reader *r, struct topo_text *text, char *path,
		 const char *format, va_list ap)
{
	const struct topo_file *f;
	int rc;

	vsnprintf(path, TOPO_MAX_PATH, format, ap);
	text->owned = NULL;
	if (r->files) {
		f = topo_files_find(r->files, path);
		if (!f || f->type != 'f')
			return -ENOENT;
		text->data = f->data;
		text->len = f->len;
		return 0;
	}
	rc = mc_os_read_file(MC_ROOT_LIVE, path, MAX_TEXT, &text->owned, &text->len);
	text->data = text->owned;
	return rc;
}

int topo_read(const struct topo_reader *r, struct topo_text *text, const char *format, ...)
{
	char path[TOPO_MAX_PATH];
	va_list ap;
	int rc;

	va_start(ap, format);
	rc = vread(r, text, path, format, ap);
	va_end(ap);
	return rc;
}

void topo_text_done(struct topo_text *text)
{
	free(text->owned);
	text->owned = NULL;
}

static int read_number(struct topo_reader *r, long long *value, const char *format, va_list ap)
{
	char path[TOPO_MAX_PATH], *end;
	struct topo_text text;
	int rc = vread(r, &text, path, format, ap);

	if (rc < 0)
		return rc;
	errno = 0;
	*value = strtoll(text.data, &end, text.data[0] == '0' && text.data[1] == 'x' ? 16 : 10);
	if (errno == ERANGE)
		rc = topo_read_problem(r, ERANGE, path, "number too large");
	else if (end == text.data || (*end && !isspace((unsigned char)*end)))
		rc = topo_read_problem(r, EINVAL, path, "not a number");
	topo_text_done(&text);
	return rc;
}

int topo_read_number(struct topo_reader *r, long long *value, const char *format, ...)
{
	va_list ap;
	int rc;

	va_start(ap, format);
	rc = read_number(r, value, format, ap);
	va_end(ap);
	return rc;
}

int topo_read_int(struct topo_reader *r, int *value, int missing, const char *format, ...)
{
	char path[TOPO_MAX_PATH];
	long long v;
	va_list ap;
	int rc;

	va_start(ap, format);
	rc = read_number(r, &v, format, ap);
	va_end(ap);
	if (rc == -EINVAL || rc == -ERANGE)
		return rc;
	if (rc < 0) {
		/* Not there, or (live) not readable: as if there were no such file. */
		*value = missing;
		return 0;
	}
	if (v < INT_MIN || v > INT_MAX) {
		va_start(ap, format);
		vsnprintf(path, sizeof(path), format, ap);
		va_end(ap);
		return topo_read_problem(r, ERANGE, path, "number too large");
	}
	*value = (int)v;
	return 0;
}

/* The kernel ends texts with a newline; a list is what is before. */
static int parse_set(struct topo_reader *r, struct mc_cpumask *mask, const struct topo_text *text,
		     const char *path, bool list)
{
	char *copy = strndup(text->data, text->len);
	size_t n;
	int rc;

	if (!copy)
		return topo_read_problem(r, ENOMEM, path, "out of memory");
	for (n = strlen(copy); n && isspace((unsigned char)copy[n - 1]); n--)
		copy[n - 1] = '\0';
	mc_cpumask_zero(mask);
	rc = list ? mc_cpulist_parse(mask, copy, NULL) : mc_cpumask_parse(mask, copy, NULL);
	free(copy);
	if (rc == -ERANGE || rc == -EOVERFLOW)
		return topo_read_problem(r, ERANGE, path, "names a CPU or node that the machine can't have");
	return rc < 0 ? topo_read_problem(r, EINVAL, path, list ? "not a list of numbers" : "not a mask") : 0;
}

int topo_read_list(struct topo_reader *r, struct mc_cpumask *mask, const char *format, ...)
{
	char path[TOPO_MAX_PATH];
	struct topo_text text;
	va_list ap;
	int rc;

	va_start(ap, format);
	rc = vread(r, &text, path, format, ap);
	va_end(ap);
	if (rc < 0)
		return rc;
	rc = parse_set(r, mask, &text, path, true);
	topo_text_done(&text);
	return rc;
}

int topo_read_set(struct topo_reader *r, uint32_t *mask, const char *dir, const char *list,
		  const char *map)
{
	struct topo_text text;
	char path[TOPO_MAX_PATH];
	bool is_list = true;
	int rc;

	*mask = TOPO_NO_MASK;
	snprintf(path, sizeof(path), "%s/%s", dir, list);
	rc = topo_read(r, &text, "%s", path);
	if (rc < 0) {
		is_list = false;
		snprintf(path, sizeof(path), "%s/%s", dir, map);
		rc = topo_read(r, &text, "%s", path);
	}
	if (rc < 0)
		return 0;
	rc = parse_set(r, r->scratch, &text, path, is_list);
	topo_text_done(&text);
	if (rc < 0)
		return rc;
	*mask = topo_intern(r->base, r->scratch);
	if (*mask == TOPO_NO_MASK)
		return topo_read_problem(r, errno, path,
					 errno == EFBIG ? "too many different sets of CPUs" : "out of memory");
	return 0;
}

struct names {
	int (*fn)(void *arg, const char *name);
	void *arg;
};

static int pass_name(void *arg, const char *name, char type)
{
	struct names *names = arg;

	(void)type;
	return names->fn(names->arg, name);
}

int topo_read_dir(struct topo_reader *r, const char *dir, int (*fn)(void *arg, const char *name),
		  void *arg)
{
	struct names names = { fn, arg };
	int fd, rc;

	if (r->files)
		return topo_files_list(r->files, dir, fn, arg);
	fd = mc_os_open_dir(MC_ROOT_LIVE, dir);
	if (fd < 0)
		return fd;
	rc = mc_os_list_dir(fd, pass_name, &names);
	mc_os_close(fd);
	return rc;
}

bool topo_numbered(const char *name, const char *prefix, unsigned int *number)
{
	size_t len = strlen(prefix);
	unsigned long long v = 0;

	if (strncmp(name, prefix, len) || !isdigit((unsigned char)name[len]))
		return false;
	if (name[len] == '0' && name[len + 1])
		return false;
	for (name += len; isdigit((unsigned char)*name); name++) {
		v = v * 10 + (unsigned long long)(*name - '0');
		if (v > UINT_MAX)
			return false;
	}
	*number = (unsigned int)v;
	return !*name;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static bool has_line(const struct topo_text *text, const char *start)
{
	size_t len = strlen(start);
	const char *p = text->data;

	while (p && *p) {
		if (!strncmp(p, start, len))
			return true;
		p = strchr(p, '\n');
		p = p ? p + 1 : NULL;
	}
	return false;
}

static enum mc_arch find_arch(struct topo_reader *r)
{
	enum mc_arch arch = MC_ARCH_OTHER;
	struct topo_text text;

	if (!r->files)
		return topo_host_arch();
	if (topo_read(r, &text, SYS_CPU "/modalias") == 0) {
		if (has_line(&text, "cpu:type:x86"))
			arch = MC_ARCH_X86_64;
		else if (has_line(&text, "cpu:type:aarch64"))
			arch = MC_ARCH_AARCH64;
		topo_text_done(&text);
	}
	if (arch == MC_ARCH_OTHER && topo_read(r, &text, "/proc/cpuinfo") == 0) {
		if (has_line(&text, "vendor_id") && has_line(&text, "flags"))
			arch = MC_ARCH_X86_64;
		else if (has_line(&text, "CPU implementer"))
			arch = MC_ARCH_AARCH64;
		else if (has_line(&text, "cpu\t\t: POWER") || has_line(&text, "platform\t: PowerNV") ||
			 has_line(&text, "platform\t: pSeries"))
			arch = MC_ARCH_PPC64;
		topo_text_done(&text);
	}
	return arch;
}

/* The width of Mems_allowed is the kernel's limit of nodes: 4 bits a digit. */
static unsigned int find_max_numnodes(struct topo_reader *r)
{
	unsigned int digits = 0;
	struct topo_text text;
	const char *p;

	if (topo_read(r, &text, "/proc/self/status") < 0)
		return 1024;
	p = strstr(text.data, "Mems_allowed:");
	for (p = p ? p + strlen("Mems_allowed:") : ""; *p && *p != '\n'; p++)
		digits += isxdigit((unsigned char)*p) != 0;
	topo_text_done(&text);
	return digits && digits <= TOPO_MAX_NODES / 4 ? digits * 4 : 1024;
}

static int read_all(struct topo_reader *r)
{
	int rc = topo_read_cpus(r);

	if (rc < 0)
		return rc;
	r->base->arch = find_arch(r);
	r->base->max_numnodes = find_max_numnodes(r);
	if (r->base->max_numnodes < r->base->nr_node_ids)
		r->base->max_numnodes = r->base->nr_node_ids;
	rc = topo_read_nodes(r);
	return rc < 0 ? rc : topo_read_memory(r);
}

int topo_read_machine(struct topo_files *files, const char *name, struct mc_topology **topo,
		      struct mc_error *error)
{
	struct topo_reader r = { .files = files, .name = name, .error = error };
	int rc = read_all(&r);

	mc_cpumask_free(r.scratch);
	if (rc < 0) {
		topo_base_put(r.base);
		return rc;
	}
	if (files)
		atomic_fetch_add_explicit(&files->refs, 1, memory_order_relaxed);
	r.base->files = files;
	if (topo_base_finish(r.base, topo) < 0)
		return topo_read_problem(&r, ENOMEM, "", "out of memory");
	return 0;
}
