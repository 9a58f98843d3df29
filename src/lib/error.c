// SPDX-License-Identifier: MIT
/* error.c - struct mc_error and the version. */
#include <stdio.h>
#include "internal.h"

const char *mc_version(void)
{
	return MC_VERSION_STRING;
}

static void fill(struct mc_error *error, int err, size_t where, const char *format, va_list ap)
{
	if (!error)
		return;
	error->err = err;
	error->where = where;
	vsnprintf(error->text, sizeof(error->text), format, ap);
}

int mc_fail(struct mc_error *error, int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fill(error, err, 0, format, ap);
	va_end(ap);
	return -err;
}

int mc_fail_at(struct mc_error *error, int err, size_t where, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fill(error, err, where, format, ap);
	va_end(ap);
	return -err;
}
