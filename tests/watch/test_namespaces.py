# SPDX-License-Identifier: Apache-2.0
"""A watch of several namespaces, some of which the server refuses (403): the others go on without them."""
import json
import shutil

import pytest

from harness import wait_until
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID

from .conftest import NO_WATCH_LIST

BOTH = ["default", "other"]
FAST = {"first": "50ms", "max": "200ms"}


def refuse(listing, namespace, *verbs, resource="widgets"):
    """403 to these verbs there; returns what takes it back."""
    numbers = [listing.devserver.fault({"verb": verb, "resource": resource, "namespace": namespace}, times=0, status=403,
                                       message=f'{resource} is forbidden: User "operator" cannot {verb} in the namespace "{namespace}"')
               for verb in verbs]
    return lambda: [listing.devserver.clear_faults(number) for number in numbers]


@pytest.fixture
def twofold(follow):
    """A Follower whose server has the namespaces default and other."""
    listing = follow(NO_WATCH_LIST)
    listing.devserver.api.resource("v1", "namespaces").create("other")
    return listing


def elsewhere(listing, resource="widgets", version="example.com/v1"):
    return listing.devserver.api.resource(version, resource, "other")


def explained(listing, key):
    return json.loads(listing.operator.ctl.run("explain", "--json", "widgets", key).stdout)["conclusion"]


def told(listing):
    return listing.operator.logs(message_id=MESSAGE_ID["NAMESPACE_REFUSED"])


