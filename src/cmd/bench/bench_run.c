// SPDX-License-Identifier: MIT
/*
 * bench_run.c - `manycore bench run`: what the emulated machine costs. Each case is work done by a
 * worker inside `manycore run` and the same work by a worker outside, in turn (bench_run.h);
 * start-N is the time to the first instruction of the command. The machine is that of design 1's
 * main job: 512 CPUs, 8 nodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/bench/bench.h"
#include "cmd/bench/bench_run.h"

enum { FILES = 20, MAX_ARGS = 24 };

static char self_path[4096];

int bench_worker_start(struct bench_worker *w, const char *const argv[])
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC) != 0) {
		close(in[0]);
		close(in[1]);
		return -EMFILE;
	}
	w->pid = fork();
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	w->to = in[1];
	w->from = out[0];
	return w->pid < 0 ? -EAGAIN : 0;
}

/* One line from the worker as a number; negative when there is none. */
static double read_number(int fd)
{
	char line[64];
	size_t n = 0;

	while (n < sizeof(line) - 1) {
		ssize_t got = read(fd, line + n, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || line[n] == '\n')
			break;
		n++;
	}
	line[n] = '\0';
	return n ? strtod(line, NULL) : -1;
}

double bench_worker_ask(struct bench_worker *w, const char *work, unsigned int count)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %u\n", work, count);

	if (write(w->to, line, (size_t)n) != n)
		return -1;
	return read_number(w->from);
}

