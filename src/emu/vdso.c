// SPDX-License-Identifier: MIT
/*
 * vdso.c - getcpu without a system call, in the vDSO of x86-64, tells the host's CPU: in each new
 * image its code is replaced by the call itself, which is answered. A process that calls it also
 * gets code behind the vDSO's image that looks in a table of answers first: answers.c fills that.
 * Other architectures have no such function in their vDSO.
 *
 * All is written through /proc/PID/mem: the pages are not writable, and are copied for this
 * process alone.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "emu/vdso.h"

#ifdef __x86_64__

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE 2
#endif

/* In place of __vdso_getcpu. A signal may end the call before it is received here, and no caller of
 * a vDSO function expects that: EINTR is tried again. */
static const unsigned char entry_code[] = {
	0x80, 0x3d, 0, 0, 0, 0, 0,         /* cmpb $0,armed(%rip) */
	0x0f, 0x85, 0, 0, 0, 0,            /* jne code */
	0xb8, 0x35, 0x01, 0x00, 0x00,      /* 1: mov $__NR_getcpu,%eax */
	0x0f, 0x05, 0x83, 0xf8, 0xfc,      /* syscall; cmp $-EINTR,%eax */
	0x74, 0xf4, 0xc3,                  /* je 1b; ret */
};
enum { ENTRY_ARMED = 2, ENTRY_CODE = 9, ENTRY_PLAIN = 13, ENTRY_IP = 20 };

/*
 * The thread pointer as the call's third argument, which the kernel ignores, shows the supervisor
 * whose answer to put where. The slot's pointer is read before the answer and once more after it:
 * it is cleared first when a slot changes hands, and written last. Then the thread's tid, where its
 * C library has it: threads end unseen, and the next one may have the same thread pointer.
 */
static const unsigned char code[] = {
	0x64, 0x48, 0x8b, 0x14, 0x25, 0,    0,    0, 0, /* mov %fs:0,%rdx */
	0x48, 0x89, 0xd0,                               /* mov %rdx,%rax */
	0x48, 0xc1, 0xe8, 0x06,                         /* shr $6,%rax */
	0x69, 0xc0, 0xb1, 0x79, 0x37, 0x9e,             /* imul $0x9e3779b1,%eax,%eax */
	0xc1, 0xe8, 0x1d,                               /* shr $32-log2(sets),%eax */
	0xc1, 0xe0, 0x07,                               /* shl $7,%eax */
	0x48, 0x8d, 0x0d, 0xdd, 0x00, 0x00, 0x00,       /* lea table(%rip),%rcx */
	0x48, 0x01, 0xc1,                               /* add %rax,%rcx */
	0xb8, 0x08, 0x00, 0x00, 0x00,                   /* mov $8,%eax */
	0x48, 0x39, 0x11,                               /* 1: cmp %rdx,(%rcx) */
	0x74, 0x15,                                     /* je 2f */
	0x48, 0x83, 0xc1, 0x10,                         /* add $16,%rcx */
	0xff, 0xc8,                                     /* dec %eax */
	0x75, 0xf3,                                     /* jnz 1b */
	0xb8, 0x35, 0x01, 0x00, 0x00,                   /* 3: mov $__NR_getcpu,%eax */
	0x0f, 0x05,                                     /* syscall */
	0x83, 0xf8, 0xfc,                               /* cmp $-EINTR,%eax */
	0x74, 0xf4,                                     /* je 3b */
	0xc3,                                           /* ret */
	0x4c, 0x8b, 0x41, 0x08,                         /* 2: mov 8(%rcx),%r8 */
	0x48, 0x39, 0x11,                               /* cmp %rdx,(%rcx) */
	0x75, 0xea,                                     /* jne 3b */
	0x48, 0x85, 0xd2,                               /* test %rdx,%rdx */
	0x74, 0xe5,                                     /* je 3b */
	0x4c, 0x89, 0xc0,                               /* mov %r8,%rax */
	0x48, 0xc1, 0xe8, 0x36,                         /* shr $54,%rax */
	0xc1, 0xe0, 0x04,                               /* shl $4,%eax */
	0x64, 0x44, 0x8b, 0x08,                         /* mov %fs:(%rax),%r9d */
	0x4c, 0x89, 0xc0,                               /* mov %r8,%rax */
	0x48, 0xc1, 0xe8, 0x20,                         /* shr $32,%rax */
	0x25, 0xff, 0xff, 0x3f, 0x00,                   /* and $0x3fffff,%eax */
	0x44, 0x39, 0xc8,                               /* cmp %r9d,%eax */
	0x75, 0xc6,                                     /* jne 3b */
	0x48, 0x85, 0xff,                               /* test %rdi,%rdi */
	0x74, 0x0a,                                     /* je 4f */
	0x44, 0x89, 0xc0,                               /* mov %r8d,%eax */
	0x25, 0xff, 0xff, 0x0f, 0x00,                   /* and $0xfffff,%eax */
	0x89, 0x07,                                     /* mov %eax,(%rdi) */
	0x48, 0x85, 0xf6,                               /* 4: test %rsi,%rsi */
	0x74, 0x08,                                     /* je 5f */
	0x44, 0x89, 0xc0,                               /* mov %r8d,%eax */
	0xc1, 0xe8, 0x14,                               /* shr $20,%eax */
	0x89, 0x06,                                     /* mov %eax,(%rsi) */
	0x31, 0xc0, 0xc3,                               /* 5: xor %eax,%eax; ret */
};
/* Where the code has what depends on the host, and its parts behind it, each on lines of its own:
 * code that is run near to what is written would be slow. */
