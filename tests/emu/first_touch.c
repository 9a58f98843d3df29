// SPDX-License-Identifier: MIT
/*
 * first_touch.c - run inside by test_mempolicy.py: touches memory in ways programs do and tells how
 * many pages lie where they should. first_touch HOW NODES PAGES; CPU 2i is on node i. Raw system
 * calls for policies, pthreads for threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIND = 2, INTERLEAVE = 3, PAGE = 4096 };

static char *area;
static long nodes, pages; /* pages: of each node's part */
static pthread_barrier_t barrier;
static int at_once, comb; /* comb: threads fill pages in turn, not parts */

static char *map(long n, void *where)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0);
	char *a = mmap(where, (size_t)n * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (a == MAP_FAILED)
		exit(3);
	return a;
}

static void pin(long node)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)node * 2, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(3);
}

static void touch(char *a, long n)
{
	for (long i = 0; i < n; i++)
		a[i * PAGE] = 1;
}

static void bind_to(char *a, long n, int mode, unsigned long mask)
{
	if (syscall(SYS_mbind, a, n * PAGE, mode, mode ? &mask : NULL, mode ? 65ul : 0ul, 0u))
		exit(3);
}

/* Pages of [a, a + n) that lie on `node`. */
static long on_node(char *a, long n, long node)
{
	void **page = malloc((size_t)n * sizeof(*page));
	int *status = malloc((size_t)n * sizeof(*status));
	long right = 0;

	for (long i = 0; i < n; i++)
		page[i] = a + i * PAGE;
	if (syscall(SYS_move_pages, 0, n, page, NULL, status, 0))
		exit(3);
	for (long i = 0; i < n; i++)
		right += status[i] == node;
	free(page);
	free(status);
	return right;
}

static void *fill_part(void *arg)
{
	long i = (long)arg;

	pin(i);
	if (at_once)
		pthread_barrier_wait(&barrier);
	for (long k = 0; comb && k < pages; k++)
		touch(area + (k * nodes + i) * PAGE, 1);
	if (!comb)
		touch(area + i * pages * PAGE, pages);
	if (at_once)
		pthread_barrier_wait(&barrier);
	return NULL;
}

static long threads(void)
{
	pthread_t thread[64];
	long right = 0;

	area = map(nodes * pages, NULL);
	pthread_barrier_init(&barrier, NULL, (unsigned int)nodes);
	for (long i = 0; i < nodes; i++) {
		if (pthread_create(&thread[i], NULL, fill_part, (void *)i))
			exit(3);
		if (!at_once)
			pthread_join(thread[i], NULL);
	}
	for (long i = 0; at_once && i < nodes; i++)
		pthread_join(thread[i], NULL);
	for (long i = 0; i < nodes; i++)
		for (long k = 0; comb && k < pages; k++)
			right += on_node(area + (k * nodes + i) * PAGE, 1, i);
	for (long i = 0; !comb && i < nodes; i++)
		right += on_node(area + i * pages * PAGE, pages, i);
	return right;
}

/* At an address of the kernel's choice, without a look between: seen with --strict only. */
static long again(void)
{
	char *a = map(pages, NULL), *b;

	pin(0);
	bind_to(a, pages, BIND, 2);
	touch(a, pages);
	if (on_node(a, pages, 1) != pages)
		return 0;
	munmap(a, (size_t)pages * PAGE);
	b = map(pages, a);
	touch(b, pages);
	bind_to(b, pages, BIND, 4);
	madvise(b, (size_t)pages * PAGE / 2, MADV_DONTNEED);
	touch(b, pages);
	return on_node(b, pages / 2, 2) + on_node(b + pages / 2 * PAGE, pages / 2, 0);
}

static long wander(void)
{
	long right = 0;

	area = map(nodes * pages, NULL);
	for (long i = 0; i < nodes; i++) {
		pin(nodes - 1 - i);
		touch(area + i * pages * PAGE, pages);
	}
	for (long i = 0; i < nodes; i++)
		right += on_node(area + i * pages * PAGE, pages, nodes - 1 - i);
	return right;
}

/* The parent's pages stay where they are; half of them the child writes, on its own node. */
static long child(void)
{
	int status;

	area = map(pages, NULL);
	pin(1);
	touch(area, pages);
	if (on_node(area, pages, 1) != pages)
		exit(3);
	if (!fork()) {
		pin(3);
		touch(area, pages / 2);
		_exit((int)(on_node(area, pages / 2, 3) +
			    on_node(area + pages / 2 * PAGE, pages / 2, 1)));
	}
	wait(&status);
	return on_node(area, pages, 1) == pages ? WEXITSTATUS(status) : 0;
}

static long stale(void)
{
	char *a = map(pages, (void *)0x2000000000);
	int mode = -1;

	pin(0);
	bind_to(a, pages, BIND, 2);
	touch(a, pages);
	munmap(a, (size_t)pages * PAGE);
	map(pages, a);
	touch(a, pages);
	if (on_node(a, pages, 0) != pages)
		return 0;
	a = map(pages, NULL);
	bind_to(a, pages, BIND, 2);
	munmap(a, (size_t)pages * PAGE);
	syscall(SYS_get_mempolicy, &mode, NULL, 0ul, &mode, 2ul); /* a look: the mapping is gone */
	map(pages, a);
	touch(a, pages);
	return on_node(a, pages, 0);
}

/* The policy and counts of the area's lines in numa_maps. */
static void maps(void)
{
	FILE *f;
	char *line = NULL;
	size_t room = 0;

	area = map(pages, (void *)0x2000000000);
	pin(0);
	bind_to(area + pages / 3 * PAGE, pages / 3, INTERLEAVE, 15);
	bind_to(area + 2 * (pages / 3) * PAGE, pages / 3, BIND, 4);
	touch(area, pages);
	f = fopen("/proc/self/numa_maps", "r");
	while (f && getline(&line, &room, f) > 0) {
		char *a = (char *)strtoull(line, NULL, 16), *end = strstr(line, " kernelpagesize");

		if (a < area || a >= area + pages * PAGE || !end)
			continue;
		*end = '\0';
		puts(strchr(line, ' ') + 1);
	}
	free(line);
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[1] : "";
	long right = -1, total;

	if (argc < 4)
		return 2;
	/* Small pages are counted: of a huge one (where they are "always") one thread has all. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	nodes = atol(argv[2]);
	total = nodes * (pages = atol(argv[3]));
	comb = !strcmp(how, "comb");
	at_once = comb || !strcmp(how, "once");
	if (at_once || !strcmp(how, "turn")) {
		right = threads();
	} else if (!strcmp(how, "wander")) {
		right = wander();
	} else if (!strcmp(how, "fork")) {
		right = child();
		total = pages;
	} else if (!strcmp(how, "stale")) {
		right = stale();
		total = pages;
	} else if (!strcmp(how, "again")) {
		right = again();
		total = pages;
	} else if (!strcmp(how, "fill")) {
		area = map(pages, NULL);
		touch(area, pages);
		right = on_node(area, total = pages, 1);
	} else if (!strcmp(how, "maps")) {
		maps();
		return 0;
	}
	printf("%ld %ld\n", right, total);
	return right < 0 ? 2 : 0;
}
