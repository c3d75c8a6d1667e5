# SPDX-License-Identifier: Apache-2.0
"""`children`: applied in the order of kinds, owned, remembered, pruned, and cleaned up with their object."""
import base64
import contextlib
import hashlib
import json

import pytest

from harness import ApiError, wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import allowing

RECORD = "widgets.example.com/children"
PART_OF = "applyset.k8s.io/part-of"


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        operator.start_ready().wait_synced()
        return operator

    return start



def at_rest(operator):
    def rests():
        status = operator.ctl.status()["watches"][0]
        return status["queued"] == 0 and status["running"] == 0

    wait_until(rests, lambda: f"rest: {operator.ctl.status()['watches']}")


def test_they_are_made_owned_and_remembered(start, handler, widgets, config_maps):
    handler.answer({"children": [config_map("b"), config_map("a", labels={"x": "y"})], "status": {"ok": True}})
    operator = start()
    widget = widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status") == {"ok": True}, "the status, which comes after the children")
    made = config_maps.get("a")
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": widget["metadata"]["uid"],
         "controller": True, "blockOwnerDeletion": True}]
    metadata = widgets.get("w")["metadata"]
    assert metadata["annotations"][RECORD] == "v1/ConfigMap/default/b,v1/ConfigMap/default/a"
    assert metadata["annotations"]["applyset.k8s.io/contains-group-kinds"] == "ConfigMap"
    # The specification: base64url, without padding, of the SHA-256 of name.namespace.kind.group.
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"w.default.Widget.example.com").digest()).decode().rstrip("=")
    assert metadata["labels"] == {"applyset.k8s.io/id": f"applyset-{digest}-v1"}
    assert made["metadata"]["labels"] == {"x": "y", PART_OF: f"applyset-{digest}-v1"}
    [entry] = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("widgets.example.com", "Apply")
    at_rest(operator)
    assert handler.count() == 1, "what is remembered is no reason to run"
    widgets.merge_patch("w", {"spec": {"again": 1}})
    handler.wait_finished(name="w", count=2)
    at_rest(operator)
    assert config_maps.get("a")["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    operator.stop()


def test_what_is_left_out_goes(start, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a"), config_map("b")]})
    operator = start()
    widgets.create("w")
    wait_until(lambda: set(config_maps.names()) >= {"a", "b"}, "both")
    config_maps.create("c", labels={"not": "ours"})
    handler.answer({"children": [config_map("b")]})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: widgets.get("w")["metadata"]["annotations"][RECORD] == "v1/ConfigMap/default/b", "a forgotten")
    assert not config_maps.exists("a") and config_maps.exists("b")
    handler.answer({"message": "no word of children: they stay"})
    widgets.merge_patch("w", {"spec": {"n": 3}})
    handler.wait_finished(name="w", count=3)
    at_rest(operator)
    assert config_maps.exists("b")
    handler.answer({"children": []})
    widgets.merge_patch("w", {"spec": {"n": 4}})
    wait_until(lambda: RECORD not in widgets.get("w")["metadata"].get("annotations", {}), "all forgotten")
    assert not config_maps.exists("b") and config_maps.exists("c")
    assert not widgets.get("w")["metadata"].get("labels"), "it is no parent of a set any more"
    operator.stop()


def test_only_what_is_ours_is_deleted(start, handler, widgets, config_maps):
    """An annotation is in the reach of whoever may write the object: it must not be a way to delete other things."""
    handler.answer({"children": []})
    config_maps.create("precious")
    operator = start()
    widgets.create("w", annotations={RECORD: "v1/ConfigMap/default/precious,nonsense,v1/ConfigMap/default/nothing"})
    operator.wait_for_log("because it is not this object's child")
    wait_until(lambda: RECORD not in widgets.get("w")["metadata"].get("annotations", {}), "forgotten")
    assert config_maps.exists("precious")
    operator.stop()


def taken_by_somebody(handler, widgets, config_maps):
    """A child, of which another manager sets a field later."""
    handler.answer({"children": [config_map("a", {"a": "ours"})]})
    widgets.create("w")
    wait_until(lambda: config_maps.exists("a"), "the child")
    config_maps.apply(config_map("a", {"a": "theirs"}), manager="somebody", force=True)
    handler.answer({"children": [config_map("a", {"a": "ours"}), config_map("b")]})


def test_conflicts_are_told_by_field(start, handler, widgets, config_maps):
    operator = start()
    taken_by_somebody(handler, widgets, config_maps)
    widgets.merge_patch("w", {"spec": {"n": 2}})
    message = operator.wait_for_log("1 of its children", key="default/w")["message"]
    assert "ConfigMap default/a cannot be applied" in message and ".data.a" in message and "somebody" in message
    assert config_maps.exists("b"), "the others are applied all the same"
    assert config_maps.get("a")["data"] == {"a": "theirs"}
    operator.stop()


def test_force_takes_over(start, handler, widgets, config_maps):
    operator = start(children={"force": True})
    taken_by_somebody(handler, widgets, config_maps)
    widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: config_maps.get("a")["data"] == {"a": "ours"}, "ours")
    operator.stop()


