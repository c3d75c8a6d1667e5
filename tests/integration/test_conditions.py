# SPDX-License-Identifier: Apache-2.0
"""status.conditions: merged by type, times and generations kept right, and the framework's own Ready."""
import json

import pytest

from harness import wait_until, watch

WARM = {"type": "Warm", "status": "True", "reason": "Heated", "message": "by the sun"}


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator.start_ready().wait_synced()

    return start


def conditions(widgets, name):
    return {entry["type"]: entry for entry in widgets.get(name).get("status", {}).get("conditions", [])}


def wait_condition(widgets, name, kind, **fields):
    def holds():
        found = conditions(widgets, name).get(kind, {})
        return found if all(found.get(key) == value for key, value in fields.items()) else None

    return wait_until(holds, f"{kind} {fields}")


def status_writes(devserver, name):
    return devserver.requests(lambda request: request.get("verb") == "patch" and request.get("name") == name)


def test_merged_by_type_with_time_and_generation(start, handler, widgets):
    handler.answer({"conditions": [WARM]})
    start()
    widgets.create("a", spec={"size": 1})
    first = wait_condition(widgets, "a", "Warm", status="True")
    assert first == {**WARM, "observedGeneration": 1, "lastTransitionTime": first["lastTransitionTime"]}
    others = {"type": "Other", "status": "False", "reason": "Mine", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    moved = {**first, "lastTransitionTime": "2020-01-01T00:00:00Z"}
    widgets.merge_patch("a", {"status": {"conditions": [others, moved]}}, subresource="status")
    handler.answer({"conditions": [{**WARM, "message": "by the stove"}]})
    widgets.merge_patch("a", {"spec": {"size": 2}})
    second = wait_condition(widgets, "a", "Warm", message="by the stove")
    assert second["lastTransitionTime"] == "2020-01-01T00:00:00Z", "the status has not changed"
    assert second["observedGeneration"] == 2
    assert conditions(widgets, "a")["Other"] == others
    handler.answer({"conditions": [{"type": "Warm", "status": "False"}]})
    widgets.merge_patch("a", {"spec": {"size": 3}})
    third = wait_condition(widgets, "a", "Warm", status="False")
    assert third["lastTransitionTime"] > "2020-01-01T00:00:00Z" and third["reason"] == "Failed"


def test_one_request_for_status_and_conditions_and_none_for_nothing(start, operator, handler, widgets, devserver):
    handler.answer({"status": {"big": 123456789012345, "size": 1}, "conditions": [WARM]})
    start(readyCondition=True)
    widgets.create("a")
    wait_condition(widgets, "a", "Ready", status="True", reason="Reconciled")
    assert widgets.get("a")["status"]["size"] == 1
    widgets.merge_patch("a", {"metadata": {"labels": {"again": "1"}}})
    handler.wait_finished(name="a", count=2)
    operator.stop()
    writes = status_writes(devserver, "a")
    assert len(writes) == 2, "the status, and what the test has changed"
    assert handler.count() == 2, "own status writes cause no run"


@pytest.mark.slow
def test_ready_keeps_the_first_cause_through_all_retries(start, operator, handler, widgets, devserver):
    handler.behave('[ "$RECONCILED_ATTEMPT" -gt 1 ] || { echo the database is missing >&2; exit 1; }\n'
                   '[ "$RECONCILED_ATTEMPT" -gt 4 ] || { echo a lock is held >&2; exit 1; }\necho "{}"')
    start(readyCondition=True, retry={"first": "300ms", "max": "300ms"})
    widgets.create("a", spec={"size": 1})
    seen = wait_condition(widgets, "a", "Ready", status="False", reason="ReconcileFailed")
    assert "the database is missing" in seen["message"]
    both = wait_until(lambda: "a lock is held" in conditions(widgets, "a")["Ready"]["message"]
                      and conditions(widgets, "a")["Ready"], "the last cause")
    assert both["message"].index("the database is missing") < both["message"].index("; last: ")
    assert both["lastTransitionTime"] == seen["lastTransitionTime"] and both["observedGeneration"] == 1
    ready = wait_condition(widgets, "a", "Ready", status="True", reason="Reconciled")
    assert ready["message"] == ""
    operator.stop()
    assert handler.count() == 5
    assert len(status_writes(devserver, "a")) == 3, "no write where nothing changes"


def test_with_trigger_any_a_failure_does_not_trigger_itself(start, operator, handler, widgets):
    handler.behave("echo no >&2; exit 1")
    start(readyCondition=True, trigger="any", retry={"first": "10m", "max": "10m"})
    widgets.create("a")
    wait_condition(widgets, "a", "Ready", status="False")
    handler.behave("exit 0")
    widgets.create("b")
    handler.wait_finished(name="b")
    wait_condition(widgets, "b", "Ready", status="True")
    operator.stop()
    assert len(handler.requests(name="a")) == 1 and len(handler.requests(name="b")) == 1


def test_a_permanent_failure_and_a_failed_cleanup_say_so(start, handler, widgets):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] && exit 65; echo the disk is still mounted >&2; exit 1')
    start(readyCondition=True, finalizer=True)
    widgets.create("a")
    wait_condition(widgets, "a", "Ready", status="False", reason="PermanentFailure")
    widgets.delete("a")
    seen = wait_condition(widgets, "a", "Ready", status="False", reason="CleanupFailed")
    assert "the disk is still mounted" in seen["message"]


