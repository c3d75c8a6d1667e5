# SPDX-License-Identifier: Apache-2.0
"""`children: {wait: ...}`: a run is over when its children are ready, and holds no worker until then."""
import base64
import shutil

import pytest

from harness import wait_until, watch

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
ROLLED_OUT = {"status": {"observedGeneration": 9, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}}
STUCK = {"status": {"observedGeneration": 9, "conditions": [
    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "no image"}]}}


@pytest.fixture
def deployments(api):
    return api.resource("apps/v1", "deployments", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(wait="1h", **more):
        more = {"children": {"wait": wait}, "readyCondition": True, "retry": {"first": "1h", "max": "1h"}, **more}
        operator.configure(devserver, [watch("widgets", handler, **more)], workers=1)
        return operator.start_ready().wait_synced()

    handler.answer({"children": [DEPLOYMENT], "message": "served"})
    return start


def ready(widgets, name):
    found = widgets.get(name).get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == "Ready"), {})


def waiting(widgets):
    return wait_until(lambda: ready(widgets, "w").get("reason") == "Waiting" and ready(widgets, "w"), "the wait")


def test_no_word_of_a_confidential_child_is_quoted(start, operator, widgets, deployments):
    start(owns=[{"apiVersion": "apps/v1", "kind": "Deployment", "confidential": True}])
    widgets.create("w")
    assert "waiting for Deployment web: it is not ready (why is not shown: it is confidential)" in waiting(widgets)["message"]
    deployments.merge_patch("web", STUCK, subresource="status")
    wait_until(lambda: "has failed (why is not shown" in ready(widgets, "w").get("message", ""), "the failure")
    operator.stop()
    assert "no image" not in operator.output.text() and "no image" not in str(widgets.get("w"))


def test_it_waits_without_a_worker_and_ends_with_a_success(start, operator, handler, widgets, deployments):
    start()
    widgets.create("w")
    assert "waiting for Deployment web" in waiting(widgets)["message"]
    handler.answer({})
    for number in range(3):
        widgets.create(f"other-{number}")
        handler.wait_finished(name=f"other-{number}")
    assert operator.ctl.status()["watches"][0]["settling"] == 1
    explained = operator.ctl.run("explain", "widgets", "default/w").stdout.splitlines()[0]
    assert "it waits for its children (children.wait), for at most 59m" in explained, explained
    assert "; when that began, it was for Deployment web: " in explained, explained
    [line] = operator.ctl.run("get", "waiting").stdout.splitlines()[1:]
    assert "settling" in line and "Deployment web: " in line, line
    deployments.merge_patch("web", ROLLED_OUT, subresource="status")
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "its success")
    assert ready(widgets, "w")["message"] == "served"
    wait_until(lambda: operator.ctl.status()["watches"][0]["settling"] == 0, "the end of the wait")
    operator.stop()
    assert len(handler.requests(name="w")) == 1, "one run"


def test_what_is_not_applied_again_is_waited_for_all_the_same(start, operator, handler, widgets, deployments, devserver):
    """Whether it is ready is read from the store then."""
    start(owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}])
    widgets.create("w", spec={"size": 1})
    waiting(widgets)
    wait_until(lambda: operator.ctl.status()["watches"][1]["objects"] == 1, "the child to be seen")
    widgets.merge_patch("w", {"spec": {"size": 2}})
    handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == 2)
    wait_until(lambda: waiting(widgets)["observedGeneration"] == 2, "the wait of the second run")
    applied = devserver.requests(lambda request: request.get("verb") == "patch" and request.get("name") == "web")
    assert len(applied) == 1
    deployments.merge_patch("web", ROLLED_OUT, subresource="status")
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "its success")


@pytest.mark.slow
def test_a_restart_goes_on_waiting(start, operator, handler, widgets, deployments):
    start()
    widgets.create("w")
    waiting(widgets)
    operator.stop()
    operator.start_ready().wait_synced()
    deployments.merge_patch("web", ROLLED_OUT, subresource="status")
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "its success")
    operator.stop()
    assert len(handler.requests(name="w")) == 1


def test_what_is_ready_at_once_is_not_waited_for(start, operator, handler, widgets):
    handler.answer({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]})
    start()
    handler.answer({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]})
    widgets.create("w")
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "its success")
    assert operator.ctl.status()["watches"][0]["settling"] == 0


