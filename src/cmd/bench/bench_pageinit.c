// SPDX-License-Identifier: MIT
/*
 * bench_pageinit.c - `bench pageinit`: S3's table. Rows are threads, columns what is brought up;
 * each against one thread, memset over memory that is there, MAP_POPULATE, and QEMU's preallocation
 * where it is installed.
 *
 * A guest's memory comes back from its host slowly at random: every side is told by its
 * lower-quartile time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd/bench/bench_pageinit.h"

/* A case takes BUDGET_S and the round under way; once the whole run has taken WHOLE_S, which it
 * does where memory comes slowly, LATE_S. */
enum { ROUNDS = 9, ROUNDS_DEAR = 5, BUDGET_S = 18, WHOLE_S = 150, LATE_S = 3 };
enum { PROBES = 5, STALE_S = 20 };
/* Of the free memory: where peers hold as much at the same time, and where none does. */
static const double THIRD = 1.0 / 3, ALONE = 0.8;

static bool have_program(const char *name)
{
	const char *path = getenv("PATH");
	char full[4096];

	for (size_t n; path && *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		snprintf(full, sizeof(full), "%.*s/%s", (int)n, path, name);
		if (!access(full, X_OK))
			return true;
	}
	return false;
}

static long long read_number(const char *path, const char *key)
{
	char line[256];
	long long v = -1;
	FILE *f = fopen(path, "re");

	while (f && v < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			v = strtoll(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return v;
}

static double budget(void)
{
	static uint64_t begin;

	if (!begin)
		begin = bench_now_ns();
	return (double)(bench_now_ns() - begin) / 1e9 < WHOLE_S ? BUDGET_S : LATE_S;
}

/* How fast memory comes here just now, GB/s by one thread: a guest whose host gives it slowly would
 * take hours, and may begin to while this runs. The best of a few: the first are of what the host
 * took back. */
static double speed(void)
{
	static double rate;
	static uint64_t when;
	struct pageinit_job job = {.backing = MC_ARENA_THP,
				   .size = 256 << 20,
				   .threads = 1,
				   .flags = MC_ARENA_NO_DESCRIPTORS};

	if (when && (double)(bench_now_ns() - when) / 1e9 < STALE_S)
		return rate;
	rate = 0;
	for (int i = 0; i < PROBES && rate < 1; i++) {
		double r = pageinit_arena(&job);

		rate = r > rate ? r : rate;
	}
	when = bench_now_ns();
	return rate;
}

/* Size that is used: what the table says, less on smaller or slower machines, little for
 * --quick. At most `share` of the free memory. */
static uint64_t fit(struct bench *b, uint64_t want, double share)
{
	double free_bytes = (double)read_number("/proc/meminfo", "MemAvailable:") * 1024;

	if (bench_size(b))
		return bench_size(b);
	if (bench_quick(b))
		return 32 << 20;
	while (want > 64 << 20 &&
	       ((double)want > free_bytes * share || (double)want / 1e9 > 1.5 * speed()))
		want /= 2;
	return want;
}

struct column {
	const char *name;
	enum mc_arena_backing backing;
	uint64_t size;
	unsigned int flags;
	bool populate, memset, qemu;
	const char *unit;
};

static char *make_present(uint64_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_HUGEPAGE);
	memset(p, 1, size);
	return p;
}

static void measure(struct bench *b, const struct column *col, const struct mc_topology *topo,
		    unsigned int threads, uint64_t size, char *present)
{
	struct pageinit_job job = {.backing = col->backing,
				   .size = size,
				   .threads = threads,
				   .flags = col->flags,
				   .topo = topo,
				   .present = present};
	struct pageinit_job single = job;
	char name[64];
	struct bench_case c = {.name = name,
			       .unit = col->unit,
			       .self = {.sample = pageinit_arena, .arg = &job},
			       .rounds = ROUNDS,
			       .quantile = 0.75,
			       .budget_s = budget()};

	snprintf(name, sizeof(name), "%s-%ut", col->name, threads);
	single.threads = 1;
	if (threads > 1)
		c.peer[c.nr_peers++] = (struct bench_side){"1t", NULL, pageinit_arena, &single};
	if (present && col->memset)
		c.peer[c.nr_peers++] = (struct bench_side){"memset", NULL, pageinit_memset, &job};
	if (col->populate)
		c.peer[c.nr_peers++] =
			(struct bench_side){"map-populate", NULL, pageinit_map_populate, &job};
	if (!(col->flags & MC_ARENA_NO_PAGES))
		c.peer[c.nr_peers++] =
			(struct bench_side){"madvise-1t", NULL, pageinit_madvise, &job};
	if (col->flags & MC_ARENA_NO_PAGES)
		c.peer[c.nr_peers++] = (struct bench_side){"touch", NULL, pageinit_touch, &job};
	if (col->qemu && !bench_quick(b) && have_program("qemu-system-x86_64"))
		c.peer[c.nr_peers++] = (struct bench_side){"qemu", NULL, pageinit_qemu, &job};
	bench_run(b, &c);
	if (!(col->flags & MC_ARENA_NO_PAGES) || threads == 1)
		return;
	/* What the machine itself gives more threads: the same memory, and nothing but memset. */
	snprintf(name, sizeof(name), "%s-%ut-touch", col->name, threads);
	c.self.sample = c.peer[0].sample = pageinit_touch;
	c.nr_peers = 1;
	bench_run(b, &c);
}

/* Descriptors alone take little memory. */
static uint64_t column_size(struct bench *b, const struct column *col)
{
	bool whole = col->flags & MC_ARENA_NO_PAGES && !bench_quick(b) && !bench_size(b);

	return whole ? col->size : fit(b, col->size, THIRD);
}

/* Is any row of the column asked for? Setting it up is dear. */
static bool column_wanted(struct bench *b, const char *name)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool any = false;
	char row[64];

	for (unsigned int t = 1; t == 1 || t <= cpus; t *= 2) {
		snprintf(row, sizeof(row), "%s-%ut", name, t);
		any |= bench_wanted(b, row);
	}
	return any;
}

