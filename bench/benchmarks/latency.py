# SPDX-License-Identifier: Apache-2.0
import statistics

from harness import wait_until
from harness.process import start

from . import parts


def _measure(server, started, count):
    """One event at a time on an idle system: milliseconds from the server's write to the program's first instruction."""
    before = len(parts.lines_of(started))
    sent_before = len(parts.lines_of(server.sent))
    for number in range(1, count + 1):
        server.events(1)
        wait_until(lambda: len(parts.lines_of(started)) >= before + number, "the handler", 20, 0.005)
    sent, ran = parts.lines_of(server.sent)[sent_before:], parts.lines_of(started)[before:]
    return [(after - at) / 1e6 for at, after in zip(sent, ran)]


def _folder(box):
    path = box.subfolder("started")
    path.chmod(0o777)
    return path / "started"


def _limit(box, count):
    server = parts.Server(box, 100, 1000, sent=True)
    started = _folder(box)
    user = box.user()
    popen = start(user, [box.program("limit-latency"), f"{server.url}/apis/example.com/v1/widgets?watch=1",
                         box.program("bench-noop"), started], cwd=box.folder)
    wait_until(lambda: server.counts()["watches"] == 1, "the watch")
    try:
        return _measure(server, started, count)
    finally:
        popen.kill()
        popen.wait()


def _ours(box, count):
    server = parts.Server(box, 100, 1000, sent=True)
    started = _folder(box)
    operator = parts.operator(box, server, handler=[str(box.program("bench-noop")), str(started)])
    operator.start_ready().wait_synced()
    parts.wait_succeeded(operator, 100)
    wait_until(lambda: server.counts()["watches"] == 1, "the watch")
    try:
        return _measure(server, started, count)
    finally:
        operator.stop()


def latency(report):
    """From the server's write to the handler's first instruction, idle system, against curl reading the watch and spawning."""
    count = 300 if report.full else 100
    ours, limits = [], []
    for _ in range(report.repetitions):
        with parts.sandbox() as box:
            limits.append(_limit(box, count))
            ours.append(_ours(box, count))
    for name, pick in (("p50", statistics.median), ("p99", lambda values: sorted(values)[int(len(values) * 0.99) - 1])):
        mine, theirs = [pick(values) for values in ours], [pick(values) for values in limits]
        report.row(f"latency {name}", "ms", mine, theirs)
        report.row(f"latency {name} above the limit", "ms", statistics.median(mine) - statistics.median(theirs))
