// SPDX-License-Identifier: MIT
/*
 * thread.c - calls that begin and end threads and images; all of them go on in the host's kernel.
 *
 * set_tid_address is the first thing that glibc and musl do in a new image: there the vDSO is
 * patched. Without marks (marks.c) creations of threads are noted (creators.c) and their exits
 * seen; exits settle what was inherited while the creator still can be asked.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "emu/internal.h"
#include "emu/syscalls/handlers.h"

int64_t emu_set_tid_address(struct emu_call *call)
{
	emu_vdso_new_image(call);
	return EMU_CONTINUE;
}

static void threads(struct emu_call *call)
{
	emu_policy_threads(call->emu, call->task->process);
}

/* Threads, and processes in the same memory. The creator of one by vfork waits for it; beside any
 * other, or where the creator is told to be its parent, nobody knows who reads whose answers. */
static void created(struct emu_call *call, uint64_t flags, uint64_t pointer)
{
	const uint64_t vfork = CLONE_VM | CLONE_VFORK;

	if (flags & CLONE_THREAD)
		emu_answers_thread(call, flags, pointer);
	else if ((flags & CLONE_VM) && ((flags & vfork) != vfork || (flags & CLONE_PARENT)))
		emu_answers_hold(call);
}

int64_t emu_clone(struct emu_call *call)
{
	threads(call);
	if (!call->emu->marked)
		emu_clone_note(call, call->arg[0], call->arg[2]);
	created(call, call->arg[0], call->arg[4]); /* x86-64's order; others have no answers */
	return EMU_CONTINUE;
}

int64_t emu_clone3(struct emu_call *call)
{
	/* struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, its size,
	 * tls: what every kernel wants at least. */
	uint64_t args[8];

	threads(call);
	if (call->arg[1] < sizeof(args) || emu_read(call, args, call->arg[0], sizeof(args)))
		return EMU_CONTINUE;
	emu_clone_note(call, args[0], args[3]);
	created(call, args[0], args[7]);
	return EMU_CONTINUE;
}

int64_t emu_exit(struct emu_call *call)
{
	/* What it created takes the same from any other task; but not when they differ, nor when it
	 * may have been told its creator's CPU. */
	if (call->task->told || !emu_tasks_alike(call->task->process))
		emu_settle(call, call->task);
	/* Its faults are lost with it: what it touched is told from what others did as long as it
	 * is there. */
	emu_policy_ending(call->emu, call->task);
	emu_task_exit(call->emu, call->task);
	return EMU_CONTINUE;
}

/* Children that were never seen lose their creator now. Nothing to do while all is as it was at the
 * start. */
int64_t emu_exit_group(struct emu_call *call)
{
	struct emu_task *task = call->task;
	const struct mc_topology *topo = emu_topology(call->emu);

	if (task->policy || task->told || task->process->tasks->next ||
	    !mc_cpumask_equal(task->allowed, mc_topology_possible(topo)))
		emu_settle(call, NULL);
	return EMU_CONTINUE;
}
