// SPDX-License-Identifier: MIT
/*
 * test_render_agree.c - that the renderer's files agree: on a dozen and a half machines all files
 * that tell the same thing tell it alike, and every entry is what its folder says it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "render_machine.h"

/* ---- consistency ---- */

struct seen {
	struct mc_cpumask *mask;
	const char *head;
};

static int see(void *arg, const char *name, char type)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->head);

	(void)type;
	if (!strncmp(name, seen->head, len) && name[len] >= '0' && name[len] <= '9')
		mc_cpumask_set(seen->mask, (unsigned int)strtoul(name + len, NULL, 10));
	return 0;
}

/* The numbers in a folder's names as a list. */
static char *names_of(struct mc_render *render, const char *path, const char *head)
{
	struct seen seen = {mc_cpumask_alloc_bits(70000), head};
	struct mc_text text = {0};

	assert_int_equal(mc_render_list(render, path, see, &seen), 0);
	mc_text_list(&text, seen.mask);
	mc_text_add(&text, "\n", 1);
	mc_cpumask_free(seen.mask);
	return text.data;
}

/* Numbers after each `key` at the start of a line. */
static char *numbers_after(struct mc_render *render, const char *path, const char *key)
{
	struct mc_cpumask *mask = mc_cpumask_alloc_bits(70000);
	char *text = content(render, path), *line, *save = NULL;
	struct mc_text out = {0};
	size_t len = strlen(key);

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, key, len) && line[len] >= '0' && line[len] <= '9')
			mc_cpumask_set(mask, (unsigned int)strtoul(line + len, NULL, 10));
	}
	mc_text_list(&out, mask);
	mc_text_add(&out, "\n", 1);
	mc_cpumask_free(mask);
	free(text);
	return out.data;
}

static void agree(char *a, char *b, const char *what, const char *options)
{
	if (strcmp(a, b))
		fail_msg("%s: %s: %.200s against %.200s", options, what, a, b);
	free(a);
	free(b);
}

static void check_nodes(struct mc_render *render, const char *options)
{
	struct mc_topology *topo = mc_render_topology(render);
	const struct mc_cpumask *online = &mc_topology_nodes_online(topo)->m;
	unsigned long long total = 0, free_kib = 0;
	unsigned int node, to;
	char path[128], list[128], *text, *word, *save;

	mc_for_each_cpu (node, online) {
		const struct mc_node *n = mc_topology_node(topo, node);
		struct mc_text links = {0};

		snprintf(path, sizeof(path), NODE "/node%u/meminfo", node);
		total += (unsigned long long)number_of(render, path, "MemTotal:");
		free_kib += (unsigned long long)number_of(render, path, "MemFree:");
		assert_int_equal(number_of(render, path, "MemTotal:") -
					 number_of(render, path, "MemFree:"),
				 number_of(render, path, "MemUsed:"));
		snprintf(path, sizeof(path), NODE "/node%u/distance", node);
		text = content(render, path);
		save = NULL;
		word = strtok_r(text, " \n", &save);
		mc_for_each_cpu (to, online) {
			assert_non_null(word);
			assert_int_equal(strtoul(word, NULL, 10),
					 mc_topology_distance(topo, node, to));
			word = strtok_r(NULL, " \n", &save);
		}
		assert_null(word);
		free(text);
		snprintf(list, sizeof(list), NODE "/node%u", node);
		mc_text_list(&links, n->linked);
		mc_text_add(&links, "\n", 1);
		agree(names_of(render, list, "cpu"), links.data, "node's links", options);
	}
	assert_int_equal(total, number_of(render, "/proc/meminfo", "MemTotal:"));
	/* A recording's /proc/meminfo was read a moment after its nodes'. */
	if (!strstr(options, ".tgz"))
		assert_int_equal(free_kib, number_of(render, "/proc/meminfo", "MemFree:"));
	assert_int_equal(free_kib / 4, number_of(render, "/proc/vmstat", "nr_free_pages "));
	mc_topology_put(topo);
}

static void check_cpus(struct mc_render *render, const char *options)
{
	struct mc_topology *topo = mc_render_topology(render);
	const struct mc_cpumask *online = mc_topology_online(topo);
	struct mc_cpumask *core = mc_cpumask_alloc_bits(mc_topology_nr_cpu_ids(topo));
	unsigned int cpu, level;
	char path[160], *list, *map;

	mc_for_each_cpu (cpu, online) {
		static const char *const file[] = {"core_cpus", "package_cpus", "thread_siblings",
						   "core_siblings"};

		for (level = 0; level < 4; level++) {
			snprintf(path, sizeof(path), CPU "/cpu%u/topology/%s_list", cpu,
				 file[level]);
			list = content(render, path);
			snprintf(path, sizeof(path), CPU "/cpu%u/topology/%s", cpu, file[level]);
			map = content(render, path);
			map[strcspn(map, "\n")] = '\0';
			assert_int_equal(mc_cpumask_parse(core, map, NULL), 0);
			free(map);
			map = malloc(65536);
			mc_cpulist_snprint(map, 65535, core);
			strcat(map, "\n");
			assert_true(mc_cpumask_test(core, cpu));
			assert_true(mc_cpumask_subset(core, online));
			agree(list, map, "list and map", options);
		}
	}
	mc_cpumask_free(core);
	mc_topology_put(topo);
}

