# SPDX-License-Identifier: Apache-2.0
"""Owner references are what anybody writes who may make an object: they name an owner, and reach nobody else."""
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

LONG = "x" * 600
VERY_LONG = "y" * 100_000


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def elsewhere(api):
    api.resource("v1", "namespaces").create("other")
    return api.resource("v1", "configmaps", "other")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])], **more)
        return operator.start_ready().wait_synced()

    return start


def reference(owner, **other):
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], **other}


def keeper_of(config_maps):
    """An owner that is there: the garbage collector leaves its objects alone, whatever else they name."""
    keeper = config_maps.create("keeper")
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": keeper["metadata"]["uid"]}


def names(request):
    return [child["metadata"]["name"] for child in request.body["children"]]


def at_rest(operator):
    def rests():
        status = operator.ctl.status()["watches"][0]
        return status["queued"] == status["running"] == status["waiting"] == 0

    wait_until(rests, "rest")


def seen(operator, count):
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == count, f"{count} objects in the store")


@pytest.mark.slow
def test_child_changes_of_two_owners_of_one_name_replace_each_other(start, operator, handler, widgets, config_maps):
    """Both wait to be announced: that of the owner which is there, then that of the one before it."""
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    keeper = keeper_of(config_maps)
    config_maps.create("a", ownerReferences=[reference(owner)])
    config_maps.create("b", ownerReferences=[reference(owner, uid="of-the-one-before"), keeper])
    handler.wait_finished(name="w", where=lambda request: names(request) == ["a"])
    at_rest(operator)
    # What one of them reads at once, it announces at once.
    for watcher in operator.children("watcher"):
        watcher.kill(signal.SIGSTOP)
    config_maps.merge_patch("a", {"data": {"a": "2"}})
    config_maps.merge_patch("b", {"data": {"a": "2"}})
    for watcher in operator.children("watcher"):
        watcher.kill(signal.SIGCONT)
    handler.wait_finished(name="w", where=lambda request: [child.get("data") for child in request.body["children"]]
                          == [{"a": "2"}])
    operator.stop()


# A version that nobody serves: the garbage collector cannot tell that the owner is absent, and leaves the reference.
UNTOLD = {"apiVersion": "example.com/v9"}
FORGED = {
    "another namespace": ("other", UNTOLD),
    "a slash": ("other", {**UNTOLD, "name": "default/w"}),
    "a slash, beside it": ("default", {**UNTOLD, "name": "default/w"}),
    "another name": ("default", {**UNTOLD, "name": "v"}),
    "another kind": ("default", {"kind": "Gadget"}),
    "another group": ("default", {"apiVersion": "example.org/v1"}),
}


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.slow
def test_children_from_foreign_namespaces(start, operator, handler, widgets, config_maps, elsewhere, what):
    """It is no child: its changes run nobody, and it is in no request."""
    namespace, forgery = FORGED[what]
    forged = elsewhere if namespace == "other" else config_maps
    handler.answer({})
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    keeper = keeper_of(forged)
    forged.create("forged", ownerReferences=[reference(owner, **forgery), keeper])
    forged.merge_patch("forged", {"data": {"a": "2"}})
    seen(operator, 2)
    witness = widgets.create("witness")
    handler.wait_finished(name="witness")
    config_maps.create("of-witness", ownerReferences=[reference(witness)])
    handler.wait_finished(name="witness", where=lambda request: names(request) == ["of-witness"])
    at_rest(operator)
    assert [request.body["reason"] for request in handler.requests(name="w")] == ["added"]
    config_maps.create("child", ownerReferences=[reference(owner)])
    handler.wait_finished(name="w", where=lambda request: "child" in names(request))
    operator.stop()
    assert all("forged" not in names(request) for request in handler.requests())
    assert len(forged.get("forged")["metadata"]["ownerReferences"]) == 2


def test_an_owner_of_the_cluster_has_its_children_in_all_namespaces(devserver, operator, handler, api, config_maps, elsewhere):
    operator.configure(devserver, [watch("namespaces", handler, api_version="v1", kind="Namespace",
                                         owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])])
    operator.start_ready().wait_synced()
    owner = api.resource("v1", "namespaces").create("team")
    handler.wait_finished(name="team")
    config_maps.create("a", ownerReferences=[reference(owner)])
    elsewhere.create("b", ownerReferences=[reference(owner)])
    handler.wait_finished(name="team", where=lambda request: names(request) == ["a", "b"])
    operator.stop()


EXCEPTIONAL = {
    "a long name": {"name": LONG},
    "a very long name": {"name": VERY_LONG},
    "a long uid": {"uid": LONG},
    "a very long uid": {"uid": VERY_LONG},
    "both": {"name": VERY_LONG, "uid": VERY_LONG},
    "control characters": {"name": "a\u0007b", "uid": "c\nd"},
    "a long kind of another": {"kind": VERY_LONG, "apiVersion": VERY_LONG},
}


@pytest.mark.parametrize("what", EXCEPTIONAL)
@pytest.mark.slow
def test_one_owner_reference_stops_the_operator(start, operator, handler, widgets, config_maps, what):
    """Of any object that anybody may make: it is in the store, its other owner has it, and it comes and goes."""
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    keeper = keeper_of(config_maps)
    exceptional = reference(owner, **{**UNTOLD, **EXCEPTIONAL[what]})
    config_maps.create("alone", ownerReferences=[exceptional, keeper])
    config_maps.create("shared", ownerReferences=[{**exceptional, "controller": True}, reference(owner), keeper])
    handler.wait_finished(name="w", where=lambda request: names(request) == ["shared"])
    seen(operator, 3)
    config_maps.merge_patch("alone", {"metadata": {"ownerReferences": [reference(owner)]}})
    handler.wait_finished(name="w", where=lambda request: names(request) == ["alone", "shared"])
    config_maps.merge_patch("alone", {"metadata": {"ownerReferences": [exceptional, keeper]}})
    handler.wait_finished(name="w", count=4, where=lambda request: True)
    operator.stop()
    config_maps.delete("alone")
    config_maps.delete("shared")
    count = len(handler.requests(name="w"))
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w", count=count + 1)
    assert handler.requests(name="w")[-1].body["children"] == []
    seen(operator, 1)
    config_maps.create("alone", ownerReferences=[exceptional, keeper])
    config_maps.delete("alone")
    config_maps.create("last", ownerReferences=[reference(owner)])
    handler.wait_finished(name="w", where=lambda request: names(request) == ["last"])
    if "another" not in what:
        assert len(operator.logs(message_id=MESSAGE_ID["OWNER_IGNORED"], key="default/alone")) == 1
        wait_until(lambda: operator.ctl.status()["watches"][1]["ownersIgnored"] >= 1, "that it is counted")
    operator.stop()


def test_an_object_with_a_long_owner_reference_goes_and_the_operator_stays(start, operator, handler, widgets, config_maps):
    """Its end was that of the operator (74), and of each start after that."""
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    config_maps.create("alone", ownerReferences=[reference(owner, **UNTOLD, name=LONG)])
    config_maps.create("marker")
    seen(operator, 2)
    config_maps.delete("alone")
    config_maps.create("last", ownerReferences=[reference(owner)])
    handler.wait_finished(name="w", where=lambda request: names(request) == ["last"])
    operator.stop()
