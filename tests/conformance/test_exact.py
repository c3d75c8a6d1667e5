# SPDX-License-Identifier: Apache-2.0
"""An operator changes no byte that it does not mean to change, and one odd object is nobody's trouble but its own."""
import json
import re
import sys

import pytest

from harness import wait_until, watch
from harness.setup import allowing

# What doubles, texts that end at a NUL, and cJSON's printer would change.
NUMBERS = '{"large":9007199254740993,"least":-9223372036854775807,"real":0.1,"small":1e-7,"text":"a\\u0000b","zero":0}'
WIDGET = '{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{spec}}}'
DEPTH = 9900  # an API server takes 10,000, managedFields included


@pytest.fixture
def configured(server, operator, handler, namespace):
    def start(**more):
        operator.configure(server, [watch("widgets", handler, namespaces=[namespace], **more)])
        return operator.start_ready().wait_synced()

    return start


@pytest.fixture
def deep_json():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100000)
    yield
    sys.setrecursionlimit(before)


def text_of(widgets, name):
    response = widgets.api.raw("GET", f"{widgets.path}/{name}")
    assert response.code == 200, response
    return response.text


def create(widgets, name, spec):
    response = widgets.api.raw("POST", widgets.path, WIDGET.format(name=name, spec=spec))
    assert response.code == 201, response


def condition(widgets, name, kind="Ready"):
    found = widgets.get(name).get("status", {}).get("conditions") or []
    return next((entry for entry in found if entry["type"] == kind), {})


def answer(handler, text):
    handler.behave(f"cat <<'EOF'\n{text}\nEOF")


def test_a_rollback_gives_back_the_numbers_that_were_there(configured, handler, widgets):
    def children(spec, *more):
        child = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"child"},"spec":%s}' % spec
        return '{"children":[%s]}' % ",".join([child, *more])

    refused = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"No_Name"}}'
    handler.behave(f"""if [ "$RECONCILED_NAME" = owner ]; then
if grep -q '"broken":true' "$REQUEST"; then cat <<'EOF'
{children('{"kept":{"large":1}}', refused)}
EOF
else cat <<'EOF'
{children('{"kept":' + NUMBERS + '}')}
EOF
fi; fi""")
    configured(onFailure="rollback", readyCondition=True, children=allowing("example.com/v1 Widget"))
    create(widgets, "owner", "{}")
    wait_until(lambda: condition(widgets, "owner").get("status") == "True", "the children")
    kept = re.search(r'"spec":\{"kept":(\{.*?\})\}', text_of(widgets, "child")).group(1)
    assert json.loads(kept) == json.loads(NUMBERS) and "9007199254740993" in kept
    widgets.merge_patch("owner", {"spec": {"broken": True}})
    wait_until(lambda: condition(widgets, "owner").get("status") == "False", "the failure")

    def rolled_back():  # read once: the next attempt may follow at once
        text = text_of(widgets, "child")
        return json.loads(text)["metadata"]["generation"] > 2 and f'"spec":{{"kept":{kept}}}' in text

    wait_until(rolled_back, lambda: text_of(widgets, "child"))


def test_an_adopted_object_is_rolled_back(configured, handler, widgets, configmaps):
    """Before the first run of ours, and after it: what others have set stays."""
    refused = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "No_Name"}}

    def adopted(value):
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"ours": value}}
        return {"manifest": child, "adopt": True}

    configmaps.create(body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"theirs": "1"}},
                      query={"fieldManager": "somebody"})
    answer(handler, json.dumps({"children": [adopted("0"), refused]}))
    configured(onFailure="rollback", readyCondition=True, retry={"first": "100ms", "max": "200ms"})
    create(widgets, "owner", "{}")
    wait_until(lambda: condition(widgets, "owner").get("status") == "False", "the failure")
    wait_until(lambda: configmaps.get("theirs")["data"] == {"theirs": "1"}, lambda: configmaps.get("theirs"))
    answer(handler, json.dumps({"children": [adopted("1")]}))
    wait_until(lambda: condition(widgets, "owner").get("status") == "True", lambda: condition(widgets, "owner"))
    assert configmaps.get("theirs")["data"] == {"ours": "1", "theirs": "1"}
    answer(handler, json.dumps({"children": [adopted("2"), refused]}))
    widgets.merge_patch("owner", {"spec": {"size": 2}})
    wait_until(lambda: condition(widgets, "owner").get("status") == "False", "the second failure")
    wait_until(lambda: configmaps.get("theirs")["data"] == {"ours": "1", "theirs": "1"}, lambda: configmaps.get("theirs"))
    assert "cannot be restored" not in condition(widgets, "owner")["message"]


