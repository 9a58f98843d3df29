// SPDX-License-Identifier: MIT
/*
 * cleanup.c - leaving no process behind: killing a tree to a fixed point. Called by guard, waiter
 * and supervisor when another one of them died; the caller is a subreaper.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "emu/internal.h"

struct pair {
	pid_t pid, parent;
	bool ours;
};

static int read_pair(const char *name, struct pair *pair)
{
	char text[512];

	if (emu_proc_read(text, sizeof(text), "/proc/%.20s/stat", name) < 0)
		return -ESRCH;
	if (sscanf(emu_proc_stat(text), " %*c %d", &pair->parent) != 1)
		return -EINVAL;
	pair->pid = atoi(name);
	pair->ours = false;
	return 0;
}

static struct pair *read_pairs(size_t *nr)
{
	struct pair *pairs = NULL;
	size_t n = 0, room = 0;
	struct dirent *e;
	DIR *dir;

	do
		dir = opendir("/proc");
	while (emu_proc_again(dir));
	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		if (n == room) {
			struct pair *more =
				realloc(pairs, (room = room ? 2 * room : 512) * sizeof(*pairs));

			if (!more)
				break;
			pairs = more;
		}
		if (!read_pair(e->d_name, &pairs[n]))
			n++;
	}
	if (dir)
		closedir(dir);
	*nr = n;
	return pairs;
}

static int reserve[2] = {-1, -1};

void emu_kill_reserve(void)
{
	for (int i = 0; i < 2; i++)
		if (reserve[i] < 0)
			reserve[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* One round: how many living descendants were found (and killed). */
static size_t kill_round(pid_t root)
{
	size_t nr, found = 0;
	struct pair *pairs = read_pairs(&nr);
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < nr; i++) {
			bool parent_ours = pairs[i].parent == root;

			if (pairs[i].ours || pairs[i].pid == root)
				continue;
			for (size_t j = 0; j < nr && !parent_ours; j++)
				parent_ours = pairs[j].ours && pairs[j].pid == pairs[i].parent;
			if (parent_ours) {
				pairs[i].ours = more = true;
				found++;
				kill(pairs[i].pid, SIGKILL);
			}
		}
	}
	free(pairs);
	return found;
}

/* Kills until none is left: a process that forks while it is looked for is found in a later round.
 */
void emu_kill_descendants(pid_t root)
{
	struct timespec wait = {0, 500 * 1000};

	for (int i = 0; i < 2; i++)
		if (reserve[i] >= 0)
			close(reserve[i]);
	reserve[0] = reserve[1] = -1;

	for (;;) {
		size_t found = kill_round(root);

		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!found && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			return;
		nanosleep(&wait, NULL);
	}
}
