// SPDX-License-Identifier: MIT
/*
 * cmd_doctor.c - `manycore doctor`: runs the probes of emu/doctor.h and tells what each means. Exit
 * status 1 when `run` can't work here, so that scripts may ask before they start.
 */
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "emu/doctor.h"

static const char *const state_names[] = {"ok", "limited", "bad"};

static int usage(void)
{
	puts("Usage: manycore doctor [--json] [--list] [CHECK]...\n\n"
	     "Tries what 'manycore run' and the library need of this host. Each check is told with "
	     "its state (ok, limited,\n"
	     "bad), what was found, what that means, and the remedy.\n\n"
	     "      --json   one JSON document on standard output\n"
	     "      --list   only the names of the checks\n"
	     "  -h, --help   this text\n\n"
	     "With names only those checks are done. Exit status: 0 'manycore run' works here; 1 it "
	     "can't; 2 wrong usage.");
	return cmd_finish("doctor", CMD_OK);
}

static struct json_object *to_json(const struct doctor_check *c, const struct doctor_result *r)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(c->name));
	json_object_object_add(o, "state", json_object_new_string(state_names[r->state]));
	json_object_object_add(o, "required", json_object_new_boolean(c->required));
	json_object_object_add(o, "value", json_object_new_string(r->value));
	json_object_object_add(o, "meaning", json_object_new_string(r->meaning));
	json_object_object_add(o, "remedy", json_object_new_string(r->remedy));
	return o;
}

static void to_text(const struct doctor_check *c, const struct doctor_result *r)
{
	printf("%-8s %-22s %s\n", state_names[r->state], c->name, r->value);
	printf("%-8s %-22s %s\n", "", "", r->meaning);
	if (*r->remedy)
		printf("%-8s %-22s remedy: %s\n", "", "", r->remedy);
}

static bool wanted(const struct doctor_check *c, int n, char **names)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], c->name))
			return true;
	return n == 0;
}

static bool known(const char *name)
{
	for (const struct doctor_check *c = doctor_checks; c->name; c++)
		if (!strcmp(name, c->name))
			return true;
	return false;
}

static struct json_object *host(void)
{
	struct json_object *o = json_object_new_object();
	struct utsname u;

	uname(&u);
	json_object_object_add(o, "kernel", json_object_new_string(u.release));
	json_object_object_add(o, "arch", json_object_new_string(u.machine));
	json_object_object_add(o, "uid", json_object_new_int64(getuid()));
	return o;
}

/* True when nothing that `run` requires is bad. */
static bool examine(int n, char **names, struct json_object *list)
{
	bool works = true;

	for (const struct doctor_check *c = doctor_checks; c->name; c++) {
		struct doctor_result r = {.state = DOCTOR_OK};

		if (!wanted(c, n, names))
			continue;
		fflush(stdout); /* probes fork */
		c->probe(&r);
		if (c->required && r.state == DOCTOR_BAD)
			works = false;
		if (list)
			json_object_array_add(list, to_json(c, &r));
		else
			to_text(c, &r);
	}
	return works;
}

static int report(bool json, int n, char **names)
{
	struct json_object *doc = NULL, *list = NULL;
	bool works;

	if (json) {
		doc = host();
		list = json_object_new_array();
	}
	works = examine(n, names, list);
	if (json) {
		json_object_object_add(doc, "run", json_object_new_boolean(works));
		json_object_object_add(doc, "checks", list);
		puts(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PRETTY |
								 JSON_C_TO_STRING_SPACED |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
		json_object_put(doc);
	} else {
		printf("\n'manycore run' %s here.\n", works ? "works" : "can't work");
	}
	return cmd_finish("doctor", works ? CMD_OK : CMD_FAILED);
}

static const struct option long_options[] = {
	{"json", no_argument, NULL, 'j'},
	{"list", no_argument, NULL, 'l'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int cmd_doctor(int argc, char **argv)
{
	bool json = false, list = false;
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == 'h')
			return usage();
		if (opt == '?' || opt == ':')
			return cmd_option_error("doctor", opt, argv);
		json |= opt == 'j';
		list |= opt == 'l';
	}
	for (int i = optind; i < argc; i++)
		if (!known(argv[i]))
			return cmd_usage_error("doctor", "'%s': no such check; --list names them",
					       argv[i]);
	if (!list)
		return report(json, argc - optind, argv + optind);
	for (const struct doctor_check *c = doctor_checks; c->name; c++)
		puts(c->name);
	return cmd_finish("doctor", CMD_OK);
}
