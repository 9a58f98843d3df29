#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`manycore topo` and `manycore record`: formats against recorded numactl -H, the JSON's fields, a record read back,
nothing private in it, and what a wrong description answers."""
import glob, json, os, subprocess, sys, tarfile, tempfile, unittest
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest

MACHINES = os.path.join(mctest.TOP, "tests", "machines")


def run(*args, env=None):
    p = subprocess.run([mctest.MANYCORE, *args], capture_output=True, text=True, timeout=mctest.LIMIT,
                       env={**{k: v for k, v in os.environ.items() if k != "MANYCORE_MACHINE"}, **(env or {})})
    return p.returncode, p.stdout, p.stderr


def numactl_of(path):
    """What the machine itself printed; free memory moves."""
    with tarfile.open(path) as t:
        name = next((m for m in t.getnames() if m.endswith("cmd/numactl-H.txt")), None)
        if not name:
            return None
        lines = t.extractfile(name).read().decode().splitlines()
    return [x for x in lines[1:] if not x.startswith("--- ") and " free: " not in x]


class Topo(unittest.TestCase):
    def test_numactl_table(self):
        seen = 0
        for path in sorted(glob.glob(os.path.join(MACHINES, "*.tgz"))):
            want = numactl_of(path)
            if want is None:
                continue
            with self.subTest(machine=os.path.basename(path)):
                status, out, err = run("topo", "--machine", path, "--format", "numactl")
                self.assertEqual((status, err), (0, ""))
                self.assertEqual([x for x in out.splitlines() if " free: " not in x], want)
                seen += 1
        self.assertGreater(seen, 8)

    def test_json(self):
        status, out, _ = run("topo", "--smp", "16,sockets=2,threads=2", "--nodes", "2", "--mem", "8G", "--offline", "3", "--json")
        self.assertEqual(status, 0)
        j = json.loads(out)
        self.assertEqual(list(j), ["manycore", "format", "arch", "mem_total", "cpus", "numa", "cpu", "cache", "node"])
        self.assertEqual(j["mem_total"], 8 << 30)
        self.assertEqual(j["cpus"]["online"], "0-2,4-15")
        self.assertEqual(j["cpus"]["offline"], "3")
        self.assertEqual(j["cpu"][3]["core"], None)
        self.assertEqual(j["cpu"][2]["siblings"]["package"], "0-2,4-7")
        self.assertEqual([n["distances"] for n in j["node"]], [[10, 20], [20, 10]])
        self.assertEqual(j["cache"][j["cpu"][4]["caches"][0]]["cpus"], "4-5")

    def test_tree_and_svg(self):
        status, out, _ = run("topo", "--machine", "spr-2x56-snc4-cxl", "-t")
        self.assertEqual(status, 0)
        self.assertIn("14 x L2 2 MiB + L1d 48 KiB + L1i 32 KiB + core of 2 CPUs  (CPUs 0-13,112-125)", out)
        self.assertIn("Node 8  256 GiB, no CPUs", out)
        import xml.etree.ElementTree as ET
        status, out, _ = run("topo", "--smp", "512,sockets=2,threads=2", "--nodes", "8", "--mem", "1T", "-f", "svg")
        texts = [t.text for t in ET.fromstring(out).iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(sum(t.isdigit() for t in texts), 512)
        for want in ("Package 1", "Node 7  128 GiB", "511"):
            self.assertIn(want, texts)

    def test_environment(self):
        status, out, _ = run("topo", "--json", env={"MANYCORE_MACHINE": "pi5"})
        self.assertEqual(json.loads(out)["arch"], "aarch64")
        status, _, err = run("topo", env={"MANYCORE_MACHINE": "nothing"})
        self.assertEqual(status, 2)
        self.assertIn("MANYCORE_MACHINE", err)

    def test_wrong(self):
        for args, text in ((["--smp", "8,books=2"], "unknown word"), (["--machine", "pdp11"], "no preset"),
                           (["--numa", "fake=100000", "--mem", "1G"], "Not enough memory for each node."),
                           (["--format", "xml"], "no such format"), (["x.tar"], "--machine ./x.tar"),
                           (["--machine"], "--machine: needs a value"), (["--wrong"], "--wrong: no such option"),
                           (["--tree", "-tx"], "-x: no such option"), (["--tree=5"], "--tree=5: takes no value"),
                           (["-f"], "-f: needs a value")):
            with self.subTest(args=args):
                status, out, err = run("topo", *args)
                self.assertEqual((status, out), (2, ""))
                self.assertIn(text, err)
        status, out, _ = run("topo", "--machine", "list")
        self.assertEqual(status, 0)
        self.assertEqual(len(out.splitlines()), 7)

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            p = subprocess.run([mctest.MANYCORE, "topo", "--machine", "pi5"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, 1)


class Record(unittest.TestCase):
    def test_round_trip(self):
        with tempfile.TemporaryDirectory() as d:
            live = json.loads(run("topo", "--json")[1])
            for name in ("m.tar.gz", "m.tar.zst", "m.tar.xz", "m.tar"):
                path = os.path.join(d, name)
                self.assertEqual(run("record", path)[0], 0)
                back = json.loads(run("topo", "--json", "--machine", path)[1])
                for j in (live, back):
                    j["cpus"].pop("allowed", None)
                    j["numa"].pop("allowed", None)
                    for n in j["node"]:
                        n.pop("mem_free", None)
                        n.pop("mem_total", None)
                    # Tests beside this one change the pool; the sizes there are stay.
                    for page in [h for n in j["node"] for h in n["hugepages"]]:
                        page.update(total=0, free=0, surplus=0)
                    j["mem_total"] = 0
                self.assertEqual(back, live)
            self.assertEqual(sorted(os.listdir(d)), ["m.tar", "m.tar.gz", "m.tar.xz", "m.tar.zst"])
            with tarfile.open(os.path.join(d, "m.tar")) as t:
                for m in t:
                    self.assertEqual((m.uid, m.gid, m.mtime, m.uname), (0, 0, 0, ""))
                    if m.issym():
                        self.assertFalse(m.linkname.startswith("/"))
                    if m.name == "proc/self/status":
                        for line in t.extractfile(m).read().decode().splitlines():
                            self.assertRegex(line, "^(Cpus|Mems)_allowed")
                    self.assertNotRegex(m.name, "cmdline|hostname|environ|version")

    def test_wrong(self):
        self.assertEqual(run("record")[0], 2)
        self.assertEqual(run("record", "a", "b")[0], 2)
        self.assertEqual(run("record", "/no/such/folder/m.tar")[0], 1)


if __name__ == "__main__":
    mctest.main()
