# SPDX-License-Identifier: Apache-2.0
"""What the operator leaves behind itself, and what is taken away from it: its own Events, its log, its state folder."""
import base64
import json
import shutil
import subprocess

import pytest

from harness import wait_until, watch

VALUE = base64.b64encode(b"TOPSECRETVALUE77").decode()


def test_a_failing_event_is_reported_by_no_event(operator, devserver, handler, api):
    """It would be an object of the same watch, fail, and be reported, for ever."""
    handler.behave("exit 1")
    operator.configure(devserver, [watch("events", handler, api_version="events.k8s.io/v1", kind="Event",
                                         retry={"first": "1h", "max": "1h"})])
    operator.start_ready().wait_synced()
    events = api.resource("events.k8s.io/v1", "events", "default", kind="Event")
    for name in ("first", "second"):
        events.create(body={"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name}, "reason": "X",
                            "note": "m", "type": "Normal", "action": "a", "eventTime": "2026-01-01T00:00:00.000000Z",
                            "reportingController": "x/y", "reportingInstance": "x",
                            "regarding": {"kind": "Pod", "name": "x", "namespace": "default"}})
        handler.wait_finished(name=name)
        wait_until(lambda: operator.ctl.status()["watches"][0]["failing"] == len(events.names()), "the failures")
    operator.stop()
    assert sorted(events.names()) == ["first", "second"]
    assert len(handler.requests()) == 2


def test_jqs_own_stderr_does_not_reach_the_log(operator, devserver, handler, api):
    operator.configure(devserver, [watch("secrets", handler, api_version="v1", kind="Secret", trigger={"jq": ".data | stderr"})])
    operator.start_ready().wait_synced()
    secrets = api.resource("v1", "secrets", "default", kind="Secret")
    secrets.create("s", data={"p": VALUE})
    handler.wait_finished(name="s")
    operator.stop()
    assert VALUE not in operator.output.text()
    for line in operator.output.text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_state_folder_that_is_removed_ends_the_operator(operator, devserver, handler, widgets, replaced):
    """It would go on without a memory, and nobody would know."""
    operator.configure(devserver, [watch("widgets", handler)], heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    if replaced:
        operator.state_directory.rename(operator.folder / "former")
        operator.state_directory.mkdir(mode=0o700)
        operator.user.give(operator.state_directory, 0o700)
    else:
        shutil.rmtree(operator.state_directory)
    operator.wait_exit(expect=74)
    [cause] = operator.logs(level="critical")
    assert "was removed or replaced" in cause["message"] and str(operator.state_directory) in cause["message"]
    if not replaced:
        operator.state_directory.mkdir(mode=0o700)
        operator.user.give(operator.state_directory, 0o700)


def test_a_runtime_folder_that_is_removed_ends_the_operator(operator, devserver, handler, widgets):
    """Nobody could reach it any more."""
    operator.configure(devserver, [watch("widgets", handler)], heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.start_ready().wait_synced()
    for path in operator.runtime_directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    operator.wait_exit(expect=74)
    [cause] = operator.logs(level="critical")
    assert "runtime directory" in cause["message"] and str(operator.runtime_directory) in cause["message"]


def test_a_script_that_shares_its_output_with_us_overwrites_nothing(operator, sandbox):
    """reconciled moves the position of its own descriptor, not of the script's."""
    script, log = operator.folder / "script.sh", operator.folder / "out.log"
    script.write_text(f"""#!/bin/sh
exec >{log} 2>&1
echo before
{sandbox.program("reconciled")} --config {operator.folder}/none.yaml
echo after
""", encoding="utf-8")
    operator.user.give(script, 0o700)
    subprocess.run(operator.user.command(["/bin/sh", str(script)]), check=True, cwd=operator.folder)
    lines = log.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "before" and lines[-1] == "after" and "none.yaml" in "".join(lines[1:-1]), lines
