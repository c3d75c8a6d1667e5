# SPDX-License-Identifier: Apache-2.0
"""The installed schema of answers, and the worker, are of one mind about each answer here."""
import json

import pytest

from harness import wait_until, watch
from harness.schema import ANSWER, REQUEST, configuration

PROGRAM = """#!/usr/bin/python3 -u
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    # The text itself, so that the answer is what the test wrote.
    print('{"id":%d%s' % (request["id"], request["object"]["metadata"]["annotations"]["answer"]))
"""

RIGHT = [
    {},
    {"status": {"a": {"b": [1, 2.5, None]}}},
    {"status": None, "patch": None, "requeueAfter": None, "message": None, "error": None, "permanent": None},
    {"status": {}},
    {"done": True},
    {"done": False},
    {"patch": {"spec": {"size": 3}}},
    {"patch": {"metadata": {"labels": {"a": "b"}}}},
    {"patch": {}},
    {"requeueAfter": "1h30m"},
    {"requeueAfter": "1.5h"},
    {"requeueAfter": "0"},
    {"requeueAfter": "100000us"},
    {"requeueAt": "2036-12-01T03:00:00Z"},
    {"requeueAt": "2036-12-01t03:00:00.123456789-07:00", "requeueAfter": "1h"},
    {"requeueAt": None},
    {"metrics": []},
    {"metrics": None},
    {"metrics": [{"name": "size", "action": "set", "value": -1.5, "labels": {"name": "a\nb\"c\\d", "zone": ""}}]},
    {"metrics": [{"name": "calls_total", "action": "add", "value": 0, "labels": None, "buckets": None}]},
    {"metrics": [{"name": "age", "action": "observe", "value": 3, "buckets": [0, 0.5, 1e300]}]},
    {"metrics": [{"name": "size", "action": "remove"}, {"name": "size", "action": "remove", "value": 1}]},
    {"metrics": [{"name": "size_count", "action": "set", "value": 1e308}], "error": "no luck"},
    {"message": ""},
    {"error": "no luck", "permanent": True},
    {"permanent": False},
    {"error": "stop", "fatal": True},
    {"events": [{"reason": "Heated"}, {"reason": "Cooled", "type": "Warning", "action": "Cool", "note": "by the moon"}]},
    {"conditions": []},
    {"conditions": [{"type": "example.com/Warm", "status": "True", "reason": "Heated", "message": "by the sun"}]},
    {"children": []},
    {"children": None},
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"b": "c"}}}]},
    {"children": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "adopt": True}]},
    {"children": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "release": True}]},
    {"error": "no luck", "retryAfter": "7s", "status": {"a": 1}, "conditions": [{"type": "Warm", "status": "False"}]},
]

