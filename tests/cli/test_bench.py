#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`manycore bench`: the JSON document, the options, and that every bench runs (tiny counts; no figure is judged)."""
import json, os, re, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest
from mctest import manycore

# Benches of minutes even with --quick, or that need the emulator: their own tests run them.
APART = {"run"}


def benches():
    text = manycore("bench", "--help").out
    return re.findall(r"^  ([a-z]+) {2,}\S", text[text.index("Benches:"):], re.M)


class Bench(mctest.TestCase):
    def test_usage(self):
        self.ok(manycore("bench"), 2)
        self.assertIn("'nosuch'", self.ok(manycore("bench", "nosuch"), 2).err)
        for args, told in ((["--rounds", "0", "all"], "--rounds: '0'"), (["--rounds=x", "all"], "--rounds: 'x'"),
                           (["--size=1", "pageinit"], "--size: '1'"), (["all", "more"], "'more'"),
                           (["all", "--wrong"], "--wrong: no such option"), (["--filter"], "--filter: needs a value"),
                           (["cpumask", "--quick", "--filter=no-such"], "no case of cpumask has 'no-such'")):
            self.assertIn(told, self.ok(manycore("bench", *args), 2).err)

    def test_each_quick(self):
        for name in benches():
            if name in APART:
                continue
            with self.subTest(name):
                r = self.ok(manycore("bench", name, "--quick", "--json", limit=240))
                doc = json.loads(r.out)
                self.assertEqual(doc["bench"], name)
                self.assertGreater(doc["machine"]["cpus"], 0)
                if name == "interleave" and not doc["cases"]:
                    self.assertTrue(doc["notes"])       # one node, and no right to read frame numbers
                    continue
                self.assertTrue(doc["cases"])
                names = [c["name"] for c in doc["cases"]]
                self.assertEqual(len(names), len(set(names)))
                for c in doc["cases"]:
                    self.assertLessEqual(c["p10"], c["median"])
                    self.assertLessEqual(c["median"], c["p90"])
                    self.assertGreater(c["median"], 0, c)
                    for p in c["peers"].values():
                        self.assertGreater(p["ratio"], 0, c)

    def test_filter(self):
        for name in [n for n in benches() if n not in APART][:1]:
            doc = json.loads(self.ok(manycore("bench", name, "--quick", "--json")).out)
            one = doc["cases"][0]["name"]
            doc = json.loads(self.ok(manycore("bench", name, "--quick", "--json", "--filter", one)).out)
            self.assertTrue(all(one in c["name"] for c in doc["cases"]), doc)


if __name__ == "__main__":
    mctest.main()
