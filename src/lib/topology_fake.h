/* SPDX-License-Identifier: MIT */
/* topology_fake.h - numa=fake: the kernel's arithmetic by itself, so that it can be held against
 * real boots. */
#ifndef MC_TOPOLOGY_FAKE_H
#define MC_TOPOLOGY_FAKE_H

#include "topology_priv.h"

struct topo_block {
	uint64_t start, end; /* bytes, end exclusive */
	unsigned int node;
};

/* The physical machine as early boot knows it. */
struct topo_fake_in {
	const struct topo_block *phys;  /* by address; neighbours of one node are one block */
	unsigned int nr_phys;
	const struct mc_range *ram;     /* what is really memory in them, by address */
	unsigned int nr_ram;
	const struct mc_nodemask *nodes; /* physical nodes, also those without memory */
	uint64_t dma_end;               /* 4 GiB on x86, the start of memory + 4 GiB elsewhere */
	unsigned int max_nodes;         /* MAX_NUMNODES */
	unsigned int (*distance)(const void *arg, unsigned int from, unsigned int to); /* NULL: 10 and 20 */
	const void *arg;
};

#define TOPO_NO_NODE UINT32_MAX

struct topo_fake {
	struct topo_block *block;       /* in the order of the kernel's "Faking node" messages */
	unsigned int nr_blocks, room;
	unsigned int nr_nodes;          /* highest emulated node + 1 */
	unsigned int *phys;             /* emulated -> physical; max_nodes entries, TOPO_NO_NODE past the last */
	uint8_t *distance;              /* nr_nodes * nr_nodes */
	char note[128];                 /* what the kernel says when it changes the wish, or "" */
};

/* Splits as the kernel does for `numa=fake=text`. -EINVAL with the kernel's reason in *error when
 * it would boot the machine unemulated. */
int topo_fake_split(const struct topo_fake_in *in, const char *text, struct topo_fake *out,
		    struct mc_error *error);
void topo_fake_release(struct topo_fake *fake);

/* A machine made from `topo` by numa=fake=text; text may end in ",split": CPUs are dealt out to the
 * fake nodes. */
int topo_fake_apply(const struct mc_topology *topo, const char *text, struct mc_topology **out,
		    struct mc_error *error);

#endif
