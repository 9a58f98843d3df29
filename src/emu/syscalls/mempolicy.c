// SPDX-License-Identifier: MIT
/*
 * mempolicy.c - set_mempolicy, get_mempolicy, mbind and set_mempolicy_home_node of the emulated
 * machine.
 *
 * Checks come in the order of Linux 6.12's mm/mempolicy.c. Before anything changes, what has been
 * touched so far is settled under the old policy, and children and threads that were never seen are
 * adopted (emu_settle()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/syscalls/mempolicy.h"
#include "emu/syscalls/mempolicy_calls.h"

enum { CAP_NICE = 23 };

int mp_copy(void *call, void *to, uint64_t from, size_t len)
{
	return emu_read(call, to, from, len);
}

/* A set of nodes on the heap: as wide as the machine's limit. */
static uint64_t *new_set(const struct pol_machine *machine)
{
	return calloc(machine->words, sizeof(uint64_t));
}

int64_t emu_set_mempolicy(struct emu_call *call)
{
	struct mp_state *state = mp_state(call->emu);
	struct pol *pol = NULL;
	int mode, flags, rc;
	uint64_t *set;

	if (!mc_topology_has_numa(emu_topology(call->emu)))
		return -ENOSYS;
	if (!state || !mp_task(call->task))
		return -ENOMEM;
	set = new_set(state->machine);
	if (!set)
		return -ENOMEM;
	rc = pol_mode_check((int)call->arg[0], &mode, &flags);
	if (!rc)
		rc = pol_get_nodes(state->machine, set, call->arg[1], call->arg[2], state->page,
				   mp_copy, call);
	if (!rc)
		rc = pol_make(state->machine, mode, flags, set, &pol);
	free(set);
	if (rc)
		return rc;
	if (!pol_equal(pol, call->task->policy->pol)) {
		emu_settle(call, call->task);
		mp_settle_all(call->emu, call->task->process);
		mp_settle_files(call->emu, call->task);
	}
	pol_put(call->task->policy->pol);
	call->task->policy->pol = pol;
	emu_mark(call->emu, call->task);
	return 0;
}

/* ---- get_mempolicy --------------------------------------------------------------------------- */

static int note_node(void *arg, const struct mp_vma *vma, uint64_t addr, const struct mp_page *page)
{
	(void)vma;
	(void)addr;
	*(struct mp_page *)arg = *page;
	return 0;
}

/* lookup_node(): the page is faulted in for reading first; the zero page is on the first node with
 * memory. */
static int node_of(struct emu_call *call, uint64_t addr)
{
	struct mp_state *state = mp_state(call->emu);
	struct mp_page page = {.what = MP_ABSENT};
	struct mp_maps maps;
	char byte;
	int rc = emu_read(call, &byte, addr & ~(uint64_t)(state->page - 1), 1);

	if (rc)
		return rc;
	rc = mp_settle(call->emu, call->task->process, addr, addr + 1, &maps, note_node, &page);
	mp_maps_free(&maps);
	if (rc)
		return rc == -ESRCH ? -ENOENT : rc;
	if (page.what == MP_PRESENT)
		return (int)page.node;
	return (int)pol_next(state->machine->memory, state->machine->words, 0);
}

static int next_interleave(const struct pol *pol)
{
	if (pol && (pol->mode == MC_MPOL_INTERLEAVE || pol->mode == MC_MPOL_WEIGHTED_INTERLEAVE))
		return (int)pol_next(pol_nodes(pol), pol->words, 0);
	return -EINVAL;
}

/* do_get_mempolicy(): the value and the nodes, or -errno. */
static int get(struct emu_call *call, uint64_t addr, uint64_t flags, int *value, uint64_t *set)
{
	struct mp_state *state = mp_state(call->emu);
	struct pol *pol = call->task->policy ? pol_get(call->task->policy->pol) : NULL;
	int rc = 0;

	if (flags & POL_F_ADDR) {
		struct mp_maps maps;
		const struct mp_vma *vma;

		pol_put(pol);
		pol = NULL;
		/* An empty range: only the mappings are brought up to date. */
		rc = mp_settle(call->emu, call->task->process, addr, addr, &maps, NULL, NULL);
		vma = rc ? NULL : mp_vma_at(&maps, addr, NULL);
		if (!rc && !vma)
			rc = -EFAULT;
		if (!rc)
			pol = mp_vma_policy(state, call->task->process->mm, vma, addr);
		mp_maps_free(&maps);
	} else if (addr) {
		rc = -EINVAL;
	}
	if (!rc && (flags & POL_F_NODE)) {
		rc = flags & POL_F_ADDR ? node_of(call, addr) : next_interleave(pol);
		if (rc >= 0) {
			*value = rc;
			rc = 0;
		}
	} else if (!rc) {
		*value = pol_tell_mode(pol);
	}
	pol_tell_nodes(pol, set, state->machine->words);
	pol_put(pol);
	return rc;
}

