#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each machine recorded in tests/machines: the commands recorded there, run inside `manycore run --machine RECORDING`, print
what they printed on the machine. A test over data: a new recording is taken up without a line here.

What may differ is listed in EXCEPTIONS and DROPPED, one by one, each with its reason. By hand, with all differences:
tests/emu/test_recordings.py Namespace.test_x86_612_2n16"""
import difflib, glob, gzip, os, re, sys, tarfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest

MACHINES = os.path.join(mctest.TOP, "tests/machines")

# (recording, file of cmd/) by patterns -> why the file is not compared at all.
EXCEPTIONS = [
    ("*", "dmesg*", "the kernel's log: the host's kernel stays"),
    ("*", "lstopo.xml", "compared as lstopo-*.txt; the XML holds CPUID, DMI and PCI of the machine"),
    ("*", "mpol-exec-maps*", "numa_maps of the guest's static busybox: other files are mapped by the programs here"),
    ("*", "numastat*", "counters of a machine that has just booted; the header is compared as numastat-nodes"),
    ("*", "taskset-p1*", "affinity of process 1, which is outside of the emulated machine"),
    ("*", "numactl-taskset*", "the same"),
    ("*", "lscpu-J*", "the lines of lscpu.txt once more, as JSON"),
    ("*", "hwloc-info*", "counts of PCI and Misc objects, which are the host's; the rest is in lstopo-*.txt"),
    ("*", "getconf-phys*", "MemTotal of /proc/meminfo is smaller than the nodes' sum by what the kernel took after boot"),
    ("arm64*", "lscpu-e*", "columns are chosen by uname's architecture, which stays the host's: CLUSTER for SOCKET"),
    ("arm64*", "lscpu-y*", "the same"),
    ("arm64*", "lscpu.txt", "the same: fields of x86 and of arm64 differ"),
    ("arm64*", "lscpu-p*", "the same: the Socket column holds clusters"),
]

# file of cmd/ -> patterns of lines that are left out on both sides, each with its reason.
DROPPED = {
    "numactl-H*": [(r"^node \d+ free:", "free memory moves")],
    "lscpu*": [
        (r"^(Vendor ID|Model name|CPU family|Model|Stepping|Hypervisor vendor|Virtualization|Virtualization type|"
         r"CPU op-mode\(s\)|Address sizes|Architecture|Byte Order|BogoMIPS|Flags|Frequency boost|CPU( max| min)? MHz|"
         r"CPU\(s\) scaling MHz):", "CPUID and uname are the host's"),
        (r"^BIOS ", "DMI is the host's"),
        (r"^Vulnerability ", "recorded with kernels that know other ones; the folder itself is compared by ls-cpu"),
    ],
    "lstopo*": [
        (r"^ *(HostBridge|PCI|PCIBridge|Bridge|Net|Block|OpenFabrics|CoProc|GPU|Misc|OSDev)\b", "I/O devices are the host's"),
        (r"^# ", "counts of I/O and Misc objects that were left out"),
        (r"^\(pass |^depth |^Special depth", "the same"),
    ],
    "ls-*": [
        (r" \.\.?$", "the folder's own and its parent's lines"),
        (r"^total", "blocks"),
        (r" (firmware_node|of_node) -> ", "links to the firmware's description of the machine, which is not shown"),
    ],
}

# Parts of a line that are left out on both sides.
REPLACED = {
    "lstopo*": [
        # The Machine line carries DMI and the kernel's name; packages carry CPUID's words.
        (r"(DMI|CPU|LinuxCgroup|OSName|OSRelease|OSVersion|HostName|Architecture|hwlocVersion|ProcessName|Backend|"
         r"MemoryMode|Soc)\w*=(\"[^\"]*\"|\S*)", ""),
        (r"Inclusive=\d", ""),         # CPUID's word, by hwloc's x86 backend
        (r" +", " "),
        (r"\( *", "("), (r" *\)", ")"), (r" \(\)", ""),
        # An object is put on its parent's line when it is the only child; I/O objects of the host are children too.
        (r"^ | \+ ", "\n"),
    ],
    # Permissions, size and name; owners are nobody's in a user namespace, times are the host's.
    "ls-*": [
        (r"^(\S+)\s+\d+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+\s+(.*)$", r"\1 \3"),
    ],
}


def select(table, name):
    import fnmatch
    return [x for pattern, entries in table.items() if fnmatch.fnmatch(name, pattern) for x in entries]


def exception(recording, name):
    import fnmatch
    return any(fnmatch.fnmatch(recording, r) and fnmatch.fnmatch(name, n) for r, n, _ in EXCEPTIONS)


def normal(name, text):
    out = []
    for line in text.replace("\r", "").splitlines():
        if any(re.search(p, line) for p, _ in select(DROPPED, name)):
            continue
        for pattern, by in select(REPLACED, name):
            line = re.sub(pattern, by, line)
        out += [part.rstrip() for part in line.split("\n") if part]
    return out


# Words of a command line that are replaced -> by what, why.
REWRITTEN = [
    ("grep -E allowed", "sed -n /allowed/p", "GNU grep opens with O_NOCTTY, which is not seen without --strict: limits.md"),
]

# What was recorded without its command line: cmd/ls-*.txt, by busybox; made here by the same calls.
SPECIAL = {
    "ls-cpu.txt": "ls -la /sys/devices/system/cpu/",
    "ls-cpu0.txt": "ls -la /sys/devices/system/cpu/cpu0/",
    "ls-node0.txt": None,
    "ls-cpu0-sub.txt": None,
    "memory-blocks.txt": None,
}


class Recording:
    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path).rsplit(".tgz")[0]
        self.commands = {}      # file -> (command line, what it printed, its status)
        with tarfile.open(path) as tar:
            for m in tar:
                parts = m.name.split("/")
                if "cmd" not in parts[:-1] or not m.isfile():
                    continue
                data = tar.extractfile(m).read()
                name = parts[-1]
                if name.endswith(".gz"):
                    data, name = gzip.decompress(data), name[:-3]
                if not exception(self.name, name):
                    self.take(name, data.decode(errors="replace"))

    def take(self, name, text):
        if not text.startswith("$ "):
            if SPECIAL.get(name):
                self.commands[name] = (SPECIAL[name], text, 0)
            return
        first, _, rest = text.partition("\n")
        rest, _, status = rest.rpartition("--- rc=")
        out, _, _ = rest.partition("--- stderr\n")
        # Some lines lie after the last newline of a command that printed none.
        command = first[2:].replace("/usr/bin/", "")
        for before, after, _ in REWRITTEN:
            command = command.replace(before, after)
        self.commands[name] = (command, out, int(status.strip() or 0))


def driver(commands):
    """A shell script that runs all commands in one emulated machine, so that it is started once."""
    lines = ["export LC_ALL=C.UTF-8 HWLOC_HIDE_ERRORS=2", "unset HWLOC_FSROOT"]
    for i, (command, _, _) in enumerate(commands):
        lines.append(f"{{ {command}\n}} >{i}.out 2>{i}.err </dev/null; echo $? >{i}.status")
    return "\n".join(lines) + "\n"


class Common:
    def compare(self, path):
        mctest.need("numactl", "lscpu", "lstopo-no-graphics")
        uid = mctest.NOBODY if os.getuid() == 0 else None
        if uid is not None:
            os.chown(self.dir, uid, uid)
        rec = Recording(path)
        names = sorted(rec.commands)
        self.assertGreaterEqual(len(names), 8, "the recording has no commands")
        with open(os.path.join(self.dir, "driver"), "w") as f:
            f.write(driver([rec.commands[n] for n in names]))
        r = mctest.manycore("run", "--view=" + self.view, "--machine", path, "--", "sh", "driver", uid=uid, cwd=self.dir,
                            limit=300, env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                            "MANYCORE_MACHINE": None, "HOME": self.dir})
        self.assertEqual(r.status, 0, repr(r))
        faults = []
        for i, name in enumerate(names):
            command, expected, status = rec.commands[name]
            got, got_status = (self.read(f"{i}.out"), int(self.read(f"{i}.status")))
            a, b = normal(name, expected), normal(name, got)
            # A program of another version may fail with another number, but must fail.
            if a != b or bool(status) != bool(got_status):
                diff = "\n".join(list(difflib.unified_diff(a, b, "recorded", "inside", lineterm="", n=1))[:30])
                faults.append(f"== {name}: {command} (status {status}, inside {got_status})\n{diff}\n{self.read(f'{i}.err')[-300:]}")
        self.assertEqual(faults, [], f"{len(faults)} of {len(names)} differ:\n" + "\n".join(faults))

    def read(self, name):
        with open(os.path.join(self.dir, name), errors="replace") as f:
            return f.read()


class Namespace(Common, mctest.TestCase):
    view = "namespace"


class Calls(Common, mctest.TestCase):
    view = "calls"


for path in sorted(glob.glob(os.path.join(MACHINES, "*.tgz"))):
    name = "test_" + re.sub(r"\W", "_", os.path.basename(path)[:-4])
    for cls in (Namespace, Calls):
        setattr(cls, name, lambda self, path=path: self.compare(path))

del cls      # unittest would take it for one more class

if __name__ == "__main__":
    mctest.main()
