# SPDX-License-Identifier: MIT
"""QEMU guests with Debian's kernels, for what is compared with a real kernel (tools/difftest) or needs a host that this one is
not (tests/conformance/compare.py --guest, tools/test-guest). A kernel is fetched once with apt-get into ~/.cache/manycore
and not installed; the guest's files are an initial RAM disk made here. `mcguest.py ARCH NAME` prints a kernel's path."""
import glob, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "manycore")
CONSOLE = [("dev", 0o40755, b""), ("dev/console", 0o20600, b"")]


def die(step, text, status=1):
    print(f"{os.path.basename(sys.argv[0])}: {step}: {text}", file=sys.stderr)
    sys.exit(status)


# Debian's kernels by architecture and name: the package that stands for the newest one, and the suite where the system's own
# package lists have none.
KERNELS = {("amd64", "5.10"): ("linux-image-amd64", "bullseye"), ("amd64", "6.1"): ("linux-image-amd64", None),
           ("amd64", "6.12"): ("linux-image-6.12-amd64", None), ("arm64", "6.1"): ("linux-image-arm64", None),
           ("arm64", "6.12"): ("linux-image-6.12-arm64", None), ("arm64", "16k"): ("linux-image-6.12-arm64-16k", None)}


def sources(suite):
    """Another suite in the mirrors that this system's own package lists are of."""
    uris = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True,
                          check=False).stdout
    out = ""
    for uri in sorted(set(uris.split())):
        name = suite if uri.endswith("/debian/") else suite + "-security" if uri.endswith("/debian-security/") else None
        if name:
            out += f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {uri} {name} main\n"
    return out or die("fetching a kernel", "apt knows no Debian mirror", 77)


def fetch(arch, meta, suite, to):
    """One kernel from the archive. A package state of its own: this system's architectures and lists stay as they are."""
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        for folder in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(tmp, folder))
        options = {"APT::Architecture": arch, "APT::Architectures::": arch, "APT::Sandbox::User": "root",
                   "Dir::State::lists": tmp + "/lists", "Dir::Cache": tmp + "/cache", "Dir::State::status": "/dev/null"}
        if suite:
            with open(os.path.join(tmp, "sources"), "w") as f:
                f.write(sources(suite))
            options.update({"Dir::Etc::sourcelist": tmp + "/sources", "Dir::Etc::sourceparts": "-"})
        options = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]

        def apt(*command):
            r = subprocess.run([*command[:1], *options, *command[1:]], capture_output=True, text=True, cwd=tmp, check=False)
            if r.returncode:
                die("fetching a kernel", f"{' '.join(command)}: {r.stderr[-500:]}", 77)
            return r.stdout

        apt("apt-get", "-q", "update")
        m = re.search(r"Depends: (linux-image-\S+)", apt("apt-cache", "depends", meta))
        if not m:
            die("fetching a kernel", f"{meta} is not in the package lists", 77)
        apt("apt-get", "-q", "download", m.group(1))
        subprocess.check_call(["dpkg-deb", "-x", glob.glob(os.path.join(tmp, "*.deb"))[0], os.path.join(tmp, "x")])
        shutil.copy(glob.glob(os.path.join(tmp, "x", "boot", "vmlinuz-*"))[0], to + ".new")
        os.rename(to + ".new", to)


def kernel(name="6.12", arch="amd64"):
    """Path of Debian's kernel of that name; fetched once."""
    if (arch, name) not in KERNELS:
        die("looking for a kernel", f"there is no '{name}' for {arch}; known: " + " ".join(n for a, n in KERNELS if a == arch))
    path = os.path.join(CACHE, "boot-" + arch, "vmlinuz-" + name)
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fetch(arch, *KERNELS[arch, name], path)
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read()


def libraries(*paths):
    """The libraries that programs are linked with, as entries of the RAM disk, where they lie here."""
    text = subprocess.run(["ldd", *paths], capture_output=True, text=True, check=False).stdout
    return [(lib.lstrip("/"), 0o100755, read(lib)) for lib in sorted(set(re.findall(r"(/\S+) \(0x", text)))]


def program(path, name=None):
    """A program and its libraries."""
    return [((name or path).lstrip("/"), 0o100755, read(path))] + libraries(path)


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


def boot(files, args, machine, end, seconds, vmlinuz=None, append="", log=None):
    """Boots files (init is /init) with init's arguments on QEMU's options `machine`, the kernel `vmlinuz` with `append` on its
    command line; what it printed before the line `end`. `log`: a file that takes what it prints while it runs."""
    if not shutil.which("qemu-system-x86_64"):
        die("booting the guest", "qemu-system-x86_64 is missing; install qemu-system-x86", 77)
    with tempfile.TemporaryDirectory() as tmp:
        image, log = os.path.join(tmp, "initrd"), log or os.path.join(tmp, "log")
        with open(image, "wb") as f:
            f.write(cpio_newc(with_folders(CONSOLE + files)))
        cmd = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-display", "none",
               "-no-reboot", "-serial", "stdio", "-monitor", "none", "-kernel", vmlinuz or kernel(), "-initrd", image,
               "-append", f"console=ttyS0 quiet panic=-1 {append} rdinit=/init -- " + " ".join(args)] + machine
        for attempt in range(3):
            late = False
            with open(log, "wb") as out:
                try:
                    subprocess.run(cmd, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=seconds,
                                   check=False)
                except subprocess.TimeoutExpired:
                    late = True
            text = read(log).decode(errors="replace").replace("\r", "")
            if late:
                die("booting the guest", f"no end within {seconds} s:\n" + text[-2000:])
            # QEMU's threaded emulation now and then loses a timer interrupt at boot: not our subject.
            if "Kernel panic" not in text:
                break
    if end not in text:
        die("running in the guest", "it did not finish:\n" + text[-2000:])
    return text[:text.index(end)]


def init_program(tmp):
    """tests/conformance/guest.c, built in the folder `tmp`, as an entry of the RAM disk: runs each line of /commands."""
    to = os.path.join(tmp, "init")
    subprocess.check_call(["gcc", "-O1", "-static", "-o", to, os.path.join(HERE, "..", "conformance", "guest.c")])
    return ("init", 0o100755, read(to))


def said(text):
    """What each line of /commands said, and its wait status in hexadecimal (None: it did not end)."""
    out = []
    for part in re.split(r"^guest: \d+\n", text, flags=re.M)[1:]:
        status = re.search(r"^guest: \d+ ended with status (\w+)\n?", part, re.M)
        out.append((part[:status.start()] if status else part, status and status.group(1)))
    return out


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: mcguest.py ARCH NAME")
    print(kernel(sys.argv[2], sys.argv[1]))
