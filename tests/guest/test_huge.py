#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`manycore populate` with pools of 1 GiB and 2 MiB pages on two nodes (`tools/test-guest huge1g`): placed by node, pools that
end in the middle, going on, Ctrl-C between two pages of a GiB."""
import json, os, signal, subprocess, time
import mctest
from mctest import MANYCORE, execute, manycore

GIB, MIB = 1 << 30, 1 << 20


def free(node, kb):
    path = f"/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/free_hugepages"
    if not os.path.exists(path):
        return 0
    with open(path) as f:
        return int(f.read())


class Huge(mctest.TestCase):
    def mount(self, size):
        self.ok(execute(["mount", "-t", "hugetlbfs", "-o", "pagesize=" + size, "none", self.dir]))
        self.addCleanup(execute, ["umount", self.dir])
        return self.dir + "/f"

    def setUp(self):
        super().setUp()
        if os.getuid() or (free(0, 1048576), free(1, 1048576)) != (2, 1):
            mctest.skip("hugepages-1g", "needs root, and two 1 GiB pages on node 0 and one on node 1")

    def populate(self, *args, status=0):
        r = self.ok(manycore("populate", "--json", *args), status)
        return json.loads(r.out)["files"][0], r

    def test_split(self):
        path = self.mount("1G")
        f, _ = self.populate("--hugetlb", "1G", "--size", "2G", path)
        self.assertEqual((f["page_size"], f["ready"], os.stat(path).st_blocks * 512), (GIB, 2 * GIB, 2 * GIB))
        self.assertEqual([(p["node"], p["ready"]) for p in f["parts"]], [(0, GIB), (1, GIB)])
        self.assertEqual((free(0, 1048576), free(1, 1048576)), (1, 0))
        f, r = self.populate("--hugetlb", "1G", "--size", "3G", path)
        self.assertEqual((f["ready"], f["resident"]), (3 * GIB, 2 * GIB))
        self.assertEqual((free(0, 1048576), free(1, 1048576)), (0, 0))

    def test_pool_ends(self):
        path = self.mount("1G")
        f, r = self.populate("--hugetlb", "1G", "--size", "5G", "-i", "all", path, status=1)
        self.assertEqual((f["ready"], f["parts"][0]["stop"]), (3 * GIB, "hugetlb"))
        self.assertIn("the pool of 1048576 kB huge pages is empty", f["parts"][0]["error"])
        self.assertIn("stopped after 3072 of 5120 MiB; the same command goes on from there", r.err)

    def test_node_ends(self):
        """Bound to a node whose pool ends, while another has pages."""
        path = self.mount("1G")
        f, _ = self.populate("--hugetlb", "1G", "--size", "2G", "-m", "1", path, status=1)
        self.assertEqual((f["ready"], f["parts"][0]["stop"]), (GIB, "hugetlb"))
        self.assertIn("though 2 are free: on other nodes", f["parts"][0]["error"])
        self.assertEqual((free(0, 1048576), free(1, 1048576)), (2, 0))
        f, _ = self.populate("--hugetlb", "1G", "--size", "2G", "-m", "0", path)      # the rest from the other
        self.assertEqual((f["ready"], f["resident"]), (2 * GIB, GIB))
        self.assertEqual((free(0, 1048576), free(1, 1048576)), (1, 0))

    def test_small_pages_of_a_node(self):
        have = free(1, 2048)
        self.assertGreater(have, 8)
        path = self.mount("2M")
        f, _ = self.populate("--hugetlb", "2M", "--size", f"{2 * have + 10}M", "-m", "1", path, status=1)
        self.assertEqual(f["ready"], 2 * have * MIB)
        self.assertIn("on other nodes", f["parts"][0]["error"])
        self.assertEqual(free(1, 2048), 0)
        os.unlink(path)
        # A strict split: the node with the smaller pool stops, the other goes on to its end.
        other = free(0, 2048)
        f, _ = self.populate("--hugetlb", "2M", "--size", f"{4 * have + 16}M", "--strict", path, status=1)
        self.assertEqual([p["ready"] for p in f["parts"]], [min(2 * other, 2 * have + 8) * MIB, 2 * have * MIB])

    def test_interrupted(self):
        path = self.mount("1G")
        p = subprocess.Popen([MANYCORE, "populate", "--hugetlb", "1G", "--size", "3G", "--threads", "1", "-i", "all", path],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.time() + mctest.LIMIT
        while time.time() < end and p.poll() is None and not (os.path.exists(path) and os.stat(path).st_blocks):
            time.sleep(0.001)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=mctest.LIMIT)
        done = os.stat(path).st_blocks * 512
        if p.returncode == 0:
            self.assertEqual(done, 3 * GIB)
            return
        self.assertEqual(p.returncode, 130, (out, err))
        self.assertIn(f"interrupted after {done // MIB} of 3072 MiB", err)


if __name__ == "__main__":
    mctest.main()
