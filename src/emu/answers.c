// SPDX-License-Identifier: MIT
/*
 * answers.c - getcpu told once and then answered within the process: which threads' CPUs stand in
 * the table that the code in the patched vDSO looks in (vdso.c).
 *
 * A slot is found by thread pointer, and holds for one tid: threads end unseen. It is filled when
 * a thread's call is answered, and cleared, before the answer, by whatever moves the thread to
 * another CPU. What is in memory is never more than what `pointer` here tells, so that a slot
 * which others have cleared does no harm. The process's memory is written only, after a look
 * whether the code is still there; what it did to the table is its own loss.
 *
 * - fork copies the table unseen. The child is on its creator's CPU then (tasks.c), until its own
 *   exec; the copy is disarmed when the child is adopted, before it can have a thread more.
 * - A child in its creator's memory (vfork) has its creator's thread pointer and reads its slot
 *   until it is adopted. From then on it makes calls: only who owns the memory has a table, and
 *   none while the child is there. Other ways to share memory with another process that a filter
 *   can see are notified, and end all tables of the run (emu_answers_hold).
 * - Threads that have several thread pointers end the process's table, and those that share one
 *   where it is seen (clone without CLONE_SETTLS; all where creations are notified). So does who
 *   becomes undumpable: its children's copies could not be written to (its own can: `mem`).
 * - As long as a cpuN/online is open for writing there are none: what is written is applied at
 *   answered calls (hotplug.c).
 *
 * All with the process locked.
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "emu/vdso.h"

#ifdef __x86_64__

struct emu_answers {
	int mem;                        /* /proc/PID/mem of this image */
	unsigned int next;              /* the way that a full set gives up */
	uint64_t pointer[VDSO_SLOTS];
};

void emu_answers_free(struct emu *emu, struct emu_process *process)
{
	if (!process->answers)
		return;
	close(process->answers->mem);
	free(process->answers);
	process->answers = NULL;
	atomic_fetch_sub(&emu->nr_answers, 1);
}

/* Where the kernel says that the vDSO lies now: a process may have moved it. */
static uint64_t find_moved(pid_t tgid)
{
	char path[64], line[512];
	unsigned long long at = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", tgid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " [vdso]\n") && sscanf(line, "%llx-", &at) == 1)
			break;
	if (f)
		fclose(f);
	return at;
}

static bool follow(struct emu_process *process)
{
	uint64_t base;

	if (emu_vdso_has_code(process->answers->mem, process->vdso))
		return true;
	base = find_moved(process->tgid);
	if (!base || !emu_vdso_has_code(process->answers->mem, base))
		return false;
	process->vdso = base;
	return true;
}

static void disarm(struct emu *emu, struct emu_process *process)
{
	(void)emu;
	if (process->answers && follow(process))
		emu_vdso_disarm(process->answers->mem, process->vdso);
}

void emu_answers_stop(struct emu *emu, struct emu_process *process)
{
	disarm(emu, process);
	emu_answers_free(emu, process);
	process->no_answers = true;
}

static int find_slot(const struct emu_answers *a, uint64_t pointer)
{
	unsigned int first = emu_vdso_set(emu_vdso(), pointer) * VDSO_WAYS;

	for (unsigned int i = first; i < first + VDSO_WAYS; i++)
		if (a->pointer[i] == pointer)
			return (int)i;
	return -1;
}

void emu_answers_forget(struct emu *emu, struct emu_task *task)
{
	struct emu_process *process = task->process;
	struct emu_answers *a = process->answers;
	int slot = a && task->pointer ? find_slot(a, task->pointer) : -1;

	if (slot < 0)
		return;
	if (follow(process) && emu_vdso_clear_slot(a->mem, process->vdso, (unsigned int)slot))
		a->pointer[slot] = 0;
	else
		emu_answers_stop(emu, process);
}

static bool may_share(const struct emu_process *process)
{
	long rc = syscall(SYS_kcmp, process->tgid, process->sharer, KCMP_VM, 0, 0);

	return !rc || (rc < 0 && errno != ESRCH);
}

