# SPDX-License-Identifier: Apache-2.0
"""JSON is UTF-8. Other bytes in an answer are a permanent error of the handler, and the devserver takes none. So is a key
twice: API servers take the last one, and others the first."""
import json

import pytest

from harness import wait_until, watch

SERVER = r"""#!/usr/bin/python3 -u
import json, sys
for line in sys.stdin:
    answer = json.dumps({"status": {"a": "BYTES"}, "id": json.loads(line)["id"]}).encode()
    sys.stdout.buffer.write(answer.replace(b"BYTES", b"\377\376") + b"\n")
    sys.stdout.buffer.flush()
"""


def is_refused(operator, devserver, place):
    found = operator.wait_for_log("a byte that is not UTF-8", key="default/w")
    assert f"not valid JSON: a byte that is not UTF-8 (at byte {place} of stdout)" in found["message"]
    wait_until(lambda: operator.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    assert not devserver.requests(lambda request: request["method"] == "PATCH")


@pytest.mark.parametrize("answer, place", [
    (r'{"status": {"a": "\377\376"}}', 18), (r'{"patch": {"spec": {"\303": 1}}}', 21),
    (r'{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "\355\240\200"}}]}', 98),
])
def test_other_bytes_are_no_answer(devserver, operator, handler, widgets, answer, place):
    handler.behave(f"printf '{answer}'")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("w")
    is_refused(operator, devserver, place)
    operator.stop()


def test_other_bytes_are_no_answer_of_a_serving_handler(devserver, operator, sandbox, widgets):
    program = sandbox.subfolder("serve", operator.user) / "serve"
    program.write_text(SERVER, encoding="utf-8")
    program.chmod(0o755)
    operator.configure(devserver, [{**watch("widgets"), "handler": {"serve": [str(program)]}}])
    operator.start_ready().wait_synced()
    widgets.create("w")
    is_refused(operator, devserver, 18)
    operator.stop()


def test_a_key_twice_is_no_answer(devserver, operator, handler, widgets, api):
    """One that a tool has made: the first value would be lost without a word."""
    many = ", ".join(f'"key{number}": "1"' for number in range(3000))
    child = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {%s, "key7": "2"}}' % many
    handler.behave(f"cat <<'END'\n{{\"children\": [{child}]}}\nEND")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("w")
    operator.wait_for_log("the handler's answer: children[0].data.key7 stands there twice", key="default/w")
    wait_until(lambda: operator.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    assert not api.resource("v1", "configmaps", "default").names()
    operator.stop()


@pytest.mark.parametrize("method, path, content_type", [
    ("POST", "", "application/json"), ("PUT", "/w", "application/json"), ("PATCH", "/w", "application/merge-patch+json"),
    ("PATCH", "/w?fieldManager=m", "application/apply-patch+yaml"),
])
def test_the_devserver_takes_no_other_bytes(devserver, widgets, api, method, path, content_type):
    widgets.create("w")
    before = widgets.get("w")
    body = json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w" if path else "v"},
                       "spec": {"text": "BYTES"}}).encode().replace(b"BYTES", b"\377\376")
    answer = api.raw(method, f"/apis/example.com/v1/namespaces/default/widgets{path}", body, content_type)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest"), answer.text
    assert widgets.get("w") == before and widgets.names() == ["w"]
