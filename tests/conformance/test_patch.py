# SPDX-License-Identifier: Apache-2.0
"""Merge patch (RFC 7386) and JSON patch (RFC 6902)."""
import pytest

from harness import ApiError
from harness.api import STRATEGIC_MERGE_PATCH

SPEC = {"a": 1, "b": {"c": 2, "d": 3}, "list": [1, 2, 3], "text": "x"}


@pytest.mark.parametrize("patch, expected", [
    ({"a": 2}, {**SPEC, "a": 2}),
    ({"new": {"x": None, "y": 1}}, {**SPEC, "new": {"y": 1}}),
    ({"b": {"c": None}}, {**SPEC, "b": {"d": 3}}),
    ({"b": {"c": {"deep": True}}}, {**SPEC, "b": {"c": {"deep": True}, "d": 3}}),
    ({"b": 7}, {**SPEC, "b": 7}),
    ({"list": [9]}, {**SPEC, "list": [9]}),
    ({"list": []}, {**SPEC, "list": []}),
    ({"missing": None}, SPEC),
    ({}, SPEC),
])
def test_merge_patch(widgets, patch, expected):
    widgets.create("w", spec=SPEC)
    assert widgets.merge_patch("w", {"spec": patch})["spec"] == expected
    assert widgets.get("w")["spec"] == expected


def test_merge_patch_with_an_old_version_conflicts(widgets):
    version = widgets.create("w", spec=SPEC)["metadata"]["resourceVersion"]
    widgets.merge_patch("w", {"spec": {"a": 2}})
    with pytest.raises(ApiError) as caught:
        widgets.merge_patch("w", {"metadata": {"resourceVersion": version}, "spec": {"a": 3}})
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert widgets.get("w")["spec"]["a"] == 2


def test_merge_patch_with_the_current_version(widgets):
    version = widgets.create("w", spec=SPEC)["metadata"]["resourceVersion"]
    assert widgets.merge_patch("w", {"metadata": {"resourceVersion": version}, "spec": {"a": 3}})["spec"]["a"] == 3


OTHER_UID = "11111111-2222-3333-4444-555555555555"


def test_merge_patch_with_another_uid(widgets, configmaps):
    for resource in (widgets, configmaps):
        resource.create("w")
        with pytest.raises(ApiError) as caught:
            resource.merge_patch("w", {"metadata": {"uid": OTHER_UID, "labels": {"a": "3"}}})
        assert (caught.value.code, caught.value.reason) == (422, "Invalid")
        assert "metadata.uid" in [cause["field"] for cause in caught.value.causes]
        assert "labels" not in resource.get("w")["metadata"]


def test_merge_patch_with_the_uid_that_it_has(widgets):
    uid = widgets.create("w", spec=SPEC)["metadata"]["uid"]
    assert widgets.merge_patch("w", {"metadata": {"uid": uid}, "spec": {"a": 3}})["spec"]["a"] == 3


def test_the_version_is_judged_before_the_uid(widgets):
    version = widgets.create("w", spec=SPEC)["metadata"]["resourceVersion"]
    widgets.merge_patch("w", {"spec": {"a": 2}})
    for subresource in (None, "status"):
        with pytest.raises(ApiError) as caught:
            widgets.merge_patch("w", {"metadata": {"resourceVersion": version, "uid": OTHER_UID}, "status": {"a": 3}}, subresource)
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")


def test_the_status_of_a_custom_resource_knows_no_uid(widgets):
    """Nothing but its version binds a status to an object; /status replaces all metadata before it is looked at."""
    uid = widgets.create("w", spec=SPEC)["metadata"]["uid"]
    patched = widgets.merge_patch("w", {"metadata": {"uid": OTHER_UID}, "status": {"a": 1}}, "status")
    assert (patched["status"], patched["metadata"]["uid"]) == ({"a": 1}, uid)
    applied = widgets.apply({**widgets.object("w"), "metadata": {"name": "w", "uid": OTHER_UID}, "status": {"b": 1}}, "one", "status")
    assert (applied["status"], applied["metadata"]["uid"]) == ({"a": 1, "b": 1}, uid)