def test_a_refused_namespace_leaves_the_others_alone(twofold):
    """From the start and past the deadline; it is named in log, status and metrics, and comes back when it is allowed."""
    elsewhere(twofold).create("theirs")
    grant = refuse(twofold, "other", "list", "watch")
    operator = twofold.configure(namespaces=BOTH, reconnect=FAST, deadline="1s").operator
    socket = operator.runtime_directory / "gateway.sock"
    operator.write_config(operator.config_file.read_text(encoding="utf-8") + f"gateway: {{listen: 'unix:{socket}'}}\n")
    operator.start_ready().wait_synced()
    twofold.works()
    refused = lambda: len([r for r in twofold.lists() if r["namespace"] == "other"])
    beyond = wait_until(lambda: refused() > 3 and refused(), "attempts past the deadline")
    wait_until(lambda: refused() > beyond, "another attempt")
    status = twofold.wait_state("degraded")
    assert status["refusedNamespaces"] == "other" and status["reason"].startswith("namespace other: ")
    assert "these namespaces are refused: other" in twofold.operator.ctl.run("status").stdout
    Gateway(socket).wait('reconciled_watch_refused_namespaces{watch="widgets"}', 1)
    assert twofold.operator.ctl.run("health", "--ready").returncode == 0
    [record] = told(twofold)
    assert record["watch"] == "widgets" and "namespace other" in record["message"] and "cannot list" in record["message"]
    [degraded] = operator.logs(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    assert "does not work in one of its namespaces" in degraded["message"]
    assert record["namespace"] == degraded["namespace"] == "other"
    assert "its namespace other is refused (403)" in explained(twofold, "other/theirs")
    twofold.works("more")
    grant()
    twofold.ran("theirs")
    assert twofold.wait_state("in-sync")["refusedNamespaces"] == ""
    granted = twofold.operator.wait_for_log("namespace other is not refused any more", watch="widgets",
                                            message_id=MESSAGE_ID["NAMESPACE_GRANTED"])
    assert granted["namespace"] == "other"
    wait_until(lambda: "it is at rest" in explained(twofold, "other/theirs"), "the end of the refusal in explain")
    twofold.stop()


def test_objects_of_a_refused_namespace_are_kept(twofold):
    """Nothing counts as deleted while the server says nothing, not over a restart either; what was deleted meanwhile is
    found when it says something again."""
    for name in ("kept", "lost"):
        elsewhere(twofold).create(name)
    twofold.configure(namespaces=BOTH, reconnect=FAST, deadline="1s").operator.start_ready().wait_synced()
    twofold.ran("kept")
    twofold.ran("lost")
    grant = refuse(twofold, "other", "list", "watch", "get")
    twofold.devserver.close_watches("cut")
    twofold.wait_state("degraded")
    assert "its namespace other is refused (403)" in explained(twofold, "other/kept")
    twofold.stop()
    elsewhere(twofold).delete("lost")
    twofold.operator.start_ready().wait_synced()
    twofold.works()
    twofold.wait_state("degraded")
    assert twofold.status()["objects"] == 3
    assert not [action for action in twofold.actions() if action[0] != "reconcile"]
    grant()
    twofold.ran("lost", "deleted")
    twofold.stop()
    assert ("deleted", "kept") not in twofold.actions() and twofold.actions().count(("reconcile", "kept")) == 1


def test_rows_of_a_refused_namespace_are_kept_where_the_store_is_lost(twofold):
    """The ledger knows objects that no list has shown: the server is asked for them once it answers."""
    for name in ("kept", "lost"):
        elsewhere(twofold).create(name)
    twofold.configure(namespaces=BOTH, reconnect=FAST, deadline="1s").operator.start_ready().wait_synced()
    twofold.ran("kept")
    twofold.ran("lost")
    twofold.stop()
    shutil.rmtree(twofold.operator.state_directory / "store")
    grant = refuse(twofold, "other", "list", "watch")
    elsewhere(twofold).delete("lost")
    twofold.operator.start_ready().wait_synced()
    twofold.works()
    assert not [action for action in twofold.actions() if action[0] != "reconcile"]
    grant()
    twofold.ran("lost", "deleted")
    twofold.stop()
    assert ("deleted", "kept") not in twofold.actions()


@pytest.mark.parametrize("more", [{}, {"onDeadline": "isolate"}], ids=["fatal", "isolated"])
def test_when_every_namespace_is_refused_the_deadline_holds(twofold, more):
    refuse(twofold, "other", "list", "watch")
    twofold.configure(namespaces=BOTH, reconnect=FAST, deadline="1s", **more).operator.start_ready().wait_synced()
    twofold.works()
    refuse(twofold, "default", "list", "watch")
    twofold.devserver.close_watches("cut")
    if more:
        twofold.wait_state("failed")
        twofold.stop()
        return
    twofold.operator.wait_exit(expect=77)
    [cause] = twofold.operator.logs(message_id=MESSAGE_ID["CHILD_FATAL"])
    assert "past its deadline" in cause["message"]


def test_an_unreachable_server_is_fatal_beside_a_refused_namespace(twofold):
    refuse(twofold, "other", "list", "watch")
    twofold.configure(namespaces=BOTH, reconnect=FAST, deadline="1s").operator.start_ready().wait_synced()
    twofold.devserver.stop()
    twofold.operator.wait_exit(expect=69)


def test_a_refused_namespace_hides_no_other_trouble(twofold):
    """Trouble of the others is told though the watch is degraded already."""
    refuse(twofold, "other", "list", "watch")
    twofold.configure(namespaces=BOTH, deadline="5m").operator.start_ready().wait_synced()
    twofold.wait_state("degraded")
    number = twofold.devserver.fault({"verb": "watch", "namespace": "default"}, times=0, status=503, message="overloaded")
    twofold.devserver.close_watches("cut")
    wait_until(lambda: "overloaded" in twofold.status()["reason"], "the trouble of the other namespace")
    twofold.devserver.clear_faults(number)
    wait_until(lambda: twofold.status()["reason"].startswith("namespace other: "), "the refusal again")
    twofold.stop()


def test_writes_refused_in_one_namespace_do_not_end_the_operator(follow):
    listing = follow(NO_WATCH_LIST, behaviour="""echo '{"status": {"phase": "Ready"}}'""")
    listing.devserver.api.resource("v1", "namespaces").create("other")
    grant = refuse(listing, "other", "patch", resource="widgets/status")
    elsewhere(listing).create("theirs")
    listing.configure(namespaces=BOTH, reconnect=FAST, deadline="1s", retry={"first": "100ms", "max": "200ms"})
    listing.operator.start_ready().wait_synced()
    listing.handler.wait_finished(name="theirs", count=8)
    listing.works()
    listing.handler.wait_finished(name="theirs", count=12)
    reason = listing.wait_state("degraded")["reason"]
    assert reason.startswith("other/theirs: the API server refused the handler's status (HTTP 403)") and "cannot patch" in reason
    degraded = listing.operator.wait_for_log("does not work in one of its namespaces", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    assert (degraded["key"], degraded["namespace"]) == ("other/theirs", "other")
    grant()
    listing.wait_state("in-sync")
    listing.stop()


def test_a_refused_finalizer_is_the_operators(follow):
    listing = follow(NO_WATCH_LIST)
    grant = refuse(listing, "default", "patch")
    listing.configure(finalizer=True, retry={"first": "100ms", "max": "200ms"}).operator.start_ready().wait_synced()
    listing.widgets.create("held")
    reason = listing.wait_state("degraded")["reason"]
    assert reason.startswith("default/held: the API server refused the operator's finalizer (HTTP 403)")
    grant()
    listing.ran("held")
    listing.stop()


def test_a_refused_namespace_is_streamed_when_it_is_granted(follow):
    """A right is missing, no feature."""
    listing = follow()
    listing.devserver.api.resource("v1", "namespaces").create("other")
    grant = refuse(listing, "other", "list", "watch")
    elsewhere(listing).create("theirs")
    listing.configure(namespaces=BOTH, reconnect=FAST).operator.start_ready().wait_synced()
    listing.works()
    listing.wait_state("degraded")
    grant()
    listing.ran("theirs")
    listing.stop()
    assert not listing.lists() and not [line for line in listing.operator.logs() if "streamed list" in line["message"]]


def test_related_objects_of_a_refused_namespace_are_not_taken_for_missing(twofold):
    """A handler is not run there before they are known; in the other namespaces it is. The grant ends the backoff."""
    elsewhere(twofold, "configmaps", "v1").create("settings")
    grant = refuse(twofold, "other", "list", "watch", resource="configmaps")
    elsewhere(twofold).create("theirs")
    twofold.configure(namespaces=BOTH, reconnect=FAST, deadline="1s", retry={"first": "1h", "max": "1h"},
                      related=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    twofold.operator.start_ready()
    twofold.works()
    twofold.operator.wait_for_log("other/theirs", message_id=MESSAGE_ID["RUN_FAILED"])
    assert ("reconcile", "theirs") not in twofold.actions()
    grant()
    twofold.ran("theirs")
    assert "settings" in str(twofold.handler.requests(name="theirs")[0].body["related"])
    twofold.stop()
