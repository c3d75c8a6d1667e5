# SPDX-License-Identifier: Apache-2.0
"""The machine's clock is set while a schedule waits: it keeps its time of day, and no run is repeated for that."""
import time

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID

from .test_clock import HOUR

DAY = 24 * HOUR
NAME = "widgets.example.com-nightly"

MIDNIGHT = (int(time.time() * 1e6) // DAY + 2) * DAY


def usec_until(hour, minute=0, second=0):
    """From the true time to that time, in UTC, of the day after tomorrow."""
    return MIDNIGHT + hour * HOUR + (minute * 60 + second) * 1_000_000 - int(time.time() * 1e6)


def plan(operator):
    found = ledger.read(operator, "SELECT scheduled_realtime FROM ledger WHERE next_reason = 'scheduled'")
    return found[0][0] if found else None


def schedule(handler, /, **more):
    return {"name": "nightly", "cron": "0 3 * * *", "handler": {"exec": handler.command}, **more}


@pytest.fixture
def start(devserver, operator, handler, clock):
    def start(ahead, **more):
        clock.set(ahead)
        operator.configure(devserver, [], namespace="default", heartbeat={"interval": "100ms"}, schedules=[schedule(handler, **more)])
        operator.start_ready()
        return wait_until(lambda: plan(operator), "its plan")

    return start


def test_its_time_comes(start, operator, handler):
    """Two seconds later, by the clock that it sees."""
    planned = start(usec_until(2, 59, 58))
    handler.wait_finished(name=NAME)
    assert wait_until(lambda: plan(operator), "its next plan") == planned + DAY
    operator.stop()


@pytest.mark.parametrize("missed", ["once", "skip"])
def test_set_forward_beyond_its_time(start, operator, handler, clock, missed):
    planned = start(usec_until(1), onMissed=missed)
    clock.set(usec_until(5))
    assert wait_until(lambda: (found := plan(operator)) != planned and found, "its next plan") == planned + DAY
    operator.stop()
    assert handler.count() == (missed == "once")


def test_set_forward_to_just_before_its_time(start, operator, handler, clock):
    start(usec_until(1), onMissed="skip")
    clock.set(usec_until(2, 59, 58))
    handler.wait_finished(name=NAME)
    operator.stop()


def test_set_back_a_little_repeats_nothing(start, operator, handler, clock):
    planned = start(usec_until(2, 59, 58))
    handler.wait_finished(name=NAME)
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    due = ledger.read(operator, "SELECT next_realtime FROM ledger")[0][0]
    clock.set(usec_until(2, 59, 55))
    wait_until(lambda: ledger.read(operator, "SELECT next_realtime FROM ledger")[0][0] > due + 2_000_000, "the same plan, later")
    assert plan(operator) == planned + DAY
    operator.stop()
    assert handler.count() == 1


@pytest.mark.parametrize("how", ["restart", "reload"])
def test_set_back_a_little_repeats_nothing_later(start, devserver, operator, handler, make_handler, clock, how):
    """One that is new waits for the same time, and runs then."""
    new = make_handler()
    planned = start(usec_until(2, 59, 58))
    handler.wait_finished(name=NAME)
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    if how == "restart":
        operator.stop()
    clock.set(usec_until(2, 59, 50))
    operator.configure(devserver, [], namespace="default", heartbeat={"interval": "100ms"}, schedules=[
        schedule(handler, retry={"first": "2s"}), schedule(new, name="new")])
    if how == "restart":
        operator.start_ready()
    else:
        operator.reload()
    new.wait_finished(name="widgets.example.com-new")
    operator.stop()
    assert handler.count() == 1


def test_set_back_by_a_year_begins_anew(start, operator, handler, clock):
    planned = start(usec_until(2, 59, 58) + 365 * DAY)
    handler.wait_finished(name=NAME)
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    clock.set(usec_until(1))
    wait_until(lambda: plan(operator) and plan(operator) < planned - 360 * DAY, "a plan of that year")
    operator.stop()
    assert handler.count() == 1


@pytest.mark.slow
def test_a_run_that_is_longer_than_its_period(start, operator, handler):
    """A time comes while it is under way."""
    handler.behave(handler.held)
    start(usec_until(2, 59, 58), cron="* 3 * * *", onMissed="skip", handler={"exec": handler.command, "timeout": "5m"})
    began = handler.wait_for(name=NAME).started
    wait_until(lambda: time.time() > began + 62, "the next minute", deadline=90)
    assert handler.count() == 1, "it never runs twice at once"
    handler.let_go()
    again = handler.wait_finished(name=NAME, count=2)
    operator.stop()
    assert again.body["reason"] == "scheduled" and again.started < began + 110, "at once, as it is in time, and not at the next minute"


def reason(operator):
    found = ledger.read(operator, "SELECT next_reason FROM ledger WHERE watch = 'nightly'")
    return found[0][0] if found else None


def assert_left_out(operator, handler, planned):
    operator.wait_for_log(message_id=MESSAGE_ID["SCHEDULE_MISSED"])
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    operator.stop()
    assert handler.count() == 0


@pytest.mark.parametrize("awaited", ["worker", "startup"])
def test_skipped_after_a_long_wait_for(devserver, operator, handler, make_handler, widgets, clock, awaited):
    """It was due in time, and could not begin."""
    other = make_handler()
    other.behave(other.held)
    clock.set(usec_until(2, 59, 55))
    startup = {"startup": {"handler": {"exec": other.command}}} if awaited == "startup" else {}
    operator.configure(devserver, [] if startup else [watch("widgets", other)], namespace="default", workers=1,
                       heartbeat={"interval": "100ms"}, schedules=[schedule(handler, onMissed="skip")], **startup)
    operator.start_ready()
    planned = wait_until(lambda: plan(operator), "its plan")
    widgets.create("a")
    other.wait_for()
    wait_until(lambda: next(one for one in operator.ctl.status()["watches"] if one["name"] == "nightly")["queued"] == 1, "its turn")
    clock.set(usec_until(5))
    other.let_go()
    assert_left_out(operator, handler, planned)


@pytest.fixture
def held_up(start, devserver, operator, handler, clock):
    """Its time comes, and its run cannot begin: the watch does not show what the run before it, by hand, wrote to its object."""
    handler.answer({"patch": {"data": {"a": "b"}}})
    planned = start(usec_until(1), onMissed="skip")
    devserver.fault(match={"verb": "watch", "resource": "configmaps"}, times=0, atEvent=1, stall=True, bookmarks=False)
    devserver.close_watches("clean")
    operator.ctl.run("retry", "nightly", f"default/{NAME}")
    handler.wait_finished(name=NAME)
    wait_until(lambda: reason(operator) == "scheduled", "the end of that run")
    clock.set(usec_until(2, 59, 59))
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_BEHIND"])
    return planned


def test_skipped_when_it_comes_back_too_late(held_up, operator, handler, clock):
    clock.set(usec_until(5))
    operator.wait_for_log(message_id=MESSAGE_ID["SCHEDULE_MISSED"])
    wait_until(lambda: plan(operator) == held_up + DAY, "its next plan")
    operator.stop()
    assert handler.count() == 1


def test_not_skipped_when_it_can_begin_in_time(held_up, devserver, operator, handler):
    operator.stop()
    devserver.clear_faults()
    operator.start_ready()
    handler.wait_finished(name=NAME, count=2)
    wait_until(lambda: plan(operator) == held_up + DAY, "its next plan")
    operator.stop()
    assert handler.count() == 2 and not operator.logs(message_id=MESSAGE_ID["SCHEDULE_MISSED"])


def test_what_has_begun_is_retried_however_late(start, operator, handler, clock):
    handler.behave('[ "$RECONCILED_ATTEMPT" = 2 ]')
    planned = start(usec_until(2, 59, 58), onMissed="skip", retry={"first": "3s", "max": "3s"})
    handler.wait_finished(name=NAME)
    clock.set(usec_until(5))
    assert handler.wait_finished(name=NAME, count=2).body["attempt"] == 2
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    operator.stop()
    assert handler.count() == 2


def test_what_has_begun_runs_again_however_late(start, operator, handler, clock):
    handler.behave(handler.held)
    start(usec_until(2, 59, 58), onMissed="skip")
    handler.wait_for(name=NAME)
    operator.send_signal(9)
    operator.wait_exit()
    operator.assert_no_processes()
    clock.set(usec_until(5))
    handler.behave("exit 0")
    operator.start_ready()
    handler.wait_finished(name=NAME, count=2)
    operator.stop()
    assert handler.count() == 2


@pytest.mark.parametrize("missed", ["once", "skip"])
@pytest.mark.parametrize("ends", ["exit 0", "exit 1", "exit 65"])
def test_a_time_that_comes_during_a_run_by_hand(start, operator, handler, clock, missed, ends):
    """However that ends: it had begun before."""
    handler.behave(handler.held + f"; [ $RECONCILED_REASON = scheduled ] || {ends}")
    planned = start(usec_until(1), onMissed=missed, retry={"first": "1h", "max": "1h"})
    operator.ctl.run("retry", "nightly", f"default/{NAME}")
    handler.wait_for(name=NAME)
    clock.set(usec_until(5))
    handler.let_go()
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    if missed == "skip":
        operator.wait_for_log(message_id=MESSAGE_ID["SCHEDULE_MISSED"])
    operator.stop()
    assert handler.count() == (2 if missed == "once" else 1)


@pytest.mark.parametrize("missed", ["once", "skip"])
def test_a_time_that_comes_while_it_waits_for_children(start, operator, handler, clock, api, missed):
    deployments = api.resource("apps/v1", "deployments", "default")
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    handler.answer({"children": [{**kind, "metadata": {"name": "web"}, "spec": {"replicas": 1}}]})
    planned = start(usec_until(1), onMissed=missed, children={"wait": "24h", "kinds": [kind]})
    operator.ctl.run("retry", "nightly", f"default/{NAME}")
    wait_until(lambda: reason(operator) == "settling", "the wait for its children")
    clock.set(usec_until(5))
    deployments.merge_patch("web", {"status": {"observedGeneration": 9, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}},
                            subresource="status")
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    if missed == "skip":
        operator.wait_for_log(message_id=MESSAGE_ID["SCHEDULE_MISSED"])
    operator.stop()
    assert handler.count() == (2 if missed == "once" else 1)


def test_set_forward_before_the_first_list(start, devserver, operator, handler, clock):
    """As on a machine that boots with a wrong clock, and has its network later."""
    start(usec_until(1))
    operator.stop()
    fault = devserver.fault(match={"verb": "list", "resource": "configmaps"}, status=503, times=0)
    watching = devserver.fault(match={"verb": "watch", "resource": "configmaps"}, status=503, times=0)
    operator.start()
    operator.wait_for_log("is retried")
    clock.set(usec_until(5))
    noticed = time.monotonic() + 1
    wait_until(lambda: time.monotonic() > noticed, "ten heartbeats, as nothing tells that it has noticed")
    devserver.clear_faults(fault)
    devserver.clear_faults(watching)
    handler.wait_finished(name=NAME)
    operator.stop()


def test_two_that_are_due_at_once(devserver, operator, handler, clock):
    clock.set(usec_until(2, 59, 57))
    operator.configure(devserver, [], namespace="default", schedules=[
        schedule(handler, name=name) for name in ("nightly", "other")])
    operator.start_ready()
    for name in ("nightly", "other"):
        handler.wait_finished(name=f"widgets.example.com-{name}")
    operator.stop()
    assert handler.count() == 2


def test_paused_at_its_time(start, operator, handler, clock):
    planned = start(usec_until(2), onMissed="skip")
    assert operator.ctl.run("pause", "nightly").returncode == 0
    before = ledger.read(operator, "SELECT next_realtime FROM ledger")[0][0]
    clock.set(usec_until(4))
    wait_until(lambda: ledger.read(operator, "SELECT next_realtime FROM ledger")[0][0] < before, "the clock that it sees")
    assert plan(operator) == planned
    assert operator.ctl.run("resume", "nightly").returncode == 0
    wait_until(lambda: plan(operator) == planned + DAY, "its next plan")
    operator.stop()
    assert handler.count() == 0
