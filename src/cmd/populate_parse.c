// SPDX-License-Identifier: MIT
/* populate_parse.c - sizes and numactl's sets, for `manycore populate`. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "cmd/populate.h"

bool populate_parse_size(const char *text, uint64_t *value)
{
	static const char units[] = "KMGTP";
	const char *unit;
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno)
		return false;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || (end[1] && strcasecmp(end + 1, "B") && strcasecmp(end + 1, "iB")))
			return false;
		for (const char *u = units; u <= unit; u++) {
			if (v > UINT64_MAX / 1024)
				return false;
			v *= 1024;
		}
	}
	*value = v;
	return v > 0;
}

static int failure(struct mc_error *error, int err, const char *text, const char *what)
{
	error->err = err;
	snprintf(error->text, sizeof(error->text), "'%s': %s", text, what);
	return -err;
}

/* A list whose numbers count within `allowed`. */
static int make_relative(struct mc_cpumask *m, const struct mc_cpumask *allowed)
{
	struct mc_cpumask *out = mc_cpumask_alloc_bits(m->nbits);
	unsigned int i;

	if (!out)
		return -ENOMEM;
	mc_for_each_cpu (i, m) {
		unsigned int k = mc_cpumask_nth(i, allowed);

		if (k >= allowed->nbits) {
			mc_cpumask_free(out);
			return -ERANGE;
		}
		mc_cpumask_set(out, k);
	}
	mc_cpumask_copy(m, out);
	mc_cpumask_free(out);
	return 0;
}

int populate_parse_set(const char *text, const struct mc_cpumask *allowed, struct mc_cpumask **mask,
		       struct mc_error *error)
{
	struct mc_cpumask *m;
	const char *list = text;
	bool invert = *list == '!', relative;
	int rc = 0;

	list += invert;
	relative = *list == '+';
	list += relative;
	if (!strcmp(list, "same"))
		return *mask ? 0 : failure(error, EINVAL, text, "there is no former set");
	m = mc_cpumask_alloc_bits(allowed->nbits);
	if (!m)
		return failure(error, ENOMEM, text, "out of memory");
	if (!strcmp(list, "all"))
		mc_cpumask_copy(m, allowed);
	else
		rc = mc_cpulist_parse(m, list, NULL);
	if (!rc && relative)
		rc = make_relative(m, allowed);
	if (!rc && invert)
		mc_cpumask_andnot(m, allowed, m);
	if (!rc && mc_cpumask_empty(m))
		rc = -EINVAL;
	if (!rc && !mc_cpumask_subset(m, allowed))
		rc = -ERANGE;
	if (rc < 0) {
		mc_cpumask_free(m);
		return failure(error, -rc, text,
			       rc == -EINVAL
				       ? "no list, or past the end of this machine's; lists are as in 0-3,8"
				       : "names some that are not online here, or not allowed");
	}
	mc_cpumask_free(*mask);
	*mask = m;
	return 0;
}
