# SPDX-License-Identifier: Apache-2.0
"""Our finalizer where it is not as its watch wants it: lost by an object that lives, never put on an object that was
handled before the watch wanted it, left over on an object after the watch stopped wanting it."""
import os
import shutil
import signal
import time

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

FINALIZER = "widgets.example.com/finalizer"
OTHER = "example.com/other"


@pytest.fixture
def configure(devserver, operator, handler):
    def configure(finalizer=True, **more):
        operator.configure(devserver, [watch("widgets", handler, finalizer=finalizer,
                                             **{"retry": {"first": "20ms", "max": "100ms"}, **more})])
        return operator

    return configure


@pytest.fixture
def start(configure):
    def start(**more):
        return configure(**more).start_ready().wait_synced()

    return start


@pytest.fixture(params=["reload", "restart"])
def take(request, operator):
    """The new configuration is taken, by either way."""
    def take():
        if request.param == "restart":
            operator.stop()
            operator.start_ready().wait_synced()
            return
        operator.reload()
        operator.wait_synced()

    return take


def finalizers(widgets, name):
    return widgets.get(name)["metadata"].get("finalizers") or []


def rob(widgets, name, keep=()):
    """As kubectl replace with a manifest that does not have our finalizer."""
    body = widgets.get(name)
    body["metadata"]["finalizers"] = list(keep)
    return widgets.replace(body)


def gone(widgets, name):
    wait_until(lambda: not widgets.exists(name), f"the end of {name}")


def runs(handler, name):
    return [request.body["action"] for request in handler.requests(name=name)]


def settled(handler, widgets, name="last"):
    """What was to be told is told: one more object has come and gone."""
    widgets.create(name)
    handler.wait_finished(name=name)


def patches(server, name):
    return server.requests(lambda request: request.get("verb") == "patch" and request.get("name") == name)


# ---- lost by an object that lives


def test_a_lost_finalizer_comes_back_without_a_run(start, operator, handler, widgets, devserver):
    start()
    widgets.create("robbed")
    handler.wait_finished(name="robbed")
    rob(widgets, "robbed")
    wait_until(lambda: finalizers(widgets, "robbed") == [FINALIZER], "the finalizer")
    operator.wait_for_log(message_id=MESSAGE_ID["FINALIZER_RESTORED"], key="default/robbed")
    assert operator.ctl.status()["watches"][0]["finalizersWritten"] == 1
    assert len(patches(devserver, "robbed")) == 2 and runs(handler, "robbed") == ["reconcile"]
    widgets.delete("robbed")
    gone(widgets, "robbed")
    settled(handler, widgets)
    operator.stop()
    assert runs(handler, "robbed") == ["reconcile", "finalize"]


@pytest.mark.parametrize("trigger", ["any", {"jq": ".spec"}])
def test_a_lost_finalizer_comes_back_whatever_the_trigger(start, operator, handler, widgets, trigger):
    start(trigger=trigger)
    widgets.create("robbed", spec={"size": 1})
    handler.wait_finished(name="robbed")
    rob(widgets, "robbed", keep=[OTHER])
    wait_until(lambda: finalizers(widgets, "robbed") == [OTHER, FINALIZER], "the finalizer")
    operator.stop()


def test_a_finalizer_that_was_lost_while_down_comes_back(start, operator, handler, widgets):
    start()
    widgets.create("robbed")
    handler.wait_finished(name="robbed")
    operator.stop()
    rob(widgets, "robbed")
    operator.start_ready()
    wait_until(lambda: finalizers(widgets, "robbed") == [FINALIZER], "the finalizer")
    settled(handler, widgets)
    operator.stop()
    assert runs(handler, "robbed") == ["reconcile"]


def test_a_lost_finalizer_of_a_failing_object_comes_back(start, operator, handler, widgets):
    """Given up, or in a long backoff: no next run is near that would put it on."""
    handler.behave('[ "$RECONCILED_NAME" = fails ] && exit 1; [ "$RECONCILED_NAME" = permanent ] && exit 65; exit 0')
    start(retry={"first": "1h", "max": "1h"})
    for name in ("fails", "permanent"):
        widgets.create(name)
        handler.wait_finished(name=name)
        wait_until(lambda name=name: finalizers(widgets, name) == [FINALIZER], "the finalizer")
    settled(handler, widgets)
    for name in ("fails", "permanent"):
        rob(widgets, name)
        wait_until(lambda name=name: finalizers(widgets, name) == [FINALIZER], f"the finalizer of {name}")
    operator.stop()
    assert runs(handler, "fails") == ["reconcile"] and runs(handler, "permanent") == ["reconcile"]


