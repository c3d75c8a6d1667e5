# SPDX-License-Identifier: Apache-2.0
"""OBJECTS and RESOURCEVERSION of the status are those of the moment in which it is asked for."""
import os
import signal

import pytest

from harness import wait_until, watch

RARE = {"interval": "20s", "deadline": "90s"}


def test_objects_and_version_are_those_of_now(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)], heartbeat=RARE)
    operator.start_ready().wait_synced()
    for number in range(5):
        version = widgets.create(f"w{number}")["metadata"]["resourceVersion"]
    wait_until(lambda: handler.count() == 5, "the runs")
    [row] = operator.ctl.status()["watches"]
    assert row["objects"] == 5 and int(row["resourceVersion"]) >= int(version), row
    widgets.delete("w0")
    handler.wait_finished(name="w0", action="deleted")
    assert operator.ctl.status()["watches"][0]["objects"] == 4


@pytest.mark.slow
def test_a_watcher_that_does_not_answer_holds_no_status_up(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler), watch("others", handler, id="others")], heartbeat=RARE)
    operator.start_ready().wait_synced()
    status = operator.ctl.status()
    pid = status["watches"][0]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        widgets.create("w")
        wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 1, "what the other one says")
        assert operator.ctl.status()["watches"][0]["objects"] == 0
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: operator.ctl.status()["watches"][0]["objects"] == 1, "its answer")


def test_log_level(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w")
    for level, shown in (("debug", True), ("info", False), ("warning", False)):
        operator.arguments = ["--log-level", level]
        operator.start_ready()
        wait_until(lambda: operator.ctl.status()["watches"][0]["state"] == "in-sync", "the watch")
        before = handler.count()
        assert operator.ctl.run("retry", "widgets", "default/w").returncode == 0 or level == "debug"
        wait_until(lambda: handler.count() > before or (level == "debug" and handler.count() > 0), "a run")
        wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] > 0, "its success")
        if shown:
            operator.wait_for_log("has succeeded after")
        operator.stop()
        text = operator.output.text()
        assert ("has succeeded after" in text) == shown, text
        assert ("is in sync" in text) == (level != "warning"), text


def test_a_long_name_shifts_no_column(devserver, operator, handler):
    """The watches of what a watch owns have longer names than people give."""
    operator.configure(devserver, [watch("widgets", handler, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])])
    operator.start_ready().wait_synced()
    lines = operator.ctl.run("status").stdout.splitlines()
    place = next(line for line in lines if line.startswith("WATCH ")).index("STATE")
    rows = [line for line in lines if line.startswith("widgets")]
    assert len(rows) == 2 and all(row[place - 1:place + 8] in (" in-sync ", " syncing ") for row in rows), lines