/* copy_nodes_to_user(). */
static int put_nodes(struct emu_call *call, uint64_t to, uint64_t maxnode, const uint64_t *set)
{
	struct mp_state *state = mp_state(call->emu);
	size_t copy, clear;
	char *zeroes;
	int rc = pol_copy_sizes(state->machine, maxnode, state->page, &copy, &clear);

	if (rc)
		return rc;
	if (clear) {
		zeroes = calloc(1, clear);
		rc = zeroes ? emu_write(call, to + copy, zeroes, clear) : -ENOMEM;
		free(zeroes);
		if (rc)
			return rc;
	}
	return emu_write(call, to, set, copy);
}

int64_t emu_get_mempolicy(struct emu_call *call)
{
	const uint64_t policy = call->arg[0], nmask = call->arg[1], maxnode = call->arg[2],
		       flags = call->arg[4];
	struct mp_state *state = mp_state(call->emu);
	uint64_t addr = call->arg[3], *set;
	int value = 0, rc = 0;

	if (!mc_topology_has_numa(emu_topology(call->emu)))
		return -ENOSYS;
	if (!state)
		return -ENOMEM;
	if (nmask && maxnode < state->machine->nr_node_ids)
		return -EINVAL;
	if (flags & ~(uint64_t)(POL_F_NODE | POL_F_ADDR | POL_F_MEMS_ALLOWED))
		return -EINVAL;
	set = new_set(state->machine);
	if (!set)
		return -ENOMEM;
	if (flags & POL_F_MEMS_ALLOWED) {
		if (flags & (POL_F_NODE | POL_F_ADDR))
			rc = -EINVAL;
		memcpy(set, state->machine->allowed, state->machine->words * sizeof(*set));
	} else {
		rc = get(call, addr, flags, &value, set);
	}
	if (!rc && policy)
		rc = emu_write(call, policy, &value, sizeof(value));
	if (!rc && nmask)
		rc = put_nodes(call, nmask, maxnode, set);
	free(set);
	return rc;
}

/* ---- mbind ----------------------------------------------------------------------------------- */

struct misplaced {
	struct mp_state *state;
	struct emu_mm *mm;
	const uint64_t *user;  /* the caller's nodes: elsewhere is misplaced */
	const struct pol *pol; /* where they go */
	unsigned int local;
	unsigned int flags;
	unsigned long failed;
};

/* queue_folio_required() and what follows from the flags. */
static int check_page(void *arg, const struct mp_vma *vma, uint64_t addr,
		      const struct mp_page *page)
{
	struct misplaced *m = arg;

	(void)vma;
	(void)addr;
	if (page->what != MP_PRESENT || !pol_misplaced(m->user, page->node))
		return 0;
	if (!(m->flags & (MC_MPOL_MF_MOVE | MC_MPOL_MF_MOVE_ALL)))
		return (m->flags & MC_MPOL_MF_STRICT) ? -EIO : 0;
	return 0;
}

static int move_page(void *arg, const struct mp_vma *vma, uint64_t addr, const struct mp_page *page)
{
	struct misplaced *m = arg;
	struct pol_where where = {m->local, 0};
	unsigned int node;

	if (page->what != MP_PRESENT || !pol_misplaced(m->user, page->node))
		return 0;
	/* Pages that others map too are left where they are, and that is no failure. */
	if (!page->exclusive && !(m->flags & MC_MPOL_MF_MOVE_ALL))
		return 0;
	where.index = page->file ? vma->ino + vma->index + (addr - vma->start) / m->state->page
				 : addr / m->state->page;
	node = pol_place(m->state->machine, m->pol, &where, m->state->used, NULL);
	if (node == POL_NO_NODE) {
		m->failed++;
		return 0;
	}
	return node == page->node ? 0 : mp_page_move(m->state, m->mm, vma, addr, page->file, node);
}

