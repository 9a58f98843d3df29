/* SPDX-License-Identifier: MIT */
/* topology_files.h - the recording in memory: shared by topology_files*.c and the reader of
 * machines. */
#ifndef MC_TOPOLOGY_FILES_H
#define MC_TOPOLOGY_FILES_H

#include <stdio.h>
#include "topology_priv.h"

/* Bounds of a recording, told in topology.h. */
#define TOPO_MAX_FILE_BYTES (256ull << 20)
#define TOPO_MAX_FILES (1u << 20)
#define TOPO_MAX_PATH 4096
/* An archive may hold more than is kept, but not without end. */
#define TOPO_MAX_ARCHIVE_BYTES (1ull << 30)

struct topo_file {
	char *path;
	char *data;             /* 'f': text with a NUL after len bytes; 'l': target; 'd': NULL */
	size_t len;
	unsigned int order;     /* in which it came */
	char type;
	bool shares;            /* data belongs to another entry (a hard link) */
};

struct topo_files {
	atomic_uint refs;
	struct topo_file *file; /* sorted by path, '/' first */
	size_t nr, room;
	uint64_t bytes;
	const char *name;       /* for messages while loading */
};

struct topo_files *topo_files_new(const char *name);
/* Is "X/sys/..." or "sys/..." (proc alike)? Others are skipped unread. */
bool topo_files_wanted(const char *path);
/* Removes "." and double slashes; absolute paths and ".." are errors. */
int topo_files_clean(struct topo_files *files, const char *path, char *clean, size_t size,
		     struct mc_error *error);
/* Counts memory that is about to be taken: -EFBIG past the bound. */
int topo_files_charge(struct topo_files *files, uint64_t bytes, const char *path,
		      struct mc_error *error);
/* Takes over `data` (malloc'ed), also on failure. */
int topo_files_add(struct topo_files *files, const char *path, char type, char *data, size_t len,
		   struct mc_error *error);
int topo_files_seal(struct topo_files *files, struct mc_error *error);
int topo_files_gunzip(struct topo_files *files, struct mc_error *error);

int topo_files_from_dir(const char *path, struct topo_files **files, struct mc_error *error);
int topo_files_from_tar(const char *path, struct topo_files **files, struct mc_error *error);
/* The same for an archive in memory (tests and fuzzing). */
int topo_files_from_memory(const void *data, size_t len, struct topo_files **files,
			   struct mc_error *error);

/* Follows links; NULL when there is no such entry. */
const struct topo_file *topo_files_find(const struct topo_files *files, const char *path);
/* Names in a folder; stops when fn returns non-zero. -ENOENT: no such folder. */
int topo_files_list(const struct topo_files *files, const char *dir,
		    int (*fn)(void *arg, const char *name), void *arg);

#endif
