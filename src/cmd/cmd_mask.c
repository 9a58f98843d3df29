// SPDX-License-Identifier: MIT
/*
 * cmd_mask.c - `manycore mask`: sets of CPUs as lists, hex and counts, and the algebra on them.
 *
 * An expression is SET [OP SET]..., worked out from left to right; `not` before a SET turns it
 * round. Everything is of one size: this machine's, or --nbits.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"

enum form { LIST, HEX, TASKSET, WEIGHT, EACH };
static const unsigned int MAX_NBITS = 1u << 24;

struct job {
	enum form form;
	bool json;
	unsigned int nbits;
	const char *test;
	struct mc_cpumask *result, *operand;
};

static int usage(void)
{
	puts("Usage: manycore mask [OPTION]... SET [and|or|xor|andnot SET]...\n\n"
	     "Works out sets of CPUs (or of memory nodes) from left to right and prints the "
	     "result.\n"
	     "SET: a list as the kernel has it (0-3,8  0-31:2/4  all  N), 0x and hex digits as "
	     "taskset has it (commas\n"
	     "allowed), hex:TEXT as in the kernel's cpumap files, or affinity, the CPUs this "
	     "process may use. 'not SET' is\n"
	     "the other CPUs.\n\n"
	     "  -n, --nbits N     masks of N bits (default: this machine's possible CPUs)\n"
	     "  -l, --list        print a list (default)\n"
	     "  -x, --hex         print hex in 32-bit groups\n"
	     "  -t, --taskset     print 0x and hex digits\n"
	     "  -c, --count       print how many CPUs\n"
	     "  -1, --each        print one CPU a line\n"
	     "      --test SET    print nothing: status 0 when each CPU of SET is in the result, "
	     "else 1\n"
	     "      --json        print all forms as JSON\n\n"
	     "Status: 0 done, 1 --test says no, 2 malformed.");
	return cmd_finish("mask", CMD_OK);
}

/* What is wrong, and where: the text with a mark below the place. */
static void show_fault(const struct job *j, const char *text, size_t where, int rc)
{
	const char *why = "malformed";

	if (rc == -ERANGE)
		why = "there is no such CPU in these masks; --nbits N gives them another size";
	else if (rc == -EOVERFLOW)
		why = "too large for these masks; --nbits N gives them another size";
	else if (rc == -ENOMEM)
		why = "not enough memory";
	cmd_error("mask", "reading the set '%s' of %u bits: at offset %zu: %s", text, j->nbits,
		  where, why);
	fprintf(stderr, "  %s\n  %*s^\n", text, (int)where, "");
}

/* 0x1f, 0x1,00000000 and 0x100000000: digits of any number, commas ignored. */
static int parse_taskset(struct mc_cpumask *mask, const char *text, size_t *where)
{
	size_t len = strlen(text);
	unsigned int bit = 0;

	mc_cpumask_zero(mask);
	*where = 2;
	if (len == 2)
		return -EINVAL;
	for (size_t i = len; i-- > 2;) {
		static const char digits[] = "0123456789abcdef";
		const char *d =
			strchr(digits, text[i] >= 'A' && text[i] <= 'F' ? text[i] + 32 : text[i]);

		*where = i;
		if (text[i] == ',')
			continue;
		if (!d)
			return -EINVAL;
		for (unsigned int k = 0; k < 4; k++, bit++)
			if ((d - digits) >> k & 1) {
				if (bit >= mask->nbits)
					return -EOVERFLOW;
				mc_cpumask_set(mask, bit);
			}
	}
	return 0;
}

static int parse_set(const struct job *j, struct mc_cpumask *mask, const char *text)
{
	size_t where = 0, skip = 0;
	int rc;

	if (!strcmp(text, "affinity")) {
		rc = mc_cpumask_getaffinity(mask, 0);
	} else if (!strncmp(text, "0x", 2) || !strncmp(text, "0X", 2)) {
		rc = parse_taskset(mask, text, &where);
	} else if (!strncmp(text, "hex:", 4)) {
		skip = 4;
		rc = mc_cpumask_parse(mask, text + skip, &where);
	} else {
		rc = mc_cpulist_parse(mask, text, &where);
	}
	if (rc < 0)
		show_fault(j, text, skip + where, rc);
	return rc;
}

/* One operand, with its `not`s; *i moves past it. */
static int operand(struct job *j, int argc, char **argv, int *i)
{
	bool turned = false;

	for (; *i < argc && !strcmp(argv[*i], "not"); ++*i)
		turned = !turned;
	if (*i >= argc)
		return cmd_usage_error("mask", "a set is missing at the end");
	if (parse_set(j, j->operand, argv[(*i)++]) < 0)
		return CMD_USAGE;
	if (turned)
		mc_cpumask_not(j->operand, j->operand);
	return CMD_OK;
}

static int expression(struct job *j, int argc, char **argv)
{
	int i = 0, rc = operand(j, argc, argv, &i);

	if (rc)
		return rc;
	mc_cpumask_copy(j->result, j->operand);
	while (i < argc) {
		const char *op = argv[i++];

		if (strcmp(op, "and") && strcmp(op, "or") && strcmp(op, "xor") &&
		    strcmp(op, "andnot"))
			return cmd_usage_error("mask", "'%s' is no operation: and, or, xor, andnot",
					       op);
		rc = operand(j, argc, argv, &i);
		if (rc)
			return rc;
		if (!strcmp(op, "and"))
			mc_cpumask_and(j->result, j->result, j->operand);
		else if (!strcmp(op, "or"))
			mc_cpumask_or(j->result, j->result, j->operand);
		else if (!strcmp(op, "xor"))
			mc_cpumask_xor(j->result, j->result, j->operand);
		else
			mc_cpumask_andnot(j->result, j->result, j->operand);
	}
	return CMD_OK;
}

