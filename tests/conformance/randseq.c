// SPDX-License-Identifier: MIT
/*
 * randseq.c - random sequences of memory-policy calls, for comparing `manycore run` with a real kernel.
 *
 * Each sequence runs in a child of its own, is a function of its number alone and writes one line an operation: what was
 * done, what came back, and where every page then lies. The same program runs inside `manycore run` and as the init of
 * a QEMU guest (tools/difftest), so the texts, or their hashes, must be equal.
 *
 *   randseq FROM COUNT [--full]    hashes ("17 9f3c..."), or the whole text of each sequence
 *   randseq N,N,... 0 [--full]     the same of these sequences
 *
 * Pages are written, never only read: not every host maps the zero page for a private page that was never written, and
 * of shared memory a read maps pages around it as well, as far as the mapping goes, which only the kernel splits by policy.
 * Left out because a real kernel does not answer it twice alike: interleave on shared memory (its phase is the inode's
 * number), transparent huge pages (off), automatic balancing (off as init), the count that migrate_pages returns, and
 * writing after a fork to pages that another CPU has not yet put on its lists (they are copied though nobody shares them:
 * a migrate_pages() of nothing before each fork puts them there).
 * Raw system calls only: libnuma would hide errors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 4, PAGES = 48, OPS = 24, NODES = 6, PAGE = 4096, TEXT = 1 << 18, CPUS = 4 };
enum { DEFAULT, PREFERRED, BIND, INTERLEAVE, LOCAL, PREFERRED_MANY, WEIGHTED };
static const uintptr_t BASE = 0x3000000000, STEP = 16 << 20;
static const char *const mode_name[] = { "default", "preferred", "bind", "interleave", "local", "many", "weighted" };

static uint64_t state;
static char *text;
static size_t text_len;
static struct {
	int mapped, shared;
} slot[SLOTS];
static int task_mode;

static uint32_t rnd(uint32_t below)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ (z >> 31)) >> 33) % below;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text + text_len, TEXT - text_len, format, ap);
	va_end(ap);
	if (n > 0 && text_len + (size_t)n < TEXT)
		text_len += (size_t)n;
}

static char *at(unsigned int s, unsigned int page)
{
	return (char *)(BASE + s * STEP + (uintptr_t)page * PAGE);
}

static void result(long r)
{
	if (r < 0)
		say(" = -%d\n", errno);
	else
		say(" = %ld\n", r);
}

/* A node mask: mostly nodes that exist, now and then one that does not. */
static unsigned long random_nodes(void)
{
	unsigned long m = rnd(1u << (NODES - 2));

	if (rnd(12) == 0)
		m |= 1ul << (NODES - 2 + rnd(2));
	return m;
}

static int random_mode(int interleave)
{
	int mode;

	do
		mode = (int)rnd(7);
	while (!interleave && (mode == INTERLEAVE || mode == WEIGHTED));
	return mode;
}

static int random_flags(void)
{
	static const int flags[] = { 0, 0, 0, 1 << 15, 1 << 14, 1 << 13 };

	return flags[rnd(6)];
}

static void range(unsigned int *first, unsigned int *count)
{
	*first = rnd(PAGES);
	*count = 1 + rnd(PAGES - *first);
}

/* Where each page of the mapped slots lies: one character a page, as in mpolprobe.c. */
static void placement(const char *who)
{
	void *page[PAGES];
	int status[PAGES];

	for (unsigned int s = 0; s < SLOTS; s++) {
		char line[PAGES + 1];

		if (!slot[s].mapped)
			continue;
		for (unsigned int i = 0; i < PAGES; i++)
			page[i] = at(s, i);
		if (syscall(SYS_move_pages, 0, (unsigned long)PAGES, page, NULL, status, 0) < 0) {
			say("%s %u: -%d\n", who, s, errno);
			continue;
		}
		for (unsigned int i = 0; i < PAGES; i++)
			line[i] = status[i] >= 0 ? (char)('0' + status[i]) : status[i] == -ENOENT ? '.' :
				  status[i] == -EFAULT ? '!' : '?';
		line[PAGES] = '\0';
		say("%s %u: %s\n", who, s, line);
	}
}

