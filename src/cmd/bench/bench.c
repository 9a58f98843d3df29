// SPDX-License-Identifier: MIT
/*
 * bench.c - `manycore bench`: options, the measuring loop, text and JSON output. The benches are in
 * the other files here.
 */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "cmd/bench/bench.h"
#include "cmd/bench/bench_run.h"
#include "cmd/cmd.h"
#include "cmd/populate.h"

enum { ROUNDS = 31, QUICK_ROUNDS = 3, MIN_SIZE = 4 << 20 };
static const double SLICE_NS = 2e5, QUICK_SLICE_NS = 2e4;
/* A ratio whose p90 is this much above its p10 is marked noisy. */
static const double NOISY = 1.5;

struct bench {
	bool json, quick;
	const char *filter;
	unsigned int rounds;    /* from --rounds, 0: default */
	uint64_t size;          /* from --size, 0: default */
	bool any;               /* a case was wanted, whether or not it could run */
	struct json_object *cases, *notes;
};

uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool bench_quick(const struct bench *b)
{
	return b->quick;
}

uint64_t bench_size(const struct bench *b)
{
	return b->size;
}

bool bench_wanted(struct bench *b, const char *case_name)
{
	if (b->filter && !strstr(case_name, b->filter))
		return false;
	b->any = true;
	return true;
}

void bench_note(struct bench *b, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	json_object_array_add(b->notes, json_object_new_string(text));
	if (!b->json)
		printf("# %s\n", text);
}

static int compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* Sorts v and gives the q-quantile. */
static double quantile(double *v, unsigned int n, double q)
{
	qsort(v, n, sizeof(*v), compare);
	return v[(unsigned int)(q * (double)(n - 1) + 0.5)];
}

static double time_slice(const struct bench_side *s, uint64_t iterations)
{
	uint64_t t;

	if (s->sample)
		return s->sample(s->arg);
	t = bench_now_ns();
	s->fn(s->arg, iterations);
	return (double)(bench_now_ns() - t) / (double)iterations;
}

/* How many operations fill a slice; also warms the caches up. */
static uint64_t calibrate(const struct bench_side *s, double slice_ns)
{
	uint64_t n = 1;

	if (s->sample)
		return 0;
	/* The first call of all may map memory and fault it in: not a measure of how long one
	 * takes. */
	s->fn(s->arg, 1);
	for (;;) {
		uint64_t t = bench_now_ns();

		s->fn(s->arg, n);
		t = bench_now_ns() - t;
		if ((double)t > slice_ns / 4 || n > (UINT64_C(1) << 40)) {
			double want = (double)n * slice_ns / ((double)t + 1);

			return want < 1 ? 1 : (uint64_t)want;
		}
		n *= 4;
	}
}

static struct json_object *number(double v)
{
	char text[32];

	snprintf(text, sizeof(text), "%.4g", v);
	return json_object_new_double_s(v, text);
}

static void add_stats(struct json_object *o, double *v, unsigned int n, double q)
{
	json_object_object_add(o, "median", number(quantile(v, n, q > 0 ? q : 0.5)));
	json_object_object_add(o, "p10", number(quantile(v, n, 0.1)));
	json_object_object_add(o, "p90", number(quantile(v, n, 0.9)));
}

