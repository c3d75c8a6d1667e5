# SPDX-License-Identifier: Apache-2.0
"""The roles of `reconciledctl rbac` are enough for children where the API server checks owner references, as OpenShift does."""
import types

import pytest

from harness import ApiError, wait_until, watch
from harness.api import Api
from harness.cluster import AWAY, servers
from test_rbac import apply, derive

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
ANSWER = """python3 -c '
import json, sys
names = json.load(sys.stdin)["object"]["spec"]["children"]
print(json.dumps({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n}} for n in names]}))' <"$REQUEST" """


@pytest.fixture(params=servers())
def cluster(request, make_cluster):
    return make_cluster(request.param, AWAY)


@pytest.mark.parametrize("named", ["owns", "kinds"])
def test_children_of_kinds_that_are_named(cluster, operator, make_handler, widgets, namespace, named, sandbox):
    name = f"children-{named}"
    entry = watch("widgets", make_handler(ANSWER), namespaces=[namespace],
                  **({"owns": [CONFIG_MAP], "children": {"kinds": []}} if named == "owns" else {"children": {"kinds": [CONFIG_MAP]}}))
    operator.configure(cluster, [entry], operator=f"{name}.example.com")
    apply(cluster, derive(operator, "--service-account", name))
    token = cluster.api.request("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    operator.configure(types.SimpleNamespace(kubeconfig=kubeconfig), [entry], operator=f"{name}.example.com")
    operator.start_ready().wait_synced()
    config_maps = cluster.api.resource("v1", "configmaps", namespace)
    widgets.create(name, spec={"children": ["a", "b"]})
    wait_until(lambda: {"a", "b"} <= set(config_maps.names()), lambda: f"the children:\n{operator.output.text()}")
    assert config_maps.get("a")["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True
    widgets.merge_patch(name, {"spec": {"children": ["a", "c"]}})
    wait_until(lambda: "c" in config_maps.names() and "b" not in config_maps.names(), "the other children")
    account = Api(kubeconfig)
    with pytest.raises(ApiError) as refused:
        account.resource("example.com/v1", "widgets", namespace).delete(name)
    assert refused.value.code == 403
    operator.stop()