/* Slots' policies as numa_maps tells them; neighbours with the same policy are joined, since merging is not our subject. */
static void maps(void)
{
	FILE *f = fopen("/proc/self/numa_maps", "r");
	char *line = NULL, last[256] = "";
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		uintptr_t start = strtoull(line, NULL, 16);
		char policy[200], now[256];
		unsigned int s = (unsigned int)((start - BASE) / STEP);

		if (start < BASE || s >= SLOTS || sscanf(line, "%*x %199s", policy) != 1)
			continue;
		snprintf(now, sizeof(now), "%u %s", s, policy);
		if (strcmp(now, last))
			say("maps %s @%u\n", now, (unsigned int)((start - BASE - s * STEP) / PAGE));
		memcpy(last, now, sizeof(last));
	}
	free(line);
	if (f)
		fclose(f);
}

static void touch(unsigned int s)
{
	unsigned int first, count, done = 0;
	unsigned char there[PAGES];

	range(&first, &count);
	if (slot[s].shared && (task_mode == INTERLEAVE || task_mode == WEIGHTED))
		return;
	for (unsigned int i = first; i < first + count; i++) {
		if (mincore(at(s, i), PAGE, there) < 0)
			continue; /* a hole */
		*(volatile char *)at(s, i) = 1;
		done++;
	}
	say("write %u+%u in %u: %u\n", first, count, s, done);
}

