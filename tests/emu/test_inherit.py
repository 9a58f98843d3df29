#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tasks take from their creators, where tasks are marked and nobody sees their beginnings and ends (src/emu/marks.c), and where
these are notified. inherit.c says what is tried; both views, as root and as an ordinary user."""
import json, os, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import mctest

BUILT = os.path.join(mctest.BUILD, "tests", "emu", "inherit")
MACHINE = ["--smp", "64", "--nodes", "4", "--mem", "64G"]
ALL = ["creators", "ends", "many", "image", "orphans", "heirs", "brother", "slacks", "states", "plugs", "pages", "interrupted", "killed",
       "unseen", "images", "told", "orphaned"]
# What is not had where creations are notified: limits.md.
MARKS = ["image", "killed", "brother", "interrupted"]


def can_be(uid):
    """Can tasks be marked here?"""
    checks = json.loads(mctest.manycore("doctor", "--json", "timer-slack", "perf", uid=uid if os.getuid() == 0 else None).out)["checks"]
    return all(c["state"] == "ok" for c in checks)


class Common:
    options = ()

    def run_it(self, what, uid, front=()):
        machine = ["--smp", "64", "--mem", "64G"] if what == "told" else MACHINE
        return mctest.execute([*front, mctest.MANYCORE, "run", "--view=" + self.view, *machine, *self.options, "--", BUILT, what],
                              uid=uid if os.getuid() == 0 else None)

    def marked(self, uid):
        r = self.ok(mctest.manycore("run", "--view=" + self.view, "--verbose", *MACHINE, *self.options, "--", "true",
                                    uid=uid if os.getuid() == 0 else None))
        return "not notified" in r.err

    def all(self, uid):
        marked = self.marked(uid)
        for what in ALL:
            if marked or what not in MARKS:
                with self.subTest(what):
                    self.ok(self.run_it(what, uid))
        with self.subTest("few descriptors"):
            self.ok(self.run_it("crowd", uid, ("sh", "-c", 'ulimit -n 128; exec "$@"', "sh")))
        return marked

    def test_root(self):
        if os.getuid():
            mctest.skip("root", "run as an ordinary user")
        marked = self.all(None)
        for what in "reuse", "again", "realtime":
            with self.subTest(what):
                r = self.run_it(what, None)
                if r.status != 77:  # no right to, in a container
                    self.ok(r)
        self.assertEqual(marked, self.as_root and can_be(None))


class Namespace(Common, mctest.TestCase):
    view, as_root = "namespace", True

    def test_user(self):
        self.assertEqual(self.all(mctest.NOBODY), can_be(mctest.NOBODY))


class Calls(Common, mctest.TestCase):
    view, as_root = "calls", True

    def test_user(self):
        # Nobody may set another one's slack without CAP_SYS_NICE.
        self.assertFalse(self.all(mctest.NOBODY))


class Noted(Namespace):
    options, as_root = ("--first-touch=faults",), False

    def test_user(self):
        self.assertFalse(self.all(mctest.NOBODY))


if __name__ == "__main__":
    mctest.main()
