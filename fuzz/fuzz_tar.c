// SPDX-License-Identifier: MIT
/* fuzz_tar.c - recordings as archives of any compression, and numa=fake on what came out. */
#include "lib/topology_fake.h"
#include "lib/topology_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topo_files *files;
	struct mc_topology *topo, *fake;
	struct mc_error error;

	if (topo_files_from_memory(data, size, &files, &error) < 0)
		return 0;
	if (topo_read_machine(files, "fuzz", &topo, &error) == 0) {
		if (topo_fake_apply(topo, "4", &fake, &error) == 0)
			mc_topology_put(fake);
		mc_topology_put(topo);
	}
	topo_files_put(files);
	return 0;
}