@pytest.mark.slow
def test_what_it_waited_for_still_comes(start, operator, handler, widgets):
    """A retry in a backoff, and a requeueAfter: the finalizer's run takes neither away."""
    handler.behave('[ "$RECONCILED_NAME" = fails ] && [ ! -e "${0%/*}/well" ] && exit 1; echo \'{"requeueAfter": "2s"}\'')
    start(retry={"first": "2s", "max": "2s"})
    for name in ("fails", "again"):
        widgets.create(name)
        handler.wait_finished(name=name)
    (handler.folder / "well").touch()
    for name in ("fails", "again"):
        rob(widgets, name)
        wait_until(lambda name=name: finalizers(widgets, name) == [FINALIZER], f"the finalizer of {name}")
    assert handler.wait_finished(name="fails", count=2).body["reason"] == "retry"
    assert handler.wait_finished(name="again", count=2).body["reason"] == "requeueAfter"
    operator.stop()


@pytest.mark.slow
def test_a_tool_that_takes_it_off_again_is_not_fought(start, operator, handler, widgets):
    start(retry={"first": "1s", "max": "1h"})
    widgets.create("robbed")
    handler.wait_finished(name="robbed")
    seen = []
    for _ in range(4):
        wait_until(lambda: finalizers(widgets, "robbed"), "the finalizer", deadline=60)
        seen.append(time.monotonic())
        rob(widgets, "robbed")
    # At once, after 1 s, after 2 s.
    assert seen[3] - seen[1] > 2.5
    operator.stop()
    assert runs(handler, "robbed") == ["reconcile"]


def test_a_refused_finalizer_is_no_failure_of_the_handler(start, operator, handler, widgets, devserver):
    start(readyCondition=True, retry={"first": "500ms", "max": "1h"})
    widgets.create("robbed")
    handler.wait_finished(name="robbed")
    wait_until(lambda: widgets.get("robbed").get("status", {}).get("conditions"), "the condition")
    fault = devserver.fault({"verb": "patch", "resource": "widgets"}, status=403, times=0)
    rob(widgets, "robbed")
    operator.wait_for_log(message_id=MESSAGE_ID["FINALIZER_FAILED"], key="default/robbed")
    status = operator.ctl.status()["watches"][0]
    assert status["finalizersFailed"] >= 1 and status["failing"] == 0
    devserver.clear_faults(fault)
    wait_until(lambda: finalizers(widgets, "robbed") == [FINALIZER], "the finalizer")
    assert widgets.get("robbed")["status"]["conditions"][0]["status"] == "True"
    operator.stop()
    assert runs(handler, "robbed") == ["reconcile"]


# ---- deleted without it


def test_deleted_while_its_finalizer_is_lost(start, operator, handler, widgets, devserver):
    start()
    widgets.create("robbed", spec={"size": 7})
    handler.wait_finished(name="robbed")
    wait_until(lambda: finalizers(widgets, "robbed"), "the finalizer")
    devserver.fault({"verb": "patch", "resource": "widgets"}, status=503, times=0)
    rob(widgets, "robbed")
    widgets.delete("robbed")
    request = handler.wait_finished(name="robbed", action="finalize")
    assert request.object["spec"] == {"size": 7}
    devserver.clear_faults()
    settled(handler, widgets)
    operator.stop()
    assert runs(handler, "robbed") == ["reconcile", "finalize"]
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


@pytest.mark.parametrize("down", [False, True])
def test_deleted_while_its_finalizer_is_lost_and_another_one_holds_it(start, operator, handler, widgets, devserver, down):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || [ "$RECONCILED_ATTEMPT" -gt 1 ]')
    start()
    widgets.create("robbed", finalizers=[OTHER])
    handler.wait_finished(name="robbed")
    wait_until(lambda: FINALIZER in finalizers(widgets, "robbed"), "the finalizer")
    devserver.fault({"verb": "patch", "resource": "widgets"}, status=503, times=0)
    if down:
        operator.stop()
    rob(widgets, "robbed", keep=[OTHER])
    widgets.delete("robbed")
    if down:
        operator.start_ready()
    handler.wait_finished(name="robbed", action="finalize", count=2)
    devserver.clear_faults()
    settled(handler, widgets)
    assert finalizers(widgets, "robbed") == [OTHER], "none can be put on what is being deleted"
    rob(widgets, "robbed")
    gone(widgets, "robbed")
    settled(handler, widgets, "next")
    operator.stop()
    assert runs(handler, "robbed") == ["reconcile", "finalize", "finalize"]


