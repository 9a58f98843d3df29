// SPDX-License-Identifier: MIT
/* table.c - the benches there are. A new one: its file, its prototype and its line here. */
#include <stddef.h>
#include "cmd/bench/bench.h"
#include "cmd/bench/bench_pageinit.h"
#include "cmd/bench/bench_percpu.h"
#include "cmd/bench/bench_cpumask.h"
#include "cmd/bench/bench_run.h"

const struct bench_def bench_table[] = {
	{ "cpumask", bench_cpumask, "mask operations against glibc, hwloc, libnuma and a fixed 4096-bit mask" },
	{ "run", bench_run_main, "what the emulated machine costs: starting it, calls it answers, programs on it" },
	{ "interleave", bench_interleave_main, "memory interleaved over nodes, or over physical chunks, against one" },
	{ "pageinit", bench_pageinit_main, "very large memory, brought up in parallel" },
	{ "percpu", bench_percpu_main, "operations on per-CPU objects and counters, walks, memory" },
	{ "alloc", bench_alloc_main, "allocating and freeing per-CPU objects" },
	{ "execl", bench_execl_main, "counters of short-lived address spaces, as execve makes them" },
	{ NULL, NULL, NULL },
};
