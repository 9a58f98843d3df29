// SPDX-License-Identifier: MIT
/*
 * supervisor.c - the process that answers: starts the command, its receivers (notify.c), reaps the
 * tree, tells the waiter.
 *
 * A session of its own (the terminal's signals pass it by), subreaper of the whole tree
 * (daemons stay below it, which Yama wants of those who read them). It lives until the last process
 * of the tree is gone; if the waiter dies before the command has ended, it kills the tree. All its
 * signals are blocked.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/internal.h"

/* Keys of the epoll set; the rest are process ids (pidfds). */
enum { KEY_SIGNAL = -1, KEY_WAITER = -2, KEY_GUARD = -3 };

static _Noreturn void leave(struct emu *emu)
{
	emu_remove_tree(emu->tree_path);
	_exit(0);
}

static _Noreturn void give_up(struct emu *emu, const char *format, ...)
{
	struct emu_msg msg = {.kind = EMU_MSG_FAIL, .status = 125};
	va_list ap;

	va_start(ap, format);
	vsnprintf(msg.text, sizeof(msg.text), format, ap);
	va_end(ap);
	emu_kill_descendants(getpid());
	/* First the folder, then the message: nothing is left when `run` returns. */
	emu_remove_tree(emu->tree_path);
	emu_msg_send(emu->waiter, &msg, -1);
	_exit(0);
}

/* Then ends of threads are not seen: what they touched must be known all the same. */
static bool wants_marks(struct emu *emu)
{
	return !emu->opt->strict && emu_policy_sees(emu);
}

/* Tids go round all of kernel.pid_max: at a million a second a small one may be through at once. */
static uint64_t tids_last(void)
{
	enum { USUAL = 32768, TEN_MS = 10000000 };
	char text[24];

	return emu_proc_read(text, sizeof(text), "/proc/sys/kernel/pid_max") > 0 &&
			       atol(text) >= USUAL
		       ? TEN_MS
		       : 0;
}

/* Forks the child and talks with it until it waits for GO. False: the view can't be had (emu->why).
 */
static bool start_child(struct emu *emu, const struct emu_start *start, int *sock)
{
	struct mc_error error = {.text = ""};
	struct emu_msg msg;
	int pair[2], fd, rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		give_up(emu, "starting the command: socketpair: %s", strerror(errno));
	emu->marked =
		emu->view == EMU_VIEW_CALLS && wants_marks(emu) && emu_marks_possible(start->guard);
	emu->first = fork();
	if (emu->first < 0)
		give_up(emu, "starting the command: fork: %s; raise the limit of processes (ulimit -u)",
			strerror(errno));
	if (!emu->first) {
		close(pair[0]);
		emu_child(emu, start, pair[1]);
	}
	close(pair[1]);
	setpgid(emu->first, start->group);
	*sock = pair[0];
	for (;;) {
		rc = emu_msg_recv(pair[0], &msg, &fd);
		if (rc <= 0)
			give_up(emu, "starting the command: it was killed before it began");
		if (msg.kind == EMU_MSG_FAIL) {
			emu_msg_send(emu->waiter, &msg, -1);
			leave(emu);
		}
		if (msg.kind == EMU_MSG_NOVIEW) {
			snprintf(emu->why, sizeof(emu->why), "%.250s", msg.text);
			waitpid(emu->first, NULL, 0);
			close(pair[0]);
			return false;
		}
		if (msg.kind == EMU_MSG_FUSE) {
			rc = emu_fuse_start(emu, fd);
			if (rc < 0)
				give_up(emu, "showing the machine: a thread that answers: %s",
					strerror(-rc));
			emu->lazy = false;
			msg.kind = EMU_MSG_GO;
			emu_msg_send(pair[0], &msg, -1);
		}
		if (msg.kind == EMU_MSG_ROOT) {
			emu->tree = fd;
			/* In a user namespace of its own from now on. */
			emu->marked = wants_marks(emu) && emu_marks_possible(emu->first);
			if (!emu->fuse && emu_tree_prepare(emu, &error) < 0)
				give_up(emu, "%s", error.text);
			msg.kind = EMU_MSG_GO;
			msg.status = emu->marked;
			emu_msg_send(pair[0], &msg, -1);
		}
		if (msg.kind == EMU_MSG_LISTENER) {
			emu->listener = fd;
			emu->userns = msg.userns;
			return true;
		}
	}
}

