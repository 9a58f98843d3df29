// SPDX-License-Identifier: MIT
/*
 * doctor_seccomp.c - probes of the seccomp features that `manycore run` is made of. The filters are
 * laid by hand, not by libseccomp, so that what fails is the kernel's answer and nothing else. All
 * real filters are tried in a child.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/doctor.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

static const char CONTAINER[] = "in a container: allow seccomp(2) in its profile (docker run "
				"--security-opt seccomp=unconfined; "
				"in Kubernetes seccompProfile: Unconfined)";

static long seccomp(unsigned int operation, unsigned long flags, void *args)
{
	return syscall(SYS_seccomp, operation, flags, args);
}

/* With a NULL program the kernel checks the flags first (EINVAL), then reads the program (EFAULT).
 */
static int flags_known(unsigned long flags)
{
	return seccomp(SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 ? errno : 0;
}

void doctor_seccomp_filter(struct doctor_result *r)
{
	int err = flags_known(0);

	if (err == EFAULT) {
		doctor_value(r, "available");
		doctor_meaning(r, "system calls can be filtered");
		return;
	}
	r->state = DOCTOR_BAD;
	doctor_value(r, "%s", strerror(err));
	doctor_meaning(r, "no system call can be answered: 'manycore run' can't work here");
	doctor_remedy(r, "%s; or a kernel built with CONFIG_SECCOMP_FILTER", CONTAINER);
}

void doctor_seccomp_notify(struct doctor_result *r)
{
	struct seccomp_notif_sizes sizes;
	uint32_t action = SECCOMP_RET_USER_NOTIF;

	if (seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 &&
	    seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0) {
		doctor_value(r, "available");
		doctor_meaning(r, "a supervisor can answer system calls");
		return;
	}
	r->state = DOCTOR_BAD;
	doctor_value(r, "%s", strerror(errno));
	doctor_meaning(r, "no supervisor can answer system calls: 'manycore run' can't work here");
	doctor_remedy(r, "Linux 5.9 or later, no gVisor; %s", CONTAINER);
}

/* A filter that notifies of one call, which no C library makes by itself. Returns the listener or
 * -errno. */
static int install(unsigned int nr, unsigned long flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};
	long fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	fd = seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, &program);
	return fd < 0 ? -errno : (int)fd;
}

static int try_listener(void *arg)
{
	int fd = install(SYS_acct, 0);

	(void)arg;
	return fd < 0 ? -fd : 0;
}

void doctor_seccomp_listener(struct doctor_result *r)
{
	int err = doctor_in_child(try_listener, NULL);

	if (!err) {
		doctor_value(r, "free");
		doctor_meaning(r, "no other supervisor answers this process tree's system calls");
		return;
	}
	r->state = DOCTOR_BAD;
	doctor_value(r, "%s", err == 255 ? "the probe died" : strerror(err));
	if (err == EBUSY) {
		doctor_meaning(
			r, "another supervisor listens already: a process tree can have one only");
		doctor_remedy(r, "start it outside of the other 'manycore run', or of the "
				 "container manager that intercepts "
				 "system calls (LXD: unset security.syscalls.intercept.*; crun, "
				 "runc: no seccomp listener)");
	} else {
		doctor_meaning(r, "a listener can't be installed: 'manycore run' can't work here");
		doctor_remedy(r, "%s", CONTAINER);
	}
}

void doctor_seccomp_killable(struct doctor_result *r)
{
	int err = flags_known(SECCOMP_FILTER_FLAG_NEW_LISTENER |
			      SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	if (err == EFAULT) {
		doctor_value(r, "available");
		doctor_meaning(r, "signals don't interrupt a call that is being answered");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_value(r, "%s", strerror(err));
	doctor_meaning(
		r,
		"a program that gets signals faster than calls are answered may make no progress");
	doctor_remedy(r, "Linux 5.19 or later");
}

struct addfd {
	int listener; /* -1: not yet; below: -errno */
	pthread_mutex_t lock;
	pthread_cond_t set;
	long got; /* what the answered call returned */
};

static void *addfd_caller(void *arg)
{
	struct addfd *a = arg;
	int fd = install(SYS_acct, 0);

	pthread_mutex_lock(&a->lock);
	a->listener = fd >= 0 ? fd : fd - 1;
	pthread_cond_signal(&a->set);
	pthread_mutex_unlock(&a->lock);
	if (fd >= 0)
		a->got = syscall(SYS_acct, NULL);
	return NULL;
}

/* One answered call whose answer is a descriptor. The filter is the caller thread's alone; the
 * child ends after this. */
static int try_addfd(void *arg)
{
	struct addfd a = {.listener = -1,
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .set = PTHREAD_COND_INITIALIZER,
			  .got = -1};
	struct seccomp_notif_addfd add = {.flags = SECCOMP_ADDFD_FLAG_SEND};
	/* The kernel may have more fields than these headers. */
	union {
		struct seccomp_notif n;
		char room[512];
	} u;
	struct pollfd p;
	pthread_t t;
	int source[2];

	(void)arg;
	memset(&u, 0, sizeof(u));
	if (pipe(source) != 0 || pthread_create(&t, NULL, addfd_caller, &a) != 0)
		return EAGAIN;
	pthread_mutex_lock(&a.lock);
	while (a.listener == -1)
		pthread_cond_wait(&a.set, &a.lock);
	pthread_mutex_unlock(&a.lock);
	if (a.listener < -1)
		return -(a.listener + 1);
	p = (struct pollfd){.fd = a.listener, .events = POLLIN};
	if (poll(&p, 1, 5000) != 1)
		return ETIMEDOUT;
	if (ioctl(a.listener, SECCOMP_IOCTL_NOTIF_RECV, &u.n) != 0)
		return errno;
	add.id = u.n.id;
	add.srcfd = (uint32_t)source[0];
	if (ioctl(a.listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0)
		return errno;
	pthread_join(t, NULL);
	return a.got > source[1] ? 0 : EBADF;
}

void doctor_seccomp_addfd(struct doctor_result *r)
{
	int err = doctor_in_child(try_addfd, NULL);

	if (!err) {
		doctor_value(r, "available");
		doctor_meaning(r, "an open can be answered with a file of the emulated machine");
		return;
	}
	r->state = DOCTOR_BAD;
	doctor_value(r, "%s", err == 255 ? "the probe died" : strerror(err));
	doctor_meaning(r,
		       "opens of /proc and /sys can't be answered: 'manycore run' can't work here");
	doctor_remedy(r, err == EBUSY ? "see seccomp-listener"
				      : "Linux 5.14 or later; and see seccomp-listener");
}
