// SPDX-License-Identifier: MIT
/*
 * cmd_record.c - `manycore record FILE`: this machine as a small tar archive for --machine.
 *
 * Only what tells the machine's shape is read: lists below say which files. Owners, times and the
 * order of entries carry nothing of this host, and of /proc/self/status only the two masks are
 * kept. The archive appears under its name when it is whole.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/cmd.h"

#define MAX_FILE (4u << 20)
#define MAX_PATH 4096

/* Patterns of whole paths; '*' stays within one name. Folders are entered when something below them
 * may match. */
static const char *const wanted[] = {
	"/sys/devices/system/cpu/possible",
	"/sys/devices/system/cpu/present",
	"/sys/devices/system/cpu/online",
	"/sys/devices/system/cpu/offline",
	"/sys/devices/system/cpu/kernel_max",
	"/sys/devices/system/cpu/isolated",
	"/sys/devices/system/cpu/nohz_full",
	"/sys/devices/system/cpu/enabled",
	"/sys/devices/system/cpu/modalias",
	"/sys/devices/system/cpu/smt/*",
	"/sys/devices/system/cpu/vulnerabilities/*",
	"/sys/devices/system/cpu/cpu[0-9]*/online",
	"/sys/devices/system/cpu/cpu[0-9]*/cpu_capacity",
	"/sys/devices/system/cpu/cpu[0-9]*/node[0-9]*",
	"/sys/devices/system/cpu/cpu[0-9]*/subsystem",
	"/sys/devices/system/cpu/cpu[0-9]*/topology/*",
	"/sys/devices/system/cpu/cpu[0-9]*/cache/index[0-9]*/*",
	"/sys/devices/system/cpu/cpu[0-9]*/regs/identification/*",
	"/sys/devices/system/cpu/cpufreq/policy[0-9]*/cpuinfo_*_freq",
	"/sys/devices/system/cpu/cpufreq/policy[0-9]*/scaling_*_freq",
	"/sys/devices/system/cpu/cpufreq/policy[0-9]*/base_frequency",
	"/sys/devices/system/cpu/cpu[0-9]*/cpufreq",
	"/sys/devices/system/node/possible",
	"/sys/devices/system/node/online",
	"/sys/devices/system/node/has_*",
	"/sys/devices/system/node/node[0-9]*/cpu[0-9]*",
	"/sys/devices/system/node/node[0-9]*/memory[0-9]*",
	"/sys/devices/system/node/node[0-9]*/cpulist",
	"/sys/devices/system/node/node[0-9]*/cpumap",
	"/sys/devices/system/node/node[0-9]*/distance",
	"/sys/devices/system/node/node[0-9]*/meminfo",
	"/sys/devices/system/node/node[0-9]*/numastat",
	"/sys/devices/system/node/node[0-9]*/vmstat",
	"/sys/devices/system/node/node[0-9]*/subsystem",
	"/sys/devices/system/node/node[0-9]*/hugepages/hugepages-*/*",
	"/sys/devices/system/node/node[0-9]*/access[0-9]/initiators/*",
	"/sys/devices/system/node/node[0-9]*/access[0-9]/targets/*",
	"/sys/devices/system/node/node[0-9]*/memory_side_cache/index[0-9]*/*",
	"/sys/devices/system/memory/block_size_bytes",
	"/sys/devices/system/memory/auto_online_blocks",
	"/sys/bus/cpu/devices/*",
	"/sys/bus/node/devices/*",
	"/sys/kernel/mm/hugepages/hugepages-*/*",
	"/sys/kernel/mm/transparent_hugepage/*",
	"/proc/cpuinfo",
	"/proc/meminfo",
	"/proc/zoneinfo",
	"/proc/buddyinfo",
	"/proc/vmstat",
	"/proc/self/status",
};

struct record {
	struct archive *archive;
	const char *file;
	unsigned int files;
	uint64_t bytes;
};

/* Does a pattern match the path, or (for a folder) may it match something below? */
static bool is_wanted(const char *path, bool folder)
{
	size_t depth = 0;

	for (const char *p = path; *p; p++)
		depth += *p == '/';
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		char start[256];
		size_t seen = 0, n;

		if (!folder) {
			if (!fnmatch(wanted[i], path, FNM_PATHNAME))
				return true;
			continue;
		}
		for (n = 0; wanted[i][n] && (wanted[i][n] != '/' || seen++ < depth); n++)
			;
		if (wanted[i][n] != '/' || n >= sizeof(start))
			continue;
		memcpy(start, wanted[i], n);
		start[n] = '\0';
		if (!fnmatch(start, path, FNM_PATHNAME))
			return true;
	}
	return false;
}

