// SPDX-License-Identifier: MIT
/*
 * doctor_ns.c - probes of namespaces, mounts and the memory of other processes: what the namespace
 * view, reading a program's arguments and patching its vDSO need. As root they are tried for root,
 * and said so.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/doctor.h"
#include "emu/internal.h"

enum { STEP_UNSHARE = 1, STEP_MAP, STEP_MOUNT };
enum { STEP_OPEN = STEP_MAP }; /* of /dev/fuse */

/* A step and an errno value in one exit status: errno values of these steps are below 64. */
static int failed(int step, int err)
{
	return step << 6 | (err & 63);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

static int bind_over_sysfs(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return errno;
	/* Any folder does: it is seen in this child's namespace only, which ends at once. */
	if (mount("/proc/self", "/sys/devices/system/cpu", NULL, MS_BIND, NULL) != 0)
		return errno;
	return 0;
}

static int enter_user_namespace(uid_t uid, gid_t gid)
{
	char map[64];
	int err;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return failed(STEP_UNSHARE, errno);
	err = write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", (unsigned int)gid, (unsigned int)gid);
	if (!err)
		err = write_file("/proc/self/gid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", (unsigned int)uid, (unsigned int)uid);
	if (!err)
		err = write_file("/proc/self/uid_map", map);
	return err ? failed(STEP_MAP, err) : 0;
}

static int try_user_namespace(void *arg)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int rc;

	(void)arg;
	/* Root may always: the question is what an ordinary user may. */
	if (uid == 0) {
		uid = gid = 65534;
		if (syscall(SYS_setresgid, gid, gid, gid) != 0 ||
		    syscall(SYS_setresuid, uid, uid, uid) != 0)
			return failed(STEP_UNSHARE, errno);
		prctl(PR_SET_DUMPABLE, 1); /* else the maps belong to root */
	}
	rc = enter_user_namespace(uid, gid);
	if (rc)
		return rc;
	rc = bind_over_sysfs();
	return rc ? failed(STEP_MOUNT, rc) : 0;
}

