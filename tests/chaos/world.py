# SPDX-License-Identifier: Apache-2.0
"""The objects: what was done to each, what its handlers were told, and whether the two agree."""
from dataclasses import dataclass, field

HOLD = "chaos.example.com/hold"

# The handler's notes (handlers.py): one line each, appended whole, so that their order is the order of events. The driver
# writes its own between them: "deleting UID" before it asks for a deletion, "gone UID" before it lets go of an object,
# "relabelled UID", "killed PID", and "over" when no process of the operator is left.
BEGIN, END, FAILED = "begin", "end", "failed"


@dataclass
class Thing:
    """One object, from its creation on: one UID."""
    kind: str
    name: str
    uid: str
    number: int  # spec.essence, never used twice
    gold: bool = True
    held: bool = False  # by a finalizer of ours
    deleting: bool = False
    chosen_since: int = 0  # spec.essence when it was last labelled gold


def as_it_is(thing, kind, body):
    """The object as the server has it; `thing`: the same one as it was known, or None."""
    metadata, number = body["metadata"], body["spec"]["essence"]
    gold = metadata.get("labels", {}).get("tier") == "gold"
    since = thing.chosen_since if thing is not None and thing.gold and gold else number
    return Thing(kind, metadata["name"], metadata["uid"], number, gold, HOLD in metadata.get("finalizers", []),
                 "deletionTimestamp" in metadata, since)


@dataclass
class Told:
    """What handlers were told of one UID."""
    begun: list = field(default_factory=list)  # (action, number)
    ended: list = field(default_factory=list)


class Notes:
    """Reads the notes as they grow, and judges each line where it stands."""

    def __init__(self, path):
        self.path = path
        self.path.touch()
        self.path.chmod(0o666)
        self.told = {}
        self.broken = []
        self.lines = 0
        self._offset = 0
        self._deleting, self._gone, self._relabelled = set(), set(), set()
        self._running = {}  # key: pid
        self._killed = set()
        self._uids = {}  # key: UIDs in the order in which they were handed out

    def write(self, word, value=""):
        with open(self.path, "ab", buffering=0) as file:
            file.write(f"{word} {value}\n".encode())

    def read(self):
        with open(self.path, "rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        self._offset += whole
        for line in text[:whole].decode().splitlines():
            self.lines += 1
            self._take(line.split())
        return self

    def of(self, uid):
        return self.told.get(uid, Told())

    def runs(self):
        return sum(len(told.begun) for told in self.told.values())

    def _take(self, word):
        if word[0] in ("deleting", "gone", "relabelled"):
            {"deleting": self._deleting, "gone": self._gone, "relabelled": self._relabelled}[word[0]].add(word[1])
        elif word[0] == "killed":
            self._killed.add(word[1])
        elif word[0] == "over":
            self._running.clear()
        else:
            self._take_run(*word)

    def _take_run(self, what, key, uid, action, number, pid):
        told = self.told.setdefault(uid, Told())
        if what == BEGIN:
            told.begun.append((action, int(number)))
            self._judge(key, uid, action, pid)
            self._running[key] = pid
            return
        if what == END:
            told.ended.append((action, int(number)))
        self._running.pop(key, None)

    def _judge(self, key, uid, action, pid):
        here = f"line {self.lines} of {self.path}: {action} of {key} ({uid})"
        if action == "finalize" and uid not in self._deleting:
            self.broken.append(f"{here}: nobody has deleted it")
        if action == "deleted" and uid not in self._gone:
            self.broken.append(f"{here}: it exists")
        if action == "unselected" and uid not in self._relabelled:
            self.broken.append(f"{here}: its labels were never changed")
        other = self._running.get(key)
        if other is not None and other not in self._killed and (other != pid):
            self.broken.append(f"{here}: process {other} was still running for the same object")
        seen = self._uids.setdefault(key, [])
        # What has left the selection is not watched: that it was deleted may be found out later, by asking.
        if uid in seen[:-1] and uid not in self._relabelled:
            self.broken.append(f"{here}: after its successor {seen[-1]}")
        elif uid not in seen:
            seen.append(uid)


def missing(thing, live, told):
    """Why an object is not where it must be in the end; '' when it is. `live`: as the API server has it, or None."""
    reconciled = [number for action, number in told.begun if action == "reconcile"]
    last = told.ended[-1] if told.ended else ("nothing", 0)
    if live is None:
        if thing.kind == "chosen" and not (thing.gold and any(number >= thing.chosen_since for number in reconciled)):
            return ""
        wanted = "finalize" if thing.kind == "held" else "deleted"
        return "" if not reconciled or last[0] == wanted else f"it is gone, and {wanted} was not handled; last: {last}"
    if thing.kind == "chosen" and not thing.gold:
        return "" if not told.ended or last[0] == "unselected" else f"it left the selection; last: {last}"
    if last != ("reconcile", thing.number):
        return f"its essence is {thing.number}; last: {last}"
    if (live.get("status") or {}).get("seen") != thing.number:
        return f"its essence is {thing.number}; its status says {live.get('status')}"
    return ""
