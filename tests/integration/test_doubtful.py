# SPDX-License-Identifier: Apache-2.0
"""An object that a watcher dies or hangs over: the next start gets past it, and serves it and all others."""
import contextlib
import signal
import sqlite3
import struct

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID

pytestmark = pytest.mark.quiet

# A program that never ends is what makes a watcher hang, for certain and over one object alone.
FILTER = "def f: [range(100000)] | .[.]; if .spec.poison then f else .spec.size > 0 end"
TRIGGER = "def f: [range(100000)] | .[.]; if .spec.poison then f else .spec.size end"


@pytest.fixture
def configured(devserver, operator, handler):
    def configured(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)],
                           heartbeat={"interval": "50ms", "deadline": "1s"})
        return operator

    return configured


def said(operator):
    return operator.logs(message_id=MESSAGE_ID["DOUBTFUL"])


@pytest.mark.parametrize("more", [{"filter": FILTER}, {"trigger": {"jq": TRIGGER}}])
@pytest.mark.slow
def test_a_program_that_never_ends(configured, handler, widgets, api, more):
    operator = configured(**more)
    widgets.create("a", spec={"size": 1})
    widgets.create("poison", spec={"size": 1, "poison": True})
    handler.behave("echo '{\"status\":{\"seen\":true}}'")
    operator.start()
    operator.wait_exit(expect=70)
    assert operator.logs(level="critical")[0]["key"] == "default/poison"
    assert [record["key"] for record in said(operator)] == ["default/poison"]
    operator.start_ready().wait_synced()
    for name in ("a", "poison"):
        handler.wait_finished(name=name)
    widgets.create("b", spec={"size": 1})
    handler.wait_finished(name="b")
    widgets.merge_patch("poison", {"spec": {"size": 2}})
    handler.wait_finished(name="poison", count=2)
    wait_until(lambda: widgets.get("poison").get("status"), "its status")
    entry = operator.ctl.status()["doubtful"]
    assert [(item["key"], item["crashes"], item["unread"]) for item in entry] == [("default/poison", 1, False)]
    assert "default/poison of watch widgets is doubtful" in operator.ctl.run("status").stdout

    def events():
        found = api.resource("events.k8s.io/v1", "events", "default").list()["items"]
        return [event["regarding"]["name"] for event in found if event["reason"] == "Doubtful"]

    wait_until(lambda: events() == ["poison"], events)
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("c", spec={"size": 1})
    handler.wait_finished(name="c")
    operator.stop()
    assert len(handler.requests(name="poison")) == 2, "its own status triggers nothing, a restart neither"
    assert not said(operator)


@pytest.mark.slow
def test_it_is_read_again_after_its_time_and_that_doubles(configured, handler, widgets):
    operator = configured(filter=FILTER, quarantine={"duration": "8s"})
    widgets.create("poison", spec={"size": 1, "poison": True})
    operator.start()
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    wait_until(lambda: not operator.ctl.status()["doubtful"], "the end of its time")
    widgets.merge_patch("poison", {"spec": {"size": 2}})
    operator.wait_exit(expect=70)
    again = said(operator)
    assert again[0]["crashes"] == "2" and "for 16s or" in again[0]["message"]


@pytest.mark.slow
def test_release(configured, handler, widgets):
    operator = configured(filter=FILTER)
    widgets.create("poison", spec={"size": 1, "poison": True})
    operator.start()
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    handler.wait_finished(name="poison")
    assert operator.ctl.run("release", "widgets", "default/other").returncode == 70
    assert operator.ctl.run("release", "widgets", "default/poison").returncode == 0
    operator.wait_for_log(message_id=MESSAGE_ID["RELEASED"], key="default/poison")
    assert not operator.ctl.status()["doubtful"]
    widgets.merge_patch("poison", {"spec": {"size": 0, "poison": False}})
    wait_until(lambda: operator.ctl.status()["watches"][0]["objects"] == 0, "the filter to be asked again")
    operator.stop()


