# SPDX-License-Identifier: Apache-2.0
"""What the API server or the network refuses is no failure of an object; that it refuses us is a matter of the watch."""
import json

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID

STATUS = """printf '{"status":{"seen":"%s"}}' "$RECONCILED_ATTEMPT" """
QUICK = {"first": "50ms", "max": "50ms"}
SLOW = {"first": "10m", "max": "10m"}
# As the authorizer says it, and as admission does: the reason is the same.
RIGHTS = 'widgets.example.com "a" is forbidden: User "operator" cannot patch resource "widgets/status" in API group "example.com"'
WEBHOOK = 'admission webhook "policy.example.com" denied the request: not on a Friday'
RESIZE = ('persistentvolumeclaims "a" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that '
          "provisions the pvc must support resize")
QUOTA = 'widgets.example.com "a" is forbidden: exceeded quota: small, requested: count/widgets=1, used: 5, limited: 5'


@pytest.fixture
def configured(devserver, operator, handler):
    handler.behave(STATUS)

    def configured(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator

    return configured


def refuse(devserver, status, message="not now", name="a", times=0):
    return devserver.fault(match={"verb": "patch", "name": name}, times=times, status=status, message=message)


def patches(devserver, name="a"):
    return devserver.requests(lambda request: request.get("verb") == "patch" and request.get("name") == name)


def state(operator):
    return operator.ctl.status()["watches"][0]


def is_written(widgets, name):
    return lambda: widgets.get(name).get("status")


@pytest.mark.parametrize("status", [401, 408, 500, 503])
def test_an_outage_uses_up_no_attempts(configured, devserver, widgets, status):
    operator = configured(retry={**QUICK, "attempts": 3})
    fault = refuse(devserver, status)
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: len(patches(devserver)) >= 7, "more tries than attempts")
    row = json.loads(operator.ctl.run("explain", "--json", "widgets", "default/a").stdout)["objects"][0]
    assert row["attempts"] == 0 and row["refused"] >= 3 and not row["permanent"] and f"HTTP {status}" in row["lastError"]
    devserver.clear_faults(fault)
    wait_until(is_written(widgets, "a"), "the status")
    assert widgets.get("a")["status"] == {"seen": "1"}, "the handler is told of no attempts either"
    operator.stop()


def test_attempts_before_and_after_an_outage_count(configured, devserver, widgets, handler):
    handler.behave("exit 1")
    operator = configured(retry={**QUICK, "attempts": 4})
    handler.behave('test "$RECONCILED_ATTEMPT" -ge 3 || exit 1\n' + STATUS)
    fault = refuse(devserver, 503)
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: len(patches(devserver)) >= 5, "the outage")
    assert {request.body["attempt"] for request in handler.requests(name="a")} == {1, 2, 3}
    handler.behave("exit 1")
    devserver.clear_faults(fault)
    operator.wait_for_log("retry.attempts", message_id=MESSAGE_ID["RUN_PERMANENT"], key="default/a")
    operator.stop()


def test_what_waited_for_the_server_does_not_sit_out_its_backoff(configured, devserver, widgets):
    operator = configured(retry=SLOW)
    names = [f"a{number}" for number in range(20)]
    faults = [refuse(devserver, 503, name=name) for name in names]
    operator.start_ready().wait_synced()
    for name in names:
        widgets.create(name)
    wait_until(lambda: all(patches(devserver, name) for name in names), "the outage")
    for fault in faults:
        devserver.clear_faults(fault)
    widgets.create("well")
    for name in names:
        wait_until(is_written(widgets, name), f"the status of {name}")
    operator.stop()


def test_what_waited_runs_after_a_restart_as_well(configured, devserver, widgets):
    operator = configured(retry=SLOW)
    fault = refuse(devserver, 503)
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: ledger.read(operator, "SELECT key FROM ledger WHERE refused = 1"), "its record")
    operator.stop()
    devserver.clear_faults(fault)
    operator.start_ready()
    wait_until(is_written(widgets, "a"), "the status")
    operator.stop()


def test_one_that_is_always_refused_keeps_its_backoff_while_others_are_well(configured, devserver, widgets):
    operator = configured(retry=SLOW)
    refuse(devserver, 503)
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: patches(devserver), "the first refusal")
    for number in range(10):
        widgets.create(f"b{number}")
        wait_until(is_written(widgets, f"b{number}"), "the status")
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("c")
    wait_until(is_written(widgets, "c"), "the status")
    assert len(patches(devserver)) <= 2, "once by itself, and once because the server seemed to be well"
    operator.stop()


# Rights

