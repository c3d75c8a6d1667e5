# SPDX-License-Identifier: Apache-2.0
"""`patches` on a real API server: managed fields, and the UID, decide what is set and what is given up."""
import pytest

from harness import wait_until, watch

NODE, CONFIG_MAP, SERVICE = ({"apiVersion": "v1", "kind": kind} for kind in ("Node", "ConfigMap", "Service"))


@pytest.fixture
def start(cluster, operator, handler, namespace):
    def start(**more):
        operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], finalizer=True,
                                           patches=[NODE, CONFIG_MAP, SERVICE], retry={"first": "100ms", "max": "500ms"}, **more)])
        return operator.start_ready().wait_synced()

    return start


def status_is(widgets, n):
    wait_until(lambda: widgets.get("w").get("status") == {"n": n}, lambda: f"the status {n}: {widgets.get('w')}", 60)


def managers(object_):
    return [entry["manager"] for entry in object_["metadata"]["managedFields"] if entry["manager"].startswith("widgets")]


def succeeds(call):
    try:
        call()
    except OSError:
        return False
    return True


def ends(widgets):
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end", 60)


def test_from_set_to_given_up(start, operator, handler, widgets, cluster, namespace):
    nodes = cluster.api.resource("v1", "nodes")
    name = f"node-{namespace}"
    nodes.create(body={**NODE, "metadata": {"name": name, "labels": {"theirs": "1"}}}, query={"fieldManager": "a-human"})

    def labels():
        return {key: value for key, value in nodes.get(name)["metadata"]["labels"].items() if "kubernetes.io" not in key}

    def answer(n, **labels):
        handler.answer({"patches": [{**NODE, "metadata": {"name": name, "labels": labels},
                                     "spec": {"taints": [{"key": "ours", "effect": "NoSchedule"}]}}] if labels else [],
                        "status": {"n": n}})
        if n > 1:
            widgets.merge_patch("w", {"spec": {"n": n}})
        else:
            widgets.create("w")
        status_is(widgets, n)

    try:
        start()
        answer(1, pool="a")
        assert labels() == {"theirs": "1", "pool": "a"} and len(managers(nodes.get(name))) == 1
        assert [taint["key"] for taint in nodes.get(name)["spec"]["taints"] if taint["key"] == "ours"]
        answer(2)
        assert labels() == {"theirs": "1"} and managers(nodes.get(name)) == []
        assert not [taint for taint in nodes.get(name)["spec"].get("taints", []) if taint["key"] == "ours"]
        handler.answer({"patches": [{**NODE, "metadata": {"name": name, "labels": {"theirs": "2"}}}], "status": {"n": 3}})
        widgets.merge_patch("w", {"spec": {"n": 3}})
        said = operator.wait_for_log("1 of its patches", key=f"{namespace}/w")["message"]
        assert 'conflict with "a-human"' in said and ".metadata.labels.theirs" in said and labels() == {"theirs": "1"}
        ends(widgets)
        assert labels() == {"theirs": "1"}
    finally:
        nodes.delete(name)
    operator.stop()


def test_an_object_made_anew_keeps_all(start, operator, handler, widgets, cluster, namespace):
    config_maps = cluster.api.resource("v1", "configmaps", namespace)
    config_maps.create(body={**CONFIG_MAP, "metadata": {"name": "a"}, "data": {"theirs": "1"}})
    handler.answer({"patches": [{**CONFIG_MAP, "metadata": {"name": "a"}, "data": {"ours": "1"}}], "status": {"n": 1}})
    start()
    widgets.create("w")
    status_is(widgets, 1)
    assert config_maps.get("a")["data"] == {"theirs": "1", "ours": "1"}
    config_maps.delete("a")
    config_maps.create(body={**CONFIG_MAP, "metadata": {"name": "a"}, "data": {"ours": "theirs now"}})
    ends(widgets)
    assert config_maps.get("a")["data"] == {"ours": "theirs now"}
    operator.stop()


