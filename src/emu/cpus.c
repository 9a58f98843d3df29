// SPDX-License-Identifier: MIT
/*
 * cpus.c - which emulated CPU a task is on, and where it really runs.
 *
 * A task is on one of its effective CPUs (allowed and online) and stays there until its mask, or
 * the set of online CPUs, no longer has it. Tasks are dealt over their CPUs in the order in which
 * they are first seen, in steps of about 0.62 of the width so that neighbours land far apart;
 * --seed turns the wheel. The real affinity is the image of the emulated mask: emulated CPU e runs
 * on the e-th (modulo their number) of the host CPUs this run may use.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/internal.h"
#include "os/os.h"

#define BITS_PER_LONG (8 * (unsigned int)sizeof(long))

static int read_real(struct emu *emu)
{
	/* The host's own width is not known: try until the kernel takes it. */
	for (size_t bytes = 128; bytes <= 1 << 17; bytes *= 2) {
		unsigned long *mask = calloc(1, bytes);
		int rc;

		if (!mask)
			return -ENOMEM;
		rc = (int)syscall(SYS_sched_getaffinity, 0, bytes, mask);
		if (rc > 0) {
			emu->real_bytes = (size_t)rc;
			emu->real = calloc((size_t)rc * 8, sizeof(*emu->real));
			for (unsigned int i = 0; emu->real && i < (unsigned int)rc * 8; i++)
				if (mask[i / BITS_PER_LONG] >> (i % BITS_PER_LONG) & 1)
					emu->real[emu->nr_real++] = i;
		}
		free(mask);
		if (rc > 0)
			return emu->real ? 0 : -ENOMEM;
		if (errno != EINVAL)
			break;
	}
	return -errno;
}

int emu_cpus_init(struct emu *emu, struct mc_error *error)
{
	int rc = read_real(emu);

	if (rc < 0) {
		error->err = -rc;
		snprintf(error->text, sizeof(error->text), "reading this host's CPUs: sched_getaffinity: %s",
			 strerror(-rc));
	}
	return rc;
}

void emu_effective(struct emu *emu, const struct emu_task *task, struct mc_cpumask *out)
{
	const struct mc_cpumask *online = mc_topology_online(emu_topology(emu));

	if (!mc_cpumask_and(out, task->allowed, online))
		mc_cpumask_copy(out, online);
}

/* A step coprime to n, near 0.618 n. */
static unsigned int step_of(unsigned int n)
{
	unsigned int step = (unsigned int)((uint64_t)n * 618 / 1000);

	for (step = step ? step : 1; step > 1; step--) {
		unsigned int a = n, b = step;

		while (b) {
			unsigned int r = a % b;

			a = b;
			b = r;
		}
		if (a == 1)
			break;
	}
	return step;
}

void emu_task_place(struct emu *emu, struct emu_task *task)
{
	struct mc_cpumask *eff = mc_cpumask_alloc_bits(task->allowed->nbits);
	unsigned int n, k;

	if (!eff)
		return;
	emu_effective(emu, task, eff);
	if (task->cpu >= eff->nbits || !mc_cpumask_test(eff, task->cpu)) {
		emu_answers_forget(emu, task);
		n = mc_cpumask_weight(eff);
		k = atomic_fetch_add(&emu->spread, 1) + emu->opt->seed;
		task->cpu = mc_cpumask_nth((unsigned int)((uint64_t)(k % n) * step_of(n) % n), eff);
	}
	mc_cpumask_free(eff);
}

void emu_task_bind(struct emu *emu, struct emu_task *task)
{
	struct mc_cpumask *eff = mc_cpumask_alloc_bits(task->allowed->nbits);
	unsigned long *real = calloc(1, emu->real_bytes);
	unsigned int cpu, have = 0;

	if (eff && real) {
		emu_effective(emu, task, eff);
		mc_for_each_cpu(cpu, eff) {
			unsigned int to = emu->real[cpu % emu->nr_real];
			unsigned long bit = 1UL << (to % BITS_PER_LONG);

			if (real[to / BITS_PER_LONG] & bit)
				continue;
			real[to / BITS_PER_LONG] |= bit;
			if (++have == emu->nr_real)
				break;
		}
		if (have < emu->nr_real || task->narrowed) {
			syscall(SYS_sched_setaffinity, task->tid, emu->real_bytes, real);
			task->narrowed = true;
		}
	}
	mc_cpumask_free(eff);
	free(real);
}

/* The kernel's rules for a task none of whose CPUs is left: all possible ones, until what it asked
 * for is back (6.2+). */
static void replug_state(struct emu *emu, struct emu_task *task)
{
	const struct mc_topology *topo = emu_topology(emu);

	if (task->asked && mc_cpumask_intersects(task->asked, mc_topology_online(topo)))
		mc_cpumask_copy(task->allowed, task->asked);
	else if (!mc_cpumask_intersects(task->allowed, mc_topology_online(topo)))
		mc_cpumask_copy(task->allowed, mc_topology_possible(topo));
}

static void replug(struct emu *emu, struct emu_process *process)
{
	for (struct emu_task *task = process->tasks; task; task = task->next) {
		emu_policy_moving(emu, task);
		replug_state(emu, task);
		emu_task_place(emu, task);
		if (!emu_thread_there(emu, task))
			continue;
		emu_task_bind(emu, task);
		emu_mark(emu, task);
	}
}

/* 0, or as the kernel: -EINVAL for a CPU that is not present, -EBUSY for the last one. */
int emu_set_online(struct emu *emu, unsigned int cpu, bool online)
{
	const struct mc_topology *old = emu_topology(emu);
	struct mc_topology *topo = NULL;
	struct mc_cpumask *mask;
	int rc = 0;

	if (cpu >= mc_topology_nr_cpu_ids(old) || !mc_cpumask_test(mc_topology_present(old), cpu))
		return -EINVAL;
	if (mc_cpumask_test(mc_topology_online(old), cpu) == online)
		return 0;
	mask = mc_cpumask_dup(mc_topology_online(old));
	if (!mask)
		return -ENOMEM;
	if (online)
		mc_cpumask_set(mask, cpu);
	else
		mc_cpumask_clear(mask, cpu);
	if (mc_cpumask_empty(mask))
		rc = -EBUSY;
	if (!rc)
		rc = mc_topology_set_online(old, mask, &topo);
	mc_cpumask_free(mask);
	if (rc < 0)
		return rc;
	/* The old machine stays: other receivers may be reading it. Hot-plug is rare. */
	mc_render_set_topology(emu->render, topo);
	atomic_store_explicit(&emu->topo, topo, memory_order_release);
	emu_tree_stale(emu);
	emu_answers_pause(emu);
	emu_marks_replug(emu, replug_state);
	emu_each_process(emu, replug);
	atomic_fetch_sub(&emu->holds, 1);
	return 0;
}
