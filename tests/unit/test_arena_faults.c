// SPDX-License-Identifier: MIT
/*
 * test_arena_faults.c - everything an arena must survive, really brought about: pools and file
 * systems that are empty, files that end, memory limits, poisoned pages, kernels without
 * MADV_POPULATE_* or with another meaning of it, threads that can't be made. Each case runs in a
 * child, with SIGBUS and SIGSEGV at their defaults: a signal is a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/manycore.h>
#include "leave.h"
#include "skip.h"

#define MiB (1ull << 20)
enum { SKIPPED = 77, LIMIT_S = 60 };

/* gcc's way to tell, and clang's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#define CHECK(x)                                                                                  \
	do {                                                                                      \
		if (!(x)) {                                                                       \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #x, errno); \
			_exit(1);                                                                 \
		}                                                                                 \
	} while (0)
#define LACKS(feature)                                                       \
	do {                                                                 \
		if (!test_skip_allowed(feature))                             \
			fprintf(stderr, "MUST_WORK=1: needs %s\n", feature); \
		_exit(test_skip_allowed(feature) ? SKIPPED : 1);             \
	} while (0)

static void in_child(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(test_seconds(LIMIT_S));
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("died of signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- kernels made poorer by a filter
 * ------------------------------------------------------------------------------- */

static void install(struct sock_filter *f, unsigned short n)
{
	struct sock_fprog prog = {n, f};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
}

/* madvise(22 or 23) answers `error`; 0: success without doing anything, as a kernel where 23 means
 * something else. */
static void no_populate(int error)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 22, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(f, sizeof(f) / sizeof(*f));
}

/* MADV_POPULATE_WRITE of a range that reaches past `from` is out of memory. The low half of
 * addresses is compared. */
static void no_memory_from(uintptr_t from)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)from, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
	};

	f[1].jf = f[3].jf = 0;
	f[1].jf = 7;
	f[3].jf = 5;
	install(f, sizeof(f) / sizeof(*f));
}

static void no_threads(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
	};

	install(f, sizeof(f) / sizeof(*f));
}

/* ---- helpers --------------------------------------------------------------------------------- */

static struct mc_arena *make(struct mc_arena_attr at)
{
	struct mc_arena *a = NULL;
	struct mc_error e = {0};
	int rc;

	at.policy = MC_ARENA_DEFAULT; /* one part */
	rc = mc_arena_create(&at, &a, &e);
	if (rc) {
		fprintf(stderr, "create: %d %s\n", rc, e.text);
		_exit(1);
	}
	return a;
}

/* The arena stopped with this, after so many bytes; all of those are allocatable and writable. */
static void check_stopped(struct mc_arena *a, int err, enum mc_arena_stop stop, uint64_t least,
			  uint64_t most)
{
	struct mc_arena_report r;
	uint64_t got = 0;
	char text[400], *p;
	int rc = mc_arena_wait(a, 0, -1);

	mc_arena_part_report(a, 0, &r);
	mc_arena_report_snprint(text, sizeof(text), &r);
	fprintf(stderr, "  %s\n", text);
	CHECK(rc == -err);
	CHECK(r.stop == stop && r.err == err && !r.running);
	CHECK(r.ready >= least && r.ready <= most);
	CHECK(r.ready == mc_arena_ready(a));
	CHECK(r.error.err == err && strlen(r.error.text) > 20);
	while ((p = mc_arena_alloc(a, 0, MC_ANY_NODE))) {
		memset(p, 1, mc_arena_page_size(a));
		got += mc_arena_page_size(a);
	}
	CHECK(errno == err || errno == ENOMEM);
	CHECK(got == r.ready);
	mc_arena_destroy(a);
}

static int temp_file(const char *folder, off_t size)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/arena-XXXXXX", folder);
	fd = mkstemp(name);
	CHECK(fd >= 0);
	unlink(name);
	CHECK(!ftruncate(fd, size));
	return fd;
}

