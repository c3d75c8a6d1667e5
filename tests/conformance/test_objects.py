# SPDX-License-Identifier: Apache-2.0
"""Create, read, replace: metadata that the server sets, optimistic locking, subresources, generation."""
import re

import pytest

from harness import ApiError


def fails(code, reason, call, *arguments, **options):
    with pytest.raises(ApiError) as caught:
        call(*arguments, **options)
    assert (caught.value.code, caught.value.reason) == (code, reason), caught.value
    return caught.value


def test_create_sets_metadata(widgets, namespace):
    created = widgets.create("a", spec={"size": 1})
    metadata = created["metadata"]
    assert metadata["namespace"] == namespace
    assert re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert metadata["resourceVersion"].isdigit()
    assert metadata["generation"] == 1
    assert (created["apiVersion"], created["kind"]) == ("example.com/v1", "Widget")
    assert widgets.get("a") == created


def test_create_ignores_what_the_server_sets(widgets):
    created = widgets.create("a", metadata={"uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z",
                                            "deletionTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x"})
    metadata = created["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert not metadata["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in metadata


def test_create_answers_201_and_replace_200(api, widgets):
    response = api.raw("POST", widgets.path, widgets.object("a"))
    assert response.code == 201
    assert response.headers["Content-Type"].startswith("application/json")
    assert api.raw("PUT", widgets.path + "/a", response.body).code == 200


def test_create_twice_is_already_exists(widgets):
    widgets.create("a")
    error = fails(409, "AlreadyExists", widgets.create, "a")
    assert error.status["details"]["name"] == "a"
    assert error.status["details"]["group"] == "example.com"
    assert error.status["details"]["kind"] == "widgets"


def test_create_with_a_resource_version_is_refused(api, widgets):
    response = api.raw("POST", widgets.path, widgets.object("a", metadata={"resourceVersion": "1"}))
    assert response.code >= 400
    assert "resourceVersion should not be set on objects to be created" in response.body["message"]


def test_create_without_a_name_is_invalid(widgets):
    error = fails(422, "Invalid", widgets.create)
    assert error.causes[0]["field"] == "metadata.name"


@pytest.mark.parametrize("name", ["UPPER", "under_score", "-dash", "dash-", "a" * 254, "a..b"])
def test_a_name_that_is_no_dns_subdomain_is_invalid(widgets, name):
    fails(422, "Invalid", widgets.create, name)


def test_namespace_in_body_must_match(api, widgets):
    response = api.raw("POST", widgets.path, widgets.object("a", metadata={"namespace": "other"}))
    assert response.code == 400
    assert response.body["reason"] == "BadRequest"


def test_generate_name(widgets):
    first = widgets.create(generateName="thing-")["metadata"]
    second = widgets.create(generateName="thing-")["metadata"]
    for metadata in (first, second):
        assert re.fullmatch(r"thing-[a-z0-9]{5}", metadata["name"])
        assert metadata["generateName"] == "thing-"
    assert first["name"] != second["name"]


def test_create_in_a_missing_namespace(api):
    error = fails(404, "NotFound", api.resource("example.com/v1", "widgets", "no-such-namespace").create, "a")
    assert error.status["details"]["kind"] == "namespaces"


def test_get_missing(widgets):
    error = fails(404, "NotFound", widgets.get, "nothing")
    status = error.status
    assert status["kind"] == "Status" and status["apiVersion"] == "v1" and status["status"] == "Failure"
    assert status["code"] == 404
    assert status["message"] == 'widgets.example.com "nothing" not found'
    assert status["details"] == {"name": "nothing", "group": "example.com", "kind": "widgets"}


def test_get_missing_of_the_core_group(configmaps):
    error = fails(404, "NotFound", configmaps.get, "nothing")
    assert error.message == 'configmaps "nothing" not found'
    assert error.status["details"] == {"name": "nothing", "kind": "configmaps"}


def test_every_write_raises_the_resource_version(widgets):
    versions = [int(widgets.create("a", spec={"n": 0})["metadata"]["resourceVersion"])]
    for n in range(1, 4):
        versions.append(int(widgets.merge_patch("a", {"spec": {"n": n}})["metadata"]["resourceVersion"]))
    assert versions == sorted(set(versions))


def test_a_write_without_effect_keeps_the_resource_version(widgets):
    created = widgets.create("a", spec={"n": 0})
    assert widgets.merge_patch("a", {"spec": {"n": 0}})["metadata"]["resourceVersion"] == \
        created["metadata"]["resourceVersion"]
    assert widgets.replace(created)["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_replace_with_an_old_resource_version_conflicts(widgets):
    old = widgets.create("a", spec={"n": 0})
    widgets.merge_patch("a", {"spec": {"n": 1}})
    old["spec"]["n"] = 2
    error = fails(409, "Conflict", widgets.replace, old)
    assert "the object has been modified" in error.message
    assert error.status["details"]["name"] == "a"
    assert widgets.get("a")["spec"] == {"n": 1}


def test_replace_of_a_custom_resource_needs_a_resource_version(widgets):
    created = widgets.create("a", spec={"n": 0})
    del created["metadata"]["resourceVersion"]
    error = fails(422, "Invalid", widgets.replace, created)
    assert error.causes[0]["field"] == "metadata.resourceVersion"


def test_replace_of_a_core_object_needs_no_resource_version(configmaps):
    created = configmaps.create("a", data={"k": "1"})
    del created["metadata"]["resourceVersion"]
    created["data"]["k"] = "2"
    assert configmaps.replace(created)["data"] == {"k": "2"}


def test_replace_of_a_missing_object(widgets):
    body = widgets.object("a", metadata={"resourceVersion": "1"})
    fails(404, "NotFound", widgets.replace, body)


def test_replace_with_another_name_in_the_body(api, widgets):
    created = widgets.create("a")
    created["metadata"]["name"] = "b"
    assert api.raw("PUT", widgets.path + "/a", created).code == 400


def test_replace_with_another_uid_conflicts(widgets):
    created = widgets.create("a")
    created["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    fails(409, "Conflict", widgets.replace, created)


def test_generation_counts_spec_changes_only(widgets):
    assert widgets.create("a", spec={"n": 0})["metadata"]["generation"] == 1
    assert widgets.merge_patch("a", {"spec": {"n": 1}})["metadata"]["generation"] == 2
    assert widgets.merge_patch("a", {"metadata": {"labels": {"x": "y"}}})["metadata"]["generation"] == 2
    assert widgets.merge_patch("a", {"status": {"s": 1}}, "status")["metadata"]["generation"] == 2


def test_status_is_written_through_its_subresource_only(widgets):
    created = widgets.create("a", spec={"n": 0}, status={"from": "create"})
    assert "status" not in created
    assert "status" not in widgets.merge_patch("a", {"status": {"from": "patch"}})
    written = widgets.merge_patch("a", {"status": {"from": "status"}, "spec": {"n": 9}}, "status")
    assert written["status"] == {"from": "status"}
    assert written["spec"] == {"n": 0}
    written["spec"] = {"n": 1}
    written["status"] = {"from": "replace"}
    replaced = widgets.replace(written)
    assert (replaced["spec"], replaced["status"]) == ({"n": 1}, {"from": "status"})


def test_status_replace_ignores_labels_and_spec(widgets):
    created = widgets.create("a", spec={"n": 0}, labels={"x": "1"})
    created["metadata"]["labels"] = {"x": "2"}
    created["spec"] = {"n": 1}
    created["status"] = {"done": True}
    replaced = widgets.replace(created, "status")
    assert replaced["metadata"]["labels"] == {"x": "1"}
    assert (replaced["spec"], replaced["status"]) == ({"n": 0}, {"done": True})


def test_status_can_be_read(api, widgets):
    widgets.create("a")
    widgets.merge_patch("a", {"status": {"done": True}}, "status")
    assert api.request("GET", widgets.path + "/a/status")["status"] == {"done": True}


def test_status_write_with_an_old_resource_version_conflicts(widgets):
    old = widgets.create("a", spec={"n": 0})
    widgets.merge_patch("a", {"spec": {"n": 1}})
    old["status"] = {"done": True}
    fails(409, "Conflict", widgets.replace, old, "status")


def test_without_the_subresource_status_is_a_plain_field(api, namespace):
    gadgets = api.resource("example.com/v1", "gadgets")
    name = f"plain-{namespace}"
    created = gadgets.create(name, status={"from": "create"})
    assert created["status"] == {"from": "create"}
    assert "namespace" not in created["metadata"]
    assert api.raw("PUT", f"{gadgets.path}/{name}/status", created).code == 404
    gadgets.delete(name)


def test_dry_run_changes_nothing(widgets):
    created = widgets.create("a", spec={"n": 0})
    assert widgets.merge_patch("a", {"spec": {"n": 1}}, dryRun="All")["spec"] == {"n": 1}
    assert widgets.create("b", query={"dryRun": "All"})["metadata"]["uid"]
    widgets.delete("a", dryRun="All")
    assert widgets.get("a") == created
    assert widgets.names() == ["a"]


def test_dry_run_must_be_all(api, widgets):
    assert api.raw("POST", widgets.path, widgets.object("a"), query={"dryRun": "yes"}).code in (400, 422)
    assert not widgets.exists("a")


def test_unicode_and_large_numbers_survive(server, widgets):
    # The devserver keeps numbers as doubles (docs/devserver.md).
    large = 999999999999999 if server.name == "devserver" else 9007199254740993
    spec = {"text": "Grüße, 世界 \U0001f600 \"quoted\" \\ \n", "large": large, "negative": -5, "real": 1.5,
            "empty": {}, "list": [], "nothing": False}
    widgets.create("a", spec=spec)
    assert widgets.get("a")["spec"] == spec


def test_labels_must_be_strings(api, widgets):
    assert api.raw("POST", widgets.path, widgets.object("a", labels={"x": 1})).code in (400, 422)


def test_a_label_value_must_be_valid(widgets):
    fails(422, "Invalid", widgets.create, "a", labels={"x": "not valid!"})


def test_body_that_is_no_json(api, widgets):
    response = api.raw("POST", widgets.path, "{not json")
    assert (response.code, response.body["reason"]) == (400, "BadRequest")


def test_kind_in_body_must_match(api, widgets):
    body = {**widgets.object("a"), "kind": "Gadget"}
    # A custom resource answers 422; a core one answers 400.
    assert api.raw("POST", widgets.path, body).code in (400, 422)


def test_unknown_path(api):
    response = api.raw("GET", "/apis/nothing.example.com/v1/things")
    assert response.code == 404


def test_a_path_of_the_other_scope(api, widgets, namespace):
    """404 without a Status that names an object: whether it is there is not what was asked."""
    gadgets = api.resource("example.com/v1", "gadgets")
    gadgets.create(f"scope-{namespace}")
    widgets.create("scope")
    for path in (f"/apis/example.com/v1/namespaces/{namespace}/gadgets/scope-{namespace}", "/apis/example.com/v1/widgets/scope",
                 f"/apis/example.com/v1/namespaces/{namespace}/gadgets"):
        for method, body in (("GET", None), ("PATCH", {"metadata": {"labels": {"a": "b"}}})):
            response = api.raw(method, path, body, body and "application/merge-patch+json")
            assert response.code == 404 or (method, path[-7:]) == ("PATCH", "gadgets")
            assert not ((response.body or {}).get("details") or {}).get("name"), response


def test_method_that_is_not_supported(api, configmaps):
    response = api.raw("PUT", configmaps.path, configmaps.object("a"))
    assert (response.code, response.body["reason"]) == (405, "MethodNotAllowed")


def test_annotations_have_a_limit(widgets):
    fails(422, "Invalid", widgets.create, "a", annotations={"big": "x" * (256 * 1024 + 1)})
