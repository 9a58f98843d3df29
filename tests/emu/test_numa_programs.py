#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that place and move memory, on a machine of 8 nodes: numactl's tools, OpenMP's first touch with both libraries;
and the counters of the nodes against random programs (inside/counters.py). More clients are in clients/."""
import os, shutil, sys, tempfile
import mctest

HERE = os.path.dirname(os.path.abspath(__file__))
EIGHT = ("--smp", "16", "--nodes", "8", "--mem", "16G")
# Waits until `numastat -p` of $P shows at least $2 MB on node $1, prints it.
ON_NODE = """on_node() {
	for i in $(seq 100); do
		MB=$(numastat -p $P | awk -v n=$(($1 + 2)) '$1 == "Total" { print int($n) }')
		[ "${MB:-0}" -ge $2 ] && break; sleep 0.2
	done
	echo "node $1: $MB"
}
"""
HOLDER = """import mmap, sys, time
m = mmap.mmap(-1, 24 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for i in range(0, len(m), 4096):
    m[i] = 1
print("ready", flush=True); time.sleep(100)"""


class Numactl(mctest.TestCase):
    def script(self, text, *options):
        mctest.need("numactl", "numastat", "awk")
        return self.ok(mctest.manycore("run", *EIGHT, *options, "--", "sh", "-c", ON_NODE + text, limit=120)).out

    def test_memhog(self):
        mctest.need("memhog")
        out = self.script("memhog -r100000 16m membind 3 >/dev/null & P=$!\non_node 3 16; kill $P")
        self.assertRegex(out, r"^node 3: 1[67]\n$")
        out = self.script("numactl --interleave=4-7 memhog -r100000 64m >/dev/null & P=$!\non_node 5 16; on_node 7 16; kill $P")
        self.assertRegex(out, r"^node 5: 1[67]\nnode 7: 1[67]\n$")

    def test_migratepages(self):
        mctest.need("migratepages", "python3")
        out = self.script("T=$(mktemp); numactl -m 1 python3 -c '%s' >$T & P=$!\nuntil [ -s $T ]; do sleep 0.1; done\nrm $T\n"
                          "on_node 1 24; migratepages $P 1 6; on_node 6 24; on_node 1 0; kill $P" % HOLDER)
        one, six, left = [int(line.split(": ")[1]) for line in out.splitlines()]
        self.assertGreaterEqual(one, 24)
        # Pages of libraries that other programs have mapped too move for root only, migrate_pages(2).
        self.assertGreaterEqual(six, one - 1 if os.getuid() == 0 else 24)
        self.assertLessEqual(left, 0 if os.getuid() == 0 else one - 24)

    def test_migspeed(self):
        mctest.need("migspeed")
        out = self.script("migspeed -p 2000 0 5")
        self.assertRegex(out, r"7\.8 Mbyte migrated")

    def test_numastat(self):
        out = self.script("numastat -m; numastat")
        total = next(line.split()[1:] for line in out.splitlines() if line.startswith("MemTotal"))
        self.assertEqual(total, ["2048.00"] * 8 + ["16384.00"])
        self.assertEqual(len(next(line.split() for line in out.splitlines() if line.startswith("numa_hit"))), 9)


class FirstTouch(mctest.TestCase):
    def openmp(self, compiler):
        mctest.need(compiler)
        with tempfile.TemporaryDirectory() as tmp:
            os.chmod(tmp, 0o755)
            program = os.path.join(tmp, "omp_touch")
            self.ok(mctest.execute([compiler, "-fopenmp", "-O1", "-w", "-o", program, os.path.join(HERE, "inside/omp_touch.c")]))
            for places, pages in (("cores", 4000), ("threads", 160), ("sockets", 1600)):
                env = {"OMP_PLACES": places, "OMP_PROC_BIND": "spread", "OMP_NUM_THREADS": "8", "KMP_TOPOLOGY_METHOD": "cpuinfo"}
                r = self.ok(mctest.manycore("run", *EIGHT, "--smp", "16,sockets=8,cores=2,threads=1", "--", program, str(pages),
                                            env=env, limit=120))
                right, total = int(r.out.split()[0]), int(r.out.split()[2])
                # Without page-fault events parts of a few pages are told by counts.
                self.assertGreaterEqual(right, total if mctest.lacks("perf") is False else total * 0.7, r)
                self.assertIn("on 8 nodes, 8 threads", r.out, r)

    def test_libgomp(self):
        self.openmp("gcc")

    def test_libomp(self):
        self.openmp("clang")


class Counters(mctest.TestCase):
    def test_follow_random_programs(self):
        for seed in ("1", "2"):
            r = self.ok(mctest.manycore("run", "--smp", "8", "--nodes", "4", "--mem", "8G", "--", sys.executable,
                                        os.path.join(HERE, "inside/counters.py"), seed, "8", limit=200))
            self.assertEqual(r.out, "ok\n")


if __name__ == "__main__":
    mctest.main()
