# SPDX-License-Identifier: Apache-2.0
"""Deletions, by UID: what was deleted is told, at least once, and exactly once when nothing was killed in between; what was not
deleted never is. What is tried elsewhere: while down, a narrowed selector, another cluster, a lost store (test_event.py), partial
lists and RBAC (tests/watch), relists after 410 (tests/watch)."""
import shutil
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID

from death.conftest import SIGNAL


@pytest.fixture
def configured(devserver, operator, handler):
    def configure(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)], workers=2)
        return operator

    return configure


def deleted(handler):
    return sorted(run.name for run in handler.requests(action="deleted"))


def rows_of(operator, name):
    return ledger.read(operator, f"SELECT key FROM ledger WHERE key = 'default/{name}'")


def settle(operator, handler, widgets):
    """An object that comes now is behind everything that was there before."""
    widgets.create("last", spec={})
    handler.wait_finished(name="last")
    wait_until(lambda: all(worker["state"] == "idle" for worker in operator.ctl.status()["workers"]), "idle workers")


def create_handled(operator, handler, widgets, names, **fields):
    for name in names:
        widgets.create(name, spec={"n": 1}, **fields)
    operator.start_ready().wait_synced()
    for name in names:
        handler.wait_finished(name=name)


# ---- none is lost

@pytest.mark.parametrize("finalizer", [False, True])
def test_between_success_and_its_record(configured, handler, widgets, shim, finalizer):
    """The supervisor dies when the word of the handler's success arrives: it comes once more, and then never again."""
    operator = configured(finalizer=finalizer)
    create_handled(operator, handler, widgets, ["gone", "kept"])
    operator.stop()
    once = operator.state_directory / "once"  # where the supervisor may still write
    operator.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH=f"reconciled done {SIGNAL + signal.SIGKILL}",
                                RECONCILED_DEATH_ONCE=once)
    operator.start_ready().wait_synced()
    once.touch()
    operator.user.give(once)
    widgets.delete("gone")
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.assert_no_processes()
    action = "finalize" if finalizer else "deleted"
    assert len(handler.requests(name="gone", action=action)) == 1
    operator.start_ready().wait_synced()
    if finalizer:
        # The finalizer may be off already, and then the object is gone: no run is left, or it comes as `finalize` once more.
        wait_until(lambda: not widgets.exists("gone"), "the object to go")
        wait_until(lambda: not rows_of(operator, "gone"), "the ledger to forget it")
        assert len(handler.requests(name="gone", action=action)) <= 2
    else:
        handler.wait_finished(name="gone", action="deleted", count=2)
    settle(operator, handler, widgets)
    operator.stop()
    before = handler.count()
    operator.start_ready().wait_synced()
    widgets.create("behind", spec={})
    handler.wait_finished(name="behind")
    operator.stop()
    assert handler.count() == before + 1
    assert not rows_of(operator, "gone") and len(rows_of(operator, "kept")) == 1


def test_exactly_once_when_nothing_is_killed(configured, handler, widgets):
    names = [f"w{i}" for i in range(30)]
    operator = configured()
    create_handled(operator, handler, widgets, names)
    for name in names[:10]:
        widgets.delete(name)
    for name in names[:10]:
        handler.wait_finished(name=name, action="deleted")
    operator.stop()
    for name in names[10:20]:
        widgets.delete(name)
    operator.start_ready().wait_synced()
    for name in names[10:20]:
        handler.wait_finished(name=name, action="deleted")
    operator.send_signal(signal.SIGHUP)
    wait_until(lambda: sum("READY" in told for told in operator.notifications) == 2, "the reload")
    for name in names[20:]:
        widgets.delete(name)
    for name in names[20:]:
        handler.wait_finished(name=name, action="deleted")
    operator.stop()
    operator.start_ready().wait_synced()
    settle(operator, handler, widgets)
    operator.stop()
    assert deleted(handler) == sorted(names)


