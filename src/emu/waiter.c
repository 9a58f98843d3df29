// SPDX-License-Identifier: MIT
/*
 * waiter.c - the process that the caller of `manycore run` sees: it belongs to the caller's job and
 * mirrors the command.
 *
 * It stops when the command stops and by the same signal, passes on signals that were sent to it
 * alone, exits with the command's status and dies by the command's signal. It is a subreaper:
 * should guard and supervisor die, the tree becomes its own and is killed. Runs single-threaded;
 * all signals blocked and read by signalfd, so that dispositions which the command inherits are
 * never touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/internal.h"

struct waiter {
	pid_t command;
	int sock, status;
	const char *tree_path;
	bool done;
};

/* Dies or stops as the command did: default action, nothing blocked. Returns when the kernel
 * discards the signal. */
static void do_as(int sig)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, sig);
	if (sig != SIGKILL && sig != SIGSTOP)
		sigaction(sig, &act, NULL);
	kill(getpid(), sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
}

static bool is_inside(pid_t pid)
{
	for (int depth = 0; depth < 4096 && pid > 1; depth++) {
		if (pid == getpid())
			return true;
		pid = (pid_t)emu_proc_field(pid, "PPid:");
	}
	return false;
}

/*
 * Stops with the command. A shell inside is a process group of its own, which had the terminal: the
 * shell outside gives that to our group when it continues the job, and we pass it on. (When the
 * command stopped in the background, another group had the terminal, and must not get it.)
 */
static void stop_as(int sig)
{
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	pid_t group = tty >= 0 ? tcgetpgrp(tty) : -1;
	bool inside = group > 0 && group != getpgrp() && is_inside(group);

	do_as(sig);
	if (inside && group != getpgrp() && tcgetpgrp(tty) == getpgrp())
		(void)tcsetpgrp(tty, group);
	if (tty >= 0)
		close(tty);
}

static int mirror(int status)
{
	struct rlimit none = {0, 0};

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	/* The command left its own core file, if any. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	do_as(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* There is no command yet that the signal could be meant for: it ends the start. */
static void end_start(struct waiter *w, int sig)
{
	struct sigaction act;

	if ((sig != SIGTERM && sig != SIGINT && sig != SIGHUP && sig != SIGQUIT) ||
	    sigaction(sig, NULL, &act) < 0 || act.sa_handler == SIG_IGN)
		return;
	emu_kill_descendants(getpid());
	emu_remove_tree(w->tree_path);
	w->status = sig;
	w->done = true;
}

static void take_signal(struct waiter *w, int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD || w->done)
			continue;
		if (w->command <= 0) {
			end_start(w, sig);
			continue;
		}
		/* What the terminal sends reaches the whole job; what somebody sends us is meant
		 * for the command. */
		if (info.ssi_code == SI_USER || info.ssi_code == SI_TKILL ||
		    info.ssi_code == SI_QUEUE || sig == SIGCONT) {
			kill(w->command, sig);
		}
	}
}

static void take_message(struct waiter *w)
{
	struct emu_msg msg;
	int fd, rc = emu_msg_recv(w->sock, &msg, &fd);

	if (fd >= 0)
		close(fd);
	if (rc <= 0) {
		if (rc == -EAGAIN)
			return;
		w->done = true; /* the supervisor is gone */
		w->status = -1;
		return;
	}
	switch (msg.kind) {
	case EMU_MSG_PID:
		w->command = msg.status;
		break;
	case EMU_MSG_STOPPED:
		stop_as(msg.status);
		break;
	case EMU_MSG_FAIL:
		fprintf(stderr, "manycore run: %s\n", msg.text);
		w->status = msg.status << 8;
		w->done = true;
		break;
	case EMU_MSG_EXIT:
		w->status = msg.status;
		w->done = true;
		break;
	default:
		break;
	}
}

/* Standard input and output are the command's: held open here they would hide its end from a pipe's
 * other side. */
static void let_go(int sock)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		close(null);
	}
	if (sock > 3)
		close_range(3, (unsigned int)sock - 1, 0);
	close_range((unsigned int)sock + 1, ~0U, 0);
}

int emu_waiter(pid_t guard, int sock, const char *tree_path)
{
	struct waiter w = {.sock = sock, .status = -1, .tree_path = tree_path};
	sigset_t all;
	int sigs;

	let_go(sock);
	sigfillset(&all);
	sigs = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	while (!w.done) {
		struct pollfd p[2] = {{.fd = sock, .events = POLLIN},
				      {.fd = sigs, .events = POLLIN}};

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			take_message(&w);
		if (p[1].revents)
			take_signal(&w, sigs);
	}
	if (w.status < 0) {
		/* Killed: the guard kills what is left; if it was the guard, we do. */
		waitpid(guard, NULL, 0);
		emu_kill_descendants(getpid());
		emu_remove_tree(tree_path);
		fputs("manycore run: the supervisor was killed: the command was killed with it\n",
		      stderr);
		return 125;
	}
	return mirror(w.status);
}
