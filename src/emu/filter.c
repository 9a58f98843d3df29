// SPDX-License-Identifier: MIT
/*
 * filter.c - the seccomp filter, generated from table.c with libseccomp.
 *
 * libseccomp makes the program; we load it ourselves, since the library of the distributions does
 * not know SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux 5.19): with it, a signal no longer
 * interrupts a call that is being answered, which under a fast interval timer would never complete.
 * Run by the child, just before its exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/internal.h"

bool emu_line_active(const struct emu *emu, const struct emu_syscall *line)
{
	if ((line->when & EMU_WHEN_STRICT) && !emu->opt->strict)
		return false;
	if ((line->when & EMU_WHEN_LOOSE) && emu->opt->strict)
		return false;
	if ((line->when & EMU_WHEN_RSEQ) && emu->opt->rseq_real)
		return false;
	if ((line->when & EMU_WHEN_CALLS) && emu->view != EMU_VIEW_CALLS)
		return false;
	if ((line->when & EMU_WHEN_LAZY) && !emu->lazy)
		return false;
	if ((line->when & EMU_WHEN_NOTED) && emu->marked)
		return false;
	if ((line->when & EMU_WHEN_MARKED) && !emu->marked)
		return false;
	return true;
}

bool emu_line_passes(const struct emu_syscall *line, const uint64_t *arg)
{
	uint64_t value = arg[line->test_arg];

	switch (line->test) {
	case EMU_IF_BITS:
		return (value & line->test_mask) == line->test_value;
	case EMU_IF_NOT:
		return value != line->test_value;
	case EMU_IF_BELOW:
		return value < line->test_value;
	case EMU_IF_FROM:
		return value >= line->test_value;
	default:
		return true;
	}
}

static int add_rules(struct emu *emu, scmp_filter_ctx ctx)
{
	static const enum scmp_compare ops[] = {
		[EMU_IF_BITS] = SCMP_CMP_MASKED_EQ,
		[EMU_IF_NOT] = SCMP_CMP_NE,
		[EMU_IF_BELOW] = SCMP_CMP_LT,
		[EMU_IF_FROM] = SCMP_CMP_GE,
	};

	for (const struct emu_syscall *line = emu_table; line->name; line++) {
		uint32_t action = line->fn ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(line->error);
		int rc;

		if (!emu_line_active(emu, line))
			continue;
		if (line->test != EMU_ALWAYS) {
			struct scmp_arg_cmp test = {
				.arg = line->test_arg,
				.op = ops[line->test],
				.datum_a = line->test == EMU_IF_BITS ? line->test_mask
								     : line->test_value,
				.datum_b = line->test_value,
			};

			rc = seccomp_rule_add_exact_array(ctx, action, line->nr, 1, &test);
		} else {
			rc = seccomp_rule_add_exact_array(ctx, action, line->nr, 0, NULL);
		}
		if (rc < 0 && rc != -EEXIST)
			return rc;
	}
	return 0;
}

/* The program as bytes; *len in bytes. NULL with errno. Through a pipe, which holds the longest one
 * (4096 instructions): a file could be too long for the caller's limits. */
static struct sock_filter *make_program(struct emu *emu, size_t *len)
{
	const size_t room = BPF_MAXINSNS * sizeof(struct sock_filter);
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	struct sock_filter *prog = malloc(room);
	int ends[2] = {-1, -1}, rc = -ENOMEM;
	ssize_t n;

	if (!ctx || !prog)
		goto out;
	/* Programs of another word size run unanswered: they see the host (limits.md), or, where
	 * that is not wanted, nothing at all. */
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
			       emu->opt->strict ? SCMP_ACT_NOTIFY : SCMP_ACT_ALLOW);
	rc = add_rules(emu, ctx);
	if (rc < 0)
		goto out;
	rc = pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : seccomp_export_bpf(ctx, ends[1]);
	if (rc < 0)
		goto out;
	n = read(ends[0], prog, room);
	rc = n < 0 ? -errno : 0;
	*len = n > 0 ? (size_t)n : 0;
out:
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	if (ctx)
		seccomp_release(ctx);
	if (rc < 0) {
		free(prog);
		errno = -rc;
		return NULL;
	}
	return prog;
}

/* Only one listener can be above a process. Tried in a child, and only where some filter is there
 * already. */
bool emu_filter_busy(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {1, &allow};
	int status = 0;
	pid_t pid;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return false;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog) < 0 &&
		      errno == EBUSY);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status);
}

/* Before Linux 5.14 an open can't be answered with a file in one step, and every one of /proc and
 * /sys would fail with some error: told at the start instead. Flags are looked at first, then the
 * descriptor (EBADF). */
static bool knows_send(int listener)
{
	struct seccomp_notif_addfd add = {.flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = UINT32_MAX};

	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0 ||
	       (errno != EINVAL && errno != ENOTTY);
}

int emu_filter_load(struct emu *emu, const char **step)
{
	static const unsigned long flags[] = {
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
			SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW,
	};
	struct sock_fprog prog;
	size_t len;
	int fd = -1;

	*step = "making the seccomp filter";
	len = 0;
	prog.filter = make_program(emu, &len);
	if (!prog.filter)
		return -errno;
	prog.len = (unsigned short)(len / sizeof(struct sock_filter));
	*step = "installing the seccomp filter";
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], &prog);
		/* Root needs no no_new_privs, and su or sudo go on working without it. */
		if (fd < 0 && errno == EACCES) {
			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
				break;
			fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], &prog);
		}
		if (fd >= 0 || errno != EINVAL)
			break;
	}
	fd = fd < 0 ? -errno : fd;
	free(prog.filter);
	if (fd >= 0 && !knows_send(fd)) {
		*step = "answering opens with files (Linux 5.14)";
		return -EOPNOTSUPP;
	}
	return fd;
}