@pytest.mark.parametrize("what", ["object", "related"])
def test_a_change_meanwhile_is_a_new_attempt(start, operator, handler, widgets, api, what):
    """Also of what the answer was made from beside the object; and it is told all that it depends on."""
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.create("settings", labels={"for": "widgets"}, data={"level": "1"})
    start(related=[{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "for=widgets"}])
    widgets.create("w", spec={"size": 1})
    waiting(widgets)
    if what == "object":
        widgets.merge_patch("w", {"spec": {"size": 2}})
    else:
        config_maps.merge_patch("settings", {"data": {"level": "2"}})
    request = handler.wait_finished(name="w", count=2)
    assert request.object["spec"]["size"] == (2 if what == "object" else 1)
    assert [entry["data"]["level"] for entry in request.body["related"]] == ["1" if what == "object" else "2"]
    waiting(widgets)
    operator.stop()
    assert len(handler.requests(name="w")) == 2


@pytest.mark.parametrize("rollback", [False, True])
def test_a_child_that_fails_is_a_failed_attempt(start, operator, handler, widgets, deployments, rollback):
    start(**({"onFailure": "rollback"} if rollback else {}))
    widgets.create("w")
    waiting(widgets)
    deployments.merge_patch("web", STUCK, subresource="status")
    seen = wait_until(lambda: ready(widgets, "w").get("reason") == "ReconcileFailed" and ready(widgets, "w"), "the failure")
    assert "Deployment web" in seen["message"] and "no image" in seen["message"]
    wait_until(lambda: operator.ctl.status()["watches"][0]["failed"] == 1, "one failed attempt")
    assert deployments.exists("web") != rollback


@pytest.mark.slow
def test_one_that_takes_too_long_is_a_failed_attempt(start, handler, widgets):
    start(wait="1500ms")
    widgets.create("w")
    seen = wait_until(lambda: ready(widgets, "w").get("reason") == "ReconcileFailed" and ready(widgets, "w"), "the failure")
    assert "was not ready within" in seen["message"] and "Deployment web" in seen["message"]
    assert handler.count() == 1


def test_a_change_meanwhile_runs_the_handler_at_once(start, handler, widgets, deployments):
    start()
    widgets.create("w", spec={"size": 1})
    waiting(widgets)
    handler.answer({"children": [], "message": "nothing to serve"})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: ready(widgets, "w").get("message") == "nothing to serve", "the newer answer")
    assert handler.count() == 2 and not deployments.exists("web")


STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 2}}
OWNS_SETS = [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]


def test_an_item_of_a_list_is_judged_by_the_rules_of_its_kind(start, operator, handler, widgets, devserver):
    """Items of a list of built-in kinds do not say their kind."""
    handler.answer({})
    start(owns=OWNS_SETS)
    handler.answer({"children": [STATEFUL_SET]})
    widgets.create("w", spec={"size": 1})
    waiting(widgets)
    operator.stop()
    for path in (operator.state_directory / "store").iterdir():
        shutil.rmtree(path)
    devserver.fault({"verb": "watch", "resource": "statefulsets"}, status=400)  # so that the list is not streamed
    operator.start_ready().wait_synced()
    for size in (2, 3):  # the second time the child is not applied again, but taken from the store
        widgets.merge_patch("w", {"spec": {"size": size}})
        handler.wait_finished(name="w", where=lambda request: request.object["spec"]["size"] == size)
        wait_until(lambda: waiting(widgets)["observedGeneration"] == size, "the wait of this run")
    operator.stop()


@pytest.mark.parametrize("answered", ["True", "False"])
@pytest.mark.slow
def test_what_the_handler_says_of_ready_stays_when_the_wait_ends(start, operator, handler, widgets, deployments, answered):
    handler.answer({})
    start()
    handler.answer({"children": [DEPLOYMENT], "conditions": [
        {"type": "Ready", "status": answered, "reason": "Licence", "message": "as the handler has it"},
        {"type": "Licensed", "status": "False", "reason": "Expired"}]})
    widgets.create("w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["settling"] == 1, "the wait")
    meanwhile = wait_until(lambda: ready(widgets, "w"), "the condition")
    assert meanwhile["status"] == "False" and meanwhile["reason"] == ("Waiting" if answered == "True" else "Licence")
    operator.stop()
    operator.start_ready().wait_synced()
    deployments.merge_patch("web", ROLLED_OUT, subresource="status")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "its success")
    seen = ready(widgets, "w")
    assert (seen["status"], seen["reason"], seen["message"]) == (answered, "Licence", "as the handler has it")
    operator.stop()


