# SPDX-License-Identifier: Apache-2.0
"""While the API server answers, other runs have the worker; one handler is at work at a time."""
import os
import signal
import time

import pytest

from harness import ledger, wait_until, watch

PROGRAM = """#!/usr/bin/python3 -u
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    metadata, spec = request["object"]["metadata"], request["object"].get("spec", {{}})
    with open({folder!r} + "/requests", "a") as file:
        file.write(metadata["name"] + " " + str(metadata["generation"]) + "\\n")
    if spec.get("do") == "wait":
        open({folder!r} + "/go").close()  # a FIFO: until somebody writes
    print(json.dumps({{"id": request["id"], "status": {{"size": spec.get("size", 0)}}}}))
"""


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
    def configured(workers=1, top=None, **more):
        entry = watch("widgets", **more)
        entry["handler"] = {"serve": [str(folder / "serve")]}
        operator.configure(devserver, [entry], workers=workers, **{"stop": {"grace": "1s"}, **(top or {})})
        return operator

    return configured


def runs(folder):
    path = folder / "requests"
    return [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def wait_run(folder, *names):
    wait_until(lambda: set(runs(folder)) >= set(names), f"the handler to have run for {names}")


def go(folder):
    (folder / "go").open("w", encoding="utf-8").close()


def hold_writes(devserver, name=None):
    """The server does not answer patches of this object's status."""
    match = {"verb": "patch", "resource": "widgets/status", **({"name": name} if name else {})}
    return devserver.fault(match, hang=True, times=0)


def row(operator):
    return operator.ctl.status()["watches"][0]


def is_written(widgets, name):
    return widgets.get(name).get("status") is not None


def test_a_slow_write_holds_nobody_up(configured, devserver, folder, widgets):
    operator = configured()
    held = hold_writes(devserver, "slow")
    operator.start_ready().wait_synced()
    widgets.create("slow", spec={"size": 1})
    wait_until(lambda: row(operator)["writing"] == 1, "its write to be in flight")
    for number in range(50):
        widgets.create(f"quick-{number}", spec={"size": 1})
    wait_until(lambda: all(is_written(widgets, f"quick-{number}") for number in range(50)), "all others to be written")
    assert not is_written(widgets, "slow")
    assert (row(operator)["running"], row(operator)["writing"]) == (1, 1)
    shown = operator.ctl.run("explain", "widgets", "default/slow").stdout
    assert "is being written" in shown, shown
    devserver.clear_faults(held)
    devserver.close_watches("clean")
    operator.stop()
    assert runs(folder).count("slow") == 1


def test_a_slow_write_before_the_handler_holds_nobody_up(configured, devserver, folder, widgets):
    operator = configured(finalizer=True)
    devserver.fault({"verb": "patch", "resource": "widgets", "name": "slow"}, hang=True, times=0)
    operator.start_ready().wait_synced()
    for number in range(20):
        widgets.create(f"before-{number}", spec={"size": 1})
    wait_until(lambda: len(runs(folder)) == 20, "a known pace")
    widgets.create("slow")
    wait_until(lambda: devserver.requests(lambda request: request.get("name") == "slow" and request.get("verb") == "patch"),
               "the write of its finalizer")
    for number in range(20):
        widgets.create(f"after-{number}", spec={"size": 1})
    wait_until(lambda: all(is_written(widgets, f"after-{number}") for number in range(20)), "all others to be written")
    assert "slow" not in runs(folder) and row(operator)["running"] == 1
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)


@pytest.mark.slow
def test_a_write_that_is_never_answered_ends_and_is_tried_again(configured, devserver, folder, widgets):
    """Eight of them are all that a worker has in flight."""
    operator = configured()
    held = hold_writes(devserver)
    operator.start_ready().wait_synced()
    for number in range(8):
        widgets.create(f"widget-{number}", spec={"size": 1})
    wait_until(lambda: row(operator)["writing"] == 8, "eight writes in flight")
    devserver.clear_faults(held)
    widgets.create("new", spec={"size": 1})
    names = ["new", *(f"widget-{number}" for number in range(8))]
    wait_until(lambda: all(is_written(widgets, name) for name in names), "all to be written", deadline=90)
    operator.stop()


def test_a_change_during_the_write_is_another_run(configured, devserver, folder, widgets):
    operator = configured()
    held = hold_writes(devserver, "slow")
    operator.start_ready().wait_synced()
    widgets.create("slow", spec={"size": 1})
    wait_until(lambda: row(operator)["writing"] == 1, "its write to be in flight")
    widgets.merge_patch("slow", {"spec": {"size": 2}})
    widgets.create("other")
    wait_until(lambda: is_written(widgets, "other"), "another object to be written")
    assert runs(folder).count("slow") == 1, "of one object one run at a time"
    devserver.clear_faults(held)
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)


