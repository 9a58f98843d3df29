// SPDX-License-Identifier: MIT
/* machine_options.c - the options that describe a machine, for `run`, `topo` and others: see
 * machine_options.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/machine_options.h"

const char machine_options_help[] =
	"Describing a machine (manycore-machine(7)):\n"
	"  --smp N[,sockets=S][,dies=D][,clusters=C][,cores=K][,threads=T][,maxcpus=M]\n"
	"                          CPUs and their topology, as QEMU's -smp\n"
	"  --mem SIZE              total memory (64G, 1T; plain numbers are MiB)\n"
	"  --nodes N               CPUs and memory spread evenly over N nodes\n"
	"  --numa node[,nodeid=I][,cpus=LIST][,mem=SIZE]\n"
	"  --numa dist,src=A,dst=B,val=V\n"
	"                          nodes and distances one by one, as QEMU's -numa\n"
	"  --numa fake=N|SIZE|NU[:d,d,...][,split]\n"
	"                          split each node as the kernel's numa=fake= does\n"
	"  --machine NAME|DIR|TAR  a preset ('--machine list'), or a recording (a path with a '/')\n"
	"  --offline LIST          CPUs that are present but offline\n";

static const char *const names[] = { "smp", "mem", "nodes", "numa", "machine", "offline" };

static bool fail(struct machine_options *o, int status)
{
	o->status = status;
	machine_options_free(o);
	return false;
}

static bool list_presets(struct machine_options *o)
{
	const char *name, *description;

	for (unsigned int i = 0; (name = mc_machine_preset(i, &description)) != NULL; i++)
		printf("%-20s %s\n", name, description);
	return fail(o, cmd_finish(o->command, CMD_OK));
}

static bool take(struct machine_options *o, const char *name, const char *value)
{
	struct mc_error error;

	if (!o->machine)
		o->machine = mc_machine_new();
	if (!o->machine) {
		cmd_error(o->command, "%s", strerror(ENOMEM));
		return fail(o, CMD_FAILED);
	}
	if (mc_machine_option(o->machine, name, value, &error) < 0)
		return fail(o, cmd_usage_error(o->command, "%s", error.text));
	o->given = true;
	return true;
}

bool machine_options_take(struct machine_options *o, int opt, const char *value)
{
	const char *name = names[opt - MACHINE_OPT_FIRST];

	if (opt == MACHINE_OPT_MACHINE) {
		if (!strcmp(value, "list"))
			return list_presets(o);
		o->base_given = true;
	}
	return take(o, name, value);
}

bool machine_options_done(struct machine_options *o)
{
	const char *value = getenv("MANYCORE_MACHINE");

	if (o->base_given || !value || !*value)
		return true;
	o->base_given = true;
	if (take(o, "machine", value))
		return true;
	fputs("(from the environment variable MANYCORE_MACHINE)\n", stderr);
	return false;
}

struct mc_topology *machine_options_build(struct machine_options *o)
{
	struct mc_topology *topo = NULL;
	struct mc_error error;
	int rc;

	if (!machine_options_done(o))
		return NULL;
	if (o->machine)
		rc = mc_machine_build(o->machine, &topo, &error);
	else
		rc = mc_topology_live(&topo, &error);
	if (rc < 0) {
		cmd_error(o->command, "%s", error.text);
		/* What was described can't be: the user's words; what could not be read or held: a
		 * failure. */
		fail(o, o->machine && (rc == -EINVAL || rc == -ERANGE || rc == -ENOENT)
				? CMD_USAGE
				: CMD_FAILED);
		return NULL;
	}
	machine_options_free(o);
	return topo;
}

void machine_options_free(struct machine_options *o)
{
	mc_machine_free(o->machine);
	o->machine = NULL;
}
