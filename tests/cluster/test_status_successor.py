# SPDX-License-Identifier: Apache-2.0
"""No write for an object that is gone reaches another one of its name; on a real API server, where /status knows no UID."""
import shlex

import pytest

from harness import wait_until


@pytest.fixture
def gate(sandbox, handler):
    folder = sandbox.subfolder("gate", mode=0o777)
    handler.behave(f"cd {shlex.quote(str(folder))}; touch waiting; until [ -e open ]; do sleep 0.05; done\n"
                   "echo '{\"status\": {\"first\": true}}'")
    return folder


def test_the_status_of_a_deleted_object_does_not_reach_its_successor(configured, gate, handler, widgets):
    configured.start_ready().wait_synced()
    first = widgets.create("w")["metadata"]["uid"]
    wait_until((gate / "waiting").exists, "the run")
    handler.answer({"status": {"second": True}})
    widgets.delete("w")
    second = widgets.create("w", spec={"second": True})["metadata"]["uid"]
    assert first != second
    (gate / "open").touch()
    wait_until(lambda: "second" in widgets.get("w").get("status", {}), "the second one's own status")
    assert widgets.get("w")["status"] == {"second": True}
    configured.stop()


def test_a_status_is_written_in_spite_of_others_writes(configured, gate, handler, widgets):
    configured.start_ready().wait_synced()
    widgets.create("w")
    wait_until((gate / "waiting").exists, "the run")
    widgets.merge_patch("w", {"status": {"theirs": 1}}, "status")
    (gate / "open").touch()
    wait_until(lambda: widgets.get("w").get("status") == {"first": True, "theirs": 1}, "both")
    assert handler.count() == 1
    configured.stop()
