// SPDX-License-Identifier: MIT
/*
 * table.c - every call that the emulator sees, with the condition under which it does, and the
 * sentence that docs/syscalls.md shows. filter.c and notify.c work from it. Conditions on flags
 * keep common calls unseen.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "emu/syscalls/handlers.h"
#include "emu/syscalls/mempolicy_calls.h"

#define CALL(n, ...)                          \
	{                                     \
		.nr = SYS_##n, .name = #n, __VA_ARGS__ \
	}
#define EMPTY_PATH 0x1000

/*
 * Compilers look for headers with opens whose flags are O_NOCTTY alone, nine tenths of all opens of
 * a build: they pass. But GNU grep opens just so too: its paths are arguments, on the main stack,
 * or relative to a folder's descriptor, and those of a compiler are on its heap. The lowest place
 * of arguments: below the top of the address space by the kernel's largest stack offset (16 GiB)
 * and 8 MiB; mappings lie lower still.
 */
#if defined(__x86_64__)
#define STACK_FLOOR 0x7ffbff800000
#elif defined(__aarch64__)
#define STACK_FLOOR 0xfffbff800000
#else
#define STACK_FLOOR 0
#endif
#define OPEN_WHAT \
	"files of the machine (sysfs, /proc, cgroup); not seen, but under --strict: opens with " \
	"O_NOCTTY alone of a path on the heap"
#define FIXED_ANON (MAP_FIXED | MAP_ANONYMOUS)
#define NOREPLACE 0x100000

/* munmap, mremap, madvise of (address, length): addresses below where the kernel puts what it
 * chooses itself, and lengths from 16 MiB. All others are found out from /proc/PID/maps and pagemap
 * when that matters, since answering them would slow every program. (arm64: the lower half of its
 * smallest address space, 39 bits.) */
#if defined(__aarch64__)
#define OWN_ADDRESSES (1ULL << 38)
#else
#define OWN_ADDRESSES (1ULL << 46)
#endif
#define CHANGES_MAPPINGS(n, ...)                                                           \
	CALL(n, .when = EMU_WHEN_LOOSE, .test = EMU_IF_BELOW, .test_arg = 0,               \
	     .test_value = OWN_ADDRESSES, __VA_ARGS__),                                    \
		CALL(n, .when = EMU_WHEN_LOOSE, .test = EMU_IF_FROM, .test_arg = 1,        \
		     .test_value = 16 << 20, __VA_ARGS__),                                 \
		CALL(n, .when = EMU_WHEN_STRICT, __VA_ARGS__)

#define SHARERS (CLONE_VM | CLONE_VFORK | CLONE_THREAD)
#define SIBLINGS (CLONE_VM | CLONE_PARENT)

/* What changes names and attributes of files. */
#define CHANGES(n)                                        \
	CALL(n, .fn = emu_change, .when = EMU_WHEN_CALLS, \
	     .what = "files of the machine: refused with the errors of sysfs")

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif

