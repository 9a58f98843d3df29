#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`manycore run` by its own promises, in both views: calls and their errors (probe.c), files by every way of opening
them, hot-plug, exit status, descriptors, options. Clients, recordings, consistency and stress have tests of their own."""
import errno, fcntl, os, random, re, shutil, signal, subprocess, sys, unittest, time
import mctest

HERE = os.path.join(mctest.BUILD, "tests", "emu")
# Not sys.executable: another user must be able to run it.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
MACHINE = ["--smp", "160,sockets=2,cores=40,threads=2", "--nodes", "2", "--mem", "64G"]

FILES = r'''
import ctypes, os, sys, threading, time
def text(path, **more):
    with open(path, **more) as f:
        return f.read()
def field(s, name):
    return [l.split(None, 1)[1].strip() for l in s.splitlines() if l.startswith(name + ":")][0]
online = "/sys/devices/system/cpu/online"
assert text(online) == "0-159\n", text(online)
assert text("/sys/devices/system/../system//cpu/./online") == "0-159\n"
node = os.open("/sys/devices/system/node", os.O_RDONLY | os.O_DIRECTORY)
assert sorted(n for n in os.listdir(node) if n.startswith("node")) == ["node0", "node1"]
def at(path, dir):
    return text(path, opener=lambda p, f: os.open(p, f, dir_fd=dir))
assert at("node1/cpulist", node) == "80-159\n"
assert at("../cpu/present", node) == "0-159\n"
one = os.open("node1", os.O_RDONLY, dir_fd=node)
assert at("distance", one) == "20 10\n"
assert os.stat("node1/cpumap", dir_fd=node).st_mode & 0o444 == 0o444
assert os.path.isdir("/sys/devices/system/cpu/cpu159/topology")
assert not os.path.exists("/sys/devices/system/cpu/cpu160")
assert os.path.realpath("/sys/bus/cpu/devices/cpu7") == "/sys/devices/system/cpu/cpu7"
assert os.readlink("/sys/devices/system/cpu/cpu90/node1") == "../../node/node1"
assert text("/sys/devices/system/cpu/cpu90/node1/cpulist") == "80-159\n"
os.chdir("/proc/self")
for path in "/proc/self/status", "/proc/thread-self/status", f"/proc/{os.getpid()}/status", "status", \
            f"/proc/{os.getpid()}/task/{os.getpid()}/status", f"/proc/{os.getppid()}/status":
    assert field(text(path), "Cpus_allowed_list") == "0-159", path
    assert field(text(path), "Mems_allowed_list") == "0-1", path
def thread(out):
    os.sched_setaffinity(0, {123})
    out.append(field(text("/proc/thread-self/status"), "Cpus_allowed_list"))
    out.append(field(text(f"/proc/self/task/{threading.get_native_id()}/status"), "Cpus_allowed_list"))
    out.append(field(text("/proc/self/status"), "Cpus_allowed_list"))
    out.append(text("/proc/thread-self/stat").rsplit(")", 1)[1].split()[36])
out = []
t = threading.Thread(target=thread, args=(out,)); t.start(); t.join()
assert out == ["123", "123", "0-159", "123"], out
how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0)
fd = ctypes.CDLL(None).syscall(437, -100, online.encode(), how, 24)
assert fd >= 0 and os.read(fd, 100) == b"0-159\n", "openat2"
fd = os.open("/proc/stat", os.O_RDONLY)
first = os.read(fd, 1 << 20)
assert first.count(b"\ncpu") == 160
end = time.time() + 60
while time.time() < end:
    again = os.pread(fd, 1 << 20, 0)
    if again and again != first:
        break
    time.sleep(0.1)
assert again != first, "/proc/stat does not move on"
assert text("/proc/cpuinfo").count("processor\t") == 160
# Files of sysfs that move, kept open.
kept = [os.open("/sys/devices/system/node/node0/" + n, os.O_RDONLY) for n in ("meminfo", "numastat", "vmstat")]
weights = "/sys/kernel/mm/mempolicy/weighted_interleave/node0"
kept += [os.open(weights, os.O_RDONLY)] if os.path.exists(weights) else []
first = [os.pread(f, 1 << 20, 0) for f in kept]
os.sched_setaffinity(0, {0})
import mmap
memory = mmap.mmap(-1, 64 << 20)
for at in range(0, 64 << 20, 4096):
    memory[at] = 1
if os.path.exists(weights):
    with open(weights, "w") as f:
        f.write("7\n")
end = time.time() + 60
while time.time() < end:
    again = [os.pread(f, 1 << 20, 0) for f in kept]
    if all(a and a != b for a, b in zip(again, first)):
        break
    time.sleep(0.1)
assert all(a != b for a, b in zip(again, first)), (again, first)
try:
    os.open(online, os.O_WRONLY)
    assert os.getuid() == 0, "a read-only file was opened for writing"
except PermissionError:
    pass
print("ok")
'''

PLUG = r'''
import os
def text(path):
    with open(path) as f:
        return f.read().strip()
def plug(cpu, how):
    with open(f"/sys/devices/system/cpu/cpu{cpu}/online", "w") as f:
        f.write(how)
cpu = "/sys/devices/system/cpu/"
os.sched_setaffinity(0, {4, 5, 6})
plug(5, "0")
assert text(cpu + "online") == "0-4,6-159" and text(cpu + "offline") == "5"
assert os.sched_getaffinity(0) == {4, 6}
assert not os.path.exists(cpu + "cpu5/topology") and text(cpu + "cpu5/online") == "0"
assert text("/sys/devices/system/node/node0/cpulist") == "0-4,6-79"
assert os.sysconf("SC_NPROCESSORS_ONLN") == 159 and os.sysconf("SC_NPROCESSORS_CONF") == 160
try:
    os.sched_setaffinity(0, {5})
    assert False, "bound to a CPU that is offline"
except OSError:
    pass
plug(4, "0\n"); plug(6, "0")
assert len(os.sched_getaffinity(0)) == 157
plug(5, "1")
assert os.sched_getaffinity(0) == {5}
assert text(cpu + "cpu5/topology/thread_siblings_list") == "5"
with open("/proc/sys/kernel/numa_balancing", "r+") as f:
    assert f.read() == "1\n"
    f.seek(0); f.write("0\n")
assert text("/proc/sys/kernel/numa_balancing") == "0"
print("ok")
'''


# Real kernels' answers: tests/conformance/transcripts, section hotplug; the letters are those of its kstrtobool().
STORE = r'''
import errno, os, threading
cpu = "/sys/devices/system/cpu/"
def text(path):
    with open(path) as f:
        return f.read().strip()
def store(path, what, flags=0):
    try:
        fd = os.open(path, os.O_WRONLY | flags)
    except OSError as e:
        return "open " + errno.errorcode[e.errno]
    try:
        return os.write(fd, what.encode())
    except OSError as e:
        return errno.errorcode[e.errno]
    finally:
        os.close(fd)
one, all_on, one_off = cpu + "cpu1/online", f"0-{LAST}", "0,2" + (f"-{LAST}" if LAST > 2 else "")
for bad in "2", "x", "\n", " 1", "-1", "o", "ox", "O\n", "9\n":
    assert store(one, bad) == "EINVAL", bad
    assert text(cpu + "online") == all_on
for off, on in ("0", "1"), ("0\n", "1\n"), ("no", "yes"), ("off", "on"), ("OFF\n", "ON\n"), ("f", "t"), ("D", "E"), ("01", "10"):
    assert store(one, off) == len(off) and text(one) == "0" and text(cpu + "online") == one_off, off
    assert store(one, off) == len(off)
    assert store(one, on) == len(on) and text(one) == "1" and text(cpu + "online") == all_on, on
    assert store(one, on) == len(on)
# No call that is answered between the write and the stat.
for how in "0", "1":
    store(one, how, os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    assert os.path.exists(cpu + "cpu1/topology") == (how == "1")
    assert os.stat(one).st_size == 4096
assert store(one, "1" + 9000 * "x") == 4096         # a page, as sysfs
assert store(one, "") == 0
assert store(one, "1", os.O_CREAT | os.O_EXCL) == "open EEXIST" and store(one, "1", os.O_DIRECTORY) == "open ENOTDIR"
for path in cpu + "online", cpu + "cpu1/topology/core_id":
    assert store(path, "1") == "open EACCES"
assert store(cpu + "cpu9999/online", "1") == "open ENOENT"
fd = os.open(one, os.O_RDWR)
assert os.read(fd, 9) == b"1\n" and os.write(fd, b"0") == 1 and os.pread(fd, 9, 0) == b"0\n"
assert os.write(fd, b"1") == 1 and os.pread(fd, 9, 0) == b"1\n"    # the place in the file does not matter
os.close(fd)
if os.path.exists(cpu + "cpu0/online"):             # arm64
    assert [store(f"{cpu}cpu{i}/online", "0") for i in range(LAST + 1)] == LAST * [1] + ["EBUSY"]
    assert text(cpu + "online") == str(LAST) and os.sched_getaffinity(0) == {LAST}
    assert store(f"{cpu}cpu{LAST}/online", "1") == 1
else:                                               # x86
    assert store(cpu + "cpu0/online", "0") == "open ENOENT" and store(cpu + "cpu0/online", "0", os.O_CREAT) == "open EACCES"
    assert [store(f"{cpu}cpu{i}/online", "0") for i in range(1, LAST + 1)] == LAST * [1]
    assert text(cpu + "online") == "0" and os.sched_getaffinity(0) == {0}
assert {store(f"{cpu}cpu{i}/online", "1") for i in range(LAST + 1)} - {"open ENOENT"} == {1}
assert text(cpu + "online") == all_on and len(os.sched_getaffinity(0)) == LAST + 1
weight = "/sys/kernel/mm/mempolicy/weighted_interleave/node0"
if os.path.exists(weight):
    assert [store(weight, w) for w in ("3", "256", "x", "-1")] == [1] + 3 * ["EINVAL"] and text(weight) == "3"
# Writers, readers and calls that are answered, all at once.
def work(n):
    for i in range(60):
        if n % 2:
            assert store(f"{cpu}cpu{1 + n % LAST}/online", str(i % 2)) == 1
            continue
        assert os.listdir(cpu + "cpu1") and text(cpu + "online") and os.sched_getaffinity(0)
        try:                                        # folders that come and go
            text(cpu + "cpu1/topology/core_id")
        except FileNotFoundError:
            pass
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert text(cpu + "online") == all_on
print("ok")
'''


MANNERS = r'''
import errno, os, subprocess
cpu = "/sys/devices/system/cpu/"
def refused(fn, *args):
    try:
        fn(*args)
    except OSError as e:
        assert e.errno in (errno.EROFS, errno.EPERM, errno.EACCES), e
        return
    raise AssertionError(f"{fn} {args}")
for path in cpu + "new", cpu + "cpu3/new":
    refused(os.mkdir, path)
    refused(os.symlink, "x", path)
    refused(os.mknod, path)
refused(os.unlink, cpu + "online")
refused(os.rmdir, cpu + "cpu3/topology")
refused(os.rename, cpu + "online", cpu + "offline")
try:
    os.chmod(cpu + "online", 0o777)     # root may on sysfs; here it is not kept
except OSError as e:
    assert os.geteuid() and e.errno in (errno.EROFS, errno.EPERM), e
assert os.stat(cpu + "online").st_mode == 0o100444
for n in 0, 7, 159:
    top = f"{cpu}cpu{n}"
    # No call of these but realpath's readlinks names a file, and nobody has opened anything there before.
    assert subprocess.run(["realpath", top + "/cache/index0/size"], stdout=subprocess.PIPE).stdout.decode() == \
        top + "/cache/index0/size\n"
    assert os.path.realpath(top + "/subsystem") == "/sys/bus/cpu", os.path.realpath(top + "/subsystem")
    assert os.stat(top + "/topology/core_id").st_size == 4096
    walked = sum(len(f) for _, _, f in os.walk(top))
    assert walked > 40, walked
with open(cpu + "online") as f:
    assert f.read() == "0-159\n" and f.read() == ""
    f.seek(2)
    assert f.read() == "159\n"
names = os.listdir(cpu)
assert len(names) == len(set(names)) and sum(n[3:].isdigit() for n in names) == 160
# Many at once.
kids = [subprocess.Popen(["ls", "-lR", cpu], stdout=subprocess.PIPE) for _ in range(4)]
outs = {k.communicate()[0] for k in kids}
assert len(outs) == 1 and not any(k.returncode for k in kids)
print("ok")
'''


class Common:
    def setUp(self):
        super().setUp()
        self.uid = mctest.NOBODY if os.getuid() == 0 else None

    def run_it(self, *args, **more):
        return mctest.manycore("run", "--view=" + self.view, *args, uid=more.pop("uid", self.uid), **more)

    def probe(self, *what, kind="probe"):
        for one in what:
            with self.subTest(one):
                self.ok(self.run_it(*MACHINE, "--", os.path.join(HERE, kind), one))

    def test_probe(self):
        self.probe("affinity", "getcpu", "inherit", "storm", "threads", "memory")
        self.probe("unseen")

    def test_probe_static(self):
        if not os.path.exists(os.path.join(HERE, "probe_static")):
            mctest.skip("static-libc", "no static libc to link with")
        self.probe("affinity", "getcpu", "inherit", "memory", kind="probe_static")
        self.probe("unseen", kind="probe_static")

    def test_files(self):
        r = self.run_it(*MACHINE, "--", PYTHON, "-c", FILES)
        self.assertEqual(r.out, "ok\n", repr(r))

    def test_hotplug(self):
        r = self.run_it(*MACHINE, "--", PYTHON, "-c", PLUG)
        self.assertEqual(r.out, "ok\n", repr(r))

    def test_as_root(self):
        if os.getuid():
            mctest.skip("root", "run as an ordinary user")
        for program in FILES, PLUG:
            r = self.run_it(*MACHINE, "--", PYTHON, "-c", program, uid=None)
            self.assertEqual(r.out, "ok\n", repr(r))

    def test_others_may_not_store(self):
        """Files of the machine are those of who runs it: real root's are not for others."""
        if os.getuid():
            mctest.skip("root", "takes another user")
        r = self.ok(self.run_it("--smp", "4", "setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c",
                                "echo 0 >/sys/devices/system/cpu/cpu1/online; nproc", uid=None))
        self.assertEqual(r.out, "4\n")
        self.assertIn("Permission denied", r.err)

    def test_status(self):
        for code in 0, 1, 77, 125, 255:
            self.ok(self.run_it("--smp", "2", "sh", "-c", f"exit {code}"), code)
        self.ok(self.run_it("--smp", "2", "/nowhere/x"), 127)
        self.ok(self.run_it("--smp", "2", "/etc/passwd"), 126)
        self.ok(self.run_it("--smp", "0", "true"), 125)
        for sig in signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV:
            self.ok(self.run_it("--smp", "2", "sh", "-c", f"kill -{int(sig)} $$"), -sig)

    def test_descriptors(self):
        """The command has what it was given and nothing else; a pipe's other side sees its end when the command closes it."""
        r, w = os.pipe()
        out = self.run_it("--smp", "2", "sh", "-c", f"echo given >&{w}; ls /proc/self/fd", pass_fds=(w,))
        os.close(w)
        with os.fdopen(r) as f:
            self.assertEqual(f.read(), "given\n")
        self.assertEqual(out.out.split(), ["0", "1", "2", "3", str(w)] if w != 3 else ["0", "1", "2", "3", "4"])
        p = subprocess.Popen([mctest.MANYCORE, "run", "--view=" + self.view, "--smp", "2", "sh", "-c", "exec >&-; sleep 20"],
                             stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertEqual(p.stdout.read(), b"")
        self.assertIsNone(p.poll(), "the end of the output came with the command's own")
        p.stdout.close()

    def test_stdin(self):
        self.assertEqual(self.run_it("--smp", "2", "cat", input="through\n").out, "through\n")

    def test_cpus(self):
        def mask(*args):
            return self.ok(self.run_it(*MACHINE, *args, "--", "sh", "-c", "taskset -pc $$")).out.split()[-1]

        mctest.need("taskset")
        self.assertEqual(mask("-C", "3,5-7"), "3,5-7")
        self.assertEqual(mask("--physcpubind=!0-157"), "158,159")
        self.assertEqual(mask("--cpunodebind=1"), "80-159")
        self.assertEqual(mask("-N", "all"), "0-159")
        self.ok(self.run_it(*MACHINE, "-C", "160", "true"), 125)

    def test_seed(self):
        def cpu(seed):
            return self.run_it(*MACHINE, "--seed", str(seed), PYTHON, "-c",
                               "import ctypes; print(ctypes.CDLL(None).sched_getcpu())").out

        self.assertEqual(cpu(1), cpu(1))
        self.assertGreater(len({cpu(s) for s in range(4)}), 1)

    def test_trace(self):
        path = os.path.join(self.dir, "trace")
        self.ok(mctest.manycore("run", "--view=" + self.view, *MACHINE, "--trace=" + path, "taskset", "-c", "9", "true"))
        with open(path) as f:
            lines = f.read()
        self.assertRegex(lines, r"\[\d+\] sched_setaffinity\(0, \d+, 9\) = 0")

    def test_strict(self):
        self.assertEqual(self.ok(self.run_it(*MACHINE, "--strict", "nproc")).out, "160\n")

    def test_strict_tells(self):
        """Each kind of refusal is told once, with what and why; nothing is told without --strict."""
        program = r"""
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
for i in range(2):
    print([(libc.syscall(n, *a), ctypes.get_errno()) for n, a in (
        (425, (4, ctypes.create_string_buffer(120))),
        (SYS_PERF, (ctypes.create_string_buffer(struct.pack("II", 1, 64) + bytes(112)), 0, 1, -1, 0)),
        (SYS_MEMBARRIER, (128, 1, 0)), (SYS_SECCOMP, (1, 8, 0)))])
"""
        numbers = {"x86_64": (298, 324, 317), "aarch64": (241, 283, 277)}[os.uname().machine]
        for name, nr in zip(("SYS_PERF", "SYS_MEMBARRIER", "SYS_SECCOMP"), numbers):
            program = program.replace(name, str(nr))
        r = self.ok(self.run_it(*MACHINE, "--strict", PYTHON, "-c", program))
        self.assertEqual(r.out, "[(-1, 38), (-1, 95), (-1, 22), (-1, 16)]\n" * 2)
        self.assertEqual(len(r.err.splitlines()), 4, r)
        for line, what in zip(r.err.splitlines(), ("io_uring was refused (ENOSYS)", "perf_event_open on a CPU was refused "
                              "(EOPNOTSUPP)", "membarrier on a CPU was refused (EINVAL)", "listener was refused (EBUSY)")):
            self.assertRegex(line, r"^manycore run: --strict: .*" + re.escape(what) + r" to process \d+ \(python3.*\): .* told once$")
        r = self.ok(self.run_it(*MACHINE, PYTHON, "-c", program))
        self.assertEqual(r.err, "")

    def test_strict_word_size(self):
        """A program of another word size would see the host: it is refused, not let through. (x32 is one, and its numbers
        reach the filter on every kernel.)"""
        if os.uname().machine != "x86_64":
            mctest.skip("x86-64", "numbers of x32")
        r = self.ok(self.run_it(*MACHINE, "--strict", PYTHON, "-c", "import ctypes; print(ctypes.CDLL(None).syscall(0x40000027))"))
        self.assertEqual(r.out, "-1\n")
        self.assertRegex(r.err, "^manycore run: --strict: .*another word size was refused \\(ENOSYS\\).*\n$")

    def test_cpuset_is_refused(self):
        """A cpuset written inside would have no effect: never silently."""
        files = [f for f in ("/sys/fs/cgroup/cpuset/cpuset.cpus", "/sys/fs/cgroup/cpuset.cpus") if os.path.exists(f)]
        for f in files:
            r = self.run_it(*MACHINE, "sh", "-c", f"echo 0 > {f}")
            self.assertNotEqual(r.status, 0)
            self.assertIn("Operation not permitted", r.err)

    def test_verbose(self):
        self.assertIn("view: " + self.view, self.run_it("-v", *MACHINE, "true").err)

    def test_residue(self):
        """The private folder is gone when the caller goes on."""
        user = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        p = subprocess.Popen([mctest.MANYCORE, "run", "--view=" + self.view, *MACHINE, "--", "sh", "-c",
                              "ls -R /sys/devices/system/node >/dev/null; echo there; read x"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **user)
        self.assertEqual(p.stdout.readline(), "there\n")
        self.assertEqual(len(mctest.left_by(p.pid)), int(self.view == "calls"))
        p.communicate("\n")
        self.assertEqual(p.returncode, 0)
        self.assertEqual(mctest.left_by(p.pid), set())


class Namespace(Common, mctest.TestCase):
    view = "namespace"


DEVICE = r'''
mount -t tmpfs none "$1" || exit 99
if [ "$2" = given ]; then mknod "$1/fuse" c 10 229 && chmod 666 "$1/fuse" || exit 99; else : >"$1/fuse"; fi
mount --bind "$1/fuse" /dev/fuse || exit 99
shift 2
exec "$@"
'''


class Device:
    """The namespace view with and without /dev/fuse, whatever the host's permissions of it are."""
    view = "namespace"

    def run_it(self, *args, **more):
        if os.getuid() or not os.path.exists("/dev/fuse"):
            mctest.skip("root", "another /dev/fuse can't be put in place")
        folder = os.path.join(self.dir, "dev")
        os.makedirs(folder, exist_ok=True)
        uid = more.pop("uid", self.uid)
        user = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid is not None else []
        r = mctest.execute(["unshare", "-m", "--propagation", "private", "sh", "-c", DEVICE, "sh", folder, self.device,
                            *user, mctest.MANYCORE, "run", "--view=namespace", *args], **more)
        if r.status == 99:
            mctest.skip("root", "another /dev/fuse can't be put in place: " + r.err)
        return r

    def test_told(self):
        self.assertIn(self.told, self.run_it("-v", *MACHINE, "true").err)


class Asked(Device, Common, mctest.TestCase):
    device, told = "given", "answered when asked for"

    def test_sysfs_manners(self):
        """What no file system of files would do: nobody may make, remove or change anything, and contents are as of now."""
        for uid in None, self.uid:
            r = self.run_it(*MACHINE, PYTHON, "-c", MANNERS, uid=uid)
            self.assertEqual(r.out, "ok\n", repr(r))

    def test_store(self):
        """Writing cpuN/online: the kernel's errors, on machines of any size."""
        for uid in None, self.uid:
            for machine, last in ((MACHINE, 159), (["--smp", "3"], 2), (["--machine", "pi5"], 3)):
                r = self.run_it(*machine, PYTHON, "-c", STORE.replace("LAST", str(last)), uid=uid)
                self.assertEqual(r.out, "ok\n", repr(r))

    def test_supervisor_dies(self):
        """Whoever waits for a name when the supervisor dies is not left hanging."""
        busy = "kill -9 $(cut -d' ' -f4 /proc/$$/stat); while :; do ls -lR /sys/devices/system/cpu >/dev/null; done"
        self.ok(self.run_it(*MACHINE, "sh", "-c", busy, limit=60), 125)


class Made(Device, mctest.TestCase):
    device, told = "none", "made on first need"
    uid = mctest.NOBODY if os.getuid() == 0 else None
    test_files, test_hotplug = Common.test_files, Common.test_hotplug


class Calls(Common, mctest.TestCase):
    view = "calls"


class Sweep(mctest.TestCase):
    """What a run that was killed as a whole left is removed by later starts of the same user, and nothing else is. Runs of
    other tests sweep too: only what must stay is looked for at once."""
    uid = mctest.NOBODY if os.getuid() == 0 else None

    def setUp(self):
        super().setUp()
        self.place = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else "/tmp"

    def run_it(self, *args):
        return self.ok(mctest.manycore("run", *args, uid=self.uid))

    def folder(self, tail=".run", mode=0o755, uid=None):
        path = f"{self.place}/manycore.{os.getpid()}.{random.getrandbits(64):016x}{tail}"
        os.makedirs(path + "/sys/devices")
        with open(path + "/sys/file", "w"):
            pass
        for p in path + "/sys/devices", path + "/sys/file", path + "/sys", path:
            if os.getuid() == 0:
                os.chown(p, *[self.uid if uid is None else uid] * 2)
        os.chmod(path, mode)
        self.addCleanup(shutil.rmtree, path, True)
        return path

    def swept(self, paths):
        """A start removes a few: started until all are gone."""
        end = time.monotonic() + mctest.LIMIT
        while any(map(os.path.exists, paths)) and time.monotonic() < end:
            self.run_it("--smp", "2", "true")
        self.assertEqual([p for p in paths if os.path.exists(p)], [])

    def test_killed_whole(self):
        user = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        p = subprocess.Popen([mctest.MANYCORE, "run", "--view=calls", *MACHINE, "--", "sh", "-c",
                              "ls -R /sys/devices/system/node >/dev/null; echo there; read x"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, **user)
        self.assertEqual(p.stdout.readline(), "there\n")
        for _ in range(3):      # it is in use
            self.run_it("--smp", "2", "true")
        left = mctest.left_by(p.pid)
        self.assertEqual(len(left), 1)
        self.assertTrue(os.path.isdir(left.copy().pop() + "/sys/devices/system/node/node0"))
        parts, at = [p.pid], 0
        while at < len(parts):
            os.kill(parts[at], signal.SIGSTOP)      # so that none can tidy up after another
            with open(f"/proc/{parts[at]}/task/{parts[at]}/children") as f:
                parts += map(int, f.read().split())
            at += 1
        self.assertGreaterEqual(len(parts), 4)
        for pid in parts:
            os.kill(pid, signal.SIGKILL)
        p.communicate()
        self.swept(left)

    def test_what_goes(self):
        outside = os.path.join(self.dir, "keep")
        os.mkdir(outside)
        dead = [self.folder() for _ in range(6)]
        os.symlink(outside, dead[0] + "/sys/link")
        with open(outside + "/file", "w"):
            pass
        if self.uid is not None:
            os.chown(outside, self.uid, self.uid)
        self.swept(dead)
        self.assertTrue(os.path.exists(outside + "/file"))

    def test_what_stays(self):
        locked, others = self.folder(), []
        fd = os.open(locked, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        others = [self.folder(mode=0o777), self.folder(mode=0o775), self.folder(tail=""), self.folder(tail=".run2"),
                  self.folder(tail="0.run")]
        if os.getuid() == 0:
            others.append(self.folder(uid=54321))     # no test runs as that user
        name = f"{self.place}/manycore.1.{random.getrandbits(64):016x}.run"
        outside = self.folder(tail=".outside")
        os.symlink(outside, name)
        self.addCleanup(os.unlink, name)
        fifo = f"{self.place}/manycore.1.{random.getrandbits(64):016x}.run"
        os.mkfifo(fifo)
        self.addCleanup(os.unlink, fifo)
        self.swept([self.folder()])
        for path in others + [locked, outside, name]:
            self.assertTrue(os.path.exists(path + "/sys/file"), path)

    def test_starts_at_once(self):
        """Runs that begin and end beside each other do not take each other's folder for a dead one's."""
        command = [mctest.MANYCORE, "run", "--view=calls", "--smp", "4", "--nodes", "2", "--", "cat",
                   "/sys/devices/system/node/online"]
        if self.uid is not None:
            command = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups"] + command
        dead = [self.folder() for _ in range(4)]
        for _ in range(10):
            runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(8)]
            for p in runs:
                out, _ = p.communicate(timeout=mctest.LIMIT)
                self.assertEqual((p.returncode, out), (0, "0-1\n"))
                self.assertEqual(mctest.left_by(p.pid), set())
        self.swept(dead)


class Auto(mctest.TestCase):
    """A host that forbids namespaces: the other view is taken by itself, and --view=namespace says what is missing."""

    def test_denied(self):
        uid = mctest.NOBODY if os.getuid() == 0 else None
        cmd = [*mctest.deny("unshare", "mount"), mctest.MANYCORE, "run", "-v", *MACHINE]
        r = self.ok(mctest.execute(cmd + ["nproc"], uid=uid))
        self.assertEqual(r.out, "160\n")
        self.assertIn("view: calls", r.err)
        r = self.ok(mctest.execute(cmd + ["--view=namespace", "nproc"], uid=uid), 125)
        self.assertIn("--view=calls", r.err)

    def test_kernel_before_5_14(self):
        """No answering of opens with files: refused at the start, not by opens that fail."""
        cmd = [*mctest.deny("ioctl:1&0xffff=0x2103", error=errno.EINVAL), mctest.MANYCORE, "run", *MACHINE, "nproc"]
        r = self.ok(mctest.execute(cmd), 125)
        self.assertEqual(r.out, "")
        self.assertIn("Linux 5.14", r.err)
        self.assertIn("manycore doctor", r.err)

    def test_calls_document(self):
        if os.uname().machine != "x86_64":
            mctest.skip("x86-64", "the document is of that architecture")
        r = self.ok(mctest.manycore("run", "--print-calls"))
        with open(os.path.join(mctest.TOP, "docs", "syscalls.md")) as f:
            self.assertEqual(r.out, f.read(), "run: manycore run --print-calls >docs/syscalls.md")

    def test_environment(self):
        r = self.ok(mctest.manycore("run", "nproc", "--all", env={"MANYCORE_MACHINE": "pi5"}))
        self.assertEqual(r.out, "4\n")


if __name__ == "__main__":
    mctest.main()
