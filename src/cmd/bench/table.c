// SPDX-License-Identifier: MIT
/* table.c - the benches there are. A new one: its file, its prototype and its line here. */
#include <stddef.h>
#include "cmd/bench/bench.h"

const struct bench_def bench_table[] = {
	{ NULL, NULL, NULL },
};
