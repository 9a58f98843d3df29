/* SPDX-License-Identifier: MIT */
/*
 * internal.h - the run core's own state, shared by its files only (the call families see emu.h).
 *
 * Processes: waiter (foreground job, mirrors the command) -> supervisor (this struct; answers
 * calls) -> command's tree. Lock order: a process's lock, marks.lock, then table_lock; tree_lock
 * and files_lock are leaves.
 */
#ifndef MC_EMU_INTERNAL_H
#define MC_EMU_INTERNAL_H

#include <stdatomic.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "emu/emu.h"

#define EMU_HASH 4096
#define EMU_CLONERS 8

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

struct emu_dir; /* view/fuse.c: the child mounts, the supervisor serves. -errno when it can't be had. */
int emu_fuse_mount(const char *where);
int emu_fuse_start(struct emu *emu, int fd);
void emu_fuse_stale(struct emu *emu);

/* view/tree.c */
struct emu_file; /* procfiles.c */
struct emu_fuse; /* view/fuse.c */

struct emu_namespace {
	uint64_t dev, ino; /* zeroes: not known, and like no other */
};

struct emu {
	const struct emu_options *opt;
	_Atomic(struct mc_topology *) topo;
	struct mc_render *render;
	struct mc_render_live live;
	int view;               /* what was chosen: EMU_VIEW_NAMESPACE or EMU_VIEW_CALLS */
	bool lazy;              /* the tree is filled on first need */
	struct emu_fuse *fuse;  /* the namespace view by questions (view/fuse.c): there is no tree */
	bool in_userns;         /* not real root: the view needs a user namespace */
	unsigned int mounted;   /* a bit for each of emu_roots that the namespace view covers */
	char why[256];          /* why the namespace view was not taken */
	pid_t supervisor, first;
	struct emu_namespace userns; /* the command's: capabilities in it count on this machine */
	int listener, waiter;   /* seccomp listener; socket to the waiter */
	bool killable;          /* of the answered calls' callers, only death ends the wait (Linux 5.19) */
	int epoll;
	int trace_fd;
	int complain_fd;        /* standard error with --strict, else -1 */
	_Atomic unsigned int complaints;
	_Atomic unsigned int refused;   /* a bit for each EMU_REFUSED_* that was told */
	_Atomic unsigned int spread;    /* tasks placed so far */
	_Atomic bool answers_told;      /* some process has, or had, a table of answers */
	_Atomic unsigned int holds;     /* reasons why nobody may have one now */
	_Atomic unsigned int nr_answers;
	unsigned int max_answers;
	unsigned int nr_real;
	unsigned int *real;     /* host CPUs this run may use */
	size_t real_bytes;
	void *policy_state;

	/* Descriptors held for processes and open files are kept to parts of the limit, so that
	 * what is opened while answering never lacks one. */
	unsigned int max_watched, max_files;
	unsigned int max_held;        /* what is held for long has a number below this */
	unsigned int nr_watched;        /* under table_lock, as: */
	unsigned int nr_unwatched;      /* processes without a pidfd: looked for once a second */

	pthread_mutex_t table_lock;
	struct emu_task *task_hash[EMU_HASH];
	struct emu_process *process_hash[EMU_HASH];
	struct emu_crew {
		pthread_mutex_t lock; /* a leaf */
		pthread_cond_t call;
		_Atomic unsigned int waiting; /* receivers that wait for a notification */
		_Atomic unsigned int streak;  /* quick answers since the last slow one */
		unsigned int parked, called;
		_Atomic unsigned int taken;
		unsigned int looked, more; /* the refresher's */
	} crew;
	_Atomic pid_t cloners[EMU_CLONERS]; /* processes that made threads lately */
	bool marked; /* marks can be had: creations and ends of threads are not notified */
	struct emu_marks *marks; /* then, once the command is known */
	uint64_t soon;           /* ns; no tid is dealt anew sooner */

	int tree;               /* root folder of the rendered tree, -1: none yet */
	int tree_apart;         /* the same as a mount that leads nowhere else, -1: can't be had */
	char tree_path[96];     /* where the calls view has it */
	pthread_mutex_t tree_lock;
	struct emu_dir *dirs[1024];
	unsigned int generation;

	pthread_mutex_t files_lock;
	struct emu_file *files;
	unsigned int nr_files;

	pthread_mutex_t drain_lock; /* one applies at a time; before any process's lock */
	pthread_mutex_t plug_lock;
	struct emu_plug *plugs;
	_Atomic unsigned int nr_plugs;
};

