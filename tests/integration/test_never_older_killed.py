# SPDX-License-Identifier: Apache-2.0
"""After a SIGKILL in the middle of a run, with a watch that is silent: the next run is shown what the last one wrote."""
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

CM = {"apiVersion": "v1", "kind": "ConfigMap"}

OWNS = [CM]

SOON = {"watchTimeout": "5s", "stall": "5s"}  # a watch that hangs is given up


def config_map(name, data=None, **metadata):
    return {**CM, "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start():
        operator.configure(devserver, [watch("widgets", handler, owns=OWNS, retry={"first": "50ms", "max": "200ms"}, reconnect=SOON)])
        return operator.start_ready().wait_synced()

    return start


def waits_and_sees(devserver, operator, handler):
    """While the watch is silent the object waits; then its run comes."""
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_BEHIND"])
    assert len(handler.requests(name="w")) == 1
    devserver.clear_faults()
    devserver.close_watches("cut")
    return handler.wait_finished(name="w", count=2)


@pytest.mark.parametrize("lost", [False, True])
def test_the_object_after_a_kill_in_the_middle(devserver, start, operator, handler, widgets, config_maps, lost):
    """The list of children was written to it; the answer to the apply never came."""
    handler.answer({"children": [config_map("a")]})
    start()
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=0, atEvent=2, stall=True, bookmarks=False)
    devserver.fault(match={"verb": "patch", "resource": "configmaps"}, times=0, hang=True)
    devserver.close_watches("clean", match={"resource": "widgets"})
    widgets.create("w", spec={"size": 1})
    handler.wait_finished(name="w")
    wait_until(lambda: "widgets.example.com/children" in widgets.get("w")["metadata"].get("annotations", {}), "the list")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    if lost:
        for path in operator.state_directory.glob("ledger*"):
            path.unlink()
    devserver.clear_faults()
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=0, atEvent=1, stall=True, bookmarks=False)
    operator.start_ready()
    last = waits_and_sees(devserver, operator, handler)
    assert "widgets.example.com/children" in last.metadata.get("annotations", {}), last.metadata


def test_an_id_that_is_made_once(devserver, start, operator, handler, widgets, config_maps):
    """The patch with it is written, the status hangs, all is killed; the watch is late before and after."""
    handler.behave("""python3 - <<'END'
import json, os
request = json.load(open(os.environ["REQUEST"]))
known = (request["object"]["metadata"].get("annotations") or {}).get("id")
print(json.dumps({"patch": {"metadata": {"annotations": {"id": known or os.urandom(8).hex()}}}, "status": {"n": 1}}))
END""")
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "50ms", "max": "200ms"}, reconnect=SOON)])
    operator.start_ready().wait_synced()
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=0, atEvent=2, stall=True, bookmarks=False)
    fault = devserver.fault(match={"verb": "patch", "resource": "widgets/status"}, times=0, hang=True)
    devserver.close_watches("clean", match={"resource": "widgets"})
    widgets.create("w", spec={"size": 1})
    first = wait_until(lambda: (widgets.get("w")["metadata"].get("annotations") or {}).get("id"), "the patch")
    wait_until(lambda: devserver.faults()[fault]["hit"], "the status")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    devserver.clear_faults()
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=0, atEvent=1, stall=True, bookmarks=False)
    operator.start_ready()
    last = waits_and_sees(devserver, operator, handler)
    assert (last.metadata.get("annotations") or {}).get("id") == first
