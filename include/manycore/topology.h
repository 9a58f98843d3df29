/* SPDX-License-Identifier: MIT */
/*
 * topology.h - a machine: its CPUs, caches, memory nodes and distances, from any source.
 *
 * A `struct mc_topology` is immutable and counted by reference: share it between threads without
 * locks. It comes from the live machine, from a recording (a directory or a tar holding `sys/` and
 * `proc/`), from a description in QEMU's and the kernel's words (struct mc_machine), or from a
 * named preset, and is changed only by making a new one. The same object feeds every query here and
 * every file that `manycore run` shows.
 */
#ifndef MANYCORE_TOPOLOGY_H
#define MANYCORE_TOPOLOGY_H

#include <stdbool.h>
#include "base.h"
#include "cpumask.h"

MC_BEGIN_DECLS

struct mc_topology;

/* ---- sources --------------------------------------------------------------------------------- */

/* The machine this runs on, read from /sys and /proc (inside `manycore run`: the emulated one).
 * Reads ten small files a CPU, and some a cache: 0.2 ms a CPU, inside `manycore run` 1.5 ms.
 * Returns 0 or -errno; *topo is owned by the caller: mc_topology_put(). */
MC_API int mc_topology_live(struct mc_topology **topo, struct mc_error *error);

/* A recording: a directory or a tar (any compression libarchive knows) with `sys/` and `proc/` at
 * the top or one folder down; X.gz stands for X. The whole recording is read into memory (at most
 * 256 MiB, 1 Mi files) and nothing is written anywhere. Links leading out, loops, cut or malformed
 * files: -EINVAL, -ELOOP, -EFBIG with *error saying which. */
MC_API int mc_topology_load(const char *path, struct mc_topology **topo, struct mc_error *error);

/* One more reference; returns its argument. mc_topology_put(NULL) is allowed. */
MC_API struct mc_topology *mc_topology_get(struct mc_topology *topo);
MC_API void mc_topology_put(struct mc_topology *topo);

/* A copy in which just the CPUs of `online` are online (a subset of the present ones, not empty),
 * as after writing cpuN/online: nodes, links, shared masks follow. -EINVAL otherwise. */
MC_API int mc_topology_set_online(const struct mc_topology *topo, const struct mc_cpumask *online,
				  struct mc_topology **out);

/* ---- a machine being described --------------------------------------------------------------- */

/* Options in QEMU's and the kernel's words (names: "smp" "mem" "nodes" "numa" "machine" "offline";
 * see manycore-run(1)), given in any order and then built once. Values are checked when given where
 * they can be, else by mc_machine_build(). -EINVAL for malformed text, -ERANGE for numbers out of
 * range, -ENOENT for an unknown preset; *error tells the rest. */
struct mc_machine;
MC_API struct mc_machine *mc_machine_new(void);
MC_API void mc_machine_free(struct mc_machine *machine);
MC_API int mc_machine_option(struct mc_machine *machine, const char *name, const char *value,
			     struct mc_error *error);
MC_API int mc_machine_build(const struct mc_machine *machine, struct mc_topology **topo,
			    struct mc_error *error);

/* The i-th preset's name and one-line description, NULL past the last. */
MC_API const char *mc_machine_preset(unsigned int i, const char **description);

/* ---- CPUs ------------------------------------------------------------------------------------ */

enum mc_arch { MC_ARCH_OTHER, MC_ARCH_X86_64, MC_ARCH_AARCH64, MC_ARCH_PPC64 };

/* Which architecture's files the machine shows. */
MC_API enum mc_arch mc_topology_arch(const struct mc_topology *topo);
/* Highest possible CPU + 1, and the kernel's limit less one as in cpu/kernel_max. */
MC_API unsigned int mc_topology_nr_cpu_ids(const struct mc_topology *topo);
MC_API unsigned int mc_topology_kernel_max(const struct mc_topology *topo);

/* Masks owned by the topology, nr_cpu_ids bits wide. */
MC_API const struct mc_cpumask *mc_topology_possible(const struct mc_topology *topo);
MC_API const struct mc_cpumask *mc_topology_present(const struct mc_topology *topo);
MC_API const struct mc_cpumask *mc_topology_online(const struct mc_topology *topo);
/* What this process may use: affinity and cpuset for the live machine, else the online CPUs. */
MC_API const struct mc_cpumask *mc_topology_allowed(const struct mc_topology *topo);

/* Sets of CPUs around one. Offline CPUs are left out, as the kernel does. The largest level has
 * every CPU of the package. */
enum mc_level { MC_LEVEL_CORE, MC_LEVEL_CLUSTER, MC_LEVEL_DIE, MC_LEVEL_PACKAGE };
MC_API const struct mc_cpumask *mc_topology_siblings(const struct mc_topology *topo,
						     unsigned int cpu, enum mc_level level);

