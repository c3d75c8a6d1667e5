# SPDX-License-Identifier: Apache-2.0
"""A database that is restored from a backup while a deletion is pending: the object is there again, under its UID."""
import os
import signal
import time

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def configured(devserver, operator, handler):
    def configured(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator

    return configured


def actions(handler, name="a"):
    return [request.body["action"] for request in handler.requests(name=name)]


def delete_after_backup(devserver, handler, widgets):
    """The backup that still has it."""
    widgets.create("a")
    handler.wait_finished(name="a")
    backup = devserver.snapshot()
    for number in range(5):  # so that the version of what is restored is lower in any case
        widgets.create(f"later-{number}")
        handler.wait_finished(name=f"later-{number}")
    widgets.delete("a")
    return backup


def wait_restored(operator, handler):
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    request = handler.wait_finished(name="a", where=lambda request: request.body["reason"] == "restored")
    assert request.body["action"] == "reconcile" and request.body["attempt"] == 1
    wait_until(lambda: ledger.read(operator, "SELECT key FROM ledger WHERE key = 'default/a' AND fingerprint != 0 AND deleting = 0"),
               "its row to say that it is handled")


@pytest.mark.parametrize("when", ["running", "stopped"])
def test_a_pending_deletion_is_withdrawn(devserver, configured, handler, widgets, when):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ]')
    operator = configured(retry={"first": "2s", "max": "2s"})
    operator.start_ready().wait_synced()
    backup = delete_after_backup(devserver, handler, widgets)
    handler.wait_finished(name="a", action="deleted")
    if when == "stopped":
        wait_until(lambda: ledger.read(operator, "SELECT key FROM ledger WHERE deleting = 1 AND attempts > 0"), "its record")
        operator.stop()
    devserver.restore(backup)
    if when == "stopped":
        operator.start_ready()
    wait_restored(operator, handler)
    told = actions(handler)
    widgets.create("b")
    handler.wait_finished(name="b")
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("c")
    handler.wait_finished(name="c")
    operator.stop()
    assert told[-1] == "reconcile" and actions(handler) == told, "nothing is told of an end, nor after a restart"


def test_a_deletion_under_way_is_withdrawn(devserver, configured, handler, widgets):
    """Its handler is ended, and however that run ends, it does not come back."""
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || [ "$RECONCILED_NAME" != a ] || exec sleep 600')
    operator = configured(retry={"first": "10ms", "max": "10ms"}, handler_options={"grace": "100ms"})
    operator.start_ready().wait_synced()
    backup = delete_after_backup(devserver, handler, widgets)
    handler.wait_for(name="a", action="deleted")
    devserver.restore(backup)
    wait_restored(operator, handler)
    operator.stop()
    assert actions(handler) == ["reconcile", "deleted", "reconcile"]


@pytest.mark.slow
def test_what_goes_back_right_after_its_run_is_reconciled(devserver, configured, handler, widgets):
    """Its version is below that of the status which that run has written: it is no echo of it."""
    handler.behave("echo '{\"status\":{\"run\":\"'$$'\"}}'")
    operator = configured()
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    backup = devserver.snapshot()
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_finished(name="a", where=lambda request: request.object["spec"] == {"size": 2})
    for number in range(20):
        widgets.create(f"later-{number}")
    handler.wait_finished(name="later-19")
    widgets.merge_patch("a", {"spec": {"size": 3}})
    changed = int(widgets.get("a")["metadata"]["resourceVersion"])
    wait_until(lambda: ledger.read(operator, f"SELECT key FROM ledger WHERE key = 'default/a' AND known_version >= {changed}"),
               "the end of its run")
    devserver.restore(backup)
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    handler.wait_finished(name="a", count=2, where=lambda request: request.object["spec"] == {"size": 1})
    operator.stop()


@pytest.mark.slow
def test_what_changes_right_after_a_restore_is_reconciled(devserver, configured, handler, widgets):
    """It went back to what was handled last; its next version is below what we had written meanwhile."""
    handler.behave("echo '{\"status\":{\"run\":\"'$$'\"}}'")
    operator = configured()
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    backup = devserver.snapshot()
    for number in range(20):
        widgets.create(f"later-{number}")
    for count, size in ((1, 2), (2, 1)):
        widgets.merge_patch("a", {"spec": {"size": size}})
        handler.wait_finished(name="a", count=count, where=lambda request, size=size: request.object["spec"] == {"size": size})
    changed = int(widgets.get("a")["metadata"]["resourceVersion"])
    wait_until(lambda: ledger.read(operator, f"SELECT key FROM ledger WHERE key = 'default/a' AND known_version >= {changed - 1}"),
               "the end of its run")
    devserver.restore(backup)
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    widgets.merge_patch("a", {"spec": {"size": 3}})
    handler.wait_finished(name="a", where=lambda request: request.object["spec"] == {"size": 3})
    operator.stop()


