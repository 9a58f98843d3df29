// SPDX-License-Identifier: MIT
/* percpu_reader.c - prints the counts of a running percpu_server: example-percpu_reader FILE
 * [TIMES]. Without a file it shows a pool of its own, for a try. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <manycore/manycore.h>

struct stats {
	uint64_t requests, bytes, errors;
};

/* A pool with a count of one, for a run without a server. */
static int pretend(void)
{
	struct mc_percpu_attr attr = {.unit_size = 4096, .fd = memfd_create("stats", MFD_CLOEXEC)};
	struct mc_percpu_pool *pool = mc_percpu_pool_create_shared(&attr);
	struct stats *stats = pool ? mc_percpu_pool_alloc(pool, sizeof(*stats), 64) : NULL;

	if (!stats)
		return -1;
	mc_this_cpu_inc(&stats->requests);
	return attr.fd;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : pretend();
	int times = argc > 2 ? atoi(argv[2]) : argc > 1 ? 10 : 1;
	struct mc_percpu_pool *pool;
	struct stats *stats;
	int rc = mc_percpu_pool_attach(fd, MC_PERCPU_READ_ONLY, &pool);

	if (rc) {
		fprintf(stderr, "percpu_reader: %s: %s\n", argc > 1 ? argv[1] : "pool",
			strerror(-rc));
		return 1;
	}
	stats = mc_percpu_at(pool, 0); /* the server's first object */
	for (int n = 0; n < times; n++) {
		uint64_t requests = 0, bytes = 0, errors = 0;
		unsigned int i;

		mc_for_each_percpu_copy(i, stats)
		{
			const struct stats *copy = mc_per_cpu_ptr(stats, i);

			requests += __atomic_load_n(&copy->requests, __ATOMIC_RELAXED);
			bytes += __atomic_load_n(&copy->bytes, __ATOMIC_RELAXED);
			errors += __atomic_load_n(&copy->errors, __ATOMIC_RELAXED);
		}
		printf("%llu requests, %llu bytes, %llu errors on %u CPUs\n",
		       (unsigned long long)requests, (unsigned long long)bytes,
		       (unsigned long long)errors, mc_percpu_copies(stats));
		if (n + 1 < times)
			usleep(200000);
	}
	mc_percpu_pool_destroy(pool);
	return 0;
}
