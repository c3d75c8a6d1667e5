# SPDX-License-Identifier: Apache-2.0
"""What reconciledctl prints: whole numbers, errors of its own output, and what it makes of mistakes."""
import re
import subprocess

import pytest

from harness import wait_until, watch
from harness.process import clean_environment
from harness.wait import scaled


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator


def test_times_are_integers(configured, widgets, handler):
    handler.behave("exit 65")
    configured.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: configured.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    for words in (["status"], ["explain", "widgets", "default/a"]):
        text = configured.ctl.run(*words, "--json").stdout
        assert not re.findall(r":\s*-?[0-9.]+[eE.][+0-9]*", text), text
    assert isinstance(configured.ctl.status()["startedAt"], int)


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["check"], ["--help"], ["--version"]])
def test_output_that_cannot_be_written_is_an_error(configured, words):
    configured.start_ready()
    command = [configured.sandbox.program("reconciledctl"), "--runtime-directory", configured.runtime_directory, *words]
    command += [str(configured.config_file)] if words == ["check"] else []
    for name in ("/dev/full", "closed pipe"):
        if name == "/dev/full":
            output = open(name, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        else:
            closed = subprocess.Popen(["true"], stdin=subprocess.PIPE)
            closed.wait()
            output = closed.stdin
        with output:
            # SIGPIPE stays ignored, as a service manager leaves it.
            done = subprocess.run(configured.user.command(command), stdout=output, stderr=subprocess.PIPE, text=True,
                                  check=False, timeout=scaled(30), env=clean_environment(configured.user),
                                  stdin=subprocess.DEVNULL, cwd=configured.sandbox.folder, restore_signals=False)
        assert done.returncode == 74 and "output cannot be written" in done.stderr, (name, done)


CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}


def test_each_created_event_is_a_creation(devserver, operator, handler, by_hand, widgets):
    handler.answer({"events": [{"reason": "First", "note": "n"}, {"reason": "Second", "note": "n"}]})
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w")
    shown = by_hand("run", "--object", "default/w").stdout
    assert shown.count("+ create Event") == 2 and "~ change Event" not in shown, shown


def test_a_failure_without_an_answer_is_no_success(devserver, operator, handler, by_hand, widgets):
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w")
    handler.behave("exit 1")
    shown = by_hand("run", "--object", "default/w", expect=1).stdout
    assert "answer: none\n" in shown and "which is a success" not in shown, shown
    handler.behave("exit 0")
    assert "answer: none, which is a success\n" in by_hand("run", "--object", "default/w").stdout


def test_replay_shows_both_results(devserver, operator, sandbox, handler, by_hand, widgets):
    folder = sandbox.subfolder("records", operator.user, 0o700)
    operator.configure(devserver, [watch("widgets", handler)], record=str(folder))
    operator.start_ready().wait_synced()
    widgets.create("w")
    handler.wait_finished(name="w")
    wait_until(lambda: list(folder.glob("*.jsonl")), "the record")
    operator.stop()
    handler.behave("exit 1")
    shown = by_hand("replay", folder, expect=1).stdout
    assert "    - result: success\n" in shown and "    + result: \n" not in shown, shown
    assert not re.search(r"result: *$", shown, re.MULTILINE), shown
    empty = sandbox.subfolder("empty", operator.user, 0o700)
    said = by_hand("replay", empty, expect=64)
    assert "has no record in it" in said.stderr and said.stdout == ""


def test_the_hint_of_logs_fits_the_format(configured):
    configured.arguments = ["--log", "text"]
    configured.start_ready()
    done = configured.ctl.run("logs", "widgets", "default/a")
    assert done.returncode == 69 and "as text on its standard error" in done.stderr
    assert "grep -F" in done.stderr and "jq" not in done.stderr, done.stderr
