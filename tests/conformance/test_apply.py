# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: who owns which field, and what follows from it."""
import pytest

from harness import ApiError


def managers(found):
    return {entry["manager"]: entry for entry in found["metadata"].get("managedFields", [])}


def owned(found, manager, operation=None):
    """The fieldsV1 of this manager, {} when it owns nothing."""
    for entry in found["metadata"].get("managedFields", []):
        if entry["manager"] == manager and operation in (None, entry["operation"]):
            return entry["fieldsV1"]
    return {}


def test_apply_creates(api, widgets):
    response = api.raw("PATCH", widgets.path + "/a", widgets.object("a", {"n": 1}), "application/apply-patch+yaml",
                       {"fieldManager": "one"})
    assert response.code == 201
    entry = managers(response.body)["one"]
    assert entry["operation"] == "Apply"
    assert entry["apiVersion"] == "example.com/v1"
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["time"]
    assert entry["fieldsV1"]["f:spec"]["f:n"] == {}


def test_apply_accepts_yaml(api, widgets):
    text = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 1\n"
    response = api.raw("PATCH", widgets.path + "/a", text, "application/apply-patch+yaml", {"fieldManager": "one"})
    assert response.code == 201
    assert widgets.get("a")["spec"] == {"size": 1}


def test_apply_again_without_change_keeps_the_version(widgets):
    first = widgets.apply(widgets.object("a", {"n": 1}), "one")
    second = widgets.apply(widgets.object("a", {"n": 1}), "one")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_apply_needs_a_field_manager(api, widgets):
    response = api.raw("PATCH", widgets.path + "/a", widgets.object("a"), "application/apply-patch+yaml")
    assert response.code in (400, 422)
    assert "fieldManager" in response.text
    assert not widgets.exists("a")


def test_apply_refuses_managed_fields(api, widgets):
    body = widgets.object("a", metadata={"managedFields": [{"manager": "x", "operation": "Apply"}]})
    response = api.raw("PATCH", widgets.path + "/a", body, "application/apply-patch+yaml", {"fieldManager": "one"})
    assert response.code == 400
    assert "managedFields must be nil" in response.body["message"]


def test_a_field_left_out_is_removed(widgets):
    widgets.apply(widgets.object("a", {"keep": 1, "drop": 2, "map": {"x": 1, "y": 2}}), "one")
    found = widgets.apply(widgets.object("a", {"keep": 1, "map": {"x": 1}}), "one")
    assert found["spec"] == {"keep": 1, "map": {"x": 1}}


def test_labels_left_out_are_removed_and_others_stay(widgets):
    widgets.apply(widgets.object("a", labels={"mine": "1", "both": "1"}), "one")
    widgets.merge_patch("a", {"metadata": {"labels": {"theirs": "1"}}})
    found = widgets.apply(widgets.object("a", labels={"both": "1"}), "one")
    assert found["metadata"]["labels"] == {"both": "1", "theirs": "1"}


def test_two_managers_with_their_own_fields(widgets):
    widgets.apply(widgets.object("a", {"one": 1}), "one")
    found = widgets.apply(widgets.object("a", {"two": 2}), "two")
    assert found["spec"] == {"one": 1, "two": 2}
    found = widgets.apply(widgets.object("a", {}), "one")
    assert found["spec"] == {"two": 2}


def test_conflict(widgets):
    widgets.apply(widgets.object("a", {"n": 1}), "one")
    with pytest.raises(ApiError) as caught:
        widgets.apply(widgets.object("a", {"n": 2}), "two")
    error = caught.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert [(cause["reason"], cause["field"]) for cause in error.causes] == [("FieldManagerConflict", ".spec.n")]
    assert "one" in error.causes[0]["message"]
    assert widgets.get("a")["spec"] == {"n": 1}


def test_force_takes_the_field(widgets):
    widgets.apply(widgets.object("a", {"n": 1, "other": 1}), "one")
    found = widgets.apply(widgets.object("a", {"n": 2}), "two", force=True)
    assert found["spec"] == {"n": 2, "other": 1}
    assert "f:n" not in owned(found, "one")["f:spec"]
    assert "f:n" in owned(found, "two")["f:spec"]


