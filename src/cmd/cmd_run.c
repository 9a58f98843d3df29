// SPDX-License-Identifier: MIT
/*
 * cmd_run.c - `manycore run`: reads its options and hands the machine, the policy and the command
 * to src/emu. Without a machine option the policies act on the real machine, as numactl's do, and
 * nothing is emulated.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/machine_options.h"
#include "cmd/run_cpus.h"
#include "emu/emu.h"

enum { RUN_FAILED = 125, RUN_CANNOT = 126, RUN_NOT_FOUND = 127 };

enum {
	OPT_VIEW = 0x5200,
	OPT_SEED,
	OPT_STRICT,
	OPT_TRACE,
	OPT_RSEQ,
	OPT_CALLS,
	OPT_TOUCH,
};

static const struct option long_options[] = {
	MACHINE_LONG_OPTIONS,
	{ "view", required_argument, NULL, OPT_VIEW },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "trace", optional_argument, NULL, OPT_TRACE },
	{ "rseq", required_argument, NULL, OPT_RSEQ },
	{ "first-touch", required_argument, NULL, OPT_TOUCH },
	{ "print-calls", no_argument, NULL, OPT_CALLS },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "interleave", required_argument, NULL, 'i' },
	{ "weighted-interleave", required_argument, NULL, 'w' },
	{ "membind", required_argument, NULL, 'm' },
	{ "preferred", required_argument, NULL, 'p' },
	{ "preferred-many", required_argument, NULL, 'P' },
	{ "localalloc", no_argument, NULL, 'l' },
	{ "balancing", no_argument, NULL, 'b' },
	{ "cpunodebind", required_argument, NULL, 'N' },
	{ "physcpubind", required_argument, NULL, 'C' },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"Usage: manycore run [MACHINE] [POLICY] [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
	"Runs a command on an emulated machine. Without a machine option (or MANYCORE_MACHINE) the\n"
	"policies act on this one.\n\n";

static const char help_rest[] =
	"\nPolicy (as numactl's; NODES and CPUS take 'all', '!', '+', 'same' too):\n"
	"  -i, --interleave=NODES         interleave memory over the nodes\n"
	"  -w, --weighted-interleave=NODES  the same by the nodes' weights\n"
	"  -m, --membind=NODES            memory from these nodes only\n"
	"  -p, --preferred=NODE           memory from this node first\n"
	"  -P, --preferred-many=NODES     memory from these nodes first\n"
	"  -l, --localalloc               memory from the node of the running CPU\n"
	"  -b, --balancing                with --membind: automatic balancing may move pages within\n"
	"  -N, --cpunodebind=NODES        run on the CPUs of these nodes\n"
	"  -C, --physcpubind=CPUS         run on these CPUs\n"
	"\nEmulation:\n"
	"      --view=auto|namespace|calls  how files of the machine are shown\n"
	"      --seed=N                   turns the choice of CPUs for threads that are not pinned\n"
	"      --rseq=no|real             refuse restartable sequences, or leave them (they tell the\n"
	"                                 host's CPU)\n"
	"      --first-touch=auto|faults  who touched a page: by page-fault events, or by counts only\n"
	"      --strict                   what can't be answered exactly fails; opens and changes of\n"
	"                                 mappings are all looked at\n"
	"      --trace[=FILE]             log what was asked and answered (default: standard error)\n"
	"  -v, --verbose                  tell which view was chosen, and why\n"
	"      --print-calls              print the table of the system calls that are seen\n"
	"  -h, --help                     this help\n"
	"\nExit status: the command's; 125 when run itself fails, 126 when the command can't be executed,\n"
	"127 when it is not found. Dies by the command's signal when that died by one.\n";

struct run {
	struct emu_options emu;
	struct machine_options machine;
	struct emu_policy_option policy[16];
	const char *cpus, *nodes;
	const char *last_nodes; /* for "same" */
};

static int parse_view(struct run *run, const char *value)
{
	static const char *const names[] = { "auto", "namespace", "calls" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(value, names[i])) {
			run->emu.view = i;
			return 0;
		}
	return cmd_usage_error("run", "--view: '%s' is none of auto, namespace, calls", value);
}

/* "same": the nodes of the node option before, as numactl has it. NULL after a message. */
static const char *node_text(struct run *run, const char *value)
{
	if (strcmp(value, "same"))
		run->last_nodes = value;
	else if (!run->last_nodes)
		cmd_usage_error("run", "'same' needs a node option before it");
	return run->last_nodes;
}

static int take_policy(struct run *run, int opt, const char *value)
{
	if (value) {
		value = node_text(run, value);
		if (!value)
			return CMD_USAGE;
	}
	if (run->emu.nr_policy == sizeof(run->policy) / sizeof(run->policy[0]))
		return cmd_usage_error("run", "too many policies");
	run->policy[run->emu.nr_policy++] =
		(struct emu_policy_option){ .letter = (char)opt, .value = value };
	return 0;
}

