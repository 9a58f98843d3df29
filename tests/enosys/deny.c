// SPDX-License-Identifier: MIT
/*
 * deny.c - runs a command with system calls refused, so that old kernels and strict containers can
 * be tested on a new one.
 *
 * Usage: deny [-e ERRNO] [-l] CALL[:ARG&MASK=VALUE]... -- COMMAND [ARGUMENT]...
 *   -e  the error number given (default 1, EPERM; 38 is ENOSYS, an old kernel); may stand before
 *       each CALL
 *   -l  also leaves a seccomp listener open, as a container manager does: a second one gets EBUSY
 *   CALL alone is refused always; with :ARG&MASK=VALUE only when that argument, masked, has that
 *   value
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what, int err)
{
	fprintf(stderr, "deny: %s: %s\n", what, strerror(err));
	return 125;
}

static int refuse(scmp_filter_ctx filter, char *call, uint32_t error)
{
	char *condition = strchr(call, ':');
	unsigned int arg;
	unsigned long long mask, value;
	int nr;

	if (condition)
		*condition++ = '\0';
	nr = seccomp_syscall_resolve_name(call);
	if (nr == __NR_SCMP_ERROR)
		return -ENOENT;
	if (!condition)
		return seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), nr, 0);
	if (sscanf(condition, "%u&%lli=%lli", &arg, (long long *)&mask, (long long *)&value) != 3)
		return -EINVAL;
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), nr, 1,
				SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, value));
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	uint32_t error = EPERM;
	int i, rc, fd;

	if (!filter)
		return fail("seccomp_init", ENOMEM);
	for (i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "-e") && i + 1 < argc) {
			error = (uint32_t)atoi(argv[++i]);
			continue;
		}
		if (!strcmp(argv[i], "-l"))
			rc = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(acct), 0);
		else
			rc = refuse(filter, argv[i], error);
		if (rc < 0)
			return fail(argv[i], -rc);
	}
	if (i + 1 >= argc)
		return fail("no command after --", EINVAL);
	rc = seccomp_load(filter);
	if (rc < 0)
		return fail("seccomp_load", -rc);
	fd = seccomp_notify_fd(filter);
	if (fd >= 0)
		fcntl(fd, F_SETFD, 0); /* the command holds the listener: it stays */
	execvp(argv[i + 1], argv + i + 1);
	return fail(argv[i + 1], errno);
}
