#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arenas on emulated machines of 1, 2, 8 and 64 nodes: parts, workers, allocation and placement per node (the unit tests run
inside), and `manycore populate` with numactl's policies, placed as move_pages and numa_maps tell."""
import json, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest
from mctest import BUILD, MANYCORE, manycore

MACHINES = {1: 4, 2: 4, 8: 16, 64: 64}


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

    def test_all_of_it(self):
        self.ok(self.run_on(8, unit("test_arena")))

    def test_populate(self):
        path = f"/dev/shm/manycore-test-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        for nodes in (2, 8):
            with self.subTest(nodes=nodes):
                r = self.ok(self.run_on(nodes, MANYCORE, "populate", "--size", "32M", "--json", path))
                f = json.loads(r.out)["files"][0]
                self.assertEqual([p["node"] for p in f["parts"]], list(range(nodes)))
                self.assertEqual({p["ready"] for p in f["parts"]}, {(32 << 20) // nodes})
                os.unlink(path)
                r = self.ok(self.run_on(nodes, MANYCORE, "populate", "--size", "32M", "-m", str(nodes - 1), "--json", path))
                self.assertEqual([p["node"] for p in json.loads(r.out)["files"][0]["parts"]], [nodes - 1])
                os.unlink(path)
                r = self.ok(self.run_on(nodes, MANYCORE, "populate", "--size", "32M", "-i", "all", path))
                self.assertIn(f"nodes 0-{nodes - 1} deferred pages initialised in", r.out)
                os.unlink(path)
        self.assertIn("not there", self.ok(self.run_on(2, MANYCORE, "populate", "-m", "7", "--size", "1M", path), 2).err)


if __name__ == "__main__":
    mctest.main()
