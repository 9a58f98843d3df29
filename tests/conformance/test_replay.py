#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays recorded random sequences of memory-policy calls: sequences.txt.gz holds what Linux 6.12 answered to
randseq.c in QEMU (tools/difftest --record), fixed.txt.gz those that once differed."""
import gzip, os, re, unittest
import mctest
import seqmachine

HERE = os.path.dirname(os.path.abspath(__file__))
RANDSEQ = os.path.join(mctest.BUILD, "tests", "conformance", "randseq")


def sequences(text):
    parts = re.split(r"^\[(\d+)\]\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Replay(unittest.TestCase):
    def replay(self, name, view):
        if os.getuid() != 0:
            mctest.skip("root", "recorded as root, who may move pages to any node")
        with gzip.open(os.path.join(HERE, name), "rt") as f:
            real = sequences(f.read())
        r = mctest.execute([mctest.MANYCORE, "run", f"--view={view}"] + seqmachine.manycore() +
                           ["--", RANDSEQ, ",".join(real), "0", "--full"], limit=300)
        self.assertEqual(r.status, 0, r)
        ours = sequences(r.out)
        for n, text in real.items():
            self.assertEqual(ours.get(n, "").splitlines(), text.splitlines(), f"sequence {n}: tools/difftest --only {n}")
        return len(real)

    def test_namespace(self):
        self.assertGreaterEqual(self.replay("sequences.txt.gz", "auto"), 100)

    def test_calls(self):
        self.replay("sequences.txt.gz", "calls")

    def test_once_differed(self):
        self.assertGreaterEqual(self.replay("fixed.txt.gz", "auto"), 50)


mctest.main()
