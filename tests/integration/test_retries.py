# SPDX-License-Identifier: Apache-2.0
"""How often a handler runs for one object: backoff, attempts, starts, and never on an older object than we wrote."""
import os
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def configured(devserver, operator, handler):
    def configured(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator

    return configured


def count_of(handler, name):
    return len(handler.requests(name=name))


def test_events_during_a_backoff_are_no_attempts(configured, handler, widgets):
    handler.behave("exit 1")
    operator = configured(retry={"first": "10m", "max": "10m"})
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    for i in range(20):
        widgets.merge_patch("a", {"status": {"by": str(i)}}, subresource="status")
    handler.behave("exit 0")
    widgets.create("b")
    handler.wait_finished(name="b")
    assert count_of(handler, "a") == 1
    operator.stop()


def end(operator, manner):
    """The operator, while nothing runs."""
    if manner == "crash":
        os.kill(operator.child("credential").pid, signal.SIGKILL)
        operator.wait_exit(expect=70)
    elif manner == "kill":
        operator.send_signal(signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
    else:
        operator.stop()


@pytest.mark.slow
def test_a_backoff_grows_and_survives_each_end(configured, handler, widgets):
    handler.behave("echo cause $RECONCILED_ATTEMPT >&2; exit 1")
    operator = configured(retry={"first": "400ms", "max": "10s"})
    widgets.create("a")
    for attempt, manner in enumerate(("stop", "kill", "crash"), 1):
        operator.start_ready()
        wait_until(lambda attempt=attempt: ledger.read(operator, f"SELECT key FROM ledger WHERE attempts >= {attempt}"), "its record")
        end(operator, manner)
    operator.start_ready()
    handler.wait_for(where=lambda request: request.body["attempt"] == 4)
    operator.stop()
    for attempt in (2, 3, 4):  # of one that was cut off there is a second run
        before, first = (handler.requests(where=lambda request, number=number: request.body["attempt"] == number)
                         for number in (attempt - 1, attempt))
        assert first[0].started - before[-1].started >= 0.4 * 2 ** (attempt - 2), handler.requests()
        assert first[0].body["reason"] == "retry" and f"cause {attempt - 1}" in first[0].body["lastError"]


def test_a_change_runs_at_once_and_the_count_stays(configured, handler, widgets):
    handler.behave("echo first cause >&2; exit 1")
    operator = configured(retry={"first": "10m", "max": "10m"})
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    handler.behave("echo another >&2; exit 1")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    second = handler.wait_finished(where=lambda request: request.object["spec"]["size"] == 2)
    assert second.body["attempt"] == 2 and "first cause" in second.body["lastError"]
    widgets.merge_patch("a", {"spec": {"size": 3}})
    third = handler.wait_finished(where=lambda request: request.object["spec"]["size"] == 3)
    assert third.body["attempt"] == 2, "one failure is counted for one elapsed backoff"
    handler.behave("exit 0")
    widgets.merge_patch("a", {"spec": {"size": 4}})
    handler.wait_finished(where=lambda request: request.object["spec"]["size"] == 4)
    widgets.merge_patch("a", {"spec": {"size": 5}})
    last = handler.wait_finished(where=lambda request: request.object["spec"]["size"] == 5)
    assert last.body["attempt"] == 1, "a success ends the count"
    operator.stop()


def test_after_its_attempts_it_waits_for_a_change(configured, handler, widgets):
    handler.behave("exit 1")
    operator = configured(retry={"first": "1ms", "max": "1ms", "attempts": 3})
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    said = operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"], key="default/a")
    assert "retry.attempts" in said["message"]
    operator.stop()
    operator.start_ready().wait_synced()
    handler.behave("exit 0")
    widgets.create("b")
    handler.wait_finished(name="b")
    assert count_of(handler, "a") == 3, "nor after a restart"
    handler.behave("exit 1")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_finished(where=lambda request: request.object.get("spec", {}).get("size") == 2, count=3)
    operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"], key="default/a")
    operator.stop()
    assert [request.body["attempt"] for request in handler.requests(name="a")] == [1, 2, 3, 1, 2, 3], "as often again"


def test_conflicts_one_after_another_are_failures(configured, handler, widgets, devserver):
    """Each run changes its own object before its answer is written: only the first such conflict is for free."""
    handler.answer({"patch": {"spec": {"size": 1}}})
    operator = configured(retry={"first": "1ms", "max": "1ms", "attempts": 4})
    devserver.fault(match={"verb": "patch", "resource": "widgets"}, times=0, status=409, reason="Conflict")
    operator.start_ready().wait_synced()
    widgets.create("a")
    said = operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"], key="default/a")
    assert "the object changed while the handler ran" in said["message"] and "retry.attempts" in said["message"]
    operator.stop()
    assert [request.body["reason"] for request in handler.requests()] == ["added", "conflict", "retry", "retry", "retry"]


def test_a_cleanup_is_never_given_up(configured, handler, widgets):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || exit 65')
    operator = configured(finalizer=True, retry={"first": "1ms", "max": "1ms", "attempts": 2})
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    widgets.delete("a")
    wait_until(lambda: len(handler.requests(action="finalize")) >= 4, "attempts beyond the limit")
    assert widgets.get("a")["metadata"]["finalizers"]
    operator.stop()


def test_on_start_all_runs_everything_once_a_start(configured, handler, widgets):
    operator = configured(onStart="all")
    for name in ("a", "b", "c"):
        widgets.create(name)
    operator.start_ready()
    for name in ("a", "b", "c"):
        handler.wait_finished(name=name)
    operator.stop()
    operator.start_ready()
    for name in ("a", "b", "c"):
        assert handler.wait_finished(name=name, count=2).body["reason"] == "start"
    operator.stop()
    assert handler.count() == 6


def test_on_start_changed_is_the_default(configured, handler, widgets):
    operator = configured()
    widgets.create("a")
    operator.start_ready()
    handler.wait_finished(name="a")
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("b")
    handler.wait_finished(name="b")
    operator.stop()
    assert count_of(handler, "a") == 1


def test_a_run_never_sees_an_older_object_than_we_wrote(configured, handler, widgets, devserver):
    """The watch is late; what the handler wrote last, it must read next."""
    handler.behave("""printf '{"status":{"count":%d},"requeueAfter":"10ms"}' """
                   """"$(($(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))'"""
                   """'["object"].get("status", {}).get("count", 0))' "$REQUEST") + 1))" """)
    operator = configured()
    operator.start_ready().wait_synced()
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=0, bytesPerSecond=4000)
    devserver.close_watches("clean")
    widgets.create("a")
    wait_until(lambda: widgets.get("a").get("status", {}).get("count", 0) >= 5, "five runs", 60)
    operator.stop()
    seen = [request.object.get("status", {}).get("count", 0) for request in handler.requests(name="a")]
    assert seen == list(range(len(seen))), "each run sees what the one before it wrote"
