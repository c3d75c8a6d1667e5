# SPDX-License-Identifier: Apache-2.0
"""Events about objects: written beside everything else, as series, bounded, and never in the way."""
import json

import pytest

from harness import wait_until, watch


NO_RIGHT = 'events.events.k8s.io is forbidden: User "o" cannot create resource "events" in API group "events.k8s.io"'


@pytest.fixture
def start(devserver, operator, handler):
    def start(workers=1, **more):
        operator.configure(devserver, [watch("widgets", handler, **more)], workers=workers)
        return operator.start_ready().wait_synced()

    return start


def events(api, **fields):
    found = api.resource("events.k8s.io/v1", "events", "default").list()["items"]
    return [item for item in found if all(item.get(key) == value for key, value in fields.items())]


def wait_event(api, where=lambda event: True, **fields):
    return wait_until(lambda: next(filter(where, events(api, **fields)), None), f"an Event {fields}")


def test_what_a_handler_answers(start, api, handler, widgets):
    handler.answer({"events": [{"reason": "Heated", "note": "by the sun"},
                               {"reason": "Late", "type": "Warning", "action": "Heat", "note": "ü" * 1000}]})
    start()
    uid = widgets.create("a")["metadata"]["uid"]
    event = wait_event(api, reason="Heated")
    assert event["type"] == "Normal" and event["action"] == "Reconcile" and event["note"] == "by the sun"
    assert event["reportingController"] == "widgets.example.com" and event["reportingInstance"]
    assert event["regarding"]["uid"] == uid and event["regarding"]["name"] == "a"
    assert event["regarding"]["kind"] == "Widget" and event["regarding"]["apiVersion"] == "example.com/v1"
    assert event["eventTime"].endswith("Z") and not event.get("series")
    core = api.raw("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3D{uid}%2Creason%3DHeated")
    [shown] = json.loads(core.text)["items"]
    assert shown["message"] == "by the sun" and shown["involvedObject"]["name"] == "a", "as kubectl reads it"
    assert shown["reportingComponent"] == "widgets.example.com" and shown["type"] == "Normal"
    late = wait_event(api, reason="Late", type="Warning", action="Heat")
    assert 1000 <= len(late["note"].encode()) <= 1024 and late["note"].strip("ü\ufffd?") == ""


def test_a_failure_is_one_event_however_often_it_repeats(start, operator, api, handler, widgets):
    handler.behave('[ "$RECONCILED_ATTEMPT" -gt 1 ] && { echo a lock is held >&2; exit 1; }\n'
                   'echo the database is missing >&2; exit 1')
    start(retry={"first": "1ms", "max": "5ms"})
    widgets.create("a")
    wait_event(api, lambda event: (event.get("series") or {}).get("count", 0) >= 16, reason="ReconcileFailed")
    operator.stop()
    found = events(api)
    assert len(found) == 1, "one Event, as a series"
    assert found[0]["type"] == "Warning" and "the database is missing" in found[0]["note"], "the first cause"


@pytest.mark.slow
def test_the_spam_guard_counts_what_it_drops(start, api, operator, handler, widgets):
    handler.answer({"events": [{"reason": f"Reason{number}"} for number in range(40)]})
    start()
    widgets.create("a")
    wait_until(lambda: len(events(api)) >= 25, "the burst")
    wait_until(lambda: operator.ctl.status()["events"]["dropped"] == 15, "the rest")
    assert len(events(api)) == 25


@pytest.mark.slow
def test_the_limits_are_of_the_operator_not_of_each_worker(start, api, operator, handler, widgets):
    """An object that several workers have had gets one burst, and one Event for what repeats."""
    # The others only keep the workers busy: Events of all would be more than may wait for a server that is slow.
    handler.behave("""[ "$RECONCILED_NAME" = a ] || { echo '{"requeueAfter": "1ms"}'; exit 0; }
printf '{"requeueAfter": "1ms", "events": [{"reason": "Again"}'
for i in 1 2 3 4; do printf ', {"reason": "Run%s.%s"}' $$ $i; done
echo ']}'
""")
    start(workers=4)
    uid = widgets.create("a")["metadata"]["uid"]
    for name in ("b", "c", "d", "e", "f", "g", "h"):
        widgets.create(name)
    pids = [child.pid for child in operator.children("worker")]
    handler.wait_finished(name="a", count=24)
    handler.behave("exit 0")
    for name in ("a", "b", "c", "d", "e", "f", "g", "h"):
        widgets.merge_patch(name, {"spec": {"over": True}})
        handler.wait_finished(name=name, where=lambda request: request.object.get("spec", {}).get("over"))
    operator.stop()
    of_it = [event for event in events(api) if event["regarding"]["uid"] == uid]
    assert len(pids) == 4 and len(of_it) == 25, [event["reason"] for event in of_it]
    again = [event for event in of_it if event["reason"] == "Again"]
    assert len(again) == 1 and again[0]["series"]["count"] >= 8, again


