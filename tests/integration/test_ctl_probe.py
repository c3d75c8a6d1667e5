# SPDX-License-Identifier: Apache-2.0
"""reconciledctl health, as an exec probe uses it, and reconciledctl rbac."""
import json
import os
import signal

import pytest
import yaml

from harness import wait_until, watch
from harness.setup import NO_CHILDREN, child_kinds


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)], workers=1)
    return operator


def test_health(configured):
    assert configured.ctl.run("health").returncode == 69
    configured.start_ready()
    healthy = configured.ctl.run("health")
    assert (healthy.returncode, healthy.stdout, healthy.stderr) == (0, "", "")
    wait_until(lambda: configured.ctl.run("health", "--ready").returncode == 0, "readiness")


def test_not_ready_says_why(configured, devserver):
    devserver.suspend()
    configured.start_ready()
    assert configured.ctl.run("health").returncode == 0
    said = configured.ctl.run("health", "--ready")
    assert said.returncode == 70 and said.stdout.startswith("not ready: watch widgets is not in sync")
    devserver.resume()


@pytest.mark.slow
def test_a_hung_supervisor_is_not_healthy(configured):
    configured.start_ready()
    os.kill(configured.pid, signal.SIGSTOP)
    try:
        said = configured.ctl.run("health")
        assert said.returncode == 70 and "does not answer" in said.stderr
    finally:
        os.kill(configured.pid, signal.SIGCONT)


def roles(operator, *arguments):
    done = operator.ctl.run("rbac", str(operator.config_file), *arguments)
    assert done.returncode == 0, done.stderr
    return {(each["kind"], each["metadata"].get("namespace")): each for each in yaml.safe_load_all(done.stdout)}


def test_rbac(devserver, operator, handler):
    operator.configure(devserver, [
        watch("widgets", handler, children=NO_CHILDREN),
        watch("policies", handler, kind="Policy", namespaces=["one", "two"], children=NO_CHILDREN),
        watch("pods", handler, api_version="v1", kind="Pod", namespaces=["two"], children=NO_CHILDREN),
        watch("status", handler, kind="Status", namespaces=["two"], children=NO_CHILDREN)])
    found = roles(operator, "--namespace", "ours", "--service-account", "us")
    assert set(found) == {("ServiceAccount", "ours"), ("ClusterRole", None), ("ClusterRoleBinding", None), ("Role", "one"),
                          ("RoleBinding", "one"), ("Role", "two"), ("RoleBinding", "two")}
    assert found["ClusterRole", None]["rules"] == [
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
        {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": ["example.com"], "resources": ["widgets/status"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]
    assert [rule["resources"][0] for rule in found["Role", "one"]["rules"]] == ["policies", "policies/status", "events"]
    assert [(rule["apiGroups"][0], rule["resources"][0]) for rule in found["Role", "two"]["rules"]] == [
        ("example.com", "policies"), ("example.com", "policies/status"), ("", "pods"), ("", "pods/status"),
        ("example.com", "statuses"), ("example.com", "statuses/status"),
        ("events.k8s.io", "events")]
    as_list = json.loads(operator.ctl.run("rbac", str(operator.config_file), "--namespace", "ours", "--service-account", "us",
                                          "--json").stdout)
    assert (as_list["apiVersion"], as_list["kind"]) == ("v1", "List") and as_list["items"] == list(found.values())
    binding = found["RoleBinding", "two"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "us", "namespace": "ours"}]
    assert binding["roleRef"]["name"] == "widgets.example.com"


def test_rbac_of_owned_kinds(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, namespaces=["one"], children=NO_CHILDREN,
                                         owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}])])
    rules = {rule["resources"][0]: rule["verbs"] for rule in roles(operator)["Role", "one"]["rules"]}
    assert rules["deployments"] == ["get", "list", "watch", "create", "patch", "delete"]
    said = operator.ctl.run("rbac", str(operator.config_file), "--service-account", "on").stdout
    assert "# what the objects of watch widgets own\n- apiGroups: [apps]\n" in said
    assert '  name: "on"\n' in said, "which YAML would read as true"


def test_rbac_of_kinds_that_are_answered(devserver, operator, handler):
    """They are listed as well: where the record of an object's children is lost."""
    operator.configure(devserver, [watch("widgets", handler, namespaces=["one"],
                                         children={"kinds": [{"apiVersion": "apps/v1", "kind": "Deployment"}]})])
    rules = {rule["resources"][0]: rule["verbs"] for rule in roles(operator)["Role", "one"]["rules"]}
    assert rules["deployments"] == ["get", "list", "create", "patch", "delete"]
    assert rules["widgets/finalizers"] == ["update"]


