// SPDX-License-Identifier: MIT
/*
 * test_cpulist.c - the two text forms. The rows are data: what Linux's lib/bitmap-str.c does with
 * each text (its own test vectors, and the table of shared faults of other parsers). On error the
 * mask must keep its value and the fault's place is checked too.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <manycore/cpumask.h>

struct row {
	const char *text;
	unsigned int nbits;
	int rc;
	const char *result; /* canonical list, or for errors NULL */
	size_t where;
};

static const struct row lists[] = {
	{"0", 256, 0, "0", 0},
	{"1", 256, 0, "1", 0},
	{"0-7", 64, 0, "0-7", 0},
	{"0-15,32-47", 256, 0, "0-15,32-47", 0},
	{"1-15:3/5", 256, 0, "1-3,6-8,11-13", 0},
	{"0-15:2/4,16-31:1/2", 256, 0, "0-1,4-5,8-9,12-13,16,18,20,22,24,26,28,30", 0},
	{"63,64", 256, 0, "63-64", 0},
	{"0-63", 64, 0, "0-63", 0},
	{"0-4095", 4096, 0, "0-4095", 0},
	{"0-2047:128/256", 2048, 0,
	 "0-127,256-383,512-639,768-895,1024-1151,1280-1407,1536-1663,1792-1919", 0},
	{"2047", 2048, 0, "2047", 0},
	{"2046-2047", 2048, 0, "2046-2047", 0},
	{"0-31:1/3,1-31:1/3,2-31:1/3", 32, 0, "0-31", 0},
	{"1-10:8/12,8-31:24/29,0-31:0/3", 32, 0, "1-31", 0},
	{"0-31:2/4", 64, 0, "0-1,4-5,8-9,12-13,16-17,20-21,24-25,28-29", 0},
	{"	   0-31	   :   1/3", 64, -EINVAL, NULL, 12},
	{"", 64, 0, "", 0},
	{" ", 64, 0, "", 0},
	{"\n", 64, 0, "", 0},
	{",", 64, 0, "", 0},
	{",,  ,,	, ,	,", 64, 0, "", 0},
	{" ,  ,,  , ,   ", 64, 0, "", 0},
	{" ,  ,,  , ,   \n", 64, 0, "", 0},
	{"0,,1", 64, 0, "0-1", 0},
	{"1 2", 64, 0, "1-2", 0},
	{" 0-3 ", 64, 0, "0-3", 0},
	{"0-3,", 64, 0, "0-3", 0},
	{"0-3\n", 64, 0, "0-3", 0},
	{"0-3\n9", 64, 0, "0-3", 0},
	{"\n0-3", 64, 0, "0-3", 0},
	{"0-3 \n9", 64, 0, "0-3,9", 0},
	{"0-3:1/2\n9", 64, 0, "0,2,9", 0},
	{"all", 10, 0, "0-9", 0},
	{"ALL,1", 10, 0, "0-9", 0},
	{"AlL:1/2", 10, 0, "0,2,4,6,8", 0},
	{"all:0/2", 10, 0, "", 0},
	{"N", 64, 0, "63", 0},
	{"60-N", 64, 0, "60-63", 0},
	{"N-N", 64, 0, "63", 0},
	{"0-N:1/3", 8, 0, "0,3,6", 0},
	{"0-N:1/N", 8, 0, "0,7", 0},
	{"010", 64, 0, "10", 0},
	{"0000000000000000000000000000063", 64, 0, "63", 0},
	{"0-15:16/16", 64, 0, "0-15", 0},
	{"0-3:1/4294967295", 64, 0, "0", 0},
	{"-1", 64, -EINVAL, NULL, 0},
	{"-0", 64, -EINVAL, NULL, 0},
	{"10-1", 64, -EINVAL, NULL, 3},
	{"3-1", 64, -EINVAL, NULL, 2},
	{"N-0", 64, -EINVAL, NULL, 2},
	{"8-8", 8, -ERANGE, NULL, 2},
	{"0-31", 8, -ERANGE, NULL, 2},
	{"0-31:", 32, -EINVAL, NULL, 5},
	{"0-31:0", 32, -EINVAL, NULL, 6},
	{"0-31:0/", 32, -EINVAL, NULL, 7},
	{"0-31:0/0", 32, -EINVAL, NULL, 5},
	{"0-31:1/0", 32, -EINVAL, NULL, 5},
	{"0-31:10/1", 32, -EINVAL, NULL, 5},
	{"0-31:4", 32, -EINVAL, NULL, 6},
	{"0-4294967295:1/2", 32, -ERANGE, NULL, 2},
	{"0-4294967295", 32, -EINVAL, NULL, 2},
	{"4294967295", 64, -EINVAL, NULL, 0},
	{"4294967294", 64, -ERANGE, NULL, 0},
	{"4294967296", 64, -EOVERFLOW, NULL, 0},
	{"0-4294967296", 64, -EOVERFLOW, NULL, 2},
	{"18446744073709551616", 64, -EOVERFLOW, NULL, 0},
	{"0-1:1/99999999999999999999999999", 64, -EOVERFLOW, NULL, 6},
	{"64", 64, -ERANGE, NULL, 0},
	{"0-64", 64, -ERANGE, NULL, 2},
	{"0,1,2,64", 64, -ERANGE, NULL, 6},
	{"0,1,2,3,4,5,6,7,8,9,10,64", 64, -ERANGE, NULL, 23},
	{"0,1,2,3,4,5,6,7,8,9,10,x", 64, -EINVAL, NULL, 23},
	{"0,1,2,3,4,5,6,7,8,9,10\n11,x", 64, 0, "0-10", 0},
	{"0,1,2,3,4,5,6,7,8,9:10\n11,x", 64, -EINVAL, NULL, 19},
	{"5-", 64, -EINVAL, NULL, 2},
	{"5-\n", 64, -EINVAL, NULL, 2},
	{"a", 64, -EINVAL, NULL, 0},
	{"al", 64, -EINVAL, NULL, 0},
	{"al-0", 64, -EINVAL, NULL, 0},
	{"all-0", 64, -EINVAL, NULL, 3},
	{"all:", 64, -EINVAL, NULL, 4},
	{"a-31", 64, -EINVAL, NULL, 0},
	{"3x", 64, -EINVAL, NULL, 1},
	{"0-a31", 64, -EINVAL, NULL, 2},
	{"0x10", 64, -EINVAL, NULL, 1},
	{"1-3-5", 64, -EINVAL, NULL, 3},
	{"5:1/2", 64, -EINVAL, NULL, 1},
	{"+1", 64, -EINVAL, NULL, 0},
	{"0 - 3", 64, -EINVAL, NULL, 2},
	{"n", 64, -EINVAL, NULL, 0},
	{"!0", 64, -EINVAL, NULL, 0},
	{"N", 1, 0, "0", 0},
	{"1", 1, -ERANGE, NULL, 0},
	{"8191,8192", 8193, 0, "8191-8192", 0},
	{"65535", 65536, 0, "65535", 0},
	{"65536", 65536, -ERANGE, NULL, 0},
};

