# SPDX-License-Identifier: Apache-2.0
"""`related`: what objects depend on without owning it comes with the request, and its changes run them."""
import pytest

from harness import wait_until, watch


@pytest.fixture
def start(devserver, operator, handler):
    def start(related, **more):
        operator.configure(devserver, [watch("widgets", handler, related=[related], **more)])
        return operator.start_ready().wait_synced()

    return start


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "for=widgets"}


def seen(handler, name, where):
    return handler.wait_finished(name=name, where=lambda request: where(request.body.get("related")))


def test_a_change_runs_those_of_its_namespace(start, operator, handler, widgets, api):
    api.resource("v1", "namespaces").create("other")
    config_maps, others = api.resource("v1", "configmaps", "default"), api.resource("example.com/v1", "widgets", "other")
    start(CONFIG)
    for name in ("a", "b"):
        widgets.create(name)
        handler.wait_finished(name=name)
    others.create("elsewhere")
    handler.wait_finished(name="elsewhere")
    config_maps.create("settings", labels={"for": "widgets"}, data={"level": "1"})
    config_maps.create("foreign", data={"level": "9"})
    for name in ("a", "b"):
        request = seen(handler, name, lambda related: related and related[0]["data"] == {"level": "1"})
        assert request.body["reason"] == "related changed" and len(request.body["related"]) == 1
        assert request.body["related"][0]["kind"] == "ConfigMap"
    config_maps.merge_patch("settings", {"data": {"level": "2"}})
    seen(handler, "a", lambda related: related and related[0]["data"] == {"level": "2"})
    config_maps.delete("settings")
    seen(handler, "a", lambda related: related == [] and handler.count() > 4)
    operator.stop()
    assert len(handler.requests(name="elsewhere")) == 1


def test_a_restart_runs_nobody_and_a_change_meanwhile_all(start, operator, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.create("settings", labels={"for": "widgets"}, data={"level": "1"})
    start(CONFIG)
    widgets.create("a")
    seen(handler, "a", lambda related: len(related) == 1)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 0, "rest")
    operator.stop()
    before = handler.count()
    operator.start_ready().wait_synced()
    widgets.create("b")
    seen(handler, "b", lambda related: len(related) == 1)
    operator.stop()
    assert len(handler.requests(name="a")) == before
    config_maps.merge_patch("settings", {"data": {"level": "2"}})
    operator.start_ready().wait_synced()
    seen(handler, "a", lambda related: related[0]["data"] == {"level": "2"})
    operator.stop()


def test_objects_of_the_cluster_are_everybodys(start, operator, handler, widgets, api):
    nodes = api.resource("v1", "nodes")
    start({"apiVersion": "v1", "kind": "Node"})
    widgets.create("a")
    handler.wait_finished(name="a")
    nodes.create("one")
    request = seen(handler, "a", lambda related: len(related) == 1)
    assert request.body["related"][0]["metadata"]["name"] == "one"


def test_owners_of_the_cluster_see_all(devserver, operator, handler, api):
    operator.configure(devserver, [watch("namespaces", handler, api_version="v1", kind="Namespace", related=[CONFIG])])
    operator.start_ready().wait_synced()
    handler.wait_finished(name="default")
    api.resource("v1", "configmaps", "default").create("settings", labels={"for": "widgets"}, data={"level": "1"})
    seen(handler, "default", lambda related: len(related) == 1)
    seen(handler, "kube-system", lambda related: len(related) == 1)


def test_in_a_backoff_it_is_no_reason(start, operator, handler, widgets, api):
    handler.behave("exit 1")
    start(CONFIG, retry={"first": "1h", "max": "1h"})
    widgets.create("a")
    handler.wait_finished(name="a")
    api.resource("v1", "configmaps", "default").create("settings", labels={"for": "widgets"})
    handler.behave("exit 0")
    widgets.create("b")
    handler.wait_finished(name="b")
    operator.stop()
    assert len(handler.requests(name="a")) == 1
