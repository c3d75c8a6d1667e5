# SPDX-License-Identifier: Apache-2.0
"""A Lease that an operator of another framework (client-go) takes as well: shared with `replicas.compatible`, and refused without."""
import signal

import pytest

from harness import wait_until
from harness.client_go import Candidate
from harness.operator import MESSAGE_ID
from harness.replicas import DURATION, TAKEN
from harness.wait import SLOWNESS

pytestmark = [pytest.mark.quiet, pytest.mark.slow,
              pytest.mark.plain_only(reason="a lead lasts three times as long there, and tests of replicas take the same ways")]
NAME = "widgets.example.com"
LONG = 2 * TAKEN / SLOWNESS


@pytest.fixture
def leases(devserver):
    return devserver.api.resource("coordination.k8s.io/v1", "leases", "default")


def test_a_client_go_holder_and_replicas_take_turns(replicas, widgets, leases):
    with Candidate(leases, NAME, "old_1", DURATION) as old:
        wait_until(lambda: old.leads, "the other operator to lead")
        replicas.add(1, compatible=True)
        ours, = replicas.operators
        wait_until(lambda: replicas.replica(ours)["leader"] == "old_1", "the holder's name")
        assert replicas.replica(ours)["state"] == "following" and not replicas.replica(ours)["trouble"]
        seen = leases.get(NAME)["spec"]["renewTime"]
        wait_until(lambda: leases.get(NAME)["spec"]["renewTime"] != seen, "the holder to renew")
    replicas.leader()
    assert "was not released" not in str(ours.logs(message_id=MESSAGE_ID["LEAD_GAINED"]))
    widgets.create("a")
    replicas.handler_of(ours).wait_finished(name="a")
    with Candidate(leases, NAME, "old_2", DURATION) as old:
        widgets.create("b")
        replicas.handler_of(ours).wait_finished(name="b")
        seen = set()
        wait_until(lambda: seen.add(leases.get(NAME)["spec"]["renewTime"]) or len(seen) > 10, "more renewals than a duration has", LONG)
        assert not old.leads and replicas.leads(ours)
        ours.stop()
        wait_until(lambda: old.leads, "the other operator to lead again")
        ours.start_ready()
        wait_until(lambda: replicas.replica(ours)["leader"] == "old_2", "the holder's name")
        old.die()
        replicas.leader(LONG * SLOWNESS)
        old.leads = False
    replicas.assert_no_overlap()


def test_a_leader_that_dies_is_followed_by_a_client_go_candidate(replicas, widgets, leases):
    replicas.add(1, compatible=True)
    ours, _ = replicas.leader()
    with Candidate(leases, NAME, "old_1", DURATION) as old:
        ours.send_signal(signal.SIGKILL)
        ours.wait_exit(-9)
        wait_until(lambda: old.leads, "the candidate to lead", LONG)
        ours.start_ready()
        wait_until(lambda: replicas.replica(ours)["leader"] == "old_1", "the holder's name")
        assert not old.lost


def test_a_lease_that_somebody_else_has_taken_is_not_led_by_us_as_well(replicas, leases):
    replicas.add(1)
    ours, _ = replicas.leader()
    with Candidate(leases, NAME, "old_1", DURATION) as old:
        wait_until(lambda: old.leads, "the candidate to take what it does not see renewed", LONG)
        ours.wait_exit(75, deadline=LONG)
        ours.start_ready()
        found = ours.wait_for_log("is no replica of operator", message_id=MESSAGE_ID["LEAD_TROUBLE"])
        assert "old_1" in found["message"] and "delete the Lease" in found["message"]
        assert old.leads and not old.lost