def test_the_same_value_is_shared(widgets):
    widgets.apply(widgets.object("a", {"keep": 1, "n": 1}), "one")
    found = widgets.apply(widgets.object("a", {"n": 1}), "two")
    assert "f:n" in owned(found, "one")["f:spec"] and "f:n" in owned(found, "two")["f:spec"]
    found = widgets.apply(widgets.object("a", {"keep": 1}), "one")
    assert found["spec"] == {"keep": 1, "n": 1}, "the other owner still wants it"
    found = widgets.apply(widgets.object("a", {"keep": 1}), "two")
    assert found["spec"] == {"keep": 1}


def test_a_write_by_others_takes_ownership(widgets):
    widgets.apply(widgets.object("a", {"n": 1}), "one")
    found = widgets.merge_patch("a", {"spec": {"n": 2}}, fieldManager="editor")
    assert "f:n" not in owned(found, "one").get("f:spec", {})
    assert owned(found, "editor", "Update")["f:spec"]["f:n"] == {}
    with pytest.raises(ApiError) as caught:
        widgets.apply(widgets.object("a", {"n": 1}), "one")
    assert caught.value.code == 409


def test_create_and_update_record_their_manager(widgets):
    created = widgets.create("a", spec={"n": 1}, query={"fieldManager": "creator"})
    assert owned(created, "creator", "Update")["f:spec"]["f:n"] == {}


def test_lists_without_a_schema_are_atomic(widgets):
    widgets.apply(widgets.object("a", {"list": [1, 2]}), "one")
    with pytest.raises(ApiError) as caught:
        widgets.apply(widgets.object("a", {"list": [1, 2, 3]}), "two")
    assert caught.value.causes[0]["field"] == ".spec.list"
    assert widgets.apply(widgets.object("a", {"list": [3]}), "one")["spec"] == {"list": [3]}


def test_finalizers_are_a_set(widgets):
    widgets.apply(widgets.object("a", finalizers=["example.com/one"]), "one")
    found = widgets.apply(widgets.object("a", finalizers=["example.com/two"]), "two")
    assert sorted(found["metadata"]["finalizers"]) == ["example.com/one", "example.com/two"]
    found = widgets.apply(widgets.object("a"), "one")
    assert found["metadata"]["finalizers"] == ["example.com/two"]
    widgets.apply(widgets.object("a"), "two")


def test_owner_references_are_merged_by_uid(widgets):
    def reference(name):
        found = widgets.create(name)["metadata"]
        return {"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": found["uid"]}

    first, second = reference("first"), reference("second")
    widgets.apply(widgets.object("a", ownerReferences=[first]), "one")
    found = widgets.apply(widgets.object("a", ownerReferences=[second]), "two")
    assert sorted(entry["name"] for entry in found["metadata"]["ownerReferences"]) == ["first", "second"]


def test_apply_of_status(widgets):
    widgets.create("a", spec={"n": 1})
    body = {**widgets.object("a"), "status": {"phase": "Ready", "count": 1}}
    assert widgets.apply(body, "one", "status")["status"] == {"phase": "Ready", "count": 1}
    body["status"] = {"phase": "Ready"}
    found = widgets.apply(body, "one", "status")
    assert found["status"] == {"phase": "Ready"}
    assert found["spec"] == {"n": 1}


def test_apply_of_the_object_leaves_status(widgets):
    widgets.create("a", spec={"n": 1})
    widgets.merge_patch("a", {"status": {"phase": "Ready"}}, "status")
    found = widgets.apply({**widgets.object("a", {"m": 2}), "status": {"phase": "Stolen"}}, "one", force=True)
    assert found["status"] == {"phase": "Ready"}
    assert found["spec"] == {"n": 1, "m": 2}


def test_apply_of_status_of_a_missing_object(widgets):
    with pytest.raises(ApiError) as caught:
        widgets.apply({**widgets.object("a"), "status": {}}, "one", "status")
    assert caught.value.code == 404


