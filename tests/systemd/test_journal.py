# SPDX-License-Identifier: Apache-2.0
"""Events that an operator acts on, in a real journal, with their fields; all of them in its catalog; and the queries of
docs/journal.md. What is not brought about here is in tests/integration, on the same records as JSON."""
import re

import pytest

from harness import wait_until, watch
from harness.node import HANDLER
from harness.operator import MESSAGE_ID
from harness.setup import SOURCE


def wait_for(node, name, **options):
    return node.wait_journal(f"MESSAGE_ID={MESSAGE_ID[name]}", **options)


def restart_with(node, change):
    """Stops the unit, changes something, starts it again."""
    node.run("systemctl", "stop", node.unit)
    wait_for(node, "STOPPED")
    change()
    node.mark()
    node.run("systemctl", "start", node.unit)


def test_catalog_has_all_of_them(node):
    listed = node.run("journalctl", "--dump-catalog").stdout
    for name, value in MESSAGE_ID.items():
        assert f"-- {value}" in listed, name


def test_start_and_stop(node):
    node.configure()
    node.start()
    wait_for(node, "STARTED")
    node.run("systemctl", "stop", node.unit)
    wait_for(node, "STOPPED")


def test_a_run_that_has_failed_for_good(node):
    node.configure("echo 'this can never be' >&2; exit 65")
    node.start()
    node.create_widget("a")
    entry = wait_for(node, "RUN_PERMANENT")
    assert entry["RECONCILED_KEY"] == "default/a" and entry["RECONCILED_ATTEMPT"] == "1"
    assert entry["RECONCILED_ACTION"] == "reconcile" and entry["RECONCILED_UID"] and entry["PRIORITY"] == "3"
    assert entry["RECONCILED_EXIT_CODE"] == "65"
    said = wait_for(node, "HANDLER_OUTPUT", text="this can never be")
    fields = {name: said.get(f"RECONCILED_{name}") for name in
              ("WATCH", "KEY", "NAMESPACE", "NAME", "UID", "ACTION", "ATTEMPT", "ROLE")}
    assert fields == {"WATCH": "widgets", "KEY": "default/a", "NAMESPACE": "default", "NAME": "a", "UID": entry["RECONCILED_UID"],
                      "ACTION": "reconcile", "ATTEMPT": "1", "ROLE": "worker"}


def test_a_broken_watch(node):
    node.configure()
    node.start()
    node.run("systemctl", "kill", "-s", "KILL", "devserver.service")
    degraded = wait_for(node, "WATCH_DEGRADED")
    assert degraded["RECONCILED_WATCH"] == "widgets"
    wait_until(lambda: "widgets degraded" in node.show(node.unit, "StatusText"), "the status line")
    node.run("systemctl", "reset-failed", "devserver.service", check=False)


def test_the_log_of_one_object(node):
    node.configure("echo a word about $RECONCILED_NAME >&2")
    node.start()
    for name in ("a", "b"):
        node.create_widget(name)
        wait_for(node, "HANDLER_OUTPUT", text=f"a word about {name}")
    lines = node.run("reconciledctl", "logs", "widgets", "default/a", "--", "-o", "cat", "--no-pager").stdout
    assert "a word about a" in lines and "a word about b" not in lines
    found = node.run("reconciledctl", "logs", "--json", "widgets", "--", "-n", "1").stdout
    assert '"_SYSTEMD_UNIT":"reconciled.service"' in found and '"RECONCILED_WATCH":"widgets"' in found


def test_a_ledger_that_is_corrupt(node):
    node.configure()
    node.start()
    restart_with(node, lambda: node.run("sh", "-c", "head -c 8192 /dev/urandom >/var/lib/reconciled/ledger.sqlite; "
                                        "rm -f /var/lib/reconciled/ledger.sqlite-wal"))
    assert "set aside" in wait_for(node, "LEDGER_SET_ASIDE")["MESSAGE"]


def test_a_store_that_is_corrupt(node):
    node.configure()
    node.start()
    node.create_widget("a")
    node.wait_synced()
    restart_with(node, lambda: node.run("sh", "-c", "for file in /var/lib/reconciled/store/widgets/*/data.mdb; do "
                                        "head -c 65536 /dev/urandom >$file; done"))
    assert wait_for(node, "STORE_REBUILT")["RECONCILED_WATCH"] == "widgets"
    node.wait_synced()


def test_another_cluster_at_the_same_url(node):
    node.configure()
    node.start()
    node.create_widget("a")
    wait_until(lambda: node.run("reconciledctl", "status", "--json").stdout.find('"succeeded":\t1') > 0, "the run")
    restart_with(node, lambda: node.request("POST", "/devserver/cluster"))
    assert wait_for(node, "DELETIONS_SUSPENDED")["RECONCILED_WATCH"] == "widgets"


def test_a_database_that_was_restored(node):
    node.configure()
    node.start()
    snapshot = node.request("POST", "/devserver/snapshot")["id"]
    for name in "abc":
        node.create_widget(name)
    wait_until(lambda: '"objects":\t3' in node.run("reconciledctl", "status", "--json").stdout, "three objects")
    node.request("POST", "/devserver/restore", {"id": snapshot})
    assert wait_for(node, "DATABASE_RESTORED")["RECONCILED_WATCH"] == "widgets"


