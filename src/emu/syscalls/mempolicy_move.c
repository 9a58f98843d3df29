// SPDX-License-Identifier: MIT
/*
 * mempolicy_move.c - move_pages and migrate_pages of the emulated machine: the answers of
 * Linux 6.12's mm/migrate.c.
 *
 * Nothing is moved on the host: the node that a page is said to be on changes. Both may name
 * another process, whose lock is then held instead of the caller's (emu_task_find()).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy.h"
#include "emu/syscalls/mempolicy_calls.h"

enum { CAP_NICE = 23, BATCH = 8192 };

struct want {
	uint64_t page;
	uint32_t at; /* index in the caller's array */
};

/* One lookup of many pages, sorted by address. */
struct lookup {
	struct want *want;
	size_t count, next;
	size_t page_size;
	struct mp_page *info;      /* by index; what MP_HOLE: not mapped */
	const struct mp_vma **vma; /* by index; NULL when not wanted */
};

static int by_page(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	return x->page < y->page ? -1 : x->page > y->page;
}

static int found(void *arg, const struct mp_vma *vma, uint64_t addr, const struct mp_page *page)
{
	struct lookup *l = arg;

	(void)vma;
	while (l->next < l->count && l->want[l->next].page < addr)
		l->next++;
	for (size_t i = l->next; i < l->count && l->want[i].page == addr; i++)
		l->info[l->want[i].at] = *page;
	return 0;
}

/* Fills info[] for `count` addresses of the process. maps is filled and the caller's to free. */
static int look_up(struct emu *emu, struct emu_process *process, const uint64_t *addr, size_t count,
		   struct mp_page *info, struct mp_maps *maps)
{
	size_t size = mp_state(emu)->page;
	struct lookup l = {.want = calloc(count, sizeof(struct want)),
			   .count = count,
			   .page_size = size,
			   .info = info};
	int rc = 0;

	*maps = (struct mp_maps){0};
	if (!l.want)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		l.want[i] = (struct want){addr[i] & ~(uint64_t)(size - 1), (uint32_t)i};
		info[i] = (struct mp_page){.what = MP_HOLE};
	}
	qsort(l.want, count, sizeof(*l.want), by_page);
	rc = mp_settle(emu, process, 0, 0, maps, NULL, NULL);
	for (size_t i = 0; i < count && !rc; i++) {
		const struct mp_vma *vma = mp_vma_at(maps, addr[i], NULL);

		if (vma && vma->kind != MP_SPECIAL)
			info[i].what = MP_ABSENT;
	}
	/* In runs of pages that lie near each other: each run is one look at the page map. */
	for (size_t i = 0; i < count && !rc;) {
		struct mp_maps again;
		size_t k = i + 1;

		if (info[l.want[i].at].what == MP_HOLE) {
			i++;
			continue;
		}
		while (k < count && l.want[k].page - l.want[k - 1].page <= 512 * size)
			k++;
		l.next = i;
		rc = mp_settle(emu, process, l.want[i].page, l.want[k - 1].page + size, &again,
			       found, &l);
		mp_maps_free(&again);
		i = k;
	}
	free(l.want);
	return rc;
}

static int status_of(const struct mp_page *page)
{
	switch (page->what) {
	case MP_PRESENT:
		return (int)page->node;
	case MP_ABSENT:
		return -ENOENT;
	default:
		return -EFAULT;
	}
}

/* How many whole entries of `size` bytes can be read at `from`: the kernel reads one at a time. */
static size_t read_some(struct emu_call *call, void *to, uint64_t from, size_t size, size_t count,
			int *rc)
{
	size_t page = mp_state(call->emu)->page, got = 0;

	*rc = emu_read(call, to, from, size * count);
	if (*rc != -EFAULT)
		return *rc ? 0 : count;
	while (got < count) { /* up to the page that faults, then one by one */
		size_t n = (page - ((from + got * size) & (page - 1))) / size;

		if (!n || n > count - got)
			n = 1;
		*rc = emu_read(call, (char *)to + got * size, from + got * size, n * size);
		if (*rc && n > 1)
			*rc = emu_read(call, (char *)to + got * size, from + got * size, size),
			n = 1;
		if (*rc)
			break;
		got += n;
	}
	return got;
}

/* do_pages_stat(). */
static int64_t query(struct emu_call *call, struct emu_process *process, uint64_t count,
		     uint64_t pages, uint64_t status)
{
	uint64_t *addr = calloc(BATCH, sizeof(*addr));
	struct mp_page *info = calloc(BATCH, sizeof(*info));
	int *st = calloc(BATCH, sizeof(*st));
	int rc = addr && info && st ? 0 : -ENOMEM;

	while (count && !rc) {
		size_t want = count < BATCH ? count : BATCH,
		       n = read_some(call, addr, pages, 8, want, &rc);
		struct mp_maps maps;
		int err = rc;

		if (n) {
			rc = look_up(call->emu, process, addr, n, info, &maps);
			mp_maps_free(&maps);
			for (size_t i = 0; i < n; i++)
				st[i] = status_of(&info[i]);
			if (!rc)
				rc = emu_write(call, status, st, n * sizeof(*st));
		}
		if (!rc)
			rc = err;
		count -= n;
		pages += 8 * n;
		status += 4 * n;
	}
	free(addr);
	free(info);
	free(st);
	return rc;
}

