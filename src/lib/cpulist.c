// SPDX-License-Identifier: MIT
/*
 * cpulist.c - reading and writing lists of CPUs as the kernel does (`0-3,8`, `0-31:2/4`, `all`,
 * `N`).
 *
 * The caller's mask is changed only when the whole text is good, and no memory is allocated for
 * that. Follows lib/bitmap-str.c of Linux, its treatment of newlines included: one that follows a
 * region (without a pattern) ends the text, others are blanks.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "internal.h"

/* CPUs a .. b; with group != 0 only the first `used` of each `group`. */
struct region {
	unsigned int a, b, used, group;
};

struct scan {
	const char *p; /* where reading goes on; after an error the place of the fault */
	unsigned int nbits;
};

static bool digit(char c)
{
	return (unsigned char)(c - '0') <= 9;
}

static bool separator(char c)
{
	return c == ',' || c == ' ' || (c >= '\t' && c <= '\r');
}

/* A number of more digits than surely fit: leading zeros are allowed. */
static int long_number(const char *p, unsigned int *value)
{
	uint64_t v = 0;

	for (; digit(*p); p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v > UINT32_MAX)
			return -EOVERFLOW;
	}
	*value = (unsigned int)v;
	return 0;
}

/* A decimal number or N. On error s->p stays at its first character. */
static inline int number(struct scan *s, unsigned int *value)
{
	const char *p = s->p;
	unsigned int v = 0;

	if (mc_unlikely(!digit(*p))) {
		if (*p != 'N')
			return -EINVAL;
		*value = s->nbits - 1;
		s->p++;
		return 0;
	}
	/* Most numbers have up to four digits: one predictable branch each. */
	v = (unsigned int)(*p++ - '0');
	if (digit(*p)) {
		v = v * 10 + (unsigned int)(*p++ - '0');
		if (digit(*p)) {
			v = v * 10 + (unsigned int)(*p++ - '0');
			while (digit(*p))
				v = v * 10 + (unsigned int)(*p++ - '0');
		}
	}
	if (mc_unlikely(p - s->p > 9)) {
		int rc = long_number(s->p, &v);

		if (rc < 0)
			return rc;
	}
	*value = v;
	s->p = p;
	return 0;
}

/* `:used/group` has been reached. */
static int pattern(struct scan *s, struct region *r)
{
	int rc;

	s->p++;
	rc = number(s, &r->used);
	if (rc < 0)
		return rc;
	if (*s->p != '/')
		return -EINVAL;
	s->p++;
	return number(s, &r->group);
}

/* The region must lie in the mask. `second` is where b's text begins, `group` where the pattern
 * does. */
static int check(struct scan *s, const struct region *r, const char *second, const char *group)
{
	int rc = 0;

	if (r->a > r->b || (!group && r->b == UINT32_MAX)) {
		rc = -EINVAL;
		s->p = second;
	} else if (group && (!r->group || r->used > r->group)) {
		rc = -EINVAL;
		s->p = group + 1;
	} else if (r->b >= s->nbits) {
		rc = -ERANGE;
		s->p = second;
	}
	return rc;
}

/* The next region: 1; 0 at the text's end. */
static inline int next_region(struct scan *s, struct region *r)
{
	const char *second, *group = NULL;
	int rc;

	while (separator(*s->p))
		s->p++;
	if (!*s->p)
		return 0;
	second = s->p;
	r->group = 0;
	if (mc_unlikely((*s->p | 32) == 'a') && !strncasecmp(s->p, "all", 3)) {
		s->p += 3;
		r->a = 0;
		r->b = s->nbits - 1;
	} else {
		rc = number(s, &r->a);
		if (mc_unlikely(rc < 0))
			return rc;
		r->b = r->a;
		if (*s->p == ',' && r->a < s->nbits) /* the most usual case */
			return 1;
		if (!*s->p || separator(*s->p))
			goto checks;
		if (*s->p != '-')
			return -EINVAL;
		second = ++s->p;
		rc = number(s, &r->b);
		if (mc_unlikely(rc < 0))
			return rc;
	}
	if (*s->p && !separator(*s->p)) {
		if (*s->p != ':')
			return -EINVAL;
		group = s->p;
		rc = pattern(s, r);
		if (rc < 0)
			return rc;
	}
checks:
	rc = check(s, r, second, group);
	return rc < 0 ? rc : 1;
}

/* After a region: does the text end here? */
static bool ends(const struct scan *s, const struct region *r)
{
	return *s->p == '\n' && !r->group;
}

/* CPUs a .. b of a word. */
static inline uint64_t bits_of(unsigned int a, unsigned int b)
{
	return ~UINT64_C(0) << a & ~UINT64_C(0) >> (63 - b);
}

/* The next CPUs *a .. *b of a region with a pattern, taken off it; false: there are no more. */
static bool next_run(struct region *r, unsigned int *a, unsigned int *b)
{
	unsigned int left = r->b - r->a + 1;

	if (!r->used)
		return false;
	*a = r->a;
	*b = r->a + (r->used < left ? r->used : left) - 1;
	if (left <= r->group)
		r->used = 0;
	else
		r->a += r->group;
	return true;
}

static inline void apply(struct mc_cpumask *mask, const struct region *r)
{
	struct region rest = *r;
	unsigned int a, b;

	if (mc_likely(!r->group && r->a / 64 == r->b / 64))
		mask->bits[r->a / 64] |= bits_of(r->a % 64, r->b % 64);
	else if (!r->group)
		mc_cpumask_set_range(mask, r->a, r->b - r->a + 1);
	else
		while (next_run(&rest, &a, &b))
			mc_cpumask_set_range(mask, a, b - a + 1);
}

/* What is read is held back until the text's end is seen: the first regions as they are, the rest
 * in a mask of ours. */