static void map(unsigned int s)
{
	unsigned int first = 0, count = PAGES;
	int shared = (int)rnd(3) == 0;

	if (slot[s].mapped) {
		range(&first, &count);
		shared = slot[s].shared; /* one kind a slot: see the head of this file */
	}
	say("map %u+%u in %u %s", first, count, s, shared ? "shared" : "private");
	result(mmap(at(s, first), (size_t)count * PAGE, PROT_READ | PROT_WRITE,
		    (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0);
	slot[s].mapped = 1;
	slot[s].shared = shared;
}

static void bind_range(unsigned int s)
{
	static const unsigned int flags[] = { 0, 0, 0, 1, 2, 3 };
	unsigned int first, count, flag = flags[rnd(6)];
	int mode = random_mode(!slot[s].shared), mflags = random_flags();
	unsigned long nodes = random_nodes();

	range(&first, &count);
	say("mbind %u+%u in %u %s|%x %lx flags %u", first, count, s, mode_name[mode], mflags, nodes, flag);
	result(syscall(SYS_mbind, at(s, first), (unsigned long)count * PAGE, mode | mflags, &nodes, 65ul, flag));
}

static void home_node(unsigned int s)
{
	unsigned int first, count, node = rnd(NODES);

	range(&first, &count);
	say("home %u+%u in %u node %u", first, count, s, node);
	result(syscall(SYS_set_mempolicy_home_node, (unsigned long)at(s, first), (unsigned long)count * PAGE,
		       (unsigned long)node, 0ul));
}

static void task_policy(void)
{
	int mode = random_mode(1), flags = random_flags();
	unsigned long nodes = random_nodes();
	long r = syscall(SYS_set_mempolicy, mode | flags, &nodes, 65ul);

	say("policy %s|%x %lx", mode_name[mode], flags, nodes);
	result(r);
	if (r == 0)
		task_mode = mode;
}

static void ask(unsigned int s)
{
	unsigned int page = rnd(PAGES);
	unsigned long nodes[16] = { 0 };
	int mode = -1;
	long r = syscall(SYS_get_mempolicy, &mode, nodes, 1024ul, at(s, page), 2ul);

	say("ask %u in %u: %d %lx", page, s, mode, nodes[0]);
	result(r);
}

static void move(unsigned int s)
{
	unsigned int first, count;
	void *page[PAGES];
	int node[PAGES], status[PAGES];
	long r;

	range(&first, &count);
	for (unsigned int i = 0; i < count; i++) {
		page[i] = at(s, first + i);
		node[i] = (int)rnd(4);
		status[i] = -77;
	}
	r = syscall(SYS_move_pages, 0, (unsigned long)count, page, node, status, 2);
	say("move %u+%u in %u:", first, count, s);
	for (unsigned int i = 0; i < count; i++)
		say(" %d", status[i]);
	result(r);
}

static void migrate(void)
{
	unsigned long from = random_nodes(), to = random_nodes();
	long r = syscall(SYS_migrate_pages, 0, 65ul, &from, &to);

	say("migrate %lx %lx", from, to);
	result(r > 0 ? 0 : r);
}

static void remap(unsigned int s)
{
	unsigned int to = rnd(SLOTS), first, count, at_page;

	if (to == s || (slot[to].mapped && slot[to].shared != slot[s].shared))
		return;
	/* One page: of ranges over several mappings 6.12 makes an error and newer hosts do not. */
	first = rnd(PAGES);
	count = 1;
	at_page = rnd(PAGES);
	say("mremap %u+%u in %u to %u in %u", first, count, s, at_page, to);
	if (mremap(at(s, first), (size_t)count * PAGE, (size_t)count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   at(to, at_page)) == MAP_FAILED) {
		result(-1);
		return;
	}
	result(0);
	slot[to].mapped = 1;
	slot[to].shared = slot[s].shared;
}

static void run_on(void)
{
	cpu_set_t set;
	int cpu = (int)rnd(CPUS);

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	say("cpu %d", cpu);
	result(sched_setaffinity(0, sizeof(set), &set));
}

static void operation(int depth);

/* A child goes on with its own few operations; what it says is handed over through the shared text. */
static void child(int depth)
{
	size_t *len = mmap(NULL, sizeof(*len), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned long nowhere = 1ul << (NODES - 1), somewhere = 1;
	int status = 0;
	pid_t pid;

	say("fork\n");
	syscall(SYS_migrate_pages, 0, 65ul, &nowhere, &somewhere); /* see the head of this file */
	*len = text_len;
	pid = fork();
	if (pid == 0) {
		for (unsigned int n = 1 + rnd(4); n; n--)
			operation(depth + 1);
		placement("child");
		*len = text_len;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	text_len = *len;
	say("joined %x\n", status);
	munmap(len, sizeof(*len));
}

static void operation(int depth)
{
	unsigned int s = rnd(SLOTS), first, count, what = rnd(20);

	if (!slot[s].mapped) {
		map(s);
		return;
	}
	switch (what) {
	case 0: map(s); break;
	case 1:
		range(&first, &count);
		say("unmap %u+%u in %u", first, count, s);
		result(munmap(at(s, first), (size_t)count * PAGE));
		break;
	case 2:
		range(&first, &count);
		say("dontneed %u+%u in %u", first, count, s);
		result(madvise(at(s, first), (size_t)count * PAGE, MADV_DONTNEED));
		break;
	case 3: remap(s); break;
	case 4: home_node(s); break;
	case 5: migrate(); break;
	case 6: run_on(); break;
	case 7: move(s); break;
	case 8: if (depth < 2) child(depth); break;
	case 9: ask(s); break;
	case 11: case 12: task_policy(); break;
	case 13: case 14: case 15: bind_range(s); break;
	default: touch(s); break;
	}
}

static void sequence(unsigned long number)
{
	cpu_set_t set;

	state = number * 0x2545f4914f6cdd1d + 1;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (int i = 0; i < OPS; i++) {
		operation(0);
		placement("pages");
	}
	maps();
}

static void as_init(void)
{
	int fd;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	fd = open("/proc/sys/kernel/numa_balancing", O_WRONLY);
	if (fd < 0 || write(fd, "0\n", 2) != 2)
		puts("randseq: numa_balancing could not be switched off");
	close(fd);
}

/* Runs one sequence in a child, and prints its hash or its text. */
static void run(char *shared, unsigned long n, int full)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t len;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		sequence(n);
		memcpy(shared, &text_len, sizeof(text_len));
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) {
		printf("%lu died %x\n", n, pid < 0 ? -1 : status);
		return;
	}
	memcpy(&len, shared, sizeof(len));
	if (full) {
		printf("[%lu]\n%.*s", n, (int)len, text);
		return;
	}
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
	printf("%lu %016llx\n", n, (unsigned long long)hash);
}

int main(int argc, char **argv)
{
	char *list = argc > 1 ? argv[1] : "0", *end;
	unsigned long from = strtoul(list, &end, 0), count = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	int full = argc > 3 && !strcmp(argv[3], "--full"), init = getpid() == 1;
	/* The text's length crosses processes in front of it. */
	char *shared = mmap(NULL, TEXT + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return 1;
	text = shared + PAGE;
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (init)
		as_init();
	for (unsigned long n = from; count && n < from + count; n++)
		run(shared, n, full);
	for (; !count; from = strtoul(end + 1, &end, 0)) {
		run(shared, from, full);
		if (*end != ',')
			break;
	}
	if (init) {
		puts("randseq: done");
		fflush(stdout);
		reboot(RB_POWER_OFF);
	}
	return 0;
}
