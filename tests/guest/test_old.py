#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a kernel before 5.14 (`tools/test-guest 5.10`): `run` says at once that it can't, `doctor` why; the rest works by touching."""
import os
import mctest
from mctest import manycore


class Old(mctest.TestCase):
    def test_run_is_refused(self):
        for more in ([], ["--view=calls"], ["--strict"]):
            r = self.ok(manycore("run", "--smp", "8", *more, "nproc"), 125)
            self.assertIn("Linux 5.14", r.err)
            self.assertEqual(r.out, "")

    def test_doctor_tells(self):
        r = self.ok(manycore("doctor"), 1)
        self.assertRegex(r.out, r"(?m)^bad +seccomp-addfd-send ")
        self.assertRegex(r.out, r"(?m)^limited +seccomp-wait-killable ")

    def test_others(self):
        self.assertIn("CPU", self.ok(manycore("topo")).out)
        self.ok(manycore("record", os.path.join(self.dir, "here.tgz")))


if __name__ == "__main__":
    mctest.main()
