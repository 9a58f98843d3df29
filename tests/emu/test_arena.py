#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arenas on emulated machines of 1, 2, 8 and 64 nodes: parts, workers, allocation and placement per node (the unit tests run
inside), and `manycore populate` with numactl's policies, placed as move_pages and numa_maps tell."""
import collections, json, os, re, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest
from mctest import BUILD, MANYCORE, manycore

MACHINES = {1: 4, 2: 4, 8: 16, 64: 64}
# Another program than the one that populated: maps the file; where its pages lie by move_pages(2), how many on each node by
# numa_maps.
WHERE = """
import ctypes, json, mmap, os, re, sys
fd = os.open(sys.argv[1], os.O_RDWR)
m = mmap.mmap(fd, 0)
page, at = mmap.PAGESIZE, ctypes.addressof(ctypes.c_char.from_buffer(m))
n = len(m) // page
pages, status = (ctypes.c_void_p * n)(*[at + i * page for i in range(n)]), (ctypes.c_int * n)()
for i in range(n):
    m[i * page]
call = {"x86_64": 279, "aarch64": 239}[os.uname().machine]
if ctypes.CDLL(None, use_errno=True).syscall(call, 0, n, pages, None, status, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
line = [l for l in open("/proc/self/numa_maps") if sys.argv[1] in l]
print(json.dumps({"status": list(status), "maps": line}))
"""


def unit(name):
    return os.path.join(BUILD, "tests/unit", name)


class Arena(mctest.TestCase):
    def run_on(self, nodes, *cmd, **more):
        return manycore("run", "--nodes", str(nodes), "--smp", str(MACHINES[nodes]), "--mem", "64G", "--", *cmd,
                        limit=240, **more)

    def test_nodes(self):
        for nodes, cpus in MACHINES.items():
            with self.subTest(nodes=nodes):
                r = self.ok(self.run_on(nodes, unit("test_arena_nodes")))
                self.assertIn(f"{nodes} nodes", r.err)

    def test_fewer_cpus_than_nodes(self):
        for cpus in ("0", "1,6", "3-5"):
            with self.subTest(cpus=cpus):
                self.ok(manycore("run", "--nodes", "4", "--smp", "8", "--mem", "64G", "--", "taskset", "-c", cpus,
                                 unit("test_arena_nodes"), limit=240))

    def test_all_of_it(self):
        self.ok(self.run_on(8, unit("test_arena")))

    def placed(self, nodes, mib, *args):
        """Populates a file and looks at it from another program: the report, each page's node, numa_maps' counts."""
        path = f"/dev/shm/manycore-test-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        cmd = [MANYCORE, "populate", "--size", f"{mib}M", "--json", *args, path]
        r = self.ok(self.run_on(nodes, "sh", "-c", '"$@" && exec python3 -c "$WHERE" "$FILE"', "sh", *cmd,
                                env=dict(os.environ, WHERE=WHERE, FILE=path)))
        os.unlink(path)
        report, _, seen = r.out.rstrip().rpartition("\n")
        seen = json.loads(seen)
        self.assertEqual(len(seen["maps"]), 1, seen["maps"])
        counts = {int(n): int(c) for n, c in re.findall(r" N(\d+)=(\d+)", seen["maps"][0])}
        self.assertEqual(counts, dict(collections.Counter(seen["status"])))
        return json.loads(report)["files"][0], seen["status"]

    def same(self, got, want):
        """Of long lists the first difference: unittest would look for a shortest one for minutes."""
        first = next((k for k in range(len(want)) if got[k] != want[k]), None)
        self.assertEqual((len(got), first), (len(want), None), f"got {got[first or 0:][:8]}, not {want[first or 0:][:8]}")

    def test_populate(self):
        for nodes in (2, 8, 64):
            with self.subTest(nodes=nodes):
                mib = max(32, 2 * nodes)
                f, where = self.placed(nodes, mib)
                self.assertEqual([p["node"] for p in f["parts"]], list(range(nodes)))
                self.assertEqual({p["ready"] for p in f["parts"]}, {(mib << 20) // nodes})
                each = len(where) // nodes
                self.same(where, [k // each for k in range(len(where))])
                f, where = self.placed(nodes, 32, "-m", str(nodes - 1))
                self.assertEqual([p["node"] for p in f["parts"]], [nodes - 1])
                self.assertEqual(set(where), {nodes - 1})
                f, where = self.placed(nodes, 32, "-i", "all")
                # tmpfs begins at a node that depends on the file's inode.
                self.same(where, [(where[0] + k) % nodes for k in range(len(where))])
        path = f"/dev/shm/manycore-test-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        r = self.ok(self.run_on(8, MANYCORE, "populate", "--size", "32M", "-i", "all", path))
        self.assertIn("nodes 0-7 deferred pages initialised in", r.out)
        os.unlink(path)
        self.assertIn("not online", self.ok(self.run_on(2, MANYCORE, "populate", "-m", "7", "--size", "1M", path), 2).err)


if __name__ == "__main__":
    mctest.main()
