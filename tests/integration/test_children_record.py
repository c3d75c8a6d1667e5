# SPDX-License-Identifier: Apache-2.0
"""What an object's record of its children may forget: only what was seen to be gone, or to be somebody else's."""
import copy
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import allowing

RECORD = "widgets.example.com/children"


def config_map(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def gadget(name, version="v1", **metadata):
    return {"apiVersion": f"gadgets.example.org/{version}", "kind": "Gadget", "metadata": {"name": name, **metadata}}


def definition(*versions, scope="Namespaced", kind="Gadget", plural="gadgets"):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.gadgets.example.org"},
            "spec": {"group": "gadgets.example.org", "scope": scope,
                     "names": {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"},
                     "versions": [{"name": name, "served": True, "storage": name == versions[-1], "schema": schema}
                                  for name in versions]}}


@pytest.fixture
def crds(api):
    return api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")


@pytest.fixture
def elsewhere(api):
    """Where no reference may be, so that nobody but us deletes."""
    api.resource("v1", "namespaces").create("other")
    return api.resource("v1", "configmaps", "other")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        more.setdefault("retry", {"first": "50ms", "max": "100ms"})
        children = allowing("gadgets.example.org/v1 Gadget", "gadgets.example.org/v1 Status", "example.com/v1 Widget")
        operator.configure(devserver, [watch("widgets", handler, children=children, **more)])
        operator.start_ready().wait_synced()
        return operator

    return start


def record(widgets, name="w"):
    return widgets.get(name)["metadata"].get("annotations", {}).get(RECORD, "")


def make(handler, widgets, children):
    handler.answer({"children": children, "status": {"made": True}})
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status", {}).get("made"), "the children")


def leave_out(handler, widgets, children, number=2):
    handler.answer({"children": children})
    widgets.merge_patch("w", {"spec": {"n": number}})


def test_a_sibling_that_fails_once(start, handler, widgets, elsewhere, devserver):
    operator = start()
    make(handler, widgets, [config_map("a", namespace="other")])
    devserver.fault(match={"verb": "patch", "resource": "configmaps", "name": "b"}, status=403)
    leave_out(handler, widgets, [config_map("b", namespace="other")])
    wait_until(lambda: elsewhere.names() == ["b"], lambda: f"a gone, b made: {elsewhere.names()}")
    wait_until(lambda: record(widgets) == "v1/ConfigMap/other/b", "the record")
    operator.stop()


@pytest.mark.parametrize("verb", ["get", "delete"])
@pytest.mark.parametrize("status", [403, 409, 500])
def test_its_own_deletion_is_refused_once(start, handler, widgets, elsewhere, devserver, verb, status):
    operator = start()
    make(handler, widgets, [config_map("a", namespace="other"), config_map("b", namespace="other")])
    devserver.fault(match={"verb": verb, "resource": "configmaps", "name": "a"}, status=status)
    leave_out(handler, widgets, [])
    wait_until(lambda: elsewhere.names() == [], lambda: f"both gone: {elsewhere.names()}")
    wait_until(lambda: record(widgets) == "", "nothing on record")
    operator.stop()


def test_killed_between_its_refusal_and_the_next_attempt(start, handler, widgets, elsewhere, devserver):
    operator = start(retry={"first": "1h", "max": "1h"})
    make(handler, widgets, [config_map("a", namespace="other")])
    devserver.fault(match={"verb": "delete", "resource": "configmaps", "name": "a"}, status=403)
    leave_out(handler, widgets, [])
    operator.wait_for_log("cannot be deleted", key="default/w")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    assert record(widgets) == "v1/ConfigMap/other/a"
    operator.start_ready().wait_synced()
    widgets.merge_patch("w", {"spec": {"n": 3}})
    wait_until(lambda: elsewhere.names() == [], "its end")
    operator.stop()


def test_a_kind_that_is_not_served_while_another_is_remembered(start, handler, widgets, crds, api, elsewhere, devserver):
    """A child that is wanted, whose kind cannot be found just now, stays on record when a new one joins it."""
    crds.create(body=definition("v1"))
    api.resource("v1", "namespaces").create("third")
    gadgets = api.resource("gadgets.example.org/v1", "gadgets", "other")
    operator = start()
    make(handler, widgets, [gadget("g", namespace="other")])
    operator.stop()
    devserver.fault(match={"verb": "discovery", "path": "/apis/gadgets.example.org/v1"}, status=404, times=0)
    handler.answer({"children": [gadget("g", namespace="other"), config_map("a", namespace="other")]})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    operator.start_ready()
    wait_until(lambda: elsewhere.exists("a"), "the new one")
    assert sorted(record(widgets).split(",")) == ["gadgets.example.org/v1/Gadget/other/g", "v1/ConfigMap/other/a"]
    devserver.clear_faults()
    leave_out(handler, widgets, [], 3)
    wait_until(lambda: not gadgets.exists("g") and not elsewhere.exists("a"), "the end of both")
    operator.stop()


def test_one_that_others_hold_stays_on_record_until_it_is_gone(start, handler, widgets, elsewhere):
    operator = start()
    make(handler, widgets, [config_map("a", namespace="other")])
    elsewhere.merge_patch("a", {"metadata": {"finalizers": ["example.com/held"]}})
    leave_out(handler, widgets, [])
    wait_until(lambda: "deletionTimestamp" in elsewhere.get("a")["metadata"], "its deletion")
    handler.wait_finished(name="w", count=2)
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "the end of the run")
    assert record(widgets) == "v1/ConfigMap/other/a"
    elsewhere.merge_patch("a", {"metadata": {"finalizers": None}})
    leave_out(handler, widgets, [], 3)
    wait_until(lambda: record(widgets) == "", "nothing on record")
    operator.stop()


