// SPDX-License-Identifier: MIT
/*
 * render_tool.c - the renderer for scripts: `render_tool [-dt] [OPTION=VALUE]... COMMAND PATH
 * [DIR]`
 *
 * OPTION=VALUE are a machine's options (smp, mem, nodes, numa, machine, offline). Commands: cat,
 * link, stat, list, owns, and tree, which writes the folder PATH below DIR (DIR/PATH). -d: folders
 * and links only; -t: only what follows from the topology, the recording's own texts are not used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/render/render.h"

static int print_name(void *arg, const char *name, char type)
{
	(void)arg;
	printf("%c %s\n", type, name);
	return 0;
}

/* DIR with all folders of `path` below it. */
static int make_folders(const char *dir, const char *path)
{
	char name[4096], *slash;
	int fd;

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -1;
	snprintf(name, sizeof(name), "%s%s/", dir, path);
	for (slash = strchr(name + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(name, 0755) < 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	fd = open(name, O_RDONLY | O_DIRECTORY);
	return fd;
}

static int tree(struct mc_render *render, const char *path, const char *dir, unsigned int flags)
{
	struct mc_text text = {0};
	struct mc_error error;
	struct stat st;
	char name[4096];
	int fd, ret = mc_render_stat(render, path, &st);
	FILE *file;

	if (ret)
		return ret;
	if (S_ISDIR(st.st_mode)) {
		fd = make_folders(dir, path);
		if (fd < 0)
			return -errno;
		ret = mc_render_tree(render, path, fd, flags, &error);
		if (ret)
			fprintf(stderr, "%s\n", error.text);
		close(fd);
		return ret;
	}
	snprintf(name, sizeof(name), "%s", path);
	*strrchr(name, '/') = '\0';
	fd = make_folders(dir, name);
	if (fd < 0)
		return -errno;
	close(fd);
	snprintf(name, sizeof(name), "%s%s", dir, path);
	ret = mc_render_read(render, path, &text);
	file = ret ? NULL : fopen(name, "w");
	if (file) {
		fwrite(text.data ? text.data : "", 1, text.len, file);
		fclose(file);
	}
	mc_text_free(&text);
	return ret;
}

static int ask(struct mc_render *render, const char *command, const char *path, const char *dir,
	       unsigned int flags)
{
	struct mc_text text = {0};
	struct stat st;
	int ret;

	if (!strcmp(command, "cat") || !strcmp(command, "link")) {
		ret = *command == 'c' ? mc_render_read(render, path, &text)
				      : mc_render_readlink(render, path, &text);
		if (!ret)
			fwrite(text.data ? text.data : "", 1, text.len, stdout);
		mc_text_free(&text);
		return ret;
	}
	if (!strcmp(command, "stat")) {
		ret = mc_render_stat(render, path, &st);
		if (!ret)
			printf("%o %lld\n", st.st_mode, (long long)st.st_size);
		return ret;
	}
	if (!strcmp(command, "list"))
		return mc_render_list(render, path, print_name, NULL);
	if (!strcmp(command, "owns"))
		return printf("%d\n", mc_render_owns(render, path)) < 0;
	if (!strcmp(command, "tree"))
		return tree(render, path, dir ? dir : ".", flags);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct mc_machine *machine = mc_machine_new();
	struct mc_topology *topo = NULL;
	struct mc_render *render;
	struct mc_error error = {0};
	struct mc_render_live live = {0};
	unsigned int flags = 0;
	char *value;
	int i = 1, ret;

	for (; i < argc && argv[i][0] == '-'; i++) {
		flags |= strchr(argv[i], 'd') ? MC_RENDER_DIRS : 0;
		live.derived_only |= strchr(argv[i], 't') != NULL;
	}
	for (; i < argc && (value = strchr(argv[i], '=')); i++) {
		*value = '\0';
		if (mc_machine_option(machine, argv[i], value + 1, &error) < 0)
			goto fail;
	}
	if (argc - i < 2) {
		fprintf(stderr, "Usage: render_tool [-dt] [OPTION=VALUE]... COMMAND PATH [DIR]\n");
		return 2;
	}
	if (mc_machine_build(machine, &topo, &error) < 0)
		goto fail;
	mc_machine_free(machine);
	render = mc_render_new(topo, &live);
	mc_topology_put(topo);
	if (!render)
		return 1;
	ret = ask(render, argv[i], argv[i + 1], argv[i + 2], flags);
	mc_render_free(render);
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", argv[i + 1], strerror(-ret));
	return ret ? 1 : 0;
fail:
	fprintf(stderr, "%s\n", error.text);
	return 1;
}