def test_merge_patch_of_labels_and_finalizers(widgets):
    widgets.create("w", labels={"a": "1", "b": "2"}, finalizers=["example.com/one"])
    patched = widgets.merge_patch("w", {"metadata": {"labels": {"a": None, "c": "3"},
                                                     "finalizers": ["example.com/one", "example.com/two"]}})
    assert patched["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert patched["metadata"]["finalizers"] == ["example.com/one", "example.com/two"]


def test_merge_patch_cannot_change_identity(widgets):
    created = widgets.create("w")
    with pytest.raises(ApiError) as caught:
        widgets.merge_patch("w", {"metadata": {"name": "other"}})
    assert caught.value.code in (400, 422)
    patched = widgets.merge_patch("w", {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})
    assert patched["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]


def test_patch_of_a_missing_object(widgets):
    with pytest.raises(ApiError) as caught:
        widgets.merge_patch("nothing", {"spec": {}})
    assert caught.value.code == 404


@pytest.mark.parametrize("patch, expected", [
    ([{"op": "add", "path": "/spec/new", "value": {"x": 1}}], {**SPEC, "new": {"x": 1}}),
    ([{"op": "add", "path": "/spec/list/1", "value": 9}], {**SPEC, "list": [1, 9, 2, 3]}),
    ([{"op": "add", "path": "/spec/list/-", "value": 9}], {**SPEC, "list": [1, 2, 3, 9]}),
    ([{"op": "remove", "path": "/spec/list/0"}], {**SPEC, "list": [2, 3]}),
    ([{"op": "remove", "path": "/spec/b/c"}], {**SPEC, "b": {"d": 3}}),
    ([{"op": "replace", "path": "/spec/text", "value": "y"}], {**SPEC, "text": "y"}),
    ([{"op": "move", "from": "/spec/a", "path": "/spec/z"}],
     {"b": {"c": 2, "d": 3}, "list": [1, 2, 3], "text": "x", "z": 1}),
    ([{"op": "copy", "from": "/spec/b", "path": "/spec/z"}], {**SPEC, "z": {"c": 2, "d": 3}}),
    ([{"op": "test", "path": "/spec/a", "value": 1}, {"op": "replace", "path": "/spec/a", "value": 2}], {**SPEC, "a": 2}),
    ([{"op": "add", "path": "/spec/with~1slash", "value": 1}, {"op": "add", "path": "/spec/with~0tilde", "value": 2}],
     {**SPEC, "with/slash": 1, "with~tilde": 2}),
])
def test_json_patch(widgets, patch, expected):
    widgets.create("w", spec=SPEC)
    assert widgets.json_patch("w", patch)["spec"] == expected
    assert widgets.get("w")["spec"] == expected


@pytest.mark.parametrize("patch", [
    [{"op": "test", "path": "/spec/a", "value": 99}, {"op": "replace", "path": "/spec/a", "value": 2}],
    [{"op": "remove", "path": "/spec/missing"}],
])
def test_json_patch_that_does_not_apply(widgets, patch):
    widgets.create("w", spec=SPEC)
    with pytest.raises(ApiError) as caught:
        widgets.json_patch("w", patch)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert widgets.get("w")["spec"] == SPEC


def test_json_patch_that_tests_the_version(widgets):
    version = widgets.create("w", spec=SPEC)["metadata"]["resourceVersion"]
    patch = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, {"op": "replace", "path": "/spec/a", "value": 2}]
    assert widgets.json_patch("w", patch)["spec"]["a"] == 2
    with pytest.raises(ApiError) as caught:
        widgets.json_patch("w", patch)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_json_patch_that_is_none(api, widgets):
    widgets.create("w", spec=SPEC)
    response = api.raw("PATCH", widgets.path + "/w", {"op": "add"}, "application/json-patch+json")
    assert response.code == 400


def test_patch_type_that_is_not_supported(api, widgets):
    widgets.create("w")
    response = api.raw("PATCH", widgets.path + "/w", {}, "application/json")
    assert (response.code, response.body["reason"]) == (415, "UnsupportedMediaType")


def test_strategic_merge_patch_is_refused_for_custom_resources(api, widgets):
    widgets.create("w")
    response = api.raw("PATCH", widgets.path + "/w", {"spec": {"a": 1}}, STRATEGIC_MERGE_PATCH)
    assert response.code == 415


def test_merge_patch_of_status_leaves_the_rest(widgets):
    widgets.create("w", spec=SPEC)
    widgets.merge_patch("w", {"status": {"a": 1, "b": 2}}, "status")
    patched = widgets.merge_patch("w", {"status": {"a": None, "c": 3}, "spec": {"a": 5}}, "status")
    assert patched["status"] == {"b": 2, "c": 3}
    assert patched["spec"] == SPEC


def test_json_patch_of_status(widgets):
    widgets.create("w", spec=SPEC)
    patched = widgets.json_patch("w", [{"op": "add", "path": "/status", "value": {"a": 1}}], "status")
    assert patched["status"] == {"a": 1}
