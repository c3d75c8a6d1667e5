# SPDX-License-Identifier: Apache-2.0
"""When all has come right: it ends in order, owes nothing, and does nothing again when it is started again."""
import contextlib
import sqlite3

from harness import wait_until

from . import plan
from .world import SELECTED, Broken


def owed(operator):
    """What the ledger knows."""
    with contextlib.closing(sqlite3.connect(f"file:{operator.state_directory}/ledger.sqlite?mode=ro", uri=True)) as ledger:
        return {(row[0], row[1]) for row in ledger.execute("SELECT watch, uid FROM ledger")}


def _is_at_rest(chaos):
    """Nothing runs, and nothing is on its way: a child that a run has applied runs its owner once more when its watch sees it.
    A real server tells a watch only now and then how far it is."""
    newest = int(chaos.children.list()["metadata"]["resourceVersion"])
    watches = chaos.operator.ctl.status()["watches"] + chaos.operator.ctl.status()["watches"]
    return (all(entry["queued"] == entry["running"] == entry["waiting"] == 0 for entry in watches)
            and (not chaos.server.tells_versions or all(int(entry["resourceVersion"]) >= newest for entry in watches)))


def _explained(chaos, uid):
    key = chaos.notes.key_of(uid)
    return f"{key} ({uid}):\n{chaos.operator.ctl.run('explain', key.split('/')[0], key).stdout}"


def rest(chaos):
    """Raises Broken."""
    operator, notes = chaos.operator, chaos.notes
    wait_until(lambda: _is_at_rest(chaos), "rest", 60)
    operator.stop()
    operator.assert_no_processes()
    notes.read()
    wanted = {(thing.kind, thing.uid) for thing in chaos.things.values()
              if not thing.deleting and (thing.kind not in SELECTED or thing.gold)}
    found = owed(operator)
    if found != wanted:
        raise Broken(f"the ledger has {sorted(found - wanted)} too much and lacks {sorted(wanted - found)}")
    before = {uid: len(told.begun) for uid, told in notes.read().told.items()}
    operator.start_ready().wait_synced()
    last = [chaos.widgets[kind].create("last", spec={"essence": chaos.next_number()}, labels={"tier": "gold"})
            for kind in plan.KINDS]
    wait_until(lambda: all(("reconcile", body["spec"]["essence"]) in notes.read().of(body["metadata"]["uid"]).ended
                           for body in last), "the last ones to be handled")
    again = {uid: told.begun[before.get(uid, 0):] for uid, told in notes.told.items()}
    for body in last:
        del again[body["metadata"]["uid"]]
    again = [f"{runs} of {_explained(chaos, uid)}" for uid, runs in again.items() if runs]
    if again:
        raise Broken("\n".join([operator.output.text()[-20000:], "runs after a restart in order, where nothing had changed:"] + again))
    operator.stop()
    chaos.say(chaos.figures())
