# SPDX-License-Identifier: Apache-2.0
"""Two replicas on a real API server, with the rights that `reconciledctl rbac` derives: the lead passes on, and nothing is late."""
import signal
import subprocess
import types

import pytest
import yaml

from harness import ApiError, wait_until, watch
from harness.cluster import AWAY, servers
from harness.replicas import DURATION, Replicas

# It runs out twice: before the first lead, and after a death. What happens in half of it is no expiry.
LEASE = 2 * DURATION
AT_ONCE = LEASE / 2
PATHS = {"ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
         "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
         "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
         "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
         "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts"}
CHILD = """echo '{"status": {"seen": true}, "children": [{"apiVersion": "v1", "kind": "ConfigMap",
           "metadata": {"name": "child"}, "data": {"a": "b"}}]}'"""
OPTIONS = {"children": {"kinds": [{"apiVersion": "v1", "kind": "ConfigMap"}]}, "finalizer": True}


@pytest.fixture(scope="session", params=servers())
def cluster(request, make_cluster):
    """That of the outages: the process which has that one has fewer tests, and this one waits for most of its time."""
    return make_cluster(request.param, AWAY)


@pytest.fixture
def account(cluster, operator, handler, namespace, sandbox):
    """The server, for who has just the rights that the configuration needs."""
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], **OPTIONS)], replicas={"namespace": namespace})
    manifests = subprocess.run([sandbox.program("reconciledctl"), "rbac", operator.config_file, "--namespace", namespace,
                                "--service-account", "replicas"], capture_output=True, text=True, check=True).stdout
    for manifest in yaml.safe_load_all(manifests):
        manifest["metadata"]["name"] = manifest["metadata"]["name"].replace("widgets.example.com", namespace)
        if "roleRef" in manifest:
            manifest["roleRef"]["name"] = manifest["roleRef"]["name"].replace("widgets.example.com", namespace)
        cluster.api.request("POST", PATHS[manifest["kind"]].format(namespace=manifest["metadata"].get("namespace")), manifest)
    token = cluster.api.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/replicas/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    return types.SimpleNamespace(kubeconfig=kubeconfig, api=cluster.api)


def at_rest(operator):
    wait_until(lambda: all(row["running"] + row["writing"] + row["queued"] == 0 for row in operator.ctl.status()["watches"]), "rest")


@pytest.mark.slow
def test_the_lead_passes_on(account, cluster, make_operator, make_handler, sandbox, widgets, namespace):
    config_maps = cluster.api.resource("v1", "configmaps", namespace)
    replicas = Replicas(account, make_operator, make_handler, sandbox, widgets, namespace)
    replicas.add(2, LEASE, behaviour=CHILD, namespaces=[namespace], **OPTIONS)
    first, (second,) = replicas.leader()
    widgets.create("a", spec={})
    replicas.handler_of(first).wait_finished(name="a")
    assert first.ctl.run("pause", "widgets", "--reason", "to look at it").returncode == 0
    widgets.create("b", spec={})

    first.stop()  # in order: the other one leads at once, and obeys
    assert replicas.leader(AT_ONCE)[0] is second
    second.wait_synced()
    assert second.ctl.status()["watches"][0]["pauseReason"] == "to look at it" and replicas.handler_of(second).count() == 0
    assert second.ctl.run("resume", "widgets").returncode == 0
    for name in "ab":
        replicas.handler_of(second).wait_finished(name=name)
    at_rest(second)
    epoch = str(replicas.replica(second)["epoch"])
    assert widgets.get("a")["metadata"]["annotations"]["widgets.example.com/epoch"] != epoch, "nothing can be late"
    late = {"a": widgets.get("a"), "child": config_maps.get("child")}

    first.start_ready()
    second.popen.kill()  # as a whole: the Lease runs out
    second.wait_exit(-signal.SIGKILL)
    assert replicas.leader()[0] is first
    for name in "ab":
        replicas.handler_of(first).wait_finished(name=name, count=2 if name == "a" else 1)
    at_rest(first)
    epoch = str(replicas.replica(first)["epoch"])
    for resource, name in ((widgets, "a"), (config_maps, "child")):
        metadata = late[name]["metadata"]
        assert resource.get(name)["metadata"]["annotations"]["widgets.example.com/epoch"] == epoch
        with pytest.raises(ApiError) as refused:
            resource.merge_patch(name, {"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
                                                     "annotations": {"late": "yes"}}})
        assert refused.value.code == 409
    with pytest.raises(ApiError) as given_up:  # as a write of a leader whose time is over
        widgets.merge_patch("a", {"metadata": {"annotations": {"late": "yes"}}}, timeout="1ns")
    assert given_up.value.code == 504 and "late" not in widgets.get("a")["metadata"]["annotations"]
    widgets.delete("a")
    wait_until(lambda: not widgets.exists("a"), "the finalizer to be taken off")
    replicas.assert_no_overlap()
