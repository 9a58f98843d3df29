// SPDX-License-Identifier: MIT
/*
 * cmd_populate.c - `manycore populate`: options, signals, and one file after the other
 * (populate_file.c).
 *
 * Ctrl-C and SIGTERM stop it within a chunk; how far it came is told, and the same command goes on
 * from there.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/populate.h"

enum {
	INTERRUPTED = 130,
	MAX_THREADS = 65536,
	OPT_READ = 0x5000,
	OPT_WRITE,
	OPT_SIZE,
	OPT_HUGETLB,
	OPT_THREADS,
	OPT_CHUNK,
	OPT_JSON,
	OPT_STRICT
};

static const struct option long_options[] = {
	{"read", no_argument, NULL, OPT_READ},
	{"write", no_argument, NULL, OPT_WRITE},
	{"size", required_argument, NULL, OPT_SIZE},
	{"hugetlb", required_argument, NULL, OPT_HUGETLB},
	{"threads", required_argument, NULL, OPT_THREADS},
	{"chunk", required_argument, NULL, OPT_CHUNK},
	{"json", no_argument, NULL, OPT_JSON},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"interleave", required_argument, NULL, 'i'},
	{"weighted-interleave", required_argument, NULL, 'w'},
	{"membind", required_argument, NULL, 'm'},
	{"preferred", required_argument, NULL, 'p'},
	{"preferred-many", required_argument, NULL, 'P'},
	{"localalloc", no_argument, NULL, 'l'},
	{"cpunodebind", required_argument, NULL, 'N'},
	{"physcpubind", required_argument, NULL, 'C'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int help(void)
{
	puts("Usage: manycore populate [--read|--write] [--size SIZE] [--hugetlb 2M|1G] [POLICY] "
	     "[OPTION]... PATH...\n\n"
	     "Brings files into memory, node by node, in parallel: files in tmpfs and hugetlbfs "
	     "for other programs,\n"
	     "files on disk into the page cache. What is in memory already is passed over.\n\n"
	     "      --read                     read in, change nothing (default for files on "
	     "disk)\n"
	     "      --write                    allocate every page (default for tmpfs and "
	     "hugetlbfs)\n"
	     "      --size=SIZE                make PATH when it is not there, and at least so "
	     "long; do so much of it\n"
	     "      --hugetlb=2M|1G            PATH must lie on a hugetlbfs with pages of this "
	     "size\n"
	     "      --threads=N|node           N threads a node (in all, for files on disk); "
	     "'node': as many as CPUs\n"
	     "      --chunk=SIZE               step by step so much; Ctrl-C waits for one\n"
	     "      --strict                   a node that can't be had is an error\n"
	     "      --json                     one JSON document on standard output\n"
	     "  -h, --help                     this help\n\n"
	     "Policy (as numactl's; NODES and CPUS take 'all', '!', '+', 'same' too; default: an "
	     "equal part a node):\n"
	     "  -i, --interleave=NODES         interleave over the nodes\n"
	     "  -w, --weighted-interleave=NODES  the same by the nodes' weights\n"
	     "  -m, --membind=NODES            from these nodes only\n"
	     "  -p, --preferred=NODE           from this node first\n"
	     "  -P, --preferred-many=NODES     from these nodes first\n"
	     "  -l, --localalloc               from the node of the CPU that runs\n"
	     "  -N, --cpunodebind=NODES        run on the CPUs of these nodes\n"
	     "  -C, --physcpubind=CPUS         run on these CPUs\n\n"
	     "Exit status: 0 all is in; 1 some is not; 2 wrong usage; 130 interrupted.");
	return cmd_finish("populate", CMD_OK);
}

static int set_policy(struct populate *p, int opt, const char *value)
{
	static const char letters[] = "iwmpPl";
	static const enum mc_arena_policy policy[] = {
		MC_ARENA_INTERLEAVE, MC_ARENA_WEIGHTED_INTERLEAVE, MC_ARENA_BIND,
		MC_ARENA_PREFERRED,  MC_ARENA_PREFERRED_MANY,      MC_ARENA_LOCAL};
	const struct mc_nodemask *allowed = mc_topology_nodes_allowed(p->topo);
	struct mc_cpumask *mask = (struct mc_cpumask *)p->nodes;
	struct mc_error error;

	if (p->policy_given)
		return cmd_usage_error("populate", "only one policy can be given");
	p->policy_given = true;
	p->policy = policy[strchr(letters, opt) - letters];
	if (opt == 'l')
		return 0;
	if (populate_parse_set(value, &allowed->m, &mask, &error) < 0)
		return cmd_usage_error("populate", "-%c: %s", opt, error.text);
	p->nodes = (struct mc_nodemask *)mask;
	if (opt == 'p' && mc_cpumask_weight(mask) != 1)
		return cmd_usage_error("populate", "-p: '%s': one node only; -P takes several",
				       value);
	return 0;
}

static int bind_cpus(struct populate *p, int opt, const char *value)
{
	const struct mc_nodemask *nodes = mc_topology_nodes_online(p->topo);
	struct mc_cpumask *set = NULL, *cpus = NULL;
	struct mc_error error;
	unsigned int n;
	int rc;

	if (opt == 'C') {
		rc = populate_parse_set(value, mc_topology_allowed(p->topo), &cpus, &error);
	} else {
		rc = populate_parse_set(value, &nodes->m, &set, &error);
		cpus = rc < 0 ? NULL : mc_cpumask_alloc_bits(mc_topology_nr_cpu_ids(p->topo));
		if (cpus)
			mc_for_each_cpu (n, set)
				mc_cpumask_or(cpus, cpus, mc_topology_node(p->topo, n)->cpus);
	}
	if (rc < 0)
		rc = cmd_usage_error("populate", "-%c: %s", opt, error.text);
	else if (cpus && mc_cpumask_empty(cpus))
		rc = cmd_usage_error("populate", "-%c %s: no CPUs there", opt, value);
	else if (!cpus ||
		 syscall(SYS_sched_setaffinity, 0, (cpus->nbits + 63) / 64 * 8, cpus->word) < 0)
		rc = cmd_usage_error("populate", "-%c %s: %s", opt, value,
				     strerror(cpus ? errno : ENOMEM));
	mc_cpumask_free(set);
	mc_cpumask_free(cpus);
	return rc;
}

static int take_threads(struct populate *p, const char *value)
{
	char *end;
	unsigned long n;

	if (!strcmp(value, "node")) {
		p->threads_per_node = true;
		p->threads = 0;
		return 0;
	}
	n = strtoul(value, &end, 10);
	if (*end || n < 1 || n > MAX_THREADS)
		return cmd_usage_error("populate", "--threads: '%s': give 1 to %d, or 'node'",
				       value, MAX_THREADS);
	p->threads = (unsigned int)n;
	return 0;
}

static int take(struct populate *p, int opt, const char *value)
{
	switch (opt) {
	case OPT_READ:
	case OPT_WRITE:
		if (p->how == (opt == OPT_READ ? POPULATE_WRITE : POPULATE_READ))
			return cmd_usage_error("populate", "--read or --write, not both");
		p->how = opt == OPT_READ ? POPULATE_READ : POPULATE_WRITE;
		return 0;
	case OPT_SIZE:
		return populate_parse_size(value, &p->size)
			       ? 0
			       : cmd_usage_error("populate",
						 "--size: '%s' is no size such as 64M or 2G",
						 value);
	case OPT_CHUNK:
		return populate_parse_size(value, &p->chunk)
			       ? 0
			       : cmd_usage_error("populate",
						 "--chunk: '%s' is no size such as 64M or 2G",
						 value);
	case OPT_HUGETLB:
		if (!populate_parse_size(value, &p->hugetlb) || (p->hugetlb & (p->hugetlb - 1)) ||
		    p->hugetlb < 65536)
			return cmd_usage_error(
				"populate", "--hugetlb: '%s' is no huge page size such as 2M or 1G",
				value);
		return 0;
	case OPT_THREADS:
		return take_threads(p, value);
	case OPT_JSON:
		p->json = true;
		return 0;
	case OPT_STRICT:
		p->strict = true;
		return 0;
	case 'N':
	case 'C':
		return bind_cpus(p, opt, value);
	default:
		return set_policy(p, opt, value);
	}
}

static void on_signal(int sig)
{
	(void)sig;
	populate_interrupt();
}

/* What was ignored when this began stays so (nohup, a background job of a plain shell). */
static void catch(int sig, const struct sigaction *sa)
{
	struct sigaction old;

	if (!sigaction(sig, NULL, &old) && old.sa_handler != SIG_IGN)
		sigaction(sig, sa, NULL);
}

