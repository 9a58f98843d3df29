// SPDX-License-Identifier: MIT
/*
 * test_policy.c - the policy engine against what Linux 6.12 answered
 * (tests/conformance/transcripts): arguments and their errors, what is read back, and where pages
 * go; then ranges and pages against a plain model.
 *
 * The machine is built from the transcript's own env lines, so that nothing here depends on how
 * topologies are read.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "emu/policy/policy.h"

enum { PAGE = 4096, BUF_WORDS = 1024 + 8 };

struct transcript {
	struct pol_machine machine;
	unsigned int n0, n1, bad, memonly, cases, wrong;
	uint64_t mask[BUF_WORDS];
	bool null_mask;
};

/* ---- reading ---- */

static FILE *open_transcript(const char *name)
{
	static const char here[] = __FILE__;
	const char *slash = strrchr(here, '/');
	char command[4096];

	snprintf(command, sizeof(command), "gzip -dc '%.*s/../conformance/transcripts/%s.txt.gz'",
		 (int)(slash - here), here, name);
	return popen(command, "r");
}

static void parse_list(uint64_t *set, unsigned int words, const char *text)
{
	memset(set, 0, words * sizeof(*set));
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long a = strtoul(text, &end, 10), b = a;

		if (*end == '-')
			b = strtoul(end + 1, &end, 10);
		for (; a <= b && a < words * 64; a++)
			pol_setbit(set, (unsigned int)a);
		text = *end == ',' ? end + 1 : end;
	}
}

static int errno_of(const char *name)
{
	static const struct {
		const char *name;
		int err;
	} table[] = {{"0", 0},         {"EINVAL", EINVAL}, {"EFAULT", EFAULT},
		     {"EPERM", EPERM}, {"ENODEV", ENODEV}, {"EIO", EIO},
		     {"ESRCH", ESRCH}, {"ENOENT", ENOENT}, {"EOPNOTSUPP", EOPNOTSUPP}};
	size_t len = strcspn(name, " \n");

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strlen(table[i].name) == len && !strncmp(table[i].name, name, len))
			return table[i].err;
	fail_msg("unknown errno in a transcript: %s", name);
	return -1;
}

/* "BIND|STATIC" up to the dot; -1 when it is none. */
static int mode_of(const char *text)
{
	static const char *const base[] = {
		"DEFAULT",        "PREFERRED",           "BIND", "INTERLEAVE", "LOCAL",
		"PREFERRED_MANY", "WEIGHTED_INTERLEAVE", "M7",   "M8"};
	size_t len = strcspn(text, "|.");
	int mode = -1;

	for (int i = 0; i < 9; i++)
		if (strlen(base[i]) == len && !strncmp(base[i], text, len))
			mode = i;
	if (mode < 0)
		return -1;
	for (text += len; *text == '|'; text += strcspn(text + 1, "|.") + 1) {
		if (text[1] == 'S')
			mode |= MC_MPOL_F_STATIC_NODES;
		else if (text[1] == 'R')
			mode |= MC_MPOL_F_RELATIVE_NODES;
		else
			mode |= MC_MPOL_F_NUMA_BALANCING;
	}
	return mode;
}

