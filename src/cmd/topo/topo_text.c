// SPDX-License-Identifier: MIT
/* topo_text.c - the summary, and the table that numactl -H prints. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/topo/topo.h"

const char *topo_arch_name(enum mc_arch arch)
{
	switch (arch) {
	case MC_ARCH_X86_64:
		return "x86_64";
	case MC_ARCH_AARCH64:
		return "aarch64";
	case MC_ARCH_PPC64:
		return "ppc64le";
	default:
		return "other";
	}
}

const char *topo_size(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned int u = 0;

	while (u < 6 && bytes >> (10 * (u + 1)) && !(bytes & ((1ull << (10 * (u + 1))) - 1)))
		u++;
	if (bytes >> (10 * u) >= 10000 && u < 6) {
		while (bytes >> (10 * u) >= 10000 && u < 6)
			u++;
		snprintf(buf, size, "%.1f %s", (double)bytes / (double)(1ull << (10 * u)), units[u]);
	} else {
		snprintf(buf, size, "%llu %s", (unsigned long long)(bytes >> (10 * u)), units[u]);
	}
	return buf;
}

char *topo_list(const struct mc_cpumask *mask)
{
	size_t len = mc_cpulist_snprint(NULL, 0, mask);
	char *text = malloc(len + 1);

	if (text)
		mc_cpulist_snprint(text, len + 1, mask);
	return text;
}

static int put_list(FILE *out, const char *before, const struct mc_cpumask *mask, const char *after)
{
	char *text = topo_list(mask);

	if (!text)
		return -ENOMEM;
	fprintf(out, "%s%s%s", before, *text ? text : "none", after);
	free(text);
	return 0;
}

/* ---- numactl -H ------------------------------------------------------------------------------ */

static void put_distances(const struct mc_topology *topo, FILE *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(topo)->m;
	unsigned int a, b;

	fputs("node distances:\nnode ", out);
	mc_for_each_cpu(a, online)
		fprintf(out, "% 3d ", (int)a);
	fputc('\n', out);
	mc_for_each_cpu(a, online) {
		fprintf(out, "% 3d: ", (int)a);
		mc_for_each_cpu(b, online)
			fprintf(out, "% 3d ", (int)mc_topology_distance(topo, a, b));
		fputc('\n', out);
	}
}

int topo_write_numactl(const struct mc_topology *topo, FILE *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(topo)->m;
	char before[48];
	unsigned int id, cpu;

	if (!mc_topology_has_numa(topo)) {
		fputs("No NUMA available on this system\n", out);
		return 0;
	}
	snprintf(before, sizeof(before), "available: %u nodes (", mc_cpumask_weight(online));
	if (put_list(out, before, online, ")\n") < 0)
		return -ENOMEM;
	mc_for_each_cpu(id, online) {
		const struct mc_node *node = mc_topology_node(topo, id);

		fprintf(out, "node %u cpus:", id);
		mc_for_each_cpu(cpu, node->cpus)
			fprintf(out, " %u", cpu);
		fprintf(out, "\nnode %u size: %llu MB\nnode %u free: %llu MB\n", id,
			(unsigned long long)(node->mem_total >> 20), id,
			(unsigned long long)(node->mem_free >> 20));
	}
	put_distances(topo, out);
	return 0;
}

/* ---- summary --------------------------------------------------------------------------------- */

/* How many different sets CPUs have at a level. */
static unsigned int count_sets(const struct mc_topology *topo, enum mc_level level)
{
	unsigned int cpu, n = 0;

	mc_for_each_cpu(cpu, mc_topology_online(topo)) {
		const struct mc_cpumask *mask = mc_topology_siblings(topo, cpu, level);

		n += mask && mc_cpumask_first(mask) == cpu;
	}
	return n;
}

