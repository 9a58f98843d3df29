// SPDX-License-Identifier: MIT
/*
 * topo_tree.c - the tree of boxes as text. What is alike is told once: a core with its caches is
 * one line, and a row of equal cores or caches is a line with their number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/topo/topo.h"

/* The box's only child when it has the same CPUs: then both fit one line. */
static const struct topo_box *chained(const struct topo_box *box)
{
	const struct topo_box *child = box->first;

	if (box->kind < TOPO_CACHE || !child || child->next)
		return NULL;
	if (child->kind == TOPO_CPU || mc_cpumask_equal(child->cpus, box->cpus))
		return child;
	return NULL;
}

/* Same kind, same sizes, same number of things in them, all the way down. */
static bool alike(const struct topo_box *a, const struct topo_box *b)
{
	const struct topo_box *x = a->first, *y = b->first;

	if (a->kind != b->kind || a->size != b->size ||
	    (a->kind == TOPO_CACHE && strcmp(a->label, b->label)))
		return false;
	for (; x && y; x = x->next, y = y->next)
		if (!alike(x, y))
			return false;
	return !x && !y;
}

static const char *general_name(const struct topo_box *box)
{
	switch (box->kind) {
	case TOPO_CORE:
		return "core";
	case TOPO_CLUSTER:
		return "cluster";
	case TOPO_CPU:
		return "CPU";
	default:
		return box->label;
	}
}

struct prefix {
	char text[256];
};

static int write_below(const struct topo_box *box, FILE *out, const struct prefix *prefix);

/* One line for `n` equal boxes starting with this one, and what is below them. */
static int write_line(const struct topo_box *box, unsigned int n, const struct topo_box *last,
		      FILE *out, const struct prefix *prefix, bool final)
{
	const struct topo_box *b = box, *next;
	struct prefix deeper;
	unsigned int cpus;

	fprintf(out, "%s%s", prefix->text, final ? "`- " : "|- ");
	if (n > 1)
		fprintf(out, "%u x ", n);
	fputs(n > 1 ? general_name(b) : b->kind == TOPO_CPU ? "CPU " : b->label, out);
	if (n == 1 && b->kind == TOPO_CPU)
		fputs(b->label, out);
	for (; (next = chained(b)) != NULL && next->kind != TOPO_CPU; b = next)
		fprintf(out, " + %s", n > 1 ? general_name(next) : next->label);
	if (b->kind != TOPO_CPU && b->kind != TOPO_NODE && b->first && b->first->kind == TOPO_CPU) {
		cpus = mc_cpumask_weight(b->cpus);
		if (n > 1 && cpus > 1)
			fprintf(out, " of %u CPUs", cpus);
	}
	if (box->cpus && !mc_cpumask_empty(box->cpus)) {
		struct mc_cpumask *all = mc_cpumask_dup(box->cpus);
		char *list;

		for (const struct topo_box *more = box; all && more != last; more = more->next)
			mc_cpumask_or(all, all, more->next->cpus);
		list = all ? topo_list(all) : NULL;
		mc_cpumask_free(all);
		if (!list)
			return -ENOMEM;
		fprintf(out, "  (CPU%s %s)", mc_cpumask_weight(box->cpus) > 1 || n > 1 ? "s" : "", list);
		free(list);
	} else if (n > 1 && box->kind == TOPO_CPU) {
		fprintf(out, "  (%s-%s)", box->label, last->label);
	}
	fputc('\n', out);
	if (b->first && b->first->kind == TOPO_CPU)
		return 0; /* told by the list */
	snprintf(deeper.text, sizeof(deeper.text), "%.250s%s", prefix->text, final ? "   " : "|  ");
	return write_below(b, out, &deeper);
}

static int write_below(const struct topo_box *box, FILE *out, const struct prefix *prefix)
{
	for (const struct topo_box *child = box->first, *last; child; child = last->next) {
		unsigned int n = 1;
		int rc;

		last = child;
		while (child->kind >= TOPO_CACHE && last->next && alike(child, last->next)) {
			last = last->next;
			n++;
		}
		rc = write_line(child, n, last, out, prefix, !last->next);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int topo_write_tree(const struct mc_topology *topo, FILE *out)
{
	struct topo_box *root = topo_boxes(topo);
	struct prefix prefix = { "" };
	int rc;

	if (!root)
		return -ENOMEM;
	fprintf(out, "%s\n", root->label);
	rc = write_below(root, out, &prefix);
	topo_boxes_free(root);
	return rc;
}
