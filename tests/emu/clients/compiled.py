# SPDX-License-Identifier: MIT
"""C in every linkage, Go, OpenMP: programs built here from sources beside this file."""
from frame import BIG, SOURCES, client

PROBE = f"""\
online 512
configured 512
affinity bytes 64 weight 512
short Invalid argument
memory 1048576 MiB
Mems_allowed_list:\t0-7
mems 0 ff
interleave 0 mode 3 mask 6
"""


def pinned(cpu):
    here = f"sched_getcpu {cpu} raw {cpu} node {cpu // 64} stat {cpu}"
    return (f"pinned {cpu}\nself {here}\nthread weight 1\nthread {here}\nchild {here}\n"
            f"Cpus_allowed_list:\t{cpu}\n")


def probe(host, build):
    host.outside(f"{build} -o probe")
    out = host.run("./probe", "0", "300", "511", "512")
    host.equal(out, PROBE + pinned(0) + pinned(300) + pinned(511) + "pin 512 errno 22\n")


@client("gcc")
def c_dynamic(host):
    probe(host, f"gcc -D_GNU_SOURCE -O1 -pthread {SOURCES}/probe.c")


@client("gcc")
def c_static(host):
    probe(host, f"gcc -D_GNU_SOURCE -O1 -static -pthread {SOURCES}/probe.c")


@client("gcc")
def c_static_pie(host):
    probe(host, f"gcc -D_GNU_SOURCE -O1 -static-pie -pthread {SOURCES}/probe.c")


@client("musl-gcc")
def c_musl(host):
    probe(host, f"musl-gcc -D_GNU_SOURCE -O1 -static -pthread {SOURCES}/probe.c")


@client("gcc")
def openmp_libgomp(host):
    openmp(host, f"gcc -fopenmp -D_GNU_SOURCE -O1 {SOURCES}/omp.c -o omp")


@client("clang")
def openmp_libomp(host):
    openmp(host, f"clang -fopenmp -D_GNU_SOURCE -O1 {SOURCES}/omp.c -o omp")


def openmp(host, build):
    host.outside(build)
    for places, count in (("sockets", 2), ("cores", 256), ("threads", 512)):
        # The x86 backend of libomp asks CPUID, which can't be answered: limits.md.
        out = host.run("./omp", env={"OMP_PLACES": places, "OMP_PROC_BIND": "spread", "KMP_TOPOLOGY_METHOD": "cpuinfo"})
        host.contains(out, f"procs 512 places {count}\n")
        host.contains(out, "outside of their place 0\n")


@client("go", nightly=True, feature="go")
def golang(host):
    host.write("main.go", """package main
import ("fmt"; "runtime"; "sync")
func main() {
	var w sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for i := 0; i < 2000; i++ {
		w.Add(1)
		go func() { defer w.Done(); mu.Lock(); n++; mu.Unlock() }()
	}
	w.Wait()
	fmt.Println(runtime.NumCPU(), runtime.GOMAXPROCS(0), n)
}
""")
    host.env["GOCACHE"] = host.dir + "/cache"
    host.env["GO111MODULE"] = "off"
    host.outside("go build -o prog main.go", limit=300)
    host.equal(host.run("./prog"), "512 512 2000\n")
    host.equal(host.run("taskset", "-c", "0-2", "./prog"), "3 3 2000\n")
    # The compiler itself, with 512 CPUs to spread over.
    host.run("go build -a -o again main.go", limit=600)