def test_gone_before_the_cleanup_of_what_had_lost_it_succeeds(start, operator, handler, widgets, devserver):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || [ -e "${0%/*}/clean" ]')
    start()
    widgets.create("robbed", finalizers=[OTHER])
    handler.wait_finished(name="robbed")
    wait_until(lambda: FINALIZER in finalizers(widgets, "robbed"), "the finalizer")
    devserver.fault({"verb": "patch", "resource": "widgets"}, status=503, times=0)
    rob(widgets, "robbed", keep=[OTHER])
    widgets.delete("robbed")
    handler.wait_finished(name="robbed", action="finalize")
    rob(widgets, "robbed")
    gone(widgets, "robbed")
    (handler.folder / "clean").touch()
    wait_until(lambda: handler.requests(name="robbed")[-1].exit_code == 0, "the cleanup")
    operator.stop()
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


def test_taken_off_while_it_is_deleted_is_somebodys_will(start, operator, handler, widgets):
    """Others hold it, or nobody does."""
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ]')
    start()
    for name, others in (("held", [OTHER]), ("free", [])):
        widgets.create(name, finalizers=others)
        handler.wait_finished(name=name)
        widgets.delete(name)
        handler.wait_finished(name=name, action="finalize")
        rob(widgets, name, keep=others)
    operator.wait_for_log(message_id=MESSAGE_ID["VANISHED"], key="default/free")
    wait_until(lambda: operator.ctl.status()["watches"][0]["held"] == 0, "the ledger to forget them")
    before = handler.count()
    rob(widgets, "held")
    gone(widgets, "held")
    settled(handler, widgets)
    operator.stop()
    assert handler.count() == before + 1


# ---- switched on


def test_switched_on_it_comes_to_what_was_handled_before(configure, start, take, operator, handler, widgets):
    start(finalizer=False)
    names = [f"w{number}" for number in range(20)]
    for name in names:
        widgets.create(name)
    for name in names:
        handler.wait_finished(name=name)
    configure(finalizer=True)
    take()
    wait_until(lambda: all(finalizers(widgets, name) == [FINALIZER] for name in names), "the finalizers")
    assert handler.count() == len(names), "no handler is run for that"
    widgets.delete("w0")
    gone(widgets, "w0")
    settled(handler, widgets)
    operator.stop()
    assert runs(handler, "w0") == ["reconcile", "finalize"]
    assert not operator.logs(message_id=MESSAGE_ID["FINALIZER_RESTORED"])


def test_switched_on_while_the_finalizer_cannot_be_written(configure, start, take, operator, handler, widgets, devserver):
    start(finalizer=False)
    widgets.create("early")
    handler.wait_finished(name="early")
    configure(finalizer=True)
    devserver.fault({"verb": "patch", "resource": "widgets"}, status=503, times=0)
    take()
    operator.wait_for_log(message_id=MESSAGE_ID["FINALIZER_FAILED"], key="default/early")
    widgets.delete("early")
    handler.wait_finished(name="early", action="finalize")
    operator.stop()


def test_switched_on_after_it_was_deleted(configure, start, take, operator, handler, widgets):
    """Another finalizer holds it: that ours is not on it is nobody's will."""
    start(finalizer=False)
    widgets.create("dying", finalizers=[OTHER])
    handler.wait_finished(name="dying")
    widgets.delete("dying")
    settled(handler, widgets, "seen")
    configure(finalizer=True)
    take()
    rob(widgets, "dying")
    gone(widgets, "dying")
    handler.wait_finished(name="dying", action="finalize")
    settled(handler, widgets)
    operator.stop()
    assert runs(handler, "dying").count("finalize") == 1
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


def test_switched_off_and_on_while_it_is_being_deleted(configure, start, take, operator, handler, widgets):
    """We have taken ours off ourselves, as nobody wanted it; so nobody wanted the cleanup to be left out."""
    handler.behave('[ "$RECONCILED_ACTION" != finalize ] || [ -e "${0%/*}/clean" ]')
    start(retry={"first": "1h", "max": "1h"})
    widgets.create("dying", finalizers=[OTHER])
    handler.wait_finished(name="dying")
    widgets.delete("dying")
    handler.wait_finished(name="dying", action="finalize")
    configure(finalizer=False, retry={"first": "1h", "max": "1h"})
    take()
    wait_until(lambda: finalizers(widgets, "dying") == [OTHER], "ours to go")
    settled(handler, widgets, "seen")
    (handler.folder / "clean").touch()
    configure(finalizer=True)
    take()
    rob(widgets, "dying")
    gone(widgets, "dying")
    handler.wait_finished(name="dying", action="finalize", count=2)
    operator.stop()
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