static const struct row hexes[] = {
	{"", 64, 0, "", 0},
	{",", 64, 0, "", 0},
	{"0", 64, 0, "", 0},
	{"1", 64, 0, "0", 0},
	{"deadbeef", 32, 0, "0-3,5-7,9-13,15-16,18-19,21,23,25-28,30-31", 0},
	{"DEADBEEF", 32, 0, "0-3,5-7,9-13,15-16,18-19,21,23,25-28,30-31", 0},
	{"0f0,0", 64, 0, "36-39", 0},
	{"1,0", 64, 0, "32", 0},
	{"1,,5", 64, 0, "0,2,32", 0},
	{",44", 64, 0, "2,6", 0},
	{" 1 2\t3 ", 96, 0, "0-1,33,64", 0},
	{"ff\n", 64, 0, "0-7", 0},
	{"ff\nxyz", 64, 0, "0-7", 0},
	{"00000001,00000000,00000000", 65, 0, "64", 0},
	{"2,0,0", 65, -EOVERFLOW, NULL, 0},
	{"0,0,0,1", 96, -EOVERFLOW, NULL, 0},
	{"0,0,0,1", 97, 0, "0", 0},
	{"100000000", 64, -EOVERFLOW, NULL, 0},
	{"000000001", 64, -EOVERFLOW, NULL, 0},
	{"3,100000000", 64, -EOVERFLOW, NULL, 2},
	{"0x1", 64, -EINVAL, NULL, 1},
	{"0x12345678", 64, -EINVAL, NULL, 1},
	{"1,g", 64, -EINVAL, NULL, 2},
	{"-1", 64, -EINVAL, NULL, 0},
	{"7", 2, -EOVERFLOW, NULL, 0},
	{"3", 2, 0, "0-1", 0},
	{"1", 1, 0, "0", 0},
	{"2", 1, -EOVERFLOW, NULL, 0},
};

