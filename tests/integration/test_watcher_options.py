# SPDX-License-Identifier: Apache-2.0
"""What a watch may be told: which namespaces, metadata alone, what its deadline means, that its resource may be missing."""
import pytest

from harness import WIDGET_CRD, wait_until, watch

FAST = {"first": "50ms", "max": "200ms"}
LIST = {"verb": "list", "resource": "widgets"}
WATCH = {"verb": "watch", "resource": "widgets"}


def namespace(devserver, name):
    devserver.api.resource("v1", "namespaces").create(name)
    return devserver.api.resource("example.com/v1", "widgets", name)


def state(operator):
    return operator.ctl.status()["watches"][0]


def wait_state(operator, expected):
    return wait_until(lambda: state(operator)["state"] == expected and state(operator),
                      lambda: f"state {expected}; it is {state(operator)}")


def actions(handler):
    return sorted((request.body["action"], f"{request.metadata.get('namespace')}/{request.name}")
                  for request in handler.requests())


def test_patterns_of_namespaces(devserver, operator, handler):
    """Namespaces come and go; what no pattern chooses is not even stored; a narrower choice deletes nothing."""
    chosen, excluded, other = (namespace(devserver, name) for name in ("team-a", "team-x", "other"))
    for each in (chosen, excluded, other):
        each.create("w", spec={})
    operator.configure(devserver, [watch("widgets", handler, namespaces=["team-*", "!team-x"])])
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w")
    later = namespace(devserver, "team-later")
    later.create("l", spec={})
    excluded.create("x", spec={})
    handler.wait_finished(name="l")
    chosen.delete("w")
    handler.wait_finished(name="w", action="deleted")
    wait_until(lambda: state(operator)["objects"] == 1, lambda: f"one object; {state(operator)}")
    operator.stop()
    operator.configure(devserver, [watch("widgets", handler, namespaces=["team-a*"])])
    operator.start_ready().wait_synced()
    operator.wait_for_log("team-later/l is no longer selected")
    operator.stop()
    assert actions(handler) == [("deleted", "team-a/w"), ("reconcile", "team-a/w"), ("reconcile", "team-later/l")]


@pytest.mark.parametrize("arguments", [[], ["--watch-list", "off"]], ids=["streamed", "listed"])
def test_metadata_alone(make_devserver, operator, handler, arguments):
    """Partial objects are asked for and stored; a change of the spec shows as a generation; a status does not."""
    devserver = make_devserver(arguments=arguments)
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    widgets.create("a", spec={"secret": 1})
    operator.configure(devserver, [watch("widgets", handler, metadataOnly=True)])
    operator.start_ready().wait_synced()
    first = handler.wait_finished(name="a")
    widgets.merge_patch("a", {"status": {"x": 1}}, subresource="status")
    widgets.merge_patch("a", {"spec": {"secret": 2}})
    second = handler.wait_finished(name="a", where=lambda request: request.metadata["generation"] == 2)
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    operator.stop()
    assert "spec" not in first.object and "spec" not in second.object
    assert len(handler.requests(name="a")) == 3
    asked = [request for request in devserver.requests()
             if request.get("verb") in ("list", "watch") and "watcher" in request.get("user_agent", "")]
    assert asked and all("as=PartialObjectMetadata" in request["accept"] for request in asked)


def test_own_writes_to_metadata_alone_are_no_change(devserver, operator, make_handler):
    """Neither at once nor at the next start: what was written is fingerprinted as it will be seen."""
    handler = make_handler("""printf '{"patch":{"metadata":{"labels":{"seen":"yes"}}},"status":{"seen":true}}'""")
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    widgets.create("a", spec={})
    operator.configure(devserver, [watch("widgets", handler, metadataOnly=True)])
    for life in range(2):
        operator.start_ready().wait_synced()
        wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the status")
        widgets.create(f"b{life}", spec={})
        handler.wait_finished(name=f"b{life}")
        operator.stop()
    assert len(handler.requests(name="a")) == 1 and len(handler.requests(name="b0")) == 1


