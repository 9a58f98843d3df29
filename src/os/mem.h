/* SPDX-License-Identifier: MIT */
/*
 * mem.h - memory as Linux hands it out: populating, touching without signals, residency, frame
 * numbers, moving pages. Part of the contract of os.h. Every function returns 0 or more, or -errno.
 */
#ifndef MC_OS_MEM_H
#define MC_OS_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MAP_NORESERVE memory of the hugetlb pool; page_size is a power of two. */
int mc_os_map_huge(size_t bytes, size_t page_size, void **addr);
/* A memfd, of the hugetlb pool when page_size is above the base page. */
int mc_os_memfd(const char *name, size_t page_size);

/* madvise(MADV_POPULATE_READ/WRITE). -EINVAL may mean an old kernel, or not: see
 * mc_os_populate_works(). */
int mc_os_populate(void *addr, size_t bytes, bool write);
/* Tries it on a page of its own and looks whether the page is there: advice 23 means other things
 * to some kernels. */
bool mc_os_populate_works(void);
/* Faults one page in by letting the kernel touch it: a read, or an atomic `or 0`, so that nothing a
 * concurrent writer stores is lost. A fault that would be SIGBUS to a program is -EFAULT here. */
int mc_os_touch(void *addr, bool write);

int mc_os_hugepages(void *addr, size_t bytes, bool on); /* MADV_HUGEPAGE / MADV_NOHUGEPAGE */
int mc_os_discard(void *addr, size_t bytes);            /* MADV_DONTNEED */
int mc_os_wipe_on_fork(void *addr, size_t bytes);

/* mincore(): 1 when every page of the range is resident. */
int mc_os_all_resident(void *addr, size_t bytes);

/* File size and free space, and whether the descriptor lies on tmpfs or hugetlbfs; pool_page is
 * hugetlbfs' page size. */
struct mc_os_file {
	uint64_t size;
	uint64_t free_bytes; /* of its file system; UINT64_MAX: no limit known */
	size_t pool_page;
	bool memory; /* tmpfs or hugetlbfs */
};
int mc_os_file(int fd, struct mc_os_file *file);
/* ftruncate() that answers -EFBIG instead of raising SIGXFSZ. */
int mc_os_grow(int fd, uint64_t size);

/* An open /proc/self/pagemap, -EPERM when it hides frame numbers; and n frame numbers from addr on,
 * pages of base size. 0 for a page that is not present. */
int mc_os_pagemap_open(void);
int mc_os_pagemap_frames(int fd, const void *addr, size_t n, uint64_t *frames);

/* Moves pages to another place of the process without copying (UFFDIO_MOVE). open takes the target
 * range. */
int mc_os_mover_open(void *dst, size_t bytes);
int mc_os_move(int uffd, void *dst, void *src, size_t bytes);

#endif