/* Is every byte of [start, end) mapped (or, for the default policy, any)? */
static int check_holes(const struct mp_maps *maps, uint64_t start, uint64_t end, bool holes_ok)
{
	size_t i;

	mp_vma_at(maps, start, &i);
	if (i >= maps->count || maps->vma[i].start >= end)
		return -EFAULT;
	if (holes_ok)
		return 0;
	for (; i < maps->count && maps->vma[i].start <= start; i++) {
		start = maps->vma[i].end;
		if (start >= end)
			return 0;
	}
	return -EFAULT;
}

/* queue_pages_range() walks mapping by mapping and looks for a hole behind each before it looks at
 * its pages: misplaced pages of mappings (split by policy) before the one in front of the hole come
 * first. */
static int hole_or_misplaced(struct emu_call *call, const struct mp_maps *maps,
			     struct misplaced *m, uint64_t start, uint64_t end)
{
	uint64_t at = start, to, from = start;
	struct mp_maps again;
	size_t i;
	int rc;

	mp_vma_at(maps, start, &i);
	for (; i < maps->count && maps->vma[i].start <= at && at < end; i++) {
		for (; at < maps->vma[i].end && at < end; at = to) {
			(void)pol_ranges_at(&m->mm->ranges, at, &to);
			from = at;
			if (to > maps->vma[i].end)
				to = maps->vma[i].end;
		}
	}
	if (!(m->flags & MC_MPOL_MF_STRICT) || from == start ||
	    (m->flags & (MC_MPOL_MF_MOVE | MC_MPOL_MF_MOVE_ALL)))
		return -EFAULT;
	rc = mp_settle(call->emu, call->task->process, start, from, &again, check_page, m);
	mp_maps_free(&again);
	return rc ? rc : -EFAULT;
}

/* mbind_range() on each mapping; shared memory keeps its policy with the object too. */
static int apply(struct mp_state *state, struct emu_mm *mm, const struct mp_maps *maps,
		 uint64_t start, uint64_t end, struct pol *pol)
{
	int rc = 0;
	size_t i;

	mp_vma_at(maps, start, &i);
	for (; i < maps->count && maps->vma[i].start < end && !rc; i++) {
		const struct mp_vma *vma = &maps->vma[i];
		uint64_t from = vma->start > start ? vma->start : start,
			 to = vma->end < end ? vma->end : end;
		struct mp_object *object;

		rc = pol_ranges_set(&mm->ranges, from, to, pol);
		if (rc || vma->kind != MP_SHMEM)
			continue;
		pthread_mutex_lock(&state->lock);
		object = mp_object_get(state, vma->dev, vma->ino, true);
		rc = object ? pol_ranges_set(&object->ranges,
					     vma->index + (from - vma->start) / state->page,
					     vma->index + (to - vma->start) / state->page, pol)
			    : -ENOMEM;
		pthread_mutex_unlock(&state->lock);
	}
	return rc;
}

static int do_mbind(struct emu_call *call, uint64_t start, uint64_t end, struct pol *pol,
		    const uint64_t *user, unsigned int flags)
{
	struct emu_process *process = call->task->process;
	struct misplaced m = {mp_state(call->emu),
			      mp_mm(process),
			      user,
			      pol,
			      mp_task_node(call->emu, call->task),
			      flags,
			      0};
	struct mp_maps maps;
	int rc;

	if (!m.mm)
		return -ENOMEM;
	emu_settle(call, NULL);
	rc = mp_settle(call->emu, process, start, end, &maps, NULL, NULL);
	if (!rc)
		rc = check_holes(&maps, start, end, !pol);
	if (rc == -EFAULT)
		rc = hole_or_misplaced(call, &maps, &m, start, end);
	if (!rc && (flags & POL_MF_VALID)) {
		mp_maps_free(&maps);
		rc = mp_settle(call->emu, process, start, end, &maps, check_page, &m);
	}
	if (!rc)
		rc = apply(m.state, m.mm, &maps, start, end, pol);
	mp_maps_free(&maps);
	if (rc || !(flags & (MC_MPOL_MF_MOVE | MC_MPOL_MF_MOVE_ALL)))
		return rc;
	if (!pol && call->task->policy)
		m.pol = call->task->policy->pol;
	rc = mp_settle(call->emu, process, start, end, &maps, move_page, &m);
	mp_maps_free(&maps);
	if (!rc && m.failed && (flags & MC_MPOL_MF_STRICT))
		rc = -EIO;
	return rc;
}

