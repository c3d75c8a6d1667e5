# SPDX-License-Identifier: Apache-2.0
"""jq programs: what a run depends on, and which objects a watch has to do with."""
import signal

import pytest

from harness import wait_until, watch


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator.start_ready().wait_synced()

    return start


def actions(handler, name):
    return [request.body["action"] for request in handler.requests(name=name)]


def sync(handler, widgets, name, **spec):
    """A later object that was handled: what was there before it has been judged."""
    widgets.create(name, spec=spec)
    handler.wait_finished(name=name)


def test_a_run_is_due_when_the_value_changes(start, operator, handler, widgets):
    start(trigger={"jq": ".spec | {size}"})
    widgets.create("a", spec={"size": 1, "color": "red"})
    handler.wait_finished(name="a")
    widgets.merge_patch("a", {"spec": {"color": "blue"}})
    sync(handler, widgets, "b", size=1)
    assert len(handler.requests(name="a")) == 1
    widgets.merge_patch("a", {"spec": {"size": 2}})
    seen = handler.wait_finished(name="a", count=2)
    assert seen.object["spec"] == {"size": 2, "color": "blue"}
    operator.stop()
    operator.start_ready().wait_synced()
    sync(handler, widgets, "c", size=1)
    assert len(handler.requests(name="a")) == 2, "a restart is no change"
    operator.stop()


@pytest.mark.parametrize("metadata_only", [False, True])
def test_a_deletion_is_a_change_whatever_the_program_looks_at(start, handler, widgets, metadata_only):
    start(trigger={"jq": ".labels" if metadata_only else ".spec"}, finalizer=True, metadataOnly=metadata_only)
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    sync(handler, widgets, "b", size=1)
    widgets.delete("a")
    handler.wait_finished(name="a", action="finalize")
    wait_until(lambda: not widgets.exists("a"), "its end")


def test_own_writes_to_the_value_cause_no_run(start, operator, handler, widgets):
    handler.answer({"patch": {"spec": {"size": 7}}, "status": {"phase": "Done"}})
    start(trigger={"jq": "[.spec.size, .status.phase]"})
    widgets.create("a", spec={"size": 1})
    wait_until(lambda: widgets.get("a").get("status") == {"phase": "Done"}, "the status")
    sync(handler, widgets, "b", size=1)
    operator.stop()
    assert len(handler.requests(name="a")) == 1


@pytest.mark.parametrize("finalizer", [False, True])
def test_any_change_of_others_and_none_of_our_own(start, operator, handler, widgets, finalizer):
    """`any` looks at the version alone: a status that somebody else writes counts, our own writes do not."""
    handler.behave("""printf '{"status": {"why": "%s"}, "patch": {"metadata": {"labels": {"why": "%s"}}}}' """
                   '"$RECONCILED_REASON" "$RECONCILED_REASON"')
    start(trigger="any", finalizer=finalizer)

    def written(reason, count):
        handler.wait_finished(name="a", count=count)
        wait_until(lambda: widgets.get("a")["status"]["why"] == reason, "the status, which is written last")
        sync(handler, widgets, f"behind-{count}")
        assert len(handler.requests(name="a")) == count

    widgets.create("a", spec={"size": 1})
    written("added", 1)
    widgets.merge_patch("a", {"status": {"phase": "theirs"}}, subresource="status")
    written("changed", 2)
    operator.stop()
    assert handler.requests(name="a")[-1].object["status"]["phase"] == "theirs"
    assert len(handler.requests(name="a")) == 2


def test_another_program_is_another_fingerprint(start, operator, devserver, handler, widgets):
    start(trigger={"jq": ".spec.size"})
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    operator.stop()
    start(trigger={"jq": ".spec.color"})
    handler.wait_finished(name="a", count=2)
    operator.stop()


