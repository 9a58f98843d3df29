/* SPDX-License-Identifier: MIT */
/*
 * impl.h - inside the renderer: tables of entries, the walk over them, and the sources behind.
 *
 * The machine's files are described by tables of `struct rn_entry`, one file of tables per area
 * (sys_cpu.c, sys_node.c, proc_*.c ...). A name may hold one '#', which stands for a decimal number
 * as the kernel prints it; the numbers met on the way to an entry are in `struct rn_at`. render.c
 * walks the tables for every question, tree.c to write them out.
 */
#ifndef MC_RENDER_IMPL_H
#define MC_RENDER_IMPL_H

#include <limits.h>
#include <string.h>
#include "render.h"

#define RN_SYS_CPU "/sys/devices/system/cpu"
#define RN_SYS_NODE "/sys/devices/system/node"
#define RN_SYS_MEMORY "/sys/devices/system/memory"
#define RN_NONE UINT64_MAX
#define RN_DEPTH 4

/* One entry of a recording; pointers are the topology's. */
struct rn_file {
	const char *path;
	const char *data; /* 'l': the target */
	size_t len;
	char type;
};

/* A topology and what is derived from it once; counted, so that a question outlives
 * mc_render_set_topology(). */
struct rn_view {
	struct mc_render *render;
	unsigned int refs;
	struct mc_topology *topo;
	enum mc_arch arch;
	bool no_advanced; /* the host's kernel has only five of the files in power/ */
	bool small; /* recorded on a kernel without power management (and kexec): recorders leave
		     * power/ out, but cpufreq/ is there where the kernel has it */
	bool host_cpufreq;
	bool as_recorded; /* and the online CPUs are those of the recording */
	bool recorded;    /* a recording stands behind it */
	bool host_source; /* else: the host's kernel is of that architecture and shows what does not
			     follow */
	unsigned int host_cpus; /* CPUs of the host, at least 1 */
	struct rn_file *file;
	size_t nr_files;
	uint64_t block_size; /* of memory blocks; 0: not looked for yet */
};

/* Where a walk has led to: the clean path and the numbers in it. */
struct rn_at {
	struct mc_render *render;
	const struct rn_view *view;
	const struct mc_topology *topo;
	unsigned int nr;
	uint64_t n[RN_DEPTH];
	size_t len;
	char path[PATH_MAX];
};