static void machine_init(struct transcript *t, FILE *f)
{
	struct pol_machine *m = &t->machine;
	static char line[1 << 16];
	static unsigned int distance[64][64];
	char memory[256] = "0", online[256] = "0", possible[256] = "0";
	unsigned int bits = 0, node;
	uint64_t set[16];

	while (fgets(line, sizeof(line), f) && strncmp(line, "env.sysconf", 11)) {
		sscanf(line, "env.node.has_memory | \"%255[^\"]", memory);
		sscanf(line, "env.node.online | \"%255[^\"]", online);
		sscanf(line, "env.node.possible | \"%255[^\"]", possible);
		if (!strncmp(line, "env.status | Mems_allowed:", 26))
			for (const char *p = strchr(line, '\t'); *p; p++)
				bits += strchr("0123456789abcdef", *p) ? 4 : 0;
		sscanf(line,
		       "env.symbols | n0=%u n1=%u nlast=%*u badnode=%u cpuonly=%*d memonly=%u",
		       &t->n0, &t->n1, &t->bad, &t->memonly);
		if (sscanf(line, "env.node%u.distance", &node) == 1 && node < 64) {
			char *p = strchr(line, '"') + 1;

			for (unsigned int i = 0; i < 64 && *p && *p != '"'; i++)
				distance[node][i] = (unsigned int)strtoul(p, &p, 10);
		}
	}
	m->max_numnodes = bits;
	m->words = (bits + 63) / 64;
	assert_in_range(bits, 1, 1024);
	m->online = calloc(m->words * 3, 8);
	m->memory = m->online + m->words;
	m->allowed = m->memory + m->words;
	parse_list(m->online, m->words, online);
	parse_list(m->memory, m->words, memory);
	parse_list(m->allowed, m->words, memory);
	parse_list(set, m->words, possible);
	for (node = 0; node < bits; node++)
		if (pol_isset(set, node))
			m->nr_node_ids = node + 1;
	m->nr_memory = pol_weight(m->memory, m->words);
	m->weight = calloc(m->nr_node_ids, 1);
	memset(m->weight, 1, m->nr_node_ids);
	m->capacity = calloc(m->nr_node_ids, 8);
	m->order = calloc((size_t)m->nr_node_ids * m->nr_memory, sizeof(*m->order));
	for (node = 0; node < m->nr_node_ids; node++) {
		uint64_t left[16];

		m->capacity[node] = 1 << 20;
		memcpy(left, m->memory, m->words * 8);
		for (unsigned int i = 0; i < m->nr_memory; i++) {
			unsigned int best = POL_NO_NODE;

			for (unsigned int n = pol_next(left, m->words, 0); n != POL_NO_NODE;
			     n = pol_next(left, m->words, n + 1))
				if (best == POL_NO_NODE || n == node ||
				    (best != node && distance[node][n] < distance[node][best]))
					best = n;
			m->order[node * m->nr_memory + i] = best;
			left[best / 64] &= ~(1ULL << best % 64);
		}
	}
}

static void machine_done(struct pol_machine *m)
{
	free(m->online);
	free(m->weight);
	free(m->capacity);
	free(m->order);
}

/* ---- one call ---- */

static int copy_mask(void *arg, void *to, uint64_t from, size_t len)
{
	struct transcript *t = arg;

	if (from < PAGE || from - PAGE + len > sizeof(t->mask))
		return -EFAULT;
	memcpy(to, (char *)t->mask + (from - PAGE), len);
	return 0;
}

static void mask_named(struct transcript *t, const char *name)
{
	size_t len = strcspn(name, " .\n");
	unsigned int far = 0;

	memset(t->mask, 0, sizeof(t->mask));
	t->null_mask = !strncmp(name, "NULL", len);
	if (!strncmp(name, "allmem", len) && len == 6)
		memcpy(t->mask, t->machine.memory, t->machine.words * 8);
	if (!strncmp(name, "n0", 2))
		pol_setbit(t->mask, t->n0);
	if (!strncmp(name, "n1", 2) || !strncmp(name, "n0+n1", 5))
		pol_setbit(t->mask, t->n1);
	if (sscanf(name, "bit%u", &far) == 1 || sscanf(name, "n0+bit%u", &far) == 1)
		pol_setbit(t->mask, far);
	if (!strncmp(name, "bad", 3) || !strncmp(name, "n0+bad", 6))
		pol_setbit(t->mask, t->bad);
	if (!strncmp(name, "memonly", len) && len == 7)
		pol_setbit(t->mask, t->memonly);
}

