/* SPDX-License-Identifier: MIT */
/*
 * nodemask.h - sets of memory nodes: cpumask.h's engine over node ids, a type of its own so that
 * the two can't be mixed up.
 *
 * mc_nodemask_X() is mc_cpumask_X() on the mask inside, which functions for either kind may be
 * given as &nodes->m. What cpumask.h says of sizes, threads, signals, cost and errors holds here.
 */
#ifndef MANYCORE_NODEMASK_H
#define MANYCORE_NODEMASK_H

#include "cpumask.h"

MC_BEGIN_DECLS

struct mc_nodemask {
	struct mc_cpumask m;
};

/* Highest possible node + 1 of this machine, fixed for the life of the process; 1 where the kernel
 * has no nodes. */
MC_API unsigned int mc_nr_node_ids(void);

/* Of mc_nr_node_ids() or of nbits, zeroed, freed by mc_nodemask_free(); NULL + errno. */
MC_API struct mc_nodemask *mc_nodemask_alloc(void);
MC_API struct mc_nodemask *mc_nodemask_alloc_bits(unsigned int nbits);
MC_API struct mc_nodemask *mc_nodemask_dup(const struct mc_nodemask *mask);
MC_API void mc_nodemask_free(struct mc_nodemask *mask);
MC_API size_t mc_nodemask_size(void);
MC_API size_t mc_nodemask_size_bits(unsigned int nbits);
MC_API struct mc_nodemask *mc_nodemask_init(void *memory, unsigned int nbits);
MC_API const struct mc_nodemask *mc_nodemask_wrap(struct mc_nodemask *view, const void *words,
						  unsigned int nbits);
/* Like MC_CPUMASK_VAR: `struct mc_nodemask *name`, NULL when there is no memory, freed at the end
 * of the scope. */