/* One CPU's place. Ids as the kernel prints them; -1 where it prints -1 or shows no such file.
 * Valid while topo is. */
struct mc_cpu {
	int package_id, die_id, cluster_id, core_id;
	int thread;         /* index among the core's CPUs */
	unsigned int node;  /* the node that cpuN/nodeM links to; >= nr_node_ids: none */
	unsigned int nr_caches;
	int capacity;       /* arm64's cpu_capacity, -1: not shown */
};
MC_API const struct mc_cpu *mc_topology_cpu(const struct mc_topology *topo, unsigned int cpu);

enum mc_cache_type { MC_CACHE_UNIFIED, MC_CACHE_DATA, MC_CACHE_INSTRUCTION };
struct mc_cache {
	unsigned int level;
	enum mc_cache_type type;
	uint64_t size;                  /* bytes; 0: not known */
	unsigned int line, ways, sets, partition;  /* 0: the kernel shows no such file */
	int id;                         /* -1: no id file */
	const struct mc_cpumask *shared;
};
/* The index-th cache of a CPU (the kernel's cacheM index order), NULL past the last. */
MC_API const struct mc_cache *mc_topology_cache(const struct mc_topology *topo, unsigned int cpu,
						unsigned int index);

/* ---- memory nodes ---------------------------------------------------------------------------- */

/* Highest possible node + 1; and the width of Mems_allowed (MAX_NUMNODES: 1024 on amd64, 16 on
 * Debian's arm64). */
MC_API unsigned int mc_topology_nr_node_ids(const struct mc_topology *topo);
MC_API unsigned int mc_topology_max_numnodes(const struct mc_topology *topo);
/* Does the kernel show /sys/devices/system/node at all? */
MC_API bool mc_topology_has_numa(const struct mc_topology *topo);

MC_API const struct mc_nodemask *mc_topology_nodes_possible(const struct mc_topology *topo);
MC_API const struct mc_nodemask *mc_topology_nodes_online(const struct mc_topology *topo);
MC_API const struct mc_nodemask *mc_topology_nodes_has_cpu(const struct mc_topology *topo);
MC_API const struct mc_nodemask *mc_topology_nodes_has_memory(const struct mc_topology *topo);
MC_API const struct mc_nodemask *mc_topology_nodes_allowed(const struct mc_topology *topo);

struct mc_range { uint64_t start, end; };       /* bytes of physical address space, end exclusive */
struct mc_hugepool { uint64_t size; uint64_t total, free, surplus; };   /* bytes a page; pages */
struct mc_node {
	uint64_t mem_total, mem_free;           /* bytes, as the node's meminfo prints them */
	const struct mc_cpumask *cpus;          /* cpulist: under numa=fake the CPUs of the whole physical node */
	const struct mc_cpumask *linked;        /* CPUs whose own node this is: the cpuN links in the folder */
	int physical;                           /* under numa=fake the physical node it was cut from, else -1 */
	unsigned int nr_ranges, nr_hugepools;
	const struct mc_range *ranges;          /* sorted; spanned memory, holes included */
	const struct mc_hugepool *hugepools;
};
/* NULL for a node that is not online. */
MC_API const struct mc_node *mc_topology_node(const struct mc_topology *topo, unsigned int node);
/* The kernel's number (10 = local); 0 when either node is not online. */
MC_API unsigned int mc_topology_distance(const struct mc_topology *topo, unsigned int from,
					 unsigned int to);
/* The kernel's zonelist order of `node`: nodes with memory, nearest first, ties broken as the
 * kernel does at boot (mm/page_alloc.c find_next_best_node). Fills at most `max` entries of
 * `order`, returns how many there are. */
MC_API unsigned int mc_topology_fallback(const struct mc_topology *topo, unsigned int node,
					 unsigned int *order, unsigned int max);
/* Sum of the nodes' mem_total, or /proc/meminfo's MemTotal where there are no nodes. */
MC_API uint64_t mc_topology_mem_total(const struct mc_topology *topo);

/* ---- files of the source --------------------------------------------------------------------- */

/* What the source holds under a path such as "/sys/devices/system/cpu/modalias": for a recording
 * its text as recorded (gzip undone), for live machines and descriptions based on this host NULL.
 * *len gets the length. Not a string. */
MC_API const char *mc_topology_file(const struct mc_topology *topo, const char *path, size_t *len);

/* Each entry of a recording in path order: type is 'f', 'd' or 'l' (data = the link's target).
 * Stops when fn returns non-zero and returns that. */
MC_API int mc_topology_files(const struct mc_topology *topo,
			     int (*fn)(void *arg, const char *path, char type, const char *data,
				       size_t len),
			     void *arg);

MC_END_DECLS
#endif /* MANYCORE_TOPOLOGY_H */
