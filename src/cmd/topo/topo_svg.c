// SPDX-License-Identifier: MIT
/*
 * topo_svg.c - the tree of boxes as a drawing: nested rectangles, one small square a CPU.
 *
 * Two passes: sizes from the inside out, each box laying its children out in a grid of about the
 * shape of a screen, then the drawing. A core and its own caches are one rectangle with a bar for
 * each. Units are pixels of a 1:1 view.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/topo/topo.h"

enum { PAD = 5, BAR = 14, CHAR = 6, CPU_H = 18, GAP = 4, TITLE = 17 };

struct style {
	const char *fill, *stroke;
};

static const struct style styles[] = {
	[TOPO_MACHINE] = { "#ffffff", "#555555" }, [TOPO_PACKAGE] = { "#e6edf7", "#6b87b3" },
	[TOPO_NODE] = { "#e2f2e2", "#5f9a5f" },	   [TOPO_DIE] = { "#f5efdc", "#b09a55" },
	[TOPO_CACHE] = { "#fdebd7", "#c98d4b" },   [TOPO_CLUSTER] = { "#efe6f5", "#9471ab" },
	[TOPO_CORE] = { "#f1f1f1", "#8a8a8a" },	   [TOPO_CPU] = { "#ffffff", "#8a8a8a" },
};

/* The boxes that share a rectangle with `box`: its only child again and again while it has the same
 * CPUs. */
static struct topo_box *chained(const struct topo_box *box)
{
	struct topo_box *child = box->first;

	if (box->kind < TOPO_CACHE || !child || child->next || child->kind == TOPO_CPU)
		return NULL;
	return mc_cpumask_equal(child->cpus, box->cpus) ? child : NULL;
}

static struct topo_box *innermost(struct topo_box *box)
{
	struct topo_box *next;

	while ((next = chained(box)) != NULL)
		box = next;
	return box;
}

static unsigned int text_width(const char *text)
{
	return (unsigned int)strlen(text) * CHAR + 2 * PAD;
}

static bool has_bar(const struct topo_box *box)
{
	return box->kind >= TOPO_CACHE;
}

/* How many columns make n cells of w x h about 1.6 times as wide as high. */
static unsigned int choose_columns(unsigned int n, unsigned int w, unsigned int h)
{
	unsigned int best = 1;
	double best_off = 1e18;

	for (unsigned int c = 1; c <= n; c++) {
		unsigned int rows = (n + c - 1) / c;
		double ratio = (double)c * w / ((double)rows * h * 1.6),
		       off = ratio > 1 ? ratio : 1 / ratio;

		/* A full last row looks better than a slightly better shape. */
		if (n % c)
			off *= 1.7;
		if (off < best_off) {
			best_off = off;
			best = c;
		}
	}
	return best;
}

/* Height of the row that starts with `child`; *next gets the first box of the next row. */
static unsigned int row_height(struct topo_box *child, unsigned int columns, struct topo_box **next)
{
	unsigned int h = 0;

	for (unsigned int i = 0; child && i < columns; i++, child = child->next)
		h = child->h > h ? child->h : h;
	*next = child;
	return h;
}

static void measure(struct topo_box *box)
{
	struct topo_box *inner = innermost(box);
	unsigned int n = 0, w = 0, h = 0, bars = 0, width = 0;

	if (box->kind == TOPO_CPU) {
		box->w = text_width(box->label) > 24 ? text_width(box->label) : 24;
		box->h = CPU_H;
		return;
	}
	for (struct topo_box *b = box;; b = chained(b)) {
		bars++;
		width = text_width(b->label) > width ? text_width(b->label) : width;
		if (b == inner)
			break;
	}
	for (struct topo_box *child = inner->first; child; child = child->next) {
		measure(child);
		w = child->w > w ? child->w : w;
		h = child->h > h ? child->h : h;
		n++;
	}
	/* All cells of a grid have one size, so that rows and columns line up. */
	for (struct topo_box *child = inner->first; child; child = child->next)
		child->w = w;
	box->columns = n ? inner->first->kind == TOPO_CPU && n <= 8
				       ? n > 4 ? 4 : n
				       : choose_columns(n, w + GAP, h + GAP)
			 : 0;
	box->h = has_bar(box) ? bars * BAR : TITLE;
	box->w = width;
	if (n) {
		struct topo_box *row = inner->first;

		if (box->columns * (w + GAP) - GAP + 2 * PAD > box->w)
			box->w = box->columns * (w + GAP) - GAP + 2 * PAD;
		while (row)
			box->h += row_height(row, box->columns, &row) + GAP;
		box->h += 2 * PAD - GAP;
	}
}

static void place(struct topo_box *box, unsigned int x, unsigned int y)
{
	struct topo_box *inner = innermost(box);
	unsigned int bars = 1, top;

	box->x = x;
	box->y = y;
	if (box->kind == TOPO_CPU)
		return;
	for (struct topo_box *b = box; b != inner; b = chained(b))
		bars++;
	top = y + (has_bar(box) ? bars * BAR : TITLE) + PAD;
	for (struct topo_box *row = inner->first, *next; row; row = next) {
		unsigned int h = row_height(row, box->columns, &next), at = x + PAD;

		for (struct topo_box *child = row; child != next; child = child->next) {
			place(child, at, top);
			at += child->w + GAP;
		}
		top += h + GAP;
	}
}

static void put_text(FILE *out, unsigned int x, unsigned int y, const char *class, const char *text)
{
	fprintf(out, "<text x=\"%u\" y=\"%u\" class=\"%s\">", x, y, class);
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else
			fputc(*text, out);
	}
	fputs("</text>\n", out);
}

static void put_rect(FILE *out, const struct topo_box *box, unsigned int y, unsigned int h,
		     const struct style *style)
{
	fprintf(out,
		"<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"%s\" stroke=\"%s\"/>\n",
		box->x, y, box->w, h, style->fill, style->stroke);
}

static void draw(const struct topo_box *box, FILE *out)
{
	struct topo_box *inner = innermost((struct topo_box *)box);
	unsigned int y = box->y;

	if (box->kind == TOPO_CPU) {
		put_rect(out, box, box->y, box->h, &styles[TOPO_CPU]);
		put_text(out, box->x + box->w / 2, box->y + 13, "c", box->label);
		return;
	}
	put_rect(out, box, box->y, box->h, &styles[has_bar(box) ? TOPO_CORE : box->kind]);
	if (has_bar(box)) {
		for (const struct topo_box *b = box;; b = chained(b), y += BAR) {
			put_rect(out, box, y, BAR, &styles[b->kind]);
			put_text(out, box->x + PAD, y + 10, "s", b->label);
			if (b == inner)
				break;
		}
	} else {
		put_text(out, box->x + PAD, box->y + 12, "t", box->label);
	}
	for (const struct topo_box *child = inner->first; child; child = child->next)
		draw(child, out);
}

int topo_write_svg(const struct mc_topology *topo, FILE *out)
{
	struct topo_box *root = topo_boxes(topo);

	if (!root)
		return -ENOMEM;
	measure(root);
	place(root, PAD, PAD);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\">\n"
		"<style>text{font-family:\"DejaVu Sans Mono\",Menlo,Consolas,monospace;fill:#222}"
		".t{font-size:11px;font-weight:bold}.s{font-size:9px}.c{font-size:10px;text-anchor:middle}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		root->w + 2 * PAD, root->h + 2 * PAD, root->w + 2 * PAD, root->h + 2 * PAD);
	draw(root, out);
	fputs("</svg>\n", out);
	topo_boxes_free(root);
	return 0;
}
