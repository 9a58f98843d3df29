#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A dozen machines of different shapes, in each view: every pair of sources that says the same thing agrees. What is
compared is in inside/consistency.py."""
import os, shlex, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import mctest

INSIDE = os.path.join(HERE, "inside/consistency.py")
MACHINES = {
    "one": "--smp 1 --mem 1G",
    "two_nodes": "--smp 4 --nodes 2 --mem 8G",
    "threads": "--smp 16,sockets=2,cores=4,threads=2 --nodes 2 --mem 16G",
    "dies_clusters": "--smp 48,sockets=1,dies=2,clusters=2,cores=6,threads=2 --nodes 2 --mem 48G",
    "odd": "--smp 7,cores=7,threads=1 --nodes 3 --mem 10G",
    "hotpluggable": "--smp 4,sockets=1,cores=160,threads=1,maxcpus=160 --mem 2G",
    "offline": "--smp 8 --nodes 2 --mem 8G --offline 3,5-6",
    "memory_only": "--smp 4 --numa node,cpus=0-3,mem=2G --numa node,mem=6G",
    "cpu_only": "--smp 4 --numa node,cpus=0-1,mem=2G --numa node,cpus=2-3,mem=0",
    "distances": "--smp 4 --numa node,cpus=0-1,mem=1G --numa node,cpus=2-3,mem=1G --numa dist,src=0,dst=1,val=31",
    "fake": "--smp 4 --mem 4G --numa fake=4",
    "fake_of_two": "--smp 8 --nodes 2 --mem 8G --numa fake=8",
    "big": "--smp 512,sockets=2,cores=128,threads=2 --nodes 8 --mem 1T",
    "over_1024": "--smp 1088,sockets=2,cores=272,threads=2 --nodes 4 --mem 2T",
    "power": "--machine power-smt8",
    "altra": "--machine altra-2x80",
    "spr_cxl": "--machine spr-2x56-snc4-cxl",
    "pi5": "--machine pi5",
}


class Common:
    def check(self, machine):
        uid = mctest.NOBODY if os.getuid() == 0 else None
        r = mctest.manycore("run", "--view=" + self.view, *shlex.split(machine), "--", "/usr/bin/python3", INSIDE, "emulated", uid=uid,
                            limit=240, env={"MANYCORE_MACHINE": None})
        self.assertEqual(r.status, 0, repr(r))
        self.assertIn("checked", r.out)


class Namespace(Common, mctest.TestCase):
    view = "namespace"


class Calls(Common, mctest.TestCase):
    view = "calls"


for name, machine in MACHINES.items():
    for cls in (Namespace, Calls):
        setattr(cls, "test_" + name, lambda self, machine=machine: self.check(machine))

del cls      # unittest would take it for one more class

if __name__ == "__main__":
    mctest.main()
