# SPDX-License-Identifier: Apache-2.0
"""Two watches of one kind whose lists of children meet on one object: what was merely taken over goes back to the watch whose
handler names it, and a child that both handlers name is tried again until one of them leaves it out."""
import pytest

from harness import wait_until, watch
from harness.twins import GOLD_CHILDREN, SILVER_CHILDREN, Twins, child


@pytest.fixture
def twins(devserver, operator, make_handler, widgets):
    return Twins(devserver, operator, make_handler, widgets)


def gold_row(operator):
    return operator.ctl.status()["watches"][0]


def gold_is_idle(operator):
    wait_until(lambda: gold_row(operator)["running"] == 0, "the end of gold's run")


def seen(twins):
    return lambda: f"{twins.metadata().get('annotations')}, {twins.operator.ctl.run('explain', 'gold', 'default/w').stdout}"


@pytest.mark.parametrize("finalizer", [False, True])
@pytest.mark.parametrize("held", ["by a pause", "by a run of another object"])
@pytest.mark.slow
def test_it_comes_back_before_the_other_watch_has_run(twins, widgets, operator, held, finalizer):
    gate = twins.silver.folder / "gate"
    twins.gold.answer({"children": [child("of-gold"), child("dropped")], "status": {"gold": 1}})
    twins.silver.behave(f"""[ $RECONCILED_NAME != busy ] || while [ ! -e {gate} ]; do sleep 0.02; done
printf '{{"children": [{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "%s-of-silver"}}}}]}}' $RECONCILED_NAME""")
    twins.start({"labelSelector": "gold=yes"}, {"labelSelector": "silver=yes"}, finalizer=finalizer, concurrency=1)
    widgets.create("w", labels={"gold": "yes", "silver": "yes"})
    wait_until(lambda: twins.config_maps.exists("dropped") and twins.config_maps.exists("w-of-silver"), "both watches' children")
    twins.rests()
    uid = twins.config_maps.get("of-gold")["metadata"]["uid"]
    if held == "by a pause":
        assert operator.ctl.run("pause", "silver").returncode == 0
    else:
        widgets.create("busy", labels={"silver": "yes"})
        twins.silver.wait_for(name="busy")
    before = len(twins.gold.requests(name="w"))
    widgets.merge_patch("w", {"metadata": {"labels": {"gold": "no"}}})
    wait_until(lambda: "of-gold" in twins.children(SILVER_CHILDREN), "silver to have gold's list")
    gold_is_idle(operator)
    twins.gold.answer({"children": [child("of-gold")], "status": {"gold": 2}})
    widgets.merge_patch("w", {"metadata": {"labels": {"gold": "yes"}}})
    wait_until(lambda: "of-gold" in twins.children(GOLD_CHILDREN), seen(twins))
    assert "of-gold" not in twins.children(SILVER_CHILDREN) and "w-of-silver" in twins.children(SILVER_CHILDREN)
    gold_is_idle(operator)
    assert len(twins.gold.requests(name="w")) == before + 1 and gold_row(operator)["permanent"] == 0
    gate.touch()
    operator.ctl.run("resume", "silver")
    wait_until(lambda: not twins.config_maps.exists("dropped"), "silver to have run", 60)
    twins.rests()
    assert twins.config_maps.get("of-gold")["metadata"]["uid"] == uid, "it was not deleted in between"
    assert twins.config_maps.exists("w-of-silver") and "of-gold" in twins.children(GOLD_CHILDREN)
    widgets.delete("w")
    wait_until(lambda: not twins.config_maps.exists("of-gold"), "its end")
    operator.stop()


def test_it_comes_back_to_a_watch_that_leaves_its_children_alone(twins, widgets, operator):
    """silver's answers have no `children`, so what it has taken over stays in its list."""
    twins.gold.answer({"children": [child("of-gold"), child("lost")]})
    twins.silver.answer({})
    twins.start({"labelSelector": "gold=yes"}, {"labelSelector": "silver=yes"})
    widgets.create("w", labels={"gold": "yes", "silver": "yes"})
    wait_until(lambda: twins.config_maps.exists("of-gold") and twins.config_maps.exists("lost"), "gold's children")
    twins.rests()
    widgets.merge_patch("w", {"metadata": {"labels": {"gold": "no"}}})
    wait_until(lambda: "of-gold" in twins.children(SILVER_CHILDREN), "silver to have gold's list")
    twins.rests()
    twins.config_maps.delete("lost")
    widgets.merge_patch("w", {"metadata": {"labels": {"gold": "yes"}}})
    wait_until(lambda: twins.config_maps.exists("lost") and not twins.children(SILVER_CHILDREN), seen(twins))
    twins.rests()
    assert set(twins.children(GOLD_CHILDREN).split(",")) == {"v1/ConfigMap/default/of-gold", "v1/ConfigMap/default/lost"}
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
    found = operator.wait_for_log("watch gold has ConfigMap default/a already", watch="silver", key="default/w")
    assert "only one of the watches of a kind may name a child" in found["message"]
    assert operator.ctl.status()["watches"][1]["permanent"] == 0 and twins.config_maps.get("a")["data"] == {"by": "gold"}
    assert operator.ctl.run("resume", "gold").returncode == 0
    wait_until(lambda: twins.config_maps.exists("a") and twins.config_maps.get("a")["data"] == {"by": "silver"}, seen(twins))
    wait_until(lambda: not twins.children(GOLD_CHILDREN) and "/a" in twins.children(SILVER_CHILDREN), seen(twins))
    twins.rests()
    operator.stop()
