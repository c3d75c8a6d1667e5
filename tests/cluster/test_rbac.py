# SPDX-License-Identifier: Apache-2.0
"""The roles that `reconciledctl rbac` derives are enough for the operator, and no more than it needs."""
import subprocess
import types

import pytest
import yaml

from harness import ApiError, wait_until, watch
from harness.api import Api
from harness.operator import MESSAGE_ID
from harness.setup import NO_CHILDREN, child_kinds

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
    entry["children"] = NO_CHILDREN
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


def test_children_in_another_namespace_and_of_the_cluster(cluster, operator, handler, widgets, namespace, sandbox):
    """The rights are enough for what an answer may write, and for no more."""
    name, other = f"elsewhere-{namespace}", f"{namespace}-other"
    cluster.api.resource("v1", "namespaces").create(other)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": other}}
    handler.answer({"children": [role, made], "status": {"made": True}})
    kinds = child_kinds("v1 ConfigMap", "rbac.authorization.k8s.io/v1 ClusterRole")
    entry = watch("widgets", handler, namespaces=[namespace], children={"kinds": kinds, "namespaces": [other]})
    operator.configure(cluster, [entry], operator=f"{name}.example.com")
    apply(cluster, derive(operator, "--service-account", name))
    token = cluster.api.request("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    operator.configure(types.SimpleNamespace(kubeconfig=kubeconfig), [entry], operator=f"{name}.example.com")
    operator.start_ready().wait_synced()
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status") == {"made": True}, lambda: f"the children; {operator.output.text()}")
    account = Api(kubeconfig)
    for resource, place in (("configmaps", "default"), ("secrets", other)):
        with pytest.raises(ApiError) as refused:
            account.resource("v1", resource, place).create("x")
        assert refused.value.code == 403
    handler.answer({"children": []})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: cluster.api.resource("v1", "configmaps", other).names() in ([], ["kube-root-ca.crt"]), "the child to go")
    operator.stop()


def merge(cluster, path, patch):
    cluster.api.request("PATCH", path, patch, content_type="application/merge-patch+json")


@pytest.mark.parametrize("back", [True, False])
def test_rights_that_are_lost_for_a_while(cluster, operator, make_handler, widgets, back, sandbox):
    """The right to write the status is taken from the operator's role: that is a matter of the watch, and of no object."""
    name = f"gap-{'back' if back else 'gone'}"
    entry = watch("widgets", make_handler("""printf '{"status":{"seen":true}}'"""), retry={"first": "100ms", "max": "10m", "attempts": 2},
                  deadline="1h" if back else "3s")
    operator.configure(cluster, [entry], operator=f"{name}.example.com")
    manifests = derive(operator, "--service-account", name)
    apply(cluster, manifests)
    token = cluster.api.request("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    operator.configure(types.SimpleNamespace(kubeconfig=kubeconfig), [entry], operator=f"{name}.example.com")
    operator.start_ready().wait_synced()
    role = next(manifest for manifest in manifests if manifest["kind"] == "ClusterRole"
                and any("widgets/status" in rule.get("resources", ()) for rule in manifest["rules"]))
    path = f"{PATHS['ClusterRole']}/{role['metadata']['name']}"
    merge(cluster, path, {"rules": [dict(rule, resources=[each for each in rule.get("resources", ()) if each != "widgets/status"])
                                    for rule in role["rules"] if rule.get("resources") != ["widgets/status"]]})
    account = Api(kubeconfig)
    status = "/apis/example.com/v1/namespaces/{}/widgets/{}/status"
    wait_until(lambda: account.raw("PATCH", status.format("default", "none"), {}, "application/merge-patch+json").code == 403, "the role to be changed")
    widgets.create(name, spec={})
    if not back:
        operator.wait_exit(expect=77)
        return
    operator.wait_for_log("cannot patch resource", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    wait_until(lambda: len(operator.logs(message_id=MESSAGE_ID["RUN_FAILED"])) >= 4, "more refusals than attempts")
    events = cluster.api.resource("events.k8s.io/v1", "events", widgets.namespace)
    [note, *_] = wait_until(lambda: [each["note"] for each in events.list()["items"] if "cannot patch" in each["note"]], "the Event")
    assert "the operator's user cannot patch resource" in note and "system:serviceaccount" not in note, note
    merge(cluster, path, {"rules": role["rules"]})
    wait_until(lambda: widgets.get(name).get("status") == {"seen": True}, "the status")
    operator.wait_for_log("works again", message_id=MESSAGE_ID["WATCH_RECOVERED"])
    operator.stop()
