// SPDX-License-Identifier: MIT
/*
 * topology_files_tar.c - recordings in tar archives of any compression that libarchive knows, and
 * gzipped files in them.
 *
 * Entries are read into memory one by one; libarchive is never asked to write anything to the file
 * system.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_files.h"

#define BLOCK 65536

/* Reads the rest of an entry. `promised` is what its header says, or 0 when that is not known
 * (gzip). */
static int read_data(struct topo_files *files, struct archive *a, const char *path,
		     uint64_t promised, char **data, size_t *len, struct mc_error *error)
{
	size_t have = 0, room = promised && promised < BLOCK ? (size_t)promised : BLOCK;
	char *buf = malloc(room + 1), *bigger;
	int rc = 0;

	while (buf) {
		ssize_t n = archive_read_data(a, buf + have, room - have);

		if (n < 0) {
			rc = mc_fail(error, EINVAL,
				     "reading machine: %.150s: %.200s: %s; is it cut or damaged?",
				     files->name, path,
				     archive_error_string(a) ? archive_error_string(a)
							     : "unreadable");
			break;
		}
		if (n == 0)
			break;
		rc = topo_files_charge(files, (uint64_t)n, path, error);
		if (rc < 0)
			break;
		have += (size_t)n;
		if (have == room) {
			bigger = realloc(buf, room * 2 + 1);
			if (!bigger) {
				free(buf);
				buf = NULL;
				break;
			}
			buf = bigger;
			room *= 2;
		}
	}
	if (!buf)
		return mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", files->name);
	if (rc < 0) {
		free(buf);
		return rc;
	}
	buf[have] = '\0';
	bigger = realloc(buf, have + 1);
	*data = bigger ? bigger : buf;
	*len = have;
	return 0;
}

static int add_hard_link(struct topo_files *files, const char *path, const char *target,
			 struct mc_error *error)
{
	char clean[TOPO_MAX_PATH];
	int rc = topo_files_clean(files, target, clean, sizeof(clean), error);

	if (rc < 0)
		return rc;
	for (size_t i = files->nr; i-- > 0;) {
		const struct topo_file *f = &files->file[i];

		if (strcmp(f->path, clean))
			continue;
		if (f->type != 'f')
			break;
		/* A copy: either name may be replaced by a later entry. */
		rc = topo_files_charge(files, f->len, path, error);
		if (rc == 0) {
			char *copy = malloc(f->len + 1);

			if (!copy)
				return mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", files->name);
			memcpy(copy, f->data, f->len + 1);
			rc = topo_files_add(files, path, 'f', copy, f->len, error);
		}
		return rc;
	}
	return mc_fail(
		error, EINVAL,
		"reading machine: %.150s: %.150s: a hard link to %.100s, which is no file before it",
		files->name, path, clean);
}

static int add_entry(struct topo_files *files, struct archive *a, struct archive_entry *entry,
		     struct mc_error *error)
{
	const char *raw = archive_entry_pathname(entry), *hard = archive_entry_hardlink(entry);
	char path[TOPO_MAX_PATH];
	uint64_t size = archive_entry_size_is_set(entry) ? (uint64_t)archive_entry_size(entry) : 0;
	size_t len;
	char *data;
	int rc;

	if (!raw)
		return mc_fail(error, EINVAL, "reading machine: %.150s: a name that can't be read", files->name);
	rc = topo_files_clean(files, raw, path, sizeof(path), error);
	if (rc < 0)
		return rc;
	if (size > TOPO_MAX_FILE_BYTES)
		return topo_files_charge(files, size, path, error);
	if (!topo_files_wanted(path))
		return 0;
	if (hard)
		return add_hard_link(files, path, hard, error);
	switch (archive_entry_filetype(entry)) {
	case AE_IFDIR:
		return topo_files_add(files, path, 'd', NULL, 0, error);
	case AE_IFLNK:
		data = archive_entry_symlink(entry) ? strdup(archive_entry_symlink(entry)) : NULL;
		if (!data)
			return mc_fail(error, EINVAL,
				       "reading machine: %.150s: %.200s: a link that can't be read",
				       files->name, path);
		return topo_files_add(files, path, 'l', data, strlen(data), error);
	case AE_IFREG:
		rc = read_data(files, a, path, size, &data, &len, error);
		return rc < 0 ? rc : topo_files_add(files, path, 'f', data, len, error);
	default:
		return 0; /* devices and pipes have nothing to tell */
	}
}

