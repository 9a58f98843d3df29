/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * pseudocode.h - every restartable sequence of the library, in words; what each architecture
 * implements. Included by nobody.
 *
 * Conventions: r1, r2 ...: registers; [x]: an operand (registers or constants that the sequence
 * does not change); load/store by address; `-> label`: leave the sequence to there. A sequence is
 *
 *	arm:	store(rseq_cs, descriptor)	the thread's own word, the only store but for the
 *						last
 *	start:	...				everything from here to `end` runs undisturbed on
 *						one index, or not at all
 *	commit:	store(...)			the last instruction: done or not done
 *	end:
 *	abort:	goto arm			preceded by the signature; registers are loaded anew
 *
 * Leaving by `->` does not disarm: the kernel clears rseq_cs itself when it next finds the thread
 * outside. No sequence calls, faults on purpose, or writes an id field of the rseq area. Single-
 * copy atomicity of the commit is that of an aligned store of its size. Where `copy` is used it is
 * this, inside the sequence, since a new mm_cid comes unannounced:
 *
 *	load(r1, [id]); if r1 >= load([live]) -> slow; r1 = [base] + r1 * [stride]
 *
 * Installed, because public inlines expand to them (include/manycore/inline/rseq_ARCH.h), for 8,
 * 16, 32 and 64 bits:
 *
 * mc_rseq_add, _and, _or (k, base, stride, val) -> bool
 *	copy; load(r2, r1); r2 = r2 op [val]; store(r2, r1)
 *	x86-64: one instruction, not locked
 * mc_rseq_write
 *	copy; store([val], r1)
 * mc_rseq_add_return
 *	copy; load(r2, r1); r2 += [val]; store(r2, r1); out = r2
 * mc_rseq_xchg
 *	copy; load(r2, r1); store([val], r1); out = r2
 * mc_rseq_cmpxchg
 *	copy; load(r2, r1); out = r2; if r2 != [old] -> end; store([val], r1)
 * All: false means that the index was not live; nothing was done.
 *
 * mc_rseq_counter_add (k, base, told, stride, count, amount, batch - 1)
 *							-> 0, 1 (to tell), -1 (slow)
 *	copy; load(r2, r1); r3 = low32(r2 + [amount]) - load32(r1 + [told] - [base]);
 *	r2 += [amount]; store(r2, r1)
 *	end: 0 if -batch < r3 < batch
 *	aarch64: else 1
 *	x86-64: else a second sequence, mc_seq_counter_fold below, whose `slow` is 1; then, outside
 *	of both, an atomic addition of out to [count]; 0.  The amount is added to r3 after `end`,
 *	to the copy by one instruction, not locked. Between the two the thread may get another
 *	copy: the second looks at whichever it then has
 * `total` (64 bits) is what was ever added to the copy; `told` is how much of it, modulo 2^32, the
 * shared count knows.
 *
 * Internal (src/arch/ARCH/seq.h):
 *
 * mc_seq_counter_fold (k, base, told, stride, batch, &r) -> 0, -1 (slow)
 *	copy; load(r2, r1); r3 = low32(r2) - load32(r1 + [told] - [base]); out = r3
 *	if -batch < r3 < batch -> nothing (out = 0)
 *	store32(low32(r2), r1 + [told] - [base])
 *
 * Magazine: { u32 n; u32 lock; u64 obj[] }, at load([mags]) + [class] in each copy; [mags] is 0
 * while somebody empties magazines behind a fence, and is loaded inside so that after the fence
 * nobody is at work on the old one.
 *
 * mc_seq_pop (k, &mags, stride, class, &obj) -> 0, 1 (empty or closed), 2 (slow)
 *	load(r1, [id]); if r1 >= load([live]) -> slow; load(r2, [mags]); if r2 == 0 -> empty
 *	r1 = r2 + r1 * [stride] + [class]; load32(r3, r1); if r3 == 0 -> empty
 *	load(out, r1 + 8 * r3)				obj[n - 1]
 *	store32(r3 - 1, r1)
 *
 * mc_seq_push (k, &mags, stride, class, cap, obj) -> 0, 1 (full or closed), 2 (slow)
 *	... r1 as above; load32(r3, r1); if r3 == [cap] -> full
 *	store([obj], r1 + 8 + 8 * r3)			beyond n: nobody reads it, a second try
 *							writes it again
 *	store32(r3 + 1, r1)
 */
