// SPDX-License-Identifier: MIT
/* fuzz_cpulist.c - list texts of masks: see mask_text.h. */
#define PARSE mc_cpulist_parse
#define SNPRINT mc_cpulist_snprint
#include "mask_text.h"