# ---- switched off


def test_switched_off_it_is_taken_off_what_lives(configure, start, take, operator, handler, widgets):
    start()
    for name in ("a", "b"):
        widgets.create(name, finalizers=[OTHER] if name == "b" else [])
        handler.wait_finished(name=name)
    configure(finalizer=False)
    take()
    wait_until(lambda: finalizers(widgets, "a") == [] and finalizers(widgets, "b") == [OTHER], "ours to go")
    assert handler.count() == 2, "no handler is run for that"
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    operator.stop()
    assert runs(handler, "a") == ["reconcile", "deleted"]


def test_switched_off_what_is_being_deleted_goes(configure, start, take, operator, handler, widgets):
    handler.behave('[ "$RECONCILED_ACTION" != finalize ]')
    start(retry={"first": "1h", "max": "1h"})
    for name in ("dying", "later"):
        widgets.create(name)
        handler.wait_finished(name=name)
    widgets.delete("dying")
    handler.wait_finished(name="dying", action="finalize")
    configure(finalizer=False)
    take()
    gone(widgets, "dying")
    handler.wait_finished(name="dying", action="deleted")
    widgets.delete("later")
    gone(widgets, "later")
    handler.wait_finished(name="later", action="deleted")
    operator.stop()
    assert runs(handler, "dying") == ["reconcile", "finalize", "deleted"]
    assert runs(handler, "later") == ["reconcile", "deleted"]


def test_switched_off_while_down_and_deleted_meanwhile(configure, start, operator, handler, widgets):
    start()
    widgets.create("dying")
    handler.wait_finished(name="dying")
    operator.stop()
    widgets.delete("dying")
    configure(finalizer=False).start_ready()
    gone(widgets, "dying")
    handler.wait_finished(name="dying", action="deleted")
    operator.stop()
    assert runs(handler, "dying") == ["reconcile", "deleted"], "what is being deleted is no `reconcile`"


def test_release_works_whatever_the_configuration_says(configure, start, operator, handler, widgets, devserver):
    start()
    widgets.create("held")
    handler.wait_finished(name="held")
    operator.stop()
    devserver.fault({"verb": "patch", "resource": "widgets"}, status=503, times=1)
    configure(finalizer=False, retry={"first": "1h", "max": "1h"}).start_ready().wait_synced()
    operator.wait_for_log(message_id=MESSAGE_ID["FINALIZER_FAILED"], key="default/held")
    assert finalizers(widgets, "held") == [FINALIZER]
    released = operator.ctl.run("release", "--finalizer", "--reason", "not wanted any more", "--yes", "widgets", "default/held")
    assert released.returncode == 0, released.stderr
    wait_until(lambda: finalizers(widgets, "held") == [], "ours to go")
    operator.stop()


def test_another_watch_of_the_kind_keeps_it(devserver, operator, handler, make_handler, widgets):
    """The one that wants none must not take the other one's off."""
    other = make_handler()
    operator.configure(devserver, [watch("held", handler, finalizer=True, labelSelector="held=yes"),
                                   watch("free", other, id="free")])
    operator.start_ready().wait_synced()
    widgets.create("w", labels={"held": "yes"})
    handler.wait_finished(name="w")
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.merge_patch("w", {"spec": {"size": 2}})
    other.wait_finished(name="w", where=lambda request: request.object.get("spec") == {"size": 2})
    handler.wait_finished(name="w", where=lambda request: request.object.get("spec") == {"size": 2})
    operator.stop()
    assert finalizers(widgets, "w") == [FINALIZER]


@pytest.mark.parametrize("lost", ["ledger", "state"])
def test_switched_off_without_its_ledger_while_it_is_being_deleted(start, operator, handler, widgets, lost):
    """Our finalizer on it is the proof that its handler has heard of it."""
    start()
    widgets.create("a")
    handler.wait_finished(name="a")
    operator.stop()
    widgets.delete("a")
    for path in operator.state_directory.iterdir():
        if path.is_dir() and lost == "state":
            shutil.rmtree(path)
        elif path.name.startswith("ledger"):
            path.unlink()
    start(finalizer=False)
    wait_until(lambda: not widgets.exists("a"), "the finalizer to be taken off")
    handler.wait_finished(name="a", action="deleted")
    operator.stop()


