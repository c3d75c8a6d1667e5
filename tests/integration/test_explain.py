# SPDX-License-Identifier: Apache-2.0
"""reconciledctl explain: why an object did or did not run."""
import json

import pytest

from harness import ledger, wait_until, watch


@pytest.fixture
def start(devserver, operator, handler):
    def start(workers=1, **more):
        operator.configure(devserver, [watch("widgets", handler, **more)], workers=workers)
        return operator.start_ready().wait_synced()

    return start


def explain(operator, key="default/a"):
    done = operator.ctl.run("explain", "--json", "widgets", key)
    assert done.returncode in (0, 70), done.stderr
    said = json.loads(done.stdout)
    assert (done.returncode == 70) == ("the watch does not know it: " in said["conclusion"]), said
    return said


def wait_for(operator, text, key="default/a"):
    wait_until(lambda: text in explain(operator, key)["conclusion"], lambda: f"{text!r}: {explain(operator, key)}")
    return explain(operator, key)


def spoken(operator, key="default/a"):
    done = operator.ctl.run("explain", "widgets", key)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_at_rest_with_its_last_run_also_after_a_restart(start, operator, handler, widgets):
    start()
    created = widgets.create("a")
    said = wait_for(operator, "it is at rest")
    row = said["objects"][0]
    assert said["queue"]["state"] == "at-rest" and said["stored"]["uid"] == row["uid"] == created["metadata"]["uid"]
    assert row["handledFingerprint"] == said["stored"]["fingerprint"]
    run = row["lastRun"]
    assert (run["action"], run["reason"], run["result"]) == ("reconcile", "added", "success")
    assert run["resourceVersion"] == created["metadata"]["resourceVersion"] and run["took"] > 0
    assert row["nextReason"] == "resync" and "runs next in 1" in said["conclusion"]
    operator.stop()
    operator.start_ready().wait_synced()
    assert explain(operator)["objects"][0]["lastRun"] == run
    text = spoken(operator)
    assert "it is at rest" in text and "reconcile (added)" in text and "success" in text
    assert "spec" not in json.dumps(explain(operator)["stored"]), "what the object holds is nobody's business here"


def test_a_failure_with_its_first_and_its_last_cause(start, operator, handler, widgets):
    handler.behave("echo the disk is full >&2; exit 75")
    start(retry={"first": "50ms", "max": "1h"})
    widgets.create("a")
    handler.wait_finished(name="a")
    handler.behave("echo the rollback still runs >&2; exit 75")
    wait_until(lambda: "the rollback" in json.dumps(explain(operator)), "the second failure")
    said = wait_for(operator, "it has failed")
    row = said["objects"][0]
    assert "the disk is full" in row["firstError"] and "the rollback still runs" in row["lastError"]
    assert row["attempts"] >= 2 and row["nextReason"] == "retry" and row["lastRun"]["result"] == "retry"
    text = spoken(operator)
    for part in ("the disk is full", "the rollback still runs", "next try", "since the last success"):
        assert part in text


def test_what_has_failed_for_good(start, operator, handler, widgets):
    handler.behave("exit 65")
    start()
    widgets.create("a")
    said = wait_for(operator, "it has failed for good")
    assert said["objects"][0]["permanent"] and "next" in said["objects"][0]
    handler.behave("exit 0")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    wait_for(operator, "it is at rest")


def test_what_the_watch_does_not_know(start, operator, api):
    api.resource("v1", "namespaces").create("other")
    start(namespaces=["default"])
    api.resource("example.com/v1", "widgets", "other").create("a")
    for key in ("default/none", "other/a", "no key at all", "x" * 2000):
        said = explain(operator, key)
        assert "does not know it" in said["conclusion"]
        assert said["objects"] == [] and said["stored"] is None
    refused = operator.ctl.run("explain", "gadgets", "default/a")
    assert refused.returncode == 70 and "gadgets; the watches are widgets" in refused.stderr
    assert operator.ctl.run("explain", "widgets").returncode == 64


def test_what_runs_and_what_waits_for_a_worker(start, operator, handler, widgets):
    handler.behave(handler.held)
    start()
    widgets.create("a")
    handler.wait_for(name="a")
    widgets.create("b")
    said = wait_for(operator, "it waits for a worker (added)", "default/b")
    assert said["queue"]["state"] == "queued" and said["objects"] == []
    said = explain(operator)
    assert "it runs now (added)" in said["conclusion"] and said["worker"]["key"] == "default/a"
    widgets.merge_patch("a", {"spec": {"size": 2}})
    wait_for(operator, "it runs once more")
    handler.let_go()
    wait_for(operator, "it is at rest", "default/b")
    wait_for(operator, "it is at rest")


