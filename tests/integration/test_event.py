# SPDX-License-Identifier: Apache-2.0
"""The way of an event, from the server's write to the handler and back, on the devserver."""
import shutil

import pytest

from harness import wait_until, watch

STATUS = """printf '{"status":{"seen":"%s"}}' "$RECONCILED_NAME" """


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator


def test_create_change_delete(configured, handler, widgets):
    handler.behave(STATUS)
    configured.start_ready().wait_synced()
    uid = widgets.create("a", spec={"size": 1})["metadata"]["uid"]
    run = handler.wait_finished(name="a")
    assert (run.body["action"], run.body["attempt"], run.metadata["uid"]) == ("reconcile", 1, uid)
    wait_until(lambda: widgets.get("a").get("status") == {"seen": "a"}, "the status")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_finished(where=lambda request: request.object["spec"]["size"] == 2)
    widgets.delete("a")
    run = handler.wait_finished(action="deleted")
    assert run.object["spec"] == {"size": 2}, "the last known state"
    configured.stop()
    assert [request.body["action"] for request in handler.requests()] == ["reconcile", "reconcile", "deleted"]


def test_own_writes_cause_no_run_and_no_operation_is_sent_for_nothing(configured, handler, widgets, devserver):
    handler.answer({"status": {"ready": True}, "patch": {"metadata": {"labels": {"seen": "yes"}}}})
    configured.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"ready": True}, "the status")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_finished(where=lambda request: request.object["spec"].get("size") == 2)
    configured.stop()
    assert handler.count() == 2
    writes = [r for r in devserver.requests() if r["method"] == "PATCH" and "worker" in r.get("user_agent", "")]
    assert len(writes) == 2, "patch and status once; the second run changed nothing"


def test_status_changes_of_others_cause_no_run(configured, handler, widgets):
    configured.start_ready().wait_synced()
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    widgets.merge_patch("a", {"status": {"by": "somebody"}}, subresource="status")
    widgets.create("b", spec={})
    handler.wait_finished(name="b")
    configured.stop()
    assert len(handler.requests(name="a")) == 1


def test_an_object_that_goes_during_its_first_run_is_told(configured, handler, widgets, devserver):
    """The answer about its status is news of it before the watch has any."""
    handler.behave(f"{handler.held}\n" + STATUS)
    configured.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_for(name="a")
    devserver.fault({"verb": "patch"}, status=404, reason="NotFound")
    handler.let_go()
    wait_until(lambda: configured.ctl.status()["watches"][0]["running"] == 0, "the end of the run")
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    configured.stop()
    assert [request.body["action"] for request in handler.requests()] == ["reconcile", "deleted"]


def test_a_failure_is_retried_with_backoff(configured, handler, widgets):
    handler.behave("[ \"$RECONCILED_ATTEMPT\" -ge 4 ] || { echo no such luck >&2; exit 75; }\n" + STATUS)
    configured.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status"), "the status")
    assert [request.body["attempt"] for request in handler.requests()] == [1, 2, 3, 4]
    assert "no such luck" in handler.requests()[-1].body["lastError"]
    assert configured.wait_for_log("no such luck", level="warning")


def test_a_permanent_error_waits_for_a_change(configured, handler, widgets):
    handler.behave("exit 65")
    configured.start_ready()
    widgets.create("a", spec={})
    said = configured.wait_for_log("not tried again until the object or the handler changes")
    assert [said[name] for name in ("key", "namespace", "name", "exit_code")] == ["default/a", "default", "a", "65"]
    handler.behave("exit 0")
    widgets.merge_patch("a", {"spec": {"size": 1}})
    handler.wait_finished(where=lambda request: request.object["spec"].get("size") == 1)
    configured.stop()
    assert handler.count() == 2


@pytest.mark.parametrize("answer, place", [
    ('{"status": 3}', "status"), ('{"children": {}}', "children"), ('{"sttus": {}}', "sttus"), ('{"status": {}', "JSON"),
    ('{"patch": {"metadata": {"name": "x"}}}', "patch.metadata.name"), ('{"requeueAfter": "soon"}', "requeueAfter")])
def test_a_wrong_answer_is_a_permanent_error_that_says_where(configured, handler, widgets, answer, place):
    handler.behave(f"printf '%s' '{answer}'")
    configured.start_ready()
    widgets.create("a", spec={})
    record = configured.wait_for_log("not tried again", level="error")
    assert place in record["message"]


def test_requeue_after(configured, handler, widgets):
    handler.answer({"requeueAfter": "50ms"})
    configured.start_ready()
    widgets.create("a", spec={})
    handler.wait_for(name="a", count=3)
    assert {request.body["reason"] for request in handler.requests()[1:]} == {"requeueAfter"}


def test_a_handler_that_ignores_the_term_signal_ends_with_all_it_started(devserver, operator, make_handler, widgets):
    handler = make_handler("trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & while :; do sleep 1; done")
    operator.configure(devserver, [watch("widgets", handler, handler_options={"timeout": "200ms", "grace": "100ms"},
                                         retry={"first": "1h", "max": "1h"})])
    operator.start_ready()
    widgets.create("a", spec={})
    operator.wait_for_log("did not end within its timeout")
    wait_until(lambda: not [p for p in operator.processes() if p.name in ("sh", "sleep")], "the handler's processes to be gone")
    operator.stop()


@pytest.mark.slow
def test_a_name_deleted_and_created_again_is_two_objects(configured, handler, widgets):
    configured.start_ready().wait_synced()
    old = widgets.create("a", spec={})["metadata"]["uid"]
    handler.wait_finished(name="a")
    configured.stop()
    widgets.delete("a")
    new = widgets.create("a", spec={})["metadata"]["uid"]
    handler.forget()
    configured.start_ready()
    handler.wait_finished(action="reconcile")
    configured.stop()
    assert [(r.body["action"], r.metadata["uid"]) for r in handler.requests()] == [("deleted", old), ("reconcile", new)]


