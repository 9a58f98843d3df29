// SPDX-License-Identifier: MIT
/*
 * test_render_recordings.c - the rendered machine against what real kernels showed: every file,
 * link and folder of every recording below /sys/devices/system/{cpu,node,memory},
 * /sys/bus/{cpu,node} and a few of /proc.
 *
 * Once with the recording's own texts, where all must be equal; once with the topology alone, where
 * all must be equal that follows from it. What does not is listed one by one, with the reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fnmatch.h>
#include <glob.h>
#include <cmocka.h>
#include "emu/render/render.h"

static const char *const roots[] = {
	"/sys/devices/system/cpu",
	"/sys/devices/system/node",
	"/sys/devices/system/memory",
	"/sys/bus/cpu",
	"/sys/bus/node",
	"/sys/kernel/mm/mempolicy",
	"/proc/cpuinfo",
	"/proc/meminfo",
	"/proc/sys/kernel/numa_balancing",
};

struct exception {
	const char *pattern, *why;
	const char *machine; /* NULL: all */
};

/* From the topology alone. */
static const struct exception topology_only[] = {
	{"/sys/devices/system/cpu/vulnerabilities*",
	 "of the processor and the kernel's mitigations", NULL},
	{"/sys/devices/system/cpu/modalias", "the processor's features", NULL},
	{"/sys/devices/system/cpu/hotplug/states", "the kernel's list of hot-plug steps", NULL},
	{"/sys/devices/system/cpu/cpu*/regs*", "arm64's identification registers", NULL},
	{"/sys/devices/system/cpu/cpuidle*", "the kernel's idle governor", NULL},
	{"/sys/devices/system/memory/auto_online_blocks", "a setting of the kernel", NULL},
	{"/sys/devices/system/node/node*/meminfo", "memory in use", NULL},
	{"/sys/devices/system/node/node*/vmstat", "memory in use, counters", NULL},
	{"/sys/devices/system/node/node*/numastat", "counters", NULL},
	{"/sys/devices/system/node/node*/access*", "the firmware's latencies and bandwidths",
	 "x86-612-own4n-hmat.tgz"},
	{"/proc/meminfo", "memory in use", NULL},
	{"/proc/cpuinfo", "model, features, speed", NULL},
	{"/sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_*",
	 "6.12 on AMD leaves CPUs that went offline in an L3's map", "x86-612-offline.tgz"},
};

struct check {
	const char *machine;
	struct mc_render *render;
	const struct exception *exception;
	size_t nr_exceptions;
	unsigned int compared, excepted, wrong;
};

static bool below(const char *path, const char *root)
{
	size_t len = strlen(root);

	return !strncmp(path, root, len) && (path[len] == '/' || !path[len]);
}

static void complain(struct check *check, const char *path, const char *what, const char *want,
		     size_t len, const struct mc_text *got)
{
	if (check->wrong++ < 10)
		print_error("%s: %s: %s\n  recorded: %.*s\n  rendered: %.*s\n", check->machine,
			    path, what, (int)(len < 200 ? len : 200), want,
			    (int)(got->len < 200 ? got->len : 200), got->data ? got->data : "");
}

static void compare(struct check *check, const char *path, char type, const char *data, size_t len)
{
	struct mc_text got = {0};
	struct stat st;
	int ret = mc_render_stat(check->render, path, &st);
	char shown = S_ISDIR(st.st_mode) ? 'd' : S_ISLNK(st.st_mode) ? 'l' : 'f';

	check->compared++;
	if (ret) {
		complain(check, path, strerror(-ret), data, type == 'd' ? 0 : len, &got);
		return;
	}
	if (type != shown) {
		complain(check, path, "another type", &type, 1, &got);
		return;
	}
	if (type == 'd')
		return;
	ret = type == 'l' ? mc_render_readlink(check->render, path, &got)
			  : mc_render_read(check->render, path, &got);
	if (type == 'l')
		len = strlen(data);
	if (ret)
		complain(check, path, strerror(-ret), data, len, &got);
	else if (got.len != len || memcmp(got.data ? got.data : "", data, len))
		complain(check, path, "differs", data, len, &got);
	mc_text_free(&got);
}

static int one_entry(void *arg, const char *path, char type, const char *data, size_t len)
{
	struct check *check = arg;
	size_t i;

	for (i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (below(path, roots[i]))
			break;
	}
	if (i == sizeof(roots) / sizeof(roots[0]))
		return 0;
	for (i = 0; i < check->nr_exceptions; i++) {
		if ((!check->exception[i].machine ||
		     !strcmp(check->exception[i].machine, check->machine)) &&
		    !fnmatch(check->exception[i].pattern, path, 0)) {
			check->excepted++;
			return 0;
		}
	}
	compare(check, path, type, data, len);
	return 0;
}

static void each_recording(bool derived_only, const struct exception *exception, size_t nr)
{
	const struct mc_render_live live = {.derived_only = derived_only};
	unsigned int wrong = 0;
	glob_t found;
	size_t i;

	assert_int_equal(glob(TEST_MACHINES "/*.tgz", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 15);
	for (i = 0; i < found.gl_pathc; i++) {
		struct check check = {.machine = strrchr(found.gl_pathv[i], '/') + 1,
				      .exception = exception,
				      .nr_exceptions = nr};
		struct mc_topology *topo;
		struct mc_error error;

		if (mc_topology_load(found.gl_pathv[i], &topo, &error) < 0)
			fail_msg("%s", error.text);
		check.render = mc_render_new(topo, &live);
		assert_non_null(check.render);
		mc_topology_files(topo, one_entry, &check);
		print_message("%-24s %5u compared, %3u excepted, %u wrong\n", check.machine,
			      check.compared, check.excepted, check.wrong);
		assert_true(check.compared > 100);
		wrong += check.wrong;
		mc_render_free(check.render);
		mc_topology_put(topo);
	}
	globfree(&found);
	assert_int_equal(wrong, 0);
}

static void test_with_texts(void **state)
{
	(void)state;
	each_recording(false, NULL, 0);
}

static void test_topology_only(void **state)
{
	(void)state;
	each_recording(true, topology_only, sizeof(topology_only) / sizeof(topology_only[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_texts),
		cmocka_unit_test(test_topology_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
