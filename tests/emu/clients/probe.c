// SPDX-License-Identifier: MIT
/*
 * probe.c - one C program, built dynamic, static, and with musl by clients/compiled.py: asks the
 * machine in every way a C program can and prints "key value" lines. It judges nothing. Arguments:
 * CPUs to pin itself to, one after the other.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long mask[1024 / 8];

static int weight(int bytes)
{
	int n = 0;

	for (int i = 0; i < bytes; i++)
		n += __builtin_popcount(((unsigned char *)mask)[i]);
	return n;
}

static void show_line(const char *path, const char *key)
{
	char line[4096];
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			printf("%s", line);
	if (f)
		fclose(f);
	else
		printf("%s: errno %d\n", path, errno);
}

static int stat_cpu(void)
{
	char text[4096] = "", *p;
	FILE *f = fopen("/proc/self/stat", "r");
	int n = f ? (int)fread(text, 1, sizeof(text) - 1, f) : 0, field = 2;

	if (f)
		fclose(f);
	text[n] = '\0';
	p = strrchr(text, ')');
	while (p && field < 39) {
		p = strchr(p + 1, ' ');
		field++;
	}
	return p ? atoi(p) : -1;
}

static void show_cpu(const char *who)
{
	unsigned int cpu = 9999, node = 9999;

	syscall(SYS_getcpu, &cpu, &node, NULL);
	printf("%s sched_getcpu %d raw %u node %u stat %d\n", who, sched_getcpu(), cpu, node, stat_cpu());
}

static void *thread(void *arg)
{
	int n = (int)syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);

	printf("thread weight %d\n", weight(n));
	show_cpu("thread");
	return arg;
}

static void pin(int cpu)
{
	pthread_t t;
	pid_t pid;

	memset(mask, 0, sizeof(mask));
	mask[cpu / 64] |= 1ul << cpu % 64;
	if (syscall(SYS_sched_setaffinity, 0, sizeof(mask), mask) != 0) {
		printf("pin %d errno %d\n", cpu, errno);
		return;
	}
	printf("pinned %d\n", cpu);
	show_cpu("self");
	fflush(stdout);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		show_cpu("child");
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	show_line("/proc/self/status", "Cpus_allowed_list:");
}

int main(int argc, char **argv)
{
	struct sysinfo si;
	int n, mode = -1, rc;

	printf("online %ld\nconfigured %ld\n", sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF));
	n = (int)syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	printf("affinity bytes %d weight %d\n", n, weight(n));
	n = (int)syscall(SYS_sched_getaffinity, 0, 8, mask);
	printf("short %s\n", n < 0 ? strerror(errno) : "accepted");
	sysinfo(&si);
	printf("memory %llu MiB\n", (unsigned long long)si.totalram * si.mem_unit >> 20);
	show_line("/proc/self/status", "Mems_allowed_list:");
	memset(mask, 0, sizeof(mask));
	rc = (int)syscall(SYS_get_mempolicy, NULL, mask, 1024, NULL, 1 << 2); /* MPOL_F_MEMS_ALLOWED */
	printf("mems %d %lx\n", rc, mask[0]);
	mask[0] = 6;
	rc = (int)syscall(SYS_set_mempolicy, 3, mask, 64); /* MPOL_INTERLEAVE over 1,2 */
	mask[0] = 0;
	syscall(SYS_get_mempolicy, &mode, mask, 1024, NULL, 0);
	printf("interleave %d mode %d mask %lx\n", rc, mode, mask[0]);
	syscall(SYS_set_mempolicy, 0, NULL, 0);
	for (int i = 1; i < argc; i++)
		pin(atoi(argv[i]));
	return 0;
}
