# SPDX-License-Identifier: Apache-2.0
"""Processes as /proc shows them, and how the tests start theirs.

Each Operator and each server runs as a user of its own: a number that no other process of the machine has. So
whatever they leave behind is found by its user, even when it has left its session, changed its environment and lost its
parent. Without root everything runs as the caller, and a variable in the environment has to do.
"""
import functools
import os
import signal
import subprocess
import zlib

from .setup import small_program

MARKER = "RECONCILED_TEST_ID"
AS_USER = str(small_program("as-user"))
_USERS_PER_SESSION = 1000
_KERNEL = 2  # kthreadd, whose children are no processes; half of what /proc lists
_counter = 0

# Processes to which a test has sent one of these: AddressSanitizer takes that for a bug.
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
crashed_on_purpose = set()


def _text_of(path):
    """Of a file of /proc. Each test reads one for each process of the machine, and open() takes four times as long."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 16384).decode(errors="replace")
    finally:
        os.close(fd)


def _uid_of(folder):
    owner = os.stat(folder).st_uid
    if owner != 0:
        return owner
    # Root owns the folder of a process that is not dumpable, too.
    return int(_text_of(f"{folder}/status").partition("\nUid:")[2].split(maxsplit=1)[0])


class Process:
    """One process at the moment it was looked at. What most looks do not need (uid, command) is read when it is asked for, and
    once; complete() reads it now."""

    def __init__(self, pid):
        self.pid = pid
        self.folder = f"/proc/{pid}"
        name, rest = _text_of(f"{self.folder}/stat").rsplit(")", 1)
        field = rest.split()
        self.name = name.split("(", 1)[1]
        self.state = field[0]
        self.ppid, self.group, self.session = (int(value) for value in field[1:4])
        self.start_time = int(field[19])
        if _KERNEL in (pid, self.ppid):
            raise ValueError("a thread of the kernel")

    @functools.cached_property
    def uid(self):
        return _uid_of(self.folder)

    @functools.cached_property
    def command(self):
        with open(f"{self.folder}/cmdline", "rb") as cmdline:
            return cmdline.read().decode(errors="replace").split("\0")[:-1]

    def complete(self):
        return self.uid is not None and self.command is not None

    @property
    def program(self):
        """The program's file name: `reconciled-watcher`. Longer than the kernel's 15 characters of `name`."""
        return os.path.basename(self.command[0]) if self.command else self.name

    @property
    def zombie(self):
        return self.state == "Z"

    def environment(self):
        try:
            with open(f"{self.folder}/environ", "rb") as environ:
                pairs = environ.read().decode(errors="replace").split("\0")
        except OSError:
            return {}
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    def descriptors(self):
        """The open descriptors: {number: target}."""
        result = {}
        for name in os.listdir(f"{self.folder}/fd"):
            try:
                result[int(name)] = os.readlink(f"{self.folder}/fd/{name}")
            except OSError:
                pass
        return result

    def peak_kib(self):
        """Of its memory, so far."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    def kill(self, number=signal.SIGKILL):
        if number in _CRASHES:
            crashed_on_purpose.add(self.pid)
        os.kill(self.pid, number)

    def alive(self):
        """Whether this very process (not another one under its number) still runs; a zombie does not."""
        try:
            now = Process(self.pid)
        except (OSError, ValueError, IndexError):
            return False
        return now.start_time == self.start_time and not now.zombie

    def __repr__(self):
        return f"{self.pid} {' '.join(self.command) or self.name} (state {self.state}, parent {self.ppid}, user {self.uid})"


