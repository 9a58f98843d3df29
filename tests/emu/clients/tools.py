# SPDX-License-Identifier: MIT
"""The tools that people look at machines with, and the ones that build, trace and load them."""
import os, pty, re, select, signal, subprocess, time
import mctest
from frame import BIG, client


@client("numactl", "numastat")
def numactl(host):
    out = host.run("numactl", "-H")
    host.contains(out, "available: 8 nodes (0-7)\n")
    host.contains(out, "node 5 cpus: " + " ".join(str(c) for c in range(320, 384)) + "\n")
    host.contains(out, "node 7 size: 131072 MB\n")
    host.contains(out, "  0:  10  20  20  20  20  20  20  20 \n")
    out = host.run("numactl", "--cpunodebind=2", "--membind=3", "numactl", "-s")
    host.contains(out, "policy: bind\n")
    host.contains(out, "physcpubind: " + " ".join(str(c) for c in range(128, 192)) + " \n")
    host.contains(out, "membind: 3 \n")
    out = host.run("numactl", "--interleave=all", "numactl", "-s")
    host.contains(out, "policy: interleave\n")
    host.contains(out, "interleavemask: 0 1 2 3 4 5 6 7 \n")
    host.matches(host.run("numastat"), r"node7")
    host.run("numactl", "--membind=9", "true", status=1)


@client("taskset", "nproc", "getconf")
def coreutils(host):
    host.equal(host.run("nproc"), "512\n")
    host.equal(host.run("nproc", "--all"), "512\n")
    host.equal(host.run("getconf _NPROCESSORS_ONLN; getconf _NPROCESSORS_CONF"), "512\n512\n")
    host.equal(host.run("taskset", "-c", "5,300-310", "nproc"), "12\n")
    host.matches(host.run("taskset -pc $$"), r"current affinity list: 0-511\n")
    host.equal(host.run("sleep 5 & taskset -pc 77 $! >/dev/null; sed -n /Cpus_allowed_list/p /proc/$!/status; kill $!"),
               "Cpus_allowed_list:\t77\n")


@client("lscpu")
def lscpu(host):
    out = host.run("lscpu")
    for key, value in (("CPU(s)", "512"), ("On-line CPU(s) list", "0-511"), ("Thread(s) per core", "2"),
                       ("Core(s) per socket", "128"), ("Socket(s)", "2"), ("NUMA node(s)", "8"),
                       ("NUMA node7 CPU(s)", "448-511")):
        host.matches(out, rf"(?m)^ *{re.escape(key)}: +{re.escape(value)}$")
    host.equal(len(host.run("lscpu", "-p").splitlines()) - host.last.out.count("#"), 512)
    host.matches(host.run("lscpu", "-e"), r"(?m)^511 +7 +1 +255 ")


@client("lstopo-no-graphics", "hwloc-bind", "hwloc-calc")
def hwloc(host):
    host.equal(host.run("hwloc-calc", "-N", "pu", "all"), "512\n")
    host.equal(host.run("hwloc-calc", "-N", "core", "all"), "256\n")
    host.equal(host.run("hwloc-calc", "-N", "numanode", "all"), "8\n")
    host.matches(host.run("lstopo-no-graphics", "--of", "synthetic"), r"Package:2 .*PU:2")
    host.equal(host.run("hwloc-bind", "core:200", "--", "hwloc-bind", "--get", "--taskset"), host.run(
        "hwloc-calc", "--taskset", "core:200"))
    host.equal(host.run("hwloc-bind", "numanode:3", "--", "nproc"), "64\n")
    host.matches(host.run("hwloc-bind", "--membind", "numanode:5", "--mempolicy", "bind", "--", "hwloc-bind", "--get",
                          "--membind"), r"bind|0x")


