# SPDX-License-Identifier: Apache-2.0
import time

from harness import wait_until

from . import events, measure, parts

WORKERS = 4


def _ran(box):
    """A file that grows by the same with each run."""
    path = box.subfolder("ran") / "ran"
    path.touch()
    path.parent.chmod(0o777)
    path.chmod(0o666)
    return path


def _wait_size(path, size):
    """The size tells how far it is; to ask the operator would take time from the handlers."""
    wait_until(lambda: path.stat().st_size >= size, lambda: f"{size} bytes in {path}, {path.stat().st_size} so far", 300, 0.002)
    return time.monotonic()


def _through_runtime(box, count, size, ran, **handler):
    server = parts.Server(box, count, size)
    operator = parts.operator(box, server, watches=[parts.watch("widgets", **handler)], workers=WORKERS)
    operator.start_ready().wait_synced(600)
    parts.wait_succeeded(operator, count)
    # Without the handlers: those that serve are below the workers, but no part of us.
    family = [each for each in measure.tree(operator.pid) if each.program.startswith("reconciled")]
    cost, before, begin = measure.processor_by_program(family), ran.stat().st_size, time.monotonic()
    server.events(count)
    end = _wait_size(ran, 2 * before)
    parts.wait_succeeded(operator, 2 * count)
    cost = {name: 1e6 * (after - cost[name]) / count for name, after in measure.processor_by_program(family).items()}
    operator.stop()
    server.close()
    return events.Burst(count / (end - begin), cost)


def _rows(report, what, found, limits):
    report.row(f"runs of {what}, of the limit", "1/s", [each.rate for each in found], limits)
    for name in ("reconciled", "reconciled-worker"):
        report.row(f"{name}, a run of {what}", "us", [each.cost[name] for each in found], note="processor time a run, the handler apart")


def exec_rate(report):
    """A program that does next to nothing, run for each event, against a bare posix_spawn + pipe + wait loop of the same."""
    count, size = 5000, 1000
    ours, limits = [], []
    for _ in range(report.repetitions):
        with parts.sandbox() as box:
            program = str(box.program("bench-noop"))
            limits.append(count / parts.limit(box, "limit-spawn", count, WORKERS, size, program, _ran(box))[0])
            ran = _ran(box)
            ours.append(_through_runtime(box, count, size, ran, command=[program, str(ran)]))
    _rows(report, "a C program", ours, limits)


def serve_rate(report):
    """The same with one process for each worker that answers line by line, against writing to such processes and reading."""
    count, size = 20_000, 1000
    ours, limits = [], []
    for _ in range(report.repetitions):
        with parts.sandbox() as box:
            program = str(box.program("bench-serve"))
            limits.append(count / parts.limit(box, "limit-serve", count, WORKERS, size, program, _ran(box))[0])
            ran = _ran(box)
            ours.append(_through_runtime(box, count, size, ran, serve=[program, str(ran)]))
    report.row("runs of a serve handler", "1/s", [each.rate for each in ours])
    _rows(report, "a serve handler", ours, limits)
