// SPDX-License-Identifier: MIT
/*
 * percpu_shared.c - pools in shared memory: one chunk over a file that other processes map as well.
 *
 * File: the header (struct mc_shared_header), from 64 KiB on the units: a layout that systems of
 * every page size can map, since the hole costs nothing. Copies are indexed by CPU
 * number (or by any slot with atomics), so that two processes on one CPU exclude each other by
 * their restartable sequences; mm_cids of two processes would collide. The bookkeeping is private
 * to the creator: attachers can spoil values, nothing else. Each process tells the header its live
 * mark before it first writes a copy (percpu_rt.c), so that walks see it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/percpu_internal.h"
#include "lib/percpu_numa.h"

static const char MAGIC[8] = "mcpercpu";
_Static_assert(sizeof(struct mc_shared_header) <= MC_PAGE_MAX && MC_CHUNK_HEAD % MC_PAGE_MAX == 0,
	       "chunk, header and units start at whole pages of any system");

/* Where the units start in the file, and how long it is. */
enum { UNITS_AT = MC_PAGE_MAX };

static off_t file_size(uint32_t copies, uint32_t stride)
{
	return UNITS_AT + (off_t)(copies + (uint64_t)1) * stride;
}

/* The chunk with the file mapped over the end of its head and the units. */
static int map_chunk(struct mc_percpu_pool *pool, int fd, int prot)
{
	size_t len, file = (size_t)file_size(pool->copies, pool->side[0].stride);
	char *map = mc_chunk_reserve(pool, 0, &len);
	int err;

	if (!map)
		return -ENOMEM;
	if (mmap(map + MC_CHUNK_HEAD - UNITS_AT, file, prot, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED) {
		err = errno;
		munmap(map, len);
		return -err;
	}
	pool->shared = (struct mc_shared_header *)(map + MC_CHUNK_HEAD - UNITS_AT);
	pool->quick = false;
	pool->shared_chunk = mc_chunk_setup(pool, 0, map, len);
	if (!pool->shared_chunk)
		pool->shared = NULL;
	return pool->shared ? 0 : -ENOMEM;
}

struct mc_percpu_pool *mc_percpu_pool_create_shared(const struct mc_percpu_attr *attr)
{
	struct mc_percpu_pool *pool;
	enum mc_percpu_mode mode;
	int rc = mc_rt_init();
	bool rseq;

	if (rc) {
		errno = -rc;
		return NULL;
	}
	rseq = mc_rt_rseq(MC_KIND_CPU) && attr->mode != MC_PERCPU_ATOMICS;
	mode = rseq ? MC_PERCPU_CPU_ID : MC_PERCPU_ATOMICS;
	if (attr->mode == MC_PERCPU_MM_CID || attr->unit_size > MC_UNIT_MAX ||
	    (attr->copies && attr->copies < mc_nr_cpu_ids()) || attr->copies > 1u << 20 ||
	    attr->flags & ~(unsigned int)MC_PERCPU_NO_MAGAZINE) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->mode == MC_PERCPU_CPU_ID && !rseq) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pool = mc_pool_new(attr, rseq ? MC_KIND_CPU : MC_KIND_ATOMIC, mode);
	if (!pool)
		return NULL;
	if (ftruncate(attr->fd, 0) ||
	    ftruncate(attr->fd, file_size(pool->copies, pool->side[0].stride)))
		rc = -errno;
	else
		rc = map_chunk(pool, attr->fd, PROT_READ | PROT_WRITE);
	if (rc) {
		mc_pool_delete(pool);
		errno = -rc;
		return NULL;
	}
	if (rseq)
		mc_chunk_place(pool->shared_chunk);
	pool->shared->abi = MC_PERCPU_ABI;
	pool->shared->mode = (uint32_t)mode;
	pool->shared->copies = pool->copies;
	pool->shared->unit_size = pool->unit_size;
	pool->shared->stride = pool->side[0].stride;
	pool->shared->units_at = UNITS_AT;
	mc_rt_publish(pool->shared);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(pool->shared->magic, MAGIC, sizeof(MAGIC));
	return pool;
}

/* Does a header describe a pool that this library would have made, in a file this long? */
static int check_header(const struct mc_shared_header *h, off_t size)
{
	if (memcmp(h->magic, MAGIC, sizeof(MAGIC)) || h->abi != MC_PERCPU_ABI || !h->unit_size ||
	    h->unit_size > MC_UNIT_MAX || h->unit_size % MC_PAGE ||
	    h->stride != h->unit_size + MC_GAP || h->units_at != UNITS_AT || !h->copies ||
	    h->copies > 1u << 20 || (h->mode != MC_PERCPU_CPU_ID && h->mode != MC_PERCPU_ATOMICS) ||
	    size < file_size(h->copies, h->stride))
		return -EPROTO;
	return 0;
}

int mc_percpu_pool_attach(int fd, unsigned int flags, struct mc_percpu_pool **out)
{
	bool read_only = flags & MC_PERCPU_READ_ONLY;
	struct mc_percpu_attr attr = {0};
	struct mc_shared_header h;
	struct mc_percpu_pool *pool;
	struct stat st;
	int rc = mc_rt_init();

	if (rc)
		return rc;
	if (flags & ~(unsigned int)MC_PERCPU_READ_ONLY)
		return -EINVAL;
	if (fstat(fd, &st))
		return -errno;
	if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		return -EPROTO;
	rc = check_header(&h, st.st_size);
	if (rc)
		return rc;
	if (!read_only && ((h.mode == MC_PERCPU_CPU_ID && !mc_rt_rseq(MC_KIND_CPU)) ||
			   h.copies < mc_nr_cpu_ids()))
		return -EOPNOTSUPP;
	attr.copies = h.copies;
	attr.unit_size = h.unit_size;
	attr.flags = MC_PERCPU_NO_MAGAZINE;
	pool = mc_pool_new(&attr, h.mode == MC_PERCPU_CPU_ID ? MC_KIND_CPU : MC_KIND_ATOMIC,
			   (enum mc_percpu_mode)h.mode);
	if (!pool)
		return -errno;
	pool->attached = true;
	rc = map_chunk(pool, fd, read_only ? PROT_READ : PROT_READ | PROT_WRITE);
	if (rc) {
		mc_pool_delete(pool);
		return rc;
	}
	if (!read_only)
		mc_rt_publish(pool->shared);
	*out = pool;
	return 0;
}

uint64_t mc_percpu_offset(const void *handle)
{
	return MC_HANDLE_ADDRESS_(MC_H_(handle)) - mc_chunk_of(MC_H_(handle))->base;
}

void *mc_percpu_at(struct mc_percpu_pool *pool, uint64_t offset)
{
	if (!pool || !pool->shared_chunk || offset >= pool->unit_size) {
		errno = EINVAL;
		return NULL;
	}
	return (void *)((pool->shared_chunk->base + offset) | pool->shared_chunk->tag);
}
