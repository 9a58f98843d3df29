/* SPDX-License-Identifier: MIT */
/* handlers.h - the handlers that table.c names, one group per family file. */
#ifndef MC_EMU_HANDLERS_H
#define MC_EMU_HANDLERS_H

#include "emu/emu.h"

/* affinity.c */
int64_t emu_sched_getaffinity(struct emu_call *call);
int64_t emu_sched_setaffinity(struct emu_call *call);
int64_t emu_getcpu(struct emu_call *call);
int64_t emu_sched_setscheduler(struct emu_call *call);
int64_t emu_prctl(struct emu_call *call);
/* open.c */
int64_t emu_open(struct emu_call *call);
int64_t emu_creat(struct emu_call *call);
int64_t emu_openat(struct emu_call *call);
int64_t emu_openat2(struct emu_call *call);
/* stat.c */
int64_t emu_stat(struct emu_call *call);
int64_t emu_lstat(struct emu_call *call);
int64_t emu_newfstatat(struct emu_call *call);
int64_t emu_statx(struct emu_call *call);
int64_t emu_access(struct emu_call *call);
int64_t emu_faccessat(struct emu_call *call);
int64_t emu_faccessat2(struct emu_call *call);
int64_t emu_readlink(struct emu_call *call);
int64_t emu_readlinkat(struct emu_call *call);
int64_t emu_getxattr(struct emu_call *call);
int64_t emu_lgetxattr(struct emu_call *call);
int64_t emu_listxattr(struct emu_call *call);
int64_t emu_llistxattr(struct emu_call *call);
int64_t emu_statfs(struct emu_call *call);
/* thread.c */
int64_t emu_set_tid_address(struct emu_call *call);
int64_t emu_clone(struct emu_call *call);
int64_t emu_clone3(struct emu_call *call);
int64_t emu_exit(struct emu_call *call);
int64_t emu_exit_group(struct emu_call *call);
/* change.c */
int64_t emu_change(struct emu_call *call);
/* folders.c */
int64_t emu_chdir(struct emu_call *call);
int64_t emu_inotify_add_watch(struct emu_call *call);
/* misc.c */
int64_t emu_sysinfo(struct emu_call *call);
int64_t emu_membarrier(struct emu_call *call);
int64_t emu_perf_event_open(struct emu_call *call);
int64_t emu_bpf(struct emu_call *call);
int64_t emu_no_uring(struct emu_call *call);
int64_t emu_no_listener(struct emu_call *call);

#endif