enum { CODE_SHIFT = 24, CODE_IP = 63, AT_ARMED = 192, AT_TABLE = 256 };
static const unsigned char read_fs_base[] = {
	0xf3, 0x48, 0x0f, 0xae, 0xc2,      /* rdfsbase %rdx */
	0x0f, 0x1f, 0x40, 0x00,            /* nopl 0(%rax) */
};

static struct emu_vdso layout;
static unsigned char our_entry[sizeof(entry_code)], our_code[sizeof(code)];
static size_t entry_from; /* the part of entry_code that is used */

/* The function's offset and size. */
static uint64_t find_getcpu(const char *image, uint64_t *room)
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

/* Where the image ends: behind all segments, sections and headers. */
static uint64_t image_end(const char *image)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)(const void *)image;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(const void *)(image + eh->e_phoff);
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(const void *)(image + eh->e_shoff);
	uint64_t end = eh->e_phoff + (uint64_t)eh->e_phnum * eh->e_phentsize, at;

	for (int i = 0; i < eh->e_phnum; i++) {
		at = ph[i].p_offset + (ph[i].p_memsz > ph[i].p_filesz ? ph[i].p_memsz
								      : ph[i].p_filesz);
		end = at > end ? at : end;
	}
	if (!eh->e_shoff)
		return end;
	at = eh->e_shoff + (uint64_t)eh->e_shnum * eh->e_shentsize;
	end = at > end ? at : end;
	for (int i = 0; i < eh->e_shnum; i++) {
		at = sh[i].sh_offset + (sh[i].sh_type == SHT_NOBITS ? 0 : sh[i].sh_size);
		end = at > end ? at : end;
	}
	return end;
}

/* The rest of the last page belongs to nobody, if it is zero. */
static void find_room(const char *image)
{
	uint64_t end = image_end(image), at = (end + 63) & ~63ULL, stop = (end + 4095) & ~4095ULL;
	unsigned int sets = VDSO_SETS, shift = 32 - 3;

	while (sets > 1 && at + AT_TABLE + sets * VDSO_WAYS * sizeof(struct emu_vdso_slot) > stop) {
		sets /= 2;
		shift++;
	}
	for (uint64_t i = end; i < stop; i++)
		if (image[i])
			return;
	if (sets < 2)
		return;
	layout.sets = sets;
	layout.code = at;
	layout.code_ip = at + CODE_IP;
	layout.armed = at + AT_ARMED;
	layout.table = at + AT_TABLE;
	memcpy(our_code, code, sizeof(code));
	our_code[CODE_SHIFT] = (unsigned char)shift;
	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
		memcpy(our_code, read_fs_base, sizeof(read_fs_base));
}

static void put_distance(unsigned char *to, uint64_t from, uint64_t target)
{
	uint32_t distance = (uint32_t)(target - from);

	memcpy(to, &distance, sizeof(distance));
}

static void find_layout(void)
{
	const char *own = (const char *)getauxval(AT_SYSINFO_EHDR);
	uint64_t room = 0, entry = own ? find_getcpu(own, &room) : 0;

	_Static_assert(sizeof(code) <= AT_ARMED, "the code is in front of its data");
	if (!entry || room < sizeof(entry_code) - ENTRY_PLAIN)
		return;
	layout.entry = entry;
	memcpy(our_entry, entry_code, sizeof(entry_code));
	if (room >= sizeof(entry_code))
		find_room(own);
	entry_from = layout.code ? 0 : ENTRY_PLAIN;
	layout.entry_ip = entry + ENTRY_IP - entry_from;
	/* Distances count from the end of the instruction; cmpb has a byte behind its own. */
	put_distance(our_entry + ENTRY_ARMED, entry + ENTRY_ARMED + 5, layout.armed);
	put_distance(our_entry + ENTRY_CODE, entry + ENTRY_CODE + 4, layout.code);
}

