# SPDX-License-Identifier: Apache-2.0
"""The column LIST of the table in docs/watch.md: what a watch does about each answer to a LIST."""
import json

import pytest

from harness import wait_until
from harness.operator import MESSAGE_ID

from .conftest import LIST, NEVER, NO_WATCH_LIST, WATCH, query

PAGE = {**LIST, "continue": True}


def test_200_is_the_whole_truth(listing):
    """What a complete LIST lacks was deleted."""
    listing.create("kept")
    listing.create("lost")
    listing.start_synced()
    listing.ran("kept")
    listing.ran("lost")
    listing.devserver.fault(WATCH, status=503, times=0)
    listing.devserver.close_watches("cut")
    listing.widgets.delete("lost")
    listing.devserver.compact()
    listing.devserver.clear_faults()
    listing.ran("lost", "deleted")
    listing.stop()
    assert listing.actions().count(("reconcile", "kept")) == 1


def test_the_first_list_asks_for_the_newest_state(listing):
    listing.start_synced()
    first = query(listing.lists()[0])
    assert first.get("resourceVersion", "") == "" and first["limit"] == "500"
    assert "resourceVersionMatch" not in first
    listing.stop()


@pytest.mark.parametrize("items", [0, 1], ids=["empty pages", "the same token"])
def test_pages_without_end_are_a_failure_with_a_backoff(listing, items):
    item = {"metadata": {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "3"}}
    page = {"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": {"resourceVersion": "3", "continue": "on"},
            "items": [item] * items}
    fault = listing.devserver.fault(LIST, times=0, status=200, body=json.dumps(page), contentType="application/json")
    listing.configure()
    listing.operator.start_ready()
    listing.operator.wait_for_log("a page of the server's list adds nothing, or names itself as the next one",
                                  message_id=MESSAGE_ID["WATCH_DEGRADED"])
    assert len(listing.lists()) < 20
    listing.devserver.clear_faults(fault)
    listing.operator.wait_synced()
    listing.stop()


def test_a_variable_in_a_selector_is_replaced(follow, make_operator):
    """In LIST and WATCH, by the environment of the operator."""
    listing = follow(NO_WATCH_LIST, operator=make_operator(environment={"TIER": "gold"}))
    listing.start_synced(labelSelector="tier=${TIER}")
    listing.create("other")
    listing.create("chosen", labels={"tier": "gold"})
    listing.ran("chosen")
    listing.stop()
    assert {query(request)["labelSelector"] for request in listing.lists() + listing.watches()} == {"tier=gold"}
    assert listing.actions() == [("reconcile", "chosen")]


def test_pages_carry_neither_version_nor_match(listing):
    """kube#1524: all pages before sync is declared."""
    for number in range(5):
        listing.create(f"widget-{number}")
    listing.configure()
    text = listing.operator.config_file.read_text(encoding="utf-8") + "pageLimit: 2\n"
    listing.operator.write_config(text)
    listing.operator.start_ready().wait_synced()
    pages = [query(request) for request in listing.lists()]
    assert len(pages) == 3 and all("continue" in page for page in pages[1:])
    assert not any("resourceVersion" in page or "resourceVersionMatch" in page for page in pages[1:])
    synced = listing.operator.logs(message_id=MESSAGE_ID["WATCH_SYNCED"])[0]
    assert "5 objects" in synced["message"]
    listing.stop()


def test_the_watch_starts_from_the_version_of_the_list(listing):
    listing.create("old")
    version = listing.widgets.list()["metadata"]["resourceVersion"]
    listing.start_synced()
    assert query(listing.watches()[0])["resourceVersion"] == version
    listing.stop()


@pytest.mark.parametrize("status", [400, 405, 406, 415, 422])
def test_refused_parameters_are_dropped(listing, status):
    listing.devserver.fault(LIST, status=status)
    listing.start()
    listing.operator.wait_ready().wait_synced()
    lists = [query(request) for request in listing.lists()]
    assert "limit" in lists[0] and "limit" not in lists[1]
    listing.works()
    listing.stop()


def test_refused_for_good_is_unhealthy_and_goes_on(listing):
    listing.devserver.fault(LIST, times=0, status=400)
    listing.start()
    assert listing.wait_state("degraded")["reason"]
    before = len(listing.lists())
    assert before < 10
    listing.stop()


