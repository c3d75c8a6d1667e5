# SPDX-License-Identifier: Apache-2.0
"""What a real kube-apiserver takes as an owner reference and as a name, and what of it reaches whom."""
import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

LONG = "x" * 600
VERY_LONG = "y" * 100_000
RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture
def other(cluster, namespace):
    cluster.api.resource("v1", "namespaces").create(namespace + "-other")
    return namespace + "-other"


@pytest.fixture
def start(cluster, operator, handler, namespace, other):
    def start():
        operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace, other], owns=[
            {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "test=owner-references"},
            {"apiVersion": RBAC, "kind": "Role"}])])
        return operator.start_ready().wait_synced()

    return start


def create(resource, name, *references):
    return resource.create(name, ownerReferences=list(references), labels={"test": "owner-references"})


def reference(owner, **other):
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], **other}


def names(request):
    return [child["metadata"]["name"] for child in request.body["children"]]


def test_children_from_foreign_namespaces(cluster, start, operator, handler, namespace, other, widgets):
    here, there = (cluster.api.resource("v1", "configmaps", name) for name in (namespace, other))
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    create(there, "foreign", reference(owner))
    create(there, "slash", reference(owner, name=f"{namespace}/w"))
    create(here, "slash", reference(owner, name=f"{namespace}/w"))
    create(here, "renamed", reference(owner, name="v"))
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 4, "all of them in the store")
    there.merge_patch("slash", {"data": {"a": "2"}})
    witness = widgets.create("witness")
    handler.wait_finished(name="witness")
    create(here, "of-witness", reference(witness))
    handler.wait_finished(name="witness", where=lambda request: names(request) == ["of-witness"])
    assert [request.body["reason"] for request in handler.requests(name="w")] == ["added"]
    create(here, "child", reference(owner))
    handler.wait_finished(name="w", where=lambda request: "child" in names(request))
    operator.stop()
    assert {name for request in handler.requests(name="w") for name in names(request)} == {"child"}
    assert there.exists("foreign") and there.exists("slash") and here.exists("renamed")


def test_one_owner_reference_stops_the_operator(cluster, start, operator, handler, namespace, widgets):
    config_maps = cluster.api.resource("v1", "configmaps", namespace)
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    strange = [reference(owner, name=LONG), reference(owner, uid=LONG), reference(owner, name=VERY_LONG, uid=VERY_LONG),
               reference(owner, name="a\u0007b", uid="c\nd"), reference(owner, name="a\0b")]
    for number, each in enumerate(strange):
        create(config_maps, f"alone-{number}", each)
        create(config_maps, f"shared-{number}", each, reference(owner))
    handler.wait_finished(name="w", where=lambda request: names(request) == [f"shared-{n}" for n in range(len(strange))])
    assert len(operator.logs(message_id=MESSAGE_ID["OWNER_IGNORED"])) == 1
    operator.stop()
    for number in range(len(strange)):
        config_maps.delete(f"alone-{number}")
        config_maps.delete(f"shared-{number}")
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w", where=lambda request: request.body["reason"] == "child changed" and not names(request))
    operator.stop()


def test_an_object_that_is_left_out_hides_no_deletion(cluster, start, operator, handler, namespace, widgets):
    """The server takes a role's name of any length, and with control characters."""
    roles = cluster.api.resource(RBAC, "roles", namespace)
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    for name in ("a" * 400, "b\u0007c"):
        create(roles, name, reference(owner))
    create(roles, "child", reference(owner))
    handler.wait_finished(name="w", where=lambda request: names(request) == ["child"])
    operator.stop()
    roles.delete("child")
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w", where=lambda request: request.body["reason"] == "child changed" and not names(request))
    roles.delete("b%07c")
    create(roles, "last", reference(owner))
    handler.wait_finished(name="w", where=lambda request: names(request) == ["last"])
    operator.stop()
    roles.delete("a" * 400)
