# SPDX-License-Identifier: Apache-2.0
"""A server, or a proxy before it, that gives answers to other questions: none of it becomes an object of the watch."""
import json

import pytest

from harness import watch
from harness import wait_until
from harness.operator import MESSAGE_ID

from .conftest import LIST, WATCH

# What was not asked for, where Widgets of the namespace default were.
LIES = {
    "namespace": {"metadata": {"namespace": "foreign"}},
    "no namespace": {"metadata": {"namespace": None}},
    "kind": {"kind": "Secret"},
    "group": {"apiVersion": "example.org/v1"},
}


def lie(how, name="lie"):
    change = LIES[how]
    metadata = {"name": name, "namespace": "default", "uid": "11", "resourceVersion": "999999", **change.get("metadata", {})}
    return {"apiVersion": change.get("apiVersion", "example.com/v1"), "kind": change.get("kind", "Widget"),
            "metadata": {key: value for key, value in metadata.items() if value is not None}, "spec": {}}


def told(listing):
    return listing.operator.logs(lambda record: "was not asked for" in record["message"] and record["level"] == "warning"
                                 and "message_id" not in record)


def answered(listing):
    """Nothing is run for a lie, nothing counts as deleted, and the watch works."""
    listing.works()
    listing.wait_state("in-sync")
    listing.stop()
    assert listing.actions() == [("reconcile", "kept"), ("reconcile", "proof")]


def test_an_event_that_was_not_asked_for_leads_to_a_list(listing):
    """Of another kind, group or namespace; told each time."""
    listing.create("kept")
    listing.start_synced(namespaces=["default"])
    listing.ran("kept")
    for number, (how, event) in enumerate((how, event) for how in LIES for event in ("ADDED", "DELETED")):
        before = len(listing.lists())
        listing.devserver.fault(WATCH, atEvent=1, line=json.dumps({"type": event, "object": lie(how)}) + "\n")
        listing.devserver.close_watches("clean")
        listing.wait_lists(before + 1)
        listing.wait_state("in-sync")
        assert len(told(listing)) == number + 1 and "lie" in told(listing)[-1]["message"], (how, event)
    answered(listing)


@pytest.mark.parametrize("how", ["namespace", "kind"])
def test_a_list_that_was_not_asked_for_is_none(listing, how):
    """Nothing that it lacks counts as deleted."""
    listing.create("kept")
    listing.start_synced(namespaces=["default"])
    listing.ran("kept")
    body = json.dumps({"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": {"resourceVersion": "999999"},
                       "items": [lie(how)]})
    # The probe beside the watch asks for a list of one; it may be the first to be answered so.
    listing.devserver.fault(LIST, times=3, status=200, body=body, contentType="application/json")
    listing.devserver.fault(WATCH, error={"code": 410})
    listing.devserver.close_watches("cut")
    wait_until(lambda: len(told(listing)) >= 2, "both to be told")
    listing.operator.wait_for_log("was not asked for", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    answered(listing)


@pytest.mark.parametrize("version", ["9" * 5000, "1\u0007"], ids=["long", "control"])
def test_a_list_with_a_version_that_is_none_is_a_failure_of_the_list(listing, version):
    """A version is kept, and sent to the supervisor, which takes no such text."""
    listing.create("kept")
    body = json.dumps({"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": {"resourceVersion": version}, "items": []})
    listing.devserver.fault(LIST, times=3, status=200, body=body, contentType="application/json")
    listing.start()
    listing.operator.wait_for_log("cannot be read", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    listing.ran("kept")
    answered(listing)


def test_a_cluster_whose_uid_is_none_is_asked_again(listing):
    body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u" * 100_000}})
    listing.devserver.fault({"verb": "get", "resource": "namespaces"}, times=2, status=200, body=body, contentType="application/json")
    listing.create("kept")
    listing.start()
    listing.operator.wait_for_log("namespace kube-system cannot be read", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    listing.ran("kept")
    answered(listing)


def test_a_bookmark_of_another_kind_is_none(listing):
    """It does not move the version from which the watch is resumed."""
    listing.start_synced()
    bookmark = {"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"resourceVersion": "999999"}}}
    listing.devserver.fault(WATCH, atEvent=1, line=json.dumps(bookmark) + "\n", close="clean")
    listing.devserver.close_watches("clean")
    wait_until(lambda: told(listing), "the bookmark to be told")
    listing.wait_state("in-sync")
    listing.works()
    listing.stop()
    assert "999999" not in str([request["query"] for request in listing.watches()])


@pytest.mark.parametrize("resource", ["widgets", "widgets/status"])
def test_a_write_that_is_answered_with_another_object_blocks_nothing(devserver, operator, handler, widgets, resource):
    """Its version would be one that the watch never comes to."""
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "y", "uid": "1", "resourceVersion": "9999999"}}
    handler.behave("""printf '{"status":{"at":"%s"}}' "$(date +%N)" """)
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, retry={"first": "50ms", "max": "100ms"})])
    operator.start_ready().wait_synced()
    devserver.fault(match={"verb": "patch", "resource": resource}, times=1, status=200, body=json.dumps(other),
                    contentType="application/json")
    widgets.create("a")
    handler.wait_finished(name="a")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_finished(name="a", where=lambda request: request.object.get("spec", {}).get("size") == 2)
    operator.stop()
