# SPDX-License-Identifier: Apache-2.0
"""Who starts the supervisor's children: what it is asked for by one who is not the supervisor any more."""
import errno
import os
import signal
import socket
import struct
import subprocess

import pytest

from death.conftest import CLOSE, tell
from harness import Operator, wait_until, watch
from harness.process import Entitled, Process, start

PING, START, ASK, CAN_READ = range(4)
CREDENTIAL, WATCHER, WORKER, GATEWAY, LEASE, JQ = range(6)


class Spawner:
    def __init__(self, program, user):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        # Descriptor 3, and nothing else.
        command = ["bash", "-c", f"exec {program} 3<&{theirs.fileno()}"]
        rights = user.command(command) if isinstance(user, Entitled) else [
            "setpriv", f"--reuid={user.uid}", f"--regid={user.uid}", "--clear-groups", "--no-new-privs"] + command
        self.popen = subprocess.Popen(rights, pass_fds=[theirs.fileno()])
        theirs.close()
        self.serial = 0

    def send(self, order, program=0, arguments=(), fds=(), uid=0):
        self.serial += 1
        self.send_raw(struct.pack("=5I", self.serial, order, program, uid, uid) + b"".join(a.encode() + b"\0" for a in arguments), fds)

    def send_raw(self, data, fds=()):
        socket.send_fds(self.socket, [data], list(fds))

    def answer(self):
        serial, result = struct.unpack("=Ii", self.socket.recv(100))
        assert serial == self.serial
        return result

    def ask(self, *request, **more):
        self.send(*request, **more)
        return self.answer()

    def close(self):
        self.socket.close()
        assert self.popen.wait(20) is not None


@pytest.fixture
def spawner(sandbox):
    spawner = Spawner(sandbox.program("reconciled-spawner"), sandbox.user())
    yield spawner
    spawner.close()


def run_jq(spawner, text):
    """What reconciled-jq says of a program, and how it ended."""
    read, write = os.pipe()
    pid = spawner.ask(ASK, JQ, arguments=[text], fds=[write])
    os.close(write)
    assert pid > 0, os.strerror(-pid)
    with open(read, encoding="utf-8") as file:
        said = file.read()
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_what_it_starts_is_the_child_of_who_asks(spawner):
    assert run_jq(spawner, ".spec") == ("", 0)
    said, code = run_jq(spawner, ".spec[")
    assert code == 78 and "syntax error" in said
    assert spawner.ask(PING) == 0


@pytest.mark.parametrize("order, program, arguments", [
    (START, JQ + 1, ["/bin/true"]), (ASK, 0xffffffff, ["/bin/true"]), (4, JQ, ["."]), (0xffffffff, JQ, []), (CAN_READ, 0, ["root"])])
def test_it_knows_our_own_programs_only(spawner, order, program, arguments):
    with open("/dev/null", "wb") as null:
        assert spawner.ask(order, program, arguments=arguments, fds=[null.fileno()]) == -errno.EPROTO
    assert spawner.ask(PING) == 0


def test_a_program_without_a_descriptor(spawner):
    assert spawner.ask(START, WORKER) == -errno.EPROTO


@pytest.mark.parametrize("data", [b"x", struct.pack("=5I", 1, ASK, JQ, 0, 0) + b"no end", struct.pack("=5I", 1, ASK, JQ, 0, 0) + b"\0" * 9],
                         ids=["short", "no-end", "many"])
def test_what_is_no_request_ends_it(spawner, data):
    with open("/dev/null", "wb") as null:
        spawner.send_raw(data, [null.fileno()])
    assert spawner.popen.wait(20) == 70