@pytest.mark.slow
def test_a_new_object_of_the_name_is_not_doubtful(configured, handler, widgets):
    operator = configured(filter=FILTER)
    widgets.create("poison", spec={"size": 1, "poison": True})
    operator.start()
    operator.wait_exit(expect=70)
    widgets.delete("poison")
    widgets.create("poison", spec={"size": 0})
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    assert not handler.requests(name="poison")
    operator.stop()


@pytest.mark.plain_only(reason="the sanitizers take SIGSEGV for themselves")
def test_a_watcher_that_dies_in_between_blames_nobody(configured, operator, handler, widgets):
    configured(filter=FILTER)
    widgets.create("a", spec={"size": 1})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a")
    operator.child("watcher").kill(signal.SIGSEGV)
    operator.wait_exit(expect=70)
    assert not said(operator)
    operator.start_ready().wait_synced()
    assert not operator.ctl.status()["doubtful"]
    operator.stop()


def test_a_killed_supervisor_blames_nobody(configured, handler, widgets):
    """Even when a watcher was busy with an object at that moment: its slot is not looked at."""
    operator = configured(filter="def f: [range(100000)] | .[.]; if .spec.poison then f else true end")
    operator.start_ready().wait_synced()
    child = operator.child("watcher")
    widgets.create("poison", spec={"poison": True})
    wait_until(lambda: slot_key(operator) == "default/poison", "the watcher to be busy")
    assert child.alive()
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    assert not rows(operator)
    configured(filter=".spec.poison")
    operator.start_ready().wait_synced()
    handler.wait_finished(name="poison")
    assert not said(operator) and not operator.ctl.status()["doubtful"]
    operator.stop()


def slot_key(operator):
    """What the first slot holds now; "" where it is idle."""
    content = (operator.runtime_directory / "slots").read_bytes()[:512]
    state, size = struct.unpack_from("=II", content)
    return content[12:12 + size - 1].decode() if state & 0xff else ""


def rows(operator):
    with contextlib.closing(sqlite3.connect(operator.state_directory / "ledger.sqlite")) as database:
        return database.execute("SELECT key FROM doubtful").fetchall()


def test_what_our_own_code_died_over_is_left_out_and_not_taken_for_deleted(configured, handler, widgets):
    """No object is known that our own reading of it dies of, so the ledger is told that there was one."""
    operator = configured(trigger="essence")
    for name in ("a", "poison"):
        widgets.create(name, spec={"size": 1})
    operator.start_ready().wait_synced()
    for name in ("a", "poison"):
        handler.wait_finished(name=name)
    operator.stop()
    with ledger.edit(operator) as database:
        for name in ("poison", "unknown"):
            uid = (widgets.get if name == "poison" else lambda name: widgets.create(name, spec={"size": 1}))(name)
            database.execute("INSERT INTO doubtful VALUES ('widgets', ?, ?, 1, 1, 1, ?, 'it died', 0)",
                             (f"default/{name}", uid["metadata"]["uid"], 1 << 60))
    (operator.state_directory / "store" / "widgets" / "SUSPECT").write_text("so that all is listed anew")
    operator.user.give(operator.state_directory / "store" / "widgets" / "SUSPECT", 0o600)
    for name in ("a", "poison"):
        widgets.merge_patch(name, {"spec": {"size": 2}})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a", count=2)
    widgets.create("b", spec={"size": 1})
    handler.wait_finished(name="b")
    assert len(handler.requests(name="poison")) == 1 and not handler.requests(name="unknown")
    assert not handler.requests(action="deleted")
    widgets.delete("poison")
    handler.wait_finished(action="deleted")
    assert [request.name for request in handler.requests(action="deleted")] == ["poison"]
    assert operator.ctl.run("release", "widgets", "default/unknown").returncode == 0
    widgets.merge_patch("unknown", {"spec": {"size": 2}})
    handler.wait_finished(name="unknown")
    operator.stop()