static void report(struct bench *b, const struct bench_case *c, double **v, unsigned int n)
{
	struct json_object *o = json_object_new_object(), *peers = json_object_new_object();
	double *ratio = calloc(n, sizeof(*ratio));

	json_object_object_add(o, "name", json_object_new_string(c->name));
	json_object_object_add(o, "unit", json_object_new_string(c->unit ? c->unit : "ns"));
	/* The peers' ratios first: add_stats() sorts and so loses which round a sample is of. */
	for (unsigned int i = 0; ratio && i < c->nr_peers; i++) {
		struct json_object *p = json_object_new_object();
		double m;

		for (unsigned int k = 0; k < n; k++)
			ratio[k] = v[0][k] / v[i + 1][k];
		m = quantile(ratio, n, 0.5);
		json_object_object_add(p, "ratio", number(m));
		if (quantile(ratio, n, 0.9) > NOISY * quantile(ratio, n, 0.1))
			json_object_object_add(p, "noisy", json_object_new_boolean(1));
		json_object_object_add(peers, c->peer[i].name, p);
	}
	for (unsigned int i = 0; c->quantile > 0 && i < c->nr_peers; i++)
		json_object_object_add(json_object_object_get(peers, c->peer[i].name), "ratio",
				       number(quantile(v[0], n, c->quantile) /
					      quantile(v[i + 1], n, c->quantile)));
	for (unsigned int i = 0; i < c->nr_peers; i++)
		add_stats(json_object_object_get(peers, c->peer[i].name), v[i + 1], n, c->quantile);
	add_stats(o, v[0], n, c->quantile);
	if (c->quantile > 0)
		json_object_object_add(o, "quantile", number(c->quantile));
	json_object_object_add(o, "peers", peers);
	if (!b->json) {
		printf("%-26s %10.4g %-8s", c->name,
		       quantile(v[0], n, c->quantile > 0 ? c->quantile : 0.5),
		       c->unit ? c->unit : "ns");
		json_object_object_foreach(peers, name, p)
			printf("  %s %.2fx%s", name, json_object_get_double(json_object_object_get(p, "ratio")),
			       json_object_object_get(p, "noisy") ? "?" : "");
		putchar('\n');
		fflush(stdout);
	}
	json_object_array_add(b->cases, o);
	free(ratio);
}

void bench_run(struct bench *b, const struct bench_case *c)
{
	unsigned int sides = c->nr_peers + 1, n = c->rounds ? c->rounds : ROUNDS;
	double slice = c->slice_ns > 0 ? c->slice_ns : SLICE_NS;
	uint64_t iterations[BENCH_MAX_PEERS + 1], begin;
	double *v[BENCH_MAX_PEERS + 1] = { NULL };

	if (!bench_wanted(b, c->name) || sides > BENCH_MAX_PEERS + 1)
		return;
	if (b->rounds)
		n = b->rounds;
	if (b->quick) {
		n = QUICK_ROUNDS;
		slice = QUICK_SLICE_NS;
	}
	for (unsigned int i = 0; i < sides; i++) {
		const struct bench_side *s = i ? &c->peer[i - 1] : &c->self;

		v[i] = calloc(n, sizeof(double));
		if (!v[i])
			goto out;
		iterations[i] = calibrate(s, slice);
	}
	begin = bench_now_ns();
	for (unsigned int k = 0; k < n; k++) {
		for (unsigned int i = 0; i < sides; i++)
			v[i][k] = time_slice(i ? &c->peer[i - 1] : &c->self, iterations[i]);
		if (c->budget_s > 0 && (double)(bench_now_ns() - begin) / 1e9 > c->budget_s)
			n = k + 1;
	}
	report(b, c, v, n);
out:
	for (unsigned int i = 0; i < sides; i++)
		free(v[i]);
}

static struct json_object *machine(void)
{
	struct json_object *o = json_object_new_object();
	struct utsname u;

	uname(&u);
	json_object_object_add(o, "kernel", json_object_new_string(u.release));
	json_object_object_add(o, "arch", json_object_new_string(u.machine));
	json_object_object_add(o, "cpus", json_object_new_int((int)sysconf(_SC_NPROCESSORS_ONLN)));
	return o;
}

static void run_one(struct bench *b, const struct bench_def *d, struct json_object *all)
{
	struct json_object *o = json_object_new_object();

	b->cases = json_object_new_array();
	b->notes = json_object_new_array();
	if (!b->json)
		printf("## %s: %s\n", d->name, d->summary);
	d->run(b);
	json_object_object_add(o, "bench", json_object_new_string(d->name));
	json_object_object_add(o, "machine", machine());
	json_object_object_add(o, "cases", b->cases);
	json_object_object_add(o, "notes", b->notes);
	json_object_array_add(all, o);
}

