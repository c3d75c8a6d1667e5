# SPDX-License-Identifier: Apache-2.0
"""What only the kit for C has: threads of POSIX, and functions that may end the process."""
import contextlib
import dataclasses
import fcntl
import json
import pathlib
import resource
import signal
import struct
import subprocess
import termios
import threading

import pytest

from harness import wait_until
from harness.wait import scaled

import kits
from test_expectations import ask_for
from test_parallel_kits import Held, check_all_at_once

pytestmark = pytest.mark.parametrize("kit", [kits.parameter("c")], indirect=True)


@pytest.fixture
def parallel(kit):
    with contextlib.closing(kits.Running(kit, *kit.parallel)) as running:
        yield running


def built(kit, tmp_path, *flags):
    """The probe without the usual sanitizers."""
    sources = [kit.folder / "tests/sdk/probe.c", *(kit.folder / "sdk/c").glob("*.c")]
    kits.run(["cc", "-g", "-O1", "-pthread", *flags, f"-I{kit.folder}/sdk/c", "-o", tmp_path / "probe", *sources])
    return dataclasses.replace(kit, probe=[str(tmp_path / "probe")])


def test_without_being_asked_it_answers_one_after_the_other(probe, tmp_path):
    """Handlers that are not fit for threads stay right."""
    held = Held(probe, tmp_path, 1)
    probe.send(ask_for("log", id=2))
    wait_until(lambda: has_stopped_reading(probe), "the second one to wait")
    held.let_go("first")
    assert [probe.receive(), probe.receive()] == [{"id": 1, "message": "first"}, {"id": 2}]
    assert probe.said().splitlines()[:2] == ["info: it waits", "info: one"]


def all_sleep(probe):
    stats = pathlib.Path(f"/proc/{probe.process.pid}/task").glob("*/stat")
    return {path.read_text(encoding="utf-8").rpartition(")")[2].split()[0] for path in stats} == {"S"}


def has_stopped_reading(probe):
    """Though there is something to read."""
    unread = fcntl.ioctl(probe.process.stdin, termios.FIONREAD, b"\0" * 4)
    return all_sleep(probe) and struct.unpack("i", unread)[0] > 0


def test_what_waits_when_the_input_ends_is_answered(parallel, tmp_path):
    held = [Held(parallel, tmp_path, id) for id in (1, 2, 3, 4)]
    parallel.send(ask_for("text", id=5, text="last"))
    parallel.process.stdin.close()
    wait_until(lambda: all_sleep(parallel), "the end to be read")
    for each in held:
        each.let_go("")
    assert {parallel.receive()["id"] for _ in range(5)} == {1, 2, 3, 4, 5}
    assert parallel.wait() == 0


def test_what_is_too_much_waits_outside(parallel, tmp_path):
    """Not in the memory of the process. None is lost."""
    held = [Held(parallel, tmp_path, id) for id in (1, 2, 3, 4)]
    texts = {id: f"{id}" * 20_000 for id in range(5, 15)}  # more than a pipe and a read hold

    def send():
        for id, text in texts.items():
            parallel.send(ask_for("text", id=id, text=text))

    sending = threading.Thread(target=send)
    sending.start()
    wait_until(lambda: has_stopped_reading(parallel), "the rest to wait")
    for id, each in enumerate(held, 1):
        each.let_go(f"number {id}")
    answers = [parallel.receive() for _ in range(14)]
    sending.join()
    assert {answer["id"]: answer["message"] for answer in answers} == {**texts, **{id: f"number {id}" for id in range(1, 5)}}


@pytest.mark.parametrize("do, status", [("template", -signal.SIGABRT), ("exit", 70)])
def test_a_function_that_ends_the_process(parallel, tmp_path, do, status):
    """At once, whatever else is in work or waits: the operator asks again for each alone."""
    Held(parallel, tmp_path, 1)
    parallel.send(ask_for(do, id=2, template="{"))
    assert parallel.wait() == status and not parallel.process.stdout.read()


def test_no_thread_blocks_signals(parallel):
    """A program that a function starts would inherit that, and outlive SIGTERM. A new thread blocks them until it has begun."""
    parallel.ask(ask_for("nothing"))

    def blocked():
        states = [path.read_text(encoding="utf-8") for path in pathlib.Path(f"/proc/{parallel.process.pid}/task").glob("*/status")]
        return [line for state in states for line in state.splitlines() if line.startswith("SigBlk:")]

    wait_until(lambda: blocked() == 5 * ["SigBlk:\t0000000000000000"], lambda: f"threads that block nothing; found {blocked()}")


@pytest.mark.parametrize("arguments", [[], ["parallel"]])
def test_a_batch(kit, arguments):
    """The last line needs no newline."""
    lines = "\n".join(json.dumps(ask_for("text", id=id, text=str(id))) for id in range(1, 21))
    done = subprocess.run([*kit.probe, *arguments], input=lines, capture_output=True, text=True, check=False, env=kits.ENVIRONMENT, timeout=scaled(20))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(answers, key=lambda answer: answer["id"]) == [{"id": id, "message": str(id)} for id in range(1, 21)]
    assert done.returncode == 0 and not done.stderr


@pytest.mark.parametrize("threads", [0, 2])
def test_threads_that_cannot_be_created(kit, tmp_path, threads):
    """Those that there are do the work, or else the main thread."""
    room = (8 + threads * 8) << 20  # a stack has 8 MiB, and the rest about 3; with sanitizers, it would be much more
    plain = built(kit, tmp_path)
    limited = kits.Running(plain, *plain.parallel, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)))
    with contextlib.closing(limited) as probe:
        wait_until(lambda: f"warning: only {threads} of 4 threads can be created: " in probe.said(), lambda: f"a warning; it said {probe.said()}")
        for id in range(1, 9):
            probe.send(ask_for("text", id=id, text=str(id)))
        answers = [probe.receive() for _ in range(8)]
        assert {answer["id"]: answer["message"] for answer in answers} == {id: str(id) for id in range(1, 9)}
        probe.process.stdin.close()
        assert probe.wait() == 0


@pytest.mark.slow
def test_no_data_race(kit, tmp_path):
    """With the sanitizer for threads. It holds SIGTERM back as long as the main thread reads, so the input ends as well."""
    # With SIGTERM it ends while there are threads.
    sanitized = dataclasses.replace(built(kit, tmp_path, "-fsanitize=thread"), environment={"TSAN_OPTIONS": "report_thread_leaks=0"})
    with contextlib.closing(kits.Running(sanitized, *kit.parallel)) as probe:
        check_all_at_once(kit, probe)
        held = Held(probe, tmp_path, 1)
        probe.process.send_signal(signal.SIGTERM)
        probe.process.stdin.close()
        held.let_go("last")
        assert probe.receive() == {"id": 1, "message": "last"}
        assert probe.wait() == 0 and "ThreadSanitizer" not in probe.said(), probe.said()
