# SPDX-License-Identifier: Apache-2.0
"""Nobody who writes objects can make a change of which no handler hears, or learn from a ledger what a Secret holds."""
import pytest

from harness import Operator, ledger, wait_until, watch
from harness.collision import ALLOW, DENY


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.mark.parametrize("more", [{}, {"metadataOnly": True}], ids=str)
def test_an_object_runs_whatever_it_becomes(devserver, operator, handler, widgets, more):
    operator.configure(devserver, [watch("widgets", handler, **more)])
    operator.start_ready().wait_synced()
    place = "annotations" if more.get("metadataOnly") else "spec"
    widgets.create("a", **{place: DENY})
    handler.wait_finished(name="a")
    widgets.merge_patch("a", {"metadata": {place: ALLOW}} if place == "annotations" else {place: ALLOW})
    handler.wait_finished(name="a", count=2)
    operator.stop()


def test_a_child_is_not_overwritten_before_its_change_was_shown(devserver, operator, handler, widgets, config_maps):
    handler.answer({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": DENY}]})
    operator.configure(devserver, [watch("widgets", handler, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}], children={"force": True})])
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 1, "the child to be seen")
    answer = handler.behaviour.read_text(encoding="utf-8")
    handler.behave(f"{handler.held}\n{answer.replace('deny', 'none')}")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_for(name="a", where=lambda request: request.object["spec"]["size"] == 2)
    config_maps.merge_patch("child", {"data": ALLOW})
    handler.let_go()
    handler.wait_finished(name="a", where=lambda request: request.body["children"][0]["data"]["policy"] == "allow")
    operator.stop()


def test_ledgers_of_two_machines_have_nothing_in_common(sandbox, devserver, operator, handler, api):
    """What a Secret hashes to on one's own machine tells nothing about a ledger from a backup."""
    secrets = api.resource("v1", "secrets", "default")
    secrets.create("weak", stringData={"password": "hunter2"})
    operators = [operator, Operator(sandbox)]
    found = []
    for each in operators:
        each.configure(devserver, [watch("s", handler, apiVersion="v1", kind="Secret")])
        each.start_ready().wait_synced()
        handler.wait_finished(name="weak", count=len(found) + 1)
        wait_until(lambda: ledger.read(each, "SELECT 1 FROM ledger WHERE fingerprint != 0"), "its row")
        found += ledger.read(each, "SELECT fingerprint FROM ledger")
        each.stop()
    assert len(found) == 2 and found[0] != found[1]
