// SPDX-License-Identifier: MIT
/* main.c - the command: a table of subcommands and the few helpers they share. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"

const struct cmd cmd_table[] = {
	{ "bench", cmd_bench, "measure the library and the emulator against their peers" },
	{ "doctor", cmd_doctor, "what this host allows, what that means, and the remedy" },
	{ "mask", cmd_mask, "sets of CPUs: lists, hex, counts and the algebra on them" },
	{ "run", cmd_run, "run a program on an emulated machine, or with a memory policy" },
	{ "populate", cmd_populate, "bring files into memory in parallel, node by node" },
	{ "record", cmd_record, "write this machine's shape into an archive for --machine" },
	{ "topo", cmd_topo, "show a machine: this one, or one that is described" },
	{ NULL, NULL, NULL },
};

void cmd_error(const char *name, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "manycore %s: ", name);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int cmd_usage_error(const char *name, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "manycore %s: ", name);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\nTry 'manycore %s --help'.\n", name);
	return CMD_USAGE;
}

int cmd_option_error(const char *name, int opt, char **argv)
{
	const char *word = argv[optind - 1], *rest = argv[optind];

	/* A letter in the middle of a word: getopt() has not moved on yet. */
	if (opt == '?' && optopt && rest && rest[0] == '-' && rest[1] != '-' &&
	    strchr(rest, optopt))
		return cmd_usage_error(name, "-%c: no such option", optopt);
	if (word[0] == '-' && word[1] != '-' && optopt)
		return cmd_usage_error(name, opt == ':' ? "-%c: needs a value" : "-%c: no such option",
				       optopt);
	if (opt == ':')
		return cmd_usage_error(name, "%s: needs a value", word);
	return cmd_usage_error(name, optopt ? "%s: takes no value" : "%s: no such option", word);
}

int cmd_finish(const char *name, int status)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		cmd_error(name, "writing standard output: %s", strerror(errno));
		return status ? status : CMD_FAILED;
	}
	return status;
}

static int help(void)
{
	puts("Usage: manycore COMMAND [OPTION]...\n\n"
	     "Software on machines with very many CPUs and memory nodes: emulate one, describe one, measure.\n\n"
	     "Commands:");
	for (const struct cmd *c = cmd_table; c->name; c++)
		printf("  %-10s %s\n", c->name, c->summary);
	puts("\n'manycore COMMAND --help' tells a command's options; 'manycore --version' the version.");
	return cmd_finish("help", CMD_OK);
}

/* "manycore help COMMAND" is "manycore COMMAND --help". */
static int help_on(char **argv)
{
	char *ask[] = { argv[2], (char[]){ "--help" }, NULL };

	if (!argv[2])
		return help();
	for (const struct cmd *c = cmd_table; c->name; c++)
		if (!strcmp(argv[2], c->name))
			return c->run(2, ask);
	fprintf(stderr, "manycore: '%s' is no command\nTry 'manycore --help'.\n", argv[2]);
	return CMD_USAGE;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("manycore: no command given\nTry 'manycore --help'.\n", stderr);
		return CMD_USAGE;
	}
	if (!strcmp(argv[1], "help"))
		return help_on(argv);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help();
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("manycore %s\n", mc_version());
		return cmd_finish("version", CMD_OK);
	}
	for (const struct cmd *c = cmd_table; c->name; c++)
		if (!strcmp(argv[1], c->name))
			return c->run(argc - 1, argv + 1);
	fprintf(stderr, "manycore: '%s' is no command\nTry 'manycore --help'.\n", argv[1]);
	return CMD_USAGE;
}
