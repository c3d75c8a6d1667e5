# SPDX-License-Identifier: Apache-2.0
import time

from . import parts


def rate(box, objects, events, size=3000, workers=2, **more):
    """Events per second through watcher, store, supervisor and worker, each about another object."""
    server = parts.Server(box, objects, size)
    operator = parts.operator(box, server, noop_worker=True, workers=workers, **more)
    operator.start_ready().wait_synced(600)
    parts.wait_succeeded(operator, objects)
    begin = time.monotonic()
    server.events(events)
    end = parts.wait_succeeded(operator, objects + events)
    operator.stop()
    server.close()
    return events / (end - begin)


def event_rate(report):
    """Watch events, each to another object, with a handler that costs nothing: the runtime alone."""
    events = 100_000
    for workers in (2, 4):
        found = []
        for _ in range(report.repetitions):
            with parts.sandbox() as box:
                found.append(rate(box, events, events, workers=workers))
        report.row(f"events, {workers} workers", "1/s", found)