def test_with_a_window_of_one_each_run_waits_for_the_one_before_it(configured, devserver, folder, widgets):
    operator = configured(top={"window": 1})
    hold_writes(devserver, "slow")
    operator.start_ready().wait_synced()
    widgets.create("slow")
    wait_run(folder, "slow")
    widgets.create("other")
    wait_until(lambda: row(operator)["queued"] == 1, "the other one to wait")
    assert runs(folder) == ["slow"] and row(operator)["writing"] == 0
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)


@pytest.mark.parametrize("concurrency,others", [(1, 0), (2, 3)])
def test_concurrency_counts_handlers_and_one_counts_runs(configured, devserver, folder, widgets, concurrency, others):
    operator = configured(workers=4, concurrency=concurrency)
    hold_writes(devserver)
    operator.start_ready().wait_synced()
    widgets.create("first")
    wait_run(folder, "first")
    for number in range(3):
        widgets.create(f"other-{number}")
    if others:
        wait_run(folder, *(f"other-{number}" for number in range(3)))
    else:
        wait_until(lambda: row(operator)["queued"] == 3, "the others to wait")
    assert len(runs(folder)) == 1 + others
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)


def test_a_full_window_takes_no_more(configured, devserver, folder, widgets):
    operator = configured(top={"window": 4})
    held = hold_writes(devserver)
    operator.start_ready().wait_synced()
    for number in range(10):
        widgets.create(f"widget-{number}")
    wait_until(lambda: row(operator)["writing"] == 4, "a full window")
    wait_until(lambda: row(operator)["queued"] == 6, "the others to wait")
    assert len(runs(folder)) == 4
    devserver.clear_faults(held)
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)


def kill_with_writes(operator, devserver, widgets, count):
    held = hold_writes(devserver)
    operator.start_ready().wait_synced()
    for number in range(count):
        widgets.create(f"widget-{number}")
    wait_until(lambda: row(operator)["writing"] == count, f"{count} writes in flight")
    operator.child("worker").kill(signal.SIGKILL)
    operator.wait_exit(expect=70)
    devserver.clear_faults(held)


def test_who_kills_a_worker_with_many_runs_punishes_none(configured, devserver, folder, widgets):
    operator = configured()
    kill_with_writes(operator, devserver, widgets, 5)
    found = ledger.read(operator, "SELECT crashes, crashed_realtime > 0 FROM ledger")
    assert found == [(0, 1)] * 5
    operator.start_ready().wait_synced()
    wait_until(lambda: all(is_written(widgets, f"widget-{number}") for number in range(5)), "all to be written")
    wait_until(lambda: row(operator)["running"] == 0, "rest")
    operator.stop()
    assert not ledger.read(operator, "SELECT key FROM ledger WHERE crashes > 0 OR crashed_realtime > 0")


def test_a_suspect_keeps_no_answer_for_a_server_that_asks_for_time(configured, devserver, folder, widgets):
    """Beside it nothing else runs."""
    operator = configured(top={"stop": {"grace": "20s"}})
    kill_with_writes(operator, devserver, widgets, 2)
    devserver.fault({"verb": "patch", "resource": "widgets/status", "name": "widget-0"}, status=429, retryAfter=50, times=2)
    operator.start_ready().wait_synced()
    wait_until(lambda: ledger.read(operator, "SELECT 1 FROM ledger WHERE refused = 1"), "a record of the first one")
    operator.stop()


@pytest.mark.slow
def test_a_suspect_that_waits_for_a_slow_write_holds_nobody_up_for_long(configured, devserver, folder, widgets):
    """The server does not answer one write for as long as a request may take (30 s)."""
    operator = configured()
    kill_with_writes(operator, devserver, widgets, 2)
    held = hold_writes(devserver, "slow")
    widgets.create("slow")
    operator.start_ready().wait_synced()

    def writes():
        return devserver.requests(lambda request: request.get("name") == "slow" and request.get("verb") == "patch")

    wait_until(writes, "its write to be in flight")
    began, number = time.monotonic(), 0
    while time.monotonic() - began < 5:  # from the third second on a suspect holds others back
        widgets.create(f"other-{number}")
        wait_until(lambda: is_written(widgets, f"other-{number}"), "another object to be written", deadline=60)
        number += 1
    assert len(writes()) == 1, "the others did not wait for its end"
    assert not is_written(widgets, "slow")
    devserver.clear_faults(held)
    devserver.api.raw("POST", "/devserver/connections", body={"close": "cut"})
    wait_until(lambda: all(is_written(widgets, name) for name in ("widget-0", "widget-1", "slow")), "all to be written")
    wait_until(lambda: row(operator)["running"] == 0, "rest")
    operator.stop()
    assert not ledger.read(operator, "SELECT key FROM ledger WHERE crashes > 0 OR crashed_realtime > 0")


