#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a hostile or careless user does: paths, flags and pointers at which the host fails must fail alike inside; closed
standard streams, few descriptors and a signal at the start leave no hang and nothing behind."""
import ctypes, difflib, os, signal, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import mctest

# Each line: the call and its errno, 0 for success; the same on the host and inside.
CALLS = r"""
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
CPU, FD = "/sys/devices/system/cpu", -100
def told(name, rc):
    print(name, errno.errorcode[ctypes.get_errno()] if rc < 0 else 0)
    return rc
def opened(path, flags, dirfd=FD):
    try:
        fd = os.open(path, flags, 0o600, dir_fd=None if dirfd == FD else dirfd)
        os.close(fd); print("open", path, flags, 0)
    except OSError as e:
        print("open", path, flags, errno.errorcode[e.errno])
STATUS = "/proc/self/status"
for path in (STATUS, STATUS + "/", STATUS + "/x", STATUS + "/.", "/proc/meminfo/", "/proc/meminfo/../self/status",
             "/nonexistent/../proc/self/status", "/etc/passwd/../../proc/self/status", CPU + "/online", CPU + "/online/",
             CPU + "/online/..", CPU + "/online/../online", CPU + "/nope/../online", CPU + "/cpu0/../online",
             CPU + "/cpu0/subsystem/../../bus/cpu", CPU + "/cpu0/subsystem/../../online", CPU, CPU + "/."):
    opened(path, os.O_RDONLY)
    opened(path, os.O_PATH)
    if not path.endswith(("/", "/.", "/..")):
        opened(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL)
for path in (CPU, CPU + "/online", CPU + "/new"):
    opened(path, os.O_RDWR)
    opened(path, os.O_WRONLY | os.O_CREAT)
opened("../proc/self/status", os.O_RDONLY, os.open("/etc/passwd", os.O_RDONLY))
opened("../proc/self/status", os.O_RDONLY, os.open("/sys", os.O_PATH))
opened("status", os.O_RDONLY, os.open("/proc/self", os.O_PATH))
for resolve in (0, 1, 2, 4, 5, 6, 8, 16, 24, 64):
    how = struct.pack("QQQ", 0, 0, resolve)
    for path in (STATUS, CPU + "/online", CPU + "/cpu0/subsystem/drivers"):
        told(f"openat2 {resolve} {path}", libc.syscall(437, FD, path.encode(), how, 24))
for how, size in ((struct.pack("QQQ", 1 << 40, 0, 0), 24), (struct.pack("QQQ", 0, 0o777, 0), 24),
                  (struct.pack("QQQ", 0, 0, 0), 8), (bytes(4096), 4096), (bytes(100) + b"x" + bytes(99), 200),
                  (bytes(5000), 5000)):
    told(f"openat2 {size} {how[:24]}", libc.syscall(437, FD, STATUS.encode(), how, size))
buf = ctypes.create_string_buffer(8192)
for path in ("online", "online/", "cpu0/subsystem/", "nope", "online/x"):
    path = (CPU + "/" + path).encode()
    if os.uname().machine == "x86_64":
        told(f"readlink {path}", libc.syscall(89, path, buf, 10))
        told(f"newfstatat {path}", libc.syscall(262, FD, path, buf, 0))
        told(f"newfstatat bad {path}", libc.syscall(262, FD, path, buf, 0xf0000))
        told(f"access {path}", libc.syscall(21, path, 0))
        told(f"faccessat2 bad {path}", libc.syscall(439, FD, path, 0, 0xffff))
        told(f"getxattr bad {path}", libc.syscall(191, (CPU + "/online").encode(), None, buf, 10))
"""


# The same of what would make, remove or alter files; on the host none of it changes anything either.
CHANGES = r"""
import errno, os, sys
CPU = "/sys/devices/system/cpu"
def tell(what, call, *args, **more):
    try: print(what, call(*args, **more))
    except OSError as e: print(what, errno.errorcode[e.errno])
