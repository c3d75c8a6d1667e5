# SPDX-License-Identifier: Apache-2.0
"""The queue as it is seen from outside, and what a restart must not do."""
from harness import wait_until

from .conftest import WATCH, query


def sizes(handler, name):
    return [request.object["spec"]["size"] for request in handler.requests(name=name)]


def test_kopf_1072_an_update_while_the_handler_runs(listing):
    """kopf#1072: it gives exactly one more run, which sees the newest state."""
    gate = listing.handler.folder / "gate"
    listing.handler.behave(f"while [ ! -e {gate} ]; do sleep 0.02; done")
    listing.start_synced()
    listing.create("busy", spec={"size": 0})
    listing.handler.wait_for(name="busy")
    for size in range(1, 6):
        version = listing.widgets.merge_patch("busy", {"spec": {"size": size}})["metadata"]["resourceVersion"]
    wait_until(lambda: f"stored      resourceVersion {version}," in
               listing.operator.ctl.run("explain", "widgets", "default/busy").stdout, "the last change to be known")
    gate.touch()
    wait_until(lambda: sizes(listing.handler, "busy")[-1:] == [5], "the run that sees the last change")
    listing.works()
    listing.stop()
    assert sizes(listing.handler, "busy") == [0, 5]


def test_kubernetes_112325_twenty_events_during_a_backoff(listing):
    """kubernetes#112325: a flood of changes does not drive the backoff to its cap."""
    listing.handler.behave("exit 1")
    listing.start_synced(retry={"first": "1h", "max": "24h"})
    listing.create("flooded", spec={"size": 0})
    listing.handler.wait_finished(name="flooded")
    for size in range(1, 21):
        listing.widgets.merge_patch("flooded", {"spec": {"size": size}})
    wait_until(lambda: sizes(listing.handler, "flooded")[-1:] == [20], "the run for the last change")
    attempts = [request.body["attempt"] for request in listing.handler.requests(name="flooded")]
    assert max(attempts) <= 2, attempts
    listing.stop()


def test_kubernetes_59848_a_restart_asks_for_the_newest_state(listing):
    """kubernetes#59848: no request takes whatever a server that lags behind may have."""
    listing.create("first")
    listing.start_synced()
    listing.ran("first")
    listing.stop()
    listing.devserver.compact()
    listing.create("second")
    listing.devserver.compact()
    listing.operator.start_ready().wait_synced()
    listing.ran("second")
    listing.stop()
    assert not [request for request in listing.requests("list") + listing.watches()
                if query(request).get("resourceVersion") == "0"]


def test_kube_1882_a_resumed_watch_sends_no_initial_events(streaming):
    """kube#1882: neither after a reconnect nor after a restart."""
    streaming.start_synced()
    streaming.devserver.close_watches("cut")
    streaming.wait_watches(2)
    streaming.stop()
    streaming.operator.start_ready()
    streaming.wait_watches(3)
    streaming.works()
    streaming.stop()
    sent = ["sendInitialEvents" in query(request) for request in streaming.watches()]
    assert sent[0] and not any(sent[1:]), streaming.watches()


def test_kubernetes_135895_initial_events_that_never_end(streaming):
    """kubernetes#135895: the list is fetched in pages instead, within the time that is configured."""
    streaming.create("first")
    streaming.devserver.fault(WATCH, times=0, initialEventsEnd=False)
    streaming.start(reconnect={"first": "50ms", "max": "1s", "initialEvents": "300ms"})
    streaming.operator.wait_ready().wait_synced()
    streaming.ran("first")
    assert len(streaming.lists()) == 1
    streaming.devserver.close_watches("cut")
    streaming.works()
    assert sum("sendInitialEvents" in query(request) for request in streaming.watches()) == 1, "it is remembered"
    streaming.stop()
