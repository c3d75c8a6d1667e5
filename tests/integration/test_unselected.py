# SPDX-License-Identifier: Apache-2.0
"""Objects that a watch has nothing to do with any more: never `deleted`; told to handlers that ask for it; and never held
by our finalizer."""
import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

FINALIZER = "widgets.example.com/finalizer"


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        if "filter" not in more:
            more["labelSelector"] = "tier=gold"
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator.start_ready().wait_synced()

    return start


def gold(widgets, name, **spec):
    return widgets.create(name, spec=spec, labels={"tier": "gold"})


def relabel(widgets, name, tier):
    widgets.merge_patch(name, {"metadata": {"labels": {"tier": tier}}})


def actions(handler, name):
    return [request.body["action"] for request in handler.requests(name=name)]


@pytest.mark.parametrize("selection", [{}, {"filter": ".metadata.labels.tier == \"gold\""}])
def test_it_is_told_with_the_object_as_it_is(start, operator, handler, widgets, selection):
    start(unselected=True, **selection)
    uid = gold(widgets, "a", size=1)["metadata"]["uid"]
    handler.wait_finished(name="a")
    handler.answer({"status": {"left": True}})
    relabel(widgets, "a", "iron")
    told = handler.wait_finished(name="a", action="unselected")
    assert told.metadata["uid"] == uid and told.metadata["labels"] == {"tier": "iron"}
    assert told.object["spec"] == {"size": 1} and told.body["reason"] == "unselected"
    wait_until(lambda: widgets.get("a").get("status") == {"left": True}, "the status")
    handler.answer({})
    relabel(widgets, "a", "gold")
    handler.wait_finished(name="a", count=3)
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    operator.stop()
    assert actions(handler, "a") == ["reconcile", "unselected", "reconcile", "deleted"]


@pytest.mark.parametrize("answer", [{}, {"children": []}])
def test_its_children_stay_unless_the_handler_answers_otherwise(start, operator, handler, widgets, api, answer):
    config_maps = api.resource("v1", "configmaps", "default")
    handler.answer({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}}]})
    start(unselected=True)
    gold(widgets, "a")
    wait_until(lambda: config_maps.exists("child"), "the child")
    handler.answer({**answer, "status": {"left": True}})
    relabel(widgets, "a", "iron")
    wait_until(lambda: widgets.get("a").get("status") == {"left": True}, "the status")
    assert config_maps.exists("child") == ("children" not in answer)
    assert ("widgets.example.com/children" in widgets.get("a")["metadata"].get("annotations", {})) == ("children" not in answer)
    operator.stop()


def test_nothing_is_told_where_it_was_not_asked_for(start, operator, handler, widgets):
    start()
    gold(widgets, "a")
    handler.wait_finished(name="a")
    relabel(widgets, "a", "iron")
    operator.wait_for_log("the watch forgets it", key="default/a")
    gold(widgets, "b")
    handler.wait_finished(name="b")
    operator.stop()
    assert actions(handler, "a") == ["reconcile"]


def test_it_is_tried_until_it_succeeds_also_across_restarts(start, operator, handler, widgets):
    start(unselected=True, retry={"first": "10ms", "max": "100ms"})
    gold(widgets, "a")
    handler.wait_finished(name="a")
    handler.behave('[ $RECONCILED_ACTION != unselected ]')
    relabel(widgets, "a", "iron")
    handler.wait_finished(name="a", action="unselected", count=2)
    operator.stop()
    handler.behave("exit 0")
    before = len(handler.requests(name="a", action="unselected"))
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a", action="unselected", count=before + 1)
    gold(widgets, "b")
    handler.wait_finished(name="b")
    operator.stop()
    assert actions(handler, "a") == ["reconcile"] + ["unselected"] * (before + 1)


def test_one_that_left_while_we_were_down(start, operator, handler, widgets):
    start(unselected=True)
    gold(widgets, "a")
    handler.wait_finished(name="a")
    operator.stop()
    relabel(widgets, "a", "iron")
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a", action="unselected")
    operator.stop()


def test_gone_before_it_was_told_it_comes_by_its_identity(start, operator, handler, widgets, devserver):
    start(unselected=True)
    uid = gold(widgets, "a", size=1)["metadata"]["uid"]
    handler.wait_finished(name="a")
    handler.behave('[ $RECONCILED_ACTION != unselected ]')
    relabel(widgets, "a", "iron")
    handler.wait_finished(name="a", action="unselected")
    widgets.delete("a")
    handler.behave("exit 0")
    last = handler.wait_finished(name="a", action="unselected", where=lambda request: request.exit_code == 0)
    assert last.metadata["uid"] == uid and "spec" not in last.object
    operator.stop()
    assert "deleted" not in actions(handler, "a")


@pytest.mark.parametrize("told", [True, False])
def test_our_finalizer_is_taken_off(start, operator, handler, widgets, told):
    start(finalizer=True, unselected=told)
    gold(widgets, "a")
    handler.wait_finished(name="a")
    wait_until(lambda: widgets.get("a")["metadata"].get("finalizers") == [FINALIZER], "our finalizer")
    relabel(widgets, "a", "iron")
    wait_until(lambda: not widgets.get("a")["metadata"].get("finalizers"), "its end")
    operator.stop()
    assert actions(handler, "a") == (["reconcile", "unselected"] if told else ["reconcile"])
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


def test_what_leaves_while_it_is_deleted_is_cleaned_up(start, operator, handler, widgets):
    handler.behave(f"[ $RECONCILED_ACTION != finalize ] || [ -e {handler.folder}/go ]")
    start(finalizer=True)
    gold(widgets, "a")
    handler.wait_finished(name="a")
    widgets.delete("a")
    handler.wait_finished(name="a", action="finalize")
    relabel(widgets, "a", "iron")
    handler.let_go()
    wait_until(lambda: not widgets.exists("a"), "the end of it")
    operator.stop()
    assert handler.requests(name="a", action="finalize")[-1].exit_code == 0
