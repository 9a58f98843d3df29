// SPDX-License-Identifier: MIT
/*
 * test_render.c - the renderer by itself: texts, paths of any kind, trees on disk, what the
 * emulator adds, task files. That files agree with each other is test_render_agree.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "render_machine.h"
#include "scratch.h"

static void expect(struct mc_render *render, const char *path, const char *want)
{
	char *got = content(render, path);

	if (strcmp(got, want))
		fail_msg("%s: '%s', not '%s'", path, got, want);
	free(got);
}

/* ---- text ---- */

static void test_text(void **state)
{
	struct mc_text text = {0};
	struct mc_cpumask *mask = mc_cpumask_alloc_bits(9000);
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		mc_text_printf(&text, "%u,", i);
	assert_int_equal(text.len, 10 * 2 + 90 * 3 + 900 * 4);
	assert_string_equal(text.data + text.len - 4, "999,");
	mc_text_printf(&text, "%5000s", "x");
	assert_int_equal(text.len, 10 * 2 + 90 * 3 + 900 * 4 + 5000);
	mc_text_free(&text);

	for (i = 0; i < 9000; i += 2)
		mc_cpumask_set(mask, i);
	mc_text_list(&text, mask);
	assert_int_equal(text.len, strlen(text.data));
	assert_string_equal(text.data + text.len - 10, ",8996,8998");
	mc_text_free(&text);
	mc_text_mask(&text, mask);
	assert_int_equal(text.len, 9000 / 4 + 9000 / 32);
	assert_memory_equal(text.data, "55,55555555,5555", 16);
	mc_text_free(&text);
	mc_cpumask_free(mask);
}

/* ---- paths ---- */

