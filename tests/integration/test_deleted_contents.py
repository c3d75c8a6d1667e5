# SPDX-License-Identifier: Apache-2.0
"""Objects that are gone, and whose cleanup fails: each is remembered until it has succeeded, but their last contents fill neither
the disk nor the memory for Secrets, and those of one namespace leave room for another's."""
import base64
import os
import subprocess

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

FAILS = '[ "$RECONCILED_ACTION-$RECONCILED_NAMESPACE" = deleted-crowd ] && exit 75; exit 0'
LATE = {"first": "1h", "max": "1h"}


@pytest.fixture
def namespaces(api):
    for name in ("crowd", "quiet"):
        api.resource("v1", "namespaces").create(name)


@pytest.fixture
def small_disk(operator):
    if os.geteuid() != 0:
        pytest.skip("only root can mount one")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=48m,mode=0700,uid={operator.user.uid},gid={operator.user.uid}",
                    "reconciled-test", str(operator.state_directory)], check=True)
    yield operator.state_directory
    subprocess.run(["umount", "--lazy", str(operator.state_directory)], check=True)


def text(size):
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


def come_and_go(operator, handler, resource, count, at_once=4, **content):
    """So many objects, never more than a few at a time."""
    for first in range(0, count, at_once):
        names = [f"o{number}" for number in range(first, first + at_once)]
        for name in names:
            resource.create(name, **content)
        for name in names:
            handler.wait_for(name=name, action="reconcile")
            resource.delete(name)
        for name in names:
            handler.wait_for(name=name, action="deleted")


def shown(handler, name):
    """What `deleted` was shown of it."""
    return handler.requests(name=name, action="deleted")[0].object


def assert_told(operator, namespace):
    [told] = operator.logs(message_id=MESSAGE_ID["CONTENT_DROPPED"])
    assert f"of namespace {namespace} whose cleanup has not succeeded yet take all the room" in told["message"]
    wait_until(lambda: operator.ctl.status()["watches"][0]["contentsDropped"] > 0, "that it is counted")
    assert "found no room (see the log)" in operator.ctl.run("status").stdout


@pytest.mark.slow
def test_objects_that_are_gone_do_not_fill_the_disk(devserver, operator, handler, api, namespaces, small_disk):
    handler.behave(FAILS)
    operator.configure(devserver, [watch("widgets", handler, retry=LATE)],
                       workers=2, heartbeat={"interval": "100ms", "deadline": "20s"})
    operator.start_ready().wait_synced()
    crowd, quiet = (api.resource("example.com/v1", "widgets", name) for name in ("crowd", "quiet"))
    come_and_go(operator, handler, crowd, 80, spec={"text": text(800_000)})  # 64 MB
    assert shown(handler, "o0")["spec"], "there was room at first"
    assert shown(handler, "o79").keys() == {"apiVersion", "kind", "metadata"}
    assert shown(handler, "o79")["metadata"].keys() == {"name", "namespace", "uid"}
    assert_told(operator, "crowd")
    quiet.create("innocent", spec={"text": "x"})
    handler.wait_finished(name="innocent")
    quiet.delete("innocent")
    handler.wait_finished(name="innocent", action="deleted")
    assert shown(handler, "innocent")["spec"] == {"text": "x"}
    operator.stop()
    handler.forget()
    handler.behave("exit 0")
    operator.start_ready().wait_synced()
    operator.ctl.run("retry", "--all-failed", "widgets")
    for number in range(80):
        handler.wait_finished(name=f"o{number}", action="deleted")
    assert shown(handler, "o0")["spec"], "it was kept"
    operator.stop()


@pytest.mark.slow
def test_secrets_that_are_gone_leave_room_for_others(devserver, operator, handler, api, namespaces):
    handler.behave(FAILS)
    operator.configure(devserver, [watch("secrets", handler, api_version="v1", kind="Secret", retry=LATE)],
                       workers=2, secrets={"memory": "16MiB"}, heartbeat={"interval": "100ms", "deadline": "20s"})
    operator.start_ready().wait_synced()
    crowd, quiet = (api.resource("v1", "secrets", name) for name in ("crowd", "quiet"))
    come_and_go(operator, handler, crowd, 36, data={"a": text(600_000)})  # 22 MB
    assert shown(handler, "o0")["data"] and "data" not in shown(handler, "o35")
    assert_told(operator, "crowd")
    quiet.create("innocent", data={"a": "YQ=="})
    handler.wait_finished(name="innocent")
    quiet.delete("innocent")
    handler.wait_finished(name="innocent", action="deleted")
    assert shown(handler, "innocent")["data"] == {"a": "YQ=="}
    operator.stop()
