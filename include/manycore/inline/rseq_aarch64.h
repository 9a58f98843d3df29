/* SPDX-License-Identifier: MIT */
/*
 * rseq_aarch64.h - the restartable sequences of percpu.h and counter.h for aarch64; specified in
 * src/arch/pseudocode.h. See rseq_x86_64.h for the invariants and why the file lies here.
 */
#ifndef MC_PERCPU_INLINE
#error "included by manycore/percpu.h only"
#endif
#ifndef MC_INLINE_RSEQ_AARCH64_H
#define MC_INLINE_RSEQ_AARCH64_H

/* The signature before an abort handler, as glibc registers it: the instruction `brk #0x45e0`. */
#define MC_RSEQ_SIG 0xd428bc00

/* Labels as in rseq_x86_64.h. x16 and x17 are the sequence's own. */
#define MC_RSEQ_HEAD                                         \
	".pushsection __mc_rseq_cs, \"aw?\", %%progbits\n\t" \
	".balign 32\n"                                       \
	"70:\t.long 0, 0\n\t"                                \
	".quad 71f, 72f - 71f, 74f\n\t"                      \
	".popsection\n"                                      \
	"73:\tadrp x16, 70b\n\t"                             \
	"add x16, x16, :lo12:70b\n\t"                        \
	"str x16, [%[cs]]\n"                                 \
	"71:\n\t"

#define MC_RSEQ_ABORT                                           \
	".pushsection __mc_rseq_abort, \"ax?\", %%progbits\n\t" \
	".inst 0xd428bc00\n"                                    \
	"74:\tb 73b\n\t"                                        \
	".popsection\n\t"

/* x17 = address of the thread's own copy, or out by `how` when its index is not live. */
#define MC_RSEQ_COPY(how)        \
	"ldr w17, [%[id]]\n\t"   \
	"ldr w16, [%[live]]\n\t" \
	"cmp w17, w16\n\t"       \
	"b.hs " how "\n\t"       \
	"madd x17, x17, %[stride], %[base]\n\t"

#define MC_RSEQ_IN(k)                                  \
	[cs] "r"(mc_thread_pointer() + mc_kind_cs(k)), \
		[id] "r"(mc_thread_pointer() + mc_kind_id(k)), [live] "r"(&(k)->live)

/* See rseq_x86_64.h. */
static inline int64_t mc_kind_cs(const struct mc_percpu_kind *k)
{
	int64_t off;

	__asm__("ldr %[off], [%[k], %[field]]"
		: [off] "=r"(off)
		: [k] "r"(k), [field] "i"(offsetof(struct mc_percpu_kind, cs_off)));
	return off;
}

static inline int64_t mc_kind_id(const struct mc_percpu_kind *k)
{
	int64_t off;

	__asm__("ldr %[off], [%[k], %[field]]"
		: [off] "=r"(off)
		: [k] "r"(k), [field] "i"(offsetof(struct mc_percpu_kind, id_off)));
	return off;
}

static inline char *mc_thread_pointer(void)
{
	return (char *)__builtin_thread_pointer();
}

#define MC_RSEQ_STORE(name, body, bits)                                                        \
	static inline __attribute__((always_inline)) bool mc_rseq_##name##_##bits(             \
		const struct mc_percpu_kind *k, uint64_t base, uint64_t stride,                \
		uint##bits##_t val)                                                            \
	{                                                                                      \
		__asm__ volatile goto(MC_RSEQ_HEAD MC_RSEQ_COPY("%l[slow]") body               \
				      "72:\n\t" MC_RSEQ_ABORT                                  \
				      :                                                        \
				      : MC_RSEQ_IN(k), [base] "r"(base), [stride] "r"(stride), \
					[val] "r"((uint64_t)val)                               \
				      : "x16", "x17", "cc", "memory"                           \
				      : slow);                                                 \
		return 1;                                                                      \
	slow:                                                                                  \
		return 0;                                                                      \
	}