def test_while_the_watcher_is_dead(configured, handler, widgets):
    """Stopped first, so that the deletion falls into the time in which nobody watches."""
    operator = configured()
    create_handled(operator, handler, widgets, ["gone", "again", "kept"])
    watcher = operator.child("watcher")
    watcher.kill(signal.SIGSTOP)
    widgets.delete("gone")
    old = widgets.delete("again")
    widgets.create("again", spec={"n": 2})
    watcher.kill(signal.SIGKILL)
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    handler.wait_finished(name="gone", action="deleted")
    handler.wait_finished(name="again", action="deleted")
    handler.wait_finished(name="again", action="reconcile", where=lambda run: run.object["spec"]["n"] == 2)
    settle(operator, handler, widgets)
    operator.stop()
    assert deleted(handler) == ["again", "gone"] and old is not None
    order = [run.body["action"] for run in handler.requests(name="again")]
    assert order == ["reconcile", "deleted", "reconcile"]


def take_away_the_ledger(operator):
    for path in operator.state_directory.glob("ledger.sqlite*"):
        path.unlink()


def corrupt_the_ledger(operator):
    (operator.state_directory / "ledger.sqlite").write_bytes(b"no database" * 1000)


def take_away_the_store(operator):
    shutil.rmtree(operator.state_directory / "store")


@pytest.mark.parametrize("lose", [take_away_the_store, take_away_the_ledger, corrupt_the_ledger], ids=lambda lose: lose.__name__)
def test_while_down_and_one_memory_is_lost(configured, handler, widgets, lose):
    """Each of the two knows it alone."""
    operator = configured()
    create_handled(operator, handler, widgets, ["gone", "kept"])
    operator.stop()
    widgets.delete("gone")
    lose(operator)
    operator.start_ready().wait_synced()
    handler.wait_finished(name="gone", action="deleted")
    settle(operator, handler, widgets)
    operator.stop()
    assert deleted(handler) == ["gone"]


def test_a_lost_ledger_and_one_more_restart(configured, handler, widgets):
    """What was not handed out again before the next end is still owed; once everything was, only that is."""
    operator = configured(concurrency=1)
    create_handled(operator, handler, widgets, ["blocks", "gone", "kept"])
    operator.stop()
    take_away_the_ledger(operator)
    handler.behave("sleep 1000")
    operator.start_ready().wait_synced()
    handler.wait_for(count=4)
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.assert_no_processes()
    handler.behave("exit 0")
    again = handler.requests()[-1].name
    gone = next(name for name in ("blocks", "gone") if name != again)
    widgets.delete(gone)
    operator.start_ready().wait_synced()
    handler.wait_finished(name=gone, action="deleted")
    settle(operator, handler, widgets)
    operator.stop()
    assert deleted(handler) == [gone]


# ---- none is invented

def is_list(request):
    """As LIST, or as a watch that begins with it."""
    return request.get("resource") == "widgets" and (request.get("verb") == "list" or "sendInitialEvents" in request["query"])


def lose_both(operator, **_):
    operator.stop()
    shutil.rmtree(operator.state_directory / "store")
    for path in operator.state_directory.glob("ledger.sqlite*"):
        path.unlink()
    operator.start_ready().wait_synced()


def lose_the_ledger(operator, **_):
    operator.stop()
    for path in operator.state_directory.glob("ledger.sqlite*"):
        path.unlink()
    operator.start_ready().wait_synced()


def narrow_the_namespaces(operator, configured, **_):
    operator.stop()
    configured(namespaces=["default"]).start_ready().wait_synced()


def narrow_the_pattern(operator, configured, **_):
    operator.stop()
    configured(namespaces=["def*"]).start_ready().wait_synced()


def select_by_field(operator, configured, **_):
    operator.stop()
    configured(fieldSelector="metadata.name=w0").start_ready().wait_synced()


def select_by_label(operator, configured, **_):
    operator.stop()
    configured(labelSelector="tier=gold").start_ready().wait_synced()


def reload_another_selection(operator, configured, **_):
    configured(labelSelector="tier=gold")
    operator.send_signal(signal.SIGHUP)
    wait_until(lambda: sum("READY" in told for told in operator.notifications) == 2, "the reload")


def relabel_all_while_down(operator, widgets, **_):
    operator.stop()
    for i in range(6):
        widgets.merge_patch(f"w{i}", {"metadata": {"labels": {"tier": "none"}}})
    operator.start_ready().wait_synced()


def forbid_the_list(operator, devserver, **_):
    """The store is lost as well, so that the list would be the only witness; then it comes, without the objects."""
    operator.stop()
    shutil.rmtree(operator.state_directory / "store")
    faults = [devserver.fault({"verb": verb, "resource": "widgets"}, status=403, times=0) for verb in ("list", "watch")]
    operator.start_ready()
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    for number in faults:
        devserver.clear_faults(number)
    operator.wait_synced()