def test_a_filter_keeps_objects_out(start, operator, handler, widgets):
    start(filter=".spec.enabled == true")
    widgets.create("off", spec={"enabled": False})
    sync(handler, widgets, "on", enabled=True)
    widgets.merge_patch("off", {"spec": {"enabled": True}})
    handler.wait_finished(name="off")
    widgets.merge_patch("off", {"spec": {"enabled": False}})
    operator.wait_for_log("is no longer selected", key="default/off")
    widgets.delete("off")
    widgets.delete("on")
    handler.wait_finished(name="on", action="deleted")
    operator.stop()
    assert actions(handler, "off") == ["reconcile"], "what left the selection is never deleted"
    assert actions(handler, "on") == ["reconcile", "deleted"]


def test_an_object_that_leaves_during_its_first_run_is_never_deleted(start, operator, handler, widgets):
    handler.behave(handler.held)
    start(filter=".spec.enabled")
    widgets.create("off", spec={"enabled": True})
    handler.wait_for(name="off")
    widgets.merge_patch("off", {"spec": {"enabled": False}})
    operator.wait_for_log("is no longer selected", key="default/off")
    widgets.delete("off")
    handler.let_go()
    operator.wait_for_log("after the object had left the selection", key="default/off")
    sync(handler, widgets, "on", enabled=True)
    operator.stop()
    assert actions(handler, "off") == ["reconcile"]


def test_a_deletion_while_down_is_found_and_a_filtered_object_is_none(start, operator, handler, widgets):
    start(filter=".spec.enabled")
    for name in ("goes", "stays"):
        sync(handler, widgets, name, enabled=True)
    operator.stop()
    widgets.delete("goes")
    widgets.merge_patch("stays", {"spec": {"enabled": False}})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="goes", action="deleted")
    operator.wait_for_log("is no longer selected", key="default/stays")
    operator.stop()
    assert actions(handler, "stays") == ["reconcile"]


def test_a_changed_filter_deletes_nothing(start, operator, handler, widgets):
    start(filter=".spec.size > 0")
    sync(handler, widgets, "a", size=1)
    operator.stop()
    start(filter=".spec.size > 5")
    operator.wait_for_log("is no longer selected", key="default/a")
    sync(handler, widgets, "b", size=9)
    operator.stop()
    assert actions(handler, "a") == ["reconcile"]


def test_a_program_that_fails_on_one_object_harms_only_that(start, operator, handler, widgets):
    start(trigger={"jq": ".spec.name | ascii_downcase"}, filter=".spec.name | startswith(\"x\") | not")
    widgets.create("broken", spec={"name": 7, "size": 1})
    handler.wait_finished(name="broken")
    widgets.merge_patch("broken", {"spec": {"size": 2}})
    handler.wait_finished(name="broken", count=2)
    widgets.create("a", spec={"name": "A", "size": 1})
    handler.wait_finished(name="a")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    sync(handler, widgets, "b", size=1)
    assert len(handler.requests(name="a")) == 1
    said = operator.logs(where=lambda record: "the jq program of" in record["message"])
    assert len(said) == 1 and said[0]["key"] == "default/broken" and "startswith" in said[0]["message"]
    operator.stop()


LARGE = ". " + "# " * 85_000  # more than a program may be given as an argument, less than a packet


