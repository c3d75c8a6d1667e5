# SPDX-License-Identifier: Apache-2.0
"""`patches`: fields of objects of others. Nothing is created, taken over or left behind."""
import json
import shlex
import shutil
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

NODE, CONFIG_MAP = {"apiVersion": "v1", "kind": "Node"}, {"apiVersion": "v1", "kind": "ConfigMap"}
PATCHED = "widgets.example.com/patched"


def node(name, **labels):
    return {**NODE, "metadata": {"name": name, "labels": labels}}


def config_map(name, data=None, **metadata):
    return {**CONFIG_MAP, "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def nodes(api):
    nodes = api.resource("v1", "nodes")
    for name in ("n1", "n2"):
        nodes.create(name, labels={"theirs": "1"})
    return nodes


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        entry = {"retry": {"first": "50ms", "max": "200ms"}, "finalizer": True, "patches": [NODE, CONFIG_MAP], **more}
        operator.configure(devserver, [watch("widgets", handler, **entry)])
        return operator.start_ready().wait_synced()

    return start


def answer(handler, patches, n=1, **more):
    handler.answer({"patches": patches, "status": {"n": n}, **more})


def status_is(widgets, n):
    wait_until(lambda: widgets.get("w").get("status") == {"n": n}, lambda: f"the status {n}: {widgets.get('w')}")


def change(widgets, n):
    widgets.merge_patch("w", {"spec": {"n": n}})


def ends(widgets):
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")


def failed(operator):
    return operator.wait_for_log("1 of its patches", key="default/w")["message"]


def managers(object_):
    return [entry["manager"] for entry in object_["metadata"]["managedFields"] if entry["manager"].startswith("widgets")]


def applies(devserver, name):
    return devserver.requests(lambda request: request["method"] == "PATCH" and request["path"].endswith(f"/{name}"))


def test_fields_are_set_and_given_up(start, handler, widgets, nodes):
    before = nodes.get("n1")["metadata"]
    answer(handler, [node("n1", pool="a"), node("n2", pool="a")])
    operator = start()
    widgets.create("w")
    status_is(widgets, 1)
    found = nodes.get("n1")["metadata"]
    assert found["labels"] == {"theirs": "1", "pool": "a"}
    assert {key for key in found if found[key] != before.get(key)} == {"labels", "managedFields", "resourceVersion"}
    [manager] = managers({"metadata": found})
    assert manager.startswith("widgets.example.com:") and managers(nodes.get("n2")) == [manager]
    assert widgets.get("w")["metadata"]["annotations"][PATCHED] == "v1/Node//n1,v1/Node//n2"
    answer(handler, [node("n2", zone="b")], 2)
    change(widgets, 2)
    status_is(widgets, 2)
    assert nodes.get("n1")["metadata"]["labels"] == {"theirs": "1"} and managers(nodes.get("n1")) == []
    assert nodes.get("n2")["metadata"]["labels"] == {"theirs": "1", "zone": "b"}
    assert widgets.get("w")["metadata"]["annotations"][PATCHED] == "v1/Node//n2"
    ends(widgets)
    assert nodes.get("n2")["metadata"]["labels"] == {"theirs": "1"} and managers(nodes.get("n2")) == []

    def told():
        runs = json.loads(operator.ctl.run("history", "widgets", "-o", "json").stdout)["runs"]
        return [write for run in runs for write in run.get("writes", [])]

    wait_until(lambda: {"what": "given up", "object": "Node n1", "fields": "metadata.labels.pool"} in told(), told)
    operator.stop()
    ids = {MESSAGE_ID["PATCHED"]: "patched", MESSAGE_ID["PATCH_RELEASED"]: "not patched any more"}
    story = [record["message"].partition("default/w: ")[2] for record in operator.logs() if record.get("message_id") in ids]
    assert story == ["Node n1 was patched: metadata.labels.pool", "Node n2 was patched: metadata.labels.pool",
                     "Node n2 was patched: metadata.labels.pool, metadata.labels.zone",
                     "Node n1 is not patched any more: metadata.labels.pool",
                     "Node n2 is not patched any more: metadata.labels.zone"]


def test_each_owner_and_watch_has_fields_of_its_own(start, operator, handler, make_handler, devserver, widgets, nodes):
    answer(handler, [node("n1", pool="a")])
    entry = {"finalizer": True, "patches": [NODE]}
    other = make_handler("echo '{\"patches\": [{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n1\", "
                         "\"labels\": {\"pool\": \"a\"}}}]}'")
    operator.configure(devserver, [watch("widgets", handler, **entry), watch("more", other, id="more", **entry)])
    operator.start_ready().wait_synced()
    for name in ("w", "v"):
        widgets.create(name)
    wait_until(lambda: len(set(managers(nodes.get("n1")))) == 4, "four managers")
    wait_until(lambda: "widgets.example.com/more.patched" in widgets.get("w")["metadata"]["annotations"], "the second list")
    ends(widgets)
    assert nodes.get("n1")["metadata"]["labels"]["pool"] == "a", "others still want it"
    operator.wait_for_log("others have set the same", message_id=MESSAGE_ID["PATCH_RELEASED"])
    widgets.delete("v")
    wait_until(lambda: not widgets.exists("v"), "the end of the other one")
    assert "pool" not in nodes.get("n1")["metadata"]["labels"]
    operator.stop()


@pytest.mark.parametrize("force", [False, True])
def test_what_another_manager_has_set_is_a_conflict(start, handler, widgets, nodes, force):
    before = nodes.apply(node("n1", pool="theirs"), manager="a-human")
    answer(handler, [node("n1", pool="ours"), node("n2", pool="ours")])
    operator = start(children={"force": force})
    widgets.create("w")
    said = failed(operator)
    assert "Node n1 is not patched, because others have set fields of it" in said
    assert 'conflict with "a-human"' in said and ".metadata.labels.pool" in said and "force" not in said
    assert nodes.get("n1") == before and nodes.get("n2")["metadata"]["labels"]["pool"] == "ours" and "status" not in widgets.get("w")
    ends(widgets)
    assert nodes.get("n1") == before and "pool" not in nodes.get("n2")["metadata"]["labels"]
    operator.stop()


def test_what_is_not_there_is_not_created(start, handler, widgets, nodes):
    answer(handler, [node("n3", pool="a")])
    operator = start()
    widgets.create("w")
    assert "Node n3 is not patched: it is not there, and a patch creates nothing" in failed(operator)
    assert not nodes.exists("n3")
    nodes.create("n3")
    status_is(widgets, 1)
    nodes.delete("n3")
    nodes.create("n3", labels={"anew": "1"})
    anew = nodes.get("n3")
    ends(widgets)
    assert nodes.get("n3") == anew
    operator.stop()


def test_the_list_comes_first_and_survives_the_operator(start, devserver, operator, handler, widgets, nodes):
    answer(handler, [node("n1", pool="a")])
    start()
    widgets.create("w")
    status_is(widgets, 1)
    [manager] = managers(nodes.get("n1"))
    ends(widgets)
    fault = devserver.fault({"path": "/api/v1/nodes/n1", "verb": "patch"}, hang=True)
    widgets.create("w")
    wait_until(lambda: devserver.faults()[fault]["hit"], "the apply")
    assert widgets.get("w")["metadata"]["annotations"][PATCHED] == "v1/Node//n1"
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    devserver.clear_faults()
    nodes.apply(node("n1", pool="a"), manager=manager)  # as if it had arrived
    shutil.rmtree(operator.state_directory)
    handler.answer({"status": {"n": 2}})
    operator.start_ready().wait_synced()
    ends(widgets)
    assert "pool" not in nodes.get("n1")["metadata"]["labels"]
    operator.stop()


def test_nothing_is_sent_that_changes_nothing(start, devserver, handler, widgets, nodes):
    answer(handler, [node("n1", pool="a")])
    operator = start()
    widgets.create("w")
    status_is(widgets, 1)
    assert len(applies(devserver, "n1")) == 1
    nodes.merge_patch("n1", {"metadata": {"labels": {"heartbeat": "1"}}})
    sent = len(applies(devserver, "n1"))
    answer(handler, [node("n1", pool="a")], 2)
    change(widgets, 2)
    status_is(widgets, 2)
    assert len(applies(devserver, "n1")) == sent
    handler.answer({"status": {"n": 3}})  # without the key all stays
    change(widgets, 3)
    status_is(widgets, 3)
    assert nodes.get("n1")["metadata"]["labels"]["pool"] == "a"
    operator.stop()


def test_they_go_before_the_children_and_after_finalize(start, devserver, handler, widgets, nodes, config_maps):
    answer(handler, [node("n1", pool="a")], children=[config_map("child")])
    operator = start()
    widgets.create("w")
    status_is(widgets, 1)
    handler.behave('echo \'{"done": false}\'')
    widgets.delete("w")
    handler.wait_finished(name="w", action="finalize", count=2)
    assert nodes.get("n1")["metadata"]["labels"]["pool"] == "a" and config_maps.exists("child")
    handler.answer({"patches": [node("n2", pool="a")]})
    wait_until(lambda: not widgets.exists("w"), "its end")
    order = [request["path"].partition("?")[0].rpartition("/")[2] for request in devserver.requests()
             if (request["method"], "child" in request["path"]) in (("DELETE", True), ("PATCH", False)) and
             ("/nodes/" in request["path"] or "child" in request["path"])]
    assert order[-2:] == ["n1", "child"] and "pool" not in nodes.get("n2")["metadata"]["labels"]
    assert operator.wait_for_log("patches in the answer to `finalize` are ignored")
    operator.stop()


@pytest.mark.parametrize("namespace", [{}, {"namespace": "default"}])
def test_what_was_patched_becomes_a_child(start, operator, handler, widgets, nodes, config_maps, namespace):
    config_maps.create("x", data={"theirs": "1"})
    answer(handler, [config_map("x", {"ours": "1", "old": "1"}), node("n1", pool="a"), node("n2", pool="a")])
    start()
    widgets.create("w")
    status_is(widgets, 1)
    answer(handler, [node("n1", pool="b")], 2, children=[{"manifest": config_map("x", {"ours": "2"}, **namespace), "adopt": True}])
    change(widgets, 2)
    status_is(widgets, 2)
    assert config_maps.get("x")["data"] == {"theirs": "1", "ours": "2"}
    assert managers(config_maps.get("x")) == ["widgets.example.com"]
    assert [nodes.get(name)["metadata"]["labels"].get("pool") for name in ("n1", "n2")] == ["b", None]
    assert widgets.get("w")["metadata"]["annotations"][PATCHED] == "v1/Node//n1"
    operator.stop()


def test_an_object_that_leaves_gives_them_up(start, handler, widgets, nodes):
    answer(handler, [node("n1", pool="a")])
    operator = start(labelSelector="app=a", unselected=False)
    widgets.create("w", labels={"app": "a"})
    status_is(widgets, 1)
    widgets.merge_patch("w", {"metadata": {"labels": {"app": "b"}}})
    wait_until(lambda: "finalizers" not in widgets.get("w")["metadata"], "our finalizer to go")
    assert "pool" not in nodes.get("n1")["metadata"]["labels"] and PATCHED not in widgets.get("w")["metadata"].get("annotations", {})
    operator.stop()


def test_patches_that_the_configuration_wants_no_more(start, devserver, operator, handler, widgets, nodes):
    answer(handler, [node("n1", pool="a")])
    start()
    widgets.create("w")
    status_is(widgets, 1)
    operator.stop()
    handler.answer({"status": {"n": 2}})
    operator.configure(devserver, [watch("widgets", handler, onStart="all")])
    operator.start_ready().wait_synced()
    wait_until(lambda: "pool" not in nodes.get("n1")["metadata"]["labels"], "them to be given up")
    wait_until(lambda: PATCHED not in widgets.get("w")["metadata"].get("annotations", {}), "the end of the list")
    operator.stop()


@pytest.mark.parametrize("kinds, left", [([NODE], "v1/Node//n1"), ([CONFIG_MAP], "v1/ConfigMap/default/x")])
def test_a_kind_that_the_configuration_wants_no_more(start, devserver, operator, handler, widgets, nodes, config_maps, kinds, left):
    config_maps.create("x", data={"theirs": "1"})
    answer(handler, [node("n1", pool="a"), config_map("x", {"ours": "1"})])
    start()
    widgets.create("w")
    status_is(widgets, 1)
    operator.stop()
    handler.answer({"status": {"n": 2}})
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, onStart="all", patches=kinds)])
    operator.start_ready().wait_synced()
    status_is(widgets, 2)
    assert config_maps.get("x")["data"] == ({"theirs": "1"} if NODE in kinds else {"theirs": "1", "ours": "1"})
    assert ("pool" in nodes.get("n1")["metadata"]["labels"]) == (NODE in kinds)
    assert widgets.get("w")["metadata"]["annotations"][PATCHED] == left
    operator.stop()


