# SPDX-License-Identifier: Apache-2.0
"""What /proc says about a tree of processes, and ways to wait for a file that cost what is measured next to nothing."""
import ctypes
import mmap
import os
import select
import struct
import threading
import time

from harness import wait_until
from harness.process import Process, descendants
from harness.wait import Timeout


def tree(pid):
    """The process and all below it."""
    return [Process(pid)] + descendants(pid)


def _smaps(pid, name):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))


def anonymous(pid):
    """Anonymous memory of a process in bytes: page cache (the store's file, programs, libraries) is not in it."""
    return _smaps(pid, "Anonymous")


def proportional(pid):
    """Resident memory in bytes, page cache that is mapped included; what n processes share counts an nth for each (PSS)."""
    return _smaps(pid, "Pss")


def processor_seconds(pid):
    """By the clock of another process (clock_getcpuclockid(3)): nanoseconds, where /proc has hundredths of a second."""
    return time.clock_gettime(~pid << 3 | 2)


def processor_by_program(family):
    """Processor seconds of a tree so far: {program: seconds}."""
    found = {}
    for each in family:
        found[each.program] = found.get(each.program, 0) + processor_seconds(each.pid)
    return found


def wakeups(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))


class PeakMemory:
    """The most anonymous memory that a tree of processes had at one moment, in bytes: the sum of RssAnon over the processes that
    are there, looked at every 20 ms. Not the sum of each one's own peak, which no moment ever saw; and without page cache,
    which the kernel takes back when it needs it.
    """

    INTERVAL = 0.02

    def __init__(self, pid):
        self.bytes = 0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()
        return self.bytes

    def _run(self):
        while not self._over.is_set():
            self.bytes = max(self.bytes, self._sum(self._pid))
            self._over.wait(self.INTERVAL)

    def _sum(self, pid):
        """By the kernel's own lists of children: a search through all of /proc would cost more than what it looks at."""
        total = 0
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
                total = next((int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon")), 0)
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="utf-8") as file:
                    total += sum(self._sum(int(child)) for child in file.read().split())
        except OSError:
            pass  # it has ended meanwhile
        return total


class Counter:
    """A number in a file that other processes map and add to; to look at it costs them nothing."""

    def __init__(self, path):
        self.path = path
        with open(path, "w+b") as file:
            file.truncate(mmap.PAGESIZE)
            os.fchmod(file.fileno(), 0o666)
            self._map = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    @property
    def value(self):
        return struct.unpack_from("=Q", self._map)[0]

    def fail(self, fails):
        """From now on every run that is counted here fails, or none does (bench/worker.c)."""
        struct.pack_into("=Q", self._map, 8, int(fails))

    def wait(self, count, deadline=600):
        """Waits until it is so much; returns the moment at which that was seen."""
        wait_until(lambda: self.value >= count, lambda: f"{count} runs, {self.value} so far", deadline, 0.002)
        return time.monotonic()


class Growth:
    """Wakes up when a file grows: no polling, which would take one of two processors from what is being measured."""

    IN_MODIFY = 2

    def __init__(self, path):
        self.path = path
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(path), self.IN_MODIFY) < 0:
            raise OSError(ctypes.get_errno(), f"inotify on {path}")

    def wait(self, size, deadline=20):
        """The moment (time.monotonic) at which it was seen to have at least this size."""
        end = time.monotonic() + deadline
        while self.path.stat().st_size < size:
            if not select.select([self._fd], [], [], max(0, end - time.monotonic()))[0]:
                raise Timeout(f"waited {deadline} s for {size} runs; {self.path.stat().st_size} so far")
            os.read(self._fd, 65536)
        return time.monotonic()

    def close(self):
        os.close(self._fd)
