// SPDX-License-Identifier: MIT
/*
 * percpu_server.c - a server whose threads count in a shared pool; examples/percpu_reader.c prints
 * the counts live.
 *
 *	example-percpu_server FILE SECONDS &     FILE on /dev/shm, say; default: no file, one second
 *	example-percpu_reader FILE
 * No thread ever takes a lock or touches another CPU's counts to count a request.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <manycore/manycore.h>

enum { THREADS = 4 };
struct stats {
	uint64_t requests, bytes, errors;
};
static struct stats *stats; /* a handle */
static int stop;

/* A stand-in for work: what matters is how it is counted. */
static void *serve(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		mc_this_cpu_inc(&stats->requests);
		mc_this_cpu_add(&stats->bytes, rand_r(&seed) % 1500);
		if (rand_r(&seed) % 1000 == 0)
			mc_this_cpu_inc(&stats->errors);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct mc_percpu_attr attr = {.unit_size = 4096};
	struct mc_percpu_pool *pool;
	pthread_t thread[THREADS];
	uint64_t requests = 0;
	const char *why;
	unsigned int i;

	attr.fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600)
			   : memfd_create("stats", MFD_CLOEXEC);
	pool = mc_percpu_pool_create_shared(&attr);
	stats = pool ? mc_percpu_pool_alloc(pool, sizeof(*stats), 64) : NULL;
	if (!stats) {
		perror("percpu_server: shared pool");
		return 1;
	}
	mc_percpu_mode(pool, &why);
	printf("counting by %s; the counts are at offset %llu\n", why,
	       (unsigned long long)mc_percpu_offset(stats));
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, serve, (void *)(uintptr_t)(i + 1)))
			return 1;
	sleep(argc > 2 ? (unsigned int)atoi(argv[2]) : 1);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	mc_for_each_percpu_copy(i, stats) requests += mc_per_cpu_ptr(stats, i)->requests;
	printf("%llu requests\n", (unsigned long long)requests);
	mc_free_percpu(stats);
	mc_percpu_pool_destroy(pool);
	return !requests;
}
