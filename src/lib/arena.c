// SPDX-License-Identifier: MIT
/*
 * arena.c - an arena's life: attributes checked and completed, parts cut, everything started; and
 * its end.
 *
 * Order of creation: mapping, placement, threads (parked), then the gate opens and the creator
 * brings up the first part beside them. Order of the end: cancel, wake everybody, join, wait for
 * calls in progress, unmap.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/mem.h"
#include "os/os.h"

enum {
	CHUNK_BASE = 4 << 20,  /* base pages: what an mmap of another thread waits for */
	CHUNK_HUGE = 16 << 20, /* below a huge page harmful, above 32 MiB no gain */
	CHUNK_POOL = 32 << 20,
	CHUNK_DESC = 128 << 20, /* of memory described, 2 MiB of descriptors: the kernel's
				   PAGES_PER_SECTION */
	GRANULE = 2 << 20,
	MIN_RATE = 64 << 20,
	SPARE = 8 << 20,
	UNMAP_SLICE = 16 << 20,
};

bool arena_in_child(const struct mc_arena *a)
{
	return a->alive ? !*a->alive : a->pid != getpid();
}

/* ---- attributes ------------------------------------------------------------------------------ */

static size_t default_huge_page(void)
{
	size_t len, kb = 2048;
	char *text, *at;

	if (mc_os_read_file(MC_ROOT_LIVE, "/proc/meminfo", 1 << 16, &text, &len) == 0) {
		at = strstr(text, "Hugepagesize:");
		if (at)
			kb = (size_t)strtoull(at + 13, NULL, 10);
		free(text);
	}
	return kb ? kb << 10 : 2 << 20;
}

static int check_size(uint64_t size, struct mc_error *error)
{
	return size && size <= (uint64_t)1 << 56
		       ? 0
		       : mc_fail(error, EINVAL,
				 "arena: size %" PRIu64 ": must be 1 byte to 64 PiB", size);
}

static int file_attributes(struct mc_arena *a, struct mc_error *error)
{
	struct mc_arena_attr *at = &a->attr;
	struct mc_os_file f;
	int rc = mc_os_file(at->fd, &f);

	if (rc < 0)
		return mc_fail(error, -rc, "arena: descriptor %d: %s", at->fd, strerror(-rc));
	if (f.pool_page) {
		a->hugetlb = true;
		if (at->page_size && at->page_size != f.pool_page)
			return mc_fail(error, EINVAL,
				       "arena: page size %zu: the file system's is %zu",
				       at->page_size, f.pool_page);
		at->page_size = f.pool_page;
	}
	a->memory_file = f.memory;
	if (at->offset < 0)
		return mc_fail(error, EINVAL, "arena: offset %lld: negative",
			       (long long)at->offset);
	if (!at->size && f.size > (uint64_t)at->offset)
		at->size = f.size - (uint64_t)at->offset;
	if (at->flags & MC_ARENA_GROW && check_size(at->size, error) < 0)
		return -EINVAL; /* before the file has become so long */
	if (at->flags & MC_ARENA_GROW && f.size < (uint64_t)at->offset + at->size) {
		size_t page = at->page_size ? at->page_size : 1;

		rc = mc_os_grow(at->fd, ((uint64_t)at->offset + at->size + page - 1) / page * page);
		if (rc < 0)
			return mc_fail(error, -rc,
				       "arena: making the file %" PRIu64 " bytes long: %s%s",
				       at->size, strerror(-rc),
				       rc == -EFBIG ? "; raise RLIMIT_FSIZE (ulimit -f)" : "");
	} else if (f.size <= (uint64_t)at->offset) {
		return mc_fail(
			error, EFBIG,
			"arena: offset %lld: at or past the file's end; MC_ARENA_GROW extends it",
			(long long)at->offset);
	}
	a->fd = fcntl(at->fd, F_DUPFD_CLOEXEC, 0);
	return a->fd < 0 ? mc_fail(error, errno, "arena: duplicating the descriptor: %s",
				   strerror(errno))
			 : 0;
}