@pytest.mark.parametrize("status", [401, 410])
def test_the_first_attempt_is_at_once(listing, status):
    listing.devserver.fault(LIST, status=status)
    listing.start(reconnect=NEVER)
    listing.operator.wait_ready().wait_synced()
    assert len(listing.lists()) == 2
    listing.stop()


@pytest.mark.parametrize("status", [401, 410])
def test_the_second_attempt_is_not(listing, status):
    number = listing.devserver.fault(LIST, times=0, status=status)
    listing.start(reconnect=NEVER)
    wait_until(lambda: listing.devserver.faults()[number]["hit"] == 2, "the attempt at once")
    listing.wait_state("degraded")
    assert listing.devserver.faults()[number]["hit"] == 2
    listing.stop()


def test_401_refreshes_once_then_backs_off(listing):
    listing.devserver.fault(LIST, times=2, status=401)
    listing.start()
    listing.operator.wait_ready().wait_synced()
    assert len(listing.lists()) == 3
    listing.stop()


def test_403_is_surfaced_and_ends_when_it_is_granted(listing):
    number = listing.devserver.fault(LIST, times=0, status=403, message="widgets is forbidden")
    listing.start()
    assert "forbidden" in listing.wait_state("degraded")["reason"]
    listing.operator.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    listing.devserver.clear_faults(number)
    listing.wait_state("in-sync")
    listing.operator.wait_for_log(message_id=MESSAGE_ID["WATCH_RECOVERED"])
    listing.works()
    listing.stop()


@pytest.mark.parametrize("status, code", [(403, 77), (401, 77), (503, 69), (404, 69)])
def test_past_the_deadline_it_is_fatal(listing, status, code):
    listing.devserver.fault(LIST, times=0, status=status)
    listing.start(deadline="1s")
    listing.operator.wait_exit(expect=code)
    cause = listing.operator.logs(message_id=MESSAGE_ID["CHILD_FATAL"])
    assert cause and "past its deadline" in cause[0]["message"]


def test_unreachable_past_the_deadline_is_fatal(listing):
    listing.configure(deadline="1s")
    listing.devserver.stop()
    listing.operator.start()
    listing.operator.wait_exit(expect=69)


def test_404_asks_again_what_is_served(listing):
    """A LIST that is not found leads back to discovery."""
    listing.devserver.fault(LIST, times=2, status=404)
    listing.start()
    listing.operator.wait_ready().wait_synced()
    discoveries = listing.devserver.requests(lambda request: request["path"] == "/apis/example.com/v1")
    assert len(discoveries) >= 3
    listing.works()
    listing.stop()


def test_410_on_the_first_page_is_retried_once_at_once(listing):
    listing.devserver.fault(LIST, status=410)
    listing.start()
    listing.operator.wait_ready().wait_synced()
    assert [query(request).get("resourceVersion", "") for request in listing.lists()] == ["", ""]
    listing.stop()


def test_the_token_of_a_410_is_not_used(listing):
    """It would continue an inconsistent list."""
    for number in range(3):
        listing.create(f"widget-{number}")
    listing.devserver.fault(PAGE, status=410, body=json.dumps({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
        "message": "The provided continue parameter is too old", "metadata": {"continue": "inconsistent"}}))
    listing.configure()
    listing.operator.write_config(listing.operator.config_file.read_text(encoding="utf-8") + "pageLimit: 2\n")
    listing.operator.start_ready().wait_synced()
    lists = [query(request) for request in listing.lists()]
    assert len(lists) == 3 and "continue" in lists[1] and "continue" not in lists[2] and "limit" not in lists[2]
    assert "inconsistent" not in str(lists)
    for number in range(3):
        listing.ran(f"widget-{number}")
    listing.stop()


@pytest.mark.parametrize("reason", ["Expired", "Gone", "SomethingElse"])
def test_410_on_a_later_page_leads_to_one_list_without_limit(listing, reason):
    for number in range(3):
        listing.create(f"widget-{number}")
    listing.devserver.fault(PAGE, status=410, reason=reason, causes=[{"reason": "x"}])
    listing.configure()
    listing.operator.write_config(listing.operator.config_file.read_text(encoding="utf-8") + "pageLimit: 1\n")
    listing.operator.start_ready().wait_synced()
    lists = [query(request) for request in listing.lists() + [r for r in listing.requests("list")
                                                                 if query(r).get("limit") == "1"]]
    last = [entry for entry in lists if "limit" not in entry]
    assert len(last) == 1 and "continue" not in last[0]
    for number in range(3):
        listing.ran(f"widget-{number}")
    listing.stop()


