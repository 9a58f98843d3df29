/* SPDX-License-Identifier: MIT */
/*
 * manycore.h - the umbrella header of libmanycore and the one place where its conventions are
 * stated.
 *
 * Errors. Functions returning int give 0 or a value > 0 on success and a negative errno on failure;
 * errno is then not touched. Functions returning a pointer give NULL on failure and set errno.
 * Functions returning a CPU or node number give a number >= the mask's size when there is none:
 * test with `>=`, never `==` (the kernel's convention). Where a failure has more to tell than a
 * number, the call takes a `struct mc_error *`, which may be NULL. On failure out-parameters keep
 * their values.
 *
 * Manners. The library never prints, exits or aborts, installs no signal handlers, starts no
 * threads that the caller did not ask for, has no constructors and no mutable global switches.
 *
 * Threads. Unless a function says otherwise, different threads may call it at once on different
 * objects; objects documented as immutable may be shared freely. Async-signal safety is stated
 * where it holds.
 */
#ifndef MANYCORE_H
#define MANYCORE_H

#include "base.h"
#include "arena.h"
#include "counter.h"
#include "cpumask.h"
#include "mempolicy.h"
#include "percpu.h"
#include "topology.h"

#endif /* MANYCORE_H */
