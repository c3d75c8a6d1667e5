# SPDX-License-Identifier: Apache-2.0
"""Several requests at once, as `handler.parallel` sends them: each kit answers in any order, and one request harms no other one."""
import os
import signal
import threading

import pytest

from harness import wait_until

import kits
from test_expectations import ask_for, check, expectations_of, probe_of, request_of


@pytest.fixture
def probe(kit):
    running = kits.Running(kit, *kit.parallel)
    yield running
    running.close()


class Held:
    """A request, in work until it is let go."""

    def __init__(self, probe, tmp_path, id):
        self.probe, self.fifo, before = probe, tmp_path / f"fifo-{id}", probe.said().count("it waits")
        os.mkfifo(self.fifo)
        probe.send(about(f"held-{id}", ask_for("held", id=id, fifo=str(self.fifo))))
        wait_until(lambda: probe.said().count("it waits") > before, lambda: f"request {id} to be in work; it said: {probe.said()}")

    def let_go(self, text):
        # A process that has ended reads nothing.
        writing = wait_until(lambda: os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK), lambda: f"a reader; it said: {self.probe.said()}")
        with os.fdopen(writing, "w") as file:
            file.write(text)


def about(name, request):
    request["object"]["metadata"]["name"] = name
    return request


def test_the_second_is_answered_first(probe, tmp_path):
    held = Held(probe, tmp_path, 1)
    assert probe.ask(ask_for("text", id=2, text="second")) == {"id": 2, "message": "second"}
    held.let_go("first")
    assert probe.receive() == {"id": 1, "message": "first"}


def test_four_at_once(probe, tmp_path):
    held = {id: Held(probe, tmp_path, id) for id in (1, 2, 3, 4)}
    for id in (3, 1, 4, 2):
        held[id].let_go(f"number {id}")
        assert probe.receive() == {"id": id, "message": f"number {id}"}


def test_a_failure_is_that_of_its_object_alone(kit, probe, tmp_path):
    """An exception, a panic (C has none), and what cannot be read."""
    held = Held(probe, tmp_path, 1)
    if "crash" not in kit.without:
        failed = probe.ask(about("pear", ask_for("crash", id=2)))
        assert failed["id"] == 2 and "broken on purpose" in failed["error"] and "permanent" not in failed
        assert "error: default/pear: the handler has failed" in probe.said()
    assert probe.ask(ask_for("temporary", id=3)) == {"id": 3, "error": "the service is away", "retryAfter": "90000ms"}
    assert probe.ask(ask_for("permanent", id=4)) == {"id": 4, "error": "spec.size is negative", "permanent": True}
    probe.process.stdin.write(b'{"id": 5, "action": }\n')
    probe.process.stdin.flush()
    assert probe.receive()["id"] == 5
    held.let_go("unharmed")
    assert probe.receive() == {"id": 1, "message": "unharmed"}


def test_lines_of_the_log_name_their_object(kit, probe, tmp_path):
    """The operator cannot: it has no line for certain of a process that has several requests."""
    key = "default/apple: " if kit.parallel else ""  # it knows that there will be several
    assert probe.ask(ask_for("log", id=1)) == {"id": 1}
    assert probe.said().splitlines() == [f"info: {key}one", f"warning: {key}two", f"warning: {key}three", f"error: {key}four"]
    held = Held(probe, tmp_path, 2)
    assert probe.ask(about("pear", ask_for("log", id=3))) == {"id": 3}
    lines = ["info: default/pear: one", "warning: default/pear: two", "warning: default/pear: three", "error: default/pear: four"]
    assert probe.said().splitlines()[-4:] == lines
    held.let_go("")
    probe.receive()
    assert probe.ask(about("pear", ask_for("log", id=4))) == {"id": 4}
    assert probe.said().splitlines()[-4:] == lines, "the operator may still have read what was said before for another one"


def test_an_answer_is_a_whole_line(probe):
    texts = {id: f"{id}" * 300_000 for id in range(1, 9)}

    def send():
        for id, text in texts.items():
            probe.send(ask_for("text", id=id, text=text))

    sending = threading.Thread(target=send)
    sending.start()
    answers = [probe.receive() for _ in texts]
    sending.join()
    assert {answer["id"]: answer["message"] for answer in answers} == texts


def check_all_at_once(kit, probe):
    found = {number: each for number, each in enumerate(expectations_of(kit), 1) if not probe_of(each[1])}
    for number, (_, expectation) in found.items():
        probe.send(request_of(expectation, id=number))
    while found:
        answer = probe.receive()
        name, expectation = found.pop(answer.pop("id"))
        check(name, {**expectation, "stderr": []}, answer, probe.said())


def test_all_expectations_at_once(kit, probe):
    check_all_at_once(kit, probe)


def test_the_end_of_the_input_lets_them_finish(probe, tmp_path):
    held = [Held(probe, tmp_path, id) for id in (1, 2)]
    probe.process.stdin.close()
    for id, each in enumerate(held, 1):
        each.let_go(f"number {id}")
        assert probe.receive() == {"id": id, "message": f"number {id}"}
    assert probe.wait() == 0 and not probe.process.stdout.read()


def test_sigterm_lets_them_finish(probe, tmp_path):
    held = [Held(probe, tmp_path, id) for id in (1, 2)]
    probe.process.send_signal(signal.SIGTERM)
    for id, each in enumerate(held, 1):
        each.let_go(f"number {id}")
        assert probe.receive() == {"id": id, "message": f"number {id}"}
    assert probe.wait() == 0 and not probe.process.stdout.read()


def test_sigterm_between_two_runs(probe):
    probe.ask(ask_for("nothing"))
    probe.process.send_signal(signal.SIGTERM)
    assert probe.wait() == 0 and not probe.said()


def test_nobody_reads_the_answer(probe):
    probe.process.stdout.close()
    probe.send(ask_for("nothing"))
    assert probe.wait() in (0, -signal.SIGPIPE)
    assert not probe.said()
