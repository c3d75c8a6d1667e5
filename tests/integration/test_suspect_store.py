# SPDX-License-Identifier: Apache-2.0
"""A store that a process has died over, or that is damaged, is built anew at the next start: one crash, no loop."""
import os
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import SANITIZED


@pytest.fixture
def configured(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler)], workers=1, heartbeat={"interval": "100ms", "deadline": "10s"})
    for i in range(40):
        widgets.create(f"w{i}", spec={"text": "x" * 2000, "size": 1})
    operator.start_ready().wait_synced()
    wait_until(lambda: handler.count() >= 40, "all to be handled")
    wait_until(lambda: operator.ctl.status()["workers"][0]["state"] == "idle", "the worker to be idle")
    return operator


def data_file(operator, name="widgets"):
    found = sorted((operator.state_directory / "store" / name).glob("*/data.mdb"))
    assert len(found) == 1
    return found[0]


def rebuilt(operator):
    return operator.logs(message_id=MESSAGE_ID["STORE_REBUILT"])


def assert_works_after_one_rebuild(operator, handler, widgets, why):
    before = handler.count()
    operator.start_ready().wait_synced()
    said = rebuilt(operator)
    assert len(said) == 1 and why in said[0]["message"], said
    widgets.create("new")
    handler.wait_finished(name="new")
    assert handler.count() == before + 1, "nothing is handled twice for it"
    operator.stop()
    operator.start_ready().wait_synced()
    operator.stop()
    assert not rebuilt(operator), "the mark is gone"


@pytest.mark.parametrize("number", [signal.SIGABRT, *([] if SANITIZED else [signal.SIGSEGV, signal.SIGBUS])])
@pytest.mark.slow
def test_a_watcher_that_dies_of_such_a_signal(configured, handler, widgets, number):
    configured.child("watcher").kill(number)
    configured.wait_exit(expect=70)
    assert_works_after_one_rebuild(configured, handler, widgets, f"a watcher died of {number.name}")


def test_a_watcher_that_is_killed_leaves_a_good_store(configured):
    configured.child("watcher").kill(signal.SIGKILL)
    configured.wait_exit(expect=70)
    configured.start_ready().wait_synced()
    configured.stop()
    assert not rebuilt(configured)


def test_a_worker_dies_while_it_uses_the_store(configured, handler, widgets):
    handler.behave("case $RECONCILED_NAME in poison) kill -ABRT $PPID; sleep 60;; esac")
    widgets.create("poison")
    configured.wait_exit(expect=70)
    handler.behave("exit 0")
    configured.start_ready().wait_synced()
    said = rebuilt(configured)
    assert len(said) == 1 and "a worker died of SIGABRT" in said[0]["message"]
    handler.wait_finished(name="poison", count=2)
    configured.stop()


@pytest.mark.plain_only(reason="the sanitizers take SIGBUS for themselves")
def test_a_live_store_is_truncated(configured, handler, widgets):
    """Whoever reads it next gets SIGBUS."""
    os.truncate(data_file(configured), 4096 * 2)
    widgets.merge_patch("w0", {"spec": {"size": 2}})
    configured.wait_exit(expect=70)
    handler.behave("exit 0")
    before = len(handler.requests(name="w0"))
    configured.start_ready().wait_synced()
    assert len(rebuilt(configured)) == 1
    handler.wait_finished(name="w0", count=before + 1)
    configured.stop()


@pytest.mark.plain_only(reason="the sanitizers take SIGBUS for themselves")
def test_a_store_is_truncated_while_nobody_runs(configured, handler, widgets):
    """It may be found at once, or by dying over it; then the next start has a new one."""
    configured.stop()
    os.truncate(data_file(configured), 4096 * 2)
    widgets.merge_patch("w0", {"spec": {"size": 2}})
    before, said = len(handler.requests(name="w0")), 0
    for _ in range(2):
        configured.start()
        wait_until(lambda: configured.popen.poll() is not None or
                   configured.logs(message_id=MESSAGE_ID["WATCH_SYNCED"]), "its sync or its end")
        said += len(rebuilt(configured))
        if configured.popen.poll() is None:
            break
        configured.wait_exit(expect=70)
    handler.wait_finished(name="w0", count=before + 1)
    assert said == 1
    configured.stop()


