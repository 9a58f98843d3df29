// SPDX-License-Identifier: MIT
/*
 * fuzz_render.c - the renderer's inputs that a program inside chooses or the host writes: any path,
 * and any text of a task's status and stat. The first byte tells which. A path that is found must
 * be answered the same by every question.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "emu/render/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mc_render *machine(void)
{
	struct mc_machine *machine = mc_machine_new();
	struct mc_topology *topo = NULL;
	struct mc_render *render = NULL;

	if (machine && !mc_machine_option(machine, "smp", "8,sockets=2,cores=2,threads=2", NULL) &&
	    !mc_machine_option(machine, "nodes", "2", NULL) &&
	    !mc_machine_option(machine, "mem", "8G", NULL) &&
	    !mc_machine_build(machine, &topo, NULL))
		render = mc_render_new(topo, NULL);
	mc_topology_put(topo);
	mc_machine_free(machine);
	return render;
}

static int no_name(void *arg, const char *name, char type)
{
	(void)arg;
	if (!*name || strchr(name, '/') || !strchr("fdl", type))
		abort();
	return 0;
}

static void one_path(struct mc_render *render, const char *path)
{
	struct mc_text text = {0}, whole = {0};
	struct stat st;
	int ret = mc_render_stat(render, path, &st);

	if (mc_render_owns(render, path) != (ret != -EXDEV))
		abort();
	if (!ret && S_ISLNK(st.st_mode) && mc_render_readlink(render, path, &text))
		abort();
	if (!ret && S_ISDIR(st.st_mode) && mc_render_list(render, path, no_name, NULL))
		abort();
	if (!ret && S_ISDIR(st.st_mode) && mc_render_read(render, path, &text) != -EISDIR)
		abort();
	/* A path that was resolved resolves to itself. */
	if (!mc_render_resolve(render, path, &whole)) {
		text.len = 0;
		if (mc_render_resolve(render, whole.data, &text) || strcmp(text.data, whole.data))
			abort();
	}
	if (strncmp(path, "/proc", 5))
		mc_render_read(render, path, &text);
	mc_text_free(&text);
	mc_text_free(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mc_render *render;
	struct mc_text out = {0};
	struct mc_render_task task = {.cpu = 5};
	char *text;

	if (!render)
		render = machine();
	if (!size || !render)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == '/') {
		memmove(text + 1, text, size - 1);
		text[0] = '/';
		text[size - 1] = '\0';
		one_path(render, text);
	} else {
		struct mc_topology *topo = mc_render_topology(render);

		task.allowed = mc_topology_online(topo);
		task.mems = mc_topology_nodes_online(topo);
		if (data[0] & 1)
			mc_render_status(render, text, size - 1, &task, &out);
		else
			mc_render_stat_line(render, text, size - 1, &task, &out);
		mc_topology_put(topo);
	}
	mc_text_free(&out);
	free(text);
	return 0;
}
