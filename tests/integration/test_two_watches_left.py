# SPDX-License-Identifier: Apache-2.0
"""An object leaves a watch for another one of its kind that has not run for it: the watch that it has left holds it, and owes its end,
until the other one does so, or none selects it."""
import json
import signal
import time
from pathlib import Path

import pytest

from harness import ledger, wait_until
from harness.twins import GOLD, SILVER, Twins, child


@pytest.fixture
def twins(devserver, operator, make_handler, widgets):
    return Twins(devserver, operator, make_handler, widgets)


def actions(handler):
    return [request.body["action"] for request in handler.requests(name="w") if request.exit_code == 0]


def is_told(handler, action):
    wait_until(lambda: action in actions(handler), lambda: f"{action}: {actions(handler)}", 60)


def is_silvers(twins, **more):
    twins.widgets.create("w", labels={"tier": "silver"}, **more)
    twins.silver.wait_finished(name="w")
    wait_until(lambda: twins.operator.ctl.status()["watches"][1]["running"] == 0, "silver to be at rest")


def waits(twins, key="default/w", watch="silver"):
    wait_until(lambda: "another watch of its kind selects it, and has not run yet" in twins.operator.ctl.run("explain", watch, key).stdout,
               lambda: twins.operator.ctl.run("explain", watch, key).stdout)


def kill(operator):
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.start_ready().wait_synced()


def test_it_is_held_if_it_comes_back_while_it_waits(twins, widgets, operator, devserver):
    """Its watcher hears of that a moment late; the run that looks again sees it first."""
    def looks():
        return len(devserver.requests(lambda request: request.get("verb") == "get" and request.get("name") == "w" and
                                      "worker" in request.get("user_agent", "")))

    def has_rested():
        silver = operator.ctl.status()["watches"][1]
        return silver["queued"] + silver["running"] == 0

    twins.start_by_tier()
    is_silvers(twins)
    assert operator.ctl.run("pause", "gold").returncode == 0
    twins.relabel("gold")
    waits(twins)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 1 and has_rested(), lambda: operator.ctl.status()["watches"])
    [watcher] = [process for process in operator.children("watcher")
                 if any("/silver/" in str(entry.readlink()) for entry in Path(f"/proc/{process.pid}/fd").iterdir())]
    watcher.kill(signal.SIGSTOP)
    before = looks()
    twins.relabel("silver")
    wait_until(lambda: looks() > before, "it to look again")
    wait_until(has_rested, lambda: operator.ctl.status()["watches"])
    assert twins.finalizers() == [SILVER]
    watcher.kill(signal.SIGCONT)
    widgets.delete("w")
    is_told(twins.silver, "finalize")
    operator.stop()


@pytest.mark.parametrize("then", ["it leaves that one too", "it is deleted", "that one runs"])
@pytest.mark.parametrize("held", ["by a pause", "by a pause, and the operator is killed", "by a run of another object"])
def test_it_is_held_until_the_other_watch_runs(twins, widgets, operator, held, then):
    gate = twins.gold.folder / "gate"
    twins.gold.behave(f"[ $RECONCILED_NAME != busy ] || while [ ! -e {gate} ]; do sleep 0.02; done")
    twins.start_by_tier(concurrency=1)
    if "pause" in held:
        assert operator.ctl.run("pause", "gold").returncode == 0
    else:
        widgets.create("busy", labels={"tier": "gold"})
        twins.gold.wait_for(name="busy")
    is_silvers(twins)
    version = twins.relabel("gold")["metadata"]["resourceVersion"]
    waits(twins)
    if "killed" in held:
        kill(operator)
        waits(twins)
    assert twins.finalizers() == [SILVER]
    if then == "it leaves that one too":
        twins.relabel("none")
        wait_until(lambda: twins.finalizers() == [], lambda: f"silver to let go: {twins.metadata()}", 60)
    elif then == "it is deleted":
        widgets.delete("w")
        wait_until(lambda: not widgets.exists("w"), lambda: f"its end: {twins.metadata()}", 60)
        assert actions(twins.silver)[-1] == "finalize"
    gate.touch()
    operator.ctl.run("resume", "gold")
    if then == "that one runs":
        wait_until(lambda: twins.finalizers() == [GOLD], lambda: f"gold's: {twins.metadata()}", 60)
        assert all(twins.history("w", version)), "one of both holds it at every moment"
    twins.rests()
    assert actions(twins.gold) == (["reconcile"] if then == "that one runs" else [])
    assert actions(twins.silver).count("finalize") == (then == "it is deleted")
    operator.stop()


