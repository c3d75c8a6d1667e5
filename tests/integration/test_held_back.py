# SPDX-License-Identifier: Apache-2.0
"""A Retry-After for one kind: what needs it waits without a worker, and all else goes on."""
import json

import pytest

from harness import ledger, scaled, wait_until, watch
from harness.operator import MESSAGE_ID

WISH = int(scaled(8))  # seconds; what goes on meanwhile takes one or two
WIDGETS, ACCOUNTS = [f"w{number}" for number in range(12)], [f"a{number}" for number in range(20)]
CHILD = """printf '{"children":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"of-%s"}}]}' "$RECONCILED_NAME" """
MARK = """printf '{"patch":{"metadata":{"annotations":{"example.com/seen":"yes"}}}}'"""

pytestmark = pytest.mark.quiet


def asked(devserver, resource, **more):
    """Requests to the resource itself and below it."""
    return devserver.requests(lambda request: request.get("resource") == resource
                              and all(request.get(key) == value for key, value in more.items()))


def row(operator, name):
    return json.loads(operator.ctl.run("explain", "--json", "widgets", f"default/{name}").stdout)["objects"][0]


@pytest.fixture
def pair(devserver, operator, handler, make_handler):
    """Two watches, two workers; marked() ends when the other watch has been served to the last object."""
    other = make_handler(MARK)
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "50ms", "max": "10m"}),
                                   watch("accounts", other, api_version="v1", kind="ServiceAccount")], workers=2)
    accounts = devserver.api.resource("v1", "serviceaccounts", "default")

    def marked():
        for name in ACCOUNTS:
            accounts.create(name)
        for name in ACCOUNTS:
            wait_until(lambda: "annotations" in accounts.get(name)["metadata"], f"the mark on {name}")
        return max(request["time"] for request in asked(devserver, "serviceaccounts", verb="patch"))

    operator.marked = marked
    return operator


def held_back(operator):
    return wait_until(lambda: operator.ctl.status()["heldBack"], "the wish in the status")


@pytest.mark.slow
def test_a_throttled_kind_of_children_holds_no_worker(pair, devserver, widgets, handler):
    handler.behave(CHILD)
    devserver.fault({"verb": "patch", "resource": "configmaps"}, status=429, retryAfter=WISH)
    pair.start_ready().wait_synced()
    for name in WIDGETS:
        widgets.create(name)
    refused = wait_until(lambda: asked(devserver, "configmaps", status=429), "the refusal")[0]["time"]
    assert pair.marked() < refused + WISH, "the other watch is served while the wish is in force"
    maps = devserver.api.resource("v1", "configmaps", "default")
    for name in WIDGETS:
        wait_until(lambda: maps.exists(f"of-{name}"), f"the child of {name}", deadline=4 * WISH)
    # Others may have left before the answer came.
    times = sorted(request["time"] for request in asked(devserver, "configmaps", verb="patch"))
    assert not [time for time in times if refused + WISH / 4 < time < refused + WISH - 0.1], "nobody asks before"
    wait_until(lambda: not ledger.read(pair, "SELECT 1 FROM ledger WHERE attempts > 0"), "all are done")
    assert {request.body["attempt"] for request in handler.requests()} == {1}, "no attempt is counted"
    assert len(handler.requests()) <= 4 * len(WIDGETS), "handlers are not run again and again for it"
    pair.stop()


@pytest.mark.slow
def test_a_throttled_watch_holds_no_worker_whose_handler_runs(pair, devserver, widgets, handler):
    go = handler.folder / "go"
    handler.behave(f"""while ! test -e {go}; do sleep 0.1; done; printf '{{"status":{{"seen":true}}}}'""")
    pair.start_ready().wait_synced()
    for name in WIDGETS:
        widgets.create(name)
    wait_until(lambda: len(handler.requests()) == 2, "both workers in a handler")
    devserver.fault({"verb": "watch", "resource": "widgets"}, status=429, retryAfter=WISH)
    devserver.close_watches("cut", {"resource": "widgets"})
    refused = wait_until(lambda: asked(devserver, "widgets", status=429), "the refusal")[0]["time"]
    pair.wait_for_log("does not work for now", watch="widgets")
    go.touch()
    assert pair.marked() < refused + WISH
    for name in WIDGETS:
        wait_until(lambda: widgets.get(name).get("status"), f"the status of {name}", deadline=4 * WISH)
    writes = [request["time"] for request in asked(devserver, "widgets", verb="patch")]
    assert min(writes) >= refused + WISH - 0.1
    assert {request.body["attempt"] for request in handler.requests()} == {1}
    pair.stop()


@pytest.mark.slow
def test_a_wish_is_told_once_and_not_for_each_object(pair, devserver, widgets, handler):
    """What the objects wait for shows where answers are not kept."""
    handler.behave(CHILD)
    pair.configure(devserver, [watch("widgets", handler, retry={"first": "50ms", "max": "10m"})], workers=2, window=1)
    devserver.fault({"verb": "patch", "resource": "configmaps"}, status=429, retryAfter=5, times=2)
    pair.start_ready().wait_synced()
    for name in WIDGETS:
        widgets.create(name)
    wish = held_back(pair)[0]
    assert wish["resource"] == "/configmaps" and wish["until"] > 0
    assert "configmaps" in pair.ctl.run("status").stdout.split("WATCH")[0]
    waiting = wait_until(lambda: row(pair, "w0").get("nextReason") and row(pair, "w0"), "what the object waits for")
    assert waiting["nextReason"] == "held" and waiting["lastError"]
    maps = devserver.api.resource("v1", "configmaps", "default")
    for name in WIDGETS:
        wait_until(lambda: maps.exists(f"of-{name}"), f"the child of {name}")
    said = pair.logs(message_id=MESSAGE_ID["HELD_BACK"])
    assert len(said) == 1 and "configmaps" in said[0]["message"], "the second wish follows the first: one state"
    assert not pair.logs(message_id=MESSAGE_ID["RUN_FAILED"])
    wait_until(lambda: not pair.ctl.status()["heldBack"], "the end of the wish")
    pair.stop()


def test_what_is_held_back_waits_across_a_restart(pair, devserver, widgets, handler):
    handler.behave(CHILD)
    devserver.fault({"verb": "patch", "resource": "configmaps"}, status=429, retryAfter=120, times=0)
    pair.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: ledger.read(pair, "SELECT 1 FROM ledger WHERE refused = 1"), "its record")
    pair.stop()
    pair.start_ready().wait_synced()
    assert row(pair, "a")["nextReason"] == "held"
    assert len(asked(devserver, "configmaps", verb="patch")) == 1
    pair.stop()


@pytest.mark.slow
def test_our_finalizer_is_not_tried_while_its_kind_is_held_back(pair, devserver, widgets, handler):
    pair.configure(devserver, [watch("widgets", handler, finalizer=True, retry={"first": "50ms", "max": "50ms"})])
    pair.start_ready().wait_synced()
    devserver.fault({"verb": "patch", "resource": "widgets"}, status=429, retryAfter=5)
    widgets.create("a")
    refused = wait_until(lambda: asked(devserver, "widgets", status=429), "the refusal")[0]["time"]
    wait_until(lambda: widgets.get("a")["metadata"].get("finalizers"), "the finalizer")
    assert min(request["time"] for request in asked(devserver, "widgets", verb="patch", status=200)) >= refused + 4.9
    assert not pair.logs(message_id=MESSAGE_ID["FINALIZER_FAILED"]) and not pair.logs(message_id=MESSAGE_ID["RUN_FAILED"])
    pair.stop()
