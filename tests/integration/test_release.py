# SPDX-License-Identifier: Apache-2.0
"""Ways out: our finalizer comes off one object by hand, with a trace; or off everything, when the operator goes."""
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

FINALIZER = "widgets.example.com/finalizer"


@pytest.fixture
def start(devserver, operator, handler):
    def start(watches=None, workers=2, **more):
        more = {"finalizer": True, "retry": {"first": "20ms", "max": "50ms"}, **more}
        operator.configure(devserver, watches or [watch("widgets", handler, **more)], workers=workers)
        return operator.start_ready().wait_synced()

    handler.behave("[ $RECONCILED_ACTION != finalize ]")
    return start


def held(widgets, name):
    return FINALIZER in (widgets.get(name)["metadata"].get("finalizers") or [])


def release(operator, key, *more):
    return operator.ctl.run("release", "--finalizer", *more, "widgets", key)


def test_the_audited_way_out(start, operator, handler, widgets):
    start()
    widgets.create("stuck")
    handler.wait_finished(name="stuck")
    widgets.delete("stuck")
    handler.wait_finished(name="stuck", action="finalize", count=2)
    assert held(widgets, "stuck"), "a failed cleanup never releases it"
    assert release(operator, "default/stuck", "--yes").returncode == 64, "why?"
    assert release(operator, "default/stuck", "--reason", "disk is gone").returncode == 64, "not without a yes"
    assert held(widgets, "stuck")
    assert release(operator, "default/stuck", "--reason", "the disk is gone", "--yes").stdout.endswith(
        "\nour finalizer is taken off default/stuck of watch widgets, if it is being deleted\n")
    wait_until(lambda: not widgets.exists("stuck"), "its end")
    operator.wait_for_log(message_id=MESSAGE_ID["FINALIZER_RELEASED"])
    trace = operator.logs(message_id=MESSAGE_ID["FINALIZER_RELEASED"])
    assert len(trace) == 1 and trace[0]["key"] == "default/stuck" and "the disk is gone" in trace[0]["message"]
    assert "user" in trace[0]
    wait_until(lambda: operator.ctl.status()["watches"][0]["held"] == 0, "the ledger to forget it")
    operator.stop()
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


def test_a_change_in_between_does_not_undo_it(start, operator, handler, widgets):
    """It waits for a worker, and the object changes meanwhile."""
    start(workers=1)
    widgets.create("stuck")
    handler.wait_finished(name="stuck")
    handler.behave(f"case $RECONCILED_NAME in busy) {handler.held} ;; *) exit 1 ;; esac")
    widgets.delete("stuck")
    handler.wait_finished(name="stuck", action="finalize")
    widgets.create("busy")
    handler.wait_for(name="busy")
    assert release(operator, "default/stuck", "--reason", "the disk is gone", "--yes").returncode == 0
    version = widgets.merge_patch("stuck", {"spec": {"size": 2}})["metadata"]["resourceVersion"]
    wait_until(lambda: f"stored      resourceVersion {version}," in operator.ctl.run("explain", "widgets", "default/stuck").stdout,
               "the change to be known")
    handler.let_go()
    wait_until(lambda: not widgets.exists("stuck"), "its end")
    operator.stop()


def test_one_that_is_not_deleted_keeps_it(start, operator, handler, widgets):
    start()
    widgets.create("alive")
    handler.wait_finished(name="alive")
    refused = release(operator, "default/alive", "--reason", "by mistake", "--yes")
    assert (refused.returncode, refused.stdout) == (70, ""), "no effect is claimed"
    assert "default/alive of watch widgets is not being deleted: our finalizer stays" in refused.stderr
    assert held(widgets, "alive") and not operator.logs(message_id=MESSAGE_ID["FINALIZER_RELEASED"])
    widgets.merge_patch("alive", {"spec": {"size": 2}})
    handler.wait_finished(name="alive", count=2)
    operator.stop()


def test_what_cannot_be_released_is_said(start, operator, handler):
    start()
    assert "no object default/none of watch widgets is known" in release(operator, "default/none", "--reason", "x", "--yes").stderr
    operator.stop()


