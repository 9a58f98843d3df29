/* SPDX-License-Identifier: MIT */
/* internal.h - helpers shared by the library's modules; never installed. */
#ifndef MC_INTERNAL_H
#define MC_INTERNAL_H

#include <stdarg.h>
#include <manycore/manycore.h>

#define MC_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define mc_likely(x) __builtin_expect(!!(x), 1)
#define mc_unlikely(x) __builtin_expect(!!(x), 0)

/* Fills *error (may be NULL) with errno value `err` (positive) and the text; returns -err, so that
 * callers can `return mc_fail(error, EINVAL, "reading machine: %s: ...", ...)`. */
int mc_fail(struct mc_error *error, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int mc_fail_at(struct mc_error *error, int err, size_t where, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
