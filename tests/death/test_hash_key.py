# SPDX-License-Identifier: Apache-2.0
"""The key of hashes: made once, on the disk before it is used, told to nobody, and what happens when it is lost."""
import errno
import re
import shutil
import signal
import stat
import subprocess

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

from .conftest import SIGNAL


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "1h", "max": "1h"})], workers=1,
                       heartbeat={"interval": "100ms", "deadline": "10s"})
    return operator


def key_file(operator):
    return operator.state_directory / "hash.key"


def losses(operator):
    return operator.logs(where=lambda record: record.get("message_id") == MESSAGE_ID["HASH_KEY_LOST"])


def run_once(operator, handler, widgets, *names):
    """A life in which these are there; how often each has run since the first life."""
    for name in names:
        if not widgets.exists(name):
            widgets.create(name, spec={"size": 1})
    operator.start_ready().wait_synced()
    for name in names:
        handler.wait_finished(name=name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == operator.ctl.status()["watches"][0]["running"] == 0, "rest")
    return [len(handler.requests(name=name)) for name in names]


def test_it_is_for_its_owner_alone_and_stays(configured, devserver, handler, widgets):
    run_once(configured, handler, widgets, "a")
    state = key_file(configured).stat()
    key = key_file(configured).read_bytes()
    assert stat.S_IMODE(state.st_mode) == 0o600 and state.st_uid == configured.user.uid
    assert re.fullmatch(rb"[0-9a-f]{32} [0-9a-f]{16}\n", key)
    configured.configure(devserver, [watch("widgets", handler, retry={"first": "2h", "max": "2h"})], workers=1)
    configured.reload()
    widgets.create("b", spec={"size": 1})
    handler.wait_finished(name="b")
    configured.stop()
    assert run_once(configured, handler, widgets, "a", "b") == [1, 1]
    configured.stop()
    assert key_file(configured).read_bytes() == key and not losses(configured)


def test_it_is_on_the_disk_first(configured, shim, handler, widgets):
    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_SYNCS="reconciled hash.key")
    run_once(configured, handler, widgets, "a")
    configured.stop()
    [synced] = configured.state_directory.glob("hash.key*.synced")
    assert synced.read_bytes() == key_file(configured).read_bytes()


def damage(path, how):
    line = path.read_bytes()
    if how == "removed":
        path.unlink()
    elif how == "zeros":
        path.write_bytes(b"\0" * len(line))
    else:
        path.write_bytes({"cut": line[:20], "flipped": b"%c" % (line[0] ^ 1) + line[1:]}[how])


# Of another state folder.
FOREIGN = "0123456789abcdeffedcba9876543210 a1a36c8c25948c66\n"


def test_one_of_another_state_folder_is_used_and_that_is_said(configured, handler, widgets):
    assert run_once(configured, handler, widgets, "a") == [1]
    configured.stop()
    key_file(configured).write_text(FOREIGN, encoding="ascii")
    configured.start_ready().wait_synced()
    handler.wait_finished(name="a", count=2)
    [said] = losses(configured)
    assert said["level"] == "error" and "is not the one of the last start" in said["message"] and "1 objects" in said["message"]
    configured.stop()
    assert run_once(configured, handler, widgets, "a", "later") == [2, 1], "another start runs nothing again"
    configured.stop()
    assert key_file(configured).read_text(encoding="ascii") == FOREIGN and not losses(configured)


def test_a_copy_of_the_whole_state_folder_is_as_good_as_the_first(configured, handler, widgets):
    """As on another machine: what was handled is not handled again, and nothing is lost."""
    assert run_once(configured, handler, widgets, "a", "gone") == [1, 1]
    configured.stop()
    first = configured.state_directory
    copy = first.with_name("copy")
    subprocess.run(["cp", "-a", first, copy], check=True)
    shutil.rmtree(first)
    copy.rename(first)
    widgets.delete("gone")
    assert run_once(configured, handler, widgets, "a", "later") == [1, 1]
    handler.wait_finished(name="gone", action="deleted")
    configured.stop()
    assert not losses(configured)


