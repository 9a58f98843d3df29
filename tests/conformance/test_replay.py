#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays recorded random sequences of memory-policy calls: sequences.txt.gz holds what Linux 6.12 answered to
randseq.c in QEMU (tools/difftest --record). Sequences that once differed are kept by number in FIXED_CASES."""
import gzip, os, re, unittest
import mctest
import seqmachine

HERE = os.path.dirname(os.path.abspath(__file__))
RANDSEQ = os.path.join(mctest.BUILD, "tests", "conformance", "randseq")


def sequences(text):
    parts = re.split(r"^\[(\d+)\]\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Replay(unittest.TestCase):
    def replay(self, view):
        with gzip.open(os.path.join(HERE, "sequences.txt.gz"), "rt") as f:
            real = sequences(f.read())
        self.assertGreaterEqual(len(real), 100)
        first = min(map(int, real))
        r = mctest.execute([mctest.MANYCORE, "run", f"--view={view}"] + seqmachine.manycore() +
                           ["--", RANDSEQ, str(first), str(len(real)), "--full"], limit=300)
        self.assertEqual(r.status, 0, r)
        ours = sequences(r.out)
        for n, text in real.items():
            self.assertEqual(ours.get(n, "").splitlines(), text.splitlines(), f"sequence {n}: tools/difftest --from {n} --count 1")

    def test_namespace(self):
        self.replay("auto")

    def test_calls(self):
        self.replay("calls")


mctest.main()
