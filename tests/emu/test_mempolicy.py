#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory policy under `manycore run`, as programs meet it: numactl's view, run's own policy options and their errors, first
touch by threads, fork, numa_maps, weights. The calls one by one are in tests/conformance."""
import os
import mctest

FIRST_TOUCH = os.path.join(mctest.BUILD, "tests/emu/first_touch")
FOUR = ("--smp", "8", "--nodes", "4")
BIG = ("--mem", "32G")


class Options(mctest.TestCase):
    def show(self, *options):
        """numactl -s inside, as a dictionary."""
        mctest.need("numactl")
        r = self.ok(mctest.manycore("run", *FOUR, *options, "--", "numactl", "-s"))
        return {k: v.strip() for k, _, v in (line.partition(":") for line in r.out.splitlines())}

    def test_each_policy(self):
        self.assertEqual(self.show()["policy"], "default")
        s = self.show("--interleave=all")
        self.assertEqual((s["policy"], s["interleavemask"]), ("interleave", "0 1 2 3"))
        s = self.show("-m", "1,3")
        self.assertEqual((s["policy"], s["membind"]), ("bind", "1 3"))
        s = self.show("-p", "2")
        self.assertEqual((s["policy"], s["preferred node"]), ("preferred", "2"))
        self.assertEqual(self.show("-l")["policy"], "local")

    def test_grammar(self):
        self.assertEqual(self.show("--membind=!0")["membind"], "1 2 3")
        self.assertEqual(self.show("--membind=+1-2")["membind"], "1 2")
        self.assertEqual(self.show("--membind=!1-2")["membind"], "0 3")
        self.assertEqual(self.show("--interleave=")["policy"], "default")
        self.assertEqual(self.show("-N", "2", "-m", "same")["membind"], "2")
        self.assertEqual(self.show("--balancing", "-m", "1")["policy"], "[8194]")

    def test_errors(self):
        for options, word in ((["-m", "4"], "--membind '4': a node"), (["-m", "x"], "no number"), (["-m", "0-"], "lacks"), (["-N", "4"], "--cpunodebind '4'"), (["-C", "999"], "--physcpubind '999'"),
                              (["-m", "!all"], "no node"), (["-p", "0,1"], "one node"), (["-b"], "--membind"), (["-m", "same"], "before"), (["-i", "0", "-m", "1"], "conflict")):
            r = mctest.manycore("run", *FOUR, *options, "--", "true")
            self.assertEqual(r.status, 125, repr(r))
            self.assertIn(word, r.err)

    def test_real_machine(self):
        r = mctest.manycore("run", "-m", "0", "--", "true")
        if r.status == 125 and ("NUMA" in r.err or "forbidden" in r.err):
            mctest.skip("mempolicy", r.err)
        self.ok(r)
        self.assertEqual(mctest.manycore("run", "-m", "999", "--", "true").status, 125)

    def test_inherited(self):
        mctest.need("numactl")
        r = self.ok(mctest.manycore("run", *FOUR, "--interleave=0,2", "--", "sh", "-c", "sh -c 'numactl -s; :'; :"))
        self.assertIn("interleavemask: 0 2", r.out)
        r = self.ok(mctest.manycore("run", *FOUR, "--", "numactl", "-m", "3", "sh", "-c", "numactl -s; :"))
        self.assertIn("membind: 3", r.out)


class Placement(mctest.TestCase):
    def touch(self, *args, options=()):
        r = self.ok(mctest.manycore("run", "--smp", "16", "--nodes", "8", *options, "--", FIRST_TOUCH, *args))
        right, total = r.out.split()[:2]
        return int(right), int(total)

    def test_threads_in_turn(self):
        self.assertEqual(self.touch("turn", "8", "200"), (1600, 1600))

    def test_threads_at_once_by_counts(self):
        right, total = self.touch("once", "8", "2000", options=["--first-touch=faults"])
        self.assertGreaterEqual(right, total * 0.99)

    def test_threads_at_once_by_events(self):
        """Exact, however small the parts, and page by page in turn."""
        r = self.ok(mctest.manycore("run", "--smp", "16", "--nodes", "8", "--verbose", "--", "true"))
        if "page-fault events" not in r.err:
            mctest.skip("perf", r.err)
        with open("/proc/sys/kernel/perf_event_paranoid") as f:
            users = int(f.read()) <= 2  # above, as Debian has it, root only
        for uid in (None, mctest.NOBODY) if os.getuid() == 0 and users else (None,):
            command = [mctest.MANYCORE, "run", "--smp", "16", "--nodes", "8", "--", FIRST_TOUCH]
            for args, total in ((("once", "8", "8"), 64), (("once", "8", "500"), 4000), (("comb", "8", "100"), 800)):
                r = mctest.execute(command + list(args), uid=uid)
                self.assertEqual((r.status, r.out), (0, "%d %d\n" % (total, total)), (uid, r))

    def test_strict_refuses_a_guess(self):
        r = mctest.manycore("run", "--smp", "16", "--nodes", "8", "--strict", "--first-touch=faults", "--", FIRST_TOUCH,
                            "comb", "8", "50")
        self.assertNotEqual(r.status, 0)
        self.assertRegex(r.err, r"--strict: process \d+, 0x[0-9a-f]+-0x[0-9a-f]+: which thread touched")
        self.assertEqual(self.touch("turn", "8", "50", options=["--strict", "--first-touch=faults"]), (400, 400))
        self.assertEqual(self.touch("wander", "8", "5", options=["--strict"]), (40, 40))

    def test_strict_sees_every_change_of_mappings(self):
        self.assertEqual(self.touch("again", "8", "64", options=["--strict"]), (64, 64))

    def test_one_thread_over_nodes(self):
        self.assertEqual(self.touch("wander", "8", "5"), (40, 40))

    def test_child_on_another_node(self):
        self.assertEqual(self.touch("fork", "8", "20"), (20, 20))

    def test_policy_goes_with_its_mapping(self):
        """Mapped, bound, unmapped, mapped again: no policy; and again, at an address of the kernel's choice, after a look."""
        self.assertEqual(self.touch("stale", "8", "16"), (16, 16))

    def test_numa_maps_splits(self):
        r = self.ok(mctest.manycore("run", *FOUR, "--", FIRST_TOUCH, "maps", "4", "9"))
        self.assertEqual(r.out.split("\n")[:3], ["default anon=3 dirty=3 N0=3", "interleave:0-3 anon=3 dirty=3 N0=1 N1=1 N3=1",
                                                 "bind:2 anon=3 dirty=3 N2=3"])

    def test_free_memory_follows(self):
        """Of a program that never asks: what another one sees of its node while it runs."""
        script = "import mmap,subprocess\nm=mmap.mmap(-1,40<<20)\nm.write(b'1'*(40<<20))\n" \
                 "print(open('/sys/devices/system/node/node2/meminfo').read())"
        free = []
        for program in ("print(open('/sys/devices/system/node/node2/meminfo').read())", script):
            r = self.ok(mctest.manycore("run", *FOUR, "--mem", "8G", "-C", "4", "--", "python3", "-c", program))
            free.append(int(next(line for line in r.out.splitlines() if "MemFree" in line).split()[3]))
        self.assertGreaterEqual(free[0] - free[1], 39 << 10)

    def test_a_million_pages(self):
        inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside", "million.py")
        r = self.ok(mctest.manycore("run", *FOUR, *BIG, "--", "python3", inside, "4"))
        self.assertEqual(r.out.split()[0], "right", r.out)

    def test_counters_move(self):
        script = "cat /sys/devices/system/node/node1/numastat; %s fill 4 3000; cat /sys/devices/system/node/node1/numastat"
        r = self.ok(mctest.manycore("run", *FOUR, "-m", "1", "--", "sh", "-c", script % FIRST_TOUCH))
        hits = [int(line.split()[1]) for line in r.out.splitlines() if line.startswith("numa_hit")]
        self.assertGreaterEqual(hits[1] - hits[0], 3000)


class Weights(mctest.TestCase):
    def test_written_and_used(self):
        top = "/sys/kernel/mm/mempolicy/weighted_interleave"
        if not os.path.isdir("/sys/kernel/mm/mempolicy"):
            mctest.skip("weighted-interleave", "the host's kernel has no folder to show it in")
        for view in ("namespace", "calls"):
            r = self.ok(mctest.manycore("run", "--view=" + view, *FOUR, "--", "sh", "-c",
                                        "echo 3 > %s/node1; cat %s/node1; echo 0 > %s/node1; cat %s/node*" % (top, top, top, top)))
            self.assertEqual(r.out.split(), ["3", "1", "1", "1", "1"], view)


if __name__ == "__main__":
    mctest.main()
