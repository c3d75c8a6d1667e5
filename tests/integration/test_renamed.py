# SPDX-License-Identifier: Apache-2.0
"""An operator with a new name (`formerNames`): what it has noted under the old one stays its own."""
import json

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

OLD, NEW = "widgets.example.com", "gadgets.example.com"
NODE, CONFIG_MAP = {"apiVersion": "v1", "kind": "Node"}, {"apiVersion": "v1", "kind": "ConfigMap"}


def config_map(name, data):
    return {**CONFIG_MAP, "metadata": {"name": name}, "data": data}


def answer(handler, n, data, labels, children=("a", "theirs")):
    handler.answer({"children": [{"manifest": config_map(name, data), "adopt": True} if name == "theirs" else config_map(name, data)
                                 for name in children],
                    "patches": [{**NODE, "metadata": {"name": "n1", "labels": labels}}], "status": {"n": n}})


@pytest.fixture
def nodes(api):
    nodes = api.resource("v1", "nodes")
    nodes.create("n1", labels={"theirs": "1"})
    return nodes


@pytest.fixture
def config_maps(api):
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.apply(config_map("theirs", {"theirs": "1"}), manager="a-human")
    return config_maps


@pytest.fixture(params=[False, True], ids=["unwatched", "owned"])
def start(request, devserver, operator, handler):
    def start(name, **more):
        entry = watch("widgets", handler, finalizer=True, patches=[NODE], owns=[CONFIG_MAP] if request.param else [], onStart="all",
                      retry={"first": "50ms", "max": "200ms"})
        operator.configure(devserver, [entry], operator=name, **more)
        return operator.start_ready().wait_synced()

    return start


def status_is(widgets, n):
    wait_until(lambda: widgets.get("w").get("status") == {"n": n}, lambda: f"the status {n}: {widgets.get('w')}")


def ends(widgets):
    wait_until(lambda: not widgets.exists("w"), "its end")


def made_under_the_old_name(start, operator, handler, widgets):
    answer(handler, 1, {"kept": "1", "changed": "1", "dropped": "1"}, {"pool": "a", "old": "1"})
    start(OLD)
    widgets.create("w")
    status_is(widgets, 1)
    operator.stop()


def test_all_that_was_noted_gets_the_new_name(start, operator, handler, widgets, nodes, config_maps):
    made_under_the_old_name(start, operator, handler, widgets)
    answer(handler, 2, {"kept": "1", "changed": "2"}, {"pool": "b"})
    start(NEW, formerNames=[OLD])
    status_is(widgets, 2)
    found = {"w": widgets.get("w"), "a": config_maps.get("a"), "theirs": config_maps.get("theirs"), "n1": nodes.get("n1")}
    for name, object_ in found.items():
        metadata = {key: value for key, value in object_["metadata"].items() if key != "managedFields"}
        assert OLD not in json.dumps(metadata) and (NEW in json.dumps(metadata) or name == "n1"), metadata
        managers = [entry["manager"] for entry in object_["metadata"]["managedFields"] if entry["operation"] == "Apply"]
        assert not [manager for manager in managers if manager.startswith(OLD)], managers
    assert found["a"]["data"] == {"kept": "1", "changed": "2"}, "no conflict with the former name, and what is left out goes"
    assert found["theirs"]["data"] == {"theirs": "1", "kept": "1", "changed": "2"}
    assert found["n1"]["metadata"]["labels"] == {"theirs": "1", "pool": "b"}
    assert found["w"]["metadata"]["finalizers"] == [f"{NEW}/finalizer"]
    widgets.delete("w")
    ends(widgets)
    assert not config_maps.exists("a") and config_maps.get("theirs")["metadata"].get("annotations") is None
    assert nodes.get("n1")["metadata"]["labels"] == {"theirs": "1"}
    assert not operator.logs(message_id=MESSAGE_ID["FINALIZERS_LEFT"])
    operator.stop()


def test_what_is_deleted_meanwhile_is_cleaned_up(start, operator, handler, widgets, nodes, config_maps):
    """An object that is being deleted takes no new finalizer."""
    made_under_the_old_name(start, operator, handler, widgets)
    widgets.delete("w")
    assert widgets.get("w")["metadata"]["finalizers"] == [f"{OLD}/finalizer"]
    start(NEW, formerNames=[OLD])
    ends(widgets)
    assert handler.requests(name="w", action="finalize")
    assert not config_maps.exists("a") and config_maps.get("theirs")["data"]["theirs"] == "1"
    assert config_maps.get("theirs")["metadata"].get("annotations") is None
    assert nodes.get("n1")["metadata"]["labels"] == {"theirs": "1"}
    operator.stop()


def test_without_the_key_it_is_somebody_elses(start, operator, handler, widgets, nodes, config_maps):
    made_under_the_old_name(start, operator, handler, widgets)
    before = config_maps.get("a")
    start(NEW)
    said = operator.wait_for_log("of its children", key="default/w")["message"]
    assert "another operator has it" in said
    assert config_maps.get("a") == before and nodes.get("n1")["metadata"]["labels"]["pool"] == "a"
    operator.stop()


def test_watches_of_one_kind(devserver, operator, handler, make_handler, widgets, config_maps):
    """Neither takes the other's children, whichever name they are noted under, and the last one leaves nothing."""
    handler.answer({"children": [config_map("a", {"of": "1"})]})
    other = make_handler(f"echo '{json.dumps({'children': [config_map('b', {'of': '2'})], 'status': {'n': 1}})}'")

    def start(name, **more):
        entry = {"finalizer": True, "onStart": "all"}
        operator.configure(devserver, [watch("widgets", handler, **entry), watch("more", other, id="more", **entry)], operator=name, **more)
        return operator.start_ready().wait_synced()

    start(OLD)
    widgets.create("w")
    wait_until(lambda: config_maps.exists("a") and config_maps.exists("b"), "the children of both")
    wait_until(lambda: len(widgets.get("w")["metadata"]["finalizers"]) == 2 and widgets.get("w").get("status"), "both finalizers")
    operator.stop()
    start(NEW, formerNames=[OLD])
    wait_until(lambda: OLD not in json.dumps([widgets.get("w")["metadata"]["finalizers"], widgets.get("w")["metadata"]["annotations"]] +
                                             [config_maps.get(name)["metadata"]["annotations"] for name in "ab"]), "the new name")
    assert [config_maps.get(name)["data"]["of"] for name in "ab"] == ["1", "2"]
    widgets.delete("w")
    ends(widgets)
    assert config_maps.names() == ["theirs"]
    operator.stop()


@pytest.mark.parametrize("names, says", [([NEW], "is the operator's name now"), (["no-dot"], "is not a DNS name with a dot")])
def test_wrong_names(devserver, operator, handler, names, says):
    operator.configure(devserver, [watch("widgets", handler)], operator=NEW, formerNames=names)
    assert f"formerNames: \"{names[0]}\" {says}" in operator.ctl.run("check", str(operator.config_file)).stdout
