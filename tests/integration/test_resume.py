# SPDX-License-Identifier: Apache-2.0
"""The watcher's starts: where the last life ended, with a streamed list, or with a LIST; and a cluster whose database
went back in time."""
import signal
import urllib.parse

import pytest

from harness import ledger, wait_until, watch


def query(request):
    return dict(urllib.parse.parse_qsl(request["query"], keep_blank_values=True))


class Wire:
    """What went over the wire for widgets, from now on."""

    def __init__(self, devserver):
        self.devserver = devserver
        self.before = len(devserver.requests())

    def requests(self, verb):
        return [request for request in self.devserver.requests()[self.before:]
                if request.get("verb") == verb and request.get("resource") == "widgets"
                and "watcher" in request.get("user_agent", "")]

    def lists(self):
        return [request for request in self.requests("list") if query(request).get("limit") != "1"]

    def probes(self):
        return [request for request in self.requests("list") if query(request).get("limit") == "1"]

    def watches(self):
        return [query(request) for request in self.requests("watch")]


@pytest.fixture
def widgets(devserver):
    return devserver.api.resource("example.com/v1", "widgets", "default")


@pytest.fixture
def configured(devserver, operator, handler):
    def configured(**more):
        more.setdefault("reconnect", {"first": "100ms", "max": "1s"})
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator

    return configured


def runs(handler):
    return [(request.body["action"], request.name) for request in handler.requests()]


def test_a_streamed_list_and_no_other(devserver, configured, widgets, handler):
    for i in range(50):
        widgets.create(f"w{i}", spec={})
    wire = Wire(devserver)
    operator = configured()
    operator.start_ready().wait_synced()
    handler.wait_for(count=50)
    widgets.create("later", spec={})
    handler.wait_finished(name="later")
    operator.stop()
    assert not wire.lists()
    assert [watched.get("sendInitialEvents") for watched in wire.watches()] == ["true"]
    assert len(handler.requests()) == 51


def test_a_restart_goes_on_where_the_last_life_ended(devserver, configured, widgets, handler):
    """Nothing is listed; what changed meanwhile runs, what was deleted meanwhile is deleted, the rest is at rest."""
    for name in ("same", "changed", "gone"):
        widgets.create(name, spec={"n": 1})
    operator = configured()
    operator.start_ready().wait_synced()
    for name in ("same", "changed", "gone"):
        handler.wait_finished(name=name)
    operator.stop()
    widgets.merge_patch("changed", {"spec": {"n": 2}})
    widgets.delete("gone")
    widgets.create("new", spec={})
    before = len(handler.requests())
    wire = Wire(devserver)
    operator.start_ready().wait_synced()
    handler.wait_finished(name="gone", action="deleted")
    handler.wait_finished(name="new")
    handler.wait_finished(name="changed", where=lambda request: request.object["spec"] == {"n": 2})
    operator.stop()
    assert not wire.lists() and len(wire.probes()) == 1
    assert all("sendInitialEvents" not in watched and watched["resourceVersion"] for watched in wire.watches())
    assert sorted(runs(handler)[before:]) == [("deleted", "gone"), ("reconcile", "changed"), ("reconcile", "new")]


@pytest.mark.slow
def test_after_a_kill_what_was_not_announced_is_announced(devserver, operator, widgets, make_handler):
    """The queue of the last life is gone with its supervisor: the store's objects are announced again."""
    handler = make_handler("sleep 0.1")
    for i in range(40):
        widgets.create(f"w{i}", spec={})
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    handler.wait_for(count=3)
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    wire = Wire(devserver)
    operator.start_ready().wait_synced()
    for i in range(40):  # one that was killed with the first life has no end, and runs once more
        handler.wait_for(name=f"w{i}", where=lambda request: request.exit_code is not None)
    operator.stop()
    assert not wire.lists()


