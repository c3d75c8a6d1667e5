# SPDX-License-Identifier: Apache-2.0
"""Two watches of one kind: each has finalizers, children and conditions of its own on an object, and neither touches the
other's. And two operators on one object."""
import pytest

from harness import twins as scenario
from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.twins import GOLD, GOLD_CHILDREN, SET, Twins, child


@pytest.fixture
def twins(devserver, operator, make_handler, widgets):
    return Twins(devserver, operator, make_handler, widgets)


@pytest.mark.parametrize("name", ["both_clean_up_one_object", "each_keeps_its_own_children", "a_child_belongs_to_one",
                                  "it_moves_from_one_to_the_other",
                                  "a_lost_list_of_one_does_not_cost_the_other"])
@pytest.mark.slow
def test_two_watches(twins, name):
    getattr(scenario, name)(twins)


@pytest.mark.parametrize("first, second, mistake", [
    ({}, {}, "watches[1].id: is missing: watch gold ({file}:4) watches the same kind"),
    ({}, {"apiVersion": "example.com/v2"}, "watches[1].id: is missing: watch gold ({file}:4) watches the same kind"),
    ({"id": "x"}, {"id": "x"}, "watches[1].id: \"x\" is the id of watch gold ({file}:4)"),
    ({}, {"id": "x/y"}, "watches[1].id: \"x/y\" must be at most 53 letters"),
    ({}, {"id": "x."}, "watches[1].id: \"x.\" must be at most 53 letters"),
])
def test_without_an_id_it_is_refused(operator, handler, first, second, mistake):
    watches = [watch("gold", handler, **first), watch("silver", handler, **second)]
    path = operator.configure(None, watches)
    checked = operator.ctl.check(path)
    assert checked.returncode == 78
    begins = path.read_text(encoding="utf-8").split("\n").index("- name: silver") + 1
    where = f"{path}:{begins}: " if "missing" in mistake else f"{path}:"
    found = [line for line in (checked.stdout + checked.stderr).splitlines() if mistake.format(file=path) in line]
    assert len(found) == 1 and found[0].startswith(where), checked.stdout + checked.stderr
    operator.start()
    operator.wait_exit(78)


@pytest.mark.parametrize("order", [1, -1])
def test_which_comes_first_in_the_file_decides_nothing(devserver, operator, make_handler, widgets, order):
    watches = [watch("gold", make_handler(), finalizer=True, labelSelector="tier=gold"),
               watch("silver", make_handler(), finalizer=True, id="s", labelSelector="tier=silver")]
    operator.configure(devserver, watches[::order])
    operator.start_ready().wait_synced()
    for tier, finalizer in (("gold", GOLD), ("silver", "widgets.example.com/s.finalizer")):
        widgets.create(tier, labels={"tier": tier})
        wait_until(lambda: widgets.get(tier)["metadata"].get("finalizers") == [finalizer], finalizer)
    operator.stop()


def test_other_kinds_and_owned_ones_need_no_id(operator, handler):
    owns = [{"apiVersion": "v1", "kind": "ConfigMap"}]
    path = operator.configure(None, [watch("widgets", handler, owns=owns), watch("maps", handler, "v1", "ConfigMap")])
    assert "no mistakes found" in operator.ctl.check(path).stdout


def test_one_condition_of_two_watches_is_warned_of(operator, handler):
    path = operator.configure(None, [watch("gold", handler, readyCondition=True),
                                     watch("silver", handler, id="silver", readyCondition=True)])
    checked = operator.ctl.check(path)
    assert "watches[1].readyCondition: warning: watch gold" in checked.stdout + checked.stderr


@pytest.mark.parametrize("trigger", ["essence", "any"])
def test_what_one_notes_is_no_reason_for_the_other(twins, trigger):
    """Both fail, and tell so in conditions: neither resets the other's backoff."""
    twins.gold.behave("echo $(date +%N) >&2; exit 1")
    twins.silver.behave("echo $(date +%N) >&2; exit 1")
    twins.start({"readyCondition": "Gold"}, {"readyCondition": "Silver"}, trigger=trigger, retry={"first": "1h", "max": "1h"})
    twins.widgets.create("w")
    wait_until(lambda: {each["type"] for each in twins.widgets.get("w").get("status", {}).get("conditions", [])}
               == {"Gold", "Silver"}, "both conditions")
    twins.rests()
    rows = {row["name"]: row for row in twins.operator.ctl.status()["watches"]}
    assert (twins.gold.count(), twins.silver.count()) == (1, 1), rows
    twins.widgets.merge_patch("w", {"status": {"seen": 1}}, "status")
    if trigger == "any":
        for handler in (twins.gold, twins.silver):
            handler.wait_finished(name="w", count=2)
    twins.widgets.merge_patch("w", {"spec": {"n": 2}})
    for handler in (twins.gold, twins.silver):
        handler.wait_finished(name="w", count=3 if trigger == "any" else 2)
    twins.rests()
    twins.operator.stop()


