#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`manycore populate`: what ends up in memory (mincore's word, through fincore), how it resumes, what stops it, and Ctrl-C."""
import fcntl, glob, json, os, pty, re, shutil, signal, struct, subprocess, sys, tempfile, termios, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import mctest
from mctest import MANYCORE, execute, manycore

MIB = 1 << 20


def in_memory(path):
    """Bytes of the file that the page cache holds."""
    r = execute(["fincore", "--bytes", "--raw", "--noheadings", "--output", "RES", path])
    return int(r.out) if r.status == 0 and r.out.strip() else 0


class Populate(mctest.TestCase):
    def shm(self):
        fd, path = tempfile.mkstemp(dir="/dev/shm", prefix="manycore-test-")
        os.close(fd)
        os.unlink(path)
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        return path

    def document(self, *args, status=0):
        r = self.ok(manycore("populate", "--json", *args), status)
        return json.loads(r.out)

    def test_makes_and_fills(self):
        path = self.shm()
        r = self.ok(manycore("populate", "--size", "24M", path))
        self.assertRegex(r.out, r"(?m)^nodes? [\d,-]+ deferred pages initialised in \d+ms: \d+ of \d+ MiB, \d+ threads?.*" + path)
        self.assertEqual(os.stat(path).st_size, 24 * MIB)
        self.assertEqual(os.stat(path).st_blocks * 512, 24 * MIB)
        self.assertEqual(r.err, "")                        # no bar: not a terminal

    def test_resumes(self):
        path = self.shm()
        self.document("--size", "8M", path)
        with open(path, "r+b") as f:
            f.seek(5 * MIB)
            f.write(b"kept")
        doc = self.document("--size", "32M", "--chunk", "2M", path)
        f = doc["files"][0]
        self.assertTrue(doc["complete"] and f["complete"] and not doc["interrupted"])
        self.assertEqual((f["size"], f["ready"], f["resident"], f["how"]), (32 * MIB, 32 * MIB, 8 * MIB, "write"))
        self.assertEqual(sum(p["ready"] for p in f["parts"]), 32 * MIB)
        with open(path, "rb") as g:
            g.seek(5 * MIB)
            self.assertEqual(g.read(4), b"kept")
        self.assertEqual(self.document(path)["files"][0]["resident"], 32 * MIB)

    def test_warms_page_cache(self):
        mctest.need("fincore")
        if execute(["stat", "-f", "-c", "%T", "/var/tmp"]).out.strip() in ("tmpfs", "ramfs"):
            mctest.skip("disk", "/var/tmp lies in memory")
        # Not where /tmp is a tmpfs: that has no page cache to warm, its files are filled.
        folder = tempfile.mkdtemp(prefix="manycore-test-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "data")
        with open(path, "wb") as f:
            f.write(os.urandom(MIB) * 24)
            f.flush()
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with open(path, "rb") as f:
            before = f.read(1)
        for threads in ("1", "3"):
            with open(path, "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            f = self.document("--threads", threads, path)["files"][0]
            self.assertEqual((f["how"], f["ready"]), ("read", 24 * MIB))
            self.assertEqual(in_memory(path), 24 * MIB)
        st = os.stat(path)
        self.assertEqual(st.st_size, 24 * MIB)
        with open(path, "rb") as f:
            self.assertEqual(f.read(1), before)
        # A file that may not be written can be read in all the same.
        os.chmod(path, 0o444)
        os.chmod(self.dir, 0o755)
        self.ok(execute([MANYCORE, "populate", path], uid=mctest.NOBODY))

    def test_holes_of_a_file_on_disk(self):
        """--write allocates them, also when a read brought them into the page cache before."""
        path = os.path.join(self.dir, "sparse")
        with open(path, "wb") as f:
            f.truncate(8 * MIB)
        self.document("--read", path)
        f = self.document("--write", path)["files"][0]
        self.assertEqual((f["how"], f["ready"]), ("write", 8 * MIB))
        self.assertGreaterEqual(os.stat(path).st_blocks * 512, 8 * MIB)

    def test_several_files_and_one_missing(self):
        a, b = self.shm(), self.shm()
        for p in (a, b):
            with open(p, "wb") as f:
                f.truncate(4 * MIB)
        r = manycore("populate", a, "/nosuch/file", b)
        self.ok(r, 1)
        self.assertIn("/nosuch/file: No such file", r.err)
        self.assertEqual(os.stat(a).st_blocks, os.stat(b).st_blocks)
        self.assertEqual(os.stat(b).st_blocks * 512, 4 * MIB)

    def test_full_file_system(self):
        if os.getuid():
            mctest.skip("root", "mounts")
        script = (f'mount -t tmpfs -o size=8m none {self.dir} && {MANYCORE} populate --json --size 32M {self.dir}/f; s=$?;'
                  f'umount {self.dir}; exit $s')
        r = self.ok(execute(["unshare", "-m", "sh", "-c", script]), 1)
        f = json.loads(r.out)["files"][0]
        self.assertFalse(f["complete"])
        self.assertTrue(6 * MIB <= f["ready"] <= 8 * MIB, f)
        self.assertIn("space", [p["stop"] for p in f["parts"]])
        self.assertNotIn("-1", "".join(p.get("error", "") for p in f["parts"]))
        self.assertIn("goes on from there", r.err)

    def test_hugetlb_file_system(self):
        pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        if os.getuid() or not os.path.exists(pool):
            mctest.skip("hugepages", "needs root and a pool")
        with open(pool, "r+") as f:
            fcntl.flock(f, fcntl.LOCK_EX)                  # as every test that changes it does
            old = int(f.read())
            self.write_pool(pool, old + 8)
            try:
                script = (f'mount -t hugetlbfs -o pagesize=2M none {self.dir} && {MANYCORE} populate --json --hugetlb 2M '
                          f'--size 7M -i all {self.dir}/f; s=$?; stat -c %s,%b {self.dir}/f >&2; umount {self.dir}; exit $s')
                r = execute(["unshare", "-m", "sh", "-c", script])
            finally:
                self.write_pool(pool, old)
        if "pool of 2048 kB" in r.out:
            mctest.skip("hugepages", "others use the pool")
        f = json.loads(self.ok(r).out)["files"][0]
        self.assertEqual(f["page_size"], 2 * MIB)
        self.assertIn(f"{8 * MIB},{8 * MIB // 512}", r.err)

    def write_pool(self, pool, n):
        with open(pool, "w") as f:
            f.write(str(n))

    def test_interrupted(self):
        """SIGINT stops within a chunk, says how far it came, and the same command goes on."""
        path = self.shm()
        # Not split over nodes: what is there lies at the beginning.
        whole = ["-i", "all"] if len(glob.glob("/sys/devices/system/node/node[0-9]*")) > 1 else []
        cmd = [MANYCORE, "populate", "--size", "4G", "--chunk", "2M", "--threads", "1", *whole, path]
        p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.time() + 30
        while time.time() < end and p.poll() is None:
            if os.path.exists(path) and os.stat(path).st_blocks:
                break
            time.sleep(0.001)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=mctest.LIMIT)
        done = os.stat(path).st_blocks * 512
        if p.returncode == 0:
            self.assertEqual(done, 4 << 30)                # was faster than the signal
            return
        self.assertEqual(p.returncode, 130, (out, err))
        told = int(re.search(r"interrupted after (\d+) of 4096 MiB; the same command goes on from there", err).group(1))
        self.assertLessEqual(abs(told - done // MIB), 2)
        self.assertLess(done, 4 << 30)
        os.truncate(path, done)                            # do not take 4 GiB for the test
        f = self.document("--size", str(done // MIB + 8) + "M", *whole, path)["files"][0]
        self.assertTrue(f["complete"])
        self.assertGreaterEqual(f["resident"], done - 8 * MIB)

    def test_bar(self):
        """On a terminal of 60 columns the bar is one line, however long the path."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        path = self.shm() + "-" + "long" * 20
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        r = subprocess.run([MANYCORE, "populate", "--size", "16M", path], stdout=subprocess.PIPE, stderr=slave, timeout=60)
        os.close(slave)
        self.assertEqual(r.returncode, 0)
        text = os.read(master, 1 << 16).decode()
        os.close(master)
        self.assertIn("100%", text)
        for line in re.split(r"[\r\n]", text):
            self.assertLess(len(line.replace("\033[K", "")), 60, line)

    def test_usage(self):
        path = self.shm()
        for args, word in ((["--size", "12Q", path], "12Q"), (["--threads", "0", path], "--threads"), ([], "which file"),
                           (["--threads", "70000", path], "1 to 65536"), (["--read", "--write", path], "not both"),
                           (["--read", "--size", "1M", path], "--read"), (["--hugetlb", "3M", path], "3M"),
                           (["-m", "4000", path], "4000"), (["-m", "0", "-i", "0", path], "one policy"),
                           (["-C", "!all", path], "!all"), (["--nosuch", path], "nosuch")):
            r = self.ok(manycore("populate", *args), 2)
            self.assertIn(word, r.err)
        self.assertFalse(os.path.exists(path))
        r = self.ok(manycore("populate", "--hugetlb", "2M", "--size", "2M", path), 1)
        self.assertIn("mount -t hugetlbfs -o pagesize=2M", r.err)
        self.assertFalse(os.path.exists(path))
        self.assertIn("is a directory", self.ok(manycore("populate", "--read", self.dir), 1).err)
        self.assertIn("not a regular file", self.ok(manycore("populate", "/dev/zero"), 1).err)
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        for args in ([fifo], ["--read", fifo]):            # and does not wait for its other end
            self.assertIn("not a regular file", self.ok(manycore("populate", *args, limit=30), 1).err)
        self.assertIn("an empty name", self.ok(manycore("populate", "--size", "1M", ""), 1).err)
        unmappable = "/sys/kernel/uevent_seqnum"
        if os.path.exists(unmappable):
            self.assertIn("can't be mapped", self.ok(manycore("populate", "--read", unmappable), 1).err)
        if not os.path.exists("/sys/kernel/mm/hugepages/hugepages-1048576kB"):
            self.assertIn("no huge pages of 1024 MiB", self.ok(manycore("populate", "--hugetlb", "1G", "--size", "1G", path), 1).err)
            self.assertFalse(os.path.exists(path))
        # A size that can't be leaves a file as it was; a link to what was made and unmade stays.
        with open(path, "wb") as f:
            f.write(b"kept")
        for size in ("8191P", "0xffffffffffffffff"):
            self.assertIn("64 PiB", self.ok(manycore("populate", "--size", size, path), 1).err)
        self.assertEqual(os.stat(path).st_size, 4)
        os.unlink(path)
        link = os.path.join(self.dir, "link")
        os.symlink(path, link)
        self.ok(manycore("populate", "--size", "8191P", link), 1)
        self.assertTrue(os.path.islink(link))
        self.assertFalse(os.path.exists(path))
        # What this run made and could not use is gone again.
        self.ok(manycore("populate", "--size", "60P", path), 1)
        self.assertFalse(os.path.exists(path))
        self.assertIn("empty", self.ok(manycore("populate", "--read", "/dev/shm/../../etc/../proc/version"), 1).err)
        r = self.ok(manycore("populate", "-m", "all", "-N", "all", "-C", "+0", "--size", "1M", "--strict", path))
        self.ok(manycore("populate", "--help"))


if __name__ == "__main__":
    mctest.main()