/* Which folders the namespace view can cover: those that the machine and the host have. False when
 * the two differ in a folder that matters: then only answered calls can show (or hide) it. */
static bool choose_mounts(struct emu *emu)
{
	bool good = true;
	struct stat st;

	emu->mounted = 0;
	for (int i = 0; emu_roots[i]; i++) {
		bool here = mc_render_stat(emu->render, emu_roots[i], &st) == 0;
		bool there = stat(emu_roots[i], &st) == 0;

		if (here && there)
			emu->mounted |= 1u << i;
		else if (here != there && i < 2)
			good = false;
	}
	return good;
}

static void start_view(struct emu *emu, const struct emu_start *start, int *sock)
{
	struct mc_error error = {.text = ""};
	int wanted = emu->opt->view;
	bool fits = choose_mounts(emu);

	if (wanted == EMU_VIEW_AUTO && !fits) {
		wanted = EMU_VIEW_CALLS;
		snprintf(emu->why, sizeof(emu->why),
			 "this host and the machine differ in having a node folder");
	}
	if (wanted != EMU_VIEW_CALLS) {
		emu->view = EMU_VIEW_NAMESPACE;
		/* A small tree is made whole, and then calls that name files need no help. */
		emu->lazy = mc_topology_nr_cpu_ids(emu_topology(emu)) > 64 ||
			    mc_topology_nr_node_ids(emu_topology(emu)) > 64;
		if (start_child(emu, start, sock))
			return;
		if (wanted == EMU_VIEW_NAMESPACE)
			give_up(emu,
				"showing the machine: namespace view: %s; use --view=calls or see "
				"'manycore doctor'",
				emu->why);
	}
	emu->view = EMU_VIEW_CALLS;
	emu->lazy = true;
	emu->fuse = NULL;
	emu->mounted = 0;
	if (emu_tree_make_private(emu, &error) < 0 || emu_tree_prepare(emu, &error) < 0)
		give_up(emu, "%s", error.text);
	start_child(emu, start, sock);
}

/* The command's descriptors are its own: what the caller of `run` left open is closed here. Ours
 * are all close-on-exec. */
static void let_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);
	while (dir && (e = readdir(dir))) {
		int fd = atoi(e->d_name), flags = fcntl(fd, F_GETFD);

		if (fd > 2 && flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void tell(struct emu *emu)
{
	const struct mc_topology *topo = emu_topology(emu);
	unsigned int nodes;
	char tier[200];

	if (!emu->opt->verbose)
		return;
	nodes = mc_cpumask_weight(&mc_topology_nodes_online(topo)->m);
	fprintf(stderr, "manycore run: %u CPUs (%u online), %u memory node%s\n",
		mc_cpumask_weight(mc_topology_possible(topo)),
		mc_cpumask_weight(mc_topology_online(topo)), nodes, nodes == 1 ? "" : "s");
	fprintf(stderr, "manycore run: view: %s%s%s%s%s\n",
		emu->view == EMU_VIEW_NAMESPACE ? "namespace" : "calls",
		emu->view == EMU_VIEW_NAMESPACE && emu->in_userns ? " (in a user namespace)" : "",
		emu->fuse   ? ", files answered when asked for (FUSE)"
		: emu->lazy ? ", files made on first need"
			    : ", files made at the start",
		emu->why[0] ? "; the namespace view is not had: " : "", emu->why);
	emu_policy_tier(emu, tier, sizeof(tier));
	fprintf(stderr, "manycore run: first touch: %s\n", tier);
	fprintf(stderr, "manycore run: threads: %s\n",
		emu->marked ? "not notified; what they inherit is told by their timer slack"
			    : "creations and ends are notified");
}

static void watch(struct emu *emu, int fd, int64_t key)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)key};

	epoll_ctl(emu->epoll, EPOLL_CTL_ADD, fd, &ev);
}