/* set_mempolicy() or mbind() of a valid range: 0 or -errno. */
static int set_policy(struct transcript *t, int mode, uint64_t maxnode, struct pol **pol)
{
	uint64_t set[16];
	int lmode, flags, rc = pol_mode_check(mode, &lmode, &flags);

	*pol = NULL;
	if (!rc)
		rc = pol_get_nodes(&t->machine, set, t->null_mask ? 0 : PAGE, maxnode, PAGE,
				   copy_mask, t);
	return rc ? rc : pol_make(&t->machine, lmode, flags, set, pol);
}

static void expect(struct transcript *t, bool right, const char *line, const char *why)
{
	t->cases++;
	if (right)
		return;
	if (t->wrong++ < 10)
		print_message("wrong %s: %s", why, line);
}

static bool reads_back(struct transcript *t, const struct pol *pol, const char *text)
{
	uint64_t want[16], have[16];
	const char *p = strstr(text, "pol=0x"), *m = p ? strstr(p, "mask=") : NULL;

	if (!m)
		return true;
	parse_list(want, t->machine.words, m + 5);
	pol_tell_nodes(pol, have, t->machine.words);
	/* Only the words that hold node ids are copied out. */
	for (unsigned int i = (t->machine.nr_node_ids + 63) / 64; i < t->machine.words; i++)
		have[i] = 0;
	return strtol(p + 6, NULL, 16) == pol_tell_mode(pol) &&
	       !memcmp(want, have, t->machine.words * 8);
}

/* Pages were touched from node n0's CPU at the addresses of the probe. */
static bool placed(struct transcript *t, const struct pol *pol, uint64_t addr, const char *text)
{
	const char *p = strstr(text, "placed=");
	uint64_t used[1024] = {0};

	for (p = p ? p + 7 : ""; *p >= '0' && *p <= '9'; p++, addr += PAGE) {
		struct pol_where where = {t->n0, addr / PAGE};
		unsigned int wanted, node = pol_place(&t->machine, pol, &where, used, &wanted);

		if (node != (unsigned int)(*p - '0') || node != wanted)
			return false;
		used[node]++;
	}
	return true;
}

static void check_line(struct transcript *t, const char *line)
{
	const char *bar = strstr(line, " | ret="), *rest, *name;
	struct pol *pol = NULL;
	unsigned long maxnode;
	unsigned int far;
	int skip = 0, mode, want, rc;

	if (!bar)
		return;
	want = 0;
	if (!strncmp(line, "setmp.", 6) || !strncmp(line, "mbind.", 6) ||
	    !strncmp(line, "getmp.default.maxnode=", 22))
		want = -errno_of(strstr(bar, "errno=") + 6);
	rest = strstr(bar + 3, " | ");
	if (sscanf(line, "setmp.maxnode=%lu.%n", &maxnode, &skip) == 1 && skip) {
		name = line + skip;
		mode = mode_of(name);
		mask_named(t, strchr(name, '.') + 1);
	} else if (sscanf(line, "setmp.farbit=%u.maxnode=%lu", &far, &maxnode) == 2) {
		mode = MC_MPOL_BIND;
		mask_named(t, "n0");
		pol_setbit(t->mask, far);
	} else if ((!strncmp(line, "setmp.", 6) || !strncmp(line, "mbind.", 6)) &&
		   mode_of(line + 6) >= 0) {
		mode = mode_of(line + 6);
		mask_named(t, strchr(line + 6, '.') + 1);
		maxnode = t->null_mask ? 0 : 1025;
	} else if (!strncmp(line, "getmp.default.maxnode=", 22)) {
		size_t copy = 0, clear = 0;
		const char *bytes = strstr(line, "bytes_written=");

		maxnode = strtoul(line + 22, NULL, 10);
		rc = maxnode < t->machine.nr_node_ids
			     ? -EINVAL
			     : pol_copy_sizes(&t->machine, maxnode, PAGE, &copy, &clear);
		expect(t, rc == want && (rc || copy + clear == strtoul(bytes + 14, NULL, 10)), line,
		       "size");
		return;
	} else {
		return;
	}
	rc = set_policy(t, mode, maxnode, &pol);
	expect(t, rc == want, line, "error");
	if (rest && !strstr(rest, "get=-1"))
		expect(t, reads_back(t, pol, rest), line, "mode or mask");
	if (rest && !strncmp(line, "mbind.", 6))
		expect(t, placed(t, pol, 0x2000000000 + (2 << 24), rest), line, "placement");
	pol_put(pol);
}