def find_processes(accept=lambda process: True, since=0, uids=None):
    """All processes for which accept(process) is true, zombies included; since: only those with this number or a higher
    one; uids: only those of these users, which takes half of the time or less."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) < since:
            continue
        try:
            if uids is not None and _uid_of(f"/proc/{name}") not in uids:
                continue
            process = Process(int(name))
            if accept(process) and process.complete():
                found.append(process)
        except (OSError, ValueError, IndexError, StopIteration):
            # It ended while we looked.
            continue
    return sorted(found, key=lambda process: process.pid)


def descendants(pid):
    """The processes below `pid`, by parent."""
    everything = find_processes()
    family, found = {pid}, []
    grown = True
    while grown:
        grown = False
        for process in everything:
            if process.ppid in family and process.pid not in family:
                family.add(process.pid)
                found.append(process)
                grown = True
    return found


def _unused_uid(pid, number, mapped):
    """A user number for the `number`th user of the process `pid`, among `mapped` many."""
    if mapped >= (1 << 32) - 1:
        # 4,194,304 is the highest process number there is: the largest of these still fits 32 bits.
        return 100_000_000 + pid * _USERS_PER_SESSION + number % _USERS_PER_SESSION
    # A container with a user namespace has 65,536 of them as a rule: from the part that is seldom given to anybody.
    lowest, highest = mapped // 3, mapped - mapped // 8
    return lowest + (pid * 97 + number) % (highest - lowest)


def _mapped_uids():
    with open("/proc/self/uid_map", encoding="utf-8") as mapping:
        return sum(int(line.split()[2]) for line in mapping)


class User:
    """An unprivileged user that nothing else on this machine runs as."""

    def __init__(self):
        global _counter
        _counter += 1
        self.test_id = f"{os.getpid()}.{_counter}"
        self.separate = os.geteuid() == 0
        self.uid = os.geteuid()
        if self.separate:
            self.uid = _unused_uid(os.getpid(), _counter, _mapped_uids())

    def give(self, path, mode=None):
        if self.separate:
            os.chown(path, self.uid, self.uid)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def owns(self, process):
        if self.separate:
            return process.uid == self.uid
        return process.uid == self.uid and process.environment().get(MARKER) == self.test_id

    def processes(self):
        """Everything this user runs, with those zombies that one of its own processes has not reaped."""
        found = find_processes(self.owns, uids={self.uid})
        living = {process.pid for process in found if not process.zombie}
        return [process for process in found if not process.zombie or process.ppid in living]

    def command(self, command):
        """The command line that runs `command` as this user, with no way to outlive the tests."""
        return [AS_USER, *([str(self.uid)] if self.separate else []), "--", *map(str, command)]


class Entitled(User):
    """May start programs as other users, as with the drop-in user.conf."""

    RIGHTS = ("setuid", "setgid", "kill")

    def command(self, command):
        rights = "-all," + ",".join(f"+{right}" for right in self.RIGHTS)
        return ["setpriv", "--pdeathsig", "KILL", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups",
                f"--bounding-set={rights}", f"--inh-caps={rights}", f"--ambient-caps={rights}", "--no-new-privs",
                "--"] + [str(word) for word in command]


class Root:
    """The caller's own user, for programs that are not under test."""

    test_id = f"{os.getpid()}.0"

    def command(self, command):
        return [AS_USER, "--", *map(str, command)]


def _blocks():
    """Under tools/same-code, where the programs of this test note which code they reach."""
    if "RECONCILED_BLOCKS" not in os.environ:
        return {}
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    folder = f"{os.environ['RECONCILED_BLOCKS']}/{zlib.crc32(test.encode()):08x}"
    if not os.path.isdir(folder):
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        with open(f"{folder}/test", "w", encoding="utf-8") as file:
            file.write(test)
    return {"RECONCILED_BLOCKS": folder}


def clean_environment(user, extra=None):
    """The environment of what the tests start: nothing of the caller's leaks in. A library that makes processes fail
    (LD_PRELOAD) stands before a sanitizer's runtime, which would mind."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent",
                   "ASAN_OPTIONS": "exitcode=99:detect_stack_use_after_return=1:verify_asan_link_order=0",
                   "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
                   MARKER: user.test_id, **_blocks()}
    environment.update(extra or {})
    return {key: str(value) for key, value in environment.items() if value is not None}


def start(user, command, environment=None, **options):
    """Popen as `user`, in a session of its own."""
    return subprocess.Popen(user.command(command), env=clean_environment(user, environment), stdin=subprocess.DEVNULL,
                            start_new_session=True, **options)
