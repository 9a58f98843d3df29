/* SPDX-License-Identifier: MIT */
/* aarch64/seq.h - the internal sequences for aarch64; specified in pseudocode.h, in the form of
 * inline/rseq_aarch64.h. */
#ifndef MC_ARCH_AARCH64_SEQ_H
#define MC_ARCH_AARCH64_SEQ_H

static inline int mc_seq_counter_fold(const struct mc_percpu_kind *k, uint64_t base, uint64_t told,
				      uint64_t stride, uint32_t batch, int32_t *r)
{
	uint32_t rest, st;

	__asm__ volatile(
		MC_RSEQ_HEAD MC_RSEQ_COPY("75f") "ldr w15, [x17]\n\t"
						 "ldr w16, [x17, %[told]]\n\t"
						 "sub %w[rest], w15, w16\n\t"
						 "add w16, %w[rest], %w[batch_1]\n\t"
						 "cmp w16, %w[batch_2]\n\t"
						 "b.ls 77f\n\t"
						 "str w15, [x17, %[told]]\n"
						 "72:\tmov %w[st], #0\n\t"
						 "b 76f\n"
						 "77:\tmov %w[rest], #0\n\t"
						 "b 72b\n"
						 "75:\tmov %w[st], #1\n"
						 "76:\n\t" MC_RSEQ_ABORT
		: [st] "=&r"(st), [rest] "=&r"(rest)
		: MC_RSEQ_IN(k), [base] "r"(base), [told] "r"(told - base), [stride] "r"(stride),
		  [batch_1] "r"(batch - 1), [batch_2] "r"(2 * (batch - 1))
		: "x15", "x16", "x17", "cc", "memory");
	*r = (int32_t)rest;
	return st ? -1 : 0;
}

/* x17 = the copy's magazine, w16 = n */
#define MC_SEQ_MAG                          \
	"ldr w17, [%[id]]\n\t"              \
	"ldr w16, [%[live]]\n\t"            \
	"cmp w17, w16\n\t"                  \
	"b.hs 75f\n\t"                      \
	"ldr x16, [%[mags]]\n\t"            \
	"cbz x16, 77f\n\t"                  \
	"add x16, x16, %[class]\n\t"        \
	"madd x17, x17, %[stride], x16\n\t" \
	"ldr w16, [x17]\n\t"

#define MC_SEQ_MAG_END            \
	"72:\tmov %w[st], #0\n\t" \
	"b 76f\n"                 \
	"75:\tmov %w[st], #2\n\t" \
	"b 76f\n"                 \
	"77:\tmov %w[st], #1\n"   \
	"76:\n\t" MC_RSEQ_ABORT

static inline int mc_seq_pop(const struct mc_percpu_kind *k, char *const *mags, uint64_t stride,
			     uint64_t class, uint64_t *obj)
{
	uint64_t out;
	int st;

	__asm__ volatile(MC_RSEQ_HEAD MC_SEQ_MAG "cbz w16, 77f\n\t"
						 "ldr %[out], [x17, x16, lsl #3]\n\t"
						 "sub w16, w16, #1\n\t"
						 "str w16, [x17]\n" MC_SEQ_MAG_END
			 : [st] "=&r"(st), [out] "=&r"(out)
			 : MC_RSEQ_IN(k), [mags] "r"(mags), [stride] "r"(stride), [class] "r"(class)
			 : "x16", "x17", "cc", "memory");
	*obj = out;
	return st;
}

static inline int mc_seq_push(const struct mc_percpu_kind *k, char *const *mags, uint64_t stride,
			      uint64_t class, uint32_t cap, uint64_t obj)
{
	int st;

	__asm__ volatile(MC_RSEQ_HEAD MC_SEQ_MAG "cmp w16, %w[cap]\n\t"
						 "b.hs 77f\n\t"
						 "add x15, x17, x16, lsl #3\n\t"
						 "str %[obj], [x15, #8]\n\t"
						 "add w16, w16, #1\n\t"
						 "str w16, [x17]\n" MC_SEQ_MAG_END
			 : [st] "=&r"(st)
			 : MC_RSEQ_IN(k), [mags] "r"(mags), [stride] "r"(stride),
			   [class] "r"(class), [cap] "r"(cap), [obj] "r"(obj)
			 : "x15", "x16", "x17", "cc", "memory");
	return st;
}

#endif
