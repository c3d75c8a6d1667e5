# SPDX-License-Identifier: Apache-2.0
"""A definition and an object of its kind in one answer, on a real server, which needs a moment for a definition."""
import itertools

import pytest

from harness import wait_until, watch
from harness.cluster import servers

_number = itertools.count(1)


@pytest.fixture(scope="session", params=servers())
def cluster(request, make_cluster):
    return make_cluster(request.param)


def test_a_definition_and_its_object_in_one_answer(cluster, operator, handler, namespace, widgets):
    kind = f"Gadget{next(_number)}"
    plural = f"{kind.lower()}s"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{namespace}.example.org"},
        "spec": {"group": f"{namespace}.example.org", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"size": "1"}}
    handler.answer({"children": [definition, settings, {
        "apiVersion": f"{namespace}.example.org/v1", "kind": kind, "metadata": {"name": "g"}}]})
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], onFailure="rollback",
                                       retry={"first": "500ms", "max": "1s"})])
    operator.start_ready().wait_synced()
    definitions = cluster.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    widgets.create("w")
    made = wait_until(lambda: definitions.get(definition["metadata"]["name"]), "the definition")["metadata"]["uid"]
    gadgets = cluster.api.resource(f"{namespace}.example.org/v1", plural, namespace)
    wait_until(lambda: gadgets.exists("g"), "the object", deadline=90)
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the success")
    assert operator.ctl.status()["watches"][0]["failed"] == 0
    assert definitions.get(definition["metadata"]["name"])["metadata"]["uid"] == made, "it was not deleted in between"
    assert {request.body["attempt"] for request in handler.requests()} == {1}
    operator.stop()
