/* SPDX-License-Identifier: MIT */
/* seq.h - chooses the architecture's internal sequences (pseudocode.h). Only where MC_PERCPU_RSEQ;
 * else atomics serve. */
#ifndef MC_ARCH_SEQ_H
#define MC_ARCH_SEQ_H

#include <manycore/percpu.h>

#if MC_PERCPU_RSEQ && defined(__x86_64__)
#include "arch/x86_64/seq.h"
#elif MC_PERCPU_RSEQ && defined(__aarch64__)
#include "arch/aarch64/seq.h"
#endif

#endif
