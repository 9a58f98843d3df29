/* SPDX-License-Identifier: MIT */
/* mempolicy_calls.h - the handlers of the memory policy family, for table.c. */
#ifndef MC_SYSCALLS_MEMPOLICY_CALLS_H
#define MC_SYSCALLS_MEMPOLICY_CALLS_H

#include "emu/emu.h"

int64_t emu_set_mempolicy(struct emu_call *call);
int64_t emu_get_mempolicy(struct emu_call *call);
int64_t emu_mbind(struct emu_call *call);
int64_t emu_set_home_node(struct emu_call *call);
int64_t emu_move_pages(struct emu_call *call);
int64_t emu_migrate_pages(struct emu_call *call);

/* The host makes these; what is known of the range follows. */
int64_t emu_munmap(struct emu_call *call);
int64_t emu_mmap_fixed(struct emu_call *call);
int64_t emu_madvise(struct emu_call *call);
int64_t emu_mremap(struct emu_call *call);
int64_t emu_brk(struct emu_call *call);
int64_t emu_shmdt(struct emu_call *call);
int64_t emu_fallocate(struct emu_call *call);
int64_t emu_ftruncate(struct emu_call *call);

#endif
