// SPDX-License-Identifier: MIT
/*
 * enomem.c - want of memory at each single request: the n-th call of mmap, malloc, calloc or
 * posix_memalign fails (the linker sends them here), for n = 1, 2, ... until a whole scenario meets
 * none. Each in a process of its own, so that also what is made once per process fails. Whatever
 * failed must say ENOMEM, and afterwards everything must work.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <manycore/counter.h>
#include <manycore/percpu.h>
#include "check.h"

static long countdown = -1; /* requests until the one that fails; -1: none does */
static bool failed;

static bool fails(void)
{
	if (countdown < 0 || countdown-- > 0)
		return false;
	failed = true;
	return true;
}

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t size);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(addr, len, prot, flags, fd, offset);
}

void *__wrap_malloc(size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_calloc(n, size);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	return fails() ? ENOMEM : __real_posix_memalign(p, align, size);
}

/* False when a step said ENOMEM. */
static bool scenario(unsigned int flags)
{
	struct mc_percpu_attr attr = {.flags = flags}, shared = {.unit_size = 4096};
	static const size_t sizes[] = {1, 8, 64, 1000, 5000, 65536};
	struct mc_percpu_pool *pool, *common;
	struct mc_counter c[5];
	void *h[6] = {NULL};
	bool ok = true;
	uint64_t *p = mc_alloc_percpu(uint64_t);

	if (!p) {
		CHECK(errno == ENOMEM, "%s", strerror(errno));
		return false;
	}
	mc_this_cpu_inc(p);
	mc_free_percpu(p);
	pool = mc_percpu_pool_create(&attr);
	if (!pool) {
		CHECK(errno == ENOMEM, "%s", strerror(errno));
		return false;
	}
	for (unsigned int i = 0; i < 6; i++) {
		errno = 0;
		h[i] = mc_percpu_pool_alloc(pool, sizes[i], i % 2 ? 64 : i == 4 ? 4096 : 1);
		CHECK(h[i] || errno == ENOMEM, "size %zu: %s", sizes[i], strerror(errno));
		ok &= !!h[i];
		if (h[i])
			mc_this_cpu_inc((uint8_t *)h[i]);
	}
	if (!mc_counter_init_many(c, 5, 0)) {
		mc_counter_inc(&c[4]);
		CHECK(mc_counter_sum(&c[4]) == 1, "counter");
		mc_counter_destroy_many(c, 5);
	} else {
		ok = false;
	}
	mc_free_percpu_many(6, h);
	mc_percpu_trim(pool);
	mc_percpu_pool_destroy(pool);
	shared.fd = memfd_create("test", 0);
	common = mc_percpu_pool_create_shared(&shared);
	CHECK(common || errno == ENOMEM, "shared: %s", strerror(errno));
	ok &= !!common;
	mc_percpu_pool_destroy(common);
	close(shared.fd);
	return ok;
}

static int child(long n, unsigned int flags)
{
	countdown = n;
	scenario(flags);
	countdown = -1;
	/* Afterwards nothing is broken. */
	CHECK(scenario(flags), "request %ld: does not work afterwards", n);
	return failed ? 0 : 42;
}

int main(void)
{
	static const unsigned int flags[] = {0, MC_PERCPU_NO_MAGAZINE, MC_PERCPU_ROBUST};

	for (unsigned int i = 0; i < 3; i++) {
		int status = 0;
		long n = 0;

		for (; n < 500; n++) {
			pid_t pid = fork();

			if (!pid)
				_exit(child(n, flags[i]));
			CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
			CHECK(WIFEXITED(status) &&
				      (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42),
			      "request %ld, flags %u: status %#x", n, flags[i], status);
			if (WEXITSTATUS(status) == 42)
				break;
		}
		CHECK(n > 5 && n < 500, "%ld requests", n);
		printf("flags %u: each of %ld requests failed once\n", flags[i], n);
	}
	return 0;
}
