# SPDX-License-Identifier: Apache-2.0
"""A watch's finalizer is switched off while an object that has left the selection still has it: it is taken off, and the end is told."""
import signal

import pytest

from harness import ledger, wait_until, watch

FAILS = '[ "$RECONCILED_ACTION" != finalize ] || exit 75'


@pytest.fixture
def configure(devserver, operator, handler):
    def configure(finalizer, others=(), **more):
        operator.configure(devserver, [watch("widgets", handler, labelSelector="tier=gold", finalizer=finalizer,
                                             retry={"first": "20ms", "max": "100ms"}, **more), *others])

    return configure


def finalizers(widgets):
    return widgets.get("w")["metadata"].get("finalizers")


def leave(operator, widgets):
    widgets.merge_patch("w", {"metadata": {"labels": {"tier": "none"}}})
    wait_until(lambda: operator.ctl.status()["watches"][0]["objects"] == 0, "it to have left")


def leaves_while_it_is_finalized(operator, handler, widgets, **more):
    handler.behave(FAILS)
    operator.start_ready().wait_synced()
    widgets.create("w", labels={"tier": "gold"}, **more)
    handler.wait_finished(name="w")
    widgets.delete("w")
    handler.wait_finished(name="w", action="finalize")
    leave(operator, widgets)
    handler.wait_finished(name="w", action="finalize", where=lambda run: run.body["reason"] == "unselected")


def take(operator, how):
    if how == "reload":
        operator.reload()
    elif how == "restart":
        operator.stop()
        operator.start_ready().wait_synced()
    else:
        operator.send_signal(signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
        operator.start_ready().wait_synced()


def its_end_is_told(operator, handler, widgets):
    wait_until(lambda: not widgets.exists("w"), lambda: f"its end: {finalizers(widgets)}", 60)
    told = wait_until(lambda: [run for run in handler.requests(name="w", action="deleted") if run.exit_code == 0],
                      lambda: f"its cleanup to be told: {handler.requests()}", 60)
    wait_until(lambda: ledger.read(operator, "SELECT * FROM ledger WHERE key = 'default/w'") == [], "the end of its row")
    assert len(told) == 1
    operator.stop()


@pytest.mark.parametrize("how", ["reload", "restart", "kill"])
def test_it_is_being_deleted_and_its_cleanup_has_failed_so_far(configure, operator, handler, widgets, how):
    configure(True)
    leaves_while_it_is_finalized(operator, handler, widgets)
    configure(False)
    take(operator, how)
    its_end_is_told(operator, handler, widgets)
    [told] = handler.requests(name="w", action="deleted")
    assert told.body["object"]["metadata"]["labels"] == {"tier": "none"}, "with its last content"


@pytest.mark.parametrize("then", ["it is tried again", "the operator is killed first"])
@pytest.mark.parametrize("held", [False, True])
def test_the_handler_fails_at_the_end_as_well(configure, operator, handler, widgets, held, then):
    """Our finalizer is off by then; that of others may still be on."""
    configure(True)
    leaves_while_it_is_finalized(operator, handler, widgets, **({"finalizers": ["example.com/other"]} if held else {}))
    handler.behave("exit 75")
    configure(False)
    take(operator, "restart")
    handler.wait_finished(name="w", action="deleted", count=2)
    if then == "the operator is killed first":
        take(operator, "kill")
    handler.behave("exit 0")
    if held:
        assert finalizers(widgets) == ["example.com/other"]
        wait_until(lambda: [run for run in handler.requests(name="w", action="deleted") if run.exit_code == 0], "its cleanup", 60)
        widgets.merge_patch("w", {"metadata": {"finalizers": None}})
    its_end_is_told(operator, handler, widgets)


@pytest.mark.parametrize("how", ["reload", "restart", "kill"])
def test_it_is_not_being_deleted(configure, operator, handler, widgets, how):
    configure(True)
    operator.start_ready().wait_synced()
    widgets.create("w", labels={"tier": "gold"})
    handler.wait_finished(name="w")
    assert operator.ctl.run("pause", "widgets").returncode == 0
    leave(operator, widgets)
    configure(False)
    take(operator, how)
    assert operator.ctl.run("resume", "widgets").returncode == 0
    wait_until(lambda: not finalizers(widgets), lambda: f"no finalizer: {finalizers(widgets)}", 60)
    operator.stop()
    assert [run.body["action"] for run in handler.requests(name="w")] == ["reconcile"], "what is not asked for is not told"


@pytest.mark.parametrize("selection", [{}, {"labelSelector": "tier=iron"}])
def test_it_leaves_while_the_operator_is_down(configure, operator, handler, widgets, devserver, selection):
    configure(True)
    operator.start_ready().wait_synced()
    widgets.create("w", labels={"tier": "gold"})
    handler.wait_finished(name="w")
    operator.stop()
    if selection:
        operator.configure(devserver, [watch("widgets", handler, **selection)])
    else:
        widgets.merge_patch("w", {"metadata": {"labels": {"tier": "none"}}})
        configure(False)
    operator.start_ready().wait_synced()
    wait_until(lambda: not finalizers(widgets), lambda: f"no finalizer: {finalizers(widgets)}", 60)
    operator.stop()
    assert [run.body["action"] for run in handler.requests(name="w")] == ["reconcile"]


@pytest.mark.parametrize("how", ["reload", "restart"])
def test_one_of_two_watches(configure, make_handler, operator, handler, widgets, how):
    silver = watch("other", make_handler(), labelSelector="tier=silver", id="silver", finalizer=True)
    configure(True, [silver])
    leaves_while_it_is_finalized(operator, handler, widgets)
    configure(False, [silver])
    take(operator, how)
    its_end_is_told(operator, handler, widgets)
