# SPDX-License-Identifier: Apache-2.0
"""State folders with objects of fifteen watches and all that may be pending: a start goes on with them as the life before would have.
Once from where an operator was stopped, once from where it was killed with all its children; once right after that, once after a month in
which every backoff has passed. A folder of another format is refused, and left aside when that is asked for."""
import collections
import contextlib
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import pytest
import yaml

from harness import Devserver, Operator, Sandbox, ledger, wait_until, watch
from harness.operator import MESSAGE_ID

from .maker import Maker, make
from .state import DAY, HOLD, NAMES, Handlers, configuration

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("upgrade")]
SECONDS = 1_000_000
SHORTLY = 45  # seconds: what waits in the queue


TIMES = {"ledger": "next handled crashed written ran", "paused": "since", "doubtful": "crashed until"}


@pytest.fixture(scope="module")
def kept(programs):
    sandbox = Sandbox(programs, "make-state")
    try:
        with tempfile.TemporaryDirectory(prefix="reconciled-test-upgrade-") as folder:
            Path(folder).chmod(0o755)
            make(sandbox, Path(folder))
            yield Path(folder)
    finally:
        sandbox.close()


def test_who_dies_with_its_parent_may_be_gone_before_it_is_killed():
    said = []

    def kill(number):
        said.append(number)
        if number == signal.SIGKILL:
            raise ProcessLookupError

    operator = types.SimpleNamespace(processes=lambda: [types.SimpleNamespace(kill=kill)], wait_exit=lambda expect: said.append(expect),
                                     assert_no_processes=lambda: said.append("nobody"))
    Maker.end(types.SimpleNamespace(operator=operator), killed=True)
    assert said == [signal.SIGSTOP, signal.SIGKILL, -signal.SIGKILL, "nobody"]


def move_times(operator, usec):
    """As if the operator had ended that much later. Returns when the first row of `shortly` is due then."""
    def settling(text):
        return re.sub(r'"deadline":"(\d+)"', lambda found: f'"deadline":"{int(found[1]) + usec}"', text)

    with ledger.edit(operator) as database:
        database.create_function("moved", 1, settling)
        database.execute("UPDATE ledger SET settling = moved(settling) WHERE settling <> ''")
        database.execute("UPDATE ledger SET quarantined_until = quarantined_until + ? WHERE quarantined_until > 0", [usec])
        for table, names in TIMES.items():
            for name in names.split():
                database.execute(f"UPDATE {table} SET {name}_realtime = {name}_realtime + ? WHERE {name}_realtime > 0", [usec])
        return database.execute("SELECT min(next_realtime) FROM ledger WHERE watch = 'shortly' AND next_realtime > 0").fetchone()[0]


