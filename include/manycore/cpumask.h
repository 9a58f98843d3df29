/* SPDX-License-Identifier: MIT */
/*
 * cpumask.h - sets of CPUs, sized at run time: 1 to 2^31 bits, one binary for every machine. Node
 * masks: nodemask.h.
 *
 * Names, meanings and returns are the kernel's. "None" is a number >= the mask's size (of the first
 * mask where there are two): test with `>=`. CPU numbers >= the mask's size are never in it:
 * setting one does nothing, testing gives false.
 *
 * Sizes. Masks of different size may be mixed anywhere: the shorter one counts as extended with
 * zeros, a result is cut to its own size. Any argument may be the same mask as the result. Threads.
 * Readers may share a mask; writers need it for themselves, apart from the _atomic calls.
 * Everything that does not allocate is async-signal safe. Nothing here takes a lock. Cost. Up to 64
 * bits everything is inline, a few instructions; wider masks take at most one call and vector code
 * chosen at the first such call (AVX-512, AVX2, NEON or plain C). No call costs more than one pass
 * over the words.
 */
#ifndef MANYCORE_CPUMASK_H
#define MANYCORE_CPUMASK_H

#include <stdbool.h>
#include <sched.h>
#include <sys/types.h>
#include "base.h"

MC_BEGIN_DECLS

/*
 * struct mc_cpumask - the head of a mask; the words come right behind it, least significant first.
 * Bits past nbits are 0. Never copied by assignment: mc_cpumask_copy(). Reading word[0 .. (nbits -
 * 1) / 64] is allowed; the rest is private.
 */
struct mc_cpumask {
	unsigned int nbits;
	unsigned int flags;
	uint64_t tail;  /* the valid bits of the last word */
	uint64_t *word; /* = bits, but for mc_cpumask_of() and mc_cpumask_wrap() */
	uint64_t bits[1];
};

/* Highest possible CPU + 1 of this machine, fixed for the life of the process; the first call reads
 * /sys/devices/system/cpu/possible (without it: what sched_getaffinity() tells). Safe in threads.
 */
MC_API unsigned int mc_nr_cpu_ids(void);

/* ---- memory ---------------------------------------------------------------------------------- */

/* A zeroed mask on the heap, of mc_nr_cpu_ids() or of nbits (at most 2^31; 0: nothing fits). NULL +
 * ENOMEM or EINVAL. The caller frees it with mc_cpumask_free(), which allows NULL. Masks above 512
 * bits have their words cache-line aligned. */
MC_API struct mc_cpumask *mc_cpumask_alloc(void);
MC_API struct mc_cpumask *mc_cpumask_alloc_bits(unsigned int nbits);
MC_API struct mc_cpumask *mc_cpumask_dup(const struct mc_cpumask *mask);
MC_API void mc_cpumask_free(struct mc_cpumask *mask);

/* Bytes of a mask embedded in a caller's memory (aligned to 8), and its initialisation: zeroed.
 * Nothing to free. */
MC_API size_t mc_cpumask_size(void);
MC_API size_t mc_cpumask_size_bits(unsigned int nbits);
MC_API struct mc_cpumask *mc_cpumask_init(void *memory, unsigned int nbits);

/*
 * MC_CPUMASK_VAR(name); - declares `struct mc_cpumask *name`, a zeroed mask of mc_nr_cpu_ids() bits
 * freed at the end of the scope. At most 1024 bits lie on the stack (152 bytes, however many CPUs
 * there are), more on the heap: name is then NULL when there is no memory (errno = ENOMEM), so
 * check it: `if (!name) return -ENOMEM;`. _BITS takes the size.
 */
