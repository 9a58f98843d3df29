# SPDX-License-Identifier: MIT
"""Runs inside `manycore run`: random policies, mappings and touches, after each of which the counters of the nodes must have
moved as the kernel's do and every file that tells them must agree. counters.py SEED ROUNDS; prints "ok" or what differs.

This program's own small needs go to the node that it runs on (node 0): that node's figures may move by a little more."""
import ctypes, mmap, os, random, re, sys, time

DEFAULT, PREFERRED, BIND, INTERLEAVE, LOCAL, MANY = range(6)
MBIND, SET = {"x86_64": (237, 238), "aarch64": (235, 237)}[os.uname().machine]
PAGE = mmap.PAGESIZE
SLACK = 1500
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: small pages are counted, and a huge one has one first toucher
NODE = "/sys/devices/system/node/node%d/%s"


def read(path):
    with open(path) as f:
        return f.read()


def settled():
    time.sleep(0.05)  # figures are at most 20 ms old


def stat(node):
    return {k: int(v) for k, v in (line.split() for line in read(NODE % (node, "numastat")).splitlines())}


def free(node):
    return int(re.search(r"MemFree:\s+(\d+)", read(NODE % (node, "meminfo"))).group(1)) * 1024 // PAGE


def call(nr, *args):
    if libc.syscall(nr, *[ctypes.c_void_p(a) if isinstance(a, int) else a for a in args]) < 0:
        sys.exit("call %d: %s" % (nr, os.strerror(ctypes.get_errno())))


class Area:
    def __init__(self, pages):
        self.map = mmap.mmap(-1, pages * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.pages, self.address = pages, ctypes.addressof(ctypes.c_char.from_buffer(self.map))

    def bind(self, mode, nodes):
        mask = ctypes.c_ulong(sum(1 << n for n in nodes))
        call(MBIND, self.address, self.pages * PAGE, mode, ctypes.byref(mask), 65, 0)

    def touch(self):
        for i in range(self.pages):
            ctypes.c_char.from_address(self.address + i * PAGE).value = b"x"


def where(area, mode, nodes):
    """Pages of the area on each node."""
    at = {n: 0 for n in ALL}
    for i in range(area.pages):
        if mode == INTERLEAVE:
            at[nodes[(area.address // PAGE + i) % len(nodes)]] += 1
        else:
            at[0 if mode in (DEFAULT, LOCAL) or (mode in (BIND, MANY) and 0 in nodes) else nodes[0]] += 1
    return at


def agree():
    """Files that tell the same of one machine."""
    bad = []
    vmstat = dict(line.split() for line in read("/proc/vmstat").splitlines())
    for key in ("hit", "miss", "foreign", "interleave", "local", "other"):
        name = {"interleave": "interleave_hit", "local": "local_node", "other": "other_node"}.get(key, "numa_" + key)
        total = sum(stat(n)[name] for n in ALL)
        if abs(int(vmstat["numa_" + key]) - total) > SLACK:
            bad.append("/proc/vmstat numa_%s %s, nodes %d" % (key, vmstat["numa_" + key], total))
    whole = int(re.search(r"MemFree:\s+(\d+)", read("/proc/meminfo")).group(1)) * 1024 // PAGE
    if abs(whole - sum(free(n) for n in ALL)) > SLACK:
        bad.append("MemFree %d, nodes %d pages" % (whole, sum(free(n) for n in ALL)))
    for n in ALL:
        s, v = stat(n), dict(line.split() for line in read(NODE % (n, "vmstat")).splitlines())
        if s["numa_hit"] + s["numa_miss"] != s["local_node"] + s["other_node"]:
            bad.append("node %d: hit + miss is not local + other: %s" % (n, s))
        if abs(int(v["numa_hit"]) - s["numa_hit"]) > SLACK:
            bad.append("node %d: vmstat numa_hit %s, numastat %d" % (n, v["numa_hit"], s["numa_hit"]))
    if sum(stat(n)["numa_miss"] for n in ALL) != sum(stat(n)["numa_foreign"] for n in ALL):
        bad.append("misses are not foreigns")
    return bad


def check(number):
    mode = random.choice((DEFAULT, PREFERRED, BIND, INTERLEAVE, LOCAL, MANY))
    nodes = sorted(random.sample(ALL, random.randint(1, len(ALL)))) if mode not in (DEFAULT, LOCAL) else []
    if mode in (PREFERRED, BIND, MANY):
        nodes = nodes[:1]  # which of several is nearest is the conformance test's matter
    pages = random.randint(3000, 9000)
    settled()
    before, room = [stat(n) for n in ALL], [free(n) for n in ALL]
    area = Area(pages)
    area.bind(mode, nodes)
    area.touch()
    settled()
    after, left, at, bad = [stat(n) for n in ALL], [free(n) for n in ALL], where(area, mode, nodes), agree()
    for n in ALL:
        slack = SLACK if n == 0 else 0
        moved = {k: after[n][k] - before[n][k] for k in after[n]}
        want = {"numa_hit": at[n], "numa_miss": 0, "numa_foreign": 0, "interleave_hit": at[n] if mode == INTERLEAVE else 0,
                "local_node": at[n] if n == 0 else 0, "other_node": 0 if n == 0 else at[n]}
        bad += ["node %d: %s moved by %d, not %d" % (n, k, moved[k], v) for k, v in want.items()
                if not v <= moved[k] <= v + (slack if v or k in ("numa_hit", "local_node") else 0)]
        if not at[n] <= room[n] - left[n] <= at[n] + slack:
            bad.append("node %d: MemFree fell by %d, not %d" % (n, room[n] - left[n], at[n]))
    del area
    if bad:
        sys.exit("round %d, mode %d, nodes %s, %d pages:\n%s" % (number, mode, nodes, pages, "\n".join(bad)))


random.seed(int(sys.argv[1]))
ALL = [int(m) for m in re.findall(r"node(\d+)", " ".join(os.listdir("/sys/devices/system/node")))]
ALL.sort()
os.sched_setaffinity(0, {0})
for number in range(int(sys.argv[2])):
    check(number)
print("ok")
