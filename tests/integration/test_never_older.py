# SPDX-License-Identifier: Apache-2.0
"""A request is never older than what the operator wrote itself, whatever its watches show; and these writes are no news."""
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

OWNS = [{"apiVersion": "v1", "kind": "ConfigMap"}]
# What a generator does: a password once, and as it is from then on.
PASSWORD = """python3 - <<'END'
import json, os
request = json.load(open(os.environ["REQUEST"]))
data = request["children"][0]["data"] if request["children"] else {"password": os.urandom(8).hex()}
data = {**data, "size": str(request["object"].get("spec", {}).get("size", 0))}
print(json.dumps({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}]}))
END"""


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(*watches, **more):
        operator.configure(devserver, [watch("widgets", handler, owns=OWNS,
                                             **{"retry": {"first": "50ms", "max": "200ms"}, **more}), *watches])
        return operator.start_ready().wait_synced()

    return start


def silence(devserver, resource, **more):
    """No watch of it delivers anything more, and none is refused."""
    devserver.fault(match={"verb": "watch", "resource": resource}, times=0, atEvent=1, stall=True, bookmarks=False, **more)
    devserver.close_watches("clean")


def children_of(request):
    return {child["metadata"]["name"]: child.get("data") for child in request.body["children"]}


def test_own_writes_to_children_are_no_news(start, operator, handler, widgets, config_maps):
    handler.behave("""case $RECONCILED_NAME in w) ;; *) echo '{"requeueAfter":"500ms"}'; exit;; esac
        cat <<END
{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}},
 {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"x": "1"}}], "status": {"ready": true}}
END""")
    start(children={"force": True})
    widgets.create("w")
    wait_until(lambda: config_maps.exists("b") and widgets.get("w").get("status"), "the run's writes")
    widgets.create("clock")
    handler.wait_finished(name="clock", count=5)
    assert len(handler.requests(name="w")) == 1
    config_maps.merge_patch("a", {"data": {"x": "2"}})
    handler.wait_finished(name="w", count=2)
    handler.wait_finished(name="clock", count=len(handler.requests(name="clock")) + 5)
    assert [request.body["reason"] for request in handler.requests(name="w")] == ["added", "child changed"]
    operator.stop()


def test_a_change_by_others_while_the_run_writes_is_news(start, operator, handler, widgets, config_maps):
    handler.behave(f"""case $RECONCILED_REASON in added) {handler.held};; esac
        echo '{{"children": [{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{"x": "1"}}}}]}}'""")
    start()
    uid = widgets.create("w")["metadata"]["uid"]
    handler.wait_for(name="w")
    config_maps.create("other", ownerReferences=[{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid}])
    config_maps.create("marker")
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 2, "the store to have both")
    handler.let_go()
    second = handler.wait_finished(name="w", count=2)
    assert second.body["reason"] == "child changed" and set(children_of(second)) == {"a", "other"}
    operator.stop()


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("seen", [False, True])
def test_a_handler_is_shown_its_children_as_they_were_written(devserver, start, operator, handler, widgets, config_maps, killed, seen):
    """The watch of the owned kind is silent, and counts as in sync."""
    handler.behave(PASSWORD)
    start()
    if not seen:
        silence(devserver, "configmaps")
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: config_maps.exists("a"), "the child")
    if seen:
        wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 1, "the child to be seen")
        silence(devserver, "configmaps")
    password = config_maps.get("a")["data"]["password"]
    for size in (2, 3, 4):
        wait_until(lambda: config_maps.get("a")["data"]["size"] == str(size - 1), "the last write")
        if killed:
            operator.send_signal(signal.SIGKILL)
            operator.wait_exit()
            operator.start_ready()
        widgets.merge_patch("w", {"spec": {"size": size}})
        shown = handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == size)
        assert children_of(shown) == {"a": {"password": password, "size": str(size - 1)}}
        assert config_maps.get("a")["data"]["password"] == password
    operator.stop()
    assert not operator.logs(lambda record: "the handler runs again and is shown it" in record.get("message", ""))


def test_a_deleted_child_is_not_shown_again(devserver, start, operator, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a"), config_map("b")]})
    start()
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 2, "the children to be seen")
    silence(devserver, "configmaps")
    handler.answer({"children": [config_map("a")]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: not config_maps.exists("b"), "the deletion")
    widgets.merge_patch("w", {"spec": {"size": 3}})
    last = handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == 3)
    assert set(children_of(last)) == {"a"}
    operator.stop()


@pytest.mark.parametrize("fault", [{"status": 403}, {"reset": True}], ids=["refused", "broken"])
def test_what_is_gone_behind_a_broken_watch_is_made_again(devserver, start, operator, handler, widgets, config_maps, fault):
    handler.answer({"children": [config_map("a")]})
    start()
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 1, "the child to be seen")
    devserver.fault(match={"verb": "watch", "resource": "configmaps"}, times=0, **fault)
    devserver.fault(match={"verb": "list", "resource": "configmaps"}, times=0, **fault)
    devserver.close_watches("clean")
    wait_until(lambda: operator.ctl.status()["watches"][1]["state"] == "degraded", "the watch to be degraded")
    config_maps.delete("a")
    widgets.merge_patch("w", {"spec": {"size": 2}})
    last = handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == 2)
    assert children_of(last) == {}
    wait_until(lambda: config_maps.exists("a"), "the child")
    operator.stop()


def test_an_object_is_never_older_than_what_was_written_to_it(devserver, operator, handler, widgets):
    handler.behave("""printf '{"status":{"seen":"%s"}}' "$(date +%N)" """)
    operator.configure(devserver, [watch("widgets", handler, reconnect={"watchTimeout": "5s", "stall": "5s"})])
    operator.start_ready().wait_synced()
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=0, atEvent=2, stall=True, bookmarks=False)
    devserver.close_watches("clean")
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status"), "the status")
    assert operator.ctl.run("retry", "widgets", "default/w").returncode == 0
    told = operator.wait_for_log(message_id=MESSAGE_ID["WATCH_BEHIND"])
    assert told["key"] == "default/w" and "has not shown what this operator wrote to default/w" in told["message"]
    assert operator.ctl.status()["watches"][0]["behindSince"] > 0
    assert "it has not shown what the operator wrote itself" in operator.ctl.run("status").stdout
    explained = operator.ctl.run("explain", "widgets", "default/w").stdout
    assert "it waits until watch widgets shows what the operator wrote to it" in explained, explained
    assert len(handler.requests(name="w")) == 1
    devserver.clear_faults()
    devserver.close_watches("cut")
    last = handler.wait_finished(name="w", count=2)
    assert last.object["status"]
    wait_until(lambda: operator.ctl.status()["watches"][0]["behindSince"] == 0, "the watch to have caught up")
    operator.stop()
    assert len(operator.logs(message_id=MESSAGE_ID["WATCH_BEHIND"])) == 1