static void rows(const struct row *row, size_t n,
		 int (*parse)(struct mc_cpumask *, const char *, size_t *))
{
	char text[4096];

	for (size_t i = 0; i < n; i++) {
		const struct row *r = &row[i];
		struct mc_cpumask *m = mc_cpumask_alloc_bits(r->nbits), *old;
		size_t where = 12345;
		int rc;

		mc_cpumask_set(m, r->nbits / 2);
		old = mc_cpumask_dup(m);
		rc = parse(m, r->text, &where);
		mc_cpulist_snprint(text, sizeof(text), m);
		if (rc != r->rc)
			fail_msg("row %zu '%s': %d, not %d", i, r->text, rc, r->rc);
		if (r->result && strcmp(text, r->result))
			fail_msg("row %zu '%s': '%s', not '%s'", i, r->text, text, r->result);
		if (rc < 0 && (!mc_cpumask_equal(m, old) || where != r->where))
			fail_msg("row %zu '%s': fault at %zu, not %zu, mask %s", i, r->text, where,
				 r->where, text);
		if (!rc)
			assert_int_equal(where, 12345);
		assert_int_equal(parse(m, r->text, NULL), r->rc);
		mc_cpumask_free(m);
		mc_cpumask_free(old);
	}
}

static void test_lists(void **unused)
{
	(void)unused;
	rows(lists, sizeof(lists) / sizeof(lists[0]), mc_cpulist_parse);
}

static void test_hex(void **unused)
{
	(void)unused;
	rows(hexes, sizeof(hexes) / sizeof(hexes[0]), mc_cpumask_parse);
}

/* The kernel's %*pb of the mask 1 and of a full one. */
static void test_hex_widths(void **unused)
{
	static const struct {
		unsigned int nbits;
		const char *one, *full;
	} row[] = {
		{1, "1", "1"},
		{3, "1", "7"},
		{5, "01", "1f"},
		{32, "00000001", "ffffffff"},
		{33, "0,00000001", "1,ffffffff"},
		{64, "00000000,00000001", "ffffffff,ffffffff"},
		{70, "00,00000000,00000001", "3f,ffffffff,ffffffff"},
	};
	char text[64];

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct mc_cpumask *m = mc_cpumask_alloc_bits(row[i].nbits);

		mc_cpumask_set(m, 0);
		assert_int_equal(mc_cpumask_snprint(text, sizeof(text), m), strlen(row[i].one));
		assert_string_equal(text, row[i].one);
		mc_cpumask_setall(m);
		mc_cpumask_snprint(text, sizeof(text), m);
		assert_string_equal(text, row[i].full);
		mc_cpumask_free(m);
	}
}

/* Both printers at every buffer size: the length, the cut, the NUL, and nothing written behind. */
static void cut(size_t (*print)(char *, size_t, const struct mc_cpumask *),
		const struct mc_cpumask *m)
{
	size_t len = print(NULL, 0, m);
	char *whole = malloc(len + 1), *part = malloc(len + 8);

	assert_int_equal(print(whole, len + 1, m), len);
	assert_int_equal(strlen(whole), len);
	for (size_t size = 0; size <= len + 1; size++) {
		memset(part, '#', len + 8);
		assert_int_equal(print(part, size, m), len);
		if (size) {
			assert_int_equal(part[size - 1 < len ? size - 1 : len], '\0');
			assert_memory_equal(part, whole, size - 1 < len ? size - 1 : len);
		}
		for (size_t i = size; i < len + 8; i++)
			assert_int_equal(part[i], '#');
	}
	free(whole);
	free(part);
}

static void test_round_trips(void **unused)
{
	static const unsigned int sizes[] = {1,  2,   31,  32,   33,   63,   64,
					     65, 127, 128, 1023, 1024, 1025, 8192};
	unsigned int seed = 1;

	(void)unused;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		for (unsigned int density = 1; density <= 64; density *= 4) {
			struct mc_cpumask *m = mc_cpumask_alloc_bits(sizes[k]),
					  *n = mc_cpumask_dup(m);
			char *text = malloc(65536);

			for (unsigned int i = 0; i < sizes[k]; i++) {
				seed = seed * 1103515245 + 12345;
				mc_cpumask_assign(m, i, (seed >> 16) % density == 0);
			}
			assert_true(mc_cpulist_snprint(text, 65536, m) < 65536);
			assert_int_equal(mc_cpulist_parse(n, text, NULL), 0);
			assert_true(mc_cpumask_equal(m, n));
			mc_cpumask_zero(n);
			assert_true(mc_cpumask_snprint(text, 65536, m) < 65536);
			assert_int_equal(mc_cpumask_parse(n, text, NULL), 0);
			assert_true(mc_cpumask_equal(m, n));
			if (sizes[k] < 200) {
				cut(mc_cpulist_snprint, m);
				cut(mc_cpumask_snprint, m);
			}
			free(text);
			mc_cpumask_free(m);
			mc_cpumask_free(n);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_hex),
		cmocka_unit_test(test_hex_widths),
		cmocka_unit_test(test_round_trips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