bool bench_worker_stop(struct bench_worker *w)
{
	int status = -1;

	close(w->to);
	close(w->from);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct start {
	const char *machine[12]; /* ends with NULL; empty: outside */
	bool failed;
};

/* Milliseconds from before fork to the first line of the command's main(). */
static double start_sample(void *arg)
{
	struct start *s = arg;
	const char *argv[MAX_ARGS];
	struct bench_worker w;
	double stamp;
	uint64_t t;
	int n = 0;

	argv[n++] = self_path;
	if (s->machine[0]) {
		argv[n++] = "run";
		for (int i = 0; s->machine[i]; i++)
			argv[n++] = s->machine[i];
		argv[n++] = "--";
		argv[n++] = self_path;
	}
	argv[n++] = "bench";
	argv[n++] = "--run-stamp";
	argv[n] = NULL;
	t = bench_now_ns();
	if (bench_worker_start(&w, argv) != 0) {
		s->failed = true;
		return 1;
	}
	stamp = read_number(w.from);
	if (!bench_worker_stop(&w) || stamp < (double)t) {
		s->failed = true;
		return 1;
	}
	return (stamp - (double)t) / 1e6;
}

static struct start outside_start = {.machine = {NULL}};

static bool start_case(struct bench *b, const char *name, struct start *s, unsigned int rounds)
{
	struct bench_case c = {
		.name = name,
		.unit = "ms",
		.self = {.sample = start_sample, .arg = s},
		.nr_peers = 1,
		.peer = {{.name = "outside", .sample = start_sample, .arg = &outside_start}},
		.rounds = rounds,
	};

	if (!bench_wanted(b, name))
		return true;
	/* Once, unmeasured: it warms the page cache up and tells whether it works at all. */
	start_sample(s);
	if (s->failed) {
		bench_note(b, "%s: the machine can't be started; 'manycore doctor' tells why",
			   name);
		return false;
	}
	bench_run(b, &c);
	if (s->failed)
		bench_note(b, "%s: some starts failed: the figures are worthless", name);
	return true;
}

/* Kilobytes of a process by /proc/PID/smaps_rollup (what is shared counts by its part), and its
 * first child. */
static double memory_of(pid_t pid, pid_t *child)
{
	char path[80], line[256];
	double kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Pss:", 4))
			kb = strtod(line + 4, NULL);
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	*child = f && fgets(line, sizeof(line), f) ? (pid_t)strtol(line, NULL, 10) : 0;
	if (f)
		fclose(f);
	return kb;
}

/* Megabytes of waiter, guard and supervisor while a command runs on the largest machine. */
static double memory_sample(void *arg)
{
	const char *const argv[] = {self_path, "run", "--machine", "limit-8192x1024", "--",
				    self_path, "bench", "--run-worker", NULL};
	struct bench_worker w;
	double kb = 0;
	pid_t pid;

	(void)arg;
	if (bench_worker_start(&w, argv) != 0)
		return 0;
	/* Once it has answered, its start is over. */
	bench_worker_ask(&w, "affinity", 1);
	pid = w.pid;
	for (int i = 0; i < 3 && pid > 0; i++)
		kb += memory_of(pid, &pid);
	bench_worker_stop(&w);
	return kb / 1024;
}

static void starts(struct bench *b)
{
	struct start machines[] = {
		{.machine = {"--smp", "2"}},
		{.machine = {"--smp", "64,sockets=2,cores=16,threads=2", "--nodes", "2", "--mem",
			     "64G"}},
		{.machine = {"--smp", "512,sockets=2,cores=128,threads=2", "--nodes", "8", "--mem",
			     "1T"}},
		{.machine = {"--machine", "limit-8192x1024"}},
	};
	static const struct bench_case memory = {
		.name = "memory-8192",
		.unit = "MB",
		.self = {.sample = memory_sample},
		.rounds = 3,
	};
	static const char *const names[] = {"start-2", "start-64", "start-512", "start-8192"};

	for (unsigned int i = 0; i < 4; i++)
		if (!start_case(b, names[i], &machines[i], i == 3 ? 7 : 15))
			return;
	if (bench_wanted(b, memory.name))
		bench_run(b, &memory);
}

/* One side of a work case: a worker, what it is asked, and how its answer becomes the case's unit.
 */
struct side {
	struct bench_worker *worker;
	const char *work;
	unsigned int count;
	double unit_ns;
	bool failed;
};

static double side_sample(void *arg)
{
	struct side *s = arg;
	double ns = bench_worker_ask(s->worker, s->work, s->count);

	if (ns <= 0) {
		s->failed = true;
		return 1;
	}
	return ns / s->unit_ns;
}

struct work_case {
	const char *name, *work;
	unsigned int count, quick_count, rounds;
};

static const struct work_case work_cases[] = {
	{"true-x500", "true", 500, 10, 11},
	{"compile", "compile", FILES, 3, 9},
	{"python", "python", 5, 1, 11},
	{"cpu-bound", "cpu", 100, 5, 21},
	{"malloc-heavy", "malloc", 60000, 10000, 15},
	{"threads-heavy", "threads", 40, 2, 15},
	{"thread-create-join", "join", 300, 10, 15},
	{"mmap-storm", "storm", 600, 20, 15},
	{"getcpu-repeat", "getcpu", 200, 5, 21}, /* thousands of calls by libc */
};

static void work(struct bench *b, const struct work_case *w, struct bench_worker *inside,
		 struct bench_worker *outside)
{
	unsigned int count = bench_quick(b) ? w->quick_count : w->count;
	struct side in = {inside, w->work, count, 1e6, false},
		    out = {outside, w->work, count, 1e6, false};
	struct bench_case c = {
		.name = w->name,
		.unit = "ms",
		.self = {.sample = side_sample, .arg = &in},
		.nr_peers = 1,
		.peer = {{.name = "outside", .sample = side_sample, .arg = &out}},
		.rounds = w->rounds,
	};

	if (!bench_wanted(b, w->name))
		return;
	/* Once, unmeasured, outside: programs that are missing, and a warm page cache. */
	side_sample(&out);
	if (out.failed) {
		bench_note(b, "%s: the work fails outside too (a program is missing?): left out",
			   w->name);
		return;
	}
	side_sample(&in);
	if (!in.failed)
		bench_run(b, &c);
	if (in.failed || out.failed)
		bench_note(b, "%s: FAILED inside: figures of it are worthless", w->name);
}

/* ns a call: the same raw call, answered by the emulator, by the bare supervisor, and by the
 * kernel. */
static void answered(struct bench *b, struct bench_worker *inside, struct bench_worker *outside)
{
	unsigned int count = bench_quick(b) ? 100 : 2000;
	struct bench_worker notify;
	struct side in = {inside, "affinity", count, count, false};
	struct side bare = {&notify, "affinity", count, count, false};
	struct side out = {outside, "affinity", count, count, false};
	struct bench_case c = {
		.name = "answered-call",
		.unit = "ns",
		.self = {.sample = side_sample, .arg = &in},
		.nr_peers = 2,
		.peer = {{.name = "notify", .sample = side_sample, .arg = &bare},
			 {.name = "outside", .sample = side_sample, .arg = &out}},
		.rounds = 41,
	};

	if (!bench_wanted(b, c.name))
		return;
	if (bench_notify_start(&notify) != 0) {
		bench_note(b, "%s: the bare supervisor can't be started: left out", c.name);
		return;
	}
	side_sample(&bare);
	side_sample(&in);
	bench_run(b, &c);
	if (in.failed || bare.failed || out.failed)
		bench_note(b,
			   "%s: FAILED (inside %d, notify %d, outside %d): figures of it are "
			   "worthless",
			   c.name, in.failed, bare.failed, out.failed);
	bench_worker_stop(&notify);
}

/* Small programs with the headers that real ones include; each differs, so that no cache of the
 * compiler helps. */
static bool make_sources(void)
{
	for (unsigned int i = 0; i < FILES; i++) {
		char name[32];
		FILE *f;

		snprintf(name, sizeof(name), "c%u.c", i);
		f = fopen(name, "w");
		if (!f)
			return false;
		fprintf(f, "#include <errno.h>\n#include <pthread.h>\n#include <stdio.h>\n#include "
			   "<stdlib.h>\n"
			   "#include <string.h>\n#include <sys/stat.h>\n#include <unistd.h>\n");
		for (unsigned int k = 0; k < 12; k++)
			fprintf(f,
				"int f%u_%u(const char *s, int n) { int i, t = %u; for (i = 0; i < "
				"n; i++) "
				"t = t * 31 + s[i] %% (i + 3); if (t == %u) printf(\"%%s %%d\\n\", "
				"s, t); "
				"return t + (int)strlen(s); }\n",
				i, k, i * 100 + k, k);
		if (fclose(f) != 0)
			return false;
	}
	return true;
}

static void remove_sources(const char *folder)
{
	for (unsigned int i = 0; i < FILES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "c%u.c", i);
		unlink(name);
	}
	unlink("out.o");
	if (chdir("/") == 0)
		rmdir(folder);
}