def test_conditions_of_others_keep_their_numbers(configured, handler, widgets):
    create(widgets, "w", "{}")
    others = f'[{{"lastTransitionTime":"2020-01-01T00:00:00Z","status":"True","type":"Other","weight":{NUMBERS}}}]'
    response = widgets.api.raw("PATCH", f"{widgets.path}/w/status", f'{{"status":{{"conditions":{others}}}}}',
                               content_type="application/merge-patch+json")
    assert response.code == 200
    kept = re.search(r'"weight":(\{.*?\})', text_of(widgets, "w")).group(1)
    answer(handler, '{"conditions":[{"type":"Own","status":"True"}]}')
    configured(readyCondition=True)
    wait_until(lambda: condition(widgets, "w", "Own") and condition(widgets, "w"), "both conditions")
    assert f'"weight":{kept}' in text_of(widgets, "w") and "9007199254740993" in kept


def test_finalizers_of_others_stay_as_they_are(configured, handler, widgets):
    widgets.create("w", finalizers=["example.com/first", "example.com/second"])
    configured(finalizer=True)
    wait_until(lambda: len(widgets.get("w")["metadata"]["finalizers"]) == 3, "our finalizer")
    widgets.delete("w")
    wait_until(lambda: widgets.get("w")["metadata"]["finalizers"] == ["example.com/first", "example.com/second"],
               "our finalizer to go")


def test_answers_are_copied_byte_by_byte(configured, handler, widgets):
    answer(handler, f'{{"status":{{"seen":{NUMBERS}}},"patch":{{"spec":{{"copy":{NUMBERS}}}}}}}')
    create(widgets, "w", f'{{"given":{NUMBERS}}}')
    given = re.search(r'"given":(\{.*?\})', text_of(widgets, "w")).group(1)
    configured()
    wait_until(lambda: widgets.get("w").get("status"), "the status")
    assert f'"seen":{given}' in text_of(widgets, "w") and f'"copy":{given}' in text_of(widgets, "w")
    assert json.loads(given) == json.loads(NUMBERS)


def test_a_number_that_changes_beyond_doubles_is_written(configured, handler, widgets):
    handler.behave("""sed -n 's/.*"source":\\([0-9]*\\).*/{"status":{"n":\\1}}/p' "$REQUEST" """)
    create(widgets, "w", '{"source":9007199254740992}')
    configured()
    for value in (9007199254740992, 9007199254740993, 9007199254740992):
        widgets.merge_patch("w", {"spec": {"source": value}})
        wait_until(lambda value=value: widgets.get("w").get("status") == {"n": value}, f"{value}")


def test_a_change_is_shown_exactly(server, operator, handler, by_hand, widgets, namespace):
    create(widgets, "w", '{"source":9007199254740992}')
    answer(handler, '{"patch":{"spec":{"source":9007199254740993}}}')
    operator.configure(server, [watch("widgets", handler, namespaces=[namespace])])
    shown = by_hand("run", "--object", f"{namespace}/w").stdout
    assert "- spec.source: 9007199254740992" in shown and "+ spec.source: 9007199254740993" in shown


@pytest.mark.parametrize("nested", ["objects", "lists"])
def test_an_object_that_is_nested_deeply_is_served_like_all_others(configured, operator, handler, widgets, namespace,
                                                                   deep_json, nested):
    opening, closing = {"objects": ('{"a":', "}"), "lists": ("[", "]")}[nested]
    spec = '{"deep":' + opening * DEPTH + "9007199254740993" + closing * DEPTH + "}"
    answer(handler, '{"status":{"phase":"Done"},"patch":{"metadata":{"labels":{"seen":"yes"}}},'
                    '"conditions":[{"type":"Own","status":"True"}]}')
    for name, content in (("before", "{}"), ("listed", spec), ("zero", "{}")):
        create(widgets, name, content)
    configured(finalizer=True, readyCondition=True)

    def is_done(name):
        text = text_of(widgets, name)
        return '"phase":"Done"' in text and '"seen":"yes"' in text and '"type":"Own"' in text and \
            "widgets.example.com/finalizer" in text

    wait_until(lambda: all(is_done(name) for name in ("before", "listed", "zero")),
               lambda: f"all to be served; handler runs: {[run.name for run in handler.requests()]}", 60)
    create(widgets, "watched", spec)
    wait_until(lambda: is_done("watched"), "the one that came later", 60)
    widgets.merge_patch("watched", {"metadata": {"annotations": {"changed": "yes"}}})
    handler.wait_for(name="watched", count=2, deadline=60)
    operator.stop()
    operator.start_ready().wait_synced()
    for name in ("listed", "watched"):  # nor do they stay: others could not read a list of them
        widgets.delete(name)
        wait_until(lambda name=name: not widgets.exists(name), "the deep one to be finalized", 60)
        assert handler.requests(name=name, action="finalize")
    operator.stop()


def test_where_jq_gives_up_only_that_object_is_told_of(configured, operator, handler, widgets, namespace):
    spec = '{"deep":' + "[" * 400 + "]" * 400 + "}"
    answer(handler, '{"status":{"phase":"Done"}}')
    create(widgets, "deep", spec)
    create(widgets, "plain", "{}")
    configured(trigger={"jq": ".spec"}, filter=".spec != 1")
    wait_until(lambda: all(widgets.get(name).get("status") for name in ("deep", "plain")), "both to be served")
    assert operator.wait_for_log("fails on", key=f"{namespace}/deep")
    operator.stop()
