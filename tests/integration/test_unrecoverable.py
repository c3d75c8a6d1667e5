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


def test_crash_says_which_object_in_one_line(configured, devserver, widgets):
    operator = configured(onUnrecoverable="crash")
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
    operator = configured(retry={"first": "10m", "max": "10m"}, onUnrecoverable="crash")
    refuse(devserver, "poison")
    operator.start_ready().wait_synced()
    widgets.create("poison")
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    widgets.create("other")
    handler.wait_finished(name="other")
    operator.stop()
    assert len(attempts(devserver, "poison")) == 1


def test_a_crash_loop_ends_in_quarantine(configured, devserver, widgets, handler):
    """However fast whoever starts us is: three crashes, and then this object waits and all others are served."""
    operator = configured(retry={"first": "1ms", "max": "1ms"}, quarantine={"after": 3, "duration": "1h"}, onUnrecoverable="crash")
    refuse(devserver, "poison")
    widgets.create("poison")
    for crash in range(3):
        operator.start()
        operator.wait_exit(expect=70)
        assert bool(operator.logs(message_id=MESSAGE_ID["QUARANTINED"], key="default/poison")) == (crash == 2)
    operator.start_ready().wait_synced()
    widgets.create("other")
    handler.wait_finished(name="other")
    assert [entry["key"] for entry in operator.ctl.status()["quarantine"]] == ["default/poison"]
    assert len(attempts(devserver, "poison")) == 3
    devserver.clear_faults()
    assert operator.ctl.run("release", "widgets", "default/poison").returncode == 0
    wait_until(lambda: widgets.get("poison").get("status"), "the status")
    operator.stop()


FINALIZER = "widgets.example.com/finalizer"


def finalizers(widgets, name):
    return widgets.get(name)["metadata"].get("finalizers") or []


def test_a_refused_finalizer_lets_no_handler_run(configured, devserver, widgets, handler):
    operator = configured(finalizer=True, onUnrecoverable="throttle", retry={"throttle": "50ms"})
    refused = devserver.fault(match={"verb": "patch", "name": "a"}, times=0, status=403, reason="Forbidden",
                              message='admission webhook "w" denied the request: cannot patch')
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: len(attempts(devserver, "a")) >= 3, "three attempts")
    said = operator.wait_for_log("cannot patch", message_id=MESSAGE_ID["THROTTLED"], key="default/a")
    assert "HTTP 403" in said["message"] and "finalizer" in said["message"]
    assert handler.count() == 0 and finalizers(widgets, "a") == []
    devserver.clear_faults(refused)
    handler.wait_finished(name="a")
    assert FINALIZER in finalizers(widgets, "a")
    operator.stop()


def test_a_finalizer_that_may_not_go_holds_the_object(configured, devserver, widgets, handler):
    handler.behave("exit 0")
    operator = configured(finalizer=True, onUnrecoverable="throttle", retry={"throttle": "50ms"})
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    refused = devserver.fault(match={"verb": "patch", "name": "a"}, times=0, status=403, reason="Forbidden",
                              message='admission webhook "w" denied the request: cannot patch')
    widgets.delete("a")
    operator.wait_for_log("cannot patch", message_id=MESSAGE_ID["THROTTLED"], key="default/a")
    wait_until(lambda: len(attempts(devserver, "a")) >= 4, "more attempts")
    assert FINALIZER in finalizers(widgets, "a"), "held, and not forgotten"
    operator.stop()
    devserver.clear_faults(refused)
    operator.start_ready()
    wait_until(lambda: not widgets.exists("a"), "its end")
    operator.stop()


@pytest.mark.slow
def test_by_default_it_waits_fibonacci_also_across_a_restart(configured, devserver, widgets):
    unit = 0.2
    operator = configured(retry={"throttle": "200ms"})
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
    operator.wait_for_log(message_id=MESSAGE_ID["THROTTLED"], key="default/poison")
    operator.stop()


def test_throttling_ends_with_a_success(configured, devserver, widgets):
    operator = configured(retry={"throttle": "10ms"})
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


def test_while_it_stops_in_order_it_is_no_crash(configured, devserver, widgets, handler):
    """The answer comes after the stop was asked for: nobody is helped by another end than that."""
    handler.behave(f"{handler.held}; echo '{{\"status\":{{\"seen\":true}}}}'")
    operator = configured(onUnrecoverable="crash")
    devserver.fault(match={"verb": "patch", "name": "a"}, times=0, **REFUSED)
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_for(name="a")
    operator.popen.terminate()
    operator.wait_for_log("asked to stop")
    handler.let_go()
    operator.wait_exit(expect=0)
    assert "refused" in operator.wait_for_log(message_id=MESSAGE_ID["RUN_FAILED"], key="default/a")["message"]
    devserver.clear_faults()
    operator.start_ready().wait_synced()
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the status, after its backoff")
    operator.stop()
