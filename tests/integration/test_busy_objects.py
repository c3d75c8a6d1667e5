# SPDX-License-Identifier: Apache-2.0
"""Objects that others write to while their handler runs: nothing of its answer is thrown away for that, and nothing of theirs
is undone or hidden."""
import pytest

from harness import wait_until, watch
from harness.busy import (BUSY, CONTENT, change_while_the_handler_runs, conditions, finalize_in_spite_of_heartbeats, is_gone,
                          is_ready, run_in_spite_of_heartbeats)


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        operator.start_ready().wait_synced()
        return operator

    return start


@pytest.fixture
def gate(handler):
    """gate(action, answer): a handler that answers so once it is let go; gate.open()."""
    class Gate:
        def __call__(self, action, answer="exit 0"):
            handler.behave(f"""[ "$RECONCILED_ACTION" != {action} ] || {handler.held}
[ "$RECONCILED_ACTION" != reconcile ] || {answer}""")

        def open(self):
            handler.let_go()

    return Gate()


@pytest.mark.slow
def test_a_run_in_spite_of_heartbeats(start, handler, widgets, config_maps):
    run_in_spite_of_heartbeats(start, handler, widgets, config_maps)


def test_finalize_in_spite_of_heartbeats(start, handler, widgets, config_maps):
    finalize_in_spite_of_heartbeats(start, handler, widgets, config_maps)


@pytest.mark.parametrize("trigger", ["essence", {"jq": ".spec.size"}])
@pytest.mark.slow
def test_a_change_among_heartbeats_is_not_hidden(start, handler, widgets, config_maps, trigger):
    change_while_the_handler_runs(start, handler, widgets, config_maps, trigger=trigger)


def test_others_conditions_and_finalizers_are_kept(start, handler, widgets, gate):
    gate("reconcile", f"{CONTENT} w-child 1 1")
    operator = start(**BUSY)
    widgets.create("w")
    handler.wait_for(name="w")
    alive = {"type": "Alive", "status": "True", "reason": "Beats", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}
    widgets.merge_patch("w", {"status": {"conditions": [alive]}}, "status")
    gate.open()
    wait_until(lambda: is_ready(widgets, "w"), "Ready")
    assert conditions(widgets, "w")["Alive"] == alive and set(conditions(widgets, "w")) == {"Alive", "Made", "Ready"}
    operator.stop()
    assert len(handler.requests(name="w")) == 1


def test_a_finalizer_that_others_took_off_meanwhile_stays_off(start, handler, widgets, gate):
    gate("finalize")
    operator = start(**BUSY)
    widgets.create("w", metadata={"finalizers": ["example.org/theirs"]})
    wait_until(lambda: is_ready(widgets, "w"), "Ready")
    widgets.delete("w")
    handler.wait_for(action="finalize")
    ours = [name for name in widgets.get("w")["metadata"]["finalizers"] if name != "example.org/theirs"]
    widgets.merge_patch("w", {"metadata": {"finalizers": ours}})
    gate.open()
    wait_until(lambda: is_gone(widgets, "w"), "the end of it")
    operator.stop()
    assert len(handler.requests(action="finalize")) == 1


def test_nothing_is_made_for_what_is_being_deleted_meanwhile(start, handler, widgets, config_maps, gate, devserver):
    gate("reconcile", f"{CONTENT} w-child 1 1")
    operator = start(**BUSY)
    widgets.create("w")
    handler.wait_for(name="w")
    widgets.delete("w")
    gate.open()
    wait_until(lambda: is_gone(widgets, "w"), "the end of it")
    operator.stop()
    assert not [each for each in devserver.requests() if each["verb"] == "patch" and each["resource"] == "configmaps"]


def test_the_handlers_own_patch_is_for_what_it_has_seen(start, handler, widgets, gate):
    gate("reconcile", """printf '{"patch": {"spec": {"seen": true}}}'""")
    operator = start(**BUSY)
    widgets.create("w")
    handler.wait_for(name="w")
    widgets.merge_patch("w", {"status": {"beat": 1}}, "status")
    gate.open()
    wait_until(lambda: widgets.get("w").get("spec", {}).get("seen"), "its patch")
    operator.stop()
    assert [each.body["reason"] for each in handler.requests(name="w")] == ["added", "conflict"]


def test_a_conflict_for_ever_is_told(start, handler, widgets, devserver, gate):
    """A webhook that says 409 to everything: the tries are few, and then it is a conflict."""
    handler.answer({"status": {"seen": True}})
    operator = start(finalizer=True, retry={"first": "50ms", "max": "100ms", "attempts": 2})
    devserver.fault(match={"verb": "patch", "resource": "widgets"}, times=0, status=409, reason="Conflict")
    widgets.create("w")
    operator.wait_for_log("the object changed while the handler ran", key="default/w")
    patches = [each for each in devserver.requests() if each["verb"] == "patch" and each["resource"] == "widgets"]
    assert 11 < len(patches) <= 55, f"11 a run: {len(patches)}"
    operator.stop()