static int check_attributes(struct mc_arena *a, struct mc_error *error)
{
	struct mc_arena_attr *at = &a->attr;
	size_t base = mc_os_page_size();
	int rc = 0;

	if ((unsigned int)at->backing > MC_ARENA_FILE ||
	    (unsigned int)at->policy > MC_ARENA_WEIGHTED_INTERLEAVE)
		return mc_fail(error, EINVAL, "arena: backing %d, policy %d: unknown",
			       (int)at->backing, (int)at->policy);
	if ((at->flags & MC_ARENA_READ) && at->backing != MC_ARENA_FILE)
		return mc_fail(error, EINVAL, "arena: MC_ARENA_READ is for files");
	if (at->backing == MC_ARENA_HUGETLB)
		a->hugetlb = true;
	if (at->backing == MC_ARENA_HUGETLB && !at->page_size)
		at->page_size = default_huge_page();
	if (at->backing == MC_ARENA_MEMFD && at->page_size > base)
		a->hugetlb = true;
	if (at->backing == MC_ARENA_FILE)
		rc = file_attributes(a, error);
	if (rc < 0)
		return rc;
	if (!at->page_size)
		at->page_size = base;
	if (at->page_size < base || (at->page_size & (at->page_size - 1)))
		return mc_fail(error, EINVAL,
			       "arena: page size %zu: not a power of two of at least %zu",
			       at->page_size, base);
	if (at->backing == MC_ARENA_FILE && (uint64_t)at->offset % at->page_size)
		return mc_fail(error, EINVAL, "arena: offset %lld: not a multiple of the page size",
			       (long long)at->offset);
	if (check_size(at->size, error) < 0)
		return -EINVAL;
	if (at->extra > SIZE_MAX / 4)
		return mc_fail(error, EINVAL, "arena: %zu bytes behind a descriptor: too many",
			       at->extra);
	if (at->phys_chunks > 1 && ((at->backing != MC_ARENA_ANON && at->backing != MC_ARENA_THP) ||
				    (at->flags & MC_ARENA_NO_PAGES)))
		return mc_fail(error, EINVAL,
			       "arena: physical interleave is for private memory (ANON, THP)");
	if (!at->thp_min_rate)
		at->thp_min_rate = MIN_RATE;
	return 0;
}

/* ---- shape ----------------------------------------------------------------------------------- */

static uint64_t default_chunk(const struct mc_arena *a, uint64_t part_bytes, unsigned int threads)
{
	uint64_t chunk = CHUNK_BASE, fair;

	if (a->attr.flags & MC_ARENA_NO_PAGES)
		chunk = CHUNK_DESC;
	else if (a->hugetlb)
		chunk = CHUNK_POOL;
	else if (a->attr.backing == MC_ARENA_THP ||
		 (a->attr.backing == MC_ARENA_FILE && !a->memory_file))
		chunk = CHUNK_HUGE;
	/* Several chunks a thread, or the last one is waited for: padata's load_balance_factor. */
	fair = part_bytes / (4 * (threads ? threads : 1));
	if (fair < chunk && !(a->attr.flags & MC_ARENA_NO_PAGES))
		chunk = fair;
	return chunk;
}

static uint64_t round_chunk(const struct mc_arena *a, uint64_t bytes)
{
	uint64_t pages = (bytes + (UINT64_C(1) << a->shift) - 1) >> a->shift;

	pages = (pages + a->granule - 1) / a->granule * a->granule;
	return pages ? pages : a->granule;
}

static void shape(struct mc_arena *a)
{
	const struct mc_arena_attr *at = &a->attr;
	uint64_t smallest = GRANULE;

	a->shift = (unsigned int)__builtin_ctzll(at->page_size);
	a->pages = (at->size + at->page_size - 1) >> a->shift;
	a->size = a->pages << a->shift;
	a->stride = sizeof(struct mc_page) + (at->extra + 7) / 8 * 8;
	if (at->chunk && at->chunk < smallest)
		smallest = at->chunk;
	a->granule = (smallest + at->page_size - 1) >> a->shift;
	a->nr_granules = (a->pages + a->granule - 1) / a->granule;
}