const struct emu_vdso *emu_vdso(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_layout);
	return &layout;
}

int emu_vdso_open(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	return open(path, O_RDWR | O_CLOEXEC);
}

uint64_t emu_vdso_base(pid_t tid)
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

static bool put(int mem, uint64_t at, const void *from, size_t len)
{
	return pwrite(mem, from, len, (off_t)at) == (ssize_t)len;
}

bool emu_vdso_has_code(int mem, uint64_t base)
{
	unsigned char there[sizeof(our_code)];

	return layout.code &&
	       pread(mem, there, sizeof(there), (off_t)(base + layout.code)) ==
		       (ssize_t)sizeof(there) &&
	       !memcmp(there, our_code, sizeof(there));
}

/* A copy of a patched one (fork's) has the code already; else the place is as in our own vDSO. */
static bool room_is_ours(int mem, uint64_t base)
{
	unsigned char there[sizeof(our_code)];

	if (pread(mem, there, sizeof(there), (off_t)(base + layout.code)) != (ssize_t)sizeof(there))
		return false;
	for (size_t i = 0; i < sizeof(there); i++)
		if (there[i])
			return !memcmp(there, our_code, sizeof(there));
	return true;
}

bool emu_vdso_put_code(int mem, uint64_t base)
{
	static const char zeros[VDSO_SLOTS * sizeof(struct emu_vdso_slot)];
	size_t len = layout.sets * VDSO_WAYS * sizeof(struct emu_vdso_slot);

	return room_is_ours(mem, base) && put(mem, base + layout.table, zeros, len) &&
	       put(mem, base + layout.code, our_code, sizeof(our_code)) &&
	       put(mem, base + layout.armed, "\1", 1);
}

bool emu_vdso_disarm(int mem, uint64_t base)
{
	return emu_vdso_has_code(mem, base) && put(mem, base + layout.armed, "", 1);
}

bool emu_vdso_put_slot(int mem, uint64_t base, unsigned int slot,
		       const struct emu_vdso_slot *value)
{
	const uint64_t at = base + layout.table + slot * sizeof(*value), none = 0;

	return put(mem, at, &none, 8) && put(mem, at + 8, &value->answer, 8) &&
	       put(mem, at, &value->pointer, 8);
}

bool emu_vdso_clear_slot(int mem, uint64_t base, unsigned int slot)
{
	const uint64_t none = 0;

	return put(mem, base + layout.table + slot * sizeof(struct emu_vdso_slot), &none, 8);
}

/* As the code does. */
unsigned int emu_vdso_set(const struct emu_vdso *v, uint64_t pointer)
{
	uint32_t hash = (uint32_t)(pointer >> 6) * 0x9e3779b1U;

	return (unsigned int)((uint64_t)hash * v->sets >> 32);
}

/* Does the entry have our code? Then this is no new image, but a copy or the same one again. */
static bool is_patched(int mem, uint64_t at)
{
	unsigned char there[sizeof(our_entry)];
	size_t len = sizeof(our_entry) - entry_from;

	return pread(mem, there, len, (off_t)at) == (ssize_t)len &&
	       !memcmp(there, our_entry + entry_from, len);
}

bool emu_vdso_new_image(struct emu_call *call)
{
	const struct emu_vdso *v = emu_vdso();
	uint64_t base = v->entry ? emu_vdso_base(call->caller) : 0;
	struct emu_process *process = call->task->process;
	int mem = base && emu_call_valid(call) ? emu_vdso_open(call->caller) : -1;

	if (mem >= 0 && is_patched(mem, base + v->entry)) {
		close(mem);
		return false;
	}
	emu_process_exec(call->emu, call->task);
	if (mem >= 0 && emu_call_valid(call) &&
	    put(mem, base + v->entry, our_entry + entry_from, sizeof(our_entry) - entry_from)) {
		process->vdso = base;
		process->own_memory = true;
	}
	if (mem >= 0)
		close(mem);
	return true;
}

#else

bool emu_vdso_new_image(struct emu_call *call)
{
	emu_process_exec(call->emu, call->task);
	return true;
}

#endif
