# SPDX-License-Identifier: Apache-2.0
"""`previous: true`: the handler is given the object as it was at its last success, or nothing."""
import os
import shutil
import signal
import subprocess

import pytest

from harness import scaled, wait_until, watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def begin(devserver, operator, handler, widgets):
    def start(**options):
        extra = options.pop("config", {})
        operator.configure(devserver, [watch("widgets", handler, previous=True, **options)], **extra)
        operator.start_ready()
        return widgets

    return start


def kill(operator):
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)


def previous(request):
    return request.body.get("previous")


def test_the_object_of_the_last_success_is_given(begin, handler, widgets):
    begin()
    widgets.create("w", spec={"size": 1})
    first = handler.wait_for(name="w")
    assert previous(first) is None
    widgets.merge_patch("w", {"spec": {"size": 2}})
    second = handler.wait_for(name="w", count=2)
    assert previous(second) == first.body["object"] and second.body["object"]["spec"] == {"size": 2}
    widgets.merge_patch("w", {"spec": {"size": 3}})
    assert previous(handler.wait_for(name="w", count=3)) == second.body["object"]


def test_an_attempt_that_fails_changes_nothing(begin, handler, widgets, operator):
    begin(retry={"first": "50ms", "max": "50ms"})
    widgets.create("w", spec={"size": 1})
    first = handler.wait_for(name="w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    handler.behave("exit 1")
    widgets.merge_patch("w", {"spec": {"size": 2}})
    handler.wait_for(name="w", count=3)
    handler.behave("exit 0")
    widgets.merge_patch("w", {"spec": {"size": 3}})
    last = handler.wait_for(name="w", where=lambda request: request.body["object"]["spec"]["size"] == 3)
    assert previous(last) == first.body["object"]


@pytest.mark.parametrize("end", [lambda operator: operator.stop(), kill], ids=["stop", "kill"])
def test_it_is_known_after_a_restart(begin, handler, widgets, operator, end):
    begin()
    widgets.create("w", spec={"size": 1})
    first = handler.wait_for(name="w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    end(operator)
    widgets.merge_patch("w", {"spec": {"size": 2}})
    operator.start_ready()
    assert previous(handler.wait_for(name="w", count=2)) == first.body["object"]


def test_a_crash_before_the_end_of_a_run_takes_no_difference_away(begin, handler, widgets, operator):
    begin()
    widgets.create("w", spec={"size": 1})
    first = handler.wait_for(name="w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    handler.behave(handler.held)
    widgets.merge_patch("w", {"spec": {"size": 2}})
    handler.wait_for(name="w", count=2)
    kill(operator)
    handler.behave("exit 0")
    operator.start_ready()
    again = handler.wait_for(name="w", count=3)
    assert previous(again) == first.body["object"] and again.body["object"]["spec"] == {"size": 2}


@pytest.mark.parametrize("state", ["another boot", None])
def test_after_a_power_loss_it_is_absent(begin, handler, widgets, operator, state):
    begin()
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    kill(operator)
    mark = operator.state_directory / "store/widgets/previous/STATE"
    assert mark.exists()
    mark.unlink()
    if state:
        mark.write_text(state, encoding="utf-8")
        operator.user.give(mark, 0o600)
    widgets.merge_patch("w", {"spec": {"size": 2}})
    operator.start_ready()
    assert previous(handler.wait_for(name="w", count=2)) is None
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    widgets.merge_patch("w", {"spec": {"size": 3}})
    assert previous(handler.wait_for(name="w", count=3))["spec"] == {"size": 2}


def test_another_object_of_the_name_has_none(begin, handler, widgets):
    begin(finalizer=True)
    widgets.create("w", spec={"size": 1})
    handler.wait_for(name="w", action="reconcile")
    widgets.delete("w")
    assert previous(handler.wait_for(name="w", action="finalize"))["spec"] == {"size": 1}
    wait_until(lambda: not widgets.exists("w"), "the end")
    handler.forget()
    widgets.create("w", spec={"size": 1})
    assert previous(handler.wait_for(name="w", action="reconcile")) is None


def test_a_deletion_shows_it(begin, handler, widgets):
    begin()
    widgets.create("w", spec={"size": 1})
    given = handler.wait_for(name="w").body["object"]
    widgets.delete("w")
    assert previous(handler.wait_for(name="w", action="deleted")) == given


def test_while_children_settle_nothing_has_succeeded(begin, handler, widgets, api):
    """What the handler was given counts once all are ready, not before, and not what came in between."""
    child = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"c"},"spec":{"replicas":%d}}'
    handler.behave("printf '%s\\n' '{\"children\": [" + child % 1 + "]}'")
    begin(owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}], children={"wait": "10m"}, readyCondition=True)
    deployments = api.resource("apps/v1", "deployments", "default")

    def ready():
        deployment = deployments.get("c")
        deployments.merge_patch("c", {"status": {"observedGeneration": deployment["metadata"]["generation"], "replicas": 1,
                                                 "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}},
                                subresource="status")

    widgets.create("w", spec={"size": 1})
    first = handler.wait_for(name="w")
    wait_until(lambda: deployments.exists("c"), "the child")
    ready()
    wait_until(lambda: any(entry["type"] == "Ready" and entry["status"] == "True"
                           for entry in widgets.get("w")["status"]["conditions"]), "the success")
    handler.behave("printf '%s\\n' '{\"children\": [" + child % 2 + "]}'")
    widgets.merge_patch("w", {"spec": {"size": 2}})
    second = handler.wait_for(name="w", where=lambda request: request.body["object"]["spec"]["size"] == 2)
    assert previous(second)["spec"] == first.body["object"]["spec"]
    widgets.merge_patch("w", {"spec": {"size": 3}})
    third = handler.wait_for(name="w", where=lambda request: request.body["object"]["spec"]["size"] == 3)
    assert previous(third)["spec"] == {"size": 1}, "the attempt of size 2 never was ready"


def test_one_that_finds_no_room_is_absent_and_told(begin, handler, widgets, operator):
    begin(config={"previous": {"total": "1Mi"}})
    for index in range(6):
        widgets.create(f"w{index}", spec={"text": "x" * 250_000})
        handler.wait_for(name=f"w{index}")
    operator.wait_for_log("previous.total", message_id=MESSAGE_ID["PREVIOUS_NOT_KEPT"], watch="widgets")
    lost = wait_until(lambda: operator.ctl.status()["watches"][0]["previousNotKept"], "the count")
    assert 1 <= lost <= 3 and "the object was not kept for `previous`" in operator.ctl.run("status").stdout
    for index in range(6):
        widgets.merge_patch(f"w{index}", {"spec": {"size": 1}})
    given = [handler.wait_for(name=f"w{index}", count=2) for index in range(6)]
    assert sum(previous(request) is None for request in given) >= lost
    assert all(previous(request)["spec"] == {"text": "x" * 250_000} for request in given if previous(request))


def test_without_the_key_nothing_is_kept(begin, handler, widgets, operator, devserver):
    begin()
    widgets.create("w", spec={"size": 1})
    handler.wait_for(name="w")
    operator.stop()
    folder = operator.state_directory / "store/widgets/previous"
    assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "kept/1/data.mdb").stat().st_mode & 0o777 == 0o600
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready()
    assert not folder.exists()


def test_never_of_secrets(devserver, operator, handler):
    operator.configure(devserver, [watch("secrets", handler, apiVersion="v1", kind="Secret", previous=True)])
    operator.start()
    operator.wait_exit(expect=78)
    operator.wait_for_log("watches[0].previous: is not kept of Secrets")


def test_each_object_has_its_own(begin, handler, widgets):
    begin()
    for index in range(4):
        widgets.create(f"w{index}", spec={"size": index})
        handler.wait_for(name=f"w{index}")
    for index in range(4):
        widgets.merge_patch(f"w{index}", {"spec": {"size": 10 + index}})
    for index in range(4):
        assert previous(handler.wait_for(name=f"w{index}", count=2))["spec"] == {"size": index}


def test_a_run_by_hand_asks_the_operator(begin, handler, widgets, operator, by_hand):
    handler.behave("printf '%s\\n' '{\"status\": {\"seen\": 1}}'")
    begin(handler_options={"dryRun": True})
    widgets.create("w", spec={"size": 1})
    first = handler.wait_for(name="w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    for verb in (["run", "--object", "default/w"], ["plan"]):
        by_hand("--runtime-directory", str(operator.runtime_directory), *verb)
        tried = handler.wait_for(name="w", where=lambda request: request.body.get("dryRun"))
        assert previous(tried) == first.body["object"]
        handler.forget()
    operator.stop()
    by_hand("--runtime-directory", str(operator.runtime_directory), "plan")
    assert previous(handler.wait_for(name="w")) is None


@pytest.mark.parametrize("damage", ["garbage", "a file in its place", "removed"])
def test_what_is_damaged_is_begun_anew(begin, handler, widgets, operator, damage):
    begin()
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    operator.stop()
    kept = operator.state_directory / "store/widgets/previous/kept"
    if damage == "garbage":
        (kept / "1/data.mdb").write_bytes(b"?" * 65536)
    else:
        shutil.rmtree(kept)
    if damage == "a file in its place":
        kept.write_text("?", encoding="utf-8")
        operator.user.give(kept, 0o600)
    operator.start_ready()
    for size in (2, 3):
        widgets.merge_patch("w", {"spec": {"size": size}})
        wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == size - 1, "the end of the run")  # noqa: B023
    assert previous(handler.requests(name="w")[1]) is None
    widgets.merge_patch("w", {"spec": {"size": 4}})
    assert previous(handler.wait_for(name="w", count=4))["spec"]["size"] == 3
    if damage != "removed":
        operator.wait_for_log("is damaged, and is begun anew", message_id=MESSAGE_ID["PREVIOUS_NOT_KEPT"])


def test_objects_that_go_without_a_run_leave_their_room(begin, handler, widgets, operator):
    """They leave the selection, and nobody is told."""
    begin(config={"previous": {"total": "1Mi"}}, labelSelector="in=yes")
    for index in range(12):
        widgets.create(f"w{index}", spec={"text": "x" * 250_000}, labels={"in": "yes"})
        handler.wait_for(name=f"w{index}")
        wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == index + 1, "the end of the run")  # noqa: B023
        widgets.merge_patch(f"w{index}", {"metadata": {"labels": {"in": "no"}}})
        wait_until(lambda: operator.ctl.status()["watches"][0]["objects"] == 0, "it to go")
    assert operator.ctl.status()["watches"][0]["previousNotKept"] == 0