def test_a_failure_in_several_workers_is_one_event(start, operator, api, handler, widgets):
    handler.behave("exit 1")
    start(workers=4, retry={"first": "1ms", "max": "5ms"})
    for name in ("a", "b", "c", "d"):
        widgets.create(name)
    for name in ("a", "b", "c", "d"):
        handler.wait_finished(name=name, count=16)
    handler.behave("exit 0")
    for name in ("a", "b", "c", "d"):
        handler.wait_finished(name=name, where=lambda request: request.exit_code == 0)
    operator.stop()
    found = sorted(event["regarding"]["name"] for event in events(api))
    assert found == ["a", "b", "c", "d"], "one Event of each, whichever worker has had it"


def test_the_last_ones_of_several_workers_are_written_before_the_end(start, operator, api, handler, widgets):
    handler.answer({"events": [{"reason": f"Number{number}", "note": "n"} for number in range(20)]})
    start(workers=4)
    for name in ("a", "b", "c", "d"):
        widgets.create(name)
    for name in ("a", "b", "c", "d"):
        handler.wait_finished(name=name)
    operator.stop()
    assert len(events(api)) == 80


def test_a_failed_cleanup(start, api, handler, widgets):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || { echo the disk is still mounted >&2; exit 1; }')
    start(finalizer=True)
    widgets.create("a")
    handler.wait_finished(name="a")
    widgets.delete("a")
    event = wait_event(api, reason="CleanupFailed")
    assert event["action"] == "Finalize" and "the disk is still mounted" in event["note"]


def test_without_the_right_nothing_else_suffers(start, operator, handler, widgets, devserver):
    devserver.fault(match={"resource": "events"}, times=0, status=403, reason="Forbidden", message=NO_RIGHT)
    handler.answer({"events": [{"reason": "Heated"}], "status": {"warm": True}})
    start()
    for name in ("a", "b", "c"):
        widgets.create(name)
    for name in ("a", "b", "c"):
        wait_until(lambda: widgets.get(name).get("status") == {"warm": True}, "the status")
    operator.wait_for_log("Events cannot be written")
    operator.stop()
    assert len(operator.logs(where=lambda record: "Events cannot be written" in record["message"])) == 1
    assert len(devserver.requests(lambda request: request["method"] == "POST")) < 3 + 3, "asked once"


def test_a_server_that_is_busy_gets_it_later(start, api, handler, widgets, devserver):
    devserver.fault(match={"resource": "events"}, times=1, status=500, message="not now")
    handler.answer({"events": [{"reason": "Heated"}]})
    start()
    widgets.create("a")
    wait_event(api, reason="Heated")


@pytest.mark.slow
def test_a_server_that_never_takes_them_holds_nothing_up(start, operator, handler, widgets, devserver):
    """What waits for it is bounded: the rest is counted. And the end comes in time."""
    devserver.fault(match={"resource": "events"}, times=0, hang=True)
    handler.answer({"events": [{"reason": f"Reason{number}"} for number in range(25)], "status": {"warm": True}})
    start()
    for name in ("a", "b", "c", "d"):
        widgets.create(name)
    for name in ("a", "b", "c", "d"):
        wait_until(lambda: widgets.get(name).get("status") == {"warm": True}, "the status")
    wait_until(lambda: operator.ctl.status()["events"]["dropped"] == 4 * 25 - 64, "what does not wait")
    operator.stop(deadline=10)


def test_none_about_failures_where_they_are_not_wanted(start, operator, api, handler, widgets):
    handler.behave("exit 1")
    start(events=False, retry={"first": "1ms", "max": "1ms"})
    widgets.create("a")
    handler.wait_finished(name="a", count=3)
    operator.stop()
    assert not events(api)


