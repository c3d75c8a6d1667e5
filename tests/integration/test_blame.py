# SPDX-License-Identifier: Apache-2.0
"""An object that brings the operator down again and again harms only itself."""
import os
import signal
import time

import pytest

from harness import ledger, wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID

# The worker is the parent of the handler: it dies while it is busy with the object whose spec says so.
POISON = """case $RECONCILED_NAME in poison*) kill -KILL $PPID; sleep 60;; esac; echo '{"status":{"seen":true}}'"""


@pytest.fixture
def configured(devserver, operator, handler, sandbox):
    def configured(workers=1, top=None, **more):
        more.setdefault("retry", {"first": "1ms", "max": "10ms"})
        operator.configure(devserver, [watch("widgets", handler, **more)], workers=workers, **(top or {}))
        return operator

    handler.behave(POISON)
    return configured


def crash(operator):
    """It may come before the other children are ready."""
    operator.start()
    operator.wait_exit(expect=70)


def quarantined(operator):
    return operator.logs(message_id=MESSAGE_ID["QUARANTINED"])


def events(api, reason):
    return [event for event in api.resource("events.k8s.io/v1", "events", "default").list()["items"]
            if event["reason"] == reason]


@pytest.mark.slow
def test_after_three_crashes_it_waits_and_all_others_are_served(configured, operator, handler, widgets, api):
    gateway = Gateway(operator.runtime_directory / "gateway.sock")
    configured(retry={"first": "300ms", "max": "10s"}, top={"gateway": {"listen": f"unix:{gateway.address}"},
                                                            "heartbeat": {"interval": "100ms", "deadline": "30s"}})
    widgets.create("poison")
    for name in ("a", "b", "c"):
        widgets.create(name)
    crash(operator)
    assert not quarantined(operator)
    for _ in range(2):
        crash(operator)
        cause = operator.logs(level="critical")[-1]  # of what was killed with several runs nobody knows the one; now it ran alone
        assert cause["watch"] == "widgets" and cause["key"] == "default/poison"
        for name in ("a", "b", "c"):
            assert widgets.get(name).get("status") == {"seen": True}, "all others from the first restart on"
    said = quarantined(operator)
    assert len(said) == 1 and said[0]["key"] == "default/poison" and "3 times" in said[0]["message"]
    operator.start_ready().wait_synced()
    widgets.create("d")
    handler.wait_finished(name="d")
    entry = operator.ctl.status()["quarantine"]
    assert [(item["key"], item["crashes"]) for item in entry] == [("default/poison", 3)]
    assert "in quarantine: 3 crashes" in operator.ctl.run("status").stdout
    wait_until(lambda: "1 quarantined" in operator.status_text, "systemd's status line")
    wait_until(lambda: events(api, "Quarantined"), "an Event on it")
    gateway.wait("reconciled_quarantined", 1)
    began = [request.started for request in handler.requests(name="poison")]
    assert len(began) == 3
    assert began[1] - began[0] >= 0.3 and began[2] - began[1] >= 0.6, "it waits from the first crash on, and longer each time"
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("e")
    handler.wait_finished(name="e")
    operator.stop()
    assert len(handler.requests(name="poison")) == 3, "across restarts"
    [event] = events(api, "Quarantined")
    assert event["regarding"]["name"] == "poison" and "3 times" in event["note"] and not event.get("series")


def test_only_the_object_of_the_worker_that_died_is_blamed(configured, handler, widgets):
    operator = configured(workers=4)
    handler.behave(f"""[ $RECONCILED_NAME = poison ] || sleep 60
{handler.held}
kill -KILL $PPID; sleep 60""")
    names = ("a", "b", "poison", "c")
    for name in names:
        widgets.create(name)
    operator.start_ready()
    for name in names:
        handler.wait_for(name=name)
    handler.let_go()
    operator.wait_exit(expect=70)
    assert operator.logs(level="critical")[0]["key"] == "default/poison"
    assert suspected(operator) == [("default/poison", 1)]


