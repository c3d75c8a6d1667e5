# SPDX-License-Identifier: Apache-2.0
import time

from . import parts

WORKERS = 4


def _through_runtime(box, count, size, **handler):
    server = parts.Server(box, count, size)
    operator = parts.operator(box, server, watches=[parts.watch("widgets", **handler)], workers=WORKERS)
    operator.start_ready().wait_synced(600)
    parts.wait_succeeded(operator, count)
    begin = time.monotonic()
    server.events(count)
    end = parts.wait_succeeded(operator, 2 * count)
    operator.stop()
    return count / (end - begin)


def exec_rate(report):
    """A program that does nothing, run for each event, against a bare posix_spawn + pipe + wait loop of the same."""
    count, size = 5000, 1000
    ours, limits = [], []
    for _ in range(report.repetitions):
        with parts.sandbox() as box:
            program = str(box.program("bench-noop"))
            limits.append(count / parts.limit(box, "limit-spawn", count, WORKERS, size, program)[0])
            ours.append(_through_runtime(box, count, size, command=[program]))
    report.row("runs of a C program that does nothing", "1/s", ours, limits)


def serve_rate(report):
    """The same with one process for each worker that answers line by line."""
    found = []
    for _ in range(report.repetitions):
        with parts.sandbox() as box:
            found.append(_through_runtime(box, 20_000, 1000, serve=[str(box.program("bench-serve"))]))
    report.row("runs of a serve handler in C", "1/s", found)
