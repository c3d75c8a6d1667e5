# SPDX-License-Identifier: Apache-2.0
"""What has become of each child: as the API server shows it to a watch, as its request log has it, and as the operator tells it."""
import base64
import collections
import datetime
import json
import time
import typing

from harness import scaled
from harness.operator import MESSAGE_ID

from .world import Broken

CHILDREN = {"secrets": ("v1", "Secret"), "services": ("v1", "Service"), "statefulsets": ("apps/v1", "StatefulSet")}
MADE = "databases.example.com/made"
TOLD = {MESSAGE_ID[f"CHILD_{what}"]: what for what in ("CREATED", "CHANGED", "DELETED", "ADOPTED", "RELEASED", "UNSURE")}
PEOPLES = "cGVvcGxl"  # a password that is set by hand
GAP_SECONDS = 1  # what dies may have written this long before without telling it
CLOCK_SECONDS = 0.002  # the log has milliseconds


def name_of(plural, database):
    return f"{database}-password" if plural == "secrets" else database


class Record(typing.NamedTuple):
    moment: float
    what: str
    message: str


def owner_of(body):
    """The UID in the mark of a child, or ''."""
    mark = body["metadata"].get("annotations", {}).get(MADE, "")
    return mark.split("/")[3] if mark else ""


class Story:
    """People say what they do: foreign(), deleted(), by_people(), bare(), going(). read() and judge_log() raise Broken."""

    def __init__(self, server, operator, children):
        self._server, self._operator = server, operator
        self._watches = {plural: resource.watch(resourceVersion="0") for plural, resource in children.items()}
        self._read = collections.Counter()
        self._foreign = {}  # uid: (plural, body), those that are there
        self._strange = set()  # uids of all that were: an event may come late
        self._deleted = set()  # uids of children that people have deleted
        self._versions = set()  # that people have made
        self._bare = set()  # uids of children whose owner reference people have taken off
        self._going = set()  # uids of Databases that people have deleted
        self._secret = {}  # uid of a Database: its last Secret
        self._passwords = set()
        self._gaps = []  # [from, to], of the clock
        self._events = self._told = self._cut_off = 0

    def figures(self):
        return (f"{self._events} events of children, {len(self._secret)} passwords; {self._told} writes are told, "
                f"{self._cut_off} were cut off")

    # ---- what people do

    def foreign(self, plural, body):
        self._foreign[body["metadata"]["uid"]] = (plural, body)
        self._strange.add(body["metadata"]["uid"])
        self.by_people(body)

    def foreigners(self):
        return list(self._foreign.items())

    def is_foreign(self, uid):
        return uid in self._foreign

    def deleted(self, uid):
        self._deleted.add(uid)
        self._foreign.pop(uid, None)

    def by_people(self, body):
        self._versions.add(body["metadata"]["resourceVersion"])

    def bare(self, uid):
        self._bare.add(uid)

    def going(self, uid):
        self._going.add(uid)

    def gap(self):
        """What happens from now on, and happened a moment ago, the operator may not live to tell."""
        self._gaps.append([time.time() - scaled(GAP_SECONDS), time.time() + 3600])

    def over(self):
        if self._gaps:
            self._gaps[-1][1] = min(self._gaps[-1][1], time.time())

    def password_of(self, uid):
        return self._secret[uid]["data"]["password"]

    # ---- what the API server shows

    def read(self):
        for plural, watch in self._watches.items():
            if watch.ended.is_set():
                raise Broken(f"the test's own watch of {plural} has ended")
            events = watch.events[self._read[plural]:]
            self._read[plural] += len(events)
            for event in events:
                self._events += 1
                self._judge(plural, event["type"], event["object"])

    def _judge(self, plural, what, body):
        uid, owner = body["metadata"]["uid"], owner_of(body)
        here = f"{what} {plural} {json.dumps(body)}"
        if what != "DELETED" and uid in self._strange and body["metadata"]["resourceVersion"] not in self._versions:
            raise Broken(f"it is somebody else's: {here}")
        if what == "DELETED" and uid not in self._deleted and owner not in self._going:
            raise Broken(f"nobody has deleted it, nor its owner: {here}")
        if what != "DELETED" and not owner and uid not in self._strange:
            self._judge_release(plural, body, here)
        if plural == "secrets" and owner and what != "DELETED":
            self._judge_password(owner, body, here)

    def _judge_release(self, plural, body, here):
        """Whose owner reference is missing when its owner goes was orphaned: it stays, and is nobody's."""
        if body["metadata"]["uid"] not in self._bare:
            raise Broken(f"it was released, and nobody has taken its owner reference off: {here}")
        self.foreign(plural, body)

    def _judge_password(self, owner, body, here):
        """A new one only in the place of one that people have deleted, or changed."""
        last = self._secret.get(owner)
        self._passwords.add(body["data"]["password"])
        self._secret[owner] = body
        if last is None or last["data"]["password"] == body["data"]["password"]:
            return
        replaced = last["metadata"]["uid"] in self._deleted and last["metadata"]["uid"] != body["metadata"]["uid"]
        if not replaced and body["metadata"]["resourceVersion"] not in self._versions:
            raise Broken(f"a second password, after {json.dumps(last)}: {here}")

    # ---- what the operator tells

    def judge_log(self):
        """Each write of the operator to a child is told by one record, and each record tells one write."""
        told = self._records()
        broken = [f"a password is in {path}" for path in self._outputs()
                  if self._has_password(path.read_text(encoding="utf-8", errors="replace"))]
        for key, writes in self._requests().items():
            broken += self._compare(key, writes, told.pop(key, []))
        broken += [why for key, records in told.items() for record in records for why in _no_write(key, record)]
        if broken:
            raise Broken("\n".join(broken))

    def _outputs(self):
        return sorted(self._operator.folder.glob("output-*"), key=lambda path: int(path.name.split("-")[1]))

    def _has_password(self, text):
        return any(form in text for password in self._passwords - {PEOPLES} for form in (password, base64.b64decode(password).decode()))

    def _records(self):
        found = collections.defaultdict(list)
        for path in self._outputs():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                record = _parsed(line)
                if record.get("message_id") in TOLD:
                    moment = datetime.datetime.fromisoformat(record["time"].replace("Z", "+00:00")).timestamp()
                    found[record["object"]].append(Record(moment, TOLD[record["message_id"]], record["message"]))
        return found

    def _requests(self):
        found = collections.defaultdict(list)
        for entry in self._server.requests(lambda entry: "wrote" in entry and entry.get("resource") in CHILDREN
                                           and entry.get("user_agent", "").startswith("reconciled")):
            found[f"{CHILDREN[entry['resource']][1]} default/{entry['name']}"].append(entry)
        return found

    def _compare(self, key, writes, records):
        """In order: the operator writes to one child one after the other, and tells each before the next."""
        broken = []
        for entry, following in zip(writes, [*writes[1:], {"time": float("inf")}]):
            clear = 0 < entry["status"] < 500
            wanted = (("DELETED",) if entry["verb"] == "delete" else ("CREATED",) if entry["status"] == 201 else ("CHANGED", "RELEASED")
                      ) if clear else ("UNSURE",)
            while records and (records[0].moment < entry["time"] - CLOCK_SECONDS or (clear and records[0].what == "UNSURE")):
                broken += _no_write(key, records.pop(0))
            if records and records[0].moment < following["time"] + CLOCK_SECONDS and records[0].what in wanted:
                records.pop(0)
                self._told += 1
            elif any(begin <= entry["time"] <= end for begin, end in self._gaps):
                self._cut_off += 1
            else:
                broken.append(f"{key}: not told: {json.dumps(entry)}; next is told {records[:1]}")
        return broken + [why for record in records for why in _no_write(key, record)]


def _no_write(key, record):
    return [] if record.what == "UNSURE" else [f"{key}: {record.message}, at {record.moment}: no such write"]


def _parsed(line):
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return {}
