// SPDX-License-Identifier: MIT
/*
 * percpu_rt.c - how this process indexes copies: the modes, the threads' registrations and slots,
 * the live marks.
 *
 * Invariants. mc_percpu_kinds is complete before the first handle exists, and cs_off, id_off and
 * limit never change after. live and atomic_live only grow, but for mc_rt_lower() (trim), which
 * fences. A kind is either in rseq mode (atomic_live stays 0) or in atomics mode (live stays 0). A
 * copy at or above the live mark was never written since it was last known to be zero, or lies
 * below some pool's `retired` mark: that is why a thread with a new index may start at once. What a
 * signal handler may reach (mc_rt_raise and below) takes no lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/percpu_internal.h"
#include "os/os.h"

/* Before initialisation an operation on a NULL handle must fault, not write to the thread control
 * block. Below bit 56: arm64 ignores the top byte of an address. */
#define NOWHERE (INT64_C(1) << 54)
struct mc_percpu_kind mc_percpu_kinds[4] = {
	{.cs_off = NOWHERE, .id_off = NOWHERE},
	{.cs_off = NOWHERE, .id_off = NOWHERE},
	{.cs_off = NOWHERE, .id_off = NOWHERE},
	{.cs_off = NOWHERE, .id_off = NOWHERE},
};
_Static_assert(sizeof(struct mc_percpu_kind) == 64 &&
		       offsetof(struct mc_percpu_kind, cs_off) == 8 &&
		       offsetof(struct mc_percpu_kind, id_off) == 16 &&
		       offsetof(struct mc_percpu_kind, limit) == 24,
	       "ABI of the inlines: a change needs a new soname");

/* struct rseq of the kernel; ours is only used where the C library has none. Until a thread is
 * registered its ids are out of every range (initial image, not a write to a registered area),
 * which sends it to mc_rt_raise(). */
struct area {
	uint32_t cpu_id_start, cpu_id;
	uint64_t rseq_cs;
	uint32_t flags, node_id, mm_cid, end;
} __attribute__((aligned(32)));

static __thread struct {
	struct area area;
	uint32_t slot;
	uint32_t state; /* of the own registration: 0 not tried, 1 done, 2 refused */
} self __attribute__((tls_model("initial-exec"), aligned(64))) = {
	.area = {.cpu_id = UINT32_MAX, .cpu_id_start = 0, .mm_cid = UINT32_MAX},
	.slot = UINT32_MAX,
};

enum { MAX_PUBLISHED = 64 };
static struct {
	pthread_once_t once;
	int error;
	bool rseq, own, cid, fence;
	uint32_t limit, nr_slots;
	uint32_t *slot_users;
	pthread_key_t slot_key;
	const char *why;
	struct mc_shared_header *published[MAX_PUBLISHED];
	uint32_t raising;
} rt = {.once = PTHREAD_ONCE_INIT};

/* Present when the process has ThreadSanitizer's run-time. */
extern void __tsan_init(void) __attribute__((weak));

static int64_t tp_offset(const void *p)
{
	return (const char *)p - mc_thread_pointer();
}

/* Gives a thread's slot back; it gets another should it run operations in later destructors. */
static void slot_release(void *value)
{
	uint32_t slot = self.slot;

	(void)value;
	if (slot != UINT32_MAX) {
		self.slot = UINT32_MAX;
		__atomic_fetch_sub(&rt.slot_users[slot], 1, __ATOMIC_RELAXED);
	}
}

/* The number of CPUs this process may run on, for how many slots are worth having. */
static uint32_t allowed_cpus(void)
{
	size_t bytes = 128;
	uint32_t n = 0;
	int rc;

	for (;;) {
		unsigned long *mask = calloc(1, bytes);

		if (!mask)
			return rt.limit;
		rc = mc_os_getaffinity(0, bytes, mask);
		for (size_t i = 0; rc > 0 && i < (size_t)rc / sizeof(*mask); i++)
			n += (uint32_t)__builtin_popcountl(mask[i]);
		free(mask);
		if (rc != -EINVAL || bytes > 65536)
			break;
		bytes *= 2;
	}
	return n ? n : rt.limit;
}