def test_a_success_ends_the_count_and_time_does_not(configured, handler, widgets):
    operator = configured()
    widgets.create("poison")
    for _ in range(2):
        crash(operator)
    handler.behave("echo '{\"status\":{\"seen\":true}}'")
    operator.start_ready()
    wait_until(lambda: widgets.get("poison").get("status"), "its success")
    operator.stop()
    handler.behave(POISON)
    widgets.merge_patch("poison", {"spec": {"size": 2}})
    for crashes in (1, 2):
        crash(operator)
        assert suspected(operator) == [("default/poison", crashes)] and not quarantined(operator)
        with ledger.edit(operator) as database:
            weeks_ago = int((time.time() - 30 * 86400) * 1e6)
            database.execute("UPDATE ledger SET crashed_realtime = ?, next_realtime = ?", (weeks_ago, weeks_ago + 1))
    crash(operator)
    assert suspected(operator) == [("default/poison", 3)] and quarantined(operator)


@pytest.mark.parametrize("role", ["worker", "watcher", "credential"])
@pytest.mark.slow
def test_who_ends_a_child_by_hand_is_named_and_no_object_is_blamed(configured, handler, widgets, role):
    operator = configured(workers=2, handler_options={"grace": "100ms"})
    handler.behave("sleep 1000")
    for name in ("a", "b"):
        widgets.create(name)
    operator.start_ready()
    for name in ("a", "b"):
        handler.wait_for(name=name)
    os.kill(operator.children(role)[0].pid, signal.SIGTERM)
    operator.wait_exit(expect=70)
    [cause] = operator.logs(level="critical")
    assert f"the {role}" in cause["message"]
    assert f"process {os.getpid()} of user {os.getuid()} has sent SIGTERM to the {role}" in cause["message"]
    assert len(handler.requests()) == 2, "no other worker has begun what the first one was told to end"
    assert ledger.read(operator, "SELECT key FROM ledger WHERE crashes > 0 OR attempts > 0") == []
    operator.assert_no_processes()


def into_quarantine(operator, widgets):
    widgets.create("poison", spec={"size": 1})
    for _ in range(3):
        crash(operator)
    operator.start_ready().wait_synced()


def test_it_is_tried_again_when_it_changes_and_a_success_ends_it(configured, handler, widgets):
    operator = configured()
    into_quarantine(operator, widgets)
    handler.behave("echo '{\"status\":{\"seen\":true}}'")
    widgets.merge_patch("poison", {"spec": {"size": 2}})
    wait_until(lambda: widgets.get("poison").get("status"), "its success")
    wait_until(lambda: not operator.ctl.status()["quarantine"], "the end of its quarantine")
    operator.stop()


def test_it_is_released_by_hand(configured, handler, widgets):
    operator = configured()
    into_quarantine(operator, widgets)
    assert operator.ctl.run("release", "widgets", "default/other").returncode == 70
    assert operator.ctl.run("release", "gadgets", "default/poison").returncode == 70
    handler.behave("echo '{\"status\":{\"seen\":true}}'")
    assert operator.ctl.run("release", "widgets", "default/poison").returncode == 0
    wait_until(lambda: widgets.get("poison").get("status"), "its success")
    operator.wait_for_log(message_id=MESSAGE_ID["RELEASED"], key="default/poison")
    operator.stop()


@pytest.mark.slow
def test_it_is_tried_again_after_its_time(configured, handler, widgets):
    operator = configured(quarantine={"after": 1, "duration": "2s"})
    widgets.create("poison")
    crash(operator)
    assert quarantined(operator)
    handler.behave("echo '{\"status\":{\"seen\":true}}'")
    operator.start_ready()
    wait_until(lambda: widgets.get("poison").get("status"), "its success", 60)
    operator.stop()


