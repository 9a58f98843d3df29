// SPDX-License-Identifier: MIT
/*
 * omp_touch.c - OpenMP's static schedule fills an array; prints how many pages lie on the node of
 * the thread that filled them, and on how many nodes there are any. omp_touch PAGES. Built with
 * libgomp and libomp by test_numa_programs.py.
 */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long pages = argc > 1 ? atol(argv[1]) : 1000, size = sysconf(_SC_PAGESIZE), right = 0;
	char *area = mmap(NULL, (size_t)(pages * size), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int *wanted = calloc((size_t)pages, sizeof(*wanted));
	void **page = calloc((size_t)pages, sizeof(*page));
	int *status = calloc((size_t)pages, sizeof(*status));
	unsigned long nodes = 0;

	if (area == MAP_FAILED || !wanted || !page || !status)
		return 1;
	/* Small pages are counted: of a huge one (where they are "always") one thread has all. */
	madvise(area, (size_t)(pages * size), MADV_NOHUGEPAGE);
#pragma omp parallel for schedule(static)
	for (long i = 0; i < pages; i++) {
		unsigned int cpu;

		getcpu(&cpu, &wanted[i]);
		area[i * size] = 1;
	}
	for (long i = 0; i < pages; i++)
		page[i] = area + i * size;
	if (syscall(SYS_move_pages, 0, pages, page, NULL, status, 0))
		return 1;
	for (long i = 0; i < pages; i++) {
		right += status[i] == (int)wanted[i];
		nodes |= 1ul << wanted[i];
	}
	printf("%ld of %ld on %d nodes, %d threads\n", right, pages, __builtin_popcountl(nodes),
	       omp_get_max_threads());
	return 0;
}