struct rn_entry {
	const char *name;
	char type; /* 'f', 'd', 'l'; 0 ends a table */
	uint8_t flags;
	uint16_t mode;
	int arg; /* for the maker */
	const struct rn_entry *kids;
	/* Is it there? NULL: always. at->n[at->nr - 1] is this entry's own number. */
	bool (*has)(const struct rn_at *at, const struct rn_entry *entry);
	/* The smallest number >= from that `name` has in the folder `at`, RN_NONE past the last. */
	uint64_t (*next)(const struct rn_at *at, const struct rn_entry *entry, uint64_t from);
	/* Content, or the target of a link. NULL: the source's, else `text`. 0 or -errno as reading
	 * gives. */
	int (*make)(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
	const char *text;
};

enum {
	RN_PASS = 1,   /* a folder on the way: it is the host's, only what is below is ours */
	RN_EXTRA = 2,  /* a folder in which a recording's other entries are shown too */
	RN_MIRROR = 4, /* a folder whose entries are just the source's */
	RN_RECORD = 8, /* there only where the recording has it (without one: always) */
	RN_LIVE = 64,  /* there only where the host's kernel has it, when it is the source (else:
			  always) */
	RN_SOURCE = RN_RECORD | RN_LIVE,
	RN_HOSTED = 128, /* for machines without a recording; else what the recording holds under
			    this name is shown */
	RN_HOST = 16,    /* there only where the host has it at this very path */
	RN_WIDE = 32,    /* st_size of a cpulist: grows with the kernel's limit */
};

extern const struct rn_entry rn_root[];                 /* roots.c */
extern const struct rn_entry rn_cpu[];                  /* sys_cpu.c */
extern const struct rn_entry rn_topology[], rn_cache[]; /* sys_cache.c */
extern const struct rn_entry rn_node[];                 /* sys_node.c */
extern const struct rn_entry rn_memory[];               /* sys_memory.c */
extern const struct rn_entry rn_power[];                /* sys_bus.c */
extern const struct rn_entry rn_bus_cpu[], rn_bus_node[], rn_bus_memory[];

/* What a path names: an entry of a table, or (entry == NULL) something that only the source has. */
struct rn_found {
	const struct rn_entry *entry;
	char type;
};

/* ---- render.c ---- */
struct rn_view *rn_view_get(struct mc_render *render);
void rn_view_put(struct rn_view *view);
const struct mc_render_live *rn_live(const struct mc_render *render);
/* ---- walk.c ---- */
/* The entry `name` of a table that matches (its number in *n), or NULL. */
const struct rn_entry *rn_match(const struct rn_entry *table, const char *name, size_t len,
				uint64_t *n);
/* Does the folder `at` hold this entry? Its number is at->n[at->nr - 1] already. */
bool rn_has(const struct rn_at *at, const struct rn_entry *entry);
/* Appends "/name" to at->path, '#' replaced by n; undone by rn_leave(). -ENAMETOOLONG. */
int rn_enter(struct rn_at *at, const struct rn_entry *entry, uint64_t n, size_t *mark);
void rn_leave(struct rn_at *at, const struct rn_entry *entry, size_t mark);
int rn_make(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
/* Each entry of the folder `at`, entries that a source adds included (entry == NULL then). */
typedef int (*rn_each_fn)(void *arg, struct rn_at *at, const struct rn_entry *entry, char type);
int rn_each(struct rn_at *at, const struct rn_entry *folder, rn_each_fn fn, void *arg);

/* 0, -ENOENT, -EXDEV, -ENOTDIR, -ELOOP, -ENAMETOOLONG; at->path is the entry's own path then. */
int rn_walk(struct rn_at *at, const char *path, bool follow_last, struct rn_found *found);
/* For tree.c: the folder at `path`, its view referenced; drop it with rn_view_put(). */
int rn_ask_folder(struct mc_render *render, const char *path, struct rn_at *at,
		  const struct rn_entry **entry);

/* ---- sys_device.c: single files known by their name wherever they are (numa_node, cpuset.cpus
 * ...). `rest` is what follows the component that no table has; at->path becomes the whole path.
 * -EXDEV when it is none of them. */
int rn_loose(struct rn_at *at, const char *rest, const struct rn_entry **entry);

/* ---- source.c: a recording's entries, else the host's ---- */
int rn_view_load(struct rn_view *view);
const struct rn_file *rn_file(const struct rn_view *view, const char *path, size_t len);
/* The path that stands for at->path in the source: itself, or that of another CPU or node that is
 * in the source. */
bool rn_source_path(const struct rn_at *at, char *buf, size_t size);
char rn_source_type(const struct rn_at *at);
/* The source's text; -ENOENT when it has none. */
int rn_source_read(const struct rn_at *at, struct mc_text *out);
int rn_source_readlink(const struct rn_at *at, struct mc_text *out);
int rn_source_list(const struct rn_at *at, int (*fn)(void *arg, const char *name, char type),
		   void *arg);
/* A file of the host: 0 or -errno; *text is malloc'ed. */
int rn_host_read(const char *path, char **text, size_t *len);

/* ---- shared makers and conditions ---- */
int rn_number(struct mc_text *out, long long value);
int rn_make_text(const struct rn_at *at, const struct rn_entry *entry,
		 struct mc_text *out); /* entry->text */
static inline uint64_t rn_last(const struct rn_at *at)
{
	return at->n[at->nr - 1];
}
/* The recording's text, never the host's; else entry->text. */
int rn_make_recorded(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
/* ---- sys_cpufreq.c ---- */
extern const struct rn_entry rn_cpufreq[];
bool rn_has_cpufreq(const struct rn_at *at, const struct rn_entry *entry);
int rn_make_cpufreq(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
bool rn_has_power(const struct rn_at *at, const struct rn_entry *entry);
uint64_t rn_next_bit(const struct mc_cpumask *mask, uint64_t from);
/* Memory blocks (sys_memory.c): bytes of one; the next one >= from of a node; of any node. */
uint64_t rn_block_size(const struct rn_at *at);
uint64_t rn_node_block(const struct rn_at *at, unsigned int node, uint64_t from);
uint64_t rn_next_block(const struct rn_at *at, const struct rn_entry *entry, uint64_t from);

/* ---- node_mem.c ---- */
int rn_node_meminfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_node_numastat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_node_vmstat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);

/* ---- proc_*.c ---- */
int rn_proc_cpuinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_stat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_uptime(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_columns(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_schedstat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_meminfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_vmstat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_zoneinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_buddyinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_proc_pagetypeinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
int rn_numa_balancing(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);
extern const struct rn_entry rn_irq[];       /* proc_irq.c */
extern const struct rn_entry rn_kernel_mm[]; /* sys_mm.c */

/* The emulator's value of at->path, -ENOENT: it has none. */
int rn_value(const struct rn_at *at, struct mc_text *out);
/* A host's set of CPUs as a set of the machine's; the caller frees it. */
int rn_project(const struct rn_at *at, const char *path, bool is_list, struct mc_cpumask **out);
int rn_projected(const struct rn_at *at, const struct rn_entry *entry,
		 struct mc_text *out); /* arg: a list */
int rn_projected_node(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out);

#endif