def test_a_finalize_that_wants_to_come_again_and_is_done_is_over(configured, handler, widgets):
    """requeueAfter beside success: the object is released, and nothing is left to come back for."""
    handler.answer({"requeueAfter": "1h"})
    operator = configured(finalizer=True)
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    widgets.delete("a")
    handler.wait_finished(name="a", action="finalize")
    wait_until(lambda: not ledger.read(operator, "SELECT key FROM ledger"), "its row to go")
    widgets.create("b")
    handler.wait_finished(name="b")
    operator.stop()
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"]), operator.output.text()
    assert actions(handler) == ["reconcile", "finalize"]


@pytest.mark.slow
def test_a_change_after_a_restore_is_no_write_of_ours_after_a_restart(devserver, configured, handler, widgets):
    """Its version is lower than that of our last write before the restore, which was a moment ago."""
    handler.behave("echo '{\"status\": {\"run\": \"'$(date +%s%N)'\"}}'")
    operator = configured()
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"n": 1})
    handler.wait_finished(name="a")
    wait_until(lambda: "status" in widgets.get("a"), "the status")
    backup = devserver.snapshot()
    for number in range(30):
        widgets.create(f"later-{number}")
    operator.ctl.run("retry", "widgets", "default/a")
    handler.wait_finished(name="a", count=2)
    wait_until(lambda: ledger.read(operator, "SELECT 1 FROM ledger WHERE key = 'default/a' AND known_version > 30"), "its last write")
    devserver.restore(backup)
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    assert operator.ctl.run("pause", "widgets").returncode == 0
    widgets.merge_patch("a", {"spec": {"n": 2}})
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] + operator.ctl.status()["watches"][0]["waiting"] > 0, "it to be queued")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.start_ready()
    assert operator.ctl.run("resume", "widgets").returncode == 0
    handler.wait_finished(name="a", where=lambda request: request.object["spec"] == {"n": 2})
    operator.stop()


def test_what_lives_again_while_it_is_finalized_is_not_released(devserver, configured, sandbox, handler, widgets):
    """The conflict of our release is not overcome: the object is not being deleted any more."""
    gate = sandbox.subfolder("gate", mode=0o777)
    handler.behave(f'[ "$RECONCILED_ACTION" = reconcile ] || {{ touch {gate}/waiting; until [ -e {gate}/open ]; do sleep 0.05; done; }}')
    operator = configured(finalizer=True)
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"n": 1})
    handler.wait_finished(name="a")
    backup = devserver.snapshot()
    for number in range(5):
        widgets.create(f"later-{number}")
        handler.wait_finished(name=f"later-{number}")
    widgets.delete("a")
    wait_until((gate / "waiting").exists, "the finalize")
    devserver.restore(backup)
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    (gate / "open").touch()
    handler.wait_for(name="a", action="reconcile", count=2)
    assert widgets.get("a")["metadata"]["finalizers"] == ["widgets.example.com/finalizer"]
    assert not operator.logs(message_id=MESSAGE_ID["FINALIZER_RESTORED"]), "it was never taken off"
    widgets.delete("a")
    wait_until(lambda: not widgets.exists("a"), "its end")
    assert actions(handler) == ["reconcile", "finalize", "reconcile", "finalize"]
    operator.stop()


@pytest.mark.parametrize("name", ["b", "a"], ids=["gone", "another one of its name"])
def test_what_was_being_deleted_and_is_gone_with_a_restore_is_finalized(devserver, configured, handler, widgets, name):
    """Nobody has taken our finalizer away: the object was made after the backup."""
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || [ -e "${0%/*}/clean" ]')
    operator = configured(finalizer=True, retry={"first": "50ms", "max": "100ms"})
    operator.start_ready().wait_synced()
    (handler.folder / "clean").touch()
    widgets.create("a")
    handler.wait_finished(name="a")
    backup = devserver.snapshot()
    for number in range(5):
        widgets.create(f"later-{number}")
        handler.wait_finished(name=f"later-{number}")
    if name == "a":
        widgets.delete("a")
        wait_until(lambda: not widgets.exists("a"), "the end of the first")
    (handler.folder / "clean").unlink()
    uid = widgets.create(name)["metadata"]["uid"]

    def is_its(request):
        return request.metadata["uid"] == uid

    handler.wait_finished(name=name, where=is_its)
    widgets.delete(name)
    handler.wait_finished(name=name, action="finalize", where=is_its)
    devserver.restore(backup)
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    (handler.folder / "clean").touch()
    wait_until(lambda: [request for request in handler.requests(name=name, action="finalize", where=is_its) if request.exit_code == 0],
               lambda: f"its cleanup; {operator.output.text()}")
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])
    operator.stop()


FINALIZER = "widgets.example.com/finalizer"


def is_stored(operator, text):
    """In the object store's file, whoever has read it or not."""
    return any(text in path.read_bytes() for path in operator.state_directory.glob("store/**/data.mdb"))


