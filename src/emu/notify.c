// SPDX-License-Identifier: MIT
/*
 * notify.c - the receivers: threads that take notified calls, run their handlers from table.c and
 * answer.
 *
 * Several, so that a tree on a large host is not held to one answering thread; the kernel hands
 * each call to the one that has waited longest. While all is answered quickly and one keeps up, the
 * others are parked: calls that go round several threads cost a tenth more. A receiver holds the
 * lock of the caller's process while its handler runs. The caller's memory is read and written with
 * process_vm_readv/writev: unlike /proc/PID/mem they respect the caller's page protections, and
 * follow it over exec.
 */
#include <errno.h>
#include <fcntl.h>

#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS _IOW('!', 4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

bool emu_tracing(const struct emu *emu)
{
	return emu->trace_fd >= 0;
}

void emu_trace(struct emu *emu, const char *format, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line, sizeof(line) - 1, format, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	(void)!write(emu->trace_fd, line, (size_t)n); /* one write a line: lines stay whole */
}

void emu_complain(struct emu *emu, const char *format, ...)
{
	char line[512] = "manycore run: ";
	size_t at = strlen(line);
	va_list ap;
	int n;

	if (emu->complain_fd < 0 || atomic_fetch_add(&emu->complaints, 1) >= 100)
		return;
	va_start(ap, format);
	n = vsnprintf(line + at, sizeof(line) - at - 1, format, ap);
	va_end(ap);
	at += (size_t)n < sizeof(line) - at - 1 ? (size_t)n : sizeof(line) - at - 2;
	line[at++] = '\n';
	(void)!write(emu->complain_fd, line, at);
}

static const struct {
	const char *what, *why;
} refusals[] = {
	[EMU_REFUSED_URING] = {"io_uring", "names given to it can't be answered"},
	[EMU_REFUSED_PERF] = {"perf_event_open on a CPU", "it would count on one of the host's"},
	[EMU_REFUSED_BPF] = {"a per-CPU bpf map", "it has the host's number of CPUs"},
	[EMU_REFUSED_MEMBARRIER] = {"membarrier on a CPU", "it would act on one of the host's"},
	[EMU_REFUSED_CPUSET] = {"writing a cpuset", "it would hold CPUs of the host"},
	[EMU_REFUSED_LISTENER] = {"a seccomp listener", "the emulator's is there already"},
	[EMU_REFUSED_WORD_SIZE] = {"a program of another word size", "its calls can't be answered"},
	[EMU_REFUSED_CHDIR] = {"chdir to a folder of the machine", "this host has no such folder"},
};

