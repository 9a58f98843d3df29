/* SPDX-License-Identifier: MIT */
/* cmd.h - what the subcommands share. Each cmd_NAME.c gives one function and has one line in
 * main.c's table. */
#ifndef MC_CMD_H
#define MC_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <manycore/manycore.h>

/* Exit codes of every subcommand (manycore(1)); `run` has its own 125, 126, 127. */
enum { CMD_OK = 0, CMD_FAILED = 1, CMD_USAGE = 2 };

struct cmd {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name; returns the exit status */
	const char *summary;
};
extern const struct cmd cmd_table[];

int cmd_mask(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_populate(int argc, char **argv);
int cmd_bench(int argc, char **argv);

/* "manycore NAME: text" on stderr. cmd_usage_error() adds where help is found and returns
 * CMD_USAGE. */
void cmd_error(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cmd_usage_error(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* What getopt_long() gave '?' or ':' for, in words; opterr is 0 and the letters begin with ':'.
 * Returns CMD_USAGE. */
int cmd_option_error(const char *name, int opt, char **argv);
/* Help goes to stdout; false (with a message) when stdout could not be written. Call at the end of
 * every command that prints, so that a full disk is an error: returns `status` or CMD_FAILED. */
int cmd_finish(const char *name, int status);

#endif
