# SPDX-License-Identifier: Apache-2.0
"""A worker is given several short runs at once. Nobody must notice it but by the time that it saves."""
import os
import signal

import pytest

from harness import ledger, wait_until, watch

# Answers at once; an object may say that its run takes long, or kills the worker.
PROGRAM = """#!/usr/bin/python3 -u
import json, os, signal, sys
for line in sys.stdin:
    request = json.loads(line)
    metadata = request["object"]["metadata"]
    do = request["object"].get("spec", {{}}).get("do")
    with open({folder!r} + "/requests", "a") as file:
        file.write(metadata["name"] + " " + str(metadata["generation"]) + "\\n")
    if do == "wait":
        open({folder!r} + "/go").close()  # a FIFO: until somebody writes
    if do == "kill":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    print(json.dumps({{"id": request["id"]}}))
"""
COUNT = 300


@pytest.fixture
def folder(sandbox, operator):
    folder = sandbox.subfolder("serve", operator.user)
    (folder / "serve").write_text(PROGRAM.format(folder=str(folder)), encoding="utf-8")
    (folder / "serve").chmod(0o755)
    os.mkfifo(folder / "go")
    (folder / "go").chmod(0o666)
    return folder


@pytest.fixture
def configured(devserver, operator, folder):
    def configured(workers=2, **more):
        entry = watch("widgets", **more)
        entry["handler"] = {"serve": [str(folder / "serve")]}
        operator.configure(devserver, [entry], workers=workers)
        return operator

    return configured


def runs(folder):
    path = folder / "requests"
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def names(prefix, count=COUNT):
    return [f"{prefix}-{number}" for number in range(count)]


def wait_all(folder, expected, generation="1"):
    wait_until(lambda: {tuple(run) for run in runs(folder)} >= {(name, generation) for name in expected},
               lambda: f"{len(expected)} runs of generation {generation}, {len(runs(folder))} runs so far", 60)


def change(widgets, name, number, **spec):
    return widgets.merge_patch(name, {"spec": {"number": number, **spec}})


def blamed(operator):
    return ledger.read(operator, "SELECT key, crashes FROM ledger WHERE crashes > 0")


def at_pace(operator, folder, widgets, prefix):
    """From then on it is known how short the runs are."""
    for name in names(prefix):
        widgets.create(name)
    operator.start_ready().wait_synced()
    wait_all(folder, names(prefix))
    return operator


def test_each_once_and_the_newest_last(configured, folder, widgets):
    operator = at_pace(configured(workers=2), folder, widgets, "widget")
    for name in names("widget"):
        change(widgets, name, 2)
    wait_all(folder, names("widget"), "2")
    operator.stop()
    found = runs(folder)
    assert len(found) == 2 * COUNT, "each change once"
    for name in names("widget"):
        assert [generation for named, generation in found if named == name] == ["1", "2"]


def test_one_that_takes_long_holds_nobody_up(configured, folder, widgets):
    operator = at_pace(configured(workers=2), folder, widgets, "before")
    widgets.create("long", spec={"do": "wait"})
    for name in names("after"):
        widgets.create(name)
    wait_all(folder, ["long", *names("after")])
    assert operator.ctl.status()["watches"][0]["running"] == 1, "it runs still"
    (folder / "go").write_text("", encoding="utf-8")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "its end")
    operator.stop()
    found = runs(folder)
    assert sorted(name for name, _ in found) == sorted(["long", *names("before"), *names("after")]), "each once"


def switches(process):
    """How often it has gone to sleep."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches:"))


@pytest.mark.slow
def test_behind_a_late_one_nothing_is_put_again_and_again(configured, folder, widgets):
    operator = at_pace(configured(workers=1), folder, widgets, "before")
    widgets.create("long", spec={"do": "wait"})
    wait_all(folder, ["long"])
    for name in names("after", 50):
        widgets.create(name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 50, "all but one to wait")
    worker, watchdogs = operator.child("worker"), len(operator.notifications)
    before = switches(worker)
    wait_until(lambda: len(operator.notifications) >= watchdogs + 3, "three turns of the heart", 60)
    assert switches(worker) - before < 50
    (folder / "go").write_text("", encoding="utf-8")
    wait_all(folder, names("after", 50))
    operator.stop()


@pytest.mark.slow
def test_only_the_one_that_runs_is_blamed(configured, folder, widgets):
    operator = at_pace(configured(workers=1, retry={"first": "1ms", "max": "10ms"}), folder, widgets, "widget")
    operator.stop()
    widgets.create("poison", spec={"do": "kill"})
    for name in names("widget"):
        change(widgets, name, 2)
    operator.start()
    operator.wait_exit(expect=70)
    assert operator.logs(level="critical")[0]["key"] == "default/poison"
    assert blamed(operator) == [("default/poison", 1)]
    for _ in range(2):
        operator.start()
        operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    wait_all(folder, names("widget"), "2")
    operator.stop()
    assert blamed(operator) == [("default/poison", 3)]


def test_what_was_not_begun_at_a_stop_runs_after_the_restart(configured, folder, widgets):
    operator = at_pace(configured(workers=1), folder, widgets, "before")
    widgets.create("long", spec={"do": "wait"})
    wait_all(folder, ["long"])
    for name in names("after", 50):
        widgets.create(name)
    (folder / "go").write_text("", encoding="utf-8")
    operator.stop()
    operator.start_ready().wait_synced()
    wait_all(folder, names("after", 50))
    operator.stop()
    found = [name for name, _ in runs(folder)]
    assert len(found) == len(set(found)), "none of them twice"


def test_a_pause_lets_nothing_begin(configured, folder, widgets):
    operator = at_pace(configured(workers=2), folder, widgets, "widget")
    for name in names("widget"):
        change(widgets, name, 2)
    operator.ctl.run("pause", "widgets", "--reason", "a test")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "those under way")
    seen = len(runs(folder))
    for name in names("widget"):
        change(widgets, name, 3)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == COUNT, "all changes to be known")
    widgets.create("other")
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == COUNT + 1, "one that came after them to be known")
    assert len(runs(folder)) == seen
    operator.ctl.run("resume", "widgets")
    wait_all(folder, names("widget"), "3")
    wait_all(folder, ["other"])

    # Nor is what has not begun called running: of many that come at once workers are given some, and stand still.
    workers, watcher = operator.children("worker"), operator.child("watcher")
    watcher.kill(signal.SIGSTOP)
    for name in names("late", 30):
        widgets.create(name)
    for worker in workers:
        worker.kill(signal.SIGSTOP)
    watcher.kill(signal.SIGCONT)
    row = wait_until(lambda: next((row for row in operator.ctl.status()["watches"] if row["running"] + row["queued"] == 30),
                                  None), "all to be known")
    assert row["running"] == len(workers)
    assert f"{len(workers)} running will finish" in operator.ctl.run("pause", "widgets").stdout
    operator.ctl.run("resume", "widgets")
    for worker in workers:
        worker.kill(signal.SIGCONT)
    wait_all(folder, names("late", 30))
    operator.stop()
