// SPDX-License-Identifier: MIT
/*
 * misc.c - sysinfo, answered from the machine's memory, and calls that name a CPU by number which
 * the host would take for one of its own: refused with an error that the kernel itself may give
 * (docs/syscalls.md).
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

/* Bytes of a "Name:   123 kB" line. */
static uint64_t field(const struct mc_text *text, const char *name, uint64_t otherwise)
{
	const char *p = text->len ? strstr(text->data, name) : NULL;

	return p ? strtoull(p + strlen(name), NULL, 10) * 1024 : otherwise;
}

int64_t emu_sysinfo(struct emu_call *call)
{
	struct mc_text text = { 0 };
	struct sysinfo info;
	uint64_t total = mc_topology_mem_total(emu_topology(call->emu)), unit;

	if (sysinfo(&info) < 0)
		return -errno;
	unit = info.mem_unit ? info.mem_unit : 1;
	if (!mc_render_read(call->emu->render, "/proc/meminfo", &text))
		mc_text_add(&text, "", 1);
	if (text.failed)
		text.len = 0;
	info.totalram = field(&text, "MemTotal:", total) / unit;
	info.freeram = field(&text, "MemFree:", total / 2) / unit;
	info.bufferram = field(&text, "Buffers:", 0) / unit;
	info.sharedram = field(&text, "Shmem:", 0) / unit;
	mc_text_free(&text);
	return emu_write(call, call->arg[0], &info, sizeof(info));
}

/* membarrier on one CPU: kernels before 5.10 do not have it either. */
int64_t emu_membarrier(struct emu_call *call)
{
	return call->arg[1] ? emu_refuse(call, EMU_REFUSED_MEMBARRIER, EINVAL) : EMU_CONTINUE;
}

int64_t emu_perf_event_open(struct emu_call *call)
{
	int cpu = (int)call->arg[2];

	if (cpu < 0)
		return EMU_CONTINUE;
	if ((unsigned int)cpu >= mc_topology_nr_cpu_ids(emu_topology(call->emu)) ||
	    !mc_cpumask_test(mc_topology_online(emu_topology(call->emu)), (unsigned int)cpu))
		return -ENODEV;
	return emu_refuse(call, EMU_REFUSED_PERF, EOPNOTSUPP);
}

int64_t emu_bpf(struct emu_call *call)
{
	uint32_t type;

	if (call->arg[0] != BPF_MAP_CREATE || emu_read(call, &type, call->arg[1], sizeof(type)))
		return EMU_CONTINUE;
	switch (type) {
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
	case BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE:
		return emu_refuse(call, EMU_REFUSED_BPF, EOPNOTSUPP); /* their values are sized by the host's CPUs */
	default:
		return EMU_CONTINUE;
	}
}

/* The copies of its answers that its children will have could not be written to. */
int64_t emu_prctl(struct emu_call *call)
{
	if ((uint32_t)call->arg[0] == PR_SET_TIMERSLACK)
		return emu_mark_set_slack(call, call->arg[1]);
	if ((uint32_t)call->arg[0] == PR_GET_TIMERSLACK)
		return emu_mark_tell_slack(call);
	if (call->arg[1] != 1)
		emu_answers_stop(call->emu, call->task->process);
	return EMU_CONTINUE;
}

/* Only under --strict: what can't be answered as the machine would fails. */
int64_t emu_no_uring(struct emu_call *call)
{
	return emu_refuse(call, EMU_REFUSED_URING, ENOSYS);
}

/* The kernel would refuse it as well: there is one above the caller. */
int64_t emu_no_listener(struct emu_call *call)
{
	return call->arg[0] == 1 /* SECCOMP_SET_MODE_FILTER */ ?
		       emu_refuse(call, EMU_REFUSED_LISTENER, EBUSY) :
		       EMU_CONTINUE;
}