static void test_paths(void **state)
{
	struct mc_render *render =
		renderer("smp=8,sockets=2,cores=2,threads=2 nodes=2 mem=8G offline=3", NULL);
	struct mc_text text = {0};
	struct stat st;
	static const struct {
		const char *path;
		int ret;
	} cases[] = {
		{CPU "/online", 0},
		{"//sys//devices/./system/cpu///online", 0},
		{CPU "/cpu0", 0},
		{CPU "/cpu0/", 0},
		{CPU "/cpu00", -ENOENT},
		{CPU "/cpu8", -ENOENT},
		{CPU "/cpu-1", -ENOENT},
		{CPU "/cpu+1", -ENOENT},
		{CPU "/cpu99999999999999999999", -ENOENT},
		{CPU "/cpu", -ENOENT},
		{CPU "/cpu0x", -ENOENT},
		{CPU "/cpu#", -ENOENT},
		{CPU "/cpu3/topology", -ENOENT},
		{CPU "/cpu3/cache/index0/size", -ENOENT},
		{CPU "/cpu3/online", 0},
		{CPU "/cpu0/topology/core_id/x", -ENOTDIR},
		{CPU "/cpu0/node0", 0},
		{CPU "/cpu0/node1", -ENOENT},
		{CPU "/cpu0/node0/cpulist", 0},
		{CPU "/cpu0/node0/cpu1/topology/core_id", 0},
		{CPU "/cpu0/node0/cpu7", -ENOENT},
		{NODE "/node1/memory_x", -ENOENT},
		{NODE "/node2", -ENOENT},
		{"/sys/bus/cpu/devices/cpu7/cache/index0/level", 0},
		{CPU "/../cpu/online", -EXDEV},
		{"/sys", -EXDEV},
		{"/", -EXDEV},
		{"", -EXDEV},
		{"sys/devices/system/cpu/online", -EXDEV},
		{"/sys/devices/system", -EXDEV},
		{"/proc/self/status", -EXDEV},
		{"/proc/cpuinfo", 0},
		{"/proc/irq/999999/smp_affinity", -EXDEV},
		{"/etc/passwd", -EXDEV},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int ret = mc_render_stat(render, cases[i].path, &st);

		if (ret != cases[i].ret)
			fail_msg("%s: %d, not %d", cases[i].path, ret, cases[i].ret);
		assert_int_equal(mc_render_owns(render, cases[i].path), ret != -EXDEV);
	}
	assert_int_equal(mc_render_read(render, CPU, &text), -EISDIR);
	assert_int_equal(mc_render_read(render, NODE "/node0/compact", &text), -EACCES);
	assert_int_equal(mc_render_read(render, CPU "/power/autosuspend_delay_ms", &text), -EIO);
	assert_int_equal(mc_render_readlink(render, CPU "/online", &text), -EINVAL);
	assert_int_equal(text.len, 0);
	assert_int_equal(mc_render_readlink(render, CPU "/cpu5/node1", &text), 0);
	assert_string_equal(text.data, "../../node/node1");
	text.len = 0;
	assert_int_equal(mc_render_resolve(render, "/sys/bus/cpu/devices/cpu5/node1", &text), 0);
	assert_string_equal(text.data, NODE "/node1");
	assert_int_equal(mc_render_stat(render, CPU "/online", &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0444);
	assert_int_equal(st.st_size, 4096);
	assert_int_equal(mc_render_stat(render, "/proc/meminfo", &st), 0);
	assert_int_equal(st.st_size, 0);
	mc_text_free(&text);
	mc_render_free(render);
}

/* Whatever is asked, an answer comes back: random pieces of real paths, random bytes, very long
 * ones. */
static void test_any_path(void **state)
{
	static const char *const piece[] = {
		"/sys",
		"/devices",
		"/system",
		"/cpu",
		"/node",
		"/cpu1",
		"/node0",
		"/topology",
		"/cache",
		"/index0",
		"/..",
		"/.",
		"//",
		"/",
		"/online",
		"/memory",
		"/memory1",
		"/bus",
		"/devices/system/cpu",
		"/proc",
		"/stat",
		"/irq",
		"/1",
		"/hugepages",
		"/hugepages-2048kB",
		"/numa_node",
		"/fs/cgroup",
		"/cpu.max",
		"#",
		"\xff",
		"cpu",
		"4294967296",
		"18446744073709551616",
		"/size",
		"/power",
		"/driver",
		"/subsystem",
		"/kernel/mm",
	};
	struct mc_render *render = renderer("smp=4 nodes=2 mem=4G", NULL);
	char *path = malloc(70000);
	struct mc_text text = {0};
	unsigned int round, i, seed = 1;
	struct stat st;

	(void)state;
	for (round = 0; round < 20000; round++) {
		size_t len = 0;

		for (i = (unsigned int)rand_r(&seed) % 9; i; i--) {
			const char *p = piece[(unsigned int)rand_r(&seed) %
					      (sizeof(piece) / sizeof(piece[0]))];

			len += (size_t)sprintf(path + len, "%s", p);
		}
		path[len] = '\0';
		mc_render_stat(render, path, &st);
		mc_render_readlink(render, path, &text);
		if (strncmp(path, "/proc", 5))
			mc_render_read(render, path, &text);
		mc_render_resolve(render, path, &text);
		text.len = 0;
	}
	for (i = 4000; i < 70000; i += 997) {
		memset(path, i & 1 ? '/' : 'a', i);
		memcpy(path, CPU "/", sizeof(CPU));
		path[i] = '\0';
		assert_true(mc_render_stat(render, path, &st) < 0 || (i & 1));
		mc_render_read(render, path, &text);
	}
	mc_text_free(&text);
	mc_render_free(render);
	free(path);
}

/* ---- trees ---- */

static unsigned int count_entries(int dir)
{
	DIR *d = fdopendir(dup(dir));
	struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(d);
	rewinddir(d);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		n++;
		if (entry->d_type == DT_DIR) {
			int sub = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY);

			n += count_entries(sub);
			close(sub);
		}
	}
	closedir(d);
	return n;
}

