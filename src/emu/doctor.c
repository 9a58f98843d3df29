// SPDX-License-Identifier: MIT
/*
 * doctor.c - the list of `manycore doctor`'s probes, in the order in which they are told, and what
 * the probes share. A new one: its function in doctor_*.c, its prototype in doctor.h, its line
 * here, its item in manycore-doctor(1).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/doctor.h"

const struct doctor_check doctor_checks[] = {
	{"seccomp-filter", true, doctor_seccomp_filter},
	{"seccomp-notify", true, doctor_seccomp_notify},
	{"seccomp-listener", true, doctor_seccomp_listener},
	{"seccomp-addfd-send", true, doctor_seccomp_addfd},
	{"seccomp-wait-killable", false, doctor_seccomp_killable},
	{"process-memory", true, doctor_process_memory},
	{"pidfd", true, doctor_pidfd},
	{"user-namespace", false, doctor_user_namespace},
	{"mounts", false, doctor_mounts},
	{"fuse", false, doctor_fuse},
	{"vdso-patch", false, doctor_vdso},
	{"timer-slack", false, doctor_timer_slack},
	{"apparmor", false, doctor_apparmor},
	{"perf", false, doctor_perf},
	{"io-uring", false, doctor_io_uring},
	{"rseq", false, doctor_rseq},
	{"mm-cid", false, doctor_mm_cid},
	{"membarrier", false, doctor_membarrier},
	{"mempolicy", false, doctor_mempolicy},
	{"hugepages", false, doctor_hugepages},
	{"thp", false, doctor_thp},
	{"cgroup", false, doctor_cgroup},
	{"limits", false, doctor_rlimits},
	{NULL, false, NULL},
};

static void fill(char *to, size_t size, const char *format, va_list ap)
{
	vsnprintf(to, size, format, ap);
}

void doctor_value(struct doctor_result *r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fill(r->value, sizeof(r->value), format, ap);
	va_end(ap);
}

void doctor_meaning(struct doctor_result *r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fill(r->meaning, sizeof(r->meaning), format, ap);
	va_end(ap);
}

void doctor_remedy(struct doctor_result *r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fill(r->remedy, sizeof(r->remedy), format, ap);
	va_end(ap);
}

int doctor_in_child(int (*fn)(void *arg), void *arg)
{
	int done[2], status, rc;
	pid_t pid;

	if (pipe(done) != 0)
		return 255;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(done[0]);
		_exit(fn(arg));
	}
	close(done[1]);
	if (pid > 0) {
		/* The pipe closes when the child ends: a probe that hangs must not hang the doctor.
		 */
		struct pollfd p = {.fd = done[0], .events = POLLIN};

		do {
			rc = poll(&p, 1, 10000);
		} while (rc < 0 && errno == EINTR);
		if (rc == 0)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(done[0]);
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

bool doctor_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(line, (int)size, f);
	fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

long long doctor_number(const char *path, long long otherwise)
{
	char line[64], *end;
	long long v;

	if (!doctor_line(path, line, sizeof(line)))
		return otherwise;
	v = strtoll(line, &end, 10);
	return end == line ? otherwise : v;
}
