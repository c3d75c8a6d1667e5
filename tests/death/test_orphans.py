# SPDX-License-Identifier: Apache-2.0
"""The supervisor is killed, and each of the three guards stands alone against what would outlive it: EOF on the channel, the
parent-death signal, and what encloses them all (a PID namespace here, a cgroup in tests/systemd)."""
import ctypes
import os
import signal
import stat

import pytest

from harness import find_processes, wait_until, watch
from harness.process import clean_environment, descendants

from death.conftest import LIBC

SYS_PIDFD_GETFD = 438

pytestmark = pytest.mark.quiet

# Ignores SIGTERM, leaves its session, and has started two that have as well.
HANDLER = """trap '' TERM HUP
setsid sh -c "trap '' TERM HUP; while :; do sleep 1; done" &
setsid -f sh -c "trap '' TERM HUP; while :; do sleep 1; done" <&- >&- 2>&-
while :; do sleep 1; done"""


@pytest.fixture
def busy(devserver, make_operator, make_handler, shim, widgets):
    """busy(guards): an operator that runs, with a handler that does not want to end."""
    def start(environment):
        operator = make_operator(environment={"LD_PRELOAD": shim, **environment})
        handler = make_handler(HANDLER)
        operator.configure(devserver, [watch("widgets", handler, handler_options={"timeout": "1h", "grace": "1h"})],
                           gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})
        operator.start_ready().wait_synced()
        widgets.create("a", spec={})
        handler.wait_for(name="a")
        wait_until(lambda: sum("while" in " ".join(found.command) for found in operator.processes()) >= 2, "its processes")
        return operator

    return start


def hold_channels(pid):
    """The supervisor's ends of all channels stay open in this process: nobody sees an EOF."""
    held, pidfd = [], os.pidfd_open(pid)
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if stat.S_ISSOCK(os.stat(f"/proc/{pid}/fd/{name}").st_mode):
                fd = LIBC.syscall(SYS_PIDFD_GETFD, pidfd, int(name), 0)
                assert fd >= 0, os.strerror(ctypes.get_errno())
                held.append(fd)
        except FileNotFoundError:
            continue
    os.close(pidfd)
    return held


def test_end_of_file_alone(busy):
    operator = busy({"RECONCILED_DEATH_WITHOUT": "pdeathsig"})
    os.kill(operator.pid, signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.assert_no_processes()


def test_parent_death_signal_alone(busy):
    operator = busy({})
    held = hold_channels(operator.pid)
    assert len(held) >= 5
    try:
        os.kill(operator.pid, signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
        operator.assert_no_processes()
    finally:
        for fd in held:
            os.close(fd)


def test_neither_of_them_leaves_orphans(busy):
    """That this is a test at all: without both, they live on."""
    operator = busy({"RECONCILED_DEATH_WITHOUT": "pdeathsig"})
    held = hold_channels(operator.pid)
    try:
        os.kill(operator.pid, signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
        left = {found.program for found in operator.processes()}
        assert {"reconciled-watcher", "reconciled-worker", "reconciled-credential", "reconciled-gateway"} <= left
    finally:
        for fd in held:
            os.close(fd)
    operator.assert_no_processes()


def test_what_encloses_them_alone(busy, monkeypatch):
    """As PID 1 of a namespace: the kernel takes all of it."""
    import harness.operator as module
    real = module.process.start

    def in_a_namespace(user, command, environment, **options):
        inner = user.command(command)

        class Outside:
            test_id = user.test_id

            @staticmethod
            def command(_):
                return ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--pid", "--fork", "--", *inner]
        return real(Outside, command, environment, **options)

    monkeypatch.setattr(module.process, "start", in_a_namespace)
    operator = busy({"RECONCILED_DEATH_WITHOUT": "pdeathsig"})
    supervisor = next(found for found in descendants(operator.pid) if found.program == "reconciled")
    held = hold_channels(supervisor.pid)
    try:
        supervisor.kill()
        operator.wait_exit()
        operator.assert_no_processes()
    finally:
        for fd in held:
            os.close(fd)