def test_uninstall_takes_them_off_everything(start, operator, handler, widgets, api):
    start([watch("widgets", handler, finalizer=True, retry={"first": "20ms", "max": "50ms"}),
           watch("maps", handler, api_version="v1", kind="ConfigMap", finalizer=True)])
    maps = api.resource("v1", "configmaps", "default")
    maps.create("map")
    handler.wait_finished(name="map")
    names = [f"w{number}" for number in range(30)]
    for name in names:
        widgets.create(name)
    for name in names:
        handler.wait_finished(name=name)
    widgets.delete("w0")
    handler.wait_finished(name="w0", action="finalize")
    asked = operator.ctl.run("uninstall")
    assert asked.returncode == 64 and "watch widgets: 30 objects\nwatch maps: 1 object\n" in asked.stdout
    assert all(held(widgets, name) for name in names)
    done = operator.ctl.run("uninstall", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not widgets.exists("w0")
    assert not any(held(widgets, name) for name in names[1:]) and not held(maps, "map")
    operator.wait_for_log(message_id=MESSAGE_ID["UNINSTALLING"])
    before = handler.count()
    widgets.merge_patch("w1", {"spec": {"size": 2}})
    widgets.delete("w2")
    assert not widgets.exists("w2")
    operator.stop()
    assert handler.count() == before and not held(widgets, "w1"), "nothing else runs any more"


def test_what_waits_at_an_uninstall_does_not_run(start, operator, handler, make_handler, widgets, api):
    """Neither what was never handed to a worker, nor what is asked for by hand, nor the cleanup of what is gone."""
    other = make_handler()
    start([watch("widgets", handler, finalizer=True),
           watch("maps", other, api_version="v1", kind="ConfigMap")], workers=1)
    for name in ("gone", "first"):
        widgets.create(name)
        handler.wait_finished(name=name)
    handler.behave(handler.held)
    widgets.merge_patch("first", {"spec": {"size": 2}})
    handler.wait_for(name="first", count=2)
    runs, of_others = handler.count(), other.count()
    widgets.merge_patch("gone", {"metadata": {"finalizers": None}})
    widgets.delete("gone")
    for number in range(3):
        widgets.create(f"w{number}")
        api.resource("v1", "configmaps", "default").create(f"m{number}")

    def waiting():
        return [row["queued"] + row["running"] for row in operator.ctl.status()["watches"]]

    wait_until(lambda: waiting() == [5, 3], lambda: f"all to be known: {waiting()}")
    with ThreadPoolExecutor() as pool:
        done = pool.submit(operator.ctl.run, "uninstall", "--yes")
        operator.wait_for_log(message_id=MESSAGE_ID["UNINSTALLING"])
        handler.let_go()
        done = done.result()
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (["retry", "widgets", "default/w0"], ["retry", "maps", "default/m0"], ["retry", "--all-failed"]):
        refused = operator.ctl.run(*words)
        assert refused.returncode == 70 and "being uninstalled" in refused.stderr
    wait_until(lambda: all(worker["state"] == "idle" for worker in operator.ctl.status()["workers"]), "the end of all")
    assert not any(row["pausedSince"] for row in operator.ctl.status()["watches"]), "nobody has paused anything"
    operator.stop()
    assert (handler.count(), other.count()) == (runs, of_others)
    assert not any(held(widgets, name) for name in ("first", "w0", "w1", "w2"))


def test_uninstall_says_what_is_left(start, operator, handler, widgets, devserver):
    start(onUnrecoverable="throttle")
    for name in ("a", "b"):
        widgets.create(name)
        handler.wait_finished(name=name)
    fault = devserver.fault(match={"verb": "patch", "name": "a"}, times=0, status=500, message="not now")
    done = operator.ctl.run("uninstall", "--yes", "--timeout", "500ms")
    assert done.returncode == 70 and done.stdout.endswith("1 object is left; the operator's log says why\n"), done.stdout
    assert held(widgets, "a") and not held(widgets, "b")
    assert "not now" in operator.wait_for_log(message_id=MESSAGE_ID["RUN_FAILED"])["message"]
    devserver.clear_faults(fault)
    done = operator.ctl.run("uninstall", "--yes")
    assert done.returncode == 0, "one that failed is tried again"
    assert not held(widgets, "a") and not held(widgets, "b")
    operator.stop()
