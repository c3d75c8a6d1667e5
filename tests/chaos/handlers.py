# SPDX-License-Identifier: Apache-2.0
"""The handlers: each notes what it begins and ends, fails the first attempt at some essences, and is slow at others."""

# No program is started: a run is one shell. What stands behind "essence": is the essence; the object of a lost store has none.
EXEC = r"""#!/bin/sh
read -r request
n=${{request#*'"essence":'}}
[ "$n" != "$request" ] || n=0
n=${{n%%[!0-9]*}}
note() {{
        echo "$1 $RECONCILED_NAMESPACE/$RECONCILED_NAME $RECONCILED_UID $RECONCILED_ACTION ${{n:-0}} $$" >>{notes}
}}
note begin
if [ $((n % 7)) -eq 0 ] && [ "$RECONCILED_ATTEMPT" -eq 1 ]; then
        note failed
        exit 1
fi
[ $((n % 11)) -ne 0 ] || sleep 0.2
case $RECONCILED_ACTION in
reconcile) {answer} ;;
esac
note end
"""

STATUS = """printf '{"status":{"seen":%d}}' "$n" """
STATUS_AND_CHILD = """printf '{"status":{"seen":%d},"children":[{"apiVersion":"v1","kind":"ConfigMap",\
"metadata":{"name":"%s"},"data":{"of":"%d"}}]}' "$n" "$RECONCILED_NAME" "$n" """

SERVE = r"""#!/usr/bin/python3 -u
import json, os, select, sys
notes = os.open({notes!r}, os.O_WRONLY | os.O_APPEND)
for line in sys.stdin:
    request = json.loads(line)
    object = request["object"]
    metadata, n = object["metadata"], object.get("spec", {{}}).get("essence", 0)

    def note(what):
        os.write(notes, f"{{what}} {{metadata['namespace']}}/{{metadata['name']}} {{metadata['uid']}} {{request['action']}} "
                 f"{{n}} {{os.getpid()}}\n".encode())

    note("begin")
    answer = {{"id": request["id"]}}
    if n % 7 == 0 and request["attempt"] == 1:
        answer["error"] = "the first attempt at this essence fails"
    elif request["action"] == "reconcile":
        answer["status"] = {{"seen": n}}
    if n % 101 == 0 and request["attempt"] < 3:
        note("failed")
        sys.exit(3)
    if n % 11 == 0:
        select.select([], [], [], 0.2)
    note("failed" if "error" in answer else "end")
    print(json.dumps(answer))
"""


def write(folder, notes):
    """{kind of object: the `handler` of its watch}"""
    texts = {
        "held": EXEC.format(notes=notes, answer=STATUS_AND_CHILD),
        "plain": SERVE.format(notes=str(notes)),
        "chosen": EXEC.format(notes=notes, answer=STATUS),
    }
    found = {}
    for kind, text in texts.items():
        path = folder / f"handler-{kind}"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        found[kind] = {"serve" if kind == "plain" else "exec": [str(path)], "timeout": "20s"}
    return found