WRONG = [
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "adopt": True}]},
    {"children": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "adpot": True}]},
    {"children": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap"}}]},
    {"statsu": {}},
    {"Status": {}},
    {"status": []},
    {"status": "Ready"},
    {"patch": 7},
    {"done": 1},
    {"patch": {"status": {}}},
    {"patch": {"kind": "Gadget"}},
    {"patch": {"apiVersion": None}},
    {"patch": {"metadata": None}},
    {"patch": {"metadata": {"name": "x"}}},
    {"patch": {"metadata": {"namespace": None}}},
    {"patch": {"metadata": {"uid": "x"}}},
    {"patch": {"metadata": {"resourceVersion": "1"}}},
    {"patch": {"metadata": {"managedFields": []}}},
    {"patch": {"metadata": {"creationTimestamp": None}}},
    {"patch": {"metadata": {"generation": 1}}},
    {"requeueAfter": 30},
    {"requeueAfter": ""},
    {"requeueAfter": "soon"},
    {"requeueAfter": "30"},
    {"requeueAfter": "-1s"},
    {"requeueAfter": "1.s"},
    {"requeueAfter": "1s 1m"},
    {"requeueAt": 1796094000},
    {"requeueAt": "03:00"},
    {"requeueAt": "2036-12-01"},
    {"requeueAt": "2036-12-01T03:00:00"},
    {"requeueAt": "2036-12-01 03:00:00Z"},
    {"requeueAt": "2036-13-01T03:00:00Z"},
    {"requeueAt": "2036-12-01T24:00:00Z"},
    {"requeueAt": "2036-12-01T03:00:00.Z"},
    {"requeueAt": "2036-12-01T03:00:00+0100"},
    {"requeueAt": " 2036-12-01T03:00:00Z"},
    {"metrics": [{"name": "age", "action": "observe", "value": 3, "buckets": [-1, 0.5]}]},
    {"metrics": [{"name": "age", "action": "observe", "value": -3}]},
    {"metrics": {}},
    {"metrics": [7]},
    {"metrics": [{"name": "size", "value": 1}]},
    {"metrics": [{"action": "set", "value": 1}]},
    {"metrics": [{"name": "size", "action": "set"}]},
    {"metrics": [{"name": "size", "action": "set", "value": None}]},
    {"metrics": [{"name": "size", "action": "set", "value": "1"}]},
    {"metrics": [{"name": "size", "action": "raise", "value": 1}]},
    {"metrics": [{"name": "size", "action": "add", "value": -1}]},
    {"metrics": [{"name": "si-ze", "action": "set", "value": 1}]},
    {"metrics": [{"name": "x" * 101, "action": "set", "value": 1}]},
    {"metrics": [{"name": "reconciled_starts", "action": "add", "value": 1}]},
    {"metrics": [{"name": "size_total", "action": "set", "value": 1}]},
    {"metrics": [{"name": "size_bucket", "action": "set", "value": 1}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1, "group": "a"}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1, "labels": {"watch": "a"}}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1, "labels": {"a-b": "a"}}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1, "labels": {"a": 1}}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1, "labels": {f"l{number}": "" for number in range(9)}}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1, "labels": {"a": "x" * 513}}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1, "buckets": [1]}]},
    {"metrics": [{"name": "age", "action": "observe", "value": 1, "buckets": []}]},
    {"metrics": [{"name": "age", "action": "observe", "value": 1, "buckets": ["1"]}]},
    {"metrics": [{"name": "age", "action": "observe", "value": 1, "buckets": list(range(31))}]},
    {"metrics": [{"name": "size", "action": "set", "value": 1}] * 101},
    {"message": 7},
    {"error": {}},
    {"permanent": "true"},
    {"permanent": 1},
    {"fatal": "yes"},
    {"events": [{"note": "no reason"}]},
    {"events": [{"reason": "two words"}]},
    {"events": [{"reason": "A", "type": "Error"}]},
    {"conditions": {}},
    {"conditions": [{"type": "A"}]},
    {"conditions": [{"type": "a_B./X", "status": "True"}]},
    {"conditions": [{"type": "A", "status": "yes"}]},
    {"conditions": [{"type": "A", "status": "True", "reason": "two words"}]},
    {"conditions": [{"type": "A", "status": "True", "observedGeneration": 1}]},
    {"children": {}},
    {"children": [1]},
    {"children": [{"apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": {"name": "a"}}]},
    {"children": [{"apiVersion": "v1", "metadata": {"name": "a"}}]},
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ".."}}]},
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": ""}}]},
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": []}}]},
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap",
                   "metadata": {"name": "a", "labels": {"applyset.k8s.io/part-of": "x"}}}]},
    {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": ["b"]}}]},
    {"patches": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": "b"}}]},
]


@pytest.mark.plain_only("no program of ours runs")
def test_each_schema_is_one():
    """Once here: the other tests take them for right, because to look costs each process of pytest more than to read them."""
    for validator in (REQUEST, ANSWER, configuration()):
        validator.check_schema(validator.schema)


@pytest.mark.parametrize("answer", RIGHT)
def test_the_schema_takes(answer):
    ANSWER.validate(answer)


@pytest.mark.parametrize("answer", WRONG)
def test_the_schema_refuses(answer):
    assert not ANSWER.is_valid(answer)


def test_the_worker_takes_and_refuses_the_same(devserver, operator, sandbox, widgets):
    folder = sandbox.subfolder("answering")
    program = folder / "serve"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    entry = watch("widgets")
    entry["handler"] = {"serve": [str(program)]}
    operator.configure(devserver, [entry])
    answers = {f"right-{number}": answer for number, answer in enumerate(RIGHT)}
    answers.update({f"wrong-{number}": answer for number, answer in enumerate(WRONG)})
    for name, answer in answers.items():
        text = json.dumps(answer)[1:]
        widgets.create(name, metadata={"annotations": {"answer": ("," if answer else "") + text}})
    operator.start_ready().wait_synced()

    def all_have_run():
        status = operator.ctl.status()["watches"][0]
        return (status["succeeded"] + status["failed"] >= len(answers) and status["running"] == 0
                and status["queued"] == 0)

    def refusals():
        return {record["key"].split("/")[1]: record["message"] for record in
                operator.logs(lambda record: "the handler's answer: " in record["message"] and "key" in record)}

    wait_until(all_have_run, lambda: f"a run of each: {operator.ctl.status()['watches']}")
    wait_until(lambda: len(refusals()) >= len(WRONG), lambda: f"every refusal: {sorted(refusals())}")
    assert set(refusals()) == {name for name in answers if name.startswith("wrong")}
    for name, message in refusals().items():
        assert f"answer: {next(iter(answers[name]))}" in message, "it says where"
    operator.stop()


def test_a_request_that_is_none_is_found():
    assert not REQUEST.is_valid({"version": 1})
