# SPDX-License-Identifier: MIT
"""The frame of the real clients: each is a function that gets a `Host` and uses it to run commands on an emulated machine.

A client is registered by @client; tests/emu/test_clients.py runs each in both views. Nothing in a client knows of views."""
import os, shlex, shutil
import mctest

BIG = "--smp 512,sockets=2,cores=128,threads=2 --nodes 8 --mem 1T"
SOURCES = os.path.dirname(os.path.abspath(__file__))
CLIENTS = []


def client(*needs, nightly=False, feature=None, root=False):
    """needs: programs; feature: the name that a skip carries when they are missing (default: the program's own);
    root: runs as the tests' user, not as an ordinary one."""
    def register(fn):
        CLIENTS.append((fn.__name__, fn, needs, nightly, feature, root))
        return fn
    return register


class Host:
    """Runs commands inside `manycore run` in one view, and outside for preparations."""
    def __init__(self, test, view, uid):
        self.test, self.view, self.uid, self.dir = test, view, uid, test.dir
        if uid is not None and os.getuid() == 0:
            os.chown(self.dir, uid, uid)
        self.env = {"HOME": self.dir, "TMPDIR": self.dir, "LC_ALL": "C.UTF-8", "MANYCORE_MACHINE": None, "LD_PRELOAD": None,
                    # The system's programs, not a version manager's scripts.
                    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def front(self, machine=BIG):
        return [mctest.MANYCORE, "run", "--view=" + self.view] + shlex.split(machine) + ["--"]

    def run(self, *command, machine=BIG, status=0, env=None, limit=None, input=None):
        """Runs inside; returns standard output. command: words, or one string for sh -c."""
        if len(command) == 1:
            command = ["sh", "-c", command[0]]
        r = mctest.execute(self.front(machine) + list(command), env={**self.env, **(env or {})}, uid=self.uid, cwd=self.dir,
                           limit=limit, input=input)
        if status is not None:
            self.test.assertEqual(r.status, status, repr(r))
        self.last = r
        return r.out

    def outside(self, *command, limit=None):
        if len(command) == 1:
            command = ["sh", "-c", command[0]]
        r = mctest.execute(list(command), env=self.env, uid=self.uid, cwd=self.dir, limit=limit)
        self.test.assertEqual(r.status, 0, repr(r))
        return r.out

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def equal(self, a, b):
        self.test.assertEqual(a, b, repr(self.last))

    def contains(self, text, part):
        self.test.assertIn(part, text, repr(self.last))

    def matches(self, text, regex):
        self.test.assertRegex(text, regex, repr(self.last))


def available(needs, feature):
    for p in needs:
        if not shutil.which(p, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
            mctest.skip(feature or p, f"{p} is not installed")
