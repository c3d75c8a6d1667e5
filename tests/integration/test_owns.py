# SPDX-License-Identifier: Apache-2.0
"""`owns`: a change of an owned object runs its owner, with its children as they are; drift is repaired that way."""
import json
import signal

import pytest

from harness import wait_until, watch

CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(owns=({"apiVersion": "v1", "kind": "ConfigMap"},), **more):
        operator.configure(devserver, [watch("widgets", handler, owns=list(owns), **more)])
        return operator.start_ready().wait_synced()

    return start


def at_rest(operator):
    def rests():
        status = operator.ctl.status()["watches"][0]
        return status["queued"] == status["running"] == 0

    wait_until(rests, "rest")


def reasons(handler, name):
    return [request.body["reason"] for request in handler.requests(name=name)]


def seen(handler, where, name="w"):
    return handler.wait_finished(name=name, where=lambda request: where(request.body.get("children")))


@pytest.mark.slow
def test_drift_is_repaired(start, operator, handler, widgets, config_maps):
    handler.answer({"children": [CHILD]})
    start(children={"force": True})
    widgets.create("w")
    wait_until(lambda: config_maps.exists("child"), "the child")
    config_maps.merge_patch("child", {"data": {"a": "drifted"}})
    wait_until(lambda: config_maps.get("child")["data"] == {"a": "1"}, "the repair", 60)
    config_maps.delete("child")
    wait_until(lambda: config_maps.exists("child"), "it to come back")
    assert "child changed" in reasons(handler, "w")


@pytest.mark.slow
def test_drift_is_repaired_after_a_crash(start, operator, handler, widgets, config_maps):
    """The run waits, because the last one is less than a second ago; then everything is killed."""
    handler.answer({"children": [CHILD]})
    start(children={"force": True})
    widgets.create("w")
    handler.wait_finished(name="w")
    at_rest(operator)
    config_maps.merge_patch("child", {"data": {"a": "drifted"}})
    wait_until(lambda: operator.ctl.status()["watches"][0]["waiting"] == 1 or config_maps.get("child")["data"] == {"a": "1"},
               "the news of the child")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    operator.start_ready().wait_synced()
    wait_until(lambda: config_maps.get("child")["data"] == {"a": "1"}, "the repair")
    operator.stop()


def test_a_child_that_changes_during_a_run_that_fails(start, operator, handler, widgets, config_maps):
    """That is no reason to try again before the backoff is over."""
    handler.behave(f"{handler.held}; exit 1")
    start(retry={"first": "1h", "max": "1h"})
    owner = widgets.create("w")
    handler.wait_for(name="w")
    config_maps.create("child", ownerReferences=[{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w",
                                                  "uid": owner["metadata"]["uid"]}])
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 1, "the child to be seen")
    config_maps.create("marker")
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 2, "the marker behind it")
    handler.let_go()
    operator.wait_for_log("next attempt in 1h", key="default/w")
    config_maps.merge_patch("child", {"data": {"a": "2"}})
    handler.behave("exit 0")
    widgets.create("v")
    handler.wait_finished(name="v")
    operator.stop()
    assert len(handler.requests(name="w")) == 1


def test_a_child_that_changes_during_an_attempt_that_succeeds(start, operator, handler, widgets, config_maps):
    """After failures as well: the attempt has seen the children as they were when it began."""
    handler.behave(f'[ "$RECONCILED_ATTEMPT" -gt 1 ] || [ "$RECONCILED_REASON" = "child changed" ] || exit 1\n{handler.held}')
    start()
    owner = widgets.create("w")
    handler.wait_for(name="w", where=lambda request: request.body["attempt"] == 2)
    config_maps.create("child", ownerReferences=[{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w",
                                                  "uid": owner["metadata"]["uid"]}])
    config_maps.create("marker")
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 2, "the child, and the marker behind it, to be seen")
    handler.let_go()
    assert seen(handler, lambda children: len(children) == 1).body["reason"] == "child changed"
    operator.stop()
    assert [request.body["attempt"] for request in handler.requests(name="w")] == [1, 2, 1]


