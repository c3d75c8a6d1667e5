# SPDX-License-Identifier: Apache-2.0
"""The handlers: each notes what it begins and how it ends, and has a lock on its object for as long as anything of it lives. By the
essence it does what a handler may do:

of 7    fails the first attempt         of 13   fails for ever (a permanent error), unless it cleans up
of 11   takes its time                  of 17   asks to run again after a second and a half, once
of 101  ends its process (the one that serves)
"""

# What stands behind "essence": is the essence; the object of a lost store has none. Each replica is a user of its own: all may write
# a lock.
EXEC = r"""#!/bin/sh
read -r request
n=${{request#*'"essence":'}}
[ "$n" != "$request" ] || n=0
n=${{n%%[!0-9]*}}
note() {{
        echo "$1 $RECONCILED_NAMESPACE/$RECONCILED_NAME $RECONCILED_UID $RECONCILED_ACTION ${{n:-0}} ${{RECONCILED_EPOCH:-0}}" >>{notes}
}}
trap 'note cancelled; exit 1' TERM
umask 0
exec 9>>"{locks}/$RECONCILED_NAMESPACE.$RECONCILED_NAME"
flock -n 9 || note overlap
note begin
if [ $((n % 7)) -eq 0 ] && [ "$RECONCILED_ATTEMPT" -eq 1 ] && [ "$RECONCILED_REASON" != requeueAfter ]; then
        note failed
        exit 1
fi
if [ $((n % 11)) -eq 0 ]; then
        {sleep}
fi
[ "$RECONCILED_ACTION" = reconcile ] || {{ note end; exit 0; }}
if [ $((n % 13)) -eq 0 ]; then
        note permanent
        exit 65
fi
again=null end=end
if [ $((n % 17)) -eq 0 ] && [ "$RECONCILED_REASON" != requeueAfter ]; then
        again='"1500ms"' end=again
fi
{answer}
note $end
"""

STATUS = """printf '{"status":{"seen":%d},"requeueAfter":%s}' "$n" "$again" """
# The patch is refused when somebody else has written meanwhile, behind the children, which are applied by then.
STATUS_AND_CHILD = """printf '{"status":{"seen":%d,"epoch":%d},"patch":{"metadata":{"annotations":{"seen":"%d"}}},"requeueAfter":%s,\
"children":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"of":"%d"}}]}' \
        "$n" "${RECONCILED_EPOCH:-0}" "$n" "$again" "$RECONCILED_NAME" "$n" """

SERVE = r"""#!/usr/bin/python3 -u
import fcntl, json, os, select, signal, sys


def cancelled(*_):
    note("cancelled")
    os._exit(1)


def note(what):
    os.write(notes, f"{{what}} {{metadata['namespace']}}/{{metadata['name']}} {{metadata['uid']}} {{request['action']}} "
             f"{{n}} {{request.get('epoch', 0)}}\n".encode())


os.umask(0)
notes = os.open({notes!r}, os.O_WRONLY | os.O_APPEND)
for line in sys.stdin:
    request = json.loads(line)
    object = request["object"]
    metadata, n = object["metadata"], object.get("spec", {{}}).get("essence", 0)
    signal.signal(signal.SIGTERM, cancelled)
    lock = open(f"{locks}/{{metadata['namespace']}}.{{metadata['name']}}", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note("overlap")
    note("begin")
    answer, how = {{"id": request["id"]}}, "end"
    if n % 7 == 0 and request["attempt"] == 1 and request["reason"] != "requeueAfter":
        answer["error"], how = "the first attempt at this essence fails", "failed"
    elif request["action"] == "reconcile" and n % 13 == 0:
        answer |= {{"error": "this essence fails for ever", "permanent": True}}
        how = "permanent"
    elif request["action"] == "reconcile":
        answer["status"] = {{"seen": n}}
        if n % 17 == 0 and request["reason"] != "requeueAfter":
            answer["requeueAfter"], how = "1500ms", "again"
    if n % 101 == 0 and request["attempt"] < 3 and request["reason"] != "requeueAfter":
        note("failed")
        sys.exit(3)
    if n % 11 == 0:
        select.select([], [], [], {slow})
    note(how)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    lock.close()
    print(json.dumps(answer))
"""


def write(folder, notes, slow, by_itself=False):
    """{kind of object: the `handler` of its watch}. slow: seconds. by_itself: what a handler has started holds no lock."""
    sleep = f"sleep {slow}" + (" 9>&-" if by_itself else "")
    locks = folder / "locks"
    locks.mkdir()
    locks.chmod(0o777)
    texts = {
        "held": EXEC.format(notes=notes, locks=locks, sleep=sleep, answer=STATUS_AND_CHILD),
        "plain": SERVE.format(notes=str(notes), locks=locks, slow=slow),
        "chosen": EXEC.format(notes=notes, locks=locks, sleep=sleep, answer=STATUS),
        "quiet": EXEC.format(notes=notes, locks=locks, sleep=sleep, answer=STATUS),
    }
    found = {}
    for kind, text in texts.items():
        path = folder / f"handler-{kind}"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        found[kind] = {"serve" if kind == "plain" else "exec": [str(path)], "timeout": "20s"}
    return found
