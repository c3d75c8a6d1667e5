# SPDX-License-Identifier: Apache-2.0
import statistics

from . import events, measure, parts

EVENTS = 20_000
AT_ONCE = 1_000  # as many as there are objects where they are fewest: otherwise that would be compared, not their number


def _bursts(box, objects, workers, repetitions):
    runtime = events.Runtime(box, objects, 1000, workers)
    found = [runtime.burst(EVENTS, AT_ONCE) for _ in range(repetitions + 1)]
    runtime.stop()
    return found[1:]  # the first one warms up


def _split(found):
    """Where the time goes, for people who look for what grows."""
    programs = found[0].cost
    return ", ".join(f"{name} {statistics.median([each.cost[name] for each in found]):.1f}" for name in programs
                     if max(each.cost[name] for each in found) >= 1)


def _rows(report, what, base_name, counts, bursts):
    """Cost of an event, and events a second, against the smallest of the row."""
    base = None
    for count in counts:
        found = bursts(count)
        base = base or found
        name = f"{count:,} {what}"
        report.row(f"{name}: processor time an event", "us", [each.total_cost for each in found],
                   [each.total_cost for each in base], base_name, _split(found))
        report.row(f"{name}: events", "1/s", [each.rate for each in found], [each.rate for each in base], base_name)


def objects(report):
    """The cost of an event with more objects, of 1 KB, 1,000 events on the way at a time: it should stay flat."""
    def bursts(count):
        with parts.sandbox() as box:
            return _bursts(box, count, 2, report.repetitions)

    _rows(report, "objects", "1,000 objects", (1_000, 10_000, 100_000, 1_000_000), bursts)


def workers(report):
    """The cost of an event with more workers, 10,000 objects, 1,000 events on the way at a time: it should stay flat."""
    def bursts(count):
        with parts.sandbox() as box:
            return _bursts(box, 10_000, count, report.repetitions)

    _rows(report, "workers", "1 worker", (1, 4, 16, 64), bursts)


def _memory(count):
    """Anonymous bytes of the supervisor and of a watcher."""
    with parts.sandbox() as box:
        server = parts.Server(box, 100, 1000)
        command = [str(box.program("bench-noop"))]
        operator = parts.operator(box, server, watches=[parts.watch(f"widgets-{number}", command, id=str(number)) for number in range(count)])
        operator.start_ready().wait_synced(300)
        parts.wait_succeeded(operator, 100 * count)
        watchers = [measure.anonymous(each.pid) for each in measure.tree(operator.pid) if each.program == "reconciled-watcher"]
        supervisor = measure.anonymous(operator.pid)
        operator.stop()
        return supervisor, sum(watchers) / len(watchers)


def watches(report):
    """The cost of a watch in anonymous memory, with 100 objects each: it should be the same for each."""
    counts = (1, 10, 100)
    found = {count: _memory(count) for count in counts}
    for count in counts[1:]:
        report.row(f"a watcher's memory, one of {count}", "MiB", [found[count][1] / 2**20], [found[1][1] / 2**20], "the only one")
    for less, more in zip(counts, counts[1:]):
        report.row(f"the supervisor's, for each watch from {less} to {more}", "KiB",
                   (found[more][0] - found[less][0]) / (more - less) / 2**10)