@pytest.mark.slow
def test_children_come_with_the_request(start, operator, handler, widgets, config_maps):
    start()
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": owner["metadata"]["uid"]}
    for name in ("b", "a"):
        config_maps.create(name, ownerReferences=[reference])
    config_maps.create("foreign")
    both = seen(handler, lambda children: len(children) == 2)
    assert [child["metadata"]["name"] for child in both.body["children"]] == ["a", "b"]
    assert all(child["kind"] == "ConfigMap" and child["apiVersion"] == "v1" for child in both.body["children"])
    config_maps.delete("a")
    last = seen(handler, lambda children: [child["metadata"]["name"] for child in children] == ["b"])
    assert last.body["reason"] == "child changed"
    config_maps.merge_patch("b", {"metadata": {"ownerReferences": None}})
    seen(handler, lambda children: children == [])


def test_own_writes_are_no_reason_to_run(start, operator, handler, widgets, config_maps):
    handler.answer({"children": [CHILD, {**CHILD, "metadata": {"name": "second"}}]})
    start()
    widgets.create("w")
    wait_until(lambda: config_maps.exists("second"), "the children")
    handler.wait_finished(name="w")
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] >= 2, "the children to be seen")
    handler.answer({})
    widgets.create("other")
    handler.wait_finished(name="other")
    at_rest(operator)
    operator.stop()
    assert len(handler.requests(name="w")) == 1, reasons(handler, "w")


@pytest.mark.slow
def test_what_would_change_nothing_is_not_sent(devserver, operator, handler, widgets, config_maps):
    """While it is as it was left: by the store of its kind, or by a look where nobody watches it."""
    unwatched = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "unwatched"}}
    operator.configure(devserver, [watch("widgets", handler, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}],
                                         children={"force": True})], workers=1)
    operator.start_ready().wait_synced()

    def count(verb, name):
        return len(devserver.requests(lambda request: request.get("verb") == verb and request.get("name") == name
                                      and "worker" in request.get("user_agent", "")))

    def applied(name):
        return count("patch", name)

    def run(size):
        widgets.merge_patch("w", {"spec": {"size": size}})
        handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == size)
        at_rest(operator)

    handler.answer({"children": [CHILD, unwatched]})
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: config_maps.exists("child"), "the child")
    at_rest(operator)
    run(2)
    assert applied("child") == 1 and handler.count() == 2
    wait_until(lambda: count("get", "unwatched") >= handler.count(), "a look at the child that nobody watches, in each run")
    assert applied("unwatched") == 1 and count("get", "child") == 0
    handler.answer({"children": [{**CHILD, "data": {"a": "2"}}, unwatched]})
    run(3)
    assert config_maps.get("child")["data"] == {"a": "2"} and applied("child") == 2
    config_maps.merge_patch("child", {"data": {"a": "drifted"}})
    wait_until(lambda: config_maps.get("child")["data"] == {"a": "2"}, "the repair", 60)
    at_rest(operator)
    run(4)
    assert applied("child") == 3
    operator.stop()


def test_a_resync_applies_what_nobody_has_seen_change(start, handler, widgets, devserver):
    handler.answer({"children": [CHILD]})
    start(resync="50ms")
    widgets.create("w")
    wait_until(lambda: len(devserver.requests(lambda request: request.get("verb") == "patch"
                                              and request.get("name") == "child")) >= 6, "more than one for each worker")


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True])
def test_of_two_owners_that_name_one_child_one_has_it(start, operator, handler, widgets, config_maps, devserver, force):
    handler.answer({"children": [CHILD], "status": {"made": True}})
    start(children={"force": force}, retry={"first": "50ms", "max": "1s"})
    for name in ("w", "v"):
        widgets.create(name)
    wait_until(lambda: any("made" in widget.get("status", {}) for widget in widgets.list()["items"]), "one of them to succeed")
    first, second = sorted(("w", "v"), key=lambda name: "made" not in widgets.get(name).get("status", {}))
    said = operator.wait_for_log("1 of its children", key=f"default/{second}")["message"]
    assert f"it is a child of Widget.example.com default/{first}" in said
    begin = len(handler.requests(name=second))
    handler.wait_finished(name=second, count=begin + 3)
    assert "status" not in widgets.get(second)
    wait_until(lambda: "widgets.example.com/children" not in widgets.get(second)["metadata"].get("annotations", {}),
               "its list, between two attempts, not to name the child")
    assert [owner["name"] for owner in config_maps.get("child")["metadata"]["ownerReferences"]] == [first]
    widgets.delete(second)
    handler.wait_finished(name=second, action="deleted")
    at_rest(operator)
    assert config_maps.exists("child")


