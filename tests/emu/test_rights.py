#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real root's machine with ordinary users on it: the supervisor may do what they may not, and does nothing of it for them.
What they are told about root's processes, folders and files is what the host tells; nobody leaves a chroot."""
import difflib, os, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import mctest

# Each line is the same on the host and inside. Run by root; nobody's part is in a child.
CALLS = r"""
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NOBODY, mine = 65534, sys.argv[1]
def tell(what, call, *args):
    try: print(what, call(*args), flush=True)
    except OSError as e: print(what, errno.errorcode[e.errno], flush=True)
def first(path):
    with open(path) as f: return f.read(8)[:0]
def fields(path):
    # Fields 26 and on, but for the signals, the CPU and what moves: is there an address?
    with open(path) as f: f = ["", ""] + f.read().rsplit(")", 1)[1].split()
    return [int(f[i - 1]) > 1 for i in (26, 27, 28, 45, 46, 47, 48, 49, 50, 51)], len(f)
def write(path):
    os.close(os.open(path, os.O_WRONLY))
def look(who, pid):
    tell(who + " affinity", os.sched_setaffinity, pid, {0})
    tell(who + " stat", fields, f"/proc/{pid}/stat"); tell(who + " task stat", fields, f"/proc/{pid}/task/{pid}/stat")
    if os.path.exists("/proc/self/numa_maps"):
        tell(who + " numa_maps", first, f"/proc/{pid}/numa_maps")
    tell(who + " status", lambda: "Cpus_allowed_list" in open(f"/proc/{pid}/status").read())
    for nr, args in ((279, (pid, 0, None, None, None, 0)), (256, (pid, 64, mask, mask))):
        if os.uname().machine == "x86_64":
            tell(f"{who} call {nr}", lambda: libc.syscall(nr, *args) < 0 and errno.errorcode[ctypes.get_errno()])
mask = ctypes.byref(ctypes.c_uint64(1))
def held():
    pid = os.fork()
    if not pid: time.sleep(1000)
    return pid
def become_nobody():
    os.setgroups([]); os.setresgid(NOBODY, NOBODY, NOBODY); os.setresuid(NOBODY, NOBODY, NOBODY)
def nobodys():
    become_nobody()
    look("root's", pid); look("own", os.getpid())
    other = held()
    look("own child's", other)
    os.kill(other, 9)
    for f in "/proc/pagetypeinfo", "/sys/devices/system/cpu/cpu0/crash_notes":
        if os.path.exists(f): tell(f, first, f)
        if os.path.exists(f): tell("access " + f, os.access, f, os.R_OK)
    if os.path.exists("/proc/sys/kernel/numa_balancing"):
        tell("balancing", write, "/proc/sys/kernel/numa_balancing")
    for sub in "there", "absent":
        tell("through a closed folder, " + sub, first, f"{mine}/closed/{sub}/../../../../../../../proc/self/status")
    tell("unshare", libc.unshare, 0x10000000)
    look("root's from a user namespace", pid)
    look("own from a user namespace", os.getpid())
def jailed(as_root):
    # A folder that the host's own chroot has too: only ".." from it counts.
    os.makedirs(mine + "/jail/sys/devices/system/cpu", exist_ok=True); os.makedirs(mine + "/jail/proc", exist_ok=True)
    os.chroot(mine + "/jail"); os.chdir("/")
    if not as_root: become_nobody()
    at = os.open("/sys/devices/system/cpu", os.O_RDONLY)
    for up in range(1, 14):
        tell("", lambda: os.open("../" * up + "etc/passwd", os.O_RDONLY, dir_fd=at))
    libc.fchdir(at)
    tell("fchdir", lambda: os.open("../../../../../../../etc/passwd", os.O_RDONLY))
def child(part, *args):
    if not os.fork():
        try: part(*args)
        except BaseException as e: print(e, flush=True)
        os._exit(0)
    os.wait()
pid = held()
os.makedirs(mine + "/closed/there", exist_ok=True); os.chmod(mine + "/closed", 0o700)
child(nobodys); child(jailed, False); child(jailed, True)
os.kill(pid, 9)
"""


class Rights(mctest.TestCase):
    maxDiff = None

    def setUp(self):
        super().setUp()
        if os.getuid():
            mctest.skip("root", "only real root's supervisor may do more than the users on its machine")

    def check(self, view):
        program = ["/usr/bin/python3", "-c", CALLS, self.dir]
        host = self.ok(mctest.execute(program)).out
        inside = self.ok(mctest.manycore("run", "--view=" + view, "--smp", str(os.cpu_count()), "--", *program)).out
        self.assertIn("root's stat", host)
        self.assertEqual("", "\n".join(difflib.unified_diff(host.splitlines(), inside.splitlines(), n=0)))

    def test_namespace(self):
        self.check("namespace")

    def test_calls(self):
        self.check("calls")


if __name__ == "__main__":
    mctest.main()
