# SPDX-License-Identifier: Apache-2.0
"""The column WATCH, and what comes inside the stream."""
import base64
import json
import shutil

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

from .conftest import LIST, NEVER, WATCH, query


def provoke(listing, *faults):
    """Breaks the running watch; the next ones meet these faults. Returns (LISTs, watches) so far."""
    for after, fault in enumerate(faults):
        listing.devserver.fault(WATCH, after=after, **fault)
    before = len(listing.lists()), len(listing.watches())
    listing.devserver.close_watches("cut")
    return before


def versions(requests):
    return [query(request)["resourceVersion"] for request in requests]


def resumed(listing, before, watches=2):
    """It went on from where it was, without a LIST."""
    lists, count = before
    seen = listing.wait_watches(count + watches)
    listing.works()
    assert len(listing.lists()) == lists
    assert len(set(versions(seen[count - 1:count + watches]))) <= 2
    listing.stop()


def relisted(listing, before):
    """One LIST, of the newest state."""
    lists, _ = before
    listing.wait_lists(lists + 1)
    listing.works()
    assert len(listing.lists()) == lists + 1
    assert query(listing.lists()[-1]).get("resourceVersion", "") == ""
    listing.stop()


# Answers to the request

@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_an_answer_that_passes_is_resumed(listing, status):
    listing.start_synced()
    resumed(listing, provoke(listing, {"status": status}))


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed(listing, status):
    listing.start_synced()
    before = provoke(listing, {"status": status, "retryAfter": 1})
    seen = listing.wait_watches(before[1] + 2)
    assert seen[-1]["time"] - seen[-2]["time"] >= 0.9
    listing.stop()


def test_three_server_errors_in_a_minute_lead_to_a_list(listing):
    listing.start_synced()
    before = provoke(listing, {"status": 500}, {"status": 500}, {"status": 500})
    listing.wait_lists(before[0] + 1)
    listing.works()
    listing.stop()


def test_401_is_refreshed_and_resumed(listing):
    listing.start_synced()
    resumed(listing, provoke(listing, {"status": 401}))


def test_403_keeps_the_version_and_what_is_known(listing):
    listing.start_synced()
    version = versions(listing.watches())[-1]
    before = provoke(listing, {"status": 403, "times": 0})
    listing.wait_state("degraded")
    listing.devserver.clear_faults()
    listing.works()
    assert len(listing.lists()) == before[0] and version in versions(listing.watches())[1:]
    listing.stop()


def test_404_asks_again_what_is_served(listing):
    listing.start_synced()
    provoke(listing, {"status": 404})
    listing.works()
    assert len(listing.devserver.requests(lambda request: request["path"] == "/apis/example.com/v1")) >= 2
    listing.stop()


def test_410_leads_to_a_list(listing):
    listing.start_synced()
    relisted(listing, provoke(listing, {"status": 410}))


@pytest.mark.parametrize("status", [400, 405, 406, 415, 422])
def test_a_refused_watch_comes_back(listing, status):
    listing.start_synced()
    provoke(listing, {"status": status})
    listing.works()
    listing.stop()


def test_too_large_resets_the_version(listing):
    listing.start_synced()
    relisted(listing, provoke(listing, {"status": 504, "causes": [{"reason": "ResourceVersionTooLarge"}]}))


def test_kubernetes_119646_ten_resets_and_no_list(listing):
    listing.start_synced()
    before = provoke(listing, *[{"reset": True}] * 10)
    listing.wait_watches(before[1] + 11, deadline=60)
    listing.works()
    assert len(listing.lists()) == before[0]
    listing.stop()


# ERROR events

@pytest.mark.parametrize("status", [{"kind": "Status", "reason": "Expired", "code": 410},
                                    {"kind": "Status", "reason": "Gone", "code": 410}, {"code": 410}],
                         ids=["expired", "gone", "kubernetes_46446_without_kind"])
def test_error_410_leads_to_a_list(listing, status):
    listing.start_synced()
    relisted(listing, provoke(listing, {"error": status}))


@pytest.mark.parametrize("code", [429, 500, 504])
def test_an_error_that_passes_is_resumed(listing, code):
    listing.start_synced()
    resumed(listing, provoke(listing, {"error": {"kind": "Status", "code": code}}))


