// SPDX-License-Identifier: MIT
/* cmd_topo.c - `manycore topo`: a machine (this one, or one that is described) as text, JSON or a
 * drawing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/machine_options.h"
#include "cmd/topo/topo.h"

static const struct {
	const char *name;
	int (*write)(const struct mc_topology *topo, FILE *out);
} formats[] = {
	{ "summary", topo_write_summary }, { "tree", topo_write_tree }, { "numactl", topo_write_numactl },
	{ "json", topo_write_json },	   { "svg", topo_write_svg },
};

static int help(void)
{
	puts("Usage: manycore topo [OPTION]...\n\n"
	     "Shows a machine: this one, or the one that the options describe.\n\n"
	     "  -f, --format FORMAT     summary (default), tree, numactl (the table of numactl -H), json or svg\n"
	     "      --json              the same as --format json\n"
	     "  -t, --tree              the same as --format tree\n"
	     "  -o, --output FILE       write to FILE instead of standard output\n"
	     "  -h, --help              this text\n");
	fputs(machine_options_help, stdout);
	return cmd_finish("topo", CMD_OK);
}

static int find_format(const char *name)
{
	for (int i = 0; i < (int)(sizeof(formats) / sizeof(*formats)); i++)
		if (!strcmp(formats[i].name, name))
			return i;
	return -1;
}

static int write_out(const struct mc_topology *topo, int format, const char *path)
{
	FILE *out = path ? fopen(path, "we") : stdout;
	int rc;

	if (!out) {
		cmd_error("topo", "writing %s: %s", path, strerror(errno));
		return CMD_FAILED;
	}
	rc = formats[format].write(topo, out);
	if (rc < 0)
		cmd_error("topo", "writing %s: %s", formats[format].name, strerror(-rc));
	if (path) {
		bool bad = ferror(out) != 0;

		if (fclose(out) != 0 || bad) {
			cmd_error("topo", "writing %s: %s", path, strerror(errno));
			rc = -1;
		}
	}
	return cmd_finish("topo", rc < 0 ? CMD_FAILED : CMD_OK);
}

int cmd_topo(int argc, char **argv)
{
	static const struct option options[] = {
		MACHINE_LONG_OPTIONS,
		{ "format", required_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "tree", no_argument, NULL, 't' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct machine_options machine = MACHINE_OPTIONS_INIT("topo");
	const char *path = NULL;
	struct mc_topology *topo;
	int opt, format = 0, status;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":f:to:h", options, NULL)) != -1) {
		if (machine_options_knows(opt)) {
			if (!machine_options_take(&machine, opt, optarg))
				return machine.status;
			continue;
		}
		switch (opt) {
		case 'f':
			format = find_format(optarg);
			if (format < 0) {
				machine_options_free(&machine);
				return cmd_usage_error("topo", "--format %s: no such format", optarg);
			}
			break;
		case 'j':
			format = find_format("json");
			break;
		case 't':
			format = find_format("tree");
			break;
		case 'o':
			path = optarg;
			break;
		case 'h':
			machine_options_free(&machine);
			return help();
		default:
			machine_options_free(&machine);
			return cmd_option_error("topo", opt, argv);
		}
	}
	if (optind < argc) {
		machine_options_free(&machine);
		return cmd_usage_error(
			"topo", "%s: no operands are taken; a recording is given as --machine %s%s",
			argv[optind], strchr(argv[optind], '/') ? "" : "./", argv[optind]);
	}
	topo = machine_options_build(&machine);
	if (!topo)
		return machine.status;
	status = write_out(topo, format, path);
	mc_topology_put(topo);
	return status;
}
