#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Job control under a pseudo-terminal: `manycore run` as a job of a shell, and a shell inside it. Every step waits for
the text that shows it is done, never for a time."""
import fcntl, os, pty, re, select, signal, struct, termios, time
import mctest

RUN = f"{mctest.MANYCORE} run --view=%s --smp 8 --nodes 2 --mem 8G -- "


class Terminal:
    def __init__(self, test):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["PS1"] = "outer> "
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.test, self.text = test, ""
        test.addCleanup(self.end)
        self.wait("outer> ")

    def end(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def wait(self, pattern):
        """Reads until the pattern is there; what came before it is dropped."""
        end = time.monotonic() + mctest.LIMIT
        while not (m := re.search(pattern, self.text)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                self.test.fail(f"no {pattern!r} in {self.text!r}")
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        self.text = self.text[m.end():]
        return m

    def say(self, line, pattern):
        os.write(self.fd, line.encode())
        return self.wait(pattern)


class Common:
    def setUp(self):
        super().setUp()
        mctest.need("bash")
        self.t = Terminal(self)
        self.run_it = RUN % self.view

    def test_job(self):
        t = self.t
        t.say(self.run_it + "sh -c 'echo be\"\"gun; exec sleep 300'\n", "begun")
        t.say("\x1a", "Stopped.*\n(.*\n)*outer> ")
        t.say("jobs\n", r"\[1\].*Stopped.*\n(.*\n)*outer> ")
        t.say("fg\n", "sleep 300'\r\n")
        time.sleep(0.2)
        t.say("\x03", "outer> ")
        t.say("echo status=$?\n", "status=130\r\n")

    def test_background(self):
        t = self.t
        t.say(self.run_it + "sh -c 'echo be\"\"gun; sleep 300' &\n", "begun")
        t.say("kill %1; wait %1; echo status=$?\n", "status=143\r\n")

    def test_reads_in_background(self):
        t = self.t
        t.say(self.run_it + "cat &\n", "outer> ")
        t.say("wait %1; jobs; echo do\"\"ne\n", r"Stopped(.*\r\n)+done\r\nouter> ")
        t.say("fg\n", r"fg\r\n.*cat\r\n")
        t.say("hello\n", "hello\r\nhello\r\n")
        t.say("\x04", "outer> ")

    def test_shell_inside(self):
        t = self.t
        t.say(self.run_it + "env PS1='inner> ' bash --norc --noprofile --noediting -i\n", "inner> ")
        t.say("echo cpus=$(nproc)\n", "cpus=8\r\n")
        t.say("sh -c 'echo be\"\"gun; exec sleep 300'\n", "begun")
        t.say("\x1a", "Stopped.*\n(.*\n)*inner> ")
        t.say("fg\n", "sleep 300'\r\n")
        time.sleep(0.2)
        t.say("\x03", "inner> ")
        t.say("suspend -f\n", "Stopped.*\n(.*\n)*outer> ")
        t.say("fg\n", "inner bash|--noediting -i\r\n")
        t.say("echo again=$(nproc)\n", "again=8\r\n")
        t.say("exit 5\n", "outer> ")
        t.say("echo status=$?\n", "status=5\r\n")

    def test_window_size(self):
        t = self.t
        t.say(self.run_it + "bash -c 'trap \"stty size; exit\" WINCH; echo be\"\"gun; while :; do sleep 0.1; done'\n", "begun")
        fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        t.wait("33 77\r\n")

    def test_shell_is_killed(self):
        """The shell is gone while the job is stopped: the job gets SIGHUP and goes on, as any orphaned job does."""
        t = self.t
        out = os.path.join(self.dir, "out")
        t.say(self.run_it + f"bash -c 'trap \"echo hup >{out}; exit\" HUP; echo be\"\"gun; while :; do sleep 0.1; done'\n",
              "begun")
        t.say("\x1a", "Stopped.*\n(.*\n)*outer> ")
        os.kill(t.pid, signal.SIGKILL)
        end = time.monotonic() + mctest.LIMIT
        while not (os.path.exists(out) and os.path.getsize(out)) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertTrue(os.path.exists(out), "it stays stopped")

    def test_suspended_waiter(self):
        """Somebody stops and continues just the process that the shell knows."""
        t = self.t
        t.say(self.run_it + "sh -c 'echo be\"\"gun; exec sleep 300' &\n", "begun")
        t.say("kill -TSTP %1; wait %1; jobs\n", r"Stopped.*\r\n")
        t.say("kill -CONT %1; kill -INT %1; kill -TERM %1; wait %1; echo status=$?\n", r"status=1(43|30)\r\n")


class Namespace(Common, mctest.TestCase):
    view = "namespace"


class Calls(Common, mctest.TestCase):
    view = "calls"


if __name__ == "__main__":
    mctest.main()
