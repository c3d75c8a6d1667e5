# SPDX-License-Identifier: Apache-2.0
"""The way of an event through the real operator on a real etcd and kube-apiserver."""
import signal

import pytest

from harness import wait_until, watch

# Writes status from the request, as a user's first handler would.
WRITE_STATUS = """printf '{"status":{"seen":"%s","action":"%s"}}' "$RECONCILED_NAME" "$RECONCILED_ACTION" """


def test_create_update_delete(configured, handler, widgets):
    handler.behave(WRITE_STATUS)
    configured.start_ready().wait_synced()

    created = widgets.create("first", spec={"size": 1})
    run = handler.wait_finished(name="first")
    assert run.body["action"] == "reconcile"
    assert run.object["spec"] == {"size": 1}
    assert run.metadata["uid"] == created["metadata"]["uid"]
    wait_until(lambda: widgets.get("first").get("status") == {"seen": "first", "action": "reconcile"}, "the status")

    widgets.merge_patch("first", {"spec": {"size": 2}})
    run = handler.wait_finished(name="first", where=lambda request: request.object["spec"]["size"] == 2)
    assert run.object["status"]["seen"] == "first"

    widgets.delete("first")
    run = handler.wait_finished(action="deleted")
    assert run.metadata["uid"] == created["metadata"]["uid"]
    assert run.object["spec"] == {"size": 2}, "the last known state"

    configured.stop()
    configured.assert_no_processes()
    assert [request.body["action"] for request in handler.requests()] == ["reconcile", "reconcile", "deleted"], \
        "the operator's own status writes cause no run"


def test_what_happened_while_it_was_down(configured, handler, widgets):
    for name in ("stays", "changes", "goes", "replaced"):
        widgets.create(name, spec={"size": 1})
    configured.start_ready()
    for name in ("stays", "changes", "goes", "replaced"):
        handler.wait_finished(name=name)
    configured.stop()
    handler.forget()

    widgets.merge_patch("changes", {"spec": {"size": 2}})
    gone = widgets.get("goes")["metadata"]["uid"]
    widgets.delete("goes")
    old = widgets.get("replaced")["metadata"]["uid"]
    widgets.delete("replaced")
    new = widgets.create("replaced", spec={"size": 3})["metadata"]["uid"]
    widgets.create("comes", spec={"size": 1})

    configured.start_ready()
    handler.wait_finished(name="changes", action="reconcile")
    handler.wait_finished(name="comes", action="reconcile")
    for uid in (gone, old):
        run = handler.wait_finished(action="deleted", where=lambda request: request.metadata["uid"] == uid)
        assert run.object["spec"] == {"size": 1}, "the last known state"
    handler.wait_finished(name="replaced", action="reconcile")
    order = [(request.body["action"], request.metadata["uid"]) for request in handler.requests(name="replaced")]
    assert order == [("deleted", old), ("reconcile", new)]
    configured.stop()
    assert handler.requests(name="stays") == [], "what did not change is not run again"


def test_a_failed_run_is_tried_again(configured, handler, widgets):
    handler.behave("[ \"$RECONCILED_ATTEMPT\" -ge 3 ] || exit 75\n" + WRITE_STATUS)
    configured.start_ready()
    widgets.create("stubborn", spec={})
    wait_until(lambda: widgets.get("stubborn").get("status", {}).get("seen") == "stubborn", "the status")
    attempts = [request.body["attempt"] for request in handler.requests(name="stubborn")]
    assert attempts == [1, 2, 3]


def test_killed_it_catches_up(configured, handler, widgets):
    configured.start_ready().wait_synced()
    widgets.create("before", spec={})
    handler.wait_finished(name="before")
    configured.child("watcher").kill()
    configured.wait_exit(expect=70)
    configured.assert_no_processes()
    widgets.create("meanwhile", spec={})
    uid = widgets.get("before")["metadata"]["uid"]
    widgets.delete("before")

    configured.start_ready()
    handler.wait_finished(name="meanwhile")
    handler.wait_finished(action="deleted", where=lambda request: request.metadata["uid"] == uid)


def restart(cluster, widgets):
    """Nobody else uses this server meanwhile: the tests that do are a group."""
    # Asked to end, it would wait a minute for the watches that are open.
    cluster.stop_server(signal.SIGKILL)
    cluster.start_server()
    widgets.api = cluster.api
    wait_until(lambda: cluster.api.raw("GET", widgets.path).code == 200, "the Widget resource to be served again")


@pytest.mark.parametrize("cluster", ["kube-apiserver"], indirect=True)
def test_the_api_server_goes_and_comes_back(cluster, configured, handler, widgets):
    configured.start_ready().wait_synced()
    widgets.create("before", spec={})
    handler.wait_finished(name="before")

    restart(cluster, widgets)
    widgets.create("after", spec={})
    handler.wait_finished(name="after", deadline=60)
    configured.stop()
    assert len(handler.requests(name="before")) == 1


@pytest.mark.parametrize("cluster", ["kube-apiserver"], indirect=True)
def test_what_it_missed_is_found_by_a_list(cluster, operator, handler, widgets, namespace):
    """The watcher sleeps while the server is started anew and things change: the version that it asks for afterwards is
    too old (410), so it must list again and find the deletion by itself."""
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace])], heartbeat={"interval": "1s", "deadline": "5m"})
    operator.start_ready().wait_synced()
    for name in ("goes", "stays"):
        widgets.create(name, spec={"size": 1})
        handler.wait_finished(name=name)
    uid = widgets.get("goes")["metadata"]["uid"]

    watcher = operator.child("watcher")
    watcher.kill(signal.SIGSTOP)
    widgets.delete("goes")
    widgets.create("missed", spec={})
    restart(cluster, widgets)
    watcher.kill(signal.SIGCONT)

    handler.wait_finished(name="missed", deadline=60)
    handler.wait_finished(action="deleted", where=lambda request: request.metadata["uid"] == uid, deadline=60)
    operator.stop()
    assert len(handler.requests(name="stays")) == 1
