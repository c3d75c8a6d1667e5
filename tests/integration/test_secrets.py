# SPDX-License-Identifier: Apache-2.0
"""Secrets, and what the configuration calls confidential, are kept in memory: no byte of their content is found on the
disk, whatever dies when. What memory loses is listed again, deletes nothing and is said."""
import base64
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import sqlite3
import tempfile

import pytest

from harness import ledger, wait_until, watch
from harness.needle import encoded, found_on_disk, new_needle, secret
from harness.operator import MESSAGE_ID

SECRETS = {"apiVersion": "v1", "kind": "Secret"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def needle():
    return new_needle()


@pytest.fixture
def all_secrets(api):
    return api.resource("v1", "secrets", "default")


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


def in_memory(operator):
    """The stores of what is confidential."""
    return operator.runtime_directory / "secrets" / "store"


def kill(operator):
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)


# ---- the disk is searched

@pytest.mark.parametrize("more", [{}, {"finalizer": True}, {"metadataOnly": True}, {"trigger": "any"}], ids=str)
def test_no_byte_of_a_watched_secret_is_on_the_disk(devserver, operator, handler, all_secrets, needle, more):
    record = operator.folder / "record"
    record.mkdir()
    operator.user.give(record, 0o700)
    operator.configure(devserver, [watch("s", handler, **SECRETS, **more)], record=str(record))
    applied = {LAST_APPLIED: json.dumps(secret("a", needle))}
    for name in ("a", "b"):
        all_secrets.create(body=secret(name, needle, annotations=applied))
    folders = (operator.folder, operator.state_directory)
    operator.start_ready().wait_synced()
    handler.wait_finished(name="b")
    wait_until(lambda: not ledger.read(operator, "SELECT 1 FROM ledger WHERE handled_realtime = 0"), "the record of both")
    assert not found_on_disk(needle, *folders), "while it runs"
    kill(operator)
    assert not found_on_disk(needle, *folders), "after a SIGKILL"
    if not more.get("finalizer"):
        all_secrets.delete("a")
    operator.start_ready().wait_synced()
    if not more.get("finalizer"):
        assert handler.wait_finished(name="a", action="deleted").object["metadata"]["annotations"], "from the store in memory"
    operator.stop()
    assert not found_on_disk(needle, *folders), "after a stop"
    assert len(handler.requests(name="b")) == 1, "nothing runs once more for it"


@pytest.mark.parametrize("key", ["owns", "related"])
def test_no_byte_of_an_owned_or_related_secret_is_on_the_disk(devserver, operator, handler, widgets, all_secrets, needle, key):
    operator.configure(devserver, [watch("widgets", handler, **{key: [SECRETS]})])
    if key == "owns":
        handler.behave("echo '" + json.dumps({"children": [secret("child", needle)]}) + "'")
    else:
        all_secrets.create(body=secret("child", needle))
    operator.start_ready().wait_synced()
    widgets.create("w")
    handler.wait_finished(name="w")
    wait_until(lambda: all_secrets.exists("child"), "the Secret")
    wait_until(lambda: found_on_disk(needle, operator.runtime_directory), "the store to have it")
    assert not found_on_disk(needle, operator.state_directory), "while it runs"
    kill(operator)
    assert not found_on_disk(needle, operator.state_directory), "after a SIGKILL"
    operator.start_ready().wait_synced()
    operator.stop()
    assert not found_on_disk(needle, operator.state_directory), "after a stop"


def test_no_byte_of_what_is_called_confidential_is_on_the_disk(devserver, operator, handler, widgets, needle):
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w", spec={"password": needle})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w")
    operator.stop()
    assert found_on_disk(needle, operator.state_directory), "as before"
    operator.configure(devserver, [watch("widgets", handler, confidential=True)])
    operator.start_ready().wait_synced()
    operator.wait_for_log(message_id=MESSAGE_ID["SECRETS_ERASED"])
    assert not found_on_disk(needle, operator.state_directory), "the old store is erased"
    widgets.merge_patch("w", {"spec": {"size": 2}})
    handler.wait_finished(name="w", count=2)
    operator.stop()
    assert not found_on_disk(needle, operator.state_directory)
    assert len(handler.requests(name="w")) == 2


