// SPDX-License-Identifier: MIT
/*
 * arm64_init.c - the first process of tools/test-arm64's machine: runs the tests of per-CPU memory
 * and masks one after the other, says how each went and turns the machine off.
 *
 * modes.c runs with the C library's registration, with our own, and with none (both refused by the
 * tunable and a filter are the business of x86: here the third is the atomics pools of the first
 * two). "full" programs take a divisor of their counts, since the machine is emulated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *program, *arg, *name, *value;
} steps[] = {
	{"/straight", NULL, NULL, NULL},
	{"/modes", "cid", NULL, NULL},
	{"/modes", "own", "GLIBC_TUNABLES", "glibc.pthread.rseq=0"},
	{"/abort", NULL, NULL, NULL},
	{"/appear", "3", NULL, NULL},
	{"/enomem", NULL, NULL, NULL},
	{"/test_percpu_alloc", NULL, NULL, NULL},
	{"/test_counter", NULL, NULL, NULL},
	{"/test_cpumask", NULL, NULL, NULL},
	{"/test_cpulist", NULL, NULL, NULL},
};

static int run(unsigned int i)
{
	char *argv[] = {(char *)steps[i].program, (char *)steps[i].arg, NULL};
	time_t begin = time(NULL);
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		setenv("MC_TEST_SCALE", "4", 1);
		if (steps[i].name)
			setenv(steps[i].name, steps[i].value, 1);
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("%s: skipped\n", argv[0]);
	else
		printf("%s %s: %s (status %#x, %ld s)\n", argv[0], argv[1] ? argv[1] : "",
		       status ? "FAILED" : "passed", status, (long)(time(NULL) - begin));
	return status != 0;
}

int main(void)
{
	struct utsname u;
	int bad = 0;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	uname(&u);
	printf("Linux %s %s, %ld CPUs, pages of %ld KiB\n", u.release, u.machine,
	       sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_PAGESIZE) / 1024);
	for (unsigned int i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		bad += run(i);
	printf("test-arm64: %s\n", bad ? "FAILED" : "passed");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