def test_no_owner_takes_a_child_from_another_one(start, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a")]})
    operator = start(retry={"first": "50ms", "max": "50ms"})
    first = widgets.create("first")
    wait_until(lambda: config_maps.exists("a"), "the child")
    widgets.create("second")
    handler.wait_finished(name="second", count=3)
    message = operator.wait_for_log("1 of its children", key="default/second")["message"]
    assert "ConfigMap default/a is not applied" in message and "it is a child of Widget.example.com default/first" in message

    def owners():
        return [(owner["name"], owner["uid"]) for owner in config_maps.get("a")["metadata"]["ownerReferences"]]

    assert owners() == [("first", first["metadata"]["uid"])]
    child = config_maps.get("a")["metadata"]["uid"]
    widgets.delete("first")
    # What a garbage collector does; by then it may be the next one's already.
    with contextlib.suppress(ApiError):
        config_maps.delete("a", {"preconditions": {"uid": child}})
    wait_until(lambda: owners()[0][0] == "second", "the next one's")
    operator.stop()


def test_order_of_kinds_and_cleanup_where_no_reference_may_be(start, handler, widgets, api, devserver):
    other = api.resource("v1", "configmaps", "other")
    handler.answer({"children": [config_map("a", namespace="other"),
                                 {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}]})
    operator = start()
    widgets.create("w")
    wait_until(lambda: api.raw("GET", "/api/v1/namespaces/other/configmaps/a").code == 200, "the child elsewhere")
    assert "ownerReferences" not in other.get("a")["metadata"]
    assert "ownerReferences" not in api.resource("v1", "namespaces").get("other")["metadata"]
    at_rest(operator)
    handler.answer({})
    widgets.delete("w")
    handler.wait_finished(name="w", action="deleted")
    wait_until(lambda: api.raw("GET", "/api/v1/namespaces/other").code == 404, "the deletion of both")
    operator.stop()

    def sent(verb):
        return [(request["resource"], request["status"]) for request in devserver.requests(
            lambda request: request.get("verb") == verb and request["resource"] in ("namespaces", "configmaps"))]

    assert sent("patch") == [("namespaces", 201), ("configmaps", 201)]
    assert sent("delete") == [("configmaps", 200), ("namespaces", 200)]
    assert handler.count() == 2


@pytest.mark.slow
def test_finalize_waits_until_they_are_gone(start, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a", finalizers=["example.com/hold"]), config_map("b")]})
    operator = start(finalizer=True)
    widgets.create("w")
    wait_until(lambda: config_maps.exists("b"), "the children")
    handler.answer({"done": False, "requeueAfter": "100ms"})
    widgets.delete("w")
    handler.wait_finished(name="w", action="finalize", count=2)
    assert config_maps.exists("a") and config_maps.exists("b"), "the handler needs them until it is done"
    handler.answer({})
    wait_until(lambda: config_maps.get("a")["metadata"].get("deletionTimestamp") and not config_maps.exists("b"),
               "their deletion")
    operator.wait_for_log("is released when its children are gone: waiting for ConfigMap a", key="default/w")
    assert widgets.exists("w"), "a child is still there"
    config_maps.merge_patch("a", {"metadata": {"finalizers": None}})
    wait_until(lambda: not widgets.exists("w"), "its release")
    assert not config_maps.exists("a")
    operator.stop()


@pytest.mark.parametrize("children, says", [
    ({}, "children: must be a list"),
    ([7], "children[0]: must be an object"),
    ([{}], "children[0].apiVersion: "),
    ([{"apiVersion": "v1"}], "children[0].kind: "),
    ([config_map("a"), {"apiVersion": "v1", "kind": "ConfigMap"}], "children[1].metadata: must be an object"),
    ([config_map("../a")], "children[0].metadata.name: "),
    ([config_map("a", namespace="")], "children[0].metadata.namespace: "),
    ([config_map("a", uid="1")], "children[0].metadata.uid: it belongs"),
    ([config_map("a", ownerReferences=[])], "children[0].metadata.ownerReferences: it is set by"),
    ([config_map("a", labels={PART_OF: "x"})], "children[0].metadata.labels.applyset.k8s.io/part-of: "),
    ([config_map("a", annotations=["b"])], "children[0].metadata.annotations: must be an object"),
    ([config_map("a", annotations=None)], "children[0].metadata.annotations: must be an object"),
    ([config_map("a"), config_map("a")], "children[1]: is the same object as children[0]"),
    ([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "namespace": "default"}}],
     "children[0].metadata.namespace: its kind belongs to no namespace"),
])
def test_wrong_ones_are_permanent_errors_with_their_place(start, handler, widgets, devserver, children, says):
    handler.answer({"children": children})
    operator = start()
    widgets.create("w")
    operator.wait_for_log(says, key="default/w")
    at_rest(operator)
    assert handler.count() == 1
    operator.stop()


