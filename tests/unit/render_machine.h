/* SPDX-License-Identifier: MIT */
/*
 * render_machine.h - for the renderer's tests, test_render*.c: a renderer of a machine given in
 * words, and its files as strings. Whatever goes wrong fails the test.
 */
#ifndef TESTS_RENDER_MACHINE_H
#define TESTS_RENDER_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "emu/render/render.h"

#define CPU "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"

/* A machine of options "name=value name=value". */
static inline struct mc_topology *machine(const char *options)
{
	struct mc_machine *m = mc_machine_new();
	struct mc_topology *topo = NULL;
	struct mc_error error;
	char *copy = strdup(options), *save = NULL, *word, *value;

	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		*value = '\0';
		if (mc_machine_option(m, word, value + 1, &error) < 0)
			fail_msg("%s: %s", options, error.text);
	}
	if (mc_machine_build(m, &topo, &error) < 0)
		fail_msg("%s: %s", options, error.text);
	mc_machine_free(m);
	free(copy);
	return topo;
}

static inline struct mc_render *renderer(const char *options, const struct mc_render_live *live)
{
	struct mc_topology *topo = machine(options);
	struct mc_render *render = mc_render_new(topo, live);

	assert_non_null(render);
	mc_topology_put(topo);
	return render;
}

/* The content of a file as a string to free; fails when there is none. */
static inline char *content(struct mc_render *render, const char *path)
{
	struct mc_text text = {0};
	int ret = mc_render_read(render, path, &text);

	if (ret)
		fail_msg("%s: %s", path, strerror(-ret));
	if (!text.data)
		mc_text_add(&text, "", 0);
	return text.data;
}

/* The number behind a key in a file. */
static inline long long number_of(struct mc_render *render, const char *path, const char *key)
{
	char *text = content(render, path), *at = strstr(text, key);
	long long number;

	if (!at)
		fail_msg("%s: no '%s'", path, key);
	number = strtoll(at + strlen(key), NULL, 10);
	free(text);
	return number;
}

#endif /* TESTS_RENDER_MACHINE_H */
