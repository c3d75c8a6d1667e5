# SPDX-License-Identifier: Apache-2.0
"""What a run writes, where a real API server has its own opinion: apply, conflicts, owners, status, conditions, Events,
finalizers, and the undoing of a failed attempt."""
import pytest

from harness import wait_until, watch

NAME = "widgets.example.com"


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def start(cluster, operator, handler, namespace):
    def start(**more):
        operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], **more)])
        return operator.start_ready().wait_synced()

    return start


@pytest.fixture
def config_maps(cluster, namespace):
    return cluster.api.resource("v1", "configmaps", namespace)


def ready(widgets, name):
    found = widgets.get(name).get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == "Ready"), {})


def test_status_conditions_and_patch(start, cluster, operator, handler, widgets):
    handler.answer({"status": {"phase": "Done"}, "patch": {"metadata": {"labels": {"seen": "yes"}}, "mistyped": 1},
                    "conditions": [{"type": "Warm", "status": "True", "reason": "Heated", "message": "by the sun"}]})
    start(readyCondition=True)
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the status")
    seen = widgets.get("w")
    assert seen["status"]["phase"] == "Done" and seen["metadata"]["labels"] == {"seen": "yes"}
    warm = next(entry for entry in seen["status"]["conditions"] if entry["type"] == "Warm")
    assert warm["observedGeneration"] == seen["metadata"]["generation"] and warm["lastTransitionTime"].endswith("Z")
    assert "mistyped" not in seen
    widgets.create("other")
    handler.wait_finished(name="other")
    if int(cluster.api.request("GET", "/version")["minor"].rstrip("+")) >= 25:  # older ones say nothing
        operator.wait_for_log('unknown field "mistyped"', level="warning")
    operator.stop()
    assert len(handler.requests(name="w")) == 1, "own writes cause no run"


def test_events_pass_its_validation_and_become_a_series(start, cluster, handler, widgets, namespace):
    handler.behave("echo the database is missing >&2; exit 1")
    start(retry={"first": "20ms", "max": "50ms"})
    widgets.create("w")
    events = cluster.api.resource("events.k8s.io/v1", "events", namespace)

    def series():
        found = [item for item in events.list()["items"] if item["reason"] == "ReconcileFailed"]
        return next((item for item in found if (item.get("series") or {}).get("count", 0) >= 2), None)

    event = wait_until(series, "the series", 60)
    assert event["regarding"]["name"] == "w" and event["reportingController"] == NAME
    assert "the database is missing" in event["note"] and event["action"] == "Reconcile"
    handler.answer({"events": [{"reason": "Odd:one-2.3", "note": "ü" * 2000}]})
    widgets.create("x")
    wait_until(lambda: [item for item in events.list()["items"] if item["reason"] == "Odd:one-2.3"], "the handler's own")


def test_children_are_applied_and_conflicts_named_by_field(start, handler, widgets, config_maps, operator):
    config_maps.create(body=config_map("shared", {"a": "theirs"}), query={"fieldManager": "somebody"})
    handler.answer({"children": [config_map("own"), {"manifest": config_map("shared"), "adopt": True}]})
    start(readyCondition=True, retry={"first": "100ms", "max": "1s"})
    uid = widgets.create("w")["metadata"]["uid"]
    wait_until(lambda: ".data.a" in ready(widgets, "w").get("message", ""), "the conflict", 60)
    assert "somebody" in ready(widgets, "w")["message"]
    assert config_maps.get("own")["metadata"]["ownerReferences"][0]["uid"] == uid
    assert config_maps.get("shared")["data"] == {"a": "theirs"}
    operator.stop()
    start(readyCondition=True, children={"force": True})
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the takeover", 60)
    assert config_maps.get("shared")["data"] == {"a": "1"}


