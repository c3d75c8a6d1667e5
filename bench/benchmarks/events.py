# SPDX-License-Identifier: Apache-2.0
import subprocess
import time

from harness import wait_until
from harness.process import start

from . import measure, parts


class Burst:
    """What a burst of events cost: events a second, and microseconds of processor time an event for each program."""

    def __init__(self, rate, cost):
        self.rate, self.cost = rate, cost

    @property
    def total_cost(self):
        return sum(self.cost.values())


class Runtime:
    """An operator in sync with `objects` objects, whose handler costs nothing."""

    def __init__(self, box, objects, size=3000, workers=2):
        self.objects = objects
        self.server = parts.Server(box, objects, size)
        self.operator = parts.operator(box, self.server, noop_worker=True, workers=workers)
        self.operator.start_ready().wait_synced(600)
        self.operator.runs.wait(objects)
        parts.wait_succeeded(self.operator, objects)

    def burst(self, events, at_once=None):
        """So many events, each about another object; at_once: no more on the way than that. An object that changes again
        before its run has begun needs only one, so there must never be more on the way than there are objects."""
        at_once = min(at_once or self.objects, events)
        runs = self.operator.runs
        target, family = runs.value, measure.tree(self.operator.pid)
        before, begin = measure.processor_by_program(family), time.monotonic()
        for _ in range(events // at_once):
            target += at_once
            self.server.events(at_once)
            end = runs.wait(target)
        after = measure.processor_by_program(family)
        return Burst(events / (end - begin), {name: 1e6 * (after[name] - before[name]) / events for name in after})

    def stop(self):
        self.operator.stop()
        self.server.close()


def _limit(box, objects, size, lanes):
    """Events a second through three processes that do what must be done, and nothing else."""
    server = parts.Server(box, objects, size)
    user = box.user()
    popen = start(user, [box.program("limit-events"), f"{server.url}/apis/example.com/v1/widgets?watch=1", objects, size, lanes,
                         box.subfolder("limit", user)], cwd=box.folder, stdout=subprocess.PIPE)
    wait_until(lambda: server.counts()["watches"] == 1, "the watch", 120)
    begin = time.monotonic()
    server.events(objects)
    end = popen.communicate(timeout=120)[0]
    server.close()
    if popen.returncode != 0:
        raise RuntimeError(f"limit-events ended with {popen.returncode}")
    return objects / (float(end) - begin)


def event_rate(report):
    """Watch events, each to another object of 3 KB, with a handler that costs nothing: the runtime alone, against three processes that
    read the watch, overwrite the object in a bare LMDB, pass its key on, and read it."""
    count, size = 100_000, 3000
    for workers in (2, 4):
        found, limits = [], []
        for _ in range(report.repetitions):
            with parts.sandbox() as box:
                limits.append(_limit(box, count, size, workers))
                runtime = Runtime(box, count, size, workers)
                found.append(runtime.burst(count))
                runtime.stop()
        report.row(f"events, {workers} workers", "1/s", [each.rate for each in found])
        report.row(f"events, {workers} workers, of the limit", "1/s", [each.rate for each in found], limits)
        for name in ("reconciled", "reconciled-watcher", "bench-worker"):
            report.row(f"{name}, {workers} workers", "us", [each.cost[name] for each in found], note="processor time an event")
