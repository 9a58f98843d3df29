/* SPDX-License-Identifier: MIT */
/*
 * rseq_x86_64.h - the restartable sequences of percpu.h and counter.h for x86-64. Each is
 * specified, with what may be relied on, in src/arch/pseudocode.h of the sources; this file is
 * installed because public inlines expand to it and is the public face of src/arch/x86_64
 * (docs/design/percpu.md says why it lies here).
 *
 * Invariants: one committing store, the last instruction of the sequence; nothing but the thread's
 * own rseq_cs word and registers is written before it; the id is read and compared with the live
 * mark inside the sequence; the id fields are never written. An abort starts the sequence again
 * from the very beginning.
 */
#ifndef MC_PERCPU_INLINE
#error "included by manycore/percpu.h only"
#endif
#ifndef MC_INLINE_RSEQ_X86_64_H
#define MC_INLINE_RSEQ_X86_64_H

/* The signature before an abort handler, as glibc registers it; it decodes as `ud1 sig(%rip),
 * %edi`. */
#define MC_RSEQ_SIG 0x53053053

/*
 * Labels: 70 descriptor, 71 start, 72 end (post-commit), 73 where an abort goes back to, 74 abort
 * handler. Section flag
 * "?" puts descriptor and handler in the COMDAT group of the function they serve, so that C++
 * inlines may be discarded.
 */
#define MC_RSEQ_HEAD                                        \
	".pushsection __mc_rseq_cs, \"aw?\", @progbits\n\t" \
	".balign 32\n"                                      \
	"70:\t.long 0, 0\n\t"                               \
	".quad 71f, 72f - 71f, 74f\n\t"                     \
	".popsection\n"                                     \
	"73:\tleaq 70b(%%rip), %%rax\n\t"                   \
	"movq %%rax, %%fs:(%[cs])\n"                        \
	"71:\n\t"

#define MC_RSEQ_ABORT                                          \
	".pushsection __mc_rseq_abort, \"ax?\", @progbits\n\t" \
	".byte 0x0f, 0xb9, 0x3d\n\t"                           \
	".long 0x53053053\n"                                   \
	"74:\tjmp 73b\n\t"                                     \
	".popsection\n\t"

/* rax = byte offset of the thread's own copy, or out by `how` when its index is not live. */
#define MC_RSEQ_COPY(how)              \
	"movl %%fs:(%[id]), %%eax\n\t" \
	"cmpl %[live], %%eax\n\t"      \
	"jae " how "\n\t"              \
	"imulq %[stride], %%rax\n\t"

#define MC_RSEQ_IN(k) [cs] "r"(mc_kind_cs(k)), [id] "r"(mc_kind_id(k)), [live] "m"((k)->live)

/* The offset of a kind's rseq_cs and id from the thread pointer never change once a handle of that
 * kind exists: asm without memory operands tells the compiler that they may be kept in registers
 * over a loop. */
static inline int64_t mc_kind_cs(const struct mc_percpu_kind *k)
{
	int64_t off;

	__asm__("movq %c[field](%[k]), %[off]"
		: [off] "=r"(off)
		: [k] "r"(k), [field] "i"(offsetof(struct mc_percpu_kind, cs_off)));
	return off;
}

static inline int64_t mc_kind_id(const struct mc_percpu_kind *k)
{
	int64_t off;

	__asm__("movq %c[field](%[k]), %[off]"
		: [off] "=r"(off)
		: [k] "r"(k), [field] "i"(offsetof(struct mc_percpu_kind, id_off)));
	return off;
}

static inline char *mc_thread_pointer(void)
{
	char *tp;

	__asm__("movq %%fs:0, %[tp]" : [tp] "=r"(tp));
	return tp;
}

/* [copy] op= val. False: the index is not live, nothing was done. */
#define MC_RSEQ_STORE(name, insn, bits, con)                                                    \
	static inline __attribute__((always_inline)) bool mc_rseq_##name##_##bits(              \
		const struct mc_percpu_kind *k, uint64_t base, uint64_t stride,                 \
		uint##bits##_t val)                                                             \
	{                                                                                       \
		__asm__ volatile goto(                                                          \
			MC_RSEQ_HEAD MC_RSEQ_COPY("%l[slow]") insn                              \
			" %[val], (%[base],%%rax)\n72:\n\t" MC_RSEQ_ABORT                       \
			:                                                                       \
			: MC_RSEQ_IN(k), [base] "r"(base), [stride] "r"(stride), [val] con(val) \
			: "rax", "cc", "memory"                                                 \
			: slow);                                                                \
		return 1;                                                                       \
	slow:                                                                                   \
		return 0;                                                                       \
	}

/* Body with a result; %[res] is valid when it returns true. */
#define MC_RSEQ_LOAD(name, body, bits, con, extra)                                        \
	static inline __attribute__((always_inline)) bool mc_rseq_##name##_##bits(        \
		const struct mc_percpu_kind *k, uint64_t base, uint64_t stride,           \
		uint##bits##_t old, uint##bits##_t val, uint##bits##_t *out)              \
	{                                                                                 \
		uint##bits##_t res;                                                       \
		uint32_t st;                                                              \
                                                                                          \
		(void)old;                                                                \
		__asm__ volatile(MC_RSEQ_HEAD MC_RSEQ_COPY("75f") body                    \
				 "72:\txorl %%eax, %%eax\n76:\n\t" MC_RSEQ_ABORT          \
				 ".pushsection __mc_rseq_abort, \"ax?\", @progbits\n"     \
				 "75:\tmovl $1, %%eax\n\tjmp 76b\n\t.popsection\n\t"      \
				 : "=&a"(st), [res] "=&q"(res)                            \
				 : MC_RSEQ_IN(k), [base] "r"(base), [stride] "r"(stride), \
				   [val] con(val) extra                                   \
				 : "cc", "memory");                                       \
		*out = res;                                                               \
		return !st;                                                               \
	}

