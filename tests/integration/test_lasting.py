# SPDX-License-Identifier: Apache-2.0
"""What outlives a leader, since the leader record has it: orders, and what the operator has crashed over."""
import json
import signal

import pytest

from harness import wait_until
from harness.operator import MESSAGE_ID
from harness.replicas import AT_ONCE, DURATION, LONG, TAKEN
from harness.wait import SLOWNESS

pytestmark = [pytest.mark.quiet, pytest.mark.slow,
              pytest.mark.plain_only(reason="a lead lasts three times as long there, and test_replicas.py takes the same ways")]
RECORD = {"resource": "leases", "name": "widgets.example.com", "verb": "patch"}
NEXT = TAKEN / SLOWNESS


def lines(replicas):
    """Of the leader record, behind those of the election."""
    text = replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    return [line for line in text.splitlines() if line.split()[0] in ("paused", "uninstalling", "running", "crashed", "doubtful")]


def row(operator):
    return operator.ctl.status()["watches"][0]


def test_a_pause_outlives_its_leader(replicas, widgets):
    replicas.add(2, LONG)
    first, (second,) = replicas.leader()
    first.wait_synced()
    assert first.ctl.run("pause", "widgets", "--reason", "we look at 100 % of it").returncode == 0
    assert [line.split()[:2] for line in lines(replicas)] == [["paused", "widgets"]]
    widgets.create("a")
    first.stop()
    assert replicas.leader(AT_ONCE)[0] is second
    second.wait_synced()
    assert row(second)["pauseReason"] == "we look at 100 % of it"
    assert second.logs(message_id=MESSAGE_ID["PAUSED"])
    assert replicas.handler_of(second).count() == 0
    assert second.ctl.run("resume", "widgets").returncode == 0
    assert not lines(replicas)
    replicas.handler_of(second).wait_finished(name="a")
    first.start_ready()
    member = wait_until(lambda: replicas.replica(first)["member"], "its name, after its restart over a ledger that is void")
    assert second.ctl.run("step-down", member).returncode == 0
    wait_until(lambda: replicas.leads(first), "the first one to lead again")
    replicas.handler_of(first).wait_finished(name="a")
    assert replicas.handler_of(first).count() == 1, "its ledger, with the pause, is void"


def test_an_order_is_confirmed_once_the_record_has_it(replicas, devserver):
    replicas.add(1)
    leader, _ = replicas.leader()
    leader.wait_synced()
    devserver.fault(match=RECORD, status=503, times=0)
    told = leader.ctl.run("pause", "widgets")
    assert told.returncode == 70 and "the leader record could not be written so far" in told.stderr, told
    assert row(leader)["pausedSince"] and not lines(replicas), "it is carried out all the same"
    devserver.clear_faults()
    wait_until(lambda: lines(replicas), "the record to have it")
    assert replicas.leads(leader)


def test_a_cancelled_uninstallation_is_confirmed_once_the_record_has_it(replicas, devserver):
    replicas.add(1)
    leader, _ = replicas.leader()
    leader.wait_synced()
    assert leader.ctl.run("uninstall", "--yes").returncode == 0
    assert [line.split()[0] for line in lines(replicas)] == ["uninstalling"]
    epoch = replicas.replica(leader)["epoch"]
    devserver.fault(match=RECORD, status=503, times=2)
    told = leader.ctl.run("uninstall", "--cancel", "--yes")
    assert told.returncode == 0 and not lines(replicas), told
    # It restarts in place, and leads again then. An order before that would go to the life that ends.
    wait_until(lambda: replicas.leads(leader) and replicas.replica(leader)["epoch"] > epoch, "its next lead")
    wait_until(lambda: leader.ctl.run("uninstall", "--yes").returncode == 0, "the next order")
    devserver.fault(match=RECORD, status=503, times=0)
    told = leader.ctl.run("uninstall", "--cancel", "--yes")
    assert told.returncode == 70 and "the leader record could not be written so far" in told.stderr, told
    devserver.clear_faults()
    replicas.leader()
    wait_until(lambda: not lines(replicas), "the record without the order")


def test_what_stops_the_supervisor_is_found(replicas, widgets):
    """The kernel kills the workers then, and no worker is to blame."""
    replicas.add(1, behaviour=f"sleep {4 * DURATION}")
    widgets.create("a")
    leader, _ = replicas.leader()
    for count, told in enumerate(("it runs alone the next time", "a crash is counted"), 1):
        replicas.handler_of(leader).wait_for(name="a", count=count)
        workers = leader.children("worker")
        leader.send_signal(signal.SIGSTOP)
        wait_until(lambda: not any(worker.alive() for worker in workers), "the workers to be killed", NEXT)
        leader.send_signal(signal.SIGCONT)
        assert leader.wait_exit() in (70, 75)
        assert any(told in entry["message"] for entry in leader.logs()), told
        leader.start_ready()
        replicas.leader()
    wait_until(lambda: any(line.startswith("crashed widgets default%2Fa ") and line.split()[4] == "1" for line in lines(replicas)), "its crash")


