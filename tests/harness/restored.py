# SPDX-License-Identifier: Apache-2.0
"""A cluster that was lost, and came back from a backup: names, labels, annotations and contents, under new UIDs."""
import shutil

from harness import wait_until

RESTORER = "velero-server"


def child(name, data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def backup(resource, name):
    found = resource.get(name)
    kept = {key: value for key, value in found["metadata"].items() if key in ("name", "namespace", "labels", "annotations")}
    return {**{key: value for key, value in found.items() if key != "status"}, "metadata": kept}


def lose(resource, name):
    resource.merge_patch(name, {"metadata": {"finalizers": None}})
    if resource.exists(name):
        resource.delete(name)
    wait_until(lambda: not resource.exists(name), f"the end of {name}", 60)


def restore(resource, object_):
    return resource.create(body=object_, query={"fieldManager": RESTORER})


def goes_on_after_a_restore(start, operator, handler, widgets, config_maps):
    """start: begins the operator, with a finalizer."""
    def status_is(n):
        wait_until(lambda: widgets.get("w").get("status") == {"n": n}, lambda: f"the status {n}: {widgets.get('w')}", 60)

    handler.answer({"children": [child("a", {"a": "1"})], "status": {"n": 1}})
    start()
    widgets.create("w")
    status_is(1)
    operator.stop()
    shutil.rmtree(operator.state_directory)
    copies = [(widgets, backup(widgets, "w")), (config_maps, backup(config_maps, "a"))]
    lose(config_maps, "a")
    lose(widgets, "w")
    uid = {resource: restore(resource, copy)["metadata"]["uid"] for resource, copy in copies}
    handler.answer({"children": [child("a", {"a": "1", "b": "2"})], "status": {"n": 2}})
    start()
    status_is(2)
    found = config_maps.get("a")
    assert found["data"] == {"a": "1", "b": "2"} and found["metadata"]["uid"] == uid[config_maps]
    assert [reference["uid"] for reference in found["metadata"]["ownerReferences"]] == [uid[widgets]]
    handler.answer({"children": [child("a", {"a": "1"})], "status": {"n": 3}})
    widgets.merge_patch("w", {"spec": {"n": 3}})
    status_is(3)
    assert config_maps.get("a")["data"] == {"a": "1"}
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end", 60)
    assert not config_maps.exists("a"), "what the operator has made goes with its object"
