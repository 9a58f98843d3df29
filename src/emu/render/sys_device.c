// SPDX-License-Identifier: MIT
/*
 * sys_device.c - single files of the host that tell of CPUs and nodes wherever they lie: a device's
 * numa_node and local_cpus, a queue's CPUs, the cpuset and CPU limits of control groups, memory
 * tiers.
 *
 * They are known by their name, and are there exactly where the host has them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "impl.h"

static bool host_empty(const char *path)
{
	char *text;
	size_t len;
	bool empty;

	if (rn_host_read(path, &text, &len) < 0)
		return false;
	empty = !text[strspn(text, " \n")];
	free(text);
	return empty;
}

static int put_list(struct mc_text *out, const struct mc_cpumask *mask)
{
	mc_text_list(out, mask);
	mc_text_add(out, "\n", 1);
	return 0;
}

/* ---- devices ---- */

/* CPUs near a device: its node's, or all online ones where it has none. */
static int make_local(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *mask = mc_topology_online(at->topo),
				*online = &mc_topology_nodes_online(at->topo)->m;
	const char *slash = strrchr(at->path, '/');
	char path[PATH_MAX], *text;
	size_t len;
	long node = -1;

	snprintf(path, sizeof(path), "%.*s/numa_node", (int)(slash - at->path), at->path);
	if (rn_host_read(path, &text, &len) >= 0) {
		node = strtol(text, NULL, 10);
		free(text);
	}
	if (node >= 0 && mc_topology_has_numa(at->topo) && !mc_cpumask_empty(online)) {
		node = mc_cpumask_nth((unsigned int)node % mc_cpumask_weight(online), online);
		mask = mc_topology_node(at->topo, (unsigned int)node)->cpus;
	}
	if (entry->arg)
		return put_list(out, mask);
	mc_text_mask(out, mask);
	mc_text_add(out, "\n", 1);
	return 0;
}

/* ---- control groups ---- */

/* A set that the group was given: empty where it has the parent's, as on the host. */
static int make_cpuset_cpus(const struct rn_at *at, const struct rn_entry *entry,
			    struct mc_text *out)
{
	if (!entry->arg && host_empty(at->path)) {
		mc_text_add(out, "\n", 1);
		return 0;
	}
	return put_list(out, mc_topology_allowed(at->topo));
}

static int make_cpuset_mems(const struct rn_at *at, const struct rn_entry *entry,
			    struct mc_text *out)
{
	if (!entry->arg && host_empty(at->path)) {
		mc_text_add(out, "\n", 1);
		return 0;
	}
	return put_list(out, &mc_topology_nodes_allowed(at->topo)->m);
}

/* The host's quota is of its own CPUs, of which the machine has others: none. The period stays. */
static int make_cpu_max(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	char *text, *period;
	size_t len;
	int ret = rn_host_read(at->path, &text, &len);

	(void)entry;
	if (ret < 0)
		return ret;
	period = strchr(text, ' ');
	mc_text_printf(out, "max%s", period ? period : " 100000\n");
	free(text);
	return 0;
}

static int make_tier(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	(void)entry;
	return put_list(out, &mc_topology_nodes_has_memory(at->topo)->m);
}

/* ---- which ---- */

static const struct loose {
	const char *head, *within; /* the path begins with the one and holds the other */
	struct rn_entry entry;
} loose[] = {
	{"/sys/", "", {.name = "numa_node", .type = 'f', .mode = 0644, .make = rn_projected_node}},
	{"/sys/", "", {.name = "local_cpus", .type = 'f', .make = make_local, .arg = false}},
	{"/sys/", "", {.name = "local_cpulist", .type = 'f', .make = make_local, .arg = true}},
	{"/sys/", "", {.name = "cpuaffinity", .type = 'f', .make = rn_projected, .arg = false}},
	{"/sys/", "", {.name = "cpulistaffinity", .type = 'f', .make = rn_projected, .arg = true}},
	{"/sys/",
	 "/queues/",
	 {.name = "rps_cpus", .type = 'f', .mode = 0644, .make = rn_projected, .arg = false}},
	{"/sys/",
	 "/queues/",
	 {.name = "xps_cpus", .type = 'f', .mode = 0644, .make = rn_projected, .arg = false}},
	{"/sys/", "/mq/", {.name = "cpu_list", .type = 'f', .make = rn_projected, .arg = true}},
	{"/sys/", "/memory_tiering/", {.name = "nodelist", .type = 'f', .make = make_tier}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpuset.cpus", .type = 'f', .mode = 0644, .make = make_cpuset_cpus}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpuset.mems", .type = 'f', .mode = 0644, .make = make_cpuset_mems}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpuset.cpus.effective", .type = 'f', .make = make_cpuset_cpus, .arg = true}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpuset.mems.effective", .type = 'f', .make = make_cpuset_mems, .arg = true}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpuset.effective_cpus", .type = 'f', .make = make_cpuset_cpus, .arg = true}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpuset.effective_mems", .type = 'f', .make = make_cpuset_mems, .arg = true}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpu.max", .type = 'f', .mode = 0644, .make = make_cpu_max}},
	{"/sys/fs/cgroup/",
	 "",
	 {.name = "cpu.cfs_quota_us",
	  .type = 'f',
	  .mode = 0644,
	  .make = rn_make_text,
	  .text = "-1\n"}},
};

/* Adds what is left of the path, blanks between slashes left out; false when it is not clean or too
 * long. */
static bool whole_path(struct rn_at *at, const char *rest)
{
	size_t len;

	for (rest += strspn(rest, "/"); *rest; rest += strspn(rest, "/")) {
		len = strcspn(rest, "/");
		if ((len == 1 && *rest == '.') || (len == 2 && !memcmp(rest, "..", 2)) ||
		    at->len + len + 2 > sizeof(at->path))
			return false;
		at->path[at->len++] = '/';
		memcpy(at->path + at->len, rest, len);
		at->len += len;
		at->path[at->len] = '\0';
		rest += len;
	}
	return true;
}

int rn_loose(struct rn_at *at, const char *rest, const struct rn_entry **entry)
{
	const char *name;
	struct stat st;
	size_t i;

	if (strncmp(at->path, "/sys/", 5) || !whole_path(at, rest))
		return -EXDEV;
	name = strrchr(at->path, '/') + 1;
	for (i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
		if (strcmp(loose[i].entry.name, name) ||
		    strncmp(at->path, loose[i].head, strlen(loose[i].head)) ||
		    !strstr(at->path, loose[i].within))
			continue;
		if (lstat(at->path, &st) < 0 || !S_ISREG(st.st_mode))
			return -EXDEV;
		*entry = &loose[i].entry;
		return 0;
	}
	return -EXDEV;
}