const struct emu_syscall emu_table[] = {
	CALL(sched_getaffinity, .fn = emu_sched_getaffinity,
	     .what = "the task's emulated mask without offline CPUs; sizes and errors are the kernel's"),
	CALL(sched_setaffinity, .fn = emu_sched_setaffinity,
	     .what = "sets the emulated mask; the real affinity is its image on the host's CPUs"),
	CALL(getcpu, .fn = emu_getcpu,
	     .what = "the emulated CPU of the thread and its node (libc's getcpu too: the vDSO is patched, "
		     "and repetitions are no calls)"),
	CALL(rseq, .when = EMU_WHEN_RSEQ, .error = ENOSYS,
	     .what = "refused, so that C libraries ask getcpu; --rseq=real leaves it (it tells the host's CPU)"),
	CALL(sysinfo, .fn = emu_sysinfo,
	     .what = "memory of the machine; uptime, loads and processes of the host"),
	CALL(membarrier, .fn = emu_membarrier, .test = EMU_IF_BITS, .test_arg = 1, .test_mask = 1,
	     .test_value = 1,
	     .what = "with MEMBARRIER_CMD_FLAG_CPU: EINVAL, as on kernels before 5.10; else the host's"),
	CALL(perf_event_open, .fn = emu_perf_event_open,
	     .what = "on a named CPU: ENODEV when it is not online, else EOPNOTSUPP; on any CPU the host's"),
	CALL(bpf, .fn = emu_bpf, .what = "per-CPU maps: EOPNOTSUPP; else the host's"),
#ifdef SYS_open
	CALL(open, .fn = emu_open, .test = EMU_IF_NOT, .test_arg = 1, .test_value = O_NOCTTY,
	     .when = EMU_WHEN_LOOSE, .what = OPEN_WHAT),
	CALL(open, .fn = emu_open, .test = EMU_IF_FROM, .test_arg = 0, .test_value = STACK_FLOOR,
	     .when = EMU_WHEN_LOOSE,
	     .what = "the same of a path that lies on the main stack (an argument)"),
	CALL(open, .fn = emu_open, .when = EMU_WHEN_STRICT, .what = "all opens"),
#endif
#ifdef SYS_creat
	CALL(creat, .fn = emu_creat, .what = "as open"),
#endif
	CALL(openat, .fn = emu_openat, .test = EMU_IF_NOT, .test_arg = 2, .test_value = O_NOCTTY,
	     .when = EMU_WHEN_LOOSE, .what = OPEN_WHAT),
	CALL(openat, .fn = emu_openat, .test = EMU_IF_FROM, .test_arg = 1,
	     .test_value = STACK_FLOOR, .when = EMU_WHEN_LOOSE,
	     .what = "the same of a path that lies on the main stack (an argument)"),
	CALL(openat, .fn = emu_openat, .test = EMU_IF_BELOW, .test_arg = 0,
	     .test_value = 0x80000000, .when = EMU_WHEN_LOOSE,
	     .what = "the same relative to a folder's descriptor"),
	CALL(openat, .fn = emu_openat, .when = EMU_WHEN_STRICT, .what = "all opens"),
	CALL(openat2, .fn = emu_openat2,
	     .what = "as open; RESOLVE_BENEATH and RESOLVE_IN_ROOT are the host's"),
#ifdef SYS_stat
	CALL(stat, .fn = emu_stat, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(lstat, .fn = emu_lstat, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(access, .fn = emu_access, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(readlink, .fn = emu_readlink, .when = EMU_WHEN_LAZY, .what = "links of the machine"),
#endif
	CALL(newfstatat, .fn = emu_newfstatat, .when = EMU_WHEN_LAZY, .test = EMU_IF_BITS,
	     .test_arg = 3, .test_mask = EMPTY_PATH,
	     .what = "files of the machine by path; by descriptor the host's"),
	CALL(statx, .fn = emu_statx, .when = EMU_WHEN_LAZY, .test = EMU_IF_BITS, .test_arg = 2,
	     .test_mask = EMPTY_PATH,
	     .what = "files of the machine by path; by descriptor the host's"),
	CALL(faccessat, .fn = emu_faccessat, .when = EMU_WHEN_LAZY, .what = "files of the machine"),
	CALL(faccessat2, .fn = emu_faccessat2, .when = EMU_WHEN_LAZY,
	     .what = "files of the machine"),
	CALL(readlinkat, .fn = emu_readlinkat, .when = EMU_WHEN_LAZY,
	     .what = "links of the machine"),
	CALL(getxattr, .fn = emu_getxattr, .when = EMU_WHEN_LAZY,
	     .what = "files of the machine have none"),
	CALL(lgetxattr, .fn = emu_lgetxattr, .when = EMU_WHEN_LAZY,
	     .what = "files of the machine have none"),
	CALL(listxattr, .fn = emu_listxattr, .when = EMU_WHEN_LAZY,
	     .what = "files of the machine have none"),
	CALL(llistxattr, .fn = emu_llistxattr, .when = EMU_WHEN_LAZY,
	     .what = "files of the machine have none"),
	CALL(statfs, .fn = emu_statfs, .when = EMU_WHEN_CALLS,
	     .what = "files of the machine: sysfs"),
#ifdef SYS_unlink
	CHANGES(unlink),
	CHANGES(rmdir),
	CHANGES(mkdir),
	CHANGES(mknod),
	CHANGES(symlink),
	CHANGES(link),
	CHANGES(rename),
	CHANGES(chmod),
	CHANGES(chown),
	CHANGES(lchown),
	CHANGES(utime),
	CHANGES(utimes),
	CHANGES(futimesat),
#endif
#ifdef SYS_renameat
	CHANGES(renameat),
#endif
	CHANGES(unlinkat),
	CHANGES(mkdirat),
	CHANGES(mknodat),
	CHANGES(symlinkat),
	CHANGES(linkat),
	CHANGES(renameat2),
	CHANGES(truncate),
	CHANGES(fchmodat),
	CHANGES(fchmodat2),
	CHANGES(fchownat),
	CHANGES(utimensat),
	CHANGES(setxattr),
	CHANGES(lsetxattr),
	CHANGES(removexattr),
	CHANGES(lremovexattr),
	CALL(chdir, .fn = emu_chdir, .when = EMU_WHEN_CALLS,
	     .what = "folders of the machine: ENOENT where this host has none of that name"),
	CALL(inotify_add_watch, .fn = emu_inotify_add_watch, .when = EMU_WHEN_CALLS,
	     .what = "files of the machine"),
	CALL(set_tid_address, .fn = emu_set_tid_address,
	     .what = "the host's; tells that a new image begins, whose vDSO is then patched"),
	CALL(clone, .fn = emu_clone, .when = EMU_WHEN_NOTED, .test = EMU_IF_BITS, .test_arg = 0,
	     .test_mask = CLONE_THREAD, .test_value = CLONE_THREAD,
	     .what = "the host's; of a thread: its creator is noted, for what it inherits"),
	CALL(clone, .fn = emu_clone, .test = EMU_IF_BITS, .test_arg = 0, .test_mask = SHARERS,
	     .test_value = CLONE_VM,
	     .what = "the host's; of a process in the same memory that is not waited for: getcpu is a "
		     "call from then on"),
	CALL(clone, .fn = emu_clone, .test = EMU_IF_BITS, .test_arg = 0, .test_mask = SIBLINGS,
	     .test_value = SIBLINGS,
	     .what = "the host's; of a sibling in the same memory: as above"),
	CALL(clone, .fn = emu_clone, .when = EMU_WHEN_MARKED, .test = EMU_IF_BITS, .test_arg = 0,
	     .test_mask = CLONE_THREAD | CLONE_SETTLS, .test_value = CLONE_THREAD,
	     .what = "the host's; of a thread with its creator's thread pointer: getcpu is a call from "
		     "then on"),
	CALL(clone3, .fn = emu_clone3, .when = EMU_WHEN_NOTED,
	     .what = "the host's; of a thread: its creator is noted"),
	CALL(prctl, .fn = emu_prctl, .test = EMU_IF_BITS, .test_arg = 0, .test_mask = 0xffffffff,
	     .test_value = PR_SET_DUMPABLE,
	     .what = "PR_SET_DUMPABLE: the host's; with other than 1 getcpu is a call from then on"),
	CALL(prctl, .fn = emu_prctl, .when = EMU_WHEN_MARKED, .test = EMU_IF_BITS, .test_arg = 0,
	     .test_mask = 0xffffffff, .test_value = PR_SET_TIMERSLACK,
	     .what = "PR_SET_TIMERSLACK: set, a few us more at most: it tells masks and policies apart"),
	CALL(prctl, .fn = emu_prctl, .when = EMU_WHEN_MARKED, .test = EMU_IF_BITS, .test_arg = 0,
	     .test_mask = 0xffffffff, .test_value = PR_GET_TIMERSLACK,
	     .what = "PR_GET_TIMERSLACK: what the program has set"),
	CALL(sched_setscheduler, .fn = emu_sched_setscheduler, .when = EMU_WHEN_MARKED,
	     .what = "the host's; the task is marked anew at its next call"),
	CALL(sched_setattr, .fn = emu_sched_setscheduler, .when = EMU_WHEN_MARKED,
	     .what = "the host's; the task is marked anew at its next call"),
	CALL(exit, .fn = emu_exit, .when = EMU_WHEN_NOTED,
	     .what = "the host's; the thread is forgotten"),
	CALL(exit_group, .fn = emu_exit_group, .when = EMU_WHEN_NOTED,
	     .what = "the host's; what children inherited is kept"),
	CALL(io_uring_setup, .fn = emu_no_uring, .when = EMU_WHEN_STRICT,
	     .what = "--strict: ENOSYS, since its opens can't be answered; else the host's"),
	CALL(seccomp, .fn = emu_no_listener, .when = EMU_WHEN_STRICT, .test = EMU_IF_BITS,
	     .test_arg = 1, .test_mask = 8, .test_value = 8,
	     .what = "SECCOMP_FILTER_FLAG_NEW_LISTENER: EBUSY, as the kernel has it too"),
	CALL(set_mempolicy, .fn = emu_set_mempolicy,
	     .what = "the thread's policy on the machine's nodes, as Linux 6.12"),
	CALL(get_mempolicy, .fn = emu_get_mempolicy,
	     .what = "policies, allowed nodes, and the node of a page"),
	CALL(mbind, .fn = emu_mbind, .what = "policies of ranges; moving what is there"),
	CALL(set_mempolicy_home_node, .fn = emu_set_home_node,
	     .what = "where BIND and PREFERRED_MANY begin"),
	CALL(move_pages, .fn = emu_move_pages,
	     .what = "where pages are, and moving them, of any process of the machine"),
	CALL(migrate_pages, .fn = emu_migrate_pages,
	     .what = "moves a process's pages between nodes"),
	/* What changes mappings is seen where it is cheap to: at addresses that the kernel does not
	   choose itself, and large; all of it with --strict. */
	CALL(mmap, .fn = emu_mmap_fixed, .test = EMU_IF_BITS, .test_arg = 3,
	     .test_mask = FIXED_ANON, .test_value = FIXED_ANON,
	     .what = "the host's; policies and pages that a fixed mapping covers go"),
	CALL(mmap, .fn = emu_mmap_fixed, .test = EMU_IF_BITS, .test_arg = 3, .test_mask = NOREPLACE,
	     .test_value = NOREPLACE, .what = "the host's; with MAP_FIXED_NOREPLACE: as above"),
	CALL(mmap, .fn = emu_mmap_fixed, .when = EMU_WHEN_STRICT, .test = EMU_IF_BITS,
	     .test_arg = 3, .test_mask = MAP_FIXED, .test_value = MAP_FIXED,
	     .what = "the same for every fixed mapping"),
	CHANGES_MAPPINGS(munmap, .fn = emu_munmap, .what = "the host's; policies and pages go"),
	CHANGES_MAPPINGS(mremap, .fn = emu_mremap,
			 .what = "the host's; policies and pages move along"),
	CHANGES_MAPPINGS(
		madvise, .fn = emu_madvise,
		.what = "the host's; pages that MADV_DONTNEED or MADV_REMOVE give back go"),
	CALL(brk, .fn = emu_brk, .when = EMU_WHEN_STRICT,
	     .what = "the host's; what is behind a lower end goes"),
	CALL(shmdt, .fn = emu_shmdt, .what = "the host's; policies of the range go"),
	CALL(fallocate, .fn = emu_fallocate, .test = EMU_IF_BITS, .test_arg = 1,
	     .test_mask = FALLOC_FL_PUNCH_HOLE, .test_value = FALLOC_FL_PUNCH_HOLE,
	     .what = "the host's; pages of shared memory where a hole is punched go"),
	CALL(ftruncate, .fn = emu_ftruncate, .when = EMU_WHEN_STRICT,
	     .what = "the host's; pages of shared memory behind the new end go"),
	{.name = NULL},
};
