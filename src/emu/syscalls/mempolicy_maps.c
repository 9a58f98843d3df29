// SPDX-License-Identifier: MIT
/*
 * mempolicy_maps.c - /proc/PID/numa_maps of the emulated machine, and the figures of its nodes.
 *
 * The host's mappings are split where policies change, as the kernel would have split them; counts
 * come from the page map. What only the host's own numa_maps tells (mapmax, active, writeback) is
 * taken from there where a line is not split.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy.h"

struct line {
	struct mp_state *state;
	uint64_t start, end;
	uint64_t *node; /* pages on each */
	uint64_t pages, anon, dirty, shared;
};

static int count(void *arg, const struct mp_vma *vma, uint64_t addr, const struct mp_page *page)
{
	struct line *line = arg;

	(void)vma;
	(void)addr;
	if (page->what != MP_PRESENT)
		return 0;
	line->pages++;
	line->node[page->node]++;
	if (!page->file)
		line->anon++;
	/* An anonymous page is there because it was written; of shared memory nothing is clean. */
	if (!page->file || vma->kind == MP_SHMEM)
		line->dirty++;
	if (!page->exclusive)
		line->shared++;
	return 0;
}

/* The number behind " key=" in a line of the host's, -1: not there. */
static long host_value(const char *line, size_t len, const char *key)
{
	const char *p = memmem(line, len, key, strlen(key));

	return p ? strtol(p + strlen(key), NULL, 10) : -1;
}

/* The host's line for a mapping that starts at `start`. */
static const char *host_line(const char *text, uint64_t start, size_t *len)
{
	while (text && *text) {
		const char *end = strchrnul(text, '\n');

		if (strtoull(text, NULL, 16) == start) {
			*len = (size_t)(end - text);
			return text;
		}
		text = *end ? end + 1 : end;
	}
	return NULL;
}

/* A path as seq_path() escapes it in numa_maps; /proc/PID/maps has escaped newlines and backslashes
 * already. */
static void put_path(struct mc_text *out, const char *path)
{
	for (; *path; path++) {
		if (strchr("\t= ", *path))
			mc_text_printf(out, "\\%03o", (unsigned int)*path);
		else
			mc_text_add(out, path, 1);
	}
}

static void put_line(struct mc_text *out, const struct line *line, const struct mp_vma *vma,
		     const char *name, const struct pol *pol, const char *host, size_t host_len)
{
	const struct pol_machine *machine = line->state->machine;
	long value;

	mc_text_printf(out, "%08llx ", (unsigned long long)line->start);
	pol_text(out, pol);
	if (vma->kind == MP_FILE || vma->kind == MP_SHMEM) {
		mc_text_printf(out, " file=");
		put_path(out, name);
	} else if (vma->heap) {
		mc_text_printf(out, " heap");
	} else if (vma->stack) {
		mc_text_printf(out, " stack");
	}
	if (vma->huge)
		mc_text_printf(out, " huge");
	if (line->pages) {
		if (line->anon)
			mc_text_printf(out, " anon=%llu", (unsigned long long)line->anon);
		value = host ? host_value(host, host_len, " dirty=") : (long)line->dirty;
		if (value > 0)
			mc_text_printf(out, " dirty=%ld", value);
		if (line->pages != line->anon && line->pages != (uint64_t)value)
			mc_text_printf(out, " mapped=%llu", (unsigned long long)line->pages);
		value = host ? host_value(host, host_len, " mapmax=") : line->shared ? 2 : 0;
		if (value > 1)
			mc_text_printf(out, " mapmax=%ld", value);
		value = host ? host_value(host, host_len, " active=") : -1;
		if (value >= 0)
			mc_text_printf(out, " active=%ld", value);
		for (unsigned int n = pol_next(machine->memory, machine->words, 0);
		     n != POL_NO_NODE; n = pol_next(machine->memory, machine->words, n + 1))
			if (line->node[n])
				mc_text_printf(out, " N%u=%llu", n,
					       (unsigned long long)line->node[n]);
		value = host ? host_value(host, host_len, " kernelpagesize_kB=") : -1;
		mc_text_printf(out, " kernelpagesize_kB=%ld",
			       value > 0 ? value : (long)(line->state->page / 1024));
	}
	mc_text_printf(out, "\n");
}

/* One mapping: a line for each part with a policy of its own. */
static int put_vma(struct emu *emu, struct emu_task *task, const struct mp_maps *maps,
		   const struct mp_vma *vma, const char *host, struct mc_text *out)
{
	struct mp_state *state = mp_state(emu);
	struct emu_mm *mm = task->process->mm;
	uint64_t at = vma->start, to;

	for (; at < vma->end; at = to) {
		struct line line = {.state = state, .start = at};
		struct mp_maps again;
		const char *text;
		size_t len = 0;
		struct pol *pol;
		int rc;

		(void)pol_ranges_at(&mm->ranges, at, &to);
		line.end = to = to < vma->end ? to : vma->end;
		line.node = calloc(state->machine->nr_node_ids, sizeof(*line.node));
		if (!line.node)
			return -ENOMEM;
		rc = mp_settle(emu, task->process, at, to, &again, count, &line);
		mp_maps_free(&again);
		pol = mp_vma_policy(state, mm, vma, at);
		text = at == vma->start && to == vma->end ? host_line(host, at, &len) : NULL;
		if (!rc)
			put_line(out, &line, vma, maps->text + vma->name,
				 pol            ? pol
				 : task->policy ? task->policy->pol
						: NULL,
				 text, len);
		pol_put(pol);
		free(line.node);
		if (rc)
			return rc;
	}
	return 0;
}

