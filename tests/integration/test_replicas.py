# SPDX-License-Identifier: Apache-2.0
"""`replicas`: one of several leads, the others follow, and no two runs of one object overlap, whatever ends or stops the leader."""
import contextlib
import json
import signal
import time
import urllib.parse

import pytest
import yaml

from harness import wait_until, watch
from harness.api import ApiError
from harness.operator import MESSAGE_ID
from harness.process import find_processes
from harness.replicas import AT_ONCE, DURATION, LONG, TAKEN
from harness.wait import SLOWNESS

pytestmark = [pytest.mark.quiet, pytest.mark.slow]
plain = pytest.mark.plain_only(reason="a lead lasts three times as long there, and another test here takes the same ways")


@plain
def test_one_leads_and_the_others_wait(replicas, widgets):
    replicas.add(3, LONG)
    leader, others = replicas.leader()
    widgets.create("a")
    request = replicas.handler_of(leader).wait_finished(name="a")
    assert request.body["epoch"] == replicas.replica(leader)["epoch"] == int(request.environment["RECONCILED_EPOCH"])
    for other in others:
        wait_until(lambda: replicas.replica(other)["leader"] == replicas.replica(leader)["member"], "the name of the leader")
        assert {process.program for process in other.children()} == {"reconciled-spawner", "reconciled-credential", "reconciled-lease"}
        assert replicas.handler_of(other).count() == 0
        assert [watch["state"] for watch in other.ctl.status()["watches"]] == ["following"]
        assert other.ctl.status()["phase"] == "following" and other.ctl.run("health", "--ready").returncode == 0
        assert other.status_text.startswith("follows ")
        refused = other.ctl.run("explain", "widgets", "default/a")
        assert refused.returncode == 70 and replicas.replica(leader)["member"] in refused.stderr, refused
    assert "leads, epoch" in leader.ctl.run("status").stdout and "follows, " in others[0].ctl.run("status").stdout
    assert leader.logs(message_id=MESSAGE_ID["LEAD_GAINED"])
    member = replicas.replica(leader)["member"]
    wait_until(lambda: replicas.server.requests(lambda request: request.get("verb") == "watch" and member in request.get("query", "")),
               "a watch of the leader's own Lease")
    record = replicas.lease()
    assert record["spec"]["holderIdentity"] == replicas.replica(leader)["member"]
    assert "reconciled-leader 1\noperator widgets.example.com\n" in record["metadata"]["annotations"]["widgets.example.com/leader"]
    replicas.assert_no_overlap()


@plain
def test_the_server_is_asked_to_give_a_write_up_before_the_lead_is_over(replicas, widgets):
    replicas.add(1, behaviour="""echo '{"status": {"seen": true}}'""")
    leader, _ = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_finished(name="a")
    writes = wait_until(lambda: replicas.server.requests(lambda request: request.get("resource") == "widgets" and request.get("verb") == "patch"),
                        "the status")
    for write in writes:
        bound = urllib.parse.parse_qs(write["query"]).get("timeout", ["none"])[0]
        assert bound.endswith("ms") and 0 < int(bound[:-2]) <= DURATION * 1000 * 12 / 15, write