def test_they_are_members_of_a_set_and_what_is_left_out_goes(start, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a"), config_map("b")]})
    start()
    widgets.create("w")
    wait_until(lambda: {"a", "b"} <= set(config_maps.names()), "both")
    metadata = widgets.get("w")["metadata"]
    mine = metadata["labels"]["applyset.k8s.io/id"]
    assert mine.startswith("applyset-") and mine.endswith("-v1")
    assert metadata["annotations"]["applyset.k8s.io/contains-group-kinds"] == "ConfigMap"
    assert metadata["annotations"]["applyset.k8s.io/tooling"].startswith("reconciled/")
    assert set(config_maps.names(labelSelector=f"applyset.k8s.io/part-of={mine}")) == {"a", "b"}
    config_maps.create("theirs", body=config_map("theirs"))
    handler.answer({"children": [config_map("b")]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: not config_maps.exists("a"), "the end of what was left out")
    wait_until(lambda: widgets.get("w")["metadata"]["annotations"][f"{NAME}/children"].split("/")[-1] == "b", "it to be forgotten")
    assert config_maps.exists("b") and config_maps.exists("theirs")


def test_those_that_no_reference_can_hold_go_with_their_object(start, cluster, handler, widgets, namespace):
    """In another namespace, and of the cluster: nobody but us deletes them."""
    cluster.api.resource("v1", "namespaces").create(f"{namespace}-other")
    elsewhere = cluster.api.resource("v1", "configmaps", f"{namespace}-other")
    roles = cluster.api.resource("rbac.authorization.k8s.io/v1", "clusterroles")
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"{namespace}-role"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}
    handler.answer({"children": [config_map("a", namespace=f"{namespace}-other"), role]})
    start(finalizer=True, readyCondition=True)
    widgets.create("w")
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the children")
    for made in (elsewhere.get("a"), roles.get(f"{namespace}-role")):
        assert "ownerReferences" not in made["metadata"]
    handler.answer({})
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "the end of it", 60)
    assert not elsewhere.exists("a") and not roles.exists(f"{namespace}-role")


def test_what_was_changed_is_restored_and_what_was_made_goes(start, handler, widgets, config_maps):
    handler.answer({"children": [config_map("good", {"a": "1", "b": "1"})]})
    start(readyCondition=True, onFailure="rollback", retry={"first": "1h", "max": "1h"})
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the first version")
    config_maps.merge_patch("good", {"data": {"theirs": "1"}})
    bad = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad"}, "spec": {"ports": [{"port": -1}]}}
    handler.answer({"children": [config_map("good", {"a": "2", "c": "1"}), config_map("new"), bad]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: ready(widgets, "w").get("status") == "False", "the failure")
    wait_until(lambda: config_maps.get("good")["data"] == {"a": "1", "b": "1", "theirs": "1"}, "what it was")
    wait_until(lambda: not config_maps.exists("new"), "the end of what was made")


def test_a_finalizer_waits_for_the_children(start, handler, widgets, config_maps):
    handler.behave('[ $RECONCILED_ACTION != reconcile ] || echo \'{"children":[{"apiVersion":"v1","kind":"ConfigMap",'
                   '"metadata":{"name":"slow","finalizers":["example.com/slow"]}}]}\'')
    start(finalizer=True)
    widgets.create("w")
    wait_until(lambda: config_maps.exists("slow"), "the child")
    handler.wait_finished(name="w")
    wait_until(lambda: widgets.get("w")["metadata"].get("finalizers"), "our finalizer")
    widgets.delete("w")
    wait_until(lambda: config_maps.get("slow")["metadata"].get("deletionTimestamp"), "the child's deletion")
    assert widgets.exists("w")
    config_maps.merge_patch("slow", {"metadata": {"finalizers": None}})
    wait_until(lambda: not widgets.exists("w"), "the end of it", 60)
    assert not config_maps.exists("slow")


def test_an_invalid_patch_ends_the_operator(start, operator, handler, widgets):
    handler.answer({"patch": {"metadata": {"labels": {"not a label": "?"}}}})
    start(onUnrecoverable="crash")
    widgets.create("w")
    operator.wait_exit(expect=70)
    [cause] = operator.logs(level="critical")
    assert "HTTP 422" in cause["message"] and "not a label" in cause["message"]
