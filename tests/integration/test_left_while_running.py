# SPDX-License-Identifier: Apache-2.0
"""An object that leaves the selection while its run is under way leaves nothing behind: no row, no failure, no false deletion."""
import signal

import pytest

from harness import ledger, wait_until, watch

FINALIZER = "widgets.example.com/finalizer"
ENDINGS = ["exit 0", "exit 75", "exit 65", "echo '{\"requeueAfter\":\"1h\"}'"]


@pytest.fixture
def running(devserver, operator, handler, widgets):
    """`a` is selected, and its first or a later run has begun; it ends in the way that is asked for once it may go on."""
    def running(ending, handled_before=False, **more):
        operator.configure(devserver, [watch("widgets", handler, labelSelector="tier=gold",
                                             retry={"first": "10ms", "max": "100ms"}, **more)])
        operator.start_ready().wait_synced()
        if handled_before:
            widgets.create("a", labels={"tier": "gold"})
            handler.wait_finished(name="a")
            wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "the end of the first run")
        handler.behave(f"""[ $RECONCILED_ACTION = reconcile ] || exit 0
{handler.held}
{ending}""")
        if handled_before:
            widgets.merge_patch("a", {"spec": {"size": 2}})
        else:
            widgets.create("a", labels={"tier": "gold"})
        handler.wait_for(name="a", count=1 + handled_before)

    return running


def relabel(widgets, tier):
    widgets.merge_patch("a", {"metadata": {"labels": {"tier": tier}}})


def go_on(handler):
    handler.let_go()


def leave(operator, widgets):
    relabel(widgets, "iron")
    operator.wait_for_log("is no longer selected", key="default/a")


def is_at_rest(operator):
    [status] = operator.ctl.status()["watches"]
    return status["running"] == status["queued"] == status["waiting"] == 0


def nothing_is_left(operator, handler, widgets, actions):
    wait_until(lambda: is_at_rest(operator), "the end of the run")
    assert ledger.read(operator, "SELECT * FROM ledger WHERE key = 'default/a'") == []
    [status] = operator.ctl.status()["watches"]
    assert status["failed"] == 0
    explained = operator.ctl.run("explain", "widgets", "default/a").stdout
    assert "the watch does not know it" in explained, explained
    for number in (signal.SIGTERM, signal.SIGKILL):
        operator.send_signal(number)
        operator.wait_exit(expect=0 if number == signal.SIGTERM else -number)
        operator.start_ready().wait_synced()
        name = f"behind-{number}"
        go_on(handler)
        widgets.create(name, labels={"tier": "gold"})
        handler.wait_finished(name=name)
    operator.stop()
    assert [request.body["action"] for request in handler.requests(name="a")] == actions


@pytest.mark.parametrize("handled_before", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_ghost_is_left(running, operator, handler, widgets, ending, handled_before):
    running(ending, handled_before)
    leave(operator, widgets)
    go_on(handler)
    operator.wait_for_log("after the object had left the selection", key="default/a")
    nothing_is_left(operator, handler, widgets, ["reconcile"] * (1 + handled_before))


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_is_told_once_its_run_is_over(running, operator, handler, widgets, ending):
    running(ending, unselected=True)
    leave(operator, widgets)
    go_on(handler)
    told = handler.wait_finished(name="a", action="unselected")
    assert told.body["attempt"] == 1, "the failure of another run is none of its own"
    wait_until(lambda: not ledger.read(operator, "SELECT * FROM ledger WHERE key = 'default/a'"), "its end")
    nothing_is_left(operator, handler, widgets, ["reconcile", "unselected"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_our_finalizer_is_taken_off_all_the_same(running, operator, handler, widgets, ending):
    running(ending, finalizer=True)
    wait_until(lambda: widgets.get("a")["metadata"].get("finalizers") == [FINALIZER], "our finalizer")
    leave(operator, widgets)
    go_on(handler)
    wait_until(lambda: not widgets.get("a")["metadata"].get("finalizers"), "its end")
    wait_until(lambda: not ledger.read(operator, "SELECT * FROM ledger WHERE key = 'default/a'"), "the end of its row")
    nothing_is_left(operator, handler, widgets, ["reconcile"])


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("ending", ["exit 0", "exit 75"])
def test_it_is_selected_again_before_its_run_is_over(running, operator, handler, widgets, ending, told):
    """It is one of ours again, and its deletion is owed."""
    running(ending, unselected=told)
    leave(operator, widgets)
    relabel(widgets, "gold")
    widgets.create("behind", labels={"tier": "gold"})
    handler.wait_for(name="behind")
    handler.behave("exit 0")
    go_on(handler)
    wait_until(lambda: is_at_rest(operator), "the end of all runs")
    [(fingerprint, attempts)] = ledger.read(operator, "SELECT fingerprint, attempts FROM ledger WHERE key = 'default/a'")
    assert fingerprint != 0 and attempts == 0
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    operator.stop()
    assert "unselected" not in [request.body["action"] for request in handler.requests(name="a")]