@pytest.mark.parametrize("status", [503, 404])
def test_a_group_that_is_down_is_not_gone(start, handler, widgets, crds, api, elsewhere, devserver, status):
    """It is listed, and does not answer: an aggregated API that is down. The children of other kinds go meanwhile."""
    crds.create(body=definition("v1"))
    gadgets = api.resource("gadgets.example.org/v1", "gadgets", "other")
    operator = start(finalizer=True)
    make(handler, widgets, [config_map("a", namespace="other"), gadget("g", namespace="other"), gadget("h", namespace="other")])
    operator.stop()  # it knows no kinds afterwards
    fault = devserver.fault(match={"verb": "discovery", "path": "/apis/gadgets.example.org/v1"}, status=status, times=0)
    handler.answer({})
    operator.start_ready().wait_synced()
    widgets.delete("w")
    handler.wait_for(name="w", action="finalize", count=5)
    assert gadgets.names() == ["g", "h"] and widgets.exists("w")
    wait_until(lambda: not elsewhere.exists("a"), "the end of what can be deleted")
    devserver.clear_faults(fault)
    wait_until(lambda: not widgets.exists("w"), "its release")
    assert gadgets.names() == []
    operator.stop()


@pytest.mark.plain_only(reason="the sanitizers take memory of their own")
def test_a_list_of_groups_that_is_none_takes_no_memory(start, handler, widgets, crds, elsewhere, devserver):
    """A number of it would take sixty times as much as a tree."""
    crds.create(body=definition("v1"))
    operator = start()
    make(handler, widgets, [config_map("a", namespace="other"), gadget("g", namespace="other")])
    crds.delete("gadgets.gadgets.example.org")
    devserver.fault(match={"path": "/apis"}, times=0, status=200, contentType="application/json",
                    body='{"kind": "APIGroupList", "groups": [' + "1," * 1_500_000 + "1]}")
    leave_out(handler, widgets, [])
    operator.wait_for_log("list of API groups cannot be understood")
    assert max(process.peak_kib() for process in operator.children("worker")) < 64 << 10, "KiB"
    assert "Gadget" in record(widgets)
    operator.stop()


@pytest.mark.parametrize("finalizer", [True, False])
def test_a_kind_whose_definition_is_deleted_is_gone(start, handler, widgets, crds, elsewhere, finalizer):
    crds.create(body=definition("v1"))
    operator = start(finalizer=finalizer)
    make(handler, widgets, [gadget("g", namespace="other"), config_map("a", namespace="other")])
    crds.delete("gadgets.gadgets.example.org")
    handler.answer({"children": []})
    if finalizer:
        widgets.delete("w")
        wait_until(lambda: not widgets.exists("w"), "its release")
    else:
        widgets.merge_patch("w", {"spec": {"n": 2}})
        wait_until(lambda: record(widgets) == "", "nothing on record")
    assert elsewhere.names() == []
    operator.stop()


def test_a_version_that_is_no_longer_served_is_deleted_in_another(start, handler, widgets, crds, api):
    crd = definition("v1", "v2")
    crds.create(body=crd)
    api.resource("v1", "namespaces").create("other")
    gadgets = api.resource("gadgets.example.org/v2", "gadgets", "other")
    operator = start(finalizer=True)
    make(handler, widgets, [gadget("g", namespace="other"), gadget("h", namespace="other")])
    assert gadgets.names() == ["g", "h"]
    newer = copy.deepcopy(crd)
    newer["spec"]["versions"][0]["served"] = False
    crds.merge_patch("gadgets.gadgets.example.org", {"spec": newer["spec"]})
    wait_until(lambda: api.raw("GET", "/apis/gadgets.example.org/v1").code == 404, "the end of the version")
    handler.answer({})
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its release")
    assert gadgets.names() == []
    assert not operator.logs(message_id=MESSAGE_ID["RUN_FAILED"])
    operator.stop()


