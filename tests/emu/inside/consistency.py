# SPDX-License-Identifier: MIT
"""Runs inside an emulated machine, or by hand on a real one, where it must be silent too: asks every source that says something
of CPUs and nodes and prints one line for each two that disagree. Started by tests/emu/test_consistency.py."""
import ctypes, os, re, shutil, subprocess, sys

libc = ctypes.CDLL(None, use_errno=True)
CPU, NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"
faults = 0


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


def parse(text):
    out = set()
    for part in (text or "").strip().split(","):
        if part:
            a, _, b = part.partition("-")
            out |= set(range(int(a), int(b or a) + 1))
    return out


def hexmask(text):
    return {i for i in range(len(text) * 4) if int(text.replace(",", ""), 16) >> i & 1} if text else set()


def same(what, a, b):
    global faults
    if a != b:
        faults += 1
        show = lambda v: str(sorted(v) if isinstance(v, (set, frozenset)) else v)[:300]
        print(f"{what}: {show(a)} != {show(b)}")


def folders(path, prefix):
    return {int(n[len(prefix):]) for n in os.listdir(path) if re.fullmatch(prefix + r"\d+", n)} if os.path.isdir(path) else set()


def run(*cmd):
    try:
        r = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, stdin=subprocess.DEVNULL)
        return r.stdout if r.returncode == 0 else None
    except FileNotFoundError:
        return None


def getcpu():
    cpu, node = ctypes.c_uint(9999), ctypes.c_uint(9999)
    libc.getcpu(ctypes.byref(cpu), ctypes.byref(node))
    return cpu.value, node.value


online, possible, present = (parse(read(f"{CPU}/{n}")) for n in ("online", "possible", "present"))
allowed = os.sched_getaffinity(0)
wide = max(possible) + 1

# ---- which CPUs there are
same("present of possible", present - possible, set())
same("online of present", online - present, set())
same("offline file", parse(read(f"{CPU}/offline")) & possible, possible - online)
same("cpuN folders, present", folders(CPU, "cpu"), present)
for n in sorted(present):
    state = read(f"{CPU}/cpu{n}/online")
    if state is not None:
        same(f"cpu{n}/online", int(state), int(n in online))
same("bus/cpu/devices, cpuN folders", folders("/sys/bus/cpu/devices", "cpu"), folders(CPU, "cpu"))
info = {int(n) for n in re.findall(r"^processor\s*: (\d+)", read("/proc/cpuinfo"), re.M)}
same("/proc/cpuinfo, online", info, online)
same("/proc/stat, online", {int(n) for n in re.findall(r"^cpu(\d+) ", read("/proc/stat"), re.M)}, online)
same("/proc/interrupts, online", {int(n) for n in re.findall(r"CPU(\d+)", read("/proc/interrupts").split("\n")[0])}, online)
same("/proc/softirqs, possible", {int(n) for n in re.findall(r"CPU(\d+)", read("/proc/softirqs").split("\n")[0])}, possible)
if read("/proc/schedstat"):
    same("/proc/schedstat, online", {int(n) for n in re.findall(r"^cpu(\d+) ", read("/proc/schedstat"), re.M)}, online)
same("sysconf ONLN, online", os.sysconf("SC_NPROCESSORS_ONLN"), len(online))
# glibc takes the file possible; older ones count folders.
if os.sysconf("SC_NPROCESSORS_CONF") != len(present):
    same("sysconf CONF, possible", os.sysconf("SC_NPROCESSORS_CONF"), len(possible))

# ---- which of them this process may use
same("affinity of online", allowed - online, set())
for who in ("/proc/self/status", "/proc/thread-self/status", f"/proc/{os.getpid()}/status", f"/proc/self/task/{os.getpid()}/status"):
    text = read(who) or ""
    listed = parse((re.search(r"^Cpus_allowed_list:\s*(\S*)", text, re.M) or [0, ""])[1])
    same(f"{who} Cpus_allowed_list, affinity", listed & online, allowed)
    same(f"{who} Cpus_allowed, list", hexmask((re.search(r"^Cpus_allowed:\s*(\S*)", text, re.M) or [0, ""])[1]), listed)
