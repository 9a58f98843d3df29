// SPDX-License-Identifier: MIT
/*
 * mempolicy_mm.c - the state behind policies: the run's, each address space's, and the mappings of
 * a process.
 *
 * The hooks of emu.h (emu_mm_*, emu_policy_task_*) are here: who inherits what over clone, fork and
 * exec. Files and shared memory are told apart by their names in /proc/PID/maps, as the kernel
 * prints them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy_events.h"

/* ---- the run --------------------------------------------------------------------------------- */

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

struct mp_state *mp_state(struct emu *emu)
{
	void **at = emu_policy_state(emu);
	struct mp_state *state = __atomic_load_n(at, __ATOMIC_ACQUIRE);

	if (state)
		return state;
	pthread_mutex_lock(&making);
	state = *at;
	if (!state) {
		state = calloc(1, sizeof(*state));
		if (state) {
			state->page = (size_t)sysconf(_SC_PAGESIZE);
			state->machine = pol_machine_new(emu_topology(emu), state->page);
			if (state->machine) {
				state->used =
					calloc(state->machine->nr_node_ids, sizeof(*state->used));
				state->counters = calloc(state->machine->nr_node_ids,
							 sizeof(*state->counters));
			}
			if (!state->used || !state->counters) {
				pol_machine_free(state->machine);
				free(state->used);
				free(state->counters);
				free(state);
				state = NULL;
			}
		}
		if (state) {
			pthread_mutex_init(&state->lock, NULL);
			__atomic_store_n(at, state, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&making);
	return state;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static char *read_all(pid_t pid, const char *name, size_t *len)
{
	char path[64], *text = NULL;
	size_t room = 16384, have = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = malloc(room + 1);
	while (text) {
		ssize_t n = read(fd, text + have, room - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		if (room - have < 4096) {
			char *bigger = realloc(text, room * 2 + 1);

			if (!bigger) {
				free(text);
				text = NULL;
				break;
			}
			text = bigger;
			room *= 2;
		}
	}
	close(fd);
	if (text)
		text[have] = '\0';
	*len = have;
	return text;
}

static bool starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static void classify(struct mp_vma *vma, const char *name)
{
	/* A System V segment's inode is its id, which may be 0. */
	vma->kind = vma->ino || vma->dev ? MP_FILE : MP_ANON;
	if (starts(name, "[vvar") || starts(name, "[vsyscall]"))
		vma->kind = MP_SPECIAL;
	else if (starts(name, "[heap]"))
		vma->heap = true;
	else if (starts(name, "[stack]"))
		vma->stack = true;
	else if (starts(name, "/anon_hugepage") || starts(name, "/dev/hugepages/"))
		vma->huge = true;
	if (vma->kind == MP_FILE &&
	    (starts(name, "/dev/zero (deleted)") || starts(name, "/memfd:") ||
	     starts(name, "/SYSV") || starts(name, "/dev/shm/")))
		vma->kind = MP_SHMEM;
}

/* One line: "start-end rwxp offset major:minor inode   path". */
static bool parse_line(char *line, struct mp_vma *vma, const char **name)
{
	unsigned int major_nr, minor_nr;
	unsigned long start, end, offset, ino;
	char perms[5];
	int at = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu%n", &start, &end, perms, &offset, &major_nr,
		   &minor_nr, &ino, &at) < 7)
		return false;
	*vma = (struct mp_vma){
		.start = start, .end = end, .ino = ino, .dev = makedev(major_nr, minor_nr)};
	vma->shared = perms[3] == 's';
	vma->readable = perms[0] == 'r';
	line += at;
	*name = line + strspn(line, " ");
	classify(vma, *name);
	return true;
}

int mp_maps_read(pid_t pid, struct mp_maps *maps)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len;
	char *line, *end;

	*maps = (struct mp_maps){0};
	maps->text = read_all(pid, "maps", &len);
	if (!maps->text)
		return -ESRCH;
	for (line = maps->text; *line; line = end + 1) {
		struct mp_vma vma;
		unsigned long offset = 0;
		const char *name;

		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		if (!parse_line(line, &vma, &name) || vma.start >> 63)
			continue;
		sscanf(line, "%*x-%*x %*s %lx", &offset);
		vma.index = offset / page;
		vma.name = (uint32_t)(name - maps->text);
		if (maps->count == maps->room) {
			size_t room = maps->room ? maps->room * 2 : 64;
			struct mp_vma *bigger = realloc(maps->vma, room * sizeof(*bigger));

			if (!bigger) {
				mp_maps_free(maps);
				return -ENOMEM;
			}
			maps->vma = bigger;
			maps->room = room;
		}
		maps->vma[maps->count++] = vma;
	}
	return 0;
}

void mp_maps_free(struct mp_maps *maps)
{
	free(maps->vma);
	free(maps->text);
	*maps = (struct mp_maps){0};
}

const struct mp_vma *mp_vma_at(const struct mp_maps *maps, uint64_t addr, size_t *next)
{
	size_t lo = 0, hi = maps->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->vma[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (next)
		*next = lo;
	return lo < maps->count && maps->vma[lo].start <= addr ? &maps->vma[lo] : NULL;
}

/* ---- shared objects: with state->lock held
 * -------------------------------------------------------------------------------- */

struct mp_object *mp_object_get(struct mp_state *state, uint64_t dev, uint64_t ino, bool create)
{
	struct mp_object **bucket = &state->objects[(dev * 31 + ino) % MP_OBJECTS];
	struct mp_object *object = *bucket;

	while (object && (object->ino != ino || object->dev != dev))
		object = object->next;
	if (object || !create)
		return object;
	object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	object->dev = dev;
	object->ino = ino;
	object->next = *bucket;
	*bucket = object;
	state->nr_objects++;
	return object;
}

struct pol *mp_vma_policy(struct mp_state *state, const struct emu_mm *mm, const struct mp_vma *vma,
			  uint64_t addr)
{
	struct pol *pol = NULL;

	if (vma->kind == MP_SHMEM) {
		struct mp_object *object;

		pthread_mutex_lock(&state->lock);
		object = mp_object_get(state, vma->dev, vma->ino, false);
		if (object)
			pol = pol_get(pol_ranges_at(&object->ranges,
						    vma->index + (addr - vma->start) / state->page,
						    NULL));
		pthread_mutex_unlock(&state->lock);
		return pol;
	}
	return mm ? pol_get(pol_ranges_at(&mm->ranges, addr, NULL)) : NULL;
}

/* ---- address spaces -------------------------------------------------------------------------- */

static void uncount(void *arg, uint64_t page, unsigned int node)
{
	struct mp_state *state = arg;

	(void)page;
	if (node < state->machine->nr_node_ids)
		__atomic_sub_fetch(&state->used[node], 1, __ATOMIC_RELAXED);
}

static void put_family(struct mp_state *state, struct mp_family *family)
{
	bool last;

	pthread_mutex_lock(&state->lock);
	last = !--family->refs;
	pthread_mutex_unlock(&state->lock);
	if (!last)
		return;
	pol_pages_free(&family->pages, uncount, state);
	free(family);
}

static void clear_mm(struct mp_state *state, struct emu_mm *mm)
{
	mp_events_end(mm);
	pol_ranges_free(&mm->ranges);
	pol_shifts_free(&mm->shifts);
	pol_shifts_free(&mm->filled);
	pol_shifts_free(&mm->borrowed);
	pol_pages_free(&mm->unsure, NULL, NULL);
	pol_pages_free(&mm->pages, uncount, state);
	for (unsigned int i = 0; i < mm->nr_family; i++)
		put_family(state, mm->family[i]);
	free(mm->family);
	mp_maps_free(&mm->seen);
	*mm = (struct emu_mm){0};
}

struct emu_mm *mp_mm(struct emu_process *process)
{
	if (!process->mm)
		process->mm = calloc(1, sizeof(*process->mm));
	return process->mm;
}

/* Families that nobody else has any more become this process's own again: a shell's many children
 * leave no chain. */
static void take_back(struct mp_state *state, struct emu_mm *mm)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < mm->nr_family; i++) {
		struct mp_family *family = mm->family[i];
		bool alone;

		pthread_mutex_lock(&state->lock);
		alone = family->refs == 1;
		pthread_mutex_unlock(&state->lock);
		/* Only the newest may go back: older ones are behind those that stay. */
		if (!alone || kept || mm->pages.leaves) {
			mm->family[kept++] = family;
			continue;
		}
		mm->pages = family->pages;
		mm->nr_inherited -= i + mm->nr_inherited >= mm->nr_family;
		free(family);
	}
	mm->nr_family = kept;
}