/* ---- leaving out what is private ------------------------------------------------------------- */

/* Keeps (or, with keep false, drops) the lines that start with one of the words. In place; returns
 * the new length. */
static size_t filter_lines(char *text, const char *const *words, bool keep)
{
	char *to = text;

	for (char *line = text, *next; *line; line = next) {
		bool found = false;
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		for (size_t i = 0; words[i]; i++)
			found |= !strncmp(line, words[i], strlen(words[i]));
		if (found == keep) {
			memmove(to, line, (size_t)(next - line));
			to += next - line;
		}
	}
	*to = '\0';
	return (size_t)(to - text);
}

static size_t clean(const char *path, char *text, size_t len)
{
	static const char *const masks[] = { "Cpus_allowed", "Mems_allowed", NULL };
	static const char *const serials[] = { "Serial", "serial", NULL };

	if (!strcmp(path, "/proc/self/status"))
		return filter_lines(text, masks, true);
	if (!strcmp(path, "/proc/cpuinfo"))
		return filter_lines(text, serials, false);
	return len;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int archive_problem(const struct record *r)
{
	cmd_error("record", "writing %s: %s", r->file,
		  archive_error_string(r->archive) ? archive_error_string(r->archive) : "failed");
	return -1;
}

static int put_entry(struct record *r, const char *path, int type, const char *data, size_t len)
{
	struct archive_entry *entry = archive_entry_new();
	int rc = 0;

	if (!entry) {
		cmd_error("record", "%s", strerror(ENOMEM));
		return -1;
	}
	archive_entry_set_pathname(entry, path + 1);
	archive_entry_set_filetype(entry, (unsigned int)type);
	archive_entry_set_perm(entry, type == AE_IFREG ? 0644 : 0777);
	if (type == AE_IFLNK)
		archive_entry_set_symlink(entry, data);
	archive_entry_set_size(entry, type == AE_IFREG ? (int64_t)len : 0);
	if (archive_write_header(r->archive, entry) != ARCHIVE_OK ||
	    (type == AE_IFREG && len && archive_write_data(r->archive, data, len) != (ssize_t)len))
		rc = archive_problem(r);
	archive_entry_free(entry);
	r->files++;
	r->bytes += len;
	return rc;
}

/* What can't be read is left out: root sees more, and files come and go. */
static int put_file(struct record *r, const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;
	char *text;
	int rc;

	if (fd < 0)
		return 0;
	text = malloc(MAX_FILE + 1);
	while (text && len < MAX_FILE && (n = read(fd, text + len, MAX_FILE - len)) > 0)
		len += (size_t)n;
	close(fd);
	if (!text) {
		cmd_error("record", "%s", strerror(ENOMEM));
		return -1;
	}
	if (n < 0) {
		free(text);
		return 0;
	}
	text[len] = '\0';
	rc = put_entry(r, path, AE_IFREG, text, clean(path, text, len));
	free(text);
	return rc;
}

static int put_link(struct record *r, const char *path)
{
	char target[MAX_PATH];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0)
		return 0;
	target[n] = '\0';
	/* An emulated machine's links, or a bind mount's, may be absolute: they would lead out of
	 * the archive. */
	return *target == '/' ? 0 : put_entry(r, path, AE_IFLNK, target, 0);
}

static int walk(struct record *r, const char *dir)
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort), rc = 0;

	for (int i = 0; i < n; i++) {
		char path[MAX_PATH];
		struct stat st;

		if (rc == 0 && strcmp(names[i]->d_name, ".") && strcmp(names[i]->d_name, "..") &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name) <
			    sizeof(path) &&
		    !lstat(path, &st)) {
			if (S_ISDIR(st.st_mode) && is_wanted(path, true))
				rc = walk(r, path);
			else if (S_ISREG(st.st_mode) && is_wanted(path, false))
				rc = put_file(r, path);
			else if (S_ISLNK(st.st_mode) && is_wanted(path, false))
				rc = put_link(r, path);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return rc;
}

