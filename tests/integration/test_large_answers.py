# SPDX-License-Identifier: Apache-2.0
"""What a tenant, through the handler, makes a worker hold: memory, and places among its runs."""
import copy
import os

import pytest

from harness import WIDGET_CRD, wait_until, watch
from harness.setup import SANITIZED, allowing

# No handler of these takes memory of its own: spec.list becomes status.list.
ECHO = """#!/bin/sh
exec sed -n 's/.*"spec":{"list":\\(\\[[^]]*\\]\\)}.*/{"status":{"list":\\1}}/p'
"""

ANSWER = """#!/bin/sh
cat >/dev/null
echo '{"status": {"phase": "x"}, "conditions": [{"type": "Fine", "status": "True"}]}'
"""

CHILDREN = """#!/usr/bin/python3 -u
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    name, spec = request["object"]["metadata"]["name"], request["object"].get("spec", {})
    children = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}] if spec.get("child") else []
    print(json.dumps({"id": request["id"], "status": {"n": 1}, "children": children}))
"""

# Reads all requests at once, and answers when the test has the FIFO "go" open.
SLOW = """#!/usr/bin/python3 -u
import json, os, sys, threading
folder = os.path.dirname(sys.argv[0])

def answer(number, name):
    with open(folder + "/asked", "a") as file:
        file.write(name + "\\n")
    open(folder + "/go").close()
    os.write(1, (json.dumps({"id": number, "status": {"seen": True}}) + "\\n").encode())

for line in sys.stdin:
    request = json.loads(line)
    threading.Thread(target=answer, args=(request["id"], request["object"]["metadata"]["name"]), daemon=True).start()
"""

LIMIT = 100_000  # values of an answer
SIXTEEN_MIB = 16 << 10


def anonymous(operator):
    """Of all workers together, in KiB."""
    total = 0
    for worker in operator.children("worker"):
        with open(f"/proc/{worker.pid}/status", encoding="ascii") as status:
            total += next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    return total


@pytest.fixture
def configured(operator, sandbox):
    def configured(devserver, program, kind="exec", handler=(), **more):
        folder = sandbox.subfolder("handler", operator.user)
        (folder / "handler").write_text(program, encoding="utf-8")
        (folder / "handler").chmod(0o755)
        entry = watch("widgets", **more)
        entry["handler"] = {kind: [str(folder / "handler")], "timeout": "60s", **dict(handler)}
        operator.configure(devserver, [entry], workers=1)
        operator.handler_folder = folder
        os.mkfifo(folder / "go")
        (folder / "go").chmod(0o644)
        operator.start_ready().wait_synced()
        return operator

    return configured


@pytest.fixture
def others(devserver):
    devserver.api.resource("v1", "namespaces").create("other")
    return devserver.api.resource("example.com/v1", "widgets", "other")


def row(operator):
    return operator.ctl.status()["watches"][0]


def hold_writes(devserver, resource="widgets/status", namespace="default", **how):
    return devserver.fault({"verb": "patch", "resource": resource, "namespace": namespace}, times=0, **(how or {"hang": True}))


def wait_written(widgets, name):
    wait_until(lambda: widgets.get(name).get("status"), f"{name} to be written", deadline=20)


@pytest.mark.plain_only(reason="the sanitizers take memory of their own")
def test_answers_that_wait_take_the_memory_of_their_texts(configured, devserver, widgets):
    operator = configured(devserver, ECHO)
    hold_writes(devserver)
    before = anonymous(operator)
    for number in range(12):
        widgets.create(f"w-{number}", spec={"list": [1] * (LIMIT - 10)})
    wait_until(lambda: row(operator)["writing"] > 0 and row(operator)["queued"] == 0, "all of them, here or outside")
    taken = anonymous(operator) - before
    assert taken < 3 * SIXTEEN_MIB, f"{taken} KiB for {row(operator)['writing']} of 12 answers of 200 kB"


def test_an_answer_of_too_many_values_is_an_error_of_its_object(configured, devserver, widgets):
    operator = configured(devserver, ECHO)
    widgets.create("w", spec={"list": [1] * (4 * LIMIT)})
    told = operator.wait_for_log("has more than 100000 values (objects, lists, texts, numbers): too many from byte 200013 of 800")
    assert "not tried again until the object" in told["message"], told
    widgets.create("other", spec={"list": [1] * 10})
    wait_written(widgets, "other")


@pytest.mark.plain_only(reason="the sanitizers take memory of their own")
@pytest.mark.parametrize("status", [{"list": [1] * 600_000},
                                    {"conditions": [{"type": "Other", "status": "True", "x": [1] * 600_000}]}],
                         ids=["status", "conditions"])