def test_lines_of_others_stay(replicas):
    replicas.add(2, LONG)
    first, (second,) = replicas.leader()
    leases = replicas.server.api.resource("coordination.k8s.io/v1", "leases", "default")
    strange = "news of a later release\npaused of-another-watch 1 0 -\n"
    second.stop()
    first.stop()
    text = replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    leases.merge_patch("widgets.example.com", {"metadata": {"annotations": {"widgets.example.com/leader": text + strange + "paused widgets damaged\n"}}})
    second.start_ready()
    leader, _ = replicas.leader(among=[second])
    leader.wait_synced()
    assert leader.ctl.run("pause", "widgets").returncode == 0
    text = replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    assert text.endswith(strange) and "\npaused widgets " in text


POISON = """case $RECONCILED_NAME in w0) kill -KILL $PPID; sleep 60;; esac"""


def test_crashes_are_counted_over_all_replicas(replicas, widgets):
    """Each leads once or twice, and none of them alone has crashed often enough."""
    replicas.add(3, LONG, behaviour=POISON, retry={"first": "1ms", "max": "10ms"})
    leader, _ = replicas.leader()
    for number in range(3):
        widgets.create(f"w{number}")
    counts = []
    while counts[-1:] != [3]:  # the first time it may have run beside others, and then nobody is to blame
        leader.wait_exit(70)
        counts += [int(line.split()[4]) for line in lines(replicas) if line.startswith("crashed widgets default%2Fw0 ")]
        dead = leader
        leader, _ = replicas.leader(AT_ONCE, among=[operator for operator in replicas.operators if operator is not dead])
        dead.start_ready()
    assert counts in ([1, 2, 3], [0, 1, 2, 3]), counts
    leader.wait_synced()
    for number in range(1, 3):
        replicas.handler_of(leader).wait_finished(name=f"w{number}")
    assert [entry["key"] for entry in leader.ctl.status()["quarantine"]] == ["default/w0"]
    assert sum(len(handler.requests(name="w0")) for handler in replicas.handlers) == len(counts)
    replicas.handler_of(leader).behave("")
    before = len(replicas.handler_of(leader).requests(name="w0"))
    told = leader.ctl.run("release", "widgets", "default/w0")
    assert told.returncode == 0 and not any(line.startswith("crashed") for line in lines(replicas)), told
    replicas.handler_of(leader).wait_finished(name="w0", count=before + 1)
    replicas.assert_no_overlap()


def kill_during(replicas, leader, name, count):
    """The whole operator, while a handler runs this object."""
    replicas.handler_of(leader).wait_for(name=name, count=count)
    leader.popen.send_signal(signal.SIGKILL)
    leader.wait_exit(-signal.SIGKILL)


def test_what_kills_everything_is_found_by_naming_it(replicas, widgets):
    """Nobody is left who could say what ran: the next leader names what it runs, the one after it runs that alone, and counts."""
    replicas.add(2, behaviour="case $RECONCILED_NAME in w0) sleep 60;; esac", retry={"first": "1ms", "max": "10ms"},
                 quarantine={"after": 2})
    leader, (other,) = replicas.leader()
    for number in range(5):
        widgets.create(f"w{number}")
    runs = {leader: 0, other: 0}
    for lead in ("not named", "named with others", "alone", "alone again"):
        runs[leader] += 1
        kill_during(replicas, leader, "w0", runs[leader])
        named = [line.split()[2:] for line in lines(replicas) if line.startswith("running")]
        of_it = [line for line in named if line[0] == "default%2Fw0"]
        assert len(of_it) == (lead != "not named"), (lead, named)
        if lead.startswith("alone"):
            assert named == of_it and of_it[0][2] == "1", "nothing else runs"
        leader, other = other, leader
        assert replicas.leader(among=[leader])[0] is leader
        other.start_ready()
    leader.wait_synced()
    for number in range(1, 5):  # it led before, and some of its runs were killed then
        wait_until(lambda: any(run.exit_code == 0 for run in replicas.handler_of(leader).requests(name=f"w{number}")), "its run")
    assert [entry["key"] for entry in leader.ctl.status()["quarantine"]] == ["default/w0"]
    wait_until(lambda: [line.split()[:3] for line in lines(replicas)] == [["crashed", "widgets", "default%2Fw0"]], "no run to be named")
    replicas.assert_no_overlap()


