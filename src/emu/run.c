// SPDX-License-Identifier: MIT
/*
 * run.c - emu_run(): prepares the emulated machine, forks the supervisor and becomes the waiter.
 * Called by cmd_run.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/internal.h"

struct mc_render *emu_render(struct emu *emu)
{
	return emu->render;
}

const struct emu_options *emu_options(const struct emu *emu)
{
	return emu->opt;
}

struct mc_topology *emu_topology(struct emu *emu)
{
	return atomic_load_explicit(&emu->topo, memory_order_acquire);
}

void **emu_policy_state(struct emu *emu)
{
	return &emu->policy_state;
}

static int open_trace(struct emu *emu, struct mc_error *error)
{
	const char *name = emu->opt->trace;

	emu->trace_fd = -1;
	emu->complain_fd = emu->opt->strict ? fcntl(2, F_DUPFD_CLOEXEC, 10) : -1;
	if (!name)
		return 0;
	if (!strcmp(name, "-"))
		emu->trace_fd = fcntl(2, F_DUPFD_CLOEXEC, 10);
	else
		emu->trace_fd =
			open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (emu->trace_fd >= 0)
		return 0;
	error->err = errno;
	snprintf(error->text, sizeof(error->text),
		 "opening the trace: %.200s: %s; name a file that can be written", name,
		 strerror(errno));
	return -error->err;
}

/* Callers are known by their ids in our own namespace, and looked up by them: with another one's
 * /proc, or none, nothing would be answered. */
static int check_proc(struct mc_error *error)
{
	char self[32] = "";

	(void)!readlink("/proc/self", self, sizeof(self) - 1);
	if (atoi(self) == getpid())
		return 0;
	error->err = ESRCH;
	snprintf(error->text, sizeof(error->text),
		 "reading /proc/self: %s; mount the /proc of this pid namespace (unshare --mount-proc)",
		 self[0] ? "it is of another pid namespace" : "there is none");
	return -error->err;
}

static int prepare(struct emu *emu, struct mc_error *error)
{
	int rc = check_proc(error);

	if (!rc)
		rc = emu_cpus_init(emu, error);
	if (rc < 0)
		return rc;
	rc = open_trace(emu, error);
	if (rc < 0)
		return rc;
	if (emu->opt->nr_policy) {
		rc = emu_policy_check(emu->opt, error);
		if (rc < 0)
			return rc;
	}
	emu_tasks_init(emu);
	emu_policy_live(emu, &emu->live);
	emu->live.arg = emu;
	emu->render = mc_render_new(emu_topology(emu), &emu->live);
	if (!emu->render) {
		snprintf(error->text, sizeof(error->text), "rendering the machine: %s",
			 strerror(errno));
		return -errno;
	}
	return 0;
}

/* A name for the private folder, so that whoever is left can remove it. folder.c knows its form. */
static void name_tree(struct emu *emu)
{
	static const char *const places[] = {"/dev/shm", "/tmp", "/var/tmp"};
	uint64_t salt = 0;
	size_t i = 0;

	while (i + 1 < sizeof(places) / sizeof(places[0]) && access(places[i], W_OK | X_OK) < 0)
		i++;
	(void)!getrandom(&salt, sizeof(salt), 0);
	snprintf(emu->tree_path, sizeof(emu->tree_path), "%s/manycore.%d.%016llx.run", places[i],
		 getpid(), (unsigned long long)salt);
}

const int emu_limits[EMU_LIMITS] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA,
				    RLIMIT_CPU};

/* What bounds the command must not hit guard and supervisor: a descriptor is held for each process
 * of the tree, its CPU time, files and memory are not the command's. The command gets the caller's
 * limits back. Root raises them all, others as far as they may. */
