# SPDX-License-Identifier: Apache-2.0
"""A real server that is compacted, killed, restored, that refuses and then grants: nothing is lost, nothing made up."""
import itertools
import os
import signal
import threading
import time
import types

import pytest

from harness import WIDGET_CRD, ApiError, wait_until, watch
from harness.api import Api
from harness.cluster import AWAY, NOBODY_TOKEN, servers
from harness.operator import MESSAGE_ID

# How long the server is away in the middle of the load.
OUTAGE = float(os.environ.get("RECONCILED_OUTAGE", "20"))
_number = itertools.count(1)


@pytest.fixture(scope="session", params=servers())
def cluster(request, make_cluster):
    return make_cluster(request.param, AWAY)


@pytest.fixture
def namespace(cluster, widget_crd):
    name = f"outage-{next(_number)}"
    cluster.api.resource("v1", "namespaces").create(name)
    return name


def status(operator):
    return operator.ctl.status()["watches"][0]


def synced(operator):
    operator.start_ready().wait_synced()
    return operator


def later(widgets, handler, name="later"):
    widgets.create(name)
    return handler.wait_finished(name=name, deadline=90)


def deletions(handler):
    return [request.name for request in handler.requests(action="deleted")]


# Lists and watches

def test_the_first_list_is_streamed_where_the_server_can(cluster, configured, handler, widgets):
    widgets.create("early")
    synced(configured)
    handler.wait_finished(name="early")
    wait_until(lambda: status(configured)["lists"] + status(configured)["watchLists"] > 0, "the counters")
    assert (status(configured)["watchLists"] > 0) == cluster.is_current
    later(widgets, handler)
    configured.stop()


def test_a_restart_goes_on_without_a_list(configured, handler, widgets):
    widgets.create("first")
    synced(configured)
    handler.wait_finished(name="first")
    configured.stop()
    widgets.delete("first")
    widgets.create("second")
    synced(configured)
    handler.wait_finished(name="second")
    handler.wait_finished(name="first", action="deleted")
    wait_until(lambda: status(configured)["resumed"] == 1, "the counters")
    assert status(configured)["lists"] == 0 and status(configured)["watchLists"] == 0
    configured.stop()
    assert len(handler.requests(name="second")) == 1


def test_a_compaction_while_the_watch_is_down(cluster, configured, handler, widgets):
    for name in ("kept", "lost"):
        widgets.create(name)
    synced(configured)
    for name in ("kept", "lost"):
        handler.wait_finished(name=name)
    configured.stop()
    widgets.delete("lost")
    widgets.create("found")
    cluster.compact()
    synced(configured)
    handler.wait_finished(name="lost", action="deleted")
    handler.wait_finished(name="found")
    configured.stop()
    assert len(handler.requests(name="kept")) == 1


def test_continue_tokens_that_expire(cluster, operator, handler, widgets, namespace):
    """The database is compacted all the time while page after page is fetched."""
    for number in range(40):
        widgets.create(f"widget-{number}")
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace])], pageLimit=2)
    over = threading.Event()

    def compact():
        maps = Api(cluster.kubeconfig).resource("v1", "configmaps", namespace)
        for number in itertools.count():
            if over.is_set():
                return
            maps.create(f"map-{number}")
            cluster.compact()

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        operator.start_ready().wait_synced(120)
    finally:
        over.set()
        thread.join()
    for number in range(40):
        handler.wait_finished(name=f"widget-{number}")
    operator.stop()
    assert deletions(handler) == []


def test_a_server_that_is_killed_and_comes_back(cluster, configured, handler, widgets):
    widgets.create("before")
    synced(configured)
    handler.wait_finished(name="before")
    cluster.stop_server(signal.SIGKILL)
    wait_until(lambda: status(configured)["state"] == "degraded", "the watch to notice", 60)
    cluster.start_server()
    later(widgets, handler)
    configured.wait_for_log(message_id=MESSAGE_ID["WATCH_RECOVERED"])
    configured.stop()
    assert len(handler.requests(name="before")) == 1


def test_a_database_restored_from_a_backup(cluster, configured, handler, widgets):
    """What the backup does not know is gone; what it knows older is handled again; both are said loudly."""
    widgets.create("old", spec={"size": 1})
    synced(configured)
    handler.wait_finished(name="old")
    cluster.backup()
    # A server that starts writes some objects of its own: what is lost must be more than that, or nobody could tell.
    maps = cluster.api.resource("v1", "configmaps", widgets.namespace)
    for number in range(200):
        maps.create(f"map-{number}")
    widgets.create("forgotten")
    widgets.merge_patch("old", {"spec": {"size": 2}})
    handler.wait_finished(name="forgotten", deadline=60)
    handler.wait_finished(name="old", where=lambda request: request.object["spec"]["size"] == 2, deadline=60)
    handler.forget()
    cluster.restore()
    configured.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"], deadline=90)
    handler.wait_finished(name="forgotten", action="deleted", deadline=60)
    handler.wait_finished(name="old", where=lambda request: request.object["spec"]["size"] == 1, deadline=60)
    later(widgets, handler)
    configured.stop()


# Rights

def grant(cluster, namespace, name):
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    cluster.api.request("POST", f"{rbac}/clusterroles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list", "watch"]}]})
    cluster.api.request("POST", f"{rbac}/namespaces/{namespace}/rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"},
                     {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}]})


def as_nobody(cluster, sandbox, token=NOBODY_TOKEN):
    path = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(path, token)
    return types.SimpleNamespace(kubeconfig=path)