static int read_archive(struct topo_files *files, struct archive *a, struct mc_error *error)
{
	struct archive_entry *entry;
	unsigned int entries = 0;
	int rc = 0;

	while (rc == 0) {
		int status = archive_read_next_header(a, &entry);

		if (status == ARCHIVE_EOF)
			break;
		if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
			return mc_fail(
				error, EINVAL,
				"reading machine: %.150s: %s; is it a tar archive, whole and undamaged?",
				files->name,
				archive_error_string(a) ? archive_error_string(a) : "unreadable");
		if (++entries > 2 * TOPO_MAX_FILES ||
		    archive_filter_bytes(a, 0) > (int64_t)TOPO_MAX_ARCHIVE_BYTES)
			return mc_fail(
				error, EFBIG,
				"reading machine: %.150s: archive too large; keep only sys/ and proc/ of one machine",
				files->name);
		rc = add_entry(files, a, entry, error);
	}
	return rc;
}

static struct archive *open_archive(void)
{
	struct archive *a = archive_read_new();

	if (a) {
		archive_read_support_filter_all(a);
		archive_read_support_format_tar(a);
	}
	return a;
}

static int finish(struct archive *a, int status, const char *name, struct topo_files **out,
		  struct mc_error *error)
{
	struct topo_files *files = topo_files_new(name);
	int rc;

	if (!files)
		rc = mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", name);
	else if (status != ARCHIVE_OK)
		rc = mc_fail(error, archive_errno(a) > 0 ? archive_errno(a) : EINVAL,
			     "reading machine: %.150s: %s", name,
			     archive_error_string(a) ? archive_error_string(a) : "can't be opened");
	else
		rc = read_archive(files, a, error);
	archive_read_free(a);
	if (rc == 0)
		rc = topo_files_seal(files, error);
	if (rc == 0)
		*out = files;
	else
		topo_files_put(files);
	return rc;
}

int topo_files_from_tar(const char *path, struct topo_files **files, struct mc_error *error)
{
	struct archive *a = open_archive();

	if (!a)
		return mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", path);
	return finish(a, archive_read_open_filename(a, path, BLOCK), path, files, error);
}

int topo_files_from_memory(const void *data, size_t len, struct topo_files **files,
			   struct mc_error *error)
{
	struct archive *a = open_archive();

	if (!a)
		return mc_fail(error, ENOMEM, "reading machine: out of memory");
	return finish(a, archive_read_open_memory(a, data, len), "archive", files, error);
}

/* ---- X.gz ------------------------------------------------------------------------------------ */

static int gunzip(struct topo_files *files, struct topo_file *f, struct mc_error *error)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	size_t len = 0;
	char *data;
	int rc;

	if (!a)
		return mc_fail(error, ENOMEM, "reading machine: %.150s: out of memory", files->name);
	archive_read_support_filter_gzip(a);
	archive_read_support_format_raw(a);
	if (archive_read_open_memory(a, f->data, f->len) != ARCHIVE_OK ||
	    archive_read_next_header(a, &entry) != ARCHIVE_OK ||
	    archive_filter_code(a, 0) != ARCHIVE_FILTER_GZIP)
		rc = mc_fail(error, EINVAL,
			     "reading machine: %.150s: %.200s: not gzipped; is it cut or damaged?",
			     files->name, f->path);
	else
		rc = read_data(files, a, f->path, 0, &data, &len, error);
	archive_read_free(a);
	if (rc < 0)
		return rc;
	free(f->data);
	f->data = data;
	f->len = len;
	f->path[strlen(f->path) - 3] = '\0';
	return 0;
}

/* The list is sorted, so X (if there is one) stands before X.gz: then X.gz is left alone. */
int topo_files_gunzip(struct topo_files *files, struct mc_error *error)
{
	for (size_t i = 0; i < files->nr; i++) {
		struct topo_file *f = &files->file[i];
		size_t len = strlen(f->path);
		bool plain = false;
		int rc;

		if (f->type != 'f' || len < 4 || strcmp(f->path + len - 3, ".gz"))
			continue;
		for (size_t k = i;
		     k-- > 0 && !strncmp(files->file[k].path, f->path, len - 3) && !plain;)
			plain = !files->file[k].path[len - 3];
		rc = plain ? 0 : gunzip(files, f, error);
		if (rc < 0)
			return rc;
	}
	return 0;
}
