/* SPDX-License-Identifier: MIT */
/*
 * os.h - what Linux is asked for: the only way src/lib reaches the system. linux/ implements it.
 *
 * Every function returns 0 or more, or -errno. Every read of /proc and /sys goes through a root
 * directory descriptor, so that a recorded machine is data: MC_ROOT_LIVE is "/" itself.
 */
#ifndef MC_OS_H
#define MC_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MC_ROOT_LIVE (-100) /* AT_FDCWD with absolute paths */

/* Reads a whole file below the root into a malloc'ed buffer with a NUL added after `*len` bytes.
 * `path` is absolute. -EFBIG when longer than max. Files whose size the system does not tell are
 * read to the end. */
int mc_os_read_file(int root, const char *path, size_t max, char **text, size_t *len);
/* A single unsigned/signed decimal number from a file. -EINVAL when it is none. */
int mc_os_read_number(int root, const char *path, long long *value);

/* Folders. open: a descriptor for the others and mc_os_close(); below a root other than
 * MC_ROOT_LIVE links are not followed. list: each name but . and .. with 'f', 'd', 'l' or 'o'
 * (others), stops when fn returns non-zero and returns that. read_plain: a regular file of the
 * folder, no link, pipe or device; -EFBIG when longer than max. */
int mc_os_open_dir(int root, const char *path);
void mc_os_close(int fd);
int mc_os_list_dir(int dir, int (*fn)(void *arg, const char *name, char type), void *arg);
int mc_os_read_link(int dir, const char *name, char *target, size_t size);
int mc_os_read_plain(int dir, const char *name, size_t max, char **text, size_t *len);

/* Raw affinity calls: no glibc limits. get returns the bytes the kernel filled. */
int mc_os_getaffinity(pid_t tid, size_t bytes, unsigned long *mask);
int mc_os_setaffinity(pid_t tid, size_t bytes, const unsigned long *mask);

/* CPU and node the caller runs on, either pointer may be NULL. */
int mc_os_getcpu(unsigned int *cpu, unsigned int *node);

/* Memory policy calls on masks of 64-bit words, `bits` wide; word may be NULL. get: -EOVERFLOW when
 * a node does not fit. */
int mc_os_set_mempolicy(int mode, const uint64_t *word, unsigned int bits);
int mc_os_get_mempolicy(int *mode, uint64_t *word, unsigned int bits, const void *addr,
			unsigned long flags);
int mc_os_mbind(void *addr, size_t len, int mode, const uint64_t *word, unsigned int bits,
		unsigned int flags);
int mc_os_set_home_node(void *addr, size_t len, unsigned int node);
long mc_os_move_pages(pid_t pid, size_t count, void *const *pages, const int *nodes, int *status,
		      unsigned int flags);
long mc_os_migrate_pages(pid_t pid, const uint64_t *from, unsigned int from_bits,
			 const uint64_t *to, unsigned int to_bits);
size_t mc_os_page_size(void);

/* Restartable sequences (linux/rseq.c). What this process has: mc_os_rseq_probe() fills it, never
 * fails. */
struct mc_os_rseq {
	int glibc;                      /* the C library registers every thread */
	ptrdiff_t offset;               /* of its area from the thread pointer */
	unsigned int size;              /* bytes of the area that the kernel fills: 28 and more: mm_cid is there */
};
void mc_os_rseq_probe(struct mc_os_rseq *info);
/* Registers an area of 32 bytes, aligned to 32, for the calling thread. 0, or -errno; -EBUSY: it
 * already is. */
int mc_os_rseq_register(void *area, unsigned int signature);
/* membarrier's fence for restartable sequences: `prepare` once per process, then `fence`. -errno
 * where there is none. */
int mc_os_rseq_fence_prepare(void);
int mc_os_rseq_fence(void);

#endif
