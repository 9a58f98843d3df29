#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many processes, many threads, storms of signals, and the death of each part at random moments: what was asked is done,
and nothing is left: no process, mount or file. MANYCORE_STRESS=full is the nightly length."""
import os, random, shlex, signal, subprocess, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import mctest

FULL = os.environ.get("MANYCORE_STRESS") == "full"
PROCESSES = 10000 if FULL else 100 if mctest.SANITIZER else 1000
THREADS = 1000
ROUNDS = 200 if FULL else 15
MACHINE = "--smp 512,sockets=2,cores=128,threads=2 --nodes 8 --mem 1T"

THREADS_C = r"""
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_barrier_t all;
static int wrong;
static void *body(void *arg)
{
	long i = (long)arg;
	cpu_set_t *set = CPU_ALLOC(512);
	CPU_ZERO_S(64, set);
	CPU_SET_S(i % 512, 64, set);
	if (syscall(SYS_sched_setaffinity, 0, 64, set)) __sync_fetch_and_add(&wrong, 1);
	pthread_barrier_wait(&all);
	for (int k = 0; k < 20; k++) {
		unsigned cpu = 9999;
		CPU_ZERO_S(64, set);
		if (syscall(SYS_sched_getaffinity, 0, 64, set) != 64 || !CPU_ISSET_S(i % 512, 64, set) ||
		    CPU_COUNT_S(64, set) != 1 || syscall(SYS_getcpu, &cpu, NULL, NULL) || cpu != i % 512)
			__sync_fetch_and_add(&wrong, 1);
	}
	CPU_FREE(set);
	return NULL;
}
int main(void)
{
	static pthread_t t[THREADS];
	pthread_barrier_init(&all, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, body, (void *)i)) return 2;
	for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
	printf("wrong %d\n", wrong);
	return wrong != 0;
}
"""

STORM_C = r"""
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <errno.h>
#define AGAIN(call) ({ long r_; do r_ = (call); while (r_ < 0 && errno == EINTR); r_; })
static volatile long signals;
static void on(int s) { (void)s; signals++; }
int main(void)
{
	/* A signal each 500 us without SA_RESTART, from a timer: calls must go on and be right. One that comes before
	 * the supervisor has taken the call ends it with EINTR: the kernel's doing, told in docs/limits.md. */
	struct sigaction a; struct itimerval it = { { 0, 500 }, { 0, 500 } };
	unsigned long mask[8]; long wrong = 0, calls = 0; time_t end = time(NULL) + 3;
	/* Until there were enough of both, however busy the machine is. */
	memset(&a, 0, sizeof(a)); a.sa_handler = on; sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	while (calls < 300 || signals < 100 || (time(NULL) < end && calls < 20000)) {
		unsigned cpu = 9999;
		memset(mask, 0, sizeof(mask)); mask[calls % 8] = 1ul << calls % 64;
		if (AGAIN(syscall(SYS_sched_setaffinity, 0, 64, mask))) wrong++;
		memset(mask, 0, sizeof(mask));
		if (AGAIN(syscall(SYS_sched_getaffinity, 0, 64, mask)) != 64 || mask[calls % 8] != 1ul << calls % 64) wrong++;
		if (AGAIN(syscall(SYS_getcpu, &cpu, NULL, NULL)) || cpu != calls % 8 * 64 + calls % 64) wrong++;
		calls++;
	}
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}
"""


def marked(marker):
    """Processes that have the marker in their environment."""
    found = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/environ", "rb") as f:
                if marker.encode() in f.read():
                    with open(f"/proc/{p}/stat") as s:
                        if s.read().rsplit(")", 1)[1].split()[0] != "Z":
                            with open(f"/proc/{p}/cmdline", "rb") as c:
                                found[int(p)] = c.read().replace(b"\0", b" ").decode(errors="replace")[:80]
        except OSError:
            pass
    return found


def mounts():
    """Mounts of ours outside of the emulated machines: there must never be one."""
    with open("/proc/self/mounts") as f:
        return [line for line in f if line.startswith("manycore ")]


class Common:
    def setUp(self):
        super().setUp()
        self.uid = mctest.NOBODY if os.getuid() == 0 else None
        if self.uid is not None:
            os.chown(self.dir, self.uid, self.uid)
        self.marker = f"MANYCORE_TEST_MARK={os.getpid()}.{random.getrandbits(64)}"
        self.runs = []

    def start(self, *command, **more):
        cmd = [mctest.MANYCORE, "run", "--view=" + self.view] + shlex.split(MACHINE) + ["--"] + list(command)
        if self.uid is not None:
            cmd = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups"] + cmd
        key, value = self.marker.split("=")
        p = subprocess.Popen(cmd, cwd=self.dir, env=dict(os.environ, **{key: value}), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more)
        self.runs.append(p.pid)
        return p

    def run_inside(self, *command, limit=300):
        p = self.start(*command)
        try:
            out, err = p.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            out, err = p.communicate()
            self.fail(f"no end: {out[-1000:]} {err[-1000:]}")
        self.assertEqual(p.returncode, 0, out[-2000:] + err[-2000:])
        self.nothing_left()
        return out

    def nothing_left(self):
        end = time.monotonic() + mctest.LIMIT
        while (marked(self.marker) or mctest.left_by(*self.runs)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(marked(self.marker), {}, "processes are left")
        self.assertEqual(mctest.left_by(*self.runs), set(), "files are left")
        self.assertEqual(mounts(), [], "mounts are left")
        self.runs = []

    def compile(self, source):
        mctest.need("gcc")
        with open(os.path.join(self.dir, "p.c"), "w") as f:
            f.write(source)
        self.ok(mctest.execute(["gcc", "-D_GNU_SOURCE", "-O1", "-w", "-pthread", "p.c", "-o", "p"], cwd=self.dir))

    def test_short_processes(self):
        out = self.run_inside("sh", "-c", f"i=0; while [ $i -lt {PROCESSES} ]; do /bin/true || exit 9; i=$((i+1)); done; nproc",
                              limit=600)
        self.assertEqual(out, "512\n")

    def test_parallel_processes(self):
        out = self.run_inside("sh", "-c", f"seq {PROCESSES // 2} | xargs -P 16 -n 1 sh -c 'nproc' sh | sort | uniq -c", limit=600)
        self.assertEqual(out.split(), [str(PROCESSES // 2), "512"])

    def test_threads(self):
        self.compile(f"#define THREADS {THREADS}\n" + THREADS_C)
        self.assertEqual(self.run_inside("./p"), "wrong 0\n")

    def test_signal_storm(self):
        self.compile(STORM_C)
        self.assertEqual(self.run_inside("./p"), "wrong 0\n")

    def test_deep_tree(self):
        out = self.run_inside("python3", "-c", """
