// SPDX-License-Identifier: MIT
/*
 * nr_cpu_ids.c - how many CPU and node numbers the live machine has: the size of every default
 * mask.
 *
 * Sources, best first: the kernel's list of possible CPUs; the smallest buffer that
 * sched_getaffinity() accepts, which tells the kernel's nr_cpu_ids rounded up to a word; sysconf().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "os/os.h"

enum { PROBE_MAX_WORDS = 1 << 14 };

/* Last number of the list + 1, or 0. A list that the kernel cut at its page's end (no newline) is
 * not believed. */
static unsigned int from_list(int root, const char *path)
{
	unsigned int nr = 0;
	char *text, *p;
	size_t len;

	if (mc_os_read_file(root, path, 1 << 20, &text, &len) < 0)
		return 0;
	if (len && text[len - 1] == '\n') {
		unsigned long last;

		for (p = text + len - 1; p > text && p[-1] >= '0' && p[-1] <= '9';)
			p--;
		last = strtoul(p, NULL, 10);
		if (*p >= '0' && *p <= '9' && last < INT32_MAX)
			nr = (unsigned int)last + 1;
	}
	free(text);
	return nr;
}

static bool accepted(unsigned int words, unsigned long *buffer)
{
	return mc_os_getaffinity(0, words * sizeof(uint64_t), buffer) >= 0;
}

static unsigned int from_affinity(void)
{
	unsigned long *buffer = calloc(PROBE_MAX_WORDS, sizeof(uint64_t));
	unsigned int hi = 1, lo;

	if (!buffer)
		return 0;
	while (hi < PROBE_MAX_WORDS && !accepted(hi, buffer))
		hi *= 2;
	for (lo = hi / 2 + 1; lo < hi;) {
		unsigned int mid = (lo + hi) / 2;

		if (accepted(mid, buffer))
			hi = mid;
		else
			lo = mid + 1;
	}
	if (!accepted(hi, buffer))
		hi = 0;
	free(buffer);
	return hi * 64;
}

/* Keeps the first answer: masks of two default sizes must not meet. */
static unsigned int keep(unsigned int *cached, unsigned int nr)
{
	unsigned int none = 0;

	if (__atomic_compare_exchange_n(cached, &none, nr, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return nr;
	return none;
}

unsigned int mc_nr_cpu_ids(void)
{
	static unsigned int cached;
	unsigned int nr = __atomic_load_n(&cached, __ATOMIC_RELAXED);

	if (mc_likely(nr))
		return nr;
	nr = from_list(MC_ROOT_LIVE, "/sys/devices/system/cpu/possible");
	if (!nr)
		nr = from_affinity();
	if (!nr) {
		long conf = sysconf(_SC_NPROCESSORS_CONF);

		nr = conf > 0 ? (unsigned int)conf : 1;
	}
	return keep(&cached, nr);
}

unsigned int mc_nr_node_ids(void)
{
	static unsigned int cached;
	unsigned int nr = __atomic_load_n(&cached, __ATOMIC_RELAXED);

	if (mc_likely(nr))
		return nr;
	nr = from_list(MC_ROOT_LIVE, "/sys/devices/system/node/possible");
	return keep(&cached, nr ? nr : 1);
}
