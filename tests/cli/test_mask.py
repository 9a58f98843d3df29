#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`manycore mask`: conversions, algebra, and errors that point at the place."""
import json, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest
from mctest import manycore


class Mask(mctest.TestCase):
    def says(self, expected, *args):
        self.assertEqual(self.ok(manycore("mask", *args)).out, expected + "\n", args)

    def test_conversions(self):
        self.says("0-3,8", "-n", "64", "0-3,8")
        self.says("00000000,0000010f", "-n", "64", "--hex", "0-3,8")
        self.says("0x10f", "-n", "64", "-t", "0-3,8")
        self.says("0x0", "-n", "64", "-t", "")
        self.says("5", "-n", "64", "-c", "0-3,8")
        self.says("0\n1\n8", "-n", "64", "-1", "0-1 8")
        self.says("0-7,16-23", "-n", "64", "0xFF00ff")
        self.says("0,68", "-n", "100", "0x100000000000000001")
        self.says("0,32", "-n", "64", "0x1,00000001")
        self.says("0,32", "-n", "64", "hex:1,1")
        self.says("0-1,4-5", "-n", "8", "0-7:2/4")
        self.says("7", "-n", "8", "N")

    def test_algebra(self):
        self.says("2-3", "-n", "64", "0-3", "and", "2-5")
        self.says("0-5", "-n", "64", "0-3", "or", "2-5")
        self.says("0-1,4-5", "-n", "64", "0-3", "xor", "2-5")
        self.says("0-1", "-n", "64", "0-3", "andnot", "2-5")
        self.says("4-7", "-n", "8", "not", "0-3")
        self.says("0-3", "-n", "8", "not", "not", "0-3")
        self.says("1,3,5,7", "-n", "8", "all", "andnot", "0-7:1/2")
        self.says("0,9000", "-n", "10000", "0,9000", "and", "not", "5")
        self.says("2", "-n", "8", "0-1", "or", "2", "and", "not", "0-1")

    def test_test(self):
        self.assertEqual(manycore("mask", "-n", "8", "--test", "1,2", "0-3").status, 0)
        self.assertEqual(manycore("mask", "-n", "8", "--test", "3-4", "0-3").status, 1)
        self.assertEqual(manycore("mask", "-n", "8", "--test", "", "0").status, 0)

    def test_affinity(self):
        cpus = sorted(os.sched_getaffinity(0))
        self.says("\n".join(map(str, cpus)), "-1", "affinity")

    def test_json(self):
        doc = json.loads(self.ok(manycore("mask", "--json", "-n", "40", "0-2,39")).out)
        self.assertEqual(doc, {"nbits": 40, "list": "0-2,39", "hex": "80,00000007", "count": 4, "cpus": [0, 1, 2, 39]})

    def test_errors_point(self):
        for text, where, word in (("0-3,9x", 5, "malformed"), ("1,5-64", 4, "--nbits"), ("hex:1,g", 6, "malformed"),
                                  ("0x1q", 3, "malformed"), ("0x10000000000000000", 2, "--nbits"), ("0x", 2, "malformed"),
                                  ("3-1", 2, "malformed"), ("99999999999", 0, "--nbits")):
            r = manycore("mask", "-n", "64", text)
            self.assertEqual((r.status, r.out), (2, ""), text)
            lines = r.err.rstrip("\n").split("\n")
            self.assertIn(word, lines[0])
            self.assertIn(f"offset {where}:", lines[0])
            self.assertEqual(lines[1], "  " + text)
            self.assertEqual(lines[2], "  " + " " * where + "^")

    def test_usage(self):
        for args in ([], ["-n"], ["-n", "0", "0"], ["-n", "-1", "0"], ["-n", "1x", "0"], ["--what", "0"], ["0", "plus", "1"],
                     ["0", "and"], ["not"], ["-n", "99999999999999999999", "0"]):
            r = manycore("mask", *args)
            self.assertEqual(r.status, 2, args)
            self.assertIn("manycore mask", r.err)


if __name__ == "__main__":
    mctest.main()