def test_429_waits_as_long_as_it_is_told(listing):
    listing.devserver.fault(LIST, status=429, retryAfter=1, body="slow down")
    listing.start()
    listing.operator.wait_ready().wait_synced()
    first, second = listing.lists()[:2]
    assert second["time"] - first["time"] >= 0.9
    listing.stop()


@pytest.mark.parametrize("status", [500, 503, 504])
def test_5xx_with_retry_after(listing, status):
    listing.devserver.fault(LIST, status=status, retryAfter=1)
    listing.start()
    listing.operator.wait_ready().wait_synced()
    first, second = listing.lists()[:2]
    assert second["time"] - first["time"] >= 0.9
    listing.stop()


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_5xx_without_backs_off(listing, status):
    listing.devserver.fault(LIST, times=3, status=status)
    listing.start(reconnect={"first": "100ms", "max": "1s"})
    listing.operator.wait_ready().wait_synced()
    times = [request["time"] for request in listing.lists()]
    assert len(times) == 4 and times[3] - times[2] > 0.1
    listing.stop()


@pytest.mark.parametrize("how", ["causes", "message"])
def test_kubernetes_107133_too_large(listing, how):
    """kubernetes#107133, #91073: by cause, and by message alone; the next LIST has no version."""
    too_large = {"causes": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
                 "message": {"message": "Too large resource version: 100, current: 5"}}[how]
    listing.devserver.fault(LIST, status=504, reason="Timeout", **too_large)
    listing.start(reconnect=NEVER)
    listing.operator.wait_ready().wait_synced()
    assert [query(request).get("resourceVersion", "") for request in listing.lists()] == ["", ""]
    listing.stop()


def test_reset_and_cut_lists_are_done_again(listing):
    for number in range(20):
        listing.create(f"widget-{number}")
    listing.devserver.fault(LIST, reset=True)
    listing.devserver.fault(LIST, after=1, atByte=500, close="cut")
    listing.devserver.fault(LIST, after=2, atByte=500, close="clean")
    listing.start()
    listing.operator.wait_ready().wait_synced()
    for number in range(20):
        listing.ran(f"widget-{number}")
    assert len(listing.lists()) == 4
    listing.stop()


def test_a_list_cut_short_deletes_nothing(listing):
    """kubernetes: a partial LIST is no LIST."""
    for number in range(10):
        listing.create(f"widget-{number}")
    listing.start_synced()
    for number in range(10):
        listing.ran(f"widget-{number}")
    number = listing.devserver.fault(LIST, times=4, atByte=700, close="clean")
    listing.devserver.fault(WATCH, error={"code": 410})
    listing.devserver.close_watches("cut")
    wait_until(lambda: listing.devserver.faults()[number]["hit"] == 4, "LISTs that are cut short")
    listing.works()
    listing.stop()
    assert not [action for action in listing.actions() if action[0] == "deleted"]


def test_a_hanging_list_does_not_hang_the_operator(listing):
    """Nothing comes: the LIST ends by its own timeout; meanwhile the operator is alive and says so."""
    number = listing.devserver.fault(LIST, hang=True)
    listing.start(reconnect={"first": "50ms", "max": "1s", "stall": "2s"})
    listing.operator.wait_ready()
    wait_until(lambda: listing.devserver.faults()[number]["hit"] == 1, "the LIST")
    listing.operator.wait_synced()
    listing.stop()


def test_tls_that_cannot_be_verified(follow, make_operator):
    """Backs off, looks at the CA file again, is never downgraded."""
    listing = follow(["--tls", "--watch-list", "off", "--version-minor", "26"])
    listing.start_synced()
    listing.devserver.new_certificate("new")
    assert "certificate" in listing.wait_state("degraded")["reason"].lower()
    listing.operator.kubeconfig_for(listing.devserver)
    listing.wait_state("in-sync", deadline=60)
    listing.works()
    listing.stop()
