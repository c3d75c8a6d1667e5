# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: a new configuration is taken without going away, a wrong one changes nothing."""
import os
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator.start_ready().wait_synced()


def reload(operator):
    """Sends SIGHUP, and waits until it is ready again."""
    ready = sum(message.get("READY") == "1" for message in operator.notifications)
    os.kill(operator.pid, signal.SIGHUP)
    wait_until(lambda: sum(message.get("READY") == "1" for message in operator.notifications) > ready,
               lambda: f"the operator to be ready again; its output:\n{operator.output.text()}")


def lists(devserver):
    return [request for request in devserver.requests() if request["path"].endswith("/widgets")
            and "watch=" not in request["query"] and "limit=1&" not in request["query"] + "&"]


def test_a_new_configuration_is_in_force(configured, devserver, make_handler, handler, widgets):
    before = configured.pid
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    second = make_handler()
    configured.configure(devserver, [watch("widgets", handler), watch("again", second)], workers=3)
    reload(configured)
    assert configured.pid == before and configured.popen.poll() is None
    second.wait_for(name="a")
    assert configured.logs(message_id=MESSAGE_ID["RELOADING"])
    assert len(configured.children("watcher")) == 2 and len(configured.children("worker")) == 3
    told = [message for message in configured.notifications if "RELOADING" in message]
    assert len(told) == 1 and int(told[0]["MONOTONIC_USEC"]) > 0
    assert not any("STOPPING" in message for message in configured.notifications)
    widgets.create("b", spec={})
    handler.wait_for(name="b")
    # What was handled before is not handled again.
    assert len(handler.requests(name="a")) == 1


def test_an_untouched_watch_lists_nothing(configured, devserver):
    before = len(lists(devserver))
    reload(configured)
    configured.wait_synced()
    wait_until(lambda: [each["state"] for each in configured.ctl.status()["watches"]] == ["in-sync"], "being in sync")
    assert len(lists(devserver)) == before


def test_a_wrong_configuration_changes_nothing(configured, devserver, handler, widgets):
    children = {child.pid for child in configured.children()}
    configured.configure(devserver, [watch("widgets", handler)], worker=3)
    reload(configured)
    assert "not reloaded" in configured.status_text and 'did you mean "workers"' in configured.status_text
    assert configured.logs(message_id=MESSAGE_ID["CONFIGURATION_WRONG"])
    assert {child.pid for child in configured.children()} == children
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    # And a mended one is taken.
    configured.configure(devserver, [watch("widgets", handler)], workers=3)
    reload(configured)
    assert len(configured.children("worker")) == 3


def test_what_runs_may_finish(devserver, operator, make_handler, widgets, sandbox):
    slow = make_handler("sleep 2; printf '{\"status\":{\"done\":true}}'")
    operator.configure(devserver, [watch("widgets", slow)])
    operator.start_ready()
    widgets.create("a", spec={})
    slow.wait_for(name="a")
    reload(operator)
    assert widgets.get("a")["status"] == {"done": True}


def test_a_stop_in_the_middle(devserver, operator, make_handler, widgets):
    slow = make_handler("sleep 2; printf '{\"status\":{\"done\":true}}'")
    operator.configure(devserver, [watch("widgets", slow)])
    operator.start_ready()
    widgets.create("a", spec={})
    slow.wait_for(name="a")
    os.kill(operator.pid, signal.SIGHUP)
    operator.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    operator.stop()
    operator.assert_no_processes()
    assert widgets.get("a")["status"] == {"done": True}
    assert operator.logs(message_id=MESSAGE_ID["STOPPED"])


def test_many_times(configured, handler, widgets):
    for number in range(10):
        reload(configured)
        assert len(os.listdir(f"/proc/{configured.pid}/fd")) < 30
        widgets.create(f"w{number}", spec={})
        handler.wait_for(name=f"w{number}")
