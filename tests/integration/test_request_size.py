# SPDX-License-Identifier: Apache-2.0
"""A request that would be too large is refused with its size, and no worker takes the memory for it."""
import re

import pytest

from harness import wait_until, watch
from harness.setup import SANITIZED

COUNT = 80
SIZE = 450_000 if SANITIZED else 600_000  # 34 and 46 MiB: more than the limit, and than the memory that a worker may take
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "for=widgets"}


def make_config_maps(api, owner):
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": owner["name"], "uid": owner["uid"], "controller": True}
    config_maps = api.resource("v1", "configmaps", "default")
    for number in range(COUNT):
        config_maps.create(f"large-{number:03}", labels={"for": "widgets"}, ownerReferences=[reference], data={"filler": "x" * SIZE})


def peaks(operator):
    """Of the workers' memory, in MiB."""
    found = []
    for worker in operator.children("worker"):
        with open(f"/proc/{worker.pid}/status", encoding="utf-8") as status:
            found.append(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")))
    assert found
    return found


def failure(operator):
    return next((entry["lastError"] for entry in operator.ctl.status()["failing"] if entry["key"] == "default/many" and not entry["permanent"]), None)


@pytest.mark.parametrize("key, member, words", [("owns", "children", "owns"), ("related", "related", "is related to")])
@pytest.mark.parametrize("kind", ["exec", "serve"])
@pytest.mark.slow
def test_large_request_is_an_error_of_its_object_and_takes_no_memory(devserver, operator, handler, widgets, api, key, member, words, kind):
    many = widgets.create("many")["metadata"]
    make_config_maps(api, many)
    entry = watch("widgets", handler, **{key: [CONFIG]})
    if kind == "serve":
        entry["handler"] = {"serve": entry["handler"]["exec"]}
    entry["handler"]["requestLimit"] = "4Mi"
    operator.configure(devserver, [entry])
    operator.start_ready().wait_synced(60)
    wait_until(lambda: failure(operator), "the failure", 60)
    error = failure(operator)
    found = re.search(r"would take about ([0-9.]+) MiB, and handler.requestLimit allows 4.0 MiB: there are (\d+) objects of kind ConfigMap "
                      r"with ([0-9.]+) MiB that it " + words, error)
    assert found and int(found[2]) == COUNT, error
    assert COUNT * SIZE < float(found[3]) * 2**20 < 1.01 * COUNT * SIZE and float(found[1]) >= float(found[3])
    assert "metadataOnly" in error and "reconciledctl retry widgets default/many" in error
    assert handler.count() == 0
    if not SANITIZED:
        assert max(peaks(operator)) < 40, peaks(operator)
    # What the error advises helps.
    entry[key] = [{**CONFIG, "metadataOnly": True}]
    if kind == "exec":
        operator.stop()
        operator.configure(devserver, [entry])
        operator.start_ready().wait_synced(60)
        wait_until(lambda: operator.ctl.run("retry", "widgets", "default/many").returncode == 0, "all that it owns to be known", 60)
        shown = handler.wait_finished(name="many", where=lambda request: len(request.body.get(member, ())) == COUNT).body[member]
        assert all(set(each) == {"apiVersion", "kind", "metadata"} and each["kind"] == "ConfigMap" and each["apiVersion"] == "v1" for each in shown)
        if not SANITIZED:
            assert max(peaks(operator)) < 40, peaks(operator)
    operator.stop()


@pytest.mark.slow
def test_the_limit_holds_without_being_configured(devserver, operator, handler, widgets, api):
    make_config_maps(api, widgets.create("many")["metadata"])
    operator.configure(devserver, [watch("widgets", handler, owns=[CONFIG])])
    operator.start_ready().wait_synced(60)
    wait_until(lambda: handler.count() > 0 or failure(operator), "the run", 60)
    assert handler.count() == 0 and "handler.requestLimit allows 32.0 MiB" in failure(operator)
    operator.stop()


def test_many_children_within_the_limit_are_shown(devserver, operator, handler, widgets, api):
    """The default is no obstacle to what is usual."""
    owner = widgets.create("some")["metadata"]
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "some", "uid": owner["uid"], "controller": True}
    for number in range(10):
        api.resource("v1", "configmaps", "default").create(f"c{number}", labels={"for": "widgets"}, ownerReferences=[reference],
                                                           data={"filler": "x" * SIZE})
    operator.configure(devserver, [watch("widgets", handler, owns=[CONFIG])])
    operator.start_ready().wait_synced()
    handler.wait_finished(name="some", where=lambda request: len(request.body["children"]) == 10)
    operator.stop()