@pytest.mark.parametrize("onunrecoverable", ["crash", "throttle"])
def test_a_gap_in_our_rights_is_a_matter_of_the_watch(configured, devserver, widgets, onunrecoverable):
    operator = configured(retry={**QUICK, "attempts": 3}, onUnrecoverable=onunrecoverable)
    fault = refuse(devserver, 403, RIGHTS)
    operator.start_ready().wait_synced()
    widgets.create("a")
    operator.wait_for_log("cannot patch resource", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    wait_until(lambda: len(patches(devserver)) >= 7, "more tries than attempts")
    said = state(operator)
    assert said["state"] == "degraded" and "HTTP 403" in said["reason"] and said["degradedSince"] > 0
    devserver.clear_faults(fault)
    operator.wait_for_log("works again", message_id=MESSAGE_ID["WATCH_RECOVERED"])
    wait_until(is_written(widgets, "a"), "the status")
    assert state(operator)["state"] == "in-sync" and not operator.ctl.status()["quarantine"]
    assert state(operator)["syncedSince"] > said["degradedSince"], "since the recovery"
    operator.stop()


@pytest.mark.slow
def test_rights_that_come_back_are_found_long_before_the_backoff_is_over(configured, devserver, widgets):
    operator = configured(retry=SLOW, deadline="20s")
    fault = refuse(devserver, 403, RIGHTS)
    operator.start_ready().wait_synced()
    widgets.create("a")
    operator.wait_for_log("cannot patch resource", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    devserver.clear_faults(fault)
    wait_until(is_written(widgets, "a"), "the status")
    operator.stop()


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.slow
def test_past_the_deadline_the_exit_is_77_and_no_object_is_to_blame(configured, devserver, widgets, status):
    operator = configured(retry=SLOW, deadline="1s")
    refuse(devserver, status, RIGHTS)
    operator.start_ready().wait_synced()
    widgets.create("a")
    operator.wait_exit(expect=77)
    said = operator.logs(message_id=MESSAGE_ID["CHILD_FATAL"])
    assert len(said) == 1 and "widgets" in said[0]["message"] and f"HTTP {status}" in said[0]["message"]
    assert ledger.read(operator, "SELECT crashes, attempts = refused FROM ledger") == [(0, 1)]


def test_an_isolated_watch_fails_alone(configured, devserver, widgets):
    operator = configured(retry=QUICK, deadline="500ms", onDeadline="isolate")
    fault = refuse(devserver, 403, RIGHTS)
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: state(operator)["state"] == "failed", "the failed watch")
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_FAILED"])
    devserver.clear_faults(fault)
    wait_until(lambda: state(operator)["state"] == "in-sync", "its recovery")
    operator.stop()


def test_the_witness_that_is_gone_says_nothing_any_more(configured, devserver, widgets):
    operator = configured(retry=SLOW, deadline="1h")
    refuse(devserver, 403, RIGHTS)
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: state(operator)["state"] == "degraded", "the degraded watch")
    widgets.delete("a")
    wait_until(lambda: state(operator)["state"] == "in-sync", "its recovery")
    operator.stop()


def test_a_finalizer_that_we_may_not_put_on(configured, devserver, widgets, handler):
    operator = configured(retry=QUICK, finalizer=True)
    fault = refuse(devserver, 403, RIGHTS)
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: state(operator)["state"] == "degraded", "the degraded watch")
    assert handler.count() == 0
    devserver.clear_faults(fault)
    wait_until(is_written(widgets, "a"), "the status")
    assert state(operator)["state"] == "in-sync"
    operator.stop()


# What admission says with the same code and reason

def test_what_a_webhook_denies_is_about_the_object(configured, devserver, widgets):
    operator = configured(onUnrecoverable="throttle", retry={"throttle": "50ms"})
    refuse(devserver, 403, WEBHOOK)
    operator.start_ready().wait_synced()
    widgets.create("a")
    operator.wait_for_log("not on a Friday", message_id=MESSAGE_ID["THROTTLED"], key="default/a")
    assert state(operator)["state"] == "in-sync" and not operator.logs(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    operator.stop()


@pytest.mark.parametrize("words, said", [(QUOTA, "exceeded quota"), (RESIZE, "can be resized"), ("no", "HTTP 403")])
def test_a_quota_is_a_failure_of_the_object_alone(configured, devserver, widgets, words, said):
    """So is what any other admission plugin says: only the authorizer's words are about our rights."""
    operator = configured(retry={**QUICK, "attempts": 2}, deadline="1s")
    refuse(devserver, 403, words)
    operator.start_ready().wait_synced()
    widgets.create("a")
    operator.wait_for_log(said, message_id=MESSAGE_ID["RUN_PERMANENT"], key="default/a")
    widgets.create("b")
    wait_until(is_written(widgets, "b"), "the other's status")
    assert not operator.logs(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    operator.stop()


# Children

def test_an_outage_of_a_kind_of_children_uses_up_no_attempts(configured, devserver, widgets, handler):
    handler.behave("""printf '{"children":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}]}'""")
    operator = configured(retry={**QUICK, "attempts": 3}, onFailure="rollback")
    handler.behave("""printf '{"children":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}},"""
                   """{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}]}'""")
    fault = refuse(devserver, 503, name="c")
    operator.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: len(patches(devserver, "c")) >= 7, "more tries than attempts")
    devserver.clear_faults(fault)
    wait_until(lambda: devserver.api.resource("v1", "configmaps", "default").exists("c"), "the child")
    operator.stop()