@pytest.fixture(params=[False, True], ids=["free", "taken"])
def taken(request, operator):
    """A stranger has made the folder of our name."""
    path = f"/dev/shm/reconciled-{operator.user.uid}"
    if request.param:
        if os.geteuid() != 0:
            pytest.skip("only root can be a stranger")
        os.mkdir(path, 0o777)
    yield request.param
    if request.param:
        assert os.listdir(path) == [], "nothing of ours is in it"
        os.rmdir(path)


@pytest.fixture
def on_disk(operator):
    """A folder of the operator's, whatever the folder of the tests is on."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-", dir="/var/tmp"))
    operator.user.give(folder, 0o700)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_runtime_directory_on_a_disk_holds_no_secret_either(devserver, operator, handler, all_secrets, needle, taken, on_disk):
    operator.runtime_directory = on_disk
    operator.configure(devserver, [watch("s", handler, **SECRETS)])
    all_secrets.create(body=secret("a", needle))
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a")
    assert operator.ctl.status()["secrets"]["onDisk"] is False
    said = operator.wait_for_log("Secrets are kept in memory, in /dev/shm/")
    folder = re.search(r"/dev/shm/\S+", said["message"])[0]
    try:
        disk = (operator.state_directory, operator.runtime_directory)
        assert found_on_disk(needle, folder) and not found_on_disk(needle, *disk)
        kill(operator)
        assert os.stat(folder).st_mode & 0o777 == 0o700 and os.stat(os.path.dirname(folder)).st_mode & 0o777 == 0o700
        operator.start_ready().wait_synced()
        operator.stop()
        assert not os.path.exists(folder) and not found_on_disk(needle, *disk)
        assert (re.fullmatch(r"reconciled-\d+-\w{6}", os.path.basename(os.path.dirname(folder))) is not None) == taken
    finally:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)


# ---- rollback

@pytest.fixture
def rolling_back(devserver, operator, handler, widgets, all_secrets, config_maps, needle):
    """A Secret was applied, then changed by an attempt that fails; the rollback waits for another child to go."""
    def answer(*children):
        handler.behave("echo '" + json.dumps({"children": list(children)}) + "'")

    later = new_needle()
    answer(secret("s", needle))
    operator.configure(devserver, [watch("widgets", handler, onFailure="rollback", readyCondition=True,
                                         children={"settle": "40s"}, retry={"first": "1h", "max": "1h"})], workers=1)
    operator.start_ready().wait_synced()
    widgets.create("w", spec={"size": 1})
    handler.wait_finished(name="w")
    wait_until(lambda: all_secrets.exists("s"), "the Secret")
    # The Secret is restored last: what is looked at first waits for the server's answer.
    devserver.fault(match={"verb": "patch", "resource": "configmaps", "name": "bad"}, times=0, status=422, reason="Invalid",
                    message="too odd")
    stuck = devserver.fault(match={"verb": "patch", "resource": "secrets", "name": "s"}, after=1, times=0, status=403,
                            reason="Forbidden", message=f"denied: {later}")
    answer(secret("s", later), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, "data": {"a": "1"}})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    wait_until(lambda: ledger.read(operator, "SELECT 1 FROM ledger WHERE settling <> ''"), "the rollback")
    return later, stuck


def password(all_secrets):
    return base64.b64decode(all_secrets.get("s")["data"]["password"]).decode()


@pytest.mark.parametrize("dies", [False, True])
def test_what_a_secret_was_before_a_rollback_is_not_on_the_disk(rolling_back, devserver, operator, all_secrets, needle, dies):
    later, stuck = rolling_back
    for each in (needle, later):
        assert not found_on_disk(each, operator.state_directory), "while it is rolled back"
    if dies:
        kill(operator)
        for each in (needle, later):
            assert not found_on_disk(each, operator.state_directory), "after a SIGKILL"
        operator.start_ready().wait_synced()
    assert password(all_secrets) == later
    devserver.clear_faults(stuck)
    wait_until(lambda: password(all_secrets) == needle, "the rollback", 30)
    operator.wait_for_log("too odd")
    operator.stop()
    for each in (needle, later):
        assert not found_on_disk(each, operator.state_directory), "after a stop"
    assert not list((operator.runtime_directory / "secrets" / "kept").iterdir()), "nobody needs it any more"


def test_kept_content_that_no_plan_names_is_removed_at_the_next_start(rolling_back, devserver, operator, all_secrets, needle):
    """As a SIGKILL leaves it between the content and the plan that names it."""
    _, stuck = rolling_back
    kept = operator.runtime_directory / "secrets" / "kept"
    named = {path.name for path in kept.iterdir()}
    assert named, "the content that the rollback restores"
    kill(operator)
    orphan = kept / ("0123456789abcdef" * 2)
    orphan.write_text(needle, encoding="utf-8")
    operator.user.give(orphan, 0o600)
    operator.start_ready().wait_synced()
    assert not orphan.exists()
    assert named <= {path.name for path in kept.iterdir()}, "the plan goes on with it"
    devserver.clear_faults(stuck)
    wait_until(lambda: password(all_secrets) == needle, "the rollback", 30)


def test_a_secret_whose_former_content_is_lost_is_left_and_said(rolling_back, devserver, operator, widgets, all_secrets):
    later, stuck = rolling_back
    kill(operator)
    shutil.rmtree(operator.runtime_directory / "secrets")
    devserver.clear_faults(stuck)
    operator.start_ready().wait_synced()
    [said] = wait_until(lambda: operator.logs(message_id=MESSAGE_ID["SECRET_LOST"]), "the warning")
    assert "Secret default/s" in said["message"]
    wait_until(lambda: "what it was before is lost" in json.dumps(widgets.get("w")["status"]), "the condition")
    assert "too odd" in json.dumps(widgets.get("w")["status"]), "the first cause stays in front"
    assert password(all_secrets) == later, "neither restored nor deleted"


# ---- loss, and the bound

def test_lost_memory_is_a_list_and_no_deletion(devserver, operator, handler, all_secrets, needle):
    operator.configure(devserver, [watch("s", handler, **SECRETS)])
    for name in ("gone", "stays"):
        all_secrets.create(body=secret(name, needle))
    operator.start_ready().wait_synced()
    uid = handler.wait_finished(name="gone").metadata["uid"]
    handler.wait_finished(name="stays")
    operator.stop()
    for entry in operator.runtime_directory.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    all_secrets.delete("gone")
    operator.start_ready().wait_synced()
    told = handler.wait_finished(name="gone", action="deleted")
    assert told.metadata["uid"] == uid and "data" not in told.object, "its identity is what the ledger knows"
    operator.stop()
    assert [(request.name, request.body["action"]) for request in handler.requests()
            if request.body["action"] != "reconcile"] == [("gone", "deleted")]
    assert len(handler.requests(name="stays")) == 1


def fill(all_secrets, count=40):
    for number in range(count):
        all_secrets.create(body=secret(f"s{number}", "x" * 60000))


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.slow
def test_secrets_beyond_the_bound_fail_their_watch_with_the_figure(devserver, operator, handler, widgets, all_secrets, isolate):
    fill(all_secrets)
    more = {"onDeadline": "isolate"} if isolate else {}
    watches = [watch("s", handler, **SECRETS, deadline="2s", **more), watch("widgets", handler)]
    operator.configure(devserver, watches, secrets={"memory": "1MiB"})
    operator.start_ready()
    said = operator.wait_for_log("does not fit into secrets.memory, 1 MiB")
    assert "raise secrets.memory" in said["message"]
    wait_until(lambda: operator.logs(message_id=MESSAGE_ID["WATCH_FAILED"]), "the watch to fail alone")
    widgets.create("w")
    handler.wait_finished(name="w")
    state = {each["name"]: each for each in operator.ctl.status()["watches"]}
    assert state["s"]["state"] == "failed" and "secrets.memory" in state["s"]["reason"]
    operator.stop()
    operator.configure(devserver, watches, secrets={"memory": "64MiB"})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="s39")
    operator.stop()
    assert len(handler.requests(name="s39")) == 1
    assert not [request for request in handler.requests() if request.body["action"] == "deleted"]


@pytest.mark.slow
def test_secrets_that_grow_beyond_the_bound_fail_their_watch_as_well(devserver, operator, handler, widgets, all_secrets):
    operator.configure(devserver, [watch("s", handler, **SECRETS, onDeadline="isolate", deadline="1s"), watch("widgets", handler)],
                       secrets={"memory": "1MiB"})
    operator.start_ready().wait_synced()
    fill(all_secrets)
    operator.wait_for_log("does not fit into secrets.memory, 1 MiB")
    wait_until(lambda: operator.logs(message_id=MESSAGE_ID["WATCH_FAILED"]), "the watch to be isolated")
    widgets.create("w")
    handler.wait_finished(name="w")
    operator.stop()


def tries(operator):
    return operator.logs(where=lambda line: "restarts: there may be room" in line["message"])


@pytest.mark.parametrize("grown", [False, True])
@pytest.mark.slow
def test_a_watch_that_found_no_room_comes_back_by_itself(devserver, operator, handler, all_secrets, grown):
    all_secrets.create(body=secret("stays", "x"))
    all_secrets.create(body=secret("goes", "x"))
    if not grown:
        fill(all_secrets)
    owns = [] if grown else [{"apiVersion": "v1", "kind": "ConfigMap"}]  # which then begins anew as well
    operator.configure(devserver, [watch("s", handler, **SECRETS, onDeadline="isolate", deadline="1s", owns=owns,
                                         reconnect={"first": "100ms", "max": "500ms"})], secrets={"memory": "1MiB"})
    operator.start_ready()
    if grown:
        handler.wait_finished(name="stays")
        handler.wait_finished(name="goes")
        fill(all_secrets)
    wait_until(lambda: operator.logs(message_id=MESSAGE_ID["WATCH_FAILED"]), "the watch to be isolated")
    all_secrets.delete("goes")
    wait_until(lambda: len(tries(operator)) >= 2, "tries in vain", deadline=60)
    assert operator.ctl.status()["watches"][0]["state"] == "failed"
    for number in range(40):
        all_secrets.delete(f"s{number}")
    operator.wait_for_log("works again", message_id=MESSAGE_ID["WATCH_RECOVERED"], deadline=60)
    operator.wait_synced()
    assert len(operator.logs(message_id=MESSAGE_ID["WATCH_FAILED"])) == 1, "told once"
    all_secrets.create(body=secret("later", "x"))
    handler.wait_finished(name="later")
    handler.wait_finished(name="stays")
    assert len(handler.requests(name="stays", action="reconcile")) == 1
    if grown:
        wait_until(lambda: len(handler.requests(action="deleted", where=lambda r: r.name == "goes")) == 1, "its deletion")
    assert not [r for r in handler.requests(action="deleted") if r.name in ("stays", "later")]
    operator.stop()


def test_a_store_that_cannot_be_erased_is_said(devserver, operator, handler, widgets, needle):
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w", spec={"password": needle})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="w")
    operator.stop()
    store = operator.state_directory / "store" / "widgets"
    for path in (store, *store.rglob("*")):
        os.chown(path, 0, 0)
    operator.configure(devserver, [watch("widgets", handler, confidential=True)])
    operator.start_ready().wait_synced()
    [said] = operator.logs(message_id=MESSAGE_ID["SECRETS_ON_DISK"])
    assert "cannot be erased" in said["message"] and str(store) in said["message"]
    operator.stop()


@pytest.mark.parametrize("code", [403, 404, 409, 410, 429, 503])
def test_a_webhook_that_quotes_a_secret_is_not_quoted(devserver, operator, handler, widgets, api, needle, code):
    """It chooses the code of its refusal, its reason, and for how long the server asks to wait."""
    devserver.fault(match={"verb": "patch", "resource": "secrets"}, times=0, status=code, reason=f"{needle} is too weak",
                    retryAfter=60 if code in (429, 503) else 0,
                    message=f'admission webhook "policy.example.com" denied the request: password "{needle}" is too weak')
    handler.answer({"children": [secret("s", needle)]})
    operator.configure(devserver, [watch("widgets", handler, readyCondition=True)])
    operator.start_ready().wait_synced()
    widgets.create("w")
    wait_until(lambda: any(each["status"] == "False" for each in widgets.get("w").get("status", {}).get("conditions", [])), "the condition")
    operator.stop()
    events = api.resource("events.k8s.io/v1", "events", "default").list()["items"]
    for said in (operator.output.text(), json.dumps(widgets.get("w")), json.dumps(events)):
        assert needle not in said
    assert not found_on_disk(needle, operator.state_directory)


GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
             "versions": [{"name": name, "served": True, "storage": name == "v1",
                           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
                          for name in ("v1", "v1beta1")]}}


@pytest.mark.parametrize("refused", [False, True])
def test_a_confidential_kind_is_confidential_in_each_version(devserver, operator, handler, widgets, api, needle, refused):
    record = operator.folder / "record"
    record.mkdir()
    operator.user.give(record, 0o700)
    api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions", None).create(body=GADGETS)
    if refused:
        devserver.fault(match={"verb": "patch", "resource": "gadgets"}, times=0, status=422, reason="Invalid",
                        message=f"spec.password: Invalid value: \"{needle}\"")
    gadget = {"apiVersion": "example.com/v1beta1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"password": needle}}
    handler.answer({"children": [gadget]})
    owned = {"apiVersion": "example.com/v1", "kind": "Gadget", "confidential": True}
    operator.configure(devserver, [watch("widgets", handler, readyCondition=True, owns=[owned])], record=str(record))
    operator.start_ready().wait_synced()
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status", {}).get("conditions"), "the condition")
    assert widgets.get("w")["status"]["conditions"][0]["status"] == ("False" if refused else "True")
    operator.stop()
    assert any("Gadget" in path.read_text() for path in record.iterdir())
    assert not found_on_disk(needle, record) and not found_on_disk(needle, operator.state_directory)
    events = api.resource("events.k8s.io/v1", "events", "default").list()["items"]
    for said in (operator.output.text(), json.dumps(widgets.get("w")), json.dumps(events)):
        assert needle not in said


@pytest.mark.parametrize("kind", ["Secret", "Gadget"])
def test_a_warning_that_quotes_what_is_confidential_is_not_quoted(devserver, operator, handler, api, needle, kind):
    """A policy that only warns quotes, too, be it a child, the object itself, or one that is read."""
    api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions", None).create(body=GADGETS)
    gadget, child = {"apiVersion": "example.com/v1", "kind": "Gadget"}, {"metadata": {"name": "a"}, "spec": {"password": needle}}
    if kind == "Secret":
        devserver.fault(match={"resource": "secrets"}, times=0, warning=f"password {needle} is too weak")
        handler.answer({"children": [secret("s", needle)]})
        operator.configure(devserver, [watch("widgets", handler)])
    else:
        for resource in ("gadgets", "widgets"):
            devserver.fault(match={"resource": resource}, times=0, warning=f"password {needle} of {resource} is too weak")
        handler.answer({"children": [{**gadget, **child}], "status": {"seen": True}})
        operator.configure(devserver, [watch("widgets", handler, confidential=True, owns=[{**gadget, "confidential": True}])])
    operator.start_ready().wait_synced()
    api.resource("example.com/v1", "widgets", "default").create("w")
    operator.wait_for_log("the API server warns about what the handler's answer wrote: (the server's words are not shown")
    handler.wait_finished(name="w")
    operator.stop()
    assert needle not in operator.output.text()