/* ---- moves ----------------------------------------------------------------------------------- */

struct mover {
	struct emu_call *call;
	struct mp_state *state;
	struct emu_process *process;
	uint64_t pages, nodes, status, count;
	bool all;
	/* Queued: moved, and their status written, when the node changes or the list ends. */
	uint64_t *queue;
	size_t queued, room;
	unsigned int node;
	bool have_node;
	uint64_t start;
};

static int store(struct mover *m, uint64_t at, int value, uint64_t n)
{
	int rc = 0;

	for (uint64_t i = 0; i < n && !rc; i++)
		rc = emu_write(m->call, m->status + 4 * (at + i), &value, sizeof(value));
	return rc;
}

static int move_one(void *arg, const struct mp_vma *vma, uint64_t addr, const struct mp_page *page)
{
	struct mover *m = arg;

	if (page->what != MP_PRESENT || page->node == m->node)
		return 0;
	return mp_page_move(m->state, m->process->mm, vma, addr, page->file, m->node);
}

/* move_pages_and_store_status() for what is queued, entries start .. i - 1. */
static int flush(struct mover *m, uint64_t i)
{
	int rc = 0;

	if (!m->queued)
		return 0;
	for (size_t k = 0; k < m->queued && !rc; k++) {
		struct mp_maps maps;

		rc = mp_settle(m->call->emu, m->process, m->queue[k], m->queue[k] + 1, &maps,
			       move_one, m);
		mp_maps_free(&maps);
	}
	m->queued = 0;
	return rc ? rc : store(m, m->start, (int)m->node, i - m->start);
}

static bool is_queued(const struct mover *m, uint64_t page)
{
	for (size_t k = m->queued; k-- > 0;)
		if (m->queue[k] == page)
			return true;
	return false;
}

