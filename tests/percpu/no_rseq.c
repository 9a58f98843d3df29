// SPDX-License-Identifier: MIT
/* no_rseq.c - runs a command whose rseq(2) is answered ENOSYS, as on old kernels and under manycore
 * run. Needs no privilege. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <seccomp.h>

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (argc < 2) {
		fprintf(stderr, "usage: no_rseq COMMAND [ARGUMENT]...\n");
		return 2;
	}
	if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(rseq), 0) ||
	    seccomp_load(filter)) {
		fprintf(stderr, "no_rseq: the filter could not be installed\n");
		return 1;
	}
	seccomp_release(filter);
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 1;
}
