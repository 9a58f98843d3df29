/* SPDX-License-Identifier: MIT */
/* topology_read.h - reading a machine from the files a kernel shows: what the topology_read*.c
 * files share. */
#ifndef MC_TOPOLOGY_READ_H
#define MC_TOPOLOGY_READ_H

#include "topology_files.h"

#define SYS_CPU "/sys/devices/system/cpu"
#define SYS_NODE "/sys/devices/system/node"

struct topo_reader {
	const struct topo_files *files; /* NULL: the live machine */
	const char *name;               /* for messages */
	struct mc_error *error;
	struct topo_base *base;         /* NULL until the CPUs and nodes are counted */
	struct mc_cpumask *scratch;     /* nr_cpu_ids bits */
	int status;                     /* the first error of a nested callback */
};

struct topo_text {
	const char *data;
	size_t len;
	char *owned;
};

/* The text of a file: 0, or -ENOENT and the like. Paths are made as printf does. */
int topo_read(const struct topo_reader *r, struct topo_text *text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void topo_text_done(struct topo_text *text);
/* Decimal number, or hexadecimal after 0x. -ENOENT: no such file; -EINVAL with an error text: not a
 * number. */
int topo_read_number(struct topo_reader *r, long long *value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* As above, but `missing` when the file is not there, and -ERANGE outside of int. */
int topo_read_int(struct topo_reader *r, int *value, int missing, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A list ("0-3,8") into mask. Numbers past the mask's width are errors. */
int topo_read_list(struct topo_reader *r, struct mc_cpumask *mask, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* `list`, or when there is no such file the hexadecimal `map`, below the folder: interned,
 * TOPO_NO_MASK when neither is there. */
int topo_read_set(struct topo_reader *r, uint32_t *mask, const char *dir, const char *list,
		  const char *map);
int topo_read_dir(struct topo_reader *r, const char *dir, int (*fn)(void *arg, const char *name),
		  void *arg);
/* Number behind a prefix: "cpu12" -> 12; false for "cpufreq", "cpu01" and what is too large. */
bool topo_numbered(const char *name, const char *prefix, unsigned int *number);
int topo_read_problem(struct topo_reader *r, int err, const char *path, const char *problem);

int topo_read_cpus(struct topo_reader *r);
int topo_read_nodes(struct topo_reader *r);
/* topology_read_memory.c: ranges, sizes and huge pages of the nodes. */
int topo_read_memory(struct topo_reader *r);

/* From files to a sealed machine, which keeps a reference of its own to them; `files` NULL: live.
 */
int topo_read_machine(struct topo_files *files, const char *name, struct mc_topology **topo,
		      struct mc_error *error);

#endif