@pytest.mark.slow
def test_an_isolated_watch_fails_alone_and_recovers(devserver, operator, handler, make_handler):
    devserver.fault({"resource": "widgets"}, status=403, times=0)
    namespaces = make_handler()
    operator.configure(devserver, [watch("widgets", handler, deadline="1s", onDeadline="isolate", reconnect=FAST),
                                   watch("namespaces", namespaces, apiVersion="v1", kind="Namespace")])
    operator.start_ready()
    wait_state(operator, "failed")
    devserver.api.resource("v1", "namespaces").create("proof")
    namespaces.wait_finished(name="proof")
    devserver.clear_faults()
    wait_state(operator, "in-sync")
    devserver.api.resource("example.com/v1", "widgets", "default").create("a", spec={})
    handler.wait_finished(name="a")
    operator.stop()


@pytest.mark.slow
def test_what_need_not_be_there_may_come_and_go(make_devserver, operator, handler):
    """No deadline while it is simply not served; it works when it comes, and again when it comes anew: new objects,
    and the old ones are deleted."""
    devserver = make_devserver(load=())
    operator.configure(devserver, [watch("widgets", handler, required=False, deadline="600ms", reconnect=FAST)])
    operator.start_ready()
    wait_state(operator, "absent")
    crds = devserver.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    asked = len(devserver.requests())
    wait_until(lambda: len(devserver.requests()) > asked + 8, "more questions than the deadline would allow")
    for life in (1, 2):
        crds.create(body=WIDGET_CRD)
        wait_state(operator, "in-sync")
        wait_until(lambda: widgets.create("a", spec={"life": life}), "the resource")
        handler.wait_finished(name="a", where=lambda request: request.object["spec"] == {"life": life})
        crds.delete(WIDGET_CRD["metadata"]["name"])
        wait_state(operator, "absent")
    operator.stop()
    assert len({request.metadata["uid"] for request in handler.requests(name="a", action="reconcile")}) == 2
    assert len(handler.requests(name="a", action="deleted")) >= 1


def test_what_must_be_there_is_missed(make_devserver, operator, handler):
    devserver = make_devserver(load=())
    operator.configure(devserver, [watch("widgets", handler, deadline="600ms", reconnect=FAST)])
    operator.start_ready()
    operator.wait_exit(expect=69)


@pytest.mark.parametrize("match", [LIST, WATCH], ids=["list", "watch"])
@pytest.mark.slow
def test_the_deadline_holds_while_a_server_wants_to_be_left_alone(make_devserver, operator, handler, match):
    """Retry-After of an hour holds the request back; the watch is broken all the same."""
    devserver = make_devserver(arguments=["--watch-list", "off"])
    devserver.fault(match, status=429, retryAfter=3600, times=0)
    operator.configure(devserver, [watch("widgets", handler, deadline="1s", reconnect=FAST)])
    operator.start_ready()
    operator.wait_exit(expect=69, deadline=20)
    assert len([request for request in devserver.requests() if request["status"] == 429]) <= 2


@pytest.mark.slow
def test_a_list_that_trickles_in_is_not_cut_off_by_the_deadline(make_devserver, operator, handler):
    devserver = make_devserver(arguments=["--watch-list", "off"])
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    for i in range(40):
        widgets.create(f"w{i}", spec={"text": "x" * 400})
    devserver.fault(LIST, status=500, times=1)
    devserver.fault({**LIST, "continue": False}, bytesPerSecond=10000, after=1, times=0)
    operator.configure(devserver, [watch("widgets", handler, deadline="1s", reconnect=FAST)])
    operator.start_ready().wait_synced()
    operator.stop()


def test_selectors_under_patterns(devserver, operator, handler):
    """What leaves the selection is not deleted; what is deleted is."""
    widgets = namespace(devserver, "team-a")
    for name in ("leaves", "goes"):
        widgets.create(name, spec={}, metadata={"labels": {"tier": "gold"}})
    operator.configure(devserver, [watch("widgets", handler, namespaces=["team-*"], labelSelector="tier=gold")])
    operator.start_ready().wait_synced()
    handler.wait_finished(name="leaves")
    handler.wait_finished(name="goes")
    widgets.merge_patch("leaves", {"metadata": {"labels": {"tier": "iron"}}})
    widgets.delete("goes")
    handler.wait_finished(name="goes", action="deleted")
    operator.wait_for_log("team-a/leaves is no longer selected")
    operator.stop()
    assert ("deleted", "team-a/leaves") not in actions(handler)
