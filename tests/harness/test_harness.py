# SPDX-License-Identifier: Apache-2.0
"""The harness finds what it promises to find: programs of a few lines of shell stand in for the operator."""
import json
import os

import pytest

from harness import Handler, Operator, Sandbox, Timeout, setup, wait_until, watch
from harness.output import sanitizer_report
from harness.terminal import Terminal

READY = """/usr/bin/python3 -c '
import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1\\nSTATUS=fine", os.environ["NOTIFY_SOCKET"])'
"""


@pytest.fixture
def fake():
    """fake(shell) makes an Operator whose program is this shell script."""
    sandbox = Sandbox({}, "harness")

    def make(shell):
        program = sandbox.folder / "reconciled"
        program.write_text(f"#!/bin/sh\n{shell}\n", encoding="utf-8")
        program.chmod(0o755)
        sandbox.programs["reconciled"] = program
        return Operator(sandbox)

    make.sandbox = sandbox
    return make


def test_it_runs_as_a_user_of_its_own_and_is_heard(fake):
    operator = fake("trap 'exit 0' TERM; " + READY + """echo '{"message":"user '$(id -u)'","role":"supervisor"}'
                    while :; do sleep 0.05; done""")
    operator.start().wait_ready()
    assert operator.status_text == "fine"
    assert operator.wait_for_log("user", role="supervisor")["message"] == f"user {operator.user.uid}"
    assert operator.processes()
    fake.sandbox.close()
    assert not operator.processes()
    assert not fake.sandbox.folder.exists()


@pytest.mark.slow
def test_a_survivor_is_found_killed_and_told(fake):
    operator = fake("setsid env -i sleep 1000 >/dev/null 2>&1 & exit 7")
    operator.start()
    assert operator.wait_exit() == 7
    with pytest.raises(AssertionError, match="still alive after the test"):
        fake.sandbox.close()
    wait_until(lambda: not operator.processes(), "the survivor's end")


def test_an_end_that_nobody_looked_at_fails(fake):
    operator = fake("echo oh dear; exit 70")
    operator.start()
    wait_until(lambda: operator.popen.poll() is not None, "its end")
    with pytest.raises(AssertionError, match="had ended with 70"):
        fake.sandbox.close()


def test_one_that_does_not_stop_in_order_fails(fake):
    operator = fake("trap 'exit 3' TERM; " + READY + "while :; do sleep 0.05; done")
    operator.start().wait_ready()
    with pytest.raises(AssertionError, match="exit code 3, expected 0"):
        fake.sandbox.close()


def test_a_sanitizer_report_fails(fake):
    operator = fake("echo '==1==ERROR: AddressSanitizer: heap-use-after-free'; exit 99")
    operator.start()
    with pytest.raises(AssertionError, match="AddressSanitizer"):
        operator.wait_exit()
    fake.sandbox.close()


def test_a_crash_on_purpose_is_no_report():
    text = "a\n==7==ERROR: AddressSanitizer: SEGV on x\n{}==7==ABORTING\nb"
    assert sanitizer_report(text).startswith("ERROR: AddressSanitizer: SEGV")
    assert sanitizer_report(text, {8})
    assert not sanitizer_report(text.format("SUMMARY: AddressSanitizer: SEGV\n"), {7})
    assert sanitizer_report(text + "\n==8==ERROR: AddressSanitizer: SEGV", {7})


def test_the_handler_records_and_obeys(fake):
    handler = Handler(fake.sandbox)
    request = json.dumps({"version": 1, "action": "reconcile", "reason": "added", "attempt": 1, "lastError": "",
                          "watch": "widgets", "object": {"apiVersion": "example.com/v1", "kind": "Widget",
                                                         "metadata": {"name": "w", "uid": "1"}}})
    operator = fake(f"""for size in 1 2; do
        echo '{request}' | RECONCILED_NAME=w {handler.command[0]}
        echo "status $?"
        done""")
    handler.answer({"status": {"ok": True}}, exit_code=75)
    operator.start()
    operator.wait_exit(expect=0)
    assert operator.output.lines().count("status 75") == 2
    assert json.loads(operator.output.lines()[0]) == {"status": {"ok": True}}
    requests = handler.requests(name="w", action="reconcile")
    assert [request.exit_code for request in requests] == [75, 75]
    assert requests[0].environment["RECONCILED_NAME"] == "w"
    assert handler.count() == 2
    fake.sandbox.close()


def test_upper_bounds_follow_the_load_and_delays_do_not(monkeypatch):
    bounds = {"heartbeat": {"interval": "100ms", "deadline": "1s"}, "stop": {"grace": "500ms"}, "watches": [
        watch("w", ["/bin/true"], deadline="30s", resync="1s", handler_options={"timeout": "2m", "grace": "0ms"})]}
    before = json.dumps(bounds)
    monkeypatch.setattr(setup, "SLOWNESS", 4.0)
    found = setup.stretched(bounds)
    assert json.dumps(bounds) == before
    assert found["heartbeat"] == {"interval": "100ms", "deadline": "4000ms"} and found["stop"] == {"grace": "2000ms"}
    [entry] = found["watches"]
    assert entry["handler"] == {"exec": ["/bin/true"], "timeout": "2m", "grace": "0ms"}, "two minutes are enough for all"
    assert entry["deadline"] == "60000ms" and entry["resync"] == "1s" and entry["retry"]["first"] == "50ms"
    monkeypatch.setattr(setup, "SLOWNESS", 1.0)
    assert setup.stretched(bounds) == bounds


def test_waiting_tells_what_it_saw():
    with pytest.raises(Timeout, match=r"waited [0-9.]+ s for a miracle; last seen: IndexError"):
        wait_until(lambda: [][0], "a miracle", deadline=0.1)


class LateReader(Terminal):
    """Its thread gets no processor before the terminal is closed."""

    over = False

    def _read(self):
        wait_until(lambda: not os.path.exists(f"/proc/self/fd/{self._slave}"), "the end of the terminal")
        super()._read()
        self.over = True


def test_a_terminal_that_is_closed_reads_from_no_other_file(fake):
    """The next file that is opened may get its number."""
    path = fake.sandbox.folder / "text"
    path.write_text("whole", encoding="utf-8")
    terminal = LateReader(fake.sandbox.user(), ["true"])
    terminal.close()
    with open(path, encoding="utf-8") as file:
        wait_until(lambda: terminal.over or terminal.text, "the end of its thread")
        assert file.read() == "whole"
    fake.sandbox.close()


def test_the_example_of_the_description(devserver, operator, handler, widgets):
    operator.configure(devserver, watches=[watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("first", spec={"size": 1})
    request = handler.wait_for(name="first")
    assert request.body["action"] == "reconcile"
    assert operator.ctl.status()["watches"][0]["name"] == "widgets"
    assert operator.ctl.check(operator.config_file).returncode == 0
    assert devserver.requests(lambda entry: entry["method"] == "GET")
    assert {child.program for child in operator.children()} == {"reconciled-spawner", "reconciled-credential",
                                                                "reconciled-watcher", "reconciled-worker"}
    operator.stop()
    operator.assert_no_processes()