static int record(struct record *r)
{
	static const char *const proc[] = { "cpuinfo", "meminfo", "zoneinfo", "buddyinfo", "vmstat", "self/status" };
	int rc = walk(r, "/sys");
	char path[64];

	/* /proc/self is a link: its file is taken by name. */
	for (size_t i = 0; rc == 0 && i < sizeof(proc) / sizeof(*proc); i++) {
		snprintf(path, sizeof(path), "/proc/%s", proc[i]);
		rc = put_file(r, path);
	}
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool ends(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && !strcmp(text + a - b, end);
}

static int set_compression(struct archive *a, const char *file)
{
	if (ends(file, ".zst"))
		return archive_write_add_filter_zstd(a);
	if (ends(file, ".xz"))
		return archive_write_add_filter_xz(a);
	if (ends(file, ".bz2"))
		return archive_write_add_filter_bzip2(a);
	if (ends(file, ".tar"))
		return archive_write_add_filter_none(a);
	if (archive_write_add_filter_gzip(a) != ARCHIVE_OK)
		return ARCHIVE_FATAL;
	/* No time in the header: two records of one machine are the same bytes. */
	return archive_write_set_filter_option(a, "gzip", "timestamp", NULL);
}

static int write_archive(struct record *r, int fd)
{
	int rc = 0;

	r->archive = archive_write_new();
	if (!r->archive) {
		cmd_error("record", "%s", strerror(ENOMEM));
		return -1;
	}
	archive_write_set_format_pax_restricted(r->archive);
	if (set_compression(r->archive, r->file) < ARCHIVE_WARN ||
	    archive_write_open_fd(r->archive, fd) != ARCHIVE_OK)
		rc = archive_problem(r);
	if (rc == 0)
		rc = record(r);
	if (rc == 0 && archive_write_close(r->archive) != ARCHIVE_OK)
		rc = archive_problem(r);
	archive_write_free(r->archive);
	return rc;
}

static int to_file(struct record *r)
{
	char temp[MAX_PATH];
	int fd, rc;

	if ((size_t)snprintf(temp, sizeof(temp), "%s.XXXXXX", r->file) >= sizeof(temp)) {
		cmd_error("record", "writing %.80s...: %s", r->file, strerror(ENAMETOOLONG));
		return -1;
	}
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0) {
		cmd_error("record", "writing %s: %s", r->file, strerror(errno));
		return -1;
	}
	rc = write_archive(r, fd);
	if (rc == 0 && (fchmod(fd, 0644) < 0 || close(fd) < 0 || rename(temp, r->file) < 0)) {
		cmd_error("record", "writing %s: %s", r->file, strerror(errno));
		rc = -1;
	} else if (rc < 0) {
		close(fd);
	}
	if (rc < 0)
		unlink(temp);
	return rc;
}

static int help(void)
{
	puts("Usage: manycore record [OPTION]... FILE\n\n"
	     "Writes this machine's shape (CPUs, caches, nodes, memory; nothing private) as a tar archive that\n"
	     "`--machine ./FILE` of other commands takes. The compression follows from the name: .tar.gz (and\n"
	     "others), .tar.zst, .tar.xz, .tar.bz2, .tar. `-` is standard output.\n\n"
	     "  -v, --verbose           tell what was written\n"
	     "  -h, --help              this text");
	return cmd_finish("record", CMD_OK);
}

int cmd_record(int argc, char **argv)
{
	static const struct option options[] = {
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct record r = { 0 };
	bool verbose = false;
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":vh", options, NULL)) != -1) {
		if (opt == 'h')
			return help();
		if (opt != 'v')
			return cmd_option_error("record", opt, argv);
		verbose = true;
	}
	if (argc - optind != 1)
		return cmd_usage_error("record", argc > optind ? "more than one FILE" : "no FILE given");
	r.file = argv[optind];
	if (!strcmp(r.file, "-") && isatty(STDOUT_FILENO))
		return cmd_usage_error("record", "an archive is nothing for a terminal: redirect it, or give a FILE");
	if ((strcmp(r.file, "-") ? to_file(&r) : write_archive(&r, STDOUT_FILENO)) < 0)
		return CMD_FAILED;
	if (verbose)
		fprintf(stderr, "manycore record: %s: %u files, %llu bytes before compression\n", r.file, r.files,
			(unsigned long long)r.bytes);
	return CMD_OK;
}
