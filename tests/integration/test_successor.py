# SPDX-License-Identifier: Apache-2.0
"""An object that has taken the name of another one while a run was about that one: no write of the run may reach it."""
import json
import shlex

import pytest

from harness import wait_until, watch


@pytest.fixture
def gate(sandbox, handler):
    """gate.behave(shell): the runs of `reconcile` that begin now go on when the test opens the gate."""
    folder = sandbox.subfolder("gate", mode=0o777)

    class Gate:
        @staticmethod
        def behave(shell):
            handler.behave(f"[ $RECONCILED_ACTION = reconcile ] || exit 0\ncd {shlex.quote(str(folder))}\n"
                           f"touch waiting; until [ -e open ]; do sleep 0.05; done\n{shell}")

        @staticmethod
        def wait():
            wait_until(lambda: (folder / "waiting").exists(), "the run")

        @staticmethod
        def open():
            (folder / "open").touch()

    return Gate


def replace(widgets, name):
    """Another object of this name; returns its UID and its resourceVersion."""
    old = widgets.get(name)["metadata"]["uid"]
    widgets.delete(name)
    wait_until(lambda: not widgets.exists(name), "the end of the first one")
    metadata = widgets.create(name, spec={"second": True})["metadata"]
    assert metadata["uid"] != old
    return metadata["uid"], metadata["resourceVersion"]


@pytest.mark.parametrize("answer", [{"status": {"of": "the first"}}, {"patch": {"spec": {"of": "the first"}}},
                                    {"conditions": [{"type": "Ready", "status": "True", "reason": "OfTheFirst"}]},
                                    {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}}]}])
def test_an_answer_for_a_deleted_object_does_not_reach_its_successor(devserver, operator, handler, widgets, gate, answer):
    gate.behave(f"echo '{json.dumps(answer)}'")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("w")
    gate.wait()
    handler.answer({"status": {"of": "the second"}})
    second, version = replace(widgets, "w")
    gate.open()
    wait_until(lambda: widgets.get("w").get("status", {}).get("of") == "the second", "the second one's own status")
    handler.wait_finished(name="w", action="reconcile", where=lambda request: request.metadata["uid"] == second)
    written = devserver.requests(lambda request: request["method"] == "PATCH" and request["status"] == 200)
    assert len(written) == 1, "one write of the second one's own run"
    assert int(widgets.get("w")["metadata"]["resourceVersion"]) > int(version)
    assert "first" not in str(widgets.get("w")).lower()
    operator.stop()


def test_a_status_that_others_write_all_the_time_is_written(devserver, operator, handler, widgets, gate):
    """It is bound to a version, which is not the handler's any more: the answer is kept, and no second run is needed."""
    gate.behave("echo '{\"status\": {\"ours\": 1}}'")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("w")
    gate.wait()
    for number in range(3):
        widgets.merge_patch("w", {"status": {"theirs": number}}, "status")
    gate.open()
    wait_until(lambda: widgets.get("w").get("status") == {"ours": 1, "theirs": 2}, "both")
    assert handler.count() == 1
    operator.stop()