/* x16 = result; w17 = 0 afterwards unless the index was not live. */
#define MC_RSEQ_LOAD(name, body, bits)                                                    \
	static inline __attribute__((always_inline)) bool mc_rseq_##name##_##bits(        \
		const struct mc_percpu_kind *k, uint64_t base, uint64_t stride,           \
		uint##bits##_t old, uint##bits##_t val, uint##bits##_t *out)              \
	{                                                                                 \
		uint64_t res, tmp;                                                        \
		uint32_t st;                                                              \
                                                                                          \
		__asm__ volatile(MC_RSEQ_HEAD MC_RSEQ_COPY("75f") body                    \
				 "72:\tmov %w[st], #0\n\tb 76f\n"                         \
				 "75:\tmov %w[st], #1\n76:\n\t" MC_RSEQ_ABORT             \
				 : [res] "=&r"(res), [tmp] "=&r"(tmp), [st] "=&r"(st)     \
				 : MC_RSEQ_IN(k), [base] "r"(base), [stride] "r"(stride), \
				   [val] "r"((uint64_t)val), [old] "r"((uint64_t)old)     \
				 : "x16", "x17", "cc", "memory");                         \
		*out = (uint##bits##_t)res;                                               \
		return !st;                                                               \
	}

#define MC_RSEQ_SIZE(bits, s, r)                                                                 \
	MC_RSEQ_STORE(add,                                                                       \
		      "ldr" s " " r "16, [x17]\n\tadd x16, x16, %[val]\n\tstr" s " " r           \
		      "16, [x17]\n",                                                             \
		      bits)                                                                      \
	MC_RSEQ_STORE(and,                                                                       \
		      "ldr" s " " r "16, [x17]\n\tand x16, x16, %[val]\n\tstr" s " " r           \
		      "16, [x17]\n",                                                             \
		      bits)                                                                      \
	MC_RSEQ_STORE(or,                                                                        \
		      "ldr" s " " r "16, [x17]\n\torr x16, x16, %[val]\n\tstr" s " " r           \
		      "16, [x17]\n",                                                             \
		      bits)                                                                      \
	MC_RSEQ_STORE(write, "mov x16, %[val]\n\tstr" s " " r "16, [x17]\n", bits)               \
	MC_RSEQ_LOAD(add_return,                                                                 \
		     "ldr" s " " r "16, [x17]\n\tadd %[res], x16, %[val]\n\tmov x16, %[res]\n\t" \
		     "str" s " " r "16, [x17]\n",                                                \
		     bits)                                                                       \
	MC_RSEQ_LOAD(xchg,                                                                       \
		     "ldr" s " " r "16, [x17]\n\tmov %[res], x16\n\tmov x16, %[val]\n\t"         \
		     "str" s " " r "16, [x17]\n",                                                \
		     bits)                                                                       \
	MC_RSEQ_LOAD(cmpxchg,                                                                    \
		     "ldr" s " " r                                                               \
		     "16, [x17]\n\tmov %[res], x16\n\tcmp x16, %[old]\n\tb.ne 72f\n\t"           \
		     "mov x16, %[val]\n\tstr" s " " r "16, [x17]\n",                             \
		     bits)

MC_RSEQ_SIZE(64, "", "x")
MC_RSEQ_SIZE(32, "", "w")
MC_RSEQ_SIZE(16, "h", "w")
MC_RSEQ_SIZE(8, "b", "w")

/* See rseq_x86_64.h; but 1 whenever there is something to tell: the library adds to the shared
 * count by what this processor does best, exclusives or one instruction. */
static inline __attribute__((always_inline)) int
mc_rseq_counter_add(const struct mc_percpu_kind *k, uint64_t base, uint64_t told, uint64_t stride,
		    int64_t *count, int64_t amount, uint32_t batch_1)
{
	(void)count;
	__asm__ volatile goto(
		MC_RSEQ_HEAD MC_RSEQ_COPY("%l[slow]") "ldr x16, [x17]\n\t"
						      "add x16, x16, %[amount]\n\t"
						      "ldr w15, [x17, %[told]]\n\t"
						      "sub w15, w16, w15\n\t"
						      "str x16, [x17]\n"
						      "72:\tadd w15, w15, %w[batch_1]\n\t"
						      "cmp w15, %w[batch_2]\n\t"
						      "b.hi %l[fold]\n\t" MC_RSEQ_ABORT
		:
		: [cs] "r"(mc_thread_pointer() + k->cs_off),
		  [id] "r"(mc_thread_pointer() + k->id_off), [live] "r"(&k->live), [base] "r"(base),
		  [told] "r"(told - base), [stride] "r"(stride), [amount] "r"(amount),
		  [batch_1] "r"(batch_1), [batch_2] "r"(2 * batch_1)
		: "x15", "x16", "x17", "cc"
		: slow, fold);
	return 0;
fold:
	return 1;
slow:
	return -1;
}

#endif
