// SPDX-License-Identifier: MIT
/*
 * test_pageinit_limits.c - memory and CPU limits of cgroups: v2 and v1 as files below a root of the
 * test's own, and really set where root may make cgroups.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/manycore.h>
#include "lib/pageinit.h"
#include "skip.h"

static const int64_t MiB = 1 << 20;
static char top[] = "/tmp/manycore-limits-XXXXXX";
static int root = -1;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static int new_root(void **state)
{
	(void)state;
	strcpy(top + sizeof(top) - 7, "XXXXXX");
	if (!mkdtemp(top))
		return -1;
	root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -1 : 0;
}

static int drop_root(void **state)
{
	(void)state;
	close(root);
	return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", top, path);
	for (char *p = full + sizeof(top); (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdir(full, 0755);
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int64_t headroom(bool *cgroup, char *why, size_t size)
{
	struct mc_limits *l = mc_limits_open(root);
	int64_t left;

	assert_non_null(l);
	left = mc_limits_headroom(l, cgroup, why, size);
	mc_limits_close(l);
	return left;
}

static unsigned int cpus(void)
{
	struct mc_limits *l = mc_limits_open(root);
	unsigned int n;

	assert_non_null(l);
	n = mc_limits_cpus(l);
	mc_limits_close(l);
	return n;
}

static void expect(int64_t want_mib, bool want_cgroup, const char *word)
{
	char why[160] = "";
	bool cgroup;

	assert_int_equal(headroom(&cgroup, why, sizeof(why)), want_mib * MiB);
	assert_int_equal(cgroup, want_cgroup);
	assert_non_null(strstr(why, word));
}

static void put_mib(const char *path, int64_t mib)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld\n", (long long)(mib * MiB));
	put(path, text);
}

static void v2(void **state)
{
	char why[160];
	bool cgroup;

	(void)state;
	assert_int_equal(headroom(&cgroup, why, sizeof(why)), INT64_MAX); /* nothing there */
	assert_int_equal(cpus(), UINT_MAX);
	put("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable:    4194304 kB\n");
	put("/proc/self/cgroup", "0::/a/b c\n");
	put("/proc/self/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
				    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 "
				    "cgroup2 rw,nsdelegate\n");
	expect(4096, false, "machine");
	put("/sys/fs/cgroup/a/b c/memory.max", "max\n");
	put_mib("/sys/fs/cgroup/a/b c/memory.current", 90);
	expect(4096, false, "machine");
	put_mib("/sys/fs/cgroup/a/memory.max", 100); /* an ancestor's */
	put_mib("/sys/fs/cgroup/a/memory.current", 95);
	expect(5, true, "/sys/fs/cgroup/a:");
	put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 20971520\nactive_file 1048576\n"
					    "file_dirty 1048576\nfile_writeback 0\n");
	expect(25, true, "95 of 100 MiB"); /* 20 MiB of it can be dropped */
	put_mib("/sys/fs/cgroup/a/b c/memory.high", 93);
	expect(3, true, "b c");
	put_mib("/sys/fs/cgroup/a/b c/memory.current", 200); /* over it already */
	expect(0, true, "b c");
	put("/sys/fs/cgroup/cpu.max", "max 100000\n");
	assert_int_equal(cpus(), UINT_MAX);
	put("/sys/fs/cgroup/a/cpu.max", "350000 100000\n");
	assert_int_equal(cpus(), 4);
	put("/sys/fs/cgroup/a/b c/cpu.max", "1000 100000\n");
	assert_int_equal(cpus(), 1);
	/* In a cgroup namespace the mount shows what is below its root; the process may lie above.
	 */
	put("/proc/self/cgroup", "0::/../other\n");
	put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
	assert_int_equal(cpus(), 2);
	/* And where only a part is mounted. */
	put("/proc/self/cgroup", "0::/pod/a\n");
	put("/proc/self/mountinfo", "30 23 0:26 /pod /sys/fs/cgroup rw - cgroup2 none rw\n");
	assert_int_equal(cpus(), 2);
	put("/sys/fs/cgroup/a/cpu.max", "garbage\n");
	put("/sys/fs/cgroup/a/memory.max", "\n");
	assert_int_equal(cpus(), 2);
	expect(4096, false, "machine");
}