/* The CPUs where a node's workers run: its own that this process may use, else the nearest node's
 * that has some. */
static struct mc_cpumask *cpus_of(const struct mc_arena *a, unsigned int node)
{
	struct mc_cpumask *m = mc_cpumask_alloc_bits(a->affinity ? a->affinity->nbits : 1);
	unsigned int n, best_d = UINT32_MAX, cpu;

	if (!m || !a->affinity)
		return m;
	if (!a->topology) {
		mc_cpumask_copy(m, a->affinity);
		return m;
	}
	mc_for_each_cpu (n, &mc_topology_nodes_online(a->topology)->m) {
		const struct mc_node *nd = mc_topology_node(a->topology, n);
		unsigned int d = n == node ? 0 : mc_topology_distance(a->topology, node, n);
		bool some = false;

		if (!nd || !nd->cpus || d >= best_d)
			continue;
		mc_for_each_cpu (cpu, nd->cpus)
			some |= cpu < a->affinity->nbits && mc_cpumask_test(a->affinity, cpu);
		if (!some)
			continue;
		best_d = d;
		mc_cpumask_zero(m);
		mc_for_each_cpu (cpu, nd->cpus)
			if (cpu < m->nbits && mc_cpumask_test(a->affinity, cpu))
				mc_cpumask_set(m, cpu);
	}
	if (mc_cpumask_empty(m))
		mc_cpumask_copy(m, a->affinity);
	return m;
}

static bool has_node(const struct mc_nodemask *nodes, unsigned int n)
{
	return n < nodes->m.nbits && mc_cpumask_test(&nodes->m, n);
}

static int choose_nodes(struct mc_arena *a, struct mc_error *error)
{
	const void *given = a->attr.topology;
	const struct mc_topology *t;
	struct mc_cpumask *m;
	unsigned int n;

	/* A machine that can't be read is taken as one node: memory comes up all the same. */
	a->own_topology = given ? mc_topology_get((struct mc_topology *)(uintptr_t)given)
				: arena_live_topology();
	t = a->topology = a->own_topology;
	m = mc_cpumask_alloc_bits(t && mc_topology_nr_node_ids(t) ? mc_topology_nr_node_ids(t) : 1);
	a->nodes = (struct mc_nodemask *)m;
	if (!m)
		return mc_fail(error, ENOMEM, "arena: out of memory");
	for (n = 0; t && n < m->nbits; n++)
		if (has_node(mc_topology_nodes_has_memory(t), n) &&
		    has_node(mc_topology_nodes_allowed(t), n) &&
		    (!a->attr.nodes || has_node(a->attr.nodes, n)))
			mc_cpumask_set(m, n);
	if (mc_cpumask_empty(m) && !a->attr.nodes)
		mc_cpumask_set(m, 0); /* no nodes are shown */
	if (!a->attr.nodes)
		return 0;
	if (!t && has_node(a->attr.nodes, 0))
		mc_cpumask_set(m, 0);
	mc_for_each_cpu (n, &a->attr.nodes->m)
		if (n >= m->nbits || !mc_cpumask_test(m, n))
			return mc_fail(error, EINVAL,
				       "arena: node %u: has no memory that this process may use",
				       n);
	return mc_cpumask_empty(m) ? mc_fail(error, EINVAL, "arena: no node given") : 0;
}

static int init_part(struct mc_arena_part *p, unsigned int node, uint64_t first, uint64_t end)
{
	memset(p, 0, sizeof(*p));
	if (pthread_mutex_init(&p->lock, NULL) || pthread_cond_init(&p->changed, NULL))
		return -ENOMEM;
	p->node = node;
	p->first = p->cursor = first;
	p->end = end;
	arena_buddy_init(p);
	return 0;
}