def test_a_kind_that_is_not_served_and_comes_later(start, handler, widgets, api):
    gadget = {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    handler.answer({"children": [gadget]})
    operator = start(children=allowing("example.org/v1 Gadget"))
    widgets.create("w")
    operator.wait_for_log("Gadget g cannot be applied", key="default/w")
    api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions").create(body={
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    wait_until(lambda: api.raw("GET", "/apis/example.org/v1/namespaces/default/gadgets/g").code == 200, "the child")
    operator.stop()


def test_large_numbers_and_odd_texts_arrive_as_they_were_written(start, handler, widgets, config_maps):
    text = "\u00e4\u4e2d\U0001f600 \"quoted\" \\ \n"
    handler.answer({"children": [config_map("a", {"text": text})]})
    operator = start()
    widgets.create("w")
    wait_until(lambda: config_maps.exists("a"), "the child")
    assert config_maps.get("a")["data"] == {"text": text}
    operator.stop()


def test_another_tools_set_is_left_alone(start, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a")]})
    operator = start()
    widgets.create("w", annotations={"applyset.k8s.io/tooling": "kubectl/v1.30"})
    operator.wait_for_log("another tool's ApplySet", key="default/w")
    assert not config_maps.exists("a")
    operator.stop()


def test_one_that_is_being_deleted_is_no_success(start, operator, handler, widgets, config_maps):
    config_maps.create("c", metadata={"finalizers": ["example.com/slow"]})
    config_maps.delete("c")
    handler.answer({"children": [config_map("c")], "status": {"ok": True}})
    start(children={"force": True})
    widgets.create("w")
    operator.wait_for_log("the existing object is being deleted", key="default/w")
    config_maps.merge_patch("c", {"metadata": {"finalizers": None}})
    wait_until(lambda: widgets.get("w").get("status") == {"ok": True}, "the success")
    assert config_maps.get("c")["data"] == {"a": "1"}


def test_more_than_an_annotation_holds_is_said(start, operator, handler, widgets, config_maps):
    handler.answer({"children": [config_map(f"{number:03d}" + "x" * 240) for number in range(1000)]})
    start()
    widgets.create("w")
    assert "256 KiB" in operator.wait_for_log("children: are too many", key="default/w")["message"]
    assert not config_maps.names()


def test_all_errors_of_a_cleanup_are_told(start, operator, handler, widgets, config_maps, api, devserver):
    handler.behave('[ $RECONCILED_ACTION != reconcile ] || echo \'{"children":['
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}},'
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"}},'
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"three"}}]}\'')
    start(finalizer=True, readyCondition=True)
    widgets.create("w")
    wait_until(lambda: config_maps.names() == ["one", "three", "two"], "the children")
    faults = [devserver.fault(match={"verb": "delete", "resource": "configmaps", "name": name}, times=0, status=403,
                              message=f"{name} is precious") for name in ("one", "three")]
    widgets.delete("w")

    def told():
        conditions = widgets.get("w")["status"]["conditions"]
        events = api.resource("events.k8s.io/v1", "events", "default").list()["items"]
        notes = [event["note"] for event in events if event["reason"] == "CleanupFailed"]
        return [text for text in [condition["message"] for condition in conditions] + notes
                if "one is precious" in text and "three is precious" in text]

    wait_until(lambda: len(told()) == 2, lambda: f"both errors in the status and in an Event; {told()}")
    assert config_maps.names() == ["one", "three"], "what could be cleaned up is"
    for fault in faults:
        devserver.clear_faults(fault)
    wait_until(lambda: not widgets.exists("w"), "the end of the object")
    assert not config_maps.names()


