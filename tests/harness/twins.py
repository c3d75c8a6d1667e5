# SPDX-License-Identifier: Apache-2.0
"""Two watches of one kind; what follows holds on the devserver and on a real server alike."""
import json

from .setup import watch
from .wait import wait_until

GOLD, SILVER = "widgets.example.com/finalizer", "widgets.example.com/silver.finalizer"
GOLD_CHILDREN, SILVER_CHILDREN = "widgets.example.com/children", "widgets.example.com/silver.children"
SET, PART_OF, KINDS = "applyset.k8s.io/id", "applyset.k8s.io/part-of", "applyset.k8s.io/contains-group-kinds"


def child(name, kind="ConfigMap", **more):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


class Twins:
    """gold, silver: the handlers of two watches of Widgets; only silver has an id."""

    def __init__(self, server, operator, make_handler, widgets):
        self.server, self.operator, self.widgets = server, operator, widgets
        self.gold, self.silver = make_handler(), make_handler()
        self.settings = {}  # of the operator
        self.config_maps = server.api.resource("v1", "configmaps", widgets.namespace)

    def start(self, gold=None, silver=None, **both):
        both = {"finalizer": True, "namespaces": [self.widgets.namespace], "retry": {"first": "50ms", "max": "100ms"}, **both}
        self.operator.configure(self.server, [watch("gold", self.gold, **{**both, **(gold or {})}),
                                              watch("silver", self.silver, id="silver", **{**both, **(silver or {})})],
                                **self.settings)
        self.operator.start_ready().wait_synced()
        return self

    def start_by_tier(self, **both):
        return self.start({"labelSelector": "tier=gold"}, {"labelSelector": "tier=silver"}, **both)

    def metadata(self, name="w"):
        return self.widgets.get(name)["metadata"]

    def finalizers(self, name="w"):
        return sorted(self.metadata(name).get("finalizers") or [])

    def children(self, key, name="w"):
        return self.metadata(name).get("annotations", {}).get(key, "")

    def relabel(self, tier, name="w"):
        return self.widgets.merge_patch(name, {"metadata": {"labels": {"tier": tier}}})

    def rests(self):
        def at_rest():
            rows = self.operator.ctl.status()["watches"]
            return all(row["queued"] + row["running"] == 0 for row in rows)

        wait_until(at_rest, lambda: f"rest: {self.operator.ctl.status()['watches']}")

    def applied_by(self, child):
        """The id of the watch that has applied the child last."""
        mark = self.config_maps.get(child)["metadata"]["annotations"]["widgets.example.com/made"]
        return mark.split("/")[4] or None

    def history(self, name, version):
        """The object's finalizers, at each version since then."""
        with self.widgets.watch(resourceVersion=version, fieldSelector=f"metadata.name={name}", timeoutSeconds=1) as stream:
            stream.wait_end()
            return [sorted(event["object"]["metadata"].get("finalizers") or []) for event in stream.events
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED")]


def both_clean_up_one_object(twins):
    twins.start()
    for number in range(20):
        twins.widgets.create(f"w{number}")
    for number in range(20):
        wait_until(lambda: twins.finalizers(f"w{number}") == [GOLD, SILVER], "both finalizers")
    twins.rests()
    for number in range(20):
        twins.widgets.delete(f"w{number}")
    for number in range(20):
        wait_until(lambda: not twins.widgets.exists(f"w{number}"), "its end")
    twins.operator.stop()
    for handler in (twins.gold, twins.silver):
        for number in range(20):
            runs = [request.body["action"] for request in handler.requests(name=f"w{number}")]
            assert runs == ["reconcile", "finalize"], "neither robs the other, and neither runs the other one's handler"


def each_keeps_its_own_children(twins):
    twins.gold.answer({"children": [child("a"), child("b")]})
    twins.silver.answer({"children": [child("c"), child("s", "ServiceAccount")]})
    twins.start(finalizer=False)
    twins.widgets.create("w")
    wait_until(lambda: {"a", "b", "c"} <= set(twins.config_maps.names()), "all children")
    twins.rests()
    assert set(twins.children(GOLD_CHILDREN).split(",")) == {f"v1/ConfigMap/{twins.widgets.namespace}/{name}" for name in "ab"}
    assert twins.children(SILVER_CHILDREN).count("/") == 6
    assert set(twins.children(KINDS).split(",")) == {"ConfigMap", "ServiceAccount"}
    label = twins.metadata()["labels"][SET]
    assert {twins.config_maps.get(name)["metadata"]["labels"][PART_OF] for name in "abc"} == {label}
    assert (twins.gold.count(), twins.silver.count()) == (1, 1), "what the other one notes is no reason to run"
    twins.gold.answer({"children": []})
    twins.widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: not twins.config_maps.exists("a") and not twins.config_maps.exists("b"), "the end of gold's")
    wait_until(lambda: not twins.children(GOLD_CHILDREN), "gold's list to go")
    twins.rests()
    assert twins.config_maps.exists("c") and twins.metadata()["labels"][SET] == label
    assert set(twins.children(KINDS).split(",")) == {"ConfigMap", "ServiceAccount"}
    twins.silver.answer({"children": []})
    twins.widgets.merge_patch("w", {"spec": {"n": 3}})
    wait_until(lambda: SET not in twins.metadata().get("labels", {}), "the label, which goes with the last child")
    assert not twins.config_maps.exists("c")
    twins.operator.stop()


