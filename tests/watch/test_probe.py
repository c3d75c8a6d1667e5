# SPDX-License-Identifier: Apache-2.0
"""The question how far the server is (?limit=1), beside a watch that a start has resumed: it fails, and that is trouble like any
other, but nothing that can go on waits for it."""
import time

import pytest

from harness import ledger, scaled, wait_until
from harness.operator import MESSAGE_ID

from .conftest import LIST, query


@pytest.fixture
def resumed(streaming):
    """resumed(fault, ...): a life that ended while `a` had failed, and the next one, to which each such question fails."""
    def resumed(fault, **more):
        more.setdefault("retry", {"first": "1s", "max": "1s"})
        streaming.handler.behave("exit 1")
        streaming.start_synced(**more)
        streaming.create("a")
        streaming.ran("a")
        wait_until(lambda: ledger.read(streaming.operator, "SELECT key FROM ledger WHERE attempts > 0"), "its record")
        streaming.stop()
        streaming.handler.behave("exit 0")
        streaming.handler.forget()
        streaming.devserver.fault(LIST, times=0, **fault)
        streaming.operator.start()
        return streaming

    return resumed


FAULTS = [pytest.param({"status": 500}, id="500"), pytest.param({"status": 429, "retryAfter": 1}, id="429"),
          pytest.param({"close": "cut"}, id="cut")]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_question_that_fails_is_told_and_what_has_failed_runs(resumed, fault):
    follower = resumed(fault)
    said = follower.operator.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"], deadline=90)
    assert "?limit=1" in said["message"], said
    state = follower.wait_state("degraded")
    assert state["degradedSince"] > 0 and "?limit=1" in state["reason"]
    assert follower.handler.wait_finished(name="a", deadline=30).body["reason"] == "retry"
    follower.works()
    follower.devserver.clear_faults()
    follower.operator.wait_for_log(message_id=MESSAGE_ID["WATCH_RECOVERED"], deadline=60)
    follower.wait_state("in-sync")
    assert not follower.lists(), "the watch went on, without a LIST"
    follower.stop()


def test_a_question_that_fails_past_the_deadline_is_fatal(resumed):
    follower = resumed({"status": 500}, deadline="2s")
    follower.operator.wait_exit(expect=69)
    assert "?limit=1" in follower.operator.output.text()


def test_a_question_that_fails_past_the_deadline_of_an_isolated_watch(resumed):
    follower = resumed({"status": 500}, deadline="1s", onDeadline="isolate")
    follower.wait_state("failed")
    follower.works()
    follower.devserver.clear_faults()
    follower.wait_state("in-sync")
    follower.stop()


def test_a_question_that_fails_is_asked_at_the_pace_of_failures(resumed):
    """Watches that come and go meanwhile set no other pace."""
    follower = resumed({"status": 500}, reconnect={"first": "30m", "max": "1h"})
    follower.wait_state("degraded")
    for number in range(3):
        count = len(follower.watches())
        wait_until(lambda: time.time() > follower.watches()[-1]["time"] + 1.5, "a watch that has lasted")
        follower.devserver.close_watches("clean")
        follower.wait_watches(count + 1)
        follower.works(f"proof-{number}")
    asked = [request for request in follower.requests("list") if query(request).get("limit") == "1"]
    assert len(asked) == 1, asked
    follower.stop()


def test_a_question_without_an_answer_fails_though_watches_end_sooner(resumed):
    """Each watch asks it again; that nobody has answered for half a minute counts all the same."""
    follower = resumed({"hang": True})
    end = time.monotonic() + scaled(150)
    count = len(follower.wait_watches(2))  # behind that of the former life; one that is closed at once leads to a LIST
    while time.monotonic() < end and not follower.operator.logs(message_id=MESSAGE_ID["WATCH_DEGRADED"]):
        wait_until(lambda: time.time() > follower.watches()[-1]["time"] + 5, "a watch that has lasted", 60)
        follower.devserver.close_watches("clean")
        count = len(follower.wait_watches(count + 1))
    said = follower.operator.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"], deadline=1)
    assert "?limit=1" in said["message"], said
    assert not follower.lists(), "the watch went on, without a LIST"
    follower.works()
    follower.stop()
