// SPDX-License-Identifier: MIT
/* fuzz_machine.c - descriptions: each line is "NAME VALUE" for mc_machine_option(), then the
 * machine is built. */
#include <stdlib.h>
#include <string.h>
#include <manycore/manycore.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A base that needs no host, and sizes that build fast. */
	struct mc_machine *machine = mc_machine_new();
	struct mc_topology *topo;
	struct mc_error error;
	char *text = malloc(size + 1), *line, *save;

	if (!machine || !text || size > 4096)
		goto out;
	memcpy(text, data, size);
	text[size] = '\0';
	if (mc_machine_option(machine, "machine", "pi5", &error) < 0)
		abort();
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, ' ');

		if (!value)
			continue;
		*value++ = '\0';
		/* No files: fuzz_recording does those. */
		if (!strcmp(line, "machine") && strchr(value, '/'))
			continue;
		if (mc_machine_option(machine, line, value, &error) < 0 && !*error.text)
			abort();
	}
	if (mc_machine_build(machine, &topo, &error) == 0) {
		if (mc_cpumask_empty(mc_topology_online(topo)) || !mc_topology_mem_total(topo))
			abort();
		mc_topology_put(topo);
	} else if (!*error.text) {
		abort();
	}
out:
	free(text);
	mc_machine_free(machine);
	return 0;
}