static void raise_limits(const struct rlimit *limits)
{
	for (int i = 0; i < EMU_LIMITS; i++) {
		struct rlimit now = limits[i], more = {RLIM_INFINITY, RLIM_INFINITY};

		if (emu_limits[i] == RLIMIT_NOFILE)
			more = (struct rlimit){1 << 16, 1 << 16};
		if (now.rlim_max < more.rlim_max &&
		    !setrlimit((__rlimit_resource_t)emu_limits[i], &more))
			continue;
		now.rlim_cur = now.rlim_max;
		setrlimit((__rlimit_resource_t)emu_limits[i], &now);
	}
}

/* The machine's files are written by the supervisor. */
static bool too_small(const struct rlimit *limits)
{
	if (!geteuid() || limits[1].rlim_max >= 4 << 20)
		return false;
	fputs("manycore run: writing the rendered machine: the limit of file sizes is below 4 MiB; "
	      "raise it (ulimit -Hf unlimited)\n",
	      stderr);
	return true;
}

/*
 * The guard stands between waiter and supervisor for the time after the command's end, when daemons
 * are left and the waiter is gone: a subreaper that does nothing but wait for the supervisor. If
 * that is killed, the tree becomes the guard's, and is killed with it; if the guard is killed, the
 * supervisor sees it.
 */
static _Noreturn void guard(struct emu *emu, struct emu_start *start, int sock)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct emu_msg msg = {.kind = EMU_MSG_FAIL, .status = 125};
	pid_t pid;

	setpgid(0, 0);
	raise_limits(start->limits);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	start->guard = getpid();
	pid = fork();
	if (!pid) {
		close(null);
		emu_supervisor(emu, start, sock);
	}
	if (pid < 0) {
		snprintf(msg.text, sizeof(msg.text),
			 "starting the supervisor: fork: %s; raise the limit of processes (ulimit -u)",
			 strerror(errno));
		emu_msg_send(sock, &msg, -1);
	}
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0U, 0);
	emu_kill_reserve();
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	emu_kill_descendants(getpid());
	emu_remove_tree(emu->tree_path);
	_exit(0);
}

/* Closed standard streams: what is opened next would take their place. Closed again for the
 * command, by its exec. */
static void fill_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
			return;
}

int emu_run(const struct emu_options *options, char **argv)
{
	struct emu *emu = calloc(1, sizeof(*emu));
	struct emu_start start = {.argv = argv, .group = getpgrp()};
	struct mc_error error = {.text = ""};
	struct sigaction chld;
	sigset_t all;
	int pair[2];
	pid_t pid;

	fill_streams();
	/* Where it is ignored, ends of children are not told. The command ignores it again. */
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &chld);
	start.ignores_chld = chld.sa_handler == SIG_IGN;
	if (!emu) {
		fputs("manycore run: starting: out of memory\n", stderr);
		return 125;
	}
	if (emu_filter_busy()) {
		fputs("manycore run: installing the seccomp filter: this process: another listener "
		      "is above it (a nested "
		      "run or a container manager's); run outside of it\n",
		      stderr);
		return 125;
	}
	for (int i = 0; i < EMU_LIMITS; i++)
		getrlimit((__rlimit_resource_t)emu_limits[i], &start.limits[i]);
	if (too_small(start.limits))
		return 125;
	emu->opt = options;
	emu->in_userns = geteuid() != 0;
	name_tree(emu);
	emu->tree = emu->tree_apart = emu->listener = emu->waiter = -1;
	atomic_store(&emu->topo, options->topo);
	if (prepare(emu, &error) < 0) {
		fprintf(stderr, "manycore run: %s\n", error.text);
		return 125;
	}
	/* From here on nothing may interrupt us between two steps of the set-up. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &start.mask);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || (pid = fork()) < 0) {
		fprintf(stderr, "manycore run: starting the supervisor: %s; raise the limit of processes (ulimit "
				"-u)\n",
			strerror(errno));
		return 125;
	}
	if (!pid) {
		close(pair[0]);
		guard(emu, &start, pair[1]);
	}
	close(pair[1]);
	return emu_waiter(pid, pair[0], emu->tree_path);
}
