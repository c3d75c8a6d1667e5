# SPDX-License-Identifier: Apache-2.0
"""`reconciledctl uninstall`: done is what the stores say, and a restart goes on with it until somebody cancels it."""
import shutil
import signal
import urllib.parse

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID

FINALIZER = "widgets.example.com/finalizer"
NAMES = [f"w{number}" for number in range(40)]


@pytest.fixture
def start(devserver, operator, handler):
    def start(top=None, **more):
        more = {"finalizer": True, "retry": {"first": "20ms", "max": "50ms"}, **more}
        operator.configure(devserver, [watch("widgets", handler, **more)], **(top or {}))
        return operator.start_ready()

    return start


def held(widgets):
    return [item["metadata"]["name"] for item in widgets.list()["items"] if FINALIZER in item["metadata"].get("finalizers", [])]


def create(widgets, handler):
    for name in NAMES:
        widgets.create(name)
    wait_until(lambda: len(held(widgets)) == len(NAMES), "all finalizers")


def uninstall(operator, *more):
    return operator.ctl.run("uninstall", "--yes", *more)


def forget(operator):
    """A new state folder, as on another node."""
    for path in operator.state_directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_objects_of_a_paused_watch_in_a_new_state_folder(start, operator, handler, widgets):
    start().wait_synced()
    create(widgets, handler)
    operator.stop()
    forget(operator)
    handler.behave(handler.held)
    start().wait_synced()
    handler.wait_for(count=2)
    assert operator.ctl.run("pause", "widgets").returncode == 0
    handler.let_go()
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "the end of what runs")
    done = uninstall(operator)
    assert done.returncode == 0 and "done: no object" in done.stdout, done.stdout + done.stderr
    assert held(widgets) == []
    operator.wait_for_log(message_id=MESSAGE_ID["UNINSTALLED"])
    operator.stop()


@pytest.mark.slow
def test_a_watch_that_is_not_in_sync_is_not_done(start, operator, handler, widgets, devserver):
    start().wait_synced()
    create(widgets, handler)
    operator.stop()
    forget(operator)
    fault = devserver.fault(match={"verb": "list", "resource": "widgets"}, status=403, message="not for you", times=0)
    streamed = devserver.fault(match={"verb": "watch", "resource": "widgets"}, status=403, message="not for you", times=0)
    start()
    wait_until(lambda: operator.ctl.status()["watches"][0]["state"] == "degraded", "trouble")
    done = uninstall(operator, "--timeout", "500ms")
    assert done.returncode == 70, done.stdout
    assert "watch widgets is not in sync" in done.stdout and "more objects may carry its finalizer" in done.stdout
    devserver.clear_faults(fault)
    devserver.clear_faults(streamed)
    wait_until(lambda: operator.ctl.status()["uninstalled"], "the end of it", 60)
    assert held(widgets) == []
    operator.stop()


@pytest.mark.slow
def test_a_kill_in_the_middle_is_no_end_of_it(start, operator, handler, widgets, devserver):
    start().wait_synced()
    create(widgets, handler)
    fault = devserver.fault(match={"verb": "patch", "resource": "widgets"}, status=503, message="not now", times=0)
    assert uninstall(operator, "--timeout", "300ms").returncode == 70
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    runs = handler.count()
    devserver.clear_faults(fault)
    operator.start_ready()
    told = operator.logs(message_id=MESSAGE_ID["UNINSTALLING"])
    assert "still being uninstalled" in told[-1]["message"]
    wait_until(lambda: operator.ctl.status()["uninstalled"], "the end of it")
    assert held(widgets) == []
    assert "UNINSTALLED" in operator.ctl.run("status").stdout
    operator.stop()
    # When it is done, a restart brings nothing back either.
    widgets.merge_patch("w1", {"spec": {"size": 2}})
    operator.start_ready().wait_synced()
    wait_until(lambda: operator.ctl.status()["uninstalled"], "the end of it")
    operator.stop()
    assert held(widgets) == [] and handler.count() == runs, "nothing else runs any more"


@pytest.mark.slow
def test_it_can_be_cancelled(start, operator, handler, widgets):
    gateway = Gateway(operator.runtime_directory / "gateway.sock")
    refused = start({"gateway": {"listen": f"unix:{gateway.address}"}}).wait_synced().ctl.run("uninstall", "--cancel", "--yes")
    assert refused.returncode == 70 and "is not being uninstalled" in refused.stderr
    create(widgets, handler)
    assert uninstall(operator).returncode == 0 and held(widgets) == []
    gateway.wait("reconciled_uninstalling", 1)
    assert operator.ctl.run("uninstall", "--cancel").returncode == 64, "not without a yes"
    assert operator.ctl.run("uninstall", "--cancel", "--yes").returncode == 0
    operator.wait_for_log(message_id=MESSAGE_ID["UNINSTALL_CANCELLED"])
    wait_until(lambda: len(held(widgets)) == len(NAMES), "all finalizers")
    gateway.wait("reconciled_uninstalling", 0)
    operator.stop()
    operator.start_ready().wait_synced()
    assert operator.ctl.status()["uninstallingSince"] == 0
    operator.stop()
    assert len(held(widgets)) == len(NAMES)


