# SPDX-License-Identifier: Apache-2.0
"""State folders of commit 8412dad (tests/upgrade/make-state), with 10,000 objects of fifteen watches and all that may be pending:
the programs of today go on with them as those of then would have. Once from where an operator was stopped, once from where it was killed
with all its children; once right after that, once after a month in which every backoff has passed."""
import collections
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from harness import Devserver, Operator, wait_until
from harness.operator import MESSAGE_ID

from .schema5 import move_times
from .state import DAY, HOLD, NAMES, Handlers, configuration

ARCHIVE = Path(__file__).parent / "8412dad.tar.xz"
SECONDS = 1_000_000
FINALIZER, CHILDREN = "widgets.example.com/finalizer", "widgets.example.com/children"


@pytest.fixture(scope="module")
def kept():
    with tempfile.TemporaryDirectory(prefix="reconciled-test-upgrade-") as folder:
        subprocess.run(["tar", "-C", folder, "-xJf", ARCHIVE], check=True)
        yield Path(folder)


class Upgrade:
    """server, operator (not started), handlers; expected: (watch, name, UID, action) of the runs that are due."""

    def __init__(self, sandbox, folder, elapsed):
        database = sandbox.subfolder("database") / "database.yaml"
        shutil.copy(folder / "database.yaml", database)
        database.chmod(0o644)
        self.server = Devserver(sandbox, arguments=["--load-as-is", "--load", str(database), "--bookmark-interval", "1s"]).start()
        self.operator, self.handlers = Operator(sandbox), Handlers(sandbox)
        self.operator.write_config(yaml.safe_dump(configuration(self.operator.kubeconfig_for(self.server),
                                                                self.handlers.command)))
        self._put_state(folder, elapsed)
        self.before = json.loads((folder / "runs").read_text(encoding="utf-8"))
        self.expected = collections.Counter()

    def _put_state(self, folder, elapsed):
        state = self.operator.state_directory
        shutil.copytree(folder / "state", state, dirs_exist_ok=True)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        for path in state.glob("store/*/CURRENT"):
            generation, word = path.read_text(encoding="ascii").split()
            # Of another boot is a store that was open, and is not believed.
            path.write_text(f"{generation} {word if word == 'clean' else boot}\n", encoding="ascii")
        made = int((folder / "made").read_text(encoding="ascii"))
        move_times(state / "ledger.sqlite", time.time_ns() // 1000 - made - elapsed * SECONDS)
        for path in [state, *state.rglob("*")]:
            self.operator.user.give(path, 0o700 if path.is_dir() else 0o600)

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

    def differences(self):
        """[what is missing, what is too much]"""
        found = collections.Counter((run["watch"], run["name"], run["uid"], run["action"]) for run in self.handlers.runs())
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
        """Nothing was thrown away. With their ids the watches make other fingerprints, so each lists once."""
        for name in ("LEDGER_SET_ASIDE", "STORE_REBUILT", "DELETIONS_SUSPENDED"):
            assert not self.operator.logs(lambda record: record.get("watch") != "secrets", message_id=MESSAGE_ID[name]), name
        assert not list(self.operator.state_directory.glob("*corrupt*"))

    def assert_notes_renamed(self):
        """The shared notes of 8412dad are gone; in their place are those of the watch."""
        for watch in set(NAMES) - {"main", "secrets"}:
            for body in self.of(watch).list()["items"]:
                metadata = body["metadata"]
                notes = [*metadata.get("finalizers", []), *metadata.get("annotations", {})]
                assert not {FINALIZER, CHILDREN} & set(notes), metadata
                assert (watch == "held") == ("widgets.example.com/held.finalizer" in notes), metadata
                assert ("does" in metadata["labels"] and watch == "owner") == ("widgets.example.com/owner.children" in notes), metadata

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
    # In 8412dad a kind's watches had no ids, so no fingerprint left out what the others note: what has children runs again, and
    # once more when its watch has put its id on them. `trigger: any` meant the resourceVersion.
    upgrade.expect("reconcile", "any", *(f"o{number}" for number in range(300)))
    for _ in range(2):
        upgrade.expect("reconcile", "owner", *(f"o{number}" for number in range(50)))


def assert_last_states(upgrade):
    for run in upgrade.handlers.runs():
        if run["action"] in ("deleted", "finalize") and run["watch"] != "secrets":
            assert run["version"], f"without its last state: {run}"
            assert run["value"] == 1 or run["watch"] == "metadata", run


@pytest.mark.slow
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
    assert {watch: upgrade.watch_status(watch)["failing"] for watch in failing} == failing
    assert not upgrade.of("held").exists("o0"), "finalized, and still there"
    upgrade.assert_nothing_again("paused")


def finish_rollback(upgrade):
    children = upgrade.server.api.resource("v1", "configmaps", "owner")
    assert HOLD in children.get("slow")["metadata"]["finalizers"]
    wait_until(lambda: upgrade.watch_status("owner")["settling"] == 1, "the rollback")
    children.merge_patch("slow", {"metadata": {"finalizers": None}})
    wait_until(lambda: upgrade.watch_status("owner")["settling"] == 0, "the end of the attempt")
    # It is among those that run again.
    upgrade.expect("reconcile", "owner", "undone", "undone")
    wait_until(lambda: children.get("good")["data"] == {"value": "2"}, "the new attempt")
    assert not children.exists("slow") and children.get("good")["data"] == {"value": "2"}


@pytest.mark.slow
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


@pytest.mark.slow
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
            ("resynced", "reconcile", "o", range(20))):
        upgrade.expect(action, watch, *(f"{name}{number}" for number in numbers))
    upgrade.expect("reconcile", "refused", "refused")
    upgrade.expect("reconcile", "owner", "undone", "undone")
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
        {"main": 10, "fatal": 1}, "permanent, and in quarantine"
    upgrade.assert_notes_renamed()
    upgrade.assert_nothing_again("paused")