static bool others_left(void)
{
	siginfo_t info = {0};

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

struct gone {
	struct emu *emu;
	pid_t tgid;
};

static void *bury_later(void *arg)
{
	struct gone *gone = arg;

	emu_process_gone(gone->emu, gone->tgid);
	free(gone);
	return NULL;
}

/* Has a receiver the process still? It may wait for memory that never comes. */
static bool is_held(struct emu *emu, pid_t tgid)
{
	struct emu_process *p;
	bool held = false;

	pthread_mutex_lock(&emu->table_lock);
	p = emu->process_hash[(unsigned int)tgid % EMU_HASH];
	while (p && p->tgid != tgid)
		p = p->hash_next;
	if (p)
		held = pthread_mutex_trylock(&p->lock) != 0;
	if (p && !held)
		pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&emu->table_lock);
	return held;
}

/* A process has ended. Whoever has its lock is not waited for here, where the command's end is
 * seen. */
static void bury(struct emu *emu, pid_t tgid)
{
	struct gone *gone = is_held(emu, tgid) ? malloc(sizeof(*gone)) : NULL;
	pthread_t thread;

	if (gone) {
		*gone = (struct gone){emu, tgid};
		if (!pthread_create(&thread, NULL, bury_later, gone)) {
			pthread_detach(thread);
			return;
		}
		free(gone);
	}
	emu_process_gone(emu, tgid);
}

/* Reaps what there is; returns false when nothing is left of the tree. */
static bool reap(struct emu *emu)
{
	for (;;) {
		struct emu_msg msg = {.kind = EMU_MSG_EXIT};
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);

		if (pid == 0)
			return true;
		if (pid < 0)
			return errno != ECHILD;
		if (pid != emu->first) {
			if (!WIFSTOPPED(status))
				bury(emu, pid);
			continue;
		}
		if (WIFSTOPPED(status)) {
			msg.kind = EMU_MSG_STOPPED;
			msg.status = WSTOPSIG(status);
			emu_msg_send(emu->waiter, &msg, -1);
			continue;
		}
		msg.status = status;
		/* A command that is killed outright takes all of its tree with it; one that ends
		 * may leave daemons. */
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			emu_kill_descendants(getpid());
		msg.more = others_left();
		if (!msg.more)
			emu_remove_tree(emu->tree_path);
		emu_msg_send(emu->waiter, &msg, -1);
		close(emu->waiter);
		emu->waiter = -1;
	}
}

static void loop(struct emu *emu, int sigs)
{
	struct epoll_event ev[64];
	bool alive = true;

	while (alive) {
		int n = epoll_wait(emu->epoll, ev, 64, -1);

		for (int i = 0; i < n; i++) {
			int64_t key = (int64_t)ev[i].data.u64;
			struct signalfd_siginfo info;

			if (key == KEY_SIGNAL) {
				while (read(sigs, &info, sizeof(info)) > 0)
					;
				alive = reap(emu);
			} else if (key == KEY_WAITER || key == KEY_GUARD) {
				if (key == KEY_WAITER && emu->waiter < 0)
					continue;
				emu_kill_descendants(getpid());
				return;
			} else {
				bury(emu, (pid_t)key);
			}
		}
	}
}

static void *refresher(void *arg)
{
	for (;;) {
		sleep(1);
		emu_crew_look(arg);
		emu_plug_drain(arg); /* written, and nobody asked since */
		emu_files_refresh(arg);
		emu_processes_look(arg);
		emu_marks_clean(arg);
	}
	return NULL;
}

enum { ALWAYS = 16, ANSWERING = 4 }; /* descriptors */

