// SPDX-License-Identifier: MIT
/*
 * arena_live.c - the machine as arenas see it when the caller gives no topology: read once, and
 * again when it has changed.
 *
 * Reading it takes 1 ms on a small machine and seconds on an emulated one of 512 CPUs under load.
 * What it is good for here is which nodes have memory and which CPUs are theirs, so it is kept
 * while the online CPUs, the nodes with memory and the nodes allowed to this process are as they
 * were: three short reads. Called by arena.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <manycore/mempolicy.h>
#include "lib/arena_internal.h"
#include "lib/internal.h"
#include "os/os.h"

enum { FILE_MAX = 1 << 16 };
static const char *const files[] = {"/sys/devices/system/cpu/online",
				    "/sys/devices/system/node/has_memory"};
enum { FILES = sizeof(files) / sizeof(*files) };

/* What the kept topology was read under. */
struct key {
	char *text[FILES]; /* NULL: no such file */
	struct mc_nodemask *allowed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mc_topology *kept;
static struct key kept_key;

static void drop_key(struct key *k)
{
	for (int i = 0; i < FILES; i++)
		free(k->text[i]);
	mc_nodemask_free(k->allowed);
	memset(k, 0, sizeof(*k));
}

static void read_key(struct key *k)
{
	size_t len;

	for (int i = 0; i < FILES; i++)
		if (mc_os_read_file(MC_ROOT_LIVE, files[i], FILE_MAX, &k->text[i], &len) < 0)
			k->text[i] = NULL;
	k->allowed = mc_nodemask_alloc();
	if (k->allowed && mc_mempolicy_allowed(k->allowed) < 0) {
		mc_nodemask_free(k->allowed);
		k->allowed = NULL;
	}
}

static bool same_key(const struct key *x, const struct key *y)
{
	bool same = !x->allowed == !y->allowed;

	if (same && x->allowed)
		same = x->allowed->m.nbits == y->allowed->m.nbits &&
		       mc_cpumask_equal(&x->allowed->m, &y->allowed->m);
	for (int i = 0; i < FILES && same; i++)
		same = x->text[i] && y->text[i] ? !strcmp(x->text[i], y->text[i])
						: x->text[i] == y->text[i];
	return same;
}

struct mc_topology *arena_live_topology(void)
{
	struct mc_topology *t = NULL;
	struct key k = {0};

	/* Whoever finds another at it, perhaps one that fork() left behind for ever, reads for
	 * itself. */
	if (pthread_mutex_trylock(&lock))
		return mc_topology_live(&t, NULL) < 0 ? NULL : t;
	read_key(&k);
	if (!kept || !same_key(&k, &kept_key)) {
		if (mc_topology_live(&t, NULL) < 0)
			t = NULL;
		mc_topology_put(kept);
		drop_key(&kept_key);
		kept = t;
		kept_key = k;
	} else {
		drop_key(&k);
	}
	t = kept ? mc_topology_get(kept) : NULL;
	pthread_mutex_unlock(&lock);
	return t;
}
