# SPDX-License-Identifier: Apache-2.0
"""Random damage to the object store and the ledger, below the whole operator: wrong data reaches no handler, nothing is taken
for deleted, and at most one restart is needed. (300 each, of more kinds, at the level of the libraries:
tests/unit/store/test-scribble.c and tests/unit/ledger/test-ledger-scribble.c.) With RECONCILED_FULL=1 more seeds."""
import os
import random

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

SEEDS = range(40 if os.environ.get("RECONCILED_FULL") == "1" else 4)
OBJECTS = 60


def content(name):
    return f"{name}-" + "abcdefgh" * 300


@pytest.fixture
def filled(devserver, operator, handler, widgets):
    """All objects handled once."""
    for i in range(OBJECTS):
        widgets.create(f"w{i}", spec={"text": content(f"w{i}"), "n": 1})
    operator.configure(devserver, [watch("widgets", handler)], workers=1, heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.start_ready().wait_synced()
    wait_until(lambda: handler.count() >= OBJECTS, "all to be handled")
    wait_until(lambda: operator.ctl.status()["workers"][0]["state"] == "idle", "the worker to be idle")
    return operator


def store_file(operator):
    return max((operator.state_directory / "store" / "widgets").glob("*/data.mdb"), key=lambda path: int(path.parent.name))


def ledger_file(operator):
    return operator.state_directory / "ledger.sqlite"


def scribble(path, seed, times=6):
    """In place; a few spots of up to 200 bytes."""
    chance = random.Random(seed)
    with open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        for _ in range(times):
            at = chance.randrange(size)
            file.seek(at)
            file.write(chance.randbytes(min(chance.randrange(1, 200), size - at)))


def started(operator):
    """Starts until it stays up, as systemd would: returns how often it had to be."""
    for attempt in range(4):
        operator.start()
        wait_until(lambda: operator.popen.poll() is not None or operator.logs(message_id=MESSAGE_ID["WATCH_SYNCED"]),
                   "its sync or its end")
        if operator.popen.poll() is None:
            return attempt
        assert operator.wait_exit() in (70, 74), operator.output.text()
        operator.assert_no_processes()
    raise AssertionError("a loop of restarts")


def assert_all_is_right(operator, handler, widgets):
    """Changes arrive, one deletion does, and all that any handler ever saw is what was written."""
    for i in range(0, OBJECTS, 7):
        widgets.merge_patch(f"w{i}", {"spec": {"n": 2}})
    widgets.delete("w1")
    for i in range(0, OBJECTS, 7):
        handler.wait_finished(name=f"w{i}", where=lambda run: run.object["spec"]["n"] == 2)
    handler.wait_finished(name="w1", action="deleted")
    operator.stop()
    for run in handler.requests():
        if run.object.get("spec"):
            assert run.object["spec"]["text"] == content(run.name), run
    assert {run.name for run in handler.requests(action="deleted")} == {"w1"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("which", [store_file, ledger_file], ids=["store", "ledger"])
def test_between_stop_and_start(filled, handler, widgets, which, seed):
    filled.stop()
    scribble(which(filled), seed)
    assert started(filled) <= 1
    if filled.logs(message_id=MESSAGE_ID["LEDGER_SET_ASIDE"]):
        assert list(filled.state_directory.glob("ledger.sqlite.corrupt-*"))
    assert_all_is_right(filled, handler, widgets)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("which", [store_file, ledger_file], ids=["store", "ledger"])
def test_while_it_runs(filled, handler, widgets, which, seed):
    scribble(which(filled), seed)
    for i in range(OBJECTS):
        filled.ctl.run("retry", "widgets", f"default/w{i}")
        if filled.popen.poll() is not None:
            break
    widgets.create("later", spec={"text": content("later"), "n": 1})
    wait_until(lambda: filled.popen.poll() is not None or handler.requests(name="later"), "the next run, or its end")
    restarts = 0
    if filled.popen.poll() is not None:
        assert filled.wait_exit() in (70, 74), filled.output.text()  # it maps neither file: only children may die of them
        filled.assert_no_processes()
        restarts = started(filled)
    assert restarts <= 1
    handler.wait_finished(name="later")
    assert_all_is_right(filled, handler, widgets)


def test_a_ledger_that_is_cut_short(filled, handler, widgets):
    filled.stop()
    os.truncate(ledger_file(filled), 4096 + 100)
    assert started(filled) == 0
    assert len(filled.logs(message_id=MESSAGE_ID["LEDGER_SET_ASIDE"])) == 1
    assert_all_is_right(filled, handler, widgets)


def test_a_store_that_is_cut_short_is_found_before_anybody_dies_of_it(filled, handler, widgets):
    filled.stop()
    os.truncate(store_file(filled), 4096 * 4)
    assert started(filled) == 0
    assert len(filled.logs(message_id=MESSAGE_ID["STORE_REBUILT"])) == 1
    assert_all_is_right(filled, handler, widgets)
