/* SPDX-License-Identifier: MIT */
/*
 * mask_text.h - the target that fuzz_cpulist.c and fuzz_hexmask.c share, for the text form that
 * PARSE and SNPRINT are of: a good text prints and reads back as the same mask, a bad one leaves
 * the mask alone and points into the text. The first byte picks the size.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <manycore/cpumask.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned int sizes[] = {1, 2, 63, 64, 65, 256, 1025, 8192, 8193, 65536};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int nbits = sizes[size ? data[0] % 10 : 0];
	struct mc_cpumask *m = mc_cpumask_alloc_bits(nbits), *again = mc_cpumask_alloc_bits(nbits);
	char *text = malloc(size + 1), *printed;
	size_t where = 0, len;

	if (!m || !again || !text)
		abort();
	if (size)
		memcpy(text, data + 1, size - 1);
	text[size ? size - 1 : 0] = '\0';
	mc_cpumask_set(m, nbits / 2);
	if (PARSE(m, text, &where) < 0) {
		if (where > strlen(text) || mc_cpumask_weight(m) != 1 ||
		    !mc_cpumask_test(m, nbits / 2))
			abort();
	} else {
		len = SNPRINT(NULL, 0, m);
		printed = malloc(len + 1);
		if (!printed || SNPRINT(printed, len + 1, m) != len ||
		    strlen(printed) != len)
			abort();
		if (PARSE(again, printed, NULL) < 0 || !mc_cpumask_equal(m, again))
			abort();
		if (m->word[(nbits - 1) / 64] & ~m->tail)
			abort();
		free(printed);
	}
	free(text);
	mc_cpumask_free(m);
	mc_cpumask_free(again);
	return 0;
}
