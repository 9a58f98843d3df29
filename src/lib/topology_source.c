// SPDX-License-Identifier: MIT
/* topology_source.c - mc_topology_live() and mc_topology_load(): which reader a source needs. */
#include <errno.h>
#include <string.h>
#include "os/os.h"
#include "topology_read.h"

int mc_topology_live(struct mc_topology **topo, struct mc_error *error)
{
	return topo_read_machine(NULL, "this machine", topo, error);
}

int mc_topology_load(const char *path, struct mc_topology **topo, struct mc_error *error)
{
	struct topo_files *files;
	int dir = mc_os_open_dir(MC_ROOT_LIVE, path), rc;

	if (dir >= 0) {
		mc_os_close(dir);
		rc = topo_files_from_dir(path, &files, error);
	} else if (dir == -ENOTDIR) {
		rc = topo_files_from_tar(path, &files, error);
	} else {
		return mc_fail(error, -dir, "reading machine: %.200s: %s", path, strerror(-dir));
	}
	if (rc < 0)
		return rc;
	rc = topo_read_machine(files, path, topo, error);
	topo_files_put(files);
	return rc;
}
