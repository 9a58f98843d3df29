// SPDX-License-Identifier: MIT
/*
 * getcpu_vdso.c - of getcpu.c: what a program does to the vDSO and to thread pointers. By the
 * vDSO's own function, since libc needs a thread pointer of its own making. Elsewhere than on
 * x86-64 there is nothing to check.
 */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include "getcpu.h"

#ifdef __x86_64__
#include <asm/prctl.h>

typedef long getcpu_fn(unsigned int *, unsigned int *, void *);

static uintptr_t find(uintptr_t base)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)base;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + eh->e_phoff);
	const Elf64_Sym *sym = NULL;
	const char *names = NULL;

	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type != PT_DYNAMIC)
			continue;
		for (const Elf64_Dyn *d = (const Elf64_Dyn *)(base + ph[i].p_offset); d->d_tag;
		     d++) {
			if (d->d_tag == DT_SYMTAB)
				sym = (const Elf64_Sym *)(base + d->d_un.d_ptr);
			else if (d->d_tag == DT_STRTAB)
				names = (const char *)(base + d->d_un.d_ptr);
		}
	}
	/* The strings come after the symbols. */
	for (int i = 1; sym && names && (const char *)(sym + i) < names; i++)
		if (!strcmp(names + sym[i].st_name, "__vdso_getcpu"))
			return base + sym[i].st_value;
	return 0;
}

static int by(uintptr_t fn)
{
	unsigned int cpu = 9999, node = 9999;

	for (int i = 0; i < 3; i++)
		if (((getcpu_fn *)fn)(&cpu, &node, NULL))
			return -1;
	return node == cpu / 80 ? (int)cpu : -2;
}

static long raw_set_fs(uintptr_t to)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(to)
			 : "rcx", "r11", "memory");
	return result;
}

/* With another thread pointer, and back; what lies between may not use it. */
__attribute__((no_stack_protector)) static int with(uintptr_t pointer, uintptr_t fn)
{
	uintptr_t own;
	int cpu;

	__asm__("mov %%fs:0,%0" : "=r"(own));
	raw_set_fs(pointer);
	cpu = by(fn);
	raw_set_fs(own);
	return cpu;
}

static uintptr_t fn;
static _Atomic int turn;
static struct {
	uintptr_t self;
	char rest[1016];
} fiber[3] __attribute__((aligned(64)));

static void *other(void *arg)
{
	(void)arg;
	pin(0, 9);
	told(9);
	CHECK(with((uintptr_t)&fiber[1], fn) == 9, "the other by a second pointer");
	turn = 1;
	while (turn != 2)
		sched_yield();
	CHECK(with((uintptr_t)&fiber[0], fn) == 9, "the other by the first one's second");
	pin(0, 10);
	CHECK(with((uintptr_t)&fiber[0], fn) == 10, "the other, moved");
	told(10);
	return NULL;
}

/* Threads that change their thread pointers, as user-level threads do. */
void getcpu_pointers(void)
{
	pthread_t t;

	fn = find(getauxval(AT_SYSINFO_EHDR));
	for (int i = 0; i < 2; i++)
		fiber[i].self = (uintptr_t)&fiber[i];
	pin(0, 5);
	told(5);
	CHECK(with((uintptr_t)&fiber[2], fn) == 5, "by none");
	if (pthread_create(&t, NULL, other, NULL))
		exit(2);
	while (turn != 1)
		sched_yield();
	CHECK(with((uintptr_t)&fiber[0], fn) == 5, "by a second pointer");
	CHECK(with((uintptr_t)&fiber[1], fn) == 5, "by the other's second");
	turn = 2;
	pthread_join(t, NULL);
	pin(0, 6);
	told(6);
	CHECK(with((uintptr_t)&fiber[0], fn) == 6, "moved, by a second pointer");
	CHECK(with((uintptr_t)&fiber[1], fn) == 6, "moved, by the other's second");
}

static size_t size_of_vdso(uintptr_t base)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512];
	size_t size = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from == base)
			size = to - from;
	if (f)
		fclose(f);
	return size;
}

/* A sealed one can't be moved: then there is nothing to check. */
static uintptr_t move_it(uintptr_t base, size_t size)
{
	void *to = mmap(NULL, size + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *now = mremap((void *)base, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	return now == MAP_FAILED ? 0 : (uintptr_t)now;
}

/* The table goes with the code. */
void getcpu_moved(void)
{
	uintptr_t base = getauxval(AT_SYSINFO_EHDR), now, offset = find(base) - base;
	size_t size = size_of_vdso(base);

	pin(0, 5);
	told(5);
	now = move_it(base, size);
	if (!now)
		return;
	CHECK(by(now + offset) == 5, "moved: on %d", by(now + offset));
	pin(0, 6);
	CHECK(by(now + offset) == 6, "moved, and another mask: on %d", by(now + offset));
	pin(0, 7);
	CHECK(by(now + offset) == 7, "and one more: on %d", by(now + offset));
}

/* What lies in its place is the program's own. */
void getcpu_covered(void)
{
	uintptr_t base = getauxval(AT_SYSINFO_EHDR);
	size_t size = size_of_vdso(base);
	unsigned char *p;

	pin(0, 5);
	told(5);
	p = move_it(base, size) ? mmap((void *)base, size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
				: MAP_FAILED;
	if (p == MAP_FAILED)
		return;
	memset(p, 0xa5, size);
	for (int i = 6; i < 10; i++) {
		pin(0, i);
		CHECK(raw() == i, "on %d", raw());
	}
	for (size_t i = 0; i < size; i++)
		CHECK(p[i] == 0xa5, "byte %zu was written", i);
}

#else

void getcpu_pointers(void)
{
}

void getcpu_moved(void)
{
}

void getcpu_covered(void)
{
}

#endif
