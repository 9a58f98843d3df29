// SPDX-License-Identifier: MIT
/* linux/mem.c - mem.h by Linux's system calls. Constants that older headers lack are spelled out
 * here, with their source. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "os/mem.h"
#include "os/os.h"

/* include/uapi/asm-generic/mman-common.h, Linux 5.14. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#ifndef HUGETLBFS_MAGIC
#define HUGETLBFS_MAGIC 0x958458f6
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
/* include/uapi/linux/userfaultfd.h, Linux 6.8. */
#define FEATURE_MOVE (UINT64_C(1) << 16)
#define MOVE_ALLOW_SRC_HOLES (UINT64_C(1) << 1)
struct uffd_move {
	uint64_t dst, src, len, mode;
	int64_t move;
};
#define IOCTL_MOVE _IOWR(0xAA, 0x05, struct uffd_move)

static int log2_of(size_t v)
{
	return v ? 63 - __builtin_clzll((unsigned long long)v) : 0;
}

int mc_os_map_huge(size_t bytes, size_t page_size, void **addr)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HUGETLB |
		    (int)((unsigned int)log2_of(page_size) << MAP_HUGE_SHIFT);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	*addr = p;
	return 0;
}

int mc_os_memfd(const char *name, size_t page_size)
{
	unsigned int flags = MFD_CLOEXEC;
	int fd;

	if (page_size > mc_os_page_size())
		flags |= MFD_HUGETLB | ((unsigned int)log2_of(page_size) << MAP_HUGE_SHIFT);
	fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

int mc_os_populate(void *addr, size_t bytes, bool write)
{
	for (;;) {
		if (!madvise(addr, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

bool mc_os_populate_works(void)
{
	size_t page = mc_os_page_size();
	unsigned char resident[2] = {0, 0};
	bool works = false;
	void *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	if (!madvise(p, 2 * page, MADV_POPULATE_WRITE) && !mincore(p, 2 * page, resident))
		works = (resident[0] & 1) && (resident[1] & 1);
	munmap(p, 2 * page);
	return works;
}

/*
 * FUTEX_WAKE_OP does an atomic operation on a word of ours inside the kernel, FUTEX_CMP_REQUEUE
 * reads one: both fault the page in on the way and answer EFAULT where a program would be sent
 * SIGBUS. Nobody is woken: the counts are 0.
 */
int mc_os_touch(void *addr, bool write)
{
	long rc;

	if (write)
		rc = syscall(SYS_futex, addr, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, addr,
			     FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
	else
		rc = syscall(SYS_futex, addr, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, 0,
			     (char *)addr + 4, 0);
	if (rc < 0 && errno != EAGAIN) /* EAGAIN: the word is not 0, and so was read */
		return -errno;
	return 0;
}

int mc_os_hugepages(void *addr, size_t bytes, bool on)
{
	return madvise(addr, bytes, on ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) ? -errno : 0;
}

int mc_os_discard(void *addr, size_t bytes)
{
	return madvise(addr, bytes, MADV_DONTNEED) ? -errno : 0;
}

int mc_os_wipe_on_fork(void *addr, size_t bytes)
{
	return madvise(addr, bytes, MADV_WIPEONFORK) ? -errno : 0;
}

int mc_os_all_resident(void *addr, size_t bytes)
{
	size_t page = mc_os_page_size(), step = 4096 * page;
	unsigned char vec[4096];

	for (size_t at = 0; at < bytes; at += step) {
		size_t n = bytes - at < step ? bytes - at : step;

		if (mincore((char *)addr + at, n, vec))
			return -errno;
		for (size_t i = 0; i < (n + page - 1) / page; i++)
			if (!(vec[i] & 1))
				return 0;
	}
	return 1;
}

int mc_os_file(int fd, struct mc_os_file *file)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	memset(file, 0, sizeof(*file));
	file->size = st.st_size < 0 ? 0 : (uint64_t)st.st_size;
	file->free_bytes = UINT64_MAX;
	if ((uint32_t)fs.f_type == HUGETLBFS_MAGIC)
		file->pool_page = (size_t)fs.f_bsize;
	file->memory = file->pool_page || (uint32_t)fs.f_type == TMPFS_MAGIC;
	if (fs.f_blocks) /* a tmpfs or hugetlbfs without a limit shows 0 blocks */
		file->free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	return 0;
}

int mc_os_grow(int fd, uint64_t size)
{
	struct rlimit rl;

	if (!getrlimit(RLIMIT_FSIZE, &rl) && rl.rlim_cur != RLIM_INFINITY && size > rl.rlim_cur)
		return -EFBIG;
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

int mc_os_pagemap_open(void)
{
	volatile char page =
		1; /* a page that is surely present: its frame shows whether frames are shown */
	uint64_t frame = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = mc_os_pagemap_frames(fd, (const void *)&page, 1, &frame);
	if (rc < 0 || !frame) {
		close(fd);
		return rc < 0 ? rc : -EPERM;
	}
	return fd;
}

int mc_os_pagemap_frames(int fd, const void *addr, size_t n, uint64_t *frames)
{
	size_t page = mc_os_page_size(), done = 0;
	off_t at = (off_t)((uintptr_t)addr / page * 8);

	while (done < n) {
		ssize_t got = pread(fd, frames + done, (n - done) * 8, at + (off_t)(done * 8));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || got % 8)
			return got < 0 ? -errno : -EIO;
		done += (size_t)got / 8;
	}
	/* Documentation/admin-guide/mm/pagemap.rst: bit 63 present, bits 0-54 the frame. */
	for (size_t i = 0; i < n; i++)
		frames[i] = frames[i] >> 63 ? frames[i] & ((UINT64_C(1) << 55) - 1) : 0;
	return 0;
}

int mc_os_mover_open(void *dst, size_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_MOVE};
	struct uffdio_register reg = {.range = {(uintptr_t)dst, bytes},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY), err;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &reg))
		return fd;
	err = errno;
	close(fd);
	return err == EINVAL ? -EOPNOTSUPP : -err;
}

int mc_os_move(int uffd, void *dst, void *src, size_t bytes)
{
	size_t done = 0;
	int tries = 0;

	while (done < bytes) {
		struct uffd_move mv = {.dst = (uintptr_t)dst + done,
				       .src = (uintptr_t)src + done,
				       .len = bytes - done};

		if (!ioctl(uffd, IOCTL_MOVE, &mv))
			return 0;
		if ((errno != EAGAIN && errno != EBUSY) || ++tries > 1000)
			return -errno;
		if (mv.move > 0)
			done += (size_t)mv.move;
	}
	return 0;
}
