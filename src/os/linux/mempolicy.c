// SPDX-License-Identifier: MIT
/*
 * linux/mempolicy.c - the memory policy calls, raw: libnuma is not used, and glibc has no wrappers.
 *
 * Masks here are arrays of 64-bit words, least significant first; the kernel's are arrays of
 * unsigned long. They differ on 32-bit machines only, where to_kernel() and from_kernel() convert.
 * Callers: src/lib/mempolicy.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/os.h"

#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif

/* The kernel takes masks of up to one page of bits. */
enum { MAX_BITS = 4096 * 8, MAX_WORDS = MAX_BITS / 64 };

struct kmask {
	unsigned long word[MAX_BITS / 8 / sizeof(unsigned long)];
	unsigned long maxnode; /* one more than the bits that count */
};

static int to_kernel(struct kmask *k, const uint64_t *word, unsigned int bits)
{
	const unsigned int per = sizeof(unsigned long) * 8;
	unsigned int last = 0;
	bool any = false;

	for (unsigned int w = (bits + 63) / 64; word && w-- > 0;) {
		if (!word[w])
			continue;
		last = w * 64 + 63 - (unsigned int)__builtin_clzll(word[w]);
		any = true;
		break;
	}
	k->maxnode = 0;
	if (!any)
		return 0;
	if (last >= MAX_BITS)
		return -EINVAL;
	for (unsigned int i = 0; i <= last / per; i++)
		k->word[i] = (unsigned long)(word[i * per / 64] >> (i * per % 64));
	k->maxnode = (unsigned long)last + 2;
	return 0;
}

int mc_os_set_mempolicy(int mode, const uint64_t *word, unsigned int bits)
{
	struct kmask k;
	int rc = to_kernel(&k, word, bits);

	if (rc < 0)
		return rc;
	return syscall(SYS_set_mempolicy, (long)mode, k.maxnode ? k.word : NULL, k.maxnode) < 0
		       ? -errno
		       : 0;
}

int mc_os_mbind(void *addr, size_t len, int mode, const uint64_t *word, unsigned int bits,
		unsigned int flags)
{
	struct kmask k;
	int rc = to_kernel(&k, word, bits);

	if (rc < 0)
		return rc;
	rc = (int)syscall(SYS_mbind, addr, len, (long)mode, k.maxnode ? k.word : NULL, k.maxnode,
			  flags);
	return rc < 0 ? -errno : 0;
}

int mc_os_get_mempolicy(int *mode, uint64_t *word, unsigned int bits, const void *addr,
			unsigned long flags)
{
	const unsigned int per = sizeof(unsigned long) * 8;
	struct kmask k;
	uint64_t whole[MAX_WORDS] = {0};

	if (!word)
		return syscall(SYS_get_mempolicy, mode, NULL, 0UL, addr, flags) < 0 ? -errno : 0;
	memset(k.word, 0, sizeof(k.word));
	if (syscall(SYS_get_mempolicy, mode, k.word, (unsigned long)MAX_BITS + 1, addr, flags) < 0)
		return -errno;
	for (unsigned int i = 0; i < MAX_BITS / per; i++)
		whole[i * per / 64] |= (uint64_t)k.word[i] << (i * per % 64);
	for (unsigned int i = 0; i < MAX_WORDS; i++) {
		uint64_t fits = bits >= (i + 1) * 64 ? ~0ULL
				: bits <= i * 64     ? 0
						     : ~0ULL >> (64 - bits % 64);

		if (whole[i] & ~fits)
			return -EOVERFLOW;
	}
	memset(word, 0, (bits + 63) / 64 * sizeof(*word));
	memcpy(word, whole, ((bits < MAX_BITS ? bits : MAX_BITS) + 63) / 64 * sizeof(*word));
	return 0;
}

int mc_os_set_home_node(void *addr, size_t len, unsigned int node)
{
	long rc = syscall(SYS_set_mempolicy_home_node, addr, len, (unsigned long)node, 0UL);

	return rc < 0 ? -errno : 0;
}

long mc_os_move_pages(pid_t pid, size_t count, void *const *pages, const int *nodes, int *status,
		      unsigned int flags)
{
	long rc = syscall(SYS_move_pages, pid, count, pages, nodes, status, flags);

	return rc < 0 ? -errno : rc;
}

long mc_os_migrate_pages(pid_t pid, const uint64_t *from, unsigned int from_bits,
			 const uint64_t *to, unsigned int to_bits)
{
	struct kmask f, t;
	int rc = to_kernel(&f, from, from_bits);
	unsigned long maxnode;
	const unsigned int per = sizeof(unsigned long) * 8;
	long moved;

	if (!rc)
		rc = to_kernel(&t, to, to_bits);
	if (rc < 0)
		return rc;
	/* One size for both: the shorter one is filled up with zeroes. */
	maxnode = f.maxnode > t.maxnode ? f.maxnode : t.maxnode;
	if (maxnode < 2)
		maxnode = 2;
	for (unsigned long i = f.maxnode ? (f.maxnode - 2) / per + 1 : 0; i <= (maxnode - 2) / per;
	     i++)
		f.word[i] = 0;
	for (unsigned long i = t.maxnode ? (t.maxnode - 2) / per + 1 : 0; i <= (maxnode - 2) / per;
	     i++)
		t.word[i] = 0;
	moved = syscall(SYS_migrate_pages, pid, maxnode, f.word, t.word);
	return moved < 0 ? -errno : moved;
}

size_t mc_os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}
