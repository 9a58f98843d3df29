#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The probe's cases on recorded machines against Linux 6.12's answers: every line must match (compare.py says which are left
out, and why). One machine of each kind here; `compare.py` alone does them all."""
import os
import sys
import mctest

HERE = os.path.dirname(os.path.abspath(__file__))
PROBE = os.path.join(mctest.BUILD, "tests/conformance/mpolprobe")


class Conformance(mctest.TestCase):
    def compare(self, name, *options):
        if os.getuid() != 0:
            mctest.skip("root", "the probe's cases tell a privileged caller from another by giving up its ids")
        result = self.ok(mctest.execute([sys.executable, os.path.join(HERE, "compare.py"), "--manycore", mctest.MANYCORE,
                                         "--probe", PROBE, "--show", "20", *options, name], limit=280))
        print(result.out.strip())

    def test_two_nodes(self):
        self.compare("x86-612-2n16")

    def test_memory_only_node(self):
        self.compare("x86-612-memonly")

    def test_fake_nodes(self):
        self.compare("x86-612-fake4")

    def test_one_node(self):
        self.compare("x86-612-single")

    def test_arm64_sixteen_nodes_limit(self):
        self.compare("arm64-612-8-2n")

    def test_calls_view(self):
        self.compare("x86-612-numaoff", "--option=--view=calls")


if __name__ == "__main__":
    mctest.main()