def test_an_isolated_and_an_absent_watch(node):
    node.configure()
    node.configure(watches=[watch("absent", [HANDLER], kind="Nothing", required=False),
                            watch("isolated", [HANDLER], kind="Missing", onDeadline="isolate", deadline="300ms")])
    node.run("systemctl", "start", node.unit)
    assert wait_for(node, "WATCH_ABSENT")["RECONCILED_WATCH"] == "absent"
    assert wait_for(node, "WATCH_FAILED")["RECONCILED_WATCH"] == "isolated"
    assert node.show(node.unit, "ActiveState") == "active"


def test_objects_that_the_operator_dies_over(node):
    """One that its filter hangs on, and one that kills its worker."""
    hangs = "def f: [range(100000)] | .[.]; if .metadata.name == \"endless\" then f else true end"
    node.configure("[ $RECONCILED_NAME != deadly ] || kill -KILL $PPID; sleep 0.1", heartbeat={"interval": "100ms", "deadline": "2s"},
                   watches=[watch("widgets", [HANDLER], filter=hangs, quarantine={"after": 1})])
    node.drop_in(node.unit, "[Service]\nRestartSec=100ms\n")
    node.start()
    node.create_widget("endless")
    doubtful = wait_for(node, "DOUBTFUL")
    assert doubtful["RECONCILED_KEY"] == "default/endless" and doubtful["RECONCILED_CRASHES"] == "1" and doubtful["RECONCILED_UID"]
    node.create_widget("deadly")
    quarantined = wait_for(node, "QUARANTINED")
    assert quarantined["RECONCILED_KEY"] == "default/deadly" and quarantined["RECONCILED_CRASHES"] == "1"
    assert quarantined["RECONCILED_WATCH"] == "widgets" and quarantined["PRIORITY"] == "3"
    node.wait_restarts(2)
    node.write(HANDLER, "#!/bin/sh\nexit 0\n", 0o755)
    node.run("reconciledctl", "release", "widgets", "default/deadly")
    assert wait_for(node, "RELEASED")["RECONCILED_KEY"] == "default/deadly"


def test_a_journald_that_stalls_blocks_nothing(node):
    # The lines that one run may log fit the queue of its process; those of five do not.
    node.configure("head -c 900000 /dev/zero | tr '\\0' x | fold -w 900 >&2; echo '{\"status\": {\"done\": true}}'")
    node.start()
    journald = node.show("systemd-journald.service", "MainPID")
    node.kill(journald, "STOP")
    try:
        for name in "abcde":
            node.create_widget(name)
        for name in "abcde":
            wait_until(lambda name=name: node.widget(name).get("status") == {"done": True},
                       "the runs to end although nobody takes their lines")
    finally:
        node.kill(journald, "CONT")
    assert re.search(r"\d", wait_for(node, "LOG_DROPPED")["MESSAGE"])


def test_starts_that_fail_at_once_are_found_by_their_unit(node):
    """journald asks /proc for the unit as it takes a line: nobody may have ended by then."""
    node.configure(worker=3)
    node.drop_in(node.unit, "[Unit]\nStartLimitIntervalSec=0\n")
    journald = node.show("systemd-journald.service", "MainPID")
    node.run("renice", "10", journald)
    try:
        for _ in range(40):
            node.run("systemctl", "start", node.unit, check=False)
    finally:
        node.run("renice", "0", journald)
    node.run("journalctl", "--sync")
    mistakes = f"MESSAGE_ID={MESSAGE_ID['CONFIGURATION_WRONG']}"
    lines = node.run("journalctl", "-b", "-o", "cat", mistakes).stdout.splitlines()
    assert len(lines) >= 40
    assert node.run("journalctl", "-b", "-o", "cat", "-u", node.unit, mistakes).stdout.splitlines() == lines


def queries():
    text = (SOURCE / "docs" / "journal.md").read_text(encoding="utf-8")
    return re.findall(r"\*\*(\d+)\. .*?```sh\n(.*?)\n```", text, re.S)


def test_the_manual_has_ten_questions():
    assert [int(number) for number, _ in queries()] == list(range(1, 11))


# What each query of docs/journal.md shows after the night below.
SHOWN = {"1": "active (running)", "2": "Subject: The operator goes down: watcher", "3": "starts operator", "4": 'did you mean "workers"',
         "5": "reconcile of default/a of watch widgets failed", "6": "default/a", "7": "default/hopeless", "8": "does not work for now",
         "9": "has been set aside", "10": "the handler was here"}


def test_the_queries_of_the_manual(node):
    good = "echo the handler was here >&2; case $RECONCILED_NAME in hopeless) exit 65;; *) exit 75;; esac"
    node.configure(good, worker=3)
    node.run("systemctl", "start", node.unit, check=False)
    node.wait_state(node.unit, "failed")
    node.run("sh", "-c", "head -c 8192 /dev/urandom >/var/lib/reconciled/ledger.sqlite; "
             "chown reconciled: /var/lib/reconciled/ledger.sqlite")
    node.configure(good)
    node.drop_in(node.unit, "[Service]\nRestartSec=100ms\n")
    node.start()
    for name in ("a", "hopeless"):
        node.create_widget(name)
    wait_for(node, "RUN_FAILED")
    wait_for(node, "RUN_PERMANENT")
    node.run("systemctl", "stop", "devserver.service")
    wait_for(node, "WATCH_DEGRADED")
    node.kill(node.child(node.unit, "watcher"), "KILL")
    wait_for(node, "CHILD_FATAL")
    node.wait_restarts(1)
    for number, command in queries():
        said = node.run("sh", "-c", command, check=False)
        assert SHOWN[number] in said.stdout, (number, command, said.stdout[-2000:], said.stderr)
