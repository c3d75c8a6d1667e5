# SPDX-License-Identifier: Apache-2.0
"""Whose a child is: the operator neither changes nor deletes what is not its own, and writes only what its handler was shown."""
import json
import shutil

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

OWNS = [{"apiVersion": "v1", "kind": "ConfigMap"}]
PART_OF, RECORD = "applyset.k8s.io/part-of", "widgets.example.com/children"
MADE, ADOPTED = "widgets.example.com/made", "widgets.example.com/adopted"


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture(params=[False, True], ids=["unwatched", "owned"])
def owns(request):
    """Whether the watch owns the kind of the children."""
    return OWNS if request.param else []


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **{"retry": {"first": "50ms", "max": "200ms"}, **more})])
        return operator.start_ready().wait_synced()

    return start


def failed(operator, key="default/w"):
    return operator.wait_for_log("1 of its children", key=key)["message"]


def status_is(widgets, status, name="w"):
    wait_until(lambda: widgets.get(name).get("status") == status, lambda: f"the status {status}: {widgets.get(name)}")


def marks(object_):
    """What is on a child of ours, and on no other object."""
    metadata = object_["metadata"]
    return [key for key in (MADE, ADOPTED) if key in metadata.get("annotations", {})] + \
        [PART_OF for key in metadata.get("labels", {}) if key == PART_OF] + \
        [owner["name"] for owner in metadata.get("ownerReferences", [])]


def reference(owner):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}


def test_a_childs_mark_tells_whose_it_is(start, handler, widgets, config_maps, owns):
    handler.answer({"children": [config_map("a")]})
    operator = start(owns=owns)
    uid = widgets.create("w")["metadata"]["uid"]
    wait_until(lambda: config_maps.exists("a"), "the child")
    assert config_maps.get("a")["metadata"]["annotations"] == {
        MADE: f"Widget.example.com/default/w/{uid}//ConfigMap/default/a"}
    operator.stop()


@pytest.mark.parametrize("force", [False, True])
def test_what_somebody_else_has_made_is_neither_changed_nor_deleted(start, handler, widgets, config_maps, owns, force):
    theirs = config_maps.apply(config_map("a", {"password": "theirs"}), manager="a-human")
    handler.answer({"children": [config_map("a", {"password": "ours"}), config_map("b")], "status": {"made": True}})
    operator = start(owns=owns, finalizer=True, children={"force": force})
    widgets.create("w")
    said = failed(operator)
    assert "ConfigMap default/a is not applied: this operator has not created it: it was written by a-human" in said
    assert '"adopt": true}' in said and config_maps.exists("b") and "status" not in widgets.get("w")
    handler.wait_finished(name="w", count=3)
    assert config_maps.get("a") == theirs
    wait_until(lambda: widgets.get("w")["metadata"]["annotations"][RECORD] == "v1/ConfigMap/default/b",
               "the list, between two attempts, not to name it")
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")
    assert config_maps.get("a") == theirs and not config_maps.exists("b")
    operator.stop()


def test_a_list_that_names_it_changes_nothing(start, handler, widgets, config_maps):
    """Whoever may write the object may write its list, the label, and an annotation copied from a real child."""
    handler.answer({"children": [config_map("ours")], "status": {"made": True}})
    operator = start(finalizer=True)
    widgets.create("w")
    status_is(widgets, {"made": True})
    copied = config_maps.get("ours")["metadata"]
    theirs = config_maps.create("theirs", labels=copied["labels"], annotations=copied["annotations"])
    listed = widgets.get("w")["metadata"]["annotations"][RECORD] + ",v1/ConfigMap/default/theirs"
    widgets.merge_patch("w", {"metadata": {"annotations": {RECORD: listed}}, "spec": {"n": 2}})
    operator.wait_for_log("ConfigMap default/theirs is left as it is")
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")
    assert config_maps.get("theirs") == theirs and not config_maps.exists("ours")
    operator.stop()


