// SPDX-License-Identifier: MIT
/*
 * mempolicy_change.c - calls that change mappings or give pages back. The host makes them; what is
 * known of the range follows. Without --strict they are seen only where that is cheap (table.c),
 * and found out by mp_settle() else.
 */
#include <stdio.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "emu/syscalls/mempolicy.h"
#include "emu/syscalls/mempolicy_calls.h"

enum {
	FIXED_NOREPLACE = 0x100000, /* mmap() */
	DONTNEED = 4,               /* madvise() */
	REMOVE = 9,
	DONTNEED_LOCKED = 24,
	REMAP_FIXED = 2,            /* mremap() */
	PUNCH_HOLE = 2,             /* fallocate() */
};

/* Is there anything to keep right? */
static struct emu_mm *asked(struct emu_call *call)
{
	struct emu_mm *mm = call->task->process->mm;

	return mp_state(call->emu) && mm && mm->asked ? mm : NULL;
}

/* Pages of shared memory outlive the mapping: who touched them is known only now. */
static void settle_shared(struct emu_call *call, uint64_t start, uint64_t end)
{
	struct mp_maps maps, again;
	size_t i;

	if (!mp_settle(call->emu, call->task->process, 0, 0, &maps, NULL, NULL)) {
		mp_vma_at(&maps, start, &i);
		while (i < maps.count && maps.vma[i].start < end && maps.vma[i].kind != MP_SHMEM)
			i++;
		if (i < maps.count && maps.vma[i].start < end) {
			mp_settle(call->emu, call->task->process, start, end, &again, NULL, NULL);
			mp_maps_free(&again);
		}
	}
	mp_maps_free(&maps);
}

/* ---- which mappings were touched ------------------------------------------------------------- */

static int one_is_there(void *arg, const struct mp_vma *vma, uint64_t addr,
			const struct mp_page *page)
{
	(void)vma;
	(void)addr;
	*(bool *)arg = page->what == MP_PRESENT;
	return page->what == MP_PRESENT;
}

/* Was the mapping that holds addr, as a kernel that splits by policy has it, ever touched? Then its
 * pages keep their interleave indexes when it moves (copy_vma()). A page that is there tells, or
 * one that was before a part went or its pages were given back. */
static bool was_touched(struct emu_call *call, const struct mp_maps *maps, uint64_t addr)
{
	const struct mp_vma *vma = mp_vma_at(maps, addr, NULL);
	struct emu_mm *mm = call->task->process->mm;
	const uint64_t size = mp_state(call->emu)->page;
	bool touched = false;
	struct mp_maps again;
	uint64_t at, to = 0, last;

	if (!vma)
		return false;
	for (at = vma->start; at < vma->end; at = to) {
		(void)pol_ranges_at(&mm->ranges, at, &to);
		(void)pol_shifts_at(&mm->shifts, at / size, &last);
		if (last < to / size)
			to = last * size;
		if (addr < to)
			break;
	}
	if (pol_shifts_at(&mm->filled, addr / size, NULL))
		return true;
	to = to < vma->end ? to : vma->end;
	mp_settle(call->emu, call->task->process, at, to, &again, one_is_there, &touched);
	mp_maps_free(&again);
	if (touched)
		pol_shifts_set(&mm->filled, at / size, to / size, 1);
	return touched;
}

/* Before [start, end), or its pages, go: what is left of the mappings it lies in was touched if
 * they were. */
static void note_touched(struct emu_call *call, uint64_t start, uint64_t end)
{
	struct mp_maps maps;

	if (!mp_settle(call->emu, call->task->process, 0, 0, &maps, NULL, NULL)) {
		was_touched(call, &maps, start);
		was_touched(call, &maps, end - 1);
	}
	mp_maps_free(&maps);
}

/* ---- unmapping ------------------------------------------------------------------------------- */