def test_what_cannot_be_without_it_is_let_go(start, devserver, handler, widgets, nodes):
    answer(handler, [node("n1", pool="a")])
    operator = start()
    widgets.create("w")
    status_is(widgets, 1)
    devserver.fault({"path": "/api/v1/nodes/n1", "verb": "patch"}, status=422, message="spec.x: Required value")
    ends(widgets)
    said = operator.wait_for_log("Node n1 keeps what was patched", role="worker")["message"]
    assert "spec.x: Required value" in said and nodes.get("n1")["metadata"]["labels"]["pool"] == "a"
    operator.stop()


def test_a_server_that_refuses_for_now_is_asked_again(start, devserver, handler, widgets, nodes):
    answer(handler, [node("n1", pool="a")])
    operator = start()
    widgets.create("w")
    status_is(widgets, 1)
    devserver.fault({"path": "/api/v1/nodes/n1"}, times=3, status=500)
    ends(widgets)
    assert "pool" not in nodes.get("n1")["metadata"]["labels"]
    operator.stop()


def test_a_hundred_managers_are_the_end(start, handler, widgets, nodes):
    for number in range(99):
        nodes.apply(node("n1", **{f"of-{number}": "1"}), manager=f"manager-{number}")
    before = nodes.get("n1")
    answer(handler, [node("n1", pool="a")])
    operator = start()
    widgets.create("w")
    assert "Node n1 is not patched: it has 100 field managers" in failed(operator)
    assert nodes.get("n1") == before
    operator.stop()


