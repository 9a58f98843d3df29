// SPDX-License-Identifier: MIT
/*
 * linux/rseq.c - what Linux and the C library tell about restartable sequences, and the fence for
 * them.
 *
 * glibc >= 2.35 registers every thread unless told not to (GLIBC_TUNABLES=glibc.pthread.rseq=0, or
 * ENOSYS). Its __rseq_size is 20 or 32 where it means "the first area", whose bytes up to 32 newer
 * kernels fill all the same: then the kernel's own feature size tells (the rule of librseq's
 * src/rseq.c).
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/os.h"

/* Absent on C libraries that do not register: weak. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

enum { FEATURE_SIZE = 27 /* AT_RSEQ_FEATURE_SIZE */, FIRST_SIZE = 20, FIRST_LENGTH = 32 };
enum { REGISTER_RSEQ = 1 << 8, EXPEDITED_RSEQ = 1 << 7 };

void mc_os_rseq_probe(struct mc_os_rseq *info)
{
	unsigned long feature = getauxval(FEATURE_SIZE);

	if (feature < FIRST_SIZE)
		feature = FIRST_SIZE;
	if (feature > FIRST_LENGTH)
		feature = FIRST_LENGTH;
	info->glibc = &__rseq_size && __rseq_size;
	info->offset = info->glibc ? __rseq_offset : 0;
	info->size = (unsigned int)feature;
	if (info->glibc && __rseq_size != FIRST_SIZE && __rseq_size != FIRST_LENGTH)
		info->size = __rseq_size;
}

int mc_os_rseq_register(void *area, unsigned int signature)
{
#ifdef SYS_rseq
	return syscall(SYS_rseq, area, FIRST_LENGTH, 0, signature) < 0 ? -errno : 0;
#else
	(void)area, (void)signature;
	return -ENOSYS;
#endif
}

int mc_os_rseq_fence_prepare(void)
{
	return syscall(SYS_membarrier, REGISTER_RSEQ, 0, 0) < 0 ? -errno : 0;
}

int mc_os_rseq_fence(void)
{
	return syscall(SYS_membarrier, EXPEDITED_RSEQ, 0, 0) < 0 ? -errno : 0;
}
