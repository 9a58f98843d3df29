// SPDX-License-Identifier: MIT
/*
 * affinity.c - the affinity of threads, for any number of CPUs.
 *
 * The kernel refuses a buffer that is shorter than its own mask, whatever the thread's affinity is;
 * an oversized one costs nothing. So reading starts with room for 8192 CPUs and grows as long as
 * the kernel says EINVAL.
 */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"
#include "os/os.h"

enum { FIRST_WORDS = 8192 / 64, MAX_WORDS = 1 << 20 };

static int read_into(struct mc_cpumask *mask, pid_t tid, uint64_t *buffer, size_t words)
{
	int got = mc_os_getaffinity(tid, words * sizeof(uint64_t), (unsigned long *)buffer);

	return got < 0 ? got
		       : mc_cpumask_from_cpuset(mask, buffer,
						(size_t)got & ~(sizeof(uint64_t) - 1));
}

int mc_cpumask_getaffinity(struct mc_cpumask *mask, pid_t tid)
{
	uint64_t first[FIRST_WORDS] = {0};
	size_t words = FIRST_WORDS;
	int rc = read_into(mask, tid, first, words);

	while (rc == -EINVAL && words < MAX_WORDS) {
		uint64_t *buffer = calloc(words *= 2, sizeof(uint64_t));

		if (!buffer)
			return -ENOMEM;
		rc = read_into(mask, tid, buffer, words);
		free(buffer);
	}
	return rc;
}

/* A short mask is extended with zeros by the kernel, so the words we have are enough. */
int mc_cpumask_setaffinity(pid_t tid, const struct mc_cpumask *mask)
{
	return mc_os_setaffinity(tid, (mask->nbits + 63) / 64 * sizeof(uint64_t),
				 (unsigned long *)mask->word);
}
