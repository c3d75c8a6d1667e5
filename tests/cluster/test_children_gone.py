# SPDX-License-Identifier: Apache-2.0
"""Children whose version or definition goes, a Secret's keys, and a restoration that comes too late; on a real API server."""
import copy

import pytest

from harness import wait_until, watch
from harness.setup import allowing

GROUP = "gone.example.org"
CRD = f"gadgets.{GROUP}"


def definition():
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": CRD},
            "spec": {"group": GROUP, "scope": "Namespaced",
                     "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                     "versions": [{"name": name, "served": True, "storage": name == "v2", "schema": schema}
                                  for name in ("v1", "v2")]}}


@pytest.fixture
def crds(cluster):
    """Defined for this test; the definition is gone behind it."""
    crds = cluster.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")

    def is_served():
        return cluster.api.raw("GET", f"/apis/{GROUP}/v1").code == 200

    crds.create(body=definition())
    wait_until(is_served, "the kind")
    yield crds
    if crds.exists(CRD):
        crds.delete(CRD)
    wait_until(lambda: not crds.exists(CRD) and not is_served(), "the end of the definition")


@pytest.fixture
def start(cluster, operator, handler, namespace):
    def start(**more):
        operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], retry={"first": "100ms", "max": "500ms"},
                                           children=allowing(f"{GROUP}/v1 Gadget"), **more)])
        return operator.start_ready().wait_synced()

    return start


def make(handler, widgets, children):
    handler.answer({"children": children, "status": {"made": True}})
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status", {}).get("made"), "the children")
    handler.answer({})


GADGET = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "g"}}


def test_a_child_in_a_version_that_is_no_longer_served(start, handler, widgets, cluster, crds, namespace):
    gadgets = cluster.api.resource(f"{GROUP}/v2", "gadgets", namespace)
    operator = start(finalizer=True)
    make(handler, widgets, [GADGET])
    assert gadgets.exists("g")
    spec = copy.deepcopy(definition()["spec"])
    spec["versions"][0]["served"] = False
    crds.merge_patch(CRD, {"spec": spec})
    wait_until(lambda: cluster.api.raw("GET", f"/apis/{GROUP}/v1").code == 404, "the end of the version")
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its release")
    assert not gadgets.exists("g")
    operator.stop()


def test_a_child_whose_definition_is_deleted(start, handler, widgets, crds):
    operator = start(finalizer=True)
    make(handler, widgets, [GADGET])
    crds.delete(CRD)
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its release", deadline=60)
    operator.stop()


def test_a_key_that_left_string_data_goes(start, handler, widgets, cluster, namespace):
    secrets = cluster.api.resource("v1", "secrets", namespace)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "1", "b": "2"}}
    operator = start()
    make(handler, widgets, [secret])
    assert secrets.get("s")["data"] == {"a": "MQ==", "b": "Mg=="}
    handler.answer({"children": [{**secret, "stringData": {"b": "2"}}]})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: secrets.get("s")["data"] == {"b": "Mg=="}, lambda: f"the end of a: {secrets.get('s')}")
    operator.stop()
