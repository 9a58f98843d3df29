/* SPDX-License-Identifier: MIT */
/* x86_64/seq.h - the internal sequences for x86-64; specified in pseudocode.h, in the form of
 * inline/rseq_x86_64.h. */
#ifndef MC_ARCH_X86_64_SEQ_H
#define MC_ARCH_X86_64_SEQ_H

static inline int mc_seq_counter_fold(const struct mc_percpu_kind *k, uint64_t base, uint64_t told,
				      uint64_t stride, uint32_t batch, int32_t *r)
{
	uint32_t rest, low;
	uint32_t st;

	__asm__ volatile(MC_RSEQ_HEAD MC_RSEQ_COPY(
				 "75f") "movl (%[base],%%rax), %[low]\n\t"
					"movl %[low], %[rest]\n\t"
					"subl (%[told],%%rax), %[rest]\n\t"
					"leal (%q[rest],%q[batch_1]), %%ecx\n\t"
					"cmpl %[batch_2], %%ecx\n\t"
					"jbe 77f\n\t"
					"movl %[low], (%[told],%%rax)\n"
					"72:\txorl %%eax, %%eax\n"
					"76:\n\t" MC_RSEQ_ABORT
					".pushsection __mc_rseq_abort, \"ax?\", @progbits\n"
					"75:\tmovl $1, %%eax\n\tjmp 76b\n"
					"77:\txorl %[rest], %[rest]\n\tjmp 72b\n\t"
					".popsection\n\t"
			 : "=&a"(st), [low] "=&r"(low), [rest] "=&r"(rest)
			 : MC_RSEQ_IN(k), [base] "r"(base), [told] "r"(told), [stride] "r"(stride),
			   [batch_1] "r"((uint64_t)batch - 1), [batch_2] "r"(2 * (batch - 1))
			 : "rcx", "cc", "memory");
	*r = (int32_t)rest;
	return st ? -1 : 0;
}

/* What is used once may be used where it lies. Not for clang, which copies it to the stack first.
 */
#ifdef __clang__
#define MC_SEQ_ONCE "r"
#else
#define MC_SEQ_ONCE "rm"
#endif

/* rax = the copy's magazine, ecx = n */
#define MC_SEQ_MAG                     \
	"movl %%fs:(%[id]), %%eax\n\t" \
	"cmpl %[live], %%eax\n\t"      \
	"jae %l[slow]\n\t"             \
	"movq %[mags], %%rcx\n\t"      \
	"testq %%rcx, %%rcx\n\t"       \
	"jz %l[none]\n\t"              \
	"imulq %[stride], %%rax\n\t"   \
	"addq %[class], %%rcx\n\t"     \
	"addq %%rcx, %%rax\n\t"        \
	"movl (%%rax), %%ecx\n\t"

static inline int mc_seq_pop(const struct mc_percpu_kind *k, char *const *mags, uint64_t stride,
			     uint64_t class, uint64_t *obj)
{
	uint64_t out;

	__asm__ volatile goto(
		MC_RSEQ_HEAD MC_SEQ_MAG "testl %%ecx, %%ecx\n\t"
					"jz %l[none]\n\t"
					"movq (%%rax,%%rcx,8), %[out]\n\t"
					"decl %%ecx\n\t"
					"movl %%ecx, (%%rax)\n72:\n\t" MC_RSEQ_ABORT
		: [out] "=&r"(out)
		: MC_RSEQ_IN(k), [mags] "m"(*mags), [stride] MC_SEQ_ONCE(stride), [class] "r"(class)
		: "rax", "rcx", "cc", "memory"
		: slow, none);
	*obj = out;
	return 0;
none:
	return 1;
slow:
	return 2;
}

static inline int mc_seq_push(const struct mc_percpu_kind *k, char *const *mags, uint64_t stride,
			      uint64_t class, uint32_t cap, uint64_t obj)
{
	__asm__ volatile goto(MC_RSEQ_HEAD MC_SEQ_MAG "cmpl %[cap], %%ecx\n\t"
						      "jae %l[none]\n\t"
						      "movq %[obj], 8(%%rax,%%rcx,8)\n\t"
						      "incl %%ecx\n\t"
						      "movl %%ecx, (%%rax)\n72:\n\t" MC_RSEQ_ABORT
			      :
			      : MC_RSEQ_IN(k), [mags] "m"(*mags), [stride] MC_SEQ_ONCE(stride),
				[class] "r"(class), [cap] MC_SEQ_ONCE(cap), [obj] "r"(obj)
			      : "rax", "rcx", "cc", "memory"
			      : slow, none);
	return 0;
none:
	return 1;
slow:
	return 2;
}

#endif
