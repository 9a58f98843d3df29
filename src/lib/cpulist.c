// SPDX-License-Identifier: MIT
/*
 * cpulist.c - the kernel's two text forms of a mask: lists (`0-3,8`, `0-31:2/4`, `all`, `N`) and
 * hex words.
 *
 * Parsers work on a copy and change the caller's mask only when the whole text is good.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "internal.h"

enum { WORD_BITS = 64, CHUNK_BITS = 32 };

struct scan {
	const char *text, *p;
	unsigned int nbits;
};

static bool at_end(const char *p)
{
	return !*p || *p == '\n';
}

static bool separator(char c)
{
	return c == ',' || c == ' ' || (c >= '\t' && c <= '\r');
}

/* A decimal number or N. Advances only past what it accepts. */
static int number(struct scan *s, unsigned int *value)
{
	uint64_t v = 0;
	const char *p = s->p;

	if (*p == 'N') {
		*value = s->nbits - 1;
		s->p++;
		return 0;
	}
	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v > UINT32_MAX)
			return -EOVERFLOW;
	}
	*value = (unsigned int)v;
	s->p = p;
	return 0;
}

static int region(struct scan *s, struct mc_cpumask *mask)
{
	const char *start = s->p;
	unsigned int a, b, used, group;
	bool range = false;
	int rc;

	if (!strncasecmp(s->p, "all", 3)) {
		s->p += 3;
		a = 0;
		b = s->nbits - 1;
		range = true;
	} else {
		if ((rc = number(s, &a)) < 0)
			return rc;
		b = a;
		if (*s->p == '-') {
			s->p++;
			if ((rc = number(s, &b)) < 0)
				return rc;
			range = true;
		}
	}
	used = group = b - a + 1;
	if (range && *s->p == ':') {
		s->p++;
		if ((rc = number(s, &used)) < 0)
			return rc;
		if (*s->p != '/')
			return -EINVAL;
		s->p++;
		if ((rc = number(s, &group)) < 0)
			return rc;
	}
	if (!at_end(s->p) && !separator(*s->p))
		return -EINVAL;
	if (a > b || !group || used > group || b == UINT32_MAX) {
		s->p = start;
		return -EINVAL;
	}
	if (b >= s->nbits) {
		s->p = start;
		return -ERANGE;
	}
	for (unsigned int at = a; at <= b; at += group) {
		unsigned int n = used < b - at + 1 ? used : b - at + 1;

		mc_cpumask_set_range(mask, at, n);
		if (group > b - at)
			break;
	}
	return 0;
}

int mc_cpulist_parse(struct mc_cpumask *mask, const char *text, size_t *where)
{
	struct mc_cpumask *copy = mc_cpumask_alloc_bits(mask->nbits);
	struct scan s = {text, text, mask->nbits};
	int rc = 0;

	if (!copy)
		return -ENOMEM;
	while (rc == 0) {
		while (!at_end(s.p) && separator(*s.p))
			s.p++;
		if (at_end(s.p))
			break;
		rc = region(&s, copy);
	}
	if (rc == 0)
		mc_cpumask_copy(mask, copy);
	else if (where)
		*where = (size_t)(s.p - text);
	mc_cpumask_free(copy);
	return rc;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'                 ? c - '0'
	       : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
						    : -1;
}

static int parse_hex(struct mc_cpumask *mask, const char *text, const char **at)
{
	const char *end = text;
	unsigned int chunk = 0;

	while (!at_end(end))
		end++;
	while (end > text && separator(end[-1]))
		end--;
	for (const char *p = end; p > text; chunk++) {
		unsigned int digits = 0;

		for (; p > text && !separator(p[-1]); p--, digits++) {
			int v = hex(p[-1]);
			uint64_t bit = (uint64_t)chunk * CHUNK_BITS + digits * 4;

			*at = p - 1;
			if (v < 0)
				return -EINVAL;
			if (digits >= CHUNK_BITS / 4)
				return -EOVERFLOW;
			for (int i = 0; i < 4; i++)
				if (v >> i & 1) {
					if (bit + (unsigned int)i >= mask->nbits)
						return -EOVERFLOW;
					mc_cpumask_set(mask, (unsigned int)bit + (unsigned int)i);
				}
		}
		if (p > text && separator(p[-1]))
			p--;
	}
	*at = text;
	return chunk ? 0 : -EINVAL;
}

int mc_cpumask_parse(struct mc_cpumask *mask, const char *text, size_t *where)
{
	struct mc_cpumask *copy = mc_cpumask_alloc_bits(mask->nbits);
	const char *at = text;
	int rc;

	if (!copy)
		return -ENOMEM;
	rc = parse_hex(copy, text, &at);
	if (rc == 0)
		mc_cpumask_copy(mask, copy);
	else if (where)
		*where = (size_t)(at - text);
	mc_cpumask_free(copy);
	return rc;
}

/* Appends as snprintf() would: counts always, writes while there is room for a NUL after. */
static size_t put(char *buf, size_t size, size_t have, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (have + i + 1 < size)
			buf[have + i] = text[i];
	if (size)
		buf[have + n < size ? have + n : size - 1] = '\0';
	return have + n;
}

size_t mc_cpulist_snprint(char *buf, size_t size, const struct mc_cpumask *mask)
{
	size_t have = put(buf, size, 0, "");
	char text[32];

	for (unsigned int a = mc_cpumask_first(mask), b; a < mask->nbits;
	     a = mc_cpumask_next((int)b, mask)) {
		for (b = a; mc_cpumask_test(mask, b + 1);)
			b++;
		if (b == a)
			snprintf(text, sizeof(text), "%s%u", have ? "," : "", a);
		else
			snprintf(text, sizeof(text), "%s%u-%u", have ? "," : "", a, b);
		have = put(buf, size, have, text);
	}
	return have;
}

size_t mc_cpumask_snprint(char *buf, size_t size, const struct mc_cpumask *mask)
{
	size_t have = put(buf, size, 0, "");
	unsigned int chunks = (mask->nbits + CHUNK_BITS - 1) / CHUNK_BITS;
	char text[16];

	for (unsigned int i = chunks; i-- > 0;) {
		unsigned int bits = i + 1 == chunks && mask->nbits % CHUNK_BITS
					    ? mask->nbits % CHUNK_BITS
					    : CHUNK_BITS;

		snprintf(text, sizeof(text), "%0*x%s", (int)(bits + 3) / 4,
			 (unsigned int)(mask->word[i / 2] >> i % 2 * CHUNK_BITS), i ? "," : "");
		have = put(buf, size, have, text);
	}
	return have;
}