@pytest.mark.parametrize("how", ["answer", "configuration"])
def test_adopted_it_is_written_to_and_released_in_the_end(start, handler, widgets, config_maps, owns, how):
    config_maps.apply(config_map("a", {"theirs": "1"}), manager="a-human")
    child = config_map("a", {"ours": "2"})
    handler.answer({"children": [{"manifest": child, "adopt": True} if how == "answer" else child], "status": {"made": True}})
    operator = start(owns=owns, finalizer=True, children={"adopt": how == "configuration"})
    widgets.create("w")
    status_is(widgets, {"made": True})
    found = config_maps.get("a")
    assert found["data"] == {"theirs": "1", "ours": "2"}
    assert marks(found) == [ADOPTED, PART_OF], "without an owner reference, by which the garbage collector would delete it"
    said = operator.wait_for_log(message_id=MESSAGE_ID["CHILD_ADOPTED"])
    assert "ConfigMap default/a was adopted" in said["message"]
    handler.answer({"children": [config_map("a", {"ours": "3"})], "status": {"made": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"made": 2})
    assert config_maps.get("a")["data"] == {"theirs": "1", "ours": "3"}, "once it is ours it needs no more leave"
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")
    found = config_maps.get("a")
    assert not marks(found) and found["data"] == {"theirs": "1", "ours": "3"}
    assert "ConfigMap default/a was released" in operator.wait_for_log("was released")["message"]
    operator.stop()


def test_what_another_controller_has_is_not_adopted(start, handler, widgets, config_maps):
    theirs = config_maps.create("a", ownerReferences=[{**reference(config_maps.create("web")), "controller": True}])
    handler.answer({"children": [{"manifest": config_map("a"), "adopt": True}]})
    operator = start()
    widgets.create("w")
    assert "ConfigMap web controls it" in failed(operator)
    assert config_maps.get("a") == theirs
    operator.stop()


@pytest.mark.parametrize("how", ["left out", "its object goes"])
def test_a_child_with_another_owner_is_released(start, handler, widgets, config_maps, owns, how):
    handler.answer({"children": [config_map("a"), config_map("b")], "status": {"made": True}})
    operator = start(owns=owns, finalizer=True)
    widgets.create("w")
    status_is(widgets, {"made": True})
    second = reference(config_maps.create("s"))
    config_maps.json_patch("a", [{"op": "add", "path": "/metadata/ownerReferences/-", "value": second}])
    if how == "left out":
        handler.answer({"children": [config_map("b")]})
        widgets.merge_patch("w", {"spec": {"n": 2}})
    else:
        widgets.delete("w")
        wait_until(lambda: not widgets.exists("w"), "its end")
        assert not config_maps.exists("b")
    operator.wait_for_log("ConfigMap default/a was released")
    found = config_maps.get("a")
    assert found["data"] == {"a": "1"} and found["metadata"]["ownerReferences"] == [second] and marks(found) == ["s"]
    operator.stop()


@pytest.mark.parametrize("finalizer", [False, True])
def test_orphaned_children_stay(start, operator, handler, widgets, config_maps, owns, finalizer):
    handler.answer({"children": [config_map("a"), config_map("b")], "status": {"made": True}})
    start(owns=owns, finalizer=finalizer)
    widgets.create("w")
    status_is(widgets, {"made": True})
    widgets.delete("w", {"propagationPolicy": "Orphan"})
    wait_until(lambda: not widgets.exists("w"), "its end")
    for name in "ab":
        wait_until(lambda: not marks(config_maps.get(name)), lambda: f"{name} to be released: {config_maps.get(name)}")
        assert config_maps.get(name)["data"] == {"a": "1"}
    wait_until(lambda: len(operator.logs(message_id=MESSAGE_ID["CHILD_RELEASED"])) == 2, "both to be told")
    operator.stop()


def test_no_reference_is_put_back_on_an_orphan(start, operator, handler, widgets, config_maps):
    """The collector takes the references off while a run is in flight that has seen nothing of it."""
    handler.answer({"children": [config_map("a")], "status": {"n": 1}})
    start(finalizer=True)
    widgets.create("w")
    status_is(widgets, {"n": 1})
    handler.behave(f"""[ "$RECONCILED_ACTION" != reconcile ] || {{ {handler.held}
}}
echo '{json.dumps({"children": [config_map("a", {"a": "2"})], "status": {"n": 2}})}'""")
    widgets.merge_patch("w", {"spec": {"n": 2}})
    handler.wait_for(name="w", where=lambda request: request.object["spec"].get("n") == 2)
    version = config_maps.get("a")["metadata"]["resourceVersion"]
    widgets.delete("w", {"propagationPolicy": "Orphan"})
    handler.let_go()
    wait_until(lambda: not widgets.exists("w"), "its end")
    with config_maps.watch(resourceVersion=version, fieldSelector="metadata.name=a", timeoutSeconds=1) as stream:
        stream.wait_end()
        states = [event["object"] for event in stream.events if event["type"] == "MODIFIED"]
    assert states and not any(state["metadata"].get("ownerReferences") for state in states)
    assert config_maps.get("a")["data"] == {"a": "1"}
    operator.stop()


def test_released_by_an_answer_and_adopted_by_another_object(start, handler, widgets, config_maps, owns):
    """How a child moves from one object to another without being deleted in between."""
    def answer(old, new):
        handler.behave(f"""if [ "$RECONCILED_NAME" = old ]; then cat <<'END'
{json.dumps({"children": old, "status": {"children": len(old)}})}
END
else cat <<'END'
{json.dumps({"children": new, "status": {"children": len(new)}})}
END
fi""")

    child = config_map("a")
    answer([child, config_map("b")], [])
    operator = start(owns=owns)
    widgets.create("old")
    status_is(widgets, {"children": 2}, "old")
    widgets.create("new")
    uid = config_maps.get("a")["metadata"]["uid"]
    answer([{"manifest": child, "release": True}, config_map("b")], [{"manifest": child, "adopt": True}])
    for name in ("new", "old"):
        widgets.merge_patch(name, {"spec": {"n": 2}})
    status_is(widgets, {"children": 1}, "new")
    found = config_maps.get("a")
    assert found["metadata"]["uid"] == uid and "/default/new/" in found["metadata"]["annotations"][ADOPTED]
    wait_until(lambda: widgets.get("old")["metadata"]["annotations"][RECORD] == "v1/ConfigMap/default/b", "old to forget it")
    assert config_maps.exists("b")
    operator.stop()


def test_remade_by_a_human_it_is_theirs(start, handler, widgets, config_maps, owns):
    handler.answer({"children": [config_map("a"), config_map("b")], "status": {"made": True}})
    operator = start(owns=owns, finalizer=True)
    widgets.create("w")
    status_is(widgets, {"made": True})
    assert operator.ctl.run("pause", "widgets").returncode == 0
    config_maps.delete("a")
    theirs = config_maps.apply(config_map("a", {"a": "by hand"}), manager="a-human")
    assert operator.ctl.run("resume", "widgets").returncode == 0
    widgets.merge_patch("w", {"spec": {"n": 2}})
    assert "it was written by a-human" in failed(operator)
    handler.answer({"children": [config_map("b")], "status": {"made": 2}})
    widgets.merge_patch("w", {"spec": {"n": 3}})
    status_is(widgets, {"made": 2})
    operator.wait_for_log("ConfigMap default/a is left as it is")
    wait_until(lambda: widgets.get("w")["metadata"]["annotations"][RECORD] == "v1/ConfigMap/default/b", "it to be forgotten")
    assert config_maps.get("a") == theirs
    operator.stop()


@pytest.mark.parametrize("how", ["reference", "label", "reference and label"])
def test_what_was_taken_off_a_child_is_shown_and_put_back(start, handler, widgets, config_maps, owns, how):
    handler.answer({"children": [config_map("a")], "status": {"made": True}})
    operator = start(owns=owns)
    widgets.create("w")
    status_is(widgets, {"made": True})
    before = config_maps.get("a")
    patch = {}
    if "reference" in how:
        patch["ownerReferences"] = None
    if "label" in how:
        patch["labels"] = None
    config_maps.merge_patch("a", {"metadata": patch, "data": {"theirs": "3"}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: marks(config_maps.get("a")) == marks(before), "what belongs on a child")
    assert config_maps.get("a")["metadata"]["uid"] == before["metadata"]["uid"]
    if owns:
        shown = [request.body["children"] for request in handler.requests(
            name="w", where=lambda request: request.object["spec"].get("n") == 2)]
        assert shown and all([child["metadata"]["name"] for child in children] == ["a"] for children in shown)
    operator.stop()


@pytest.fixture
def generator(handler):
    """Generates a password once, as many a handler does: if it is not shown one, it makes one up."""
    handler.behave("""python3 -c 'import base64, json, os, sys
request = json.load(open(sys.argv[1]))
data = [child["data"] for child in request.get("children", [])] or [{"password": base64.b64encode(os.urandom(9)).decode()}]
print(json.dumps({"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "data": data[0]}],
                  "status": {"n": request["object"]["spec"]["n"]}}))' "$REQUEST" """)
    return handler


@pytest.fixture
def secrets(api):
    return api.resource("v1", "secrets", "default")


@pytest.mark.parametrize("how", ["hidden by a selector", "the watch is refused", "its list is gone"])
@pytest.mark.usefixtures("generator")
def test_a_password_is_made_once(start, devserver, operator, widgets, secrets, how):
    owned = {"apiVersion": "v1", "kind": "Secret"}
    if how == "hidden by a selector":
        owned["labelSelector"] = "shown=yes"
    start(owns=[owned])
    if how == "the watch is refused":
        # Else no run begins before all Secrets are known.
        wait_until(lambda: all(entry["state"] == "in-sync" for entry in operator.ctl.status()["watches"]), "the watch of Secrets")
        for verb in ("watch", "list"):
            devserver.fault({"verb": verb, "resource": "secrets"}, status=500, times=0)
        devserver.close_watches("cut")
    widgets.create("w", spec={"n": 1})
    status_is(widgets, {"n": 1})
    first = secrets.get("password")
    if how == "its list is gone":
        widgets.merge_patch("w", {"metadata": {"annotations": None}})
    for number in range(2, 6):
        widgets.merge_patch("w", {"spec": {"n": number}})
        status_is(widgets, {"n": number})
    assert secrets.get("password")["data"] == first["data"]
    operator.stop()


def test_what_has_changed_since_it_was_shown_is_not_written(start, operator, handler, widgets, config_maps):
    handler.answer({"children": [config_map("a")], "status": {"n": 1}})
    start(owns=OWNS)
    widgets.create("w")
    status_is(widgets, {"n": 1})
    handler.behave(f"""echo '{json.dumps({"children": [config_map("a", {"a": "2"})], "status": {"n": 2}})}'
{handler.held}""")
    count = handler.count()
    widgets.merge_patch("w", {"spec": {"n": 2}})
    handler.wait_for(name="w", where=lambda request: request.object["spec"].get("n") == 2)
    version = config_maps.merge_patch("a", {"data": {"theirs": "x"}})["metadata"]["resourceVersion"]
    handler.answer({"children": [config_map("a", {"a": "3"})], "status": {"n": 3}})
    handler.let_go()
    status_is(widgets, {"n": 3})
    assert config_maps.get("a")["data"] == {"a": "3", "theirs": "x"}
    runs = [request for request in handler.requests(name="w") if request.body.get("children")]
    assert runs[-1].body["children"][0]["data"].get("theirs") == "x", "the run that wrote it was shown it"
    assert handler.count() >= count + 2
    with config_maps.watch(resourceVersion=version, fieldSelector="metadata.name=a", timeoutSeconds=1) as stream:
        stream.wait_end()
        assert [event["object"]["data"]["a"] for event in stream.events if event["type"] == "MODIFIED"] == ["3"]
    operator.stop()


def test_the_log_tells_the_story_of_a_child(start, handler, widgets, config_maps, owns):
    handler.answer({"children": [config_map("a", {"a": "1", "secret": "old"}), config_map("b")], "status": {"n": 1}})
    operator = start(owns=owns, finalizer=True)
    widgets.create("w")
    status_is(widgets, {"n": 1})
    handler.answer({"children": [config_map("a", {"a": "1", "secret": "new", "more": "2"})], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"n": 2})
    wait_until(lambda: not config_maps.exists("b"), "the end of what was left out")
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")
    operator.stop()
    ids = {MESSAGE_ID["CHILD_CREATED"]: "CREATED", MESSAGE_ID["CHILD_CHANGED"]: "CHANGED", MESSAGE_ID["CHILD_DELETED"]: "DELETED"}
    story = [(ids[record["message_id"]], record["object"]) for record in operator.logs() if record.get("message_id") in ids]
    assert story == [("CREATED", "ConfigMap default/a"), ("CREATED", "ConfigMap default/b"), ("CHANGED", "ConfigMap default/a"),
                     ("DELETED", "ConfigMap default/b"), ("DELETED", "ConfigMap default/a")]
    [changed] = operator.logs(message_id=MESSAGE_ID["CHILD_CHANGED"])
    assert changed["message"].endswith("ConfigMap default/a was changed: data.secret, data.more")
    runs = [record["run"] for record in operator.logs() if record.get("message_id") in ids]
    assert runs[0] == runs[1] and runs[2] == runs[3] and len(set(runs)) == 3, runs


@pytest.mark.parametrize("answer", [{"reset": True}, {"status": 500}], ids=["reset", "500"])
def test_a_write_whose_answer_is_lost_is_told(start, operator, devserver, handler, widgets, config_maps, owns, answer):
    """Each of them took place; libcurl itself sends a request again when a connection that it has kept is reset."""
    def lose(verb):
        devserver.fault(match={"verb": verb, "resource": "configmaps", "userAgent": "reconciled*"}, carriedOut=True, **answer)

    handler.answer({"children": [config_map("a")], "status": {"n": 1}})
    start(owns=owns, finalizer=True)
    lose("patch")
    widgets.create("w")
    status_is(widgets, {"n": 1})
    lose("delete")
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")
    assert not config_maps.exists("a")
    operator.stop()
    told = [(record["object"], record["message"].rpartition(" came to ")[2])
            for record in operator.logs(message_id=MESSAGE_ID["CHILD_UNSURE"])]
    assert told == [("ConfigMap default/a", "an apply"), ("ConfigMap default/a", "its deletion")]
    assert not any(operator.logs(message_id=MESSAGE_ID[f"CHILD_{what}"]) for what in ("CREATED", "CHANGED", "DELETED"))


def test_an_apply_that_changes_nothing_is_not_told(start, operator, devserver, handler, widgets, config_maps, owns):
    """Items of a LIST have no kind and no apiVersion."""
    handler.answer({"children": [config_map("a")], "status": {"n": 1}})
    start(owns=owns)
    widgets.create("w")
    status_is(widgets, {"n": 1})
    operator.stop()
    config_maps.merge_patch("a", {"data": {"more": "1"}})
    devserver.compact()
    devserver.fault(match={"verb": "watch", "resource": "configmaps"}, status=422, times=2)
    operator.start_ready().wait_synced()
    handler.answer({"children": [config_map("a")], "status": {"n": 2}})
    operator.ctl.run("retry", "widgets", "default/w")
    status_is(widgets, {"n": 2})
    operator.stop()
    assert not operator.logs(message_id=MESSAGE_ID["CHILD_CHANGED"])


@pytest.mark.parametrize("children, says", [
    ([config_map("a", annotations={MADE: "x"})], "are set by reconciled"),
    ([{"manifest": config_map("a"), "adopt": True, "release": True}], "cannot be adopted and released at once"),
    ([{"manifest": config_map("a"), "adopt": "yes"}], r"children[0].adopt: must be true or false"),
    ([{"manifest": config_map("a"), "take": True}], r"children[0].take: is unknown"),
    ([{"manifest": 7}], r"children[0]: must be an object"),
])
def test_mistakes_have_their_place(start, operator, handler, widgets, children, says):
    handler.answer({"children": children})
    start()
    widgets.create("w")
    assert says in operator.wait_for_log("the handler's answer: children[0]", key="default/w")["message"]
    operator.stop()


@pytest.mark.usefixtures("generator")
@pytest.mark.parametrize("force", [False, True])
def test_what_is_adopted_is_shown_before_it_is_written(start, operator, widgets, secrets, force):
    """A handler that has not seen a password would make one up."""
    start(owns=[{"apiVersion": "v1", "kind": "Secret"}], children={"adopt": True, "force": force})
    theirs = {"password": "cHJvZA=="}
    secrets.create(body={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "data": theirs})
    widgets.create("w", spec={"n": 1})
    status_is(widgets, {"n": 1})
    assert secrets.get("password")["data"] == theirs
    secrets.merge_patch("password", {"metadata": {"annotations": None, "ownerReferences": None}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"n": 2})
    assert secrets.get("password")["data"] == theirs
    operator.stop()


def test_what_another_operator_has_made_is_foreign(start, operator, make_operator, make_handler, devserver, handler, widgets,
                                                   config_maps, owns):
    """Both watch one kind: the owner reference is the same."""
    other, theirs = make_operator(), make_handler()
    theirs.answer({"children": [config_map("a", {"x": "theirs"})], "status": {"other": True}})
    other.configure(devserver, [watch("widgets", theirs)], operator="other.example.com")
    other.start_ready().wait_synced()
    widgets.create("w")
    status_is(widgets, {"other": True})
    made = config_maps.get("a")
    handler.answer({"children": [{"manifest": config_map("a", {"y": "ours"}), "adopt": True}]})
    start(owns=owns)
    assert "another operator has it" in failed(operator)
    assert config_maps.get("a") == made
    operator.stop()
    other.stop()


@pytest.mark.usefixtures("generator")
def test_a_store_that_is_behind_is_not_believed_twice(start, devserver, operator, handler, widgets, secrets):
    start(owns=[{"apiVersion": "v1", "kind": "Secret"}])
    widgets.create("w", spec={"n": 1})
    status_is(widgets, {"n": 1})
    for verb in ("watch", "list"):
        devserver.fault({"verb": verb, "resource": "secrets"}, status=500, times=0)
    devserver.close_watches("cut")
    secrets.merge_patch("password", {"data": {"password": "bmV3"}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"n": 2})
    assert secrets.get("password")["data"] == {"password": "bmV3"}
    assert handler.count() <= 4, "one conflict, and then the server is asked"
    operator.stop()


def test_children_elsewhere_are_orphaned_with_those_here(start, operator, handler, widgets, config_maps, api):
    api.resource("v1", "namespaces").create("other")
    elsewhere = api.resource("v1", "configmaps", "other")
    handler.answer({"children": [config_map("a"), config_map("c", namespace="other")], "status": {"n": 1}})
    start(finalizer=True)
    widgets.create("w")
    status_is(widgets, {"n": 1})
    widgets.delete("w", {"propagationPolicy": "Orphan"})
    wait_until(lambda: not widgets.exists("w"), "its end")
    assert not marks(config_maps.get("a")) and not marks(elsewhere.get("c"))
    operator.stop()


@pytest.mark.parametrize("adopted", [False, True])
def test_a_child_moves_with_its_object_to_another_watch(devserver, operator, make_handler, widgets, config_maps, owns, adopted):
    """Its mark names the other watch from then on; an adopted one stays adopted."""
    gold, silver = make_handler(), make_handler()
    if adopted:
        config_maps.apply(config_map("a", {"theirs": "1"}), manager="a-human")
    gold.answer({"children": [{"manifest": config_map("a", {"n": "1"}), "adopt": adopted}], "status": {"n": 1}})
    silver.answer({"children": [config_map("a", {"n": "2"})], "status": {"n": 2}})
    common = {"owns": owns, "retry": {"first": "50ms", "max": "200ms"}}
    operator.configure(devserver, [watch("gold", gold, labelSelector="tier=gold", **common),
                                   watch("silver", silver, labelSelector="tier=silver", id="silver", **common)])
    operator.start_ready().wait_synced()
    widgets.create("w", labels={"tier": "gold"})
    status_is(widgets, {"n": 1})
    widgets.merge_patch("w", {"metadata": {"labels": {"tier": "silver"}}})
    status_is(widgets, {"n": 2})
    found = config_maps.get("a")
    assert found["data"] == {"n": "2", **({"theirs": "1"} if adopted else {})}
    mark = found["metadata"]["annotations"][ADOPTED if adopted else MADE]
    assert "/silver/" in mark and len(found["metadata"]["annotations"]) == 1
    assert silver.count() <= 4
    operator.stop()


@pytest.mark.usefixtures("generator")
@pytest.mark.parametrize("heirs", ["listed", "marked"])
def test_an_object_that_was_made_anew_takes_what_is_marked(start, operator, widgets, secrets, heirs):
    """It was orphaned, and its list went with it; the operator has lost its state. Another password would be harm."""
    start(owns=[{"apiVersion": "v1", "kind": "Secret"}], children={"heirs": heirs})
    former = widgets.create("w", spec={"n": 1})
    status_is(widgets, {"n": 1})
    operator.stop()
    secrets.merge_patch("password", {"metadata": {"ownerReferences": None}})
    before = secrets.get("password")
    widgets.delete("w")
    uid = widgets.create("w", spec={"n": 2})["metadata"]["uid"]
    shutil.rmtree(operator.state_directory)
    operator.start_ready()
    if heirs == "listed":
        assert "`children.heirs: marked`" in failed(operator)
        assert secrets.get("password") == before
    else:
        status_is(widgets, {"n": 2})
        found = secrets.get("password")
        assert found["data"] == before["data"]
        assert f"/w/{uid}/" in found["metadata"]["annotations"][MADE] and former["metadata"]["uid"] not in str(found)
        assert [owner["uid"] for owner in found["metadata"]["ownerReferences"]] == [uid]
    operator.stop()


def test_a_mark_that_is_taken_off_at_the_creation_is_told(start, devserver, handler, widgets, config_maps):
    """As a mutating webhook does it; the server's answer shows what has become of the child."""
    stripped = {**config_map("a"), "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7"}}
    devserver.fault({"verb": "patch", "resource": "configmaps"}, status=201, body=json.dumps(stripped), contentType="application/json")
    handler.answer({"children": [config_map("a")], "status": {"n": 1}})
    operator = start()
    widgets.create("w")
    said = failed(operator)
    assert "ConfigMap default/a cannot be kept: a webhook of the API server has taken off its mark" in said and MADE in said
    status_is(widgets, {"n": 1})
    assert marks(config_maps.get("a")) == [MADE, PART_OF, "w"]
    operator.stop()


@pytest.mark.parametrize("force", [False, True])
def test_a_field_that_goes_to_and_fro_is_told_and_waited_for(start, handler, widgets, config_maps, force):
    """A controller that wants another value, or none, is as fast as the operator."""
    handler.answer({"children": [config_map("a", {"size": "3", "other": "1"})], "status": {"n": 1}})
    operator = start(owns=OWNS, children={"force": force}, readyCondition=True)
    widgets.create("w")
    wait_until(lambda: config_maps.exists("a"), "the child")

    def set_back():
        if config_maps.get("a")["data"].get("size") == "3":
            config_maps.merge_patch("a", {"data": {"size": "5" if force else None}}, fieldManager="an-autoscaler")
        return operator.logs(message_id=MESSAGE_ID["SET_BACK"])

    wait_until(set_back, "the operator to see it")
    said = failed(operator)
    assert "ConfigMap default/a is set back by others each time: data.size (" in said and "3 times in a row" in said
    assert ("by an-autoscaler" if force else "by whom is unknown") in said, "who takes a field away is no manager of it"
    [ready] = [condition for condition in widgets.get("w")["status"]["conditions"] if condition["type"] == "Ready"]
    assert ready["status"] == "False" and "data.size" in ready["message"]
    count = len(operator.logs(message_id=MESSAGE_ID["CHILD_CHANGED"]))
    assert count <= 3 * 2, "each of two workers counts by itself"
    wait_until(lambda: config_maps.get("a")["data"].get("size") == "3", "one more attempt, when the time is over")
    config_maps.merge_patch("a", {"data": {"size": "5"}}, fieldManager="an-autoscaler")
    handler.answer({"children": [config_map("a", {"size": "5", "other": "1"})], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    wait_until(lambda: widgets.get("w")["status"].get("n") == 2, "another answer, which is applied at once")
    operator.stop()


def test_many_are_adopted_in_one_run(start, operator, handler, widgets, config_maps):
    """And that is no failure of the object."""
    names = [f"m{number}" for number in range(6)]
    for name in names:
        config_maps.create(body=config_map(name, {"theirs": "1"}))
    handler.answer({"children": [{"manifest": config_map(name, {"ours": "1"}), "adopt": True} for name in names],
                    "status": {"done": True}})
    start(owns=OWNS, retry={"first": "50ms", "max": "200ms", "attempts": 2})
    widgets.create("w")
    status_is(widgets, {"done": True})
    assert all(config_maps.get(name)["data"] == {"theirs": "1", "ours": "1"} for name in names)
    operator.stop()
    assert len(operator.logs(message_id=MESSAGE_ID["CHILD_ADOPTED"])) == 6
    assert len(handler.requests(name="w")) == 2 and not operator.logs(message_id=MESSAGE_ID["RUN_FAILED"])
