/* SPDX-License-Identifier: MIT */
/*
 * manycore.h - the umbrella header of libmanycore and the one place where its conventions are stated.
 *
 * Errors. Functions returning int give 0 or a value > 0 on success and a negative errno on failure; errno is then not
 * touched. Functions returning a pointer give NULL on failure and set errno. Functions returning a CPU or node number
 * give a number >= the mask's size when there is none: test with `>=`, never `==` (the kernel's convention). Where a
 * failure has more to tell than a number, the call takes a `struct mc_error *`, which may be NULL.
 * On failure out-parameters keep their values.
 *
 * Manners. The library never prints, exits or aborts, installs no signal handlers, starts no threads that the caller did
 * not ask for, has no constructors and no mutable global switches.
 *
 * Threads. Unless a function says otherwise, different threads may call it at once on different objects; objects
 * documented as immutable may be shared freely. Async-signal safety is stated where it holds.
 */
#ifndef MANYCORE_H
#define MANYCORE_H

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
 * struct mc_error - what failed, for people. Filled by calls that take one; the caller owns it, no clean-up.
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

#include "cpumask.h"
#include "topology.h"

#endif /* MANYCORE_H */
