// SPDX-License-Identifier: MIT
/*
 * doctor_limits.c - probes of the limits that surround a run: huge pages, io_uring, security
 * modules, control groups, resource limits. None of them stops `manycore run`; each says what is
 * lost.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/doctor.h"

void doctor_hugepages(struct doctor_result *r)
{
	static const char dir[] = "/sys/kernel/mm/hugepages";
	long long sum = 0;
	struct dirent *e;
	DIR *d = opendir(dir);

	if (!d) {
		r->state = DOCTOR_LIMITED;
		doctor_value(r, "none");
		doctor_meaning(r, "arenas and populate can't use huge pages");
		doctor_remedy(r, "a kernel built with CONFIG_HUGETLBFS");
		return;
	}
	while ((e = readdir(d))) {
		char path[512];
		long long total, unused;
		size_t n = strlen(r->value);

		if (strncmp(e->d_name, "hugepages-", 10) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/nr_hugepages", dir, e->d_name);
		total = doctor_number(path, 0);
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", dir, e->d_name);
		unused = doctor_number(path, 0);
		sum += unused;
		snprintf(r->value + n, sizeof(r->value) - n, "%s%s: %lld of %lld free",
			 n ? ", " : "", e->d_name + 10, unused, total);
	}
	closedir(d);
	if (sum) {
		doctor_meaning(r, "arenas and populate can use huge pages");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_meaning(r, "no reserved huge page is free: asking for them gives ENOMEM");
	doctor_remedy(r, "sysctl -w vm.nr_hugepages=N (2 MiB each); 1 GiB pages best at boot: "
			 "hugepagesz=1G hugepages=N");
}

void doctor_thp(struct doctor_result *r)
{
	char line[96];

	if (!doctor_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line))) {
		r->state = DOCTOR_LIMITED;
		doctor_value(r, "none");
		doctor_meaning(r, "memory is filled 4 KiB at a time");
		doctor_remedy(r, "a kernel built with CONFIG_TRANSPARENT_HUGEPAGE");
		return;
	}
	doctor_value(r, "%.90s", line);
	if (!strstr(line, "[never]")) {
		doctor_meaning(r, "memory can be filled 2 MiB at a time without reserving");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_meaning(r, "memory is filled 4 KiB at a time");
	doctor_remedy(r, "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled");
}

void doctor_io_uring(struct doctor_result *r)
{
	struct io_uring_params params;
	long fd;

	memset(&params, 0, sizeof(params));
	fd = syscall(SYS_io_uring_setup, 1, &params);
	if (fd >= 0) {
		close((int)fd);
		doctor_value(r, "available");
		doctor_meaning(r, "programs inside may use it; in the calls view what they open "
				  "through it is the real machine's");
		return;
	}
	/* Not a limitation: programs fall back, and every open can then be answered. */
	doctor_value(r, "%s", strerror(errno));
	doctor_meaning(r, "programs inside do without it, as outside");
}

void doctor_apparmor(struct doctor_result *r)
{
	long long restricted =
		doctor_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0);
	char label[64];

	if (!doctor_line("/proc/self/attr/apparmor/current", label, sizeof(label)) &&
	    !doctor_line("/proc/self/attr/current", label, sizeof(label)))
		snprintf(label, sizeof(label), "none");
	doctor_value(r, "label %s, user namespaces %s", label,
		     restricted ? "restricted" : "not restricted");
	if (!restricted || getuid() == 0) {
		doctor_meaning(r, "no security module takes rights from a user namespace");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_meaning(r, "namespaces without a profile have no rights: for ordinary users the "
			  "calls view is used");
	doctor_remedy(
		r,
		"/etc/apparmor.d/manycore: 'profile manycore PATH flags=(unconfined) { userns, }', "
		"then "
		"apparmor_parser -r; or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
}

/* The value of a controller's file in this process's group: v2's, then v1's places. */
static bool cgroup_line(const char *v2, const char *v1, char *line, size_t size)
{
	char path[512], group[256];
	FILE *f = fopen("/proc/self/cgroup", "re");
	bool found = false;

	while (f && fgets(group, sizeof(group), f)) {
		char *at = strstr(group, "::");

		group[strcspn(group, "\n")] = '\0';
		if (!strncmp(group, "0::", 3) && at) {
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", at + 2, v2);
			found = doctor_line(path, line, size);
			break;
		}
	}
	if (f)
		fclose(f);
	/* A container's own view shows its group at the top. */
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", v2);
	if (!found)
		found = doctor_line(path, line, size);
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", v1);
	return found || doctor_line(path, line, size);
}

void doctor_cgroup(struct doctor_result *r)
{
	char memory[64], pids[64];
	bool limited_memory, limited_pids;

	if (!cgroup_line("memory.max", "memory/memory.limit_in_bytes", memory, sizeof(memory)))
		strcpy(memory, "max");
	if (!cgroup_line("pids.max", "pids/pids.max", pids, sizeof(pids)))
		strcpy(pids, "max");
	/* v1's "no limit" is a number near 2^63. */
	limited_memory = strcmp(memory, "max") != 0 && strlen(memory) < 19;
	limited_pids = strcmp(pids, "max") != 0 && atoll(pids) < 1024;
	doctor_value(r, "memory %s, pids %s", limited_memory ? memory : "max", pids);
	if (limited_pids) {
		r->state = DOCTOR_LIMITED;
		doctor_meaning(r, "programs that start a thread for each emulated CPU may fail");
		doctor_remedy(
			r,
			"raise pids.max of the group (docker run --pids-limit, systemd TasksMax=)");
	} else {
		doctor_meaning(r, limited_memory ? "filling memory beyond the limit gives an "
						   "error, not a killed process"
						 : "no limit of the group is in the way");
	}
}

void doctor_rlimits(struct doctor_result *r)
{
	struct rlimit files, tasks;

	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_NPROC, &tasks);
	doctor_value(r, "files %llu of %llu, processes %lld", (unsigned long long)files.rlim_cur,
		     (unsigned long long)files.rlim_max, (long long)tasks.rlim_cur);
	if (files.rlim_max < 4096 || (getuid() != 0 && tasks.rlim_cur < 1024)) {
		r->state = DOCTOR_LIMITED;
		doctor_meaning(r, "trees of very many processes, or a thread for each emulated "
				  "CPU, may fail");
		doctor_remedy(r, "ulimit -n 65536; ulimit -u 16384 (limits.conf, systemd "
				 "LimitNOFILE= and LimitNPROC=)");
		return;
	}
	doctor_meaning(r, "large trees of processes fit");
}
