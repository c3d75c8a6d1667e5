# SPDX-License-Identifier: Apache-2.0
"""`onFailure: rollback`: what a failed attempt did is undone before the attempt counts as over; one attempt a backoff,
the first cause in front, nobody else held up, and a crash in the middle goes on where it was."""
import json
import signal

import pytest

from harness import ledger, scaled, wait_until, watch
from harness.operator import MESSAGE_ID

REFUSED = {"status": 422, "reason": "Invalid", "message": "data: too odd"}


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        more = {"onFailure": "rollback", "readyCondition": True, **more}
        operator.configure(devserver, [watch("widgets", handler, **more)], workers=1)
        return operator.start_ready().wait_synced()

    return start


@pytest.fixture
def refuse(devserver):
    """The child `bad` is refused, for ever or so often."""
    def refuse(times=0):
        return devserver.fault(match={"verb": "patch", "resource": "configmaps", "name": "bad"}, times=times, **REFUSED)

    return refuse


def ready(widgets, name):
    found = widgets.get(name).get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == "Ready"), {})


def requests(devserver, verb, name):
    return devserver.requests(lambda request: request.get("verb") == verb and request.get("name") == name)


@pytest.mark.slow
def test_one_attempt_a_backoff_over_twenty_of_them(start, operator, handler, widgets, config_maps, devserver, refuse):
    refuse(times=1)
    devserver.fault(match={"verb": "patch", "resource": "configmaps", "name": "bad"}, after=1, times=0,
                    **{**REFUSED, "message": "what came of it"})
    handler.answer({"children": [config_map("good"), config_map("bad")]})
    start(retry={"first": "40ms", "max": "40ms"})
    widgets.create("w")
    wait_until(lambda: len(requests(devserver, "patch", "bad")) >= 21, "twenty intervals", 60)
    seen = ready(widgets, "w")
    assert seen["status"] == "False"
    first, last = seen["message"].split("; last: ")
    assert "data: too odd" in first and "what came of it" in last and "too odd" not in last
    operator.stop()
    attempts = [request["time"] for request in requests(devserver, "patch", "bad")]
    assert min(after - before for before, after in zip(attempts, attempts[1:])) >= 0.038, "one attempt an interval"
    assert handler.count() <= len(attempts) + 1
    deletes = requests(devserver, "delete", "good")
    assert len(deletes) >= 20, "each attempt was undone"
    times = sorted([(request["time"], "try") for request in requests(devserver, "patch", "good")]
                   + [(request["time"], "undo") for request in deletes])
    assert all(a[1] != b[1] for a, b in zip(times, times[1:])), "none begins before the one before it is undone"


def test_it_waits_until_it_is_really_gone_and_holds_nobody_up(start, operator, handler, widgets, config_maps, devserver, refuse):
    refuse()
    handler.behave('case $RECONCILED_NAME in w) echo \'{"children":['
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"slow","finalizers":["example.com/slow"]}},'
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"}}]}\';; esac')
    start(retry={"first": "1ms", "max": "1ms"})
    widgets.create("w")
    wait_until(lambda: config_maps.exists("slow") and config_maps.get("slow")["metadata"].get("deletionTimestamp"),
               "its deletion")
    wait_until(lambda: "still running" in ready(widgets, "w").get("message", ""), "the condition")
    message = ready(widgets, "w")["message"]
    assert message.index("data: too odd") < message.index("; cleanup of ConfigMap default/slow still running")
    wait_until(lambda: operator.ctl.status()["watches"][0]["settling"] == 1, "the count")
    [[plan]] = ledger.read(operator, "SELECT settling FROM ledger WHERE key = 'default/w'")
    time = int(json.loads(plan)["deadline"]) / 1e6 - requests(devserver, "patch", "bad")[0]["time"]
    assert 29.9 <= time <= 30 + scaled(5), "the default"
    for number in range(5):
        widgets.create(f"other-{number}")
        handler.wait_finished(name=f"other-{number}")
    assert len(handler.requests(name="w")) == 1, "the attempt is not over"
    assert operator.ctl.status()["watches"][0]["failed"] == 0
    config_maps.merge_patch("slow", {"metadata": {"finalizers": None}})
    again = handler.wait_for(name="w", count=2)
    assert again.body["attempt"] == 2 and "data: too odd" in again.body["lastError"]
    assert "still running" not in again.body["lastError"]


@pytest.mark.slow
def test_the_bound_is_kept_and_said(start, operator, handler, widgets, config_maps, refuse):
    refuse()
    handler.answer({"children": [config_map("slow", finalizers=["example.com/slow"]), config_map("bad")]})
    start(retry={"first": "300ms", "max": "300ms"}, children={"settle": "700ms"})
    widgets.create("w")
    said = operator.wait_for_log("has not ended within its time")
    assert "data: too odd" in said["message"] and "cleanup of ConfigMap default/slow" in said["message"]
    again = handler.wait_for(name="w", count=2)
    assert again.body["attempt"] == 2 and "data: too odd" in again.body["lastError"]
    assert again.started - handler.requests()[0].started >= 1, "the bound, and then the backoff"
    assert config_maps.exists("slow")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_crash_in_the_middle_goes_on_where_it_was(start, operator, handler, widgets, config_maps, refuse, number):
    refuse()
    handler.behave('[ $RECONCILED_NAME != w ] || echo \'{"children":['
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"slow","finalizers":["example.com/slow"]}},'
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"}}]}\'')
    start(retry={"first": "1ms", "max": "1ms"})
    widgets.create("w")
    wait_until(lambda: "still running" in ready(widgets, "w").get("message", ""), "the rollback")
    operator.send_signal(number)
    operator.wait_exit(expect=-number if number == signal.SIGKILL else 0)
    operator.start_ready().wait_synced()
    widgets.create("other")
    handler.wait_finished(name="other")
    assert len(handler.requests(name="w")) == 1, "the attempt goes on being undone"
    handler.answer({})
    config_maps.merge_patch("slow", {"metadata": {"finalizers": None}})
    again = handler.wait_finished(name="w", count=2)
    assert again.body["attempt"] == 2 and "data: too odd" in again.body["lastError"]
    assert not config_maps.exists("slow")


