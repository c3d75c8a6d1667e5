# SPDX-License-Identifier: Apache-2.0
import time

from . import measure, parts

WATCHES = 10


def watches(box):
    command = [str(box.program("bench-noop"))]
    return [parts.watch(f"widgets-{number}", command, id=str(number)) for number in range(WATCHES)]


def idle(report):
    """10 watches, 4 workers, 100,000 objects, nothing happens: processor time, wakeups, memory of the whole tree."""
    seconds = 60 if report.full else 20
    with parts.sandbox() as box:
        server = parts.Server(box, 10_000, 3000)
        operator = parts.operator(box, server, watches=watches(box), noop_worker=False, workers=4)
        operator.start_ready().wait_synced(600)
        parts.wait_succeeded(operator, 100_000, 1200)
        family = measure.tree(operator.pid)
        before = [(measure.processor_seconds(each.pid), measure.wakeups(each.pid)) for each in family]
        begin = time.monotonic()
        # The one thing here that is measured by letting time pass: an idle system.
        time.sleep(seconds)
        taken = time.monotonic() - begin
        after = [(measure.processor_seconds(each.pid), measure.wakeups(each.pid)) for each in family]
        report.row("processor time", "%", 100 * sum(b[0] - a[0] for a, b in zip(before, after)) / taken)
        report.row("wakeups of all processes", "per s", sum(b[1] - a[1] for a, b in zip(before, after)) / taken)
        _memory(report, family)
        operator.stop()


def _memory(report, family):
    total, by_program = 0, {}
    for each in family:
        value = measure.anonymous(each.pid)
        total += value
        by_program.setdefault(each.program, []).append(value)
    report.row("anonymous memory of the tree", "MiB", total / 2**20)
    for name, values in sorted(by_program.items()):
        report.row(f"of it: {len(values)} x {name}", "MiB", sum(values) / 2**20)
