# SPDX-License-Identifier: MIT
"""The machine of the random sequences, for QEMU (tools/difftest) and for `manycore run` (the replay test)."""
NODES = ["node,nodeid=0,cpus=0-1", "node,nodeid=1,cpus=2-3", "node,nodeid=2", "node,nodeid=3"]
MEM = "512M"
DISTANCES = [(0, 1, 21), (0, 2, 14), (0, 3, 26), (1, 2, 24), (1, 3, 17), (2, 3, 28)]


def distances():
    return [word for a, b, d in DISTANCES for word in ("-numa", f"dist,src={a},dst={b},val={d}")]


def qemu():
    words = ["-smp", "4", "-m", "2G"]
    for i, node in enumerate(NODES):
        words += ["-object", f"memory-backend-ram,id=m{i},size={MEM}", "-numa", f"{node},memdev=m{i}"]
    return words + distances()


def manycore():
    words = ["--smp", "4"]
    for node in NODES:
        words += ["--numa", f"{node},mem={MEM}"]
    return words + ["--numa" if w == "-numa" else w for w in distances()]