/* What is held for the tree leaves those that we always have, and what each receiver opens while it
 * answers: under a small limit nothing may be left to hold, and without it all is only slower. */
static void share_descriptors(struct emu *emu, unsigned int limit)
{
	unsigned int receivers = emu->nr_real < 2 ? 2 : emu->nr_real > 16 ? 16 : emu->nr_real,
		     keep = ALWAYS + ANSWERING * (receivers + 1);

	/* Numbers are dealt from below: what is held for long leaves the last ones. */
	emu->max_held = limit > keep ? limit - keep + ALWAYS : 0;
	limit = limit > keep ? limit - keep : 0;
	emu->max_watched = limit / 2;
	emu->max_answers = limit / 4;
	emu->max_files = limit / 8 < 256 ? limit / 8 : 256;
}

/* Can one receiver at least answer? */
static bool can_answer(void)
{
	int fd[ANSWERING + 1], nr = 0;

	while (nr <= ANSWERING && (fd[nr] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		nr++;
	for (int i = 0; i < nr; i++)
		close(fd[i]);
	return nr > ANSWERING;
}

void emu_supervisor(struct emu *emu, const struct emu_start *start, int sock)
{
	struct mc_error error = {.text = ""};
	struct emu_msg msg = {.kind = EMU_MSG_PID};
	struct emu_task *task;
	pthread_t thread;
	sigset_t chld;
	int child, sigs, fd, rc;

	struct rlimit files;

	emu->waiter = sock;
	emu->supervisor = getpid();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (getppid() != start->guard)
		_exit(125);
	emu_kill_reserve();
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur > 1 << 20)
		files.rlim_cur = 1024;
	share_descriptors(emu, (unsigned int)files.rlim_cur);
	emu->soon = tids_last();
	emu_folder_sweep(emu->tree_path);
	start_view(emu, start, &child);
	/* The command is in the job's session already. The kernel must not take us for a shell of
	 * that session, which could continue what has stopped: when the outer shell is killed, the
	 * stopped job gets SIGHUP and SIGCONT as it would without us. */
	setsid();
	tell(emu);
	let_go();
	emu->epoll = epoll_create1(EPOLL_CLOEXEC);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigs = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	/* Without these the end of the command would never be seen. */
	if (emu->epoll < 0 || sigs < 0 || !can_answer())
		give_up(emu, "starting the command: %s; raise the limit of open files (ulimit -n)",
			strerror(errno));
	emu_proc_wait();
	watch(emu, sigs, KEY_SIGNAL);
	watch(emu, sock, KEY_WAITER);
	fd = (int)syscall(SYS_pidfd_open, start->guard, 0);
	if (fd >= 0)
		watch(emu, fd, KEY_GUARD);
	task = emu_task_first(emu, emu->first);
	if (!task)
		give_up(emu, "starting the command: out of memory");
	if (emu->opt->nr_policy && emu_policy_start(emu, task, &error) < 0)
		give_up(emu, "%s", error.text);
	rc = emu->marked ? emu_marks_begin(emu, task) : 0;
	if (rc < 0)
		give_up(emu,
			"starting the command: reading its timer slack: %s; use --first-touch=faults",
			strerror(-rc));
	if (emu_notify_start(emu) < 0 || pthread_create(&thread, NULL, refresher, emu))
		give_up(emu,
			"starting the command: threads: %s; raise the limits of processes (ulimit -u) "
			"and memory (ulimit -v)",
			strerror(errno));
	msg.status = emu->first;
	emu_msg_send(sock, &msg, -1);
	msg.kind = EMU_MSG_GO;
	emu_msg_send(child, &msg, -1);
	/* The child's end closes when its program runs; if that fails, it says why. */
	if (emu_msg_recv(child, &msg, &fd) > 0 && msg.kind == EMU_MSG_FAIL) {
		emu_remove_tree(emu->tree_path);
		emu_msg_send(sock, &msg, -1);
		_exit(0);
	}
	close(child);
	loop(emu, sigs);
	leave(emu);
}
