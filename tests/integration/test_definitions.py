# SPDX-License-Identifier: Apache-2.0
"""A definition and an object of its kind in one answer: the attempt waits until the kind is served."""
import pytest

from harness import wait_until, watch
from harness.setup import allowing

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.org"},
    "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
             "versions": [{"name": "v1", "served": True, "storage": True,
                           "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
GADGET = {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "g"}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"size": "1"}}


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        more = {"onFailure": "rollback", "readyCondition": True, "retry": {"first": "200ms", "max": "1s"}, **more}
        children = allowing("example.org/v1 Gadget", **more.pop("children", {}))
        operator.configure(devserver, [watch("widgets", handler, children=children, **more)], workers=1)
        return operator.start_ready().wait_synced()

    return start


def unserved(devserver, times):
    """As a server has it for a moment after a definition was made."""
    return devserver.fault({"path": "/apis/example.org/v1"}, status=404, times=times, after=1)


def gadget(api):
    return api.raw("GET", "/apis/example.org/v1/namespaces/default/gadgets/g").code == 200


def deleted(devserver):
    return devserver.requests(lambda request: request.get("verb") == "delete")


@pytest.mark.parametrize("failure", ["rollback", "keep"])
@pytest.mark.slow
def test_a_definition_and_its_object_in_one_answer(start, devserver, handler, widgets, api, failure):
    unserved(devserver, 4)
    handler.answer({"children": [DEFINITION, GADGET, MAP]})
    operator = start(onFailure=failure)
    widgets.create("w")
    wait_until(lambda: gadget(api), "the object")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the success")
    assert not deleted(devserver), "nothing is undone"
    assert operator.ctl.status()["watches"][0]["failed"] == 0, "and nothing has failed"
    assert {request.body["attempt"] for request in handler.requests()} == {1}
    operator.stop()


@pytest.mark.slow
def test_a_definition_that_is_never_served_is_undone_in_time(start, devserver, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    definitions = api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    unserved(devserver, 0)
    handler.answer({"children": [DEFINITION, GADGET, MAP]})
    operator = start(children={"settle": "3s"}, retry={"first": "1h", "max": "1h"})
    widgets.create("w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["failed"] == 1, "the failed attempt", deadline=60)
    assert not config_maps.exists("m") and not definitions.exists("gadgets.example.org")
    seen = widgets.get("w")["status"]["conditions"][0]
    assert "Gadget g" in seen["message"] and "3s" in seen["message"]
    operator.stop()


@pytest.mark.slow
def test_what_fails_behind_the_wait_is_undone_whole(start, devserver, handler, widgets, api):
    """Also what the attempt had made before it waited."""
    definitions = api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    unserved(devserver, 4)
    devserver.fault({"verb": "patch", "resource": "gadgets"}, status=422, times=0)
    handler.answer({"children": [DEFINITION, GADGET, MAP]})
    operator = start(retry={"first": "1h", "max": "1h"}, onUnrecoverable="throttle")
    widgets.create("w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["failed"] == 1, "the failed attempt", deadline=60)
    assert not definitions.exists("gadgets.example.org")
    assert not api.resource("v1", "configmaps", "default").exists("m")
    operator.stop()


@pytest.mark.slow
def test_a_wait_for_a_definition_goes_on_after_a_restart(start, devserver, handler, widgets, api):
    fault = unserved(devserver, 0)
    handler.answer({"children": [DEFINITION, GADGET]})
    operator = start(children={"settle": "10m"})
    widgets.create("w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["settling"] == 1, "the wait")
    operator.stop()
    operator.start_ready().wait_synced()
    devserver.clear_faults(fault)
    wait_until(lambda: gadget(api), "the object")
    assert not deleted(devserver)
    operator.stop()
