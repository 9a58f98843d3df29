#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The probe under `manycore run` on recorded machines, against what Linux 6.12 answered on them.

usage: compare.py --manycore BUILD/manycore --probe PROBE [--show N] [--guest] [RECORDING ...]

Prints matched/total for each section of each recording. Left out, as said in tests/conformance/README.md: what legitimately
varies (normalize.sh), and what only the guests themselves can answer: env, cpuset, migr.kthread, aff.set.kthread2,
inter.weights, and, where the view can't answer writes, hotplug. The exit status is 1 when any other line differs, but for those of the zero page where the host has none.

With --guest all that runs in a QEMU guest with Debian's Linux 6.12 kernel: a host that has the zero page.
"""
import argparse
import collections
import ctypes
import gzip
import mmap
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import mcguest
# inter.weights: the probe writes the weights inside its recording guests only.
LEFT_OUT = ("env.", "cpuset", "hotplug.cpuset", "migr.kthread", "aff.set.kthread2", "inter.weights")
# Lines that show the shared page of zeroes that a first read maps. A host that gives such a read a page of its own (its kernel
# command line may say so) can't show it: see docs/limits.md.
ZERO_PAGE = ("getmp.untouched-after-node-addr", "mbind.special.readonly", "mbind.special.maps", "inter.getmp-faults-in",
             "movep.query.mixed(0-3 touched,8 zeropage)", "movep.query.ownpid", "movep.query.flags=MOVE",
             "movep.query.flags=MOVE_ALL", "movep.move.mixed-untouched-zeropage", "maps.zeropage")
SECTIONS = ("getmp", "setmp", "mbind", "inter", "movep", "inherit", "affinity", "maps", "hotplug")


def normalize(text):
    run = subprocess.run(["sh", os.path.join(HERE, "normalize.sh")], input=text, capture_output=True, text=True, check=True)
    lines, section = collections.OrderedDict(), "?"
    seen = collections.Counter()
    for line in run.stdout.splitlines():
        if line.startswith("# section "):
            section = line[10:]
        if line.startswith("#") or line.startswith(LEFT_OUT):
            continue
        name = line.split(" | ")[0]
        seen[name] += 1
        if name == "inter.shmanon.maps":  # which nodes have one page more: where the interleaving begins
            line = re.sub(r" N\d+=\d+", "", line)
        lines[(section, name, seen[name])] = line
    return lines


def host_has_zero_page():
    """Reads a page of its own that was never written, and asks for its frame's flags: bit 24 of KPF, or, without the right to,
    whether the page map calls it this process's alone (the zero page never is)."""
    area = mmap.mmap(-1, 16 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area)) + 8 * mmap.PAGESIZE
    ctypes.c_char.from_address(address).value
    with open("/proc/self/pagemap", "rb", buffering=0) as f:
        f.seek(address // mmap.PAGESIZE * 8)
        entry = int.from_bytes(f.read(8), "little")
    return bool(entry >> 63) and not entry >> 56 & 1


def host_free_huge_pages():
    with open("/proc/meminfo") as f:
        return any(int(line.split()[1]) for line in f if line.startswith("HugePages_Free:"))


def sections_of(text):
    return [line[10:] for line in text.splitlines() if line.startswith("# section ") and line[10:] in SECTIONS]


def transcript(args, name):
    with gzip.open(os.path.join(HERE, "transcripts", name + ".txt.gz"), "rt") as f:
        text = f.read()
    return text if args.plug else re.sub(r"^# section hotplug\n(?:hotplug.*\n)*", "", text, flags=re.M)


def answers_writes(args):
    """The view by FUSE: see docs/limits.md."""
    return not args.guest and "--view=calls" not in args.option and os.access("/dev/fuse", os.R_OK | os.W_OK)


def here(args, name):
    """What the probe says on this host."""
    machine = os.path.join(HERE, "..", "machines", name + ".tgz")
    command = [args.manycore, "run", "--machine", machine] + args.option + ["--", args.probe] + sections_of(transcript(args, name))
    run = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout, check=False,
                         env=dict(os.environ, PROBE_PLUG="1"))
    if run.returncode:
        print("%s: exit status %d: %s" % (name, run.returncode, run.stderr[-500:]))
    return run.stdout


def in_guest(args, names):
    """What it says in a guest, for each recording."""
    files = mcguest.program(args.manycore, "manycore") + mcguest.program(args.probe, "probe")
    commands = ""
    for name in names:
        files.append((name + ".tgz", 0o100644, mcguest.read(os.path.join(HERE, "..", "machines", name + ".tgz"))))
        commands += " ".join(["/manycore", "run", "--machine", "/" + name + ".tgz"] + args.option + ["--", "/probe"] +
                             sections_of(transcript(args, name))) + "\n"
    files.append(("commands", 0o100644, commands.encode()))
    with tempfile.TemporaryDirectory() as tmp:
        text = mcguest.boot(files + [mcguest.init_program(tmp)], [], ["-smp", "2", "-m", "3G"], "guest: done",
                            600 + args.timeout * len(names))
    parts = mcguest.said(text)
    for name, (part, status) in zip(names, parts):
        if status != "0":
            print("%s: %s: %s" % (name, "status " + status if status else "no end", part[-500:]))
    return dict(zip(names, (part for part, status in parts)))


def one(args, name, show, said):
    want, have = normalize(transcript(args, name)), normalize(said)
    total, matched, zero = collections.Counter(), collections.Counter(), 0
    for key, line in want.items():
        if key[0] not in SECTIONS:
            continue
        total[key[0]] += 1
        if have.get(key) == line:
            matched[key[0]] += 1
        elif key[1] in ZERO_PAGE and not args.zero_page:
            zero += 1
        elif key[1] == "maps.hugetlb" and args.huge_pages:
            total[key[0]] -= 1  # the recorded machines had no huge pages to map
        elif show > 0:
            show -= 1
            print("- %s\n+ %s" % (line, have.get(key, "(no such line)")))
    print("%s: %d/%d  %s%s" % (name, sum(matched.values()), sum(total.values()),
                               "  ".join("%s %d/%d" % (s, matched[s], total[s]) for s in SECTIONS if total[s]),
                               "  (%d for want of a zero page on this host)" % zero if zero else ""))
    sys.stdout.flush()
    return {(name, s): (matched[s], total[s]) for s in total}, zero


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--manycore", required=True)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show up to N differing lines of each recording")
    parser.add_argument("--guest", action="store_true", help="in a QEMU guest with Debian's 6.12 kernel")
    parser.add_argument("--option", action="append", default=[], help="passed on to run")
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("recording", nargs="*")
    args = parser.parse_args()
    names = args.recording or sorted(f[:-7] for f in os.listdir(os.path.join(HERE, "transcripts")) if "612" in f)
    args.huge_pages = not args.guest and host_free_huge_pages()
    args.plug = answers_writes(args)
    args.zero_page = args.guest or host_has_zero_page()
    guest = in_guest(args, names) if args.guest else {}
    differ = 0
    for name in names:
        sections, zero = one(args, name, args.show, guest[name] if args.guest else here(args, name))
        differ += sum(total - matched for matched, total in sections.values()) - zero
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
