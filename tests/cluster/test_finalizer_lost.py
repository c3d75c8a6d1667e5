# SPDX-License-Identifier: Apache-2.0
"""Our finalizer and `kubectl replace` with a manifest that does not have it, on a real API server."""
import json
import subprocess

from harness import wait_until, watch

FINALIZER = "widgets.example.com/finalizer"
OTHER = "example.com/other"


def finalizers(widgets, name):
    return widgets.get(name)["metadata"].get("finalizers") or []


def manifest(namespace, name, others=()):
    return json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1},
                       "metadata": {"name": name, "namespace": namespace, "finalizers": list(others)}})


def replace(cluster, text):
    subprocess.run(["kubectl", "--kubeconfig", str(cluster.kubeconfig), "replace", "-f", "-"], input=text, text=True, check=True)


def test_a_replaced_object_gets_it_back_and_is_finalized(cluster, operator, handler, widgets, namespace):
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], finalizer=True)])
    operator.start_ready().wait_synced()
    widgets.create("w", spec={"size": 1})
    handler.wait_finished(name="w")
    replace(cluster, manifest(namespace, "w"))
    wait_until(lambda: finalizers(widgets, "w") == [FINALIZER], "the finalizer")
    widgets.delete("w")
    handler.wait_finished(name="w", action="finalize")
    wait_until(lambda: not widgets.exists("w"), "its end")
    operator.stop()
    assert [request.body["action"] for request in handler.requests(name="w")] == ["reconcile", "finalize"]


def test_replaced_while_down_and_deleted_while_another_one_holds_it(cluster, operator, handler, widgets, namespace):
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], finalizer=True)])
    operator.start_ready().wait_synced()
    for name, others in (("held", [OTHER]), ("free", [])):
        widgets.create(name, spec={"size": 1}, finalizers=others)
        handler.wait_finished(name=name)
    operator.stop()
    for name, others in (("held", [OTHER]), ("free", [])):
        replace(cluster, manifest(namespace, name, others))
        widgets.delete(name)
    operator.start_ready()
    for name in ("held", "free"):
        handler.wait_finished(name=name, action="finalize")
    assert finalizers(widgets, "held") == [OTHER]
    replace(cluster, manifest(namespace, "held"))
    wait_until(lambda: not widgets.exists("held"), "its end")
    operator.stop()
    assert [request.body["action"] for request in handler.requests(name="held")] == ["reconcile", "finalize"]
