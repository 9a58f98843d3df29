#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""getcpu by libc, whose repetitions are answered within the process: few calls, and always the CPU that a call would tell.
getcpu.c says what is tried; dynamic, static and musl, in both views."""
import os, platform, re, shutil, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import mctest

BUILT = os.path.join(mctest.BUILD, "tests", "emu")
MACHINE = ["--smp", "160,sockets=2,cores=40,threads=2", "--nodes", "2", "--mem", "64G"]
ALL = ["repeat", "masks", "many", "reuse", "reuse-killed", "neighbour", "forks", "vforks", "share-beside", "share-brother",
       "share-thread", "plugs", "dumpable", "handlers", "again", "pointers", "moved", "covered"]


class Common:
    def run_it(self, program, what, *options, uid=mctest.NOBODY):
        return self.ok(mctest.manycore("run", "--view=" + self.view, *MACHINE, *options, "--", program, what,
                                       uid=uid if os.getuid() == 0 else None))

    def all(self, program, *but, **more):
        for what in ALL:
            if what not in but:
                with self.subTest(what):
                    self.run_it(program, what, **more)

    def test_dynamic(self):
        self.all(os.path.join(BUILT, "getcpu"), *self.but)

    def test_seed(self):
        for what in "repeat", "masks", "forks":
            self.run_it(os.path.join(BUILT, "getcpu"), what, "--seed=7")

    def calls(self, what):
        """How often getcpu was a call that was answered."""
        trace = os.path.join(self.dir, "trace")
        with open(trace, "w"):
            os.chmod(trace, 0o666)
        self.run_it(os.path.join(BUILT, "getcpu"), what, "--trace=" + trace)
        with open(trace) as f:
            return len(re.findall(r"^\[\d+\] getcpu\(", f.read(), re.M))

    def test_number_of_calls(self):
        if platform.machine() != "x86_64":
            mctest.skip("vdso-getcpu", "the vDSO of this architecture has no getcpu")
        repeat = self.calls("repeat")
        if repeat >= 1000:
            mctest.skip("vdso-room", "no room for a table behind the vDSO's image")
        # The first one, the one that is put into the table, and the one that the program makes itself.
        self.assertEqual(repeat, 3)
        # After hot-plug as before it.
        self.assertLess(self.calls("plugs"), 200)
        self.assertLess(self.calls("handlers"), 100)
        # After children in the same memory, too.
        self.assertLess(self.calls("spawned"), 100)


class Namespace(Common, mctest.TestCase):
    view = "namespace"
    but = ()

    def test_root(self):
        if os.getuid():
            mctest.skip("root", "run as an ordinary user")
        self.all(os.path.join(BUILT, "getcpu"), uid=None)


class Calls(Common, mctest.TestCase):
    view = "calls"
    # Of a process that no other may look into nothing can be read, and so it can't be answered, by an ordinary user.
    but = ("dumpable",)

    def test_static(self):
        program = os.path.join(BUILT, "getcpu_static")
        if not os.path.exists(program):
            mctest.skip("static-libc", "no static libc to link with")
        self.all(program, *self.but)

    def test_musl(self):
        mctest.need("musl-gcc")
        program = os.path.join(self.dir, "getcpu")
        self.ok(mctest.execute(["musl-gcc", "-D_GNU_SOURCE", "-O1", "-static", "-idirafter", "/usr/include", "-idirafter",
                                f"/usr/include/{platform.machine()}-linux-gnu", os.path.join(HERE, "getcpu.c"),
                                os.path.join(HERE, "getcpu_vdso.c"), "-o", program]))
        # musl's join never returns for a thread that was killed alone.
        self.all(program, "reuse-killed", *self.but)


if __name__ == "__main__":
    mctest.main()