def test_a_secret_with_string_data(start, api, handler, widgets):
    secrets = api.resource("v1", "secrets", "default")
    secrets.create("s")
    patch = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hidden"}}
    answer(handler, [patch])
    operator = start(patches=[{"apiVersion": "v1", "kind": "Secret"}])
    widgets.create("w")
    status_is(widgets, 1)
    assert secrets.get("s")["data"] == {"a": "aGlkZGVu"}
    ends(widgets)
    assert not secrets.get("s").get("data")
    operator.stop()
    assert "hidden" not in operator.output.text() and "aGlkZGVu" not in operator.output.text()


@pytest.mark.parametrize("patches, says", [
    ([config_map("child")], "1 of its patches: ConfigMap default/child is not patched: it is a child of the object"),
    ([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}], "patches[0], Pod p: its kind is not among the `patches`"),
    ([{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}], "patches[0], Widget default/w: is the object itself"),
    ([node("n1", a="1"), node("n1", b="1")], "patches[1], Node n1: is the same object as another one of the list"),
    ([node("n1", **{"widgets.example.com/x": "1"})], "patches[0], Node n1: sets a label or an annotation that reconciled keeps"),
    ([config_map("a", annotations={"widgets.example.com/made": "1"})], "patches[0], ConfigMap default/a: sets a label or an annotation"),
    ([node("n1", **{"applyset.k8s.io/id": "1"})], "patches[0], Node n1: sets a label or an annotation"),
    ([config_map("a", finalizers=["a/b"])], "patches[0].metadata.finalizers: a patch sets labels and annotations alone"),
    ([{**NODE, "metadata": {"name": "n1"}, "status": {}}], "patches[0].status: cannot be patched"),
    ([{"manifest": node("n1"), "adopt": True}], "patches[0].manifest: is for `children`"),
    ([{**node("n1"), "metadata": {"name": "n1", "namespace": "default"}}], "patches[0].metadata.namespace: its kind belongs to no"),
    ({}, "patches: must be a list"),
])
def test_what_is_no_object_of_others(start, handler, widgets, nodes, config_maps, patches, says):
    before = nodes.get("n1")
    config_maps.create("a")
    handler.answer({"children": [config_map("child")]})
    operator = start(patches=[NODE, CONFIG_MAP, {"apiVersion": "example.com/v1", "kind": "Widget"}])
    widgets.create("w")
    wait_until(lambda: config_maps.exists("child"), "the child")
    handler.answer({"patches": patches, "status": {"n": 1}})
    change(widgets, 1)
    assert says in operator.wait_for_log(says[:30], key="default/w")["message"]
    assert "status" not in widgets.get("w") and nodes.get("n1") == before
    operator.stop()


