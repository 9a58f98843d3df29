/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - what this host allows `manycore run` and the library: probes, each with its meaning
 * and its remedy.
 *
 * A probe tries the thing itself and never guesses from a version number; what changes the process
 * (filters, namespaces) is tried in a child. Only cmd_doctor.c calls this; nothing is printed here.
 */
#ifndef MC_EMU_DOCTOR_H
#define MC_EMU_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum doctor_state {
	DOCTOR_OK,      /* all that is wanted of it */
	DOCTOR_LIMITED, /* works with less: meaning says what is lost */
	DOCTOR_BAD,     /* missing */
};

struct doctor_result {
	enum doctor_state state;
	char value[96];    /* what was found: a number, an error, a version */
	char meaning[240]; /* what follows for the user */
	char remedy[320];  /* what to do; empty when there is nothing to */
};

struct doctor_check {
	const char *name;
	bool required; /* `manycore run` can't work when this is DOCTOR_BAD */
	void (*probe)(struct doctor_result *result);
};
extern const struct doctor_check doctor_checks[]; /* ends with name NULL */

/* Fills one part of a result; the state is the caller's to set. */
void doctor_value(struct doctor_result *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_meaning(struct doctor_result *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_remedy(struct doctor_result *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Runs fn in a child and waits for it, 10 seconds at most. Returns what fn returned (0 to 254 as a
 * rule: 0 or an errno value), 255 when the child died or took longer. fn must not print.
 */
int doctor_in_child(int (*fn)(void *arg), void *arg);

/* First line of a small file without its newline; false when it can't be read. */
bool doctor_line(const char *path, char *line, size_t size);
/* The number in a file, or `otherwise`. */
long long doctor_number(const char *path, long long otherwise);

/* doctor_seccomp.c */
void doctor_seccomp_filter(struct doctor_result *r);
void doctor_seccomp_notify(struct doctor_result *r);
void doctor_seccomp_listener(struct doctor_result *r);
void doctor_seccomp_killable(struct doctor_result *r);
void doctor_seccomp_addfd(struct doctor_result *r);
/* doctor_ns.c */
void doctor_user_namespace(struct doctor_result *r);
void doctor_mounts(struct doctor_result *r);
void doctor_fuse(struct doctor_result *r);
void doctor_process_memory(struct doctor_result *r);
void doctor_vdso(struct doctor_result *r);
void doctor_timer_slack(struct doctor_result *r);
/* doctor_kernel.c */
void doctor_pidfd(struct doctor_result *r);
void doctor_rseq(struct doctor_result *r);
void doctor_mm_cid(struct doctor_result *r);
void doctor_membarrier(struct doctor_result *r);
void doctor_perf(struct doctor_result *r);
void doctor_mempolicy(struct doctor_result *r);
/* doctor_limits.c */
void doctor_hugepages(struct doctor_result *r);
void doctor_thp(struct doctor_result *r);
void doctor_io_uring(struct doctor_result *r);
void doctor_apparmor(struct doctor_result *r);
void doctor_cgroup(struct doctor_result *r);
void doctor_rlimits(struct doctor_result *r);

#endif
