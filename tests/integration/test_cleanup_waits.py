# SPDX-License-Identifier: Apache-2.0
"""A deletion waits for a child that somebody else's finalizer holds: its handler does not run again, and people are told why."""
import signal

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}, "data": {"a": "1"}}
HOLDER = "example.com/held"


def test_it_is_told_and_finalize_runs_once(devserver, operator, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    handler.behave(f"""[ "$RECONCILED_ACTION" = finalize ] && {{ echo '{{"status": {{"phase": "Ended"}}}}'; exit; }}
echo '{{"children": [{str(CHILD).replace(chr(39), chr(34))}]}}'""")
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, readyCondition=True, resync="1h")])
    operator.start_ready().wait_synced()
    widgets.create("w")
    wait_until(lambda: config_maps.exists("held"), "the child")
    config_maps.merge_patch("held", {"metadata": {"finalizers": [HOLDER]}})
    widgets.delete("w")
    [told] = wait_until(lambda: operator.logs(message_id=MESSAGE_ID["CLEANUP_WAITS"]), "the log")
    assert "ConfigMap held" in told["message"] and HOLDER in told["message"]

    def condition():
        found = widgets.get("w").get("status", {})
        ready = [each for each in found.get("conditions", []) if each["type"] == "Ready"]
        return found.get("phase") == "Ended" and ready and ready[0]["reason"] == "Waiting" and HOLDER in ready[0]["message"]

    wait_until(condition, lambda: f"the condition: {widgets.get('w')}")
    events = api.resource("events.k8s.io/v1", "events", "default")
    wait_until(lambda: [event for event in events.list()["items"] if event["reason"] == "CleanupWaits" and HOLDER in event["note"]],
               "the Event")
    said = operator.ctl.run("explain", "widgets", "default/w").stdout
    assert "its handler has finalized it" in said and "ConfigMap held" in said and HOLDER in said
    widgets.merge_patch("w", {"metadata": {"labels": {"a": "change"}}})
    wait_until(lambda: len(devserver.requests(lambda request: request.get("name") == "held" and request["method"] == "GET"
                                              and "worker" in request.get("user_agent", ""))) >= 4, "some looks")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    operator.start_ready().wait_synced()
    config_maps.merge_patch("held", {"metadata": {"finalizers": None}})
    wait_until(lambda: not widgets.exists("w"), "its end", 60)
    assert len(handler.requests(name="w", action="finalize")) == 1
    operator.stop()