def gadget_crd(served):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                     "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                     "versions": [{"name": version, "served": version in served, "storage": version == "v1", "schema": schema}
                                  for version in ("v1alpha1", "v1")]}}


@pytest.mark.parametrize("goes", [False, True])
def test_given_up_in_a_version_that_is_served(api, start, operator, handler, widgets, goes):
    crds = api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    crds.create(body=gadget_crd(["v1alpha1", "v1"]))
    gadgets = api.resource("example.com/v1", "gadgets", "default")
    wait_until(gadgets.list, "the kind")
    for name in ("g", "h"):
        gadgets.create(name, spec={"theirs": "1"})
    old = {"apiVersion": "example.com/v1alpha1", "kind": "Gadget"}
    answer(handler, [{**old, "metadata": {"name": name}, "spec": {"ours": "1"}} for name in ("g", "h")])
    start(patches=[old])
    widgets.create("w")
    status_is(widgets, 1)
    assert [gadgets.get(name)["spec"] for name in ("g", "h")] == [{"theirs": "1", "ours": "1"}] * 2
    if goes:
        crds.delete("gadgets.example.com")
    else:
        crds.merge_patch("gadgets.example.com", {"spec": {"versions": gadget_crd(["v1"])["spec"]["versions"]}})
    ends(widgets)
    if not goes:
        for name in ("g", "h"):
            assert gadgets.get(name)["spec"] == {"theirs": "1"} and not managers(gadgets.get(name))
    else:
        assert "is patched still" in operator.output.text(), "a kind is not believed at once to be gone"
    operator.stop()