def test_three_error_500_in_a_minute_lead_to_a_list(listing):
    listing.start_synced()
    before = provoke(listing, *[{"error": {"kind": "Status", "code": 500}}] * 3)
    listing.wait_lists(before[0] + 1)
    listing.works()
    listing.stop()


def test_error_504_too_large_resets_the_version(listing):
    listing.start_synced()
    status = {"kind": "Status", "code": 504, "message": "Too large resource version: 9, current: 5"}
    relisted(listing, provoke(listing, {"error": status}))


def test_after_an_error_the_stream_is_closed(listing):
    """The server leaves it open; nothing behind the ERROR counts."""
    listing.start_synced()
    ghost = listing.widgets.object("ghost", {})
    ghost["metadata"].update(namespace="default", uid="ghost", resourceVersion="999999")
    listing.devserver.fault(WATCH, error={"kind": "Status", "code": 500}, close=False)
    listing.devserver.fault(WATCH, line=json.dumps({"type": "ADDED", "object": ghost}), close=False)
    resumed(listing, provoke(listing))
    assert ("reconcile", "ghost") not in listing.actions()
    assert "999999" not in versions(listing.watches())


def test_python_base_199_an_error_without_version(listing):
    listing.start_synced()
    provoke(listing, {"error": {"kind": "Status", "code": 500, "metadata": {}}})
    listing.works()
    assert all(version.isdigit() for version in versions(listing.watches()))
    listing.stop()


# Ends