static void interleave_line(struct transcript *t, const char *line)
{
	const char *p = line + strlen("inter.vma.");
	const char *dot = strchr(p, '.');
	unsigned long off;
	struct pol *pol;
	int mode;

	if (!strncmp(p, "IL.", 3))
		mode = MC_MPOL_INTERLEAVE;
	else if (!strncmp(p, "WIL.", 4))
		mode = MC_MPOL_WEIGHTED_INTERLEAVE;
	else if (!strncmp(p, "PMANY.", 6))
		mode = MC_MPOL_PREFERRED_MANY;
	else if (!strncmp(p, "BIND.", 5))
		mode = MC_MPOL_BIND;
	else if (!strncmp(p, "PREF.", 5))
		mode = MC_MPOL_PREFERRED;
	else
		return;
	mask_named(t, !strncmp(dot + 1, "all", 3) ? "allmem" : dot + 1);
	if (strstr(line, ".STATIC"))
		mode |= MC_MPOL_F_STATIC_NODES;
	if (strstr(line, ".REL"))
		mode |= MC_MPOL_F_RELATIVE_NODES;
	off = strtoul(strstr(line, "pageoff=") + 8, NULL, 10);
	expect(t, set_policy(t, mode, 1025, &pol) == -errno_of(strstr(line, "errno=") + 6), line,
	       "error");
	/* Each slot is 16 MiB: congruent to the offset for 1 to 4 nodes, but for three: take the
	 * transcript's own number. */
	off = strtoul(strstr(line, "n=") + 2, NULL, 10);
	if (pol && pol_weight(pol_nodes(pol), pol->words) == t->machine.nr_memory)
		expect(t, placed(t, pol, off * PAGE, line), line, "placement");
	else if (pol && pol_weight(pol_nodes(pol), pol->words) == 1)
		expect(t, placed(t, pol, 0, line), line, "placement");
	pol_put(pol);
}

static void replay(const char *name, unsigned int at_least)
{
	static struct transcript t;
	static char line[1 << 16];
	FILE *f = open_transcript(name);

	memset(&t, 0, sizeof(t));
	assert_non_null(f);
	machine_init(&t, f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "inter.vma.", 10) && strstr(line, "pageoff="))
			interleave_line(&t, line);
		else
			check_line(&t, line);
	}
	assert_int_equal(pclose(f), 0);
	machine_done(&t.machine);
	print_message("%s: %u checks, %u wrong\n", name, t.cases, t.wrong);
	assert_int_equal(t.wrong, 0);
	assert_true(t.cases >= at_least);
}

static void test_transcripts(void **state)
{
	(void)state;
	replay("x86-612-2n16", 5000);
	replay("x86-612-memonly", 5000);
	replay("x86-612-fake4", 5000);
	replay("x86-612-single", 5000);
	replay("x86-612-offline", 5000);
	replay("x86-612-numaoff", 2000);
	replay("arm64-612-8-2n", 5000);
	replay("arm64-612own-fake4", 5000);
}

/* ---- full nodes ---- */

static struct pol_machine *small_machine(void)
{
	static uint64_t sets[3], capacity[4];
	static uint8_t weight[4];
	static unsigned int order[] = {0, 1, 2, 3, 1, 0, 3, 2, 2, 3, 0, 1, 3, 2, 1, 0};
	static struct pol_machine m = {
		.nr_node_ids = 4, .max_numnodes = 16, .words = 1, .nr_memory = 4};