def test_what_waits_for_a_long_handler_goes_to_another_worker(configured, devserver, folder, widgets):
    """Its finalizer is on by then."""
    operator = configured(workers=2, finalizer=True)
    operator.start_ready().wait_synced()
    for number in range(200):
        widgets.create(f"widget-{number}")
    wait_until(lambda: len(set(runs(folder))) == 200, "a known pace")
    for number in range(100):
        widgets.create(f"later-{number}", spec={"do": "wait"} if number == 20 else {"size": 1})
    wait_until(lambda: all(is_written(widgets, f"later-{number}") for number in range(100) if number != 20), "all others")
    assert not is_written(widgets, "later-20")
    go(folder)
    wait_until(lambda: is_written(widgets, "later-20"), "its end")
    operator.stop()
    assert len(runs(folder)) == len(set(runs(folder))) == 300, "none of them twice"


def test_a_stop_waits_for_what_is_written_and_begins_nothing(configured, devserver, folder, widgets):
    operator = configured(top={"stop": {"grace": "20s"}})
    devserver.fault({"verb": "patch", "resource": "widgets/status"}, latency="500ms", times=0)
    operator.start_ready().wait_synced()
    for number in range(6):
        widgets.create(f"widget-{number}")
    wait_until(lambda: row(operator)["writing"] >= 2, "writes in flight")
    operator.stop()
    done = [name for name in set(runs(folder)) if is_written(widgets, name)]
    assert len(done) == len(set(runs(folder))), "what was answered was written"
    assert len(runs(folder)) == len(set(runs(folder)))


def test_an_answer_waits_for_a_server_that_asks_for_time(configured, devserver, folder, widgets):
    operator = configured(top={"stop": {"grace": "20s"}})
    devserver.fault({"verb": "patch", "resource": "widgets/status"}, status=429, retryAfter=2)
    operator.start_ready().wait_synced()
    widgets.create("first", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["heldBack"], "the wish")
    assert row(operator)["writing"] == 1
    wait_until(lambda: is_written(widgets, "first"), "its status")
    assert runs(folder) == ["first"], "its handler does not run again"
    devserver.fault({"verb": "patch", "resource": "widgets/status"}, status=429, retryAfter=50)
    widgets.create("second", spec={"size": 1})
    wait_until(lambda: operator.ctl.status()["heldBack"], "another wish")
    operator.stop()
    assert ledger.read(operator, "SELECT refused FROM ledger WHERE key = 'default/second'") == [(1,)], "a stop waits for no wish"


def test_large_objects_leave_no_room_for_more(configured, devserver, folder, widgets):
    """Sixteen MiB; in the worker an object is there twice. Those that would hold more wait outside."""
    operator = configured()
    held = hold_writes(devserver)
    operator.start_ready().wait_synced()
    for number in range(20):
        widgets.create(f"widget-{number}", spec={"text": "x" * 1_000_000})
    wait_until(lambda: row(operator)["writing"] > 0 and row(operator)["queued"] == 0, "all of them, here or outside")
    assert len(runs(folder)) == row(operator)["writing"] <= 9
    devserver.clear_faults(held)
    devserver.api.raw("POST", "/devserver/connections", body={"close": "cut"})
    operator.stop()
    operator.start_ready().wait_synced()
    wait_until(lambda: all(is_written(widgets, f"widget-{number}") for number in range(20)), "all to be written")
    operator.stop()


@pytest.mark.plain_only(reason="the sanitizers take memory of their own")
def test_many_runs_that_wait_take_little_memory(configured, devserver, folder, widgets):
    def anonymous(worker):
        with open(f"/proc/{worker.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

    operator = configured()
    operator.start_ready().wait_synced()
    for number in range(40):
        widgets.create(f"before-{number}", spec={"size": 1})
    wait_until(lambda: all(is_written(widgets, f"before-{number}") for number in range(40)), "the first ones")
    worker = operator.child("worker")
    before = anonymous(worker)
    hold_writes(devserver)
    for number in range(32):
        widgets.create(f"widget-{number}", spec={"text": "x" * 4096})
    wait_until(lambda: row(operator)["writing"] == 32, "a full window")
    taken = anonymous(worker) - before
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)
    assert taken < 4096, f"{taken} KiB, of which 8 connections have 512 KiB of address space each"
