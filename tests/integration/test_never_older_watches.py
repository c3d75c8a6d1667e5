# SPDX-License-Identifier: Apache-2.0
"""A second watch, many children, a lost ledger: no request is older than what the operator wrote."""
from harness import wait_until, watch
import json
import pytest
import signal


CM = {"apiVersion": "v1", "kind": "ConfigMap"}


OWNS = [CM]


SIZED = """python3 - <<'END'
import json, os
request = json.load(open(os.environ["REQUEST"]))
size = str(request["object"]["spec"]["size"])
print(json.dumps({"children": [{"apiVersion": "%s", "kind": "%s", "metadata": {"name": "a", %s "labels": {"size": size}}, "%s": {"size": size}}], "status": {"n": int(size)}}))
END"""


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(*watches, top=None, **more):
        operator.configure(devserver, [watch("widgets", handler, **{"owns": OWNS, "retry": {"first": "50ms", "max": "200ms"}, **more}),
                                       *watches], **(top or {}))
        return operator.start_ready().wait_synced()

    return start


def status_is(widgets, n, name="w", deadline=20):
    wait_until(lambda: (widgets.get(name).get("status") or {}).get("n") == n, lambda: f"the status {n}: {widgets.get(name)}", deadline)


def silence(devserver, resource, **more):
    devserver.fault(match={"verb": "watch", "resource": resource}, times=0, atEvent=1, stall=True, bookmarks=False, **more)
    devserver.close_watches("clean", match={"resource": resource})


def seen(operator, count, number=1):
    wait_until(lambda: operator.ctl.status()["watches"][number]["objects"] == count, f"{count} children to be seen")


def of_size(handler, size):
    return handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == size)


def labels_of(request):
    return {child["metadata"]["name"]: child["metadata"]["labels"]["size"] for child in request.body["children"]}


@pytest.mark.parametrize("lost", ["ledger", "nothing"])
@pytest.mark.parametrize("metadata_only", [False, True])
def test_the_ledger_is_lost_and_the_watch_silent(devserver, start, operator, handler, widgets, config_maps, lost, metadata_only):
    handler.behave(SIZED % ("v1", "ConfigMap", "", "data"))
    start(owns=[{**CM, "metadataOnly": metadata_only}])
    widgets.create("w", spec={"size": 1})
    status_is(widgets, 1)
    seen(operator, 1)
    silence(devserver, "configmaps")
    widgets.merge_patch("w", {"spec": {"size": 2}})
    status_is(widgets, 2)
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    if lost == "ledger":
        for path in operator.state_directory.glob("ledger*"):
            path.unlink()
    operator.start_ready()
    widgets.merge_patch("w", {"spec": {"size": 3}})
    assert labels_of(of_size(handler, 3)) == {"a": "2"}


@pytest.mark.parametrize("finalizer", [False, True])
def test_two_watches_and_no_fault_at_all(devserver, operator, handler, make_handler, widgets, finalizer):
    """Both handlers count up in one status; a request that is older than the other's write shows as a number twice."""
    count = """python3 - <<'END'
import json, os
request = json.load(open(os.environ["REQUEST"]))
seen = (request["object"].get("status") or {})
print(json.dumps({"status": {"ver": request["object"]["metadata"]["resourceVersion"], "last": "%s", "size": request["object"]["spec"]["size"]}}))
END"""
    handler.behave(count % "first")
    other = make_handler(count % "second")
    operator.configure(devserver, [watch("first", handler, finalizer=finalizer), watch("second", other, id="second", finalizer=finalizer)])
    operator.start_ready().wait_synced()
    widgets.create("w", spec={"size": 0})
    older = []
    for size in range(1, 21):
        wait_until(lambda: all(w["running"] == 0 and w["queued"] == 0 for w in operator.ctl.status()["watches"]), "rest")
        changed = widgets.merge_patch("w", {"spec": {"size": size}})["metadata"]["resourceVersion"]
        runs = [h.wait_finished(name="w", where=lambda r: r.object["spec"]["size"] == size) for h in (handler, other)]
        first, second = sorted(runs, key=lambda r: r.started)
        # the first one wrote its status before the second one began (one after the other, never two at once)
        if int(second.metadata["resourceVersion"]) == int(first.metadata["resourceVersion"]):
            older.append((size, second.body["watch"]))
    assert not older, (len(older), older)


@pytest.mark.parametrize("count", [16, 17, 40])
def test_deletions_of_our_own_are_no_news(start, operator, handler, widgets, config_maps, count):
    cm = lambda n: {**CM, "metadata": {"name": f"c{n}"}, "data": {"a": "1"}}
    handler.behave(f"""case $RECONCILED_NAME in w) ;; *) echo '{{"requeueAfter":"500ms"}}'; exit;; esac
        echo '{json.dumps({"children": [cm(n) for n in range(count)], "status": {"n": 1}})}'""")
    start()
    widgets.create("w", spec={"size": 1})
    status_is(widgets, 1)
    widgets.create("clock")
    handler.wait_finished(name="clock", count=6)
    handler.behave("""case $RECONCILED_NAME in w) ;; *) echo '{"requeueAfter":"500ms"}'; exit;; esac
        echo '{"children": [], "status": {"n": 2}}'""")
    before = len(handler.requests(name="w"))
    widgets.merge_patch("w", {"spec": {"size": 2}})
    status_is(widgets, 2)
    clock = len(handler.requests(name="clock"))
    handler.wait_finished(name="clock", count=clock + 6)
    assert [r.body["reason"] for r in handler.requests(name="w")][before:] == ["changed"]


@pytest.mark.parametrize("count", [16, 17])
def test_a_handler_that_changes_all_its_children_each_time(start, operator, handler, widgets, config_maps, count):
    """A time stamp in each child, for example: one run for each change of the object, not one each second for ever."""
    handler.behave("""case $RECONCILED_NAME in w) ;; *) echo '{"requeueAfter":"500ms"}'; exit;; esac
python3 - <<'END'
import json, time
cm = lambda n: {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}, "data": {"at": str(time.time())}}
print(json.dumps({"children": [cm(n) for n in range(%d)], "status": {"n": 1}}))
END""" % count)
    start()
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status"), "the run's writes")
    widgets.create("clock")
    handler.wait_finished(name="clock", count=12)
    assert [request.body["reason"] for request in handler.requests(name="w")] == ["added"]
