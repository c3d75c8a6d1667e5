# SPDX-License-Identifier: Apache-2.0
import time

from harness import wait_until

from . import idle, measure, parts


def _cost(operator):
    """Milliseconds of processor time of all its processes so far."""
    return 1000 * sum(measure.processor_by_program(measure.tree(operator.pid)).values())


def start(report):
    """READY with 10 watches and 4 workers on an empty cluster."""
    found, costs = [], []
    with parts.sandbox() as box:
        server = parts.Server(box, 0)
        operator = parts.operator(box, server, watches=idle.watches(box))
        for _ in range(report.repetitions * 3):
            begin = time.monotonic()
            operator.start()
            ready = operator.wait_notification("READY", "1")
            found.append(1000 * (ready["_received"] - begin))
            operator.wait_synced()
            costs.append(_cost(operator))
            operator.stop()
    report.row("READY", "ms", found)
    report.row("processor time until all are in sync", "ms", costs)


def warm_restart(report):
    """A restart with 100,000 stored objects: no LIST, and the time until an event reaches its handler."""
    found, costs = [], []
    with parts.sandbox() as box:
        server = parts.Server(box, 100_000, 3000)
        operator = parts.operator(box, server, noop_worker=True)
        operator.start_ready().wait_synced(600)
        parts.wait_succeeded(operator, 100_000)
        operator.stop()
        before = server.counts()["lists"]
        for _ in range(report.repetitions * 3):
            watching, runs = server.counts()["watches"], operator.runs.value
            begin = time.monotonic()
            operator.start()
            wait_until(lambda: server.counts()["watches"] > watching, "the watch", 60, 0.002)
            server.events(1)
            found.append(1000 * (operator.runs.wait(runs + 1) - begin))
            costs.append(_cost(operator))
            operator.wait_ready()
            operator.stop()
        # One question about the newest version for each start is no LIST.
        lists = server.counts()["lists"] - before - len(found)
    report.row("restart until an event is handled", "ms", found)
    report.row("processor time until then", "ms", costs)
    report.row("LISTs of the restarts", "", max(lists, 0))