def test_apply_with_a_resource_version(widgets):
    created = widgets.create("a", spec={"n": 1})
    version = created["metadata"]["resourceVersion"]
    widgets.merge_patch("a", {"spec": {"m": 2}})
    body = widgets.object("a", {"x": 1}, metadata={"resourceVersion": version})
    with pytest.raises(ApiError) as caught:
        widgets.apply(body, "one")
    assert caught.value.code == 409
    assert not caught.value.causes, "a stale version is told from a conflict of managers by having no causes"


def test_apply_with_another_uid_conflicts(widgets):
    widgets.create("a")
    body = widgets.object("a", metadata={"uid": "11111111-2222-3333-4444-555555555555"})
    with pytest.raises(ApiError) as caught:
        widgets.apply(body, "one")
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert "metadata.uid" in [cause["field"] for cause in caught.value.causes]


def test_apply_with_a_uid_makes_nothing(widgets, configmaps):
    """What is meant is an object that is gone: it must not come back as another one."""
    for resource in (widgets, configmaps):
        with pytest.raises(ApiError) as caught:
            resource.apply(resource.object("a", metadata={"uid": "11111111-2222-3333-4444-555555555555"}), "one")
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")
        assert "uid mismatch" in caught.value.message and not caught.value.causes
        assert not resource.exists("a")


def test_apply_without_fields_gives_all_up(configmaps):
    uid = configmaps.create("a", data={"theirs": "1"})["metadata"]["uid"]
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": uid}}
    assert configmaps.apply({**body, "data": {"ours": "1"}})["data"] == {"theirs": "1", "ours": "1"}
    given_up = configmaps.apply(body)
    assert given_up["data"] == {"theirs": "1"}
    assert "test" not in [entry["manager"] for entry in given_up["metadata"]["managedFields"]]


@pytest.mark.parametrize("more", [{}, {"data": {"b": "2"}}])
def test_fields_that_go_to_another_manager(configmaps, more):
    """As kubectl does it with what was applied on the client's side."""
    applied = configmaps.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}})["metadata"]
    entries = [{**entry, "manager": "renamed"} for entry in applied["managedFields"]]
    changed = configmaps.merge_patch("a", {"metadata": {"managedFields": entries, "resourceVersion": applied["resourceVersion"]}, **more},
                                     fieldManager="renamed")["metadata"]
    assert changed["resourceVersion"] != applied["resourceVersion"]
    assert {entry["manager"] for entry in configmaps.get("a")["metadata"]["managedFields"]} == {"renamed"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"c": "3"}}
    assert configmaps.apply(body, manager="renamed")["data"] == {**more.get("data", {}), "c": "3"}


