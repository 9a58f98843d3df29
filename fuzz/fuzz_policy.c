// SPDX-License-Identifier: MIT
/*
 * fuzz_policy.c - the policy engine with any arguments: masks of any size in any memory, then
 * ranges and pages changed at will, checked against plain arrays. Input: 4 bytes of machine, then
 * calls of 24 bytes (mode, maxnode, start, end, ...).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../src/emu/policy/policy.h"

enum { MODEL = 256, PAGE = 4096, MAX_NODES = 70 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
	const uint8_t *data;
	size_t size;
};

static int copy(void *arg, void *to, uint64_t from, size_t len)
{
	struct memory *m = arg;

	if (from < PAGE || from - PAGE > m->size || len > m->size - (from - PAGE))
		return -EFAULT;
	memcpy(to, m->data + (from - PAGE), len);
	return 0;
}

static void check(bool right)
{
	if (!right)
		abort();
}

static void place_some(const struct pol_machine *machine, const struct pol *pol, uint64_t index)
{
	uint64_t used[MAX_NODES] = {0};

	for (unsigned int i = 0; i < 8; i++) {
		struct pol_where where = {i, index + i};
		unsigned int node = pol_place(machine, pol, &where, used, NULL);

		check(node == POL_NO_NODE ||
		      (node < machine->nr_node_ids && pol_isset(machine->memory, node)));
		if (node != POL_NO_NODE)
			used[node]++;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t online[3][2], capacity[MAX_NODES];
	static unsigned int order[MAX_NODES * MAX_NODES];
	static uint8_t weight[MAX_NODES];
	struct pol_machine m = {.online = online[0],
				.memory = online[1],
				.allowed = online[2],
				.weight = weight,
				.order = order,
				.capacity = capacity};
	struct pol_ranges ranges = {0};
	struct pol *model[MODEL] = {NULL};
	struct memory memory;

	if (size < 4)
		return 0;
	memset(online, 0, sizeof(online));
	m.nr_node_ids = 1 + data[0] % MAX_NODES;
	m.max_numnodes = m.nr_node_ids > 64 ? 128 : data[1] & 1 ? 64 : m.nr_node_ids;
	m.words = (m.max_numnodes + 63) / 64;
	for (unsigned int n = 0; n < m.nr_node_ids; n++) {
		pol_setbit(m.online, n);
		if (!n || !(data[2] & 1) || n % 3)
			pol_setbit(m.memory, n), m.nr_memory++;
		weight[n] = (uint8_t)(1 + data[3] % 255);
		capacity[n] = data[2] % 4;
	}
	memcpy(m.allowed, m.memory, m.words * sizeof(uint64_t));
	for (unsigned int n = 0; n < m.nr_node_ids; n++)
		for (unsigned int i = 0; i < m.nr_memory; i++)
			order[n * m.nr_memory + i] =
				pol_nth(m.memory, m.words, (i + n) % m.nr_memory);
	memory = (struct memory){data, size};
	for (data += 4, size -= 4; size >= 24; data += 24, size -= 24) {
		uint64_t set[2], nmask = PAGE + data[4] % 64, maxnode = 0;
		unsigned int start = data[6], end = data[7];
		int mode, flags, lmode;
		struct pol *pol = NULL;
		struct mc_text text = {0};

		memcpy(&mode, data, 4);
		memcpy(&maxnode, data + 8, data[5] % 9);
		if (pol_mode_check(mode, &lmode, &flags) ||
		    pol_get_nodes(&m, set, nmask, maxnode, PAGE, copy, &memory) ||
		    pol_make(&m, lmode, flags, set, &pol))
			continue;
		place_some(&m, pol, maxnode);
		pol_text(&text, pol);
		mc_text_free(&text);
		check(!pol_ranges_set(&ranges, start, end, pol));
		for (unsigned int i = start; i < end; i++)
			model[i] = pol;
		for (unsigned int i = 0; i < MODEL; i++)
			check(pol_equal(pol_ranges_at(&ranges, i, NULL), model[i]));
		/* The model borrows: what the ranges let go of, merged into an equal one, must not
		 * be looked at. */
		for (unsigned int i = 0; i < MODEL; i++)
			model[i] = pol_ranges_at(&ranges, i, NULL);
		pol_put(pol);
	}
	pol_ranges_free(&ranges);
	return 0;
}
