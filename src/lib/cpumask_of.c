// SPDX-License-Identifier: MIT
/*
 * cpumask_of.c - the constant masks of one CPU each.
 *
 * One row of words per bit number serves every CPU with that bit: the row is 0 but for one word in
 * its middle, and a CPU's mask begins as many words before it as the CPU's word index (the kernel's
 * cpu_bit_bitmap, sized to the machine). Heads and rows lie in zero memory and are filled at the
 * first use of each, so that only what is asked for is ever touched.
 */
#include <errno.h>
#include <sys/mman.h>
#include "internal.h"

enum { STATIC_IDS = 8192, STATIC_WORDS = STATIC_IDS / 64 };

struct table {
	struct mc_cpumask *head; /* one for each CPU, and one for the empty mask at [nr] */
	uint64_t *row;
	unsigned int nr, words;
};

/* The word for bit b is row[(b + 1) * words]: `words` zeros before it, words - 1 after, shared by
 * neighbours. After the last row come as many again for the empty mask. */
enum { ROWS = 66 };

static struct mc_cpumask static_head[STATIC_IDS + 1];
static uint64_t static_row[ROWS * STATIC_WORDS];

/* The table of a machine with more CPUs than STATIC_IDS. Racing first calls map two; the loser's
 * goes. */
static char *mapped(size_t size)
{
	static char *map;
	char *have = __atomic_load_n(&map, __ATOMIC_ACQUIRE), *mine;

	if (have)
		return have;
	mine = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (mine == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&map, &have, mine, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return mine;
	munmap(mine, size);
	return have;
}

/*
 * Fills a head and its row's one word. Threads may do so at once: they write the same values, and
 * word, which says that the rest is there, last. For TSan's eyes, which can't know that, the stores
 * are hidden.
 */
__attribute__((no_sanitize("thread"))) static void fill(const struct table *t, unsigned int cpu)
{
	struct mc_cpumask *head = &t->head[cpu];
	uint64_t *set = t->row + (cpu < t->nr ? cpu % 64 + 1 : ROWS - 1) * (size_t)t->words;

	__atomic_store_n(&head->nbits, t->nr, __ATOMIC_RELAXED);
	__atomic_store_n(&head->flags, (unsigned int)MC_MASK_CONST_, __ATOMIC_RELAXED);
	__atomic_store_n(&head->tail, ~UINT64_C(0) >> (t->nr % 64 ? 64 - t->nr % 64 : 0),
			 __ATOMIC_RELAXED);
	if (cpu < t->nr) {
		__atomic_store_n(set, UINT64_C(1) << cpu % 64, __ATOMIC_RELAXED);
		__atomic_store_n(&head->bits[0], cpu < 64 ? UINT64_C(1) << cpu : 0,
				 __ATOMIC_RELAXED);
	}
	__atomic_store_n(&head->word, set - (cpu < t->nr ? cpu / 64 : 0), __ATOMIC_RELEASE);
}

const struct mc_cpumask *mc_cpumask_of(unsigned int cpu)
{
	struct table t = {.nr = mc_nr_cpu_ids()};

	t.words = (t.nr + 63) / 64;
	if (mc_likely(t.nr <= STATIC_IDS)) {
		t.head = static_head;
		t.row = static_row;
	} else {
		size_t rows = ROWS * (size_t)t.words * sizeof(uint64_t);
		char *map = mapped(rows + (t.nr + 1) * sizeof(*t.head));

		if (!map) {
			errno = ENOMEM;
			return NULL;
		}
		t.row = (uint64_t *)map;
		t.head = (struct mc_cpumask *)(map + rows);
	}
	if (cpu > t.nr)
		cpu = t.nr;
	if (!__atomic_load_n(&t.head[cpu].word, __ATOMIC_ACQUIRE))
		fill(&t, cpu);
	return &t.head[cpu];
}