/* The parent's own pages become the family's, which both then share. */
static void share(struct mp_state *state, struct emu_mm *parent, struct emu_mm *child)
{
	struct mp_family **list, *family = NULL;
	unsigned int n;

	take_back(state, parent);
	n = parent->nr_family;
	if (parent->pages.leaves) {
		family = calloc(1, sizeof(*family));
		list = family ? realloc(parent->family, (n + 1) * sizeof(struct mp_family *))
			      : NULL;
		if (!list) {
			free(family);
			return;
		}
		memmove(list + 1, list, n * sizeof(struct mp_family *));
		family->refs = 1;
		family->pages = parent->pages;
		parent->pages = (struct pol_pages){0};
		list[0] = family;
		parent->family = list;
		parent->nr_family = ++n;
	}
	child->family = n ? calloc(n, sizeof(struct mp_family *)) : NULL;
	if (!child->family)
		return;
	pthread_mutex_lock(&state->lock);
	for (unsigned int i = 0; i < n; i++) {
		child->family[i] = parent->family[i];
		child->family[i]->refs++;
	}
	pthread_mutex_unlock(&state->lock);
	child->nr_family = child->nr_inherited = n;
}

bool emu_mm_asked(const struct emu_process *process)
{
	return process->mm && process->mm->asked;
}

