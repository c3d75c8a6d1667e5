# SPDX-License-Identifier: Apache-2.0
"""Handlers that take forever while the server has much to say. RECONCILED_FULL=1: a hundred thousand objects."""
import json
import os

import pytest

from harness import WIDGET_CRD, wait_until
from harness.setup import SANITIZED

from .conftest import LIST, NO_WATCH_LIST, query

COUNT = 100000 if os.environ.get("RECONCILED_FULL") == "1" else 1200  # three pages
PATIENCE = 60 + COUNT / 10
BOUND_KIB = 32 * 1024


def objects():
    return [{"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 0, "text": "x" * 500},
             "metadata": {"name": f"w{number:06}", "namespace": "default"}} for number in range(COUNT)]


def anonymous_kib(process):
    """Memory of its own; pages of a mapped store are the kernel's to drop."""
    with open(f"/proc/{process.pid}/smaps_rollup", encoding="utf-8") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))


def last_seen(handler):
    """{name: (action, size)} of the last run of each."""
    return {request.name: (request.body["action"], request.object["spec"]["size"]) for request in handler.requests()}


@pytest.mark.parametrize("arguments", [NO_WATCH_LIST, []], ids=["listed", "streamed"])
def test_everything_is_read_while_handlers_stand_still(follow, sandbox, arguments):
    """The LIST and every event are taken in while not one handler has ended, by processes of bounded size; afterwards
    each object's last run has seen its last state, and each deletion was handled."""
    load = sandbox.subfolder("load") / "objects.yaml"
    load.write_text("\n---\n".join(map(json.dumps, [WIDGET_CRD, *objects()])), encoding="utf-8")
    flow = follow([*arguments, "--load", str(load)], load=())
    gate = flow.handler.folder / "gate"
    flow.handler.behave(f"while [ ! -e {gate} ]; do sleep 0.05; done")
    slow = flow.devserver.fault({**LIST, "continue": True}, times=0, bytesPerSecond=2000000)
    flow.configure(handler_options={"timeout": "30m"})
    flow.operator.start_ready().wait_synced(deadline=PATIENCE)
    flow.wait_watches(1)
    flow.devserver.clear_faults(slow)
    changed, deleted = range(0, COUNT, 2), range(1, COUNT, 10)
    for size in (1, 2, 3):
        for number in changed:
            flow.widgets.merge_patch(f"w{number:06}", {"spec": {"size": size}})
    for number in deleted:
        flow.widgets.delete(f"w{number:06}")
    events = 3 * len(changed) + len(deleted)
    # The objects of a streamed list are events as well.
    events += 0 if flow.lists() else COUNT
    wait_until(lambda: flow.status()["events"] >= events, lambda: f"{events} events; {flow.status()}", PATIENCE)
    assert not [request for request in flow.handler.requests() if request.exit_code is not None]
    assert flow.status()["state"] == "in-sync" and len(flow.watches()) == 1
    assert not [page for page in flow.lists() if page["status"] != 200]
    if not SANITIZED:
        sizes = {process.pid: anonymous_kib(process) for process in [flow.operator.popen, *flow.operator.children()]}
        assert max(sizes.values()) < BOUND_KIB, sizes
    gate.touch()
    expected = {f"w{number:06}": ("reconcile", 0) for number in range(COUNT)}
    expected.update({f"w{number:06}": ("reconcile", 3) for number in changed})
    wait_until(lambda: flow.handler.count() >= COUNT - len(deleted), "runs", PATIENCE)
    gone = {f"w{number:06}" for number in deleted}

    def settled():
        seen = last_seen(flow.handler)
        return all(seen.get(name) == state for name, state in expected.items() if name not in gone) and all(
            seen[name][0] == "deleted" for name in gone & seen.keys())

    wait_until(settled, "the last state of each object", PATIENCE)
    flow.stop()
