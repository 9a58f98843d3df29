// SPDX-License-Identifier: MIT
/*
 * percpu_area.c - which parts of a unit are allocated: the bitmaps and hints of one chunk.
 *
 * As in the kernel's mm/percpu.c: an allocation bitmap, a boundary bitmap from which a free reads
 * the size, and hints per page-sized block. Unlike there the hints are exact at all times: a block
 * is rescanned when its longest run is touched, and the run over all blocks is merged from their
 * ends. Called by percpu_chunk.c under the pool's mutex.
 */
#include <string.h>
#include "lib/percpu_internal.h"

static bool test_bit(const uint64_t *map, uint32_t bit)
{
	return map[bit / 64] >> (bit % 64) & 1;
}

static void set_bit(uint64_t *map, uint32_t bit)
{
	map[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* The next bit with `value` in [bit, end), or end. */
static uint32_t next_bit(const uint64_t *map, uint32_t bit, uint32_t end, bool value)
{
	while (bit < end) {
		uint64_t w = (value ? map[bit / 64] : ~map[bit / 64]) >> (bit % 64);

		if (w) {
			bit += (uint32_t)__builtin_ctzll(w);
			return bit < end ? bit : end;
		}
		bit = (bit / 64 + 1) * 64;
	}
	return end;
}

/* The start of the run of bits unlike `value` that ends just before `bit`, not before `begin`. */
static uint32_t run_start(const uint64_t *map, uint32_t bit, uint32_t begin, bool value)
{
	while (bit > begin) {
		uint32_t low = (bit - 1) / 64 * 64;
		uint64_t w = value ? map[low / 64] : ~map[low / 64];

		if (bit - low < 64)
			w &= (UINT64_C(1) << (bit - low)) - 1;
		if (w) {
			bit = low + 64 - (uint32_t)__builtin_clzll(w);
			return bit > begin ? bit : begin;
		}
		bit = low;
	}
	return begin;
}

static void fill(uint64_t *map, uint32_t bit, uint32_t n, bool value)
{
	while (n) {
		uint32_t in = 64 - bit % 64, k = n < in ? n : in;
		uint64_t w = (k == 64 ? ~UINT64_C(0) : (UINT64_C(1) << k) - 1) << (bit % 64);

		if (value)
			map[bit / 64] |= w;
		else
			map[bit / 64] &= ~w;
		bit += k;
		n -= k;
	}
}

size_t mc_area_bytes(uint32_t nr_bits)
{
	size_t words = (nr_bits + 63) / 64;

	return words * 8 + (words + 1) * 8 + (nr_bits / MC_BLOCK_BITS) * sizeof(struct mc_block);
}

void mc_area_init(struct mc_area *a, uint32_t nr_bits, void *memory)
{
	size_t words = (nr_bits + 63) / 64;

	a->nr_bits = a->free_bits = a->contig = nr_bits;
	a->nr_blocks = nr_bits / MC_BLOCK_BITS;
	a->alloc_map = memory;
	a->bound_map = a->alloc_map + words;
	a->block = (struct mc_block *)(a->bound_map + words + 1);
	memset(memory, 0, mc_area_bytes(nr_bits));
	set_bit(a->bound_map, 0);
	set_bit(a->bound_map, nr_bits);
	for (uint32_t b = 0; b < a->nr_blocks; b++)
		a->block[b] = (struct mc_block){MC_BLOCK_BITS, 0, MC_BLOCK_BITS, MC_BLOCK_BITS};
}

/* All of a block's hints from its bits. */
static struct mc_block scan(const struct mc_area *a, uint32_t b)
{
	uint32_t begin = b * MC_BLOCK_BITS, end = begin + MC_BLOCK_BITS;
	struct mc_block h = {0, 0, 0, 0};
	uint32_t s = next_bit(a->alloc_map, begin, end, false);

	while (s < end) {
		uint32_t e = next_bit(a->alloc_map, s, end, true);

		if (e - s > h.contig) {
			h.contig = (uint16_t)(e - s);
			h.contig_start = (uint16_t)(s - begin);
		}
		if (s == begin)
			h.left = (uint16_t)(e - s);
		if (e == end)
			h.right = (uint16_t)(e - s);
		s = next_bit(a->alloc_map, e, end, false);
	}
	return h;
}

static uint32_t merge(const struct mc_area *a)
{
	uint32_t best = 0, run = 0;

	for (uint32_t b = 0; b < a->nr_blocks; b++) {
		const struct mc_block *h = &a->block[b];

		if (h->left == MC_BLOCK_BITS) {
			run += MC_BLOCK_BITS;
			continue;
		}
		if (run + h->left > best)
			best = run + h->left;
		if (h->contig > best)
			best = h->contig;
		run = h->right;
	}
	return run > best ? run : best;
}

static uint32_t up(uint32_t bit, uint32_t align)
{
	return (bit + align - 1) & ~(align - 1);
}

/* First fit inside one block. */
static int64_t find_in_block(const struct mc_area *a, uint32_t b, uint32_t bits, uint32_t align)
{
	uint32_t begin = b * MC_BLOCK_BITS, end = begin + MC_BLOCK_BITS;
	uint32_t s = next_bit(a->alloc_map, begin, end, false);

	while (s < end) {
		uint32_t e = next_bit(a->alloc_map, s, end, true), at = up(s, align);

		if (at + bits <= e)
			return at;
		s = next_bit(a->alloc_map, e, end, false);
	}
	return -1;
}

static int64_t find(const struct mc_area *a, uint32_t bits, uint32_t align)
{
	uint32_t run = 0; /* where the free run that reaches this block begins */

	if (bits > a->contig)
		return -1;
	for (uint32_t b = 0; b < a->nr_blocks; b++) {
		const struct mc_block *h = &a->block[b];
		uint32_t begin = b * MC_BLOCK_BITS;

		if (up(run, align) + bits <= begin + h->left)
			return up(run, align);
		if (h->left == MC_BLOCK_BITS)
			continue;
		if (h->contig >= bits) {
			int64_t at = find_in_block(a, b, bits, align);

			if (at >= 0)
				return at;
		}
		run = begin + MC_BLOCK_BITS - h->right;
	}
	return up(run, align) + bits <= a->nr_bits ? (int64_t)up(run, align) : -1;
}

static void rescan(struct mc_area *a, uint32_t bit, uint32_t bits)
{
	for (uint32_t b = bit / MC_BLOCK_BITS; b <= (bit + bits - 1) / MC_BLOCK_BITS; b++)
		a->block[b] = scan(a, b);
	a->contig = merge(a);
}

int64_t mc_area_alloc(struct mc_area *a, uint32_t bits, uint32_t align)
{
	int64_t found = find(a, bits, align);
	uint32_t at = (uint32_t)found;

	if (found < 0)
		return -1;
	fill(a->alloc_map, at, bits, true);
	set_bit(a->bound_map, at);
	fill(a->bound_map, at + 1, bits - 1, false);
	set_bit(a->bound_map, at + bits);
	a->free_bits -= bits;
	rescan(a, at, bits);
	return found;
}

uint32_t mc_area_size(const struct mc_area *a, uint32_t bit)
{
	return next_bit(a->bound_map, bit + 1, a->nr_bits + 1, true) - bit;
}

uint32_t mc_area_free(struct mc_area *a, uint32_t bit)
{
	uint32_t bits = mc_area_size(a, bit), b = bit / MC_BLOCK_BITS;

	fill(a->alloc_map, bit, bits, false);
	a->free_bits += bits;
	if (b == (bit + bits - 1) / MC_BLOCK_BITS) {
		/* The usual case without a scan: the merged run around what was freed. */
		uint32_t begin = b * MC_BLOCK_BITS, end = begin + MC_BLOCK_BITS;
		uint32_t s = run_start(a->alloc_map, bit, begin, true);
		uint32_t e = next_bit(a->alloc_map, bit + bits, end, true);
		struct mc_block *h = &a->block[b];

		if (s == begin)
			h->left = (uint16_t)(e - s);
		if (e == end)
			h->right = (uint16_t)(e - s);
		if (e - s > h->contig || (e - s == h->contig && s - begin < h->contig_start)) {
			h->contig = (uint16_t)(e - s);
			h->contig_start = (uint16_t)(s - begin);
		}
		a->contig = merge(a);
	} else {
		rescan(a, bit, bits);
	}
	return bits;
}

int64_t mc_area_start(const struct mc_area *a, uint32_t bit)
{
	uint32_t s;

	if (bit >= a->nr_bits || !test_bit(a->alloc_map, bit))
		return -1;
	/* The last boundary at or before the bit. */
	s = run_start(a->bound_map, bit + 1, 0, true);
	return s ? (int64_t)s - 1 : 0;
}

bool mc_area_block_free(const struct mc_area *a, uint32_t block)
{
	return a->block[block].left == MC_BLOCK_BITS;
}

bool mc_area_check(const struct mc_area *a)
{
	uint32_t used = 0, best = 0, run = 0;

	for (uint32_t b = 0; b < a->nr_blocks; b++) {
		struct mc_block h = scan(a, b);

		if (memcmp(&h, &a->block[b], sizeof(h)))
			return false;
	}
	for (uint32_t i = 0; i < a->nr_bits; i++) {
		if (test_bit(a->alloc_map, i)) {
			used++;
			run = 0;
		} else if (++run > best) {
			best = run;
		}
	}
	return used == a->nr_bits - a->free_bits && best == a->contig && best == merge(a);
}