def test_another_selection_is_listed(devserver, configured, widgets, handler):
    widgets.create("a", spec={})
    operator = configured()
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a")
    operator.stop()
    wire = Wire(devserver)
    operator = configured(trigger="any")
    operator.start_ready().wait_synced()
    operator.stop()
    assert wire.watches()[0].get("sendInitialEvents") == "true", "stored fingerprints are of another trigger"


def test_another_trigger_runs_what_was_just_written_now_and_not_at_the_next_start(devserver, configured, widgets, handler):
    """By another trigger every object has another fingerprint, also one that we wrote a moment ago."""
    handler.answer({"status": {"seen": True}})
    widgets.create("a", spec={"size": 1})
    operator = configured()
    operator.start_ready().wait_synced()
    wait_until(lambda: "status" in widgets.get("a"), "its status")
    handler.wait_finished(name="a")
    operator.stop()
    operator = configured(trigger={"jq": ".spec"})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a", count=2)
    operator.stop()
    with ledger.edit(operator) as database:  # as if all that was some time ago
        database.execute("UPDATE ledger SET written_realtime = 1")
    widgets.create("b", spec={"size": 1})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="b")
    operator.stop()
    assert len(handler.requests(name="a")) == 2


def test_a_compacted_history_is_listed(devserver, configured, widgets, handler):
    for name in ("kept", "gone"):
        widgets.create(name, spec={})
    operator = configured()
    operator.start_ready().wait_synced()
    handler.wait_finished(name="kept")
    handler.wait_finished(name="gone")
    operator.stop()
    widgets.delete("gone")
    widgets.create("new", spec={})
    devserver.compact()
    operator.start_ready().wait_synced()
    handler.wait_finished(name="gone", action="deleted")
    handler.wait_finished(name="new")
    operator.stop()
    assert len(handler.requests(name="kept")) == 1


@pytest.mark.parametrize("store", ["kept", "lost"])
@pytest.mark.slow
def test_the_end_of_an_object_runs_before_its_successor(devserver, configured, widgets, handler, store):
    """Its deletion was announced, and failed; the successor came while the operator was down, and the question whether
    the database is an older one goes unanswered for a while."""
    widgets.create("w", labels={"a": "b"})
    operator = configured(labelSelector="a=b", retry={"first": "200ms", "max": "200ms"})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w")
    handler.behave("exit 1")
    widgets.delete("w")
    handler.wait_finished(name="w", action="deleted")
    operator.stop()
    before = len(handler.requests())
    widgets.create("w", labels={"a": "b"})
    if store == "lost":
        for path in (operator.state_directory / "store" / "widgets").glob("*/data.mdb"):
            path.unlink()
    devserver.fault({"verb": "list"}, status=504, times=2)
    devserver.fault({"verb": "get", "resource": "widgets"}, status=504, times=2)
    handler.behave("exit 0")
    operator.start_ready()
    handler.wait_finished(name="w", where=lambda request: request.body["action"] == "reconcile", count=2)
    operator.stop()
    assert [action for action, _ in runs(handler)[before:]] == ["deleted", "reconcile"]


@pytest.mark.parametrize("when", ["running", "stopped"])
def test_kubernetes_107457_a_database_that_went_back_in_time(devserver, configured, widgets, handler, when):
    """What was made since the backup is gone, what was deleted since is there again, and what changed is as it was."""
    for name in ("kept", "revived", "changed"):
        widgets.create(name, spec={"n": 1})
    operator = configured()
    operator.start_ready().wait_synced()
    for name in ("kept", "revived", "changed"):
        handler.wait_finished(name=name)
    backup = devserver.snapshot()
    widgets.delete("revived")
    handler.wait_finished(name="revived", action="deleted")
    widgets.merge_patch("changed", {"spec": {"n": 2}})
    widgets.create("lost", spec={})
    handler.wait_finished(name="lost")
    handler.wait_finished(name="changed", where=lambda request: request.object["spec"] == {"n": 2})
    if when == "stopped":
        operator.stop()
    devserver.restore(backup)
    if when == "stopped":
        operator.start_ready()
    operator.wait_for_log("restored from an older state")
    handler.wait_finished(name="lost", action="deleted")
    wait_until(lambda: [request.object["spec"] for request in handler.requests(name="changed")][-1] == {"n": 1},
               "the old state of what changed")
    wait_until(lambda: runs(handler).count(("reconcile", "revived")) == 2, "what is there again")
    operator.stop()
    assert ("deleted", "kept") not in runs(handler)


