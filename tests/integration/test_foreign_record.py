# SPDX-License-Identifier: Apache-2.0
"""What anybody who may write Leases puts into the leader record: it holds a replica up at most."""
import pytest

from harness import wait_until
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
