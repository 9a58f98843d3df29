#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a hostile or careless user does: paths, flags and pointers at which the host fails must fail alike inside; closed
standard streams, few descriptors and a signal at the start leave no hang and nothing behind."""
import difflib, os, signal, subprocess, sys, time
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


class Common:
    def go(self, *command, machine=("--smp", "3"), **more):
        return mctest.manycore("run", f"--view={self.view}", *machine, "--", *command, uid=self.uid, **more)

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