@pytest.mark.slow
def test_it_moves_while_the_operator_is_down(twins):
    twins.gold.answer({"children": [child("kept")]})
    twins.silver.answer({"children": [child("kept")]})
    twins.start_by_tier()
    twins.widgets.create("w", labels={"tier": "gold"})
    wait_until(lambda: twins.finalizers() == [GOLD] and twins.children(GOLD_CHILDREN), "gold's")
    twins.rests()
    uid = twins.config_maps.get("kept")["metadata"]["uid"]
    twins.operator.stop()
    version = twins.relabel("silver")["metadata"]["resourceVersion"]
    twins.operator.start_ready().wait_synced()
    wait_until(lambda: twins.finalizers() == [scenario.SILVER] and twins.children(scenario.SILVER_CHILDREN), "silver's")
    twins.rests()
    assert all(twins.history("w", version)) and twins.config_maps.get("kept")["metadata"]["uid"] == uid
    twins.operator.stop()


def test_it_leaves_both(twins):
    twins.start_by_tier()
    twins.widgets.create("w", labels={"tier": "gold"})
    wait_until(lambda: twins.finalizers() == [GOLD], "gold's")
    twins.relabel("iron")
    wait_until(lambda: twins.finalizers() == [], "its end")
    twins.operator.stop()


def test_a_finalizer_by_hand_is_that_of_one_watch(twins):
    twins.gold.behave("[ $RECONCILED_ACTION != finalize ]")
    twins.silver.behave("[ $RECONCILED_ACTION != finalize ]")
    twins.start()
    twins.widgets.create("w")
    wait_until(lambda: twins.finalizers() == [GOLD, scenario.SILVER], "both")
    twins.widgets.delete("w")
    for handler in (twins.gold, twins.silver):
        handler.wait_finished(name="w", action="finalize")
    assert twins.operator.ctl.run("release", "--finalizer", "--reason", "x", "--yes", "silver", "default/w").returncode == 0
    wait_until(lambda: twins.finalizers() == [GOLD], "silver's to go")
    assert twins.operator.ctl.run("release", "--finalizer", "--reason", "x", "--yes", "gold", "default/w").returncode == 0
    wait_until(lambda: not twins.widgets.exists("w"), "its end")
    twins.operator.stop()


def test_an_id_that_is_dropped_is_told(twins):
    twins.start()
    twins.widgets.create("w")
    wait_until(lambda: twins.finalizers() == [GOLD, scenario.SILVER], "both")
    twins.rests()
    twins.operator.stop()
    twins.operator.configure(twins.server, [watch("gold", twins.gold, finalizer=True)])
    twins.operator.start_ready().wait_synced()
    found = twins.operator.wait_for_log(message_id=MESSAGE_ID["FINALIZERS_LEFT"])
    assert f"may carry the finalizer {scenario.SILVER}" in found["message"]
    twins.operator.stop()


def test_an_id_that_is_added_is_told(twins):
    """Another watch of the kind may have the former finalizer from now on, but takes it off none of the other's objects."""
    silver = watch("silver", twins.silver, finalizer=True, labelSelector="tier=silver")
    gold = watch("gold", twins.gold, finalizer=True, labelSelector="tier=gold")
    twins.operator.configure(twins.server, [silver])
    twins.operator.start_ready().wait_synced()
    twins.operator.stop()
    twins.operator.configure(twins.server, [gold, {**silver, "id": "silver"}])
    twins.operator.start_ready().wait_synced()
    found = twins.operator.wait_for_log(message_id=MESSAGE_ID["FINALIZERS_LEFT"])
    assert f"may carry the finalizer {GOLD} of watch silver" in found["message"]
    twins.operator.stop()


def test_two_operators_share_the_label(devserver, make_operator, make_handler, widgets, api):
    """The one that drops its last child leaves the label, the list of kinds and the child of the other one."""
    handlers = {"first.example.com": make_handler(), "second.example.com": make_handler()}
    operators = {}
    for name, handler in handlers.items():
        handler.answer({"children": [child(name)]})
        operators[name] = make_operator()
        operators[name].configure(devserver, [watch("widgets", handler)], operator=name)
        operators[name].start_ready().wait_synced()
    widgets.create("w")
    maps = api.resource("v1", "configmaps", "default")
    for name in handlers:
        wait_until(lambda: maps.exists(name), name)
    handlers["first.example.com"].answer({"children": []})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: "first.example.com/children" not in widgets.get("w")["metadata"]["annotations"], "its list to go")
    metadata = widgets.get("w")["metadata"]
    assert not maps.exists("first.example.com") and maps.exists("second.example.com")
    assert metadata["labels"][SET] == maps.get("second.example.com")["metadata"]["labels"]["applyset.k8s.io/part-of"]
    assert metadata["annotations"]["applyset.k8s.io/contains-group-kinds"] == "ConfigMap"
    assert metadata["annotations"]["applyset.k8s.io/tooling"].startswith("reconciled/")
    for operator in operators.values():
        operator.stop()


@pytest.mark.parametrize("selection", ["filter", "namespaces and a field"])
@pytest.mark.slow
def test_it_moves_by_other_selections_as_well(twins, selection):
    if selection == "filter":
        twins.start({"filter": ".metadata.labels.tier == \"gold\""}, {"filter": ".metadata.labels.tier == \"silver\""})
    else:
        twins.start({"labelSelector": "tier=gold"}, {"namespaces": ["def*"], "fieldSelector": "metadata.name!=other"})
    twins.widgets.create("w", labels={"tier": "gold"})
    wait_until(lambda: GOLD in twins.finalizers(), "gold's")
    twins.rests()
    version = twins.relabel("silver")["metadata"]["resourceVersion"]
    wait_until(lambda: twins.finalizers() == [scenario.SILVER], "silver's")
    twins.rests()
    assert all(twins.history("w", version))
    twins.operator.stop()