/* A malloc'ed text. */
static char *text_of(size_t (*print)(char *, size_t, const struct mc_cpumask *),
		     const struct mc_cpumask *mask)
{
	size_t len = print(NULL, 0, mask);
	char *text = malloc(len + 1);

	if (text)
		print(text, len + 1, mask);
	return text;
}

/* 0x..., without leading zeros and commas. */
static void print_taskset(const struct mc_cpumask *mask)
{
	unsigned int last = mc_cpumask_last(mask);

	fputs("0x", stdout);
	for (unsigned int i = (last < mask->nbits ? last : 0) / 4 + 1; i-- > 0;)
		putchar("0123456789abcdef"[mask->word[i / 16] >> i % 16 * 4 & 15]);
	putchar('\n');
}

static void print_json(const struct mc_cpumask *mask, const char *list, const char *hex)
{
	struct json_object *o = json_object_new_object(), *cpus = json_object_new_array();
	unsigned int cpu;

	json_object_object_add(o, "nbits", json_object_new_int64(mask->nbits));
	json_object_object_add(o, "list", json_object_new_string(list));
	json_object_object_add(o, "hex", json_object_new_string(hex));
	json_object_object_add(o, "count", json_object_new_int64(mc_cpumask_weight(mask)));
	mc_for_each_cpu (cpu, mask)
		json_object_array_add(cpus, json_object_new_int64(cpu));
	json_object_object_add(o, "cpus", cpus);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static int print_result(const struct job *j)
{
	char *list = text_of(mc_cpulist_snprint, j->result),
	     *hex = text_of(mc_cpumask_snprint, j->result);
	unsigned int cpu;

	if (!list || !hex) {
		free(list);
		free(hex);
		cmd_error("mask", "printing: not enough memory");
		return CMD_FAILED;
	}
	if (j->json)
		print_json(j->result, list, hex);
	else if (j->form == WEIGHT)
		printf("%u\n", mc_cpumask_weight(j->result));
	else if (j->form == TASKSET)
		print_taskset(j->result);
	else if (j->form == EACH)
		mc_for_each_cpu (cpu, j->result)
			printf("%u\n", cpu);
	else
		puts(j->form == HEX ? hex : list);
	free(list);
	free(hex);
	return CMD_OK;
}

static int run(struct job *j, int argc, char **argv)
{
	int rc;

	j->result = mc_cpumask_alloc_bits(j->nbits);
	j->operand = mc_cpumask_alloc_bits(j->nbits);
	if (!j->result || !j->operand) {
		cmd_error("mask", "masks of %u bits: not enough memory", j->nbits);
		rc = CMD_FAILED;
	} else {
		rc = expression(j, argc, argv);
	}
	if (!rc && j->test)
		rc = parse_set(j, j->operand, j->test) < 0
			     ? CMD_USAGE
			     : !mc_cpumask_subset(j->operand, j->result);
	else if (!rc)
		rc = print_result(j);
	mc_cpumask_free(j->result);
	mc_cpumask_free(j->operand);
	return rc;
}

static bool is(const char *arg, const char *small, const char *large)
{
	return !strcmp(arg, small) || !strcmp(arg, large);
}

/* 0: an option that needs no value was taken; 1: it is none. */
static int simple_option(struct job *j, const char *arg)
{
	if (!strcmp(arg, "--json"))
		j->json = true;
	else if (is(arg, "-l", "--list"))
		j->form = LIST;
	else if (is(arg, "-x", "--hex"))
		j->form = HEX;
	else if (is(arg, "-t", "--taskset"))
		j->form = TASKSET;
	else if (is(arg, "-c", "--count"))
		j->form = WEIGHT;
	else if (is(arg, "-1", "--each"))
		j->form = EACH;
	else
		return 1;
	return 0;
}

int cmd_mask(int argc, char **argv)
{
	struct job j = {.nbits = mc_nr_cpu_ids()};
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *arg = argv[i];

		if (is(arg, "-h", "--help"))
			return usage();
		if (!strcmp(arg, "--")) {
			i++;
			break;
		}
		if (is(arg, "-n", "--nbits") || !strcmp(arg, "--test")) {
			if (++i >= argc)
				return cmd_usage_error("mask", "%s needs a value", arg);
			if (!strcmp(arg, "--test")) {
				j.test = argv[i];
			} else {
				char *end;
				unsigned long n = strtoul(argv[i], &end, 10);

				if (argv[i][0] < '0' || argv[i][0] > '9' || *end || !n ||
				    n > MAX_NBITS)
					return cmd_usage_error("mask", "--nbits '%s': give 1 to %u",
							       argv[i], MAX_NBITS);
				j.nbits = (unsigned int)n;
			}
		} else if (simple_option(&j, arg)) {
			return cmd_usage_error("mask", "unknown option '%s'", arg);
		}
	}
	if (i >= argc)
		return cmd_usage_error("mask", "which set?");
	return cmd_finish("mask", run(&j, argc - i, argv + i));
}
