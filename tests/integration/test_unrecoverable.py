# SPDX-License-Identifier: Apache-2.0
"""What the API server refuses for good, and handlers that stop the operator: loud, and never a hot loop."""
import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

STATUS = """printf '{"status":{"seen":"%s"}}' "$RECONCILED_NAME" """
REFUSED = {"status": 422, "reason": "Invalid", "message": "status.seen: Invalid value"}


@pytest.fixture
def configured(devserver, operator, handler):
    handler.behave(STATUS)

    def configured(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator

    return configured


def refuse(devserver, name, times=0):
    return devserver.fault(match={"verb": "patch", "name": name}, times=times, **REFUSED)


def attempts(devserver, name):
    return devserver.requests(lambda request: request.get("verb") == "patch" and request.get("name") == name)


def test_crash_is_the_default_and_says_which_object_in_one_line(configured, devserver, widgets):
    operator = configured()
    refuse(devserver, "poison")
    operator.start_ready().wait_synced()
    widgets.create("poison")
    operator.wait_exit(expect=70)
    causes = operator.logs(where=lambda record: record.get("message_id") == MESSAGE_ID["CHILD_FATAL"])
    assert len(causes) == 1
    for part in ("default/poison", "widgets", "HTTP 422", "status.seen: Invalid value", "mend what the handler answers"):
        assert part in causes[0]["message"]
    assert causes[0]["key"] == "default/poison"
    assert not operator.logs(message_id=MESSAGE_ID["RUN_FAILED"]), "no message is printed twice"
    assert len(attempts(devserver, "poison")) == 1


def test_after_the_restart_it_waits_and_the_others_are_served(configured, devserver, widgets, handler):
    operator = configured(retry={"first": "10m", "max": "10m"})
    refuse(devserver, "poison")
    operator.start_ready().wait_synced()
    widgets.create("poison")
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    widgets.create("other")
    handler.wait_finished(name="other")
    operator.stop()
    assert len(attempts(devserver, "poison")) == 1


def test_throttle_waits_fibonacci_also_across_a_restart(configured, devserver, widgets):
    unit = 0.2
    operator = configured(onUnrecoverable="throttle", retry={"throttle": "200ms"})
    refuse(devserver, "poison")
    operator.start_ready().wait_synced()
    widgets.create("poison")
    wait_until(lambda: len(attempts(devserver, "poison")) >= 4, "four attempts")
    operator.stop()
    operator.start_ready()
    widgets.create("other")
    wait_until(lambda: len(attempts(devserver, "poison")) >= 7, "three more", 60)
    assert widgets.get("other")["status"] == {"seen": "other"}
    times = [request["time"] for request in attempts(devserver, "poison")]
    gaps = [after - before for before, after in zip(times, times[1:])]
    for gap, units in zip(gaps, (1, 1, 2, 3, 5, 8)):
        assert gap >= 0.95 * units * unit, gaps
    assert operator.logs(message_id=MESSAGE_ID["THROTTLED"], key="default/poison")
    operator.stop()


def test_throttling_ends_with_a_success(configured, devserver, widgets):
    operator = configured(onUnrecoverable="throttle", retry={"throttle": "10ms"})
    refuse(devserver, "poison", times=3)
    operator.start_ready().wait_synced()
    widgets.create("poison")
    wait_until(lambda: widgets.get("poison").get("status"), "the status")
    operator.stop()
    assert len(attempts(devserver, "poison")) == 4


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_what_may_pass_is_tried_again(configured, devserver, widgets, status):
    operator = configured()
    devserver.fault(match={"verb": "patch", "name": "a"}, times=2, status=status, message="not now")
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: widgets.get("a").get("status"), "the status")
    operator.stop()


def test_allow_fatal_ends_the_operator(configured, handler, widgets):
    handler.behave("echo the world is on fire >&2; exit 70")
    operator = configured(allowFatal=True)
    operator.start_ready().wait_synced()
    widgets.create("a")
    operator.wait_exit(expect=70)
    causes = operator.logs(where=lambda record: record.get("message_id") == MESSAGE_ID["CHILD_FATAL"])
    assert len(causes) == 1
    assert "default/a" in causes[0]["message"] and "the world is on fire" in causes[0]["message"]
    assert "allowFatal" in causes[0]["message"]
    assert handler.count() == 1


def test_an_answer_may_be_fatal(configured, handler, widgets):
    handler.answer({"error": "cannot go on", "fatal": True})
    operator = configured(allowFatal=True)
    operator.start_ready().wait_synced()
    widgets.create("a")
    operator.wait_exit(expect=70)
    assert "cannot go on" in operator.logs(where=lambda record: record.get("message_id") == MESSAGE_ID["CHILD_FATAL"])[0]["message"]


def test_without_it_70_is_a_failure_like_others(configured, handler, widgets):
    handler.behave('[ "$RECONCILED_ATTEMPT" -ge 3 ] || exit 70\n' + STATUS)
    operator = configured()
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: widgets.get("a").get("status"), "the status")
    operator.stop()