static void test_tree(void **state)
{
	struct mc_render *render =
		renderer("smp=8,sockets=2,cores=2,threads=2 nodes=2 mem=8G", NULL);
	const char *path = scratch_make();
	char text[64];
	struct stat a, b;
	unsigned int all;
	int dir, fd;

	(void)state;
	assert_non_null(path);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mc_render_tree(render, CPU, dir, MC_RENDER_SHALLOW | MC_RENDER_DIRS, NULL),
			 0);
	assert_int_equal(fstatat(dir, "cpu7", &a, 0), 0);
	assert_true(fstatat(dir, "online", &a, 0) < 0);
	assert_true(fstatat(dir, "cpu7/topology", &a, 0) < 0);
	/* What is there already is kept or replaced. */
	assert_int_equal(mc_render_tree(render, CPU, dir, MC_RENDER_DIRS, NULL), 0);
	assert_int_equal(fstatat(dir, "cpu7/topology", &a, 0), 0);
	assert_int_equal(mc_render_tree(render, CPU, dir, 0, NULL), 0);
	all = count_entries(dir);
	assert_int_equal(mc_render_tree(render, CPU, dir, 0, NULL), 0);
	assert_int_equal(count_entries(dir), all);
	fd = openat(dir, "cpu5/topology/core_cpus_list", O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_memory_equal(text, "4-5\n", 4);
	close(fd);
	assert_int_equal(fstatat(dir, "cpu5/topology/core_cpus_list", &a, 0), 0);
	assert_int_equal(fstatat(dir, "cpu4/topology/thread_siblings_list", &b, 0), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_mode & 0777, 0444);
	assert_int_equal(fstatat(dir, "cpu5/online", &a, 0), 0);
	assert_int_equal(a.st_mode & 0777, 0644);
	assert_int_equal(mc_render_tree(render, CPU "/online", dir, 0, NULL), -ENOTDIR);
	assert_int_equal(mc_render_tree(render, "/usr", dir, 0, NULL), -EXDEV);
	close(dir);
	mc_render_free(render);
}

/* ---- what the emulator adds ---- */

static void usage(void *arg, unsigned int node, struct mc_node_usage *out)
{
	(void)arg;
	if (node == 1)
		*out = (struct mc_node_usage){
			.anon = 64 << 20, .file = 32 << 20, .shmem = 16 << 20, .mapped = 8 << 20};
}

static void counters(void *arg, unsigned int node, struct mc_node_counters *out)
{
	(void)arg;
	if (node == 1)
		*out = (struct mc_node_counters){.numa_hit = 1000,
						 .interleave_hit = 7,
						 .local_node = 900,
						 .other_node = 100};
}

static int value(void *arg, const char *path, struct mc_text *out)
{
	(void)arg;
	if (strcmp(path, "/sys/kernel/mm/mempolicy/weighted_interleave/node1"))
		return -ENOENT;
	mc_text_add(out, "5\n", 2);
	return 0;
}

static void test_live(void **state)
{
	const struct mc_render_live live = {
		.node_usage = usage, .node_counters = counters, .value = value};
	const char *options = "smp=4 nodes=2 mem=8G";
	struct mc_render *still = renderer(options, NULL), *moved = renderer(options, &live);
	struct mc_render_memory memory;
	const char *path = NODE "/node1/meminfo";

	(void)state;
	assert_int_equal(number_of(still, path, "MemFree:") - number_of(moved, path, "MemFree:"),
			 112 << 10);
	assert_int_equal(number_of(moved, path, "MemUsed:") - number_of(still, path, "MemUsed:"),
			 112 << 10);
	assert_int_equal(number_of(moved, path, "AnonPages:") -
				 number_of(still, path, "AnonPages:"),
			 64 << 10);
	assert_int_equal(number_of(moved, path, "FilePages:") -
				 number_of(still, path, "FilePages:"),
			 48 << 10);
	assert_int_equal(number_of(moved, path, "Shmem:") - number_of(still, path, "Shmem:"),
			 16 << 10);
	assert_int_equal(number_of(moved, path, "Mapped:") - number_of(still, path, "Mapped:"),
			 8 << 10);
	assert_int_equal(number_of(still, NODE "/node1/vmstat", "nr_free_pages ") -
				 number_of(moved, NODE "/node1/vmstat", "nr_free_pages "),
			 112 << 8);
	assert_int_equal(number_of(moved, NODE "/node1/numastat", "numa_hit ") -
				 number_of(still, NODE "/node1/numastat", "numa_hit "),
			 1000);
	assert_int_equal(number_of(moved, NODE "/node1/numastat", "interleave_hit "), 7);
	assert_int_equal(number_of(moved, NODE "/node1/vmstat", "numa_interleave "), 7);
	assert_int_equal(number_of(still, "/proc/meminfo", "MemFree:") -
				 number_of(moved, "/proc/meminfo", "MemFree:"),
			 112 << 10);
	assert_int_equal(number_of(moved, "/proc/meminfo", "MemTotal:"), 8 << 20);
	assert_int_equal(mc_render_memory(moved, &memory), 0);
	assert_int_equal(memory.total, 8ull << 30);
	assert_int_equal(memory.free >> 10, number_of(moved, "/proc/meminfo", "MemFree:"));
	expect(moved, "/sys/kernel/mm/mempolicy/weighted_interleave/node1", "5\n");
	expect(moved, "/sys/kernel/mm/mempolicy/weighted_interleave/node0", "1\n");
	expect(moved, "/proc/sys/kernel/numa_balancing", "1\n");
	mc_render_free(still);
	mc_render_free(moved);
}