@pytest.mark.parametrize("killed", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("unselected", [False, True], ids=["", "unselected"])
@pytest.mark.parametrize("how", ["the other watch is paused", "it is being deleted when it moves"])
def test_the_end_is_told_by_the_watch_that_handled_it_last(twins, widgets, operator, how, unselected, killed):
    """No watch wants finalizers; the other one never runs."""
    twins.start_by_tier(finalizer=False, unselected=unselected)
    is_silvers(twins, finalizers=["example.com/other"])
    if how == "the other watch is paused":
        assert operator.ctl.run("pause", "gold").returncode == 0
    else:
        widgets.delete("w")
    twins.relabel("gold")
    waits(twins)
    if killed:
        kill(operator)
        waits(twins)
    assert "deleted" not in actions(twins.silver)
    if how == "the other watch is paused":
        widgets.delete("w")
    widgets.merge_patch("w", {"metadata": {"finalizers": None}})
    is_told(twins.silver, "deleted")
    operator.ctl.run("resume", "gold")
    twins.rests()
    told = actions(twins.silver)
    assert told.count("deleted") == 1 and actions(twins.gold) == []
    assert told.count("unselected") == unselected, "however often it was looked at"
    operator.stop()


def test_the_end_is_told_by_the_other_watch_once_it_has_run(twins, widgets, operator):
    twins.start_by_tier(finalizer=False)
    is_silvers(twins)
    twins.relabel("gold")
    twins.gold.wait_finished(name="w")
    wait_until(lambda: not ledger.read(operator, "SELECT * FROM ledger WHERE watch = 'silver'"), "silver to let go", 60)
    widgets.delete("w")
    is_told(twins.gold, "deleted")
    twins.rests()
    assert actions(twins.silver) == ["reconcile"]
    operator.stop()


@pytest.mark.parametrize("finalizer", [False, True], ids=["", "finalizer"])
def test_a_watch_that_had_it_before_does_not_stand_in_for_the_one_that_ran_last(twins, widgets, operator, finalizer):
    """It goes to gold and comes back while silver is paused: gold has handled it since."""
    twins.start_by_tier(finalizer=finalizer)
    is_silvers(twins)
    assert operator.ctl.run("pause", "silver").returncode == 0
    twins.relabel("gold")
    operator.wait_for_log("is no longer selected by watch silver")
    twins.gold.wait_finished(name="w")
    twins.relabel("silver")
    operator.wait_for_log("is no longer selected by watch gold")
    waits(twins, watch="gold")
    widgets.delete("w")
    is_told(twins.gold, "finalize" if finalizer else "deleted")
    operator.stop()


def test_it_is_let_go_as_soon_as_the_other_watch_has_run(twins, widgets, operator):
    """However seldom it is looked at after a long wait."""
    twins.start_by_tier(finalizer=False)
    is_silvers(twins)
    assert operator.ctl.run("pause", "gold").returncode == 0
    twins.relabel("gold")
    waits(twins)
    operator.stop()
    with ledger.edit(operator) as database:
        database.execute("UPDATE ledger SET settling = 'left:1' WHERE watch = 'silver'")
    operator.start_ready().wait_synced()
    waits(twins)
    assert operator.ctl.run("resume", "gold").returncode == 0
    twins.gold.wait_finished(name="w")
    wait_until(lambda: not ledger.read(operator, "SELECT * FROM ledger WHERE watch = 'silver'"), "silver to let go", 10)
    widgets.delete("w")
    is_told(twins.gold, "deleted")
    twins.rests()
    assert actions(twins.silver) == ["reconcile"]
    operator.stop()


def lose_ledger(operator):
    for path in operator.state_directory.glob("ledger.sqlite*"):
        path.unlink()


def discard_state(operator):
    """As another release would have left it. The format is in both numbers (lib/ledger/database/ledger-schema.c)."""
    with ledger.edit(operator) as database:
        for name in ("user_version", "application_id"):
            [number] = database.execute(f"PRAGMA {name}").fetchone()
            database.execute(f"PRAGMA {name} = {number + 1}")
    operator.arguments.append("--discard-state")


@pytest.mark.parametrize("lose", [lose_ledger, discard_state])
@pytest.mark.parametrize("then", ["that one runs", "it leaves that one too", "it is deleted"])
def test_it_is_let_go_after_the_loss_of_the_ledger(twins, widgets, operator, then, lose):
    """silver does not select it, so neither its store nor a ledger knows of it: its finalizer is looked for."""
    twins.start_by_tier()
    is_silvers(twins)
    assert operator.ctl.run("pause", "gold").returncode == 0
    twins.relabel("gold")
    waits(twins)
    operator.stop()
    lose(operator)
    if then == "it leaves that one too":
        twins.relabel("none")
    elif then == "it is deleted":
        widgets.delete("w")
    operator.start_ready().wait_synced()
    if then == "it is deleted":
        wait_until(lambda: not widgets.exists("w"), lambda: f"its end: {twins.metadata()}")
        assert actions(twins.silver) == ["reconcile", "finalize"]
    else:
        left = [GOLD] if then == "that one runs" else []
        wait_until(lambda: twins.finalizers() == left, lambda: f"{left}: {twins.metadata()}")
    operator.stop()


HANG = {"heartbeat": {"interval": "50ms", "deadline": "1s"}}


@pytest.mark.quiet
@pytest.mark.slow
def test_a_filter_of_the_other_watch_that_never_ends_is_run_by_no_worker_when_it_leaves(twins, operator):
    """gold's watcher has died over the object, so it counts as selected there."""
    twins.settings = HANG
    twins.start({"filter": "def f: [range(100000)] | .[.]; if .metadata.labels.tier == \"gold\" then f else false end"}, {"labelSelector": "tier=silver"})
    is_silvers(twins)
    assert operator.ctl.run("pause", "silver").returncode == 0
    twins.relabel("gold")
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    assert operator.ctl.run("resume", "silver").returncode == 0
    wait_until(lambda: twins.finalizers() == [GOLD], lambda: f"gold's: {twins.metadata()}")
    operator.stop()


@pytest.mark.quiet
@pytest.mark.slow
def test_a_filter_of_the_other_watch_that_never_ends_is_run_by_no_worker_for_a_child(twins, widgets, operator):
    """Whose child it is depends on whether gold selects the object."""
    twins.settings = HANG
    twins.gold.answer({"children": [child("a")]})
    twins.start({"filter": "def f: [range(100000)] | .[.]; if .spec.poison then f else true end"})
    widgets.create("w")
    wait_until(lambda: twins.config_maps.exists("a"), "gold's child")
    twins.rests()
    assert operator.ctl.run("pause", "silver").returncode == 0
    twins.silver.answer({"children": [child("a")]})
    widgets.merge_patch("w", {"spec": {"poison": True}})
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    assert operator.ctl.run("resume", "silver").returncode == 0
    operator.wait_for_log("watch gold has it already", watch="silver", key="default/w")
    operator.stop()


@pytest.mark.quiet
@pytest.mark.slow
def test_many_that_wait_are_looked_at_seldom(twins, widgets, operator, devserver):
    """Each when it begins to wait, and then after ten seconds."""
    names = [f"w{number}" for number in range(40)]
    looks = []

    def looked():
        looks[:] = devserver.requests(lambda request: request.get("verb") == "get" and request.get("name") in names and
                                      "worker" in request.get("user_agent", ""))
        return len(looks)

    twins.start_by_tier(finalizer=False)
    for name in names:
        widgets.create(name, labels={"tier": "silver"})
    for name in names:
        twins.silver.wait_finished(name=name)
    twins.rests()
    assert operator.ctl.run("pause", "gold").returncode == 0
    before = looked()
    for name in names:
        twins.relabel("gold", name)
    for name in names:
        waits(twins, f"default/{name}")
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 5, "half of that time", 10)
    assert looked() - before <= 2 * len(names), "when it leaves, and when gold's watcher has news of it"
    operator.stop()