static void works(struct bench *b)
{
	const char *const outside_argv[] = {self_path, "bench", "--run-worker", NULL};
	const char *const inside_argv[] = {
		self_path, "run",     "--smp", "512,sockets=2,cores=128,threads=2",
		"--nodes", "8",       "--mem", "1T",
		"--",      self_path, "bench", "--run-worker",
		NULL};
	struct bench_worker inside, outside;
	int rc = bench_worker_start(&outside, outside_argv);

	if (rc == 0) {
		rc = bench_worker_start(&inside, inside_argv);
		if (rc != 0)
			bench_worker_stop(&outside);
	}
	if (rc != 0) {
		bench_note(b, "workers can't be started: %s", strerror(-rc));
		return;
	}
	if (bench_worker_ask(&inside, "affinity", 1) < 0) {
		bench_note(b, "nothing can be run inside; 'manycore doctor' tells why");
	} else {
		answered(b, &inside, &outside);
		for (unsigned int i = 0; i < sizeof(work_cases) / sizeof(work_cases[0]); i++)
			work(b, &work_cases[i], &inside, &outside);
	}
	bench_worker_stop(&outside);
	bench_worker_stop(&inside);
}

void bench_run_main(struct bench *b)
{
	char folder[] = "/tmp/manycore-bench-XXXXXX", old[4096];
	ssize_t n = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);

	if (n <= 0 || !getcwd(old, sizeof(old)) || !mkdtemp(folder) || chdir(folder) != 0 ||
	    !make_sources()) {
		bench_note(b, "no work folder below /tmp: %s", strerror(errno));
		return;
	}
	self_path[n] = '\0';
	signal(SIGPIPE, SIG_IGN);
	starts(b);
	works(b);
	remove_sources(folder);
	if (chdir(old) != 0)
		bench_note(b, "back to %s: %s", old, strerror(errno));
}