static int64_t unmapping(struct emu_call *call, uint64_t start, uint64_t len)
{
	struct mp_state *state = mp_state(call->emu);
	struct emu_mm *mm = asked(call);

	if (mm && len && start + len > start && !(start & (state->page - 1))) {
		emu_settle(call, NULL);
		settle_shared(call, start, start + len);
		note_touched(call, start, start + len);
		mp_forget(state, mm, start,
			  (start + len + state->page - 1) & ~(uint64_t)(state->page - 1));
	}
	return EMU_CONTINUE;
}

int64_t emu_munmap(struct emu_call *call)
{
	return unmapping(call, call->arg[0], call->arg[1]);
}

int64_t emu_mmap_fixed(struct emu_call *call)
{
	struct mp_maps maps;

	if (!asked(call))
		return EMU_CONTINUE;
	if (!(call->arg[3] & FIXED_NOREPLACE))
		return unmapping(call, call->arg[0], call->arg[1]);
	/* It fails where something is mapped: what is not mapped by now is what it will cover. */
	mp_settle(call->emu, call->task->process, 0, 0, &maps, NULL, NULL);
	mp_maps_free(&maps);
	return EMU_CONTINUE;
}

/* The heap shrinks: what is behind its new end goes. */
int64_t emu_brk(struct emu_call *call)
{
	uint64_t end = 0;
	struct mp_maps maps;

	if (!asked(call) || !call->arg[0])
		return EMU_CONTINUE;
	if (!mp_settle(call->emu, call->task->process, 0, 0, &maps, NULL, NULL))
		for (size_t i = 0; i < maps.count; i++)
			if (maps.vma[i].heap && maps.vma[i].start < call->arg[0])
				end = maps.vma[i].end;
	mp_maps_free(&maps);
	if (end > call->arg[0]) {
		uint64_t page = mp_state(call->emu)->page;
		uint64_t from = (call->arg[0] + page - 1) & ~(page - 1);

		if (from < end)
			unmapping(call, from, end - from);
	}
	return EMU_CONTINUE;
}

int64_t emu_shmdt(struct emu_call *call)
{
	const struct mp_vma *vma;
	struct mp_maps maps;

	if (!asked(call))
		return EMU_CONTINUE;
	if (!mp_settle(call->emu, call->task->process, 0, 0, &maps, NULL, NULL)) {
		vma = mp_vma_at(&maps, call->arg[0], NULL);
		if (vma && vma->kind == MP_SHMEM && vma->start == call->arg[0])
			unmapping(call, vma->start, vma->end - vma->start);
	}
	mp_maps_free(&maps);
	return EMU_CONTINUE;
}

/* ---- pages of shared objects ----------------------------------------------------------------- */

static void uncount(void *arg, uint64_t page, unsigned int node)
{
	struct mp_state *state = arg;

	(void)page;
	if (node < state->machine->nr_node_ids)
		__atomic_sub_fetch(&state->used[node], 1, __ATOMIC_RELAXED);
}

/* Pages [first, last) of the object are given back. */
static void forget_object(struct mp_state *state, uint64_t dev, uint64_t ino, uint64_t first,
			  uint64_t last)
{
	struct mp_object *object;

	pthread_mutex_lock(&state->lock);
	object = mp_object_get(state, dev, ino, false);
	if (object && first < last)
		pol_pages_forget(&object->pages, first, last, uncount, state);
	pthread_mutex_unlock(&state->lock);
}

static void forget_file(struct emu_call *call, uint64_t start, uint64_t end)
{
	struct mp_state *state = mp_state(call->emu);
	char path[64];
	struct statx st;

	if (!state)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", call->task->process->tgid,
		 (int)call->arg[0]);
	if (emu_proc_leads(AT_FDCWD, path, STATX_TYPE | STATX_INO, &st) && S_ISREG(st.stx_mode))
		forget_object(state, makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino,
			      (start + state->page - 1) / state->page, end / state->page);
}

int64_t emu_fallocate(struct emu_call *call)
{
	if ((call->arg[1] & PUNCH_HOLE) && call->arg[2] + call->arg[3] > call->arg[2])
		forget_file(call, call->arg[2], call->arg[2] + call->arg[3]);
	return EMU_CONTINUE;
}