def test_a_narrowed_selector_deletes_nothing(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    for name, tier in (("gold", "gold"), ("iron", "iron")):
        widgets.create(name, labels={"tier": tier}, spec={})
        handler.wait_finished(name=name)
    operator.stop()
    handler.forget()
    operator.configure(devserver, [watch("widgets", handler, labelSelector="tier=gold")])
    operator.start_ready()
    operator.wait_for_log("no longer selected")
    widgets.merge_patch("gold", {"spec": {"size": 1}})
    handler.wait_finished(name="gold")
    # It leaves the selection while we watch: not a deletion either.
    widgets.merge_patch("gold", {"metadata": {"labels": {"tier": "lead"}}})
    operator.wait_for_log("no longer selected", key="default/gold")
    operator.stop()
    assert handler.requests(action="deleted") == []


@pytest.mark.parametrize("hidden", [False, True], ids=["by-its-uid", "by-its-certificate"])
def test_another_cluster_behind_the_same_url_deletes_nothing(make_devserver, operator, handler, hidden):
    """Also where the operator may not read namespace kube-system."""
    devserver = make_devserver(arguments=["--tls"] if hidden else [])
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")

    def start():
        if hidden:
            devserver.fault(match={"verb": "get", "resource": "namespaces", "name": "kube-system"}, status=403, times=0)
        operator.configure(devserver, [watch("widgets", handler)])
        return operator.start_ready()

    start().wait_synced()
    for name in "ab":
        widgets.create(name, spec={})
        handler.wait_finished(name=name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "the runs to be recorded")
    operator.stop()
    widgets.delete("b")
    start()
    handler.wait_finished(name="b", action="deleted")
    operator.stop()
    devserver.restart()
    start()
    operator.wait_for_log("is another cluster", level="error")
    operator.wait_synced()
    said = "another cluster than the one that the state folder belongs to"
    assert said in operator.ctl.run("status").stdout and operator.ctl.status()["watches"][0]["otherCluster"]
    assert operator.ctl.run("health").returncode == 0
    unready = operator.ctl.run("health", "--ready")
    assert unready.returncode == 70 and said in unready.stdout
    assert "it was handled in another cluster" in operator.ctl.run("explain", "widgets", "default/a").stdout
    operator.stop()
    shutil.rmtree(operator.state_directory)
    operator.state_directory.mkdir(mode=0o700)
    operator.user.give(operator.state_directory, 0o700)
    start().wait_synced()
    assert operator.ctl.run("health", "--ready").returncode == 0 and said not in operator.ctl.run("status").stdout
    operator.stop()
    assert len(handler.requests(action="deleted")) == 1
    asked = devserver.requests(lambda request: request["path"].endswith("/namespaces/kube-system"))
    assert asked and {request["status"] for request in asked} == {403 if hidden else 200}


def test_a_lost_store_loses_no_deletion(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    uid = widgets.create("a", spec={})["metadata"]["uid"]
    widgets.create("b", spec={})
    for name in ("a", "b"):
        handler.wait_finished(name=name)
    operator.stop()
    shutil.rmtree(operator.state_directory / "store")
    widgets.delete("a")
    handler.forget()
    operator.start_ready()
    run = handler.wait_finished(action="deleted")
    assert run.metadata["uid"] == uid and run.name == "a"
    operator.stop()
    assert handler.count() == 1, "b has not changed"


def test_history_is_lost_and_found_by_a_list(make_devserver, operator, handler):
    devserver = make_devserver(arguments=["--history", "5"])
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    operator.configure(devserver, [watch("widgets", handler)], heartbeat={"interval": "1s", "deadline": "5m"})
    operator.start_ready().wait_synced()
    widgets.create("goes", spec={})
    handler.wait_finished(name="goes")
    operator.stop()
    widgets.delete("goes")
    for i in range(10):
        widgets.create(f"w{i}", spec={})
    operator.start_ready()
    handler.wait_finished(action="deleted")
    for i in range(10):
        handler.wait_finished(name=f"w{i}")


@pytest.mark.slow
def test_ten_thousand_objects(make_devserver, operator, handler):
    devserver = make_devserver(arguments=["--history", "20000", "--watch-list", "off"])
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    for i in range(10000):
        widgets.create(f"w{i:05}", spec={"i": i})
    operator.configure(devserver, [watch("widgets", handler, concurrency=2)])
    operator.start_ready().wait_synced()
    wait_until(lambda: operator.ctl.status()["watches"][0]["objects"] == 10000, "10,000 objects", deadline=60)
    status = operator.ctl.status()["watches"][0]
    assert status["state"] == "in-sync"
    operator.stop()
    lists = [r for r in devserver.requests() if "watcher" in r.get("user_agent", "") and "limit=" in r["query"]]
    assert len(lists) == 20, "pages of 500"


@pytest.mark.slow
def test_one_attempt_per_backoff_however_long_the_handler_takes(configured, make_handler, devserver, operator, widgets):
    handler = make_handler("sleep 0.6; exit 75")
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "400ms", "max": "400ms"})], workers=2)
    operator.start_ready()
    widgets.create("a", spec={})
    handler.wait_for(name="a", count=4)
    operator.stop()
    starts = [request.started for request in handler.requests(name="a")]
    assert all(later - earlier >= 1.0 for earlier, later in zip(starts, starts[1:])), "0.6 s of work and 0.4 s of backoff"