@pytest.mark.slow
def test_a_run_that_no_change_asked_for_is_blamed_as_well(configured, handler, widgets):
    """It was handled before; that it is there, unchanged, is no reason to run it after the restart."""
    operator = configured(quarantine={"after": 1})
    handler.answer({"requeueAfter": "3s"})
    widgets.create("poison")
    operator.start_ready()
    handler.wait_finished(name="poison")
    wait_until(lambda: operator.ctl.status()["watches"][0]["waiting"] == 1, "the run to be over")
    operator.stop()
    handler.behave(POISON)
    crash(operator)
    assert quarantined(operator)
    runs = len(handler.requests(name="poison"))
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    assert len(handler.requests(name="poison")) == runs
    operator.stop()


def test_a_suspect_runs_alone(configured, handler, widgets):
    """While it runs, no other worker is busy; what comes meanwhile waits."""
    operator = configured(workers=4, quarantine={"after": 10})
    widgets.create("poison")
    crash(operator)
    handler.behave(f"[ $RECONCILED_NAME != poison ] || {handler.held}")
    operator.start_ready().wait_synced()
    handler.wait_for(name="poison", count=2)
    for name in ("a", "b", "c"):
        widgets.create(name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 3, "the others to wait")
    assert operator.ctl.status()["watches"][0]["running"] == 1
    handler.let_go()
    for name in ("a", "b", "c"):
        handler.wait_finished(name=name)
    operator.stop()


def kill_supervisor(operator):
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)


def suspected(operator):
    return ledger.read(operator, "SELECT key, crashes FROM ledger WHERE crashes > 0 OR crashed_realtime > 0 ORDER BY key")


def test_who_kills_the_supervisor_punishes_nobody(configured, handler, widgets):
    """Once by hand; then with the whole machine; then because it takes too long to stop."""
    operator = configured(quarantine={"after": 1})
    handler.behave(f"[ -e {handler.folder}/go ] || sleep 60")
    widgets.create("a")
    operator.start_ready()
    handler.wait_for(name="a")
    kill_supervisor(operator)
    operator.start_ready()
    handler.wait_for(name="a", count=2)
    assert suspected(operator) == [("default/a", 0)]
    kill_supervisor(operator)
    under_way = operator.state_directory / "under-way"
    with under_way.open("r+b") as file:
        file.seek(8)
        file.write(b"another boot's I")
    operator.start_ready()
    handler.wait_for(name="a", count=3)
    operator.send_signal(signal.SIGTERM)
    operator.wait_notification("STOPPING", "1")
    kill_supervisor(operator)
    handler.let_go()
    operator.start_ready()
    handler.wait_finished(name="a", count=4)
    operator.stop()
    assert not quarantined(operator) and not suspected(operator)


@pytest.mark.parametrize("ending", ["exit 0", "exit 75"])
def test_any_end_of_its_run_clears_a_suspect_of_one_death(configured, handler, widgets, ending):
    operator = configured(retry={"first": "1h", "max": "1h"})
    handler.behave("sleep 60")
    widgets.create("a")
    operator.start_ready()
    handler.wait_for(name="a")
    kill_supervisor(operator)
    handler.behave(ending)
    operator.start_ready()
    handler.wait_finished(name="a", count=2)
    wait_until(lambda: not suspected(operator), "the end of suspicion")
    operator.stop()


# As the kernel ends a container that is out of memory: all of it, the supervisor first.
POISON_OF_ALL = """[ $RECONCILED_NAME = poison ] || { until [ -e %(folder)s/free ]; do sleep 0.02; done
echo '{"status":{"seen":true}}'; exit 0; }
until [ -e %(folder)s/go ]; do sleep 0.02; done
set -- $(cat /proc/$PPID/stat); kill -KILL $4; sleep 60"""