/* The first call, or the first one after the table was disarmed. */
static void arm(struct emu_call *call)
{
	struct emu *emu = call->emu;
	struct emu_process *process = call->task->process;
	struct emu_answers *a = process->answers;

	if (process->sharer && may_share(process))
		return;
	process->sharer = 0;
	if (!a) {
		if (atomic_load(&emu->nr_answers) >= emu->max_answers)
			return;
		a = calloc(1, sizeof(*a));
		if (!a)
			return;
		a->mem = emu_vdso_open(call->caller);
		if (a->mem < 0 || a->mem >= (int)emu->max_held || !emu_call_valid(call)) {
			if (a->mem >= 0)
				close(a->mem);
			free(a);
			return;
		}
		process->answers = a;
		atomic_fetch_add(&emu->nr_answers, 1);
	}
	memset(a->pointer, 0, sizeof(a->pointer));
	atomic_store(&emu->answers_told, true);
	if (!emu_vdso_put_code(a->mem, process->vdso))
		emu_answers_stop(emu, process);
}

/* Each thread has a pointer of its own, and keeps it. */
static bool take_pointer(const struct emu *emu, struct emu_task *task, uint64_t pointer)
{
	if (task->pointer)
		return task->pointer == pointer;
	for (struct emu_task *t = task->process->tasks; t; t = t->next) {
		if (t->pointer != pointer)
			continue;
		if (emu_thread_there(emu, t))
			return false;
		t->pointer = 0;
	}
	task->pointer = pointer;
	return true;
}

/* The caller's tid as it sees it: of its own pid namespace. */
static pid_t inner_tid(const struct emu_call *call)
{
	char text[4096], *at, *end;

	if (emu_proc_read(text, sizeof(text), "/proc/%d/status", call->caller) < 0)
		return 0;
	at = strstr(text, "\nNSpid:");
	end = at ? strchr(at + 1, '\n') : NULL;
	if (!end)
		return 0;
	*end = '\0';
	at = strrchr(at, '\t');
	return at ? (pid_t)atoi(at + 1) : 0;
}

/*
 * Threads end without a notification, and what a stack had, the next thread gets: slots hold for
 * one tid, which is looked up where the C library has it, and the kernel writes it: struct
 * pthread of glibc (nptl/descr.h; nptl_db has the offset, the same in all versions) and of musl
 * (src/internal/pthread_impl.h). Without it (no C library's thread pointer) there is no slot.
 */
static uint64_t find_tid(struct emu_call *call, uint64_t pointer, unsigned int cpu,
			 unsigned int node)
{
	static const unsigned int places[] = {0x2d0, 0x30};
	uint64_t self = 0;
	pid_t there, tid = call->caller;

	if (emu_read(call, &self, pointer, sizeof(self)) || self != pointer)
		return 0;
	for (int round = 0; round < 2; round++, tid = inner_tid(call))
		for (int i = 0; i < 2; i++)
			if (!emu_read(call, &there, pointer + places[i], sizeof(there)) &&
			    there == tid && there > 0)
				return emu_vdso_answer(cpu, node, tid, places[i]);
	return 0;
}

static unsigned int choose_slot(struct emu_answers *a, uint64_t pointer)
{
	unsigned int first = emu_vdso_set(emu_vdso(), pointer) * VDSO_WAYS;
	int slot = find_slot(a, pointer);

	if (slot >= 0)
		return (unsigned int)slot;
	for (unsigned int i = first; i < first + VDSO_WAYS; i++)
		if (!a->pointer[i])
			return i;
	return first + a->next++ % VDSO_WAYS;
}