STOP = """
import os, signal, sys, time
print("goes", flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    try:
        os.kill(-1, signal.SIGSTOP)
    except OSError:
        pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
def test_who_is_asked_about_cannot_hold_up_the_answer(sandbox):
    """It asks the kernel as that user, whose processes stop each other all the time."""
    asker, other = sandbox.user(), sandbox.user()
    asker.__class__ = Entitled
    ours = sandbox.subfolder("ours") / "ours"
    ours.touch(0o600)
    open_to_all = sandbox.subfolder("open") / "open"
    open_to_all.touch(0o644)
    spawner = Spawner(sandbox.program("reconciled-spawner"), asker)
    stopper = start(other, ["/usr/bin/python3", "-c", STOP], stdout=subprocess.PIPE, text=True)
    try:
        assert stopper.stdout.readline() == "goes\n"
        for _ in range(300):
            for path, readable in ((ours, 0), (open_to_all, 1)):
                assert spawner.ask(CAN_READ, arguments=["root", str(path)], uid=other.uid) == readable
    finally:
        stopper.kill()
        stopper.wait()
    spawner.close()


def test_it_is_not_started_by_hand(sandbox):
    program = sandbox.program("reconciled-spawner")
    done = subprocess.run([program], capture_output=True, text=True, check=False, close_fds=True)
    assert done.returncode == 64 and "not started by reconciled(1)" in done.stderr
    assert "child of reconciled(1)" in subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout


def test_a_restart_in_place_keeps_it(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)], workers=1)
    operator.start_ready().wait_synced()
    spawner, descriptors = operator.child("spawner").pid, len(os.listdir(f"/proc/{operator.pid}/fd"))
    for workers in (2, 1, 2, 1):
        ready = sum("READY" in notification for notification in operator.notifications)
        operator.configure(devserver, [watch("widgets", handler)], workers=workers)
        os.kill(operator.pid, signal.SIGHUP)
        wait_until(lambda: sum("READY" in notification for notification in operator.notifications) > ready, "the restart in place")
        assert len(operator.children("worker")) == workers
    assert operator.child("spawner").pid == spawner
    wait_until(lambda: len(os.listdir(f"/proc/{operator.pid}/fd")) <= descriptors, "no descriptor to be left over")
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    operator.stop()
    assert not os.path.exists(f"/proc/{spawner}")


def test_it_is_nobodys_stray(devserver, operator, handler, widgets):
    """What handlers leave behind is ended at the end, and after each run; the spawner is none of that."""
    handler.behave("setsid -f sleep 1000 <&- >&- 2>&-")
    operator.configure(devserver, [watch("widgets", handler)], workers=1)
    operator.start_ready().wait_synced()
    spawner = Process(operator.child("spawner").pid)
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    wait_until(lambda: not [found for found in operator.processes() if found.program == "sleep"], "the end of what was left")
    assert spawner.alive()
    operator.stop()
    operator.assert_no_processes()


@pytest.mark.parametrize("needed", [True, False], ids=["needed", "idle"])
def test_one_that_hears_nothing_any_more_but_lives(devserver, operator, handler, make_handler, shim, needed):
    """Found when something is to be started, and it is not tried again in the middle of that; or by its heartbeat."""
    operator.environment["LD_PRELOAD"] = shim
    heartbeat = None if needed else {"interval": "100ms", "deadline": "2s"}
    operator.configure(devserver, [watch("widgets", handler)], heartbeat=heartbeat)
    operator.start_ready().wait_synced()
    spawner = operator.child("spawner").pid
    tell(spawner, CLOSE)
    wait_until(lambda: not os.path.exists(f"/proc/{spawner}/fd/3"), "its channel to be closed")
    if needed:
        operator.configure(devserver, [watch("widgets", make_handler())])
        operator.send_signal(signal.SIGHUP)
    operator.wait_exit(expect=70)
    operator.assert_no_processes()
    cause = operator.logs(level="critical")
    said = "closed its channel but did not end" if needed else "hangs: no heartbeat"
    assert len(cause) == 1 and f"the spawner (pid {spawner}) {said}" in cause[0]["message"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
def test_a_user_database_that_does_not_answer_ends_nobody(devserver, sandbox, handler, shim):
    operator = Operator(sandbox, environment={"LD_PRELOAD": shim, "RECONCILED_DEATH_WITHOUT": "groups"})
    operator.user.__class__ = Entitled
    users = [sandbox.user().uid for _ in range(2)]
    operator.configure(devserver, [watch(f"widgets-{uid}", handler, id=str(uid), handler_options={"user": f"{uid}:{uid}"}) for uid in users])
    operator.start_ready().wait_synced()
    said = operator.logs(where=lambda record: "cannot tell whether handlers" in record["message"])
    assert len(said) == 1 and str(users[0]) in said[0]["message"], "it is waited for once"
    operator.stop()