void emu_mm_new(struct emu *emu, struct emu_process *process, const struct emu_process *parent,
		bool alive)
{
	struct mp_state *state = mp_state(emu);

	if (!state || !parent || !emu_mm_asked(parent))
		return;
	/* It is locked, and const only for the core's sake. */
	if (alive)
		mp_settle_all(emu, (struct emu_process *)parent);
	if (!mp_mm(process))
		return;
	process->mm->asked = true;
	process->mm->parent = alive ? parent->tgid : 0;
	pol_ranges_copy(&process->mm->ranges, &parent->mm->ranges);
	pol_shifts_copy(&process->mm->shifts, &parent->mm->shifts);
	pol_shifts_copy(&process->mm->filled, &parent->mm->filled);
	pol_pages_copy(&process->mm->unsure, &parent->mm->unsure);
	share(state, parent->mm, process->mm);
}

void emu_mm_exec(struct emu *emu, struct emu_process *process)
{
	struct mp_state *state = mp_state(emu);

	if (state && process->mm)
		clear_mm(state, process->mm);
	for (struct emu_task *task = process->tasks; task; task = task->next)
		if (task->policy)
			task->policy->faults = 0;
}

void emu_mm_gone(struct emu *emu, struct emu_process *process)
{
	struct mp_state *state = mp_state(emu);

	if (!process->mm)
		return;
	if (state)
		clear_mm(state, process->mm);
	free(process->mm);
	process->mm = NULL;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

unsigned int mp_task_node(struct emu *emu, const struct emu_task *task)
{
	struct mp_state *state = mp_state(emu);
	const struct mc_topology *topo = emu_topology(emu);
	const struct mc_cpu *cpu =
		task->cpu < mc_topology_nr_cpu_ids(topo) ? mc_topology_cpu(topo, task->cpu) : NULL;

	if (cpu && cpu->node < state->machine->nr_node_ids)
		return cpu->node;
	return pol_next(state->machine->memory, state->machine->words, 0);
}

struct emu_policy *mp_task(struct emu_task *task)
{
	if (!task->policy)
		task->policy = calloc(1, sizeof(*task->policy));
	return task->policy;
}

void emu_policy_task_new(struct emu *emu, struct emu_task *task, const struct emu_task *creator)
{
	struct pol *pol = creator && creator->policy ? creator->policy->pol : NULL;

	(void)emu;
	/* A task without a policy has none of this: most never do. */
	if ((pol || task->policy) && mp_task(task)) {
		pol_put(task->policy->pol);
		task->policy->pol = pol_get(pol);
	}
}

void emu_policy_task_gone(struct emu *emu, struct emu_task *task)
{
	(void)emu;
	if (!task->policy)
		return;
	pol_put(task->policy->pol);
	free(task->policy);
	task->policy = NULL;
}