static void choose(void)
{
	struct mc_os_rseq os = {0, 0, 0};

	mc_os_rseq_probe(&os);
	rt.rseq = rt.own = rt.cid = false;
	if (!MC_PERCPU_RSEQ) {
		rt.why = "atomics: this build of the library has no restartable sequences";
	} else if (&__tsan_init) {
		rt.why = "atomics: ThreadSanitizer watches this process";
	} else if (os.glibc) {
		rt.rseq = true;
	} else if (self.state == 1 || !mc_os_rseq_register(&self.area, MC_RSEQ_SIG)) {
		self.state = 1;
		rt.rseq = rt.own = true;
	} else {
		rt.why = "atomics: the kernel refuses rseq (old, filtered or emulated), and the C "
			 "library has none";
	}
	if (rt.rseq) {
		rt.cid = os.size >= 28;
		rt.why = rt.own ? (rt.cid ? "rseq: own registration, mm_cid by the kernel's "
					    "feature size"
					  : "rseq: own registration, no mm_cid before Linux 6.3")
				: (rt.cid ? "rseq: the C library's registration, mm_cid by the "
					    "kernel's feature size"
					  : "rseq: the C library's registration, no mm_cid before "
					    "Linux 6.3");
	}
}

static void fill_kind(struct mc_percpu_kind *k, bool rseq, bool cid)
{
	struct mc_os_rseq os;
	int64_t area;

	mc_os_rseq_probe(&os);
	area = rt.own || !rt.rseq ? tp_offset(&self.area) : os.offset;
	k->limit = rt.limit;
	if (!rseq) {
		/* The inlines still write rseq_cs: of the area that nobody registered, or the true
		 * one: both harmless. */
		k->cs_off = area + (int64_t)offsetof(struct area, rseq_cs);
		k->id_off = tp_offset(&self.slot);
		return;
	}
	k->cs_off = area + (int64_t)offsetof(struct area, rseq_cs);
	k->id_off = area +
		    (int64_t)(cid ? offsetof(struct area, mm_cid) : offsetof(struct area, cpu_id));
}

static void init(void)
{
	rt.limit = mc_nr_cpu_ids();
	choose();
	rt.nr_slots = allowed_cpus();
	if (rt.nr_slots > rt.limit)
		rt.nr_slots = rt.limit;
	rt.slot_users = calloc(rt.nr_slots, sizeof(*rt.slot_users));
	if (!rt.slot_users) {
		rt.error = -ENOMEM;
		return;
	}
	if (pthread_key_create(&rt.slot_key, slot_release)) {
		free(rt.slot_users);
		rt.error = -EAGAIN;
		return;
	}
	rt.fence = rt.rseq && !mc_os_rseq_fence_prepare() && !mc_os_rseq_fence();
	fill_kind(&mc_percpu_kinds[MC_KIND_CALL], false, false);
	fill_kind(&mc_percpu_kinds[MC_KIND_ATOMIC], false, false);
	fill_kind(&mc_percpu_kinds[MC_KIND_CPU], rt.rseq, false);
	fill_kind(&mc_percpu_kinds[MC_KIND_CID], rt.rseq, rt.cid);
	rt.error = 0;
}