static void userns_remedy(struct doctor_result *r, int step)
{
	if (doctor_number("/proc/sys/user/max_user_namespaces", 1) == 0)
		doctor_remedy(r, "sysctl -w user.max_user_namespaces=15000");
	else if (doctor_number("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		doctor_remedy(r, "sysctl -w kernel.unprivileged_userns_clone=1");
	else if (doctor_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1)
		doctor_remedy(r, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an "
				 "AppArmor profile for "
				 "manycore with 'userns,' (see apparmor)");
	else if (step == STEP_UNSHARE)
		doctor_remedy(r,
			      "in a container: allow unshare and mount (docker run --security-opt "
			      "seccomp=unconfined); under chroot: use pivot_root; or nothing: the "
			      "calls view is used");
	else
		doctor_remedy(r, "a security module forbids it: see its log (dmesg); or nothing: "
				 "the calls view is used");
}

void doctor_user_namespace(struct doctor_result *r)
{
	static const char *const what[] = {"", "unshare", "uid_map", "mount"};
	int rc = doctor_in_child(try_user_namespace, NULL);

	if (!rc) {
		doctor_value(r, "allowed");
		doctor_meaning(r, "an ordinary user can mount over /sys: the namespace view works");
		return;
	}
	r->state = DOCTOR_LIMITED;
	if (rc == 255)
		doctor_value(r, "the probe died");
	else
		doctor_value(r, "%s: %s", what[(rc >> 6) & 3], strerror(rc & 63));
	doctor_meaning(r, "for ordinary users 'manycore run' uses the calls view: a little slower "
			  "opens, the same machine");
	userns_remedy(r, rc >> 6);
}

static int try_root_mount(void *arg)
{
	int err;

	(void)arg;
	if (unshare(CLONE_NEWNS) != 0)
		return failed(STEP_UNSHARE, errno);
	err = bind_over_sysfs();
	return err ? failed(STEP_MOUNT, err) : 0;
}

void doctor_mounts(struct doctor_result *r)
{
	int rc;

	if (getuid() != 0) {
		doctor_value(r, "not root");
		doctor_meaning(r, "an ordinary user's mounts are made in a user namespace: see "
				  "user-namespace");
		return;
	}
	rc = doctor_in_child(try_root_mount, NULL);
	if (!rc) {
		doctor_value(r, "allowed");
		doctor_meaning(r, "root can mount over /sys without a user namespace: setuid "
				  "programs and seteuid work inside");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_value(r, "%s: %s", rc >> 6 == STEP_UNSHARE ? "unshare" : "mount",
		     rc == 255 ? "died" : strerror(rc & 63));
	doctor_meaning(r, "root here has no right to mount (a container): 'manycore run' uses the "
			  "calls view");
	doctor_remedy(
		r, "docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined; or nothing");
}

/* As `run` mounts it, nobody answering: nothing asks. */
static int try_fuse(void *arg)
{
	char options[128];
	int fd, rc;

	(void)arg;
	if (getuid() != 0) {
		rc = enter_user_namespace(getuid(), getgid());
		if (rc)
			return rc;
	} else if (unshare(CLONE_NEWNS) != 0) {
		return failed(STEP_UNSHARE, errno);
	}
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return failed(STEP_OPEN, errno);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return failed(STEP_MOUNT, errno);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd,
		 (unsigned int)getuid(), (unsigned int)getgid());
	if (mount("manycore", "/sys/devices/system/cpu", "fuse", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  options) != 0)
		return failed(STEP_MOUNT, errno);
	return 0;
}

void doctor_fuse(struct doctor_result *r)
{
	int rc = doctor_in_child(try_fuse, NULL);
	struct stat st;

	if (!rc && (getuid() != 0 || (stat("/dev/fuse", &st) == 0 && (st.st_mode & 6) == 6))) {
		doctor_value(r, "allowed");
		doctor_meaning(r, "machines of any size are shown at no cost to their start, calls that name "
				  "files are not slowed, and writes to cpuN/online fail as the kernel's");
		return;
	}
	r->state = DOCTOR_LIMITED;
	if (!rc)
		doctor_value(r, "root only");
	else if (rc == 255)
		doctor_value(r, "the probe died");
	else
		doctor_value(r, "%s: %s", rc >> 6 == STEP_OPEN ? "/dev/fuse" :
					  rc >> 6 == STEP_MOUNT ? "mount" : "unshare",
			     strerror(rc & 63));
	doctor_meaning(r,
		       "%sthe machine's files are made on a tmpfs: above 64 CPUs stat, access and "
		       "readlink are then slower, and writes to cpuN/online always succeed",
		       rc ? "" : "for ordinary users ");
	doctor_remedy(r, "modprobe fuse, and chmod 666 /dev/fuse as udev does it; in a container: docker "
			 "run --device /dev/fuse; or nothing: the same machine is shown");
}

/* A child that waits to be read, as a program in `manycore run` waits while its call is answered.
 */
struct target {
	pid_t pid;
	int done; /* closing it ends the child */
};

static volatile char target_byte = 'm';

static int target_start(struct target *t)
{
	int done[2];
	char c;

	if (pipe(done) != 0)
		return errno;
	t->pid = fork();
	if (t->pid < 0) {
		close(done[0]);
		close(done[1]);
		return EAGAIN;
	}
	if (t->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(done[1]);
		_exit(read(done[0], &c, 1) != 0);
	}
	close(done[0]);
	t->done = done[1];
	return 0;
}

static void target_end(struct target *t)
{
	close(t->done);
	while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void doctor_process_memory(struct doctor_result *r)
{
	long long yama = doctor_number("/proc/sys/kernel/yama/ptrace_scope", -1);
	struct target t = {.pid = -1, .done = -1};
	char byte = 0;
	struct iovec local = {&byte, 1}, remote = {(void *)&target_byte, 1};
	int err = target_start(&t);

	if (!err) {
		if (process_vm_readv(t.pid, &local, 1, &remote, 1, 0) != 1)
			err = errno;
		else if (byte != 'm')
			err = EIO;
		target_end(&t);
	}
	if (!err) {
		doctor_value(r, yama >= 0 ? "allowed (Yama ptrace_scope %lld)" : "allowed", yama);
		doctor_meaning(
			r, "the arguments of a descendant's system calls can be read and answered");
		return;
	}
	r->state = DOCTOR_BAD;
	doctor_value(r, "%s", strerror(err));
	doctor_meaning(
		r,
		"the arguments of a program's calls can't be read: 'manycore run' can't work here");
	if (yama >= 2)
		doctor_remedy(r,
			      "sysctl -w kernel.yama.ptrace_scope=1 (it is %lld; 3 lasts until a "
			      "reboot), or run as root",
			      yama);
	else
		doctor_remedy(r, "in a container: docker run --security-opt seccomp=unconfined, or "
				 "--cap-add SYS_PTRACE");
}

/* Writes the first byte of a descendant's vDSO back to itself: the same right that a patch needs,
 * and harmless. */
static int write_vdso(pid_t pid, unsigned long address)
{
	char path[64], byte;
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (pread(fd, &byte, 1, (off_t)address) != 1 || pwrite(fd, &byte, 1, (off_t)address) != 1)
		err = errno ? errno : EIO;
	close(fd);
	return err;
}

void doctor_vdso(struct doctor_result *r)
{
	unsigned long address = getauxval(AT_SYSINFO_EHDR);
	struct target t;
	int err;

#ifndef __x86_64__
	doctor_value(r, "not needed");
	doctor_meaning(r, "this architecture's vDSO has no getcpu");
	return;
#endif
	if (!address) {
		doctor_value(r, "no vDSO");
		doctor_meaning(r, "getcpu is a system call here and is answered");
		return;
	}
	err = target_start(&t);
	if (!err) {
		err = write_vdso(t.pid, address);
		target_end(&t);
	}
	if (!err) {
		doctor_value(r, "allowed");
		doctor_meaning(r, "getcpu through the vDSO (static programs, musl, Go) tells the "
				  "emulated CPU");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_value(r, "%s", strerror(err));
	doctor_meaning(r, "getcpu through the vDSO (sched_getcpu of musl and of static programs) "
			  "tells the real CPU");
	doctor_remedy(r, "boot with proc_mem.force_override=always, or a kernel built with "
			 "PROC_MEM_ALWAYS_FORCE");
}

/* What the supervisor does to a command: real root's in no namespace of its own, another one's in
 * one that the supervisor's user owns. */
static int try_timer_slack(void *arg)
{
	int ends[2], rc;
	pid_t pid;
	char byte = 0;

	(void)arg;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	pid = fork();
	if (pid < 0)
		return errno;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = (char)(geteuid() ? enter_user_namespace(getuid(), getgid()) : 0);
		(void)!write(ends[1], &byte, 1);
		pause();
		_exit(0);
	}
	rc = read(ends[0], &byte, 1) == 1 && !byte && emu_marks_possible(pid) ? 0 : EPERM;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return rc;
}

void doctor_timer_slack(struct doctor_result *r)
{
	int err = doctor_in_child(try_timer_slack, NULL);

	if (!err) {
		doctor_value(r, "can be set");
		doctor_meaning(
			r,
			"what tasks inherit is told by it: threads cost nothing under run, where "
			"perf is allowed too");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_value(r, "%s", strerror(err));
	doctor_meaning(r, "creations and ends of threads are notified to run: 12 to 18 us each");
	doctor_remedy(r, "allow user namespaces (see user-namespace); in a container: docker run "
			 "--cap-add SYS_NICE");
}