enum { KEPT = 8, DRAFT_BITS = 8192 };

/* Regions from s on into `mask`, which may be NULL. */
static int read_all(struct scan *s, struct mc_cpumask *mask)
{
	struct region r;
	int rc;

	while ((rc = next_region(s, &r)) > 0) {
		if (mask)
			apply(mask, &r);
		if (ends(s, &r))
			return 0;
	}
	return rc;
}

/* A text of more than KEPT regions: s stands after those. */
static int long_text(struct scan *s, struct mc_cpumask *mask, const struct region *kept)
{
	union {
		struct mc_cpumask mask;
		uint64_t room[4 + DRAFT_BITS / 64];
	} draft;
	struct mc_cpumask *into = mask;
	struct scan again = *s;
	int rc;

	if (mask->nbits <= DRAFT_BITS) {
		into = mc_cpumask_init(&draft, mask->nbits);
		rc = read_all(s, into);
	} else {
		/* Too wide for the stack of a thread: read twice instead. */
		rc = read_all(s, NULL);
	}
	if (rc < 0)
		return rc;
	if (into == mask) {
		mc_cpumask_zero(mask);
		read_all(&again, mask);
	}
	for (unsigned int i = 0; i < KEPT; i++)
		apply(into, &kept[i]);
	if (into != mask)
		mc_cpumask_copy(mask, into);
	return 0;
}

/* Up to 64 CPUs: the draft is a word. */
static int one_word(struct scan *s, struct mc_cpumask *mask)
{
	unsigned int a, b;
	uint64_t word = 0;
	struct region r;
	int rc;

	while ((rc = next_region(s, &r)) > 0) {
		if (mc_likely(!r.group))
			word |= bits_of(r.a, r.b);
		else
			while (next_run(&r, &a, &b))
				word |= bits_of(a, b);
		if (ends(s, &r)) {
			rc = 0;
			break;
		}
	}
	if (!rc)
		mask->bits[0] = word;
	return rc;
}

/* mask = a .. b, a usual text. The fences keep the loops from becoming calls of memset, dear for
 * few words. */
static void only(struct mc_cpumask *mask, unsigned int a, unsigned int b)
{
	unsigned int n = (mask->nbits + 63) / 64, i = 0;
	uint64_t low = ~UINT64_C(0) << a % 64, high = ~UINT64_C(0) >> (63 - b % 64);

	for (; i < a / 64; i++) {
		__atomic_signal_fence(__ATOMIC_ACQ_REL);
		mask->bits[i] = 0;
	}
	if (a / 64 == b / 64) {
		mask->bits[i++] = low & high;
	} else {
		for (mask->bits[i++] = low; i < b / 64; i++) {
			__atomic_signal_fence(__ATOMIC_ACQ_REL);
			mask->bits[i] = ~UINT64_C(0);
		}
		mask->bits[i++] = high;
	}
	for (; i < n; i++) {
		__atomic_signal_fence(__ATOMIC_ACQ_REL);
		mask->bits[i] = 0;
	}
}

static int many_words(struct scan *s, struct mc_cpumask *mask)
{
	struct region kept[KEPT];
	unsigned int n = 0;
	int rc = next_region(s, &kept[0]);

	if (rc > 0 && !*s->p && !kept[0].group && mask->nbits <= 1024) {
		only(mask, kept[0].a, kept[0].b);
		return 0;
	}
	if (rc > 0 && ends(s, &kept[n++]))
		rc = 0;
	while (rc > 0 && n < KEPT && (rc = next_region(s, &kept[n])) > 0)
		if (ends(s, &kept[n++])) {
			rc = 0;
			break;
		}
	if (rc > 0) {
		rc = long_text(s, mask, kept);
	} else if (!rc) {
		mc_cpumask_zero(mask);
		for (unsigned int i = 0; i < n; i++)
			apply(mask, &kept[i]);
	}
	return rc;
}

int mc_cpulist_parse(struct mc_cpumask *mask, const char *text, size_t *where)
{
	struct scan s = {text, mask->nbits};
	int rc = mask->nbits <= 64 ? one_word(&s, mask) : many_words(&s, mask);

	if (rc < 0 && where)
		*where = (size_t)(s.p - text);
	return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* As snprintf(): counts all, writes what fits. */
struct out {
	char *buf;
	size_t size, len;
};

enum { MOST_DIGITS = 10 };

/* Writes v's digits so that they end before `end`; gives their start. */
static char *digits(char *end, unsigned int v)
{
	do {
		*--end = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return end;
}

static void put_number(struct out *o, char before, unsigned int v)
{
	char text[MOST_DIGITS + 1], *end = text + sizeof(text), *p = digits(end, v);
	size_t n;

	if (before)
		*--p = before;
	n = (size_t)(end - p);
	if (mc_likely(o->len + n < o->size))
		memcpy(o->buf + o->len, p, n);
	else if (o->len + 1 < o->size)
		memcpy(o->buf + o->len, p, o->size - 1 - o->len);
	o->len += n;
}

static size_t finish(struct out *o)
{
	if (o->size)
		o->buf[o->len < o->size ? o->len : o->size - 1] = '\0';
	return o->len;
}

size_t mc_cpulist_snprint(char *buf, size_t size, const struct mc_cpumask *mask)
{
	struct out o = {buf, size, 0};
	unsigned int n = mask->nbits, a, b;

	for (a = mc_cpumask_first(mask); a < n; a = mc_cpumask_next((int)b, mask)) {
		put_number(&o, o.len ? ',' : 0, a);
		b = a;
		if (mc_cpumask_test(mask, a + 1)) {
			b = mc_cpumask_next_zero((int)a, mask) - 1;
			put_number(&o, '-', b);
		}
	}
	return finish(&o);
}
