# SPDX-License-Identifier: Apache-2.0
import statistics

from . import events, idle, parts


def growth(report):
    """The cost of an event with more objects, more watches, more workers: it should stay flat."""
    base = None
    for objects in (1_000, 10_000, 100_000) + ((1_000_000,) if report.full else ()):
        found = []
        for _ in range(1 if objects > 100_000 else report.repetitions):
            with parts.sandbox() as box:
                found.append(events.rate(box, objects, 50_000, 1000))
        base = base or statistics.median(found)
        report.row(f"events with {objects:,} objects", "1/s", found, [base], "1,000 objects")
    base = None
    for workers in (1, 4, 16, 64):
        found = []
        for _ in range(report.repetitions):
            with parts.sandbox() as box:
                found.append(events.rate(box, 50_000, 50_000, 1000, workers=workers))
        base = base or statistics.median(found)
        report.row(f"events with {workers} workers", "1/s", found, [base], "1 worker")
    _watches(report)


def _watches(report):
    """Memory per watch is what grows with watches."""
    for count in (1, 10) + ((100,) if report.full else (40,)):
        with parts.sandbox() as box:
            server = parts.Server(box, 100, 1000)
            command = [str(box.program("bench-noop"))]
            operator = parts.operator(box, server, watches=[parts.watch(f"widgets-{number}", command) for number in range(count)])
            operator.start_ready().wait_synced(120)
            parts.wait_succeeded(operator, 100 * count)
            total = sum(parts.anonymous(each.pid) for each in parts.tree(operator.pid))
            report.row(f"anonymous memory with {count} watches", "MiB", total / 2**20)
            operator.stop()
