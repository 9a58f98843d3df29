// SPDX-License-Identifier: MIT
/*
 * arena_map.c - the address space of an arena: backing memory and descriptors, and which node each
 * part of it prefers.
 *
 * Policies are set before the first page is faulted in; pages that are there already do not move.
 * Called by arena.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>
#include <manycore/mempolicy.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/mem.h"
#include "os/os.h"

enum { ALIGN_SMALL = 2 << 20, ALIGN_BIG = 1 << 30 };

static int map_failed(struct mc_error *error, uint64_t bytes, const char *what, int err)
{
	return mc_fail(
		error, err, "mapping %s: %" PRIu64 " MiB: %s; %s", what, bytes >> 20, strerror(err),
		err == EAGAIN   ? "raise RLIMIT_MEMLOCK (ulimit -l) or drop mlockall(MCL_FUTURE)"
		: err == ENODEV ? "files of its file system can't be mapped"
		: err == ENOMEM ? "raise RLIMIT_AS (ulimit -v) or vm.max_map_count, or ask for less"
				: "see mmap(2)");
}

/* Anonymous memory aligned to `align`: reserves more and gives the ends back. */
static int map_anon(struct mc_arena *a, struct mc_error *error)
{
	size_t align = a->size >= ALIGN_BIG ? ALIGN_BIG : ALIGN_SMALL, bytes = a->size + align,
	       before;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return map_failed(error, a->size, "memory", errno);
	before = (align - (uintptr_t)p % align) % align;
	if (before)
		munmap(p, before);
	if (align - before)
		munmap(p + before + a->size, align - before);
	a->base = a->map = p + before;
	a->map_bytes = a->size;
	mc_os_hugepages(a->base, a->size, a->attr.backing == MC_ARENA_THP);
	return 0;
}

/* A shared mapping of a file, aligned likewise. */
static int map_file(struct mc_arena *a, struct mc_error *error)
{
	int prot = a->attr.flags & MC_ARENA_READ ? PROT_READ : PROT_READ | PROT_WRITE;
	size_t page = (size_t)1 << a->shift, align = a->size >= ALIGN_BIG ? ALIGN_BIG : ALIGN_SMALL,
	       bytes, before;
	char *p, *at;

	if (align < page)
		align = page;
	bytes = a->size + align;
	p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return map_failed(error, a->size, "file", errno);
	before = (align - (uintptr_t)p % align) % align;
	at = mmap(p + before, a->size, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, a->fd,
		  a->attr.offset);
	if (at == MAP_FAILED) {
		int err = errno;

		munmap(p, bytes);
		return map_failed(error, a->size, "file", err);
	}
	if (before)
		munmap(p, before);
	if (align - before)
		munmap(at + a->size, align - before);
	a->base = a->map = at;
	a->map_bytes = a->size;
	return 0;
}

static int map_hugetlb(struct mc_arena *a, struct mc_error *error)
{
	size_t page = (size_t)1 << a->shift;
	void *p = NULL;
	int rc = mc_os_map_huge(a->size, page, &p);

	if (rc < 0)
		return rc == -EINVAL || rc == -ENODEV || rc == -ENOENT
			       ? mc_fail(error, ENODEV,
					 "mapping huge pages: %zu kB: this machine has none of "
					 "that size; see "
					 "/sys/kernel/mm/hugepages",
					 page >> 10)
			       : map_failed(error, a->size, "huge pages", -rc);
	a->base = a->map = p;
	a->map_bytes = a->size;
	return 0;
}

static int open_memfd(struct mc_arena *a, struct mc_error *error)
{
	int rc;

	a->fd = mc_os_memfd("manycore-arena", (size_t)1 << a->shift);
	if (a->fd < 0)
		return mc_fail(error, a->fd == -ENOENT || a->fd == -EINVAL ? ENODEV : -a->fd,
			       "memfd: %zu kB pages: %s; see /sys/kernel/mm/hugepages",
			       (size_t)1 << a->shift >> 10, strerror(-a->fd));
	rc = mc_os_grow(a->fd, a->size);
	if (rc < 0)
		return mc_fail(error, -rc, "memfd: %" PRIu64 " bytes: %s; %s", a->size,
			       strerror(-rc),
			       rc == -EFBIG ? "raise RLIMIT_FSIZE (ulimit -f)" : "ask for less");
	return 0;
}

