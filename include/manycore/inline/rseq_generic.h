/* SPDX-License-Identifier: MIT */
/* rseq_generic.h - what the other rseq_*.h give besides their sequences, for architectures without
 * any (and for TSan). */
#ifndef MC_PERCPU_INLINE
#error "included by manycore/percpu.h only"
#endif
#ifndef MC_INLINE_RSEQ_GENERIC_H
#define MC_INLINE_RSEQ_GENERIC_H

#define MC_RSEQ_SIG 0 /* never registered */

static inline int64_t mc_kind_cs(const struct mc_percpu_kind *k)
{
	return k->cs_off;
}

static inline int64_t mc_kind_id(const struct mc_percpu_kind *k)
{
	return k->id_off;
}

static inline char *mc_thread_pointer(void)
{
#if defined(__x86_64__)
	char *tp;

	__asm__("movq %%fs:0, %[tp]" : [tp] "=r"(tp));
	return tp;
#else
	return (char *)__builtin_thread_pointer();
#endif
}

#endif