def scribble(path, text="x" * 100):
    """In place, under the running processes."""
    with open(path, "r+b") as file:
        content = file.read()
        assert text.encode() in content
        file.seek(0)
        file.write(content.replace(text.encode(), b"y" * len(text)))


def test_a_worker_that_reads_damage(configured, handler):
    """A wrong checksum is never shown to a handler; the store is built anew, and the object is not to blame."""
    before = handler.count()
    scribble(data_file(configured))
    assert configured.ctl.run("retry", "widgets", "default/w1").returncode == 0
    configured.wait_exit(expect=74)
    assert "damaged: a checksum that was read for default/w1" in configured.logs(level="critical")[0]["message"]
    configured.start_ready().wait_synced()
    assert len(rebuilt(configured)) == 1
    assert not configured.ctl.status()["quarantine"]
    wait_until(lambda: configured.ctl.run("retry", "widgets", "default/w1").returncode == 0, "its row")
    wait_until(lambda: handler.count() >= before + 1, "the run of w1")
    assert all("y" * 100 not in request.text for request in handler.requests())
    configured.stop()


@pytest.mark.parametrize("key", ["owns", "related"])
def test_damage_of_what_comes_with_the_request(devserver, operator, handler, widgets, api, key):
    """It is no failure of the handler, which is not begun."""
    other = {"apiVersion": "v1", "kind": "ConfigMap"}
    operator.configure(devserver, [watch("widgets", handler, **{key: [other]})], workers=1)
    uid = widgets.create("a")["metadata"]["uid"]
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": uid, "controller": True}
    api.resource("v1", "configmaps", "default").create("child", ownerReferences=[owner], data={"text": "x" * 500})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a", where=lambda run: run.body["children" if key == "owns" else "related"])
    wait_until(lambda: operator.ctl.status()["workers"][0]["state"] == "idle", "the worker to be idle")
    before = handler.count()
    name = f"widgets.{key}.ConfigMap.0"
    scribble(data_file(operator, name))
    widgets.merge_patch("a", {"spec": {"size": 2}})
    operator.wait_exit(expect=74)
    assert f"the object store of watch {name} is damaged" in operator.logs(level="critical")[0]["message"]
    operator.start_ready().wait_synced()
    assert len(rebuilt(operator)) == 1
    handler.wait_finished(name="a", where=lambda run: run.object.get("spec") == {"size": 2})
    operator.stop()
    assert all("y" * 100 not in request.text for request in handler.requests())
    assert handler.count() == before + 1


def test_damage_is_found_at_the_start(configured, handler, widgets):
    """Before anybody is told anything, and nobody ends for it."""
    configured.stop()
    scribble(data_file(configured))
    before = handler.count()
    configured.start_ready().wait_synced()
    assert len(rebuilt(configured)) == 1
    widgets.create("new")
    handler.wait_finished(name="new")
    assert handler.count() == before + 1
    configured.stop()
    assert not configured.logs(level="critical")


def test_a_watcher_that_reads_damage(configured, handler, widgets):
    """An event of a damaged object is not left out for it: the store is built anew, and the event comes again."""
    scribble(data_file(configured), widgets.get("w0")["metadata"]["uid"])
    widgets.merge_patch("w0", {"spec": {"size": 7}})
    configured.wait_exit(expect=70)
    assert len(rebuilt(configured)) == 1
    configured.start_ready().wait_synced()
    handler.wait_finished(name="w0", where=lambda run: run.object["spec"].get("size") == 7)
    configured.stop()
    assert not rebuilt(configured)


def test_an_event_takes_the_place_of_damage(configured, handler, widgets):
    """The watcher looks at which version is stored, not at the JSON: that of the others is found damaged by who reads it."""
    scribble(data_file(configured))
    widgets.merge_patch("w0", {"spec": {"text": "z", "size": 7}})
    handler.wait_finished(name="w0", where=lambda run: run.object["spec"] == {"text": "z", "size": 7})
    before = handler.count()
    configured.stop()
    assert not rebuilt(configured)
    configured.start_ready().wait_synced()
    assert len(rebuilt(configured)) == 1
    configured.stop()
    assert handler.count() == before