static int take_option(struct run *run, int opt, const char *value)
{
	char *end;

	switch (opt) {
	case OPT_VIEW:
		return parse_view(run, value);
	case OPT_SEED:
		run->emu.seed = (unsigned int)strtoul(value, &end, 10);
		return *value && !*end ? 0 : cmd_usage_error("run", "--seed: '%s' is no number", value);
	case OPT_STRICT:
		run->emu.strict = true;
		return 0;
	case OPT_TRACE:
		run->emu.trace = value ? value : "-";
		return 0;
	case OPT_RSEQ:
		if (strcmp(value, "real") && strcmp(value, "no"))
			return cmd_usage_error("run", "--rseq: '%s' is none of real, no", value);
		run->emu.rseq_real = !strcmp(value, "real");
		return 0;
	case OPT_TOUCH:
		if (strcmp(value, "auto") && strcmp(value, "faults"))
			return cmd_usage_error("run", "--first-touch: '%s' is none of auto, faults",
					       value);
		run->emu.first_touch_faults = !strcmp(value, "faults");
		return 0;
	case 'v':
		run->emu.verbose = true;
		return 0;
	case 'N':
		run->nodes = node_text(run, value);
		return run->nodes ? 0 : CMD_USAGE;
	case 'C':
		run->cpus = value;
		return 0;
	case 'i':
	case 'w':
	case 'm':
	case 'p':
	case 'P':
	case 'l':
	case 'b':
		return take_policy(run, opt, value);
	default:
		return cmd_usage_error("run", "unknown option");
	}
}

static int show_help(void)
{
	fputs(help_text, stdout);
	fputs(machine_options_help, stdout);
	fputs(help_rest, stdout);
	return cmd_finish("run", CMD_OK);
}

/* What -C and -N say, as a mask of the machine; NULL in *mask when neither was given. */
static int find_cpus(struct run *run, const struct mc_topology *topo)
{
	struct mc_error error = { .text = "" };
	int rc = 0;

	if (run->nodes)
		rc = run_cpus_of_nodes(topo, run->nodes, &run->emu.cpus, &error);
	if (!rc && run->cpus)
		rc = run_cpus_parse(topo, run->cpus, &run->emu.cpus, &error);
	if (rc < 0) {
		cmd_error("run", "%s", error.text);
		return RUN_FAILED;
	}
	return 0;
}

static int run_here(struct run *run, char **argv)
{
	struct mc_error error = { .text = "" };

	if (run->emu.cpus && syscall(SYS_sched_setaffinity, 0, (run->emu.cpus->nbits + 63) / 64 * 8,
				     run->emu.cpus->word) < 0) {
		cmd_error("run", "binding to CPUs: %s", strerror(errno));
		return RUN_FAILED;
	}
	if (run->emu.nr_policy && emu_policy_real(run->policy, run->emu.nr_policy, &error) < 0) {
		cmd_error("run", "%s", error.text);
		return RUN_FAILED;
	}
	execvp(argv[0], argv);
	cmd_error("run", "executing: %s: %s", argv[0], strerror(errno));
	return errno == ENOENT || errno == ENOTDIR ? RUN_NOT_FOUND : RUN_CANNOT;
}

/* run's own failures are told apart from the command's. */
static int own_status(int status)
{
	return status == CMD_OK ? CMD_OK : RUN_FAILED;
}

int cmd_run(int argc, char **argv)
{
	struct run run = { .machine = MACHINE_OPTIONS_INIT("run") };
	bool emulated;
	int opt, status;

	run.emu.policy = run.policy;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:vhi:w:m:p:P:lbN:C:", long_options, NULL)) != -1) {
		if (opt == 'h')
			return show_help();
		if (opt == OPT_CALLS) {
			emu_table_print();
			return cmd_finish("run", CMD_OK);
		}
		if (machine_options_knows(opt)) {
			if (!machine_options_take(&run.machine, opt, optarg))
				return own_status(run.machine.status);
			continue;
		}
		if (opt == '?' || opt == ':')
			return own_status(cmd_option_error("run", opt, argv));
		status = take_option(&run, opt, optarg);
		if (status)
			return own_status(status);
	}
	if (!machine_options_done(&run.machine))
		return own_status(run.machine.status);
	if (!argv[optind])
		return own_status(cmd_usage_error("run", "no command given"));
	emulated = run.machine.given;
	run.emu.topo = machine_options_build(&run.machine);
	if (!run.emu.topo)
		return own_status(run.machine.status);
	status = find_cpus(&run, run.emu.topo);
	if (!status)
		status =
			emulated ? emu_run(&run.emu, argv + optind) : run_here(&run, argv + optind);
	mc_cpumask_free(run.emu.cpus);
	mc_topology_put(run.emu.topo);
	return status;
}
