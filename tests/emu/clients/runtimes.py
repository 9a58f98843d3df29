# SPDX-License-Identifier: MIT
"""Language runtimes and allocators that size themselves by the machine."""
import glob
import mctest
from frame import client


@client("python3")
def python(host):
    out = host.run("python3", "-c", """
import os, multiprocessing, threading
print(os.cpu_count(), multiprocessing.cpu_count(), len(os.sched_getaffinity(0)))
os.sched_setaffinity(0, {7, 300})
print(sorted(os.sched_getaffinity(0)))
seen = []
t = threading.Thread(target=lambda: seen.append(sorted(os.sched_getaffinity(0))))
t.start(); t.join(); print(seen)
def work(i): return sorted(os.sched_getaffinity(0)) == [7, 300]
with multiprocessing.Pool(4) as p: print(all(p.map(work, range(100))))
print(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30)
""")
    host.equal(out, "512 512 512\n[7, 300]\n[[7, 300]]\nTrue\n1024\n")


@client("java", nightly=True, feature="java")
def java(host):
    # A heap of its own size: the default is a quarter of a terabyte that isn't there.
    out = host.run("java", "-Xmx512m", "-Xms64m", "-XX:+UseParallelGC", "-XX:+UseNUMA", "-Xlog:gc+init", "-version", limit=180)
    host.matches(out, r"CPUs: 512 total, 512 available")
    host.matches(out, r"NUMA Support: Enabled")
    host.matches(out, r"NUMA Nodes: 8")
    host.write("Cpus.java", """public class Cpus {
    public static void main(String[] a) throws Exception {
        System.out.println(Runtime.getRuntime().availableProcessors());
        System.out.println(java.util.stream.IntStream.range(0, 100000).parallel().sum());
    }
}
""")
    opts = ["-Xmx512m", "-XX:ParallelGCThreads=4", "-XX:CICompilerCount=3"]
    host.equal(host.run("java", *opts, "Cpus.java", limit=180), "512\n704982704\n")
    host.equal(host.run("taskset", "-c", "8-11", "java", *opts, "Cpus.java", limit=180), "4\n704982704\n")


def library(pattern):
    found = sorted(glob.glob(pattern))
    if not found:
        mctest.skip(pattern.split("/")[-1].split(".")[0], "not installed")
    return found[0]


@client()
def mimalloc(host):
    host.run("python3", "-c", "x = [bytearray(100) for i in range(10000)]",
             env={"LD_PRELOAD": library("/usr/lib/*/libmimalloc.so.2"), "MIMALLOC_VERBOSE": "1"})
    host.contains(host.last.err, "using 8 numa regions")


@client()
def jemalloc(host):
    preload = library("/usr/lib/*/libjemalloc.so.2")
    stats = lambda *front, conf="": (host.run(*front, "/bin/true", env={
        "LD_PRELOAD": preload, "MALLOC_CONF": "stats_print:true" + conf}), host.last.err)[1]
    # Four arenas a CPU; with percpu_arena one for each.
    host.contains(stats("env"), "opt.narenas: 2048\n")
    text = stats("env", conf=",percpu_arena:percpu")
    host.contains(text, "opt.narenas: 512\n")
    host.contains(text, 'opt.percpu_arena: "percpu"\n')
