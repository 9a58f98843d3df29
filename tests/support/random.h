/* SPDX-License-Identifier: MIT */
/* random.h - numbers that look random and are the same in each run (xorshift, Marsaglia 2003): a
 * failure repeats. */
#ifndef MC_TEST_RANDOM_H
#define MC_TEST_RANDOM_H
#include <stdint.h>

static inline uint64_t rnd(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

#endif
