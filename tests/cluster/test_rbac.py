# SPDX-License-Identifier: Apache-2.0
"""The roles that `reconciledctl rbac` derives are enough for the operator, and no more than it needs."""
import subprocess
import types

import pytest
import yaml

from harness import ApiError, wait_until, watch
from harness.api import Api

PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}


def derive(operator, *arguments):
    done = subprocess.run([operator.sandbox.program("reconciledctl"), "rbac", operator.config_file, *arguments],
                          capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


def apply(cluster, manifests):
    for manifest in manifests:
        path = PATHS[manifest["kind"]].format(namespace=manifest["metadata"].get("namespace"))
        cluster.api.request("POST", path, manifest)


@pytest.mark.parametrize("named", [False, True])
def test_enough_and_no_more(cluster, operator, make_handler, widgets, namespace, named, sandbox):
    name = "named" if named else "everywhere"
    entry = watch("widgets", make_handler("echo '{\"patch\": {\"metadata\": {\"labels\": {\"seen\": \"yes\"}}}, "
                                          "\"status\": {\"seen\": true}}'"))
    if named:
        entry["namespaces"] = [namespace]
    operator.configure(cluster, [entry], operator=f"{name}.example.com")
    manifests = derive(operator, "--service-account", name)
    assert ("Role" in {manifest["kind"] for manifest in manifests}) == named
    apply(cluster, manifests)
    token = cluster.api.request("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    operator.configure(types.SimpleNamespace(kubeconfig=kubeconfig), [entry], operator=f"{name}.example.com")
    operator.start_ready().wait_synced()
    widgets.create(name, spec={})
    wait_until(lambda: widgets.get(name).get("status") == {"seen": True}, "the handler's status")
    assert widgets.get(name)["metadata"]["labels"] == {"seen": "yes"}
    account = Api(kubeconfig)
    for path in ("/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default", "/api/v1/nodes"):
        with pytest.raises(ApiError) as refused:
            account.request("GET", path)
        assert refused.value.code == 403
    with pytest.raises(ApiError) as refused:
        account.resource("example.com/v1", "widgets", namespace).delete(name)
    assert refused.value.code == 403
    if named:
        with pytest.raises(ApiError) as refused:
            account.resource("example.com/v1", "widgets").list()
        assert refused.value.code == 403
