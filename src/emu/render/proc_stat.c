// SPDX-License-Identifier: MIT
/*
 * proc_stat.c - the files with a column or a line for each CPU: /proc/stat, softirqs, interrupts,
 * schedstat, uptime.
 *
 * They move, so they come from the host: emulated CPU e shows what host CPU e mod n does, as its
 * threads run there. Numbered interrupts are shown on the first n CPUs only, so that their sums
 * stay true.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "impl.h"

#define STAT_FIELDS 10

struct times {
	unsigned long long v[STAT_FIELDS];
};

struct host_stat {
	char *text;
	size_t len;
	struct times *cpu;
	size_t nr;
	unsigned int fields;
	const char *rest; /* the lines after the CPUs */
};

static const char *parse_times(const char *line, struct times *times, unsigned int *fields)
{
	unsigned int i;
	char *end;

	memset(times, 0, sizeof(*times));
	for (i = 0; i < STAT_FIELDS && *line == ' '; i++) {
		times->v[i] = strtoull(line, &end, 10);
		if (end == line)
			break;
		line = end;
	}
	*fields = i;
	return line + strcspn(line, "\n");
}

static int read_stat(struct host_stat *stat)
{
	const char *line, *end;
	unsigned int lines = 0;
	int ret = rn_host_read("/proc/stat", &stat->text, &stat->len);

	if (ret < 0)
		return ret;
	for (line = stat->text; !strncmp(line, "cpu", 3); line += *line == '\n') {
		line += strcspn(line, "\n");
		lines++;
	}
	stat->rest = line;
	stat->cpu = calloc(lines + 1, sizeof(*stat->cpu));
	if (!stat->cpu)
		return -ENOMEM;
	for (line = stat->text; line < stat->rest; line = end + (*end == '\n')) {
		line += 3;
		if (*line == ' ') {
			end = line + strcspn(line, "\n");
			continue;
		}
		line += strspn(line, "0123456789");
		end = parse_times(line, &stat->cpu[stat->nr++], &stat->fields);
	}
	if (!stat->nr)
		stat->nr = 1; /* zeros */
	return 0;
}

static void put_times(struct mc_text *out, const struct times *times, unsigned int fields)
{
	unsigned int i;

	for (i = 0; i < fields; i++)
		mc_text_printf(out, " %llu", times->v[i]);
	mc_text_add(out, "\n", 1);
}

int rn_proc_stat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = mc_topology_online(at->topo);
	struct host_stat stat = {0};
	struct times sum = {0};
	unsigned int cpu, i;
	int ret = read_stat(&stat);

	(void)entry;
	if (!ret) {
		mc_for_each_cpu (cpu, online) {
			for (i = 0; i < STAT_FIELDS; i++)
				sum.v[i] += stat.cpu[cpu % stat.nr].v[i];
		}
		mc_text_add(out, "cpu ", 4);
		put_times(out, &sum, stat.fields);
		mc_for_each_cpu (cpu, online) {
			mc_text_printf(out, "cpu%u", cpu);
			put_times(out, &stat.cpu[cpu % stat.nr], stat.fields);
		}
		mc_text_add(out, stat.rest, (size_t)(stat.text + stat.len - stat.rest));
	}
	free(stat.cpu);
	free(stat.text);
	return ret;
}

/* Seconds up, then the idle seconds of all CPUs. */
int rn_proc_uptime(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = mc_topology_online(at->topo);
	unsigned int cpus = mc_cpumask_weight(online);
	double up, idle;
	char *text;
	size_t len;
	int ret = rn_host_read("/proc/uptime", &text, &len);

	(void)entry;
	if (ret < 0)
		return ret;
	if (sscanf(text, "%lf %lf", &up, &idle) == 2)
		mc_text_printf(out, "%.2f %.2f\n", up, idle / at->view->host_cpus * cpus);
	else
		mc_text_add(out, text, len);
	free(text);
	return 0;
}

/* ---- tables with a column for each CPU ---- */

/* A line's counts, one for each host CPU: "%u" columns until something that is no number. */
static size_t parse_counts(const char *line, size_t len, unsigned long long *count, size_t max,
			   size_t *used)
{
	size_t at = 0, n = 0, start;

	*used = 0;
	while (n < max) {
		start = at;
		while (at < len && line[at] == ' ')
			at++;
		if (at == start || at >= len || line[at] < '0' || line[at] > '9')
			break;
		count[n] = strtoull(line + at, NULL, 10);
		while (at < len && line[at] >= '0' && line[at] <= '9')
			at++;
		if (at < len && line[at] != ' ')
			break; /* "4-edge": part of a name */
		n++;
		*used = at;
	}
	return n;
}

static size_t count_columns(const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len), *at = text;
	size_t n = 0;

	while (end && (at = memmem(at, (size_t)(end - at), "CPU", 3))) {
		n++;
		at += 3;
	}
	return n;
}

