# SPDX-License-Identifier: Apache-2.0
"""What the operator has written, deleted or let go is shown as that, however late the stores are; and it is no news."""
from harness import wait_until, watch
import json
import pytest
import signal
import time


CM = {"apiVersion": "v1", "kind": "ConfigMap"}


OWNS = [CM]


def config_map(name, data=None, **metadata):
    return {**CM, "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(*watches, **more):
        operator.configure(devserver, [watch("widgets", handler, **{"owns": OWNS, "retry": {"first": "50ms", "max": "200ms"}, **more}),
                                       *watches])
        return operator.start_ready().wait_synced()

    return start


def silence(devserver, resource, **more):
    devserver.fault(match={"verb": "watch", "resource": resource}, times=0, atEvent=1, stall=True, bookmarks=False, **more)
    devserver.close_watches("clean", match={"resource": resource})


def children_of(request):
    return {child["metadata"]["name"]: child.get("data") for child in request.body["children"]}


def seen(operator, count, number=1):
    wait_until(lambda: operator.ctl.status()["watches"][number]["objects"] == count, f"{count} children to be seen")


def of_size(handler, size):
    return handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == size)


def test_a_child_that_a_person_changed_and_we_deleted_is_not_shown(devserver, start, operator, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a"), config_map("b")]})
    start()
    widgets.create("w", spec={"size": 1})
    seen(operator, 2)
    silence(devserver, "configmaps")
    config_maps.merge_patch("b", {"data": {"person": "1"}})
    handler.answer({"children": [config_map("a")], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: not config_maps.exists("b"), "the deletion")
    wait_until(lambda: (widgets.get("w").get("status") or {}).get("n") == 2, "the end")
    widgets.merge_patch("w", {"spec": {"size": 3}})
    assert set(children_of(of_size(handler, 3))) == {"a"}


def test_forty_deleted_children_are_not_shown(devserver, start, operator, handler, widgets, config_maps):
    handler.answer({"children": [config_map(f"c{n}") for n in range(40)]})
    start()
    widgets.create("w", spec={"size": 1})
    seen(operator, 40)
    silence(devserver, "configmaps")
    handler.answer({"children": [], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: (widgets.get("w").get("status") or {}).get("n") == 2, "the end")
    assert not config_maps.names()
    widgets.merge_patch("w", {"spec": {"size": 3}})
    assert set(children_of(of_size(handler, 3))) == set()


def test_a_released_child_is_not_shown_as_it_was(devserver, start, operator, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a"), config_map("b")]})
    start()
    widgets.create("w", spec={"size": 1})
    seen(operator, 2)
    silence(devserver, "configmaps")
    handler.answer({"children": [config_map("a"), {"manifest": config_map("b"), "release": True}], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: (widgets.get("w").get("status") or {}).get("n") == 2, "the end")
    assert "ownerReferences" not in config_maps.get("b")["metadata"]
    handler.answer({"children": [config_map("a")], "status": {"n": 3}})
    widgets.merge_patch("w", {"spec": {"size": 3}})
    last = of_size(handler, 3)
    shown = {child["metadata"]["name"]: child["metadata"] for child in last.body["children"]}
    assert "b" not in shown, shown["b"]


@pytest.mark.parametrize("count", [20, 33, 60])
def test_many_children_and_one_run(start, operator, handler, widgets, config_maps, count):
    answer = json.dumps({"children": [config_map(f"c{n}") for n in range(count)], "status": {"n": 1}})
    handler.behave(f"""case $RECONCILED_NAME in w) ;; *) echo '{{"requeueAfter":"500ms"}}'; exit;; esac
        echo '{answer}'""")
    start()
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status"), "the run's writes", 60)
    widgets.create("clock")
    handler.wait_finished(name="clock", count=6)
    assert [request.body["reason"] for request in handler.requests(name="w")] == ["added"]


def test_a_released_child_of_a_watch_that_lives(devserver, start, operator, handler, widgets, config_maps):
    """As t3 with a watch that is broken and says so."""
    handler.answer({"children": [config_map("a"), config_map("b")]})
    start()
    widgets.create("w", spec={"size": 1})
    seen(operator, 2)
    for verb in ("watch", "list"):
        devserver.fault(match={"verb": verb, "resource": "configmaps"}, times=0, status=403)
    devserver.close_watches("clean", match={"resource": "configmaps"})
    wait_until(lambda: operator.ctl.status()["watches"][1]["state"] == "degraded", "degraded")
    handler.answer({"children": [config_map("a")], "status": {"n": 2}})
    config_maps.merge_patch("b", {"data": {"person": "1"}})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: (widgets.get("w").get("status") or {}).get("n") == 2, "the end")
    assert not config_maps.exists("b")
    widgets.merge_patch("w", {"spec": {"size": 3}})
    assert set(children_of(of_size(handler, 3))) == {"a"}


def status_is(widgets, n, name="w", deadline=20):
    wait_until(lambda: (widgets.get(name).get("status") or {}).get("n") == n, lambda: f"the status {n}: {widgets.get(name)}", deadline)


SIZED = """python3 - <<'END'
import json, os
request = json.load(open(os.environ["REQUEST"]))
size = str(request["object"]["spec"]["size"])
print(json.dumps({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"size": size}}], "status": {"n": int(size)}}
      if request["action"] == "reconcile" else {}))
END"""


@pytest.mark.parametrize("action", ["finalize", "deleted", "unselected"])
@pytest.mark.parametrize("degraded", [False, True])
def test_children_at_the_end(devserver, start, operator, handler, widgets, config_maps, action, degraded):
    handler.behave(SIZED)
    start(finalizer=action == "finalize", **({"labelSelector": "l=1", "unselected": True} if action == "unselected" else {}))
    widgets.create("w", spec={"size": 1}, labels={"l": "1"})
    status_is(widgets, 1)
    seen(operator, 1)
    if degraded:
        for verb in ("watch", "list"):
            devserver.fault(match={"verb": verb, "resource": "configmaps"}, times=0, status=403)
        devserver.close_watches("clean", match={"resource": "configmaps"})
        wait_until(lambda: operator.ctl.status()["watches"][1]["state"] == "degraded", "degraded")
    else:
        silence(devserver, "configmaps")
    widgets.merge_patch("w", {"spec": {"size": 2}})
    status_is(widgets, 2)
    if action == "unselected":
        widgets.merge_patch("w", {"metadata": {"labels": {"l": "2"}}})
    else:
        widgets.delete("w", propagationPolicy="Orphan" if action == "deleted" else "Background")
    last = handler.wait_finished(name="w", action=action)
    shown = {c["metadata"]["name"]: c["data"]["size"] for c in last.body.get("children", [])}
    assert shown in ({"a": "2"}, {}), shown
    if action != "deleted":
        assert shown == {"a": "2"}


def test_a_child_that_changes_hands(devserver, start, operator, handler, widgets, config_maps):
    """As a child moves from w to v with release and adopt; the store shows it with w for a while (the watch is silent)."""
    handler.behave("""python3 - <<'END'
import json, os
request = json.load(open(os.environ["REQUEST"]))
print(json.dumps(request["object"]["spec"]["answer"]))
END""")
    start()
    x = lambda n: {**CM, "metadata": {"name": "x"}, "data": {"n": str(n)}}
    widgets.create("w", spec={"answer": {"children": [x(1)], "status": {"n": 1}}})
    status_is(widgets, 1)
    seen(operator, 1)
    silence(devserver, "configmaps")
    widgets.merge_patch("w", {"spec": {"answer": {"children": [{"manifest": x(1), "release": True}], "status": {"n": 2}}}})
    status_is(widgets, 2)
    widgets.create("v", spec={"answer": {"children": [{"manifest": x(5), "adopt": True}], "status": {"n": 1}}})
    status_is(widgets, 1, "v")
    count = len(handler.requests(name="w"))
    operator.ctl.run("retry", "widgets", "default/w")
    last = handler.wait_finished(name="w", count=count + 1)
    assert last.body["children"] == [], [(c["metadata"]["name"], c["data"]) for c in last.body["children"]]