/* Nodes without CPUs that this process may use share those of others. */
static unsigned int set_of(const struct mc_arena *a, unsigned int part)
{
	const struct mc_cpumask *m = a->part[part].cpus;
	unsigned int k = 0;

	while (k < part && !(m && a->part[k].cpus && mc_cpumask_equal(m, a->part[k].cpus)))
		k++;
	return k;
}

/* Equal parts in whole chunks; a small arena leaves the last nodes without one. */
static int cut_parts(struct mc_arena *a, struct mc_error *error)
{
	unsigned int n = a->attr.policy == MC_ARENA_SPLIT ? mc_cpumask_weight(&a->nodes->m) : 1,
		     node, made = 0;
	uint64_t share = (a->pages + n - 1) / n, at = 0;

	share = (share + a->granule - 1) / a->granule * a->granule;
	a->part = aligned_alloc(64, (size_t)n * sizeof(*a->part));
	if (!a->part)
		return mc_fail(error, ENOMEM, "arena: out of memory");
	mc_for_each_cpu (node, &a->nodes->m) {
		uint64_t end = made + 1 == n || a->pages - at < share ? a->pages : at + share;

		if (at == a->pages || made == n)
			break;
		if (init_part(&a->part[made],
			      mc_cpumask_weight(&a->nodes->m) > 1 &&
					      a->attr.policy != MC_ARENA_SPLIT
				      ? MC_ANY_NODE
				      : node,
			      at, end) < 0)
			return mc_fail(error, ENOMEM, "arena: out of memory");
		a->nr_parts = ++made;
		if (a->part[made - 1].node != MC_ANY_NODE)
			a->part[made - 1].cpus = cpus_of(a, node);
		a->part[made - 1].set = set_of(a, made - 1);
		at = end;
	}
	return 0;
}

static void set_chunk(struct mc_arena *a)
{
	unsigned int threads = a->attr.threads;
	uint64_t part = (a->part[0].end - a->part[0].first) << a->shift;

	if (!threads)
		threads = a->part[0].cpus ? mc_cpumask_weight(a->part[0].cpus)
			  : a->affinity   ? mc_cpumask_weight(a->affinity)
					  : 1;
	a->chunk = round_chunk(a, a->attr.chunk ? a->attr.chunk : default_chunk(a, part, threads));
}

static int init_sync(struct mc_arena *a)
{
	pthread_condattr_t clock;
	int rc;

	if (pthread_condattr_init(&clock))
		return -ENOMEM;
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	rc = pthread_mutex_init(&a->wait_lock, NULL) ||
	     pthread_mutex_init(&a->progress_lock, NULL) ||
	     pthread_mutex_init(&a->gate_lock, NULL) || pthread_mutex_init(&a->limit_lock, NULL) ||
	     pthread_cond_init(&a->gate_cond, NULL) || pthread_cond_init(&a->wait_cond, &clock);
	pthread_condattr_destroy(&clock);
	return rc ? -ENOMEM : 0;
}

static void mark_alive(struct mc_arena *a)
{
	size_t page = mc_os_page_size();
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	a->pid = getpid();
	if (p == MAP_FAILED)
		return;
	if (mc_os_wipe_on_fork(p, page) < 0) {
		munmap(p, page);
		return;
	}
	a->alive = p;
	*a->alive = 1;
}

static void first_part(struct mc_arena *a)
{
	uint64_t want =
		a->attr.first ? (a->attr.first + (UINT64_C(1) << a->shift) - 1) >> a->shift : 1;
	unsigned int here = 0, start = 0;

	mc_os_getcpu(NULL, &here);
	for (unsigned int k = 0; k < a->nr_parts; k++)
		if (a->part[k].node == here)
			start = k;
	for (unsigned int k = 0; k < a->nr_parts;) {
		struct mc_arena_part *p = &a->part[(start + k) % a->nr_parts];
		uint64_t first, end;
		bool claimed;

		if (atomic_load(&a->ready) >= want)
			return;
		pthread_mutex_lock(&p->lock);
		claimed = arena_claim(a, p, &first, &end, true);
		pthread_mutex_unlock(&p->lock);
		if (claimed)
			arena_run_chunk(a, p, first, end, true);
		else
			k++;
	}
}

