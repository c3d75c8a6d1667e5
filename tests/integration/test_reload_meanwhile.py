# SPDX-License-Identifier: Apache-2.0
"""What becomes of the configuration while a reload that was accepted waits for a running handler: the operator lives."""
import os
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def accepted(devserver, operator, handler, widgets):
    """An operator that restarts in place, with three workers, as soon as `go` is called."""
    handler.behave(f"[ $RECONCILED_NAME != slow ] || while [ ! -e {handler.folder}/go ]; do sleep 0.02; done")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("slow", spec={})
    handler.wait_for(name="slow")
    operator.configure(devserver, [watch("widgets", handler)], workers=3)
    os.kill(operator.pid, signal.SIGHUP)
    operator.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    return operator


def go(operator, handler):
    (handler.folder / "go").touch()
    wait_until(lambda: len(operator.logs(message_id=MESSAGE_ID["STARTED"])) == 2, lambda: operator.output.text())
    wait_until(lambda: len(operator.children("worker")) == 3, "the workers of the configuration that was accepted")


@pytest.mark.parametrize("asked", [False, True], ids=["unasked", "and a SIGHUP"])
def test_a_wrong_file_does_not_end_it(accepted, devserver, handler, widgets, asked):
    accepted.configure(devserver, [watch("widgets", handler)], worker=5)
    if asked:
        os.kill(accepted.pid, signal.SIGHUP)
    go(accepted, handler)
    wait_until(lambda: 'did you mean "workers"' in accepted.ctl.status()["notReloaded"], "why the file was not taken")
    widgets.create("later", spec={})
    handler.wait_finished(name="later")
    accepted.configure(devserver, [watch("widgets", handler)], workers=2)
    os.kill(accepted.pid, signal.SIGHUP)
    wait_until(lambda: len(accepted.children("worker")) == 2, "the mended file to be taken")
    assert not accepted.ctl.status()["notReloaded"]


def test_a_handler_that_is_away_for_a_moment_does_not_end_it(accepted, handler, widgets):
    program = handler.script
    program.rename(program.with_suffix(".away"))
    go(accepted, handler)
    program.with_suffix(".away").rename(program)
    widgets.create("later", spec={})
    handler.wait_finished(name="later")


def test_a_newer_file_that_is_right_is_taken(accepted, devserver, handler):
    accepted.configure(devserver, [watch("widgets", handler)], workers=4)
    (handler.folder / "go").touch()
    wait_until(lambda: len(accepted.children("worker")) == 4, "the workers of the file as it is then")
    assert not accepted.ctl.status()["notReloaded"]
