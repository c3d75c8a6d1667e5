# SPDX-License-Identifier: Apache-2.0
"""What only the kit for Python has: functions for watches, and answers that are no JSON."""
import contextlib
import importlib
import importlib.util
import os
import subprocess
import sys

import pytest

from harness import wait_until
from harness.setup import SOURCE

import kits
from test_expectations import ask_for, request_of

KIT = SOURCE / "sdk/python"
ONLY_PYTHON = pytest.mark.parametrize("kit", [kits.parameter("python")], indirect=True)


@ONLY_PYTHON
def test_functions_of_watches(probe):
    pear = request_of({"spec": {"do": "text", "text": "an apple"}}, id=1, watch="pears")
    assert probe.ask(pear) == {"id": 1, "message": "a pear named apple"}
    assert probe.ask({**pear, "watch": "apples"}) == {"id": 1, "message": "an apple"}


@ONLY_PYTHON
def test_a_program_that_the_handler_starts(probe):
    """It reads no requests, and its output is no answer."""
    probe.send(ask_for("program"))
    probe.send(ask_for("nothing", id=2))
    assert [probe.receive(), probe.receive()] == [{"id": 1}, {"id": 2}]
    assert "of a program\n" in probe.said()


@ONLY_PYTHON
@pytest.mark.parametrize("do, error", [
    ("set", "TypeError: an answer cannot have a set"), ("nan", "ValueError: Out of range float values are not JSON compliant"),
    ("naive", "ValueError: 2036-02-29 03:00:00 has no time zone: a time of an answer is like datetime.now(timezone.utc)"),
    ("list", "TypeError: probe() returned list, and not a dict or None"), ("textless", "Textless: an exception without a text")])
def test_what_is_no_answer(probe, do, error):
    assert probe.ask(ask_for(do)) == {"id": 1, "error": error}
    assert probe.ask(ask_for("delay")) == {"id": 1, "requeueAfter": "90000ms"}, "it lives on"


@ONLY_PYTHON
def test_the_handler_may_end_the_process(probe):
    probe.send(ask_for("exit"))
    assert probe.wait() == 70


@ONLY_PYTHON
def test_the_handler_may_end_the_process_from_a_thread(kit):
    with contextlib.closing(kits.Running(kit, "parallel")) as running:
        running.send(ask_for("exit"))
        assert running.wait() == 70


@ONLY_PYTHON
def test_it_says_that_several_requests_wait(probe, tmp_path):
    """Without a word, `parallel` in the configuration alone would have no effect."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    probe.send(ask_for("held", fifo=str(fifo)))
    wait_until(lambda: "it waits" in probe.said(), "the first one")
    probe.send(ask_for("nothing", id=2))
    with fifo.open("w") as file:
        file.write("let go")
    assert [probe.receive(), probe.receive()] == [{"id": 1, "message": "let go"}, {"id": 2}]
    assert probe.said().splitlines() == ["info: it waits", "warning: handler.parallel sends several requests at once, and serve() answers "
                                         "one after the other: use serve(parallel=N)"]


def program(text, request=""):
    done = subprocess.run([kits.PYTHON, "-c", text], input=request, capture_output=True, text=True, check=False,
                          env={**kits.ENVIRONMENT, "PYTHONPATH": str(KIT), "PYTHONDONTWRITEBYTECODE": "1"})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("text, error", [
    ("@reconcile('pears')\ndef one(request): pass\n@finalize('pear')\ndef two(request): pass",
     "there is a function for finalize of the watch pear, and none that reconciles its objects"),
    ("@reconcile\ndef one(request): pass\n@reconcile\ndef two(request): pass", "a second function for reconcile of all watches: two"),
])
def test_mistakes_that_are_found_at_the_start(text, error):
    status, said = program(f"from reconciled import finalize, reconcile, serve\n{text}\nserve()")
    assert status == 1 and said.endswith(f"ValueError: {error}\n")


def test_a_watch_without_a_function(monkeypatch):
    monkeypatch.syspath_prepend(str(KIT))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import reconciled
    answer = reconciled.answer(ask_for("nothing"), {("reconcile", "pears"): print})
    assert answer == {"error": "the handler has no function that reconciles objects of the watch widgets: mark one with @reconcile",
                      "permanent": True}


def test_schedules_and_startup(monkeypatch):
    monkeypatch.syspath_prepend(str(KIT))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import reconciled
    functions = {("schedule", "nightly"): lambda request: {"message": request["object"]["metadata"]["name"]},
                 ("startup", None): lambda request: {"message": "ready"}}
    due = {**ask_for("nothing"), "action": "schedule", "watch": "nightly"}
    assert reconciled.answer(due, functions) == {"message": due["object"]["metadata"]["name"]}
    assert reconciled.answer({**due, "action": "startup", "watch": "startup"}, functions) == {"message": "ready"}
    assert reconciled.answer({**due, "watch": "weekly"}, functions) == {
        "error": 'the handler has no function for the schedule weekly: mark one with @schedule("weekly")', "permanent": True}


def test_a_program_of_schedules_alone():
    status, said = program("from reconciled import schedule, serve, startup\n@schedule('nightly')\ndef one(request): pass\n"
                           "@startup\ndef two(request): pass\nserve()",
                           '{"version": 1, "action": "schedule", "watch": "nightly", "object": {}}\n')
    assert (status, said) == (0, "{}\n")


INSTALLS = all(importlib.util.find_spec(name) for name in ("pip", "setuptools"))


@pytest.mark.slow
@pytest.mark.only_where(INSTALLS, "pip and setuptools for Debian's Python (python3-pip, python3-setuptools)")
@ONLY_PYTHON
def test_it_is_installed_by_pip(kit, tmp_path):
    """Without a network: setuptools is that of the machine."""
    kits.run([kits.PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", tmp_path,
              kit.folder / "sdk/python"], env=kits.ENVIRONMENT)
    assert sorted(path.name for path in (tmp_path / "reconciled").iterdir() if path.is_file()) == ["__init__.py", "py.typed", "testing.py", "types.py"]


def test_a_delay_that_is_none(monkeypatch):
    monkeypatch.syspath_prepend(str(KIT))
    kit = importlib.import_module("reconciled")
    assert [kit.duration(value) for value in ("1h30m", "1.5s", 30, 0.25)] == ["1h30m", "1.5s", "30000ms", "250ms"]
    for wrong in ("soon", "90", "", "-1s", "1 h"):
        with pytest.raises(ValueError, match="a delay is text"):
            kit.duration(wrong)
