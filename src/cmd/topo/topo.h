/* SPDX-License-Identifier: MIT */
/*
 * topo.h - the parts of `manycore topo`: one writer a format, and the tree of things that contain
 * CPUs which some share.
 */
#ifndef MC_CMD_TOPO_H
#define MC_CMD_TOPO_H

#include <stdio.h>
#include <manycore/manycore.h>

/* Writers return 0 or -errno (memory); what stdio could not write is found by the caller. */
int topo_write_summary(const struct mc_topology *topo, FILE *out);
int topo_write_numactl(const struct mc_topology *topo, FILE *out);
int topo_write_tree(const struct mc_topology *topo, FILE *out);
int topo_write_json(const struct mc_topology *topo, FILE *out);
int topo_write_svg(const struct mc_topology *topo, FILE *out);

enum topo_kind {
	TOPO_MACHINE,
	TOPO_PACKAGE,
	TOPO_NODE,
	TOPO_DIE,
	TOPO_CACHE,
	TOPO_CLUSTER,
	TOPO_CORE,
	TOPO_CPU
};

/* A box: everything in it has CPUs that are among its own. */
struct topo_box {
	enum topo_kind kind;
	unsigned int number;            /* package, node ... as the kernel numbers it; for a cache its level */
	uint64_t size;                  /* of a cache or a node's memory, bytes */
	const struct mc_cpumask *cpus;
	struct topo_box *first, *next;  /* children, siblings */
	char label[96];
	/* svg: place and size, filled by its layout */
	unsigned int x, y, w, h, columns;
};
/* The machine as a box of boxes; memory-only nodes are its last children, sets that would cut
 * others are left out. NULL + ENOMEM. */
struct topo_box *topo_boxes(const struct mc_topology *topo);
void topo_boxes_free(struct topo_box *box);

/* "128 GiB", "512 KiB": the largest unit that leaves a whole number, else one decimal. */
const char *topo_size(uint64_t bytes, char *buf, size_t size);
/* A mask as list in new memory; NULL + ENOMEM. */
char *topo_list(const struct mc_cpumask *mask);
const char *topo_arch_name(enum mc_arch arch);

#endif
