# SPDX-License-Identifier: Apache-2.0
"""The list of children on the object is cut, replaced or taken off by somebody, and whatever happens then, no child is lost."""
from harness import wait_until, watch
import json
import pytest
import signal
import time


CM = {"apiVersion": "v1", "kind": "ConfigMap"}


LIST = "widgets.example.com/children"


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 409}, {"reset": True}, {"status": 403}, {"status": 429, "retryAfter": 1}], ids=["500", "409", "reset", "403", "429"])
@pytest.mark.parametrize("left", [None, "v1/ConfigMap/other/a"], ids=["emptied", "shortened"])
@pytest.mark.parametrize("end", ["left out", "deleted"])
def test_found_and_not_written_down(devserver, api, operator, handler, widgets, fault, left, end):
    api.resource("v1", "namespaces").create("other")
    there = api.resource("v1", "configmaps", "other")
    handler.answer({"children": [{**CM, "metadata": {"name": n, "namespace": "other"}} for n in "abc"], "status": {"n": 1}})
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, retry={"first": "50ms", "max": "200ms"})])
    operator.start_ready().wait_synced()
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: widgets.get("w").get("status") == {"n": 1}, "1")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "rest")
    handler.answer({"children": [], "status": {"n": 2}})
    number = devserver.fault(match={"verb": "patch", "resource": "widgets"}, times=1, **fault)
    found = widgets.get("w")
    found["metadata"]["annotations"].pop(LIST)
    if left:
        found["metadata"]["annotations"][LIST] = left
    found["spec"]["size"] = 2
    widgets.replace(found)
    wait_until(lambda: devserver.faults()[number]["hit"], "the fault")
    wait_until(lambda: widgets.get("w").get("status") == {"n": 2}, "2")
    if end == "deleted":
        widgets.delete("w")
        wait_until(lambda: not widgets.exists("w"), "end")
    assert there.names() == []


def test_deleted_in_that_moment(devserver, api, operator, handler, widgets):
    """The list is taken off, and the object deleted at once: the run that found the children cannot write them down."""
    api.resource("v1", "namespaces").create("other")
    there = api.resource("v1", "configmaps", "other")
    handler.answer({"children": [{**CM, "metadata": {"name": n, "namespace": "other"}} for n in "abc"], "status": {"n": 1}})
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, retry={"first": "50ms", "max": "200ms"})])
    operator.start_ready().wait_synced()
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: widgets.get("w").get("status") == {"n": 1}, "1")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "rest")
    handler.behave(f"""[ $RECONCILED_ACTION = finalize ] || {handler.held}
echo '{{}}'""")
    handler.behave(f"""case $RECONCILED_ACTION in finalize) echo '{{}}'; exit;; esac
{handler.held}
echo '{{"children": []}}'""")
    widgets.merge_patch("w", {"metadata": {"annotations": {LIST: None}}, "spec": {"size": 2}})
    handler.wait_for(name="w", count=2)
    widgets.delete("w")
    handler.let_go()
    wait_until(lambda: not widgets.exists("w"), "end")
    assert there.names() == []


def config_map(name, data=None, **metadata):
    return {**CM, "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture(params=[False, True], ids=["unwatched", "owned"])
def start(request, devserver, operator, handler):
    def start(**more):
        entry = {"retry": {"first": "50ms", "max": "200ms"}, "finalizer": True, **more}
        if request.param:
            entry["owns"] = [CM]
        operator.configure(devserver, [watch("widgets", handler, **entry)])
        return operator.start_ready().wait_synced()

    return start


def status_is(widgets, n):
    wait_until(lambda: widgets.get("w").get("status") == {"n": n}, lambda: f"the status {n}: {widgets.get('w')}")


def answer(handler, names, n):
    handler.answer({"children": [config_map(name) for name in names], "status": {"n": n}})


@pytest.mark.parametrize("restart", [False, True])
def test_an_older_list_comes_back(start, operator, handler, widgets, config_maps, restart):
    """kubectl replace -f with a manifest that was saved before: as many children, but others."""
    answer(handler, "ab", 1)
    start()
    widgets.create("w", spec={"size": 1})
    status_is(widgets, 1)
    saved = widgets.get("w")
    answer(handler, "cd", 2)
    widgets.merge_patch("w", {"spec": {"size": 2}})
    status_is(widgets, 2)
    assert sorted(config_maps.names()) == ["c", "d"]
    if restart:
        operator.stop()
    answer(handler, "", 3)
    widgets.merge_patch("w", {"metadata": {"annotations": {LIST: saved["metadata"]["annotations"][LIST]}}, "spec": {"size": 3}})
    if restart:
        operator.start_ready()
    status_is(widgets, 3)
    assert config_maps.names() == []