@pytest.mark.plain_only(reason="the sanitizers take memory of their own")
@pytest.mark.parametrize("role, more, told", [
    ("watcher", {"filter": ".spec.paused != true"}, "the jq program of `filter` fails on it: {}; it counts as selected"),
    ("watcher", {"trigger": {"jq": ".spec"}}, "the jq program of `trigger` fails on it: {}; its content without status is used"),
    ("worker", {"trigger": {"jq": ".spec"}}, "the jq program of `trigger` fails on it: {}; its content without status is used"),
    ("worker", {"related": [{"apiVersion": "v1", "kind": "ConfigMap", "names": ".spec.config // empty"}]},
     "`names` of the related kind ConfigMap fails on the object: {}"),
], ids=["filter", "trigger", "trigger-of-a-write", "names"])
def test_no_object_becomes_a_tree_that_fills_the_memory(start, operator, handler, widgets, role, more, told):
    handler.answer({"status": {"phase": "Ready"}})
    start(**more)
    widgets.create("huge", spec={"list": [{}] * 600_000})
    sync(handler, widgets, "plain", size=1)
    if "names" not in told:
        handler.wait_finished(name="huge")
        wait_until(lambda: widgets.get("huge").get("status"), "its status to be written")
    assert operator.wait_for_log(told.format("the object has more than 30000 values (objects, lists, texts, numbers)"), key="default/huge")
    peak = max(process.peak_kib() for process in operator.children(role))
    assert peak < 64 << 10, f"{peak} KiB at most, for an object of 2 MB"


@pytest.mark.quiet
def test_many_objects_on_which_the_program_takes_long(devserver, operator, handler, widgets):
    """All are read in one turn of the watcher's loop, and together need longer than it may be silent."""
    for number in range(10):
        widgets.create(f"slow-{number}", spec={"text": "a" * 16000})
    operator.configure(devserver, [watch("widgets", handler, filter='.spec.text | gsub("a"; "b") | length > 0')],
                       heartbeat={"interval": "100ms", "deadline": "1s"})
    operator.start_ready()
    widgets.create("plain", spec={"text": "a"})
    handler.wait_finished(name="plain")
    assert operator.wait_for_log("it needs more than 200 ms of processor time for the object; it counts as selected")
    handler.wait_finished(name="slow-9")


@pytest.mark.parametrize("more, said", [({"filter": ".spec |"}, "watches[0].filter: is not a jq program: syntax error, "),
                                        ({"filter": LARGE}, "watches[0].filter: is too large for a jq program"),
                                        ({"trigger": {"jq": "nonsense(1)"}}, "watches[0].trigger.jq: is not a jq program: nonsense/1 is not defined at line 1: nonsense(1)\n")],
                         ids=["broken", "large", "unknown"])
def test_what_does_not_compile_is_a_mistake_with_a_place(devserver, operator, handler, more, said):
    operator.configure(devserver, [watch("widgets", handler, **more)])
    checked = operator.ctl.check(operator.config_file)
    assert checked.returncode == 78 and said in checked.stdout
    operator.start()
    operator.wait_exit(expect=78)
    assert operator.logs(where=lambda record: said.strip() in record["message"])


def test_a_reload_with_a_wrong_program_changes_nothing(start, operator, devserver, handler, widgets):
    start()
    for wrong, said in ((".spec |", "is not a jq program"), (LARGE, "is too large for a jq program")):
        operator.configure(devserver, [watch("widgets", handler, filter=wrong)])
        operator.send_signal(signal.SIGHUP)
        operator.wait_for_log(said)
    sync(handler, widgets, "a")
    operator.stop()


@pytest.mark.slow
def test_a_program_that_never_ends_is_found(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler, filter="def f: [range(100000)] | .[.]; if .spec.poison then f else true end")],
                       heartbeat={"interval": "50ms", "deadline": "1s"})
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"poison": True})
    operator.wait_exit(expect=70)
    cause = operator.logs(level="critical")
    assert len(cause) == 1 and "widgets" in cause[0]["message"], cause


def test_metadata_alone(start, operator, handler, widgets):
    start(metadataOnly=True, filter=".metadata.labels.tier == \"gold\"", trigger={"jq": ".metadata.labels"})
    widgets.create("iron", labels={"tier": "iron"})
    widgets.create("a", labels={"tier": "gold"})
    handler.wait_finished(name="a")
    widgets.merge_patch("a", {"metadata": {"annotations": {"x": "y"}}})
    widgets.create("b", labels={"tier": "gold"})
    handler.wait_finished(name="b")
    operator.stop()
    assert handler.count() == 2
