/* SPDX-License-Identifier: MIT */
/*
 * vdso.h - between vdso.c and answers.c only: where in a vDSO our code and its table of answers
 * lie.
 *
 * The entry of getcpu makes the call itself as long as the byte `armed` is 0; then it goes to the
 * code behind the image, which looks in the table first. Slots are {thread pointer,
 * emu_vdso_answer()}, eight to a set, the set by a hash of the thread pointer.
 */
#ifndef MC_EMU_VDSO_H
#define MC_EMU_VDSO_H

#include "emu/internal.h"

enum { VDSO_WAYS = 8, VDSO_SETS = 8, VDSO_SLOTS = VDSO_SETS * VDSO_WAYS };

struct emu_vdso_slot {
	uint64_t pointer, answer;
};

/* Offsets in the image, the same in every process of this kernel. */
struct emu_vdso {
	uint64_t entry;         /* __vdso_getcpu; 0: there is none to patch */
	uint64_t entry_ip;      /* what a call made by the entry shows as its instruction pointer */
	uint64_t code, code_ip; /* the same of the code behind the image; 0: no room for it */
	uint64_t armed, table;
	unsigned int sets;
};
const struct emu_vdso *emu_vdso(void);

/* The answer for one thread: its tid stands `at` (a multiple of 16) bytes behind its thread
 * pointer. 0: it can't be told so. */
static inline uint64_t emu_vdso_answer(unsigned int cpu, unsigned int node, pid_t tid,
				       unsigned int at)
{
	if (cpu >> 20 || node >> 12 || tid <= 0 || tid >> 22 || at % 16 || at >> 14)
		return 0;
	return cpu | (uint64_t)node << 20 | (uint64_t)tid << 32 | (uint64_t)(at / 16) << 54;
}

/* /proc/TID/mem and AT_SYSINFO_EHDR of a task. The first stays with the address space it was opened
 * for, through exec, death, and whatever the process does with its rights. */
int emu_vdso_open(pid_t tid);
uint64_t emu_vdso_base(pid_t tid);
/* Does our code lie in the vDSO at `base`? */
bool emu_vdso_has_code(int mem, uint64_t base);
/* With no answer in it yet, and armed. */
bool emu_vdso_put_code(int mem, uint64_t base);
/* False when there is no code. */
bool emu_vdso_disarm(int mem, uint64_t base);
/* The caller knows that the code is there. */
bool emu_vdso_put_slot(int mem, uint64_t base, unsigned int slot,
		       const struct emu_vdso_slot *value);
bool emu_vdso_clear_slot(int mem, uint64_t base, unsigned int slot);
unsigned int emu_vdso_set(const struct emu_vdso *v, uint64_t pointer);

#endif