@client("top", "vmstat", "free")
def procps(host):
    out = host.run("top", "-b", "-1", "-n", "2", "-d", "0.2", "-w", "200")
    host.matches(out, r"%Cpu511")
    host.matches(out, r"MiB Mem : *1048576")
    out = host.run("vmstat", "1", "3")
    host.equal(len(out.splitlines()), 5)
    host.matches(host.run("vmstat", "-s"), r"1073741824 K total memory")
    host.matches(host.run("free", "-k"), r"Mem: +1073741824 ")


class Terminal:
    """A command under a pseudo-terminal of its own, as a shell's user has it."""
    def __init__(self, host, *command, machine=BIG):
        cmd = host.front(machine) + list(command)
        if host.uid is not None and os.getuid() == 0:
            cmd = ["setpriv", "--reuid", str(host.uid), "--regid", str(host.uid), "--clear-groups"] + cmd
        env = dict(os.environ, TERM="xterm", PS1="ready> ", **{k: v for k, v in host.env.items() if v is not None})
        self.test, self.text = host.test, ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(host.dir)
            os.execvpe(cmd[0], cmd, env)

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                got = os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                return False
            self.text += got
            return bool(got)
        return None

    def expect(self, regex, limit=40):
        end = time.monotonic() + limit
        while True:
            m = re.search(regex, self.text)
            if m:
                self.text = self.text[m.end():]
                return m
            if time.monotonic() > end or self.read(0.5) is False:
                self.stop()
                self.test.fail(f"no {regex!r} in {self.text[-2000:]!r}")

    def send(self, text):
        os.write(self.fd, text.encode())

    def end(self, limit=30):
        """Exit status after the command has ended by itself."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        self.stop()
        self.test.fail(f"no end: {self.text[-2000:]!r}")

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@client("htop")
def htop(host):
    t = Terminal(host, "htop", "--delay=2")
    t.expect(r"(?s)Tasks:|Load average|Uptime")
    time.sleep(1)
    t.send("q")
    host.test.assertEqual(t.end(), 0)


@client("bash")
def bash_jobs(host):
    t = Terminal(host, "bash", "--norc", "--noprofile", "-i")
    t.expect("ready> ")
    t.send("nproc\n")
    t.expect(r"512\r\n")
    t.send("sleep 300\n")
    time.sleep(0.5)
    t.send("\x1a")              # Ctrl-Z
    t.expect(r"Stopped +sleep 300")
    t.send("jobs; bg; fg\n")
    t.expect(r"sleep 300")
    time.sleep(0.5)
    t.send("\x03")              # Ctrl-C
    t.send("echo status $?\n")
    t.expect(r"status 130")
    t.send("(sleep 0.3; exit 7) & wait $!; echo job $?\n")
    t.expect(r"job 7")
    t.send("stty size; exit 5\n")
    host.test.assertEqual(t.end(), 5)


@client("make")
def make(host):
    host.write("Makefile", "all: $(addprefix o/,$(shell seq 600))\no/%: ; @mkdir -p o && nproc >$@\n")
    host.run("make -j$(nproc) >log", limit=240)
    host.equal(host.run("cat o/* | sort | uniq -c | tr -s ' '"), " 600 512\n")


@client("strace")
def strace(host):
    out = host.run("strace -f -o trace sh -c 'nproc; nproc'; grep -c 'sched_getaffinity(0,.*) *= 64' trace")
    host.equal(out, "512\n512\n2\n")


@client("gdb", "nproc")
def gdb(host):
    out = host.run("gdb", "-q", "-batch", "-ex", "run", "-ex", "print $_exitcode", "--args", "nproc", limit=120)
    host.matches(out, r"(?m)^512$")
    host.contains(out, "$1 = 0")


@client("stress-ng")
def stress_ng(host):
    out = host.run("stress-ng", "--affinity", "2", "--cpu", "2", "--numa", "1", "--timeout", "3", "--metrics-brief", limit=120)
    host.contains(host.last.err + out, "successful run completed")
    host.matches(host.last.err + out, r"(?i)numa")
