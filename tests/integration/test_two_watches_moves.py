# SPDX-License-Identifier: Apache-2.0
"""An object that goes to another watch of its kind while a run of it is under way, or while nobody looks."""
import json
import pathlib
import signal

import pytest

from harness import wait_until, watch
from harness.twins import GOLD, SILVER, Twins


def child(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "other"}, "data": {"a": "1"}}


def behave(handler, suffix, before=":"):
    handler.behave(f"""{before}
[ "$RECONCILED_ACTION" != reconcile ] || sed "s/NAME/$RECONCILED_NAME/g" <<'END'
{json.dumps({"children": [child("NAME-both"), child("NAME-" + suffix)]})}
END""")


@pytest.fixture
def twins(devserver, operator, make_handler, widgets):
    twins = Twins(devserver, operator, make_handler, widgets)
    devserver.api.resource("v1", "namespaces").create("other")
    twins.other = devserver.api.resource("v1", "configmaps", "other")
    behave(twins.gold, "g")
    behave(twins.silver, "s")
    return twins


def children(twins, name="w"):
    return {child for child in twins.other.names() if child.startswith(f"{name}-")}


def is_golds(twins, name="w", kept=()):
    """kept: of the children that silver has made while it had the object."""
    return twins.finalizers(name) == [GOLD] and children(twins, name) == {f"{name}-both", f"{name}-g", *kept}


def is_silvers(twins, name="w", kept=()):
    return twins.finalizers(name) == [SILVER] and children(twins, name) == {f"{name}-both", f"{name}-s", *kept}


def seen(twins, name="w"):
    return lambda: f"{twins.widgets.exists(name) and twins.metadata(name)} {twins.other.names()}\n{twins.operator.ctl.run('status').stdout}"


def goes(twins, name="w"):
    twins.widgets.delete(name)
    wait_until(lambda: not twins.widgets.exists(name), seen(twins, name))
    wait_until(lambda: not children(twins, name), seen(twins, name))


def runs_silver_until_told(twins):
    """A run of silver that has begun before the move, and ends when the file that is returned exists."""
    twins.start_by_tier()
    twins.widgets.create("w", labels={"tier": "silver"})
    wait_until(lambda: is_silvers(twins), seen(twins))
    twins.rests()
    go = twins.silver.folder / "go"
    behave(twins.silver, "s", f"while [ ! -e {go} ]; do sleep 0.02; done")
    twins.widgets.merge_patch("w", {"spec": {"n": 2}})
    twins.silver.wait_for(name="w", count=2)
    return go


@pytest.mark.parametrize("end", ["moves", "moves and is deleted", "moves and is made anew"])
def test_a_run_that_ends_after_the_move_leaves_no_child(twins, end):
    go = runs_silver_until_told(twins)
    twins.relabel("gold")
    twins.operator.wait_for_log("is no longer selected by watch silver", key=f"{twins.widgets.namespace}/w")
    for name in "xy":  # what is of gold alone is not held up
        twins.widgets.create(name, labels={"tier": "gold"})
        wait_until(lambda: is_golds(twins, name), seen(twins, name))
    if end != "moves":
        twins.widgets.delete("w")
    go.touch()
    if end == "moves":
        wait_until(lambda: is_golds(twins, kept=["w-s"]), seen(twins))
        twins.rests()
        goes(twins)
    else:
        wait_until(lambda: not twins.widgets.exists("w"), seen(twins))
        twins.rests()
        wait_until(lambda: not children(twins), seen(twins))
    if end == "moves and is made anew":
        twins.widgets.create("w", labels={"tier": "gold"})
        wait_until(lambda: is_golds(twins), seen(twins))
        twins.rests()
        assert is_golds(twins), twins.other.names()
        goes(twins)
    twins.operator.stop()


def test_the_other_watch_waits_for_the_run_that_is_under_way(twins):
    go = runs_silver_until_told(twins)
    twins.relabel("gold")
    twins.widgets.create("x", labels={"tier": "gold"})  # what is of gold alone is not held up
    wait_until(lambda: is_golds(twins, "x"), seen(twins, "x"))
    assert not twins.gold.requests(name="w")
    go.touch()
    twins.gold.wait_for(name="w")
    wait_until(lambda: is_golds(twins, kept=["w-s"]), seen(twins))
    ended = next(request for request in reversed(twins.silver.requests(name="w")) if request.body["action"] == "reconcile")
    assert twins.gold.requests(name="w")[0].started >= ended.started
    twins.operator.stop()


