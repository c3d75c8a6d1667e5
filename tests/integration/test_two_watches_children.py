# SPDX-License-Identifier: Apache-2.0
"""Two watches of one kind whose lists of children meet on one object: a child belongs to the watch that has applied it last."""
import pytest

from harness import wait_until
from harness.twins import GOLD_CHILDREN, SILVER_CHILDREN, Twins, child


@pytest.fixture
def twins(devserver, operator, make_handler, widgets):
    return Twins(devserver, operator, make_handler, widgets)


def seen(twins):
    return lambda: f"{twins.metadata().get('annotations')}, {twins.operator.ctl.run('explain', 'gold', 'default/w').stdout}"


def moves(twins, tier, handler):
    """Moves it, and waits for the run of the watch that it moves to."""
    count = len(handler.requests(name="w"))
    twins.relabel(tier)
    handler.wait_finished(name="w", count=count + 1)
    twins.rests()


@pytest.mark.parametrize("finalizer", [False, True])
def test_a_watch_deletes_no_child_that_another_has_applied_since(twins, widgets, operator, finalizer):
    twins.gold.answer({"children": [child("shared"), child("of-gold")]})
    twins.silver.answer({"children": [child("shared")]})
    twins.start_by_tier(finalizer=finalizer)
    widgets.create("w", labels={"tier": "gold"})
    wait_until(lambda: twins.config_maps.exists("of-gold"), "gold's children")
    twins.rests()
    uid = twins.config_maps.get("shared")["metadata"]["uid"]
    moves(twins, "silver", twins.silver)
    assert twins.applied_by("shared") == "silver" and twins.config_maps.exists("of-gold")
    twins.gold.answer({"children": []})
    moves(twins, "gold", twins.gold)
    wait_until(lambda: not twins.config_maps.exists("of-gold"), seen(twins))
    wait_until(lambda: not twins.children(GOLD_CHILDREN), seen(twins))
    assert twins.config_maps.get("shared")["metadata"]["uid"] == uid and "/shared" in twins.children(SILVER_CHILDREN)
    widgets.delete("w")
    wait_until(lambda: not twins.config_maps.exists("shared"), "the last watch to clean up")
    operator.stop()


def test_it_finds_its_list_when_the_object_comes_back(twins, widgets, operator):
    """silver selects the object all the time; its list, and its child, are left alone."""
    twins.gold.answer({"children": [child("kept"), child("dropped")]})
    twins.silver.answer({"children": [child("of-silver")]})
    twins.start({"labelSelector": "gold=yes"})
    widgets.create("w", labels={"gold": "yes"})
    wait_until(lambda: twins.config_maps.exists("dropped") and twins.config_maps.exists("of-silver"), "both watches' children")
    twins.rests()
    uid = twins.config_maps.get("kept")["metadata"]["uid"]
    widgets.merge_patch("w", {"metadata": {"labels": {"gold": "no"}}})
    wait_until(lambda: len(twins.finalizers()) == 1, "gold to let go")
    assert "/kept" in twins.children(GOLD_CHILDREN) and twins.config_maps.exists("dropped")
    twins.gold.answer({"children": [child("kept")]})
    widgets.merge_patch("w", {"metadata": {"labels": {"gold": "yes"}}})
    wait_until(lambda: not twins.config_maps.exists("dropped"), seen(twins))
    twins.rests()
    assert twins.config_maps.get("kept")["metadata"]["uid"] == uid and twins.config_maps.exists("of-silver")
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")
    assert not {"kept", "of-silver"} & set(twins.config_maps.names())
    operator.stop()


def test_a_child_that_one_handler_leaves_out_goes_to_the_other(twins, widgets, operator):
    for handler, name in ((twins.gold, "gold"), (twins.silver, "silver")):
        handler.behave(f"""child=; ! grep -q '"owner": *"{name}"' "$REQUEST" || child='{{
"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{"by": "{name}"}}}}'
echo "{{\\"children\\": [$child]}}" """)
    twins.start()
    widgets.create("w", spec={"owner": "gold"})
    wait_until(lambda: twins.config_maps.exists("a"), "gold's child")
    twins.rests()
    assert operator.ctl.run("pause", "gold").returncode == 0
    widgets.merge_patch("w", {"spec": {"owner": "silver"}})
    found = operator.wait_for_log("watch gold has it already", watch="silver", key="default/w")
    assert "ConfigMap default/a is not applied" in found["message"]
    assert "only one of the watches of a kind may name a child" in found["message"]
    assert operator.ctl.status()["watches"][1]["permanent"] == 0 and twins.config_maps.get("a")["data"] == {"by": "gold"}
    assert operator.ctl.run("resume", "gold").returncode == 0
    wait_until(lambda: twins.config_maps.exists("a") and twins.config_maps.get("a")["data"] == {"by": "silver"}, seen(twins))
    wait_until(lambda: not twins.children(GOLD_CHILDREN) and "/a" in twins.children(SILVER_CHILDREN), seen(twins))
    twins.rests()
    operator.stop()