def test_a_status_of_a_child_counts(start, handler, widgets, api):
    deployments = api.resource("apps/v1", "deployments", "default")
    handler.answer({"children": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "child"},
                                  "spec": {"replicas": 1}}]})
    start(owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}])
    widgets.create("w")
    wait_until(lambda: deployments.exists("child"), "the child")
    deployments.merge_patch("child", {"status": {"availableReplicas": 1}}, subresource="status")
    seen(handler, lambda children: any(child.get("status", {}).get("availableReplicas") == 1 for child in children))


@pytest.mark.slow
def test_a_restart_runs_nobody_and_a_change_meanwhile_does(start, operator, handler, widgets, config_maps):
    handler.answer({"children": [CHILD]})
    start()
    for name in ("w", "v"):
        handler.answer({"children": [{**CHILD, "metadata": {"name": f"of-{name}"}}]})
        widgets.create(name)
        handler.wait_finished(name=name)
    at_rest(operator)
    handler.answer({})
    widgets.create("last")
    handler.wait_finished(name="last")
    at_rest(operator)
    operator.stop()
    before = {name: len(handler.requests(name=name)) for name in ("w", "v")}
    config_maps.merge_patch("of-w", {"data": {"a": "drifted"}})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w", count=before["w"] + 1)
    widgets.create("new")
    handler.wait_finished(name="new")
    at_rest(operator)
    operator.stop()
    assert len(handler.requests(name="v")) == before["v"]


def test_in_a_backoff_a_child_is_no_reason(start, operator, handler, widgets, config_maps):
    handler.behave("exit 1")
    start(retry={"first": "1h", "max": "1h"})
    owner = widgets.create("w")
    handler.wait_finished(name="w")
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": owner["metadata"]["uid"]}
    config_maps.create("a", ownerReferences=[reference])
    handler.behave("exit 0")
    widgets.create("other")
    handler.wait_finished(name="other")
    at_rest(operator)
    operator.stop()
    assert len(handler.requests(name="w")) == 1


def test_an_owner_of_the_cluster(devserver, operator, handler, api):
    operator.configure(devserver, [watch("namespaces", handler, api_version="v1", kind="Namespace",
                                         owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])])
    handler.behave("""[ $RECONCILED_NAME != team ] || echo '{"children":[%s]}'""" % json.dumps(
        {**CHILD, "metadata": {"name": "child", "namespace": "team"}}))
    operator.start_ready().wait_synced()
    api.resource("v1", "namespaces").create("team")
    config_maps = api.resource("v1", "configmaps", "team")
    wait_until(lambda: config_maps.exists("child"), "the child")
    config_maps.delete("child")
    wait_until(lambda: config_maps.exists("child"), "it to come back")


def test_the_watches_are_seen(start, operator, handler):
    start(owns=[{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "a=b"}, {"apiVersion": "apps/v1", "kind": "Deployment"}])
    names = [entry["name"] for entry in operator.ctl.status()["watches"]]
    assert names == ["widgets", "widgets.owns.ConfigMap.0", "widgets.owns.Deployment.1"]


@pytest.mark.parametrize("owns, says", [
    ({"apiVersion": "v1", "kind": "ConfigMap"}, "watches[0].owns: a list of kinds is expected"),
    ([{"apiVersion": "v1"}], "watches[0].owns[0].kind: "),
    ([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}], "watches[0].owns[0].name: "),
])
def test_mistakes_have_their_place(devserver, operator, handler, owns, says):
    operator.configure(devserver, [watch("widgets", handler, owns=owns)])
    checked = operator.ctl.check(operator.config_file)
    assert checked.returncode == 78 and says in checked.stdout, checked.stdout
