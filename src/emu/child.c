// SPDX-License-Identifier: MIT
/*
 * child.c - the process that becomes the command: joins the job, takes the view, loads the filter,
 * hands the listener to the supervisor and executes. After the filter is loaded every notified call
 * waits for the supervisor.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/internal.h"

static _Noreturn void fail(int sock, int status, const char *step, const char *object, int err,
			   const char *remedy)
{
	struct emu_msg msg = { .kind = EMU_MSG_FAIL, .status = status };

	snprintf(msg.text, sizeof(msg.text), "%s: %.300s: %s%s%s", step, object, strerror(err),
		 *remedy ? "; " : "", remedy);
	emu_msg_send(sock, &msg, -1);
	_exit(status);
}

static void take_view(struct emu *emu, int sock)
{
	struct emu_msg msg = { .kind = EMU_MSG_ROOT };
	const char *step = "";
	int root = -1, rc, fd;

	rc = emu_view_namespace(emu, sock, &root, &step);
	if (rc < 0) {
		msg.kind = EMU_MSG_NOVIEW;
		snprintf(msg.text, sizeof(msg.text), "%s: %s", step, strerror(-rc));
		emu_msg_send(sock, &msg, -1);
		_exit(125);
	}
	emu_msg_send(sock, &msg, root);
	if (root >= 0)
		close(root);
	/* The tree is made first, so that nothing is ever seen half made. */
	if (emu_msg_recv(sock, &msg, &fd) <= 0)
		_exit(125);
	emu->marked = msg.status;
}

void emu_child(struct emu *emu, const struct emu_start *start, int sock)
{
	struct emu_msg msg = { .kind = EMU_MSG_LISTENER };
	const char *step;
	struct stat st;
	int listener, fd;

	setpgid(0, start->group);
	if (emu->view == EMU_VIEW_NAMESPACE)
		take_view(emu, sock);
	/* Only the process itself can always tell; once the filter is there it can't. */
	if (stat("/proc/self/ns/user", &st) == 0)
		msg.userns = (struct emu_namespace){st.st_dev, st.st_ino};
	listener = emu_filter_load(emu, &step);
	if (listener < 0)
		fail(sock, 125, step, "this host", -listener,
		     listener == -EBUSY ? "another listener is above this process (a nested run or a container "
					  "manager's): run outside of it" :
					  "see 'manycore doctor'");
	if (emu_msg_send(sock, &msg, listener) < 0)
		_exit(125);
	close(listener);
	if (emu_msg_recv(sock, &msg, &fd) <= 0 || msg.kind != EMU_MSG_GO)
		_exit(125);
	for (int i = 0; i < EMU_LIMITS; i++)
		setrlimit((__rlimit_resource_t)emu_limits[i], &start->limits[i]);
	if (start->ignores_chld)
		signal(SIGCHLD, SIG_IGN);
	sigprocmask(SIG_SETMASK, &start->mask, NULL);
	execvp(start->argv[0], start->argv);
	if (errno == ENOENT || errno == ENOTDIR)
		fail(sock, 127, "executing", start->argv[0], errno, "");
	fail(sock, 126, "executing", start->argv[0], errno, "");
}
