// SPDX-License-Identifier: MIT
/* text.c - a growing text: what every maker of content writes to. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "render.h"

/* Room for `more` bytes and a NUL behind them. */
static bool reserve(struct mc_text *text, size_t more)
{
	size_t want, room;
	char *data;

	if (text->failed)
		return false;
	if (__builtin_add_overflow(text->len, more, &want) || want == SIZE_MAX)
		goto fail;
	if (want + 1 <= text->room)
		return true;
	room = text->room ? text->room : 128;
	while (room < want + 1) {
		if (__builtin_mul_overflow(room, 2, &room))
			goto fail;
	}
	data = realloc(text->data, room);
	if (!data)
		goto fail;
	text->data = data;
	text->room = room;
	return true;
fail:
	text->failed = true;
	return false;
}

void mc_text_add(struct mc_text *text, const void *data, size_t len)
{
	if (!reserve(text, len))
		return;
	if (len)
		memcpy(text->data + text->len, data, len);
	text->len += len;
	text->data[text->len] = '\0';
}

void mc_text_printf(struct mc_text *text, const char *format, ...)
{
	va_list ap;
	int len;

	if (!reserve(text, 80))
		return;
	va_start(ap, format);
	len = vsnprintf(text->data + text->len, text->room - text->len, format, ap);
	va_end(ap);
	if (len < 0) {
		text->failed = true;
		text->data[text->len] = '\0';
		return;
	}
	if ((size_t)len >= text->room - text->len) {
		if (!reserve(text, (size_t)len)) {
			if (text->data)
				text->data[text->len] = '\0';
			return;
		}
		va_start(ap, format);
		vsnprintf(text->data + text->len, text->room - text->len, format, ap);
		va_end(ap);
	}
	text->len += (size_t)len;
}

void mc_text_list(struct mc_text *text, const struct mc_cpumask *mask)
{
	size_t len;

	if (!reserve(text, 64))
		return;
	len = mc_cpulist_snprint(text->data + text->len, text->room - text->len, mask);
	if (len >= text->room - text->len) {
		if (!reserve(text, len)) {
			text->data[text->len] = '\0';
			return;
		}
		mc_cpulist_snprint(text->data + text->len, text->room - text->len, mask);
	}
	text->len += len;
}

void mc_text_mask(struct mc_text *text, const struct mc_cpumask *mask)
{
	size_t len = (mask->nbits + 3) / 4 + mask->nbits / 32 + 2;

	if (!reserve(text, len))
		return;
	text->len += mc_cpumask_snprint(text->data + text->len, text->room - text->len, mask);
}

void mc_text_free(struct mc_text *text)
{
	free(text->data);
	memset(text, 0, sizeof(*text));
}
