# SPDX-License-Identifier: Apache-2.0
"""What reconciledctl hands to others: the journal's reader, and programs (--json)."""
import json
import shutil

import pytest

from harness import wait_until, watch

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

    def logs(*words, path=f"{folder}:/usr/bin:/bin", code=0):
        done = operator.ctl.run("logs", *words, environment={"PATH": path})
        assert done.returncode == code, done.stderr
        return done.stdout.splitlines() if code == 0 else done.stderr

    return logs


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator


def test_logs(journalctl):
    assert journalctl("widgets", "default/a") == ["RECONCILED_WATCH=widgets", "RECONCILED_KEY=default/a"]
    assert journalctl("widgets") == ["RECONCILED_WATCH=widgets"]
    assert journalctl("--follow", "widgets", "default/a")[2:] == ["--follow"]
    assert journalctl("--json", "widgets")[1:] == ["--output=json"]
    assert journalctl("widgets", "default/a", "--", "-n", "5", "--since", "-1h")[2:] == ["-n", "5", "--since", "-1h"]
    assert journalctl("widgets", "--", "-x", "default/a") == ["RECONCILED_WATCH=widgets", "-x", "default/a"]
    assert "behind --" in journalctl("widgets", "default/a", "default/b", code=64)
    assert "logs takes a watch" in journalctl(code=64)


def test_logs_without_a_journal(journalctl, operator):
    empty = operator.sandbox.subfolder("empty", mode=0o755)
    (empty / "setpriv").symlink_to(shutil.which("setpriv"))
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
    assert (found["operator"], found["watches"], found["workers"]) == ("widgets.example.com", 1, 2)
    configured.write_config("operator: x\nwatchs: []\n")
    found = as_json(configured, "check", path, code=78)
    assert not found["valid"] and "server" not in found
    wrong = next(problem for problem in found["problems"] if problem["key"] == "watchs")
    assert wrong["line"] == 2 and wrong["file"] == path and "watches" in wrong["text"] and not wrong["warning"]
    configured.configure(None, [watch("widgets", handler)], cluster={"kubeconfig": "/nowhere"})
    found = as_json(configured, "check", path, code=78)
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


def test_verbs_that_have_no_answer_for_programs(configured):
    for words in (["rbac"], ["retry", "widgets", "default/a"], ["pause", "widgets"], ["uninstall"]):
        done = configured.ctl.run(*words, "--json")
        assert done.returncode == 64 and f"{words[0]} has no --json" in done.stderr
    assert "status has no --yes" in configured.ctl.run("--yes", "status").stderr, "what is ignored looks as if it were obeyed"
