// SPDX-License-Identifier: MIT
/*
 * placed.c - in CPU-id mode the memory of CPU k's copy lies on k's node: every copy of an object is
 * written from here, wherever this thread runs, and the kernel asked where its pages are.
 *
 * Usage: placed rseq|none. Run by meson.build on emulated machines of several nodes; "none": the
 * machine has no restartable sequences, and asking for CPU ids must say so.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <manycore/manycore.h>
#include "skip.h"
#include "check.h"

enum { SIZE = 20000, MAX_NODES = 64 };

/* By the machine's own files, not by the library's reading of them. */
static int node_of(unsigned int cpu)
{
	char path[96];

	for (int node = 0; node < MAX_NODES; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpu%u", node, cpu);
		if (!access(path, F_OK))
			return node;
	}
	return -1;
}

static void check_pool(struct mc_percpu_pool *pool, const char *what)
{
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE), pages = 0, bad = 0;
	unsigned int cpus = mc_nr_cpu_ids(), nodes = 0;
	uint64_t seen = 0;
	char *h = mc_percpu_pool_alloc(pool, SIZE, 8);

	CHECK(h, "%s: %s", what, strerror(errno));
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		char *copy = mc_per_cpu_ptr(h, cpu);
		int want = node_of(cpu);

		CHECK(want >= 0, "CPU %u is on no node", cpu);
		memset(copy, 1, SIZE);
		for (char *p = copy; p < copy + SIZE; p += page) {
			void *at = (void *)((uintptr_t)p & ~(page - 1));
			int status = -1;

			CHECK(!syscall(SYS_move_pages, 0, 1ul, &at, NULL, &status, 0),
			      "move_pages: %s", strerror(errno));
			if (status != want && bad++ < 5)
				fprintf(stderr, "%s: CPU %u: page %ld is on node %d, not %d\n",
					what, cpu, (long)(p - copy) / (long)page, status, want);
			pages++;
		}
		nodes += !(seen >> want & 1);
		seen |= UINT64_C(1) << want;
	}
	printf("%s: %lu pages of %u CPUs on %u nodes, %lu misplaced\n", what, pages, cpus, nodes,
	       bad);
	CHECK(nodes > 1, "this machine has one node: nothing shown");
	CHECK(!bad, "%lu pages", bad);
}

int main(int argc, char **argv)
{
	struct mc_percpu_attr attr = {.mode = MC_PERCPU_CPU_ID};
	struct mc_percpu_pool *pool = mc_percpu_pool_create(&attr);

	if (argc > 1 && !strcmp(argv[1], "none")) {
		CHECK(!pool && errno == EOPNOTSUPP, "CPU ids without rseq");
		return 0;
	}
	CHECK(pool, "%s", strerror(errno));
	check_pool(pool, "private pool");
	mc_percpu_pool_destroy(pool);
	attr.fd = memfd_create("placed", 0);
	pool = mc_percpu_pool_create_shared(&attr);
	CHECK(pool, "%s", strerror(errno));
	check_pool(pool, "shared pool");
	mc_percpu_pool_destroy(pool);
	return 0;
}
