// SPDX-License-Identifier: MIT
/* fuzz_hexmask.c - hex texts of masks: see mask_text.h. */
#define PARSE mc_cpumask_parse
#define SNPRINT mc_cpumask_snprint
#include "mask_text.h"