static void v1(void **state)
{
	(void)state;
	put("/proc/meminfo", "MemAvailable: 1048576 kB\n");
	put("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x/y\n0::/\n");
	put("/proc/self/mountinfo",
	    "31 23 0:27 / /sys/fs/cgroup/cpu\\040it rw - cgroup cgroup rw,cpu,cpuacct\n"
	    "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	    "33 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	put("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/x/y/memory.usage_in_bytes", "1048576\n");
	expect(1024, false, "machine");
	put_mib("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", 64);
	put_mib("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", 60);
	put("/sys/fs/cgroup/memory/x/memory.stat",
	    "total_inactive_file 3145728\ntotal_active_file 0\n"
	    "total_dirty 1048576\ntotal_writeback 1048576\n");
	expect(5, true, "/sys/fs/cgroup/memory/x:");
	put("/sys/fs/cgroup/cpu it/x/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu it/x/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cpus(), UINT_MAX);
	put("/sys/fs/cgroup/cpu it/x/cpu.cfs_quota_us", "100001\n");
	assert_int_equal(cpus(), 2);
}

static void put_node(unsigned int n, int64_t mib_free, int64_t mib_cache)
{
	char path[80], text[300];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", n);
	snprintf(text, sizeof(text),
		 "Node %u MemTotal:       1048576 kB\nNode %u MemFree:        %lld kB\n"
		 "Node %u Dirty:     1024 kB\nNode %u Active(file):   %lld kB\n"
		 "Node %u Inactive(file):     1024 kB\n",
		 n, n, (long long)mib_free * 1024, n, n, (long long)mib_cache * 1024, n);
	put(path, text);
}

static void nodes_left(struct mc_cpumask *nodes, int64_t want, const char *words)
{
	struct mc_limits *l = mc_limits_open(root);
	char why[160] = "";

	assert_non_null(l);
	assert_int_equal(mc_limits_nodes(l, nodes, why, sizeof(why)), want);
	mc_limits_close(l);
	assert_non_null(strstr(why, words));
}

/* Memory of those nodes that a part is bound to: free and file pages, less a node's share of what
 * the kernel keeps. */
static void of_nodes(void **state)
{
	struct mc_cpumask *m = mc_cpumask_alloc_bits(8);

	(void)state;
	assert_non_null(m);
	mc_cpumask_set(m, 1);
	nodes_left(m, INT64_MAX, ""); /* not shown */
	put("/proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable:    4194304 kB\n");
	put("/proc/sys/vm/min_free_kbytes", "16384\n");
	put_node(1, 100, 20);
	put_node(3, 5, 0);
	nodes_left(m, (100 + 20 - 6) * MiB, "node 1, which it may not leave, has 114 MiB left");
	mc_cpumask_set(m, 3);
	nodes_left(m, (120 - 6 + 5 - 6) * MiB, "nodes 1,3, which it may not leave, have 113 MiB");
	mc_cpumask_clear(m, 1);
	nodes_left(m, 0, "node 3");
	mc_cpumask_free(m);
}

static bool no_huge_page(size_t page, char *why, size_t size)
{
	struct mc_limits *l = mc_limits_open(root);
	bool none;

	assert_non_null(l);
	none = mc_limits_huge(l, page, why, size);
	mc_limits_close(l);
	return none;
}

static void hugetlb(void **state)
{
	char why[160] = "";

	(void)state;
	put("/proc/self/cgroup", "7:hugetlb:/h\n0::/a/b\n");
	put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
				    "31 23 0:27 / /sys/fs/huge rw - cgroup cgroup rw,hugetlb\n");
	assert_false(no_huge_page(2 * MiB, why, sizeof(why)));
	put("/sys/fs/cgroup/a/b/hugetlb.2MB.max", "max\n");
	put_mib("/sys/fs/cgroup/a/hugetlb.2MB.max", 20);
	put_mib("/sys/fs/cgroup/a/hugetlb.2MB.current", 18);
	assert_false(no_huge_page(2 * MiB, why, sizeof(why)));
	put_mib("/sys/fs/cgroup/a/hugetlb.2MB.current", 20);
	assert_true(no_huge_page(2 * MiB, why, sizeof(why)));
	assert_string_equal(why, "hugetlb cgroup /sys/fs/cgroup/a: 20 of 20 MiB used");
	assert_false(no_huge_page(1024 * MiB, why, sizeof(why))); /* each size has its own */
	put_mib("/sys/fs/cgroup/a/b/hugetlb.1GB.rsvd.max", 1024);
	put_mib("/sys/fs/cgroup/a/b/hugetlb.1GB.rsvd.current", 1024);
	assert_true(no_huge_page(1024 * MiB, why, sizeof(why)));
	assert_non_null(strstr(why, "/a/b: 1024 of 1024 MiB"));
	assert_false(no_huge_page(MiB / 16, why, sizeof(why)));
	put("/sys/fs/huge/h/hugetlb.64KB.limit_in_bytes", "65536\n");
	put("/sys/fs/huge/h/hugetlb.64KB.usage_in_bytes", "65536\n");
	assert_true(no_huge_page(MiB / 16, why, sizeof(why)));
	assert_non_null(strstr(why, "/sys/fs/huge/h:"));
}

/* ---- really set ------------------------------------------------------------------------------ */

/* 0 or -1; the file must take it whole. */
static int set(const char *folder, const char *name, const char *text)
{
	char path[600];
	int fd, rc;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	rc = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	if (fd >= 0)
		close(fd);
	return rc;
}

enum { FAILED = 1, LACKS = 77 };

/* A child of this process in a cgroup under `parent`, made ready by `ready`; returns what it ends
 * with. */
static int inside(const char *parent, int (*ready)(const char *folder), int (*check)(void))
{
	char folder[400];
	int status = 0;
	pid_t pid;

	snprintf(folder, sizeof(folder), "%s/mc-limits-%d", parent, getpid());
	if (mkdir(folder, 0755))
		return LACKS;
	pid = fork();
	if (!pid) {
		if (ready(folder) || set(folder, "cgroup.procs", "0"))
			_exit(LACKS);
		_exit(check());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* The kernel may take a moment to see that it is empty. */
	for (int i = 0; i < 500 && rmdir(folder) && errno == EBUSY; i++)
		usleep(10000);
	assert_int_equal(access(folder, F_OK), -1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

static int one_and_a_half(const char *folder)
{
	return set(folder, "cpu.max", "150000 100000") &&
	       (set(folder, "cpu.cfs_period_us", "100000") ||
		set(folder, "cpu.cfs_quota_us", "150000"));
}

static int half(const char *folder)
{
	return set(folder, "cpu.max", "50000 100000") &&
	       (set(folder, "cpu.cfs_period_us", "100000") ||
		set(folder, "cpu.cfs_quota_us", "50000"));
}

static int first_cpu(const char *folder)
{
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "%d", sched_getcpu());
	return set(folder, "cpuset.cpus", cpu) ||
	       (!access("/sys/fs/cgroup/cpuset/cpuset.mems", R_OK) &&
		set(folder, "cpuset.mems", "0"));
}

static unsigned int may; /* workers outside of the cgroup */

/* And an arena starts no more workers than that. */
static int workers_are(unsigned int want)
{
	struct mc_arena_attr at = {.size = 8 << 20, .chunk = 64 << 10, .policy = MC_ARENA_DEFAULT};
	struct mc_arena_report r;
	struct mc_arena *a;

	if (mc_pageinit_max_threads(NULL) != want || mc_arena_create(&at, &a, NULL) ||
	    mc_arena_wait(a, 0, -1) || mc_arena_part_report(a, 0, &r))
		return FAILED;
	mc_arena_destroy(a);
	return r.threads <= want ? 0 : FAILED;
}

static int at_most_two(void)
{
	return workers_are(may < 2 ? may : 2);
}

static int just_one(void)
{
	return workers_are(1);
}

static void really_set(void **state)
{
	static const char *const quota[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"},
				 *const sets[] = {"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"};
	int two = LACKS, one = LACKS, cpu = LACKS;

	(void)state;
	may = mc_pageinit_max_threads(NULL);
	for (int i = 0; i < 2 && !geteuid(); i++) {
		if (two == LACKS)
			two = inside(quota[i], one_and_a_half, at_most_two);
		if (one == LACKS)
			one = inside(quota[i], half, just_one);
		if (cpu == LACKS)
			cpu = inside(sets[i], first_cpu, just_one);
	}
	assert_true(two == 0 || two == LACKS);
	assert_true(one == 0 || one == LACKS);
	assert_true(cpu == 0 || cpu == LACKS);
	if (one == LACKS) {
		if (!test_skip_allowed("cgroup-cpu"))
			fail_msg("MUST_WORK=1: needs cgroup-cpu");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(v2, new_root, drop_root),
		cmocka_unit_test_setup_teardown(v1, new_root, drop_root),
		cmocka_unit_test_setup_teardown(of_nodes, new_root, drop_root),
		cmocka_unit_test_setup_teardown(hugetlb, new_root, drop_root),
		cmocka_unit_test(really_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
