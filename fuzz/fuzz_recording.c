// SPDX-License-Identifier: MIT
/*
 * fuzz_recording.c - recorded trees: the input is a list of files as "PATH\nTEXT\n\0" (a path that
 * ends in "@TARGET" is a link), so that mutations reach the reader and not an archive's checksums.
 */
#include <stdlib.h>
#include <string.h>
#include "lib/topology_files.h"
#include "lib/topology_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(struct topo_files *files, const char *record, size_t len, struct mc_error *error)
{
	const char *eol = memchr(record, '\n', len), *text = eol ? eol + 1 : record + len;
	char *path = strndup(record, (size_t)((eol ? eol : record + len) - record)),
	     clean[TOPO_MAX_PATH], *at, *copy;
	size_t n = (size_t)(record + len - text);
	int rc;

	if (!path)
		return -1;
	at = strchr(path, '@');
	if (at)
		*at++ = '\0';
	rc = topo_files_clean(files, path, clean, sizeof(clean), error);
	copy = at ? strdup(at) : malloc(n + 1);
	if (copy && !at) {
		memcpy(copy, text, n);
		copy[n] = '\0';
	}
	if (rc == 0 && copy && topo_files_wanted(clean)) {
		rc = topo_files_add(files, clean, at ? 'l' : 'f', copy, at ? strlen(at) : n, error);
		copy = NULL;
	}
	free(copy);
	free(path);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topo_files *files = topo_files_new("fuzz");
	struct mc_topology *topo;
	struct mc_error error;
	int rc = files ? 0 : -1;

	for (size_t at = 0, len; rc == 0 && at < size; at += len + 1) {
		const uint8_t *end = memchr(data + at, 0, size - at);

		len = end ? (size_t)(end - data) - at : size - at;
		rc = len ? add(files, (const char *)data + at, len, &error) : 0;
	}
	if (rc == 0 && topo_files_seal(files, &error) == 0 && topo_read_machine(files, "fuzz", &topo, &error) == 0) {
		unsigned int order[4];

		/* Lists of all nodes before it: quadratic, which is no fault of the reader's. */
		if (mc_topology_nr_node_ids(topo) <= 1024)
			mc_topology_fallback(topo, mc_topology_nr_node_ids(topo) - 1, order, 4);
		mc_topology_put(topo);
	}
	topo_files_put(files);
	return 0;
}
