# SPDX-License-Identifier: Apache-2.0
"""What is due by itself (backoff, requeueAfter, resync) comes, whatever stood in its way at that moment."""
import time

import pytest

from harness import ledger, wait_until, watch

SECOND = 1_000_000


def reconciles(handler, uid):
    return handler.requests(where=lambda request: request.metadata["uid"] == uid and request.body["action"] == "reconcile")


@pytest.mark.slow
def test_what_falls_due_while_the_predecessors_deletion_is_queued_runs_after_it(devserver, operator, handler, widgets):
    """Two objects of one name: the deletion of the first is under way for longer than the second one waits."""
    gate = handler.folder / "gate"
    handler.behave(f'[ "$RECONCILED_ACTION" = deleted ] || {{ echo \'{{"requeueAfter": "2m"}}\'; exit 0; }}\n'
                   f'[ -e {gate}.armed ] || exit 75\nwhile [ ! -e {gate} ]; do sleep 0.05; done')
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "10m", "max": "10m"})])
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    second = widgets.create("a")["metadata"]["uid"]
    wait_until(lambda: reconciles(handler, second) and reconciles(handler, second)[0].exit_code is not None, "the second one's run")
    wait_until(lambda: ledger.read(operator, f"SELECT key FROM ledger WHERE uid = '{second}' AND next_realtime > 0"), "its record")
    operator.stop()
    with ledger.edit(operator) as database:  # both times have nearly come
        now = int(time.time() * SECOND)
        database.execute(f"UPDATE ledger SET next_realtime = CASE uid WHEN '{second}' THEN {now + 3 * SECOND} ELSE {now} END")
    gate.with_suffix(".armed").touch()
    operator.start_ready()
    handler.wait_for(name="a", action="deleted", count=2)
    wait_until(lambda: time.time() * SECOND > now + 5 * SECOND, "its time")
    gate.touch()
    wait_until(lambda: len(reconciles(handler, second)) == 2, "what fell due meanwhile")
    assert reconciles(handler, second)[1].body["reason"] == "requeueAfter"
    operator.stop()


@pytest.mark.parametrize("kind", ["requeueAfter", "resync"])
@pytest.mark.slow
def test_a_watch_that_is_removed_and_brought_back_keeps_its_timers(devserver, operator, make_handler, widgets, kind):
    handler, other = make_handler(), make_handler()
    kept = watch("maps", other, api_version="v1", kind="ConfigMap")
    more = {"resync": "4s"} if kind == "resync" else {}
    if kind == "requeueAfter":
        handler.behave("echo '{\"requeueAfter\": \"4s\"}'")
    operator.configure(devserver, [watch("widgets", handler, **more), kept])
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    wait_until(lambda: ledger.read(operator, "SELECT key FROM ledger WHERE next_realtime > 0"), "its record")
    due = ledger.read(operator, "SELECT next_realtime FROM ledger")[0][0]
    operator.configure(devserver, [kept])
    operator.reload()
    count = handler.count()
    wait_until(lambda: time.time() * SECOND > due + 2 * SECOND, "its time to come while nobody wants it")
    assert handler.count() == count, "nothing of it runs meanwhile"
    operator.configure(devserver, [watch("widgets", handler, **more), kept])
    operator.reload()
    assert handler.wait_finished(name="a", count=count + 1).body["reason"] == kind
    operator.stop()


def stamp(seconds, zone="Z"):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + zone


@pytest.mark.slow
def test_an_object_runs_again_at_the_time_that_its_answer_says_also_after_a_restart(devserver, operator, handler, widgets):
    at = int(time.time()) + 8
    handler.answer({"requeueAt": stamp(at + 3600, "+01:00"), "requeueAfter": "1h"})
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    wait_until(lambda: ledger.read(operator, "SELECT key FROM ledger WHERE next_realtime > 0"), "its record")
    assert abs(ledger.read(operator, "SELECT next_realtime FROM ledger")[0][0] - at * SECOND) < SECOND, "not in an hour"
    operator.stop()
    handler.behave("exit 0")
    operator.start_ready()
    again = handler.wait_for(name="a", count=2)
    assert again.body["reason"] == "requeueAfter" and time.time() >= at - 1
    operator.stop()


def test_a_time_that_has_passed_is_a_second_away(devserver, operator, handler, widgets):
    """However often its handler says so."""
    handler.answer({"requeueAt": "2020-01-01T00:00:00Z"})
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    begin = time.time()
    widgets.create("a")
    handler.wait_for(name="a", count=3, where=lambda request: True)
    assert time.time() - begin >= 2
    operator.stop()
