/* SPDX-License-Identifier: MIT */
/*
 * inline/iterate.h - the loops of cpumask.h, a word at a time.
 *
 * State: `w` is the current word with the bits still to come, the current CPU's own included. A
 * step drops that lowest bit and reads the masks again, so that CPUs taken away in the body don't
 * come; two instructions deep, no temporary mask. `limit` is where the words to look at end,
 * `nbits` what cpu becomes at the end.
 */
#ifndef MANYCORE_INLINE_CPUMASK_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_ITERATE_H
#define MANYCORE_INLINE_ITERATE_H

MC_BEGIN_DECLS

struct mc_cpu_iter_ {
	const uint64_t *a, *b, *first;
	uint64_t w;
	unsigned int cpu, base, limit, nbits, na, nb, start;
};

#define MC_CAT2_(x, y) x##y
#define MC_CAT_(x, y) MC_CAT2_(x, y)
#define mc_iter_loop_(cpu, begin, next) \
	mc_iter_loop2_(cpu, begin, next, MC_CAT_(mc_it_, __COUNTER__))
#define mc_iter_loop2_(var, begin, next, it) \
	for (struct mc_cpu_iter_ it = begin; \
	     ((var) = (__typeof__((var) + 0))it.cpu, it.cpu < it.nbits); next(&it))

#define mc_hop_loop_(mask, topo, node, hop) \
	for (unsigned int hop = 0; mc_numa_hop_next(topo, node, &hop, mask) == 0;)

/* Defines find, next and begin of one kind of loop; FETCH gives the word that `base` stands at. */
#define MC_ITER_KIND_(kind, FETCH, BEGIN_ARGS)                                  \
	MC_HELPER_ void mc_iter_find##kind(struct mc_cpu_iter_ *it, uint64_t w) \
	{                                                                       \
		while (!w) {                                                    \
			it->base += 64;                                         \
			if (it->base >= it->limit) {                            \
				it->cpu = it->nbits;                            \
				return;                                         \
			}                                                       \
			it->a++;                                                \
			it->b++;                                                \
			w = FETCH;                                              \
		}                                                               \
		it->w = w;                                                      \
		it->cpu = it->base + (unsigned int)__builtin_ctzll(w);          \
	}                                                                       \
	MC_HELPER_ void mc_iter_next##kind(struct mc_cpu_iter_ *it)             \
	{                                                                       \
		mc_iter_find##kind(it, (it->w & FETCH) & (it->w - 1));          \
	}                                                                       \
	MC_HELPER_ struct mc_cpu_iter_ mc_iter_begin##kind BEGIN_ARGS

MC_HELPER_ struct mc_cpu_iter_ mc_iter_two_(MC_AB_, unsigned int limit, unsigned int nbits)
{
	struct mc_cpu_iter_ it;

	it.a = it.first = a->word;
	it.b = b->word;
	it.w = 0;
	it.cpu = it.base = it.start = 0;
	it.limit = limit;
	it.nbits = nbits;
	it.na = a->nbits;
	it.nb = b->nbits;
	return it;
}

MC_ITER_KIND_(_, *it->a, (const struct mc_cpumask *mask))
{
	struct mc_cpu_iter_ it = mc_iter_two_(mask, mask, mask->nbits, mask->nbits);

	mc_iter_find_(&it, *it.a);
	return it;
}

MC_HELPER_ struct mc_cpu_iter_ mc_iter_from_(const struct mc_cpumask *mask, unsigned int from)
{
	struct mc_cpu_iter_ it = mc_iter_two_(mask, mask, mask->nbits, mask->nbits);

	it.cpu = mask->nbits;
	if (from < mask->nbits) {
		it.base = from & ~63u;
		it.a += from / 64;
		mc_iter_find_(&it, *it.a & ~UINT64_C(0) << (from & 63));
	}
	return it;
}

/* At the end of the first half: on to the second, unless there is none (start = 0). */
MC_HELPER_ void mc_iter_turn_(struct mc_cpu_iter_ *it)
{
	if (it->cpu >= it->nbits && it->start) {
		it->limit = it->start;
		it->start = 0;
		it->base = 0;
		it->a = it->first;
		mc_iter_find_(it, *it->a);
	}
	if (it->cpu >= it->limit)
		it->cpu = it->nbits;
}

MC_HELPER_ void mc_iter_next_wrap_(struct mc_cpu_iter_ *it)
{
	mc_iter_next_(it);
	mc_iter_turn_(it);
}

MC_HELPER_ struct mc_cpu_iter_ mc_iter_wrap_(const struct mc_cpumask *mask, unsigned int start)
{
	struct mc_cpu_iter_ it = mc_iter_from_(mask, start);

	it.start = start < mask->nbits ? start : mask->nbits;
	mc_iter_turn_(&it);
	return it;
}

MC_HELPER_ uint64_t mc_iter_word_(const uint64_t *word, unsigned int base, unsigned int nbits)
{
	return base < nbits ? *word : 0;
}

MC_ITER_KIND_(_and_, (*it->a & *it->b), (MC_AB_))
{
	struct mc_cpu_iter_ it =
		mc_iter_two_(a, b, a->nbits < b->nbits ? a->nbits : b->nbits, a->nbits);

	mc_iter_find_and_(&it, *it.a & *it.b);
	return it;
}

MC_ITER_KIND_(_andnot_, (*it->a & ~mc_iter_word_(it->b, it->base, it->nb)), (MC_AB_))
{
	struct mc_cpu_iter_ it = mc_iter_two_(a, b, a->nbits, a->nbits);

	mc_iter_find_andnot_(&it, *it.a & ~*it.b);
	return it;
}

MC_ITER_KIND_(_or_,
	      (mc_iter_word_(it->a, it->base, it->na) | mc_iter_word_(it->b, it->base, it->nb)),
	      (MC_AB_))
{
	unsigned int nbits = a->nbits > b->nbits ? a->nbits : b->nbits;
	struct mc_cpu_iter_ it = mc_iter_two_(a, b, nbits, nbits);

	mc_iter_find_or_(&it, *it.a | *it.b);
	return it;
}

MC_END_DECLS

#endif /* MANYCORE_INLINE_ITERATE_H */
