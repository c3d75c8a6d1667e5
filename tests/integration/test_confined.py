# SPDX-License-Identifier: Apache-2.0
"""What an answer writes beside its own object is of kinds, and in namespaces, that the configuration names."""
import json
import shutil
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import child_kinds

MAPS = {"kinds": child_kinds("v1 ConfigMap")}


def child(kind="ConfigMap", name="c", version="v1", **metadata):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


SECRET = child("Secret", namespace="kube-system")
BINDING = child("ClusterRoleBinding", version="rbac.authorization.k8s.io/v1")
NODE = child("Node", labels={"pool": "x"})
SERVICE = child("Service", namespace="web", labels={"x": "y"})


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **{"finalizer": True, **more})])
        operator.start_ready().wait_synced()
        return operator

    return start


def writes(devserver):
    """What the operator has written but to the Widget itself."""
    return devserver.requests(lambda request: request["method"] not in ("GET", "CONNECT")
                              and "/widgets" not in request["path"] and "/events" not in request["path"])


REFUSED = [
    ({"children": [child(), SECRET]}, {"children": MAPS}, "children[1], Secret kube-system/c", "children.kinds",
     "children: {kinds: [{apiVersion: v1, kind: Secret}], namespaces: [kube-system]}"),
    ({"children": [BINDING, child()]}, {"children": MAPS}, "children[0], ClusterRoleBinding c", "children.kinds",
     "children: {kinds: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding}]}"),
    ({"children": [child(), child(namespace="other"), child(name="d", namespace="ther")]}, {"children": MAPS},
     "children[1], ConfigMap other/c", "children.namespaces", "children: {namespaces: [other, ther]}"),
    ({"children": [child()], "patches": [NODE]}, {"children": MAPS}, "patches[0], Node c", "`patches`",
     "patches: [{apiVersion: v1, kind: Node}]"),
    ({"children": [child()], "patches": [SERVICE]}, {"children": MAPS, "patches": child_kinds("v1 Service")},
     "patches[0], Service web/c", "`patches`", "patches: [{apiVersion: v1, kind: Service, namespaces: [web]}]"),
]


@pytest.mark.parametrize("answer, more, named, key, line", REFUSED, ids=["kind", "cluster", "namespace", "patch", "patched-namespace"])
def test_what_no_key_names_is_refused_before_anything_is_written(start, devserver, handler, widgets, answer, more, named, key, line):
    handler.answer({**answer, "status": {"never": True}, "patch": {"metadata": {"labels": {"never": "x"}}}})
    operator = start(**{"children": {"kinds": [], "namespaces": []}, "readyCondition": True, **more,
                        **({"children": {**more["children"], "namespaces": ["team-*"]}})})
    widgets.create("w")
    record = operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"])
    for text in (named, key, f"add to watch widgets, or to these lists where it has them: {line}"):
        assert text in record["message"], record["message"]
    wait_until(lambda: widgets.get("w").get("status"), "the condition")
    [condition] = widgets.get("w")["status"].pop("conditions")
    assert condition["status"] == "False" and line in condition["message"]
    assert "never" not in json.dumps(widgets.get("w"))
    assert writes(devserver) == []
    assert line in operator.ctl.run("explain", "widgets", "default/w").stdout.replace("\n", " ")


def test_what_is_named_is_written(start, api, handler, widgets):
    """Any version of a kind, the object's own namespace, and those that a pattern names."""
    handler.answer({"children": [child(), child(namespace="team-a"), child("Deployment", version="apps/v1")],
                    "patches": [child("Service", namespace="web", labels={"x": "y"})]})
    for name in ("team-a", "web"):
        api.resource("v1", "namespaces").create(name)
    api.resource("v1", "services", "web").create("c")
    operator = start(children={"kinds": child_kinds("v1 ConfigMap", "apps/v1beta1 Deployment"), "namespaces": ["team-*"]},
                     patches=[{"apiVersion": "v1", "kind": "Service", "namespaces": ["web"]}])
    widgets.create("w")
    wait_until(lambda: api.resource("v1", "configmaps", "team-a").list()["items"], "the child in another namespace")
    wait_until(lambda: api.resource("apps/v1", "deployments", "default").list()["items"], "the Deployment")
    wait_until(lambda: api.resource("v1", "services", "web").get("c")["metadata"].get("labels") == {"x": "y"}, "the patch")
    assert operator.ctl.status()["failing"] == []


def test_a_namespace_is_its_own(devserver, operator, handler, api):
    handler.answer({"children": [child(namespace="n")]})
    operator.configure(devserver, [watch("namespaces", handler, "v1", "Namespace", labelSelector="a=b",
                                         children={**MAPS, "namespaces": ["nowhere"]})])
    operator.start_ready().wait_synced()
    for name in ("n", "m"):
        api.resource("v1", "namespaces").create(name, labels={"a": "b"})
    wait_until(lambda: api.resource("v1", "configmaps", "n").list()["items"], "its child")
    record = operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"])
    assert record["key"] == "m" and "children: {namespaces: [n]}" in record["message"]


GONE = {"pruned": {"children": []}, "released": {"children": [{"manifest": child(namespace="other"), "release": True}]},
        "finalized": {}}