/* What goes between waiter, supervisor and child (SOCK_SEQPACKET, one struct a message). */
enum emu_msg_kind {
	EMU_MSG_FAIL,   /* status: exit code; text: what failed */
	EMU_MSG_ROOT,   /* child: the namespace view stands; carries the tree's root folder */
	EMU_MSG_FUSE,   /* child: a file system that asks; carries its device */
	EMU_MSG_NOVIEW, /* child: the namespace view can't be had: text */
	EMU_MSG_LISTENER, /* child: carries the listener */
	EMU_MSG_GO,
	EMU_MSG_PID,    /* supervisor: the command's pid in `status` */
	EMU_MSG_STOPPED,/* status: the stop signal */
	EMU_MSG_EXIT,   /* status: as of waitpid; more: processes are left */
};
struct emu_msg {
	int kind, status, more;
	struct emu_namespace userns; /* with the listener */
	char text[512];
};
int emu_msg_send(int sock, const struct emu_msg *msg, int fd);
/* 1, 0 at the other end's end, -errno. *fd -1 when none came along. */
int emu_msg_recv(int sock, struct emu_msg *msg, int *fd);

/* Limits that are the command's and must not hit the supervisor. */
enum { EMU_LIMITS = 5 };
extern const int emu_limits[EMU_LIMITS];

/* waiter.c, supervisor.c, child.c: the three roles. */
struct emu_start {
	char **argv;
	sigset_t mask;          /* the caller's signal mask, for the command */
	bool ignores_chld;      /* the caller had SIGCHLD ignored */
	pid_t group;            /* the job's process group */
	pid_t guard;            /* the supervisor's parent */
	struct rlimit limits[EMU_LIMITS]; /* the caller's, for the command: emu_limits[] */
};
int emu_waiter(pid_t guard, int sock, const char *tree_path);
_Noreturn void emu_supervisor(struct emu *emu, const struct emu_start *start, int sock);
_Noreturn void emu_child(struct emu *emu, const struct emu_start *start, int sock);
/* Killing must work when descriptors have run out: holds back what it needs. Once, in each role
 * that kills. */
void emu_kill_reserve(void);
void emu_kill_descendants(pid_t root);

/* folder.c: the calls view's private folder. */
int emu_tree_make_private(struct emu *emu, struct mc_error *error);
void emu_remove_tree(const char *path);
void emu_folder_empty(int dir); /* closes it */
/* Removes, beside this path, what runs of this user that were killed as a whole left: a few. */
void emu_folder_sweep(const char *tree_path);

/* filter.c */
bool emu_line_active(const struct emu *emu, const struct emu_syscall *line);
bool emu_line_passes(const struct emu_syscall *line, const uint64_t *arg);
/* Loads the filter for this thread; the listener or -errno with the step in *step. */
bool emu_filter_busy(void); /* a listener is above this process already */
int emu_filter_load(struct emu *emu, const char **step);

