# SPDX-License-Identifier: Apache-2.0
"""What others do to the annotations of an object that has children."""
import pytest

from harness import wait_until, watch
from harness.busy import (LOST, others_are_left_alone_when_the_record_is_lost, pruned_though_the_record_is_lost,
                          released_only_when_lost_children_are_gone)
from harness.operator import MESSAGE_ID


def config_map(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        more.setdefault("retry", {"first": "50ms", "max": "100ms"})
        operator.configure(devserver, [watch("widgets", handler, **more)])
        operator.start_ready().wait_synced()
        return operator

    return start


@pytest.fixture
def elsewhere(api):
    """Where no reference may be, so that nobody but us deletes."""
    api.resource("v1", "namespaces").create("other")
    return api.resource("v1", "configmaps", "other")


@pytest.mark.parametrize("lose", LOST)
def test_pruned_though_the_record_is_lost(start, handler, widgets, elsewhere, lose):
    pruned_though_the_record_is_lost(start, handler, widgets, elsewhere, lose)


@pytest.mark.parametrize("lose", LOST)
def test_released_only_when_lost_children_are_gone(start, handler, widgets, elsewhere, lose):
    released_only_when_lost_children_are_gone(start, handler, widgets, elsewhere, lose)


def test_others_are_left_alone_when_the_record_is_lost(start, handler, widgets, elsewhere):
    others_are_left_alone_when_the_record_is_lost(start, handler, widgets, elsewhere)


def test_nothing_is_released_while_lost_children_cannot_be_listed(start, handler, widgets, elsewhere, devserver):
    operator = start(finalizer=True)
    handler.behave("""[ "$RECONCILED_ACTION" != reconcile ] || printf '{"children": [{"apiVersion": "v1", "kind": "ConfigMap",
"metadata": {"name": "a", "namespace": "other"}}], "status": {"made": true}}'""")
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status", {}).get("made"), "its child")
    fault = devserver.fault(match={"verb": "list", "resource": "configmaps"}, status=403, times=0)
    assert fault is not None
    widgets.merge_patch("w", {"metadata": {"annotations": None}})
    widgets.delete("w")
    operator.wait_for_log("cannot be looked for", key="default/w")
    assert widgets.exists("w") and elsewhere.exists("a")
    devserver.clear_faults()
    wait_until(lambda: not widgets.exists("w"), "the end of it")
    assert not elsewhere.exists("a")
    operator.stop()


@pytest.mark.parametrize("of", ["the own namespace", "the other namespace"])
def test_lost_children_are_looked_for_where_they_were(start, handler, widgets, config_maps, elsewhere, devserver, of):
    """Nobody may list all namespaces. Where one of theirs may not be listed either, nothing is forgotten, and that is told."""
    handler.behave("""[ "$RECONCILED_ACTION" != reconcile ] || printf '{"children": [
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "other"}},
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}], "status": {"made": true}}'""")
    operator = start(finalizer=True)
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status", {}).get("made"), "its children")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "the end of its run")
    devserver.fault(match={"verb": "list", "resource": "configmaps", "path": "/api/v1/configmaps"}, status=403, times=0)
    refused = "default" if of == "the own namespace" else "other"
    devserver.fault(match={"verb": "list", "resource": "configmaps", "namespace": refused}, status=403, times=0)
    widgets.merge_patch("w", {"metadata": {"annotations": None}})
    widgets.delete("w")
    said = operator.wait_for_log("cannot be looked for", key="default/w")
    assert f"ConfigMap {refused}/*" in said["message"]
    assert widgets.exists("w") and elsewhere.exists("a") and config_maps.exists("b")
    devserver.clear_faults()
    devserver.fault(match={"verb": "list", "resource": "configmaps", "path": "/api/v1/configmaps"}, status=403, times=0)
    wait_until(lambda: not widgets.exists("w"), "the end of it")
    assert not elsewhere.exists("a") and not config_maps.exists("b")
    operator.stop()


def test_no_list_is_asked_for_while_the_record_is_there(start, handler, widgets, config_maps, devserver):
    operator = start()
    handler.answer({"children": [config_map("a"), config_map("b")], "status": {"made": 1}})
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status", {}).get("made") == 1, "its children")
    handler.answer({"children": [], "status": {"made": 2}})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: widgets.get("w")["status"]["made"] == 2, "their end")
    handler.answer({"children": [config_map("c")], "status": {"made": 3}})
    widgets.merge_patch("w", {"spec": {"size": 3}})
    wait_until(lambda: widgets.get("w")["status"]["made"] == 3, "another one")
    assert config_maps.names() == ["c"]
    operator.stop()
    assert not [each for each in devserver.requests() if each.get("verb") == "list" and each.get("resource") == "configmaps"
                and "part-of" in str(each)]


def test_annotations_that_others_have_filled_harm_that_object_only(start, handler, widgets, config_maps):
    """The API server takes no more than 256 KiB of them; that is no error of the operator."""
    handler.behave("""printf '{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s"}}]}' $RECONCILED_NAME""")
    operator = start()
    full = "\"" * (256 * 1024 - 40)  # as JSON it is twice as long
    widgets.create("full", metadata={"annotations": {"example.org/full": full}})
    said = operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"], key="default/full")
    assert "no room" in said["message"] and "256 KiB" in said["message"]
    widgets.create("other")
    wait_until(lambda: config_maps.exists("other"), "the child of another object")
    assert not config_maps.exists("full")
    widgets.merge_patch("full", {"metadata": {"annotations": {"example.org/full": "\"" * (250 * 1024)}}})
    wait_until(lambda: config_maps.exists("full"), "its child, once there is room")
    operator.stop()


@pytest.mark.parametrize("replaced", ["with the label", "after it has left"])
def test_the_record_is_taken_off_while_the_object_is_away(start, handler, widgets, config_maps, replaced):
    """The kinds were in the ledger's row, which goes when the object leaves the selection. Owned kinds are found in the stores."""
    handler.answer({"children": [config_map("a"), config_map("b")]})
    operator = start(labelSelector="use=yes", finalizer=True, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    widgets.create("w", labels={"use": "yes"})
    wait_until(lambda: config_maps.exists("a") and config_maps.exists("b"), "both")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "the end of its run")
    handler.answer({"children": [config_map("a")]})
    if replaced != "with the label":
        widgets.merge_patch("w", {"metadata": {"labels": {"use": "no"}}})
        wait_until(lambda: not widgets.get("w")["metadata"].get("finalizers"), "it to have left")
    widgets.replace(widgets.object("w", spec={}, labels={"use": "no"},
                                   metadata={"resourceVersion": widgets.get("w")["metadata"]["resourceVersion"]}))
    wait_until(lambda: operator.ctl.status()["watches"][0]["objects"] == 0, "it to have left")
    widgets.merge_patch("w", {"metadata": {"labels": {"use": "yes"}}})
    wait_until(lambda: not config_maps.exists("b"), lambda: f"b to go: {widgets.get('w')['metadata'].get('annotations')}")
    assert config_maps.exists("a")
    wait_until(lambda: widgets.get("w")["metadata"]["annotations"]["widgets.example.com/children"] == "v1/ConfigMap/default/a",
               "the new list")
    operator.stop()
