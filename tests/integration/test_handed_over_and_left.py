# SPDX-License-Identifier: Apache-2.0
"""An object passes through a watch before that watch's handler has run for it: the finalizer that was handed over with it goes again."""
import signal

import pytest

from harness import wait_until
from harness.twins import GOLD, SILVER, Twins


@pytest.fixture
def twins(devserver, operator, make_handler, widgets):
    return Twins(devserver, operator, make_handler, widgets)


def objects(twins, name="gold"):
    return next(entry for entry in twins.operator.ctl.status()["watches"] if entry["name"] == name)["objects"]


def is_silvers(twins, widgets, **more):
    widgets.create("w", labels={"tier": "silver"}, **more)
    wait_until(lambda: twins.finalizers() == [SILVER], "silver's finalizer")
    twins.silver.wait_finished(name="w")


def goes_on(twins, widgets, deleted, name="gold"):
    """What the paused watch owes to the object may be done, and is."""
    if deleted:
        widgets.delete("w")
    (twins.gold.folder / "gate").touch()
    assert twins.operator.ctl.run("resume", name).returncode == 0
    if deleted:
        wait_until(lambda: not widgets.exists("w"), lambda: f"its end: {twins.metadata()}", 60)
    else:
        wait_until(lambda: twins.finalizers() == [], lambda: f"no finalizer: {twins.metadata()}", 60)


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("held", ["by a pause", "by a run of another object"])
def test_it_leaves_before_its_first_run(twins, widgets, operator, held, deleted):
    gate = twins.gold.folder / "gate"
    twins.gold.behave(f"[ $RECONCILED_NAME != busy ] || while [ ! -e {gate} ]; do sleep 0.02; done")
    twins.start_by_tier(concurrency=1)
    if held == "by a pause":
        assert operator.ctl.run("pause", "gold").returncode == 0
        others = 0
    else:
        widgets.create("busy", labels={"tier": "gold"})
        twins.gold.wait_for(name="busy")
        others = 1
    is_silvers(twins, widgets)
    twins.relabel("gold")
    wait_until(lambda: twins.finalizers() == [GOLD], "gold's finalizer")
    twins.relabel("none")
    wait_until(lambda: objects(twins) == others, "gold to hear of it")
    goes_on(twins, widgets, deleted)
    twins.rests()
    assert [request.body["action"] for request in twins.gold.requests(name="w")] == (["finalize"] if deleted else [])
    operator.stop()


@pytest.mark.parametrize("deleted", [False, True])
def test_it_leaves_before_the_end_of_the_hand_over_is_heard(twins, widgets, operator, deleted):
    """News of the watcher and of the worker come by channels of their own, in any order."""
    gate = twins.silver.folder / "gate"
    twins.silver.behave(f"[ $RECONCILED_ACTION != unselected ] || while [ ! -e {gate} ]; do sleep 0.02; done")
    twins.start_by_tier(unselected=True)
    is_silvers(twins, widgets)
    assert operator.ctl.run("pause", "gold").returncode == 0
    twins.relabel("gold")
    twins.silver.wait_for(name="w", action="unselected")
    wait_until(lambda: objects(twins) == 1, "gold to hear of it")
    operator.send_signal(signal.SIGSTOP)
    gate.touch()
    wait_until(lambda: twins.finalizers() == [GOLD], "gold's finalizer")
    twins.relabel("none")
    operator.send_signal(signal.SIGCONT)
    wait_until(lambda: objects(twins) == 0, "gold to hear of that as well")
    goes_on(twins, widgets, deleted)
    operator.stop()


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("history", ["kept", "lost"])
def test_it_leaves_when_a_kill_has_cut_the_hand_over_off(twins, widgets, operator, devserver, history, deleted):
    """The server has carried the patch out, and the operator has not heard of that."""
    gate = twins.gold.folder / "gate"
    twins.gold.behave(f"[ $RECONCILED_ACTION != unselected ] || while [ ! -e {gate} ]; do sleep 0.02; done")
    twins.start_by_tier(unselected=True)
    widgets.create("w", labels={"tier": "gold"})
    wait_until(lambda: twins.finalizers() == [GOLD], "gold's finalizer")
    twins.gold.wait_finished(name="w")
    assert operator.ctl.run("pause", "silver").returncode == 0
    twins.relabel("silver")
    twins.gold.wait_for(name="w", action="unselected")
    wait_until(lambda: objects(twins, "silver") == 1, "silver to hear of it")
    fault = devserver.fault(match={"verb": "patch", "resource": "widgets", "name": "w"}, hang=True, times=0)
    gate.touch()
    wait_until(lambda: devserver.faults()[fault]["hit"] > 0, "the patch that hands it over")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    devserver.clear_faults(fault)
    widgets.merge_patch("w", {"metadata": {"finalizers": [SILVER]}})
    twins.relabel("none")
    if history == "lost":
        devserver.compact()
    operator.start_ready().wait_synced()
    goes_on(twins, widgets, deleted, "silver")
    operator.stop()
