// SPDX-License-Identifier: MIT
/*
 * topology_preset.c - machines by name, with the caches, ids, distances and memory that such
 * machines show.
 *
 * Figures are those of the vendors' manuals and of published `lscpu` and `numactl -H` output of
 * such machines. What a kernel doesn't show there (the system-level caches of Arm servers) isn't
 * here either.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "topology_priv.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define L1D(size, ways, line, scope) { 1, MC_CACHE_DATA, size, line, ways, scope, 0 }
#define L1I(size, ways, line, scope) { 1, MC_CACHE_INSTRUCTION, size, line, ways, scope, 0 }
#define CACHE(level, size, ways, line, scope, cores)                    \
	{                                                               \
		level, MC_CACHE_UNIFIED, size, line, ways, scope, cores \
	}

const struct topo_spec_cache topo_default_cache[4] = {
	L1D(KIB(32), 8, 64, TOPO_CORE),
	L1I(KIB(32), 8, 64, TOPO_CORE),
	CACHE(2, MIB(1), 8, 64, TOPO_CORE, 0),
	CACHE(3, MIB(32), 16, 64, TOPO_DIE, 0),
};
static const struct topo_spec_cache pi5_cache[] = {
	L1D(KIB(64), 4, 64, TOPO_CORE),
	L1I(KIB(64), 4, 64, TOPO_CORE),
	CACHE(2, KIB(512), 8, 64, TOPO_CORE, 0),
	CACHE(3, MIB(2), 16, 64, TOPO_PACKAGE, 0),
};
static const struct topo_spec_cache altra_cache[] = {
	L1D(KIB(64), 4, 64, TOPO_CORE),
	L1I(KIB(64), 4, 64, TOPO_CORE),
	CACHE(2, MIB(1), 8, 64, TOPO_CORE, 0),
};
static const struct topo_spec_cache ampereone_cache[] = {
	L1D(KIB(64), 4, 64, TOPO_CORE),
	L1I(KIB(16), 4, 64, TOPO_CORE),
	CACHE(2, MIB(2), 8, 64, TOPO_CORE, 0),
};
static const struct topo_spec_cache epyc_cache[] = {
	L1D(KIB(32), 8, 64, TOPO_CORE),
	L1I(KIB(32), 8, 64, TOPO_CORE),
	CACHE(2, MIB(1), 8, 64, TOPO_CORE, 0),
	CACHE(3, MIB(32), 16, 64, TOPO_CORES, 8),
};
static const struct topo_spec_cache spr_cache[] = {
	L1D(KIB(48), 12, 64, TOPO_CORE),
	L1I(KIB(32), 8, 64, TOPO_CORE),
	CACHE(2, MIB(2), 16, 64, TOPO_CORE, 0),
	CACHE(3, MIB(105), 15, 64, TOPO_PACKAGE, 0),
};
static const struct topo_spec_cache power_cache[] = {
	L1D(KIB(64), 8, 128, TOPO_CORE),
	L1I(KIB(96), 6, 128, TOPO_CORE),
	CACHE(2, MIB(2), 8, 128, TOPO_CORE, 0),
	CACHE(3, MIB(8), 16, 128, TOPO_CORE, 0),
};

#define CACHES(list) .cache = (list), .nr_caches = MC_ARRAY_SIZE(list)
#define SHAPE(s, d, k, t)                                                         \
	.sockets = (s), .dies = (d), .clusters = 1, .cores = (k), .threads = (t), \
	.cpus = (s) * (d) * (k) * (t), .maxcpus = (s) * (d) * (k) * (t)

static const struct topo_preset presets[] = {
	{
		.name = "pi5",
		.description = "Raspberry Pi 5: 4 Cortex-A76 cores, 8 GiB, one node",
		.spec = {.arch = MC_ARCH_AARCH64,
			 SHAPE(1, 1, 4, 1),
			 CACHES(pi5_cache),
			 .mem = GIB(8),
			 .cpuinfo = topo_cpu_cortex_a76,
			 .kernel_max = 511,
			 .max_numnodes = 16,
			 .capacity = 1024},
		.nodes_per_package = 1,
		.id_step = 1,
	},
	{
		.name = "altra-2x80",
		.description = "Ampere Altra: 2 x 80 cores, 512 GiB, 2 nodes",
		.spec = {.arch = MC_ARCH_AARCH64,
			 SHAPE(2, 1, 80, 1),
			 CACHES(altra_cache),
			 .mem = GIB(512),
			 .cpuinfo = topo_cpu_neoverse_n1,
			 .kernel_max = 511,
			 .max_numnodes = 16,
			 .capacity = 1024},
		.nodes_per_package = 1,
		.id_step = 1,
	},
	{
		.name = "ampereone-2x192",
		.description = "AmpereOne: 2 x 192 cores, 1 TiB, 2 nodes",
		.spec = {.arch = MC_ARCH_AARCH64,
			 SHAPE(2, 1, 192, 1),
			 CACHES(ampereone_cache),
			 .mem = GIB(1024),
			 .cpuinfo = topo_cpu_ampereone,
			 .kernel_max = 511,
			 .max_numnodes = 16,
			 .capacity = 1024},
		.nodes_per_package = 1,
		.id_step = 1,
	},
	{
		.name = "epyc-2x96-nps4",
		.description =
			"AMD EPYC 9654: 2 x 96 cores, SMT2, 384 CPUs, 1.5 TiB, NPS4: 8 nodes",
		.spec = {.arch = MC_ARCH_X86_64,
			 SHAPE(2, 1, 96, 2),
			 CACHES(epyc_cache),
			 .mem = GIB(1536),
			 .cpuinfo = topo_cpu_epyc_9654,
			 .kernel_max = 8191,
			 .max_numnodes = 1024,
			 .capacity = -1,
			 .smt_split = true},
		.nodes_per_package = 4,
		.id_step = 1,
		.near = 12,
		.far = 32,
	},
	{
		.name = "spr-2x56-snc4-cxl",
		.description =
			"Intel Xeon 8480+: 2 x 56 cores, SMT2, 224 CPUs, 1 TiB, SNC4: 8 nodes, and 256 GiB "
			"of CXL memory as node 8",
		.spec = {.arch = MC_ARCH_X86_64,
			 SHAPE(2, 1, 56, 2),
			 CACHES(spr_cache),
			 .mem = GIB(1024 + 256),
			 .cpuinfo = topo_cpu_xeon_8480,
			 .kernel_max = 8191,
			 .max_numnodes = 1024,
			 .capacity = -1,
			 .smt_split = true},
		.nodes_per_package = 4,
		.id_step = 1,
		.near = 12,
		.far = 21,
		.cxl = GIB(256),
	},
	{
		.name = "power-smt8",
		.description =
			"POWER-like: 4 x 12 cores, SMT8, 384 CPUs, 1 TiB, nodes 0, 8, 16 and 24",
		.spec = {.arch = MC_ARCH_PPC64,
			 SHAPE(4, 1, 12, 8),
			 CACHES(power_cache),
			 .mem = GIB(1024),
			 .kernel_max = 2047,
			 .max_numnodes = 256,
			 .capacity = -1},
		.nodes_per_package = 1,
		.id_step = 8,
		.near = 10,
		.far = 40,
	},
	{
		.name = "limit-8192x1024",
		.description =
			"the largest machine of today's kernels: 8192 CPUs, 16 TiB, 1024 nodes",
		.spec = {.arch = MC_ARCH_X86_64,
			 SHAPE(64, 1, 64, 2),
			 CACHES(topo_default_cache),
			 .mem = GIB(16384),
			 .kernel_max = 8191,
			 .max_numnodes = 1024,
			 .capacity = -1},
		.nodes_per_package = 16,
		.id_step = 1,
	},
};

const struct topo_preset *topo_preset_find(const char *name)
{
	for (size_t i = 0; i < MC_ARRAY_SIZE(presets); i++)
		if (!strcmp(presets[i].name, name))
			return &presets[i];
	return NULL;
}

const char *mc_machine_preset(unsigned int i, const char **description)
{
	if (i >= MC_ARRAY_SIZE(presets))
		return NULL;
	if (description)
		*description = presets[i].description;
	return presets[i].name;
}

const uint64_t *topo_hugepages(enum mc_arch arch)
{
	static const uint64_t x86[] = { GIB(1), MIB(2), 0 };
	static const uint64_t arm[] = { GIB(1), MIB(2), MIB(32), KIB(64), 0 };
	static const uint64_t ppc[] = { MIB(16), GIB(16), 0 };
	static const uint64_t other[] = { MIB(2), 0 };

	switch (arch) {
	case MC_ARCH_X86_64:
		return x86;
	case MC_ARCH_AARCH64:
		return arm;
	case MC_ARCH_PPC64:
		return ppc;
	default:
		return other;
	}
}

void topo_spec_drop_nodes(struct topo_spec *spec)
{
	for (unsigned int i = 0; i < spec->nr_nodes; i++)
		mc_cpumask_free(spec->node[i].cpus);
	free(spec->node);
	free(spec->dist);
	spec->node = NULL;
	spec->dist = NULL;
	spec->nr_nodes = spec->nr_dists = 0;
}

void topo_spec_release(struct topo_spec *spec)
{
	topo_spec_drop_nodes(spec);
	free(spec->own_cache);
	spec->own_cache = NULL;
}

static unsigned int preset_distance(const struct topo_preset *p, unsigned int a, unsigned int b,
				    unsigned int cpu_nodes)
{
	unsigned int package_a = a / p->nodes_per_package, package_b = b / p->nodes_per_package;

	if (a == b)
		return 10;
	if (a >= cpu_nodes) /* memory behind a CXL port of the first package */
		return package_b == 0 ? 14 : 24;
	if (b >= cpu_nodes)
		return package_a == 0 ? 14 : 24;
	return package_a == package_b ? p->near : p->far;
}

int topo_preset_spec(const struct topo_preset *p, struct topo_spec *spec)
{
	unsigned int cpu_nodes = p->spec.sockets * p->nodes_per_package, n = cpu_nodes + !!p->cxl;

	*spec = p->spec;
	spec->hugepages = topo_hugepages(spec->arch);
	spec->node = calloc(n, sizeof(*spec->node));
	if (p->near || p->cxl)
		spec->dist = calloc((size_t)n * n, sizeof(*spec->dist));
	if (!spec->node || ((p->near || p->cxl) && !spec->dist)) {
		topo_spec_release(spec);
		return -ENOMEM;
	}
	spec->nr_nodes = n;
	for (unsigned int i = 0; i < n; i++) {
		spec->node[i].id = i * p->id_step;
		spec->node[i].has_mem = true;
		spec->node[i].mem = i < cpu_nodes ? (spec->mem - p->cxl) / cpu_nodes : p->cxl;
		spec->node[i].no_cpus = i >= cpu_nodes;
		for (unsigned int j = 0; spec->dist && j < n; j++)
			spec->dist[spec->nr_dists++] = (struct topo_spec_dist){
				i * p->id_step, j * p->id_step, preset_distance(p, i, j, cpu_nodes)
			};
	}
	return 0;
}
