/* SPDX-License-Identifier: MIT */
/*
 * emu.h - inside `manycore run`: what the supervisor and the system call families (syscalls/)
 * share.
 *
 * A notified call arrives as `struct emu_call`; its handler from table.c answers with the call's
 * result, -errno, or lets the host's kernel run it (EMU_CONTINUE). Several receiver threads run
 * handlers at once: the state of a process and of its tasks is under its lock, which the receiver
 * takes before the handler and drops after it. Answers must be idempotent: a signal may make the
 * kernel raise the same call again. Everything read from the target (memory, paths, sizes) is
 * hostile input.
 *
 * Inheritance. Creations and ends of tasks are not notified (they are too common); a task is
 * *adopted* at its first notified call. Its mask and policy are told by its mark (marks.c); where
 * the host allows none, creations and ends of threads are notified after all (creators.c), and it
 * takes what its creator has now. That goes for what has no mark in any case (ranges): whoever
 * changes inheritable state first calls emu_settle(), which adopts every child that already exists,
 * so that it keeps what was there before; and then emu_mark().
 */
#ifndef MC_EMU_H
#define MC_EMU_H

#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <manycore/manycore.h>
#include "emu/render/render.h"

/* One numactl option that `run` was given: its short letter ('i' interleave, 'w'
 * weighted-interleave, 'm' membind, 'p' preferred, 'P' preferred-many, 'l' localalloc, 'b'
 * balancing) and its value (NULL for 'l' and 'b'), in order of the command line. */
struct emu_policy_option {
	char letter;
	const char *value;
};

enum { EMU_VIEW_AUTO, EMU_VIEW_NAMESPACE, EMU_VIEW_CALLS };

struct emu_options {
	struct mc_topology *topo;
	unsigned int seed;
	bool strict, verbose, rseq_real;
	bool first_touch_faults; /* --first-touch=faults: no page-fault events */
	const char *trace;      /* NULL: off; "-": stderr; else a file */
	int view;               /* EMU_VIEW_* */
	struct mc_cpumask *cpus; /* first task's mask (--physcpubind, --cpunodebind); NULL: all */
	const struct emu_policy_option *policy; /* memory policy options, nr_policy of them */
	unsigned int nr_policy;
};

struct emu;
struct emu_policy;      /* a memory policy: syscalls/mempolicy.c */
struct emu_mm;          /* an address space: its range policies and placements */

/* A thread of the tree. */
struct emu_task {
	struct emu_task *hash_next, *next;      /* tid table; process's list */
	pid_t tid;
	struct emu_process *process;
	struct mc_cpumask *allowed;     /* as cpus_mask of the kernel, nr_cpu_ids bits; effective = allowed & online */
	struct mc_cpumask *asked;       /* what sched_setaffinity last gave, NULL: never (hot-plug restores it) */
	unsigned int cpu;               /* the emulated CPU it is on; one of the effective ones */
	bool narrowed;                  /* the real affinity was changed at least once */
	bool told;                      /* its CPU stood in the process's table of answers: copies of it may */
	bool borrowed;                  /* it is on its creator's CPU until it begins an image of its own */
	uint64_t pointer;               /* its thread pointer in that table, 0: never seen */
	uint64_t slack; /* its timer slack as it set it itself, 0: it did not; marks.c */
	uint64_t inode, begun, seen; /* threads.c: what tells it from others of its tid; when, ns */
	bool unmarked;               /* its mark does not tell its state now */
	unsigned int image;          /* of marks.c's states only: of their process */
	struct emu_policy *policy;      /* NULL: default */
};

/* A thread group. Lock: everything of it and of its tasks. */
struct emu_process {
	struct emu_process *hash_next;
	pid_t tgid;
	unsigned int refs;              /* under the table's lock */
	_Atomic bool dead;
	pthread_mutex_t lock;
	struct emu_task *tasks;
	unsigned int nr_tasks, looked_at; /* now, and when those that ended were last forgotten */
	bool owns;         /* marks of its tasks tell whose ranges their children inherit */
	uid_t uid;         /* then: whose it was */
	unsigned int image; /* how many it has begun */
	pid_t sharer;      /* a child that was in this memory, 0: none was seen */
	struct emu_mm *mm;
	struct emu_clone *clones;       /* notified thread creations whose thread has not been seen yet */
	int pidfd;                      /* -1: none could be had */
	uint64_t started;               /* then: its start time, to tell it from a later one of that tgid */
	uint64_t vdso;                  /* where its patched vDSO lies, 0: none */
	struct emu_answers *answers;    /* answers.c; NULL: none so far */
	bool own_memory;                /* known to be no other process's too */
	bool no_answers;                /* not any more until the next image */
};

struct emu_call {
	struct emu *emu;
	struct emu_task *task;          /* the caller; NULL as long as another process is locked */
	struct emu_process *home;       /* the caller's */
	struct emu_process *locked;     /* the process that is locked now: the caller's, but see emu_task_find() */
	uint64_t id, received;          /* the notification's number; when it came, CLOCK_MONOTONIC ns */
	pid_t caller;                   /* its tid */
	int nr;
	uint64_t arg[6];
	uint64_t ip;
	bool linked, crossed, up;       /* its path: through a link, from outside of /sys or /proc, with ".." */
	bool slash, dots;               /* its path ends in "/"; in "." or ".." */
	bool foreign;                   /* of another word size: nr and arg are not ours to read */
	bool sent;                      /* the answer went out already (a descriptor was handed over) */
	char note[160];                 /* for --trace: what was asked, filled when emu_tracing() */
};