/* add_folio_for_migration(): 1 queued, 0 there already, else -errno. */
static int queue_page(struct mover *m, uint64_t addr)
{
	struct mp_page info;
	struct mp_maps maps;
	int rc = look_up(m->call->emu, m->process, &addr, 1, &info, &maps);

	mp_maps_free(&maps);
	if (rc)
		return rc;
	if (info.what != MP_PRESENT)
		return status_of(&info);
	if (info.node == m->node)
		return 0;
	if (!info.exclusive && !m->all)
		return -EACCES;
	addr &= ~(uint64_t)(m->state->page - 1);
	if (is_queued(m, addr))
		return -EBUSY;
	if (m->queued == m->room) {
		size_t room = m->room ? m->room * 2 : 256;
		uint64_t *bigger = realloc(m->queue, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		m->queue = bigger;
		m->room = room;
	}
	m->queue[m->queued++] = addr;
	return 1;
}

static int check_node(const struct mover *m, int node)
{
	const struct pol_machine *machine = m->state->machine;

	if (node < 0 || (unsigned int)node >= machine->max_numnodes ||
	    !pol_isset(machine->memory, (unsigned int)node))
		return -ENODEV;
	return pol_isset(machine->allowed, (unsigned int)node) ? 0 : -EACCES;
}

/* One entry of do_pages_move()'s loop; done: leave, with what was queued moved already. */
static int move_entry(struct mover *m, uint64_t i, bool *done)
{
	uint64_t addr;
	int node, rc = emu_read(m->call, &addr, m->pages + 8 * i, 8);

	if (!rc)
		rc = emu_read(m->call, &node, m->nodes + 4 * i, 4);
	if (!rc)
		rc = check_node(m, node);
	if (rc)
		return rc;
	if (!m->have_node || (unsigned int)node != m->node) {
		if (m->have_node) {
			rc = flush(m, i);
			*done = rc != 0;
			if (rc)
				return rc;
		}
		m->start = i;
		m->node = (unsigned int)node;
		m->have_node = true;
	}
	rc = queue_page(m, addr);
	if (rc > 0)
		return 0;
	rc = store(m, i, rc ? rc : node, 1);
	if (rc)
		return rc;
	rc = flush(m, i);
	*done = rc != 0;
	m->have_node = false;
	return rc;
}

static int64_t move(struct mover *m)
{
	bool done = false;
	uint64_t i;
	int rc = 0, flushed;

	for (i = 0; i < m->count && !rc; i++)
		rc = move_entry(m, i, &done);
	if (rc)
		i--;
	if (!done) {
		flushed = m->have_node ? flush(m, i) : 0;
		rc = rc ? rc : flushed;
	}
	free(m->queue);
	return rc;
}

/* ---- whose pages ----------------------------------------------------------------------------- */

static bool exists(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return pid > 0 && access(path, F_OK) == 0;
}

/* find_mm_struct(): the task of the process, locked; or NULL with *rc. */
static struct emu_task *whose(struct emu_call *call, pid_t pid, int *rc)
{
	struct emu_task *task = NULL;

	*rc = 0;
	if (!pid)
		return call->task;
	if (!exists(pid))
		*rc = -ESRCH;
	else if (!emu_may_look(call, pid, true))
		*rc = -EPERM;
	else if (!(task = emu_task_find(call, pid)))
		*rc = -EINVAL; /* outside of the emulated machine: a task without memory of its own,
				  as it were */
	return task;
}

int64_t emu_move_pages(struct emu_call *call)
{
	struct mover m = {.call = call,
			  .state = mp_state(call->emu),
			  .count = call->arg[1],
			  .pages = call->arg[2],
			  .nodes = call->arg[3],
			  .status = call->arg[4]};
	const uint64_t flags = call->arg[5] & UINT32_MAX;
	struct emu_task *task;
	int rc;

	if (!mc_topology_has_numa(emu_topology(call->emu)))
		return -ENOSYS;
	if (!m.state)
		return -ENOMEM;
	if (flags & ~(uint64_t)(MC_MPOL_MF_MOVE | MC_MPOL_MF_MOVE_ALL))
		return -EINVAL;
	m.all = flags & MC_MPOL_MF_MOVE_ALL;
	if (m.all && !emu_capable(call, CAP_NICE))
		return -EPERM;
	task = whose(call, (pid_t)call->arg[0], &rc);
	if (!task)
		return rc;
	m.process = task->process;
	if (!mp_mm(m.process))
		return -ENOMEM;
	return m.nodes ? move(&m) : query(call, m.process, m.count, m.pages, m.status);
}

/* ---- migrate_pages --------------------------------------------------------------------------- */

struct migration {
	struct mp_state *state;
	struct emu_mm *mm;
	unsigned int from, to;
	bool all;
};

static int migrate_one(void *arg, const struct mp_vma *vma, uint64_t addr,
		       const struct mp_page *page)
{
	struct migration *m = arg;

	if (page->what != MP_PRESENT || page->node != m->from || (!page->exclusive && !m->all))
		return 0;
	return mp_page_move(m->state, m->mm, vma, addr, page->file, m->to);
}

/* do_migrate_pages(): a node is emptied only when its pages do not then count as those of a node
 * still to be moved. */
static int migrate(struct emu *emu, struct emu_process *process, uint64_t *from, const uint64_t *to,
		   bool all)
{
	struct migration m = {.state = mp_state(emu), .mm = mp_mm(process), .all = all};
	const unsigned int words = m.state->machine->words;
	bool alike = pol_weight(from, words) == pol_weight(to, words);
	uint64_t *left = calloc(words, sizeof(*left));
	int rc = left && m.mm ? 0 : -ENOMEM;

	if (left)
		memcpy(left, from, words * sizeof(*left));
	while (!rc && !pol_empty(left, words)) {
		struct mp_maps maps;

		m.from = POL_NO_NODE;
		for (unsigned int s = pol_next(left, words, 0); s != POL_NO_NODE;
		     s = pol_next(left, words, s + 1)) {
			unsigned int d;

			if (!alike && pol_isset(to, s))
				continue;
			d = pol_remap(s, from, to, words);
			if (s == d)
				continue;
			m.from = s;
			m.to = d;
			if (!pol_isset(left, d))
				break;
		}
		if (m.from == POL_NO_NODE)
			break;
		left[m.from / 64] &= ~(1ULL << (m.from % 64));
		rc = mp_settle(emu, process, 0, UINT64_MAX, &maps, migrate_one, &m);
		mp_maps_free(&maps);
	}
	free(left);
	return rc;
}

int64_t emu_migrate_pages(struct emu_call *call)
{
	struct mp_state *state = mp_state(call->emu);
	bool nice, outside = false;
	struct emu_task *task;
	uint64_t *old, *new;
	int rc;

	if (!mc_topology_has_numa(emu_topology(call->emu)))
		return -ENOSYS;
	if (!state)
		return -ENOMEM;
	old = calloc(2 * state->machine->words, sizeof(*old));
	if (!old)
		return -ENOMEM;
	new = old + state->machine->words;
	rc = pol_get_nodes(state->machine, old, call->arg[2], call->arg[1], state->page, mp_copy,
			   call);
	if (!rc)
		rc = pol_get_nodes(state->machine, new, call->arg[3], call->arg[1], state->page,
				   mp_copy, call);
	task = rc ? NULL : whose(call, (pid_t)call->arg[0], &rc);
	nice = !rc && emu_capable(call, CAP_NICE);
	for (unsigned int i = 0; i < state->machine->words; i++) {
		outside = outside || (new[i] & ~state->machine->allowed[i]);
		new[i] &= state->machine->allowed[i];
	}
	if (!rc && outside && !nice)
		rc = -EPERM;
	if (!rc && pol_empty(new, state->machine->words))
		rc = -EINVAL;
	if (!rc && task)
		rc = migrate(call->emu, task->process, old, new, nice);
	free(old);
	return rc;
}
