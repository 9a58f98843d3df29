// SPDX-License-Identifier: MIT
/* cpumask_inline.c - the exported symbols of the inline functions, from the same bodies. */
#define MC_INLINE_
#include <manycore/cpumask.h>