@plain
def test_a_leader_that_stops_in_order_is_followed_at_once(replicas, widgets):
    replicas.add(2, LONG, behaviour="""echo '{"status": {"seen": true}}'""")
    leader, (other,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_finished(name="a")
    member = replicas.replica(leader)["member"]
    leader.stop()
    assert replicas.leader(AT_ONCE)[0] is other
    replicas.handler_of(other).wait_finished(name="a")
    assert not any(lease["metadata"]["name"] == member
                   for lease in replicas.server.api.resource("coordination.k8s.io/v1", "leases", "default").list()["items"]), \
        "its own Lease goes with it"
    replicas.assert_no_overlap()


@plain
def test_a_leader_that_is_killed_is_followed_when_its_lease_has_run_out(replicas, widgets):
    replicas.add(2, behaviour="sleep 0.2")
    leader, (other,) = replicas.leader()
    for number in range(5):
        widgets.create(f"w{number}")
    replicas.handler_of(leader).wait_for()
    began = time.monotonic()
    children = leader.children()
    leader.popen.kill()
    for process in children:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    leader.wait_exit()
    assert replicas.leader()[0] is other
    assert time.monotonic() - began > DURATION * 0.8, "nothing tells the others that it is gone"
    for number in range(5):
        replicas.handler_of(other).wait_finished(name=f"w{number}")
    replicas.assert_no_overlap()


@plain
def test_a_killed_supervisor_releases_nothing(replicas, widgets):
    replicas.add(2, behaviour="sleep 1")
    leader, (other,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_for(name="a")
    leader.popen.kill()
    leader.wait_exit()
    assert "\nholder " in replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    assert replicas.leader()[0] is other
    replicas.handler_of(other).wait_finished(name="a")
    replicas.assert_no_overlap()


@plain
def test_stopped_processes_are_dead_before_another_replica_leads(replicas, widgets):
    replicas.add(2, behaviour="""sleep 0.1; echo "{\\"status\\": {\\"run\\": \\"$$\\"}}" """)
    leader, (other,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_finished(name="a")
    handler = replicas.handler_of(leader)
    handler.behave(f"""{replicas.locks}{handler.held}; echo '{{"status": {{"run": "late"}}}}'""")
    widgets.merge_patch("a", {"spec": {"n": 2}})
    handler.wait_for(name="a", count=2)
    workers = leader.children("worker")
    stopped = leader.children() + find_processes(lambda process: process.ppid in {worker.pid for worker in workers})
    for process in stopped:
        process.kill(signal.SIGSTOP)
    leader.send_signal(signal.SIGSTOP)
    handler.let_go()
    assert replicas.leader(among=[other])[0] is other
    for process in workers:
        assert not process.alive(), "the kernel kills a worker though it is stopped"
    replicas.handler_of(other).wait_finished(name="a")
    for process in leader.children():
        process.kill(signal.SIGCONT)
    leader.send_signal(signal.SIGCONT)
    assert leader.wait_exit() in (70, 75)
    wait_until(lambda: replicas.replica(other)["state"] == "leading" and other.ctl.status()["watches"][0]["running"] == 0, "rest")
    assert widgets.get("a")["status"]["run"] != "late"
    replicas.assert_no_overlap()


@plain
def test_a_leader_without_its_server_ends(replicas, widgets):
    replicas.add(1)
    leader, _ = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_finished(name="a")
    replicas.server.suspend()
    leader.wait_exit(75, deadline=TAKEN / SLOWNESS)
    assert "lead was lost" in leader.logs(message_id=MESSAGE_ID["CHILD_FATAL"])[0]["message"]
    assert leader.logs(message_id=MESSAGE_ID["LEAD_LOST"])
    replicas.server.resume()
    leader.start_ready()
    assert replicas.leader()[0] is leader
    replicas.assert_no_overlap()


@plain
def test_a_stopped_lease_process_ends_the_lead(replicas, widgets):
    replicas.add(2)
    leader, (other,) = replicas.leader()
    leader.child("lease").kill(signal.SIGSTOP)
    assert leader.wait_exit(deadline=TAKEN / SLOWNESS) == 75
    assert replicas.leader()[0] is other
    replicas.assert_no_overlap()


@plain
def test_a_stopped_supervisor_does_not_keep_the_lead(replicas, widgets):
    replicas.add(2, behaviour=f"sleep {3 * DURATION}")
    leader, (other,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_for(name="a")
    leader.send_signal(signal.SIGSTOP)
    assert replicas.leader(among=[other])[0] is other
    replicas.handler_of(other).wait_for(name="a")
    leader.send_signal(signal.SIGCONT)
    assert leader.wait_exit() in (70, 75)
    replicas.assert_no_overlap()


@plain
def test_a_run_that_is_cut_off_leaves_the_lease_to_run_out(replicas, widgets):
    replicas.add(2, behaviour="trap '' TERM; sleep 600", grace="100ms")
    leader, (other,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_for(name="a")
    replicas.handler_of(other).behave(replicas.locks)
    leader.stop()
    assert "\nholder " in replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    assert replicas.leader()[0] is other
    replicas.handler_of(other).wait_finished(name="a")
    replicas.assert_no_overlap()


@plain
def test_a_ledger_counts_as_long_as_nobody_else_has_led(replicas, widgets):
    replicas.add(2, LONG)
    first, (second,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(first).wait_finished(name="a")
    second.stop()
    first.stop()
    first.start_ready()
    assert replicas.leader(AT_ONCE)[0] is first
    first.wait_synced()
    widgets.create("b")
    replicas.handler_of(first).wait_finished(name="b")
    assert len(replicas.handler_of(first).requests(name="a")) == 1, "its own ledger is right"
    second.start_ready()
    first.stop()
    assert replicas.leader(AT_ONCE)[0] is second
    for name in "ab":
        replicas.handler_of(second).wait_finished(name=name)
    first.start_ready()
    wait_until(lambda: replicas.replica(first)["leader"] == replicas.replica(second)["member"], "the new leader's name")
    second.stop()
    assert replicas.leader(AT_ONCE)[0] is first
    for name, count in (("a", 2), ("b", 2)):
        replicas.handler_of(first).wait_finished(name=name, count=count)
    replicas.assert_no_overlap()


@plain
def test_a_replica_that_leads_again_leaves_alone_what_has_gone_meanwhile(replicas, widgets):
    """Another one has told the deletion, and by now the name may be that of another object."""
    replicas.add(2, LONG)
    first, (second,) = replicas.leader()
    gone = widgets.create("a")["metadata"]["uid"]
    replicas.handler_of(first).wait_finished(name="a")
    assert first.ctl.run("step-down").returncode == 0
    wait_until(lambda: replicas.leads(second), "the other one to lead")
    replicas.handler_of(second).wait_finished(name="a")
    widgets.delete("a")
    replicas.handler_of(second).wait_finished(where=lambda request: request.body["action"] == "deleted")
    there = widgets.create("a")["metadata"]["uid"]
    replicas.handler_of(second).wait_finished(where=lambda request: request.object["metadata"]["uid"] == there)
    assert second.ctl.run("step-down").returncode == 0
    wait_until(lambda: replicas.leads(first), "the first one to lead again")
    handler = replicas.handler_of(first)
    handler.wait_finished(where=lambda request: request.object["metadata"]["uid"] == there)
    widgets.create("b")
    handler.wait_finished(name="b")
    wait_until(lambda: all(row["running"] + row["queued"] == 0 for row in first.ctl.status()["watches"]), "rest")
    assert [request.body["action"] for request in handler.requests() if request.object["metadata"]["uid"] == gone] == ["reconcile"]
    replicas.assert_no_overlap()


@plain
def test_what_has_left_the_selection_while_nobody_led_loses_our_finalizer(replicas, widgets):
    replicas.add(1, labelSelector="tier=gold", finalizer=True)
    first, _ = replicas.leader()
    widgets.create("a", labels={"tier": "gold"})
    replicas.handler_of(first).wait_finished(name="a")
    first.stop()
    assert widgets.get("a")["metadata"]["finalizers"]
    widgets.merge_patch("a", {"metadata": {"labels": {"tier": "silver"}}})
    replicas.add(1, labelSelector="tier=gold", finalizer=True)
    assert replicas.leader(AT_ONCE)[0] is not first
    wait_until(lambda: not widgets.get("a")["metadata"].get("finalizers"), "the finalizer to be taken off")


def test_what_an_unclean_lead_has_sent_is_refused_later(replicas, widgets):
    config_maps = replicas.server.api.resource("v1", "configmaps", "default")
    behaviour = """echo '{"status": {"phase": "Ready"}, "children": [{"apiVersion": "v1", "kind": "ConfigMap",
                   "metadata": {"name": "child"}, "data": {"a": "b"}}]}'"""
    replicas.add(2, behaviour=behaviour, children={"kinds": [{"apiVersion": "v1", "kind": "ConfigMap"}]})
    leader, (other,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(leader).wait_finished(name="a")
    wait_until(lambda: widgets.get("a")["status"]["phase"] == "Ready", "its status")
    wait_until(lambda: all(row["running"] + row["writing"] == 0 for row in leader.ctl.status()["watches"]), "rest")
    sent = {"widgets": widgets.get("a"), "configmaps": config_maps.get("child")}
    leader.popen.kill()
    leader.wait_exit()
    assert replicas.leader()[0] is other
    replicas.handler_of(other).wait_finished(name="a")
    epoch = str(replicas.replica(other)["epoch"])
    wait_until(lambda: config_maps.get("child")["metadata"]["annotations"]["widgets.example.com/epoch"] == epoch, "the child's epoch")
    wait_until(lambda: all(row["running"] + row["writing"] == 0 for row in other.ctl.status()["watches"]), "rest")
    assert widgets.get("a")["metadata"]["annotations"]["widgets.example.com/epoch"] == epoch
    for resource, name in ((widgets, "a"), (config_maps, "child")):
        old = sent["widgets" if name == "a" else "configmaps"]["metadata"]
        with pytest.raises(ApiError) as refused:
            resource.merge_patch(name, {"metadata": {"uid": old["uid"], "resourceVersion": old["resourceVersion"],
                                                     "annotations": {"late": "yes"}}})
        assert refused.value.code == 409
    assert len(replicas.handler_of(other).requests(name="a")) == 1, "the note is no reason to run"
    replicas.assert_no_overlap()


def test_step_down(replicas, widgets):
    replicas.add(2, LONG)
    leader, (other,) = replicas.leader()
    refused = other.ctl.run("step-down")
    assert refused.returncode == 70 and "does not lead" in refused.stderr
    done = leader.ctl.run("step-down")
    assert done.returncode == 0 and "restarts in place and follows" in done.stdout, done
    wait_until(lambda: replicas.leads(other), "the other one to lead")
    wait_until(lambda: leader.ctl.status()["phase"] == "following", "the former leader to follow")
    widgets.create("a")
    replicas.handler_of(other).wait_finished(name="a")
    wait_until(lambda: leader.ctl.status()["pid"] == leader.pid, "the same process")
    replicas.assert_no_overlap()


def test_a_lease_of_somebody_else_is_left_alone(replicas, operator):
    leases = replicas.server.api.resource("coordination.k8s.io/v1", "leases", "default")
    leases.create("widgets.example.com", spec={"holderIdentity": "another-program", "leaseDurationSeconds": 15})
    replicas.add(1)
    found = replicas.operators[0].wait_for_log("another-program", message_id=MESSAGE_ID["LEAD_TROUBLE"])
    assert "is no leader record" in found["message"]
    assert replicas.replica(replicas.operators[0])["state"] == "following"
    health = replicas.operators[0].ctl.run("health", "--ready")
    assert health.returncode == 70 and "another-program" in health.stdout + health.stderr, health
    assert leases.get("widgets.example.com")["spec"]["holderIdentity"] == "another-program"


def test_what_an_operator_without_replicas_has_no_use_for(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready()
    assert "replica" not in operator.ctl.status() and not operator.children("lease")
    widgets.create("a")
    request = handler.wait_finished(name="a")
    assert "epoch" not in request.body and "RECONCILED_EPOCH" not in request.environment
    refused = operator.ctl.run("step-down")
    assert refused.returncode == 70 and "no `replicas`" in refused.stderr


def test_the_roles_of_replicas(by_hand, operator, handler):
    operator.write_config(yaml.safe_dump({"operator": "widgets.example.com", "watches": [watch("widgets", handler)],
                                          "replicas": {"namespace": "leases-here", "lease": "leader"}}))
    manifests = json.loads(by_hand("rbac", "--json").stdout)
    role, = (item for item in manifests["items"] if item["metadata"]["name"] == "widgets.example.com:leases" and item["kind"] == "Role")
    assert role["metadata"]["namespace"] == "leases-here"
    assert role["rules"][0]["apiGroups"] == ["coordination.k8s.io"] and role["rules"][0]["resources"] == ["leases"]
    assert set(role["rules"][0]["verbs"]) == {"get", "list", "watch", "create", "patch", "delete"}


@pytest.mark.parametrize("replicas, why", [
    ({}, "needs a namespace for its Leases"),
    ({"namespace": "Widgets"}, "is not the name of a namespace"),
    ({"namespace": "widgets", "lease": "Leader"}, "is not a name of lower-case letters"),
    ({"namespace": "widgets", "duration": "4s"}, "replicas.duration"),
    ({"namespace": "widgets", "compatible": "perhaps"}, "replicas.compatible"),
])
def test_mistakes(by_hand, operator, handler, replicas, why):
    operator.write_config(yaml.safe_dump({"operator": "widgets.example.com", "watches": [watch("widgets", handler)],
                                          "replicas": replicas}))
    assert why in by_hand("check", expect=78).stdout