@pytest.mark.parametrize("killed", [False, True])
def test_what_was_changed_is_restored(start, operator, handler, widgets, config_maps, devserver, refuse, killed):
    handler.answer({"children": [config_map("good", {"a": "1", "b": "1"})], "message": "fine"})
    start(retry={"first": "1h", "max": "1h"})
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the first version")
    config_maps.merge_patch("good", {"data": {"theirs": "1"}})
    uid = config_maps.get("good")["metadata"]["uid"]
    refuse()
    if killed:
        held = devserver.fault(match={"verb": "patch", "resource": "configmaps", "name": "good"}, after=1, times=0, hang=True)
    handler.answer({"children": [config_map("good", {"a": "2", "c": "1"}), config_map("bad")]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    if killed:
        wait_until(lambda: devserver.faults()[held]["hit"], "the PATCH that restores it")
        assert config_maps.get("good")["data"] == {"a": "2", "c": "1", "theirs": "1"}
        operator.send_signal(signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
        devserver.clear_faults(held)
        operator.start_ready()
    wait_until(lambda: ready(widgets, "w").get("status") == "False", "the failure")
    wait_until(lambda: config_maps.get("good")["data"] == {"a": "1", "b": "1", "theirs": "1"}, "what it was")
    assert config_maps.get("good")["metadata"]["uid"] == uid
    wait_until(lambda: operator.ctl.status()["watches"][0]["failed"] == 1, "the end of the attempt")
    assert handler.count() == 2 and len(requests(devserver, "patch", "bad")) == 1
    told = operator.logs(message_id=MESSAGE_ID["CHILD_CHANGED"], object="ConfigMap default/good")
    assert told[-1]["message"].endswith("was changed: back to what it was before this attempt")


def test_keep_is_the_default(start, operator, handler, widgets, config_maps, devserver, refuse):
    refuse(times=2)
    handler.answer({"children": [config_map("good"), config_map("bad")]})
    start(onFailure="keep", retry={"first": "1ms", "max": "1ms"})
    widgets.create("w")
    wait_until(lambda: config_maps.exists("bad"), "the third attempt")
    assert not requests(devserver, "delete", "good")


def test_a_success_after_failures_leaves_nothing_to_settle(start, operator, handler, widgets, config_maps, refuse):
    refuse(times=3)
    handler.answer({"children": [config_map("good"), config_map("bad")]})
    start(retry={"first": "1ms", "max": "1ms"})
    widgets.create("w")
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the success")
    assert config_maps.exists("good") and config_maps.exists("bad")
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("other")
    handler.wait_finished(name="other")
    assert config_maps.exists("good") and config_maps.exists("bad")


@pytest.mark.slow
def test_a_deletion_in_the_middle_cleans_everything_up(start, operator, handler, widgets, config_maps, refuse):
    refuse()
    handler.behave('[ $RECONCILED_ACTION != reconcile ] || echo \'{"children":['
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"slow","finalizers":["example.com/slow"]}},'
                   '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"}}]}\'')
    start(retry={"first": "1ms", "max": "1ms"}, finalizer=True)
    widgets.create("w")
    wait_until(lambda: "still running" in ready(widgets, "w").get("message", ""), "the rollback")
    widgets.delete("w")
    handler.wait_for(name="w", action="finalize")
    config_maps.merge_patch("slow", {"metadata": {"finalizers": None}})
    wait_until(lambda: not widgets.exists("w"), "the end of it")
    assert not config_maps.exists("slow")


def test_a_change_while_it_is_undone_runs_at_once(start, operator, handler, widgets, config_maps, refuse):
    """It waits for the undoing, but not for the backoff of what is not the same any more."""
    refuse()
    handler.answer({"children": [config_map("slow", finalizers=["example.com/slow"]), config_map("bad")]})
    start(retry={"first": "1h", "max": "1h"})
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: config_maps.exists("slow") and config_maps.get("slow")["metadata"].get("deletionTimestamp"),
               "its deletion")
    handler.answer({"message": "the newer one"})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    config_maps.merge_patch("slow", {"metadata": {"finalizers": None}})
    wait_until(lambda: ready(widgets, "w").get("message") == "the newer one", "the newer answer")
    operator.stop()
    assert [request.object["spec"]["size"] for request in handler.requests()] == [1, 2]
    assert ready(widgets, "w")["status"] == "True" and not config_maps.exists("slow")


@pytest.mark.slow
def test_what_is_gone_meanwhile_is_not_restored(start, handler, widgets, config_maps, devserver, refuse):
    handler.answer({"children": [config_map("good", {"a": "1"})]})
    start(retry={"first": "1h", "max": "1h"})
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the first answer")
    refuse()
    held = devserver.fault(match={"verb": "get", "resource": "configmaps", "name": "good"}, times=0, after=1, status=503)
    handler.answer({"children": [config_map("good", {"a": "2"}), config_map("bad")]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: "still running" in ready(widgets, "w").get("message", ""), "the undoing, which cannot go on")
    config_maps.delete("good")
    devserver.clear_faults(held)
    wait_until(lambda: ready(widgets, "w")["message"].endswith("too odd"), "the end of the attempt")
    assert not config_maps.exists("good")
