# SPDX-License-Identifier: Apache-2.0
"""Discovery, custom resource definitions, namespaces, health."""
import copy
import itertools

import pytest

from harness import WIDGET_CRD, ApiError, wait_until

from .conftest import define

_number = itertools.count(1)


@pytest.fixture
def crds(api):
    return api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")


@pytest.fixture
def crd():
    """A CRD that no other test uses."""
    group = f"g{next(_number)}.example.com"
    found = copy.deepcopy(WIDGET_CRD)
    found["metadata"]["name"] = f"widgets.{group}"
    found["spec"]["group"] = group
    return found


def by_name(resources):
    return {entry["name"]: entry for entry in resources["resources"]}


def test_core_versions(api):
    found = api.request("GET", "/api")
    assert found["kind"] == "APIVersions"
    assert "v1" in found["versions"]


def test_core_resources(api):
    found = api.request("GET", "/api/v1")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "v1")
    names = by_name(found)
    for name, kind, namespaced in [("configmaps", "ConfigMap", True), ("secrets", "Secret", True), ("pods", "Pod", True),
                                   ("nodes", "Node", False), ("namespaces", "Namespace", False), ("events", "Event", True),
                                   ("serviceaccounts", "ServiceAccount", True)]:
        assert (names[name]["kind"], names[name]["namespaced"]) == (kind, namespaced)
        assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(names[name]["verbs"])
    assert "pods/status" in names


@pytest.mark.parametrize("group_version, plural, kind", [
    ("apps/v1", "deployments", "Deployment"), ("coordination.k8s.io/v1", "leases", "Lease"),
    ("events.k8s.io/v1", "events", "Event"),
    ("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"),
])
def test_group_resources(api, group_version, plural, kind):
    found = by_name(api.request("GET", f"/apis/{group_version}"))
    assert found[plural]["kind"] == kind


def test_groups(api):
    found = api.request("GET", "/apis")
    assert found["kind"] == "APIGroupList"
    groups = {entry["name"]: entry for entry in found["groups"]}
    assert {"apps", "coordination.k8s.io", "apiextensions.k8s.io", "example.com"} <= set(groups)
    assert groups["example.com"]["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}
    assert {"groupVersion": "example.com/v1", "version": "v1"} in groups["example.com"]["versions"]


def test_custom_resources(api):
    found = by_name(api.request("GET", "/apis/example.com/v1"))
    assert found["widgets"]["kind"] == "Widget"
    assert found["widgets"]["namespaced"] is True
    assert found["widgets"]["singularName"] == "widget"
    assert found["widgets"]["shortNames"] == ["wd"]
    assert {"get", "patch", "update"} <= set(found["widgets/status"]["verbs"])
    assert found["gadgets"]["namespaced"] is False
    assert "gadgets/status" not in found


def test_unknown_group_version(api):
    assert api.raw("GET", "/apis/nothing.example.com/v1").code == 404
    assert api.raw("GET", "/apis/example.com/v9").code == 404


def test_crd_life(server, api, crds, crd, namespace):
    found = define(server, crd)
    assert found["status"]["acceptedNames"]["kind"] == "Widget"
    assert found["status"]["storedVersions"] == ["v1"]
    conditions = {entry["type"]: entry["status"] for entry in found["status"]["conditions"]}
    assert conditions["NamesAccepted"] == "True"
    group = crd["spec"]["group"]
    resource = api.resource(f"{group}/v1", "widgets", namespace)
    resource.create("a")
    crds.delete(found["metadata"]["name"])
    wait_until(lambda: not crds.exists(found["metadata"]["name"]), "the end of the CRD")
    wait_until(lambda: api.raw("GET", resource.path).code == 404, "the end of its resource")
    wait_until(lambda: api.raw("GET", f"/apis/{group}").code == 404, "the end of its group")


def test_crd_deleted_and_defined_again_is_empty(server, api, crds, crd, namespace):
    define(server, crd)
    resource = api.resource(f"{crd['spec']['group']}/v1", "widgets", namespace)
    resource.create("a")
    crds.delete(crd["metadata"]["name"])
    wait_until(lambda: not crds.exists(crd["metadata"]["name"]), "the end of the CRD")
    define(server, crd)
    wait_until(lambda: resource.names() == [], "the old objects to be gone")


def test_deleting_a_crd_tells_those_who_watch(server, api, crds, crd, namespace):
    define(server, crd)
    resource = api.resource(f"{crd['spec']['group']}/v1", "widgets", namespace)
    resource.create("a")
    with resource.watch(resourceVersion=resource.list()["metadata"]["resourceVersion"]) as watch:
        crds.delete(crd["metadata"]["name"])
        assert watch.next(deadline=30)["type"] == "DELETED"


def test_crd_name_must_fit(api, crds, crd):
    crd["metadata"]["name"] = "wrong.example.com"
    with pytest.raises(ApiError) as caught:
        crds.create(body=crd)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_crd_without_versions(api, crds, crd):
    crd["spec"]["versions"] = []
    with pytest.raises(ApiError) as caught:
        crds.create(body=crd)
    assert caught.value.code == 422


def test_namespaces(api):
    namespaces = api.resource("v1", "namespaces")
    assert {"default", "kube-system"} <= set(namespaces.names())
    system = namespaces.get("kube-system")
    assert system["metadata"]["uid"]
    assert system["status"]["phase"] == "Active"


def test_a_new_namespace_is_active(api, namespace):
    found = api.resource("v1", "namespaces").get(namespace)
    assert found["status"]["phase"] == "Active"
    assert found["spec"]["finalizers"] == ["kubernetes"]


def test_secrets(api, namespace):
    secrets = api.resource("v1", "secrets", namespace)
    created = secrets.create("s", stringData={"password": "hello"})
    assert created["data"] == {"password": "aGVsbG8="}
    assert "stringData" not in created
    assert created["type"] == "Opaque"


def test_leases(api, namespace):
    leases = api.resource("coordination.k8s.io/v1", "leases", namespace)
    leases.create("l", spec={"holderIdentity": "me", "leaseDurationSeconds": 15})
    assert leases.get("l")["spec"]["holderIdentity"] == "me"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health(api, path):
    response = api.raw("GET", path)
    assert (response.code, response.text) == (200, "ok")


def test_version(api):
    found = api.request("GET", "/version")
    assert found["major"] and found["minor"] and found["gitVersion"].startswith("v")


@pytest.mark.parametrize("path, says", [
    ("/apis/nowhere.example.com/v1", "404 page not found"),
    ("/apis/nowhere.example.com/v1/namespaces/default/things/a", "404 page not found"),
    ("/apis/example.com/v1/namespaces/default/things/a", "404 page not found"),
    ("/api/v1/namespaces/default/things/a", "could not find the requested resource")])
def test_what_is_not_served_names_no_object(api, path, says):
    """By this a client can tell it from an object that is not there."""
    answer = api.raw("GET", path)
    assert answer.code == 404 and says in answer.text
    assert not ((answer.body or {}).get("details") or {}).get("name")
    missing = api.raw("GET", "/api/v1/namespaces/default/configmaps/nowhere")
    assert missing.code == 404 and missing.body["reason"] == "NotFound" and missing.body["details"]["name"] == "nowhere"