nproc = run("nproc")
if nproc:
    same("nproc, affinity", int(nproc), len(allowed))

# ---- topology of the online ones
def mask_pair(path_list, path_mask):
    a, b = read(path_list), read(path_mask)
    if a is not None and b is not None:
        same(f"{path_list}, {path_mask}", parse(a), hexmask(b.strip()))
    return frozenset(parse(a)) if a is not None else None


sets = {}
# Of very wide machines every k-th CPU: there are ten thousands of files.
for n in sorted(online)[:: max(1, len(online) // 96)]:
    top = f"{CPU}/cpu{n}/topology"
    for key, mask in (("thread_siblings_list", "thread_siblings"), ("core_siblings_list", "core_siblings"),
                      ("core_cpus_list", "core_cpus"), ("package_cpus_list", "package_cpus"), ("die_cpus_list", "die_cpus"),
                      ("cluster_cpus_list", "cluster_cpus")):
        s = mask_pair(f"{top}/{key}", f"{top}/{mask}")
        if s is not None:
            sets.setdefault(key, {})[n] = s
    for index in sorted(folders(f"{CPU}/cpu{n}/cache", "index")):
        s = mask_pair(f"{CPU}/cpu{n}/cache/index{index}/shared_cpu_list", f"{CPU}/cpu{n}/cache/index{index}/shared_cpu_map")
        if s is not None:
            sets.setdefault(f"cache{index}", {})[n] = s
for key, by_cpu in sets.items():
    for n, s in by_cpu.items():
        same(f"cpu{n} {key}: itself and online ones only", (n in s, s - online), (True, set()))
        for other in s:
            if other in by_cpu and by_cpu[other] != s:
                same(f"{key} of cpu{n} and cpu{other}", s, by_cpu.get(other))
                break
for key, ids in (("package_cpus_list", "physical_package_id"),):
    for n, s in sets.get(key, {}).items():
        same(f"cpu{n} {ids}", {read(f"{CPU}/cpu{m}/topology/{ids}") for m in s if m in sets[key]} - {read(f"{CPU}/cpu{n}/topology/{ids}")}, set())
same("thread and core_cpus", sets.get("thread_siblings_list"), sets.get("core_cpus_list"))
same("core_siblings and package_cpus", sets.get("core_siblings_list"), sets.get("package_cpus_list"))
packages = {m.group(1): m.group(2) for m in re.finditer(r"^processor\s*: (\d+)\n(?:.+\n)*?physical id\s*: (\d+)", read("/proc/cpuinfo"), re.M)}
for n, p in list(packages.items())[:: max(1, len(packages) // 96)]:
    same(f"cpu{n} package in /proc/cpuinfo", p, (read(f"{CPU}/cpu{n}/topology/physical_package_id") or "").strip())
for n in sorted(present - online):
    same(f"offline cpu{n} has no topology", os.path.isdir(f"{CPU}/cpu{n}/topology"), False)

# ---- memory nodes
numa = os.path.isdir(NODE)
nodes = parse(read(f"{NODE}/online")) if numa else set()
total = int(re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo"))[1])
if numa:
    same("nodeN folders, online", folders(NODE, "node"), nodes)
    same("bus/node/devices, online", folders("/sys/bus/node/devices", "node"), nodes)
    cpus, linked, memory = {}, {}, {}
    for n in sorted(nodes):
        cpus[n] = mask_pair(f"{NODE}/node{n}/cpulist", f"{NODE}/node{n}/cpumap")
        linked[n] = folders(f"{NODE}/node{n}", "cpu")
        meminfo = read(f"{NODE}/node{n}/meminfo")
        memory[n] = int(re.search(rf"^Node {n} MemTotal:\s+(\d+) kB", meminfo, re.M)[1])
        free = int(re.search(rf"^Node {n} MemFree:\s+(\d+) kB", meminfo, re.M)[1])
        used = int(re.search(rf"^Node {n} MemUsed:\s+(\d+) kB", meminfo, re.M)[1])
        same(f"node{n} total = free + used", memory[n], free + used)
        distance = [int(d) for d in read(f"{NODE}/node{n}/distance").split()]
        same(f"node{n} distances", (len(distance), distance[sorted(nodes).index(n)]), (len(nodes), 10))
        same(f"node{n}: its own CPUs are in its list", (linked[n] & online) - cpus[n], set())
        for c in linked[n] & online:
            same(f"cpu{c}: link to its node", folders(f"{CPU}/cpu{c}", "node"), {n})
    same("CPUs of nodes, online", set().union(*cpus.values()), online)
    same("links of nodes, online", set().union(*linked.values()) & online, online)
    own = {c: n for n in linked for c in linked[n]}
    with_memory = {n for n in nodes if memory[n]}
    same("has_memory", parse(read(f"{NODE}/has_memory")), with_memory)
    # Under numa=fake only nodes with CPUs of their own, or more; never one without any.
    same("has_cpu of nodes with CPUs", parse(read(f"{NODE}/has_cpu")) - {n for n in nodes if cpus[n]}, set())
    same("nodes with linked CPUs in has_cpu", {n for n in nodes if linked[n] & online} - parse(read(f"{NODE}/has_cpu")), set())
    difference = abs(sum(memory.values()) - total)
    if "emulated" in sys.argv[1:]:      # memory added after boot or by a balloon is in no node of some hosts
        same("sum of nodes' MemTotal near /proc/meminfo's", difference * 50 <= total, True)
    zones = {int(n) for n in re.findall(r"^Node (\d+), zone", read("/proc/zoneinfo"), re.M)}
    same("/proc/zoneinfo has nodes with memory", with_memory - zones, set())
    same("/proc/buddyinfo's nodes", {int(n) for n in re.findall(r"^Node (\d+), zone", read("/proc/buddyinfo") or "", re.M)} - zones, set())
    mems = parse(re.search(r"^Mems_allowed_list:\s*(\S*)", read("/proc/self/status"), re.M)[1])
    same("Mems_allowed of nodes", mems - nodes, set())
    mask = (ctypes.c_ulong * 512)()
    if libc.syscall(239 if os.uname().machine == "x86_64" else 236, None, mask, ctypes.c_ulong(32768), None, 4) == 0:
        same("get_mempolicy(MEMS_ALLOWED), status", {i for i in range(32768) if mask[i // 64] >> i % 64 & 1}, mems)
    out = run("numactl", "-H")
    if out:
        told = {int(n): {int(c) for c in s.split()} for n, s in re.findall(r"^node (\d+) cpus:(.*)$", out, re.M)}
        same("numactl -H CPUs", told, {n: set(cpus[n]) for n in told})
        same("numactl -H nodes", set(told), nodes)
        same("numactl -H sizes", {int(n): int(s) for n, s in re.findall(r"^node (\d+) size: (\d+) MB", out, re.M)},
             {n: memory[n] // 1024 for n in nodes})
else:
    own = {}

# ---- where a pinned thread says it is
picked = sorted(allowed)[:: max(1, len(allowed) // 24)] + [max(allowed)]
for c in picked:
    os.sched_setaffinity(0, {c})
    cpu, node = getcpu()
    same(f"getcpu on cpu{c}", cpu, c)
    if own:
        same(f"node by getcpu on cpu{c}", node, own[c])
    stat = read("/proc/self/stat").rsplit(")", 1)[1].split()
    same(f"/proc/self/stat on cpu{c}", int(stat[36]), c)
os.sched_setaffinity(0, allowed)

# ---- what tools make of it
out = run("lscpu", "-p=CPU,NODE")
if out:
    rows = [line.split(",") for line in out.splitlines() if not line.startswith("#")]
    same("lscpu -p, online", {int(r[0]) for r in rows}, online)
if shutil.which("hwloc-calc"):
    same("hwloc PUs, usable", run("hwloc-calc", "-N", "pu", "all").strip(), str(len(online)))
free = run("free", "-k")
if free:
    same("free, MemTotal", int(free.split()[7]), total)
page = os.sysconf("SC_PAGE_SIZE")
same("sysinfo, MemTotal", os.sysconf("SC_PHYS_PAGES") * page // 1024, total)
print(f"checked {len(online)} CPUs, {len(nodes)} nodes")
sys.exit(1 if faults else 0)