@pytest.mark.parametrize("finalizer", [False, True])
def test_children_go_with_it(twins, widgets, operator, devserver, finalizer):
    """Also those in other namespaces, which the server does not collect."""
    devserver.api.resource("v1", "namespaces").create("other")
    other = devserver.api.resource("v1", "configmaps", "other")
    wanted = child("far")
    wanted["metadata"]["namespace"] = "other"
    twins.silver.behave(f"[ $RECONCILED_ACTION != reconcile ] || echo '{json.dumps({'children': [wanted]})}'")
    twins.start_by_tier(finalizer=finalizer)
    is_silvers(twins)
    assert operator.ctl.run("pause", "gold").returncode == 0
    twins.relabel("gold")
    waits(twins)
    widgets.delete("w")
    is_told(twins.silver, "finalize" if finalizer else "deleted")
    wait_until(lambda: not other.exists("far"), "the end of the child", 60)
    operator.stop()


@pytest.mark.xdist_group("minute")
@pytest.mark.slow
def test_a_field_selector_counts_as_a_match_for_a_minute(twins, widgets, operator):
    """Only the API server can judge it, so the object is held as if gold selected it."""
    twins.start({"fieldSelector": "metadata.name=x"}, {"labelSelector": "tier=silver"})
    is_silvers(twins)
    twins.relabel("none")
    waits(twins)
    assert twins.finalizers() == [SILVER]
    wait_until(lambda: twins.finalizers() == [], lambda: f"silver to let go: {twins.metadata()}", 120)
    operator.stop()
