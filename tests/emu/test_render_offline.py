#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every recording, rendered into a folder and read from there by lscpu and hwloc, gives what they printed on the machine.

Also: the listing of the cpu and node folders is complete. Exceptions are listed with the reason."""
import glob, gzip, os, re, shutil, stat, tarfile, tempfile, unittest
import mctest

MACHINES = os.path.join(mctest.TOP, "tests", "machines")
TOOL = os.path.join(mctest.BUILD, "tests", "emu", "render_tool")
FOLDERS = ["/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/devices/system/memory", "/sys/bus/cpu",
           "/sys/bus/node", "/proc/cpuinfo", "/proc/meminfo"]

# Attributes of hwloc's output that do not come from the files of the topology.
HWLOC_NOT_OURS = [
    (r' HostName=\(none\)', "the running kernel"),
    (r' (DMI\w+|OSRelease|OSVersion|HostName|hwlocVersion|ProcessName|Architecture)=("[^"]*"|\S*?)(?=[ )])',
     "firmware tables, the running kernel, the reading program"),
    (r' CPU(Vendor|FamilyNumber|ModelNumber|Stepping)=[^ )]*', "offline hwloc can't know which form of cpuinfo it is"),
    (r'^ +<info name="CPU(Vendor|FamilyNumber|ModelNumber|Stepping)"[^\n]*\n', "the same in XML"),
    (r'^Topology not from this system\n', "said offline"),
    (r'^ +<support [^\n]*\n', "what the reading process may do on its own machine"),
    (r' LinuxCgroup=[^ )]*', "the control group of the reading process"),
    (r' Inclusive=\d', "CPUID: the x86 component of hwloc, which can't run offline"),
    (r'^ +<info name="(DMI\w+|OSRelease|OSVersion|HostName|hwlocVersion|ProcessName|Architecture|LinuxCgroup|Inclusive)"'
     r'[^\n]*\n', "the same in XML"),
    (r' gp_index="\d+"', "the order in which hwloc's components found objects"),
    (r' OSName=Linux', "the running kernel"),
    (r'^ +<info name="OSName"[^\n]*\n', "the running kernel"),
    (r' Backend=Linux', "offline, hwloc tells it elsewhere"),
    (r'^ +<info name="Backend"[^\n]*\n', "offline, hwloc tells it elsewhere"),
    (r'^ *Misc\(MemoryModule\)[^\n]*\n', "firmware tables"),
    (r'^Special depth -7:[^\n]*\n', "firmware tables"),
    (r'^ +<object type="Misc"[^\n]*>\n( +<info[^\n]*\n)* +</object>\n', "firmware tables"),
    (r'^ +<object type="Misc"[^\n]*/>\n', "firmware tables"),
    (r'^    <object type="Bridge"[\s\S]*?^    </object>\n', "PCI devices are the host's"),
    (r'^# [^\n]*\n', "hints about what is not printed"),
]


def recorded(name):
    """The machine's cmd/*.txt: {file: text}."""
    out = {}
    with tarfile.open(os.path.join(MACHINES, name + ".tgz")) as tar:
        for m in tar:
            if m.isfile() and "/cmd/" in m.name:
                data = tar.extractfile(m).read()
                base = os.path.basename(m.name)
                if base.endswith(".gz"):
                    base, data = base[:-3], gzip.decompress(data)
                out[base] = data.decode(errors="replace")
    return out


def stdout_of(text):
    """Of a recorded command: what it wrote to standard output."""
    text = text.split("\n", 1)[1] if text.startswith("$ ") else text
    return re.split(r"^--- (?:stderr|rc=\d+)$", text, maxsplit=1, flags=re.M)[0]


def names():
    return sorted(os.path.basename(p)[:-4] for p in glob.glob(os.path.join(MACHINES, "*.tgz")))