static void put_caches(const struct mc_topology *topo, FILE *out)
{
	static const char *const types[] = { "", "d", "i" };
	unsigned int first = mc_cpumask_first(mc_topology_online(topo)), cpu;
	const struct mc_cache *cache;
	char size[32];

	for (unsigned int i = 0; (cache = mc_topology_cache(topo, first, i)) != NULL; i++) {
		unsigned int n = 0;

		mc_for_each_cpu(cpu, mc_topology_online(topo)) {
			const struct mc_cache *other = mc_topology_cache(topo, cpu, i);

			n += other && mc_cpumask_first(other->shared) == cpu;
		}
		fprintf(out, "%sL%u%s %u x %s (%u CPU%s each)",
			i ? ", " : "Caches:       ", cache->level, types[cache->type], n,
			cache->size ? topo_size(cache->size, size, sizeof(size)) : "unknown size",
			mc_cpumask_weight(cache->shared),
			mc_cpumask_weight(cache->shared) == 1 ? "" : "s");
	}
	if (mc_topology_cache(topo, first, 0))
		fputc('\n', out);
}

static int put_nodes(const struct mc_topology *topo, FILE *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(topo)->m;
	char size[32];
	unsigned int id;

	fputs("\nnode  memory      CPUs\n", out);
	mc_for_each_cpu(id, online) {
		const struct mc_node *node = mc_topology_node(topo, id);

		fprintf(out, "%4u  %-10s  ", id,
			node->mem_total ? topo_size(node->mem_total, size, sizeof(size)) : "none");
		if (put_list(out, "", node->cpus, node->physical >= 0 ? "" : "\n") < 0)
			return -ENOMEM;
		if (node->physical >= 0)
			fprintf(out, "  (of physical node %d)\n", node->physical);
	}
	return 0;
}

/* Which distances there are: the whole table is long on large machines. */
static void put_distance_kinds(const struct mc_topology *topo, FILE *out)
{
	const struct mc_cpumask *online = &mc_topology_nodes_online(topo)->m;
	bool seen[256] = { false };
	unsigned int a, b, n = 0;

	mc_for_each_cpu(a, online)
		mc_for_each_cpu(b, online)
			seen[mc_topology_distance(topo, a, b) & 255] = true;
	fputs("Distances:   ", out);
	for (a = 0; a < 256; a++)
		if (seen[a] && n++ < 24)
			fprintf(out, " %u", a);
	fputs(n > 24 ? " ...\n" : "\n", out);
}

int topo_write_summary(const struct mc_topology *topo, FILE *out)
{
	const struct mc_cpumask *online = mc_topology_online(topo);
	unsigned int cpu = mc_cpumask_first(online), cores = count_sets(topo, MC_LEVEL_CORE);
	const struct mc_cpumask *nodes = &mc_topology_nodes_online(topo)->m;
	char size[32];

	fprintf(out, "Architecture: %s\n", topo_arch_name(mc_topology_arch(topo)));
	fprintf(out, "CPUs:         %u online", mc_cpumask_weight(online));
	if (put_list(out, " (", online, ")") < 0 || put_list(out, ", possible ", mc_topology_possible(topo), "\n") < 0)
		return -ENOMEM;
	if (!mc_cpumask_equal(online, mc_topology_present(topo)) &&
	    put_list(out, "Present:      ", mc_topology_present(topo), "\n") < 0)
		return -ENOMEM;
	if (!mc_cpumask_equal(online, mc_topology_allowed(topo)) &&
	    put_list(out, "Allowed here: ", mc_topology_allowed(topo), "\n") < 0)
		return -ENOMEM;
	fprintf(out, "Packages:     %u", count_sets(topo, MC_LEVEL_PACKAGE));
	if (mc_topology_siblings(topo, cpu, MC_LEVEL_DIE) &&
	    count_sets(topo, MC_LEVEL_DIE) != count_sets(topo, MC_LEVEL_PACKAGE))
		fprintf(out, ", dies: %u", count_sets(topo, MC_LEVEL_DIE));
	fprintf(out, ", cores: %u", cores);
	if (cores && mc_topology_siblings(topo, cpu, MC_LEVEL_CORE))
		fprintf(out, ", threads a core: %u", mc_cpumask_weight(mc_topology_siblings(topo, cpu, MC_LEVEL_CORE)));
	fputc('\n', out);
	put_caches(topo, out);
	fprintf(out, "Memory:       %s", topo_size(mc_topology_mem_total(topo), size, sizeof(size)));
	if (!mc_topology_has_numa(topo)) {
		fputs(", kernel without NUMA\n", out);
		return 0;
	}
	fprintf(out, " on %u node%s\n", mc_cpumask_weight(nodes), mc_cpumask_weight(nodes) == 1 ? "" : "s");
	put_distance_kinds(topo, out);
	return put_nodes(topo, out);
}