/* notify.c */
int emu_notify_start(struct emu *emu);
/* What this receiver does now may take a while: another one must wait for calls meanwhile. */
void emu_crew_more(struct emu *emu);
void emu_crew_look(struct emu *emu); /* once a second */
void emu_trace(struct emu *emu, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* tasks.c */
void emu_tasks_init(struct emu *emu);
/* The task, adopted when it is new, its process locked and referenced; NULL when it is not in the
 * tree. */
struct emu_task *emu_task_get(struct emu *emu, pid_t tid);
void emu_process_hold(struct emu *emu, struct emu_process *process);
void emu_process_put(struct emu *emu, struct emu_process *process);
struct emu_task *emu_task_first(struct emu *emu, pid_t pid);
void emu_task_exit(struct emu *emu, struct emu_task *task);
void emu_process_exec(struct emu *emu, struct emu_task *task);
void emu_process_gone(struct emu *emu, pid_t tgid);
/* Adopts all children that may have a copy of a table of answers. No process is locked. */
void emu_settle_told(struct emu *emu);
/* Finds the ends of processes for which no descriptor could be held. */
void emu_processes_look(struct emu *emu);
/* Calls fn for each process with it locked. */
void emu_each_process(struct emu *emu, void (*fn)(struct emu *emu, struct emu_process *process));
extern _Thread_local struct emu_call *emu_call_here; /* what this receiver is at */
bool emu_task_known(struct emu *emu, pid_t tid);
/* Is the thread that was known still there, and no other one of its tid? */
bool emu_thread_there(const struct emu *emu, struct emu_task *task);
void emu_thread_forget(struct emu *emu, struct emu_task *task); /* it is not */
/* Forgets all that are not; but for the caller's nobody may hold a task of the process. */
void emu_threads_forget(struct emu *emu, struct emu_process *process);

/* creators.c, without marks only. Notes who makes a thread. */
int emu_clone_note(struct emu_call *call, uint64_t flags, uint64_t parent_tid);
/* Would all tasks of the (locked) process hand on the same? */
bool emu_tasks_alike(const struct emu_process *process);
/* The end of a thread that never made another notified call, in a process whose tasks are all
 * alike: nothing is to be kept of it. False: it must be adopted, to end as others do. */
bool emu_thread_unseen_exit(struct emu *emu, pid_t tid);

/* marks.c: can marks be set on tasks such as this one? From its state on they are. */
bool emu_marks_possible(pid_t tid);
int emu_marks_begin(struct emu *emu, const struct emu_task *first);
/* The (locked) process has ranges now that its children may inherit: its marks name it. */
void emu_marks_own(struct emu *emu, struct emu_process *process);
/* Such a process has ended. Once a second: forgets what nobody has any more. */
void emu_marks_ended(struct emu *emu);
void emu_marks_clean(struct emu *emu);
/* Calls fn for each state that may be inherited. */
void emu_marks_replug(struct emu *emu, void (*fn)(struct emu *emu, struct emu_task *like));

/* cpus.c */
int emu_cpus_init(struct emu *emu, struct mc_error *error);
void emu_task_place(struct emu *emu, struct emu_task *task); /* keeps the CPU when it may */
void emu_task_bind(struct emu *emu, struct emu_task *task);  /* the real affinity */
void emu_effective(struct emu *emu, const struct emu_task *task, struct mc_cpumask *out);
int emu_set_online(struct emu *emu, unsigned int cpu, bool online);

/* hotplug.c: files of the machine that programs write to. */
#define EMU_STORE_MAX 4096 /* one write's bytes; sysfs takes a page */
struct emu_plug;
bool emu_plug_is(const char *path);
int emu_plug_open(struct emu_call *call, const char *path); /* a descriptor to hand out, or -errno */
/* The write itself: 0 or the kernel's -errno. `text` ends with NUL. By no receiver: takes the locks
 * of processes. */
int emu_plug_write(struct emu *emu, const char *path, const char *text, size_t len);
void emu_plug_drain(struct emu *emu);

/* stat.c: is the caller real root, who may do anything with files? */
bool emu_is_root(struct emu_call *call);

/* view/namespace.c: run by the child. 0 with the tree's root folder in *root (-1 with a file system
 * that asks, which the supervisor serves from within the call), or -errno with *step. */
int emu_view_namespace(struct emu *emu, int sock, int *root, const char **step);
extern const char *const emu_roots[]; /* the folders that the views show */
bool emu_in_roots(const char *path);
bool emu_path_mounted(struct emu *emu, const char *path);

/* view/tree.c */
int emu_tree_prepare(struct emu *emu, struct mc_error *error);  /* before the command runs */
/* Makes what is needed to reach `path` (absolute, clean, owned). 0 or -errno as of walking it. */
int emu_tree_ensure(struct emu *emu, const char *path);
/* Is a file that the machine has missing for want of something? Then the host would say that there
 * is none, and must not be asked. */
bool emu_tree_unmade(int rc);
/* Does the file's content move by itself? Then its opens are answered with emu_file_open(). */
bool emu_tree_moves(const char *path);
int emu_tree_lstat(struct emu *emu, const char *path, struct stat *st); /* 0 or -errno */
void emu_tree_stale(struct emu *emu); /* after hot-plug */

/* view/path.c */
void emu_path_clean(char *path);
enum emu_where { EMU_PATH_OTHER, EMU_PATH_TREE, EMU_PATH_FILE, EMU_PATH_PROC };
#define EMU_PATH_MAX 4096
/* Where the caller's (dirfd, path) leads: EMU_PATH_*, or -errno for a path of the rendered machine
 * that can't be walked. `out` (EMU_PATH_MAX) gets the clean absolute path with the machine's links
 * followed (the last one only if `follow`). EMU_PATH_OTHER also when the path can't be read. */
int emu_path_find(struct emu_call *call, int dirfd, uint64_t path, bool follow, char *out);

/* procfiles.c */
int emu_proc_open(struct emu_call *call, const char *path, int flags, int *fd);
int emu_file_open(struct emu *emu, const char *path, int *fd);
void emu_files_refresh(struct emu *emu);

/* vdso.c: at set_tid_address. Forgets the old image and patches the vDSO; false, and nothing is
 * done, when it is patched already: the child of a fork has the image of its creator. */
bool emu_vdso_new_image(struct emu_call *call);

/* answers.c: getcpu without a call. */
/* What the caller of getcpu was told may be told again, until: */
void emu_answers_tell(struct emu_call *call, unsigned int cpu, unsigned int node);
void emu_answers_forget(struct emu *emu, struct emu_task *task); /* it moves, or ends */
/* No more in this image. */
void emu_answers_stop(struct emu *emu, struct emu_process *process);
/* The caller makes a thread that has this thread pointer (if CLONE_SETTLS). */
void emu_answers_thread(struct emu_call *call, uint64_t flags, uint64_t pointer);
/* At its adoption; creator NULL: not known. */
void emu_answers_child(struct emu *emu, struct emu_process *process, struct emu_process *creator);
void emu_answers_free(struct emu *emu, struct emu_process *process);
/* Nobody is told anything without a call from now on, until emu->holds is taken back. No process is
 * locked; by a handler: the caller's is unlocked for a while, use call->task no more. */
void emu_answers_pause(struct emu *emu);
void emu_answers_hold(struct emu_call *call);

#endif
