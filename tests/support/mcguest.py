# SPDX-License-Identifier: MIT
"""QEMU guests with Debian's Linux 6.12 kernel, for what is compared with a real kernel (tools/difftest) or needs a host
that this one is not (tests/conformance/compare.py --guest). The kernel is fetched once with apt-get into ~/.cache/manycore
and not installed; the guest's files are an initial RAM disk made here."""
import glob, os, re, shutil, subprocess, sys, tempfile

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "manycore")
CONSOLE = [("dev", 0o40755, b""), ("dev/console", 0o20600, b"")]


def die(step, text):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {step}: {text}")


def kernel():
    """Path of a bzImage of Debian's 6.12 kernel; fetched once."""
    found = glob.glob(os.path.join(CACHE, "boot", "vmlinuz-6.12.*"))
    if found:
        return sorted(found)[-1]
    os.makedirs(CACHE, exist_ok=True)
    show = subprocess.run(["apt-cache", "depends", "linux-image-6.12-amd64"], capture_output=True, text=True).stdout
    m = re.search(r"Depends: (linux-image-6\.12\S+)", show)
    if not m:
        die("looking for a kernel", "linux-image-6.12-amd64 is not in the package lists; run apt-get update")
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        if subprocess.call(["apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", m.group(1)], cwd=tmp,
                           stdout=subprocess.DEVNULL) != 0:
            die("downloading the kernel", m.group(1))
        deb = glob.glob(os.path.join(tmp, "*.deb"))[0]
        subprocess.check_call(["dpkg-deb", "-x", deb, os.path.join(tmp, "x")])
        os.makedirs(os.path.join(CACHE, "boot"), exist_ok=True)
        for f in glob.glob(os.path.join(tmp, "x", "boot", "vmlinuz-*")):
            shutil.copy(f, os.path.join(CACHE, "boot"))
    return kernel()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def program(path, name=None):
    """A program and the libraries that it is linked with, as entries of the RAM disk."""
    files = [((name or path).lstrip("/"), 0o100755, read(path))]
    libs = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    for lib in re.findall(r"(/\S+) \(0x", libs):
        files.append((lib.lstrip("/"), 0o100755, read(lib)))
    return files


def with_folders(files):
    """Each file once, its folders in front of it."""
    seen, out = set(), []
    for name, mode, data in files:
        parts = name.split("/")
        for i in range(1, len(parts)):
            folder = "/".join(parts[:i])
            if folder not in seen:
                seen.add(folder)
                out.append((folder, 0o40755, b""))
        if name not in seen:
            seen.add(name)
            out.append((name, mode, data))
    return out


def cpio_newc(files):
    out = []
    for ino, (name, mode, data) in enumerate(files + [("TRAILER!!!", 0, b"")], 1):
        fields = [ino, mode, 0, 0, 1, 0, len(data), 0, 0, 5 if name == "dev/console" else 0,
                  1 if name == "dev/console" else 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        out += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]
    return b"".join(out)


def boot(files, args, machine, end, seconds):
    """Boots files (init is /init) with init's arguments on QEMU's options `machine`; what it printed before the line `end`."""
    if not shutil.which("qemu-system-x86_64"):
        die("booting the guest", "qemu-system-x86_64 is missing; install qemu-system-x86")
    with tempfile.TemporaryDirectory() as tmp:
        image = os.path.join(tmp, "initrd")
        with open(image, "wb") as f:
            f.write(cpio_newc(with_folders(CONSOLE + files)))
        cmd = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-display", "none",
               "-no-reboot", "-serial", "stdio", "-monitor", "none", "-kernel", kernel(), "-initrd", image,
               "-append", "console=ttyS0 quiet panic=-1 rdinit=/init -- " + " ".join(args)] + machine
        for attempt in range(3):
            try:
                r = subprocess.run(cmd, capture_output=True, text=True, errors="replace", timeout=seconds,
                                   stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired as e:
                said = e.stdout or b""
                die("booting the guest", f"no end within {seconds} s:\n" + said.decode(errors="replace")[-2000:])
            # QEMU's threaded emulation now and then loses a timer interrupt at boot: not our subject.
            if "Kernel panic" not in r.stdout:
                break
    text = r.stdout.replace("\r", "")
    if end not in text:
        die("running in the guest", "it did not finish:\n" + text[-2000:])
    return text[:text.index(end)]
