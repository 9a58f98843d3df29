// SPDX-License-Identifier: MIT
/*
 * test_arena_phys.c - physical interleave, proven by the frame numbers that pagemap shows; and what
 * is said without the right.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/manycore.h>
#include "skip.h"

enum { CHUNKS = 4, PAGES = 1024, TRIES = 50 };

/* The physical address that is k/CHUNKS through the machine's RAM, holes not counted: our own
 * reading of /proc/iomem. */
static uint64_t border(unsigned int k)
{
	uint64_t from[256], to[256], total = 0, want;
	char line[256];
	int n = 0;
	FILE *f = fopen("/proc/iomem", "re");

	while (f && n < 256 && fgets(line, sizeof(line), f))
		if (*line != ' ' && strstr(line, " : System RAM") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &from[n], &to[n]) == 2)
			total += to[n] + 1 - from[n], n++;
	if (f)
		fclose(f);
	want = total / CHUNKS * k;
	for (int i = 0; i < n; want -= to[i] + 1 - from[i], i++)
		if (want <= to[i] + 1 - from[i])
			return from[i] + want;
	return UINT64_MAX;
}

/*
 * One arena: 1 its pages alternate, 0 they do not, -1 the machine can't serve it now. The kernel's
 * compaction, set off by whoever wants huge pages, may move pages of an arena that is ready: then
 * they do not alternate though nothing is wrong, so one good arena of several is asked for.
 */
static int alternates(void)
{
	struct mc_arena_attr at = {.size = PAGES * 4096, .phys_chunks = CHUNKS, .page_size = 4096};
	uint64_t entry[PAGES], bound[CHUNKS];
	struct mc_arena *a = NULL;
	struct mc_error e;
	unsigned int good = 0;
	int fd, rc;

	if (mc_arena_create(&at, &a, &e))
		fail_msg("%s", e.text);
	rc = mc_arena_wait(a, 0, -1);
	if (rc == -ENOMEM) { /* one of the chunks has no free page: that is said, and nothing else
				can be asked */
		struct mc_arena_report r;

		mc_arena_part_report(a, 0, &r);
		fprintf(stderr, "%s\n", r.error.text);
		mc_arena_destroy(a);
		return -1;
	}
	assert_int_equal(rc, 0);
	for (unsigned int k = 0; k < CHUNKS; k++)
		bound[k] = k + 1 < CHUNKS ? border(k + 1) : UINT64_MAX;
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	assert_int_equal(
		pread(fd, entry, sizeof(entry), (off_t)((uintptr_t)mc_arena_base(a) / 4096 * 8)),
		sizeof(entry));
	close(fd);
	for (unsigned int i = 0; i < PAGES; i++) {
		uint64_t frame = entry[i] & ((UINT64_C(1) << 55) - 1);
		unsigned int k = 0;

		while (frame * 4096 >= bound[k])
			k++;
		good += entry[i] >> 63 && k == i % CHUNKS &&
			mc_arena_page(a, mc_arena_address(a, i))->frame == frame;
		assert_int_equal(*(uint64_t *)mc_arena_address(a, i), 0);
		*(uint64_t *)mc_arena_address(a, i) = i;
	}
	mc_arena_destroy(a);
	return good == PAGES;
}

static void frames_alternate(void **state)
{
	int got = 0;

	(void)state;
	if (geteuid() || border(1) == UINT64_MAX || border(1) == 0) {
		if (!test_skip_allowed("pagemap-pfn"))
			fail_msg("MUST_WORK=1: needs pagemap-pfn");
		skip();
	}
	for (int i = 0; i < TRIES && !got; i++)
		got = alternates();
	if (got < 0)
		skip();
	assert_int_equal(got, 1);
}

static void says_so_without_the_right(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		struct mc_arena_attr at = {.size = PAGES * 4096, .phys_chunks = CHUNKS};
		struct mc_arena *a;
		struct mc_error e;

		if (!geteuid() && (setgid(65534) || setuid(65534)))
			_exit(2);
		_exit(mc_arena_create(&at, &a, &e) == -EPERM && strstr(e.text, "CAP_SYS_ADMIN")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_alternate),
		cmocka_unit_test(says_so_without_the_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
