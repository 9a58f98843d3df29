// SPDX-License-Identifier: MIT
/*
 * bench_run_notify.c - the peer of the case answered-call: what a seccomp notification costs at the
 * least. The supervisor receives and answers with a constant: nothing is read, nothing written,
 * nothing looked up; and it asks for the synchronous wake-up where the kernel has it, as the
 * emulator may. The worker's filter looks at one call only.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cmd/bench/bench_run.h"

#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
enum { ANSWER = 64 }; /* what sched_getaffinity of a 512-CPU machine returns */

static int send_fd(int to, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = room,
			   .msg_controllen = sizeof(room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

static int receive_fd(int from)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = room,
			   .msg_controllen = sizeof(room)};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != 1)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

/* The worker: a filter on itself, its listener to the supervisor, then the usual service. */
static int notified_worker(int socket)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};
	long fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 1;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		     &program);
	if (fd < 0 || send_fd(socket, (int)fd) != 0)
		return 1;
	close((int)fd);
	close(socket);
	return bench_run_worker();
}

/* Answers until the last user of the filter is gone. */
static int supervise(int listener)
{
	/* The kernel may have more fields than these headers. */
	union {
		struct seccomp_notif n;
		char room[512];
	} u;
	union {
		struct seccomp_notif_resp r;
		char room[512];
	} answer;

	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	for (;;) {
		memset(&u.n, 0, sizeof(u.n));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &u.n) != 0) {
			struct pollfd p = {.fd = listener, .events = POLLIN};

			/* ENOENT: the caller was interrupted, or all are gone. */
			if (errno != ENOENT && errno != EINTR)
				return 1;
			if (poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
				return 0;
			continue;
		}
		memset(&answer, 0, sizeof(answer));
		answer.r.id = u.n.id;
		answer.r.val = ANSWER;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.r);
	}
}

static int supervisor(void)
{
	int pair[2], listener;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return 1;
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		_exit(notified_worker(pair[1]));
	}
	close(pair[1]);
	/* The pipes are the worker's alone: its end must be seen by the bench. */
	close(0);
	close(1);
	listener = receive_fd(pair[0]);
	return listener < 0 ? 1 : supervise(listener);
}

int bench_notify_start(struct bench_worker *w)
{
	int in[2], out[2];

	if (pipe(in) != 0)
		return -errno;
	if (pipe(out) != 0) {
		close(in[0]);
		close(in[1]);
		return -EMFILE;
	}
	fflush(stdout); /* the worker would send what is buffered as its answer */
	w->pid = fork();
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int i = 0; i < 2; i++) {
			close(in[i]);
			close(out[i]);
		}
		_exit(supervisor());
	}
	close(in[0]);
	close(out[1]);
	w->to = in[1];
	w->from = out[0];
	return w->pid < 0 ? -EAGAIN : 0;
}
