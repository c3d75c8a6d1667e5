# SPDX-License-Identifier: Apache-2.0
"""What anybody who may write Leases puts into the leader record: it holds a replica up at most."""
import time

import pytest

from harness import wait_until
from harness.operator import MESSAGE_ID
from harness.replicas import LONG

RECORD = "widgets.example.com"


@pytest.fixture
def record(replicas):
    """Writes the record as a leader that has released it: whoever starts then leads at once."""
    api = replicas.server.api
    leases = api.resource("coordination.k8s.io/v1", "leases", "default")
    cluster = api.resource("v1", "namespaces").get("kube-system")["metadata"]["uid"]

    def write(*lines, epoch=7, holder="", duration=LONG):
        text = "\n".join(("reconciled-leader 1", f"operator {RECORD}", f"cluster {cluster}", f"epoch {epoch}", "writes 1",
                          f"duration {int(duration * 1e6)}", holder or "released", *lines)) + "\n"
        leases.create(RECORD, {"holderIdentity": holder and holder.split()[1], "leaseDurationSeconds": int(duration)},
                      annotations={f"{RECORD}/leader": text})

    return write


def lines(replicas):
    return replicas.lease()["metadata"]["annotations"][f"{RECORD}/leader"].splitlines()


def test_a_line_of_no_object_is_dropped(replicas, record, widgets):
    """Such a line once ended each replica that led, for ever: its key was in the ledger then, and in no message."""
    record("crashed widgets default%2F%FF u 0 0", "crashed widgets default%2Fx %FF 0 0", "crashed widgets - u 3 0",
           "running widgets - u 1", f"doubtful widgets default%2F%FF u {'9' * 18} {'9' * 18} 1", "doubtful widgets default%2Fx u 0 5 1",
           f"crashed widgets default%2F{'a' * 20000} u 3 0", "news of a later release")
    widgets.create("a")
    replicas.add(1, LONG)
    leader, _ = replicas.leader()
    replicas.handler_of(leader).wait_finished(name="a")
    leader.wait_synced()
    wait_until(lambda: lines(replicas)[7:] == ["news of a later release"], "the record without them")
    assert replicas.leads(leader) and sum("is damaged and is dropped" in entry["message"] for entry in leader.logs()) == 7


def runs(handler):
    names = ("RECONCILED_ACTION", "RECONCILED_NAMESPACE", "RECONCILED_NAME", "RECONCILED_UID")
    return [tuple(request.environment[name] for name in names) for request in handler.requests()]


def test_a_line_makes_no_object_deleted(replicas, record, widgets):
    """A line proves no handler's run: one that names an object that is not there must not have it cleaned up."""
    live = widgets.create("a")["metadata"]["uid"]
    record("crashed widgets default%2Fa forged 0 0", "crashed widgets default%2Fghost u 1 0", "crashed widgets prod%2Fdb u 0 0",
           f"crashed widgets default%2Fgone u 3 {'9' * 18}", "running widgets kube-system%2Fx u 1", "running widgets default%2Fy u 0",
           f"crashed widgets default%2Fa {live} 0 0")
    replicas.add(1, LONG)
    leader, _ = replicas.leader()
    replicas.handler_of(leader).wait_finished(name="a")
    leader.wait_synced()
    wait_until(lambda: not lines(replicas)[7:], "the record without them")
    assert runs(replicas.handler_of(leader)) == [("reconcile", "default", "a", live)]


def test_the_deletion_of_an_object_that_waits_is_told(replicas, record, widgets):
    """It was handed to a handler elsewhere, and is there as the lead begins."""
    uid = widgets.create("a")["metadata"]["uid"]
    record(f"crashed widgets default%2Fa {uid} 3 {'9' * 18}")
    replicas.add(1, LONG)
    leader, _ = replicas.leader()
    leader.wait_synced()
    widgets.create("b")
    replicas.handler_of(leader).wait_finished(name="b")
    assert [entry["key"] for entry in leader.ctl.status()["quarantine"]] == ["default/a"]
    widgets.delete("a")
    replicas.handler_of(leader).wait_finished(name="a")
    assert ("deleted", "default", "a", uid) in runs(replicas.handler_of(leader))


def test_a_replica_that_cannot_take_over_is_not_ready(replicas, record):
    """The epoch of a leader that took the lead as the server's clock was two years ahead."""
    record(epoch=int(time.time()) + 2 * 366 * 86400, holder="holder another 1234")
    replicas.add(1, LONG)
    follower = replicas.operators[0]
    found = follower.wait_for_log("a year ahead", message_id=MESSAGE_ID["LEAD_TROUBLE"])
    assert "end all replicas, delete the Lease of the leader record, and start them again" in found["message"]
    health = follower.ctl.run("health", "--ready")
    assert health.returncode == 70 and "a year ahead" in health.stdout + health.stderr, health
    assert follower.ctl.run("health").returncode == 0
