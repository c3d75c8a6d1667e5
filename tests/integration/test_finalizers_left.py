# SPDX-License-Identifier: Apache-2.0
"""Finalizers that nobody takes off any more: of a watch that is gone, of an operator that has another name now."""
import os
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

FINALIZER = "widgets.example.com/finalizer"


@pytest.fixture
def held(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler, finalizer=True)])
    operator.start_ready().wait_synced()
    widgets.create("w")
    handler.wait_finished(name="w")
    wait_until(lambda: widgets.get("w")["metadata"].get("finalizers") == [FINALIZER], "the finalizer")
    return operator


def told(operator, count=1):
    found = operator.logs(message_id=MESSAGE_ID["FINALIZERS_LEFT"])
    assert len(found) == count, operator.output.text()
    return found[-1]["message"] if found else None


@pytest.mark.parametrize("way", ["reload", "restart"])
def test_a_watch_that_is_gone(devserver, held, handler, widgets, way):
    maps = watch("maps", handler, api_version="v1", kind="ConfigMap")
    held.configure(devserver, [maps])
    if way == "reload":
        os.kill(held.pid, signal.SIGHUP)
    else:
        held.stop()
        held.start_ready()
    held.wait_for_log(message_id=MESSAGE_ID["FINALIZERS_LEFT"])
    assert FINALIZER in told(held) and "Widget.v1.example.com" in told(held)
    left = held.ctl.status()["finalizersLeft"]
    assert left == [{"watch": "widgets", "apiVersion": "example.com/v1", "kind": "Widget", "finalizer": FINALIZER, "objects": 1}]
    assert FINALIZER in held.ctl.run("status").stdout
    held.stop()
    # The way out that the text names.
    held.configure(devserver, [maps, watch("off", handler, finalizer=False)])
    held.start_ready()
    wait_until(lambda: not widgets.get("w")["metadata"].get("finalizers"), "ours to go")
    assert held.ctl.status()["finalizersLeft"] == []
    held.stop()
    told(held, 0)


def test_an_operator_that_is_renamed(devserver, held, handler):
    held.stop()
    held.configure(devserver, [watch("widgets", handler, finalizer=True)], operator="renamed.example.com")
    for _ in range(2):
        held.start_ready()
        held.wait_for_log(message_id=MESSAGE_ID["FINALIZERS_LEFT"])
        assert FINALIZER in told(held)
        held.stop()


def test_nothing_is_said_where_nothing_is_left(devserver, held, handler):
    held.stop()
    held.start_ready()
    held.stop()
    held.configure(devserver, [watch("other", handler, finalizer=True)])
    held.start_ready()
    held.stop()
    told(held, 0)