def test_attempts_that_never_settle_leave_their_room(begin, handler, widgets, operator):
    child = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"c"},"spec":{"replicas":1}}'
    handler.behave("printf '%s\\n' '{\"children\": [" + child + "]}'")
    begin(config={"previous": {"total": "1Mi"}}, owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}], children={"wait": "10m"})
    widgets.create("w", spec={"text": "x" * 200_000, "size": 0})
    for size in range(1, 12):
        handler.wait_for(name="w", where=lambda request: request.body["object"]["spec"]["size"] == size - 1)  # noqa: B023
        widgets.merge_patch("w", {"spec": {"size": size}})
    handler.wait_for(name="w", where=lambda request: request.body["object"]["spec"]["size"] == 11)
    assert (operator.state_directory / "store/widgets/previous/kept/1/data.mdb").stat().st_size < 3_000_000
    assert not operator.logs(message_id=MESSAGE_ID["PREVIOUS_NOT_KEPT"])


@pytest.mark.skipif(os.geteuid() != 0, reason="it needs a folder that the operator cannot remove")
def test_without_a_place_for_it_the_operator_starts(begin, handler, widgets, operator):
    store = operator.state_directory / "store/widgets"
    (store / "previous/of-root").mkdir(parents=True)
    for path in (store.parent, store):
        operator.user.give(path, 0o700)
    begin()
    operator.wait_for_log("previous cannot be prepared", message_id=MESSAGE_ID["PREVIOUS_NOT_KEPT"])
    widgets.create("w", spec={"size": 1})
    handler.wait_for(name="w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["previousNotKept"] == 1, "the count")


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about what root does with files of another user")
def test_root_follows_no_link_of_the_operators_user(begin, handler, widgets, operator, sandbox):
    begin(handler_options={"dryRun": True})
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the end of the run")
    victim = sandbox.subfolder("victim", mode=0o755) / "victim"
    victim.write_text("precious", encoding="utf-8")
    victim.chmod(0o600)
    store = operator.state_directory / "store/widgets"
    for lock in [*store.glob("*/lock.mdb"), store / "previous/kept/1/lock.mdb"]:
        lock.unlink()
        lock.symlink_to(victim)
    for command in (["explain", "widgets", "default/w"], ["--config", operator.config_file, "plan"]):
        subprocess.run([sandbox.program("reconciledctl"), "--runtime-directory", operator.runtime_directory, *command],
                       check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=scaled(60))
    assert victim.read_text(encoding="utf-8") == "precious"


def test_it_is_recorded_and_replayed(begin, handler, widgets, operator, by_hand, sandbox):
    handler.behave("cat >/dev/null")
    folder = sandbox.subfolder("records", operator.user, 0o700)
    begin(config={"record": str(folder)})
    for size in (1, 2):
        widgets.create("w", spec={"size": 1}) if size == 1 else widgets.merge_patch("w", {"spec": {"size": 2}})
        handler.wait_for(name="w", count=size)
    operator.stop()
    handler.forget()
    by_hand("replay", folder)
    assert [previous(request) and previous(request)["spec"] for request in handler.requests()] == [None, {"size": 1}]