def test_refused_and_then_granted(cluster, operator, handler, widgets, namespace, sandbox):
    operator.configure(as_nobody(cluster, sandbox), [watch("widgets", handler, namespaces=[namespace])])
    operator.start_ready()
    wait_until(lambda: status(operator)["state"] == "degraded", "the refusal")
    assert "forbidden" in status(operator)["reason"]
    grant(cluster, namespace, f"granted-{namespace}")
    operator.wait_synced()
    later(widgets, handler)
    operator.stop()


def test_refused_past_the_deadline(cluster, operator, handler, namespace, sandbox):
    operator.configure(as_nobody(cluster, sandbox), [watch("widgets", handler, namespaces=[namespace], deadline="2s")])
    operator.start()
    operator.wait_exit(expect=77)


def test_a_token_that_is_revoked_and_replaced(cluster, operator, handler, widgets, namespace, sandbox):
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"

    def new_token():
        cluster.api.request("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
        return cluster.api.request("POST", f"{accounts}/robot/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]

    grant(cluster, namespace, f"revoked-{namespace}")
    first = new_token()
    operator.configure(as_nobody(cluster, sandbox, first), [watch("widgets", handler, namespaces=[namespace])])
    synced(operator)
    cluster.api.request("DELETE", f"{accounts}/robot")

    def is_refused():
        return Api(as_nobody(cluster, sandbox, first).kubeconfig).raw("GET", widgets.path).code == 401

    wait_until(is_refused, "the old token to be refused", 90, interval=0.5)
    operator.kubeconfig_for(as_nobody(cluster, sandbox, new_token()))
    cluster.stop_server(signal.SIGKILL)
    cluster.start_server()
    later(widgets, handler)
    operator.stop()


# Definitions

def test_a_definition_that_is_deleted_and_created_again(cluster, configured, handler, widgets):
    widgets.create("first")
    synced(configured)
    handler.wait_finished(name="first")
    crds = cluster.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    crds.delete("widgets.example.com")
    wait_until(lambda: not crds.exists("widgets.example.com"), "the definition to go", 60)
    handler.wait_finished(name="first", action="deleted", deadline=60)
    crds.create(body=WIDGET_CRD)
    wait_until(lambda: cluster.api.raw("GET", widgets.path).code == 200, "the definition to be served", 60)
    later(widgets, handler, "second")
    configured.stop()


# All of it at once

class Load(threading.Thread):
    """Creates, changes and deletes widgets until it is told to stop; a server that is away is no reason to stop."""

    def __init__(self, cluster, namespace, number):
        super().__init__()
        self.widgets = Api(cluster.kubeconfig).resource("example.com/v1", "widgets", namespace)
        self.number = number
        self.over = threading.Event()
        self.deleted = set()

    def run(self):
        for round_ in itertools.count():
            if self.over.is_set():
                return
            try:
                self.step(round_)
            except (OSError, ApiError):
                self.over.wait(0.1)

    def step(self, round_):
        name = f"widget-{self.number}-{round_}"
        self.widgets.create(name, spec={"size": 0})
        self.widgets.merge_patch(name, {"spec": {"size": 1}})
        if round_ % 3 == 0:
            uid = self.widgets.get(name)["metadata"]["uid"]
            self.widgets.delete(name)
            self.deleted.add((name, uid))


def handled(handler):
    """What the handlers saw last of each object, and the deletions that they handled."""
    last, deleted = {}, set()
    for request in handler.requests():
        if request.exit_code != 0:
            continue
        if request.body["action"] == "deleted":
            deleted.add((request.name, request.metadata["uid"]))
        else:
            last[request.name] = request.metadata["generation"]
    return last, deleted


def test_killed_for_a_while_under_load_and_compacted_meanwhile(cluster, operator, handler, widgets, namespace):
    """Afterwards what the handlers saw last is what the server has, and every deletion of what they had seen is handled."""
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace])], workers=4)
    synced(operator)
    load = [Load(cluster, namespace, number) for number in range(2)]
    for thread in load:
        thread.start()
    wait_until(lambda: handler.count() > 20, "the load", 60)
    cluster.stop_server(signal.SIGKILL)
    begin = time.monotonic()
    cluster.compact()
    wait_until(lambda: time.monotonic() - begin > OUTAGE, "the end of the outage", OUTAGE + 10)
    cluster.start_server()
    count = handler.count()
    wait_until(lambda: handler.count() > count + 20, "the load again", 90)
    for thread in load:
        thread.over.set()
        thread.join()

    def difference():
        """Objects whose last handled generation is not the server's, and deletions that nobody handled."""
        last, deleted = handled(handler)
        there = {item["metadata"]["name"]: item["metadata"]["generation"] for item in widgets.list()["items"]}
        gone = {(name, uid) for thread in load for name, uid in thread.deleted if name in last}
        return {name: (last.get(name), generation) for name, generation in there.items()
                if last.get(name) != generation}, gone - deleted

    wait_until(lambda: difference() == ({}, set()), lambda: f"handlers and server to agree; (handled, there) and deletions that "
               f"are missing: {difference()}; the operator says:\n{operator.output.text()[-10000:]}", 120, interval=0.5)
    operator.stop()
    gone = {name for thread in load for name, _ in thread.deleted}
    assert {name for name, _ in handled(handler)[1]} <= gone | {request.name for request in handler.requests()} - {
        item["metadata"]["name"] for item in widgets.list()["items"]}, "no deletion was made up"