# An answer 404 without a Status: the server does not serve the kind, or not yet, or it is a proxy's. Nothing is known then.

@pytest.fixture
def elsewhere(api):
    """Where no reference may be, and nobody but us deletes."""
    api.resource("v1", "namespaces").create("other")
    return api.resource("v1", "configmaps", "other")


@pytest.mark.parametrize("match", [{"verb": "delete", "resource": "configmaps"}, {"verb": "get", "resource": "configmaps"},
                                   {"verb": "patch", "resource": "widgets"}])
def test_not_served_is_not_gone(start, handler, widgets, elsewhere, devserver, match):
    handler.answer({"children": [config_map("a", namespace="other")]})
    operator = start(finalizer=True)
    widgets.create("w")
    wait_until(lambda: elsewhere.exists("a"), "the child")
    at_rest(operator)
    handler.answer({})
    devserver.fault(match=match, status=404, body="404 page not found\n", times=3)
    widgets.delete("w")
    operator.wait_for_log("404 page not found", key="default/w")
    wait_until(lambda: not widgets.exists("w"), "its release")
    assert not elsewhere.exists("a")
    operator.stop()


@pytest.mark.parametrize("seen", [False, True])
def test_what_is_gone_already_needs_no_deletion(start, handler, widgets, elsewhere, devserver, seen):
    """Somebody has deleted it; or does so between our GET and our DELETE."""
    handler.answer({"children": [config_map("a", namespace="other")]})
    operator = start(finalizer=True)
    widgets.create("w")
    wait_until(lambda: elsewhere.exists("a"), "the child")
    at_rest(operator)
    handler.answer({})
    if seen:
        gone = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
                "message": 'configmaps "a" not found', "details": {"name": "a", "kind": "configmaps"}}
        devserver.fault(match={"verb": "delete", "resource": "configmaps"}, status=404, body=json.dumps(gone),
                        contentType="application/json")
    else:
        elsewhere.delete("a")
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its release")
    operator.stop()
    assert handler.count() == 2 and not operator.logs(message_id=MESSAGE_ID["RUN_FAILED"])
    assert elsewhere.exists("a") == seen, "the server's word counts"


def test_a_kind_that_is_not_served_for_a_while_has_not_gone(start, handler, widgets, elsewhere, devserver):
    handler.answer({"children": [config_map("a", namespace="other")]})
    operator = start(finalizer=True)
    widgets.create("w")
    wait_until(lambda: elsewhere.exists("a"), "the child")
    at_rest(operator)
    operator.stop()
    handler.answer({})
    operator.start_ready().wait_synced()  # it knows no kinds yet
    devserver.fault(match={"verb": "discovery", "path": "/api/v1"}, status=404, body="404 page not found\n", times=2)
    widgets.delete("w")
    operator.wait_for_log("cannot be deleted yet", key="default/w")
    wait_until(lambda: not widgets.exists("w"), "its release")
    assert not elsewhere.exists("a")
    operator.stop()


def test_a_status_that_is_not_served_for_a_moment_is_written_later(start, operator, handler, widgets, devserver):
    handler.answer({"status": {"ok": True}})
    start()
    devserver.fault(match={"verb": "patch", "resource": "widgets/status"}, status=404, body="404 page not found\n", times=3)
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status") == {"ok": True}, "the status")
    assert "does not serve this kind" in operator.logs(key="default/w", message_id=MESSAGE_ID["RUN_FAILED"])[0]["message"]
    operator.stop()
