/* SPDX-License-Identifier: MIT */
/*
 * emu.h - inside `manycore run`: what the supervisor and the system call families (syscalls/) share.
 *
 * A notified call arrives as `struct emu_call`; its handler from table.c answers with the call's result, -errno, or lets
 * the host's kernel run it (EMU_CONTINUE). Handlers may run on several receiver threads at once: state of a process is
 * under its lock, which the receiver takes before the handler and drops after it. Answers must be idempotent: a signal
 * may make the kernel raise the same call again.
 * Everything read from the target (memory, paths, sizes) is hostile input.
 */
#ifndef MC_EMU_H
#define MC_EMU_H

#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <manycore/manycore.h>
#include "emu/render/render.h"

struct emu_options {
	struct mc_topology *topo;
	unsigned int seed;
	bool strict, verbose, rseq_real;
	const char *trace;      /* NULL: off; "-": stderr; else a file */
	int view;               /* EMU_VIEW_* */
};
enum { EMU_VIEW_AUTO, EMU_VIEW_NAMESPACE, EMU_VIEW_CALLS };

struct emu;
struct emu_policy;      /* a memory policy: syscalls/mempolicy.c */
struct emu_mm;          /* an address space: its range policies and placements */

/* A thread of the tree. */
struct emu_task {
	pid_t tid;
	struct emu_process *process;
	struct mc_cpumask *allowed;     /* what it asked for, nr_cpu_ids bits; effective = allowed & online */
	unsigned int cpu;               /* the emulated CPU it is on; one of the effective ones */
	struct emu_policy *policy;      /* NULL: default */
};

/* A thread group. Lock: everything of it and of its tasks. */
struct emu_process {
	pid_t tgid;
	pthread_mutex_t lock;
	struct emu_mm *mm;
	int memfd;                      /* /proc/TGID/mem, kept open */
};

struct emu_call {
	struct emu *emu;
	struct emu_task *task;
	uint64_t id;
	int nr;
	uint64_t arg[6];
};

#define EMU_CONTINUE INT64_MIN

/* Copy from or to the caller's memory: 0, -EFAULT, or -ENOENT when the call is gone (a signal, death): give up then. */
int emu_read(struct emu_call *call, void *to, uint64_t from, size_t len);
int emu_write(struct emu_call *call, uint64_t to, const void *from, size_t len);
/* A NUL-terminated string of at most size - 1 bytes; its length, -EFAULT, -ENAMETOOLONG, -ENOENT. */
int emu_read_string(struct emu_call *call, char *to, uint64_t from, size_t size);

typedef int64_t (*emu_handler)(struct emu_call *call);

/* One line of table.c: which calls are notified, by whom they are answered, and what docs/syscalls.md says. */
struct emu_syscall {
	int nr;
	const char *name;
	emu_handler fn;
	const char *what;
};
extern const struct emu_syscall emu_table[];

struct mc_render *emu_render(struct emu *emu);
const struct emu_options *emu_options(const struct emu *emu);
/* The task of a tid anywhere in the tree, with its process locked; NULL when there is none. */
struct emu_task *emu_task_find(struct emu *emu, pid_t tid);

/* Runs argv on the emulated machine; the exit status of `manycore run` (125, 126, 127 or the command's). */
int emu_run(const struct emu_options *options, char **argv);

#endif
