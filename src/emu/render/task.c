// SPDX-License-Identifier: MIT
/* task.c - a process's own files: the host's text with the emulated CPUs and nodes written into it. */
#include <errno.h>
#include <stdlib.h>
#include "impl.h"

static bool starts(const char *line, size_t len, const char *key)
{
	size_t n = strlen(key);

	return len >= n && !memcmp(line, key, n);
}

/* True when the line was replaced. */
static bool put_line(struct mc_text *out, const char *line, size_t len, const struct mc_render_task *task)
{
	static const char cpus[] = "Cpus_allowed:\t", cpu_list[] = "Cpus_allowed_list:\t";
	static const char mems[] = "Mems_allowed:\t", mem_list[] = "Mems_allowed_list:\t";
	const char *key;
	bool list;
	const struct mc_cpumask *mask;

	if (starts(line, len, "Cpus_allowed")) {
		mask = task->allowed;
		list = starts(line, len, "Cpus_allowed_list");
		key = list ? cpu_list : cpus;
	} else if (starts(line, len, "Mems_allowed")) {
		mask = task->mems ? &task->mems->m : NULL;
		list = starts(line, len, "Mems_allowed_list");
		key = list ? mem_list : mems;
	} else {
		return false;
	}
	if (!mask)
		return false;
	mc_text_add(out, key, strlen(key));
	if (list)
		mc_text_list(out, mask);
	else
		mc_text_mask(out, mask);
	mc_text_add(out, "\n", 1);
	return true;
}

int mc_render_status(struct mc_render *render, const char *host, size_t len, const struct mc_render_task *task,
		     struct mc_text *out)
{
	const char *end = host + len, *stop;

	(void)render;
	while (host < end) {
		stop = memchr(host, '\n', (size_t)(end - host));
		stop = stop ? stop + 1 : end;
		if (!put_line(out, host, (size_t)(stop - host), task))
			mc_text_add(out, host, (size_t)(stop - host));
		host = stop;
	}
	return out->failed ? -ENOMEM : 0;
}

/* The 39th field; the name in parentheses may hold blanks and parentheses, so fields count from its last ')'. */
int mc_render_stat_line(struct mc_render *render, const char *host, size_t len, const struct mc_render_task *task,
			struct mc_text *out)
{
	const char *pos = memrchr(host, ')', len), *end = host + len;
	unsigned int field = 2;

	(void)render;
	while (task->cpu >= 0 && pos && field < 39) {
		pos = memchr(pos, ' ', (size_t)(end - pos));
		if (!pos)
			break;
		pos++;
		field++;
	}
	if (task->cpu < 0 || !pos || field != 39) {
		mc_text_add(out, host, len);
		return out->failed ? -ENOMEM : 0;
	}
	mc_text_add(out, host, (size_t)(pos - host));
	mc_text_printf(out, "%d", task->cpu);
	while (pos < end && *pos >= '0' && *pos <= '9')
		pos++;
	mc_text_add(out, pos, (size_t)(end - pos));
	return out->failed ? -ENOMEM : 0;
}
