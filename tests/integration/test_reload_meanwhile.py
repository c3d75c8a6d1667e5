# SPDX-License-Identifier: Apache-2.0
"""What becomes of the configuration while a reload that was accepted waits for a running handler: the operator lives."""
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def accepted(devserver, operator, handler, widgets):
    """An operator that restarts in place, with three workers, as soon as `go` is called."""
    handler.behave(f"[ $RECONCILED_NAME != slow ] || {handler.held}")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("slow", spec={})
    handler.wait_for(name="slow")
    operator.configure(devserver, [watch("widgets", handler)], workers=3)
    os.kill(operator.pid, signal.SIGHUP)
    operator.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    return operator


def wait_life(operator, count, workers):
    """While one life ends, its processes are fewer and fewer, and nobody answers."""
    wait_until(lambda: len(operator.logs(message_id=MESSAGE_ID["STARTED"])) == count, lambda: operator.output.text())
    wait_until(lambda: sum(message.get("READY") == "1" for message in operator.notifications) >= count, "it to be ready again")
    wait_until(lambda: len(operator.children("worker")) == workers, lambda: f"its workers: {operator.children()}")


def go(operator, handler, workers=3):
    handler.let_go()
    wait_life(operator, 2, workers)


@pytest.mark.parametrize("asked", [False, True], ids=["unasked", "and a SIGHUP"])
def test_a_wrong_file_does_not_end_it(accepted, devserver, handler, widgets, asked):
    accepted.configure(devserver, [watch("widgets", handler)], worker=5)
    if asked:
        os.kill(accepted.pid, signal.SIGHUP)
    with ThreadPoolExecutor() as pool:
        reload = pool.submit(accepted.ctl.run, "reload")
        go(accepted, handler)
        assert reload.result().returncode == 70 and 'did you mean "workers"' in reload.result().stderr, reload.result()
    wait_until(lambda: 'did you mean "workers"' in accepted.ctl.status()["notReloaded"], "why the file was not taken")
    widgets.create("later", spec={})
    handler.wait_finished(name="later")
    accepted.configure(devserver, [watch("widgets", handler)], workers=2)
    os.kill(accepted.pid, signal.SIGHUP)
    wait_life(accepted, 3, workers=2)
    assert not accepted.ctl.status()["notReloaded"]


def test_reconciledctl_reload_ends_when_the_operator_has_ended(accepted, handler):
    with ThreadPoolExecutor() as pool:
        reload = pool.submit(accepted.ctl.run, "reload", "--timeout", "1s")
        accepted.stop()
        assert reload.result().returncode in (69, 70), reload.result()


def test_a_handler_that_is_away_for_a_moment_does_not_end_it(accepted, handler, widgets):
    program = handler.script
    program.rename(program.with_suffix(".away"))
    go(accepted, handler)
    program.with_suffix(".away").rename(program)
    widgets.create("later", spec={})
    handler.wait_finished(name="later")


def test_a_newer_file_that_is_right_is_taken(accepted, devserver, handler):
    accepted.configure(devserver, [watch("widgets", handler)], workers=4)
    go(accepted, handler, workers=4)
    assert not accepted.ctl.status()["notReloaded"]


def test_systemd_is_fed_meanwhile(accepted, handler):
    def fed():
        return sum(message.get("WATCHDOG") == "1" for message in accepted.notifications)

    before = fed()
    wait_until(lambda: fed() >= before + 2, "the watchdog to be fed while the handler is awaited")
    go(accepted, handler)
