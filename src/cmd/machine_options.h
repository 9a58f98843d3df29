/* SPDX-License-Identifier: MIT */
/*
 * machine_options.h - the options that describe a machine, the same for every subcommand: see
 * manycore-machine(7).
 *
 * Use with getopt_long(): put MACHINE_LONG_OPTIONS into the command's table, hand each value that
 * machine_options_knows() to machine_options_take(), and build once all options are read:
 *
 *	struct machine_options machine = MACHINE_OPTIONS_INIT("topo");
 *	...
 *	if (machine_options_knows(opt))
 *		if (!machine_options_take(&machine, opt, optarg))
 *			return machine.status;
 *	...
 *	topo = machine_options_build(&machine);
 *	if (!topo)
 *		return machine.status;
 */
#ifndef MC_CMD_MACHINE_OPTIONS_H
#define MC_CMD_MACHINE_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <manycore/manycore.h>

/* Values for getopt_long(), far from characters and from commands' own. */
enum {
	MACHINE_OPT_FIRST = 0x4d00,
	MACHINE_OPT_SMP = MACHINE_OPT_FIRST,
	MACHINE_OPT_MEM,
	MACHINE_OPT_NODES,
	MACHINE_OPT_NUMA,
	MACHINE_OPT_MACHINE,
	MACHINE_OPT_OFFLINE,
	MACHINE_OPT_END,
};

#define MACHINE_LONG_OPTIONS                                               \
	{"smp", required_argument, NULL, MACHINE_OPT_SMP},                 \
		{"mem", required_argument, NULL, MACHINE_OPT_MEM},         \
		{"nodes", required_argument, NULL, MACHINE_OPT_NODES},     \
		{"numa", required_argument, NULL, MACHINE_OPT_NUMA},       \
		{"machine", required_argument, NULL, MACHINE_OPT_MACHINE}, \
	{                                                                  \
		"offline", required_argument, NULL, MACHINE_OPT_OFFLINE    \
	}

struct machine_options {
	const char *command;            /* for messages */
	struct mc_machine *machine;     /* NULL until the first option */
	bool given;                     /* a machine was described, by an option or by MANYCORE_MACHINE */
	bool base_given;                /* --machine was one of them */
	int status;                     /* what the command returns after a false or NULL */
};
#define MACHINE_OPTIONS_INIT(name) { .command = (name) }

/* The options' part of a --help text, ending in a newline. */
extern const char machine_options_help[];

static inline bool machine_options_knows(int opt)
{
	return opt >= MACHINE_OPT_FIRST && opt < MACHINE_OPT_END;
}

/* Takes one option. False: leave with `status`: CMD_USAGE after a message, or CMD_OK when
 * `--machine list` has printed. */
bool machine_options_take(struct machine_options *options, int opt, const char *value);
/* After the last option: reads MANYCORE_MACHINE when there was no --machine, and sets `given`.
 * False as above. */
bool machine_options_done(struct machine_options *options);
/* The machine described, or the live one when none was; NULL after a message. Calls
 * machine_options_done() itself. The caller puts the topology. May be called once; frees what the
 * options held. */
struct mc_topology *machine_options_build(struct machine_options *options);
/* For leaving without building. */
void machine_options_free(struct machine_options *options);

#endif