#define MC_RSEQ_SIZE(bits, s, con, reg)                                                           \
	MC_RSEQ_STORE(add, "add" s, bits, con)                                                    \
	MC_RSEQ_STORE(and, "and" s, bits, con)                                                    \
	MC_RSEQ_STORE(or, "or" s, bits, con)                                                      \
	MC_RSEQ_STORE(write, "mov" s, bits, con)                                                  \
	MC_RSEQ_LOAD(add_return,                                                                  \
		     "mov" s " (%[base],%%rax), %[res]\n\tadd" s " %[val], %[res]\n\t"            \
		     "mov" s " %[res], (%[base],%%rax)\n",                                        \
		     bits, con, )                                                                 \
	MC_RSEQ_LOAD(xchg,                                                                        \
		     "mov" s " (%[base],%%rax), %[res]\n\tmov" s " %[val], (%[base],%%rax)\n",    \
		     bits, con, )                                                                 \
	MC_RSEQ_LOAD(cmpxchg,                                                                     \
		     "mov" s " (%[base],%%rax), %[res]\n\tcmp" s " %[old], %[res]\n\tjne 72f\n\t" \
		     "mov" s " %[val], (%[base],%%rax)\n",                                        \
		     bits, con, MC_RSEQ_COMMA[old] reg(old))
#define MC_RSEQ_COMMA ,

MC_RSEQ_SIZE(64, "q", "er", "r")
MC_RSEQ_SIZE(32, "l", "ir", "r")
MC_RSEQ_SIZE(16, "w", "ir", "r")
MC_RSEQ_SIZE(8, "b", "iq", "q")

/* Operands that may be anything. Not for clang, which puts all such into memory first. */
#ifdef __clang__
#define MC_RSEQ_ANY "ir"
#else
#define MC_RSEQ_ANY "irm"
#endif

/*
 * Counter: adds to the 64-bit total and, when the part of it that was not yet told has reached the
 * batch, tells the shared count: the second sequence (labels 60 to 66), out of the way. 0: all is
 * done, 1: but for telling, since the index is not live any more, -1: nothing is done. No "memory"
 * clobber: only the library looks at a counter's copies; the shared count is an operand, so that
 * stores to it come before, and is read as volatile.
 * The jump to 66 is for the processor's predictor of branches, which foresees the 32nd add by the
 * jumps before it: without one more on this way the linker's choice of addresses makes the way
 * look like 31 other adds once in seven times, and an add in a loop cost 3.5 instead of 2.3.
 * The offsets are plain loads, not mc_kind_cs(): k itself is loaded anew after a slow path, and
 * what asm makes of it would be in no register over a loop (MC_COUNTER_KEEP_).
 */
static inline __attribute__((always_inline)) int
mc_rseq_counter_add(const struct mc_percpu_kind *k, uint64_t base, uint64_t told, uint64_t stride,
		    int64_t *count, int64_t amount, uint32_t batch_1)
{
	__asm__ volatile goto(
		MC_RSEQ_HEAD MC_RSEQ_COPY(
			"%l[slow]") "movl (%[base],%%rax), %%edx\n\t"
				    "subl (%[told],%%rax), %%edx\n\t"
				    "addq %[amount], (%[base],%%rax)\n"
				    "72:\taddl %[bias], %%edx\n\t"
				    "cmpl %[batch_2], %%edx\n\t"
				    "ja 63f\n"
				    "65:\n\t" MC_RSEQ_ABORT
				    ".pushsection __mc_rseq_cs, \"aw?\", @progbits\n\t"
				    ".balign 32\n"
				    "60:\t.long 0, 0\n\t"
				    ".quad 61f, 62f - 61f, 64f\n\t"
				    ".popsection\n\t"
				    ".pushsection __mc_rseq_abort, \"ax?\", @progbits\n"
				    "63:\tleaq 60b(%%rip), %%rax\n\t"
				    "movq %%rax, %%fs:(%[cs])\n"
				    "61:\n\t" MC_RSEQ_COPY(
					    "%l[fold]") "movl (%[base],%%rax), %%ecx\n\t"
							"movl %%ecx, %%edx\n\t"
							"subl (%[told],%%rax), %%edx\n\t"
							"addl %[bias], %%edx\n\t"
							"subl %k[amount], %%edx\n\t"
							"cmpl %[batch_2], %%edx\n\t"
							"jbe 65b\n\t"
							"movl %%ecx, (%[told],%%rax)\n"
							"62:\taddl %k[amount], %%edx\n\t"
							"subl %[bias], %%edx\n\t"
							"movslq %%edx, %%rdx\n\t"
							"lock addq %%rdx, %[count]\n\t"
							"jmp 66f\n"
							"66:\tjmp 65b\n\t"
							".byte 0x0f, 0xb9, 0x3d\n\t"
							".long 0x53053053\n"
							"64:\tjmp 63b\n\t"
							".popsection\n\t"
		:
		: [cs] "r"(k->cs_off), [id] "r"(k->id_off), [live] "m"(k->live), [base] "r"(base),
		  [told] "r"(told), [stride] "r"(stride), [count] "m"(*count), [amount] "er"(amount),
		  [bias] MC_RSEQ_ANY((uint32_t)amount + batch_1), [batch_2] MC_RSEQ_ANY(2 * batch_1)
		: "rax", "rcx", "rdx", "cc"
		: slow, fold);
	return 0;
fold:
	return 1;
slow:
	return -1;
}

#endif
