# SPDX-License-Identifier: Apache-2.0
"""A stop is a stop, whoever else gets the signal: a shell's `kill %1`, timeout(1), `systemctl kill`."""
import contextlib
import os
import signal

import pytest

from harness import wait_until, watch


@pytest.fixture
def busy(devserver, operator, handler, widgets):
    """An operator that runs a handler which ends when it is let go."""
    handler.behave(handler.held + "; printf '{\"status\":{\"done\":true}}'")
    operator.configure(devserver, [watch("widgets", handler)], stop={"grace": "20s"})
    operator.start_ready()
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    return operator


def assert_stopped_in_order(operator, handler, widgets):
    operator.wait_notification("STOPPING", "1")
    handler.let_go()
    operator.wait_exit(expect=0)
    assert operator.logs(level="critical") == []
    assert widgets.get("a")["status"] == {"done": True}, "what ran has finished"
    operator.assert_no_processes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_process_group_is_a_stop(busy, handler, widgets, number):
    assert os.getpgid(busy.pid) == busy.pid, "the harness starts it in a session of its own"
    os.killpg(busy.pid, number)
    assert_stopped_in_order(busy, handler, widgets)


@pytest.mark.parametrize("first", ["children", "supervisor"])
def test_a_signal_to_all_of_our_processes_is_a_stop(busy, handler, widgets, first):
    """As `systemctl kill` does it, in either order; handlers are left out to see that what runs may finish."""
    pids = [child.pid for child in busy.children() if child.program.startswith("reconciled-")]
    assert len(pids) >= 4
    for pid in pids + [busy.pid] if first == "children" else [busy.pid] + pids:
        with contextlib.suppress(ProcessLookupError):  # the stop was quicker
            os.kill(pid, signal.SIGTERM)
    assert_stopped_in_order(busy, handler, widgets)


def test_a_stop_a_moment_after_a_child_was_signalled(busy, handler, widgets):
    os.kill(busy.children("worker")[0].pid, signal.SIGTERM)
    wait_until(lambda: busy.ctl.status()["workers"], "the operator to be there still")
    busy.send_signal(signal.SIGTERM)
    assert_stopped_in_order(busy, handler, widgets)


def test_the_spawner_outlives_a_signal_that_was_meant_for_the_group(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready()
    os.kill(operator.child("spawner").pid, signal.SIGTERM)
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    operator.stop()
