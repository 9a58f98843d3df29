/* SPDX-License-Identifier: MIT */
/*
 * inline/mask_x86_64.h - and, or, xor, andnot and equal of masks of 5 to 8 words (257 to 512 CPUs)
 * with AVX2, inline: what short.h does, with vectors of four words. Like rseq_x86_64.h it is a
 * public face of src/arch/x86_64.
 *
 * Code compiled for AVX2 has it in C. Other code has it in assembly, which leaves no upper halves
 * behind, as such code expects; a caller that may have some in use, target("avx2"), is told that
 * they are gone.
 */
#ifndef MANYCORE_INLINE_SHORT_H
#error "include <manycore/cpumask.h>, not this file"
#endif
#ifndef MANYCORE_INLINE_MASK_X86_64_H
#define MANYCORE_INLINE_MASK_X86_64_H

/* MC_MEDIUM_(name, OP, insn, kind) defines mc_medium_NAME_(dst, a, b, last): `last` is where the
 * last vector is, in bytes. Gives whether a bit is left, where the kind is TEST. */
#ifdef __AVX2__

typedef uint64_t mc_quad_ __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long mc_quad_tested_ __attribute__((vector_size(32)));
#define mc_quad_at_(p, offset) (*(const mc_quad_ *)((const char *)(p) + (offset)))
#define mc_quad_put_(p, offset, v) ((void)(*(mc_quad_ *)((char *)(p) + (offset)) = (v)))

#define MC_MEDIUM_(name, OP, insn, kind)                                     \
	MC_HELPER_ bool mc_medium_##name##_(MC_DST_AB_, size_t last)         \
	{                                                                    \
		const uint64_t *x = a->word, *y = b->word;                   \
		mc_quad_ v = OP(mc_quad_at_(x, 0), mc_quad_at_(y, 0));       \
		mc_quad_ w = OP(mc_quad_at_(x, last), mc_quad_at_(y, last)); \
		mc_quad_tested_ any = (mc_quad_tested_)(v | w);              \
                                                                             \
		mc_quad_put_(dst->bits, 0, v);                               \
		mc_quad_put_(dst->bits, last, w);                            \
		return !__builtin_ia32_ptestz256(any, any);                  \
	}

MC_HELPER_ bool mc_medium_equal_(MC_AB_, size_t last)
{
	const uint64_t *x = a->word, *y = b->word;
	mc_quad_ v = mc_quad_at_(x, 0) ^ mc_quad_at_(y, 0);
	mc_quad_ w = mc_quad_at_(x, last) ^ mc_quad_at_(y, last);
	mc_quad_tested_ any = (mc_quad_tested_)(v | w);

	return __builtin_ia32_ptestz256(any, any);
}

#else

#define MC_MEDIUM_CODE_TEST_              \
	"vpor %%ymm0, %%ymm1, %%ymm0\n\t" \
	"vptest %%ymm0, %%ymm0\n\t"
#define MC_MEDIUM_OUT_TEST_ "=@ccnz"(any)
#define MC_MEDIUM_CODE_VOID_
#define MC_MEDIUM_OUT_VOID_

#define MC_MEDIUM_(name, OP, insn, kind)                                                           \
	MC_HELPER_ bool mc_medium_##name##_(MC_DST_AB_, size_t last)                               \
	{                                                                                          \
		bool any = false;                                                                  \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"vmovdqu (%[b]), %%ymm0\n\t"                                               \
			"vmovdqu (%[b],%[last]), %%ymm1\n\t" insn                                  \
			" (%[a]), %%ymm0, %%ymm0\n\t" insn " (%[a],%[last]), %%ymm1, %%ymm1\n\t"   \
			"vmovdqu %%ymm0, (%[d])\n\t"                                               \
			"vmovdqu %%ymm1, (%[d],%[last])\n\t" MC_MEDIUM_CODE_##kind "vzeroupper"    \
			: MC_MEDIUM_OUT_##kind                                                     \
			: [d] "r"(dst->bits), [a] "r"(a->word), [b] "r"(b->word), [last] "r"(last) \
			: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",  \
			  "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory"); \
		return any;                                                                        \
	}

MC_HELPER_ bool mc_medium_equal_(MC_AB_, size_t last)
{
	bool same;

	__asm__ volatile("vmovdqu (%[a]), %%ymm0\n\t"
			 "vmovdqu (%[a],%[last]), %%ymm1\n\t"
			 "vpxor (%[b]), %%ymm0, %%ymm0\n\t"
			 "vpxor (%[b],%[last]), %%ymm1, %%ymm1\n\t" MC_MEDIUM_CODE_TEST_
			 "vzeroupper"
			 : "=@ccz"(same)
			 : [a] "r"(a->word), [b] "r"(b->word), [last] "r"(last)
			 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
			   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory");
	return same;
}

#endif

MC_MEDIUM_(and, MC_OP_AND_, "vpand", TEST_)
MC_MEDIUM_(or, MC_OP_OR_, "vpor", VOID_)
MC_MEDIUM_(xor, MC_OP_XOR_, "vpxor", VOID_)
MC_MEDIUM_(andnot, MC_OP_ANDNOT_, "vpandn", TEST_)

#endif /* MANYCORE_INLINE_MASK_X86_64_H */
