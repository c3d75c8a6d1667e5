# SPDX-License-Identifier: Apache-2.0
"""What is known of a watch that is not configured any more is kept, and is nobody's trouble."""
import os
import signal

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway


@pytest.mark.parametrize("restart", [False, True], ids=["reload", "restart"])
def test_objects_of_a_removed_watch_are_in_no_list_of_trouble(devserver, operator, handler, make_handler, widgets, restart):
    gateway = {"listen": f"unix:{operator.runtime_directory}/gateway.sock"}
    handler.behave("exit 65")
    operator.configure(devserver, [watch("old", handler)], gateway=gateway)
    operator.start_ready().wait_synced()
    for name in ("a", "b"):
        widgets.create(name, spec={})
    wait_until(lambda: len(operator.ctl.status()["failing"]) == 2, "both to have failed")
    other = make_handler()
    other.behave("exit 65" if restart else "exit 0")
    operator.configure(devserver, [watch("new", other)], gateway=gateway)
    if restart:
        operator.stop()
        operator.start_ready().wait_synced()
    else:
        os.kill(operator.pid, signal.SIGHUP)
    for name in ("a", "b"):
        other.wait_finished(name=name)
    expected = 2 if restart else 0
    wait_until(lambda: [row["watch"] for row in operator.ctl.status()["failing"]] == ["new"] * expected,
               lambda: f"the rows of the watch that is there: {operator.ctl.status()['failing']}")
    status = operator.ctl.status()
    assert status["removedWatches"] == [{"watch": "old", "objects": 2, "failing": 2}]
    assert "of watch old has failed" not in operator.ctl.run("status").stdout
    assert "of watch old, which is not configured any more: 2 objects (2 had failed)" \
        in operator.ctl.run("status", "-o", "wide").stdout
    assert "old" not in operator.ctl.run("get", "failing").stdout
    assert 'watch="old"' not in Gateway(operator.runtime_directory / "gateway.sock").metrics()
    # It comes back, with what is known.
    operator.configure(devserver, [watch("old", handler)], gateway=gateway)
    os.kill(operator.pid, signal.SIGHUP)
    wait_until(lambda: [row["watch"] for row in operator.ctl.status()["failing"]] == ["old", "old"], "what was kept to be back")
    assert [row["watch"] for row in operator.ctl.status()["removedWatches"]] == ["new"]


def test_waiting_objects_of_a_removed_watch_are_not_listed(devserver, operator, handler, make_handler, widgets):
    handler.behave("exit 75")
    operator.configure(devserver, [watch("old", handler, retry={"first": "1h", "max": "1h"})])
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: "default/a" in operator.ctl.run("get", "waiting").stdout, "it to wait")
    operator.configure(devserver, [watch("new", make_handler())])
    os.kill(operator.pid, signal.SIGHUP)
    wait_until(lambda: "old" not in operator.ctl.run("get", "waiting").stdout, "the removed watch to be in no list")