def test_what_takes_everything_down_each_time_is_quarantined(configured, handler, widgets):
    operator = configured(workers=3)
    handler.behave(POISON_OF_ALL % {"folder": handler.folder})
    others = ("a", "b")
    for name in (*others, "poison"):
        widgets.create(name)
    operator.start_ready()
    for name in (*others, "poison"):
        handler.wait_for(name=name)
    handler.let_go()
    operator.wait_exit(expect=-signal.SIGKILL)
    (handler.folder / "free").touch()
    for crashes in range(3):
        operator.start()
        operator.wait_exit(expect=-signal.SIGKILL)
        assert ("default/poison", crashes) in suspected(operator)
    operator.start_ready().wait_synced()
    said = quarantined(operator)
    assert len(said) == 1 and said[0]["key"] == "default/poison" and "3 times" in said[0]["message"]
    assert operator.logs(lambda record: "a crash is counted" in record["message"], key="default/poison")
    for name in others:
        wait_until(lambda name=name: widgets.get(name).get("status"), f"{name} to be served")
    widgets.create("d")
    handler.wait_finished(name="d")
    assert suspected(operator) == [("default/poison", 3)] and len(handler.requests(name="poison")) == 4
    operator.stop()


def test_what_was_not_busy_blames_nobody(configured, operator, handler, widgets):
    configured(quarantine={"after": 1})
    handler.behave("exit 0")
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    wait_until(lambda: operator.ctl.status()["workers"][0]["state"] == "idle", "the worker to be idle")
    os.kill(operator.child("worker").pid, signal.SIGKILL)
    operator.wait_exit(expect=70)
    assert not quarantined(operator)


def test_allow_fatal_and_refused_writes_count_as_crashes(configured, operator, handler, widgets):
    configured(allowFatal=True, quarantine={"after": 2})
    handler.behave("[ $RECONCILED_NAME != poison ] || exit 70")
    widgets.create("poison")
    for _ in range(2):
        crash(operator)
    assert quarantined(operator)[0]["key"] == "default/poison"


def test_retry_by_hand(configured, operator, handler, widgets):
    configured(retry={"first": "1h", "max": "1h"})
    handler.behave("exit 1")
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    handler.behave("exit 0")
    wait_until(lambda: operator.ctl.status()["watches"][0]["failed"] == 1, "the failure")
    assert operator.ctl.run("retry", "widgets", "default/a").returncode == 0
    handler.wait_finished(name="a", count=2)
    assert operator.ctl.run("retry", "widgets", "default/none").returncode == 70
    operator.stop()


def test_a_suspect_of_a_death_by_force_runs_soon_beside_a_crowd(devserver, operator, handler, widgets):
    """It runs alone; but it does not wait until the crowd is at rest, which is never."""
    for n in range(10):
        widgets.create(f"crowd{n}")
    handler.behave(f"""case $RECONCILED_NAME in quiet) {handler.held};; *) echo '{{"requeueAfter":"1ms"}}';; esac""")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("quiet")
    handler.wait_for(name="quiet")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    handler.let_go()
    operator.start_ready().wait_synced()
    handler.wait_for(name="quiet", count=2, deadline=10)  # of a minute that it would wait otherwise
    operator.stop()


@pytest.mark.slow
@pytest.mark.parametrize("process", ["watcher", "spawner", "credential"])
def test_a_handler_that_kills_another_process_is_found(configured, operator, handler, widgets, process):
    """What ran then is suspected, runs alone the next time, and is counted."""
    handler.behave(f"""case $RECONCILED_NAME in poison) kill -KILL $(pgrep -u $(id -u) -f reconciled-{process}); sleep 60;; esac""")
    configured()
    widgets.create("poison")
    for name in ("a", "b"):
        widgets.create(name)
    crash(operator)
    for _ in range(3):
        if not quarantined(operator):
            crash(operator)
    assert quarantined(operator)
    operator.start_ready().wait_synced()
    for name in ("a", "b"):
        handler.wait_finished(name=name)
    assert [entry["key"] for entry in operator.ctl.status()["quarantine"]] == ["default/poison"]
    assert len(handler.requests(name="poison")) in (3, 4)
