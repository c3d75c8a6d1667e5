# SPDX-License-Identifier: Apache-2.0
"""The manifests of deploy/ are what a real API server takes, and the configurations in them have no mistakes."""
import os
import subprocess

import pytest
import yaml

from harness.cluster import assets
from harness.setup import SOURCE

MANIFESTS = ["deployment.yaml", "replicas.yaml", "statefulset.yaml"]


def documents(name):
    return list(yaml.safe_load_all((SOURCE / "deploy" / name).read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def widgets_namespace(cluster):
    cluster.api.resource("v1", "namespaces").create("widgets")


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_server_takes_it(cluster, widgets_namespace, sandbox, name):
    served = [each for each in documents(name) if each["apiVersion"] != "policy/v1" or cluster.api.raw("GET", "/apis/policy/v1").code == 200]
    path = sandbox.folder / name
    path.write_text(yaml.safe_dump_all(served), encoding="utf-8")
    # kubectl holds it against the server's schema first: no unknown field passes.
    done = subprocess.run([os.path.join(assets(), "kubectl"), "--kubeconfig", cluster.kubeconfig, "apply", "--validate=true",
                           "--dry-run=server", "-f", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(served) >= len(documents(name)) - 1


@pytest.mark.parametrize("name", MANIFESTS)
def test_one_pod_at_a_time_or_replicas_and_closed(name):
    workload = next(each for each in documents(name) if each["kind"] in ("Deployment", "StatefulSet"))
    if name == "replicas.yaml":
        budget = documents(name)[-1]
        assert workload["spec"]["replicas"] == 2 and budget["spec"]["minAvailable"] == 1
        assert budget["spec"]["selector"] == workload["spec"]["selector"]
    else:
        assert workload["spec"]["replicas"] == 1
        assert workload["kind"] == "StatefulSet" or workload["spec"]["strategy"] == {"type": "Recreate"}
    pod = workload["spec"]["template"]["spec"]
    container, = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert {"livenessProbe", "readinessProbe"} <= set(container)


@pytest.mark.parametrize("name", MANIFESTS)
def test_its_configuration_has_no_mistakes(sandbox, name):
    text = next(each for each in documents(name) if each["kind"] == "ConfigMap")["data"]["reconciled.yaml"]
    path = sandbox.folder / "reconciled.yaml"
    path.write_text(text.replace("/usr/libexec/widgets/reconcile", "/bin/true"), encoding="utf-8")
    done = subprocess.run([sandbox.program("reconciledctl"), "check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