def test_a_clean_end_is_watched_again_at_once(listing):
    listing.start_synced(reconnect={"first": "50ms", "max": "1s", "watchTimeout": "1s"})
    listing.create("first")
    listing.ran("first")
    lists = len(listing.lists())
    listing.wait_watches(3)
    listing.works()
    assert len(listing.lists()) == lists
    assert not listing.operator.logs(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    listing.stop()


def test_a_clean_end_needs_no_backoff(listing):
    listing.start_synced(reconnect={**NEVER, "watchTimeout": "1s"})
    listing.wait_watches(3)
    listing.works()
    listing.stop()


def test_kubernetes_104171_an_empty_end_at_once_leads_to_a_list(listing):
    """kubernetes#104171, fabric8#7896: the stale version that nobody admits. No loop."""
    listing.start_synced()
    before = provoke(listing, {"close": "clean"})
    listing.wait_lists(before[0] + 1)
    listing.works()
    listing.stop()


def test_kubernetes_104171_empty_ends_do_not_loop(listing):
    """However often: each LIST succeeds, and the pace slows down all the same."""
    listing.start_synced(reconnect={"first": "200ms", "max": "2s"})
    number = listing.devserver.fault(WATCH, times=0, close="clean")
    listing.devserver.close_watches("cut")
    wait_until(lambda: listing.devserver.faults()[number]["hit"] >= 4, "watches that end", 60)
    times = [request["time"] for request in listing.watches()][-4:]
    assert times[-1] - times[0] > 0.6
    listing.devserver.clear_faults()
    listing.works()
    listing.stop()


def test_one_event_and_an_end_do_not_loop(listing):
    """javascript#1933: after a reconnect, a bounded rate of requests."""
    listing.create("first")
    listing.start_synced(reconnect={"first": "200ms", "max": "2s"})
    listing.ran("first")
    line = '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}'
    number = listing.devserver.fault(WATCH, times=0, line=line, close="clean")
    listing.devserver.close_watches("cut")
    wait_until(lambda: listing.devserver.faults()[number]["hit"] >= 4, "watches that end", 60)
    times = [request["time"] for request in listing.watches()][-4:]
    assert times[-1] - times[0] > 0.6
    listing.stop()


def test_the_end_of_the_connection_in_the_middle_of_a_line(listing):
    listing.start_synced()
    lists = len(listing.lists())
    listing.devserver.fault(WATCH, atByte=40, close="cut")
    listing.devserver.close_watches("cut")
    listing.create("torn")
    listing.ran("torn")
    assert len(listing.lists()) == lists
    listing.stop()
    assert listing.actions().count(("reconcile", "torn")) == 1


# Lines that are none

def test_kubernetes_129683_one_undecodable_line_is_resumed(listing):
    listing.start_synced()
    before = provoke(listing, {"line": "{\"type\":", "close": False})
    wait_until(lambda: listing.status()["undecodable"] == 1, "that it is counted")
    resumed(listing, before)


def test_a_second_undecodable_line_leads_to_a_list(listing):
    listing.start_synced()
    relisted(listing, provoke(listing, {"line": "no event", "close": False}, {"line": "no event", "close": False}))


def test_an_unknown_event_does_not_move_the_version(listing):
    listing.start_synced()
    version = versions(listing.watches())[-1]
    line = '{"type":"SURPRISE","object":{"metadata":{"name":"x","resourceVersion":"999999"}}}'
    before = provoke(listing, {"line": line, "close": False})
    seen = listing.wait_watches(before[1] + 2)
    assert version in versions(seen[before[1]:]) and "999999" not in versions(seen)
    listing.works()
    listing.stop()


def test_a_line_over_16_mib_leads_to_a_list(listing):
    listing.start_synced()
    rubbish = base64.b64encode(b"x" * (2 << 20)).decode()
    for _ in range(8):
        listing.devserver.fault(WATCH, bytes=rubbish, close=False)
    listing.devserver.fault(WATCH, line="x" * (1 << 20), close=False)
    before = len(listing.lists())
    listing.devserver.close_watches("cut")
    listing.wait_lists(before + 1, deadline=60)
    listing.works()
    assert listing.status()["state"] == "in-sync"
    listing.stop()


@pytest.mark.parametrize("pieces", [1, 2, 3, 7])
def test_python_1325_characters_cut_anywhere(listing, pieces):
    listing.start_synced()
    listing.devserver.fault(WATCH, pieces=pieces)
    listing.devserver.close_watches("cut")
    text = "Grüße, 世界 \U0001f600 é"
    listing.create("text", spec={"text": text})
    assert listing.ran("text").object["spec"]["text"] == text
    listing.stop()


def test_controller_runtime_2591_one_undecodable_object(listing):
    """controller-runtime#2591, kube#774: only that object suffers."""
    listing.start_synced()
    line = '{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":7}}}'
    listing.devserver.fault(WATCH, line=line, close=False)
    listing.devserver.close_watches("cut")
    listing.works()
    listing.stop()


@pytest.mark.parametrize("gone", [False, True])
def test_an_unreadable_item_of_a_list_is_not_a_deletion_where_the_store_is_lost(listing, gone):
    """The ledger knows it, the store does not, and the list shows something that may be it: only a GET can tell."""
    listing.start_synced()
    for name in ("hidden", "plain"):
        listing.create(name)
        listing.ran(name)
    listing.stop()
    path = "/apis/example.com/v1/namespaces/default/widgets"
    answer = json.loads(listing.devserver.api.raw("GET", path).text)
    for item in answer["items"]:
        if item["metadata"]["name"] == "hidden":
            item["metadata"] = {"name": "hidden", "namespace": "default"}
    if gone:
        listing.widgets.delete("hidden")
    listing.devserver.fault(LIST, status=200, body=json.dumps(answer), contentType="application/json")
    shutil.rmtree(listing.operator.state_directory / "store")
    listing.operator.start_ready().wait_synced()
    if gone:
        listing.handler.wait_finished(action="deleted")
    listing.works()
    wait_until(lambda: listing.status()["undecodable"] == 1, "that it is counted")
    assert ("deleted", "hidden") in listing.actions() if gone else not listing.handler.requests(action="deleted")
    listing.widgets.merge_patch("plain", {"spec": {"size": 7}})
    listing.handler.wait_finished(name="plain", count=2)
    listing.stop()


def test_an_unreadable_item_of_a_list_of_owned_objects_is_not_gone(listing):
    """What such a list does not show stays, and its owner is run for nothing that is not true."""
    config_maps = listing.devserver.api.resource("v1", "configmaps", "default")
    owner = listing.create("a")["metadata"]
    config_maps.create("child", data={"a": "1"}, ownerReferences=[
        {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": owner["uid"], "controller": True}])
    listing.start_synced(owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    listing.ran("a")
    answer = json.loads(listing.devserver.api.raw("GET", "/api/v1/namespaces/default/configmaps").text)
    [item] = [item for item in answer["items"] if item["metadata"]["name"] == "child"]
    item["metadata"] = {"name": "child", "namespace": "default"}
    of_children = {"resource": "configmaps"}
    listing.devserver.fault({**of_children, "verb": "list"}, status=200, body=json.dumps(answer), contentType="application/json")
    listing.devserver.fault({**of_children, "verb": "watch"}, status=410)
    listing.devserver.close_watches("cut")
    wait_until(lambda: "without readable metadata (name, uid, resourceVersion), default/child, is left out" in listing.operator.output.text(), "the list")
    listing.widgets.merge_patch("a", {"spec": {"size": 7}})
    request = listing.handler.wait_finished(name="a", where=lambda run: run.object["spec"] == {"size": 7})
    assert [child["metadata"]["name"] for child in request.body["children"]] == ["child"]
    listing.stop()
    assert not [run for run in listing.handler.requests() if not run.body["children"]]


# Versions

def test_bookmarks_move_the_version(follow):
    listing = follow(["--watch-list", "off", "--version-minor", "26", "--bookmark-interval", "200ms"])
    listing.start_synced()
    version = versions(listing.watches())[-1]
    gadgets = listing.devserver.api.resource("v1", "configmaps", "default")
    moved = gadgets.create("elsewhere")["metadata"]["resourceVersion"]
    seen = listing.status()["bookmarks"]
    wait_until(lambda: listing.status()["bookmarks"] >= seen + 2, "bookmarks")
    before = len(listing.watches())
    listing.devserver.close_watches("cut")
    resumed_from = int(versions(listing.wait_watches(before + 1))[-1])
    assert resumed_from >= int(moved) > int(version)
    listing.stop()
    assert listing.actions() == []


def test_without_bookmarks(listing):
    listing.devserver.fault(WATCH, times=0, bookmarks=False)
    listing.start_synced()
    listing.works()
    listing.stop()


def test_the_same_version_again_is_nothing(listing):
    listing.start_synced()
    created = listing.create("twice")
    listing.ran("twice")
    line = {"type": "ADDED", "object": created}
    listing.devserver.fault(WATCH, line=json.dumps(line), close=False)
    before = len(listing.watches())
    listing.devserver.close_watches("cut")
    listing.wait_watches(before + 1)
    listing.works()
    listing.stop()
    assert listing.actions().count(("reconcile", "twice")) == 1


def test_kubernetes_58545_a_deletion_with_an_old_version(listing):
    """The version of the stream never goes down."""
    listing.start_synced()
    created = listing.create("old")
    listing.ran("old")
    listing.works("newer")
    gone = {**created, "metadata": {**created["metadata"], "resourceVersion": "2"}}
    listing.devserver.fault(WATCH, line=json.dumps({"type": "DELETED", "object": gone}), close=False)
    listing.devserver.close_watches("cut")
    listing.ran("old", "deleted")
    highest = max(int(version) for version in versions(listing.watches()))
    before = len(listing.watches())
    listing.devserver.close_watches("cut")
    assert int(versions(listing.wait_watches(before + 1))[-1]) >= highest
    listing.stop()


def test_a_lower_version_is_a_replay(listing):
    listing.start_synced()
    created = listing.create("moved")
    listing.ran("moved")
    listing.widgets.merge_patch("moved", {"spec": {"size": 2}})
    wait_until(lambda: listing.actions().count(("reconcile", "moved")) == 2, "the second run")
    listing.devserver.fault(WATCH, line=json.dumps({"type": "MODIFIED", "object": created}), close=False)
    before = len(listing.watches())
    listing.devserver.close_watches("cut")
    listing.wait_watches(before + 1)
    listing.works()
    listing.stop()
    assert listing.actions().count(("reconcile", "moved")) == 2


def test_a_new_object_under_an_old_name(listing):
    listing.start_synced()
    listing.create("again")
    listing.ran("again")
    number = listing.devserver.fault(WATCH, times=0, status=503)
    listing.devserver.close_watches("cut")
    listing.widgets.delete("again")
    listing.create("again", spec={"second": True})
    listing.devserver.clear_faults(number)
    listing.handler.wait_finished(name="again", where=lambda request: request.object.get("spec") == {"second": True})
    listing.stop()
    assert listing.actions() == [("reconcile", "again"), ("deleted", "again"), ("reconcile", "again")]


# Silence

def test_kubernetes_65012_a_black_hole_is_left(listing):
    """kubernetes#65012, client-go#374, kube#1798: an idle stream lives, a dead one is cut within the stall time."""
    listing.devserver.fault(WATCH, after=1, stall=True)
    listing.start_synced(reconnect={"first": "50ms", "max": "1s", "stall": "1s", "watchTimeout": "2s"})
    listing.devserver.close_watches("cut")
    listing.wait_watches(2)
    listing.create("unseen")
    listing.ran("unseen", deadline=60)
    listing.stop()


def test_javascript_3020_an_active_watch_is_not_cut(follow):
    listing = follow(["--watch-list", "off", "--version-minor", "26", "--bookmark-interval", "200ms"])
    listing.start_synced(reconnect={"first": "50ms", "max": "1s", "stall": "1s"})
    before = len(listing.watches())
    bookmarks = listing.status()
    wait_until(lambda: listing.status().get("bookmarks", 0) >= 12, lambda: f"bookmarks: {bookmarks}", 60)
    assert len(listing.watches()) == before
    listing.stop()


def test_an_operator_whose_server_is_stopped_recovers(listing):
    """kopf#585, #957: the other side is gone without a word."""
    listing.start_synced(reconnect={"first": "50ms", "max": "1s", "stall": "1s", "watchTimeout": "2s"})
    listing.devserver.suspend()
    listing.wait_state("degraded", 60)
    listing.devserver.resume()
    listing.wait_state("in-sync", 60)
    listing.works()
    listing.stop()


# Many times

def test_kube_1713_a_thousand_failures(listing):
    """Still trying, still capped."""
    listing.start_synced(reconnect={"first": "1ms", "max": "2ms"})
    number = listing.devserver.fault(WATCH, times=1000, status=503)
    listing.devserver.close_watches("cut")
    wait_until(lambda: listing.devserver.faults()[number]["hit"] == 1000, "a thousand failures", 120)
    listing.works()
    listing.stop()


def test_fabric8_1943_a_thousand_times_410(listing):
    """The number of open descriptors stays."""
    listing.start_synced(reconnect={"first": "1ms", "max": "2ms"})
    watcher = listing.operator.child("watcher")
    descriptors = len(watcher.descriptors())
    number = listing.devserver.fault(WATCH, times=1000, error={"code": 410})
    listing.devserver.close_watches("cut")
    wait_until(lambda: listing.devserver.faults()[number]["hit"] == 1000, "a thousand times 410", 180)
    listing.works()
    assert len(watcher.descriptors()) <= descriptors + 2
    listing.stop()


def test_one_of_seven_fails_and_the_others_do_not_wait(follow, make_handler):
    listing = follow(["--watch-list", "off", "--version-minor", "26"])
    broken = listing.devserver.fault({"verb": "list", "resource": "configmaps"}, times=0, status=503)
    watches = [watch(f"watch-{number}", listing.handler, id=str(number)) for number in range(6)]
    watches.append(watch("broken", listing.handler, api_version="v1", kind="ConfigMap"))
    listing.operator.configure(listing.devserver, watches)
    listing.operator.start_ready()
    wait_until(lambda: listing.devserver.faults()[broken]["hit"] > 1, "the broken watch to fail")
    listing.create("seen")
    wait_until(lambda: len(listing.handler.requests(name="seen")) == 6, "six runs")
    states = {entry["name"]: entry["state"] for entry in listing.operator.ctl.status()["watches"]}
    assert states.pop("broken") == "degraded" and set(states.values()) == {"in-sync"}
    listing.stop()


def test_fabric8_2612_a_token_that_expires(follow):
    listing = follow(["--token", "first", "--watch-list", "off", "--version-minor", "26"])
    listing.start_synced()
    listing.devserver.set_token("second", kubeconfig=True)
    listing.operator.kubeconfig_for(listing.devserver)
    listing.devserver.close_watches("cut")
    listing.works()
    listing.stop()


def test_python_819_initial_objects_in_any_order(streaming):
    """No replay of old or deleted objects after a reconnect."""
    for name in ("a", "b", "c"):
        streaming.create(name)
    streaming.widgets.delete("b")
    # Shown first, changed last: the version of what is shown last is no place to go on from.
    streaming.widgets.merge_patch("a", {"spec": {"changed": True}})
    streaming.start_synced()
    streaming.ran("a")
    streaming.ran("c")
    before = len(streaming.watches())
    streaming.devserver.close_watches("cut")
    streaming.wait_watches(before + 1)
    streaming.works()
    streaming.stop()
    assert sorted(streaming.actions()) == [("reconcile", "a"), ("reconcile", "c"), ("reconcile", "proof")]