import os
depth = 0
while depth < 150:
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    depth += 1
print(len(os.sched_getaffinity(0)), depth, flush=True)
""")
        self.assertEqual(out, "512 150\n")

    def test_daemon(self):
        """A daemon that leaves its session stays on the emulated machine; the run ends when the command does or when the
        daemon has ended, and nothing hangs."""
        self.run_inside("sh", "-c", "setsid sh -c 'sleep 1; nproc >daemon' >/dev/null 2>&1 & until [ -s daemon ]; do sleep 0.1; done; cat daemon")

    def victims(self, p):
        """Every process of the run, by role as far as it can be told from outside: depth in the tree."""
        tree = {}
        for pid in marked(self.marker):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    tree[pid] = int(f.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
        return sorted(tree)

    def test_kill_each_part(self):
        """One random process of the run is killed at a random moment; all others are gone soon after, or, when it was the
        command's own child, the run goes on as a shell would."""
        work = "while :; do nproc >/dev/null; taskset -c 3 true; sleep 0.01; done"
        rng = random.Random(4711)
        for i in range(ROUNDS):
            p = self.start("sh", "-c", f"({work}) & ({work}) & {work}")
            try:
                time.sleep(rng.uniform(0, 0.6))
                victims = self.victims(p)
                if victims:
                    try:
                        os.kill(rng.choice(victims), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                time.sleep(0.2)
                # The user then gives up on what is left of it, by killing what he started.
                p.kill()
                p.communicate(timeout=mctest.LIMIT)
            finally:
                if p.poll() is None:
                    os.killpg(p.pid, 9)
                    p.communicate()
            with self.subTest(round=i):
                self.nothing_left()

    def test_kill_supervisor_ends_callers(self):
        """Only the parts that are not the command: each is killed in turn, the rest must not hang."""
        for i in range(max(3, ROUNDS // 10)):
            p = self.start("sh", "-c", "while :; do nproc >/dev/null; done")
            end = time.monotonic() + mctest.LIMIT
            ours = []
            while time.monotonic() < end:
                now = marked(self.marker)
                ours = [pid for pid, cmd in now.items() if "manycore run" in cmd and pid != p.pid]
                if ours and len(now) > len(ours) + 1:
                    break
                time.sleep(0.02)
            self.assertTrue(ours, "no supervisor was seen")
            os.kill(ours[i % len(ours)], signal.SIGKILL)
            try:
                p.communicate(timeout=mctest.LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, 9)
                p.communicate()
                self.fail("the waiter hangs after its supervisor was killed")
            self.assertNotEqual(p.returncode, 0)
            self.nothing_left()


class Namespace(Common, mctest.TestCase):
    view = "namespace"


class Calls(Common, mctest.TestCase):
    view = "calls"


if __name__ == "__main__":
    mctest.main()