static int map_descriptors(struct mc_arena *a, struct mc_error *error)
{
	size_t bytes, before;
	char *p;

	if (a->attr.flags & MC_ARENA_NO_DESCRIPTORS)
		return 0;
	if (a->pages > (SIZE_MAX / 2 - DESC_BLOCK) / a->stride)
		return mc_fail(error, EINVAL, "descriptors: %zu bytes a page: too many", a->stride);
	bytes = (a->pages * a->stride + mc_os_page_size() - 1) / mc_os_page_size() *
		mc_os_page_size();
	p = mmap(NULL, bytes + DESC_BLOCK, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return map_failed(error, bytes, "page descriptors", errno);
	before = (DESC_BLOCK - (uintptr_t)p % DESC_BLOCK) % DESC_BLOCK;
	if (before)
		munmap(p, before);
	if (DESC_BLOCK - before)
		munmap(p + before + bytes, DESC_BLOCK - before);
	a->desc = p + before;
	a->desc_bytes = bytes;
	mc_os_hugepages(a->desc, bytes, true);
	a->desc_block = calloc(bytes / DESC_BLOCK + 1, 1);
	a->granule_up = calloc(a->nr_granules, 1);
	return a->desc_block && a->granule_up
		       ? 0
		       : mc_fail(error, ENOMEM, "descriptors: out of memory");
}

int arena_map(struct mc_arena *a, struct mc_error *error)
{
	int rc = 0;

	if (a->attr.backing == MC_ARENA_MEMFD)
		rc = open_memfd(a, error);
	if (!rc && a->attr.backing == MC_ARENA_HUGETLB)
		rc = map_hugetlb(a, error);
	else if (!rc && a->fd >= 0)
		rc = map_file(a, error);
	else if (!rc)
		rc = map_anon(a, error);
	return rc ? rc : map_descriptors(a, error);
}

/* ---- placement ------------------------------------------------------------------------------- */

static int mode_of(enum mc_arena_policy policy)
{
	switch (policy) {
	case MC_ARENA_LOCAL:
		return MC_MPOL_LOCAL;
	case MC_ARENA_BIND:
		return MC_MPOL_BIND;
	case MC_ARENA_PREFERRED:
		return MC_MPOL_PREFERRED;
	case MC_ARENA_PREFERRED_MANY:
		return MC_MPOL_PREFERRED_MANY;
	case MC_ARENA_INTERLEAVE:
		return MC_MPOL_INTERLEAVE;
	case MC_ARENA_WEIGHTED_INTERLEAVE:
		return MC_MPOL_WEIGHTED_INTERLEAVE;
	default:
		return MC_MPOL_DEFAULT;
	}
}

/* The node of the real machine behind a part's: itself, or what numa=fake cut it from. */
static unsigned int real_node(const struct mc_arena *a, unsigned int node)
{
	const struct mc_node *n = a->topology ? mc_topology_node(a->topology, node) : NULL;

	return n && n->physical >= 0 ? (unsigned int)n->physical : node;
}

/* Allocated mask and mode for a part; NULL mask with mode DEFAULT: nothing to set. */
static int policy_of(const struct mc_arena *a, const struct mc_arena_part *p,
		     struct mc_cpumask **mask)
{
	unsigned int node;

	*mask = NULL;
	if (a->attr.policy == MC_ARENA_DEFAULT)
		return MC_MPOL_DEFAULT;
	if (a->attr.policy == MC_ARENA_LOCAL)
		return MC_MPOL_LOCAL;
	*mask = mc_cpumask_alloc_bits(a->topology ? mc_topology_nr_node_ids(a->topology) : 1);
	if (!*mask)
		return -ENOMEM;
	if (a->attr.policy == MC_ARENA_SPLIT) {
		node = real_node(a, p->node);
		if (node < (*mask)->nbits)
			mc_cpumask_set(*mask, node);
		return a->attr.flags & MC_ARENA_STRICT ? MC_MPOL_BIND : MC_MPOL_PREFERRED;
	}
	mc_for_each_cpu (node, &a->nodes->m) {
		unsigned int real = real_node(a, node);

		if (real < (*mask)->nbits)
			mc_cpumask_set(*mask, real);
	}
	return mode_of(a->attr.policy);
}

static bool nothing_to_place(const struct mc_arena *a)
{
	if (a->attr.flags & MC_ARENA_NO_PAGES && a->attr.backing == MC_ARENA_FILE)
		return true;
	/* One node: splitting it is no placement. */
	return a->attr.policy == MC_ARENA_SPLIT &&
	       (!a->topology || mc_topology_nr_node_ids(a->topology) <= 1);
}

/* The process's own policy, where it binds; frees and NULL where it doesn't. */
static struct mc_cpumask *own_bind(struct mc_cpumask *mask)
{
	int mode;

	if (mask && !mc_mempolicy_get(&mode, (struct mc_nodemask *)mask) && mode == MC_MPOL_BIND)
		return mask;
	mc_cpumask_free(mask);
	return NULL;
}

/*
 * The nodes that a part's memory may not leave: of the policy when it binds, else those that the
 * process is allowed (cpuset.mems). When they are full the kernel kills, however much others have.
 * Not set when they are all that the machine has: then its own number says it.
 */
static void find_bound(const struct mc_arena *a, struct mc_arena_part *p, int mode,
		       const struct mc_cpumask *mask)
{
	const struct mc_topology *t = a->topology;
	struct mc_cpumask *set;
	bool all = true;
	unsigned int n;

	if (!t || !a->charge)
		return;
	set = mc_cpumask_alloc_bits(mc_topology_nr_node_ids(t));
	if (set && mode == MC_MPOL_DEFAULT)
		set = own_bind(set);
	else if (set && mode == MC_MPOL_BIND && mask)
		mc_cpumask_copy(set, mask);
	if (!set)
		set = mc_cpumask_alloc_bits(mc_topology_nr_node_ids(t));
	if (!set)
		return;
	if (mc_cpumask_empty(set))
		mc_for_each_cpu (n, &mc_topology_nodes_allowed(t)->m)
			if (real_node(a, n) < set->nbits)
				mc_cpumask_set(set, real_node(a, n));
	mc_for_each_cpu (n, &mc_topology_nodes_has_memory(t)->m)
		all &= real_node(a, n) < set->nbits && mc_cpumask_test(set, real_node(a, n));
	if (all || mc_cpumask_empty(set))
		mc_cpumask_free(set);
	else
		p->bound = set;
}

int arena_place(struct mc_arena *a, struct mc_error *error)
{
	if (nothing_to_place(a))
		return 0;
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		struct mc_arena_part *p = &a->part[k];
		struct mc_cpumask *mask;
		int mode = policy_of(a, p, &mask), rc = mode < 0 ? mode : 0;

		if (mode > 0)
			rc = mc_mempolicy_set_range(arena_addr(a, p->first),
						    (p->end - p->first) << a->shift, mode,
						    (const struct mc_nodemask *)mask, 0);
		if (mode >= 0)
			find_bound(a, p, rc ? MC_MPOL_DEFAULT : mode, mask);
		mc_cpumask_free(mask);
		if (rc == -ENOMEM)
			return mc_fail(
				error, ENOMEM,
				"placing: node %u: out of memory or of mappings (vm.max_map_count)",
				p->node);
		if (rc < 0 && (a->attr.flags & MC_ARENA_STRICT))
			return mc_fail(
				error, -rc,
				"placing: node %u: %s; leave out MC_ARENA_STRICT to go without",
				p->node, strerror(-rc));
		p->placement_err = -rc;
	}
	return 0;
}

/* Page cache of a file on disk follows the policy of the thread that reads it in, not the
 * mapping's. Workers only: a caller's thread keeps its own. */
void arena_thread_policy(struct mc_arena *a, const struct mc_arena_part *p)
{
	struct mc_cpumask *mask;
	int mode;

	if (a->attr.backing != MC_ARENA_FILE || a->memory_file || nothing_to_place(a))
		return;
	mode = policy_of(a, p, &mask);
	if (mode > 0)
		mc_mempolicy_set(mode, (const struct mc_nodemask *)mask);
	mc_cpumask_free(mask);
}