@pytest.mark.slow
def test_a_child_of_a_kind_named_status_is_waited_for(start, handler, widgets, crds, api):
    crds.create(body=definition("v1", kind="Status", plural="statuses"))
    statuses = api.resource("gadgets.example.org/v1", "statuses", "default")
    operator = start(finalizer=True)
    make(handler, widgets, [{**gadget("g"), "kind": "Status"}])
    statuses.merge_patch("g", {"metadata": {"finalizers": ["example.com/held"]}})
    handler.answer({})
    widgets.delete("w")
    operator.wait_for_log("is released when its children are gone: waiting for Status g", key="default/w")
    assert widgets.exists("w")
    statuses.merge_patch("g", {"metadata": {"finalizers": None}})
    wait_until(lambda: not widgets.exists("w"), "its release")
    operator.stop()


def test_an_object_is_not_its_own_child(start, handler, widgets, operator):
    handler.behave('[ $RECONCILED_ACTION = reconcile ] || exit 0\n'
                   'echo \'{"children": [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}]}\'')
    start(finalizer=True)
    uid = widgets.create("w")["metadata"]["uid"]
    assert "children[0]: is the object itself" in operator.wait_for_log("its own child", key="default/w")["message"]
    assert not record(widgets)
    assert widgets.get("w")["metadata"]["uid"] == uid and "ownerReferences" not in widgets.get("w")["metadata"]
    # As an earlier release has written it down.
    widgets.merge_patch("w", {"metadata": {"annotations": {RECORD: "example.com/v1/Widget/default/w"}}})
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its release")
    assert len(handler.requests(name="w", action="finalize")) == 1
    operator.stop()


@pytest.mark.parametrize("before, after", [("Namespaced", "Cluster"), ("Cluster", "Namespaced")])
def test_a_kind_whose_scope_changes_is_not_the_handlers_fault(start, handler, widgets, crds, api, before, after):
    crds.create(body=definition("v1", scope=before))
    operator = start()
    make(handler, widgets, [gadget("g")])
    crds.delete("gadgets.gadgets.example.org")
    crds.create(body=definition("v1", scope=after))
    widgets.merge_patch("w", {"spec": {"n": 2}})
    where = "default" if after == "Namespaced" else None
    wait_until(lambda: api.resource("gadgets.example.org/v1", "gadgets", where).exists("g"), lambda: f"the child {operator.logs(key='default/w')[-3:]}")
    wait_until(lambda: record(widgets) == f"gadgets.example.org/v1/Gadget/{where or ''}/g", "the record")
    assert not [entry for entry in operator.logs(key="default/w") if "the handler's answer" in entry["message"]]
    operator.stop()


def test_a_successor_waits_until_its_predecessor_is_cleaned_up(start, handler, widgets, elsewhere, operator):
    """Nothing refers to an owner there; the mark names its UID. What the former one had is no reason to touch it."""
    start(retry={"first": "2m", "max": "2m"})
    make(handler, widgets, [config_map("a", namespace="other"), config_map("b", namespace="other")])
    handler.behave("[ $RECONCILED_ACTION != deleted ] || exit 75")
    widgets.delete("w")
    handler.wait_finished(name="w", action="deleted")
    former = elsewhere.get("a")
    handler.answer({"children": [config_map("a", namespace="other")], "status": {"made": True}})
    widgets.create("w", spec={"second": True})
    assert "it is of a former object of this name" in operator.wait_for_log("1 of its children", key="default/w")["message"]
    assert elsewhere.get("a") == former and record(widgets) == ""
    operator.stop()
    operator.start_ready().wait_synced()

    def made():
        operator.ctl.run("retry", "--all-failed")
        return widgets.get("w").get("status", {}).get("made")

    wait_until(made, lambda: f"the second one's: {elsewhere.names()}, {operator.logs(key='default/w')[-3:]}")
    wait_until(lambda: elsewhere.names() == ["a"], lambda: f"b gone: {elsewhere.names()}")
    assert elsewhere.get("a")["metadata"]["uid"] != former["metadata"]["uid"]
    operator.stop()


def test_a_key_that_left_string_data_goes(start, handler, widgets, api):
    def secret(string_data, **more):
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": string_data, **more}

    secrets = api.resource("v1", "secrets", "default")
    operator = start()
    make(handler, widgets, [secret({"a": "1", "b": "Gr\u00fc\u00dfe \U0001f600", "c": ""}, data={"a": "MA==", "d": "ZA=="})])
    assert secrets.get("s")["data"] == {"a": "MQ==", "b": "R3LDvMOfZSDwn5iA", "c": "", "d": "ZA=="}
    secrets.merge_patch("s", {"data": {"theirs": "MQ=="}})
    leave_out(handler, widgets, [secret({"b": "2"})])
    wait_until(lambda: secrets.get("s")["data"] == {"b": "Mg==", "theirs": "MQ=="}, lambda: f"what is left: {secrets.get('s')}")
    operator.stop()