INITIAL = {"verb": "watch", "resource": "widgets"}


@pytest.mark.parametrize("fault", [
    pytest.param({"initialEventsEnd": False}, id="kubernetes_135895_no_end"),
    pytest.param({"status": 422}, id="refused"),
    pytest.param({"status": 500}, id="500"),
    pytest.param({"atEvent": 2, "error": {"code": 504, "reason": "Timeout"}}, id="error_in_it"),
    pytest.param({"atEvent": 3, "close": "clean"}, id="ends_before_its_end"),
])
def test_a_streamed_list_that_does_not_work_is_listed(devserver, configured, widgets, handler, fault):
    """One LIST, at once; and the next list is a LIST as well: it is remembered."""
    for i in range(5):
        widgets.create(f"w{i}", spec={})
    devserver.fault(INITIAL, **fault)
    wire = Wire(devserver)
    operator = configured(reconnect={"first": "50ms", "max": "1s", "initialEvents": "300ms"})
    operator.start_ready().wait_synced()
    handler.wait_for(count=5)
    assert len(wire.lists()) == 1
    widgets.delete("w0")
    handler.wait_finished(name="w0", action="deleted")
    devserver.fault(INITIAL, status=410)
    devserver.close_watches("cut")
    wait_until(lambda: len(wire.lists()) == 2, "the list after a 410")
    widgets.create("later", spec={})
    handler.wait_finished(name="later")
    operator.stop()
    assert len([watched for watched in wire.watches() if "sendInitialEvents" in watched]) == 1
    assert len(handler.requests()) == 7


@pytest.mark.parametrize("fault", [
    pytest.param({"atEvent": 3, "close": "cut"}, id="cut"),
    pytest.param({"status": 429, "retryAfter": 1}, id="429"),
    pytest.param({"reset": True}, id="reset"),
])
def test_a_streamed_list_is_begun_again(devserver, configured, widgets, handler, fault):
    """What may pass is no reason to give it up; what it had shown before is not deleted and does not run twice."""
    for i in range(5):
        widgets.create(f"w{i}", spec={})
    number = devserver.fault(INITIAL, **fault)
    wire = Wire(devserver)
    operator = configured()
    operator.start_ready().wait_synced()
    handler.wait_for(count=5)
    operator.stop()
    assert devserver.faults()[number]["hit"] == 1 and not wire.lists()
    assert sorted(runs(handler)) == [("reconcile", f"w{i}") for i in range(5)]


def test_several_namespaces_go_on_together(devserver, operator, handler):
    """Each has a position of its own; one more namespace is another selection, and everything is listed."""
    spaces = ("one", "two")
    for name in spaces + ("three",):
        devserver.api.resource("v1", "namespaces").create(name)
        devserver.api.resource("example.com/v1", "widgets", name).create(f"in-{name}", spec={})
    operator.configure(devserver, [watch("widgets", handler, namespaces=list(spaces))])
    operator.start_ready().wait_synced()
    handler.wait_for(count=2)
    operator.stop()
    for name in spaces:
        devserver.api.resource("example.com/v1", "widgets", name).delete(f"in-{name}")
    wire = Wire(devserver)
    operator.start_ready().wait_synced()
    for name in spaces:
        handler.wait_finished(name=f"in-{name}", action="deleted")
    operator.stop()
    assert not wire.lists() and not [watched for watched in wire.watches() if "sendInitialEvents" in watched]
    operator.configure(devserver, [watch("widgets", handler, namespaces=["one", "two", "three"])])
    operator.start_ready().wait_synced()
    handler.wait_finished(name="in-three")
    operator.stop()
    assert len(handler.requests()) == 5