def test_a_kind_that_is_not_served_has_no_objects(devserver, operator, handler, make_handler, widgets):
    operator.configure(devserver, [watch("widgets", handler, finalizer=True),
                                   watch("absent", make_handler(), "nowhere.example.org/v1", "Thing", finalizer=True, required=False)])
    operator.start_ready()
    create(widgets, handler)
    done = uninstall(operator)
    assert done.returncode == 0 and "done: no object" in done.stdout, done.stdout + done.stderr
    assert "does not serve the kind of watch absent" in done.stdout
    assert held(widgets) == []
    operator.wait_for_log(message_id=MESSAGE_ID["UNINSTALLED"])
    operator.stop()


LABELLED = {"labelSelector": "use=yes"}


@pytest.fixture
def left_in_a_new_state_folder(start, operator, widgets):
    """An object with our finalizer that left the selection while the operator was down and lost its state."""
    start(**LABELLED).wait_synced()
    widgets.create("left", labels={"use": "yes"})
    widgets.create("stays", labels={"use": "yes"})
    wait_until(lambda: len(held(widgets)) == 2, "the finalizers")
    operator.stop()
    forget(operator)
    widgets.merge_patch("left", {"metadata": {"labels": {"use": "no"}}})
    start(**LABELLED).wait_synced()


@pytest.mark.parametrize("deleted", [False, True])
def test_an_object_outside_of_the_selection_that_no_store_and_no_ledger_knows(left_in_a_new_state_folder, operator, widgets, deleted):
    if deleted:
        widgets.delete("left")
    done = uninstall(operator)
    assert done.returncode == 0 and "done: no object" in done.stdout, done.stdout + done.stderr
    assert held(widgets) == []
    assert widgets.exists("left") != deleted
    operator.stop()


@pytest.mark.slow
@pytest.mark.parametrize("status", [410, 400])
def test_a_search_whose_token_is_refused_begins_again_without_pages(left_in_a_new_state_folder, devserver, operator, widgets, status):
    """As the list of a watch does (docs/watch.md)."""
    for number in range(500):
        widgets.create(f"a{number}")
    fault = devserver.fault(match={"verb": "list", "resource": "widgets", "continue": True}, status=status)
    done = uninstall(operator)
    assert done.returncode == 0 and "done: no object" in done.stdout, done.stdout + done.stderr
    assert held(widgets) == [] and devserver.faults()[fault]["hit"] == 1
    pages = devserver.requests(lambda request: request.get("verb") == "list" and "PartialObjectMetadata" in request["accept"])
    pages = [urllib.parse.parse_qs(page["query"]) for page in pages]
    assert ["continue" in page for page in pages] == [False, True, False]
    assert ["limit" in page for page in pages] == [True, True, False]
    operator.stop()


@pytest.mark.slow
def test_what_cannot_be_looked_at_is_not_said_to_be_done(left_in_a_new_state_folder, devserver, operator, widgets):
    fault = devserver.fault(match={"verb": "list", "resource": "widgets"}, status=403, message="not for you", times=0)
    told = uninstall(operator, "--timeout", "2s")
    assert told.returncode == 70, told.stdout
    assert "objects that watch widgets has not seen may carry its finalizer" in told.stdout and "not for you" in told.stdout
    assert not operator.ctl.status()["uninstalled"]
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    devserver.clear_faults(fault)
    operator.start_ready()
    wait_until(lambda: operator.ctl.status()["uninstalled"], "the end of it", 60)
    assert held(widgets) == []
    operator.stop()


def test_a_namespace_that_is_refused_is_not_said_to_be_done(start, devserver, operator, handler, api):
    """In a state folder that knows nothing of its objects; once it is granted, they are found."""
    api.resource("v1", "namespaces").create("other")
    theirs = api.resource("example.com/v1", "widgets", "other")
    start(namespaces=["default", "other"]).wait_synced()
    theirs.create("theirs")
    wait_until(lambda: held(theirs) == ["theirs"], "the finalizer")
    operator.stop()
    forget(operator)
    faults = [devserver.fault(match={"verb": verb, "namespace": "other", "userAgent": "reconciled*"}, status=403, message="not for you",
                              times=0)
              for verb in ("list", "watch")]
    operator.start_ready().wait_synced()
    told = uninstall(operator, "--timeout", "1s")
    assert told.returncode == 70 and "not for you" in told.stdout, told.stdout
    assert not operator.ctl.status()["uninstalled"] and held(theirs) == ["theirs"]
    for fault in faults:
        devserver.clear_faults(fault)
    wait_until(lambda: operator.ctl.status()["uninstalled"], "the end of it", 60)
    assert held(theirs) == []
    operator.stop()
