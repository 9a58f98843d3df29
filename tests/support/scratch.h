/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - a folder of a unit test's own, gone afterwards whether the test passes, skips or
 * fails half-way: scratch_make() in the test, scratch_remove() as its teardown
 * (cmocka_unit_test_teardown).
 */
#ifndef MC_TEST_SCRATCH_H
#define MC_TEST_SCRATCH_H
#include <stdio.h>
#include <stdlib.h>

static char scratch[64];

static inline const char *scratch_make(void)
{
	snprintf(scratch, sizeof(scratch), "/tmp/manycore-test-XXXXXX");
	return mkdtemp(scratch);
}

static inline int scratch_remove(void **state)
{
	char command[96];

	(void)state;
	if (!*scratch)
		return 0;
	snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
	*scratch = 0;
	return system(command) ? -1 : 0;
}
#endif