def opened(path, flags): os.close(os.open(path, flags))
outside = sys.argv[1] + "/outside"
open(outside, "w").close()
at = os.open(CPU, os.O_PATH)
for name in "online", "cpu0", "nope", "cpu0/subsystem":
    f = CPU + "/" + name
    tell("unlink " + f, os.unlink, f); tell("unlinkat " + f, os.unlink, name, dir_fd=at)
    tell("rmdir " + f, os.rmdir, f); tell("rmdir at " + f, os.rmdir, name, dir_fd=at)
    tell("mkdir " + f, os.mkdir, f); tell("mkdirat " + f, os.mkdir, name, dir_fd=at)
    tell("mknod " + f, os.mknod, f); tell("mkfifo " + f, os.mkfifo, f); tell("symlink " + f, os.symlink, "x", f)
    for new in f + "x", CPU + "/possible", outside + "x":
        tell(f"rename {f} {new[-4:]}", os.rename, f, new); tell(f"link {f} {new[-4:]}", os.link, f, new)
    tell("link " + f, os.link, outside, f); tell("rename to " + f, os.rename, outside, f)
    tell("truncate " + f, os.truncate, f, 0); tell("utime " + f, os.utime, f)
    tell("chmod " + f, lambda: os.chmod(f, os.stat(f).st_mode & 0o777)); tell("chown " + f, os.chown, f, 0, 0)
    tell("lchown " + f, os.chown, f, 0, 0, follow_symlinks=False)
    tell("setxattr " + f, os.setxattr, f, "user.x", b"y"); tell("removexattr " + f, os.removexattr, f, "user.x")
    tell("creat " + f, opened, f, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    tell("trunc " + f, opened, f, os.O_RDONLY | os.O_TRUNC)
    for end in "/", "/.":
        tell("open" + end + f, opened, f + end, os.O_RDONLY | os.O_CREAT)
for f in "/proc/meminfo", "/proc/self/status", "/proc/stat":
    tell("trunc " + f, opened, f, os.O_RDONLY | os.O_TRUNC); tell("open/ " + f, opened, f + "/", os.O_RDONLY | os.O_CREAT)
    tell("excl " + f, opened, f, os.O_RDONLY | os.O_CREAT | os.O_EXCL); tell("unlink " + f, os.unlink, f)
print(open(CPU + "/online").read(), os.path.exists(CPU + "/cpu0"), os.path.exists(CPU + "/nope"))
"""


# Callers whose paths lie in memory that somebody is still to fill; then another process, and all of them killed.
BLOCKED = r"""
import ctypes, fcntl, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
def block(w):
    uffd = libc.syscall(323 if os.uname().machine == "x86_64" else 282, os.O_CLOEXEC)
    if uffd < 0: os._exit(3)
    fcntl.ioctl(uffd, 0xc018aa3f, bytearray(struct.pack("QQQ", 0xaa, 0, 0)))
    at = libc.mmap(None, 4096, 3, 0x22, -1, 0)
    fcntl.ioctl(uffd, 0xc020aa00, bytearray(struct.pack("QQQQ", at, 4096, 1, 0)))
    os.write(w, b"x")
    libc.openat(-100, ctypes.c_void_p(at), 0)
r, w = os.pipe()
pids = []
for i in range(int(sys.argv[1])):
    pids.append(os.fork())
    if not pids[-1]: block(w); os._exit(4)
    if not os.read(r, 1): sys.exit(5)
time.sleep(1)
pid = os.fork()
if not pid:
    os.sched_setaffinity(0, {1})
    os._exit(os.sched_getaffinity(0) != {1})
print(os.waitpid(pid, 0)[1])
for pid in pids: os.kill(pid, 9)
print({os.waitpid(pid, 0)[1] for pid in pids})
"""

# A FIFO where shared memory lies is open while a policy changes: has anybody else opened it?
FIFO = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
path = f"/dev/shm/manycore-test-{os.getpid()}"
os.mkfifo(path)
try:
    fd = os.open(path, os.O_RDWR)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    if libc.inotify_add_watch(watch, path.encode(), 0x20) < 0: sys.exit(3)
    print(libc.syscall(238 if os.uname().machine == "x86_64" else 237, 1, ctypes.byref(ctypes.c_ulong(1)), 64))
    try: print(os.read(watch, 4096))
    except BlockingIOError: print("not opened")
finally:
    os.unlink(path)
"""

# Many processes at once: each pins itself, looks at itself and the machine, and so does a child of it that says nothing.
CROWD = r"""
import os, sys
start, told, end = [os.pipe() for i in range(3)]
def one(i):
    want = {i, i + 100, 199}
    for k in range(3):
        os.sched_setaffinity(0, want)
        status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().split("\n") if ":\t" in line)
        cpus = {int(x) for x in status["Cpus_allowed_list"].split(",")}
        possible = open("/sys/devices/system/cpu/possible").read()
        package = open(f"/sys/devices/system/cpu/cpu{(5 * i + k) % 200}/topology/physical_package_id").read()
        stat = open("/proc/stat").read()
        r, w = os.pipe()
        if not os.fork():
            os.write(w, b"y" if os.sched_getaffinity(0) == want else b"n")
            os._exit(0)
        child = os.read(r, 1)
        os.close(r); os.close(w); os.wait()
        if (os.sched_getaffinity(0), cpus, possible, stat.count("cpu"), child) != (want, want, "0-199\n", 201, b"y"):
            return f"{i}: {os.sched_getaffinity(0)} {cpus} {possible!r} {stat.count('cpu')} {child}"
for i in range(50):
    if not os.fork():
        os.read(start[0], 1)
        try: text = one(i) or "right"
        except Exception as e: text = f"{i}: {e!r}"
        os.write(told[1], text.encode().ljust(300))
        os.read(end[0], 1)
        os._exit(0)
os.write(start[1], b"x" * 50)
got = [os.read(told[0], 300).decode().rstrip() for i in range(50)]
os.write(end[1], b"x" * 50)
print(sorted(set(got)))
"""


class Common:
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o777)

    def go(self, *command, machine=("--smp", "3"), front=(), **more):
        return mctest.execute([*front, mctest.MANYCORE, "run", f"--view={self.view}", *machine, "--", *command],
                              uid=self.uid, **more)

    def test_paths(self):
        """The machine has what this host has of the folders asked for, so the answers are the same."""
        host = mctest.execute(["python3", "-c", CALLS], uid=self.uid)
        self.ok(host)
        inside = self.ok(self.go("python3", "-c", CALLS))
        self.assertEqual("", "\n".join(difflib.unified_diff(host.out.splitlines(), inside.out.splitlines(), n=0)))

    def test_tree_is_safe(self):
        """Opening to write or cut, root's too, leaves the machine's files as they are."""
        self.go("python3", "-c", "import os\nfor f in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC, os.O_TRUNC):\n"
                "  try: fd = os.open('/sys/devices/system/cpu/possible', f); os.write(fd, b'x')\n  except OSError: pass\n"
                "print(open('/sys/devices/system/cpu/possible').read())")
        r = self.go("sh", "-c", "python3 -c 'import os\nfor f in (os.O_WRONLY, os.O_TRUNC):\n try: os.open("
                    "\"/sys/devices/system/cpu/possible\", f)\n except OSError: pass'; cat /sys/devices/system/cpu/possible")
        self.assertEqual(self.ok(r).out, "0-2\n")

    def test_changes(self):
        """Nothing of the machine can be removed, made or altered. The errors are sysfs's; in the namespace view those of a
        sysfs that is mounted read-only."""
        program = ["python3", "-c", CHANGES, self.dir]
        if self.uid:
            program[0] = "/usr/bin/python3"
        host, inside = (self.ok(r).out.splitlines() for r in (
            mctest.execute(program, uid=self.uid), self.go(*program, machine=("--smp", str(os.cpu_count())))))
        if self.view == "namespace":    # without /dev/fuse
            inside = [h if i.endswith(" EROFS") else i for h, i in zip(host, inside)]
        # Where the host's own is mounted so, it tells nothing about the other errors.
        host = [i if h.endswith(" EROFS") else h for h, i in zip(host, inside)]
        self.assertEqual("", "\n".join(difflib.unified_diff(host, inside, n=0)))

    def test_folders_and_watches(self):
        """chdir and inotify go by what the machine has, not the host."""
        r = self.ok(self.go("sh", "-c", "cd /sys/devices/system/cpu/cpu0 && cat topology/core_id ../possible; cd ../cpu1 && "
                            "cat online; cd /sys/devices/system/cpu/online; cd /sys/devices/system/cpu/cpu3; pwd",
                            machine=("--smp", "3")))
        self.assertEqual(r.out, "0\n0-2\n1\n" + "/sys/devices/system/cpu/cpu1\n", r)
        r = self.ok(self.go("/usr/bin/python3", "-c", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
for name in "cpu2/online", "cpu99/online":
    print(libc.inotify_add_watch(fd, b"/sys/devices/system/cpu/" + name.encode(), 0x20), ctypes.get_errno())
open("/sys/devices/system/cpu/cpu2/online").close()
print(len(os.read(fd, 100)) >= 16)
for bad in 1, 99:
    print(libc.inotify_add_watch(bad, b"/sys/devices/system/cpu/online", 0x20), ctypes.get_errno())
"""))
        self.assertEqual(r.out, "1 0\n-1 2\nTrue\n-1 22\n-1 9\n", r)

    def test_more_processes_than_descriptors(self):
        """All of them are on the machine, though no descriptor can be held for each."""
        r = self.ok(self.go("/usr/bin/python3", "-c", """
import os
start, told, end = [os.pipe() for i in range(3)]
for i in range(150):
    if not os.fork():
        os.read(start[0], 1)
        os.write(told[1], b"y" if len(os.sched_getaffinity(0)) == 200 else b"n")
        os.read(end[0], 1)
        os._exit(0)
os.write(start[1], b"x" * 150)
got = b""
while len(got) < 150: got += os.read(told[0], 150)
print(got.count(b"y"), "Cpus_allowed_list:\t0-199" in open("/proc/self/status").read(), len(os.sched_getaffinity(0)))
os.write(end[1], b"x" * 150)
""", front=("prlimit", "--nofile=64:64"), machine=("--smp", "200")))
        self.assertEqual(r.out, "150 True 200\n", r)

    def test_no_wrong_answer_for_want_of_descriptors(self):
        for n in 20, 40, 64:
            with self.subTest(limit=n):
                r = self.ok(self.go("/usr/bin/python3", "-c", CROWD, machine=("--smp", "200", "--nodes", "2"),
                                    front=("prlimit", f"--nofile={n}:{n}")))
                self.assertEqual(r.out, "['right']\n", r)

    def test_tgid_used_again(self):
        """The end of a process without a descriptor is noticed: one of its number later is a new one."""
        if self.uid or not ROOT:
            return # only root may choose a process's number
        r = self.ok(mctest.execute(["unshare", "--pid", "--fork", "--mount-proc", "prlimit", "--nofile=64:64", mctest.MANYCORE,
                                    "run", f"--view={self.view}", "--smp", "200", "--", "python3", "-c", """
import os, time
def child(fn):
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        fn(w)
        os._exit(0)
    os.close(w)
    text = os.read(r, 100)
    os.close(r)
    return pid, text
def hold(w):
    os.sched_setaffinity(0, {1}); os.write(w, b"x"); time.sleep(1000)
held = [child(hold)[0] for i in range(100)]
def pin(w):
    os.sched_setaffinity(0, {7}); os.write(w, b"x"); os.kill(os.getpid(), 9)
first = child(pin)[0]
os.waitpid(first, 0)
time.sleep(3)
with open("/proc/sys/kernel/ns_last_pid", "w") as f: f.write(str(first - 1))
second, n = child(lambda w: os.write(w, str(len(os.sched_getaffinity(0))).encode()))
print(first == second, n)
for p in held: os.kill(p, 9)
"""]))
        self.assertEqual(r.out, "True b'200'\n", r)

    def test_limits_are_the_commands(self):
        """The caller's limits hold for the command and do not hit what answers its calls."""
        r = self.ok(self.go("sh", "-c", "ulimit -f; ulimit -v; ulimit -t; nproc; wc -l </proc/cpuinfo >/dev/null && cat "
                            "/sys/devices/system/cpu/cpu150/online", machine=("--smp", "200"),
                            front=("prlimit", "--fsize=0:8388608", "--as=400000000:", "--cpu=100:")))
        self.assertEqual(r.out.split(), ["0", "390625", "100", "200", "1"], r)

    def test_few_processes(self):
        """Where nothing more can be forked `run` says so."""
        if self.uid is None:
            return # root has no such limit
        for n in 1, 2, 3, 4, 5:
            r = mctest.execute(["prlimit", f"--nproc={n}", mctest.MANYCORE, "run", f"--view={self.view}", "--smp", "3", "true"],
                               uid=65533)
            self.assertEqual(r.status, 125, r)
            self.assertIn("ulimit -u", r.err)

    def test_closed_streams(self):
        for closed in ("<&-", "<&- >&-", "<&- 2>&-", "<&- >&- 2>&-", ">&- 2>&-"):
            out = os.path.join(self.dir, "out")
            open(out, "w").close()
            os.chmod(out, 0o666)
            inner = f"{{ nproc; for f in 0 2; do [ -e /proc/$$/fd/$f ] && echo $f; done; }} >{out}; exit 5"
            cmd = f"{mctest.MANYCORE} run --view={self.view} --smp 3 -- sh -c '{inner}' {closed}"
            r = mctest.execute(["sh", "-c", cmd], uid=self.uid)
            self.assertEqual(r.status, 5, (closed, r))
            with open(out) as f:
                self.assertEqual(f.read().split(), ["3"] + [x for x in "02" if x + ("<" if x == "0" else ">") + "&-"
                                                            not in closed.replace("<&-", "0<&-")])

    def test_ignored_and_blocked_signals(self):
        """What the caller ignores or blocks is so for the command, SIGCHLD too, and its end is seen all the same."""
        for what in "signal(17, signal.SIG_IGN)", "pthread_sigmask(0, range(1, 32))":
            front = ["/usr/bin/python3", "-c", f"import os, signal, sys\nsignal.{what}\nos.execvp(sys.argv[1], sys.argv[1:])"]
            show = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
            host = self.ok(mctest.execute([*front, *show], uid=self.uid))
            self.assertEqual(self.ok(self.go(*show, front=front)).out, host.out)
            self.assertEqual(self.go("sh", "-c", "exit 7", front=front).status, 7)

    def test_other_proc(self):
        """Without the /proc of its own pid namespace nothing could be answered: that is told, not the host shown."""
        new = ["unshare", "--pid", "--fork"] + (["--user"] if self.uid or not ROOT else [])
        if mctest.execute([*new, "true"], uid=self.uid).status:
            mctest.skip("userns", "no pid namespace can be made")
        r = self.go("nproc", front=new)
        self.assertEqual((r.status, r.out), (125, ""), r)
        self.assertIn("--mount-proc", r.err)

    def test_blocked_callers(self):
        """Callers whose memory keeps the supervisor waiting hold up nobody else, however many they are."""
        if self.uid or not ROOT:
            return # an ordinary user's userfaultfd does not stop the kernel
        if ctypes.CDLL(None).syscall(323 if os.uname().machine == "x86_64" else 282, os.O_CLOEXEC) < 0:
            mctest.skip("uffd-poison", "no userfaultfd")
        r = self.ok(self.go("/usr/bin/python3", "-c", BLOCKED, str(min(os.cpu_count(), 16) + 3), limit=60))
        self.assertEqual(r.out, "0\n{9}\n", r)

    def test_silent_file_system(self):
        """A program's FUSE server that answers the program only: its calls are answered all the same."""
        if self.uid or not ROOT:
            return # /dev/fuse
        script = os.path.join(HERE, "inside", "silent_fuse.py")
        for case, host in ("policy", "0 True\n"), ("cut", "0 -1 95\n"), ("watch", "-1 22\n"), ("root", None):
            with self.subTest(case=case):
                at = tempfile.mkdtemp(prefix="manycore-test-", dir="/dev/shm")
                self.addCleanup(os.rmdir, at)
                r = self.go("/usr/bin/python3", script, at, case, machine=("--smp", "8", "--nodes", "4"), limit=60)
                if r.status == 3:
                    mctest.skip("fuse", "can't be mounted")
                self.ok(r)
                self.assertIn(r.out, [host] if host else ["None\n", "ENOENT\n"], r)

    def test_memory_of_a_silent_file_system(self):
        """Callers whose path lies there hold up neither others nor the end of the command."""
        if self.uid or not ROOT:
            return # /dev/fuse
        script = os.path.join(HERE, "inside", "silent_fuse.py")
        for case in "memory", "left":
            with self.subTest(case=case):
                at = tempfile.mkdtemp(prefix="manycore-test-", dir="/dev/shm")
                self.addCleanup(os.rmdir, at)
                r = self.go("/usr/bin/python3", script, at, case, limit=90)
                if r.status == 3:
                    mctest.skip("fuse", "can't be mounted")
                self.ok(r)
                out = r.out
                if case == "left":
                    server, out = out.split(" ", 1)
                    os.kill(int(server), signal.SIGKILL)
                self.assertEqual(out, {"memory": "0 {4} 0\n", "left": "9 0\n"}[case], r)

    def test_fifo_is_not_opened(self):
        r = self.ok(self.go("/usr/bin/python3", "-c", FIFO, machine=("--smp", "8", "--nodes", "4")))
        self.assertEqual(r.out, "0\nnot opened\n", r)

    def test_few_descriptors(self):
        """It works or says that it can't; it never hangs, and the command gets the caller's limit."""
        for n in (5, 6, 7, 8, 9, 10, 11, 12, 32):
            r = mctest.execute(["prlimit", f"--nofile={n}:{n}", mctest.MANYCORE, "run", f"--view={self.view}", "--smp",
                                "3", "--", "sh", "-c", "ulimit -n; ulimit -Hn"], uid=self.uid)
            if r.status:
                self.assertEqual(r.status, 125, r)
            else:
                self.assertEqual(r.out.split(), [str(n)] * 2)
        self.assertEqual(r.status, 0)

    def test_nested(self):
        r = self.go(mctest.MANYCORE, "run", "--smp", "5", "--", "true")
        self.assertEqual(r.status, 125)
        self.assertIn("another listener", r.err)

    def test_signal_at_start(self):
        """However early SIGTERM comes, the caller is not held up and nothing is left."""
        user = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        for i in range(20):
            p = subprocess.Popen([mctest.MANYCORE, "run", f"--view={self.view}", "--smp", "512", "--nodes", "8", "--",
                                  "sleep", "120"], start_new_session=True, **user)
            time.sleep(i * 0.003)
            p.send_signal(signal.SIGTERM)
            try:
                self.assertEqual(p.wait(mctest.LIMIT), -signal.SIGTERM)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                self.fail(f"round {i}: still there")


ROOT = os.getuid() == 0
for view in ("namespace", "calls"):
    for uid in (None, mctest.NOBODY) if ROOT else (None,):
        name = f"{view.title()}{'User' if uid else ''}"
        globals()[name] = type(name, (Common, mctest.TestCase), {"view": view, "uid": uid})

if __name__ == "__main__":
    mctest.main()
