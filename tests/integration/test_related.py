# SPDX-License-Identifier: Apache-2.0
"""`related`: what objects depend on without owning it comes with the request, and its changes run them."""
import signal

import pytest

from harness import wait_until, watch


@pytest.fixture
def start(devserver, operator, handler):
    def start(related, **more):
        operator.configure(devserver, [watch("widgets", handler, related=[related], **more)])
        return operator.start_ready().wait_synced()

    return start


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "for=widgets"}


def seen(handler, name, where):
    return handler.wait_finished(name=name, where=lambda request: where(request.body.get("related")))


@pytest.mark.slow
def test_a_change_runs_those_of_its_namespace(start, operator, handler, widgets, api):
    api.resource("v1", "namespaces").create("other")
    config_maps, others = api.resource("v1", "configmaps", "default"), api.resource("example.com/v1", "widgets", "other")
    start(CONFIG)
    for name in ("a", "b"):
        widgets.create(name)
        handler.wait_finished(name=name)
    others.create("elsewhere")
    handler.wait_finished(name="elsewhere")
    config_maps.create("settings", labels={"for": "widgets"}, data={"level": "1"})
    config_maps.create("foreign", data={"level": "9"})
    for name in ("a", "b"):
        request = seen(handler, name, lambda related: related and related[0]["data"] == {"level": "1"})
        assert request.body["reason"] == "related changed" and len(request.body["related"]) == 1
        assert request.body["related"][0]["kind"] == "ConfigMap"
    config_maps.merge_patch("settings", {"data": {"level": "2"}})
    seen(handler, "a", lambda related: related and related[0]["data"] == {"level": "2"})
    config_maps.delete("settings")
    seen(handler, "a", lambda related: related == [] and handler.count() > 4)
    operator.stop()
    assert len(handler.requests(name="elsewhere")) == 1


def test_a_restart_runs_nobody_and_a_change_meanwhile_all(start, operator, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.create("settings", labels={"for": "widgets"}, data={"level": "1"})
    start(CONFIG)
    widgets.create("a")
    seen(handler, "a", lambda related: len(related) == 1)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 0, "rest")
    operator.stop()
    before = handler.count()
    operator.start_ready().wait_synced()
    widgets.create("b")
    seen(handler, "b", lambda related: len(related) == 1)
    operator.stop()
    assert len(handler.requests(name="a")) == before
    config_maps.merge_patch("settings", {"data": {"level": "2"}})
    operator.start_ready().wait_synced()
    seen(handler, "a", lambda related: related and related[0]["data"] == {"level": "2"})
    operator.stop()


@pytest.mark.parametrize("key", ["owns", "related"])
def test_nobody_runs_before_all_of_them_are_known(devserver, operator, handler, widgets, api, key):
    config_maps = api.resource("v1", "configmaps", "default")
    owner = widgets.create("a")["metadata"]
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": owner["uid"], "controller": True}
    config_maps.create("settings", labels={"for": "widgets"}, ownerReferences=[reference])
    faults = [devserver.fault({"verb": verb, "resource": "configmaps"}, status=500, times=0) for verb in ("list", "watch")]
    operator.configure(devserver, [watch("widgets", handler, **{key: [CONFIG]})])
    operator.start_ready().wait_synced()
    awaited = f"widgets.{key}.ConfigMap.0"

    def explained():
        return operator.ctl.run("explain", "widgets", "default/a").stdout

    wait_until(lambda: f"the watch waits until watch {awaited} is in sync" in explained(), explained)
    assert f"its runs wait until watch {awaited} is in sync" in operator.ctl.run("status").stdout
    assert "does not know all objects" in operator.ctl.run("retry", "widgets", "default/a").stderr
    assert handler.count() == 0
    for fault in faults:
        devserver.clear_faults(fault)
    request = handler.wait_finished(name="a")
    assert request.body["reason"] == "added"
    assert [entry["metadata"]["name"] for entry in request.body["related" if key == "related" else "children"]] == ["settings"]
    assert operator.ctl.status()["watches"][0]["waitsFor"] == ""
    operator.stop()


@pytest.mark.slow
def test_objects_of_the_cluster_are_everybodys(start, operator, handler, widgets, api):
    nodes = api.resource("v1", "nodes")
    start({"apiVersion": "v1", "kind": "Node"})
    widgets.create("a")
    handler.wait_finished(name="a")
    nodes.create("one")
    request = seen(handler, "a", lambda related: len(related) == 1)
    assert request.body["related"][0]["metadata"]["name"] == "one"


def test_owners_of_the_cluster_see_all(devserver, operator, handler, api):
    operator.configure(devserver, [watch("namespaces", handler, api_version="v1", kind="Namespace", related=[CONFIG])])
    operator.start_ready().wait_synced()
    handler.wait_finished(name="default")
    api.resource("v1", "configmaps", "default").create("settings", labels={"for": "widgets"}, data={"level": "1"})
    seen(handler, "default", lambda related: len(related) == 1)
    seen(handler, "kube-system", lambda related: len(related) == 1)


def test_in_a_backoff_it_is_no_reason(start, operator, handler, widgets, api):
    handler.behave("exit 1")
    start(CONFIG, retry={"first": "1h", "max": "1h"})
    widgets.create("a")
    handler.wait_finished(name="a")
    api.resource("v1", "configmaps", "default").create("settings", labels={"for": "widgets"})
    handler.behave("exit 0")
    widgets.create("b")
    handler.wait_finished(name="b")
    operator.stop()
    assert len(handler.requests(name="a")) == 1


