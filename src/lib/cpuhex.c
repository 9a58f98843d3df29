// SPDX-License-Identifier: MIT
/*
 * cpuhex.c - reading and writing masks as hex text in chunks of 32 bits, as in the kernel's cpumap
 * files.
 *
 * Reading goes from the right, twice: first to check, then to fill, so that a bad text leaves the
 * mask as it was. Differs from the kernel in one point: a ninth character of a chunk that is no hex
 * digit is an error, not skipped.
 */
#include <errno.h>
#include "internal.h"

enum { CHUNK_BITS = 32, CHUNK_DIGITS = 8 };

static bool separator(char c)
{
	return c == ',' || c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One chunk that ends before *end, which moves to its start; *at is the place of a fault. */
static int chunk(const char *start, const char **end, uint32_t *value, const char **at)
{
	unsigned int n = 0;
	const char *p;

	*value = 0;
	for (p = *end; p > start && !separator(p[-1]); p--, n++) {
		int v = hex(p[-1]);

		*at = p - 1;
		if (v < 0)
			return -EINVAL;
		if (n >= CHUNK_DIGITS)
			return -EOVERFLOW;
		*value |= (uint32_t)v << 4 * n;
	}
	*end = p;
	return 0;
}

/* Reads the whole text; fills `mask` unless it is NULL. */
static int walk(struct mc_cpumask *mask, unsigned int nbits, const char *start, const char *end,
		const char **at)
{
	uint32_t value;
	int rc;

	for (uint64_t bit = 0;; bit += CHUNK_BITS) {
		while (end > start && separator(end[-1]))
			end--;
		if (end == start)
			return 0;
		rc = chunk(start, &end, &value, at);
		if (rc < 0)
			return rc;
		*at = end;
		if (bit >= nbits || (nbits - bit < CHUNK_BITS && value >> (nbits - bit)))
			return -EOVERFLOW;
		if (mask)
			mask->bits[bit / 64] |= (uint64_t)value << bit % 64;
	}
}

int mc_cpumask_parse(struct mc_cpumask *mask, const char *text, size_t *where)
{
	const char *end = text, *at = text;
	int rc;

	while (*end && *end != '\n')
		end++;
	rc = walk(NULL, mask->nbits, text, end, &at);
	if (rc < 0) {
		if (where)
			*where = (size_t)(at - text);
		return rc;
	}
	mc_cpumask_zero(mask);
	return walk(mask, mask->nbits, text, end, &at);
}

size_t mc_cpumask_snprint(char *buf, size_t size, const struct mc_cpumask *mask)
{
	unsigned int nibbles = (mask->nbits + 3) / 4;
	size_t len = 0;

	while (nibbles--) {
		unsigned int v = (unsigned int)(mask->word[nibbles / 16] >> nibbles % 16 * 4) & 15;

		if (len + 1 < size)
			buf[len] = "0123456789abcdef"[v];
		len++;
		if (nibbles && nibbles % CHUNK_DIGITS == 0) {
			if (len + 1 < size)
				buf[len] = ',';
			len++;
		}
	}
	if (size)
		buf[len < size ? len : size - 1] = '\0';
	return len;
}