	m.online = sets;
	m.memory = sets + 1;
	m.allowed = sets + 2;
	sets[0] = sets[1] = sets[2] = 15;
	m.order = order;
	m.weight = weight;
	m.capacity = capacity;
	for (int i = 0; i < 4; i++) {
		capacity[i] = 2;
		weight[i] = 1;
	}
	return &m;
}

static void fill(const struct pol_machine *m, const struct pol *pol, unsigned int local,
		 unsigned int pages, char *where)
{
	uint64_t used[4] = {0};

	for (unsigned int i = 0; i < pages; i++) {
		struct pol_where at = {local, i};
		unsigned int node = pol_place(m, pol, &at, used, NULL);

		where[i] = node == POL_NO_NODE ? '-' : (char)('0' + node);
		if (node != POL_NO_NODE)
			used[node]++;
	}
	where[pages] = 0;
}

static void test_full_nodes(void **state)
{
	struct pol_machine *m = small_machine();
	struct pol *pol;
	uint64_t set = 6; /* nodes 1 and 2 */
	char where[16];

	(void)state;
	fill(m, NULL, 1, 9, where); /* local: down the zonelist of node 1 */
	assert_string_equal(where, "11003322-");
	assert_int_equal(pol_make(m, MC_MPOL_BIND, 0, &set, &pol), 0);
	fill(m, pol, 0, 5, where);
	assert_string_equal(where, "1122-");
	pol_put(pol);
	assert_int_equal(pol_make(m, MC_MPOL_PREFERRED_MANY, 0, &set, &pol), 0);
	fill(m, pol, 3, 9, where); /* 2 is nearer to 3; then anything, from 3 */
	assert_string_equal(where, "22113300-");
	pol_put(pol);
	assert_int_equal(pol_make(m, MC_MPOL_INTERLEAVE, 0, &set, &pol), 0);
	fill(m, pol, 0, 7, where);
	assert_string_equal(where, "1212030");
	pol_put(pol);
	m->weight[1] = 3;
	m->capacity[1] = m->capacity[2] = 100;
	assert_int_equal(pol_make(m, MC_MPOL_WEIGHTED_INTERLEAVE, 0, &set, &pol), 0);
	fill(m, pol, 0, 9, where);
	assert_string_equal(where, "111211121");
	pol_put(pol);
}

static void *write_weights(void *arg)
{
	struct pol_machine *m = arg;

	for (unsigned int i = 0; !__atomic_load_n(&m->capacity[3], __ATOMIC_RELAXED); i++)
		__atomic_store_n(&m->weight[1 + i % 2], i & 4 ? 255 : 1, __ATOMIC_RELAXED);
	return NULL;
}

/* A program that writes weights while others are placed: always a node of the set. */
static void test_weights_written(void **state)
{
	struct pol_machine *m = small_machine();
	uint64_t set = 6;
	struct pol *pol;
	pthread_t writer;

	(void)state;
	m->capacity[3] = 0; /* not of the set: when it has room, that is the end */
	assert_int_equal(pol_make(m, MC_MPOL_WEIGHTED_INTERLEAVE, 0, &set, &pol), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_weights, m), 0);
	for (unsigned int i = 0; i < 2000000; i++) {
		struct pol_where at = {0, i};
		unsigned int node = pol_target(m, pol, &at);

		assert_true(node == 1 || node == 2);
	}
	__atomic_store_n(&m->capacity[3], 1, __ATOMIC_RELAXED);
	pthread_join(writer, NULL);
	pol_put(pol);
}

/* ---- ranges and pages against plain arrays ---- */

enum { MODEL = 600 };

