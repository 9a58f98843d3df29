#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`manycore doctor`: each check tells state, value, meaning and remedy; what is taken away is found, with its remedy, and
the exit status says whether `run` can work. What is taken away is taken by tests/enosys/deny."""
import errno, json, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest
from mctest import MANYCORE, NOBODY, deny, execute, manycore

REQUIRED = {"seccomp-filter", "seccomp-notify", "seccomp-listener", "seccomp-addfd-send", "process-memory", "pidfd"}
# What valgrind and sanitizers change is not of the host.
NEW_USER_NS = "0x10000000"


def examine(*checks, front=(), uid=None):
    r = execute(list(front) + [MANYCORE, "doctor", "--json"] + list(checks), uid=uid)
    doc = json.loads(r.out)
    return r.status, doc, {c["name"]: c for c in doc["checks"]}


class Doctor(mctest.TestCase):
    def test_document(self):
        status, doc, checks = examine()
        self.assertEqual(status, 0 if doc["run"] else 1)
        names = self.ok(manycore("doctor", "--list")).out.split()
        self.assertEqual(list(checks), names)
        self.assertEqual({n for n, c in checks.items() if c["required"]}, REQUIRED)
        for c in checks.values():
            self.assertIn(c["state"], ("ok", "limited", "bad"))
            self.assertTrue(c["value"] and c["meaning"], c)
            if c["state"] != "ok":
                self.assertTrue(c["remedy"], c)
            for key, room in (("value", 95), ("meaning", 239), ("remedy", 319)):
                self.assertLess(len(c[key]), room, c)      # not cut
        self.assertEqual(doc["run"], not any(c["required"] and c["state"] == "bad" for c in checks.values()))

    def test_text(self):
        r = manycore("doctor")
        self.assertIn(r.status, (0, 1))
        for n in manycore("doctor", "--list").out.split():
            self.assertRegex(r.out, rf"(?m)^(ok|limited|bad) +{n} ")
        self.assertIn("'manycore run'", r.out)

    def test_agrees_with_independent_probes(self):
        """tools/lacks asks the kernel on its own."""
        lacks = execute([sys.executable, os.path.join(mctest.TOP, "tools/lacks"), "-v"]).out
        have = {line.split()[1]: line.startswith("has") for line in lacks.splitlines()}
        _, _, checks = examine()
        for feature, check in (("userns", "user-namespace"), ("seccomp-notify", "seccomp-wait-killable"),
                               ("listener", "seccomp-listener"), ("mm_cid", "mm-cid"), ("numa", "mempolicy"),
                               ("perf", "perf"), ("proc-mem", "vdso-patch")):
            with self.subTest(check):
                self.assertEqual(have[feature], checks[check]["state"] == "ok", checks[check])

    def test_usage(self):
        self.assertIn("nosuch", self.ok(manycore("doctor", "nosuch"), 2).err)
        self.assertIn("--nosuch: no such option", self.ok(manycore("doctor", "--nosuch"), 2).err)
        status, doc, checks = examine("rseq", "mm-cid")
        self.assertEqual(set(checks), {"rseq", "mm-cid"})

    def check_denied(self, calls, check, state, uid=None, error=errno.EPERM, text=None):
        status, doc, checks = examine(front=deny(*calls, error=error), uid=uid)
        c = checks[check]
        self.assertEqual(c["state"], state, c)
        self.assertTrue(c["remedy"], c)
        self.assertIn(text or os.strerror(error), c["value"] + c["meaning"])
        works = not any(checks[n]["state"] == "bad" for n in REQUIRED)       # an old kernel may lack others
        self.assertFalse(works and check in REQUIRED and state == "bad")
        self.assertEqual((status, doc["run"]), (0 if works else 1, works), checks)
        return c

    def test_no_unshare(self):
        c = self.check_denied(["unshare"], "user-namespace", "limited", uid=NOBODY)
        self.assertIn("calls view", c["meaning"])
        self.check_denied([f"unshare:0&{NEW_USER_NS}={NEW_USER_NS}"], "user-namespace", "limited", uid=NOBODY)
        self.check_denied(["unshare"], "timer-slack", "limited", uid=NOBODY)

    def test_no_mount(self):
        c = self.check_denied(["mount"], "user-namespace", "limited", uid=NOBODY)
        self.assertTrue(c["value"].startswith("mount"), c)
        if os.getuid() == 0:
            c = self.check_denied(["mount"], "mounts", "limited")
            self.assertIn("calls view", c["meaning"])

    def test_no_fuse(self):
        c = self.check_denied(["mount"], "fuse", "limited", text="tmpfs")
        self.assertIn("/dev/fuse", c["remedy"])

    def test_no_filter(self):
        """A filter that refuses every later one, as some containers have."""
        self.check_denied(["seccomp:0&0xff=1"], "seccomp-filter", "bad")

    def test_old_kernel(self):
        """A kernel without notification, and one without WAIT_KILLABLE_RECV."""
        self.check_denied(["seccomp:0&0xff=2", "seccomp:0&0xff=3"], "seccomp-notify", "bad", error=errno.EINVAL)
        self.check_denied(["seccomp:1&0x20=0x20"], "seccomp-wait-killable", "limited", error=errno.EINVAL)

    def test_no_addfd(self):
        # ioctl(SECCOMP_IOCTL_NOTIF_ADDFD): the probe's round trip breaks where an old kernel's would.
        self.check_denied(["ioctl:1&0xffff=0x2103"], "seccomp-addfd-send", "bad", error=errno.EINVAL)

    def test_listener_taken(self):
        front = [os.path.join(mctest.BUILD, "tests/enosys/deny"), "-l", "--"]
        status, doc, checks = examine(front=front)
        c = checks["seccomp-listener"]
        self.assertEqual((c["state"], c["value"]), ("bad", os.strerror(errno.EBUSY)))
        self.assertIn("another supervisor", c["meaning"])
        self.assertEqual((status, doc["run"]), (1, False))

    def test_no_process_memory(self):
        self.check_denied(["process_vm_readv"], "process-memory", "bad")

    def test_no_pidfd(self):
        self.check_denied(["pidfd_open"], "pidfd", "bad", error=errno.ENOSYS)

    def test_no_perf(self):
        c = self.check_denied(["perf_event_open"], "perf", "limited", error=errno.EACCES)
        self.assertIn("99 %", c["meaning"])

    def test_no_mempolicy(self):
        self.check_denied(["get_mempolicy"], "mempolicy", "limited", error=errno.ENOSYS)

    def test_no_rseq(self):
        self.check_denied(["rseq"], "rseq", "limited", error=errno.ENOSYS)

    def test_no_io_uring(self):
        _, _, checks = examine(front=deny("io_uring_setup"))
        self.assertEqual(checks["io-uring"]["value"], os.strerror(errno.EPERM))

    def test_leaves_nothing(self):
        """No child, mount or file is left; a filter that was tried is not on the doctor itself."""
        with open("/proc/self/mounts") as f:
            before = f.read()
        r = execute(["sh", "-c", f"'{MANYCORE}' doctor >/dev/null; grep -c . /proc/self/mounts; "
                                 "grep -E '^Seccomp_filters' /proc/self/status"])
        self.assertEqual(int(r.out.split()[0]), len(before.splitlines()))


if __name__ == "__main__":
    mctest.main()