def change_unheard(operator, widgets, body, text):
    """The watcher has the change in its store; the supervisor is killed before it can hear of that."""
    os.kill(operator.pid, signal.SIGSTOP)
    widgets.merge_patch("a", body)
    wait_until(lambda: is_stored(operator, text), "the change in the store")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)


def write_after_backup(devserver, operator, handler, widgets):
    """Our last write to `a`, a moment ago, has a version that the backup, which is returned, has not reached."""
    handler.behave("echo '{\"status\": {\"run\": \"'$(date +%s%N)'\"}}'")
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"n": 1})
    handler.wait_finished(name="a")
    wait_until(lambda: "status" in widgets.get("a"), "the status")
    backup = devserver.snapshot()
    for number in range(30):
        widgets.create(f"later-{number}")
    handler.wait_finished(name="later-29")
    operator.ctl.run("retry", "widgets", "default/a")
    handler.wait_finished(name="a", count=2)
    wait_until(lambda: ledger.read(operator, "SELECT 1 FROM ledger WHERE key = 'default/a' AND known_version > 30"), "its last write")
    return backup


@pytest.mark.slow
def test_a_change_that_the_supervisor_has_not_heard_of_is_no_write_of_ours(devserver, configured, handler, widgets):
    """Killed between the watcher's commit and the supervisor's, and started within the time in which a low version passes for an echo."""
    operator = configured()
    backup = write_after_backup(devserver, operator, handler, widgets)
    devserver.restore(backup)
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    change_unheard(operator, widgets, {"spec": {"n": 2, "word": "unheard"}}, b"unheard")
    operator.start_ready()
    handler.wait_finished(name="a", where=lambda request: request.object["spec"].get("n") == 2)
    operator.stop()


@pytest.mark.parametrize("known", ["seen", "not seen"])
def test_a_change_after_a_restore_is_no_write_of_ours_though_the_store_is_lost(devserver, configured, handler, widgets, known):
    """Nothing but the ledger tells of the lost time, and only the watcher of the last life had seen the restore, if any had."""
    operator = configured()
    backup = write_after_backup(devserver, operator, handler, widgets)
    if known == "seen":
        devserver.restore(backup)
        operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    if known == "not seen":
        devserver.restore(backup)
    for path in operator.state_directory.glob("store/**/data.mdb"):
        path.unlink()
    widgets.merge_patch("a", {"spec": {"n": 2}})
    operator.start_ready()
    handler.wait_finished(name="a", where=lambda request: request.object["spec"] == {"n": 2})
    operator.stop()


@pytest.fixture
def across(devserver, configured, sandbox, handler, widgets):
    """A run that has put the finalizer on before the restore, and ends when across() is called."""
    gate = sandbox.subfolder("gate", mode=0o777)
    handler.behave(f'[ "$RECONCILED_NAME" != a ] || {{ touch {gate}/waiting; until [ -e {gate}/open ]; do sleep 0.05; done; }}')
    widgets.create("a", spec={"n": 1})
    backup = devserver.snapshot()
    for number in range(30):
        widgets.create(f"later-{number}")
    operator = configured(finalizer=True).start_ready()
    wait_until((gate / "waiting").exists, "the run")
    assert widgets.get("a")["metadata"]["finalizers"] == [FINALIZER]
    devserver.restore(backup)
    operator.wait_for_log(message_id=MESSAGE_ID["DATABASE_RESTORED"])
    restored = time.monotonic()

    def across():
        (gate / "open").touch()
        handler.wait_finished(name="a")
        wait_until(lambda: ledger.read(operator, "SELECT 1 FROM ledger WHERE key = 'default/a' AND fingerprint != 0"), "its end on record")
        return operator

    across.operator, across.restored = operator, restored
    return across


def test_a_run_from_before_a_restore_claims_nothing_of_after_a_restart(across, handler, widgets):
    operator = across()
    change_unheard(operator, widgets, {"spec": {"n": 2, "word": "unheard"}}, b"unheard")
    operator.start_ready()
    handler.wait_finished(name="a", where=lambda request: request.object["spec"].get("n") == 2)
    operator.stop()


@pytest.mark.parametrize("when", ["during", "after"])
@pytest.mark.slow
def test_a_run_from_before_a_restore_claims_nothing_of_long_after(across, handler, widgets, when):
    """It ends after the time in which the watcher leaves versions out."""
    wait_until(lambda: time.monotonic() - across.restored > 11, "that time")
    if when == "after":
        across()
    widgets.merge_patch("a", {"spec": {"n": 2}})
    if when == "during":
        wait_until(lambda: is_stored(across.operator, b'"n":2'), "the change in the store")
        across()
    handler.wait_finished(name="a", where=lambda request: request.object["spec"].get("n") == 2)
    across.operator.stop()
