#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command itself and what all subcommands promise: help on stdout, exit codes, errors on stderr, full disks."""
import os, re, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest
from mctest import manycore

USAGE = {"run": 125}       # run's own failures are told apart from the command's


def commands():
    return re.findall(r"^  ([a-z]+) {2,}\S", manycore("--help").out, re.M)


class Main(mctest.TestCase):
    def test_help(self):
        for args in (["--help"], ["-h"], ["help"]):
            r = self.ok(manycore(*args))
            self.assertIn("Usage: manycore COMMAND", r.out)
            self.assertEqual(r.err, "")
        self.assertIn("bench", commands())
        for c in commands():
            self.assertEqual(self.ok(manycore("help", c)).out, manycore(c, "--help").out)
        self.assertIn("'nosuch'", self.ok(manycore("help", "nosuch"), 2).err)

    def test_version(self):
        with open(os.path.join(mctest.TOP, "include/manycore/base.h")) as f:
            version = re.search(r'MC_VERSION_STRING "(.*)"', f.read()).group(1)
        for arg in ("--version", "-V"):
            self.assertEqual(self.ok(manycore(arg)).out, f"manycore {version}\n")

    def test_no_command(self):
        r = self.ok(manycore(), 2)
        self.assertEqual(r.out, "")
        self.assertIn("manycore --help", r.err)

    def test_unknown_command(self):
        for word in ("frobnicate", "", "-x", "--frobnicate", "../bench"):
            r = self.ok(manycore(word), 2)
            self.assertEqual(r.out, "")
            self.assertIn(f"'{word}'", r.err)

    def test_each_command_has_help(self):
        for c in commands():
            with self.subTest(c):
                r = self.ok(manycore(c, "--help"))
                self.assertIn(f"manycore {c}", r.out.split("\n")[0])
                self.assertEqual(r.err, "")

    def test_each_command_refuses_unknown_options(self):
        for c in commands():
            with self.subTest(c):
                r = self.ok(manycore(c, "--no-such-option"), USAGE.get(c, 2))
                self.assertEqual(r.out, "")
                self.assertIn("no-such-option", r.err)
                self.assertIn(f"manycore {c}", r.err)

    def test_full_disk(self):
        """A help text that could not be written is a failure, told on stderr."""
        for args in [["--help"], ["--version"]] + [[c, "--help"] for c in commands()]:
            with self.subTest(" ".join(args)), open("/dev/full", "w") as full:
                r = manycore(*args, stdout=full)
                self.assertNotEqual(r.status, 0, repr(r))
                self.assertIn("No space left", r.err)

    def test_closed_stdout(self):
        r = mctest.execute(["sh", "-c", f"exec '{mctest.MANYCORE}' --help >&-"])
        self.assertNotEqual(r.status, 0, repr(r))


if __name__ == "__main__":
    mctest.main()