@pytest.mark.slow
def test_kinds_that_the_watch_owns_are_not_polled(start, operator, handler, widgets, deployments, devserver):
    """Their store is looked at, and their changes bring the waiting run back."""
    handler.behave("""printf '{"children":[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"of-%s"},"spec":{}}]}' """
                   """ "$RECONCILED_NAME" """)
    start(owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}])
    names = [f"w{number}" for number in range(10)]
    for name in names:
        widgets.create(name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["settling"] == len(names), "all of them to wait")
    wait_until(lambda: operator.ctl.status()["watches"][0]["runs"] >= 2 * len(names), "looks at each of them")
    for name in names:
        deployments.merge_patch(f"of-{name}", ROLLED_OUT, subresource="status")
    for name in names:
        wait_until(lambda: ready(widgets, name).get("status") == "True", f"the success of {name}")
    gets = devserver.requests(lambda request: request.get("verb") == "get" and request.get("resource") == "deployments"
                              and "worker" in request["user_agent"])
    # Before it is applied for the first time, each is looked at once: it may be another object's.
    assert len(gets) <= len(names), "the server is not asked how they are"
    operator.stop()
    assert handler.count() == len(names)


@pytest.mark.slow
def test_a_wait_writes_no_former_secret_to_the_disk(start, operator, handler, widgets, api):
    """What a rollback would need of it is kept in memory, as when an attempt is undone."""
    former, newer = (base64.b64encode(text).decode() for text in (b"the former one", b"the newer one"))
    handler.answer({"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": former}}]})
    start(onFailure="rollback")
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "its success")
    handler.answer({"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": newer}},
                                 DEPLOYMENT]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: operator.ctl.status()["watches"][0]["settling"] == 1, "the wait")
    operator.stop()
    for path in operator.state_directory.rglob("*"):
        assert path.is_dir() or former.encode() not in path.read_bytes(), path
    operator.start_ready().wait_synced()
    api.resource("apps/v1", "deployments", "default").merge_patch("web", STUCK, subresource="status")
    secrets = api.resource("v1", "secrets", "default")
    wait_until(lambda: secrets.get("s")["data"]["key"] == former, "the former content")
    operator.stop()


@pytest.mark.parametrize("how", ["ready", "failed", "before"])
def test_what_is_left_out_goes_when_the_rest_is_ready(start, operator, handler, widgets, deployments, api, how):
    """An attempt that fails deletes nothing that was there before it."""
    config_maps = api.resource("v1", "configmaps", "default")
    old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}}
    handler.answer({"children": [old]})
    start(onFailure="rollback", **({"children": {"wait": "1h", "prune": "before"}} if how == "before" else {}))
    widgets.create("w")
    wait_until(lambda: ready(widgets, "w").get("status") == "True", "the old child")
    handler.answer({"children": [DEPLOYMENT]})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: deployments.exists("web") and ready(widgets, "w").get("reason") == "Waiting", "it to wait")
    assert config_maps.exists("old") == (how != "before")
    if how == "failed":
        deployments.merge_patch("web", STUCK, subresource="status")
        wait_until(lambda: not deployments.exists("web"), "the rollback")
        assert config_maps.exists("old")
    else:
        deployments.merge_patch("web", ROLLED_OUT, subresource="status")
        wait_until(lambda: ready(widgets, "w").get("status") == "True", "the new child")
        wait_until(lambda: not config_maps.exists("old"), "the end of the old one")
    operator.stop()


def test_more_than_can_be_waited_for_says_so(start, handler, widgets):
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {}}}
    handler.answer({"children": [{**job, "metadata": {"name": f"{number:03}" + "x" * 240}} for number in range(400)]})
    start(wait="1m", onFailure="rollback")
    widgets.create("w")
    message = wait_until(lambda: ready(widgets, "w").get("reason") == "ReconcileFailed" and ready(widgets, "w"), "the failure")["message"]
    assert message.startswith("waiting for Job 000xxx")
    assert "; the operator cannot wait for that: the names of its children are too long together" in message