#define MC_CPUMASK_VAR(name) MC_CPUMASK_VAR_BITS(name, mc_nr_cpu_ids())
#define MC_CPUMASK_VAR_BITS(name, nbits)                                               \
	union mc_cpumask_stack_ name##_stack_;                                         \
	struct mc_cpumask *const name __attribute__((cleanup(mc_cpumask_var_free_))) = \
		mc_cpumask_var_init_(&name##_stack_, nbits)

/* The mask that holds just `cpu`, of mc_nr_cpu_ids() bits, constant and valid for ever. No
 * allocation and no failure up to 8192 CPUs; on a larger machine the first call maps a table (40
 * bytes a CPU, of which only what is asked for is touched) and NULL + ENOMEM is possible. A number
 * out of range gives the empty mask. */
MC_API const struct mc_cpumask *mc_cpumask_of(unsigned int cpu);

/* A read-only mask over nbits of words that stay the caller's (a cpu_set_t, a kernel's buffer of
 * 64-bit words): *view is filled and returned; the words must neither change nor go while it is in
 * use. Bits past nbits must be 0: -> wrap the whole array when they may not be. */
MC_API const struct mc_cpumask *mc_cpumask_wrap(struct mc_cpumask *view, const void *words,
						unsigned int nbits);

/* Copy from and to arrays as cpu_set_t and the system calls have them, `bytes` a multiple of 8.
 * -EOVERFLOW when a CPU in the source does not fit the target, which then keeps its value; -EINVAL
 * for such a size. */
MC_API int mc_cpumask_from_cpuset(struct mc_cpumask *mask, const void *set, size_t bytes);
MC_API int mc_cpumask_to_cpuset(void *set, size_t bytes, const struct mc_cpumask *mask);

#ifdef CPU_SETSIZE
/* A mask whose words are a cpu_set_t, for code that needs both: `union mc_cpumask_cpuset u;
 * mc_cpumask_init(&u, CPU_SETSIZE);` then change &u.mask and pass &u.as.set, or let a call fill the
 * set. */
union mc_cpumask_cpuset {
	struct mc_cpumask mask;
	struct {
		uint64_t head_[3];
		cpu_set_t set;
	} as;
};
#endif

/* ---- one CPU --------------------------------------------------------------------------------- */

MC_API void mc_cpumask_set(struct mc_cpumask *mask, unsigned int cpu);
MC_API void mc_cpumask_clear(struct mc_cpumask *mask, unsigned int cpu);
MC_API void mc_cpumask_assign(struct mc_cpumask *mask, unsigned int cpu, bool value);
MC_API bool mc_cpumask_test(const struct mc_cpumask *mask, unsigned int cpu);
/* Both return whether it was set before. */
MC_API bool mc_cpumask_test_and_set(struct mc_cpumask *mask, unsigned int cpu);
MC_API bool mc_cpumask_test_and_clear(struct mc_cpumask *mask, unsigned int cpu);
/* The same for masks that several threads change at once. Set, clear and test are relaxed;
 * test_and_* are full barriers, as in the kernel. A reader of the whole mask sees each word as of
 * some moment. */
MC_API void mc_cpumask_set_atomic(struct mc_cpumask *mask, unsigned int cpu);
MC_API void mc_cpumask_clear_atomic(struct mc_cpumask *mask, unsigned int cpu);
MC_API bool mc_cpumask_test_atomic(const struct mc_cpumask *mask, unsigned int cpu);
MC_API bool mc_cpumask_test_and_set_atomic(struct mc_cpumask *mask, unsigned int cpu);
MC_API bool mc_cpumask_test_and_clear_atomic(struct mc_cpumask *mask, unsigned int cpu);

/* ---- whole masks ----------------------------------------------------------------------------- */

MC_API void mc_cpumask_zero(struct mc_cpumask *mask);
MC_API void mc_cpumask_setall(struct mc_cpumask *mask);
/* CPUs first .. first + count - 1, as far as the mask has them. */
MC_API void mc_cpumask_set_range(struct mc_cpumask *mask, unsigned int first, unsigned int count);
MC_API void mc_cpumask_clear_range(struct mc_cpumask *mask, unsigned int first, unsigned int count);
MC_API void mc_cpumask_copy(struct mc_cpumask *dst, const struct mc_cpumask *src);
/* and, andnot: is the result not empty? */
MC_API bool mc_cpumask_and(struct mc_cpumask *dst, const struct mc_cpumask *a,
			   const struct mc_cpumask *b);
MC_API void mc_cpumask_or(struct mc_cpumask *dst, const struct mc_cpumask *a,
			  const struct mc_cpumask *b);
MC_API void mc_cpumask_xor(struct mc_cpumask *dst, const struct mc_cpumask *a,
			   const struct mc_cpumask *b);
MC_API bool mc_cpumask_andnot(struct mc_cpumask *dst, const struct mc_cpumask *a,
			      const struct mc_cpumask *b);
MC_API void mc_cpumask_not(struct mc_cpumask *dst, const struct mc_cpumask *src);

MC_API bool mc_cpumask_equal(const struct mc_cpumask *a, const struct mc_cpumask *b);
/* Is every CPU of a in b? The empty mask is a subset of all. */
MC_API bool mc_cpumask_subset(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API bool mc_cpumask_intersects(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API bool mc_cpumask_empty(const struct mc_cpumask *mask);
MC_API bool mc_cpumask_full(const struct mc_cpumask *mask);
/* How many CPUs: in the mask, in both, in a but not in b. */
MC_API unsigned int mc_cpumask_weight(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_weight_and(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API unsigned int mc_cpumask_weight_andnot(const struct mc_cpumask *a,
					     const struct mc_cpumask *b);

/* ---- searches: >= nbits (of a) when none
 * ---------------------------------------------------------------------------- */

MC_API unsigned int mc_cpumask_first(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_first_zero(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_first_and(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API unsigned int mc_cpumask_first_andnot(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API unsigned int mc_cpumask_last(const struct mc_cpumask *mask);
/* The first one after cpu; cpu may be -1. */
MC_API unsigned int mc_cpumask_next(int cpu, const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_next_zero(int cpu, const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_next_and(int cpu, const struct mc_cpumask *a,
					const struct mc_cpumask *b);
MC_API unsigned int mc_cpumask_next_andnot(int cpu, const struct mc_cpumask *a,
					   const struct mc_cpumask *b);
/* The first one after cpu, else the first one of all (which may be cpu itself). */
MC_API unsigned int mc_cpumask_next_wrap(int cpu, const struct mc_cpumask *mask);
/* The n-th CPU of the mask, from 0. */
MC_API unsigned int mc_cpumask_nth(unsigned int n, const struct mc_cpumask *mask);
/* Any CPU but this one. */
MC_API unsigned int mc_cpumask_any_but(const struct mc_cpumask *mask, unsigned int cpu);
/* Deal out the mask's CPUs in turn, from where this thread was (one place for both calls, starting
 * after CPU 0). */
MC_API unsigned int mc_cpumask_any_distribute(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_any_and_distribute(const struct mc_cpumask *a,
						  const struct mc_cpumask *b);

struct mc_topology;
/* The i-th online CPU (i modulo their number), nearest to `node` first: its own in ascending order,
 * then those of the nodes at the next distance ...; node -1: no preference. O(CPUs / 64 * nodes).
 * >= nr_cpu_ids only for an unknown node. */
MC_API unsigned int mc_cpumask_local_spread(const struct mc_topology *topo, unsigned int i,
					    int node);
/* One hop further out: the least distance from node that is more than *distance goes there, and hop
 * becomes the online CPUs at most that far. 0, or -ENOENT past the last (and for an unknown node).
 * Start with *distance = 0. */
MC_API int mc_numa_hop_next(const struct mc_topology *topo, unsigned int node,
			    unsigned int *distance, struct mc_cpumask *hop);

/* ---- text ------------------------------------------------------------------------------------ */

/*
 * The kernel's list text: regions split by commas or blanks; a region is a number, `a-b`,
 * `a-b:used/group` (of each group of CPUs the first `used`), or `all` instead of a-b; `N` is the
 * last CPU. Decimal only; the text ends at NUL or at a newline after a region; no region = the
 * empty mask. -EINVAL: malformed, a > b, group 0 or less than used; -ERANGE: no such CPU in this
 * mask; -EOVERFLOW: a number of more than 32 bits. On error the mask keeps its value and *where
 * (may be NULL) gets the offset of the fault.
 */
MC_API int mc_cpulist_parse(struct mc_cpumask *mask, const char *text, size_t *where);
/* Hex text in 32-bit chunks, most significant first, split by commas or blanks; leading zeros may
 * be left out; no `0x`. -EINVAL: another character; -EOVERFLOW: a chunk of more than 8 digits, too
 * many chunks or a CPU the mask lacks. */
MC_API int mc_cpumask_parse(struct mc_cpumask *mask, const char *text, size_t *where);
/* As snprintf(): return the length of the whole text, write what fits and a NUL (nothing when size
 * is 0). Lists are `0-3,8`, never strides; hex has ceil(nbits / 32) chunks of 8 digits, the first
 * one as many as it needs. */
MC_API size_t mc_cpulist_snprint(char *buf, size_t size, const struct mc_cpumask *mask);
MC_API size_t mc_cpumask_snprint(char *buf, size_t size, const struct mc_cpumask *mask);

/* ---- affinity -------------------------------------------------------------------------------- */

/* A thread's affinity; tid 0 is the caller. Right for any number of CPUs, whatever the mask's size:
 * get gives -EOVERFLOW when the thread may use a CPU that the mask has no bit for (mask untouched);
 * -ESRCH, -EPERM; set gives -EINVAL when no CPU of the mask is there. Offline CPUs of the mask are
 * accepted, and not reported by get. get may give -ENOMEM above 8192 CPUs. */
MC_API int mc_cpumask_getaffinity(struct mc_cpumask *mask, pid_t tid);
MC_API int mc_cpumask_setaffinity(pid_t tid, const struct mc_cpumask *mask);

/* ---- loops ----------------------------------------------------------------------------------- */

/*
 * Loops run over the CPUs in ascending order; afterwards cpu >= the size. cpu is any integer
 * variable; break and continue work. The body may change the masks: as in the kernel's loops, what
 * it adds or takes away ahead of cpu counts at once. _and: in both; _andnot: in a, not in b; _or:
 * in either; _from: cpu's own value and after; _wrap: from start to the end, then from 0 to start
 * - 1.
 */
#define mc_for_each_cpu(cpu, mask) mc_iter_loop_(cpu, mc_iter_begin_(mask), mc_iter_next_)
#define mc_for_each_cpu_from(cpu, mask) \
	mc_iter_loop_(cpu, mc_iter_from_(mask, (unsigned int)(cpu)), mc_iter_next_)
#define mc_for_each_cpu_wrap(cpu, mask, start) \
	mc_iter_loop_(cpu, mc_iter_wrap_(mask, start), mc_iter_next_wrap_)
#define mc_for_each_cpu_and(cpu, a, b) \
	mc_iter_loop_(cpu, mc_iter_begin_and_(a, b), mc_iter_next_and_)
#define mc_for_each_cpu_andnot(cpu, a, b) \
	mc_iter_loop_(cpu, mc_iter_begin_andnot_(a, b), mc_iter_next_andnot_)
#define mc_for_each_cpu_or(cpu, a, b) mc_iter_loop_(cpu, mc_iter_begin_or_(a, b), mc_iter_next_or_)

/* CPUs of a machine, and of one of its nodes (online CPUs whose own node it is; none for an unknown
 * node). */
#define mc_for_each_possible_cpu(cpu, topo) mc_for_each_cpu (cpu, mc_topology_possible(topo))
#define mc_for_each_present_cpu(cpu, topo) mc_for_each_cpu (cpu, mc_topology_present(topo))
#define mc_for_each_online_cpu(cpu, topo) mc_for_each_cpu (cpu, mc_topology_online(topo))
#define mc_for_each_allowed_cpu(cpu, topo) mc_for_each_cpu (cpu, mc_topology_allowed(topo))
#define mc_for_each_cpu_of_node(cpu, topo, node) \
	mc_for_each_cpu (cpu, mc_cpumask_of_node(topo, node))
MC_API const struct mc_cpumask *mc_cpumask_of_node(const struct mc_topology *topo,
						   unsigned int node);
/* The hops from a node outwards, `mask` (the caller's) becoming each in turn; each holds the one
 * before. */
#define mc_for_each_numa_hop_mask(mask, topo, node) \
	mc_hop_loop_(mask, topo, node, MC_CAT_(mc_hop_, __COUNTER__))

MC_END_DECLS

#include "inline/cpumask.h"
#include "nodemask.h"

#endif /* MANYCORE_CPUMASK_H */
