// SPDX-License-Identifier: MIT
/*
 * pages.c - the node of every page whose node is known: sparse, two bytes a page.
 *
 * Leaves of 512 pages (2 MiB) hang in a hash table by page / 512 that grows with them; a leaf whose
 * last page is forgotten goes. Keyed by virtual page number in a process, by page index in a shared
 * object.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/policy/policy.h"

enum { LEAF = 512 };

struct pol_leaf {
	struct pol_leaf *next;
	uint64_t key;
	unsigned int known;
	uint16_t node[LEAF]; /* node + 1 */
};

static size_t slot(const struct pol_pages *pages, uint64_t key)
{
	return (size_t)(key * 0x9E3779B97F4A7C15ULL >> 32) & (pages->buckets - 1);
}

static struct pol_leaf *leaf_find(const struct pol_pages *pages, uint64_t key)
{
	struct pol_leaf *leaf = pages->buckets ? pages->bucket[slot(pages, key)] : NULL;

	while (leaf && leaf->key != key)
		leaf = leaf->next;
	return leaf;
}

static int grow(struct pol_pages *pages)
{
	size_t buckets = pages->buckets ? pages->buckets * 2 : 64;
	struct pol_pages bigger = {calloc(buckets, sizeof(*bigger.bucket)), buckets, pages->leaves};

	if (!bigger.bucket)
		return -ENOMEM;
	for (size_t i = 0; i < pages->buckets; i++) {
		struct pol_leaf *leaf, *next;

		for (leaf = pages->bucket[i]; leaf; leaf = next) {
			size_t s = slot(&bigger, leaf->key);

			next = leaf->next;
			leaf->next = bigger.bucket[s];
			bigger.bucket[s] = leaf;
		}
	}
	free(pages->bucket);
	*pages = bigger;
	return 0;
}

static void leaf_remove(struct pol_pages *pages, struct pol_leaf *leaf)
{
	struct pol_leaf **p = &pages->bucket[slot(pages, leaf->key)];

	while (*p != leaf)
		p = &(*p)->next;
	*p = leaf->next;
	pages->leaves--;
	free(leaf);
}

unsigned int pol_pages_get(const struct pol_pages *pages, uint64_t page)
{
	const struct pol_leaf *leaf = leaf_find(pages, page / LEAF);

	return leaf && leaf->node[page % LEAF] ? leaf->node[page % LEAF] - 1U : POL_NO_NODE;
}

int pol_pages_set(struct pol_pages *pages, uint64_t page, unsigned int node)
{
	struct pol_leaf *leaf = leaf_find(pages, page / LEAF);
	uint16_t *at;

	if (!leaf) {
		if (node == POL_NO_NODE)
			return 0;
		if (pages->leaves >= pages->buckets && grow(pages))
			return -ENOMEM;
		leaf = calloc(1, sizeof(*leaf));
		if (!leaf)
			return -ENOMEM;
		leaf->key = page / LEAF;
		leaf->next = pages->bucket[slot(pages, leaf->key)];
		pages->bucket[slot(pages, leaf->key)] = leaf;
		pages->leaves++;
	}
	at = &leaf->node[page % LEAF];
	leaf->known += (node != POL_NO_NODE) - (*at != 0);
	*at = node == POL_NO_NODE ? 0 : (uint16_t)(node + 1);
	if (!leaf->known)
		leaf_remove(pages, leaf);
	return 0;
}

static void leaf_forget(struct pol_pages *pages, struct pol_leaf *leaf, uint64_t first,
			uint64_t last, void (*fn)(void *arg, uint64_t page, unsigned int node),
			void *arg)
{
	uint64_t base = leaf->key * LEAF;
	unsigned int from = first > base ? (unsigned int)(first - base) : 0;
	unsigned int to = last < base + LEAF ? (unsigned int)(last - base) : LEAF;

	for (unsigned int i = from; i < to; i++) {
		if (!leaf->node[i])
			continue;
		if (fn)
			fn(arg, base + i, leaf->node[i] - 1U);
		leaf->node[i] = 0;
		leaf->known--;
	}
	if (!leaf->known)
		leaf_remove(pages, leaf);
}