NAMED = {"apiVersion": "v1", "kind": "ConfigMap", "names": ".spec.config, .spec.more[]?"}


def names_of(request):
    return [entry["metadata"]["name"] for entry in request.body["related"]]


@pytest.mark.slow
def test_those_that_a_program_names(start, operator, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    for name in ("one", "two", "other"):
        config_maps.create(name, data={"level": "1"})
    start(NAMED)
    widgets.create("a", {"config": "one", "more": ["two", "missing"]})
    widgets.create("b", {"config": "other"})
    assert names_of(handler.wait_finished(name="a")) == ["one", "two"]
    assert names_of(handler.wait_finished(name="b")) == ["other"]
    config_maps.merge_patch("two", {"data": {"level": "2"}})
    request = handler.wait_finished(name="a", where=lambda request: request.body["reason"] == "related changed")
    assert [entry["data"]["level"] for entry in request.body["related"]] == ["1", "2"]
    config_maps.create("missing")
    handler.wait_finished(name="a", where=lambda request: names_of(request) == ["one", "two", "missing"])
    operator.stop()
    assert len(handler.requests(name="b")) == 1, "nothing that it depends on has changed"


@pytest.mark.slow
def test_what_is_unneeded_forgets_no_time(start, operator, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    handler.answer({"requeueAfter": "3s"})
    start(NAMED)
    widgets.create("a", {"config": "one"})
    handler.wait_finished(name="a")
    handler.answer({})
    config_maps.create("other")
    request = handler.wait_finished(name="a", count=2)
    assert [r.body["reason"] for r in handler.requests(name="a")] == ["added", "requeueAfter"], request
    operator.stop()


def test_a_program_that_fails_is_a_permanent_error(start, operator, handler, widgets):
    start({**NAMED, "names": ".spec.config"})
    widgets.create("a", {"config": 7})
    widgets.create("b", {"config": "elsewhere/one"})
    for name, why in (("a", "its output is not a string"), ("b", "an object of another namespace")):
        operator.wait_for_log(why, key=f"default/{name}")
    widgets.merge_patch("a", {"spec": {"config": "one"}})
    handler.wait_finished(name="a")
    assert not handler.requests(name="b")


@pytest.mark.parametrize("finalizer", [True, False])
def test_a_program_that_fails_holds_no_cleanup_up(start, operator, handler, widgets, api, finalizer):
    api.resource("v1", "configmaps", "default").create("one", labels={"for": "widgets"})
    start({**NAMED, "names": ".spec.config"}, finalizer=finalizer)
    broken = {"a": 7, "b": "elsewhere/one", "c": {"deep": {}}}
    for name, config in broken.items():
        widgets.create(name, {"config": "one"})
        handler.wait_finished(name=name)
        widgets.merge_patch(name, {"spec": {"config": config}})
        operator.wait_for_log("related", key=f"default/{name}")
    for name in broken:
        widgets.delete(name)
        wait_until(lambda name=name: not widgets.exists(name), f"{name} to go")
        request = handler.wait_finished(name=name, action="finalize" if finalizer else "deleted")
        assert not request.body.get("related")


def test_a_wrong_program_is_a_mistake(operator, devserver, handler):
    operator.configure(devserver, [watch("widgets", handler, related=[{**NAMED, "names": ".spec["}],
                                         owns=[{**NAMED, "kind": "Secret"}])])
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 78
    assert "related[0].names: is not a jq program" in result.stdout and "owns[0].names: is for `related`" in result.stdout


@pytest.mark.slow
def test_a_change_that_waits_for_its_turn_outlives_a_crash(start, operator, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.create("one", data={"level": "1"})
    start(NAMED)
    for number in range(50):  # at most one run a second: a change soon after a run waits
        widgets.create(f"a{number}", {"config": "one"})
        handler.wait_finished(name=f"a{number}")
        config_maps.merge_patch("one", {"data": {"level": str(number + 2)}})
        if operator.ctl.status()["watches"][0]["waiting"] > 0:
            break
    operator.popen.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.start_ready().wait_synced()
    for old in range(number + 1):
        handler.wait_finished(name=f"a{old}", where=lambda request: request.body["related"][0]["data"] == {
            "level": str(number + 2)})
    runs = handler.count()
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("last", {"config": "one"})
    handler.wait_finished(name="last")
    operator.stop()
    assert handler.count() == runs + 1, "the next start finds nothing to do"


@pytest.mark.slow
def test_a_program_that_never_ends_is_blamed_on_its_object(devserver, operator, handler, widgets):
    names = 'def f: [range(100000)] | .[.]; if .metadata.name == "poison" then f else "x" end'
    operator.configure(devserver, [watch("widgets", handler, related=[{**NAMED, "names": names}],
                                         quarantine={"after": 1})], heartbeat={"interval": "50ms", "deadline": "1s"})
    widgets.create("poison")
    operator.start()
    operator.wait_exit(expect=70)
    [cause] = operator.logs(level="critical")
    assert "hangs" in cause["message"] and cause["key"] == "default/poison"
    operator.start_ready().wait_synced()
    widgets.create("b")
    handler.wait_finished(name="b")
    assert [entry["key"] for entry in operator.ctl.status()["quarantine"]] == ["default/poison"]