void emu_answers_tell(struct emu_call *call, unsigned int cpu, unsigned int node)
{
	const struct emu_vdso *v = emu_vdso();
	struct emu_task *task = call->task;
	struct emu_process *process = task->process;
	struct emu_vdso_slot value = {call->arg[2], 0};
	unsigned int slot;

	if (!v->code || !process->vdso || !process->own_memory || process->no_answers ||
	    atomic_load(&call->emu->holds))
		return;
	if (call->ip == process->vdso + v->entry_ip ||
	    (call->ip == process->vdso + v->code_ip && !process->answers)) {
		arm(call);
		return;
	}
	if (call->ip != process->vdso + v->code_ip || !value.pointer)
		return;
	value.answer = find_tid(call, value.pointer, cpu, node);
	if (!value.answer)
		return;
	if (!take_pointer(call->emu, task, value.pointer)) {
		emu_answers_stop(call->emu, process);
		return;
	}
	slot = choose_slot(process->answers, value.pointer);
	process->answers->pointer[slot] = value.pointer;
	if (!task->told) {
		task->told = true;
		emu_mark(call->emu, task);
	}
	if (!emu_vdso_put_slot(process->answers->mem, process->vdso, slot, &value))
		emu_answers_stop(call->emu, process);
}

void emu_answers_thread(struct emu_call *call, uint64_t flags, uint64_t pointer)
{
	struct emu_process *process = call->task->process;
	bool shared = !(flags & CLONE_SETTLS);

	if (!process->own_memory || process->no_answers)
		return;
	for (const struct emu_task *t = process->tasks; t && !shared; t = t->next)
		shared = t->pointer && t->pointer == pointer;
	if (shared)
		emu_answers_stop(call->emu, process);
}

/* A child in its creator's memory reads the creator's answers: no more of them as long as it is
 * there. */
static void note_sharer(const struct emu_process *process, struct emu_process *creator)
{
	if (!creator || process->own_memory)
		return;
	/* One is remembered. */
	creator->no_answers |= creator->sharer && may_share(creator);
	creator->sharer = process->tgid;
}

/* A new process: has it its memory for itself? Its copy of a table must not tell anybody else than
 * the thread that was copied. */
void emu_answers_child(struct emu *emu, struct emu_process *process, struct emu_process *creator)
{
	uint64_t base;
	int mem;

	process->own_memory = creator && syscall(SYS_kcmp, process->tgid, creator->tgid, KCMP_VM, 0,
						 0) > 0;
	note_sharer(process, creator);
	if (!atomic_load(&emu->answers_told))
		return;
	mem = emu_vdso_open(process->tgid);
	base = mem >= 0 ? emu_vdso_base(process->tgid) : 0;
	if (base && !emu_vdso_disarm(mem, base)) {
		base = find_moved(process->tgid);
		if (base)
			emu_vdso_disarm(mem, base);
	}
	if (mem >= 0)
		close(mem);
}

void emu_answers_pause(struct emu *emu)
{
	atomic_fetch_add(&emu->holds, 1);
	if (!atomic_load(&emu->answers_told))
		return;
	/* In this order: who forks from now on copies a table that is disarmed. */
	emu_each_process(emu, disarm);
	emu_settle_told(emu);
}

void emu_answers_hold(struct emu_call *call)
{
	emu_crew_more(call->emu);
	/* No two processes are ever locked at once. */
	pthread_mutex_unlock(&call->locked->lock);
	emu_answers_pause(call->emu);
	pthread_mutex_lock(&call->locked->lock);
}

#else

void emu_answers_stop(struct emu *emu, struct emu_process *process)
{
	(void)emu;
	(void)process;
}

void emu_answers_free(struct emu *emu, struct emu_process *process)
{
	(void)emu;
	(void)process;
}

void emu_answers_forget(struct emu *emu, struct emu_task *task)
{
	(void)emu;
	(void)task;
}

void emu_answers_tell(struct emu_call *call, unsigned int cpu, unsigned int node)
{
	(void)call;
	(void)cpu;
	(void)node;
}

void emu_answers_thread(struct emu_call *call, uint64_t flags, uint64_t pointer)
{
	(void)call;
	(void)flags;
	(void)pointer;
}

void emu_answers_child(struct emu *emu, struct emu_process *process, struct emu_process *creator)
{
	(void)emu;
	(void)process;
	(void)creator;
}

void emu_answers_pause(struct emu *emu)
{
	atomic_fetch_add(&emu->holds, 1);
}

void emu_answers_hold(struct emu_call *call)
{
	atomic_fetch_add(&call->emu->holds, 1);
}

#endif