static void test_consistency(void **state)
{
	static const char *const options[] = {
		"smp=1",
		"smp=2 mem=2G",
		"smp=8,sockets=2,cores=2,threads=2 nodes=2 mem=8G",
		"smp=12,sockets=2,dies=3,cores=2,threads=1 nodes=2 mem=8G",
		"smp=64,sockets=4,cores=8,threads=2 nodes=4 mem=256G offline=3,17-20,63",
		"smp=4,maxcpus=160 mem=4G",
		"smp=4 mem=4G numa=node,cpus=0-3,mem=3G numa=node,mem=1G",
		"smp=4 mem=4G numa=node,cpus=0-1,mem=4G numa=node,cpus=2-3",
		"smp=512,sockets=2,cores=128,threads=2 nodes=8 mem=1T",
		"machine=pi5",
		"machine=altra-2x80",
		"machine=epyc-2x96-nps4",
		"machine=spr-2x56-snc4-cxl",
		"machine=power-smt8",
		"machine=pi5 numa=fake=4",
		"machine=" TEST_MACHINES "/x86-612-2n16.tgz offline=3,8",
		"machine=" TEST_MACHINES "/arm64-612-8-2n.tgz",
		"machine=" TEST_MACHINES "/x86-612-memonly.tgz",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct mc_render *render = renderer(options[i], NULL);
		struct stat st;

		agree(names_of(render, CPU, "cpu"), content(render, CPU "/present"), "cpuN folders",
		      options[i]);
		agree(names_of(render, "/sys/bus/cpu/devices", "cpu"),
		      content(render, CPU "/present"), "bus", options[i]);
		agree(numbers_after(render, "/proc/stat", "cpu"), content(render, CPU "/online"),
		      "stat", options[i]);
		agree(numbers_after(render, "/proc/cpuinfo", "processor\t: "),
		      content(render, CPU "/online"), "cpuinfo", options[i]);
		check_cpus(render, options[i]);
		if (!mc_render_stat(render, NODE, &st)) {
			agree(names_of(render, NODE, "node"), content(render, NODE "/online"),
			      "nodeN folders", options[i]);
			agree(names_of(render, "/sys/bus/node/devices", "node"),
			      content(render, NODE "/online"), "node bus", options[i]);
			check_nodes(render, options[i]);
		}
		mc_render_free(render);
	}
}

/* Every entry of a machine can be looked at, read or followed, and is what its folder says. */
struct visit {
	struct mc_render *render;
	const char *path;
	unsigned int seen, depth;
};

static int visit(void *arg, const char *name, char type)
{
	struct visit *up = arg;
	struct mc_text text = {0};
	char path[512];
	struct visit down = {.render = up->render, .path = path, .depth = up->depth + 1};
	struct stat st;
	int ret;

	snprintf(path, sizeof(path), "%s/%s", up->path, name);
	up->seen++;
	assert_true(down.depth < 12);
	assert_int_equal(mc_render_stat(up->render, path, &st), 0);
	if (type == 'd') {
		assert_true(S_ISDIR(st.st_mode));
		assert_int_equal(mc_render_list(up->render, path, visit, &down), 0);
		up->seen += down.seen;
	} else if (type == 'l') {
		assert_true(S_ISLNK(st.st_mode));
		assert_int_equal(mc_render_readlink(up->render, path, &text), 0);
		/* No link of ours dangles. */
		ret = mc_render_resolve(up->render, path, &text);
		if (ret && ret != -EXDEV)
			fail_msg("%s: %s", path, strerror(-ret));
	} else {
		assert_true(S_ISREG(st.st_mode));
		ret = mc_render_read(up->render, path, &text);
		if (ret && ret != -EACCES && ret != -EIO)
			fail_msg("%s: %s", path, strerror(-ret));
		if (ret == -EACCES && (st.st_mode & 0444))
			fail_msg("%s: EACCES, mode %o", path, st.st_mode & 07777);
	}
	mc_text_free(&text);
	return 0;
}

static void test_every_entry(void **state)
{
	static const char *const roots[] = {CPU,
					    NODE,
					    "/sys/devices/system/memory",
					    "/sys/bus/cpu",
					    "/sys/bus/node",
					    "/sys/bus/memory",
					    "/sys/kernel/mm/hugepages"};
	static const char *const options[] = {
		"smp=8,sockets=2,cores=2,threads=2 nodes=2 mem=8G offline=3", "machine=pi5",
		"machine=power-smt8 smp=16", "machine=" TEST_MACHINES "/x86-612-offline.tgz",
		"machine=" TEST_MACHINES "/arm64-612-8-2n.tgz"};
	size_t i, r;

	(void)state;
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct mc_render *render = renderer(options[i], NULL);

		for (r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
			struct visit from = {.render = render, .path = roots[r]};
			int ret = mc_render_list(render, roots[r], visit, &from);

			if (ret && ret != -ENOENT)
				fail_msg("%s: %s: %s", options[i], roots[r], strerror(-ret));
			assert_true(ret || from.seen > 4);
		}
		mc_render_free(render);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_consistency),
		cmocka_unit_test(test_every_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
