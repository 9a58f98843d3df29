#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Limits that the kernel really sets, as root with cgroup v2 on a machine of several nodes (`tools/test-guest limits`): populate
stops before the OOM killer, names what stopped it, and goes on when it may; workers follow CPU time, CPUs and nodes."""
import json, os, re, time
import mctest
from mctest import MANYCORE, execute

TOP, MIB = "/sys/fs/cgroup", 1 << 20


def text(path):
    with open(path) as f:
        return f.read()


def put(path, value):
    with open(path, "w") as f:
        f.write(str(value))


class Limits(mctest.TestCase):
    def setUp(self):
        super().setUp()
        if os.getuid() or not os.path.exists(TOP + "/cgroup.controllers"):
            mctest.skip("cgroup-v2", "needs root and cgroup v2")
        self.path = f"/dev/shm/manycore-test-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(self.path) and os.unlink(self.path))

    def group(self, parent=TOP, **limits):
        """A new cgroup; memory__max="64M" is its memory.max."""
        folder = f"{parent}/mc{os.getpid()}-{len(os.listdir(parent))}"
        os.mkdir(folder)
        self.addCleanup(self.remove, folder)
        for name, value in limits.items():
            put(f"{folder}/{name.replace('__', '.')}", value)
        return folder

    def remove(self, folder):
        for _ in range(500):
            try:
                return os.rmdir(folder)
            except OSError:
                time.sleep(0.02)                           # its last process is being taken down, or its pages
        self.fail(f"{folder} stays: {text(folder + '/cgroup.procs')}")

    def inside(self, folder, *cmd, limit=None):
        """A command in a cgroup, after which nobody there was killed."""
        r = execute(["sh", "-c", f"echo $$ >{folder}/cgroup.procs && exec \"$@\"", "sh", *cmd], limit=limit)
        self.assertGreaterEqual(r.status, 0, r)
        if os.path.exists(folder + "/memory.events"):
            self.assertRegex(text(folder + "/memory.events"), r"oom_kill 0")
        return r

    def populate(self, folder, *args, status=0):
        r = self.ok(self.inside(folder, MANYCORE, "populate", "--json", *args), status)
        return json.loads(r.out)["files"][0], r

    def stops_at(self, folder, limit, named, *args):
        """populate of three times the limit stops short of it, tells which cgroup's it is, and is no farther than it says."""
        f, r = self.populate(folder, "--size", f"{3 * limit}M", *args, self.path, status=1)
        self.assertTrue(limit * MIB // 3 <= f["ready"] <= limit * MIB, f)
        self.assertEqual(f["ready"] % MIB, 0)
        self.assertLessEqual(abs(os.stat(self.path).st_blocks * 512 - f["ready"]), MIB)
        for p in f["parts"]:
            self.assertEqual(p["stop"], "limit", f)
            self.assertIn(f"memory cgroup {named}: ", p["error"])
        self.assertIn("goes on from there", r.err)
        return f

    def test_memory_max(self):
        folder = self.group(memory__max=96 * MIB)
        for args in ((), ("--threads", "2"), ("-i", "all"), ("--chunk", "2M", "-m", "1")):
            with self.subTest(args):
                f = self.stops_at(folder, 96, folder, *args)
                if "2M" not in args:                       # the limit is lifted: the same command goes on
                    put(folder + "/memory.max", "max")
                    f, _ = self.populate(folder, "--size", "288M", *args, self.path)
                    self.assertEqual(f["ready"], 288 * MIB)
                    self.assertGreaterEqual(f["resident"], 24 * MIB)
                os.unlink(self.path)
                put(folder + "/memory.max", 96 * MIB)

    def test_ancestor(self):
        """A limit above, none of its own."""
        top = self.group(memory__max=96 * MIB)
        put(top + "/cgroup.subtree_control", "+memory")
        middle = self.group(top)
        put(middle + "/cgroup.subtree_control", "+memory")
        self.stops_at(self.group(middle), 96, top)
        os.unlink(self.path)
        put(middle + "/memory.max", 64 * MIB)
        self.stops_at(self.group(middle), 64, middle)

    def test_memory_high(self):
        """Above it the kernel slows a process down for ever; it never gets there."""
        folder = self.group(memory__high=96 * MIB)
        self.stops_at(folder, 96, folder)
        self.assertRegex(text(folder + "/memory.events"), r"(?m)^high 0$")

    def test_space(self):
        """A tmpfs smaller than the cgroup's limit."""
        folder = self.group(memory__max=256 * MIB)
        self.ok(execute(["mount", "-t", "tmpfs", "-o", "size=32m", "none", self.dir]))
        self.addCleanup(execute, ["umount", self.dir])
        f, _ = self.populate(folder, "--size", "128M", self.dir + "/f", status=1)
        self.assertTrue(24 * MIB <= f["ready"] <= 32 * MIB, f)
        self.assertIn("space", [p["stop"] for p in f["parts"]])

    def threads(self, folder, *args):
        """Each part's workers: who worked on two parts counts in both."""
        f, _ = self.populate(folder, "--size", "64M", "--chunk", "1M", *args, self.path)
        os.unlink(self.path)
        return [p["threads"] for p in f["parts"]]

    def test_cpu_max(self):
        one, two = self.group(cpu__max="100000 100000"), self.group(cpu__max="150000 100000")
        self.assertEqual(self.threads(one, "-i", "all"), [1])
        self.assertEqual(self.threads(two, "-i", "all"), [2])
        self.assertEqual(self.threads(TOP, "-i", "all"), [3])
        # The one worker goes from part to part.
        self.assertEqual(self.threads(one), [1, 1, 1, 1])
        put(one + "/cgroup.subtree_control", "+cpu")
        self.assertEqual(self.threads(self.group(one), "-i", "all"), [1])

    def test_cpuset(self):
        folder = self.group(cpuset__cpus="1")
        self.assertEqual(self.threads(folder, "-i", "all"), [1])
        folder = self.group(cpuset__cpus="0,2")
        self.assertEqual(self.threads(folder, "-i", "all"), [2])

    def node_pages(self):
        r = self.ok(execute(["sh", "-c", f"exec python3 -c '{MAPS}' {self.path}"]))
        return {int(n): int(c) for n, c in re.findall(r" N(\d+)=(\d+)", r.out)}

    def test_cpuset_mems(self):
        """Only the nodes that the cpuset has get a part, and pages."""
        folder = self.group(cpuset__mems="1,3")
        f, _ = self.populate(folder, "--size", "64M", self.path)
        self.assertEqual([p["node"] for p in f["parts"]], [1, 3])
        self.assertEqual(self.node_pages(), {1: 32 * 256, 3: 32 * 256})
        r = self.inside(folder, MANYCORE, "populate", "-m", "0", "--size", "1M", self.path)
        self.assertEqual(r.status, 2, r)

    def room(self, node):
        m = re.search(r"MemFree: +(\d+) kB", text(f"/sys/devices/system/node/node{node}/meminfo"))
        return int(m.group(1)) // 1024

    def full(self, f, status, node):
        self.assertEqual(f["parts"][0]["stop"], "memory", f)
        self.assertRegex(f["parts"][0]["error"], f"node.* {node}\\b.* MiB left")

    def test_bound_to_a_node(self):
        """The machine has room, the node has not: the kernel would kill a process that is bound to it."""
        room = self.room(3)
        folder = self.group()
        for args in (("-m", "3"), ("-m", "3", "--threads", "2")):
            f, r = self.populate(folder, "--size", f"{room + 64}M", *args, self.path, status=1)
            self.assertTrue(room // 2 * MIB <= f["ready"] <= room * MIB, (room, f))
            self.full(f, r, 3)
            os.unlink(self.path)

    def test_cpuset_mems_full(self):
        room = self.room(3)
        folder = self.group(cpuset__mems="3")
        f, r = self.populate(folder, "--size", f"{room + 64}M", self.path, status=1)
        self.assertTrue(room // 2 * MIB <= f["ready"] <= room * MIB, (room, f))
        self.full(f, r, 3)

    def test_preferred_goes_elsewhere(self):
        """A split only prefers its nodes: what a node has not comes from others."""
        room = self.room(3)
        f, _ = self.populate(self.group(), "--size", f"{room + 32}M", "-p", "3", self.path)
        self.assertTrue(f["complete"])

    def huge(self, folder, *args):
        self.ok(execute(["mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "none", self.dir]))
        self.addCleanup(execute, ["umount", self.dir])
        return self.populate(folder, "--hugetlb", "2M", "--size", "64M", *args, self.dir + "/f", status=1)[0]

    def pool(self, n):
        put("/proc/sys/vm/nr_hugepages", n)
        self.addCleanup(put, "/proc/sys/vm/nr_hugepages", 0)
        self.assertEqual(int(text("/proc/sys/vm/nr_hugepages")), n)

    def test_hugetlb_cgroup(self):
        """The pool has pages, the hugetlb cgroup lets none of them go."""
        self.pool(48)
        folder = self.group(**{"hugetlb__2MB__max": 20 * MIB})
        f = self.huge(folder, "-i", "all")
        self.assertEqual(f["ready"], 20 * MIB)
        self.assertEqual(f["parts"][0]["stop"], "hugetlb")
        self.assertIn(f"hugetlb cgroup {folder}: 20 of 20 MiB used", f["parts"][0]["error"])

    def test_hugetlb_cgroup_above(self):
        self.pool(48)
        top = self.group(**{"hugetlb__2MB__max": 20 * MIB})
        put(top + "/cgroup.subtree_control", "+hugetlb")
        f = self.huge(self.group(top), "-i", "all")
        self.assertEqual(f["ready"], 20 * MIB)
        self.assertIn(f"hugetlb cgroup {top}: 20 of 20 MiB used", f["parts"][0]["error"])

    def test_hugetlb_pool_ends(self):
        self.pool(12)
        f = self.huge(self.group(), "-i", "all")
        self.assertEqual(f["ready"], 24 * MIB)
        self.assertIn("pool of 2048 kB huge pages is empty", f["parts"][0]["error"])


MAPS = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
m = mmap.mmap(fd, 0)
for i in range(0, len(m), mmap.PAGESIZE):
    m[i]
print([l for l in open("/proc/self/numa_maps") if sys.argv[1] in l][0])
"""

if __name__ == "__main__":
    mctest.main()