static void test_hotplug(void **state)
{
	struct mc_topology *topo = machine("smp=4 nodes=2 mem=4G"), *less;
	struct mc_render *render = mc_render_new(topo, NULL);
	struct mc_cpumask *online = mc_cpumask_dup(mc_topology_online(topo));
	struct stat st;

	(void)state;
	expect(render, CPU "/online", "0-3\n");
	expect(render, CPU "/cpu2/online", "1\n");
	mc_cpumask_clear(online, 2);
	assert_int_equal(mc_topology_set_online(topo, online, &less), 0);
	assert_int_equal(mc_render_set_topology(render, less), 0);
	expect(render, CPU "/online", "0-1,3\n");
	expect(render, CPU "/offline", "2\n");
	expect(render, CPU "/present", "0-3\n");
	expect(render, CPU "/cpu2/online", "0\n");
	expect(render, NODE "/node1/cpulist", "3\n");
	assert_int_equal(mc_render_stat(render, CPU "/cpu2/topology", &st), -ENOENT);
	assert_int_equal(mc_render_stat(render, CPU "/cpu2/node1", &st), 0);
	mc_topology_put(less);
	mc_topology_put(topo);
	mc_cpumask_free(online);
	mc_render_free(render);
}

/* ---- task files ---- */

static void test_task(void **state)
{
	static const char status[] =
		"Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\nMems_allowed:\t1\n"
		"Mems_allowed_list:\t0\nvoluntary_ctxt_switches:\t5\n";
	static const char stat_line[] =
		"12 (a) R (b) S 1 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 "
		"28 29 30 31 32 33 34 35 36 37 1 39 40\n";
	struct mc_render *render = renderer("smp=40 nodes=2 mem=4G", NULL);
	struct mc_cpumask *mask = mc_cpumask_alloc_bits(40), *nodes = mc_cpumask_alloc_bits(40);
	struct mc_nodemask *mems = (struct mc_nodemask *)nodes;
	struct mc_render_task task = {.allowed = mask, .mems = mems, .cpu = 33};
	struct mc_text out = {0};

	(void)state;
	mc_cpumask_set(mask, 33);
	mc_cpumask_set(mask, 1);
	mc_cpumask_set(nodes, 1);
	assert_int_equal(mc_render_status(render, status, sizeof(status) - 1, &task, &out), 0);
	/* Mems_allowed is 1024 nodes wide whatever the mask's width: libnuma takes the kernel's
	 * limit from it. */
	assert_non_null(strstr(out.data, "Name:\tx\nCpus_allowed:\t02,00000002\nCpus_allowed_list:\t1,33\n"
					 "Mems_allowed:\t00000000,"));
	assert_non_null(strstr(out.data, ",00000002\nMems_allowed_list:\t1\nvoluntary_ctxt_switches:\t5\n"));
	assert_int_equal(strcspn(strstr(out.data, "Mems_allowed:") + 14, "\n"), 32 * 9 - 1);
	out.len = 0;
	assert_int_equal(mc_render_stat_line(render, stat_line, sizeof(stat_line) - 1, &task, &out),
			 0);
	assert_string_equal(strrchr(out.data, ')'),
			    ") S 1 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 "
			    "28 29 30 31 32 33 34 35 36 "
			    "37 1 33 40\n");
	out.len = 0;
	task = (struct mc_render_task){.cpu = -1};
	assert_int_equal(mc_render_status(render, status, sizeof(status) - 1, &task, &out), 0);
	assert_string_equal(out.data, status);
	out.len = 0;
	assert_int_equal(
		mc_render_stat_line(render, "1 (x", 4, &(struct mc_render_task){.cpu = 3}, &out),
		0);
	assert_string_equal(out.data, "1 (x");
	mc_text_free(&out);
	mc_cpumask_free(mask);
	mc_cpumask_free(nodes);
	mc_render_free(render);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),     cmocka_unit_test(test_paths),
		cmocka_unit_test(test_any_path),
		cmocka_unit_test_teardown(test_tree, scratch_remove),
		cmocka_unit_test(test_live),     cmocka_unit_test(test_hotplug),
		cmocka_unit_test(test_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
