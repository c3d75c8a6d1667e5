# SPDX-License-Identifier: Apache-2.0
"""Several tenants, each with a namespace: however many objects one of them has, the others' objects run soon."""
import json
import re
import threading

import pytest

from harness import Devserver, WIDGET_CRD, wait_until, watch

RELATED = 1200  # more than the walk over related changes puts into the queue
CROWD = 2100  # more than the supervisor takes at once (CREDIT_LIMIT)
WORKERS = 2
QUESTIONS_AT_ONCE = 8


def create_crowd(devserver):
    def create(part):
        crowd = devserver.api.resource("example.com/v1", "widgets", "crowd")
        for number in range(part, CROWD, 2):
            crowd.create(f"w{number}")

    threads = [threading.Thread(target=create, args=(part,)) for part in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write_manifest(path, crowd, namespaces):
    """So many objects in the first namespace, and one in the second."""
    documents = [WIDGET_CRD, *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces)]
    places = [(namespaces[0], f"w{number}") for number in range(crowd)] + [(namespaces[1], "one")]
    documents += [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": namespace, "name": name}}
                  for namespace, name in places]
    path.write_text("\n---\n".join(json.dumps(document) for document in documents), encoding="utf-8")
    path.chmod(0o644)


def asked(devserver):
    """Namespaces of the objects that the server was asked for, in this order."""
    return [request["namespace"] for request in devserver.requests(
        lambda request: request["verb"] == "get" and request["resource"] == "widgets" and request["name"])]


def place_of(operator, key):
    return json.loads(operator.ctl.run("explain", "--json", "widgets", key).stdout)["queue"]


def see_who_waits(operator):
    crowd, quiet = operator.ctl.status()["namespaces"]
    assert (crowd["watch"], crowd["namespace"], crowd["running"]) == ("widgets", "crowd", WORKERS)
    assert crowd["queued"] > 1000 and crowd["waitingFor"] > quiet["waitingFor"] > 0
    assert (quiet["namespace"], quiet["queued"], quiet["running"]) == ("quiet", 1, 0)
    assert "2 namespaces take turns" in operator.ctl.run("explain", "widgets", "quiet/one").stdout
    told = operator.ctl.run("top").stdout
    assert re.search(r"QUEUED +RUNNING +OLDEST", told) and re.search(r"^ +1 +0 +\S+  quiet  widgets$", told, re.MULTILINE), told


@pytest.mark.slow
@pytest.mark.quiet
def test_a_crowd_of_one_tenant_does_not_delay_another(devserver, operator, handler):
    """Both workers are busy, and thousands of objects of one tenant wait: the first run of another tenant's new object comes
    within two runs of each worker."""
    for name in ("crowd", "quiet"):
        devserver.api.resource("v1", "namespaces").create(name)
    handler.behave(handler.held)
    operator.configure(devserver, [watch("widgets", handler, finalizer=False)], workers=WORKERS)
    operator.start_ready().wait_synced()
    create_crowd(devserver)
    wait_until(lambda: operator.ctl.status()["watches"][0]["unannounced"] > 0, "more keys than the supervisor takes")
    devserver.api.resource("example.com/v1", "widgets", "quiet").create("one")
    wait_until(lambda: place_of(operator, "quiet/one")["state"] == "queued", "its place in the queue", 20)
    see_who_waits(operator)
    handler.let_go()
    handler.wait_for(name="one")
    order = [request.name for request in handler.requests()]
    assert order.index("one") < 2 * WORKERS + WORKERS, order
    operator.stop()


def test_related_changes_of_one_tenant_do_not_delay_another(sandbox, operator):
    """What depends on an object of one tenant fills the queue; what depends on one of another tenant gets into it."""
    manifest = sandbox.folder / "crowd.json"
    write_manifest(manifest, RELATED, ("crowd", "quiet"))
    devserver = Devserver(sandbox, (), ["--load", str(manifest)]).start()
    try:
        widgets = watch("widgets", related=[{"apiVersion": "v1", "kind": "ConfigMap"}], finalizer=False)
        widgets["handler"] = {"exec": ["/bin/true"]}
        operator.configure(devserver, [widgets], workers=WORKERS)
        operator.start_ready().wait_synced()
        wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] > RELATED, "everybody to run")
        wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 0, "rest")
        operator.ctl.run("pause", "widgets")
        devserver.api.resource("v1", "configmaps", "crowd").create("settings")
        wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] >= 1000, "a full queue")
        devserver.api.resource("v1", "configmaps", "quiet").create("settings")
        wait_until(lambda: place_of(operator, "quiet/one")["state"] == "queued", "its place in the queue", 20)
        devserver.api.resource("v1", "configmaps", "quiet").delete("settings")
        wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 1, "the deletion")
        operator.stop()
        operator.start_ready().wait_synced()  # what waited is on no record, so everybody is asked once
        wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] >= 1000, "a full queue")
        wait_until(lambda: place_of(operator, "quiet/one")["state"] == "queued", "its place in the queue after a start", 20)
        operator.stop()
    finally:
        devserver.close()


def test_questions_about_one_tenants_objects_do_not_delay_another(devserver, operator, handler):
    """Another selector selects none of them: the server is asked for each, and namespaces take turns in that."""
    places = [("crowd", f"w{number}") for number in range(60)] + [("quiet", "one")]
    for namespace in ("crowd", "quiet"):
        devserver.api.resource("v1", "namespaces").create(namespace)
    for namespace, name in places:
        devserver.api.resource("example.com/v1", "widgets", namespace).create(name, labels={"tier": "gold"})
    for tier in ("gold", "silver"):
        operator.configure(devserver, [watch("widgets", handler, labelSelector=f"tier={tier}", finalizer=False)])
        operator.start_ready().wait_synced()
        wait_until(lambda count=len(places) if tier == "gold" else 0: operator.ctl.status()["watches"][0]["objects"] == count,
                   f"objects that are {tier}")
        if tier == "gold":
            operator.stop()
    wait_until(lambda: len(asked(devserver)) >= len(places), "a question for each")
    assert "quiet" in asked(devserver)[:2 * QUESTIONS_AT_ONCE]
    operator.stop()


@pytest.mark.quiet
def test_a_crowd_that_is_there_already_does_not_delay_another(sandbox, operator, handler):
    """The same at the first start, when everything runs once."""
    manifest = sandbox.folder / "crowd.json"
    write_manifest(manifest, CROWD, ("crowd", "quiet"))
    devserver = Devserver(sandbox, (), ["--load", str(manifest)]).start()
    try:
        handler.behave(handler.held)
        operator.configure(devserver, [watch("widgets", handler, finalizer=False)], workers=WORKERS)
        operator.start_ready().wait_synced()
        wait_until(lambda: place_of(operator, "quiet/one")["state"] == "queued", "its place in the queue", 20)
        handler.let_go()
        handler.wait_for(name="one")
        order = [request.name for request in handler.requests()]
        assert order.index("one") < 2 * WORKERS + WORKERS, order
        operator.stop()
    finally:
        devserver.close()