static int set_up(struct mc_arena *a, struct mc_error *error)
{
	int rc = check_attributes(a, error);

	if (rc < 0)
		return rc;
	if (init_sync(a) < 0)
		return mc_fail(error, ENOMEM, "arena: out of memory");
	shape(a);
	a->limits = mc_limits_open(MC_ROOT_LIVE);
	a->affinity = mc_cpumask_alloc();
	if (!a->limits || !a->affinity)
		return mc_fail(error, ENOMEM, "arena: out of memory");
	if (mc_os_getaffinity(0, (a->affinity->nbits + 63) / 64 * 8,
			      (unsigned long *)a->affinity->word) <= 0) {
		mc_cpumask_free(a->affinity);
		a->affinity = NULL;
	}
	rc = choose_nodes(a, error);
	if (!rc)
		rc = cut_parts(a, error);
	if (rc < 0)
		return rc;
	set_chunk(a);
	a->advice = mc_os_populate_works();
	a->charge = !a->hugetlb && !(a->attr.flags & MC_ARENA_NO_PAGES) &&
		    (a->attr.backing != MC_ARENA_FILE || a->memory_file);
	rc = arena_map(a, error);
	if (!rc)
		rc = arena_place(a, error);
	if (!rc && a->attr.phys_chunks > 1)
		rc = arena_phys_open(a, error);
	return rc;
}

/* In slices, from the end: the kernel frees the pages of one munmap() under the address space's
 * lock, 40 ms for a GiB of base pages, and every other thread's mmap waits for it. */
static void unmap(const struct mc_arena *a)
{
	size_t page = (size_t)1 << a->shift, slice = page > UNMAP_SLICE ? page : UNMAP_SLICE, left;

	for (left = a->map_bytes; left > slice; left = (left - 1) / slice * slice)
		munmap(a->map + (left - 1) / slice * slice, left - (left - 1) / slice * slice);
	munmap(a->map, left);
}

static void release(struct mc_arena *a)
{
	arena_phys_close(a);
	if (a->map)
		unmap(a);
	if (a->desc)
		munmap(a->desc, a->desc_bytes);
	if (a->alive)
		munmap((void *)a->alive, mc_os_page_size());
	if (a->fd >= 0)
		close(a->fd);
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		mc_cpumask_free(a->part[k].cpus);
		mc_cpumask_free(a->part[k].bound);
	}
	free(a->part);
	free(a->worker);
	free(a->desc_block);
	free(a->granule_up);
	mc_limits_close(a->limits);
	mc_cpumask_free(a->affinity);
	mc_nodemask_free((struct mc_nodemask *)a->nodes);
	mc_topology_put(a->own_topology);
	free(a);
}

int mc_arena_create(const struct mc_arena_attr *attr, struct mc_arena **arena,
		    struct mc_error *error)
{
	struct mc_arena *a = calloc(1, sizeof(*a));
	unsigned int workers = 0;
	int rc;

	if (!a)
		return mc_fail(error, ENOMEM, "arena: out of memory");
	a->attr = *attr;
	a->fd = -1;
	a->t0 = arena_now();
	rc = set_up(a, error);
	if (rc < 0) {
		release(a);
		return rc;
	}
	mark_alive(a);
	atomic_init(&a->wake_at, UINT64_MAX);
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		const struct mc_cpumask *m = a->part[k].cpus ? a->part[k].cpus : a->affinity;

