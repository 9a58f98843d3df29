// SPDX-License-Identifier: MIT
/*
 * table.c - every call that the emulator sees, with the condition under which it does, and the sentence that
 * docs/syscalls.md shows. filter.c and notify.c work from it. Conditions on flags keep common calls unseen.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include "emu/syscalls/handlers.h"

#define CALL(n, ...)                          \
	{                                     \
		.nr = SYS_##n, .name = #n, __VA_ARGS__ \
	}
#define EMPTY_PATH 0x1000

const struct emu_syscall emu_table[] = {
	CALL(sched_getaffinity, .fn = emu_sched_getaffinity,
	     .what = "the task's emulated mask without offline CPUs; sizes and errors are the kernel's"),
	CALL(sched_setaffinity, .fn = emu_sched_setaffinity,
	     .what = "sets the emulated mask; the real affinity is its image on the host's CPUs"),
	CALL(getcpu, .fn = emu_getcpu,
	     .what = "the emulated CPU of the thread and its node (libc's getcpu too: the vDSO is patched)"),
	CALL(rseq, .when = EMU_WHEN_RSEQ, .error = ENOSYS,
	     .what = "refused, so that C libraries ask getcpu; --rseq=real leaves it (it tells the host's CPU)"),
	CALL(sysinfo, .fn = emu_sysinfo, .what = "memory of the machine; uptime, loads and processes of the host"),
	CALL(membarrier, .fn = emu_membarrier, .test_arg = 1, .test_mask = 1, .test_value = 1,
	     .what = "with MEMBARRIER_CMD_FLAG_CPU: EINVAL, as on kernels before 5.10; else the host's"),
	CALL(perf_event_open, .fn = emu_perf_event_open,
	     .what = "on a named CPU: ENODEV when it is not online, else EOPNOTSUPP; on any CPU the host's"),
	CALL(bpf, .fn = emu_bpf, .what = "per-CPU maps: EOPNOTSUPP; else the host's"),
#ifdef SYS_open
	CALL(open, .fn = emu_open, .test_arg = 1, .test_mask = O_NOCTTY, .when = EMU_WHEN_LOOSE,
	     .what = "files of the machine (sysfs, /proc, cgroup); opens with O_NOCTTY only under --strict"),
	CALL(open, .fn = emu_open, .when = EMU_WHEN_STRICT, .what = "all opens"),
#endif
	CALL(openat, .fn = emu_openat, .test_arg = 2, .test_mask = O_NOCTTY, .when = EMU_WHEN_LOOSE,
	     .what = "as open"),
	CALL(openat, .fn = emu_openat, .when = EMU_WHEN_STRICT, .what = "all opens"),
	CALL(openat2, .fn = emu_openat2, .what = "as open; RESOLVE_BENEATH and RESOLVE_IN_ROOT are the host's"),
#ifdef SYS_stat
	CALL(stat, .fn = emu_stat, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(lstat, .fn = emu_lstat, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(access, .fn = emu_access, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(readlink, .fn = emu_readlink, .when = EMU_WHEN_LAZY, .what = "links of the machine"),
#endif
	CALL(newfstatat, .fn = emu_newfstatat, .when = EMU_WHEN_LAZY, .test_arg = 3, .test_mask = EMPTY_PATH,
	     .what = "files of the machine by path; by descriptor the host's"),
	CALL(statx, .fn = emu_statx, .when = EMU_WHEN_LAZY, .test_arg = 2, .test_mask = EMPTY_PATH,
	     .what = "files of the machine by path; by descriptor the host's"),
	CALL(faccessat, .fn = emu_faccessat, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(faccessat2, .fn = emu_faccessat2, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(readlinkat, .fn = emu_readlinkat, .when = EMU_WHEN_LAZY, .what = "links of the machine"),
	CALL(set_tid_address, .fn = emu_set_tid_address,
	     .what = "the host's; tells that a new image begins, whose vDSO is then patched"),
	CALL(clone, .fn = emu_clone, .test_arg = 0, .test_mask = CLONE_THREAD, .test_value = CLONE_THREAD,
	     .what = "the host's; of a thread: its creator is noted, for what it inherits"),
	CALL(clone3, .fn = emu_clone3, .what = "the host's; of a thread: its creator is noted"),
	CALL(exit, .fn = emu_exit, .what = "the host's; the thread is forgotten"),
	CALL(exit_group, .fn = emu_exit_group, .what = "the host's; what children inherited is kept"),
	CALL(io_uring_setup, .fn = emu_unsupported, .when = EMU_WHEN_STRICT,
	     .what = "--strict: ENOSYS, since its opens can't be answered; else the host's"),
	{ .name = NULL },
};
