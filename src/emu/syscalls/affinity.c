// SPDX-License-Identifier: MIT
/*
 * affinity.c - sched_getaffinity, sched_setaffinity, getcpu, with the kernel's sizes, order of
 * checks and errors (kernel/sched/syscalls.c): the result is the size of a mask, a long mask is cut
 * silently, a short one extended by zeroes; CPUs that are offline are kept in the mask but not
 * told.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

static size_t mask_bytes(struct emu *emu)
{
	return ((size_t)mc_topology_nr_cpu_ids(emu_topology(emu)) + 63) / 64 * 8;
}

/* A process outside the tree is on the host's CPUs; here it may run on any of the machine's. */
static bool exists_outside(pid_t tid)
{
	return tid > 0 && (kill(tid, 0) == 0 || errno == EPERM);
}

int64_t emu_sched_getaffinity(struct emu_call *call)
{
	struct emu *emu = call->emu;
	pid_t tid = (pid_t)call->arg[0];
	uint64_t len = call->arg[1] & 0xffffffff;
	unsigned int nr = mc_topology_nr_cpu_ids(emu_topology(emu));
	size_t bytes = mask_bytes(emu);
	const struct mc_cpumask *online = mc_topology_online(emu_topology(emu));
	struct emu_task *task;
	struct mc_cpumask *mask;
	int rc;

	if (len * 8 < nr || (len & (sizeof(long) - 1)))
		return -EINVAL;
	if (tid < 0)
		return -ESRCH;
	task = emu_task_find(call, tid);
	if (!task && !exists_outside(tid))
		return -ESRCH;
	mask = mc_cpumask_alloc_bits(nr);
	if (!mask)
		return -ENOMEM;
	if (task)
		mc_cpumask_and(mask, task->allowed, online);
	else
		mc_cpumask_copy(mask, online);
	if (len < bytes)
		bytes = len;
	rc = emu_write(call, call->arg[2], mask->word, bytes);
	mc_cpumask_free(mask);
	return rc < 0 ? rc : (int64_t)bytes;
}

static int64_t take_mask(struct emu_call *call, pid_t tid, struct mc_cpumask *mask)
{
	struct emu *emu = call->emu;
	const struct mc_topology *topo = emu_topology(emu);
	struct emu_task *task = emu_task_find(call, tid);
	struct mc_cpumask *asked;

	if (!task) /* a process of the host: its affinity is not ours to change */
		return exists_outside(tid) ? -EPERM : -ESRCH;
	if (!emu_may_schedule(call, tid))
		return -EPERM;
	mc_cpumask_and(mask, mask, mc_topology_possible(topo));
	if (!mc_cpumask_intersects(mask, mc_topology_online(topo)))
		return -EINVAL;
	if (mc_cpumask_equal(mask, task->allowed) && task->asked)
		return 0;
	asked = mc_cpumask_dup(mask);
	if (!asked)
		return -ENOMEM;
	emu_settle(call, task);
	emu_policy_moving(emu, task);
	mc_cpumask_free(task->asked);
	task->asked = asked;
	mc_cpumask_copy(task->allowed, mask);
	emu_task_place(emu, task);
	if (!emu_thread_there(emu, task)) /* all this may have taken a while */
		return -ESRCH;
	emu_task_bind(emu, task);
	emu_mark(emu, task);
	return 0;
}

int64_t emu_sched_setaffinity(struct emu_call *call)
{
	pid_t tid = (pid_t)call->arg[0];
	uint64_t len = call->arg[1] & 0xffffffff;
	size_t bytes = mask_bytes(call->emu);
	struct mc_cpumask *mask =
		mc_cpumask_alloc_bits(mc_topology_nr_cpu_ids(emu_topology(call->emu)));
	int64_t result;
	unsigned int tail;

	if (!mask)
		return -ENOMEM;
	result = emu_read(call, mask->word, call->arg[2], len < bytes ? len : bytes);
	tail = mask->nbits % 64;
	if (tail)
		mask->word[mask->nbits / 64] &= (1ULL << tail) - 1;
	if (!result && emu_tracing(call->emu)) {
		char list[100];

		mc_cpulist_snprint(list, sizeof(list), mask);
		snprintf(call->note, sizeof(call->note), "%d, %llu, %.90s", tid,
			 (unsigned long long)len, list);
	}
	if (!result)
		result = tid < 0 ? -ESRCH : take_mask(call, tid, mask);
	mc_cpumask_free(mask);
	return result;
}

/* The kernel takes the mark from realtime tasks, and gives an old one to who does not stay so. */
int64_t emu_sched_setscheduler(struct emu_call *call)
{
	struct emu_task *task = emu_task_find(call, (pid_t)call->arg[0]);

	if (task)
		task->unmarked = true;
	return EMU_CONTINUE;
}

int64_t emu_getcpu(struct emu_call *call)
{
	const struct mc_topology *topo = emu_topology(call->emu);
	const struct mc_cpu *place = mc_topology_cpu(topo, call->task->cpu);
	unsigned int cpu = call->task->cpu;
	unsigned int node = place && place->node < mc_topology_nr_node_ids(topo) ? place->node : 0;
	int rc = 0;

	if (call->arg[0])
		rc = emu_write(call, call->arg[0], &cpu, sizeof(cpu));
	if (!rc && call->arg[1])
		rc = emu_write(call, call->arg[1], &node, sizeof(node));
	if (!rc)
		emu_answers_tell(call, cpu, node);
	return rc;
}