/* The name of the caller's program, as /proc has it. */
static void name_of(pid_t tid, char name[32])
{
	if (emu_proc_read(name, 32, "/proc/%d/comm", tid) < 0)
		name[0] = '\0';
	for (char *p = name; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = *p == '\n' ? '\0' : '?';
}

int64_t emu_refuse(struct emu_call *call, enum emu_refusal kind, int err)
{
	struct emu *emu = call->emu;
	char text[320], name[32];
	int n;

	if (emu->complain_fd < 0 || (atomic_fetch_or(&emu->refused, 1u << kind) & (1u << kind)))
		return -err;
	name_of(call->caller, name);
	n = snprintf(
		text, sizeof(text),
		"manycore run: --strict: %s was refused (%s) to process %d (%s): %s; told once\n",
		refusals[kind].what, strerrorname_np(err), call->caller, name, refusals[kind].why);
	(void)!write(emu->complain_fd, text, (size_t)n);
	return -err;
}

uint64_t emu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * The kernel handed the call over: it waited then, as surely as it would by ID_VALID now, which is
 * a system call more (a tenth of a quick answer). Only death ends its wait under
 * WAIT_KILLABLE_RECV, and in so short a time no thread dies, is reaped and has its tid dealt again.
 */
static bool is_fresh(const struct emu_call *call)
{
	enum { FRESH = 20000 };

	return call->emu->killable && emu_now() - call->received < FRESH;
}

bool emu_call_valid(struct emu_call *call)
{
	return is_fresh(call) ||
	       ioctl(call->emu->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->id) == 0;
}

static int copy(struct emu_call *call, void *ours, uint64_t theirs, size_t len, bool write_it)
{
	struct iovec here = {ours, len}, there = {(void *)(uintptr_t)theirs, len};
	pid_t tid = call->caller;
	ssize_t n;

	if (!len)
		return 0;
	n = write_it ? process_vm_writev(tid, &here, 1, &there, 1, 0)
		     : process_vm_readv(tid, &here, 1, &there, 1, 0);
	/* The tid may have become another's: what was read counts only if the call still waits. */
	if (!write_it && !emu_call_valid(call))
		return -ENOENT;
	if (n == (ssize_t)len)
		return 0;
	if (n < 0 && errno == ESRCH)
		return -ENOENT;
	return -EFAULT;
}

int emu_read(struct emu_call *call, void *to, uint64_t from, size_t len)
{
	return copy(call, to, from, len, false);
}

/* The call is checked before, not after: a caller that is gone must not have another process
 * written to. */
int emu_write(struct emu_call *call, uint64_t to, const void *from, size_t len)
{
	if (!emu_call_valid(call))
		return -ENOENT;
	return copy(call, (void *)(uintptr_t)from, to, len, true);
}

int emu_read_string(struct emu_call *call, char *to, uint64_t from, size_t size)
{
	size_t got = 0;

	while (got < size) {
		/* Never across a page end in one go: the next page may not be there. */
		size_t part = 256 - ((from + got) & 255);
		struct iovec here, there;
		char *end;
		ssize_t n;

		if (part > size - got)
			part = size - got;
		here = (struct iovec){to + got, part};
		there = (struct iovec){(void *)(uintptr_t)(from + got), part};
		n = process_vm_readv(call->caller, &here, 1, &there, 1, 0);
		if (n <= 0)
			return emu_call_valid(call) ? -EFAULT : -ENOENT;
		end = memchr(to + got, '\0', (size_t)n);
		if (end)
			return emu_call_valid(call) ? (int)(end - to) : -ENOENT;
		got += (size_t)n;
	}
	return emu_call_valid(call) ? -ENAMETOOLONG : -ENOENT;
}

int64_t emu_answer_fd(struct emu_call *call, int fd, int flags)
{
	struct seccomp_notif_addfd add = {
		.id = call->id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = (uint32_t)flags & O_CLOEXEC,
	};
	int rc = ioctl(call->emu->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	int err = errno;

	close(fd);
	if (rc < 0)
		return err == EMFILE ? -EMFILE : -ENOENT;
	call->sent = true;
	return rc;
}

static const struct emu_syscall *find_line(struct emu *emu, const struct emu_call *call)
{
	for (const struct emu_syscall *line = emu_table; line->name; line++)
		if (line->nr == call->nr && line->fn && emu_line_active(emu, line) &&
		    emu_line_passes(line, call->arg))
			return line;
	return NULL;
}

static void show(struct emu_call *call, const struct emu_syscall *line, int64_t result)
{
	char answer[64];

	if (result == EMU_CONTINUE)
		snprintf(answer, sizeof(answer), "(host)");
	else if (result < 0)
		snprintf(answer, sizeof(answer), "-%s", strerrorname_np((int)-result));
	else
		snprintf(answer, sizeof(answer), "%lld", (long long)result);
	if (call->note[0])
		emu_trace(call->emu, "[%d] %s(%s) = %s", call->caller, line->name, call->note,
			  answer);
	else
		emu_trace(call->emu, "[%d] %s(%#llx, %#llx, %#llx) = %s", call->caller, line->name,
			  (unsigned long long)call->arg[0], (unsigned long long)call->arg[1],
			  (unsigned long long)call->arg[2], answer);
}

void emu_crew_more(struct emu *emu)
{
	struct emu_crew *crew = &emu->crew;

	atomic_store_explicit(&crew->streak, 0, memory_order_relaxed);
	if (atomic_load(&crew->waiting))
		return;
	pthread_mutex_lock(&crew->lock);
	if (crew->parked > crew->called) {
		crew->called++;
		pthread_cond_signal(&crew->call);
	}
	pthread_mutex_unlock(&crew->lock);
}

/* After a number of quick answers one receiver is enough, as long as there is one. */
static void crew_rest(struct emu *emu)
{
	enum { MANY = 8 };
	struct emu_crew *crew = &emu->crew;

	if (atomic_fetch_add_explicit(&crew->streak, 1, memory_order_relaxed) < MANY ||
	    !atomic_load(&crew->waiting))
		return;
	pthread_mutex_lock(&crew->lock);
	if (atomic_load(&crew->waiting)) {
		crew->parked++;
		while (!crew->called)
			pthread_cond_wait(&crew->call, &crew->lock);
		crew->called--;
		crew->parked--;
	}
	pthread_mutex_unlock(&crew->lock);
}

/* Takes the next notification, and when. One that was there already shows that one receiver does
 * not keep up. */
static int receive(struct emu *emu, struct seccomp_notif *req, uint64_t *received)
{
	enum { AT_ONCE = 2000 };
	uint64_t start = emu_now();
	int rc;

	atomic_fetch_add(&emu->crew.waiting, 1);
	rc = ioctl(emu->listener, SECCOMP_IOCTL_NOTIF_RECV, req) < 0 ? -errno : 0;
	atomic_fetch_sub(&emu->crew.waiting, 1);
	atomic_fetch_add_explicit(&emu->crew.taken, 1, memory_order_relaxed);
	*received = emu_now();
	if (!rc && *received - start < AT_ONCE)
		emu_crew_more(emu);
	return rc;
}

static bool is_quick(const struct emu_syscall *line)
{
	return line->fn == emu_sched_getaffinity || line->fn == emu_getcpu ||
	       line->fn == emu_clone || line->fn == emu_clone3 || line->fn == emu_exit;
}

static int64_t handle(struct emu_call *call)
{
	struct emu *emu = call->emu;
	const struct emu_syscall *line = find_line(emu, call);
	struct emu_process *home;
	int64_t result;

	if (call->foreign)
		return emu_refuse(call, EMU_REFUSED_WORD_SIZE, ENOSYS);
	if (line && !is_quick(line))
		emu_crew_more(emu);
	if (!line || (call->nr == SYS_exit && emu_thread_unseen_exit(emu, call->caller)))
		return EMU_CONTINUE;
	if (atomic_load_explicit(&emu->nr_plugs, memory_order_relaxed))
		emu_plug_drain(emu);
	call->task = emu_task_get(emu, call->caller);
	if (!call->task)
		return EMU_CONTINUE; /* gone, or out of memory */
	home = call->home = call->locked = call->task->process;
	emu_call_here = call;
	result = line->fn(call);
	emu_call_here = NULL;
	emu_marks_own(emu, call->locked);
	pthread_mutex_unlock(&call->locked->lock);
	if (call->locked != home)
		emu_process_put(emu, call->locked);
	emu_process_put(emu, home);
	if (emu_tracing(emu) && (result != EMU_CONTINUE || call->note[0]))
		show(call, line, result);
	return result;
}

static void answer(struct emu_call *call, int64_t result)
{
	struct seccomp_notif_resp resp = {.id = call->id};

	if (call->sent)
		return;
	if (result == EMU_CONTINUE)
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (result < 0)
		resp.error = (int)result;
	else
		resp.val = result;
	ioctl(call->emu->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp); /* ENOENT: it is gone */
}

/* x32 has the same architecture, and numbers of its own. */
static bool is_x32(int nr)
{
#if defined(__x86_64__)
	return nr & 0x40000000;
#else
	return nr < 0;
#endif
}

/* Does no task have the filter any more? */
static bool all_gone(const struct emu *emu)
{
	struct pollfd p = {.fd = emu->listener};

	return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

static void *receiver(void *arg)
{
	struct emu *emu = arg;
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *req;
	size_t size = sizeof(*req);
	const uint32_t native = seccomp_arch_native();

	if (!syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) && sizes.seccomp_notif > size)
		size = sizes.seccomp_notif;
	req = malloc(size);
	while (req) {
		struct emu_call call = {.emu = emu};
		int rc;

		memset(req, 0, size);
		rc = receive(emu, req, &call.received);
		/* ENOENT: the caller is gone, or all are, and then it would be said for ever. */
		if (rc == -EINTR || (rc == -ENOENT && !all_gone(emu)))
			continue;
		if (rc < 0)
			break;
		call.id = req->id;
		call.caller = (pid_t)req->pid;
		call.nr = req->data.nr;
		call.foreign = req->data.arch != native || is_x32(req->data.nr);
		call.ip = req->data.instruction_pointer;
		for (int i = 0; i < 6; i++)
			call.arg[i] = req->data.args[i];
		answer(&call, handle(&call));
		crew_rest(emu);
	}
	free(req);
	return NULL;
}

/* Does the kernel know the flag? It looks at flags first: EFAULT tells that they are right. */
static bool waits_killable(void)
{
	const unsigned long flags =
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

static bool add_receiver(struct emu *emu)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	rc = pthread_create(&thread, &attr, receiver, emu);
	if (!rc)
		pthread_detach(thread);
	pthread_attr_destroy(&attr);
	return !rc;
}

/*
 * A caller's memory may be filled by another of its processes (userfaultfd, a file of FUSE), a path
 * lead through such a file system: who reads there waits, as long as that takes, and when all
 * receivers do so nobody would be answered, maybe not even the one that is waited for. Once a
 * second: when nothing was taken since though something is there, some more, twice as many each
 * time.
 */
void emu_crew_look(struct emu *emu)
{
	enum { MOST = 64 };
	struct emu_crew *crew = &emu->crew;
	struct pollfd p = {.fd = emu->listener, .events = POLLIN};
	unsigned int taken = atomic_load(&crew->taken), more = crew->more ? crew->more : 1;

	if (taken == crew->looked && !atomic_load(&crew->waiting) && poll(&p, 1, 0) > 0 &&
	    (p.revents & POLLIN))
		for (; more && crew->more < MOST && add_receiver(emu); more--)
			crew->more++;
	crew->looked = taken;
}

int emu_notify_start(struct emu *emu)
{
	unsigned int nr = emu->nr_real < 2 ? 2 : emu->nr_real > 16 ? 16 : emu->nr_real;

	/* The receiver is then woken on the caller's CPU, which is what an answer wants (Linux 6.6;
	 * else no matter). */
	ioctl(emu->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	emu->killable = waits_killable();
	for (unsigned int i = 0; i < nr; i++)
		if (!add_receiver(emu))
			return i ? 0 : -EAGAIN;
	return 0;
}