def test_many_first_runs_are_named_in_few_writes(replicas, widgets):
    names = [f"w{number % 5}" if number < 5 else f"many-{number}" for number in range(300)]
    replicas.add(2)
    for handler in replicas.handlers:
        handler.behave("")
    for name in names:
        widgets.create(name)
    leader, (other,) = replicas.leader()
    replicas.handler_of(leader).wait_finished(count=300)
    leader.popen.kill()
    leader.wait_exit(-signal.SIGKILL)
    assert replicas.leader()[0] is other
    replicas.handler_of(other).wait_finished(count=300, deadline=60)
    wait_until(lambda: not lines(replicas), "no run to be named")
    writes = replicas.server.requests(lambda request: request.get("resource") == "leases" and request.get("verb") == "patch" and
                                      request.get("name") == "widgets.example.com")
    assert 2 < len(writes) < 150, "each has several runs"


def test_an_uninstallation_outlives_its_leader(replicas, widgets):
    replicas.add(2, LONG, finalizer=True)
    first, (second,) = replicas.leader()
    widgets.create("a")
    replicas.handler_of(first).wait_finished(name="a")
    assert widgets.get("a")["metadata"]["finalizers"]
    assert first.ctl.run("uninstall", "--yes").returncode == 0
    assert not widgets.get("a")["metadata"].get("finalizers")
    first.stop()
    assert replicas.leader(AT_ONCE)[0] is second
    second.wait_synced()
    widgets.create("b")
    assert second.logs(message_id=MESSAGE_ID["UNINSTALLING"])
    assert second.ctl.run("uninstall", "--yes").returncode == 0
    assert not any(widget["metadata"].get("finalizers") for widget in widgets.list()["items"])
    assert second.ctl.run("uninstall", "--cancel", "--yes").returncode == 0
    replicas.leader(AT_ONCE)
    wait_until(lambda: all(widget["metadata"].get("finalizers") for widget in widgets.list()["items"]), "finalizers")
    assert not lines(replicas)


def test_a_failure_releases_the_lead(replicas, widgets):
    """All that ran is reaped, so another replica leads at once; what was on its way may arrive all the same."""
    replicas.add(2, LONG, behaviour=POISON)
    leader, (other,) = replicas.leader()
    widgets.create("w1")
    replicas.handler_of(leader).wait_finished(name="w1")
    other.stop()
    widgets.create("w0")
    leader.wait_exit(70)
    assert "\nlate\n" in replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    replicas.handler_of(other).behave("")
    other.start_ready()
    assert replicas.leader(AT_ONCE, among=[other])[0] is other
    replicas.handler_of(other).wait_finished(name="w1")
    epoch = str(replicas.replica(other)["epoch"])
    wait_until(lambda: widgets.get("w1")["metadata"]["annotations"]["widgets.example.com/epoch"] == epoch, "its mark")
    assert "released, but writes of it may be" in other.logs(message_id=MESSAGE_ID["LEAD_GAINED"])[0]["message"]


def test_a_quarantine_outlives_the_lead_of_its_own_replica(replicas, widgets):
    """Each lead that was not released writes its epoch to the object, before its handler runs: that is no change."""
    replicas.add(1, behaviour="case $RECONCILED_NAME in w0) sleep 60;; esac", retry={"first": "1ms", "max": "10ms"},
                 quarantine={"after": 2})
    leader, _ = replicas.leader()
    widgets.create("w0")
    for runs in (1, 2, 3):
        kill_during(replicas, leader, "w0", runs)
        leader.start_ready()
        replicas.leader()
    leader.wait_synced()
    widgets.create("w1")
    replicas.handler_of(leader).wait_finished(name="w1")
    assert [entry["key"] for entry in leader.ctl.status()["quarantine"]] == ["default/w0"]
    assert len(replicas.handler_of(leader).requests(name="w0")) == 3


def test_a_long_reason_is_shortened(replicas):
    replicas.add(1)
    leader, _ = replicas.leader()
    leader.wait_synced()
    reason = "ä" * 500
    assert leader.ctl.run("pause", "widgets", "--reason", reason).returncode == 0
    line, = lines(replicas)
    assert 500 < len(line) < 1000 and line.split()[4].startswith("%C3%A4")


def test_a_follower_that_was_restarted_obeys(replicas, widgets):
    """Its ledger is right after the lead of another one, and knows nothing of it."""
    replicas.add(2, LONG)
    leader, (other,) = replicas.leader()
    leader.wait_synced()
    wait_until(lambda: replicas.replica(other)["leader"], "the leader's name")
    other.stop()
    other.start_ready()
    wait_until(lambda: replicas.replica(other)["leader"], "the leader's name")
    assert leader.ctl.run("pause", "widgets").returncode == 0
    leader.stop()
    assert replicas.leader(AT_ONCE)[0] is other
    other.wait_synced()
    widgets.create("a")
    assert row(other)["pausedSince"] and replicas.handler_of(other).count() == 0


