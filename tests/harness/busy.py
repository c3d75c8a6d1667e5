# SPDX-License-Identifier: Apache-2.0
"""Objects that others write to; what follows holds on the devserver and on a real server alike."""
import contextlib
import json
import threading

from .api import ApiError
from .wait import wait_until

CONTENT = """printf '{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s"},
"data": {"size": "%s"}}], "conditions": [{"type": "Made", "status": "True"}], "status": {"size": %s}}'"""
BUSY = {"finalizer": True, "readyCondition": True, "retry": {"first": "50ms", "max": "100ms"}}


@contextlib.contextmanager
def heartbeats(widgets, name, interval=0.05):
    """Somebody else writes into the status of the object, as long as this lasts and the object is there."""
    over, written = threading.Event(), []

    def beat():
        while not over.wait(interval):
            try:
                widgets.merge_patch(name, {"status": {"beat": len(written)}}, "status")
            except ApiError as error:
                if error.code == 404:
                    return
            written.append(1)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield written
    finally:
        over.set()
        thread.join()


def slow(handler, seconds=0.5):
    """A handler that answers what the object's size says, and needs its time for it."""
    handler.behave(f"""size=$(sed 's/.*"spec": *{{"size": *\\([0-9]*\\).*/\\1/' $REQUEST)
sleep {seconds}; [ "$RECONCILED_ACTION" != reconcile ] || {CONTENT} "$RECONCILED_NAME-child" "$size" "$size" """)


def conditions(widgets, name):
    return {each["type"]: each for each in widgets.get(name).get("status", {}).get("conditions", [])}


def is_ready(widgets, name):
    return conditions(widgets, name).get("Ready", {}).get("status") == "True"


def is_gone(widgets, name):
    return not widgets.exists(name)


def run_in_spite_of_heartbeats(start, handler, widgets, config_maps):
    slow(handler)
    operator = start(**BUSY)
    widgets.create("w", spec={"size": 1})
    with heartbeats(widgets, "w") as written:
        wait_until(lambda: is_ready(widgets, "w"), lambda: f"Ready: {widgets.get('w')}, {len(handler.requests())} runs", 60)
        assert config_maps.get("w-child")["data"] == {"size": "1"}
        assert conditions(widgets, "w")["Made"]["status"] == "True" and widgets.get("w")["status"]["size"] == 1
        beats = len(written)
        wait_until(lambda: len(written) > beats + 10, "more heartbeats")
        assert len(handler.requests()) == 1, "one run for one change"
    operator.stop()


def finalize_in_spite_of_heartbeats(start, handler, widgets, config_maps):
    slow(handler)
    operator = start(**BUSY)
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: is_ready(widgets, "w"), "Ready")
    with heartbeats(widgets, "w"):
        widgets.delete("w")
        wait_until(lambda: is_gone(widgets, "w"), lambda: f"the end of it; {len(handler.requests(action='finalize'))} runs", 60)
    assert len(handler.requests(action="finalize")) == 1 and not config_maps.exists("w-child")
    operator.stop()


def change_while_the_handler_runs(start, handler, widgets, config_maps, **more):
    """Heartbeats as well: what was changed among them is not hidden by our own writes behind it, and runs once."""
    slow(handler)
    operator = start(**{**BUSY, **more})
    widgets.create("w", spec={"size": 1})
    with heartbeats(widgets, "w"):
        handler.wait_for(name="w")
        widgets.merge_patch("w", {"spec": {"size": 2}})
        wait_until(lambda: config_maps.exists("w-child") and config_maps.get("w-child")["data"] == {"size": "2"}, "the new content", 60)
        wait_until(lambda: widgets.get("w")["status"].get("size") == 2, "its status")
        widgets.create("behind", spec={"size": 3})
        handler.wait_finished(name="behind")
    operator.stop()
    assert [each.object["spec"]["size"] for each in handler.requests(name="w")] == [1, 2]


# ---- the record of an object's children is lost


def child(name, place):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": place.namespace}, "data": {"a": "1"}}


def answer_reconcile(handler, answer):
    handler.behave(f"[ \"$RECONCILED_ACTION\" != reconcile ] || printf '%s' '{json.dumps(answer)}'")


def made(widgets, number):
    return widgets.get("w").get("status", {}).get("made") == number


def replaced(widgets, **spec):
    """As `kubectl replace` with a file that knows no annotations and no labels."""
    def attempt():
        now = widgets.get("w")
        body = {**now, "spec": spec or now.get("spec", {})}
        body["metadata"] = {key: value for key, value in now["metadata"].items() if key not in ("annotations", "labels")}
        try:
            return widgets.replace(body)
        except ApiError as error:
            assert error.code == 409
            return None

    return wait_until(attempt, "the replacement")


def shortened(widgets, keep=1, **spec):
    """A tool has cut the list of children, and has left the last `keep`."""
    now = widgets.get("w")
    [(key, record)] = [(key, value) for key, value in now["metadata"]["annotations"].items() if key.endswith("/children")]
    entries = record.split(",")[2 - keep:]
    assert len(entries) == keep
    widgets.merge_patch("w", {"metadata": {"annotations": {key: ",".join(entries)}}, **({"spec": spec} if spec else {})})


def emptied(widgets, **spec):
    shortened(widgets, 0, **spec)


LOST = [replaced, emptied, shortened]


def with_children(start, handler, widgets, place, **more):
    operator = start(**{**BUSY, "readyCondition": False, **more})
    answer_reconcile(handler, {"children": [child("a", place), child("b", place)], "status": {"made": 1}})
    widgets.create("w", spec={"size": 1})
    wait_until(lambda: made(widgets, 1), "its children")
    return operator


def pruned_though_the_record_is_lost(start, handler, widgets, place, lose=replaced):
    operator = with_children(start, handler, widgets, place, finalizer=False)
    answer_reconcile(handler, {"children": [child("b", place)], "status": {"made": 2}})
    lose(widgets, size=2)
    wait_until(lambda: made(widgets, 2), "the second run")
    assert not place.exists("a") and place.exists("b")
    record = [value for key, value in widgets.get("w")["metadata"]["annotations"].items() if key.endswith("/children")]
    assert [entry.rsplit("/", 1)[1] for entry in record[0].split(",")] == ["b"]
    operator.stop()


def released_only_when_lost_children_are_gone(start, handler, widgets, place, lose=replaced):
    operator = with_children(start, handler, widgets, place)
    operator.stop()
    lose(widgets, size=1)
    widgets.delete("w")
    assert widgets.exists("w")
    operator.start_ready()
    wait_until(lambda: is_gone(widgets, "w"), "the end of it", 60)
    assert not place.exists("a") and not place.exists("b")
    operator.stop()


def others_are_left_alone_when_the_record_is_lost(start, handler, widgets, place):
    """Anybody may put the label of a set on an object: only what we have applied is ours."""
    operator = with_children(start, handler, widgets, place)
    theirs = child("theirs", place)
    theirs["metadata"]["labels"] = place.get("a")["metadata"]["labels"]
    place.create(body=theirs)
    operator.stop()
    replaced(widgets, size=1)
    widgets.delete("w")
    operator.start_ready()
    wait_until(lambda: is_gone(widgets, "w"), "the end of it", 60)
    assert not place.exists("a") and not place.exists("b") and place.exists("theirs")
    operator.stop()