/* One row: "NAME:" then the columns, then what follows them on the host. */
static void put_row(struct mc_text *out, const char *line, size_t len,
		    const struct mc_cpumask *cpus, unsigned long long *count, size_t columns)
{
	const char *colon = memchr(line, ':', len);
	size_t head = colon ? (size_t)(colon + 1 - line) : len, n, used, i;
	bool numbered;
	unsigned int cpu;

	n = parse_counts(line + head, len - head, count, columns, &used);
	if (n < columns || !n) { /* ERR and MIS have one count for all */
		mc_text_add(out, line, len);
		mc_text_add(out, "\n", 1);
		return;
	}
	for (i = 0; i < head && line[i] == ' '; i++)
		;
	numbered = line[i] >= '0' && line[i] <= '9';
	mc_text_add(out, line, head);
	mc_for_each_cpu (cpu, cpus)
		mc_text_printf(out, " %10llu",
			       numbered && cpu >= columns ? 0 : count[cpu % columns]);
	mc_text_add(out, line + head + used, len - head - used);
	mc_text_add(out, "\n", 1);
}

/* /proc/interrupts (online CPUs) and /proc/softirqs (possible ones): entry->arg tells. */
int rn_proc_columns(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *cpus =
		entry->arg ? mc_topology_possible(at->topo) : mc_topology_online(at->topo);
	unsigned long long *count;
	const char *line, *end, *stop;
	unsigned int cpu;
	size_t len, columns;
	char *text;
	int ret = rn_host_read(at->path, &text, &len);

	if (ret < 0)
		return ret;
	columns = count_columns(text, len);
	count = calloc(columns + 1, sizeof(*count));
	if (!count) {
		free(text);
		return -ENOMEM;
	}
	line = text;
	end = text + len;
	mc_text_printf(out, "%*s", (int)strspn(text, " "), "");
	mc_for_each_cpu (cpu, cpus)
		mc_text_printf(out, "CPU%-8u", cpu);
	mc_text_add(out, "\n", 1);
	for (line += strcspn(line, "\n") + 1; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			stop = end;
		put_row(out, line, (size_t)(stop - line), cpus, count, columns);
	}
	free(count);
	free(text);
	return 0;
}

/* ---- schedstat ---- */

/* Text that follows the first `skip` words of a line, up to its end. */
static const char *after_words(const char *line, unsigned int skip, size_t *len)
{
	while (skip--) {
		line += strcspn(line, " \n");
		line += *line == ' ';
	}
	*len = strcspn(line, "\n");
	return line;
}

/* One line for each level of sharing that adds CPUs, as the scheduler builds its domains. */
static void put_domains(struct mc_text *out, const struct rn_at *at, unsigned int cpu,
			const char *sample, bool named)
{
	static const char *const name[] = {"SMT", "CLS", "MC", "PKG", "NUMA"};
	const struct mc_cpumask *mask, *last = NULL;
	unsigned int level, index = 0, weight = 1;
	const char *fields =
		"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
	size_t len = strlen(fields);

	if (sample)
		fields = after_words(sample, named ? 3 : 2, &len);
	for (level = MC_LEVEL_CORE; level <= MC_LEVEL_PACKAGE + 1; level++) {
		mask = level <= MC_LEVEL_PACKAGE
			       ? mc_topology_siblings(at->topo, cpu, (enum mc_level)level)
			       : mc_topology_online(at->topo);
		if (!mask || mask == last || mc_cpumask_weight(mask) <= weight)
			continue;
		weight = mc_cpumask_weight(mask);
		last = mask;
		mc_text_printf(out, "domain%u ", index++);
		if (named)
			mc_text_printf(out, "%s ", name[level]);
		mc_text_mask(out, mask);
		mc_text_printf(out, " %.*s\n", (int)len, fields);
	}
}

int rn_proc_schedstat(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	const struct mc_cpumask *online = mc_topology_online(at->topo);
	const char **line, *pos, *sample = NULL;
	unsigned int cpu;
	size_t len, rest, nr = 0;
	char *text;
	int version = 0, ret = rn_host_read("/proc/schedstat", &text, &len);

	(void)entry;
	if (ret < 0)
		return ret == -ENOENT ? rn_source_read(at, out) : ret;
	line = calloc(at->view->host_cpus + 1, sizeof(*line));
	if (!line) {
		free(text);
		return -ENOMEM;
	}
	for (pos = text; *pos; pos += strcspn(pos, "\n"), pos += *pos == '\n') {
		if (!strncmp(pos, "cpu", 3)) {
			if (nr < at->view->host_cpus)
				line[nr++] = pos;
		} else if (!strncmp(pos, "domain", 6)) {
			sample = sample ? sample : pos;
		} else {
			sscanf(pos, "version %d", &version);
			mc_text_add(out, pos, strcspn(pos, "\n"));
			mc_text_add(out, "\n", 1);
		}
	}
	mc_for_each_cpu (cpu, online) {
		if (nr) {
			pos = after_words(line[cpu % nr], 1, &rest);
			mc_text_printf(out, "cpu%u %.*s\n", cpu, (int)rest, pos);
		}
		put_domains(out, at, cpu, sample, version >= 17);
	}
	free(line);
	free(text);
	return 0;
}
