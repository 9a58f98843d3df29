// SPDX-License-Identifier: MIT
/* table_doc.c - docs/syscalls.md, printed from table.c by `manycore run --print-calls`. */
#include <stdio.h>
#include <string.h>
#include "emu/emu.h"

static void print_when(const struct emu_syscall *line)
{
	static const struct {
		unsigned int bit;
		const char *text;
	} when[] = {
		{EMU_WHEN_LAZY, "large machines and the calls view"},
		{EMU_WHEN_CALLS, "the calls view"},
		{EMU_WHEN_STRICT, "`--strict`"},
		{EMU_WHEN_LOOSE, "without `--strict`"},
		{EMU_WHEN_RSEQ, "without `--rseq=real`"},
		{EMU_WHEN_NOTED, "where tasks can't be marked"},
		{EMU_WHEN_MARKED, "where tasks are marked"},
	};
	const char *between = "";

	for (size_t i = 0; i < sizeof(when) / sizeof(when[0]); i++)
		if (line->when & when[i].bit) {
			printf("%s%s", between, when[i].text);
			between = ", ";
		}
	if (!*between)
		fputs("always", stdout);
}

static void print_test(const struct emu_syscall *line)
{
	unsigned long long mask = line->test_mask, value = line->test_value;

	switch (line->test) {
	case EMU_IF_BITS:
		printf("argument %u & %#llx is %#llx", line->test_arg + 1, mask, value);
		break;
	case EMU_IF_NOT:
		printf("argument %u is not %#llx", line->test_arg + 1, value);
		break;
	case EMU_IF_BELOW:
		printf("argument %u is below %#llx", line->test_arg + 1, value);
		break;
	case EMU_IF_FROM:
		printf("argument %u is %#llx or above", line->test_arg + 1, value);
		break;
	default:
		fputs("", stdout);
	}
}

void emu_table_print(void)
{
	fputs("# System calls that `manycore run` sees\n\n"
	      "Printed by `manycore run --print-calls` from `src/emu/table.c` (x86-64); a test compares the two. "
	      "Every other call\nruns in the host's kernel unseen. \"The host's\" means that the call is "
	      "seen and then goes on there.\n\n"
	      "| call | seen | if | answer |\n|---|---|---|---|\n",
	      stdout);
	for (const struct emu_syscall *line = emu_table; line->name; line++) {
		printf("| %s | ", line->name);
		print_when(line);
		fputs(" | ", stdout);
		print_test(line);
		printf(" | %s |\n", line->what);
	}
}