class Upgrade:
    """server, operator (not started), handlers; expected: (watch, name, UID, action) of the runs that are due."""

    def __init__(self, sandbox, folder, elapsed):
        database = sandbox.subfolder("database") / "database.yaml"
        shutil.copy(folder / "database.yaml", database)
        database.chmod(0o644)
        self.server = Devserver(sandbox, arguments=["--load-as-is", "--load", str(database), "--bookmark-interval", "1s"]).start()
        self.operator, self.handlers = Operator(sandbox), Handlers(sandbox, folder.parent)
        self.operator.write_config(yaml.safe_dump(configuration(self.operator.kubeconfig_for(self.server),
                                                                self.handlers.command)))
        first_due = self._put_state(folder, elapsed)
        self.before = json.loads((folder / "runs").read_text(encoding="utf-8"))
        self.expected = collections.Counter()
        # From then on what waits in the queue may come, on a machine that is slow: to make the folder, or since then.
        self.shortly = time.time_ns() // 1000 + SHORTLY * SECONDS // 2 if elapsed else first_due

    def _put_state(self, folder, elapsed):
        state = self.operator.state_directory
        shutil.copytree(folder / "state", state, dirs_exist_ok=True)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        for path in state.glob("store/*/CURRENT"):
            generation, word = path.read_text(encoding="ascii").split()
            # Of another boot is a store that was open, and is not believed.
            path.write_text(f"{generation} {word if word == 'clean' else boot}\n", encoding="ascii")
        made = int((folder / "made").read_text(encoding="ascii"))
        first_due = move_times(self.operator, time.time_ns() // 1000 - made - elapsed * SECONDS)
        for path in [state, *state.rglob("*")]:
            self.operator.user.give(path, 0o700 if path.is_dir() else 0o600)
        return first_due

    def of(self, watch):
        if watch == "secrets":
            return self.server.api.resource("v1", "secrets", watch)
        return self.server.api.resource("example.com/v1", "widgets", watch)

    def expect(self, action, watch, *names):
        """A run of an object that was known before."""
        for name in names:
            uid = next(run["uid"] for run in reversed(self.before) if (run["watch"], run["name"]) == (watch, name))
            self.expected[watch, name, uid, action] += 1

    def expect_new(self, watch, body):
        self.expected[watch, body["metadata"]["name"], body["metadata"]["uid"], "reconcile"] += 1

    def may_run_shortly(self):
        return time.time_ns() // 1000 > self.shortly

    def differences(self):
        """[what is missing, what is too much]"""
        found = collections.Counter((run["watch"], run["name"], run["uid"], run["action"]) for run in self.handlers.runs())
        if self.may_run_shortly():
            found -= collections.Counter({run: count for run, count in (found - self.expected).items() if run[0] == "shortly"})
        return [sorted((self.expected - found).elements())[:20], sorted((found - self.expected).elements())[:20]]

    def rest(self, *but):
        """What is expected has run and nothing else: behind it, in each watch, an object that is made now."""
        wait_until(lambda: not self.differences()[0], lambda: f"runs, [missing, too many]: {self.differences()}", 60, interval=0.2)
        for watch in set(NAMES) - {"secrets", *but}:
            self.expect_new(watch, self.of(watch).create(f"last-{time.time_ns()}", spec={"value": 1}, labels={"tier": "gold"}))
        wait_until(lambda: not self.differences()[0], lambda: f"runs, [missing, too many]: {self.differences()}", 60, interval=0.2)
        wait_until(lambda: all(entry["running"] == 0 for entry in self.operator.ctl.status()["watches"]), "rest")
        assert not self.differences()[1], "runs of what is at rest"

    def lists(self):
        """But what is kept of Secrets is not kept on disk."""
        return self.server.requests(lambda request: request.get("resource") in ("widgets", "configmaps") and (
            (request.get("verb") == "list" and "limit=1" not in request["query"].split("&")) or
            "sendInitialEvents" in request["query"]))

    def assert_kept(self):
        """Nothing was thrown away."""
        for name in ("LEDGER_SET_ASIDE", "STORE_REBUILT", "DELETIONS_SUSPENDED"):
            assert not self.operator.logs(lambda record: record.get("watch") != "secrets", message_id=MESSAGE_ID[name]), name
        assert not list(self.operator.state_directory.glob("*corrupt*"))

    def watch_status(self, watch):
        return next(entry for entry in self.operator.ctl.status()["watches"] if entry["name"] == watch)

    def assert_nothing_again(self, *but):
        self.operator.stop()
        before = len(self.lists())
        self.operator.start_ready().wait_synced()
        self.rest(*but)
        assert len(self.lists()) == before, "what is stored is believed"
        self.operator.stop()


@pytest.fixture(params=["clean", "killed"])
def upgrade(request, sandbox, kept):
    return lambda elapsed: Upgrade(sandbox, kept / request.param, elapsed)


def change_while_down(upgrade):
    """Deleted, changed, replaced by another object of the same name, with our finalizer, out of the selection."""
    main, held, chosen = upgrade.of("main"), upgrade.of("held"), upgrade.of("chosen")
    main.delete("o0")
    main.delete("o1")
    main.merge_patch("o2", {"spec": {"value": 2}})
    main.delete("o3")
    upgrade.expect("deleted", "main", "o0", "o1", "o3")
    upgrade.expect("reconcile", "main", "o2")
    upgrade.expect_new("main", main.create("o3", spec={"value": 1}))
    held.delete("o0")
    upgrade.expect("finalize", "held", "o0")
    chosen.merge_patch("o1", {"metadata": {"labels": {"tier": "silver"}}})
    upgrade.expect("unselected", "chosen", "o1")
    chosen.delete("o2")
    upgrade.expect("deleted", "chosen", "o2")


def expect_interrupted(upgrade):
    """Under way when it ended, and the question to the server that had no answer."""
    upgrade.expect("reconcile", "main", "hangs")
    upgrade.expect("deleted", "main", "ends")
    upgrade.expect("deleted", "chosen", "asked")


def assert_last_states(upgrade):
    for run in upgrade.handlers.runs():
        if run["action"] in ("deleted", "finalize") and run["watch"] != "secrets":
            assert run["version"], f"without its last state: {run}"
            assert run["value"] == 1 or run["watch"] == "metadata", run


def test_nothing_runs_but_what_was_pending(upgrade):
    upgrade = upgrade(elapsed=0)
    change_while_down(upgrade)
    expect_interrupted(upgrade)
    upgrade.operator.start_ready().wait_synced()
    upgrade.rest("paused")
    upgrade.assert_kept()
    assert_last_states(upgrade)
    failing = {"main": 25, "held": 5, "chosen": 10, "metadata": 5, "secrets": 5, "shortly": 15, "fatal": 1, "refused": 1,
               "owner": 0, "resynced": 0, "paused": 0}
    found = {watch: upgrade.watch_status(watch)["failing"] for watch in failing}
    assert found == failing | ({"shortly": found["shortly"]} if upgrade.may_run_shortly() else {})
    assert not upgrade.of("held").exists("o0"), "finalized, and still there"
    upgrade.assert_nothing_again("paused")


def finish_rollback(upgrade):
    children = upgrade.server.api.resource("v1", "configmaps", "owner")
    assert HOLD in children.get("slow")["metadata"]["finalizers"]
    wait_until(lambda: upgrade.watch_status("owner")["settling"] == 1, "the rollback")
    children.merge_patch("slow", {"metadata": {"finalizers": None}})
    wait_until(lambda: upgrade.watch_status("owner")["settling"] == 0, "the end of the attempt")
    assert not children.exists("slow") and children.get("good")["data"] == {"value": "1"}


def test_a_rollback_goes_on_and_what_was_paused_waits_until_it_is_resumed(upgrade):
    upgrade = upgrade(elapsed=0)
    expect_interrupted(upgrade)
    upgrade.operator.start_ready().wait_synced()
    finish_rollback(upgrade)
    upgrade.rest("paused")
    assert not upgrade.handlers.runs(watch="paused")
    assert upgrade.watch_status("paused")["pauseReason"] == "the disk moves"
    upgrade.assert_kept()
    for body in upgrade.of("paused").list()["items"]:
        if body["metadata"]["name"].startswith("unseen"):
            upgrade.expect_new("paused", body)
    upgrade.expect("reconcile", "paused", *(f"o{number}" for number in range(5)))
    upgrade.expect("deleted", "paused", *(f"ended{number}" for number in range(5)))
    assert upgrade.operator.ctl.run("resume", "paused").returncode == 0
    upgrade.rest()
    assert_last_states(upgrade)


def test_what_is_due_after_a_month_runs_once(upgrade):
    upgrade = upgrade(elapsed=30 * DAY)
    expect_interrupted(upgrade)
    ten, five = range(10), range(5)
    for watch, action, name, numbers in (
            ("main", "reconcile", "fails", ten), ("main", "reconcile", "requeue", ten), ("shortly", "reconcile", "fails", ten),
            ("main", "deleted", "cleanup-fails", five), ("shortly", "deleted", "cleanup-fails", five),
            ("held", "finalize", "cleanup-fails", five), ("held", "finalize", "cleanup-goes-on", five),
            ("chosen", "deleted", "cleanup-fails", five), ("chosen", "unselected", "left", five),
            ("metadata", "deleted", "cleanup-fails", five), ("secrets", "deleted", "cleanup-fails", five),
            ("resynced", "reconcile", "o", five)):
        upgrade.expect(action, watch, *(f"{name}{number}" for number in numbers))
    upgrade.expect("reconcile", "refused", "refused")
    upgrade.operator.start_ready().wait_synced()
    upgrade.rest("paused")
    upgrade.assert_kept()
    assert_last_states(upgrade)
    for run in upgrade.handlers.runs():
        tried = [old["attempt"] for old in upgrade.before if (old["uid"], old["action"]) == (run["uid"], run["action"])]
        if run["reason"] == "retry" or run["name"].startswith("cleanup-fails"):
            assert run["attempt"] == tried[-1] + 1, f"the backoff begins anew: {run}"
    assert {run["reason"] for run in upgrade.handlers.runs(watch="resynced") if run["name"].startswith("o")} == {"resync"}
    assert not [name for name in upgrade.of("held").names() if name.startswith("cleanup")], "finalized, and still there"
    assert {watch: upgrade.watch_status(watch)["failing"] for watch in NAMES if upgrade.watch_status(watch)["failing"]} == \
        {"main": 10, "fatal": 1, "owner": 1}, "permanent, in quarantine, and a rollback whose time is over"
    upgrade.assert_nothing_again("paused")


# ---- a state folder of another format

def write_format(path, by):
    """As another release would have left it. The format is in both numbers (lib/ledger/database/ledger-schema.c)."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        for name in ("user_version", "application_id"):
            [number] = database.execute(f"PRAGMA {name}").fetchone()
            database.execute(f"PRAGMA {name} = {number + by}")


@pytest.fixture
def small(devserver, operator, handler, widgets):
    """An operator that has handled a Widget and was stopped."""
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("a")
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a")
    operator.stop()
    return operator


def kill_with_log(path, by):
    """As a release that was killed would have left it: its last commits are in the write-ahead log alone."""
    source = f"""import os, sqlite3
database = sqlite3.connect({str(path)!r})
database.execute("PRAGMA wal_autocheckpoint = 0")
for name in ("user_version", "application_id"):
    [number] = database.execute(f"PRAGMA {{name}}").fetchone()
    database.execute(f"PRAGMA {{name}} = {{number + {by}}}")
os._exit(0)"""
    subprocess.run([sys.executable, "-c", source], check=True)
    assert path.with_name(path.name + "-wal").stat().st_size > 0


def contents(path):
    """The file, and what its write-ahead log holds; an empty log is none."""
    log = path.with_name(path.name + "-wal")
    return path.read_bytes(), log.read_bytes() if log.exists() else b""


@pytest.mark.parametrize("leave", [write_format, kill_with_log], ids=["stopped", "killed"])
@pytest.mark.parametrize("by", [-1, 1], ids=["older", "newer"])
def test_another_format_is_refused_and_unchanged(small, handler, by, leave):
    path = small.state_directory / "ledger.sqlite"
    leave(path, by)
    before = contents(path)
    for _ in range(2):
        small.start().wait_exit(expect=78)
        assert contents(path) == before
    [said] = small.logs(lambda record: "has format" in record["message"])
    assert "--discard-state" in said["message"] and str(path) in said["message"]
    write_format(path, -by)
    small.start_ready().wait_synced()
    small.stop()
    assert len(handler.requests(name="a")) == 1, "nothing is forgotten"


def test_a_state_of_another_format_is_discarded_once_that_is_asked_for(small, handler, widgets):
    write_format(small.state_directory / "ledger.sqlite", 1)
    small.arguments.append("--discard-state")
    small.start_ready().wait_synced()
    handler.wait_finished(name="a", count=2)
    [said] = small.logs(message_id=MESSAGE_ID["LEDGER_SET_ASIDE"])
    [aside] = small.state_directory.glob("ledger.sqlite.discarded-*[0-9]")
    assert str(aside) in said["message"]
    small.stop()
    small.start_ready().wait_synced()
    widgets.create("b")
    handler.wait_finished(name="b")
    small.stop()
    assert len(handler.requests(name="a")) == 2, "a state of this release's format is kept"