@pytest.mark.parametrize("how", GONE)
def test_what_exists_and_is_not_allowed_any_more_may_be_taken_away(start, operator, api, handler, widgets, how):
    there = api.resource("v1", "configmaps", "other")
    api.resource("v1", "namespaces").create("other")
    answer = {"children": [child(namespace="other", labels={"v": "1"})]}
    handler.answer(answer)
    start()
    widgets.create("w")
    wait_until(lambda: there.list()["items"], "the child")
    operator.stop()
    handler.answer({"children": [child(namespace="other", labels={"v": "2"})]})
    start(children={"kinds": [], "namespaces": ["nowhere"]}, onStart="all")
    said = operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"])["message"]
    assert "kinds: [{apiVersion: v1, kind: ConfigMap}], namespaces: [other]" in said
    assert there.get("c")["metadata"]["labels"]["v"] == "1", "it is not changed"
    handler.answer(GONE[how])
    if how == "finalized":
        widgets.delete("w")
        wait_until(lambda: not widgets.list()["items"], "the object to go")
    else:
        widgets.merge_patch("w", {"spec": {"size": 2}})
    if how == "released":
        wait_until(lambda: "widgets.example.com/made" not in there.get("c")["metadata"].get("annotations", {}), "its release")
    else:
        wait_until(lambda: not there.list()["items"], "the child to go")
    wait_until(lambda: operator.ctl.status()["failing"] == [], "no failure")


def test_a_rollback_goes_on(start, operator, devserver, api, handler, widgets):
    """What a failed attempt did is undone, also if the configuration does not allow it any more."""
    there = api.resource("v1", "configmaps", "default")
    handler.answer({"children": [child(labels={"v": "1"})]})
    start(onFailure="rollback")
    widgets.create("w")
    wait_until(lambda: there.list()["items"], "the child")
    devserver.fault(match={"verb": "patch", "resource": "configmaps", "name": "bad"}, times=0, status=422, reason="Invalid", message="odd")
    held = devserver.fault(match={"verb": "patch", "resource": "configmaps", "name": "c"}, after=1, times=0, hang=True)
    handler.answer({"children": [child(labels={"v": "2"}), child(name="bad")]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: devserver.faults()[held]["hit"], "the PATCH that restores it")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    devserver.clear_faults(held)
    start(onFailure="rollback", children={"kinds": []})
    wait_until(lambda: there.get("c")["metadata"]["labels"]["v"] == "1", "the version before")


def test_check_tells_what_would_be_refused(start, operator, devserver, api, handler, widgets):
    api.resource("v1", "nodes").create("n1")
    handler.answer({"children": [child(), child("Secret", namespace="kube-system")], "patches": [child("Node", "n1", labels={"a": "b"})]})
    start(patches=child_kinds("v1 Node"))
    widgets.create("w")
    wait_until(lambda: api.resource("v1", "nodes").get("n1")["metadata"].get("labels") == {"a": "b"}, "the patch")
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, children={**MAPS, "namespaces": ["x"]})])
    done = operator.ctl.run("check", str(operator.config_file))
    assert done.returncode == 0, done.stdout
    assert "1 of v1 Secret in kube-system exist as children of its objects, like c of default/w" in done.stdout
    assert "children.kinds: warning" in done.stdout and "1 of v1 Node exist as patches" in done.stdout
    assert "ConfigMap in" not in done.stdout
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, patches=child_kinds("v1 Node"))])
    said = operator.ctl.run("check", str(operator.config_file)).stdout
    assert "warning" not in said and "children of watch widgets may be in each namespace, kube-system included" in said


def test_verbs_that_run_a_handler_by_hand_show_the_refusal(start, handler, widgets, by_hand):
    handler.answer({"children": [SECRET]})
    start(children=MAPS).stop()
    widgets.create("w")
    shown = by_hand("run", "--object", "default/w", expect=1)
    assert "children: {kinds: [{apiVersion: v1, kind: Secret}]" in shown.stdout + shown.stderr


# ---- lists on the object, which others may write to

@pytest.mark.parametrize("list_of", ["children", "patches"])
def test_a_forged_list_costs_a_handful_of_requests(start, operator, devserver, handler, widgets, list_of):
    """2,000 invented kinds, some of a group that exists: five of them are looked for, and another object runs at once."""
    note = f"widgets.example.com/{'children' if list_of == 'children' else 'patched'}"
    forged = ",".join([f"example.com/v1/Kind{number}/default/x" for number in range(1000)]
                      + [f"invented{number}.com/v1/Kind/default/x" for number in range(1000)])
    handler.answer({list_of: []})
    start(retry={"first": "50ms", "max": "100ms"}, patches=child_kinds("v1 Node"))
    before = len(devserver.requests())
    widgets.create("forged", annotations={note: forged})
    widgets.create("other")
    handler.wait_finished(name="other")
    told = operator.wait_for_log(message_id=MESSAGE_ID["STRANGE_KINDS"])
    assert f"1995 entries of its list of {list_of}, like Kind5 default/x, are left alone" in told["message"]
    assert told["key"] == "default/forged"
    wait_until(lambda: "/Kind4/" not in widgets.get("forged")["metadata"]["annotations"][note],
               "the five that the server does not have to be forgotten")
    assert len(devserver.requests()) - before < 200
    assert devserver.requests(lambda request: "invented" in request["path"]) == []
    widgets.delete("forged")
    wait_until(lambda: not widgets.exists("forged"), "its end: no entry holds it")


@pytest.mark.parametrize("lost", [False, True])
def test_a_kind_that_was_dropped_is_cleaned_up(start, operator, api, handler, widgets, lost):
    """Also if the ledger that knew the kind is lost."""
    secrets = api.resource("v1", "secrets", "default")
    handler.answer({"children": [child("Secret")]})
    start()
    widgets.create("w")
    wait_until(lambda: secrets.list()["items"], "the child")
    operator.stop()
    if lost:
        for path in operator.state_directory.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    handler.answer({"children": []})
    start(children=MAPS, onStart="all")
    wait_until(lambda: not secrets.list()["items"], "the child to go")
    assert operator.logs(message_id=MESSAGE_ID["STRANGE_KINDS"]) == []
