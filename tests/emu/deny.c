// SPDX-License-Identifier: MIT
/* deny.c - runs a command that may neither unshare nor mount, as in a default container. */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	if (argc < 2 || !ctx || seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 0) ||
	    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(mount), 0) || seccomp_load(ctx)) {
		fputs("deny: no filter\n", stderr);
		return 2;
	}
	seccomp_release(ctx);
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 2;
}
