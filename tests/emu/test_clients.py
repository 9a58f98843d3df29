#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real, unmodified programs inside `manycore run`, in both views: the functions in clients/*.py.

By hand: tests/emu/test_clients.py Namespace.test_python"""
import os, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "clients")]
import mctest
import frame, compiled, runtimes, services, tools

NIGHTLY = os.environ.get("MANYCORE_CLIENTS") == "nightly"


class Namespace(mctest.TestCase):
    view = "namespace"


class Calls(mctest.TestCase):
    view = "calls"


def method(fn, needs, feature, root):
    def test(self):
        frame.available(needs, feature)
        uid = None if root or os.getuid() else mctest.NOBODY
        if self.view == "namespace" and mctest.lacks("userns") and uid is not None:
            mctest.skip("userns", "no user namespaces here")
        fn(frame.Host(self, self.view, uid))
    test.__doc__ = fn.__doc__
    return test


for name, fn, needs, nightly, feature, root in frame.CLIENTS:
    if nightly == NIGHTLY:
        for cls in (Namespace, Calls):
            setattr(cls, "test_" + name, method(fn, needs, feature, root))

del cls      # unittest would take it for one more class

if __name__ == "__main__":
    mctest.main()
