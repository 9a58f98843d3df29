// SPDX-License-Identifier: MIT
/*
 * mempolicy.c - mempolicy.h over os.h: memory policies of threads and ranges, moving pages.
 *
 * Keeps no state. Called by programs, by arena.c and by the policy options of the command.
 */
#include <errno.h>
#include "internal.h"
#include "os/os.h"

enum { F_NODE = 1, F_ADDR = 2, F_MEMS_ALLOWED = 4 };

/* Pages a call of mc_move_range(): bounds its stack to about 20 KiB. */
enum { MOVE_BATCH = 1024 };

static const uint64_t *words(const struct mc_nodemask *nodes)
{
	return nodes ? nodes->m.word : NULL;
}

static unsigned int bits(const struct mc_nodemask *nodes)
{
	return nodes ? nodes->m.nbits : 0;
}

int mc_mempolicy_available(struct mc_error *error)
{
	int mode, rc = mc_os_get_mempolicy(&mode, NULL, 0, NULL, 0);

	if (!rc)
		return 0;
	if (rc == -ENOSYS)
		return mc_fail(error, ENOSYS,
			       "memory policy: get_mempolicy: this kernel is built without NUMA; "
			       "memory comes from its only node, or use `manycore run --nodes N`");
	if (rc == -EPERM)
		return mc_fail(
			error, EPERM,
			"memory policy: get_mempolicy: forbidden here, as by the default seccomp "
			"filter of container runtimes; start the container with --cap-add "
			"SYS_NICE");
	return mc_fail(error, -rc,
		       "memory policy: get_mempolicy: unexpected error %d; is a seccomp filter in "
		       "the way?",
		       -rc);
}

const char *mc_mempolicy_mode_name(int mode)
{
	static const char *const name[] = {"default",
					   "prefer",
					   "bind",
					   "interleave",
					   "local",
					   "prefer (many)",
					   "weighted interleave"};
	const int flags =
		MC_MPOL_F_STATIC_NODES | MC_MPOL_F_RELATIVE_NODES | MC_MPOL_F_NUMA_BALANCING;

	mode &= ~flags;
	return mode >= 0 && (size_t)mode < MC_ARRAY_SIZE(name) ? name[mode] : NULL;
}

int mc_mempolicy_set(int mode, const struct mc_nodemask *nodes)
{
	return mc_os_set_mempolicy(mode, words(nodes), bits(nodes));
}

/* On failure out-parameters keep their values: the mode is written before the mask is found too
 * small. */
static int get(int *mode, struct mc_nodemask *nodes, const void *addr, unsigned long flags)
{
	int now = 0,
	    rc = mc_os_get_mempolicy(&now, nodes ? nodes->m.word : NULL, bits(nodes), addr, flags);

	if (rc < 0)
		return rc;
	if (mode)
		*mode = now;
	return 0;
}

int mc_mempolicy_get(int *mode, struct mc_nodemask *nodes)
{
	return get(mode, nodes, NULL, 0);
}

int mc_mempolicy_allowed(struct mc_nodemask *nodes)
{
	if (!nodes)
		return -EINVAL;
	return get(NULL, nodes, NULL, F_MEMS_ALLOWED);
}

int mc_mempolicy_next_node(void)
{
	int node = -1, rc = get(&node, NULL, NULL, F_NODE);

	return rc < 0 ? rc : node;
}

int mc_mempolicy_set_range(void *addr, size_t len, int mode, const struct mc_nodemask *nodes,
			   unsigned int flags)
{
	return mc_os_mbind(addr, len, mode, words(nodes), bits(nodes), flags);
}

int mc_mempolicy_get_range(const void *addr, int *mode, struct mc_nodemask *nodes)
{
	return get(mode, nodes, addr, F_ADDR);
}

int mc_mempolicy_set_home_node(void *addr, size_t len, unsigned int node)
{
	return mc_os_set_home_node(addr, len, node);
}

int mc_page_node(const void *addr)
{
	void *page = (void *)(uintptr_t)addr;
	int status = -ENOENT;
	long rc = mc_os_move_pages(0, 1, &page, NULL, &status, 0);

	return rc < 0 ? (int)rc : status;
}

int mc_page_nodes(pid_t pid, size_t count, void *const *pages, int *status)
{
	long rc = mc_os_move_pages(pid, count, pages, NULL, status, 0);

	return rc < 0 ? (int)rc : 0;
}

long mc_move_pages(pid_t pid, size_t count, void *const *pages, const int *nodes, int *status,
		   unsigned int flags)
{
	if (!nodes || !status)
		return -EFAULT;
	return mc_os_move_pages(pid, count, pages, nodes, status, flags);
}

/* One batch: the number of present pages that are elsewhere afterwards, or -errno. */
static long move_batch(char *addr, size_t count, size_t page, unsigned int node)
{
	void *pages[MOVE_BATCH];
	int nodes[MOVE_BATCH], status[MOVE_BATCH];
	long rc, left = 0;

	for (size_t i = 0; i < count; i++) {
		pages[i] = addr + i * page;
		nodes[i] = (int)node;
		status[i] = -ENOENT;
	}
	rc = mc_os_move_pages(0, count, pages, nodes, status, MC_MPOL_MF_MOVE);
	if (rc < 0)
		return rc;
	/* A positive return leaves some statuses unwritten: ask where the pages are. */
	if (rc > 0) {
		rc = mc_os_move_pages(0, count, pages, NULL, status, 0);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < count; i++)
		if (status[i] != (int)node && status[i] != -ENOENT && status[i] != -EFAULT)
			left++;
	return left;
}

long mc_move_range(void *addr, size_t len, unsigned int node)
{
	size_t page = mc_os_page_size(), done = 0, count;
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	long left = 0;

	if ((uintptr_t)addr + len < (uintptr_t)addr || node > INT32_MAX)
		return -EINVAL;
	count = ((uintptr_t)addr + len - start + page - 1) / page;
	if (!len)
		count = 0;
	while (done < count) {
		size_t n = count - done < MOVE_BATCH ? count - done : MOVE_BATCH;
		long rc = move_batch((char *)start + done * page, n, page, node);

		if (rc < 0)
			return rc;
		left += rc;
		done += n;
	}
	return left;
}

long mc_migrate_pages(pid_t pid, const struct mc_nodemask *from, const struct mc_nodemask *to)
{
	if (!from || !to)
		return -EINVAL;
	return mc_os_migrate_pages(pid, from->m.word, from->m.nbits, to->m.word, to->m.nbits);
}