def cut_the_list(operator, devserver, **_):
    operator.stop()
    shutil.rmtree(operator.state_directory / "store")
    numbers = [devserver.fault({"verb": "watch", "resource": "widgets"}, status=422),
               devserver.fault({"verb": "list", "resource": "widgets"}, atByte=900, close="cut")]
    operator.start_ready().wait_synced()
    assert devserver.faults()[numbers[1]]["hit"] == 1


def compact_and_relist(operator, devserver, **_):
    lists = len(devserver.requests(is_list))
    devserver.compact()
    number = devserver.fault({"verb": "watch", "resource": "widgets"}, status=410)
    devserver.close_watches("cut")
    wait_until(lambda: len(devserver.requests(is_list)) > lists, "the list")
    assert devserver.faults()[number]["hit"] == 1


def the_kind_is_away_for_a_while(operator, devserver, **_):
    number = devserver.fault({"resource": "widgets"}, status=404, times=0)
    devserver.close_watches("cut")
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    devserver.clear_faults(number)
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_RECOVERED"])


def an_empty_list(operator, devserver, **_):
    """An intermediary answers in the server's place, with nothing."""
    operator.stop()
    body = '{"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {}, "items": []}'
    numbers = [devserver.fault({"verb": "watch", "resource": "widgets"}, status=410, times=2),
               devserver.fault({"verb": "list", "resource": "widgets"}, status=200, body=body, contentType="application/json")]
    operator.start_ready()
    operator.wait_synced()
    assert [devserver.faults()[number]["hit"] for number in numbers] == [2, 1]


WIDGETS = [f"w{i}" for i in range(6)]
ALL = {"other/elsewhere", *(f"default/{name}" for name in WIDGETS)}
# What each of them takes out of the selection.
CASES = {lose_both: set(), lose_the_ledger: set(), narrow_the_namespaces: {"other/elsewhere"},
         narrow_the_pattern: {"other/elsewhere"}, select_by_field: ALL - {"default/w0"}, select_by_label: ALL,
         reload_another_selection: ALL, relabel_all_while_down: ALL - {"other/elsewhere"}, forbid_the_list: set(), cut_the_list: set(),
         compact_and_relist: set(), the_kind_is_away_for_a_while: set(), an_empty_list: set()}


def look_around(operator, handler, widgets, number, kept):
    """Until it owes these and no others, is done with a change that comes now, and is busy with nothing."""
    def owed():
        return {key for key, in ledger.read(operator, "SELECT key FROM ledger")}

    wait_until(lambda: owed() == kept, lambda: f"the ledger to have {kept}; it has {owed()}")
    widgets.merge_patch("w0", {"metadata": {"labels": {"tier": "gold"}}, "spec": {"n": number}})
    handler.wait_finished(name="w0", where=lambda run: run.object["spec"]["n"] == number)
    wait_until(lambda: all(worker["state"] == "idle" for worker in operator.ctl.status()["workers"]), "idle workers")
    wait_until(lambda: owed() == kept | {"default/w0"}, lambda: f"the ledger to have {kept} and w0; it has {owed()}")


@pytest.mark.parametrize("happens", CASES, ids=lambda case: case.__name__)
def test_none_is_invented(devserver, configured, handler, widgets, api, happens):
    api.resource("v1", "namespaces").create("other")
    other = api.resource("example.com/v1", "widgets", "other")
    labelled = happens in (select_by_label, reload_another_selection, relabel_all_while_down)
    operator = configured(**({"labelSelector": "tier in (gold, silver)"} if labelled else {}))
    labels = {"labels": {"tier": "silver"}} if labelled else {}
    other.create("elsewhere", spec={}, **labels)
    create_handled(operator, handler, widgets, WIDGETS, **labels)
    handler.wait_finished(name="elsewhere")
    happens(operator=operator, devserver=devserver, configured=configured, widgets=widgets)
    for key in CASES[happens]:
        operator.wait_for_log("is no longer selected", key=key)
    look_around(operator, handler, widgets, 2, ALL - CASES[happens])
    operator.stop()
    operator.start_ready().wait_synced()
    look_around(operator, handler, widgets, 3, ALL - CASES[happens] | {"default/w0"})
    assert not operator.logs(lambda record: "no longer selected" in record["message"])
    operator.stop()
    assert deleted(handler) == []