@pytest.mark.parametrize("slash", ["/", "\\/", "\\u002f"])
def test_marks_of_a_former_name_are_kept_as_well(devserver, operator, handler, widgets, config_maps, slash):
    """An escape in a key makes no other key of it."""
    config_maps.create("x")
    before = config_maps.get("x")
    said = json.dumps({"patches": [config_map("x", annotations={"old.example.com/made": "1"})]})
    handler.behave(f"printf '%s' {shlex.quote(said.replace('com/made', f'com{slash}made'))}")
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, patches=[CONFIG_MAP])],
                       formerNames=["older.example.com", "old.example.com"])
    operator.start_ready().wait_synced()
    widgets.create("w")
    assert operator.wait_for_log("patches[0], ConfigMap default/x: sets a label or an annotation that reconciled keeps for itself", key="default/w")
    assert config_maps.get("x") == before
    operator.stop()


def test_beside_an_error_they_are_refused(start, handler, widgets):
    handler.answer({"error": "no", "patches": []})
    operator = start()
    widgets.create("w")
    assert operator.wait_for_log("patches: are not written by an answer with `error`", key="default/w")
    operator.stop()


def test_they_need_a_finalizer_and_rights(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, patches=[NODE])])
    assert "patches: needs `finalizer: true`" in operator.ctl.run("check", str(operator.config_file)).stdout
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, patches=[NODE])])
    assert operator.ctl.run("check", str(operator.config_file)).returncode == 0
    said = operator.ctl.run("rbac", str(operator.config_file)).stdout
    rule = said.partition("# what watch widgets patches")[2]
    assert rule.split("verbs:")[0].count("nodes") == 1
    assert rule.split("verbs:")[1].split()[:4] == ["-", "get", "-", "patch"] or "get, patch" in rule


def test_tried_by_hand(start, operator, handler, widgets, nodes, by_hand):
    answer(handler, [node("n1", pool="a")])
    start().stop()
    widgets.create("w")
    before = nodes.get("n1")
    shown = by_hand("run", "--object", "default/w").stdout
    assert "~ change Node n1" in shown and '+ metadata.labels.pool: "a"' in shown
    assert nodes.get("n1") == before
