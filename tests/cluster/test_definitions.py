# SPDX-License-Identifier: Apache-2.0
"""A definition and an object of its kind in one answer, on a real server, which needs a moment for a definition."""
import itertools

import pytest

from harness import wait_until, watch
from harness.cluster import servers
from harness.setup import allowing

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
                                       children=allowing(f"{namespace}.example.org/v1 {kind}"),
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


def test_check_knows_what_the_server_serves(cluster, operator, handler, namespace):
    def check(**first):
        operator.configure(cluster, [{**watch("widgets", handler, namespaces=[namespace]), **first}])
        done = operator.ctl.check(operator.config_file)
        return done.returncode, done.stdout

    code, said = check(owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}])
    assert code == 0 and "no mistakes found" in said and "was not asked" not in said, said
    for first, meant in (({"kind": "Widgte"}, "Widget"), ({"apiVersion": "example.com/v2"}, "example.com/v1"),
                         ({"owns": [{"apiVersion": "apps/v1", "kind": "deployments"}]}, "Deployment"),
                         ({"owns": [{"apiVersion": "apps/v1beta1", "kind": "Deployment"}]}, "apps/v1")):
        code, said = check(**first)
        assert code == 78 and f'did you mean "{meant}"?' in said, said
