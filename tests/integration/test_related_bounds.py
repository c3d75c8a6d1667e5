# SPDX-License-Identifier: Apache-2.0
"""`related`: who names very many objects, or makes large ones, harms nobody else, and not for longer than that."""
import pytest

from harness import wait_until, watch

NAMES = 1000  # that one object may give
TENANTS = ("crowd", "quiet")
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}
LARGE = 600_000


def failing(operator):
    return {entry["key"]: entry for entry in operator.ctl.status()["failing"]}


@pytest.fixture
def named(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, related=[{**CONFIG, "names": ".spec.refs[]"}])])
    operator.start_ready().wait_synced()


def test_a_name_that_is_repeated_counts_once(named, operator, handler, widgets, api):
    for name in ("one", "two"):
        api.resource("v1", "configmaps", "default").create(name)
    widgets.create("a", {"refs": ["two"] + ["one", "two"] * 10_000})
    request = handler.wait_finished(name="a", where=lambda request: len(request.body["related"]) > 1)
    assert [item["metadata"]["name"] for item in request.body["related"]] == ["two", "one"]
    assert len(request.body["object"]["spec"]["refs"]) == 20_001
    operator.stop()


def test_more_names_than_an_object_may_give_are_its_own_error(named, operator, handler, widgets):
    refs = [f"m{number}" for number in range(NAMES)]
    widgets.create("a", {"refs": [*refs, *refs, "one-more"]})
    error = wait_until(lambda: failing(operator).get("default/a"), "the failure")
    assert error["permanent"] and f"gives more than {NAMES} different names" in error["lastError"]
    widgets.create("b", {"refs": refs})
    handler.wait_finished(name="b")
    widgets.merge_patch("a", {"spec": {"refs": [*refs, *refs]}})
    handler.wait_finished(name="a")
    operator.stop()


@pytest.mark.parametrize("program, told", [('range(1e15) | "m\\(.)"', f"gives more than {NAMES} different names"),
                                           ('range(1e15) | "m"', "needs more than 200 ms of processor time")])
def test_names_without_end_are_an_error_of_their_object(devserver, operator, handler, widgets, program, told):
    names = f"if .spec.endless then {program} else .spec.refs[] end"
    operator.configure(devserver, [watch("widgets", handler, related=[{**CONFIG, "names": names}])])
    operator.start_ready()
    widgets.create("a", spec={"endless": True})
    widgets.create("b", spec={"refs": ["m1"]})
    handler.wait_finished(name="b")
    assert told in wait_until(lambda: failing(operator).get("default/a"), "the failure")["lastError"]


@pytest.mark.slow
def test_what_a_tenant_makes_too_large_heals_when_it_is_smaller(devserver, operator, handler, api):
    """Objects of the cluster are related to those of all namespaces, so any tenant can make their requests too large."""
    entry = watch("namespaces", handler, api_version="v1", kind="Namespace", labelSelector="tenant", related=[CONFIG],
                  retry={"first": "50ms", "max": "1s", "attempts": 2})
    entry["handler"]["requestLimit"] = "4Mi"
    for name in TENANTS:
        api.resource("v1", "namespaces").create(name, labels={"tenant": name})
    crowd = api.resource("v1", "configmaps", "crowd")
    for number in range(8):
        crowd.create(f"large-{number}", data={"a": "x" * LARGE})
    api.resource("v1", "configmaps", "quiet").create("small", data={"a": "x" * LARGE})
    operator.configure(devserver, [entry])
    operator.start_ready().wait_synced()
    wait_until(lambda: all(len([record for record in operator.logs(key=name) if "would take about" in record["message"]]) > 2
                           for name in TENANTS), "more failures of both than retry.attempts")
    found = wait_until(lambda: len(entries := failing(operator)) == 2 and entries, "both to fail")
    for each in found.values():
        assert not each["permanent"] and "(4.6 MiB of them in namespace crowd)" in each["lastError"], each
        assert "requestLimit" in each["lastError"] and "labelSelector" in each["lastError"] and "namespaces" in each["lastError"]
    assert handler.count() == 0
    for number in range(8):
        crowd.delete(f"large-{number}")
    for name in TENANTS:
        handler.wait_finished(name=name, where=lambda request: [item["metadata"]["name"] for item in request.body["related"]] == ["small"])
    wait_until(lambda: not failing(operator), "nothing to fail any more")
    operator.stop()