#define MC_NODEMASK_VAR(name) MC_NODEMASK_VAR_BITS(name, mc_nr_node_ids())
#define MC_NODEMASK_VAR_BITS(name, nbits)                                                \
	union mc_cpumask_stack_ name##_stack_;                                           \
	struct mc_nodemask *const name __attribute__((cleanup(mc_nodemask_var_free_))) = \
		(struct mc_nodemask *)mc_cpumask_var_init_(&name##_stack_, nbits)

/* Each line: what it returns, name, mc_cpumask_ function, arguments, and what that function gets.
 */
#define MC_NODE_(type, name, function, args, call) \
	MC_API type name args;                     \
	MC_INLINE_ type name args                  \
	{                                          \
		return function call;              \
	}
#define MC_NODE_VOID_(name, function, args, call) \
	MC_API void name args;                    \
	MC_INLINE_ void name args                 \
	{                                         \
		function call;                    \
	}
#define MC_N_ struct mc_nodemask *mask
#define MC_CN_ const struct mc_nodemask *mask
#define MC_CNS_ const struct mc_nodemask *src
#define MC_N2_ const struct mc_nodemask *a, const struct mc_nodemask *b
#define MC_N3_ struct mc_nodemask *dst, MC_N2_

MC_NODE_VOID_(mc_nodemask_set, mc_cpumask_set, (MC_N_, unsigned int node), (&mask->m, node))
MC_NODE_VOID_(mc_nodemask_clear, mc_cpumask_clear, (MC_N_, unsigned int node), (&mask->m, node))
MC_NODE_VOID_(mc_nodemask_assign, mc_cpumask_assign, (MC_N_, unsigned int node, bool value),
	      (&mask->m, node, value))
MC_NODE_(bool, mc_nodemask_test, mc_cpumask_test, (MC_CN_, unsigned int node), (&mask->m, node))
MC_NODE_(bool, mc_nodemask_test_and_set, mc_cpumask_test_and_set, (MC_N_, unsigned int node),
	 (&mask->m, node))
MC_NODE_(bool, mc_nodemask_test_and_clear, mc_cpumask_test_and_clear, (MC_N_, unsigned int node),
	 (&mask->m, node))
MC_NODE_VOID_(mc_nodemask_set_atomic, mc_cpumask_set_atomic, (MC_N_, unsigned int node),
	      (&mask->m, node))
MC_NODE_VOID_(mc_nodemask_clear_atomic, mc_cpumask_clear_atomic, (MC_N_, unsigned int node),
	      (&mask->m, node))
MC_NODE_(bool, mc_nodemask_test_atomic, mc_cpumask_test_atomic, (MC_CN_, unsigned int node),
	 (&mask->m, node))
MC_NODE_(bool, mc_nodemask_test_and_set_atomic, mc_cpumask_test_and_set_atomic,
	 (MC_N_, unsigned int node), (&mask->m, node))
MC_NODE_(bool, mc_nodemask_test_and_clear_atomic, mc_cpumask_test_and_clear_atomic,
	 (MC_N_, unsigned int node), (&mask->m, node))

MC_NODE_VOID_(mc_nodemask_zero, mc_cpumask_zero, (MC_N_), (&mask->m))
MC_NODE_VOID_(mc_nodemask_setall, mc_cpumask_setall, (MC_N_), (&mask->m))
MC_NODE_VOID_(mc_nodemask_set_range, mc_cpumask_set_range,
	      (MC_N_, unsigned int first, unsigned int count), (&mask->m, first, count))
MC_NODE_VOID_(mc_nodemask_clear_range, mc_cpumask_clear_range,
	      (MC_N_, unsigned int first, unsigned int count), (&mask->m, first, count))
MC_NODE_VOID_(mc_nodemask_copy, mc_cpumask_copy, (struct mc_nodemask * dst, MC_CNS_),
	      (&dst->m, &src->m))
MC_NODE_(bool, mc_nodemask_and, mc_cpumask_and, (MC_N3_), (&dst->m, &a->m, &b->m))
MC_NODE_VOID_(mc_nodemask_or, mc_cpumask_or, (MC_N3_), (&dst->m, &a->m, &b->m))
MC_NODE_VOID_(mc_nodemask_xor, mc_cpumask_xor, (MC_N3_), (&dst->m, &a->m, &b->m))
MC_NODE_(bool, mc_nodemask_andnot, mc_cpumask_andnot, (MC_N3_), (&dst->m, &a->m, &b->m))
MC_NODE_VOID_(mc_nodemask_not, mc_cpumask_not, (struct mc_nodemask * dst, MC_CNS_),
	      (&dst->m, &src->m))

MC_NODE_(bool, mc_nodemask_equal, mc_cpumask_equal, (MC_N2_), (&a->m, &b->m))
MC_NODE_(bool, mc_nodemask_subset, mc_cpumask_subset, (MC_N2_), (&a->m, &b->m))
MC_NODE_(bool, mc_nodemask_intersects, mc_cpumask_intersects, (MC_N2_), (&a->m, &b->m))
MC_NODE_(bool, mc_nodemask_empty, mc_cpumask_empty, (MC_CN_), (&mask->m))
MC_NODE_(bool, mc_nodemask_full, mc_cpumask_full, (MC_CN_), (&mask->m))
MC_NODE_(unsigned int, mc_nodemask_weight, mc_cpumask_weight, (MC_CN_), (&mask->m))
MC_NODE_(unsigned int, mc_nodemask_weight_and, mc_cpumask_weight_and, (MC_N2_), (&a->m, &b->m))
MC_NODE_(unsigned int, mc_nodemask_weight_andnot, mc_cpumask_weight_andnot, (MC_N2_),
	 (&a->m, &b->m))

MC_NODE_(unsigned int, mc_nodemask_first, mc_cpumask_first, (MC_CN_), (&mask->m))
MC_NODE_(unsigned int, mc_nodemask_first_zero, mc_cpumask_first_zero, (MC_CN_), (&mask->m))
MC_NODE_(unsigned int, mc_nodemask_first_and, mc_cpumask_first_and, (MC_N2_), (&a->m, &b->m))
MC_NODE_(unsigned int, mc_nodemask_first_andnot, mc_cpumask_first_andnot, (MC_N2_), (&a->m, &b->m))
MC_NODE_(unsigned int, mc_nodemask_last, mc_cpumask_last, (MC_CN_), (&mask->m))
MC_NODE_(unsigned int, mc_nodemask_next, mc_cpumask_next, (int node, MC_CN_), (node, &mask->m))
MC_NODE_(unsigned int, mc_nodemask_next_zero, mc_cpumask_next_zero, (int node, MC_CN_),
	 (node, &mask->m))
MC_NODE_(unsigned int, mc_nodemask_next_and, mc_cpumask_next_and, (int node, MC_N2_),
	 (node, &a->m, &b->m))
MC_NODE_(unsigned int, mc_nodemask_next_andnot, mc_cpumask_next_andnot, (int node, MC_N2_),
	 (node, &a->m, &b->m))
MC_NODE_(unsigned int, mc_nodemask_next_wrap, mc_cpumask_next_wrap, (int node, MC_CN_),
	 (node, &mask->m))
MC_NODE_(unsigned int, mc_nodemask_nth, mc_cpumask_nth, (unsigned int n, MC_CN_), (n, &mask->m))
MC_NODE_(unsigned int, mc_nodemask_any_but, mc_cpumask_any_but, (MC_CN_, unsigned int node),
	 (&mask->m, node))
MC_NODE_(unsigned int, mc_nodemask_any_distribute, mc_cpumask_any_distribute, (MC_CN_), (&mask->m))
MC_NODE_(unsigned int, mc_nodemask_any_and_distribute, mc_cpumask_any_and_distribute, (MC_N2_),
	 (&a->m, &b->m))

/* Text and system arrays: mc_cpulist_parse(), mc_cpumask_parse(), their printers, and the copies.
 */
MC_API int mc_nodelist_parse(struct mc_nodemask *mask, const char *text, size_t *where);
MC_API size_t mc_nodelist_snprint(char *buf, size_t size, const struct mc_nodemask *mask);
MC_NODE_(int, mc_nodemask_parse, mc_cpumask_parse, (MC_N_, const char *text, size_t *where),
	 (&mask->m, text, where))
MC_NODE_(size_t, mc_nodemask_snprint, mc_cpumask_snprint, (char *buf, size_t size, MC_CN_),
	 (buf, size, &mask->m))
MC_NODE_(int, mc_nodemask_from_cpuset, mc_cpumask_from_cpuset,
	 (MC_N_, const void *set, size_t bytes), (&mask->m, set, bytes))
MC_NODE_(int, mc_nodemask_to_cpuset, mc_cpumask_to_cpuset, (void *set, size_t bytes, MC_CN_),
	 (set, bytes, &mask->m))

#define mc_for_each_node(node, mask) mc_for_each_cpu (node, &(mask)->m)
#define mc_for_each_node_from(node, mask) mc_for_each_cpu_from (node, &(mask)->m)
#define mc_for_each_node_wrap(node, mask, start) mc_for_each_cpu_wrap (node, &(mask)->m, start)
#define mc_for_each_node_and(node, a, b) mc_for_each_cpu_and (node, &(a)->m, &(b)->m)
#define mc_for_each_node_andnot(node, a, b) mc_for_each_cpu_andnot (node, &(a)->m, &(b)->m)
#define mc_for_each_node_or(node, a, b) mc_for_each_cpu_or (node, &(a)->m, &(b)->m)

MC_HELPER_ void mc_nodemask_var_free_(struct mc_nodemask *const *mask)
{
	if (*mask && ((*mask)->m.flags & MC_MASK_HEAP_))
		mc_cpumask_free(&(*mask)->m);
}

MC_END_DECLS

#endif /* MANYCORE_NODEMASK_H */
