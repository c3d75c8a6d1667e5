# SPDX-License-Identifier: Apache-2.0
"""`reconciledctl run` that was killed leaves no credentials behind for good."""
import os
import signal
import subprocess

import pytest

from harness import scaled, wait_until, watch
from harness.process import clean_environment

SECRET = "correct-horse-battery"


@pytest.fixture
def begin(devserver, operator, handler, by_hand, widgets):
    """Starts a run whose handler waits, and returns the process and its folder."""
    password = operator.folder / "password"
    password.write_text(SECRET, encoding="utf-8")
    operator.user.give(password, 0o600)
    operator.configure(devserver, [watch("widgets", handler, handler_options={"credentials": {"password": str(password)}})])
    widgets.create("a", spec={})
    started = []

    def begin():
        gate = handler.folder / f"gate-{len(started)}"
        handler.behave(f"while [ ! -e {gate} ]; do sleep 0.1; done")
        process = subprocess.Popen(by_hand.command("run", "--object", "default/a"), cwd=by_hand.folder,
                                   env=clean_environment(operator.user, {"TMPDIR": str(by_hand.folder)}),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started.append(process)
        request = wait_until(lambda: (handler.requests()[len(started) - 1:] or [None])[0], "the handler to run")
        process.gate = gate
        # RUN/handlers/WATCH
        return process, os.path.dirname(os.path.dirname(request.environment["RECONCILED_CREDENTIALS_DIRECTORY"]))

    yield begin
    for process in started:
        process.gate.touch()
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=scaled(30))


def killed(process, folder):
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=scaled(30))
    process.gate.touch()
    assert os.path.exists(folder)
    return folder


def test_a_later_run_removes_what_a_killed_one_left(begin, handler, by_hand):
    left = killed(*begin())
    handler.behave("exit 0")
    by_hand("run", "--object", "default/a")
    assert not os.path.exists(left)


def test_the_operators_start_removes_it_as_well(begin, handler, by_hand, operator):
    left = killed(*begin())
    handler.behave("exit 0")
    operator.environment["TMPDIR"] = str(by_hand.folder)
    operator.start_ready()
    assert not os.path.exists(left)


def test_a_run_that_goes_on_keeps_its_folder(begin, handler, by_hand, operator):
    process, folder = begin()
    operator.environment["TMPDIR"] = str(by_hand.folder)
    operator.start_ready()
    assert os.path.exists(folder)
    process.gate.touch()
    assert process.wait(timeout=scaled(60)) == 0
    wait_until(lambda: not os.path.exists(folder), "its own end to remove it")
