# SPDX-License-Identifier: Apache-2.0
"""What the tests of death share: the libraries that make a process fail and set its clock, and cells that run side by side."""
import concurrent.futures
import ctypes
import os
import shutil
import signal
import struct

import pytest

from harness.setup import BUILD

SHIM = BUILD / "tests" / "death" / "libdeath-shim.so"
CLOCK_SHIM = BUILD / "tests" / "death" / "libclock-shim.so"
LIBC = ctypes.CDLL(None, use_errno=True)

# As enum act of shim.c.
FATAL, GARBAGE, MUTE, EXECUTE, WRITE_ELSEWHERE, FORK, CONNECT, CLOSE, ASK, READ, SIGNAL = \
    256, 512, 513, 514, 515, 516, 517, 518, 519, 520, 1024


def readable(library, programs):
    """A copy beside the programs, where every user can read it."""
    path = next(iter(programs.values())).parents[1] / library.name
    shutil.copy(library, path)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def shim(programs):
    return readable(SHIM, programs)


class Clock:
    """The machine's clock, as the operator sees it."""

    def __init__(self, folder):
        self.path = folder / "ahead"
        self.set(0)
        self.path.chmod(0o644)

    def set(self, ahead):
        """By so many microseconds before the true time."""
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead))


@pytest.fixture
def clock(sandbox, operator, programs):
    clock = Clock(sandbox.subfolder("clock", mode=0o755))
    operator.environment.update(LD_PRELOAD=readable(CLOCK_SHIM, programs), RECONCILED_CLOCK=clock.path)
    return clock


class Value(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("pointer", ctypes.c_void_p)]


def tell(pid, act):
    """A process of the operator that runs with the shim does this now."""
    if LIBC.sigqueue(pid, signal.SIGRTMIN + 5, Value(number=act)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def side_by_side(cells, jobs=6):
    """Runs cells (objects with a name, run() and abandon()) a few at a time; tells of all that failed."""
    trouble = []

    def run(cell):
        try:
            cell.run()
        except Exception as error:  # each must get its turn
            trouble.append(f"---- {cell.name}: {type(error).__name__}: {error}")
            cell.abandon()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, cells))
    assert not trouble, f"{len(trouble)} of {len(cells)} failed\n" + "\n".join(trouble)
