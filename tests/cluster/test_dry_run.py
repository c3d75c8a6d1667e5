# SPDX-License-Identifier: Apache-2.0
"""`reconciledctl run` of an object of a real cluster: the server judges what would be written, and keeps nothing."""
from harness import watch


def test_it_is_tried_and_not_kept(cluster, operator, handler, by_hand, widgets, namespace):
    config_maps = cluster.api.resource("v1", "configmaps", namespace)
    handler.answer({"status": {"phase": "Done"}, "events": [{"reason": "Tried", "note": "n"}], "children": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}]})
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], finalizer=True, readyCondition=True,
                                       owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])])
    before = widgets.create("w", {"size": 1})
    shown = by_hand("run", "--object", f"{namespace}/w").stdout
    assert '+ status.phase: "Done"' in shown and f"+ create ConfigMap {namespace}/child" in shown
    assert '+ metadata.finalizers[0]: "widgets.example.com/finalizer"' in shown and '+ reason: "Tried"' in shown
    assert shown.endswith("Nothing was written; --apply writes it.\n")
    assert widgets.get("w") == before and not config_maps.exists("child")
    handler.answer({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": 1}}]})
    refused = by_hand("run", "--object", f"{namespace}/w", expect=1).stdout
    assert "! refused (HTTP " in refused and "result: retry" in refused
    handler.answer({"status": {"phase": "Done"}})
    by_hand("run", "--object", f"{namespace}/w", "--apply")
    assert widgets.get("w")["status"]["phase"] == "Done"


def test_a_plan_of_all_objects(cluster, operator, handler, by_hand, widgets, namespace):
    child = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\'$RECONCILED_NAME\'"},"data":{"a":"%s"}}'
    handler.behave(f"printf '%s\\n' '{{\"children\": [{child % 1}]}}'")
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], handler_options={"dryRun": True},
                                       owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])])
    for name in ("a", "b"):
        widgets.create(name, {"size": 1})
    for name in ("a", "b"):
        by_hand("run", "--object", f"{namespace}/{name}", "--apply")
    assert by_hand("plan").stdout == "2 objects, 2 unchanged, 0 change, 0 unknown, 0 fail\n"
    handler.behave(f"printf '%s\\n' '{{\"children\": [{child % 2}]}}'")
    changed = by_hand("plan", expect=2).stdout
    assert '2 objects: ' in changed and '- data.a: "1"' in changed and '+ data.a: "2"' in changed