def test_those_of_an_answer_that_waits_for_its_children(start, api, handler, widgets):
    handler.answer({"children": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "c", "image": "i"}]}}}}], "events": [{"reason": "Begun", "note": "it will take long"}]})
    start(children={"wait": "10m"})
    widgets.create("a")
    wait_event(api, reason="Begun")


def test_a_namespace_without_the_right_silences_no_other(start, api, handler, widgets, devserver):
    api.resource("v1", "namespaces").create("other")
    devserver.fault(match={"verb": "create", "resource": "events", "namespace": "default"}, times=0, status=403, reason="Forbidden", message=NO_RIGHT)
    handler.answer({"events": [{"reason": "Seen", "note": "n"}]})
    start()
    widgets.create("a")
    handler.wait_finished(name="a")
    api.resource("example.com/v1", "widgets", "other").create("b")
    wait_until(lambda: api.resource("events.k8s.io/v1", "events", "other").list()["items"], "the Event of the other one")


def test_namespaces_whose_quota_refuses_them_silence_no_other(start, operator, api, handler, devserver):
    handler.answer({"events": [{"reason": "Seen", "note": "n"}]})
    start()
    for name in ("full", "fuller", "other"):
        api.resource("v1", "namespaces").create(name)
        if name != "other":
            devserver.fault(match={"verb": "create", "resource": "events", "namespace": name}, times=0, status=403, reason="Forbidden",
                            message='events.events.k8s.io "w.18" is forbidden: exceeded quota: q, limited: count/events.events.k8s.io=5')
        api.resource("example.com/v1", "widgets", name).create(f"in-{name}")
        handler.wait_finished(name=f"in-{name}")
    wait_until(lambda: api.resource("events.k8s.io/v1", "events", "other").list()["items"], "the Event of the other one")
    operator.stop()
    told = [record["message"] for record in operator.logs(level="warning") if "Events" in record["message"]]
    assert len(told) == 1 and "because admission refuses them (not our rights)" in told[0], told


def test_the_last_ones_are_written_before_the_end(start, operator, api, handler, widgets):
    handler.answer({"events": [{"reason": f"Number{number}", "note": "n"} for number in range(20)]})
    start()
    widgets.create("a")
    handler.wait_finished(name="a")
    operator.stop()
    assert len(events(api)) == 20


def test_odd_names_have_events_too(devserver, operator, api, handler):
    operator.configure(devserver, [watch("roles", handler, api_version="rbac.authorization.k8s.io/v1", kind="ClusterRole")])
    handler.behave("""echo a word >&2; echo '{"events": [{"reason": "Seen", "note": "n"}]}'""")
    operator.start_ready().wait_synced()
    api.resource("rbac.authorization.k8s.io/v1", "clusterroles", kind="ClusterRole").create("system:Node")
    event = wait_event(api, reason="Seen")
    assert "namespace" not in operator.wait_for_log("a word", name="system:Node", key="system:Node")
    assert event["regarding"]["name"] == "system:Node" and event["metadata"]["name"].startswith("system--ode.")


@pytest.mark.parametrize("wanted", [True, False])
def test_children_that_come_and_go(start, api, handler, widgets, wanted):
    def config_map(name, **data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

    api.resource("v1", "configmaps", "default").create(body=config_map("theirs"))
    theirs = {"manifest": config_map("theirs"), "adopt": True}
    handler.answer({"children": [config_map("a"), config_map("b"), theirs], "events": [{"reason": "First", "note": "two"}]})
    start(children={"events": wanted})
    widgets.create("w")
    wait_event(api, reason="First")
    handler.answer({"children": [config_map("a", x="1"), theirs], "events": [{"reason": "Last", "note": "one"}]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_event(api, reason="Last")
    told = sorted((event["reason"], event["type"], event["note"]) for event in events(api) if event["reason"].startswith("Child"))
    assert told == [("ChildAdopted", "Normal", "ConfigMap default/theirs was adopted")] + ([("ChildCreated", "Normal", "ConfigMap default/a was created"),
                     ("ChildCreated", "Normal", "ConfigMap default/b was created"),
                     ("ChildDeleted", "Normal", "ConfigMap default/b was deleted")] if wanted else [])