def test_apply_with_the_version_of_nothing_creates_or_conflicts(widgets, configmaps):
    """How children are created: no object can have version 1, so an apply of it never changes one that exists."""
    for resource in (widgets, configmaps):
        body = resource.object("a", metadata={"resourceVersion": "1", "labels": {"by": "one"}})
        made = resource.apply(body, "one", force=True)
        [entry] = made["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("one", "Apply")
        for manager in ("one", "two"):
            body["metadata"]["labels"] = {"by": "two", "more": "x"}
            with pytest.raises(ApiError) as caught:
                resource.apply(body, manager, force=True)
            assert (caught.value.code, caught.value.reason) == (409, "Conflict") and not caught.value.causes
        assert resource.get("a") == made


def test_what_was_taken_off_by_an_update_belongs_to_nobody(widgets, configmaps):
    for resource in (widgets, configmaps):
        resource.apply(resource.object("a", metadata={"labels": {"a": "1"}, "annotations": {"b": "2"}}), "one")
        patched = resource.merge_patch("a", {"metadata": {"labels": {"a": None}, "annotations": {"b": None},
                                                          "ownerReferences": []}}, fieldManager="one")
        assert not {"labels", "annotations", "ownerReferences"} & set(patched["metadata"])
        resource.apply(resource.object("a", metadata={"labels": {"a": "3"}, "annotations": {"b": "4"}}), "two")


def test_apply_dry_run(widgets):
    found = widgets.apply(widgets.object("a", {"n": 1}), "one", dryRun="All")
    assert found["spec"] == {"n": 1}
    assert not widgets.exists("a")


def test_apply_name_must_match(api, widgets):
    response = api.raw("PATCH", widgets.path + "/a", widgets.object("b"), "application/apply-patch+yaml",
                       {"fieldManager": "one"})
    assert response.code in (400, 422)


def test_apply_to_a_core_object(configmaps):
    configmaps.apply(configmaps.object("a", data={"x": "1", "y": "1"}), "one")
    found = configmaps.apply(configmaps.object("a", data={"z": "1"}), "two")
    assert found["data"] == {"x": "1", "y": "1", "z": "1"}
    found = configmaps.apply(configmaps.object("a", data={"x": "1"}), "one")
    assert found["data"] == {"x": "1", "z": "1"}
    with pytest.raises(ApiError) as caught:
        configmaps.apply(configmaps.object("a", data={"x": "2"}), "two")
    assert caught.value.causes[0]["field"] == ".data.x"


def test_the_generation_counts_applied_changes(widgets):
    assert widgets.apply(widgets.object("a", {"n": 1}), "one")["metadata"]["generation"] == 1
    assert widgets.apply(widgets.object("a", {"n": 2}), "one")["metadata"]["generation"] == 2
    assert widgets.apply(widgets.object("a", {"n": 2}, labels={"x": "y"}), "one")["metadata"]["generation"] == 2


def test_managed_fields_are_refused_although_they_are_empty(api, widgets):
    for given, code in (([], 400), (None, 201)):
        body = widgets.object("a", metadata={"managedFields": given})
        assert api.raw("PATCH", widgets.path + "/a", body, "application/apply-patch+yaml", {"fieldManager": "one"}).code == code


def test_a_conflict_with_an_update_names_its_version(widgets):
    widgets.create("a", {"n": 1}, query={"fieldManager": "editor"})
    with pytest.raises(ApiError) as error:
        widgets.apply(widgets.object("a", {"n": 2}), "one")
    assert error.value.message == 'Apply failed with 1 conflict: conflict with "editor" using example.com/v1: .spec.n'
    assert error.value.causes == [{"reason": "FieldManagerConflict", "field": ".spec.n",
                                   "message": 'conflict with "editor" using example.com/v1'}]


def test_conflicts_are_told_by_manager(widgets):
    widgets.create("a", {"n": 1}, query={"fieldManager": "editor"})
    widgets.apply(widgets.object("a", {"a": 1, "b": 1}), "two")
    with pytest.raises(ApiError) as error:
        widgets.apply(widgets.object("a", {"a": 2, "b": 2, "n": 2}), "one")
    assert error.value.message == ('Apply failed with 3 conflicts: conflicts with "editor" using example.com/v1:\n- .spec.n\n'
                                   'conflicts with "two":\n- .spec.a\n- .spec.b')


def test_an_empty_map_of_another_is_no_conflict(widgets):
    widgets.create("a", {}, query={"fieldManager": "editor"})
    found = widgets.apply(widgets.object("a", {"n": 1, "map": {"x": 1}}), "one")
    assert found["spec"] == {"n": 1, "map": {"x": 1}}


def test_metadata_has_no_other_members(api, widgets):
    body = widgets.object("a", metadata={"other": 1, "annotations": {}, "labels": {"a": "b"}})
    created = widgets.create(body=body, query={"fieldManager": "editor"})
    assert "other" not in created["metadata"] and "annotations" not in created["metadata"]
    assert set(owned(created, "editor").get("f:metadata", {})) == {"f:labels"}
    response = api.raw("PATCH", widgets.path + "/b", body | {"metadata": {"name": "b", "other": 1}}, "application/apply-patch+yaml",
                       {"fieldManager": "one"})
    assert response.code == 500 and ".metadata.other: field not declared in schema" in response.body["message"]
