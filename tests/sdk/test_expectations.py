# SPDX-License-Identifier: Apache-2.0
"""Each kit answers as all others do: expectations/, which README.md describes."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from harness import wait_until
from harness.schema import ANSWER, check_request
from harness.wait import scaled

import kits

EXPECTATIONS = {path.stem: json.loads(path.read_text(encoding="utf-8"))
                for path in sorted((pathlib.Path(__file__).parent / "expectations").glob("*.json"))}


def request_of(expectation, **more):
    metadata = {"name": "apple", "namespace": "default", "uid": "5a0d4f8e-0000-4000-8000-000000000001"}
    thing = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": expectation.get("spec", {})}
    request = {"version": 1, "action": "reconcile", "reason": "added", "attempt": 1, "lastError": "", "watch": "widgets",
               "object": thing, **expectation.get("request", {}), **more}
    return check_request(request) if expectation.get("valid", True) else request


def expectations_of(kit):
    return [(name, expectation) for name, expectation in EXPECTATIONS.items() if name not in kit.without]


def probe_of(expectation):
    return [expectation["probe"]] if "probe" in expectation else []


def ask_for(do, id=1, **spec):
    return request_of({"spec": {"do": do, **spec}}, id=id)


def check(name, expectation, answer, said):
    ANSWER.validate(answer)
    if expectation["answer"] is None:
        assert expectation["error"] in answer["error"] and answer.get("permanent") == expectation.get("permanent"), (name, answer)
    else:
        assert answer == expectation["answer"], name
    missing = [line for line in expectation.get("stderr", []) if line not in said.splitlines()]
    assert not missing and expectation.get("stderr_has", "") in said, (name, missing, said)


@pytest.mark.parametrize("arguments", [[], ["schedules"]], ids=["all", "schedules"])
def test_served(kit, arguments):
    """One process, one request after the other; what it says by then has been said."""
    with contextlib.closing(kits.Running(kit, *arguments)) as probe:
        for number, (name, expectation) in enumerate(expectations_of(kit), 1):
            if probe_of(expectation) == arguments:
                answer = probe.ask(request_of(expectation, id=number))
                assert answer.pop("id") == number
                check(name, expectation, answer, probe.said())
        probe.process.stdin.close()
        assert probe.wait() == 0 and not probe.process.stdout.read()


@pytest.mark.slow
def test_started_for_each_run(kit):
    for name, expectation in expectations_of(kit):
        done = subprocess.run([*kit.probe, *probe_of(expectation)], input=json.dumps(request_of(expectation)), capture_output=True, text=True, check=False,
                              env={**kits.ENVIRONMENT, **kit.environment}, timeout=scaled(20))
        assert done.returncode == 0, (name, done.stderr)
        check(name, expectation, json.loads(done.stdout), done.stderr)


def test_the_id_comes_first(probe):
    """Of an answer that is too long, it is all that can be read."""
    for number, do in enumerate(("nothing", "status"), 1):
        probe.send(ask_for(do, id=number))
        assert re.match(rb'\{ ?"id": ?%d[,}]' % number, probe.process.stdout.readline())


def test_a_large_request(probe):
    text = "0123456789ü\n" * 50_000
    assert probe.ask(ask_for("text", text=text))["message"] == text


def test_no_request(probe):
    probe.process.stdin.close()
    assert probe.wait() == 0 and not probe.said()


@pytest.mark.parametrize("line", ["{\"action\": ", "[1]", "{} x"])
def test_what_is_no_request(probe, line):
    probe.process.stdin.write(line.encode() + b"\n")
    probe.process.stdin.flush()
    assert probe.wait() == 65
    assert "the request cannot be read: " in probe.said()


@pytest.mark.parametrize("depth", [1_100, 9_998, 100_000])
def test_what_cannot_be_read_harms_itself_alone(probe, depth):
    """A tenant may write it, where the schema keeps unknown fields."""
    request = json.dumps(ask_for("nothing", id=7)).replace('"do"', f'"deep": {"[" * depth}{"]" * depth}, "do"', 1)
    assert request.startswith('{"version"')
    probe.process.stdin.write(b'{"id": 7, ' + request.replace(', "id": 7', "").encode()[1:] + b"\n")
    probe.process.stdin.flush()
    answer = probe.receive()
    if answer != {"id": 7}:
        assert answer == {"id": 7, "error": answer["error"], "permanent": True}
        assert answer["error"].startswith("the request cannot be read: ") and answer["error"].rstrip(": ") in probe.said()
    assert probe.ask(ask_for("nothing", id=8)) == {"id": 8}


def test_a_member_with_a_nul_is_no_other_one(probe):
    """Which the schema does not know, where it has checked the other one."""
    request = ask_for("nothing", id=7)
    request["object"]["spec"] = {"do\0": "text", "text": "of the member with a NUL", "do": "nothing"}
    answer = probe.ask({"id": request.pop("id"), **request})  # as the operator writes it
    if answer != {"id": 7}:
        assert answer == {"id": 7, "error": answer["error"], "permanent": True}
        assert answer["error"].startswith("the request cannot be read: ")
    assert probe.ask(ask_for("nothing", id=8)) == {"id": 8}


@pytest.mark.parametrize("rest", ["", '"action": ', '"action": 1}', '"action": "reconcile"'])
def test_a_broken_request_with_an_id_is_answered(probe, rest):
    probe.process.stdin.write(b'{"id": 7, ' + rest.encode() + b"\n")
    probe.process.stdin.flush()
    answer = probe.receive()
    assert answer["id"] == 7 and answer["permanent"] and answer["error"].startswith("the request cannot be read: ")
    assert probe.ask(ask_for("nothing", id=8)) == {"id": 8}


def test_sigterm_between_two_runs(probe):
    probe.ask(ask_for("nothing"))
    probe.process.send_signal(signal.SIGTERM)
    assert probe.wait() == 0 and not probe.said()


def test_sigterm_while_it_works(probe, tmp_path):
    """The run goes on to its end."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    probe.send(ask_for("wait", fifo=str(fifo)))
    wait_until(lambda: "it waits" in probe.said(), "the run")
    probe.process.send_signal(signal.SIGTERM)
    # A process that has ended reads nothing.
    writing = wait_until(lambda: os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), lambda: f"a reader; it said: {probe.said()}")
    with os.fdopen(writing, "w") as file:
        file.write("it was let go")
    assert probe.receive() == {"id": 1, "message": "it was let go"}
    assert probe.wait() == 0


def test_nobody_reads_the_answer(probe):
    probe.process.stdout.close()
    probe.send(ask_for("nothing"))
    assert probe.wait() in (0, -signal.SIGPIPE)
    assert not probe.said()


def test_the_tests_of_the_example(kit):
    kits.run(kit.own_tests, cwd=kit.tests_in, env={**kits.ENVIRONMENT, **kit.tools, **kit.environment})
