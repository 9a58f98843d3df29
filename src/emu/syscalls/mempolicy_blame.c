// SPDX-License-Identifier: MIT
/*
 * mempolicy_blame.c - who touched the pages that are new: by page-fault events
 * (mempolicy_events.c), else by the minor faults of each task since the last settling.
 *
 * With one task, or tasks that would all place a page alike, nothing is to be found out. Without
 * events the new pages of a mapping are dealt out in address order to the tasks in order of
 * creation, by the faults each has left; mappings with few new pages (stacks, thread data) are told
 * first, so that what is left is what the arrays have cost. That is a guess, and told as one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy_settle.h"

/* The minor faults in the text of a `stat`: state ppid pgrp session tty tpgid flags minflt. */
static uint64_t faults_in(const char *text)
{
	uint64_t faults = 0;

	sscanf(emu_proc_stat(text), " %*c %*d %*d %*d %*d %*d %*u %lu", &faults);
	return faults;
}

uint64_t mp_task_faults(const struct emu_task *task)
{
	char text[1024];

	if (emu_proc_read(text, sizeof(text), "/proc/%d/task/%d/stat", task->process->tgid,
			  task->tid) < 0)
		return 0;
	return faults_in(text);
}

static int by_tid(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;

	return x->task->tid < y->task->tid ? -1 : x->task->tid > y->task->tid;
}

/* Who has had faults since the last time; nobody at all leaves the first task. */
static void find_blame(struct settle *s)
{
	unsigned int n = 0, kept = 0;

	s->blamed = true;
	for (struct emu_task *t = s->process->tasks; t; t = t->next)
		n++;
	s->blame = calloc(n ? n : 1, sizeof(*s->blame));
	if (!s->blame || !n)
		return;
	for (struct emu_task *t = s->process->tasks; t; t = t->next)
		s->blame[kept++].task = t;
	qsort(s->blame, n, sizeof(*s->blame), by_tid);
	for (unsigned int i = 0; n > 1 && i < n; i++) {
		uint64_t now = mp_task_faults(s->blame[i].task);
		struct emu_policy *policy = s->blame[i].task->policy;

		s->blame[i].faults = now > (policy ? policy->faults : 0)
					     ? now - (policy ? policy->faults : 0)
					     : 0;
	}
	if (n > 1) {
		kept = 0;
		for (unsigned int i = 0; i < n; i++)
			if (s->blame[i].faults)
				s->blame[kept++] = s->blame[i];
		if (!kept)
			kept = 1;
	}
	for (unsigned int i = 0; i < kept; i++)
		s->blame[i].left = s->blame[i].faults;
	s->nr_blame = kept;
	s->uniform = true;
	for (unsigned int i = 1; i < kept; i++) {
		const struct emu_task *a = s->blame[0].task, *b = s->blame[i].task;

		if (mp_task_node(s->emu, a) != mp_task_node(s->emu, b) ||
		    !pol_equal(a->policy ? a->policy->pol : NULL,
			       b->policy ? b->policy->pol : NULL))
			s->uniform = false;
	}
}

/* Few new pages in a mapping (a stack, thread data): whoever has most faults left. */
static const struct emu_task *small_change(struct settle *s)
{
	struct blame *most = &s->blame[0];

	for (unsigned int k = 1; k < s->nr_blame; k++)
		if (s->blame[k].left > most->left)
			most = &s->blame[k];
	most->left -= most->left != 0;
	return most->task;
}

/* Deals n new pages of a mapping out: blame[k] gets those before blame[k].upto, by the faults that
 * are left. */
static void deal(struct settle *s, size_t n)
{
	uint64_t total = 0, sum = 0;

	for (unsigned int k = 0; k < s->nr_blame; k++)
		total += s->blame[k].left;
	for (unsigned int k = 0; k < s->nr_blame; k++) {
		struct blame *b = &s->blame[k];
		uint64_t from = k ? b[-1].upto : 0, share;

		sum += total ? b->left : 1;
		b->upto = (2 * sum * n + (total ? total : s->nr_blame)) /
			  (2 * (total ? total : s->nr_blame));
		share = b->upto - from;
		b->left -= share < b->left ? share : b->left;
	}
}

/* By counts: the task that touched the i-th of n new pages of a mapping. */
static const struct emu_task *dealt(struct settle *s, size_t i, size_t n)
{
	if (n < FEW_PAGES)
		return small_change(s);
	if (!i)
		deal(s, n);
	for (unsigned int k = 0; k < s->nr_blame; k++)
		if (i < s->blame[k].upto)
			return s->blame[k].task;
	return s->blame[s->nr_blame - 1].task;
}

struct mp_who mp_toucher(struct settle *s, uint64_t page, uint64_t entry, size_t i, size_t n,
			 bool *sure)
{
	struct mp_who who;

	if (!s->blamed)
		find_blame(s);
	*sure = true;
	if (mp_events_who(s->emu, s->process, page, entry & PM_HUGE, &who))
		return who;
	if (!s->nr_blame)
		return mp_who_of(s->emu, s->process->tasks);
	*sure = !mp_events_changes(s->process);
	if (s->uniform)
		return mp_who_of(s->emu, s->blame[0].task);
	*sure = false;
	return mp_who_of(s->emu, dealt(s, i, n));
}

/* Would the page lie elsewhere if another of those that may have touched it had? */
bool mp_matters(struct settle *s, const struct pol *range, uint64_t index)
{
	unsigned int first = POL_NO_NODE;

	for (struct emu_task *t = s->process->tasks; t; t = t->next) {
		struct mp_who who = mp_who_of(s->emu, t);
		struct pol_where where = {who.node, index};
		unsigned int node =
			pol_target(s->state->machine, range ? range : who.pol, &where);

		if (first == POL_NO_NODE)
			first = node;
		if (node != first)
			return true;
	}
	return mp_events_changes(s->process) && (!range || first == POL_NO_NODE);
}

uint64_t mp_process_faults(const struct emu_process *process)
{
	char text[1024];

	if (emu_proc_read(text, sizeof(text), "/proc/%d/stat", process->tgid) < 0)
		return 0;
	return faults_in(text);
}
