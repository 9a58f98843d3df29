// SPDX-License-Identifier: MIT
/*
 * guest.c - init of the guest in which compare.py --guest runs the probe under `manycore run`: mounts what a system has,
 * runs each command of /commands (one a line, words apart by blanks) after a line "guest: N", and powers off.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 32 };

static void mount_at(const char *type, const char *where)
{
	mkdir(where, 0755);
	if (mount(type, where, type, 0, NULL) < 0)
		printf("guest: mounting %s on %s failed\n", type, where);
}

static void run(char *line, unsigned int number)
{
	char *word[WORDS + 1] = { NULL };
	unsigned int n = 0;
	int status = -1;
	pid_t pid;

	for (char *p = strtok(line, " \n"); p && n < WORDS; p = strtok(NULL, " \n"))
		word[n++] = p;
	printf("guest: %u\n", number);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execv(word[0], word);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	printf("guest: %u ended with status %x\n", number, (unsigned int)status);
	fflush(stdout);
}

int main(void)
{
	char line[1024];
	unsigned int n = 0;
	FILE *f;

	mount_at("proc", "/proc");
	mount_at("sysfs", "/sys");
	mount_at("devtmpfs", "/dev");
	mount_at("tmpfs", "/dev/shm");
	mount_at("tmpfs", "/tmp");
	mount_at("tmpfs", "/run");
	chmod("/tmp", 01777);
	f = fopen("/commands", "r");
	while (f && fgets(line, sizeof(line), f))
		run(line, n++);
	puts("guest: done");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 0;
}
