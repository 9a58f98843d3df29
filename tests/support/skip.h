/* SPDX-License-Identifier: MIT */
/*
 * skip.h - honest skips. A test that needs a feature probes for the feature itself (never through
 * the code under test) and calls test_skip() when it is missing. Under MUST_WORK=1 that is a
 * failure unless the feature is named in MANYCORE_LACKS (blank-separated), which tools/check fills
 * from probes of its own.
 */
#ifndef MC_TEST_SKIP_H
#define MC_TEST_SKIP_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_EXIT_SKIP = 77 };

static inline int test_skip_allowed(const char *feature)
{
	const char *must = getenv("MUST_WORK"), *lacks = getenv("MANYCORE_LACKS");
	size_t n = strlen(feature);

	if (!must || strcmp(must, "1"))
		return 1;
	for (const char *p = lacks; p && (p = strstr(p, feature)); p += n)
		if ((p == lacks || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return 1;
	return 0;
}

/* Seconds after which something hangs: MC_TEST_SLOW times as many on machines that are emulated. */
static inline unsigned int test_seconds(unsigned int seconds)
{
	const char *slow = getenv("MC_TEST_SLOW");
	int times = slow ? atoi(slow) : 1;

	return times > 1 ? seconds * (unsigned int)times : seconds;
}

/* Leaves the whole test program. */
static inline void test_skip(const char *feature, const char *why)
{
	int allowed = test_skip_allowed(feature);

	fprintf(stderr, "%s: needs %s: %s\n", allowed ? "SKIP" : "FAIL (MUST_WORK=1)", feature, why);
	exit(allowed ? TEST_EXIT_SKIP : 1);
}
#endif
