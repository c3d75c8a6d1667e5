# SPDX-License-Identifier: Apache-2.0
"""A watch waits for the kinds that it owns or that are related, until they are in sync, or until a reload takes them out."""
import os
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

KIND = [{"apiVersion": "v1", "kind": "ConfigMap"}]


def reload(operator):
    def taken():
        return len(operator.logs(message_id=MESSAGE_ID["RELOADED"]))

    before = taken()
    os.kill(operator.pid, signal.SIGHUP)
    wait_until(lambda: taken() > before, lambda: f"the reload; its output:\n{operator.output.text()}")


def waits_for(operator):
    return next(row for row in operator.ctl.status()["watches"] if row["name"] == "widgets")["waitsFor"]


@pytest.fixture
def refused(devserver):
    devserver.fault(match={"resource": "configmaps"}, status=403, times=0)
    return devserver


@pytest.mark.parametrize("key", ["owns", "related"])
def test_a_kind_that_is_taken_out_before_it_is_in_sync_holds_nothing_back(refused, operator, handler, widgets, key):
    operator.configure(refused, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("before", spec={})
    handler.wait_finished(name="before")
    operator.configure(refused, [watch("widgets", handler, **{key: KIND})])
    reload(operator)
    wait_until(lambda: waits_for(operator), "the watch to wait for the new kind")
    widgets.create("meanwhile", spec={})
    wait_until(lambda: "default/meanwhile" in str(operator.ctl.run("explain", "widgets", "default/meanwhile").stdout), "the object")
    assert not handler.requests(name="meanwhile")
    operator.configure(refused, [watch("widgets", handler)])
    reload(operator)
    handler.wait_finished(name="meanwhile")
    widgets.create("after", spec={})
    handler.wait_finished(name="after")
    assert not waits_for(operator)


def test_a_kind_that_is_taken_out_after_the_start_holds_nothing_back(refused, operator, handler, widgets):
    operator.configure(refused, [watch("widgets", handler, owns=KIND)])
    operator.start()
    wait_until(lambda: waits_for(operator), "the watch to wait for the kind")
    widgets.create("a", spec={})
    operator.configure(refused, [watch("widgets", handler)])
    os.kill(operator.pid, signal.SIGHUP)
    handler.wait_finished(name="a")