def test_what_an_object_cannot_be_without_is_let_go(start, operator, handler, widgets, cluster, namespace):
    """A headless Service with a selector of ours only stays; one that would be left without ports is invalid."""
    services = cluster.api.resource("v1", "services", namespace)
    services.create(body={**SERVICE, "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, query={"fieldManager": "a-human"})
    port = {"port": 80, "protocol": "TCP"}
    handler.answer({"patches": [{**SERVICE, "metadata": {"name": "s"}, "spec": {"ports": [port]}}], "status": {"n": 1}})
    start()
    widgets.create("w")
    status_is(widgets, 1)
    # They give up what they had, so that the port is ours alone.
    found = services.get("s")
    found["metadata"]["managedFields"] = [entry for entry in found["metadata"]["managedFields"] if entry["manager"] != "a-human"]
    services.replace(found)
    ends(widgets)
    assert services.get("s")["spec"]["ports"][0]["port"] == 80
    operator.wait_for_log("keeps what was patched, because it cannot be without it", role="worker")
    operator.stop()


def test_what_was_patched_becomes_a_child(start, operator, handler, widgets, cluster, namespace):
    config_maps = cluster.api.resource("v1", "configmaps", namespace)
    config_maps.create(body={**CONFIG_MAP, "metadata": {"name": "a"}, "data": {"theirs": "1"}})
    handler.answer({"patches": [{**CONFIG_MAP, "metadata": {"name": "a"}, "data": {"ours": "1", "old": "1"}}], "status": {"n": 1}})
    start()
    widgets.create("w")
    status_is(widgets, 1)
    handler.answer({"patches": [], "children": [{"manifest": {**CONFIG_MAP, "metadata": {"name": "a"}, "data": {"ours": "2"}}, "adopt": True}],
                    "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, 2)
    assert config_maps.get("a")["data"] == {"theirs": "1", "ours": "2"}
    assert set(managers(config_maps.get("a"))) == {"widgets.example.com"}
    operator.stop()


def test_given_up_in_a_version_that_is_served(cluster, operator, handler, widgets, namespace):
    group = f"{namespace}.example.com"
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}} for name in ("v1alpha1", "v1")]
    crds = cluster.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    name = f"patchables.{group}"
    crds.create(body={"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
                      "spec": {"group": group, "scope": "Namespaced", "versions": versions,
                               "names": {"plural": "patchables", "singular": "patchable", "kind": "Patchable", "listKind": "PatchableList"}}})
    try:
        patchables = cluster.api.resource(f"{group}/v1", "patchables", namespace)
        wait_until(lambda: crds.get(name).get("status", {}).get("acceptedNames", {}).get("kind"), "the kind", 60)
        wait_until(lambda: succeeds(patchables.list), "the kind to be served", 60)
        patchables.create(body={"apiVersion": f"{group}/v1", "kind": "Patchable", "metadata": {"name": "a"}, "spec": {"theirs": "1"}})
        old = {"apiVersion": f"{group}/v1alpha1", "kind": "Patchable"}
        handler.answer({"patches": [{**old, "metadata": {"name": "a"}, "spec": {"ours": "1"}}], "status": {"n": 1}})
        operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], finalizer=True, patches=[old],
                                           retry={"first": "100ms", "max": "500ms"})])
        operator.start_ready().wait_synced()
        widgets.create("w")
        status_is(widgets, 1)
        assert patchables.get("a")["spec"] == {"theirs": "1", "ours": "1"}
        crds.merge_patch(name, {"spec": {"versions": [{**version, "served": version["name"] == "v1"} for version in versions]}})
        before = cluster.api.resource(f"{group}/v1alpha1", "patchables", namespace)
        wait_until(lambda: not succeeds(before.list), "the end of the version", 60)
        ends(widgets)
        assert patchables.get("a")["spec"] == {"theirs": "1"} and managers(patchables.get("a")) == []
        operator.stop()
    finally:
        crds.delete(name)