/* A mount of its own for this child, over /tmp so that no folder is left behind; skips where that
 * is not allowed. */
static const char *mount_own(const char *type, const char *options)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		LACKS("root");
	CHECK(!mount("none", "/tmp", type, 0, options));
	return "/tmp";
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* ---- the cases: with populate, without it, with a lying one
 * ---------------------------------------------------------- */

static void file_ends(void)
{
	int fd = temp_file("/dev/shm", 5 * MiB + 4096);

	check_stopped(make((struct mc_arena_attr){
			      .backing = MC_ARENA_FILE, .fd = fd, .size = 16 * MiB, .threads = 2}),
		      ENXIO, MC_STOP_END, 5 * MiB + 4096, 5 * MiB + 4096);
	close(fd);
}

static void file_with_holes(void)
{
	int fd = temp_file("/tmp", 8 * MiB);
	struct mc_arena *a;

	CHECK(pwrite(fd, "x", 1, 4 * MiB + 5) == 1);
	a = make(
		(struct mc_arena_attr){.backing = MC_ARENA_FILE, .fd = fd, .flags = MC_ARENA_READ});
	CHECK(!mc_arena_wait(a, 0, -1));
	CHECK(((char *)mc_arena_base(a))[4 * MiB + 5] == 'x' && ((char *)mc_arena_base(a))[0] == 0);
	mc_arena_destroy(a);
	close(fd);
}

static void tmpfs_full(void)
{
	int fd = temp_file(mount_own("tmpfs", "size=8m"), 32 * MiB);

	check_stopped(
		make((struct mc_arena_attr){.backing = MC_ARENA_FILE, .fd = fd, .threads = 2}),
		ENOSPC, MC_STOP_SPACE, 8 * MiB - 65536, 8 * MiB);
	close(fd);
}

static void data_kept(void)
{
	int fd = temp_file("/dev/shm", 4 * MiB);
	struct mc_arena *a;

	CHECK(pwrite(fd, "\x80keep", 5, MiB) == 5);
	a = make((struct mc_arena_attr){.backing = MC_ARENA_FILE, .fd = fd});
	CHECK(!mc_arena_wait(a, 0, -1));
	CHECK(!memcmp((char *)mc_arena_base(a) + MiB, "\x80keep", 5));
	mc_arena_destroy(a);
	a = make((struct mc_arena_attr){.size = 24 * MiB, .backing = MC_ARENA_THP, .threads = 2});
	CHECK(!mc_arena_wait(a, 0, -1));
	for (uint64_t i = 0; i < mc_arena_size(a); i += 64)
		CHECK(((char *)mc_arena_base(a))[i] == 0);
	mc_arena_destroy(a);
	close(fd);
}

static void (*const per_method[])(void) = {file_ends, file_with_holes, tmpfs_full, data_kept};
static unsigned int which;

static void as_is(void)
{
	per_method[which]();
}

static void old_kernel(void)
{
	no_populate(EINVAL);
	per_method[which]();
}

static void lying_kernel(void)
{
	no_populate(0);
	per_method[which]();
}

static void each_method(void **state)
{
	(void)state;
	for (which = 0; which < sizeof(per_method) / sizeof(*per_method); which++) {
		in_child(as_is);
		in_child(old_kernel);
		in_child(lying_kernel);
	}
}

/* ---- hugetlb --------------------------------------------------------------------------------- */