static void test_ranges_model(void **state)
{
	struct pol_machine *m = small_machine();
	struct pol_ranges ranges = {0}, copy = {0};
	struct pol *choice[4] = {NULL}, *model[MODEL] = {NULL};
	unsigned int seed = 7;

	(void)state;
	for (unsigned int i = 1; i < 4; i++) {
		uint64_t set = 1ULL << i;

		assert_int_equal(pol_make(m, MC_MPOL_BIND, 0, &set, &choice[i]), 0);
	}
	for (int step = 0; step < 20000; step++) {
		unsigned int a = (unsigned int)rand_r(&seed) % MODEL,
			     b = (unsigned int)rand_r(&seed) % MODEL;
		unsigned int start = a < b ? a : b, end = a < b ? b : a, len = (end - start) / 3;
		struct pol *pol = choice[rand_r(&seed) % 4];

		if (step % 7 == 0 && start + 2 * len < MODEL) { /* mremap */
			assert_int_equal(pol_ranges_move(&ranges, start, start + len, len), 0);
			memmove(model + start + len, model + start, len * sizeof(*model));
			memset(model + start, 0, len * sizeof(*model));
		} else {
			assert_int_equal(pol_ranges_set(&ranges, start, end, pol), 0);
			for (unsigned int i = start; i < end; i++)
				model[i] = pol;
		}
		for (size_t i = 0; i < ranges.count; i++) {
			assert_true(ranges.range[i].start < ranges.range[i].end);
			assert_true(!i || ranges.range[i - 1].end <= ranges.range[i].start);
			assert_true(!i || ranges.range[i - 1].end < ranges.range[i].start ||
				    !pol_equal(ranges.range[i - 1].pol, ranges.range[i].pol));
		}
		for (unsigned int i = 0; i < MODEL; i++) {
			uint64_t until;

			assert_ptr_equal(pol_ranges_at(&ranges, i, &until), model[i]);
			assert_true(until > i);
		}
	}
	assert_int_equal(pol_ranges_copy(&copy, &ranges), 0);
	assert_int_equal(copy.count, ranges.count);
	pol_ranges_free(&ranges);
	pol_ranges_free(&copy);
	for (unsigned int i = 1; i < 4; i++) {
		assert_int_equal(choice[i]->refs, 1);
		pol_put(choice[i]);
	}
}

/* Where a page came from is what its index tells, through any moves. */
static void test_shifts_model(void **state)
{
	struct pol_shifts shifts = {0}, copy = {0};
	uint64_t model[MODEL];
	unsigned int seed = 11;

	(void)state;
	for (unsigned int i = 0; i < MODEL; i++)
		model[i] = i;
	for (int step = 0; step < 20000; step++) {
		unsigned int a = (unsigned int)rand_r(&seed) % MODEL,
			     b = (unsigned int)rand_r(&seed) % MODEL,
			     len = 1 + (unsigned int)rand_r(&seed) % 20;
		bool touched = step % 3;

		if (step % 5 == 0) { /* unmapped */
			len = a + len > MODEL ? MODEL - a : len;
			assert_int_equal(pol_shifts_set(&shifts, a, a + len, 0), 0);
			for (unsigned int i = a; i < a + len; i++)
				model[i] = i;
		} else if (a + len <= MODEL && b + len <= MODEL && (a + len <= b || b + len <= a)) {
			assert_int_equal(pol_shifts_move(&shifts, a, b, len, touched), 0);
			for (unsigned int i = 0; i < len; i++) {
				model[b + i] = touched ? model[a + i] : b + i;
				model[a + i] = a + i;
			}
		}
		for (size_t i = 0; i < shifts.count; i++) {
			assert_true(shifts.shift[i].first < shifts.shift[i].last);
			assert_true(!i || shifts.shift[i - 1].last <= shifts.shift[i].first);
		}
		for (unsigned int i = 0; i < MODEL; i++) {
			uint64_t last;

			assert_int_equal(i + pol_shifts_at(&shifts, i, &last), model[i]);
			assert_true(last > i);
		}
	}
	assert_int_equal(pol_shifts_copy(&copy, &shifts), 0);
	assert_int_equal(copy.count, shifts.count);
	pol_shifts_free(&copy);
	pol_shifts_free(&shifts);
}

