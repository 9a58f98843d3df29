// SPDX-License-Identifier: MIT
/*
 * vdso.c - getcpu without a system call, in the vDSO of x86-64, tells the host's CPU: in each new
 * image its code is replaced by the call itself, which is answered. Other architectures have no
 * such function in their vDSO.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "emu/internal.h"

#ifdef __x86_64__

/* Offset of __vdso_getcpu in the vDSO and its size: the same image in every process of this kernel.
 */
static uint64_t getcpu_offset(const char *image, uint64_t *room)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)(const void *)image;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(const void *)(image + eh->e_phoff);
	const Elf64_Sym *sym = NULL;
	const char *names = NULL;
	const uint32_t *hash = NULL;

	for (int i = 0; i < eh->e_phnum; i++) {
		const Elf64_Dyn *dyn;

		if (ph[i].p_type != PT_DYNAMIC)
			continue;
		for (dyn = (const Elf64_Dyn *)(const void *)(image + ph[i].p_offset); dyn->d_tag;
		     dyn++) {
			const void *at = image + dyn->d_un.d_ptr;

			if (dyn->d_tag == DT_SYMTAB)
				sym = at;
			else if (dyn->d_tag == DT_STRTAB)
				names = at;
			else if (dyn->d_tag == DT_HASH)
				hash = at;
		}
	}
	if (!sym || !names)
		return 0;
	for (uint32_t i = 1; i < (hash ? hash[1] : 32); i++) {
		if (sym[i].st_value && !strcmp(names + sym[i].st_name, "__vdso_getcpu")) {
			*room = sym[i].st_size;
			return sym[i].st_value;
		}
	}
	return 0;
}

/* AT_SYSINFO_EHDR of the caller. */
static uint64_t vdso_of(pid_t tid)
{
	uint64_t aux[128];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, aux, sizeof(aux));
	close(fd);
	for (ssize_t i = 0; i + 1 < n / 8; i += 2)
		if (aux[i] == AT_SYSINFO_EHDR)
			return aux[i + 1];
	return 0;
}

void emu_vdso_patch(struct emu_call *call)
{
	/* again: mov $__NR_getcpu,%eax; syscall; cmp $-EINTR,%eax; je again; ret. A signal may end
	 * the call before it is received here, and no caller of a vDSO function expects that. */
	static const unsigned char code[] = { 0xb8, 0x35, 0x01, 0x00, 0x00, 0x0f, 0x05,
					      0x83, 0xf8, 0xfc, 0x74, 0xf4, 0xc3 };
	static _Atomic uint64_t known;
	const char *own = (const char *)getauxval(AT_SYSINFO_EHDR);
	uint64_t offset = known, base, room = 0;
	char path[64];
	int fd;

	if (!own)
		return;
	if (!offset) {
		offset = getcpu_offset(own, &room);
		if (!offset || room < sizeof(code))
			return;
		known = offset;
	}
	base = vdso_of(call->caller);
	snprintf(path, sizeof(path), "/proc/%d/mem", call->caller);
	if (!base || !emu_call_valid(call))
		return;
	/* Through /proc: the page is not writable, and is copied for this process alone. */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (emu_call_valid(call) &&
	    pwrite(fd, code, sizeof(code), (off_t)(base + offset)) == sizeof(code))
		call->task->process->vdso = base;
	close(fd);
}

#else

void emu_vdso_patch(struct emu_call *call)
{
	(void)call;
}

#endif
