# SPDX-License-Identifier: Apache-2.0
"""DELETE: at once or through finalizers, preconditions, collections. No controller runs on the real server, so garbage
collection by owner is tested on reconciled-devserver alone (tests/integration/test_devserver.py)."""
import re

import pytest

from harness import ApiError


def fails(code, reason, call, *arguments, **options):
    with pytest.raises(ApiError) as caught:
        call(*arguments, **options)
    assert (caught.value.code, caught.value.reason) == (code, reason), caught.value
    return caught.value


def test_delete(widgets):
    created = widgets.create("a")
    answer = widgets.delete("a")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"]["name"] == "a"
    assert answer["details"]["uid"] == created["metadata"]["uid"]
    fails(404, "NotFound", widgets.get, "a")
    fails(404, "NotFound", widgets.delete, "a")


def test_created_again_it_is_another_object(widgets):
    first = widgets.create("a")["metadata"]
    widgets.delete("a")
    second = widgets.create("a")["metadata"]
    assert first["uid"] != second["uid"]
    assert int(second["resourceVersion"]) > int(first["resourceVersion"])
    assert second["generation"] == 1


def test_finalizers_hold_it(widgets):
    widgets.create("a", finalizers=["example.com/one", "example.com/two"])
    answer = widgets.delete("a")
    assert answer["kind"] == "Widget"
    held = widgets.get("a")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", held["metadata"]["deletionTimestamp"])
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    widgets.merge_patch("a", {"metadata": {"finalizers": ["example.com/two"]}})
    assert widgets.exists("a")
    widgets.merge_patch("a", {"metadata": {"finalizers": []}})
    assert not widgets.exists("a")


def test_deleting_again_changes_nothing(widgets):
    widgets.create("a", finalizers=["example.com/one"])
    first = widgets.delete("a")["metadata"]
    second = widgets.delete("a")["metadata"]
    assert first["deletionTimestamp"] == second["deletionTimestamp"]
    assert widgets.get("a")["metadata"]["deletionTimestamp"] == first["deletionTimestamp"]


def test_deletion_raises_the_generation(widgets):
    assert widgets.create("a", finalizers=["example.com/one"])["metadata"]["generation"] == 1
    widgets.delete("a")
    assert widgets.get("a")["metadata"]["generation"] == 2


def test_what_is_being_deleted_can_still_change(widgets):
    widgets.create("a", spec={"n": 0}, finalizers=["example.com/one"])
    widgets.delete("a")
    assert widgets.merge_patch("a", {"spec": {"n": 1}})["spec"] == {"n": 1}
    assert widgets.merge_patch("a", {"status": {"s": 1}}, "status")["status"] == {"s": 1}


def test_no_finalizer_may_come_while_it_is_being_deleted(widgets):
    widgets.create("a", finalizers=["example.com/one"])
    widgets.delete("a")
    error = None
    with pytest.raises(ApiError) as caught:
        widgets.merge_patch("a", {"metadata": {"finalizers": ["example.com/one", "example.com/late"]}})
    error = caught.value
    assert error.code == 422
    assert "no new finalizers can be added if the object is being deleted" in error.message


def test_deletion_timestamp_cannot_be_removed(widgets):
    widgets.create("a", finalizers=["example.com/one"])
    stamp = widgets.delete("a")["metadata"]["deletionTimestamp"]
    patched = widgets.merge_patch("a", {"metadata": {"deletionTimestamp": None}})
    assert patched["metadata"]["deletionTimestamp"] == stamp


def test_the_last_finalizer_by_replace(widgets):
    widgets.create("a", finalizers=["example.com/one"])
    widgets.delete("a")
    held = widgets.get("a")
    held["metadata"]["finalizers"] = []
    widgets.replace(held)
    assert not widgets.exists("a")


def test_a_finalizer_must_be_qualified(widgets):
    fails(422, "Invalid", widgets.create, "a", finalizers=["not valid"])


def test_uid_precondition(widgets):
    created = widgets.create("a")
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1",
             "preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}
    fails(409, "Conflict", widgets.delete, "a", wrong)
    assert widgets.exists("a")
    widgets.delete("a", {"kind": "DeleteOptions", "apiVersion": "v1",
                         "preconditions": {"uid": created["metadata"]["uid"]}})
    assert not widgets.exists("a")


def test_resource_version_precondition(widgets):
    old = widgets.create("a")["metadata"]["resourceVersion"]
    new = widgets.merge_patch("a", {"spec": {"n": 1}})["metadata"]["resourceVersion"]
    fails(409, "Conflict", widgets.delete, "a", {"preconditions": {"resourceVersion": old}})
    widgets.delete("a", {"preconditions": {"resourceVersion": new}})
    assert not widgets.exists("a")


def test_propagation_policies(widgets):
    for policy in ("Background", "Orphan"):
        widgets.create("a")
        widgets.delete("a", {"propagationPolicy": policy})
    assert widgets.api.raw("DELETE", widgets.path + "/b", {"propagationPolicy": "Sideways"}).code in (404, 422)


def test_foreground_waits_for_the_collector(widgets):
    widgets.create("a", finalizers=["example.com/one"])
    widgets.delete("a", {"propagationPolicy": "Foreground"})
    assert "foregroundDeletion" in widgets.get("a")["metadata"]["finalizers"]


def test_delete_collection(widgets):
    for name in ("a", "b", "c"):
        widgets.create(name, labels={"gone": "no" if name == "c" else "yes"})
    answer = widgets.delete_collection(labelSelector="gone=yes")
    assert answer["kind"] in ("WidgetList", "Status")
    assert widgets.names() == ["c"]


def test_owner_references_are_checked(widgets):
    owner = widgets.create("owner")["metadata"]
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner["uid"]}
    child = widgets.create("child", ownerReferences=[{**reference, "controller": True}])
    assert child["metadata"]["ownerReferences"] == [{**reference, "controller": True}]
    fails(422, "Invalid", widgets.create, "no-uid", ownerReferences=[{**reference, "uid": ""}])
    fails(422, "Invalid", widgets.create, "two-controllers",
          ownerReferences=[{**reference, "controller": True}, {**reference, "uid": "other", "controller": True}])
