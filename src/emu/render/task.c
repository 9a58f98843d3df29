// SPDX-License-Identifier: MIT
/* task.c - a process's own files: the host's text with the emulated CPUs and nodes written into it.
 */
#include <errno.h>
#include <stdlib.h>
#include "impl.h"

static bool starts(const char *line, size_t len, const char *key)
{
	size_t n = strlen(key);

	return len >= n && !memcmp(line, key, n);
}

/* Mems_allowed is as wide as the kernel's limit of nodes, from which libnuma takes it; masks may be
 * narrower. */
static void put_mems(struct mc_render *render, struct mc_text *out, const struct mc_cpumask *mems)
{
	struct mc_topology *topo = mc_render_topology(render);
	struct mc_cpumask *wide = mc_cpumask_alloc_bits(mc_topology_max_numnodes(topo));
	unsigned int node;

	if (wide) {
		mc_for_each_cpu (node, mems)
			if (node < mc_topology_max_numnodes(topo))
				mc_cpumask_set(wide, node);
		mc_text_mask(out, wide);
	} else {
		out->failed = true;
	}
	mc_cpumask_free(wide);
	mc_topology_put(topo);
}

/* True when the line was replaced. */
static bool put_line(struct mc_render *render, struct mc_text *out, const char *line, size_t len,
		     const struct mc_render_task *task)
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
	else if (key == mems)
		put_mems(render, out, mask);
	else
		mc_text_mask(out, mask);
	mc_text_add(out, "\n", 1);
	return true;
}

int mc_render_status(struct mc_render *render, const char *host, size_t len,
		     const struct mc_render_task *task, struct mc_text *out)
{
	const char *end = host + len, *stop;

	while (host < end) {
		stop = memchr(host, '\n', (size_t)(end - host));
		stop = stop ? stop + 1 : end;
		if (!put_line(render, out, host, (size_t)(stop - host), task))
			mc_text_add(out, host, (size_t)(stop - host));
		host = stop;
	}
	return out->failed ? -ENOMEM : 0;
}

/* The 39th field; the name in parentheses may hold blanks and parentheses, so fields count from its
 * last ')'. */
int mc_render_stat_line(struct mc_render *render, const char *host, size_t len,
			const struct mc_render_task *task, struct mc_text *out)
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