static const char pool[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
static const char free_pages[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

static long read_pool(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? strtol(text, NULL, 10) : -1;
}

static void hugetlb_short(void)
{
	long n = read_pool(free_pages);
	struct mc_arena *a;
	int status;
	pid_t pid;

	if (n <= 0)
		LACKS("hugepages");
	a = make((struct mc_arena_attr){.backing = MC_ARENA_HUGETLB,
					.page_size = 2 * MiB,
					.size = (uint64_t)(n + 5) * 2 * MiB,
					.chunk = 2 * MiB});
	/* Others may take pages of the pool meanwhile, so the exact count is not ours to tell. */
	pid = fork();
	if (!pid)
		leave(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	check_stopped(a, ENOMEM, MC_STOP_HUGETLB, 2 * MiB, (uint64_t)n * 2 * MiB);
}

static void hugetlb_short_old_kernel(void)
{
	no_populate(EINVAL);
	hugetlb_short();
}

/* Four pages more while the tests run, under a lock that all tests of this tree take: the file
 * itself. */
static int pool_fd = -1;
static long pool_before = -1;

static int more_pool(void **state)
{
	char more[32];

	(void)state;
	pool_fd = open(pool, O_RDWR | O_CLOEXEC);
	if (pool_fd < 0)
		return 0; /* the test finds none, and skips */
	if (flock(pool_fd, LOCK_EX))
		return -1;
	pool_before = read_pool(pool);
	snprintf(more, sizeof(more), "%ld", pool_before + 4);
	return pwrite(pool_fd, more, strlen(more), 0) > 0 ? 0 : -1;
}

static int less_pool(void **state)
{
	char old[32];
	bool ok = true;

	(void)state;
	if (pool_fd < 0)
		return 0;
	snprintf(old, sizeof(old), "%ld", pool_before);
	ok = pool_before < 0 || pwrite(pool_fd, old, strlen(old), 0) > 0;
	close(pool_fd);
	pool_fd = -1;
	return ok ? 0 : -1;
}

static void hugetlb(void **state)
{
	(void)state;
	in_child(hugetlb_short);
	in_child(hugetlb_short_old_kernel);
}

static void no_such_huge_page(void **state)
{
	struct mc_arena_attr at = {
		.backing = MC_ARENA_HUGETLB, .page_size = 64 * MiB, .size = 64 * MiB};
	struct mc_arena *a;
	struct mc_error e;

	(void)state;
	assert_int_equal(mc_arena_create(&at, &a, &e), -ENODEV);
	at.backing = MC_ARENA_MEMFD;
	assert_int_equal(mc_arena_create(&at, &a, &e), -ENODEV);
	assert_non_null(strstr(e.text, "hugepages"));
}

/* ---- out of memory, threads, limits of the process
 * --------------------------------------------------------------------- */

static bool populate_known(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && !madvise(p, 4096, 23 /* MADV_POPULATE_WRITE */);
}

static void no_memory(void)
{
	struct mc_arena *a = make((struct mc_arena_attr){
		.size = 16 * MiB, .chunk = MiB, .flags = MC_ARENA_NO_WORKERS});
	uintptr_t from = (uintptr_t)mc_arena_base(a) + 5 * MiB + 3 * 4096;

	no_memory_from(from);
	check_stopped(a, ENOMEM, MC_STOP_MEMORY, 5 * MiB + 3 * 4096, 5 * MiB + 3 * 4096);
}

static void without_threads(void)
{
	struct mc_arena *a;

	no_threads();
	a = make((struct mc_arena_attr){.size = 32 * MiB, .threads = 4});
	CHECK(mc_arena_ready(a) > 0 && mc_arena_ready(a) < 32 * MiB);
	CHECK(mc_arena_alloc(a, 0, MC_ANY_NODE));
	CHECK(!mc_arena_wait(a, 0, -1));
	CHECK(mc_arena_ready(a) == 32 * MiB);
	mc_arena_destroy(a);
}

static __attribute__((unused)) void address_space(void) /* sanitizers leave it out */
{
	struct mc_arena_attr at = {.size = 1024 * MiB};
	struct rlimit rl = {512 * MiB, 512 * MiB};
	struct mc_arena *a;
	struct mc_error e;

	CHECK(!setrlimit(RLIMIT_AS, &rl));
	CHECK(mc_arena_create(&at, &a, &e) == -ENOMEM);
	CHECK(strstr(e.text, "RLIMIT_AS"));
	at.size = 64 * MiB;
	CHECK(!mc_arena_create(&at, &a, &e));
	CHECK(!mc_arena_wait(a, 0, -1));
	mc_arena_destroy(a);
}

static void file_size(void)
{
	struct mc_arena_attr at = {.backing = MC_ARENA_MEMFD, .size = 64 * MiB};
	struct rlimit rl = {MiB, MiB};
	struct mc_arena *a;
	struct mc_error e;

	CHECK(!setrlimit(RLIMIT_FSIZE, &rl));
	CHECK(mc_arena_create(&at, &a, &e) == -EFBIG); /* and no SIGXFSZ */
	CHECK(strstr(e.text, "RLIMIT_FSIZE"));
}

static __attribute__((unused)) void locked_memory(void)
{
	struct mc_arena_attr at = {.size = 64 * MiB};
	struct rlimit rl = {8 * MiB, 8 * MiB};
	struct mc_arena *a;
	struct mc_error e;

	/* First: before Linux 5.16 the hard limit is less. */
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &rl));
	if (geteuid() == 0)
		CHECK(!setgid(65534) && !setuid(65534));
	CHECK(!mlockall(MCL_FUTURE));
	CHECK(mc_arena_create(&at, &a, &e) == -EAGAIN);
	CHECK(strstr(e.text, "RLIMIT_MEMLOCK"));
}

static void process_limits(void **state)
{
	(void)state;
	if (populate_known()) /* what the filter makes fail */
		in_child(no_memory);
	in_child(without_threads);
#ifndef SANITIZED /* their shadow is larger than such limits */
	in_child(address_space);
	in_child(locked_memory);
#endif
	in_child(file_size);
}

/* ---- memory cgroups -------------------------------------------------------------------------- */

/* Where this process may make memory cgroups, and whether v2. */
static bool find_cgroup(char *folder, size_t size, bool *v2)
{
	static const char *const places[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup",
					     "/sys/fs/cgroup/unified"};

	for (unsigned int i = 0; i < 3; i++) {
		char probe[512];
		bool ok;

		snprintf(folder, size, "%s/mc-arena-%d", places[i], getpid());
		if (mkdir(folder, 0755))
			continue;
		*v2 = i != 0;
		snprintf(probe, sizeof(probe), "%s/%s", folder,
			 *v2 ? "memory.max" : "memory.limit_in_bytes");
		ok = !access(probe, W_OK);
		if (ok)
			return true;
		rmdir(folder);
	}
	return false;
}

/* Run inside: `deep` puts the limit on the parent of the group that holds the process. */
static void limited(const char *folder, bool v2, bool deep)
{
	char inner[600], file[700], pid[32];

	snprintf(inner, sizeof(inner), deep ? "%s/inner" : "%s", folder);
	if (deep) {
		if (v2) {
			snprintf(file, sizeof(file), "%s/cgroup.subtree_control", folder);
			write_text(file, "+memory");
		}
		CHECK(!mkdir(inner, 0755));
	}
	snprintf(file, sizeof(file), "%s/%s", folder, v2 ? "memory.max" : "memory.limit_in_bytes");
	write_text(file, "134217728");
	snprintf(file, sizeof(file), "%s/cgroup.procs", inner);
	snprintf(pid, sizeof(pid), "%d", getpid());
	write_text(file, pid);
	check_stopped(make((struct mc_arena_attr){.size = 512 * MiB, .backing = MC_ARENA_ANON}),
		      ENOMEM, MC_STOP_LIMIT, 32 * MiB, 128 * MiB);
	check_stopped(make((struct mc_arena_attr){
			      .size = 512 * MiB, .backing = MC_ARENA_THP, .threads = 3}),
		      ENOMEM, MC_STOP_LIMIT, 16 * MiB, 128 * MiB);
	check_stopped(make((struct mc_arena_attr){.size = 512 * MiB, .backing = MC_ARENA_MEMFD}),
		      ENOMEM, MC_STOP_LIMIT, 32 * MiB, 128 * MiB);
}

static __attribute__((unused)) void cgroup_limit(void **state)
{
	for (int deep = 0; deep < 2; deep++) {
		char folder[400], inner[500];
		bool v2 = false;
		int status;
		pid_t pid;

		(void)state;
		if (!find_cgroup(folder, sizeof(folder), &v2)) {
			if (!test_skip_allowed("cgroup-memory"))
				fail_msg("MUST_WORK=1: needs cgroup-memory");
			skip();
		}
		pid = fork();
		if (!pid) {
			alarm(test_seconds(LIMIT_S));
			limited(folder, v2, deep);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		snprintf(inner, sizeof(inner), "%s/inner", folder);
		rmdir(inner);
		rmdir(folder);
		assert_int_equal(status, 0); /* not killed, nothing failed */
	}
}

/* ---- poison ---------------------------------------------------------------------------------- */

struct uffd_poison { /* Linux 6.6 */
	uint64_t start, len, mode;
	int64_t updated;
};

static void poison(char *page, size_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UINT64_C(1) << 14};
	struct uffdio_register reg = {.range = {(uintptr_t)page, bytes},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffd_poison p = {.start = (uintptr_t)page, .len = bytes};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		LACKS("uffd-poison");
	CHECK(!ioctl(fd, UFFDIO_REGISTER, &reg));
	if (ioctl(fd, _IOWR(0xAA, 0x08, struct uffd_poison), &p))
		LACKS("uffd-poison");
	close(fd); /* the poison stays */
}

static void poisoned_pages(void)
{
	struct mc_arena *a = make((struct mc_arena_attr){
		.size = 8 * MiB, .chunk = MiB, .flags = MC_ARENA_NO_WORKERS});
	char *base = mc_arena_base(a), *p;
	struct mc_arena_stats s;
	uint64_t got = 0;

	poison(base + 2 * MiB, 4096);                /* the first page of a chunk */
	poison(base + 3 * MiB + 9 * 4096, 2 * 4096); /* two in the middle */
	poison(base + 8 * MiB - 4096, 4096);         /* the very last */
	CHECK(!mc_arena_wait(a, 0, -1));
	CHECK(mc_arena_ready(a) == 8 * MiB - 4 * 4096);
	CHECK(!mc_arena_part_stats(a, 0, &s));
	CHECK(s.bad_pages == 4);
	CHECK(mc_arena_page(a, base + 2 * MiB)->state == MC_PAGE_BAD);
	CHECK(mc_arena_free(a, base + 2 * MiB) == -EINVAL);
	while ((p = mc_arena_alloc(a, 0, MC_ANY_NODE))) {
		*p = 1; /* SIGBUS if it were a poisoned one */
		got += 4096;
	}
	CHECK(got == mc_arena_ready(a));
	mc_arena_destroy(a);
}

static void poisoned(void **state)
{
	(void)state;
	in_child(poisoned_pages);
}

/* ---- huge pages that come too slowly
 * -------------------------------------------------------------------------------------- */

static void slow_huge_pages(void **state)
{
	struct mc_arena *a = make((struct mc_arena_attr){.backing = MC_ARENA_THP,
							 .size = 32 * MiB,
							 .chunk = 2 * MiB,
							 .threads = 1,
							 .thp_min_rate = UINT64_MAX});
	struct mc_arena_report r;

	(void)state;
	assert_int_equal(mc_arena_wait(a, 0, -1), 0);
	mc_arena_part_report(a, 0, &r);
	assert_true(r.gave_up_thp);
	assert_true(r.slow_chunks >= 3);
	assert_int_equal(r.ready, 32 * MiB);
	mc_arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_method),
		cmocka_unit_test_setup_teardown(hugetlb, more_pool, less_pool),

		cmocka_unit_test(no_such_huge_page), cmocka_unit_test(process_limits),
#ifndef SANITIZED /* the shadow counts against the group as well */
		cmocka_unit_test(cgroup_limit),
#endif
		cmocka_unit_test(poisoned),
		cmocka_unit_test(slow_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