static int work(struct populate *p, char **paths)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	int status = CMD_OK, rc;

	catch(SIGINT, &sa);
	catch(SIGTERM, &sa);
	p->bar = !p->json && isatty(2);
	if (p->json)
		p->files = json_object_new_array();
	for (; *paths && !populate_interrupted(); paths++) {
		rc = populate_file(p, *paths);
		if (rc)
			status = CMD_FAILED;
	}
	if (*paths || (populate_interrupted() && status))
		status = INTERRUPTED;
	if (p->json) {
		struct json_object *doc = json_object_new_object();

		json_object_object_add(doc, "complete", json_object_new_boolean(status == CMD_OK));
		json_object_object_add(doc, "interrupted",
				       json_object_new_boolean(status == INTERRUPTED));
		json_object_object_add(doc, "files", p->files);
		puts(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PRETTY |
								 JSON_C_TO_STRING_SPACED |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
		json_object_put(doc);
	}
	return cmd_finish("populate", status);
}

int cmd_populate(int argc, char **argv)
{
	struct populate p = {0};
	struct mc_error error = {0};
	int opt, status = 0;

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return help();
	if (mc_topology_live(&p.topo, &error) < 0) {
		cmd_error("populate", "%s", error.text);
		return CMD_FAILED;
	}
	opterr = 0;
	while (!status &&
	       (opt = getopt_long(argc, argv, ":hi:w:m:p:P:lN:C:", long_options, NULL)) != -1)
		status = opt == '?' || opt == ':' ? cmd_option_error("populate", opt, argv)
						  : take(&p, opt, optarg);
	if (!status && !argv[optind])
		status = cmd_usage_error("populate", "which file?");
	if (!status && p.how == POPULATE_READ && p.size)
		status = cmd_usage_error("populate", "--size makes a file longer: not with --read");
	if (!status)
		status = work(&p, argv + optind);
	mc_nodemask_free((struct mc_nodemask *)p.nodes);
	mc_topology_put(p.topo);
	return status;
}