def watcher_of(twins, name):
    """The watcher that keeps the store of that watch."""
    def has_store(process):
        return any(name in str(entry.readlink()) for entry in process_folder(process).iterdir() if entry.is_symlink())

    found = [process for process in twins.operator.children("watcher") if has_store(process)]
    assert len(found) == 1, found
    return found[0]


def process_folder(process):
    return pathlib.Path(f"/proc/{process.pid}/fd")


@pytest.mark.parametrize("end", ["moves", "is made anew"])
def test_a_run_of_a_watch_that_has_not_heard_of_the_move_leaves_no_child(twins, end):
    """silver's watcher stands still: nobody has told silver that it has lost the object."""
    go = runs_silver_until_told(twins)
    silver = watcher_of(twins, "silver")
    silver.kill(signal.SIGSTOP)
    try:
        twins.relabel("gold")
        if end == "is made anew":
            twins.widgets.merge_patch("w", {"metadata": {"finalizers": None}})
            twins.widgets.delete("w")
            twins.widgets.create("w", labels={"tier": "gold"})
        twins.other.delete("w-s")
        go.touch()
        wait_until(lambda: twins.silver.requests(name="w")[-1].exit_code is not None, "the end of silver's handler")
        wait_until(lambda: "w-g" in children(twins), seen(twins))
    finally:
        silver.kill(signal.SIGCONT)
    wait_until(lambda: is_golds(twins, kept=["w-s"] if end == "moves" else []), seen(twins))
    twins.rests()
    goes(twins)
    twins.operator.stop()


@pytest.mark.parametrize("killed", [False, True], ids=["", "killed"])
def test_an_object_that_comes_back_unseen_runs_again(twins, killed):
    """It goes to gold and comes back while silver's watcher sees nothing of it."""
    twins.start_by_tier()
    twins.widgets.create("w", labels={"tier": "silver"})
    wait_until(lambda: is_silvers(twins), seen(twins))
    twins.rests()
    silver = watcher_of(twins, "silver")
    silver.kill(signal.SIGSTOP)
    try:
        twins.relabel("gold")
        wait_until(lambda: twins.finalizers() == [GOLD, SILVER] and "w-g" in children(twins), seen(twins))
        twins.rests()
        assert len(twins.silver.requests()) == 1
        twins.relabel("silver")
        wait_until(lambda: twins.finalizers() == [SILVER], seen(twins))
        if killed:
            twins.operator.send_signal(signal.SIGKILL)
            twins.operator.wait_exit(expect=-signal.SIGKILL)
    finally:
        silver.kill(signal.SIGCONT)
    if killed:
        twins.operator.start_ready()
    # The kill may have cut one off already.
    wait_until(lambda: any(request.exit_code == 0 for request in twins.silver.requests(name="w", action="reconcile")[1:]), seen(twins))
    wait_until(lambda: is_silvers(twins, kept=["w-g"]), seen(twins))
    goes(twins)
    twins.operator.stop()


def test_a_watch_that_is_brought_back_lets_go_of_what_has_moved(twins):
    """What silver had made is cleaned up by gold, which is the last to have the object."""
    both = {"finalizer": True, "retry": {"first": "50ms", "max": "100ms"}}
    gold = watch("gold", twins.gold, labelSelector="tier=gold", **both)
    silver = watch("silver", twins.silver, id="silver", labelSelector="tier=silver", **both)
    twins.operator.configure(twins.server, [gold, silver])
    twins.operator.start_ready().wait_synced()
    twins.widgets.create("w", labels={"tier": "silver"})
    wait_until(lambda: is_silvers(twins), seen(twins))
    twins.rests()
    twins.operator.stop()
    twins.operator.configure(twins.server, [gold])
    twins.operator.start_ready().wait_synced()
    twins.relabel("gold")
    wait_until(lambda: GOLD in twins.finalizers() and "w-g" in children(twins), seen(twins))
    twins.rests()
    twins.operator.stop()
    twins.operator.configure(twins.server, [gold, silver])
    twins.operator.start_ready()
    wait_until(lambda: is_golds(twins, kept=["w-s"]), seen(twins))
    goes(twins)
    twins.operator.stop()
