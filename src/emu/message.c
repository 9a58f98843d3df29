// SPDX-License-Identifier: MIT
/*
 * message.c - the messages between waiter, supervisor and child, over a SOCK_SEQPACKET pair: one
 * struct a message, with at most one descriptor. Called by the three roles only.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "emu/internal.h"

int emu_msg_send(int sock, const struct emu_msg *msg, int fd)
{
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = sizeof(*msg) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr head = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		head.msg_control = &control;
		head.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&head);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do
		n = sendmsg(sock, &head, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int emu_msg_recv(int sock, struct emu_msg *msg, int *fd)
{
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr head = { .msg_iov = &iov, .msg_iovlen = 1,
			       .msg_control = &control, .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(sock, &head, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return 0;
	c = CMSG_FIRSTHDR(&head);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	if (n != (ssize_t)sizeof(*msg))
		return -EPROTO;
	msg->text[sizeof(msg->text) - 1] = '\0';
	return 1;
}