def test_rbac_of_other_namespaces_and_of_the_cluster(devserver, operator, handler):
    """Just what an answer may write, where it may."""
    operator.configure(devserver, [watch(
        "widgets", handler, namespaces=["one"], finalizer=True, owns=child_kinds("apps/v1 Deployment"),
        children={"kinds": child_kinds("v1 ConfigMap", "rbac.authorization.k8s.io/v1 ClusterRole"), "namespaces": ["shared"]},
        patches=[*child_kinds("v1 Node"), {"apiVersion": "v1", "kind": "Service", "namespaces": ["web"]}])])
    written, found = ["get", "list", "create", "patch", "delete"], roles(operator)
    rules = {place or kind: {rule["resources"][0]: rule["verbs"] for rule in found[kind, place]["rules"]}
             for kind, place in (("ClusterRole", None), ("Role", "one"), ("Role", "shared"), ("Role", "web"))}
    assert rules["shared"] == {"configmaps": written, "deployments": written}
    assert rules["web"] == {"services": ["get", "patch"]}
    assert set(rules["one"]) == {"widgets", "widgets/status", "widgets/finalizers", "configmaps", "services", "deployments", "events"}
    assert rules["one"]["deployments"] == ["get", "list", "watch", "create", "patch", "delete"]
    assert rules["ClusterRole"] == {"namespaces": ["get"], "clusterroles": written, "nodes": ["get", "patch"]}


def test_rbac_of_objects_of_the_cluster(devserver, operator, handler):
    """Their children are where `children.namespaces` says, and nowhere else."""
    operator.configure(devserver, [watch("nodes", handler, "v1", "Node", children={"kinds": child_kinds("v1 ConfigMap"),
                                                                                  "namespaces": ["agents"]})])
    found = roles(operator)
    assert [rule["resources"] for rule in found["Role", "agents"]["rules"]] == [["configmaps"]]
    assert "configmaps" not in str(found["ClusterRole", None])


def test_rbac_corrected(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, kind="Mouse")])
    found = roles(operator, "--plural", "Mouse=mice")
    assert found["ClusterRole", None]["rules"][1]["resources"] == ["mice"]


@pytest.mark.parametrize("word, why", [("Nope=nopes", "names no kind Nope"), ("Mous=mice", "names no kind Mous"),
                                       ("Mouse=", "takes Kind=plural"), ("=mice", "takes Kind=plural"), ("Mouse", "takes Kind=plural")])
def test_rbac_corrected_by_mistake(devserver, operator, handler, word, why):
    operator.configure(devserver, [watch("widgets", handler, kind="Mouse", owns=[{"apiVersion": "v1", "kind": "ConfigMap"}],
                                         children={"kinds": child_kinds("apps/v1 Deployment")})])
    done = operator.ctl.run("rbac", "--config", str(operator.config_file), "--plural", "ConfigMap=configmaps",
                            "--plural", "Deployment=deployments", "--plural", word)
    assert done.returncode == 64 and why in done.stderr and not done.stdout, done


def definition(kind, plural, scope, group="example.com"):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": {"kind": kind, "plural": plural}, "versions": []}}


DEFINITIONS = [definition("Fleet", "armada", "Cluster"), definition("Mouse", "mice", "Namespaced"),
               definition("Mouse", "cluster-mice", "Cluster", "other.example.com")]


def listed(kind, *definitions):
    return {"apiVersion": "v1", "kind": kind, "items": list(definitions)}


@pytest.mark.parametrize("documents", [
    [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, *DEFINITIONS],
    [listed("List", *DEFINITIONS)],
    [listed("CustomResourceDefinitionList", *({**each, "kind": None} for each in DEFINITIONS))]],
    ids=["documents", "a list", "a list of its own"])
def test_rbac_of_defined_kinds(devserver, operator, handler, documents):
    """Scope and plural are those of the definition, for the kind of this group."""
    operator.configure(devserver, [watch("widgets", handler, namespaces=["one"],
                                         children={"kinds": child_kinds("example.com/v1 Fleet", "example.com/v1 Mouse")})])
    written, file = ["get", "list", "create", "patch", "delete"], operator.folder / "crds.yaml"
    file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    found = roles(operator, "--crd", str(file))
    rules = {kind: {rule["resources"][0]: rule["verbs"] for rule in found[kind, place]["rules"]}
             for kind, place in (("ClusterRole", None), ("Role", "one"))}
    assert rules["ClusterRole"] == {"namespaces": ["get"], "armada": written}
    assert rules["Role"]["mice"] == written and "armada" not in rules["Role"] and "fleets" not in rules["Role"]
    assert "custom kinds are taken to belong to a namespace" in operator.ctl.run("rbac", str(operator.config_file)).stdout


@pytest.mark.parametrize("text, said", [("kind: List\nitems: []\n", "has no CustomResourceDefinition"), ("a: [", "is not valid YAML"),
                                        (None, "No such file")])
def test_rbac_with_wrong_definitions(devserver, operator, handler, text, said):
    operator.configure(devserver, [watch("widgets", handler)])
    file = operator.folder / "crds.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    done = operator.ctl.run("rbac", str(operator.config_file), "--crd", str(file))
    assert (done.returncode, done.stdout) == (78, "") and f"{file}:" in done.stderr and said in done.stderr


def test_rbac_of_a_wrong_configuration(operator):
    operator.write_config("operator: x\n")
    assert operator.ctl.run("rbac", str(operator.config_file)).returncode == 78
