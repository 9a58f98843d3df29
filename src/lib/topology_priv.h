/* SPDX-License-Identifier: MIT */
/*
 * topology_priv.h - how a machine is kept: inside of the topology*.c files only.
 *
 * A `struct topo_base` is what the source tells (also of CPUs that are offline now); a `struct
 * mc_topology` is a view of it with one set of online CPUs. Bases are built by one thread, sealed
 * by topo_base_finish() and never change after that; views share them by reference, so that
 * hot-plug costs a view and not a machine. Masks are interned: CPUs, caches and nodes name them by
 * index, equal sets are one object.
 */
#ifndef MC_TOPOLOGY_PRIV_H
#define MC_TOPOLOGY_PRIV_H

#include <stdatomic.h>
#include "internal.h"

/* Bounds of what a description or a recording may ask for, told in error texts and mc_topology(3).
 */
#define TOPO_MAX_CPUS 65536u
#define TOPO_MAX_NODES 65536u
/* Interned masks of one machine may not take more memory than this. */
#define TOPO_MAX_MASK_BYTES (512ull << 20)
#define TOPO_MAX_CACHES 64u

#define TOPO_NO_MASK UINT32_MAX
#define TOPO_LEVELS (MC_LEVEL_PACKAGE + 1)

struct topo_files;

struct topo_cpu {
	struct mc_cpu ids;          /* when online */
	struct mc_cpu hidden;       /* when offline: the kernel takes topology/ and cache/ away */
	uint32_t sibling[TOPO_LEVELS]; /* interned mask or TOPO_NO_MASK: no such file */
	uint32_t first_cache;       /* into topo_base.cache */
};

/* One cache seen from one CPU: `shared` in the public struct is set from `mask` by each view. */
struct topo_cache {
	struct mc_cache cache;
	uint32_t mask;
};

struct topo_node {
	unsigned int id;
	uint64_t mem_total, mem_free;
	uint32_t cpus, linked;      /* interned; cpus: possible ones, cut to the online ones by a view */
	int physical;
	unsigned int nr_ranges, nr_hugepools;
	struct mc_range *ranges;
	struct mc_hugepool *hugepools;
	uint8_t *distance;          /* by rank of the other node; NULL: 10 to itself, 20 to others */
};

struct topo_base {
	atomic_uint refs;
	enum mc_arch arch;
	unsigned int nr_cpu_ids, kernel_max;
	struct mc_cpumask *possible, *present, *online;
	struct mc_cpumask *allowed; /* NULL: the online ones */
	struct topo_cpu *cpu;       /* nr_cpu_ids of them */
	struct topo_cache *cache;
	unsigned int nr_caches, room_caches;

	struct mc_cpumask **mask;   /* interned */
	uint64_t *mask_hash;
	uint32_t *mask_slot;        /* open addressing over mask[]; dropped when sealed */
	uint32_t nr_masks, room_masks, nr_slots;

	unsigned int nr_node_ids, max_numnodes;
	bool has_numa;
	struct mc_nodemask *nodes_possible, *nodes_online, *nodes_has_cpu, *nodes_has_memory;
	struct mc_nodemask *nodes_allowed; /* NULL: those with memory */
	struct topo_node *node;     /* the online ones, by rank */
	unsigned int nr_nodes;
	uint32_t *rank;             /* node id -> index into node[], UINT32_MAX: not online */
	uint64_t mem_total;         /* where there are no nodes */

	/* Fallback lists of all nodes, made when first asked for (topology_fallback.c). */
	_Atomic(unsigned int *) fallback;

	struct topo_files *files;   /* a recording's, else NULL */
	const char *cpuinfo;        /* of a preset: see struct topo_spec */
	bool files_without_nodes;   /* nodes were changed since: recorded node files are out of date */
};

struct mc_topology {
	atomic_uint refs;
	struct topo_base *base;
	struct mc_cpumask *online, *allowed;
	struct mc_cpumask **shown;  /* base->mask cut to online; an entry may be the base's own mask */
	struct mc_cache *cache;
	struct mc_node *node;       /* by rank */
	struct mc_nodemask *nodes_has_cpu;
};

/* ---- topology_base.c: building a base ---- */
struct topo_base *topo_base_new(unsigned int nr_cpu_ids, unsigned int nr_node_ids);
struct topo_base *topo_base_get(struct topo_base *base);
void topo_base_put(struct topo_base *base);
/* Index of the mask equal to `mask` (copied when new), or TOPO_NO_MASK + errno (ENOMEM, EFBIG). */
uint32_t topo_intern(struct topo_base *base, const struct mc_cpumask *mask);
/* Appends `n` zeroed cache entries, returns the first one's index or UINT32_MAX. */
uint32_t topo_add_caches(struct topo_base *base, unsigned int n);
/* Marks the nodes of `online` as online and makes node[] for them: -ENOMEM. */
int topo_set_nodes(struct topo_base *base, const struct mc_nodemask *online);
struct topo_node *topo_node(const struct topo_base *base, unsigned int id);
int topo_set_distance(struct topo_base *base, unsigned int from, unsigned int to,
		      unsigned int value);
