# SPDX-License-Identifier: Apache-2.0
"""The objects: what was done to each, what its handlers were told, and whether the two agree."""
from dataclasses import dataclass, field

HOLD = "chaos.example.com/hold"
# By kind: all watches are of Widgets, and all but the first have an id.
OURS = {"held": "widgets.example.com/finalizer", **{kind: f"widgets.example.com/{kind}.finalizer"
                                                    for kind in ("plain", "chosen", "quiet")}}
# Objects that may have our finalizer: those of `held` always, those of `plain` now and then.
FINALIZED = ("held", "plain")
# Objects that are watched while they are labelled gold; of `chosen` it is told when one leaves.
SELECTED = ("chosen", "quiet")

# The handler's notes (handlers.py): one line each, appended whole, so that their order is the order of events. The driver
# writes its own between them: "deleting UID" before it asks for a deletion, "gone UID" before it lets go of an object,
# "relabelled UID", and "restored KEY" (its objects of the past may be there again). A run that failed for ever is over as one that
# succeeded; `again`: it has succeeded, and wants to run once more; `overlap`: something of another run of the object was alive.
BEGIN, END, PERMANENT, AGAIN, OVERLAP = "begin", "end", "permanent", "again", "overlap"


class Broken(AssertionError):
    """A promise was not kept."""


@dataclass
class Thing:
    """One object, from its creation on: one UID."""
    kind: str
    name: str
    uid: str
    number: int  # spec.essence; what is new is never used before, but may be taken back
    gold: bool = True
    held: bool = False  # by a finalizer of ours
    deleting: bool = False
    went_back: int = 0  # spec.essence when it was restored: what we had written was undone, and nothing demands it anew
    chosen_since: int | None = 0  # spec.essence when it was last labelled gold; None: one that it had had before


def as_it_is(thing, kind, body):
    """The object as the server has it; `thing`: the same one as it was known, or None."""
    metadata, number = body["metadata"], body["spec"]["essence"]
    gold = metadata.get("labels", {}).get("tier") == "gold"
    since = thing.chosen_since if thing is not None and thing.gold and gold else number
    return Thing(kind, metadata["name"], metadata["uid"], number, gold, HOLD in metadata.get("finalizers", []),
                 "deletionTimestamp" in metadata, thing.went_back if thing is not None else 0, since)


@dataclass
class Told:
    """What handlers were told of one UID."""
    begun: list = field(default_factory=list)  # (action, number)
    ended: list = field(default_factory=list)
    how: str = ""  # the last of them


class Notes:
    """Reads the notes as they grow, and judges each line where it stands."""

    def __init__(self, path):
        self.path = path
        self.path.touch()
        self.path.chmod(0o666)
        self.told = {}
        self.broken = []
        self.lines = 0
        self.epoch = self.leads = 0  # the highest one, and how many there were; 0 without replicas
        self._offset = 0
        self._deleting, self._gone, self._relabelled = set(), set(), set()
        self._restored = set()  # keys: their objects may come in any order
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

    def key_of(self, uid):
        return next((key for key, uids in self._uids.items() if uid in uids), "")

    def runs(self):
        return sum(len(told.begun) for told in self.told.values())

    def _take(self, word):
        if word[0] in ("deleting", "gone", "relabelled"):
            {"deleting": self._deleting, "gone": self._gone, "relabelled": self._relabelled}[word[0]].add(word[1])
        elif word[0] == "restored":
            self._restored.add(word[1])
        else:
            self._take_run(*word)

    def _take_run(self, what, key, uid, action, number, epoch):
        told = self.told.setdefault(uid, Told())
        if what == BEGIN:
            told.begun.append((action, int(number)))
            self._judge(key, uid, action, int(epoch))
        elif what in (END, PERMANENT, AGAIN):
            told.ended.append((action, int(number)))
            told.how = what
        elif what == OVERLAP:
            self.broken.append(f"line {self.lines} of {self.path}: {action} of {key} ({uid}): another run of the same object was alive")

    def _judge(self, key, uid, action, epoch):
        here = f"line {self.lines} of {self.path}: {action} of {key} ({uid})"
        if action == "finalize" and uid not in self._deleting:
            self.broken.append(f"{here}: nobody has deleted it")
        if action == "deleted" and uid not in self._gone:
            self.broken.append(f"{here}: it exists")
        if action == "unselected" and uid not in self._relabelled:
            self.broken.append(f"{here}: its labels were never changed")
        if epoch < self.epoch:
            self.broken.append(f"{here}: its epoch {epoch} is lower than {self.epoch}")
        self.leads += epoch > self.epoch
        self.epoch = max(epoch, self.epoch)
        seen = self._uids.setdefault(key, [])
        # What has left the selection is not watched: that it was deleted may be found out later, by asking.
        if uid in seen[:-1] and uid not in self._relabelled and key not in self._restored:
            self.broken.append(f"{here}: after its successor {seen[-1]}")
        elif uid not in seen:
            seen.append(uid)


def missing(thing, live, told):
    """Why an object is not where it must be in the end; '' when it is. `live`: as the API server has it, or None."""
    last = told.ended[-1] if told.ended else ("nothing", 0)
    if live is None:
        return _missing_end(thing, told, last)
    seen = (live.get("status") or {}).get("seen")
    if seen is not None and ("reconcile", seen) not in told.begun:
        return f"its status says {seen}, which was another object's"
    if thing.kind in SELECTED and not thing.gold:
        return "" if not told.ended or thing.kind == "quiet" or last[0] == "unselected" else f"it left the selection; last: {last}"
    if last != ("reconcile", thing.number):
        return f"its essence is {thing.number}; last: {last}"
    if told.how == AGAIN:
        return f"its essence is {thing.number}, whose handler wanted to run again"
    if told.how != PERMANENT and seen != thing.number and thing.went_back != thing.number:
        return f"its essence is {thing.number}; its status says {live.get('status')}"
    return ""


def _missing_end(thing, told, last):
    reconciled = [number for action, number in told.begun if action == "reconcile"]
    if thing.kind in SELECTED and (not thing.gold or thing.chosen_since is None or
                                   not any(number >= thing.chosen_since for number in reconciled)):
        return ""
    wanted = {"held": ("finalize",), "plain": ("finalize", "deleted")}.get(thing.kind, ("deleted",))
    return "" if not reconciled or last[0] in wanted else f"it is gone, and {wanted[-1]} was not handled; last: {last}"


def finalizer_differs(thing, live, wanted):
    """Of an object that is there and that nobody deletes. wanted: whether its watch has finalizers."""
    has = OURS[thing.kind] in live["metadata"].get("finalizers", [])
    return "" if has == wanted else "our finalizer is on it, for no watch" if has else "our finalizer is not on it"