#define EMU_CONTINUE INT64_MIN

/* Copy from or to the caller's memory: 0, -EFAULT, or -ENOENT when the call is gone (a signal,
 * death): give up then. */
int emu_read(struct emu_call *call, void *to, uint64_t from, size_t len);
int emu_write(struct emu_call *call, uint64_t to, const void *from, size_t len);
/* A NUL-terminated string of at most size - 1 bytes; its length, -EFAULT, -ENAMETOOLONG, -ENOENT.
 */
int emu_read_string(struct emu_call *call, char *to, uint64_t from, size_t size);
/* Is the call still waiting? Check after anything that named the caller by its tid. */
bool emu_call_valid(struct emu_call *call);

uint64_t emu_now(void); /* CLOCK_MONOTONIC, ns: of calls and of page-fault events */

typedef int64_t (*emu_handler)(struct emu_call *call);

/*
 * One line of table.c: which calls are notified, by whom they are answered, and what
 * docs/syscalls.md says. The filter notifies when arg[test_arg] passes `test` against test_value,
 * which is exact to 64 bits; EMU_ALWAYS: without a test. Several lines of one call: when any
 * passes. `when` limits a line to situations (EMU_WHEN_*), 0: always. A line with fn NULL is
 * answered by the filter itself with -`error`.
 */
enum { EMU_ALWAYS, EMU_IF_BITS /* (arg & test_mask) == test_value */, EMU_IF_NOT, EMU_IF_BELOW, EMU_IF_FROM };
enum {
	EMU_WHEN_LAZY = 1,  /* files of the tree are made on first need: path calls must be seen */
	EMU_WHEN_CALLS = 2, /* the calls view */
	EMU_WHEN_STRICT = 4,
	EMU_WHEN_LOOSE = 8,  /* not --strict */
	EMU_WHEN_RSEQ = 16,  /* not --rseq=real */
	EMU_WHEN_NOTED = 32, /* no marks: creations and ends of threads must be seen */
	EMU_WHEN_MARKED = 64,
};
struct emu_syscall {
	int nr;
	const char *name;
	emu_handler fn;
	const char *what;
	unsigned int when;
	unsigned int test, test_arg;
	uint64_t test_mask, test_value;
	int error;
};
extern const struct emu_syscall emu_table[]; /* ends with name NULL */
void emu_table_print(void); /* docs/syscalls.md */