def test_quarantine(start, operator, handler, widgets):
    handler.behave("kill -KILL $PPID; sleep 60")
    start(quarantine={"after": 1, "duration": "1h"}, retry={"first": "1ms", "max": "1ms"})
    widgets.create("a")
    operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    said = wait_for(operator, "it is in quarantine")
    assert said["objects"][0]["crashes"] == 1 and "signal KILL" in said["objects"][0]["firstError"]
    assert "crashes     1 of the operator" in spoken(operator)


def test_throttled(start, operator, handler, widgets, devserver):
    handler.behave("""printf '{"status":{"seen":"a"}}'""")
    devserver.fault(match={"verb": "patch", "name": "a"}, times=0, status=422, reason="Invalid", message="status.seen: Invalid")
    start(onUnrecoverable="throttle", retry={"throttle": "1h"})
    widgets.create("a")
    said = wait_for(operator, "the API server refuses what is written to it")
    assert said["objects"][0]["throttled"] == 1 and said["objects"][0]["lastRun"]["result"] == "unrecoverable"


def test_a_watch_that_is_not_in_sync(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    devserver.suspend()
    operator.start_ready()
    assert "has not been in sync since the start" in explain(operator)["conclusion"]
    devserver.resume()
    wait_for(operator, "does not know it")


def test_resync_counts_from_the_last_success(start, operator, handler, widgets):
    """Its time in the ledger is not written anew with each success."""
    start(resync="1h")
    for name in ("fresh", "old"):
        widgets.create(name)
        handler.wait_finished(name=name)
        wait_for(operator, "it is at rest", f"default/{name}")
    operator.stop()
    with ledger.edit(operator) as database:
        database.execute("UPDATE ledger SET next_realtime = 1")
        database.execute("UPDATE ledger SET handled_realtime = handled_realtime - 3601000000 WHERE key = 'default/old'")
    operator.start_ready().wait_synced()
    wait_until(lambda: explain(operator, "default/old")["objects"][0]["lastRun"]["reason"] == "resync", "the resync")
    fresh = explain(operator, "default/fresh")["objects"][0]
    assert fresh["lastRun"]["reason"] == "added"
    wait_until(lambda: explain(operator, "default/fresh")["objects"][0]["next"] == fresh["handledAt"] + 3600000000,
               "the other one to wait for its own time")
    assert len(handler.requests(name="fresh")) == 1


def test_after_a_conflict_it_says_when_it_runs_again(start, handler, widgets):
    """The patch was for an older object: nothing has failed, and the watcher has nothing left to announce."""
    gate = handler.folder / "gate"
    handler.behave(f"while [ ! -e {gate} ]; do sleep 0.02; done; echo '{{\"patch\": {{\"metadata\": {{\"labels\": {{\"a\": \"b\"}}}}}}}}'")
    operator = start(retry={"first": "1h", "max": "1h"})
    widgets.create("a")
    handler.wait_for(name="a")
    widgets.merge_patch("a", {"status": {"heartbeat": 1}}, subresource="status")
    gate.touch()
    said = wait_for(operator, "it runs again in")
    assert "others changed it while its handler ran" in said["conclusion"] and "(conflict)" in said["conclusion"]
    assert "announce" not in said["conclusion"]
    assert (said["queue"]["state"], said["queue"]["reason"]) == ("delayed", "conflict") and said["queue"]["dueIn"] > 0
    [line] = [line for line in spoken(operator).splitlines() if line.startswith("next try")]
    assert line.endswith("(conflict)")


def test_it_is_not_at_rest_after_a_change_of_a_child(start, handler, widgets, api):
    """Such a run comes a second after the last one: until then the object itself has not changed, and a run is due all the same."""
    config_maps = api.resource("v1", "configmaps", "default")
    handler.answer({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}]})
    operator = start(owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    widgets.create("a")
    wait_for(operator, "it is at rest")
    number = 0

    def waiting():
        nonlocal number
        number += 1
        config_maps.merge_patch("child", {"metadata": {"labels": {"number": str(number)}}})
        said = explain(operator)
        return said if said["queue"]["state"] == "delayed" and said["queue"]["reason"] == "child changed" else None

    said = wait_until(waiting, "a run to wait for its second")
    assert "it runs again in" in said["conclusion"] and "(child changed)" in said["conclusion"], said["conclusion"]
