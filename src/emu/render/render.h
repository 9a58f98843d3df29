/* SPDX-License-Identifier: MIT */
/*
 * render.h - the rendered machine: one function from path to content, over one topology.
 *
 * Everything `manycore run` shows of the machine comes from here, whichever view shows it, so no
 * two files can disagree. Paths are absolute and clean ("/sys/devices/system/cpu/online"). For a
 * path the renderer owns it answers completely (file, folder or link, or -ENOENT); for any other
 * -EXDEV: the host's own file is what there is.
 *
 * Sources, in this order: what follows from the topology; what a recording holds verbatim; what the
 * host shows, rewritten. A renderer is immutable but for mc_render_set_topology(); calls on one
 * renderer may run at once.
 */
#ifndef MC_RENDER_H
#define MC_RENDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <manycore/manycore.h>

/* A growing text; start zeroed. After ENOMEM it stays cut and `failed` is set: check once, at the
 * end. */
struct mc_text {
	char *data;
	size_t len, room;
	bool failed;
};
void mc_text_add(struct mc_text *text, const void *data, size_t len);
void mc_text_printf(struct mc_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A mask as the kernel's cpulist and as its hex groups, without a newline. */
void mc_text_list(struct mc_text *text, const struct mc_cpumask *mask);
void mc_text_mask(struct mc_text *text, const struct mc_cpumask *mask);
void mc_text_free(struct mc_text *text);

struct mc_node_usage {
	uint64_t anon, file, shmem, mapped, dirty,
		hugetlb; /* bytes on this node; file is without shmem */
};
struct mc_node_counters {
	uint64_t numa_hit, numa_miss, numa_foreign, interleave_hit, local_node, other_node;
};

/* What only the running emulator knows. Any pointer may be NULL: the topology's (or the
 * recording's) values then. */
struct mc_render_live {
	void *arg;
	/* Bytes of `node` in use by kind, beyond the topology's own mem_total - mem_free. */
	void (*node_usage)(void *arg, unsigned int node, struct mc_node_usage *usage);
	/* The kernel's numastat counters of the node. */
	void (*node_counters)(void *arg, unsigned int node, struct mc_node_counters *counters);
	/*
	 * Content of a writable file whose value the emulator keeps: 0, or -ENOENT for the
	 * machine's own value. Asked for /sys/kernel/mm/mempolicy/weighted_interleave/nodeN (and
	 * auto), /proc/sys/kernel/numa_balancing and every nr_hugepages and nr_overcommit_hugepages
	 * file.
	 */
	int (*value)(void *arg, const char *path, struct mc_text *out);
	/* For tests: only what follows from the topology, no text of the recording or of the host's
	 * /sys. */
	bool derived_only;
};

struct mc_render;
struct mc_render *mc_render_new(struct mc_topology *topo, const struct mc_render_live *live);
void mc_render_free(struct mc_render *render);
struct mc_topology *mc_render_topology(struct mc_render *render); /* a new reference */
int mc_render_set_topology(struct mc_render *render,
			   struct mc_topology *topo); /* after hot-plug; 0 or -ENOMEM */

/* Is the path one that the renderer answers? Cheap: no content is made. */
bool mc_render_owns(struct mc_render *render, const char *path);
/* As lstat(2): type and permissions; st_size as sysfs and procfs tell it (4096, or 0 for /proc). 0,
 * -ENOENT, -EXDEV. */
int mc_render_stat(struct mc_render *render, const char *path, struct stat *st);
/* Content of a file. 0, -ENOENT, -EXDEV, -EISDIR, -ENOMEM, or the error that reading the real file
 * gives. */
int mc_render_read(struct mc_render *render, const char *path, struct mc_text *out);
/* Target of a link, as the kernel shows it (relative). */
int mc_render_readlink(struct mc_render *render, const char *path, struct mc_text *out);
/* The path with every link in it followed, the last one too: what to ask for when stat(2) is
 * answered. */
int mc_render_resolve(struct mc_render *render, const char *path, struct mc_text *out);
/* Each name in a folder with its type ('f', 'd', 'l'). */
int mc_render_list(struct mc_render *render, const char *path,
		   int (*fn)(void *arg, const char *name, char type), void *arg);

/*
 * Materialises the contents of the folder `path` in the folder `dir`: folders that are there are
 * entered, files and links that are there replaced. MC_RENDER_DIRS: folders and links only, files
 * are left out (they are answered when opened). MC_RENDER_SHALLOW: this one folder, the folders in
 * it stay empty. Equal contents share one inode (hard links). 0 or -errno with *error saying which
 * file; what was written then stays.
 */
enum { MC_RENDER_DIRS = 1, MC_RENDER_SHALLOW = 2 };
int mc_render_tree(struct mc_render *render, const char *path, int dir, unsigned int flags,
		   struct mc_error *error);

/* Bytes, the same as /proc/meminfo tells: for sysinfo(2). */
struct mc_render_memory {
	uint64_t total, free, available, shared, buffers, swap_total, swap_free;
};
int mc_render_memory(struct mc_render *render, struct mc_render_memory *memory);

/* Files of a process: the host's text rewritten by what the emulator knows of that thread. NULL
 * leaves a field alone. */
struct mc_render_task {
	const struct mc_cpumask *allowed; /* Cpus_allowed, as wide as nr_cpu_ids */
	const struct mc_nodemask *mems;   /* Mems_allowed, max_numnodes wide */
	int cpu;                          /* stat's processor field; -1: alone */
};
int mc_render_status(struct mc_render *render, const char *host, size_t len,
		     const struct mc_render_task *task, struct mc_text *out);
int mc_render_stat_line(struct mc_render *render, const char *host, size_t len,
			const struct mc_render_task *task, struct mc_text *out);

#endif