def test_what_was_finalized_is_not_reconciled_when_the_finalizer_is_switched_off(configure, start, operator, handler, widgets, take):
    """Another finalizer holds the object: its handler would make again what it has cleaned up."""
    start()
    widgets.create("held", finalizers=[OTHER])
    handler.wait_finished(name="held")
    widgets.delete("held")
    handler.wait_finished(name="held", action="finalize")
    wait_until(lambda: finalizers(widgets, "held") == [OTHER], "its release")
    configure(finalizer=False)
    take()
    widgets.merge_patch("held", {"spec": {"size": 7}})
    settled(handler, widgets, "first")
    rob(widgets, "held")
    gone(widgets, "held")
    settled(handler, widgets)
    operator.stop()
    assert runs(handler, "held") == ["reconcile", "finalize"]


# ---- switched, and switched again, before the watch has seen what became of the first switch


SOON = {"watchTimeout": "2s", "stall": "2s"}  # a watch that hangs is given up


@pytest.fixture
def unseen(devserver):
    """unseen(): from now on the watch of Widgets shows nothing that changes; the function that it returns ends that."""
    def unseen():
        fault = devserver.fault(match={"verb": "watch", "resource": "widgets"}, atEvent=1, stall=True, times=0)
        devserver.close_watches("clean")

        def over():
            devserver.clear_faults(fault)
            devserver.close_watches("cut")

        return over

    return unseen


def switch(configure, operator, wanted):
    configure(finalizer=wanted, reconnect=SOON)
    before = sum(message.get("READY") == "1" for message in operator.notifications)
    os.kill(operator.pid, signal.SIGHUP)
    wait_until(lambda: sum(message.get("READY") == "1" for message in operator.notifications) > before, "the reload")


@pytest.mark.parametrize("last", [True, False], ids=["off-on", "off-on-off"])
@pytest.mark.slow
def test_switched_again_before_our_own_release_is_seen(configure, start, operator, handler, widgets, unseen, last):
    start(reconnect=SOON)
    widgets.create("a")
    handler.wait_finished(name="a")
    over = unseen()
    switch(configure, operator, False)
    wait_until(lambda: finalizers(widgets, "a") == [], "ours to go")
    switch(configure, operator, True)
    if not last:
        switch(configure, operator, False)
    over()
    settled(handler, widgets)
    wait_until(lambda: finalizers(widgets, "a") == ([FINALIZER] if last else []), "what is wanted in the end")
    widgets.delete("a")
    handler.wait_finished(name="a", action="finalize" if last else "deleted")
    gone(widgets, "a")
    settled(handler, widgets, "behind")
    operator.stop()
    assert runs(handler, "a") == ["reconcile", "finalize" if last else "deleted"]


def killed(operator):
    """Killed without warning, and started again."""
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.start_ready()


ORDERS = ["off on", "off on off", "off on off on", "off on kill", "off kill on", "kill off on", "kill-off on", "off kill-on",
          "kill-off kill-on", "off kill on kill"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.slow
def test_switched_again_before_the_end_is_seen(configure, start, operator, handler, widgets, unseen, order):
    """It was being deleted, so our release has ended it; its cleanup had failed until then. kill: between two switches; kill-on, kill-off:
    the switch is taken by the start after it."""
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || [ -e "${0%/*}/clean" ]')
    start(reconnect=SOON)
    widgets.create("dying")
    handler.wait_finished(name="dying")
    widgets.delete("dying")
    handler.wait_finished(name="dying", action="finalize")
    over = unseen()
    for step in order.split():
        if step.startswith("kill"):
            if step != "kill":
                configure(finalizer=step == "kill-on", reconnect=SOON)
            killed(operator)
        else:
            switch(configure, operator, step == "on")
        if step.endswith("off"):
            gone(widgets, "dying")
    (handler.folder / "clean").touch()
    over()
    settled(handler, widgets)

    def told():
        return [request for request in handler.requests(name="dying") if request.body["action"] != "reconcile" and request.exit_code == 0]

    wait_until(told, lambda: f"its cleanup; {handler.requests(name='dying')}; {operator.output.text()}")
    wait_until(lambda: not operator.ctl.status()["watches"][0]["failing"], "nothing to fail")
    operator.stop()
    assert len(told()) == 1 and runs(handler, "dying").count("reconcile") == 1
