/* SPDX-License-Identifier: MIT */
/*
 * inline/iterate.h - the loops of cpumask.h, a word at a time.
 *
 * State: `w` is the current word's bits still to come, the current CPU's own included; `seen` is
 * the word as it was read last. A step drops the lowest bit and looks whether the word has changed
 * since (a compare beside the chain of two instructions from bit to bit); if so the bits past the
 * current CPU are taken anew: the body's changes count, as in the kernel's loops. `limit` is where
 * the words to look at end, `nbits` what cpu becomes at the end, when w is 0.
 */
#ifndef MANYCORE_INLINE_CPUMASK_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_ITERATE_H
#define MANYCORE_INLINE_ITERATE_H

MC_BEGIN_DECLS

struct mc_cpu_iter_ {
	const uint64_t *a, *b, *first;
	uint64_t w, seen;
	unsigned int cpu, base, limit, nbits, na, nb, start;
};

#define MC_CAT2_(x, y) x##y
#define MC_CAT_(x, y) MC_CAT2_(x, y)
#define mc_iter_loop_(cpu, begin, next) \
	mc_iter_loop2_(cpu, begin, next, MC_CAT_(mc_it_, __COUNTER__))
#define mc_iter_loop2_(var, begin, next, it)                                                     \
	for (struct mc_cpu_iter_ it = begin; ((var) = (__typeof__((var) + 0))it.cpu, it.w != 0); \
	     next(&it))

#define mc_hop_loop_(mask, topo, node, hop) \
	for (unsigned int hop = 0; mc_numa_hop_next(topo, node, &hop, mask) == 0;)

/* Defines find, next and begin of one kind of loop; FETCH gives the word that `base` stands at. */
#define MC_ITER_KIND_(kind, FETCH, BEGIN_ARGS)                                    \
	MC_HELPER_ void mc_iter_find##kind(struct mc_cpu_iter_ *it, uint64_t w)   \
	{                                                                         \
		while (__builtin_expect(!w, 0)) {                                 \
			it->base += 64;                                           \
			if (it->base >= it->limit) {                              \
				it->cpu = it->nbits;                              \
				it->w = 0;                                        \
				return;                                           \
			}                                                         \
			it->a++;                                                  \
			it->b++;                                                  \
			w = it->seen = FETCH;                                     \
		}                                                                 \
		it->w = w;                                                        \
		it->cpu = it->base + (unsigned int)__builtin_ctzll(w);            \
	}                                                                         \
	MC_HELPER_ void mc_iter_next##kind(struct mc_cpu_iter_ *it)               \
	{                                                                         \
		uint64_t w = it->w & (it->w - 1), now = FETCH;                    \
                                                                                  \
		if (mc_never_(now != it->seen)) {                                 \
			/* Keeps this a branch: a select would join the chain. */ \
			__atomic_signal_fence(__ATOMIC_ACQUIRE);                  \
			it->seen = now;                                           \
			w = now & ~UINT64_C(1) << (it->cpu & 63);                 \
		}                                                                 \
		mc_iter_find##kind(it, w);                                        \
	}                                                                         \
	MC_HELPER_ struct mc_cpu_iter_ mc_iter_begin##kind BEGIN_ARGS

MC_HELPER_ struct mc_cpu_iter_ mc_iter_two_(MC_AB_, unsigned int limit, unsigned int nbits)
{
	struct mc_cpu_iter_ it;

	it.a = it.first = a->word;
	it.b = b->word;
	it.w = it.seen = 0;
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

	it.seen = *it.a;
	mc_iter_find_(&it, it.seen);
	return it;
}

MC_HELPER_ struct mc_cpu_iter_ mc_iter_from_(const struct mc_cpumask *mask, unsigned int from)
{
	struct mc_cpu_iter_ it = mc_iter_two_(mask, mask, mask->nbits, mask->nbits);

	it.cpu = mask->nbits;
	if (from < mask->nbits) {
		it.base = from & ~63u;
		it.a += from / 64;
		it.seen = *it.a;
		mc_iter_find_(&it, it.seen & ~UINT64_C(0) << (from & 63));
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
		it->seen = *it->a;
		mc_iter_find_(it, it->seen);
	}
	if (it->cpu >= it->limit) {
		it->cpu = it->nbits;
		it->w = 0;
	}
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

	it.seen = *it.a & *it.b;
	mc_iter_find_and_(&it, it.seen);
	return it;
}

MC_ITER_KIND_(_andnot_, (*it->a & ~mc_iter_word_(it->b, it->base, it->nb)), (MC_AB_))
{
	struct mc_cpu_iter_ it = mc_iter_two_(a, b, a->nbits, a->nbits);

	it.seen = *it.a & ~*it.b;
	mc_iter_find_andnot_(&it, it.seen);
	return it;
}

MC_ITER_KIND_(_or_,
	      (mc_iter_word_(it->a, it->base, it->na) | mc_iter_word_(it->b, it->base, it->nb)),
	      (MC_AB_))
{
	unsigned int nbits = a->nbits > b->nbits ? a->nbits : b->nbits;
	struct mc_cpu_iter_ it = mc_iter_two_(a, b, nbits, nbits);

	it.seen = *it.a | *it.b;
	mc_iter_find_or_(&it, it.seen);
	return it;
}

MC_END_DECLS

#endif /* MANYCORE_INLINE_ITERATE_H */