/* Not pthread_once alone: a failure for want of memory may be tried again. */
int mc_rt_init(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int ready;

	if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&lock);
	if (!ready) {
		init();
		__atomic_store_n(&ready, !rt.error, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return __atomic_load_n(&ready, __ATOMIC_ACQUIRE) ? 0 : -ENOMEM;
}

bool mc_rt_rseq(int index_kind)
{
	return rt.rseq && (index_kind == MC_KIND_CID || index_kind == MC_KIND_CPU);
}

bool mc_rt_has_cid(void)
{
	return rt.cid;
}

const char *mc_rt_why(int index_kind)
{
	if (index_kind == MC_KIND_CALL)
		return "atomics out of line: a robust pool, or fewer copies than possible CPUs";
	if (index_kind == MC_KIND_ATOMIC && rt.rseq)
		return "atomics: asked for";
	return rt.why;
}

uint32_t mc_rt_slot(void)
{
	uint32_t best = 0, n;

	if (self.slot != UINT32_MAX)
		return self.slot;
	for (uint32_t i = 0; i < rt.nr_slots; i++) {
		n = 0;
		if (__atomic_compare_exchange_n(&rt.slot_users[i], &n, 1, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			best = i;
			goto got;
		}
		if (n < __atomic_load_n(&rt.slot_users[best], __ATOMIC_RELAXED))
			best = i;
	}
	__atomic_fetch_add(&rt.slot_users[best], 1, __ATOMIC_RELAXED);
got:
	/* A signal handler that came in between chose a slot of its own: keep that, give this back.
	 */
	if (self.slot != UINT32_MAX) {
		__atomic_fetch_sub(&rt.slot_users[best], 1, __ATOMIC_RELAXED);
		return self.slot;
	}
	self.slot = best;
	pthread_setspecific(rt.slot_key, &self);
	return best;
}

static void atomic_max(uint32_t *p, uint32_t n)
{
	uint32_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (old < n &&
	       !__atomic_compare_exchange_n(p, &old, n, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

/* Tells every shared pool, then the process. Headers first: who sees the mark of the process may
 * write at once. */
static void publish(struct mc_percpu_kind *k, uint32_t n)
{
	__atomic_fetch_add(&rt.raising, 1, __ATOMIC_SEQ_CST);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MAX_PUBLISHED && k != &mc_percpu_kinds[MC_KIND_CID]; i++) {
			struct mc_shared_header *h =
				__atomic_load_n(&rt.published[i], __ATOMIC_SEQ_CST);

			if (h)
				atomic_max(&h->live, n);
		}
		/* The second round is for pools that were attached meanwhile. */
		atomic_max(mc_rt_rseq((int)(k - mc_percpu_kinds)) ? &k->live : &k->atomic_live, n);
	}
	__atomic_fetch_sub(&rt.raising, 1, __ATOMIC_SEQ_CST);
}

bool mc_rt_raise(struct mc_percpu_kind *k)
{
	bool rseq = mc_rt_rseq((int)(k - mc_percpu_kinds));
	uint32_t i;

	if (!rseq) {
		mc_rt_slot();
	} else if (rt.own && !self.state) {
		int rc = mc_os_rseq_register(&self.area, MC_RSEQ_SIG);

		self.state = !rc || rc == -EBUSY ? 1 : 2;
	}
	i = mc_kind_index_(k);
	if (i >= k->limit) {
		__atomic_store_n(&k->overflow, 1, __ATOMIC_SEQ_CST);
		for (int p = 0; p < MAX_PUBLISHED; p++) {
			struct mc_shared_header *h =
				__atomic_load_n(&rt.published[p], __ATOMIC_SEQ_CST);

			if (h)
				__atomic_store_n(&h->overflow, 1, __ATOMIC_SEQ_CST);
		}
		return false;
	}
	publish(k, i + 1);
	return true;
}

int mc_rt_fence(void)
{
	return rt.fence ? mc_os_rseq_fence() : -EOPNOTSUPP;
}

void mc_rt_publish(struct mc_shared_header *header)
{
	const struct mc_percpu_kind *k = mc_percpu_kinds;

	for (int i = 0; i < MAX_PUBLISHED; i++) {
		struct mc_shared_header *none = NULL;

		if (__atomic_compare_exchange_n(&rt.published[i], &none, header, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			break;
		if (i == MAX_PUBLISHED - 1) /* no room: always walk all of it */
			atomic_max(&header->live, header->copies);
	}
	for (int i = MC_KIND_CPU; i <= MC_KIND_ATOMIC; i++) {
		atomic_max(&header->live, __atomic_load_n(&k[i].live, __ATOMIC_SEQ_CST));
		atomic_max(&header->live, __atomic_load_n(&k[i].atomic_live, __ATOMIC_SEQ_CST));
		if (__atomic_load_n(&k[i].overflow, __ATOMIC_SEQ_CST))
			__atomic_store_n(&header->overflow, 1, __ATOMIC_SEQ_CST);
	}
}

int mc_rt_lower(struct mc_percpu_kind *k, uint32_t live)
{
	if (!rt.fence)
		return -EOPNOTSUPP;
	if (!__atomic_compare_exchange_n(&k->live, &live, 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return -EAGAIN;
	return mc_os_rseq_fence();
}

/* After this nobody looks at the header any more. */
void mc_rt_unpublish(struct mc_shared_header *header)
{
	for (int i = 0; i < MAX_PUBLISHED; i++)
		if (__atomic_load_n(&rt.published[i], __ATOMIC_RELAXED) == header)
			__atomic_store_n(&rt.published[i], NULL, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&rt.raising, __ATOMIC_SEQ_CST))
		;
}

/* Only the forking thread lives on: it keeps its slot, the others' are free. */
void mc_rt_fork_child(void)
{
	if (!rt.slot_users)
		return;
	memset(rt.slot_users, 0, rt.nr_slots * sizeof(*rt.slot_users));
	if (self.slot != UINT32_MAX)
		rt.slot_users[self.slot] = 1;
	rt.raising = 0;
}