def test_lines_that_vanish_are_written_again(replicas):
    replicas.add(1)
    leader, _ = replicas.leader()
    leader.wait_synced()
    assert leader.ctl.run("pause", "widgets").returncode == 0
    text = replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    edited = "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("paused"))
    leases = replicas.server.api.resource("coordination.k8s.io/v1", "leases", "default")
    leases.merge_patch("widgets.example.com", {"metadata": {"annotations": {"widgets.example.com/leader": edited}}})
    wait_until(lambda: lines(replicas), "the pause")
    assert replicas.leads(leader)


def test_a_record_that_cannot_be_written_holds_up_no_run_for_long(replicas, widgets, devserver):
    replicas.add(2)
    leader, (other,) = replicas.leader()
    leader.popen.kill()
    leader.wait_exit(-signal.SIGKILL)
    assert replicas.leader(among=[other])[0] is other
    other.wait_synced()
    devserver.fault(match=RECORD, status=403, times=0)
    widgets.create("a")
    replicas.handler_of(other).wait_finished(name="a", deadline=30)
    assert not lines(replicas) and replicas.leads(other)
    other.wait_for_log("", message_id=MESSAGE_ID["LEAD_TROUBLE"])
    widgets.create("b")
    replicas.handler_of(other).wait_finished(name="b", deadline=30)
    assert len(other.logs(message_id=MESSAGE_ID["LEAD_TROUBLE"])) == 1, "looks at the record succeed meanwhile"


def quarantined(leader):
    """[] also while it cannot be asked."""
    told = leader.ctl.run("status", "--json")
    return told.returncode == 0 and json.loads(told.stdout)["quarantine"]


def test_what_kills_everything_in_a_later_run_is_found(replicas, widgets):
    replicas.add(2, behaviour="""case $RECONCILED_NAME in w0) [ "$RECONCILED_ATTEMPT" = 1 ] && exit 1; kill -KILL -1;; esac""",
                 retry={"first": "50ms", "max": "100ms"}, quarantine={"after": 2})
    leader, (other,) = replicas.leader()
    for number in range(4):
        widgets.create(f"w{number}")
    deaths = 0
    while wait_until(lambda: leader.popen.poll() is not None or quarantined(leader), "its end") is True:
        leader.wait_exit(-signal.SIGKILL)
        deaths += 1
        leader, other = other, leader
        wait_until(lambda: leader.popen.poll() is not None or replicas.leads(leader), "the other one to lead", NEXT)
        other.start_ready()
    assert deaths <= 5
    assert [entry["key"] for entry in leader.ctl.status()["quarantine"]] == ["default/w0"]
    for number in range(1, 4):
        wait_until(lambda: any(run.exit_code == 0 for run in replicas.handler_of(leader).requests(name=f"w{number}")), "its run")


def test_a_write_without_an_answer_may_be_late(replicas, widgets, devserver):
    replicas.add(1, behaviour="""echo '{"status": {"seen": true}}'""", retry={"first": "10ms", "max": "100ms"})
    leader, _ = replicas.leader()
    devserver.fault(match={"verb": "patch", "resource": "widgets/status"}, reset=True, times=3)  # libcurl tries once more by itself
    widgets.create("a")
    wait_until(lambda: widgets.get("a").get("status"), "its status")
    leader.stop()
    assert "\nreleased\nlate\n" in replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]


def test_a_suspect_that_runs_twice_at_once_waits_for_nobody(replicas, widgets):
    """It is named by the same line as before."""
    replicas.add(1, LONG, behaviour="""case $RECONCILED_NAME in w0) [ "$RECONCILED_ATTEMPT" -gt 5 ] || exit 1;; esac""",
                 retry={"first": "1ms", "max": "1ms"})
    leader, _ = replicas.leader()
    leader.wait_synced()
    uid = widgets.create("w0")["metadata"]["uid"]
    replicas.handler_of(leader).wait_for(name="w0", count=6)
    leader.stop()
    text = replicas.lease()["metadata"]["annotations"]["widgets.example.com/leader"]
    leases = replicas.server.api.resource("coordination.k8s.io/v1", "leases", "default")
    leases.merge_patch("widgets.example.com", {"metadata": {"annotations": {
        "widgets.example.com/leader": f"{text}crashed widgets default%2Fw0 {uid} 0 0\n"}}})
    replicas.add(1, LONG, behaviour="""case $RECONCILED_NAME in w0) [ "$RECONCILED_ATTEMPT" -gt 5 ] || exit 1;; esac""",
                 retry={"first": "1ms", "max": "1ms"})
    leader, _ = replicas.leader(among=replicas.operators[1:])
    wait_until(lambda: any(run.exit_code == 0 for run in replicas.handler_of(leader).requests(name="w0")), "its success", 4)