void pol_pages_forget(struct pol_pages *pages, uint64_t first, uint64_t last,
		      void (*fn)(void *arg, uint64_t page, unsigned int node), void *arg)
{
	if (!pages->leaves || first >= last)
		return;
	/* Whichever is shorter: the range or the table. */
	if ((last - first) / LEAF <= pages->buckets) {
		for (uint64_t key = first / LEAF; key <= (last - 1) / LEAF; key++) {
			struct pol_leaf *leaf = leaf_find(pages, key);

			if (leaf)
				leaf_forget(pages, leaf, first, last, fn, arg);
		}
		return;
	}
	for (size_t i = 0; i < pages->buckets; i++) {
		struct pol_leaf *leaf, *next;

		for (leaf = pages->bucket[i]; leaf; leaf = next) {
			next = leaf->next;
			if (leaf->key >= first / LEAF && leaf->key <= (last - 1) / LEAF)
				leaf_forget(pages, leaf, first, last, fn, arg);
		}
	}
}

int pol_pages_move(struct pol_pages *pages, uint64_t from, uint64_t to, uint64_t count)
{
	struct pol_pages moved = {0};
	int rc = 0;

	for (uint64_t i = 0; i < count && pages->leaves && !rc; i++) {
		uint64_t skip = LEAF - (from + i) % LEAF;
		unsigned int node;

		if (!leaf_find(pages, (from + i) / LEAF)) {
			i += skip - 1;
			continue;
		}
		node = pol_pages_get(pages, from + i);
		if (node == POL_NO_NODE)
			continue;
		rc = pol_pages_set(&moved, to + i, node);
		pol_pages_set(pages, from + i, POL_NO_NODE);
	}
	for (size_t i = 0; i < moved.buckets && !rc; i++)
		for (struct pol_leaf *leaf = moved.bucket[i]; leaf && !rc; leaf = leaf->next)
			for (unsigned int k = 0; k < LEAF && !rc; k++)
				if (leaf->node[k])
					rc = pol_pages_set(pages, leaf->key * LEAF + k,
							   leaf->node[k] - 1U);
	pol_pages_free(&moved, NULL, NULL);
	return rc;
}

int pol_pages_copy(struct pol_pages *to, const struct pol_pages *from)
{
	struct pol_pages copy = {0};

	copy.bucket = calloc(from->buckets ? from->buckets : 1, sizeof(*copy.bucket));
	if (!copy.bucket)
		return -ENOMEM;
	copy.buckets = from->buckets;
	for (size_t i = 0; i < from->buckets; i++) {
		for (struct pol_leaf *leaf = from->bucket[i]; leaf; leaf = leaf->next) {
			struct pol_leaf *twin = malloc(sizeof(*twin));

			if (!twin) {
				pol_pages_free(&copy, NULL, NULL);
				return -ENOMEM;
			}
			*twin = *leaf;
			twin->next = copy.bucket[i];
			copy.bucket[i] = twin;
			copy.leaves++;
		}
	}
	if (!copy.buckets) {
		free(copy.bucket);
		copy.bucket = NULL;
	}
	*to = copy;
	return 0;
}

void pol_pages_each(const struct pol_pages *pages,
		    void (*fn)(void *arg, uint64_t page, unsigned int node), void *arg)
{
	for (size_t i = 0; i < pages->buckets; i++)
		for (struct pol_leaf *leaf = pages->bucket[i]; leaf; leaf = leaf->next)
			for (unsigned int k = 0; k < LEAF; k++)
				if (leaf->node[k])
					fn(arg, leaf->key * LEAF + k, leaf->node[k] - 1U);
}

void pol_pages_free(struct pol_pages *pages,
		    void (*fn)(void *arg, uint64_t page, unsigned int node), void *arg)
{
	if (fn)
		pol_pages_each(pages, fn, arg);
	for (size_t i = 0; i < pages->buckets; i++) {
		struct pol_leaf *leaf, *next;

		for (leaf = pages->bucket[i]; leaf; leaf = next) {
			next = leaf->next;
			free(leaf);
		}
	}
	free(pages->bucket);
	*pages = (struct pol_pages){0};
}
