/* SPDX-License-Identifier: MIT */
/*
 * mempolicy.h - where memory comes from: policies of threads and of address ranges, and moving what
 * is already there.
 *
 * The kernel's own calls on node masks of any size, with -errno instead of errno and without the
 * calls' traps (a "maxnode" that is one more than the bits, masks that must be as wide as the
 * machine's node ids, unsigned long words). Modes, flags and their meanings are the kernel's
 * (Documentation/admin-guide/mm/numa_memory_policy.rst): numbers may be passed on as they are.
 * Inside `manycore run` the emulated machine answers, as a kernel of that machine would.
 *
 * On a kernel built without NUMA, or where a container's filter forbids them, every call here gives
 * -ENOSYS or -EPERM: mc_mempolicy_available() tells which and what to do about it.
 *
 * Threads: a thread's policy belongs to the calling thread and is inherited by the threads and
 * processes it starts and over exec. Range policies belong to the address space. All calls may run
 * at once on different threads; none is async-signal safe unless stated. Cost: one system call
 * each, a few hundred ns plus the pages moved.
 */
#ifndef MANYCORE_MEMPOLICY_H
#define MANYCORE_MEMPOLICY_H

#include <sys/types.h>
#include "manycore.h"
#include "cpumask.h"

MC_BEGIN_DECLS

/* Modes, with the kernel's numbers (linux/mempolicy.h). */
enum mc_mempolicy_mode {
	MC_MPOL_DEFAULT =
		0, /* no policy: the thread's for a range, local allocation for a thread */
	MC_MPOL_PREFERRED =
		1,        /* one node first, then the nearest with room; an empty mask is "local" */
	MC_MPOL_BIND = 2, /* only these nodes, nearest first */
	MC_MPOL_INTERLEAVE = 3,     /* pages in turn, by address */
	MC_MPOL_LOCAL = 4,          /* the node of the CPU that touches first */
	MC_MPOL_PREFERRED_MANY = 5, /* these nodes first, then the others (5.15) */
	MC_MPOL_WEIGHTED_INTERLEAVE =
		6, /* interleave with /sys/kernel/mm/mempolicy/weighted_interleave (6.9) */
};

/* Flags that are or-ed to the mode. */
enum {
	MC_MPOL_F_STATIC_NODES =
		1 << 15, /* the mask means these very nodes, whatever the cpuset becomes */
	MC_MPOL_F_RELATIVE_NODES =
		1 << 14, /* the mask counts within the allowed nodes, folded when it is wider */
	MC_MPOL_F_NUMA_BALANCING = 1
				   << 13, /* lets automatic balancing move pages within the mask */
};

/* What happens to pages that are there already. */
enum {
	MC_MPOL_MF_STRICT = 1 << 0,   /* -EIO when a page is misplaced or could not be moved */
	MC_MPOL_MF_MOVE = 1 << 1,     /* move pages that only this process maps */
	MC_MPOL_MF_MOVE_ALL = 1 << 2, /* move shared ones too: needs CAP_SYS_NICE */
};

/* 0 when memory policies work here. Else -ENOSYS (kernel without NUMA), -EPERM (forbidden, as by
 * container runtimes' default filters) or what else the kernel says, with *error (may be NULL)
 * naming the remedy. */
MC_API int mc_mempolicy_available(struct mc_error *error);

/* A mode's name in the kernel's words ("interleave", "prefer (many)"), flags ignored; NULL for an
 * unknown one. Constant string. Async-signal safe. */
MC_API const char *mc_mempolicy_mode_name(int mode);

/* ---- the calling thread
 * ------------------------------------------------------------------------------------------- */

/* Sets the calling thread's policy for memory it touches from now on. `nodes` may be NULL for none.
 * -EINVAL: unknown mode, contradicting flags, no usable node; -EOVERFLOW never: bits past the
 * highest set one cost nothing. */
MC_API int mc_mempolicy_set(int mode, const struct mc_nodemask *nodes);

/* The calling thread's policy. *mode (may be NULL) gets mode | flags; *nodes (may be NULL) the
 * nodes: the ones given with STATIC or RELATIVE, else the effective ones. -EOVERFLOW when a node
 * does not fit into *nodes, which then keeps its value. */
MC_API int mc_mempolicy_get(int *mode, struct mc_nodemask *nodes);

/* The nodes the calling thread may allocate from (its cpuset). -EOVERFLOW as above. */
MC_API int mc_mempolicy_allowed(struct mc_nodemask *nodes);

/* The node that the next page comes from under a thread policy of (weighted) interleave; -EINVAL
 * under any other. */
MC_API int mc_mempolicy_next_node(void);

/* ---- a range of addresses
 * ----------------------------------------------------------------------------------------- */

/* Sets the policy of [addr, addr + len); addr must be page-aligned, len is rounded up. `flags` is 0
 * or MC_MPOL_MF_*. -EFAULT: a hole in the range (nothing is applied then); -EIO: STRICT and a page
 * in the wrong place; -EPERM: MOVE_ALL without CAP_SYS_NICE; -EINVAL; -ENOMEM. Mappings are split
 * where policies change. */
MC_API int mc_mempolicy_set_range(void *addr, size_t len, int mode, const struct mc_nodemask *nodes,
				  unsigned int flags);

/* The policy of the mapping at addr (any byte of it): MC_MPOL_DEFAULT when it has none of its own.
 * -EFAULT: unmapped. */
MC_API int mc_mempolicy_get_range(const void *addr, int *mode, struct mc_nodemask *nodes);

/* Sets the node from which a BIND or PREFERRED_MANY policy of the range starts its search (5.17).
 * -ENOENT: no policy there; -EOPNOTSUPP: another mode; -EINVAL: node not online; -ENOSYS. */
MC_API int mc_mempolicy_set_home_node(void *addr, size_t len, unsigned int node);

/* ---- pages ----------------------------------------------------------------------------------- */

/* The node of the page at addr, without faulting it in: -ENOENT when no page is there yet, -EFAULT
 * when it is unmapped or the shared page of zeroes. */
MC_API int mc_page_node(const void *addr);

/* The same for `count` pages of process `pid` (0: this one) at once: status[i] gets a node or
 * -errno. 0, or -errno for the whole call: -ESRCH, -EPERM, -EFAULT. */
MC_API int mc_page_nodes(pid_t pid, size_t count, void *const *pages, int *status);

/* Moves pages[i] to nodes[i]; flags: MC_MPOL_MF_MOVE or _MOVE_ALL. status[i] gets the page's node
 * or -errno (-ENOENT not there, -EACCES shared, -EBUSY, -EFAULT). Returns 0, the number of pages
 * that could not be moved, or -errno: -ENODEV and -EACCES name a bad node, pages before it have
 * been moved and their status written. */
MC_API long mc_move_pages(pid_t pid, size_t count, void *const *pages, const int *nodes,
			  int *status, unsigned int flags);

/* Moves all present pages of [addr, addr + len) of this process to `node`, in batches of bounded
 * memory. Returns the number of present pages that are not there afterwards (0 is full success), or
 * -errno. */
MC_API long mc_move_range(void *addr, size_t len, unsigned int node);

/* Moves what process `pid` (0: this one) has on the nodes `from` to the nodes `to`, keeping their
 * order. Returns 0, the number of pages that could not be moved, or -errno: -ESRCH, -EPERM, -EINVAL
 * (no allowed node in `to`). */
MC_API long mc_migrate_pages(pid_t pid, const struct mc_nodemask *from,
			     const struct mc_nodemask *to);

MC_END_DECLS
#endif /* MANYCORE_MEMPOLICY_H */