/* All rows of a column: 1, 2, 4 ... threads up to the CPUs. */
static void run_column(struct bench *b, const struct column *col, const struct mc_topology *topo,
		       uint64_t size)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char *present = NULL;

	if (size < col->size && !bench_quick(b))
		bench_note(b, "%s: %llu MiB at a time, for want of memory or of speed", col->name,
			   (unsigned long long)(size >> 20));
	if (col->memset)
		present = make_present(size);
	for (unsigned int t = 1; t == 1 || t <= cpus; t *= 2)
		measure(b, col, topo, t, size, present);
	if (present)
		munmap(present, size);
}

static void run_hugetlb(struct bench *b, const struct column *col, const struct mc_topology *topo)
{
	long long page = read_number("/proc/meminfo", "Hugepagesize:") * 1024, have, want;
	uint64_t size = fit(b, col->size, THIRD);
	struct pageinit_pool pool;
	bool raised = false;

	have = page > 0 ? pageinit_pool_free((uint64_t)page) : -1;
	if (have < 0) {
		bench_note(b, "hugetlb: this kernel has no huge page pool");
		return;
	}
	want = (long long)size / page;
	if (have < want)
		raised = pageinit_pool_raise(&pool, (uint64_t)page, want - have);
	have = pageinit_pool_free((uint64_t)page);
	if (have < want)
		bench_note(b, "hugetlb: %lld of %lld pages free; as root they would be reserved",
			   have, want);
	else
		run_column(b, col, topo, size);
	if (raised && !pageinit_pool_restore(&pool))
		bench_note(b, "hugetlb: the pool could not be set back to %lld pages", pool.old);
}