int64_t emu_ftruncate(struct emu_call *call)
{
	if (!(call->arg[1] >> 63))
		forget_file(call, call->arg[1], UINT64_MAX);
	return EMU_CONTINUE;
}

/* MADV_REMOVE on shared memory: the object's pages. */
static void remove_pages(struct emu_call *call, uint64_t start, uint64_t end)
{
	struct mp_state *state = mp_state(call->emu);
	struct mp_maps maps;
	size_t i;

	if (!mp_settle(call->emu, call->task->process, 0, 0, &maps, NULL, NULL)) {
		mp_vma_at(&maps, start, &i);
		for (; i < maps.count && maps.vma[i].start < end; i++) {
			const struct mp_vma *v = &maps.vma[i];
			uint64_t from = v->start > start ? v->start : start,
				 to = v->end < end ? v->end : end;

			if (v->kind == MP_SHMEM || v->kind == MP_FILE)
				forget_object(state, v->dev, v->ino,
					      v->index + (from - v->start) / state->page,
					      v->index + (to - v->start) / state->page);
		}
	}
	mp_maps_free(&maps);
}

/* Pages go, policies stay. */
int64_t emu_madvise(struct emu_call *call)
{
	struct mp_state *state = mp_state(call->emu);
	uint64_t start = call->arg[0], end, advice = call->arg[2];
	struct emu_mm *mm = asked(call);

	if (!mm || (start & (state->page - 1)) ||
	    (advice != DONTNEED && advice != REMOVE && advice != DONTNEED_LOCKED))
		return EMU_CONTINUE;
	end = (start + call->arg[1] + state->page - 1) & ~(uint64_t)(state->page - 1);
	if (end <= start)
		return EMU_CONTINUE;
	emu_settle(call, NULL);
	if (advice == REMOVE) {
		remove_pages(call, start, end);
	} else {
		note_touched(call, start, end);
		mp_forget_there(state, mm, start, end);
	}
	return EMU_CONTINUE;
}

/* ---- mremap ---------------------------------------------------------------------------------- */

static bool over_policies(const struct emu_mm *mm, uint64_t start, uint64_t len)
{
	uint64_t end;

	(void)pol_ranges_at(&mm->ranges, start, &end);
	return end - start < len;
}

/* Policies and pages move along with the mapping. Where the host puts it is not known yet unless
 * the caller says so: the rest is done when the mappings are looked at next (mempolicy_gone.c). */
int64_t emu_mremap(struct emu_call *call)
{
	struct mp_state *state = mp_state(call->emu);
	struct emu_mm *mm = asked(call);
	struct mp_maps maps;

	if (!mm || !call->arg[1] || !call->arg[2])
		return EMU_CONTINUE;
	/* Policies split mappings: a range over two of them can't be moved or grown (Linux 6.12).
	 * The host's are not split. */
	if (over_policies(mm, call->arg[0], call->arg[1]))
		return -EFAULT;
	emu_settle(call, NULL);
	/* The mappings too: what is new next time was made by this call. Where nothing is mapped
	 * that is found out before anything else. */
	if (!mp_settle(call->emu, call->task->process, call->arg[0], call->arg[0] + call->arg[1],
		       &maps, NULL, NULL) &&
	    mp_vma_at(&maps, call->arg[0], NULL)) {
		bool touched = was_touched(call, &maps, call->arg[0]);

		mm->move = (struct mp_move){
			.touched = touched,
			.from = call->arg[0],
			.old_len = (call->arg[1] + state->page - 1) & ~(uint64_t)(state->page - 1),
			.new_len = (call->arg[2] + state->page - 1) & ~(uint64_t)(state->page - 1),
			.to = call->arg[3] & REMAP_FIXED ? call->arg[4] : 0,
		};
		if (mm->move.to)
			mp_forget(state, mm, mm->move.to, mm->move.to + mm->move.new_len);
	}
	mp_maps_free(&maps);
	return EMU_CONTINUE;
}
