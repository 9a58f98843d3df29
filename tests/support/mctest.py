# SPDX-License-Identifier: MIT
"""What the script tests share: the command under test, runs with a time limit, honest skips.

A test is a unittest file that ends in `mctest.main()`. Meson gives MANYCORE (the command) and MANYCORE_BUILD (the build
folder); by hand: tests/cli/test_x.py runs with build/manycore. Skips follow skip.h: under MUST_WORK=1 only what is named
in MANYCORE_LACKS may be skipped, everything else is a failure."""
import os, shutil, subprocess, sys, tempfile, unittest

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(os.environ.get("MANYCORE_BUILD", os.path.join(TOP, "build")))
MANYCORE = os.path.abspath(os.environ.get("MANYCORE", os.path.join(BUILD, "manycore")))
SANITIZER = os.environ.get("MANYCORE_SANITIZER", "")
# Sanitized and shared machines are slow: limits are there to end a hang, not to measure.
SLOW = int(os.environ.get("MC_TEST_SLOW", "1"))            # emulated machines (tools/test-guest)
LIMIT = (300 if SANITIZER else 180) * SLOW
NOBODY = 65534


def lacks(feature):
    return feature in os.environ.get("MANYCORE_LACKS", "").split()


def skip(feature, why):
    """Leaves the test: skipped, or failed when this machine has the feature by tools/lacks."""
    if os.environ.get("MUST_WORK") == "1" and not lacks(feature):
        raise AssertionError(f"MUST_WORK=1: needs {feature}: {why}")
    raise unittest.SkipTest(f"needs {feature}: {why}")


def need(*programs):
    """Skips when a program of the tests' packages is missing; the feature's name is the program's."""
    for p in programs:
        if not shutil.which(p):
            skip(p, "not installed")


class Result:
    def __init__(self, status, out, err, cmd):
        self.status, self.out, self.err, self.cmd = status, out, err, cmd

    def __repr__(self):
        return f"{' '.join(self.cmd)}\nstatus {self.status}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"


def execute(cmd, input=None, env=None, limit=None, uid=None, cwd=None, **more):
    """Runs a command in a process group of its own; a hang ends the whole group and fails the test.
    env: changes to the environment (None removes). uid: as that user, without groups."""
    e = dict(os.environ)
    for k, v in (env or {}).items():
        if v is None:
            e.pop(k, None)
        else:
            e[k] = v
    if uid is not None and os.getuid() == 0:
        cmd = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] + list(cmd)
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    p = subprocess.Popen(cmd, stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL, env=e, cwd=cwd,
                         text=True, errors="replace", start_new_session=True, **more)
    try:
        out, err = p.communicate(input, timeout=limit * SLOW if limit else LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        out, err = p.communicate()
        raise AssertionError(f"no end within {limit * SLOW if limit else LIMIT} s: {Result(None, out or '', err or '', list(cmd))}")
    return Result(p.returncode, out or "", err or "", list(cmd))


def manycore(*args, **more):
    return execute([MANYCORE] + list(args), **more)


def deny(*calls, error=1):
    """The front of a command line under which these system calls fail: see tests/enosys/deny.c."""
    return [os.path.join(BUILD, "tests/enosys/deny"), "-e", str(error)] + list(calls) + ["--"]


def left_by(*pids):
    """Private folders of the runs whose waiters had these pids. Never of others: tests run beside each other."""
    return {os.path.join(top, name) for top in ("/dev/shm", "/tmp", "/var/tmp") if os.path.isdir(top)
            for name in os.listdir(top) for pid in pids if name.startswith(f"manycore.{pid}.")}


class TestCase(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="manycore-test-")
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, True)

    def ok(self, result, status=0):
        self.assertEqual(result.status, status, repr(result))
        return result


def main():
    """Exit status 77 when every test was skipped, as Meson counts it."""
    program = unittest.main(exit=False, verbosity=2)
    r = program.result
    if r.wasSuccessful() and r.testsRun and len(r.skipped) == r.testsRun:
        sys.exit(77)
    sys.exit(0 if r.wasSuccessful() and r.testsRun else 1)
