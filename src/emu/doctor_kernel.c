// SPDX-License-Identifier: MIT
/*
 * doctor_kernel.c - probes of what the kernel offers to the library and to the accuracy of
 * `manycore run`: pidfds, restartable sequences and concurrency ids, membarrier, performance
 * events, memory policies.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/doctor.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
/* Bytes of struct rseq that reach past a field: node_id and mm_cid came with Linux 6.3. */
enum { RSEQ_WITH_MM_CID = 28 };

/* glibc 2.35 and later registers rseq itself and tells so here; weak: other C libraries don't have
 * it. */
extern const unsigned int __rseq_size __attribute__((weak));

void doctor_pidfd(struct doctor_result *r)
{
	long fd = syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0) {
		close((int)fd);
		doctor_value(r, "available");
		doctor_meaning(
			r, "processes can be watched and ended without confusing them with others");
		return;
	}
	r->state = DOCTOR_BAD;
	doctor_value(r, "%s", strerror(errno));
	doctor_meaning(r, "the parts of 'manycore run' can't watch each other: it can't work here");
	doctor_remedy(
		r, "Linux 5.3 or later; in a container: allow pidfd_open in its seccomp profile");
}

void doctor_rseq(struct doctor_result *r)
{
	/* The probe of the system call: a bad length is EINVAL where rseq is, ENOSYS where it
	 * isn't. */
	long rc = syscall(SYS_rseq, NULL, 0, 0, 0);
	int err = rc < 0 ? errno : 0;

	if (err == ENOSYS || err == EPERM) {
		r->state = DOCTOR_LIMITED;
		doctor_value(r, "%s", strerror(err));
		doctor_meaning(r, "per-CPU memory of libmanycore uses atomics, each thread in a "
				  "slot it keeps");
		doctor_remedy(
			r,
			"Linux 4.18 or later with CONFIG_RSEQ; inside 'manycore run': --rseq=real");
		return;
	}
	if (!&__rseq_size || __rseq_size == 0) {
		r->state = DOCTOR_LIMITED;
		doctor_value(r, "kernel yes, C library no");
		doctor_meaning(r, "the C library registers no restartable sequences: per-CPU "
				  "memory uses atomics");
		doctor_remedy(r,
			      "glibc 2.35 or later, without GLIBC_TUNABLES=glibc.pthread.rseq=0");
		return;
	}
	doctor_value(r, "registered by the C library");
	doctor_meaning(r, "per-CPU memory of libmanycore needs no atomic operations");
}

void doctor_mm_cid(struct doctor_result *r)
{
	unsigned long size = getauxval(AT_RSEQ_FEATURE_SIZE);

	doctor_value(r, "rseq feature size %lu", size);
	if (size >= RSEQ_WITH_MM_CID) {
		doctor_meaning(r, "per-CPU memory takes as many copies as threads run at once, not "
				  "as the machine has CPUs");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_meaning(
		r,
		"per-CPU memory is indexed by CPU numbers: a copy for each CPU that was ever used");
	doctor_remedy(r, "Linux 6.3 or later with CONFIG_SCHED_MM_CID");
}

void doctor_membarrier(struct doctor_result *r)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	if (commands >= 0 &&
	    commands & (1 << 7)) { /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, Linux 5.10 */
		doctor_value(r, "rseq fence available");
		doctor_meaning(r, "per-CPU copies no longer in use can be given back");
		return;
	}
	r->state = DOCTOR_LIMITED;
	if (commands < 0)
		doctor_value(r, "%s", strerror(errno));
	else
		doctor_value(r, "commands 0x%lx", (unsigned long)commands);
	doctor_meaning(r, "trimming per-CPU memory is refused: copies once used stay");
	doctor_remedy(r, "Linux 5.10 or later with CONFIG_MEMBARRIER and CONFIG_RSEQ");
}

void doctor_perf(struct doctor_result *r)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_TID,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	long long paranoid = doctor_number("/proc/sys/kernel/perf_event_paranoid", -2);
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int err = errno;

	if (fd >= 0) {
		close((int)fd);
		doctor_value(r, "allowed (perf_event_paranoid %lld)", paranoid);
		doctor_meaning(r, "where pages are first touched is known exactly");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_value(r, "%s (perf_event_paranoid %lld)", strerror(err), paranoid);
	doctor_meaning(r, "first touch is counted per thread, not seen: placement of local pages "
			  "is at least 99 %% exact on "
			  "the usual patterns");
	if (paranoid > 2)
		doctor_remedy(r, "sysctl -w kernel.perf_event_paranoid=2");
	else
		doctor_remedy(r, "in a container: allow perf_event_open in its seccomp profile, or "
				 "--cap-add PERFMON");
}

void doctor_mempolicy(struct doctor_result *r)
{
	if (syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) == 0) {
		doctor_value(r, "available");
		doctor_meaning(r,
			       "memory policies of the real machine can be set (mc_mempolicy(3))");
		return;
	}
	r->state = DOCTOR_LIMITED;
	doctor_value(r, "%s", strerror(errno));
	doctor_meaning(
		r,
		"memory policies of the real machine can't be set; those of an emulated one can");
	doctor_remedy(r, errno == ENOSYS ? "a kernel built with CONFIG_NUMA"
					 : "in a container: docker run --cap-add SYS_NICE (or a "
					   "profile that allows mempolicy calls)");
}
