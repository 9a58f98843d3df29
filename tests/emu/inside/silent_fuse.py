#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A FUSE server that answers one process only, and never anybody else: silent_fuse.py FOLDER CASE. What the case asks the
kernel for, the emulator must do without asking the server, or without waiting for it. Prints what the case saw; exit status 3:
no FUSE here. The file system has one file, `f`, of one page."""
import ctypes, errno, os, struct, sys, time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
X86 = os.uname().machine == "x86_64"
LOOKUP, GETATTR, SETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR = 1, 3, 4, 14, 15, 18, 25, 26, 27, 29
CPU = b"/sys/devices/system/cpu/online"


def attr(node):
    mode = 0o40755 if node == 1 else 0o100644
    return struct.pack("QQQQQQIIIIIIIIII", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0)


def serve(dev, friend, page):
    """page None: nobody is ever given the file's memory."""
    while True:
        try:
            ask = os.read(dev, 1 << 18)
        except OSError as e:
            if e.errno in (errno.ENOENT, errno.EINTR):
                continue
            os._exit(0)     # unmounted
        _, op, unique, node, _, _, pid, _ = struct.unpack_from("IIQQIIII", ask)
        error, out = 0, b""
        if op == INIT:
            out = struct.pack("IIIIHHIII28x", 7, 31, 1 << 16, 0, 4, 3, 4096, 1, 1)
        elif op in (READ,) and page is None:
            continue        # by whomever: read-ahead has any pid
        elif pid and pid != friend:
            continue
        elif op == LOOKUP and ask[40:] == b"f\0":
            out = struct.pack("QQQQII", 2, 0, 0, 0, 0, 0) + attr(2)
        elif op == LOOKUP:
            error = -errno.ENOENT
        elif op in (GETATTR, SETATTR):
            out = struct.pack("QII", 0, 0, 0) + attr(node)
        elif op in (OPEN, OPENDIR):
            out = struct.pack("QII", 1, 0, 0)
        elif op == READ:
            out = page
        elif op not in (FLUSH, RELEASE, RELEASEDIR):
            error = -errno.ENOSYS
        os.write(dev, struct.pack("IiQ", 16 + len(out), error, unique) + out)


def start(at, page=b"\0" * 4096, stays=False):
    """Mounts, in a mount namespace of its own, and leaves a server behind that ends with this process, or stays."""
    if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):
        sys.exit(3)
    try:
        dev = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        sys.exit(3)
    options = f"fd={dev},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other".encode()
    if libc.mount(b"silent", at.encode(), b"fuse.silent", 6, options):
        sys.exit(3)
    friend = os.getpid()
    server = os.fork()
    if not server:
        if stays:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.dup2(1, 2)
        else:
            libc.prctl(1, 9)
        serve(dev, friend, page)
    os.close(dev)
    return server


def policy(at):
    """A policy changes: what is open of shared memory is looked through."""
    start(at)
    fd = os.open(at + "/f", os.O_RDONLY)
    print(libc.syscall(238 if X86 else 237, 1, ctypes.byref(ctypes.c_ulong(1)), 64), os.readlink(f"/proc/self/fd/{fd}") == at + "/f")


def cut(at):
    """A file with a policy's pages becomes shorter, or has a hole."""
    libc.syscall(238 if X86 else 237, 1, ctypes.byref(ctypes.c_ulong(1)), 64)
    start(at)
    fd = os.open(at + "/f", os.O_RDWR)
    print(libc.ftruncate(fd, 4096), libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4096)), ctypes.get_errno())


def watch(at):
    """A descriptor that is not inotify's is not taken."""
    start(at)
    fd = os.open(at + "/f", os.O_RDONLY)
    print(libc.inotify_add_watch(fd, CPU, 0x20), ctypes.get_errno())


def root(at):
    """The caller's root folder is a file system's that does not answer."""
    start(at)
    os.chroot(at)
    os.chdir("/")
    try:
        print(os.close(os.open(CPU, os.O_RDONLY)))
    except OSError as e:
        print(errno.errorcode[e.errno])


def callers(fd, nr):
    """Processes whose path lies in the file's memory."""
    pids = []
    r, w = os.pipe()
    memory = libc.mmap(None, 4096, 1, 2, fd, 0)
    os.close(fd)    # whose end would ask the server in each process
    for i in range(nr):
        pids.append(os.fork())
        if not pids[-1]:
            os.write(w, b"x")
            libc.openat(-100, ctypes.c_void_p(memory), 0)
            os._exit(4)
        os.read(r, 1)
    time.sleep(1)
    return pids


def others():
    """Is another process answered?"""
    pid = os.fork()
    if not pid:
        os.sched_setaffinity(0, {1})
        os._exit(os.sched_getaffinity(0) != {1})
    return os.waitpid(pid, 0)[1]


def memory(at):
    """Paths in memory that never comes, of more processes than there are receivers, until the server ends. (Whoever has
    asked it can't even be killed before.)"""
    server = start(at, None)
    pids = callers(os.open(at + "/f", os.O_RDONLY), 20)
    print(others(), end=" ", flush=True)
    os.kill(server, 9)
    print({os.waitpid(pid, 0)[1] >> 8 for pid in pids}, others())


def left(at):
    """One of those is killed, and the command ends while the server stays."""
    server = start(at, None, True)
    pid, = callers(os.open(at + "/f", os.O_RDONLY), 1)
    os.kill(pid, 9)
    print(server, os.waitpid(pid, 0)[1], others())


CASES = {f.__name__: f for f in (policy, cut, watch, root, memory, left)}

if __name__ == "__main__":
    CASES[sys.argv[2]](sys.argv[1])
    sys.stdout.flush()