int topo_node_add_range(struct topo_node *node, uint64_t start, uint64_t end);
/* Seals the base and makes its first view; takes over the caller's reference to the base, also on
 * failure. */
int topo_base_finish(struct topo_base *base, struct mc_topology **topo);

/* A growable range of bits set in a fresh mask. */
struct mc_cpumask *topo_range_mask(unsigned int nbits, unsigned int first, unsigned int count);
struct mc_nodemask *topo_nodemask(unsigned int nbits);

enum mc_arch topo_host_arch(void);

/* ---- topology_files.c: a recording in memory ---- */
void topo_files_put(struct topo_files *files);
/* `base` was made from `from` by changing nodes: its recording goes along, without what it says of
 * nodes. */
void topo_base_share_files(struct topo_base *base, const struct topo_base *from);

/* ---- topology_spec.c: a machine made from numbers ---- */

/* Which CPUs share a cache: those of one thread, core, cluster, die, package, or `cores` adjacent
 * cores of a die. */
enum topo_scope { TOPO_THREAD, TOPO_CORE, TOPO_CLUSTER, TOPO_DIE, TOPO_PACKAGE, TOPO_CORES };
struct topo_spec_cache {
	unsigned int level;
	enum mc_cache_type type;
	uint64_t size;
	unsigned int line, ways;
	enum topo_scope scope;
	unsigned int cores;         /* with TOPO_CORES */
};

struct topo_spec_node {
	unsigned int id;
	uint64_t mem;
	bool has_mem;               /* mem was given */
	bool no_cpus;               /* takes no part in sharing out the CPUs */
	struct mc_cpumask *cpus;    /* NULL: not given */
};
struct topo_spec_dist {
	unsigned int src, dst, val;
};

struct topo_spec {
	enum mc_arch arch;
	unsigned int cpus, maxcpus, sockets, dies, clusters, cores, threads;
	bool smt_split;             /* siblings numbered n/2 apart, as firmware of many servers does */
	uint64_t mem;
	unsigned int kernel_max, max_numnodes;
	unsigned int nr_caches, nr_nodes, nr_dists;
	const struct topo_spec_cache *cache;
	struct topo_spec_node *node;
	struct topo_spec_dist *dist;
	int capacity;               /* of each CPU, -1: none */
	const char *cpuinfo;        /* constant: a CPU's block of /proc/cpuinfo; NULL: the host's, or a plain one */
	const uint64_t *hugepages;  /* sizes, 0-terminated */
	struct topo_spec_cache *own_cache; /* freed with the spec */
};
int topo_spec_build(const struct topo_spec *spec, struct topo_base **base, struct mc_error *error);

/* ---- topology_preset_cpu.c ---- */
extern const char topo_cpu_cortex_a76[], topo_cpu_neoverse_n1[], topo_cpu_ampereone[],
	topo_cpu_epyc_9654[], topo_cpu_xeon_8480[];

/* ---- topology_preset.c ---- */

struct topo_preset {
	const char *name, *description;
	struct topo_spec spec;      /* without nodes and distances */
	unsigned int nodes_per_package, id_step; /* node ids 0, id_step, 2 * id_step ... */
	unsigned int near, far;     /* distance within and between packages; 0: 10 and 20 everywhere */
	uint64_t cxl;               /* size of a memory-only node at the end, near package 0; 0: none */
};
const struct topo_preset *topo_preset_find(const char *name);
/* A copy of its spec with nodes and distances in new memory: topo_spec_release(). */
int topo_preset_spec(const struct topo_preset *preset, struct topo_spec *spec);
void topo_spec_release(struct topo_spec *spec);
/* Forgets nodes and distances. */
void topo_spec_drop_nodes(struct topo_spec *spec);
/* topology_spec_from.c: an existing machine as the start of a description. `defaults`: give it
 * ordinary caches where it shows none, as virtual machines do. */
int topo_spec_from(const struct mc_topology *topo, bool defaults, struct topo_spec *spec);
/* Caches of an ordinary server core, where nothing better is known. */
extern const struct topo_spec_cache topo_default_cache[4];
/* Huge page sizes of an architecture, 0-terminated. */
const uint64_t *topo_hugepages(enum mc_arch arch);

/* ---- topology_machine.c and topology_options.c: struct mc_machine ---- */

struct topo_smp {
	bool given;
	unsigned int cpus, sockets, dies, clusters, cores, threads, maxcpus; /* 0: not given */
};
struct mc_machine {
	char *base;                 /* preset or path; NULL: this host */
	struct topo_smp smp;
	uint64_t mem;               /* 0: not given */
	unsigned int nodes;         /* 0: not given */
	struct topo_spec_node *node;
	unsigned int nr_nodes;
	struct topo_spec_dist *dist;
	unsigned int nr_dists;
	char *fake, *offline;
};
/* "64M", "1.5G", plain numbers in MiB; offset of the fault in *where. */
int topo_parse_size(const char *text, size_t len, uint64_t *size);
/* Fills in what was not given, as QEMU does since 6.2: -EINVAL + *error when the product does not
 * match. */
int topo_smp_complete(const struct topo_smp *given, struct topo_spec *spec, struct mc_error *error);

#endif
