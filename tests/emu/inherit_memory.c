// SPDX-License-Identifier: MIT
/*
 * inherit_memory.c - ranges with policies and pages: what children have of them whose parents end,
 * or begin another image, before anybody has seen the child; and whose pages are those of threads
 * that have ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "inherit.h"
#include "support/check.h"

static char *map(size_t pages)
{
	char *a = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	CHECK(a != MAP_FAILED, "no memory");
	return a;
}

static void bind_to(void *a, size_t pages, unsigned long nodes)
{
	CHECK(!syscall(SYS_mbind, a, pages * PAGE, BIND, &nodes, 65UL, 0U), "errno %d", errno);
}

static void is_orphan(char *range, pid_t parent, int answer)
{
	while (getppid() == parent)
		usleep(1000);
	usleep(20000);
	is_as_its_creator((void *)21);
	range[0] = 1;
	CHECK(node_of(range) == 2, "node %d", node_of(range));
	(void)!write(answer, "1", 1);
	_exit(0);
}

/* Its parent, never seen, ends at once; its grandparent has the range. */
static void orphan(int killed)
{
	char *range = map(16), byte;
	int ends[2], status;
	pid_t pid;

	pin(0, 21);
	set_policy(BIND, 2);
	bind_to(range, 16, 4);
	CHECK(!pipe(ends), "errno %d", errno);
	pid = fork();
	if (!pid) {
		pid_t parent = getpid();

		if (!fork())
			is_orphan(range, parent, ends[1]);
		if (killed)
			kill(parent, SIGKILL);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid, "errno %d", errno);
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1, "the orphan found something wrong");
}

void orphans(void)
{
	orphan(0);
}
void killed(void)
{
	orphan(1);
}

/* The same, when the range's process has ended too, and one that was told so. */
void heirs(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	CHECK(!pipe(ends), "errno %d", errno);
	pid = fork();
	if (!pid) {
		char *range = map(16);
		pid_t parent;

		pin(0, 21);
		set_policy(BIND, 2);
		bind_to(range, 16, 4);
		parent = getpid();
		if (!fork())
			is_orphan(range, parent, ends[1]);
		_exit(0);
	}
	ended_well(pid);
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1, "the orphan found something wrong");
}

/* A child of a thread that nobody has seen keeps what there was when it was made. */
static int go[2], answers[2];
static char *shared_range;

static void *forks_unseen(void *arg)
{
	char byte;

	if (!fork()) {
		int mode = -1;

		CHECK(read(go[0], &byte, 1) == 1, "errno %d", errno);
		CHECK(!syscall(SYS_get_mempolicy, &mode, NULL, 0UL, shared_range, F_ADDR),
		      "errno %d", errno);
		CHECK(mode == DEFAULT, "policy %d of the range", mode);
		(void)!write(answers[1], "1", 1);
		_exit(0);
	}
	CHECK(!pipe((int *)arg), "errno %d", errno);
	pause();
	return arg;
}

void unseen(void)
{
	int ready[2] = {-1, -1};
	pthread_t t;
	char byte;

	shared_range = map(16);
	CHECK(!pipe(go) && !pipe(answers), "errno %d", errno);
	CHECK(!pthread_create(&t, NULL, forks_unseen, ready), "no thread");
	while (__atomic_load_n(&ready[1], __ATOMIC_ACQUIRE) < 0)
		usleep(1000);
	bind_to(shared_range, 16, 4);
	(void)!write(go[1], "1", 1);
	wait(NULL);
	close(answers[1]);
	CHECK(read(answers[0], &byte, 1) == 1, "the child found something wrong");
}

/* An orphan has nothing of what its grandparent's next image binds. */
static void *const place = (void *)0x600000000000;

static void map_at_place(unsigned long nodes)
{
	CHECK(mmap(place, 16 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == place,
	      "errno %d", errno);
	bind_to(place, 16, nodes);
}

void images(void)
{
	char byte, text[32];
	pid_t pid;

	CHECK(!pipe(go) && !pipe(answers), "errno %d", errno);
	map_at_place(2);
	pid = fork();
	if (!pid) {
		pid_t parent = getpid();

		if (!fork()) {
			unsigned long nodes = 0;
			int mode = -1;

			while (getppid() == parent)
				usleep(1000);
			usleep(50000);
			CHECK(!syscall(SYS_get_mempolicy, &mode, &nodes, 65UL, place, F_ADDR),
			      "errno %d", errno);
			CHECK(nodes != 8, "another image's range");
			(void)!write(answers[1], "1", 1);
			_exit(0);
		}
		close(go[1]);
		CHECK(read(go[0], &byte, 1) == 1, "errno %d", errno);
		_exit(0);
	}
	snprintf(text, sizeof(text), "%d %d %d", (int)pid, go[1], answers[0]);
	close(answers[1]);
	execl(self, self, "next", text, NULL);
}

void next_image(const char *text)
{
	int pid, go_on, answer;
	char byte;

	CHECK(sscanf(text, "%d %d %d", &pid, &go_on, &answer) == 3, "%s", text);
	map_at_place(8);
	(void)!write(go_on, "1", 1);
	ended_well(pid);
	close(go_on);
	CHECK(read(answer, &byte, 1) == 1, "the orphan found something wrong");
}

/* ---- pages of threads that are gone ---------------------------------------------------------- */

static char *area;

static void *touches_and_ends(void *arg)
{
	for (long i = 0; i < 64; i++)
		area[((long)arg * 64 + i) * PAGE] = 1;
	return arg;
}

static void *lets_touch(void *arg)
{
	pin(0, (int)(16 * (long)arg + 1));
	in_thread(touches_and_ends, arg);
	return arg;
}

void pages(void)
{
	area = map(4 * 64);
	for (long i = 0; i < 4; i++)
		in_thread(lets_touch, (void *)i);
	for (long i = 0; i < 4 * 64; i++)
		CHECK(node_of(area + i * PAGE) == i / 64, "page %ld is on node %d", i,
		      node_of(area + i * PAGE));
}