@pytest.mark.parametrize("how", ["removed", "cut", "zeros", "flipped"])
def test_without_it_each_object_runs_once_and_that_is_said(configured, handler, widgets, how):
    assert run_once(configured, handler, widgets, "a", "gone") == [1, 1]
    configured.stop()
    before = key_file(configured).read_bytes()
    damage(key_file(configured), how)
    widgets.delete("gone")
    configured.start_ready().wait_synced()
    handler.wait_finished(name="a", count=2)
    handler.wait_finished(name="gone", action="deleted")
    [said] = losses(configured)
    assert said["level"] == "error" and str(key_file(configured)) in said["message"] and "2 objects" in said["message"]
    assert ("is missing" if how == "removed" else "is damaged") in said["message"]
    configured.stop()
    now = key_file(configured).read_bytes()
    assert now != before
    assert run_once(configured, handler, widgets, "a", "later") == [2, 1], "another start runs nothing again"
    configured.stop()
    assert key_file(configured).read_bytes() == now and not losses(configured)


def test_one_that_cannot_be_read_is_not_replaced(configured, handler, widgets):
    run_once(configured, handler, widgets, "a")
    configured.stop()
    before = key_file(configured).read_bytes()
    key_file(configured).chmod(0)
    configured.start()
    configured.wait_exit(expect=74)
    assert "hash.key: Permission denied" in configured.output.text()
    key_file(configured).chmod(0o644)
    assert run_once(configured, handler, widgets, "a", "b") == [1, 1]
    configured.stop()
    assert key_file(configured).read_bytes() == before and stat.S_IMODE(key_file(configured).stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_no_start_without_it(configured, shim, handler, widgets, number):
    armed = configured.folder / "armed"
    armed.touch()
    armed.chmod(0o644)
    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_ARMED=armed, RECONCILED_DEATH_WRITES=f"reconciled hash.key {number}")
    configured.start()
    configured.wait_exit(expect=74)
    configured.assert_no_processes()
    assert f"hash.key: {errno_text(number)}" in configured.output.text()
    assert not list(configured.state_directory.glob("hash.key*"))
    armed.unlink()
    assert run_once(configured, handler, widgets, "a") == [1]
    configured.stop()
    assert not losses(configured)


def errno_text(number):
    return {errno.ENOSPC: "No space left on device", errno.EIO: "Input/output error"}[number]


def test_killed_before_the_first_row(configured, shim, handler, widgets):
    once = configured.folder / "once"
    once.write_text("not yet", encoding="utf-8")
    configured.user.give(once)
    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH=f"reconciled hello {SIGNAL + signal.SIGKILL}",
                                  RECONCILED_DEATH_ONCE=once)
    configured.start()
    configured.wait_exit(expect=-signal.SIGKILL)
    key = key_file(configured).read_bytes()
    assert run_once(configured, handler, widgets, "a") == [1]
    configured.stop()
    assert key_file(configured).read_bytes() == key and not losses(configured)


def test_it_is_told_to_nobody(configured, handler, widgets):
    handler.behave("env; exit 1")
    run_once(configured, handler, widgets, "a")
    digits = key_file(configured).read_text(encoding="ascii").split()[0]
    halves = [digits[:16], digits[16:]]
    words = {word for half in halves for word in (half, bytes.fromhex(half)[::-1].hex())}
    said = [configured.ctl.run(*order).stdout for order in (("status", "--json"), ("explain", "--json", "widgets", "default/a"),
                                                            ("history", "--json", "widgets", "default/a"))]
    assert all(said)
    for process in configured.processes():
        said += [open(f"/proc/{process.pid}/{name}", encoding="latin-1").read() for name in ("cmdline", "environ")]
    configured.stop()
    said.append(configured.output.text())
    assert not [word for word in words for text in said if word in text]