class Offline(unittest.TestCase):
    maxDiff = 6000

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.mkdtemp(prefix="mc-render-")
        cls.trees = {}
        for name in names():
            tree = os.path.join(cls.tmp, name)
            cmd = [TOOL, "machine=" + os.path.join(MACHINES, name + ".tgz"), "tree"]
            for folder in FOLDERS:
                r = mctest.execute(cmd + [folder, tree])
                assert r.status == 0 or "No such file" in r.err, r
            cls.trees[name] = (tree, recorded(name))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tmp, ignore_errors=True)

    def each(self):
        self.assertGreaterEqual(len(self.trees), 14)
        for name, (tree, cmds) in self.trees.items():
            yield name, tree, cmds

    def test_lscpu(self):
        mctest.need("lscpu")
        tried = 0
        for name, tree, cmds in self.each():
            for file, args in [("lscpu-e.txt", ["-e"]), ("lscpu-p.txt", ["-p"]), ("lscpu-C.txt", ["-C"]),
                               ("lscpu-p-all.txt", ["-a", "-p=CPU,CORE,SOCKET,NODE,ONLINE"])]:
                if file not in cmds or "rc=0" not in cmds[file]:
                    continue
                with self.subTest(machine=name, file=file):
                    r = mctest.execute(["lscpu", "-s", tree] + args)
                    self.assertEqual(r.status, 0, r)
                    want = stdout_of(cmds[file])
                    if name.startswith("arm64") and os.uname().machine != "aarch64":
                        # lscpu built for x86 says socket where one for arm64 says cluster, and so is the column's width.
                        want = want.replace("Cluster", "Socket").replace("CLUSTER", " SOCKET")
                        r.out, want = (re.sub(" +", " ", t) for t in (r.out, want))
                    self.assertEqual(r.out, want)
                    tried += 1
        self.assertGreater(tried, 30)

    def hwloc(self, tree, *args):
        env = {"HWLOC_FSROOT": tree, "HWLOC_COMPONENTS": "linux,stop", "HWLOC_THISSYSTEM": "0"}
        r = mctest.execute(["lstopo-no-graphics", *args], env=env)
        self.assertEqual(r.status, 0, r)
        return r.out

    def same(self, got, want, flat=False):
        if flat:  # a child more or less of Machine (Misc, PCI) changes which lines hwloc joins
            got, want = (re.sub(r" \+ ", "\n", t).replace("  ", "") for t in (got, want))
        for pattern, _why in HWLOC_NOT_OURS:
            got, want = (re.sub(pattern, "", t, flags=re.M) for t in (got, want))
        self.assertEqual(got, want)

    def test_lstopo(self):
        mctest.need("lstopo-no-graphics")
        tried = 0
        for name, tree, cmds in self.each():
            for file, args in [("lstopo-console-noio.txt", ["--no-io", "--of", "console", "-v"]),
                               ("lstopo-physical.txt", ["-p", "--of", "console", "--no-io"]),
                               ("lstopo-synthetic.txt", ["--of", "synthetic"]),
                               ("lstopo-distances.txt", ["--distances"]),
                               ("lstopo.xml", ["--no-io", "--of", "xml"])]:
                if file not in cmds or (file.endswith(".txt") and "rc=0" not in cmds[file]):
                    continue
                with self.subTest(machine=name, file=file):
                    self.same(self.hwloc(tree, *args), stdout_of(cmds[file]), "physical" in file)
                    tried += 1
        self.assertGreater(tried, 40)

    # Links that lead to parts of /sys which are the host's: its firmware's tables know nothing of our CPUs.
    NOT_SHOWN = {"firmware_node", "of_node"}

    def shown(self, folder):
        """What `ls -la` tells of a folder: {name: (permissions, target)}."""
        out = {}
        for e in os.scandir(folder):
            mode = stat.filemode(e.stat(follow_symlinks=False).st_mode)
            out[e.name] = (mode, os.readlink(e.path) if e.is_symlink() else "")
        return out

    def test_listings(self):
        tried = 0
        for name, tree, cmds in self.each():
            for file in ("ls-cpu.txt", "ls-cpu0.txt", "ls-cpu0-sub.txt", "ls-node0.txt"):
                if file not in cmds:    # a recording by `manycore record`
                    continue
                folder, folders = None, {}
                for line in stdout_of(cmds[file]).splitlines():
                    m = re.match(r"([-dl][-rwx]{9}) .* \S+ +\d+ +\S+ (.*)$", line)
                    if line.endswith(":") and line.startswith("/"):
                        folder = line.rstrip(":/")
                    elif m:
                        folders.setdefault(folder or self.ROOT[file], {})
                        entry, _, target = m[2].partition(" -> ")
                        if entry not in (".", "..") and entry not in self.NOT_SHOWN:
                            folders[folder or self.ROOT[file]][entry] = (m[1], target)
                for path, want in folders.items():
                    with self.subTest(machine=name, folder=path):
                        self.assertEqual(self.shown(tree + path), want)
                        tried += 1
        self.assertGreater(tried, 100)

    ROOT = {"ls-cpu.txt": "/sys/devices/system/cpu", "ls-cpu0.txt": "/sys/devices/system/cpu/cpu0",
            "ls-cpu0-sub.txt": None, "ls-node0.txt": "/sys/devices/system/node/node0"}


if __name__ == "__main__":
    mctest.main()