int64_t emu_mbind(struct emu_call *call)
{
	struct mp_state *state = mp_state(call->emu);
	uint64_t start = call->arg[0], len = call->arg[1], flags = call->arg[5] & UINT32_MAX, mask,
		 *set;
	struct pol *pol = NULL;
	int mode, mode_flags, rc;

	if (!mc_topology_has_numa(emu_topology(call->emu)))
		return -ENOSYS;
	if (!state)
		return -ENOMEM;
	mask = state->page - 1;
	set = new_set(state->machine);
	if (!set)
		return -ENOMEM;
	rc = pol_mode_check((int)call->arg[2], &mode, &mode_flags);
	if (!rc)
		rc = pol_get_nodes(state->machine, set, call->arg[3], call->arg[4], state->page,
				   mp_copy, call);
	if (!rc && (flags & ~(uint64_t)POL_MF_VALID))
		rc = -EINVAL;
	if (!rc && (flags & MC_MPOL_MF_MOVE_ALL) && !emu_capable(call, CAP_NICE))
		rc = -EPERM;
	if (!rc && (start & mask))
		rc = -EINVAL;
	if (mode == MC_MPOL_DEFAULT)
		flags &= ~(uint64_t)MC_MPOL_MF_STRICT;
	len = (len + mask) & ~mask;
	if (!rc && start + len < start)
		rc = -EINVAL;
	if (!rc && len) {
		rc = pol_make(state->machine, mode, mode_flags, set, &pol);
		if (!rc)
			rc = do_mbind(call, start, start + len, pol, set, (unsigned int)flags);
		pol_put(pol);
	}
	free(set);
	return rc;
}

/* ---- set_mempolicy_home_node ----------------------------------------------------------------- */

static int set_home(struct mp_state *state, struct emu_mm *mm, const struct mp_maps *maps,
		    uint64_t start, uint64_t end, unsigned int home)
{
	int rc = -ENOENT;
	size_t i;

	mp_vma_at(maps, start, &i);
	for (; i < maps->count && maps->vma[i].start < end; i++) {
		uint64_t at = maps->vma[i].start > start ? maps->vma[i].start : start;
		uint64_t last = maps->vma[i].end < end ? maps->vma[i].end : end, to;

		for (; at < last; at = to) {
			struct pol *old = pol_ranges_at(&mm->ranges, at, &to), *new;

			to = to < last ? to : last;
			if (!old)
				continue;
			if (old->mode != MC_MPOL_BIND && old->mode != MC_MPOL_PREFERRED_MANY)
				return -EOPNOTSUPP;
			new = pol_with_home(old, home);
			rc = new ? apply(state, mm, maps, at, to, new) : -ENOMEM;
			pol_put(new);
			if (rc)
				return rc;
		}
	}
	return rc;
}

int64_t emu_set_home_node(struct emu_call *call)
{
	struct mp_state *state = mp_state(call->emu);
	uint64_t start = call->arg[0], len = call->arg[1], home = call->arg[2], mask;
	struct mp_maps maps;
	int rc;

	if (!mc_topology_has_numa(emu_topology(call->emu)))
		return -ENOSYS;
	if (!state || !mp_mm(call->task->process))
		return -ENOMEM;
	mask = state->page - 1;
	if ((start & mask) || call->arg[3])
		return -EINVAL;
	if (home >= state->machine->max_numnodes ||
	    !pol_isset(state->machine->online, (unsigned int)home))
		return -EINVAL;
	len = (len + mask) & ~mask;
	if (start + len < start)
		return -EINVAL;
	if (!len)
		return 0;
	emu_settle(call, NULL);
	rc = mp_settle(call->emu, call->task->process, start, start + len, &maps, NULL, NULL);
	if (!rc)
		rc = set_home(state, call->task->process->mm, &maps, start, start + len,
			      (unsigned int)home);
	mp_maps_free(&maps);
	return rc;
}
