# SPDX-License-Identifier: Apache-2.0
"""What reconciledctl hands to others: the journal's reader, and programs (--json)."""
import json

import pytest

from harness import wait_until, watch
from harness.terminal import Terminal

JOURNALCTL = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done
"""


@pytest.fixture
def journalctl(operator):
    """A journalctl that says what it was told; logs(*words) is what it got."""
    folder = operator.sandbox.subfolder("bin", mode=0o755)
    program = folder / "journalctl"
    program.write_text(JOURNALCTL, encoding="utf-8")
    program.chmod(0o755)

    def logs(*words, path=f"{folder}:/usr/bin:/bin", code=0, **environment):
        done = operator.ctl.run("logs", *words, environment={"PATH": path, **environment})
        assert done.returncode == code, done.stderr
        return done.stdout.splitlines() if code == 0 else done.stderr

    return logs


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator


def test_logs(journalctl, operator):
    """Of an operator that is down: others may write lines with its fields."""
    uid = f"_UID={operator.runtime_directory.stat().st_uid}"
    assert journalctl("widgets", "default/a") == [uid, "RECONCILED_WATCH=widgets", "RECONCILED_KEY=default/a"]
    assert journalctl("widgets") == [uid, "RECONCILED_WATCH=widgets"]
    assert journalctl("--follow", "widgets", "default/a")[3:] == ["--follow"]
    assert journalctl("--json", "widgets")[2:] == ["--output=json"]
    assert journalctl("widgets", "default/a", "--", "-n", "5", "--since", "-1h")[3:] == ["-n", "5", "--since", "-1h"]
    assert journalctl("widgets", "--", "-x", "default/a") == [uid, "RECONCILED_WATCH=widgets", "-x", "default/a"]
    assert "follow --" in journalctl("widgets", "default/a", "default/b", code=64)
    assert "logs takes a watch" in journalctl(code=64)


def test_logs_of_an_operator_whose_runtime_directory_is_gone(journalctl, operator):
    uid = f"_UID={operator.state_directory.stat().st_uid}"
    operator.runtime_directory.rmdir()
    assert journalctl("widgets", STATE_DIRECTORY=operator.state_directory) == [uid, "RECONCILED_WATCH=widgets"]
    operator.state_directory.rmdir()
    assert journalctl("widgets", STATE_DIRECTORY=operator.state_directory) == ["RECONCILED_WATCH=widgets"]


def test_logs_without_a_journal(journalctl, operator):
    empty = operator.sandbox.subfolder("empty", mode=0o755)
    assert "journalctl cannot be started" in journalctl("widgets", path=empty, code=69)


def test_logs_of_an_operator_that_writes_elsewhere(journalctl, configured):
    configured.start_ready()
    said = journalctl("widgets", "default/a", code=69)
    assert "JSON lines on its standard error" in said and "kubectl logs" in said


def as_json(operator, *words, code=0):
    done = operator.ctl.run(*words, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_check_for_programs(configured, handler):
    path = str(configured.config_file)
    found = as_json(configured, "check", path)
    assert found["valid"] and found["problems"] == [] and found["server"].startswith("http")
    [lost] = [note for note in found["notes"] if "deletions while no operator runs" in note]
    assert "without a finalizer (widgets)" in lost and "StatefulSet" in lost
    assert f"note: {lost}\n" in configured.ctl.run("check", path).stdout
    assert (found["operator"], found["watches"], found["workers"]) == ("widgets.example.com", 1, 2)
    configured.write_config("operator: x\nwatchs: []\n")
    found = as_json(configured, "check", path, code=78)
    assert not found["valid"] and "server" not in found
    wrong = next(problem for problem in found["problems"] if problem["key"] == "watchs")
    assert wrong["line"] == 2 and wrong["file"] == path and "watches" in wrong["text"] and not wrong["warning"]
    configured.configure(None, [watch("widgets", handler, finalizer=True)], cluster={"kubeconfig": "/nowhere"})
    found = as_json(configured, "check", path, code=78)
    assert not any("deletions" in note for note in found["notes"])
    assert not found["valid"] and "/nowhere" in found["clusterError"]


def test_health_for_programs(configured, devserver):
    devserver.suspend()
    configured.start_ready()
    found = as_json(configured, "health")
    assert found["live"] and not found["ready"] and "widgets" in found["reason"]
    assert as_json(configured, "health", "--ready", code=70)["ready"] is False
    devserver.resume()
    wait_until(lambda: json.loads(configured.ctl.run("health", "--json").stdout)["ready"], "readiness")
    assert as_json(configured, "health", "--ready") == {"live": True, "ready": True, "reason": ""}


def test_what_was_done_for_programs(configured, devserver, handler, widgets):
    handler.behave("exit 65")
    configured.configure(devserver, [watch("widgets", handler, finalizer=True)])
    configured.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: configured.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    assert as_json(configured, "pause", "widgets") == {
        "changed": True, "running": 0, "done": True, "message": "watch widgets is paused; none of its objects run"}
    assert as_json(configured, "pause", "widgets")["changed"] is False
    refused = configured.ctl.run("pause", "gadgets", "--json")
    assert (refused.returncode, refused.stdout) == (70, "") and "there is no watch" in refused.stderr
    assert as_json(configured, "resume", "widgets")["message"] == "watch widgets is resumed"
    found = as_json(configured, "retry", "--all-failed")
    assert (found["done"], found["objects"]) == (True, 1) and "1 object is due now" in found["message"]
    handler.wait_finished(name="a", count=2)
    assert as_json(configured, "retry", "widgets", "default/a")["done"]
    handler.wait_finished(name="a", count=3)
    release = ["release", "--finalizer", "--reason", "x", "widgets", "default/a"]
    assert configured.ctl.run(*release, "--json").stdout == "", "no question is asked of a program"
    refused = configured.ctl.run(*release, "--yes", "--json")
    assert (refused.returncode, refused.stdout) == (70, "") and "is not being deleted" in refused.stderr
    plan = as_json(configured, "uninstall", code=64)
    assert plan == {"done": False, "message": "nothing has been done", "left": 1, "watches": [{"name": "widgets", "objects": 1}]}
    assert widgets.get("a")["metadata"]["finalizers"]
    found = as_json(configured, "uninstall", "--yes")
    assert (found["done"], found["left"]) == (True, 0)
    assert not widgets.get("a")["metadata"].get("finalizers")


def test_what_a_verb_does_not_take(configured):
    assert "status has no --yes" in configured.ctl.run("--yes", "status").stderr, "what is ignored looks as if it were obeyed"


@pytest.mark.parametrize("paged", [True, False])
def test_progress_of_a_long_list(make_devserver, operator, handler, paged):
    devserver = make_devserver(arguments=["--watch-list", "off" if paged else "on"])
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    for number in range(12):
        widgets.create(f"w{number}")
    if paged:
        hanging = devserver.fault(match={"verb": "list", "resource": "widgets", "continue": True}, hang=True)
    else:
        hanging = devserver.fault(match={"verb": "watch", "resource": "widgets"}, atEvent=6, stall=True)
    operator.configure(devserver, [watch("widgets", handler)], pageLimit=5, heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.start_ready()

    def row():
        return operator.ctl.status()["watches"][0]

    wait_until(lambda: row()["listShown"] == 5, lambda: f"the first page: {row()}")
    assert row()["listExpected"] == (12 if paged else 0)
    text = operator.ctl.run("status").stdout
    assert ("its list has shown 5 of about 12 objects (41 %)" if paged else "its list has shown 5 objects") in text
    assert "syncing" in text
    operator.stop()
    devserver.clear_faults(hanging)
    operator.start_ready().wait_synced()
    wait_until(lambda: row()["listShown"] == 0, "the end of the list")
    assert "its list" not in operator.ctl.run("status").stdout


def test_colours_only_on_a_terminal(configured, handler, widgets):
    handler.behave("exit 65")
    configured.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: configured.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    command = [configured.sandbox.program("reconciledctl"), "--runtime-directory", configured.runtime_directory, "status"]

    def shown(**environment):
        terminal = Terminal(configured.user, command, cwd=configured.sandbox.folder, environment=environment)
        try:
            assert terminal.wait_exit() == 0
            wait_until(lambda: "WORKER" in terminal.text and "idle" in terminal.text, "all of it")
            return terminal.text
        finally:
            terminal.close()

    text = shown()
    assert "\x1b[31m" in text and "\x1b[1m" in text
    assert text.index("\x1b[31m") < text.index("has failed for good") < text.index("\x1b[0m", text.index("WATCH"))
    assert "\x1b" not in shown(NO_COLOR="1") and "\x1b" not in shown(TERM="dumb")
    assert "\x1b" not in configured.ctl.run("status").stdout


def test_one_is_not_many(configured, devserver, handler, widgets):
    """Numbers and their words, in the log and in the status."""
    configured.configure(devserver, [watch("widgets", handler)], workers=1)
    widgets.create("a")
    configured.start()
    configured.wait_ready()
    handler.wait_finished(name="a")
    assert "operator widgets.example.com: 1 watch, 1 worker, state" in configured.wait_for_log("starts operator")["message"]
    assert "in sync: 1 object at" in configured.wait_for_log("is in sync")["message"]
    assert ", 0 restarts\n" in configured.ctl.run("status").stdout
    configured.stop()
    configured.start()
    configured.wait_ready()
    assert ", 1 restart\n" in configured.ctl.run("status").stdout
    handler.behave("i=0; while [ $i -lt 1001 ]; do echo $i >&2; i=$((i + 1)); done")
    widgets.create("b")
    configured.wait_for_log("(1 more line of output was not logged)")
    assert ": operator widgets.example.com, 1 watch, 1 worker: " in configured.ctl.run("check", configured.config_file).stdout