static void count_page(void *arg, uint64_t page, unsigned int node)
{
	(void)page;
	(void)node;
	++*(unsigned int *)arg;
}

static void test_pages_model(void **state)
{
	enum { PAGES = 4096 };
	static unsigned int model[PAGES];
	struct pol_pages pages = {0}, copy = {0};
	unsigned int seed = 3, known = 0, counted = 0;

	(void)state;
	for (unsigned int i = 0; i < PAGES; i++)
		model[i] = POL_NO_NODE;
	for (int step = 0; step < 3000; step++) {
		unsigned int a = (unsigned int)rand_r(&seed) % PAGES,
			     n = (unsigned int)rand_r(&seed) % 300;

		if (a + n > PAGES)
			n = PAGES - a;
		if (step % 3 == 0) {
			pol_pages_forget(&pages, a, a + n, NULL, NULL);
			for (unsigned int i = a; i < a + n; i++)
				model[i] = POL_NO_NODE;
		} else {
			for (unsigned int i = a; i < a + n; i++) {
				model[i] = (unsigned int)step % 1000;
				assert_int_equal(pol_pages_set(&pages, i, model[i]), 0);
			}
		}
		if (step % 50 == 0)
			for (unsigned int i = 0; i < PAGES; i++)
				assert_int_equal(pol_pages_get(&pages, i), model[i]);
	}
	for (unsigned int i = 0; i < PAGES; i++)
		known += model[i] != POL_NO_NODE;
	assert_int_equal(pol_pages_copy(&copy, &pages), 0);
	pol_pages_each(&copy, count_page, &counted);
	assert_int_equal(counted, known);
	assert_int_equal(pol_pages_move(&copy, 0, 1000, PAGES), 0); /* overlapping */
	for (unsigned int i = 0; i < PAGES; i++)
		assert_int_equal(pol_pages_get(&copy, i + 1000), model[i]);
	counted = 0;
	pol_pages_forget(&copy, 0, UINT64_MAX, count_page, &counted);
	assert_int_equal(counted, known);
	assert_int_equal(copy.leaves, 0);
	pol_pages_free(&copy, NULL, NULL);
	pol_pages_free(&pages, NULL, NULL);
}

static void test_text(void **state)
{
	struct pol_machine *m = small_machine();
	struct mc_text text = {0};
	uint64_t set = 13;
	struct pol *pol;

	(void)state;
	assert_int_equal(pol_make(m, MC_MPOL_BIND,
				  MC_MPOL_F_STATIC_NODES | MC_MPOL_F_NUMA_BALANCING, &set, &pol),
			 0);
	pol_text(&text, pol);
	mc_text_printf(&text, " ");
	pol_text(&text, NULL);
	assert_string_equal(text.data, "bind=static|balancing:0,2-3 default");
	pol_put(pol);
	mc_text_free(&text);
}

static void test_remap(void **state)
{
	uint64_t from = 0x16, to = 0x61, rel = 0x29, orig = 0xf, out; /* {1,2,4} {0,5,6} {0,3,5} */

	(void)state;
	assert_int_equal(pol_remap(1, &from, &to, 1), 0);
	assert_int_equal(pol_remap(4, &from, &to, 1), 6);
	assert_int_equal(pol_remap(3, &from, &to, 1), 3);
	pol_relative(&out, &orig, &rel, 1);
	assert_int_equal(out, 0x29);
	orig = 2;
	pol_relative(&out, &orig, &rel, 1);
	assert_int_equal(out, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transcripts),  cmocka_unit_test(test_full_nodes),
		cmocka_unit_test(test_ranges_model), cmocka_unit_test(test_pages_model),
		cmocka_unit_test(test_text),         cmocka_unit_test(test_remap),
		cmocka_unit_test(test_shifts_model),
		cmocka_unit_test(test_weights_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
