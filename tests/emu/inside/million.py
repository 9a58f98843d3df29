# SPDX-License-Identifier: MIT
"""One move_pages query over as many pages as PostgreSQL asks for at once (pg_shmem_allocations_numa): shared memory,
interleaved over the machine's nodes. Prints what is wrong, or "right" and the seconds, which are for people."""
import array, ctypes, mmap, platform, sys, time

PAGES, NODES = 1 << 20, int(sys.argv[1])
MBIND, MOVE_PAGES = {"x86_64": (237, 279), "aarch64": (235, 239)}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
memory = mmap.mmap(-1, PAGES * 4096, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
mask = ctypes.c_ulong((1 << NODES) - 1)
if libc.syscall(MBIND, ctypes.c_void_p(start), ctypes.c_ulong(PAGES * 4096), 3, ctypes.byref(mask), ctypes.c_ulong(65), 0):
    sys.exit("mbind failed")
MADV_POPULATE_WRITE = 23
if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(PAGES * 4096), MADV_POPULATE_WRITE):
    memory.write(b"\1" * (PAGES * 4096))
pages = array.array("Q", range(start, start + PAGES * 4096, 4096))
status = array.array("i", [-99]) * PAGES
began = time.monotonic()
if libc.syscall(MOVE_PAGES, 0, ctypes.c_ulong(PAGES), ctypes.c_void_p(pages.buffer_info()[0]), None,
                ctypes.c_void_p(status.buffer_info()[0]), 0):
    sys.exit("move_pages failed")
took = time.monotonic() - began
wrong = sum(1 for i in range(PAGES) if status[i] != (status[0] + i) % NODES)
print("right" if not wrong and 0 <= status[0] < NODES else f"{wrong} wrong, first {list(status[:8])}", f"{took:.2f} s")