static int usage(void)
{
	puts("Usage: manycore bench NAME|all [--json] [--quick] [--filter TEXT] [--rounds N] [--size SIZE]\n\n"
	     "Measures cases and their peers in one run, in interleaved slices; the ratio is ours / peer's.\n\n"
	     "  --json         one JSON document on standard output, nothing else\n"
	     "  --quick        tiny counts: shows that it works, not how fast\n"
	     "  --filter TEXT  only cases whose name has TEXT in it\n"
	     "  --rounds N     slices a case (default 31)\n"
	     "  --size SIZE    memory of one sample (pageinit, interleave), such as 512M\n"
	     "  -h, --help     this text\n\n"
	     "Exit status: 0; 1 when a measurement or the output failed; 2 wrong usage.\n\nBenches:");
	for (const struct bench_def *d = bench_table; d->name; d++)
		printf("  %-12s %s\n", d->name, d->summary);
	return cmd_finish("bench", CMD_OK);
}

enum { OPT_JSON = 0x5000, OPT_QUICK, OPT_FILTER, OPT_ROUNDS, OPT_SIZE };

static const struct option long_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "filter", required_argument, NULL, OPT_FILTER },
	{ "rounds", required_argument, NULL, OPT_ROUNDS },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int take_option(struct bench *b, int opt, const char *value)
{
	char *end;

	switch (opt) {
	case OPT_JSON:
		b->json = true;
		return CMD_OK;
	case OPT_QUICK:
		b->quick = true;
		return CMD_OK;
	case OPT_FILTER:
		b->filter = value;
		return CMD_OK;
	case OPT_ROUNDS:
		b->rounds = (unsigned int)strtoul(value, &end, 10);
		if (*value < '0' || *value > '9' || *end || b->rounds < 1 || b->rounds > 1000000)
			return cmd_usage_error("bench", "--rounds: '%s': give 1 to 1000000", value);
		return CMD_OK;
	default:
		if (!populate_parse_size(value, &b->size) || b->size < MIN_SIZE)
			return cmd_usage_error("bench", "--size: '%s': give a size of 4M or more, as 512M",
					       value);
		return CMD_OK;
	}
}

int cmd_bench(int argc, char **argv)
{
	struct bench b = { 0 };
	struct json_object *all;
	const char *name;
	bool known = false;
	int opt, status;

	/* The two forms that `bench run` starts by itself. */
	if (argc == 2 && !strcmp(argv[1], "--run-worker"))
		return bench_run_worker();
	if (argc == 2 && !strcmp(argv[1], "--run-stamp"))
		return bench_run_stamp();
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == 'h')
			return usage();
		if (opt == '?' || opt == ':')
			return cmd_option_error("bench", opt, argv);
		status = take_option(&b, opt, optarg);
		if (status)
			return status;
	}
	name = argv[optind];
	if (!name)
		return cmd_usage_error("bench", "which bench? 'all' runs every one");
	if (argv[optind + 1])
		return cmd_usage_error("bench", "'%s': one bench at a time, or 'all'",
				       argv[optind + 1]);
	all = json_object_new_array();
	for (const struct bench_def *d = bench_table; d->name; d++)
		if (!strcmp(name, "all") || !strcmp(name, d->name)) {
			known = true;
			run_one(&b, d, all);
		}
	if (!known) {
		json_object_put(all);
		return cmd_usage_error("bench", "there is no bench '%s'", name);
	}
	if (b.filter && !b.any) {
		json_object_put(all);
		return cmd_usage_error("bench", "--filter: no case of %s has '%s' in its name", name,
				       b.filter);
	}
	if (b.json) {
		struct json_object *doc = json_object_array_length(all) == 1
						  ? json_object_array_get_idx(all, 0)
						  : all;

		puts(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PRETTY |
								 JSON_C_TO_STRING_SPACED |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	}
	json_object_put(all);
	return cmd_finish("bench", CMD_OK);
}
