/* SPDX-License-Identifier: MIT */
/* check.h - a check without a framework: these programs also run static on musl, under valgrind and
 * under filters. */
#ifndef MC_TEST_CHECK_H
#define MC_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond, ...)                                                           \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);                              \
			fputc('\n', stderr);                                       \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

/* Counts scaled down under valgrind and the like: MC_TEST_SCALE is a divisor. */
static inline unsigned long scaled(unsigned long n)
{
	const char *text = getenv("MC_TEST_SCALE");
	unsigned long by = text ? strtoul(text, NULL, 10) : 1;

	return by > 1 ? (n / by ? n / by : 1) : n;
}

#endif
