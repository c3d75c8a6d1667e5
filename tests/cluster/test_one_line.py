# SPDX-License-Identifier: Apache-2.0
"""A real API server ends its answers with a line break; a request of a process that serves is one line all the same."""
import json

from harness import wait_until, watch

PROGRAM = """#!/usr/bin/python3 -u
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    with open({folder!r} + "/attempts", "a") as file:
        file.write("%d\\n" % request["attempt"])
    print(json.dumps({{"id": request["id"], "status": {{"seen": request["object"]["metadata"]["finalizers"]}}}}))
"""


def test_the_first_request_behind_a_finalizer_is_one_line(cluster, operator, sandbox, widgets, namespace):
    folder = sandbox.subfolder("serve", operator.user)
    program = folder / "serve"
    program.write_text(PROGRAM.format(folder=str(folder)), encoding="utf-8")
    program.chmod(0o755)
    entry = watch("widgets", finalizer=True, namespaces=[namespace])
    entry["handler"] = {"serve": [str(program)]}
    operator.configure(cluster, [entry], workers=1)
    operator.start_ready()
    widgets.create("first", spec={"text": "two\nlines"})
    wait_until(lambda: widgets.get("first").get("status") == {"seen": ["widgets.example.com/finalizer"]}, "the status")
    assert (folder / "attempts").read_text(encoding="utf-8").split() == ["1"]
    widgets.delete("first")
    wait_until(lambda: not widgets.exists("first"), "the object to go")