def a_child_belongs_to_one(twins):
    twins.gold.answer({"children": [child("a")]})
    twins.start()
    twins.widgets.create("w")
    wait_until(lambda: twins.children(GOLD_CHILDREN), "gold's child")
    twins.silver.answer({"children": [child("a"), child("b")]})
    twins.widgets.merge_patch("w", {"spec": {"n": 2}})
    found = twins.operator.wait_for_log("watch gold has it already", watch="silver", key=f"{twins.widgets.namespace}/w")
    assert "/a is not applied" in found["message"] and "only one of the watches of a kind" in found["message"]
    wait_until(lambda: twins.config_maps.exists("b"), "the child that silver alone names")
    assert twins.applied_by("a") is None, "it is gold's, which has no id"
    twins.operator.stop()


def it_moves_from_one_to_the_other(twins):
    twins.gold.answer({"children": [child("kept"), child("dropped")]})
    twins.silver.answer({"children": [child("kept"), child("new")]})
    twins.start_by_tier()
    names = [f"w{number}" for number in range(6)]
    versions = {}
    twins.gold.behave(f"""[ "$RECONCILED_ACTION" != reconcile ] || sed "s/NAME/$RECONCILED_NAME/g" <<'END'
{json.dumps({"children": [child("NAME-kept"), child("NAME-dropped")]})}
END""")
    twins.silver.behave(f"""[ "$RECONCILED_ACTION" != reconcile ] || sed "s/NAME/$RECONCILED_NAME/g" <<'END'
{json.dumps({"children": [child("NAME-kept"), child("NAME-new")]})}
END""")
    for name in names:
        twins.widgets.create(name, labels={"tier": "gold"})
    for name in names:
        wait_until(lambda: twins.finalizers(name) == [GOLD] and twins.config_maps.exists(f"{name}-dropped"), "gold's")
    twins.rests()
    uids = {name: twins.config_maps.get(f"{name}-kept")["metadata"]["uid"] for name in names}
    for name in names:
        versions[name] = twins.relabel("silver", name)["metadata"]["resourceVersion"]
    for name in names:
        wait_until(lambda: twins.finalizers(name) == [SILVER], "the move")
        wait_until(lambda: twins.config_maps.exists(f"{name}-new"), lambda: f"silver's children: {twins.metadata(name)}")
    twins.rests()
    for name in names:
        assert all(twins.history(name, versions[name])), "one of both finalizers is on at every moment"
        assert twins.config_maps.get(f"{name}-kept")["metadata"]["uid"] == uids[name], "it was not deleted in between"
        assert twins.applied_by(f"{name}-kept") == "silver" and twins.applied_by(f"{name}-dropped") is None
        assert f"{name}-dropped" in twins.children(GOLD_CHILDREN, name), "a moved object keeps its children"
        twins.widgets.delete(name)
    for name in names:
        wait_until(lambda: not twins.widgets.exists(name), "its end")
    left = [child for child in twins.config_maps.names() if child.split("-")[0] in names]
    assert not left, "the last watch cleans up after the other"
    twins.operator.stop()
    assert not twins.gold.requests(action="finalize")
    assert sorted(request.name for request in twins.silver.requests(action="finalize")) == names


def a_lost_list_of_one_does_not_cost_the_other(twins):
    twins.gold.answer({"children": [child("a")]})
    twins.silver.answer({"children": [child("b")]})
    twins.start(finalizer=False)
    twins.widgets.create("w")
    wait_until(lambda: {"a", "b"} <= set(twins.config_maps.names()), "all children")
    twins.rests()
    uids = {name: twins.config_maps.get(name)["metadata"]["uid"] for name in "ab"}
    twins.widgets.merge_patch("w", {"metadata": {"annotations": None}, "spec": {"n": 2}})
    wait_until(lambda: twins.children(GOLD_CHILDREN) and twins.children(SILVER_CHILDREN), "both lists again")
    twins.rests()
    assert "/a" in twins.children(GOLD_CHILDREN) and "/b" not in twins.children(GOLD_CHILDREN)
    assert "/b" in twins.children(SILVER_CHILDREN) and "/a" not in twins.children(SILVER_CHILDREN)
    assert uids == {name: twins.config_maps.get(name)["metadata"]["uid"] for name in "ab"}
    twins.operator.stop()