static char *read_host(pid_t pid)
{
	char path[64], *text = NULL;
	size_t len = 0, room = 0;
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/numa_maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	while (n > 0) {
		if (room - len < 4096) {
			char *bigger = realloc(text, room + 65536);

			if (!bigger)
				break;
			text = bigger;
			room += 65536;
		}
		n = read(fd, text + len, room - len - 1);
		if (n > 0)
			len += (size_t)n;
	}
	close(fd);
	if (text)
		text[len] = '\0';
	return text;
}

int emu_policy_numa_maps(struct emu *emu, struct emu_task *task, struct mc_text *out)
{
	struct mp_maps maps;
	char *host;
	int rc;

	if (!mp_state(emu) || !mp_mm(task->process))
		return -ENOMEM;
	if (!mc_topology_has_numa(emu_topology(emu)))
		return -ENOENT;
	host = read_host(task->process->tgid);
	rc = mp_settle(emu, task->process, 0, 0, &maps, NULL, NULL);
	for (size_t i = 0; i < maps.count && !rc; i++)
		rc = put_vma(emu, task, &maps, &maps.vma[i], host, out);
	mp_maps_free(&maps);
	free(host);
	return rc;
}

/* ---- figures of the nodes -------------------------------------------------------------------- */

/* Resident pages, 0: not known. */
static uint64_t resident(pid_t pid)
{
	unsigned long pages = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages;
}

/* Programs that never asked are looked at too, and go on as if they had not been. What was given
 * back without a fault since shows in how many pages are resident. */
static void look_at(struct emu *emu, struct emu_process *process)
{
	bool asked = process->mm && process->mm->asked;
	uint64_t now = resident(process->tgid);

	if (process->mm && process->mm->resident != now)
		process->mm->faults = 0;
	mp_settle_all(emu, process);
	if (process->mm) {
		process->mm->asked = asked;
		process->mm->resident = now;
	}
}

/* Figures are at most this old: one file names them for every node. */
enum { FRESH_NS = 20000000 };

static void freshen(struct emu *emu)
{
	struct mp_state *state = mp_state(emu);
	struct timespec now;
	uint64_t ns, last;

	if (!state)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	last = __atomic_load_n(&state->looked, __ATOMIC_RELAXED);
	if (ns - last < FRESH_NS ||
	    !__atomic_compare_exchange_n(&state->looked, &last, ns, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	emu_each_process_now(emu, look_at);
	clock_gettime(CLOCK_MONOTONIC, &now); /* the look itself may have taken long */
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	__atomic_store_n(&state->looked, ns, __ATOMIC_RELAXED);
}

static void node_usage(void *arg, unsigned int node, struct mc_node_usage *usage)
{
	struct mp_state *state = mp_state(arg);

	freshen(arg);
	*usage = (struct mc_node_usage){0};
	if (state && node < state->machine->nr_node_ids)
		usage->anon = __atomic_load_n(&state->used[node], __ATOMIC_RELAXED) * state->page;
}

static void node_counters(void *arg, unsigned int node, struct mc_node_counters *counters)
{
	struct mp_state *state = mp_state(arg);
	const struct mc_node_counters *from;

	freshen(arg);
	*counters = (struct mc_node_counters){0};
	if (!state || node >= state->machine->nr_node_ids)
		return;
	from = &state->counters[node];
	/* Other processes' pages are counted meanwhile. */
	counters->numa_hit = __atomic_load_n(&from->numa_hit, __ATOMIC_RELAXED);
	counters->numa_miss = __atomic_load_n(&from->numa_miss, __ATOMIC_RELAXED);
	counters->numa_foreign = __atomic_load_n(&from->numa_foreign, __ATOMIC_RELAXED);
	counters->interleave_hit = __atomic_load_n(&from->interleave_hit, __ATOMIC_RELAXED);
	counters->local_node = __atomic_load_n(&from->local_node, __ATOMIC_RELAXED);
	counters->other_node = __atomic_load_n(&from->other_node, __ATOMIC_RELAXED);
}

/* ---- weights --------------------------------------------------------------------------------- */

static const char weights[] = "/sys/kernel/mm/mempolicy/weighted_interleave/node";

static int value(void *arg, const char *path, struct mc_text *out)
{
	struct mp_state *state = mp_state(arg);
	unsigned long node;
	char *end;

	if (!state || strncmp(path, weights, sizeof(weights) - 1))
		return -ENOENT;
	node = strtoul(path + sizeof(weights) - 1, &end, 10);
	if (*end || node >= state->machine->nr_node_ids)
		return -ENOENT;
	mc_text_printf(out, "%u\n",
		       __atomic_load_n(&state->machine->weight[node], __ATOMIC_RELAXED));
	return 0;
}

/* node_store(): 1 to 255; 0 or nothing is the default, 1. */
int emu_policy_set_weight(struct emu *emu, unsigned int node, const char *text, size_t len)
{
	struct mp_state *state = mp_state(emu);
	unsigned long weight;
	char *end;

	(void)len;
	if (!state || node >= state->machine->nr_node_ids)
		return -ENOENT;
	errno = 0;
	weight = strtoul(text, &end, 0);
	if (errno || *text == '-' || weight > 255 || (*end && strcmp(end, "\n")) ||
	    (end == text && *text != '\n' && *text))
		return -EINVAL;
	__atomic_store_n(&state->machine->weight[node], (uint8_t)(weight ? weight : 1),
			 __ATOMIC_RELAXED);
	return 0;
}

void emu_policy_live(struct emu *emu, struct mc_render_live *live)
{
	live->arg = emu;
	live->node_usage = node_usage;
	live->node_counters = node_counters;
	live->value = value;
}
