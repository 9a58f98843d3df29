/* SPDX-License-Identifier: MIT */
/*
 * cpumask.h - sets of CPUs and of memory nodes, sized at run time.
 *
 * FIRST DRAFT OF THE INTERFACE: names and meanings here are what the other modules may rely on from the start.
 */
#ifndef MANYCORE_CPUMASK_H
#define MANYCORE_CPUMASK_H

#include <stdbool.h>
#include <sched.h>
#include <sys/types.h>
#include "base.h"

MC_BEGIN_DECLS

/*
 * struct mc_cpumask - nbits bits in 64-bit words, least significant first. Bits past nbits in the last word are always 0.
 * The words lie right behind the struct (mc_cpumask_alloc(), mc_cpumask_init() in a caller's memory) or in memory that
 * the mask was wrapped around.
 */
struct mc_cpumask {
	unsigned int nbits;
	unsigned int flags;
	uint64_t *word;
};
/* The same engine over node ids; a type of its own so that the two cannot be mixed up. */
struct mc_nodemask {
	struct mc_cpumask m;
};

/* Highest possible CPU + 1 of this machine, fixed for the life of the process. */
MC_API unsigned int mc_nr_cpu_ids(void);

/* A zeroed mask of nbits on the heap; NULL + ENOMEM. mc_cpumask_free(NULL) is allowed. */
MC_API struct mc_cpumask *mc_cpumask_alloc_bits(unsigned int nbits);
MC_API struct mc_cpumask *mc_cpumask_alloc(void); /* mc_nr_cpu_ids() bits */
MC_API struct mc_cpumask *mc_cpumask_dup(const struct mc_cpumask *mask);
MC_API void mc_cpumask_free(struct mc_cpumask *mask);
/* Bytes for a mask of nbits embedded in a caller's memory, and its initialisation (zeroed). */
MC_API size_t mc_cpumask_size_bits(unsigned int nbits);
MC_API size_t mc_cpumask_size(void);
MC_API struct mc_cpumask *mc_cpumask_init(void *memory, unsigned int nbits);

MC_API void mc_cpumask_set(struct mc_cpumask *mask, unsigned int cpu);
MC_API void mc_cpumask_clear(struct mc_cpumask *mask, unsigned int cpu);
MC_API bool mc_cpumask_test(const struct mc_cpumask *mask, unsigned int cpu);
MC_API void mc_cpumask_zero(struct mc_cpumask *mask);
MC_API void mc_cpumask_setall(struct mc_cpumask *mask);
MC_API void mc_cpumask_set_range(struct mc_cpumask *mask, unsigned int first, unsigned int count);
MC_API void mc_cpumask_copy(struct mc_cpumask *dst, const struct mc_cpumask *src);
MC_API bool mc_cpumask_and(struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API void mc_cpumask_or(struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API void mc_cpumask_xor(struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API bool mc_cpumask_andnot(struct mc_cpumask *dst, const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API bool mc_cpumask_equal(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API bool mc_cpumask_subset(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API bool mc_cpumask_intersects(const struct mc_cpumask *a, const struct mc_cpumask *b);
MC_API bool mc_cpumask_empty(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_weight(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_first(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_last(const struct mc_cpumask *mask);
MC_API unsigned int mc_cpumask_next(int cpu, const struct mc_cpumask *mask); /* first one > cpu; cpu may be -1 */
MC_API unsigned int mc_cpumask_nth(unsigned int n, const struct mc_cpumask *mask);

/* The kernel's cpulist grammar and hex mask text; *where (may be NULL) gets the offset of the fault. -EINVAL, -ERANGE,
 * -EOVERFLOW; the mask keeps its value on error. Printing works as snprintf: returns the whole length, cuts at size. */
MC_API int mc_cpulist_parse(struct mc_cpumask *mask, const char *text, size_t *where);
MC_API int mc_cpumask_parse(struct mc_cpumask *mask, const char *text, size_t *where);
MC_API size_t mc_cpulist_snprint(char *buf, size_t size, const struct mc_cpumask *mask);
MC_API size_t mc_cpumask_snprint(char *buf, size_t size, const struct mc_cpumask *mask);

#define mc_for_each_cpu(cpu, mask) \
	for ((cpu) = mc_cpumask_first(mask); (cpu) < (mask)->nbits; (cpu) = mc_cpumask_next((int)(cpu), (mask)))

MC_END_DECLS
#endif /* MANYCORE_CPUMASK_H */
