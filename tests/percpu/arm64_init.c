// SPDX-License-Identifier: MIT
/*
 * arm64_init.c - the first process of tools/test-arm64's machine: runs modes.c with the
 * registration of the C library (Linux 6.1 has no mm_cid: CPU ids), with its own, and with atomics,
 * says how it went and turns the machine off.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char *const argv[], const char *name, const char *value)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		setenv("MC_TEST_SCALE", "20", 1);
		if (name)
			setenv(name, value, 1);
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	printf("%s %s: %s (status %#x)\n", argv[0], argv[1], status ? "FAILED" : "passed", status);
	return status != 0;
}

int main(void)
{
	char *cid[] = {(char *)"/modes", (char *)"cid", NULL},
	     *own[] = {(char *)"/modes", (char *)"own", NULL};
	struct utsname u;
	int bad;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	uname(&u);
	printf("Linux %s %s, %ld CPUs\n", u.release, u.machine, sysconf(_SC_NPROCESSORS_ONLN));
	bad = run(cid, NULL, NULL);
	bad += run(own, "GLIBC_TUNABLES", "glibc.pthread.rseq=0");
	printf("test-arm64: %s\n", bad ? "FAILED" : "passed");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