def test_what_stands_in_the_object_becomes_no_large_tree(make_devserver, operator, configured, status):
    crd = copy.deepcopy(WIDGET_CRD)
    crd["spec"]["versions"][0].pop("subresources")
    devserver = make_devserver(load=(crd,))
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    configured(devserver, ANSWER)
    body = widgets.object("w")
    body["status"] = status
    widgets.create(body=body)
    if "conditions" in status:
        operator.wait_for_log("the object's conditions have more than 100000 values")
    else:
        wait_until(lambda: widgets.get("w")["status"].get("phase"), "its status")
    peak = operator.child("worker").peak_kib()
    assert peak < 4 * SIXTEEN_MIB, f"{peak} KiB at most, for an object of 1.2 MB"


@pytest.mark.slow
def test_kept_answers_leave_the_window_to_others(configured, devserver, widgets, others):
    operator = configured(devserver, CHILDREN, "serve", children=allowing())
    devserver.fault({"verb": "patch", "resource": "configmaps"}, status=429, retryAfter=45, times=0)
    for number in range(40):
        widgets.create(f"w-{number}", spec={"child": True})
    wait_until(lambda: row(operator)["writing"] == 8 and row(operator)["queued"] == 0, "a quarter of the window to keep its answers")
    for number in range(10):
        others.create(f"other-{number}", spec={})
    for number in range(10):
        wait_written(others, f"other-{number}")
    assert row(operator)["writing"] == 8, "and the answers still wait"


@pytest.mark.slow
def test_large_writes_that_hang_leave_room_for_others(configured, devserver, widgets, others):
    operator = configured(devserver, ECHO)
    hold_writes(devserver)
    for number in range(20):
        widgets.create(f"w-{number}", spec={"list": ["x" * 1000] * 900})
    wait_until(lambda: row(operator)["writing"] >= 1, "large writes to hang")
    for number in range(5):
        others.create(f"other-{number}", spec={"list": [1] * 100})
    for number in range(5):
        wait_written(others, f"other-{number}")
    wait_until(lambda: row(operator)["queued"] == 0, "the other large ones to wait outside")
    assert row(operator)["writing"] < 10


@pytest.mark.slow
@pytest.mark.parametrize("key", ["owns", "related"])
def test_requests_with_many_large_children_leave_memory(configured, devserver, api, widgets, key):
    config_maps = api.resource("v1", "configmaps", "default")
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    if key == "related":
        kind["names"] = ".metadata.name + (\"-0\", \"-1\", \"-2\", \"-3\", \"-4\", \"-5\", \"-6\", \"-7\")"
    for number in range(6):
        owner = widgets.create(f"w-{number}", spec={})["metadata"]
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": owner["name"], "uid": owner["uid"], "controller": True}
        for part in range(8):
            config_maps.create(f"w-{number}-{part}", ownerReferences=[reference] if key == "owns" else [], data={"filler": "x" * 900_000})
    operator = configured(devserver, SLOW, "serve", handler={"parallel": 6}, **{key: [kind]})
    asked = operator.handler_folder / "asked"

    def names():
        return asked.read_text(encoding="utf-8").split() if asked.exists() else []

    wait_until(lambda: names(), "the first one", deadline=20)
    for _ in range(50):  # the supervisor answers, and so the others had time
        assert row(operator)["running"] > 0 and len(names()) <= 3, "the others wait"
    most = 4 * SIXTEEN_MIB * (2 if SANITIZED else 1)  # what was freed stays for a while there
    assert anonymous(operator) < most, f"{anonymous(operator)} KiB while {names()} are asked about"
    with open(asked.parent / "go", "wb"):
        for number in range(6):
            wait_written(widgets, f"w-{number}")


# Reads its request when the test has the FIFO "go" open.
LATE = """#!/bin/sh
touch "${0%/*}/asked"
: <"${0%/*}/go"
cat >/dev/null
echo '{"status": {"seen": true}}'
"""


@pytest.mark.slow
@pytest.mark.plain_only(reason="the sanitizers take memory of their own")
def test_related_objects_are_held_once(configured, devserver, api, widgets):
    config_maps = api.resource("v1", "configmaps", "default")
    for number in range(32):
        config_maps.create(f"large-{number}", data={"filler": "x" * 900_000})
    operator = configured(devserver, LATE, related=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    before = anonymous(operator)
    widgets.create("w", spec={})
    wait_until((operator.handler_folder / "asked").exists, "the handler")
    taken = anonymous(operator) - before
    assert taken < 36 << 10, f"{taken} KiB for a request of 28 MiB"
    with open(operator.handler_folder / "go", "wb"):
        wait_written(widgets, "w")