struct mc_render *emu_render(struct emu *emu);
const struct emu_options *emu_options(const struct emu *emu);
/* The machine as it is now; hot-plug replaces it. The reference lasts as long as the run. */
struct mc_topology *emu_topology(struct emu *emu);
bool emu_tracing(const struct emu *emu);
/* --strict refuses something: a line on the run's standard error (the first hundred). */
void emu_complain(struct emu *emu, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The task of a tid anywhere in the tree (0: the caller), with its process locked *instead of* the
 * caller's when it is another one: the caller's state may not be touched after that. NULL when it
 * is not in the tree (call->locked stays). The receiver drops whichever lock is held.
 */
struct emu_task *emu_task_find(struct emu_call *call, pid_t tid);
/* Adopts what `task` (of the locked process) has created and that has not been seen yet; see
 * "Inheritance" above. NULL: what any task of the locked process has created (before a change of
 * its address space). A read of /proc a task. */
void emu_settle(struct emu_call *call, struct emu_task *task);
/* After a change of the task's mask, policy or slack: what it creates takes it from there
 * (marks.c). prctl of the slack itself. */
void emu_mark(struct emu *emu, struct emu_task *task);
int64_t emu_mark_set_slack(struct emu_call *call, uint64_t slack);
int64_t emu_mark_tell_slack(struct emu_call *call);
/* threads.c. Has the process more than one thread? Makes all of them known, or one: NULL when it is
 * not there. Where creations are notified nothing is to be done. */
bool emu_threads_many(const struct emu *emu, const struct emu_process *process);
void emu_threads_adopt(struct emu *emu, struct emu_process *process);
struct emu_task *emu_thread_adopt(struct emu *emu, struct emu_process *process, pid_t tid);
/* rights.c. May the caller act on `tid` as the kernel's check_same_owner() or CAP_SYS_NICE would
 * allow? Has it a capability over the whole machine? May it look into the process:
 * ptrace_may_access(), by its real ids or by those of file systems? Does it own the machine's
 * files? */
bool emu_may_schedule(struct emu_call *call, pid_t tid);
bool emu_capable(struct emu_call *call, unsigned int cap);
bool emu_may_look(struct emu_call *call, pid_t target, bool by_real_ids);
bool emu_is_owner(struct emu_call *call);

/* What can't be answered as the machine would: returns -err. Under --strict also told on standard
 * error, once a kind: what was refused, to whom, and why. */
enum emu_refusal {
	EMU_REFUSED_URING,
	EMU_REFUSED_PERF,
	EMU_REFUSED_BPF,
	EMU_REFUSED_MEMBARRIER,
	EMU_REFUSED_CPUSET,
	EMU_REFUSED_LISTENER,
	EMU_REFUSED_WORD_SIZE,
	EMU_REFUSED_CHDIR,
};
int64_t emu_refuse(struct emu_call *call, enum emu_refusal kind, int err);

/* Hands `fd` to the caller as the answer of its call (O_CLOEXEC from flags), closes it here;
 * returns the result. */
int64_t emu_answer_fd(struct emu_call *call, int fd, int flags);

/* Calls fn for each process that can be had at once, with it locked: for figures of the whole
 * machine, from within a handler or outside of one. */
void emu_each_process_now(struct emu *emu,
			  void (*fn)(struct emu *emu, struct emu_process *process));

/*
 * What the memory policy family (syscalls/mempolicy*.c) gives the core. All are called with the
 * process locked; `creator` belongs to another process for the first task of a child process (both
 * locked).
 */
void emu_policy_task_new(struct emu *emu, struct emu_task *task, const struct emu_task *creator);
void emu_policy_task_gone(struct emu *emu, struct emu_task *task);
/* A child process: a copy of its parent's ranges (parent NULL: the first process), which has ended
 * (`alive` false) or not. */
void emu_mm_new(struct emu *emu, struct emu_process *process, const struct emu_process *parent,
		bool alive);
/* A new image (seen at set_tid_address or when its memory changed): ranges are gone, the task
 * policy stays. */
void emu_mm_exec(struct emu *emu, struct emu_process *process);
void emu_mm_gone(struct emu *emu, struct emu_process *process);
/* Has it ranges or pages that its children inherit? */
bool emu_mm_asked(const struct emu_process *process);
/* Before the task's mask or CPU changes (first-touch attribution). */
void emu_policy_moving(struct emu *emu, struct emu_task *task);
/* Checks options->policy against the machine, before anything is started. */
int emu_policy_check(const struct emu_options *options, struct mc_error *error);
/* A task ends; threads begin to be made. */
void emu_policy_ending(struct emu *emu, struct emu_task *task);
/* Must the end of each of its threads be told, of those that were never seen too? */
bool emu_policy_watches(struct emu *emu, const struct emu_process *process);
void emu_policy_threads(struct emu *emu, struct emu_process *process);
/* Can it be told who touched a page, of threads that have ended unseen too? */
bool emu_policy_sees(struct emu *emu);
/* How first touch is told apart on this host, and why not better; for --verbose. */
void emu_policy_tier(struct emu *emu, char *text, size_t size);
/* Applies options->policy to the first task, before its program runs. */
int emu_policy_start(struct emu *emu, struct emu_task *first, struct mc_error *error);
/* `run` without a machine option: applies the options to this process itself, on the real machine.
 */
int emu_policy_real(const struct emu_policy_option *policy, unsigned int nr,
		    struct mc_error *error);
/* Live values for the renderer (struct mc_render_live), filled before the renderer is made; its arg
 * is `emu`. */
void emu_policy_live(struct emu *emu, struct mc_render_live *live);
/* Text of /proc/TGID/numa_maps of a process of the tree from the host's: 0, or -errno to show the
 * host's. Locked. */
int emu_policy_numa_maps(struct emu *emu, struct emu_task *task, struct mc_text *out);

/* What was written to /sys/kernel/mm/mempolicy/weighted_interleave/nodeN: 0 or -EINVAL. */
int emu_policy_set_weight(struct emu *emu, unsigned int node, const char *text, size_t len);

/* Private to the family, one pointer a run: its own state. */
void **emu_policy_state(struct emu *emu);

/* Runs argv on the emulated machine; the exit status of `manycore run` (125, 126, 127 or the
 * command's). Dies by the command's signal when that died by one. */
int emu_run(const struct emu_options *options, char **argv);

/* proctext.c: a short file of /proc, its path by printf, as text: the length, or -errno. What
 * follows the name in the text of a `stat`: the name may hold anything. A number of
 * /proc/TID/status such as "Tgid:", or -1. */
ssize_t emu_proc_read(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
const char *emu_proc_stat(const char *text);
long emu_proc_field(pid_t tid, const char *field);
/* After an attempt to get a descriptor, to be made again when true: there was none left (EMFILE,
 * ENFILE), which passes, and an answer for want of one would be wrong. Gives in after 10 s in which
 * nobody got any, and before emu_proc_wait(), when nobody has any to give back; errno is kept. */
bool emu_proc_again(bool got);
void emu_proc_wait(void);
/* What a link of /proc (or a descriptor, path "" and AT_EMPTY_PATH) leads to, as far as is known
 * without asking the file system: one that a program of the tree serves may never answer. */
bool emu_proc_leads(int at, const char *path, unsigned int mask, struct statx *to);
/* The process of a thread and the parent of that, by one look; -1: there is none. */
long emu_proc_family(pid_t tid, long *ppid);

#endif