		workers += attr->threads ? attr->threads : m ? mc_cpumask_weight(m) : 1;
	}
	if (!attr->threads && a->affinity && workers > mc_cpumask_weight(a->affinity))
		workers = mc_cpumask_weight(a->affinity); /* nodes share CPUs */
	/* What may be under way at once, twice over for page tables and what the kernel charges
	 * ahead. */
	a->margin = (int64_t)(workers + 1) * (int64_t)((a->charge ? a->chunk << a->shift : 0) * 2) +
		    SPARE;
	if (a->margin > (int64_t)(a->size / 8) + SPARE)
		a->margin = (int64_t)(a->size / 8) + SPARE;
	arena_start_workers(a);
	first_part(a);
	*arena = a;
	return 0;
}

/* Calls that were in progress when destroy began end within a chunk. */
static void wait_for_users(struct mc_arena *a)
{
	static const struct timespec nap = {.tv_nsec = 100000};

	for (unsigned int k = 0; k < a->nr_parts; k++) {
		pthread_mutex_lock(&a->part[k].lock);
		pthread_cond_broadcast(&a->part[k].changed);
		pthread_mutex_unlock(&a->part[k].lock);
		while (atomic_load(&a->part[k].users))
			nanosleep(&nap, NULL);
	}
	while (atomic_load(&a->users)) {
		arena_notify(a);
		nanosleep(&nap, NULL);
	}
}

void mc_arena_destroy(struct mc_arena *a)
{
	if (!a)
		return;
	if (arena_in_child(a)) {
		release(a); /* no thread of ours here, and locks in whatever state: only memory */
		return;
	}
	atomic_store(&a->destroying, true);
	atomic_store(&a->cancel, true);
	arena_join_workers(a);
	wait_for_users(a);
	for (unsigned int k = 0; k < a->nr_parts; k++) {
		pthread_cond_destroy(&a->part[k].changed);
		pthread_mutex_destroy(&a->part[k].lock);
	}
	pthread_cond_destroy(&a->wait_cond);
	pthread_cond_destroy(&a->gate_cond);
	pthread_mutex_destroy(&a->wait_lock);
	pthread_mutex_destroy(&a->progress_lock);
	pthread_mutex_destroy(&a->gate_lock);
	pthread_mutex_destroy(&a->limit_lock);
	release(a);
}

/* ---- where things are
 * --------------------------------------------------------------------------------------------- */

uint64_t mc_arena_ready(const struct mc_arena *a)
{
	return atomic_load(&a->ready) << a->shift;
}

void *mc_arena_base(const struct mc_arena *a)
{
	return a->base;
}

uint64_t mc_arena_size(const struct mc_arena *a)
{
	return a->size;
}

size_t mc_arena_page_size(const struct mc_arena *a)
{
	return (size_t)1 << a->shift;
}

size_t mc_arena_chunk_size(const struct mc_arena *a)
{
	return (size_t)(__atomic_load_n(&a->chunk, __ATOMIC_RELAXED) << a->shift);
}

size_t mc_arena_set_chunk(struct mc_arena *a, size_t bytes)
{
	uint64_t pages = round_chunk(a, bytes < a->size ? bytes : a->size);

	__atomic_store_n(&a->chunk, pages, __ATOMIC_RELAXED);
	return (size_t)(pages << a->shift);
}

int mc_arena_fd(const struct mc_arena *a)
{
	return a->attr.backing == MC_ARENA_MEMFD ? a->fd : -1;
}

void *mc_arena_address(const struct mc_arena *a, size_t page)
{
	return page < a->pages ? arena_addr(a, page) : NULL;
}

struct mc_page *mc_arena_page(const struct mc_arena *a, const void *address)
{
	uint64_t at = (uint64_t)((const char *)address - a->base), page = at >> a->shift;

	if ((const char *)address < a->base || at >= a->size || !a->desc ||
	    !atomic_load_explicit(&a->granule_up[page / a->granule], memory_order_acquire))
		return NULL;
	return arena_page(a, page);
}

unsigned int mc_arena_nr_parts(const struct mc_arena *a)
{
	return a->nr_parts;
}
