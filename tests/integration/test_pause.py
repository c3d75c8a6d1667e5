# SPDX-License-Identifier: Apache-2.0
"""A watch that is paused: nothing of it runs, nothing of it is lost, and nobody can overlook it."""
import pytest

from harness import wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID


@pytest.fixture
def start(devserver, operator, handler, make_handler):
    def start(**more):
        operator.other = make_handler()
        operator.configure(devserver, [watch("widgets", handler, **more),
                                       watch("maps", operator.other, api_version="v1", kind="ConfigMap")],
                           heartbeat={"interval": "100ms", "deadline": "30s"},
                           gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})
        operator.gateway = Gateway(operator.runtime_directory / "gateway.sock")
        return operator.start_ready().wait_synced()

    return start


def ctl(operator, *words, code=0):
    done = operator.ctl.run(*words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def row(operator, name="widgets"):
    return next(entry for entry in operator.ctl.status()["watches"] if entry["name"] == name)


def wait_known(operator, objects):
    """The watcher has announced so many objects, and the supervisor holds them."""
    wait_until(lambda: row(operator)["queued"] == objects, lambda: f"{objects} that wait: {row(operator)}")


def another_watch_runs(operator, api, name):
    api.resource("v1", "configmaps", "default").create(name)
    operator.other.wait_finished(name=name)


def test_nothing_of_it_runs_also_after_a_restart(start, operator, handler, widgets, api):
    start()
    assert "watch widgets is paused; none of its objects run" in ctl(operator, "pause", "--reason", "the disks are moved", "widgets")
    said = operator.wait_for_log("is paused", message_id=MESSAGE_ID["PAUSED"])
    assert said["watch"] == "widgets" and "the disks are moved" in said["message"] and said["level"] == "warning"
    widgets.create("a")
    wait_known(operator, 1)
    another_watch_runs(operator, api, "one")
    operator.gateway.wait('reconciled_watch_paused{watch="widgets"}', 1)
    operator.gateway.wait('reconciled_watch_paused{watch="maps"}', 0)
    wait_until(lambda: "1 paused" in operator.status_text, "systemd's status line")
    assert row(operator)["pauseReason"] == "the disks are moved" and row(operator)["pausedSince"] > 0
    text = ctl(operator, "status")
    assert "paused for" in text and "the disks are moved" in text and "reconciledctl resume widgets" in text
    assert "the watch is paused" in ctl(operator, "explain", "widgets", "default/a")
    assert "is paused already" in ctl(operator, "pause", "widgets")
    operator.stop()

    operator.start_ready().wait_synced()
    operator.wait_for_log(message_id=MESSAGE_ID["PAUSED"], watch="widgets")
    wait_known(operator, 1)
    another_watch_runs(operator, api, "two")
    assert row(operator)["pauseReason"] == "the disks are moved"
    assert handler.count() == 0
    assert "is resumed" in ctl(operator, "resume", "widgets")
    handler.wait_finished(name="a")
    operator.wait_for_log(message_id=MESSAGE_ID["RESUMED"], watch="widgets")
    assert "was not paused" in ctl(operator, "resume", "widgets")
    assert row(operator)["pausedSince"] == 0
    operator.stop()
    operator.start_ready().wait_synced()
    assert not operator.logs(message_id=MESSAGE_ID["PAUSED"])


def test_what_runs_is_finished(start, operator, handler, widgets):
    handler.behave(f"{handler.held}; echo '{{\"status\": {{\"seen\": true}}}}'")
    start(resync="10h")
    widgets.create("a")
    handler.wait_for(name="a")
    wait_until(lambda: "1 running, 0 queued, 0 waiting" in operator.status_text, "systemd's status line to count it")
    assert "1 running will finish" in ctl(operator, "pause", "widgets")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.let_go()
    wait_until(lambda: widgets.get("a").get("status"), "its outcome")
    wait_known(operator, 1)
    assert "next try    when the watch is resumed (changed)" in ctl(operator, "explain", "widgets", "default/a")
    wait_until(lambda: "0 running, 1 queued, 0 waiting, 1 paused" in operator.status_text, "systemd's status line")
    assert handler.count() == 1
    ctl(operator, "resume", "widgets")
    handler.wait_finished(name="a", count=2)


@pytest.mark.slow
def test_what_becomes_due_meanwhile_is_due_when_it_is_resumed(start, operator, handler, widgets, api):
    handler.answer({"requeueAfter": "1s"})
    start()
    widgets.create("a")
    handler.wait_finished(name="a")
    ctl(operator, "pause", "widgets")
    operator.stop()
    runs = handler.count()
    operator.start_ready().wait_synced()
    wait_until(lambda: "when the watch is resumed (requeueAfter)" in ctl(operator, "explain", "widgets", "default/a"),
               "it to be kept for later")
    another_watch_runs(operator, api, "one")
    assert handler.count() == runs
    operator.stop()
    operator.start_ready().wait_synced()
    ctl(operator, "resume", "widgets")
    handler.wait_finished(name="a", count=runs + 1)
    assert handler.requests()[runs].body["reason"] == "requeueAfter"


def test_deletions_are_kept(start, operator, handler, widgets, api):
    start(finalizer=False)
    widgets.create("a")
    handler.wait_finished(name="a")
    ctl(operator, "pause", "widgets")
    operator.stop()
    widgets.delete("a")
    operator.start_ready().wait_synced()
    wait_known(operator, 1)
    another_watch_runs(operator, api, "one")
    ctl(operator, "resume", "widgets")
    handler.wait_finished(action="deleted")
    assert [request.body["action"] for request in handler.requests()] == ["reconcile", "deleted"]


def test_one_object_can_be_tried_by_hand(start, operator, handler, widgets):
    handler.behave("exit 1")
    start(finalizer=True, retry={"first": "10ms", "max": "10ms"})
    widgets.create("a")
    handler.wait_finished(name="a", count=2)
    ctl(operator, "pause", "widgets")
    wait_known(operator, 1)
    runs = handler.count()
    ctl(operator, "retry", "widgets", "default/a")
    handler.wait_finished(name="a", count=runs + 1)
    wait_known(operator, 1)
    assert handler.count() == runs + 1, "its retries wait"
    assert "is paused" in ctl(operator, "retry", "--all-failed", "widgets", code=70)
    assert "no object" in ctl(operator, "retry", "--all-failed")
    widgets.delete("a")
    version = widgets.get("a")["metadata"]["resourceVersion"]
    wait_until(lambda: f"stored      resourceVersion {version}," in ctl(operator, "explain", "widgets", "default/a"),
               "the deletion to be known")
    ctl(operator, "release", "--finalizer", "--reason", "it hurts", "--yes", "widgets", "default/a")
    wait_until(lambda: not widgets.exists("a"), "its end")
    assert handler.count() == runs + 1


@pytest.mark.slow
def test_many_wait_in_the_store(start, operator, handler, widgets):
    """The queue holds no more than its share."""
    start()
    ctl(operator, "pause", "widgets")
    for number in range(2300):
        widgets.create(f"w{number}")
    wait_until(lambda: row(operator)["unannounced"] >= 300, lambda: f"{row(operator)}", 60)
    assert row(operator)["queued"] <= 2000
    handler.behave("exit 0")
    assert handler.count() == 0


def test_wrong_usage(start, operator):
    start()
    assert "the watches are widgets, maps" in ctl(operator, "pause", "gadgets", code=70)
    ctl(operator, "pause", code=64)
    ctl(operator, "resume", "widgets", "maps", code=64)
