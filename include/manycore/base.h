/* SPDX-License-Identifier: MIT */
/*
 * base.h - what every public header stands on: version, visibility, errors with a text. The
 * conventions themselves are told in manycore.h. Including it alone is allowed but of little use.
 */
#ifndef MANYCORE_BASE_H
#define MANYCORE_BASE_H

#include <stddef.h>
#include <stdint.h>

#define MC_VERSION_MAJOR 0
#define MC_VERSION_MINOR 1
#define MC_VERSION_PATCH 0
#define MC_VERSION_STRING "0.1.0"

#ifdef __cplusplus
#define MC_BEGIN_DECLS extern "C" {
#define MC_END_DECLS }
#else
#define MC_BEGIN_DECLS
#define MC_END_DECLS
#endif

/* Marks what the shared library exports. */
#define MC_API __attribute__((visibility("default")))

MC_BEGIN_DECLS

/* The version of the library that is loaded, "0.1.0"; a constant string. Async-signal safe. */
MC_API const char *mc_version(void);

/*
 * struct mc_error - what failed, for people. Filled by calls that take one; the caller owns it, no
 * clean-up.
 *
 * err:   the same errno value as the call's return, positive.
 * where: byte offset of the fault in a text that was parsed, else 0.
 * text:  "step: object: problem; remedy", one line, NUL-terminated, cut when too long.
 */
struct mc_error {
	int err;
	size_t where;
	char text[496];
};

MC_END_DECLS

#endif /* MANYCORE_BASE_H */