static void run_latencies(struct bench *b, const struct mc_topology *topo)
{
	unsigned int cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	struct pageinit_job first = {.backing = MC_ARENA_THP,
				     .size = fit(b, UINT64_C(16) << 30, ALONE),
				     .threads = cpus,
				     .topo = topo};
	struct pageinit_job help = {.backing = MC_ARENA_THP,
				    .size = fit(b, UINT64_C(4) << 30, THIRD),
				    .threads = cpus,
				    .topo = topo};
	struct pageinit_job lat = {.backing = MC_ARENA_ANON,
				   .size = fit(b, UINT64_C(1) << 30, THIRD),
				   .threads = cpus,
				   .topo = topo,
				   .flags = MC_ARENA_NO_DESCRIPTORS};
	struct bench_case c = {.name = "first-alloc",
			       .unit = "ms",
			       .self = {.sample = pageinit_first_alloc, .arg = &first},
			       .nr_peers = 1,
			       .peer = {{"whole", NULL, pageinit_other, &first}},
			       .rounds = ROUNDS_DEAR,
			       .quantile = 0.25,
			       .budget_s = budget()};

	if (bench_wanted(b, c.name) && first.size < UINT64_C(16) << 30)
		bench_note(b, "first-alloc: an arena of %llu MiB",
			   (unsigned long long)(first.size >> 20));
	bench_run(b, &c);
	c.name = "help-longest";
	c.self = (struct bench_side){.sample = pageinit_help_longest, .arg = &help};
	c.peer[0] = (struct bench_side){"chunk", NULL, pageinit_other, &help};
	c.rounds = ROUNDS;
	c.budget_s = budget();
	bench_run(b, &c);
	if (help.samples)
		bench_note(b,
			   "help-longest: %u of %u longest ones were preempted; CPU time %.2f ms at "
			   "most, %.2f ms on average",
			   help.preempted, help.samples, help.cpu_most,
			   help.cpu_sum / help.samples);
	c.budget_s = budget();
	c.name = "mmap-latency-p999";
	c.self = (struct bench_side){.sample = pageinit_latency_arena, .arg = &lat};
	c.peer[0] = (struct bench_side){"whole", NULL, pageinit_latency_whole, &lat};
	bench_run(b, &c);
	c.name = "mmap-latency-longest";
	lat.longest = true;
	c.budget_s = budget();
	bench_run(b, &c);
}

/* A file of its own, made and removed: that of the page cache case. */
static bool make_file(char *path, uint64_t size)
{
	char *block = malloc(1 << 20);
	int fd = mkostemp(path, O_CLOEXEC);
	bool ok = fd >= 0 && block;

	if (block)
		memset(block, 'x', 1 << 20);
	for (uint64_t at = 0; ok && at < size; at += 1 << 20)
		ok = write(fd, block, 1 << 20) == 1 << 20;
	ok = ok && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	free(block);
	return ok;
}

static void run_page_cache(struct bench *b, const struct mc_topology *topo)
{
	char path[] = "/var/tmp/manycore-bench-XXXXXX";
	struct pageinit_job job = {
		.size = bench_quick(b) ? 16 << 20 : UINT64_C(1) << 30, .topo = topo, .path = path};
	struct bench_case c = {.name = "pagecache-1t",
			       .unit = "GB/s",
			       .self = {.sample = pageinit_cache_arena, .arg = &job},
			       .rounds = ROUNDS_DEAR,
			       .quantile = 0.75,
			       .budget_s = budget()};

	if (!bench_wanted(b, c.name))
		return;
	if (have_program("vmtouch"))
		c.peer[c.nr_peers++] =
			(struct bench_side){"vmtouch", NULL, pageinit_cache_vmtouch, &job};
	else
		bench_note(b, "vmtouch: not installed");
	if (make_file(path, job.size))
		bench_run(b, &c);
	else
		bench_note(b, "pagecache-1t: no file of %llu MiB in /var/tmp: %s",
			   (unsigned long long)(job.size >> 20), strerror(errno));
	unlink(path);
}

void bench_pageinit_main(struct bench *b)
{
	static const struct column columns[] = {
		{"descriptors", MC_ARENA_THP, UINT64_C(16) << 30, MC_ARENA_NO_PAGES, false, false,
		 false, "Mpages/s"},
		{"anon4k", MC_ARENA_ANON, UINT64_C(1) << 30, MC_ARENA_NO_DESCRIPTORS, true, true,
		 false, "GB/s"},
		{"thp", MC_ARENA_THP, UINT64_C(4) << 30, MC_ARENA_NO_DESCRIPTORS, false, true, true,
		 "GB/s"},
		{"hugetlb", MC_ARENA_HUGETLB, UINT64_C(4) << 30, MC_ARENA_NO_DESCRIPTORS, true,
		 true, false, "GB/s"},
		{"memfd", MC_ARENA_MEMFD, UINT64_C(1) << 29, MC_ARENA_NO_DESCRIPTORS, true, true,
		 false, "GB/s"},
	};
	struct mc_topology *topo = NULL;

	if (mc_topology_live(&topo, NULL) < 0)
		topo = NULL;
	if (!have_program("qemu-system-x86_64"))
		bench_note(b, "qemu-system-x86_64: not installed");
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		const struct column *col = &columns[i];

		if (!column_wanted(b, col->name))
			continue;
		if (col->backing == MC_ARENA_HUGETLB)
			run_hugetlb(b, col, topo);
		else
			run_column(b, col, topo, column_size(b, col));
	}
	run_latencies(b, topo);
	run_page_cache(b, topo);
	mc_topology_put(topo);
}