def test_a_status_that_cannot_be_written_changes_no_result(start, operator, handler, widgets, devserver):
    handler.behave("echo no >&2; exit 75")
    devserver.fault(match={"verb": "patch", "resource": "widgets/status"}, times=0, status=500, message="not today")
    start(readyCondition=True, retry={"first": "10ms", "max": "10ms"})
    widgets.create("a")
    handler.wait_finished(name="a", count=3)
    operator.stop()
    assert [request.body["attempt"] for request in handler.requests()][:3] == [1, 2, 3]


def test_a_change_of_others_is_not_undone(start, handler, widgets):
    """The object changes while the handler runs: the conditions that it brings are merged into the new ones."""
    handler.behave(f"[ -e {handler.folder}/go ] || {{ touch {handler.folder}/running; "
                   f"{handler.held}; }}\n"
                   f"echo '{json.dumps({'conditions': [WARM]})}'")
    start()
    widgets.create("a")
    wait_until((handler.folder / "running").exists, "the run")
    widgets.merge_patch("a", {"status": {"conditions": [{"type": "Other", "status": "True", "reason": "Mine"}]}},
                        subresource="status")
    handler.let_go()
    wait_condition(widgets, "a", "Warm", status="True")
    assert "Other" in conditions(widgets, "a")


def test_of_what_is_deleted_nothing_is_written(start, operator, handler, widgets, devserver):
    handler.answer({"conditions": [WARM]})
    start()
    widgets.create("a")
    wait_condition(widgets, "a", "Warm", status="True")
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    operator.wait_for_log("are ignored: the object is gone")
    operator.stop()
    assert len(handler.requests(name="a", action="deleted")) == 1 and len(status_writes(devserver, "a")) == 1


@pytest.mark.parametrize("away", [True, False])
def test_a_change_that_is_reverted_is_told_for_the_new_generation(start, operator, handler, widgets, away):
    """Tools take an object whose condition is about an older generation for one that is still being changed."""
    start(readyCondition=True)
    widgets.create("a", spec={"size": 1})
    wait_condition(widgets, "a", "Ready", status="True", observedGeneration=1)
    if away:
        operator.stop()
    else:
        handler.behave(handler.held)
    widgets.merge_patch("a", {"spec": {"size": 2}})
    widgets.merge_patch("a", {"spec": {"size": 1}})
    handler.let_go()
    if away:
        operator.start_ready()
    wait_condition(widgets, "a", "Ready", status="True", observedGeneration=3)
    if away:
        assert handler.count() == 2
        operator.stop()
        operator.start_ready().wait_synced()
        assert handler.count() == 2, "and once is enough"


def test_ready_needs_the_whole_object(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, readyCondition=True, metadataOnly=True)])
    operator.start()
    operator.wait_exit(expect=78)
    assert operator.logs(where=lambda record: "readyCondition" in record["message"])


def test_a_failure_is_told_although_others_write_as_well(start, handler, widgets, devserver):
    handler.behave("exit 65")
    devserver.fault(match={"verb": "patch", "resource": "widgets/status"}, times=2, status=409, reason="Conflict")
    start(readyCondition=True)
    widgets.create("a")
    wait_condition(widgets, "a", "Ready", status="False", reason="PermanentFailure")


def test_how_bad_an_error_is_needs_an_error(start, operator, handler, widgets):
    handler.answer({"permanent": True})
    start()
    widgets.create("a")
    assert "permanent" in operator.wait_for_log("but there is no `error`", key="default/a")["message"]


def test_its_name_may_be_another_one(start, operator, handler, widgets):
    handler.behave("echo no >&2; exit 65")
    start(readyCondition="Installed")
    widgets.create("a")
    wait_condition(widgets, "a", "Installed", status="False", reason="PermanentFailure")


@pytest.mark.parametrize("wrong", ["not a type", "9", "yes, please"])
def test_a_wrong_name_is_a_mistake(devserver, operator, handler, wrong):
    operator.configure(devserver, [watch("widgets", handler, readyCondition=wrong)])
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 78 and "watches[0].readyCondition: " in result.stdout
