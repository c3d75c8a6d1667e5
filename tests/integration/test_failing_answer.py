# SPDX-License-Identifier: Apache-2.0
"""An answer with `error`: what it says of the object beside that is written, and the handler says when to try again."""
import pytest

from harness import wait_until, watch


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator.start_ready().wait_synced()

    return start


def conditions(widgets):
    return {each["type"]: (each["status"], each["reason"]) for each in widgets.get("w").get("status", {}).get("conditions", [])}


@pytest.mark.parametrize("ready", [False, True])
def test_status_conditions_and_events_are_written(start, operator, handler, widgets, api, ready):
    handler.answer({"error": "no such image", "retryAfter": "1h", "status": {"phase": "Pulling"},
                    "conditions": [{"type": "Available", "status": "False", "reason": "NoImage"}],
                    "events": [{"reason": "NoImage", "type": "Warning", "note": "it is not there"}]})
    start(readyCondition=ready, retry={"first": "1ms", "max": "1ms"})
    widgets.create("w")
    wanted = {"Available": ("False", "NoImage"), **({"Ready": ("False", "ReconcileFailed")} if ready else {})}
    wait_until(lambda: conditions(widgets) == wanted, lambda: f"the conditions: {widgets.get('w')}")
    assert widgets.get("w")["status"]["phase"] == "Pulling"
    events = api.resource("events.k8s.io/v1", "events", "default")
    wait_until(lambda: "NoImage" in [event["reason"] for event in events.list()["items"]], "the handler's Event")
    assert "next attempt in 1h" in operator.wait_for_log("no such image", key="default/w")["message"]
    operator.stop()
    assert handler.count() == 1


def test_retry_after_takes_the_place_of_the_backoff(start, operator, handler, widgets):
    handler.answer({"error": "soon", "retryAfter": "100ms"})
    start(retry={"first": "1h", "max": "1h", "attempts": 3})
    widgets.create("w")
    handler.wait_finished(name="w", count=3)
    assert "retry.attempts" in operator.wait_for_log("retry.attempts", key="default/w")["message"], "they count as attempts"
    assert [request.body["reason"] for request in handler.requests(name="w")] == ["added", "retry", "retry"]
    operator.stop()


@pytest.mark.parametrize("more, says", [
    ({"children": []}, "children: are not applied by an answer with `error`"),
    ({"patch": {"spec": {}}}, "patch: is not written by an answer with `error`"),
    ({"requeueAfter": "1s"}, "requeueAfter: is for a success; beside `error`, say `retryAfter`"),
    ({"retryAfter": "1s", "permanent": True}, "retryAfter: cannot be, since the error is permanent or fatal"),
    ({"retryAfter": "soon"}, "retryAfter: must be a duration"),
])
def test_what_it_cannot_carry_is_refused(start, operator, handler, widgets, more, says):
    handler.answer({"error": "wrong", **more})
    start()
    widgets.create("w")
    assert says in operator.wait_for_log("the handler's answer", key="default/w")["message"]
    operator.stop()


def test_retry_after_needs_an_error(start, operator, handler, widgets):
    handler.answer({"retryAfter": "1s"})
    start()
    widgets.create("w")
    assert "there is no `error`; say `requeueAfter`" in operator.wait_for_log("the handler's answer", key="default/w")["message"]
    operator.stop()
